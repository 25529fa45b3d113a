// A real Postgres of our own in the data directory, for whoever has not set up a server. It is made on the first start,
// runs as long as we do, is started again when it dies, and is taken over when a killed gateway left it running.
// How and why: docs/decisions/0002-runtime-and-postgres.md.
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { sleep } from '../kernel/timers.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { findBinaries, usualCopyPlaces } from './binaries.ts'
import { type Cluster, chooseUser, DATABASE, openCluster, SUPERUSER } from './cluster.ts'
import { lockDirectory } from './directory-lock.ts'
import {
  endOrphans,
  findRunning,
  launch,
  logTail,
  reload,
  type Server,
  type ServerOptions,
  stopServer,
  untilReady,
  withClient,
} from './server.ts'

export interface EmbeddedConnection {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
  readonly password?: string
  /** Said outright, or PGSSLMODE in the environment would ask a unix socket for TLS. */
  readonly ssl: false
}

export interface Embedded {
  readonly connection: EmbeddedConnection
  /** Undefined where there are no unix sockets. */
  readonly socketDirectory: string | undefined
  readonly version: string
  /** Of the server that runs at this moment; a restart changes it. */
  readonly pid: number
  stop(): Promise<void>
}

export interface EmbeddedOptions {
  readonly dataDirectory: string
  readonly log: (line: string) => void
  readonly world?: World
  /** TCP on the loopback with a random password instead of a unix socket. */
  readonly loopback?: boolean
  /** Where a private copy of the programs may go, if they do not run from where npm put them. */
  readonly copyPlaces?: readonly string[]
  /** Whoever is told to stop during the start ends it with this; it then rejects, and no server is left. */
  readonly stop?: AbortSignal
}

const RESTART_MS_FIRST = 50
const RESTART_MS_MAX = 2_000
const TRIES_MAX = 5

/** Throws when another gateway uses the directory, naming its pid, and when there are no programs for this platform. */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { log, world = realWorld, loopback = process.platform === 'win32' } = options
  await mkdir(options.dataDirectory, { recursive: true, mode: 0o700 })
  const dataDirectory = await realpath(options.dataDirectory)
  const lock = await lockDirectory(dataDirectory, world)
  try {
    const user = await chooseUser(dataDirectory)
    const binaries = await findBinaries(user, options.copyPlaces ?? usualCopyPlaces(dataDirectory, user))
    const cluster = await openCluster({ dataDirectory, binaries, user, loopback, world, log })
    const serving = { cluster, binaries, user, logFile: join(dataDirectory, 'postgres.log'), world, log }
    const { server, version } = await takeOverOrStart(serving, options.stop)
    await makeDatabase(cluster).catch(async (error: unknown) => {
      await stopServer(server, serving)
      throw error
    })
    const keeper = keepRunning(server, serving)
    const { host, port, password, socketDirectory } = cluster
    return {
      connection: {
        ...{ host, port, user: SUPERUSER, database: DATABASE, ssl: false },
        ...(password === undefined ? {} : { password }),
      },
      socketDirectory,
      version,
      get pid() {
        return keeper.pid()
      },
      async stop() {
        await keeper.stop()
        await cluster.tidy()
        lock.release()
      },
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

async function takeOverOrStart(
  serving: ServerOptions,
  stop: AbortSignal | undefined,
): Promise<{ server: Server; version: string }> {
  const cancelled = () => stop?.aborted ?? false
  const delay = backoff()
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    stop?.throwIfAborted()
    const running = await findRunning(serving)
    if (running) {
      const version = await untilReady(running, serving, cancelled)
      if (version === serving.binaries.version) {
        reload(running)
        serving.log(`Took over the Postgres ${version} (pid ${running.pid}) that an earlier gateway left running.`)
        return { server: running, version }
      }
      await stopServer(running, serving) // Of another version, on its way down, or no longer wanted.
      stop?.throwIfAborted()
    }
    const server = await launch(serving)
    const version = await untilReady(server, serving, cancelled)
    if (version !== undefined) return { server, version }
    if (cancelled()) await stopServer(server, serving)
    else if (!(await findRunning(serving))) await endOrphans(serving.cluster)
    await sleep(serving.world, delay())
  }
  throw new Error(`Postgres did not start. Its log ends with:\n${logTail(serving.logFile)}`)
}

async function makeDatabase(cluster: Cluster): Promise<void> {
  await withClient(cluster, 'postgres', async (client) => {
    const { rowCount } = await client.query('select 1 from pg_database where datname = $1', [DATABASE])
    if (rowCount === 0) await client.query(`create database ${pg.escapeIdentifier(DATABASE)}`)
  })
}

/** Starts the server again whenever it ends, until told to stop. */
function keepRunning(first: Server, serving: ServerOptions) {
  const { log, world } = serving
  let server = first
  let stopping = false
  let cancelPause = () => {}

  const tryToRevive = async (): Promise<boolean> => {
    try {
      await endOrphans(serving.cluster)
      server = await launch(serving)
      if ((await untilReady(server, serving, () => stopping)) !== undefined) return true
      if (!stopping) log(`Postgres did not start again. Its log ends with:\n${logTail(serving.logFile)}`)
    } catch (error) {
      log(`Postgres did not start again. ${String(error)}`)
    }
    return false
  }
  const revive = async (): Promise<void> => {
    const delay = backoff()
    while (!stopping && !(await tryToRevive()) && !stopping) {
      await new Promise<void>((resume) => {
        const cancelTimer = world.after(delay(), resume)
        cancelPause = () => {
          cancelTimer()
          resume()
        }
      })
    }
  }
  const kept = (async () => {
    for (;;) {
      await server.gone
      if (stopping) return
      log(`Postgres (pid ${server.pid}) ended unexpectedly; starting it again.`)
      await revive()
      if (stopping) return
      log(`Postgres is back (pid ${server.pid}).`)
    }
  })()

  return {
    pid: () => server.pid,
    async stop() {
      stopping = true
      cancelPause()
      await stopServer(server, serving)
      await kept
      await stopServer(server, serving) // One that was being started at that moment.
    },
  }
}

function backoff(): () => number {
  let delayMs = RESTART_MS_FIRST / 2
  return () => {
    delayMs = Math.min(delayMs * 2, RESTART_MS_MAX)
    return delayMs
  }
}
