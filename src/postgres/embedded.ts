// A real Postgres of our own in the data directory, for whoever has not set up a server. It is made on the first start,
// runs as long as we do, is started again when it dies, and is taken over when a killed gateway left it running.
// How and why: docs/decisions/0002-runtime-and-postgres.md.

import { closeSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { sleep } from '../kernel/timers.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { findBinaries, usualCopyPlaces } from './binaries.ts'
import { type Cluster, chooseUser, DATABASE, isAlive, openCluster, readText, SUPERUSER } from './cluster.ts'
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

// One gateway per data directory. Node offers no file locks of its own, but the SQLite inside it takes the kernel's, and
// those are what is wanted here: taking one is atomic, it vanishes with its process however that died, a reused pid
// cannot be mistaken for it, and it holds between containers that share a volume, where pids mean nothing.

const SQLITE_BUSY = 5
// A gateway writes its pid right after it took the lock; whoever is refused in between waits this long to learn it.
const PID_WAIT_MS = 1_000

interface DirectoryLock {
  release(): void
}

/** Takes the directory for this process, or throws an error that names the process that has it. */
export async function lockDirectory(directory: string, world: World): Promise<DirectoryLock> {
  // The pid is kept beside the lock, not in it: closing any handle on a locked file drops the lock (POSIX says so).
  const pidFile = join(directory, 'gateway.pid')
  const lockFile = join(directory, 'gateway.lock')
  makePrivate(lockFile)
  const database = tryLock(lockFile)
  if (!database) throw new Error(await refusal(directory, pidFile, world))

  const draft = `${pidFile}.${process.pid}`
  writeFileSync(draft, `${process.pid}\n`, { mode: 0o600 })
  renameSync(draft, pidFile)
  return {
    release() {
      rmSync(pidFile, { force: true })
      database.close()
    },
  }
}

/** Only when it is new: opening and closing it while this very process holds the lock would drop the lock. */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'ax', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function tryLock(file: string): DatabaseSync | undefined {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(file, { timeout: 0 })
    database.exec('begin exclusive')
    return database
  } catch (error) {
    database?.close()
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return undefined
    throw new Error(`Cannot lock ${file}. The data directory must be writable and on a file system with locks.`, {
      cause: error,
    })
  }
}

async function refusal(directory: string, pidFile: string, world: World): Promise<string> {
  const deadlineMs = world.elapsedMs() + PID_WAIT_MS
  let pid = readPid(pidFile)
  while (!(pid && isAlive(pid)) && world.elapsedMs() < deadlineMs) {
    await sleep(world, 20)
    pid = readPid(pidFile)
  }
  const holder = pid ? `Another Tollgate (pid ${pid})` : 'Another Tollgate'
  return `${holder} is using the data directory ${directory}. Stop it first, or set TOLLGATE_DATA to another directory.`
}

function readPid(file: string): number | undefined {
  return Number.parseInt(readText(file), 10) || undefined
}
