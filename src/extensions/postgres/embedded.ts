// A real Postgres of our own in the data directory, used when no DATABASE_URL is set. It is made on the first start,
// runs as long as we do, is started again when it dies, and is taken over when a killed gateway left it running.
// How and why: docs/decisions/0002-runtime-and-database.md.

import { execFile, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { mkdir, readdir, readlink, realpath, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import pg from 'pg'
import { sleep } from '../../kernel/timers.ts'
import { realWorld, type World } from '../../kernel/world.ts'
import { type Binaries, copyDirectories, findBinaries } from './binaries.ts'
import {
  asUser,
  type Cluster,
  chooseUser,
  DATABASE,
  isAlive,
  openCluster,
  readPidFile,
  readText,
  SUPERUSER,
  type SystemUser,
} from './cluster.ts'

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
  /** Lines of its configuration that come after our own. */
  readonly settings?: readonly string[]
  /** Aborts the start: it then rejects, and no server is left running. */
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
    const binaries = await findBinaries(user, options.copyPlaces ?? copyDirectories(dataDirectory, user))
    const cluster = await openCluster({ ...options, dataDirectory, binaries, user, loopback, world })
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
        host,
        port,
        user: SUPERUSER,
        database: DATABASE,
        ssl: false,
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

// One gateway per data directory. Node offers no file locks of its own, but the SQLite inside it takes the kernel's,
// and those are what is wanted here: taking one is atomic, it vanishes with its process however that died, a reused pid
// cannot be mistaken for it, and it holds between containers that share a volume, where pids mean nothing.

const SQLITE_BUSY = 5
// A gateway writes its pid right after it took the lock; a second gateway that is rejected in between waits this long
// to read it.
const PID_WAIT_MS = 1_000

/** Takes the directory for this process, or throws an error that names the process that has it. */
export async function lockDirectory(directory: string, world: World): Promise<{ release(): void }> {
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

// One running Postgres server: started by us, or found running because a gateway that was killed left it behind.

export interface Server {
  readonly pid: number
  /** Resolves when the process has ended for any reason. */
  readonly gone: Promise<void>
  isGone(): boolean
}

export interface ServerOptions {
  readonly cluster: Cluster
  readonly binaries: Binaries
  readonly user: SystemUser | undefined
  readonly logFile: string
  readonly world: World
  readonly log: (line: string) => void
}

const LIVENESS_MS = 100
const PATIENCE_MS = 10_000
const LOG_BYTES_MAX = 16 * 1024 * 1024
const LOG_TAIL_BYTES = 2_000
// Fast shutdown ends sessions and writes a checkpoint; on a slow disk that takes a while, and haste costs a recovery.
const STOP_MS_MAX = 30_000

/** Starts a server; it is not ready yet. */
export async function launch({ cluster, binaries, user, logFile, world }: ServerOptions): Promise<Server> {
  const { directory, directoryArgument } = cluster
  rotate(logFile)
  if (process.platform === 'win32') {
    // Only pg_ctl can shed an administrator's rights there, and it does not stay as the parent.
    await promisify(execFile)(binaries.pgCtl, ['start', '-D', directory, '-l', logFile, '-w'], { windowsHide: true })
    const pid = (await readPidFile(directory))?.pid
    if (!pid) throw new Error('Postgres started but wrote no postmaster.pid.')
    return watch(pid, world)
  }
  await forgetStalePid(directory)
  // The log is a file, not a pipe to us: the server may outlive us and must be able to write.
  const output = openSync(logFile, 'a', 0o600)
  try {
    const child = spawn(binaries.postgres, ['-D', directoryArgument], {
      cwd: directory,
      ...asUser(user),
      // In a session of its own, so that Ctrl-C reaches the gateway alone, which first finishes its calls.
      detached: true,
      stdio: ['ignore', output, output],
    })
    const { pid } = child
    let ended = false
    const gone = new Promise<void>((resume) => {
      child.once('exit', () => {
        ended = true
        resume()
      })
    })
    if (pid !== undefined) endWithUs(pid, gone)
    await new Promise<void>((resume, fail) => child.once('spawn', resume).once('error', fail))
    if (pid === undefined) throw new Error('Postgres has no pid.')
    return { pid, gone, isGone: () => ended }
  } finally {
    closeSync(output)
  }
}

/** The server that already runs on these files, if there is one. */
export async function findRunning({ cluster, world }: ServerOptions): Promise<Server | undefined> {
  const found = await readPidFile(cluster.directory)
  return found && (await mayServe(found.pid, cluster.directory)) ? watch(found.pid, world) : undefined
}

/**
 * After a reboot the pid of a killed server may be anybody's, and Postgres would refuse to start. It passes over its
 * parent's pid as stale, and still checks that no process uses the old shared memory, as it would not without the file.
 */
async function forgetStalePid(directory: string): Promise<void> {
  const found = await readPidFile(directory)
  if (!found || (await mayServe(found.pid, directory))) return
  await writeFile(join(directory, 'postmaster.pid'), found.text.replace(/^\d+/, String(process.pid)))
}

/** Waits until the server takes connections, however long its recovery takes; undefined when it ended before that. */
export async function untilReady(
  server: Server,
  { cluster, world, log, logFile }: ServerOptions,
  cancelled: () => boolean,
): Promise<string | undefined> {
  let patienceMs = world.elapsedMs() + PATIENCE_MS
  while (!server.isGone() && !cancelled()) {
    const version = await askVersion(cluster).catch(() => undefined)
    if (version !== undefined) return version
    if (world.elapsedMs() > patienceMs) {
      log(`Postgres (pid ${server.pid}) takes no connections yet; it may be recovering. See ${logFile}.`)
      patienceMs = world.elapsedMs() + PATIENCE_MS
    }
    await sleep(world, 20)
  }
  return undefined
}

async function askVersion(cluster: Cluster): Promise<string> {
  return withClient(cluster, 'postgres', async (client) => {
    const { rows } = await client.query<{ version: string }>(`select current_setting('server_version') as version`)
    return rows[0]?.version ?? ''
  })
}

export async function withClient<T>(
  cluster: Cluster,
  database: string,
  run: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const { host, port, password } = cluster
  const client = new pg.Client({
    host,
    port,
    database,
    user: SUPERUSER,
    ssl: false,
    connectionTimeoutMillis: 2_000,
    ...(password === undefined ? {} : { password }),
  })
  client.on('error', () => {}) // The query that was lost to it rejects by itself.
  try {
    await client.connect()
    return await run(client)
  } finally {
    await client.end().catch(() => {})
  }
}

export async function stopServer(server: Server, { cluster, binaries, world }: ServerOptions): Promise<void> {
  if (server.isGone()) return
  if (process.platform === 'win32') {
    await promisify(execFile)(binaries.pgCtl, ['stop', '-D', cluster.directory, '-m', 'fast'], { windowsHide: true })
    return server.gone
  }
  signal(server.pid, 'SIGINT')
  const cancel = world.after(STOP_MS_MAX, () => signal(server.pid, 'SIGQUIT')) // At once; recovers on the next start.
  await server.gone
  cancel()
}

/** Makes the server read its settings anew. */
export function reload(server: Server): void {
  if (process.platform !== 'win32') signal(server.pid, 'SIGHUP') // There, any signal would end it.
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/**
 * Ends the sessions of a server that was itself killed. They notice by and by, but one in a long query would keep the
 * next server waiting. Nothing is lost: what they committed is in the log that the next server recovers from.
 */
export async function endOrphans(cluster: Cluster): Promise<void> {
  for (const name of await readdir('/proc').catch(() => [])) {
    const pid = Number(name)
    if (!pid || pid === process.pid) continue
    // An operator's shell may stand in there too.
    const program = await readlink(`/proc/${pid}/exe`).catch(() => '')
    if (/\/postgres( \(deleted\))?$/.test(program) && (await worksIn(pid, cluster.directory))) signal(pid, 'SIGKILL')
  }
}

/** The end of the server's log, for an error message. */
export function logTail(logFile: string): string {
  return readFileSync(logFile, 'utf8').slice(-LOG_TAIL_BYTES).trim()
}

function watch(pid: number, world: World): Server {
  let ended = false
  const gone = new Promise<void>((resume) => {
    const look = () => {
      ended = !isAlive(pid)
      if (ended) resume()
      else world.after(LIVENESS_MS, look)
    }
    look()
  })
  endWithUs(pid, gone)
  return { pid, gone, isGone: () => ended }
}

/** The last chance of a process that exits without stopping its server: that shuts down in order, after we are gone. */
function endWithUs(pid: number, gone: Promise<void>): void {
  const onExit = () => signal(pid, 'SIGINT')
  process.on('exit', onExit)
  void gone.then(() => process.off('exit', onExit))
}

/** Whether a process may be the server of these files; where the system does not tell, its socket will. */
async function mayServe(pid: number, directory: string): Promise<boolean> {
  if (!isAlive(pid)) return false
  if (process.platform === 'linux') return worksIn(pid, directory)
  if (process.platform === 'win32') return true
  const { stdout } = await promisify(execFile)('ps', ['-o', 'comm=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.trim().endsWith('postgres')
}

/**
 * Whether a process works inside a directory, as a server does in its own. Only Linux tells, and not of processes of
 * other users, whose servers would not be ours. Compared by what it is, not by name, which differs between containers.
 */
async function worksIn(pid: number, directory: string): Promise<boolean> {
  const [cwd, wanted] = await Promise.all([stat(`/proc/${pid}/cwd`).catch(() => undefined), stat(directory)])
  return cwd?.ino === wanted.ino && cwd.dev === wanted.dev
}

function rotate(logFile: string): void {
  const bytes = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
  if (bytes > LOG_BYTES_MAX) renameSync(logFile, `${logFile}.1`)
}
