// One running Postgres server: started by us, or found running because a gateway that was killed left it behind.
import { execFile, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs'
import { readdir, readlink, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import type { Binaries } from './binaries.ts'
import { asUser, type Cluster, isAlive, readPidFile, SUPERUSER, type SystemUser } from './cluster.ts'

export interface Server {
  readonly pid: number
  /** Resolves when the process has ended, whoever ended it. */
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
    ...{ host, port, database, user: SUPERUSER, ssl: false, connectionTimeoutMillis: 2_000 },
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
 * Whether a process works inside a directory, as a server does in its own. Only Linux tells, and not of processes of other
 * users, whose servers would not be ours. Compared by what it is, not by name, which differs between containers.
 */
async function worksIn(pid: number, directory: string): Promise<boolean> {
  const [cwd, wanted] = await Promise.all([stat(`/proc/${pid}/cwd`).catch(() => undefined), stat(directory)])
  return cwd?.ino === wanted.ino && cwd.dev === wanted.dev
}

function rotate(logFile: string): void {
  const bytes = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
  if (bytes > LOG_BYTES_MAX) renameSync(logFile, `${logFile}.1`)
}
