// The files of our own Postgres: made by initdb on the first start, given our settings on every start, and reached
// through a socket that only we and the server's user can open.
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import {
  appendFile,
  chmod,
  chown,
  lchown,
  lstat,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { World } from '../../kernel/world.ts'
import type { Binaries } from './binaries.ts'
import type { EmbeddedConnection } from './embedded.ts'

export interface Cluster {
  readonly directory: string
  /** What the server is told as its data directory; it runs with `directory` as its working directory. */
  readonly directoryArgument: string
  readonly socketDirectory: string | undefined
  readonly host: string
  readonly port: number
  readonly password: string | undefined
  /** Removes what lies outside the data directory, when the server has stopped. */
  tidy(): Promise<void>
}

export const SUPERUSER = 'tollgate'
export const DATABASE = 'tollgate'
export const PASSWORD_FILE = 'postgres-password'
const SOCKET_PORT = 5432
// The kernel's sun_path, less its closing zero.
const SOCKET_PATH_BYTES_MAX = process.platform === 'linux' ? 107 : 103
const DRAFT = 'postgres.draft-'
const OWN_CONF = 'tollgate.conf'
const OPERATOR_CONF = 'operator.conf'

interface ClusterOptions {
  readonly dataDirectory: string
  readonly binaries: Binaries
  readonly user: SystemUser | undefined
  /** TCP on the loopback with a password, for systems without unix sockets. */
  readonly loopback: boolean
  readonly world: World
  readonly log: (line: string) => void
  readonly settings?: readonly string[]
}

export async function openCluster(options: ClusterOptions): Promise<Cluster> {
  const { dataDirectory, user, loopback, settings = [] } = options
  const directory = join(dataDirectory, 'postgres')
  const password = loopback ? await keepPassword(dataDirectory, options.world) : undefined
  await claim(directory, user)
  if (!existsSync(join(directory, 'PG_VERSION'))) await initialise(directory, password, options)
  await checkVersion(directory, options.binaries)

  const directoryArgument = argumentFor(directory, user)
  if (password !== undefined) {
    const port = (await runningPort(directory)) ?? (await freePort())
    await configure(directory, user, [
      `listen_addresses = '127.0.0.1'`,
      `unix_socket_directories = ''`,
      `port = ${port}`,
      ...settings,
    ])
    return { directory, directoryArgument, socketDirectory: undefined, host: '127.0.0.1', port, password, tidy: noop }
  }
  const socket = await placeSocket(directory, dataDirectory, user)
  await configure(directory, user, [
    `listen_addresses = ''`,
    `unix_socket_directories = '${socket.setting}'`,
    'unix_socket_permissions = 0700',
    `port = ${SOCKET_PORT}`,
    ...settings,
  ])
  const socketDirectory = socket.directory
  return {
    directory,
    directoryArgument,
    socketDirectory,
    host: socketDirectory,
    port: SOCKET_PORT,
    password,
    tidy: socket.tidy,
  }
}

/**
 * How the server names its directory. Its user can seldom walk there: a data directory is 0700 and root's, and so may
 * be a parent. But a process is started inside it while still root, and Linux lets every process reach its own working
 * directory by this name, whatever lies above.
 */
function argumentFor(directory: string, user: SystemUser | undefined): string {
  return user && existsSync('/proc/self/cwd') ? '/proc/self/cwd' : directory
}

/** Says early and plainly when the files are not for us, and takes those over that a copy made by root left to root. */
async function claim(directory: string, user: SystemUser | undefined): Promise<void> {
  const found = await stat(directory).catch(() => undefined)
  if (!found) return
  const uid = process.getuid?.()
  if (!user && uid !== undefined && found.uid !== uid) {
    throw new Error(
      `The database in ${directory} belongs to uid ${found.uid}, and Tollgate runs as uid ${uid}. Start it as that user or as root, or give the files to uid ${uid} with chown -R.`,
    )
  }
  const names = await readdir(directory)
  if (names.length > 0 && !names.includes('PG_VERSION')) {
    throw new Error(`${directory} holds files but no Postgres database. Move them away, or set TOLLGATE_DATA.`)
  }
  if (user && found.uid !== user.uid) {
    for (const name of await readdir(directory, { recursive: true })) {
      await lchown(join(directory, name), user.uid, user.gid)
    }
    await lchown(directory, user.uid, user.gid)
    await chmod(directory, 0o700)
  }
}

/** A start that is killed half-way leaves only a draft, which the next start throws away. */
async function initialise(
  directory: string,
  password: string | undefined,
  { binaries, user, log, dataDirectory }: ClusterOptions,
): Promise<void> {
  log('Making a new database (once; takes a second or two).')
  for (const name of await readdir(dataDirectory)) {
    if (name.startsWith(DRAFT)) await rm(join(dataDirectory, name), { recursive: true, force: true })
  }
  // Each has a name of its own, since the initdb of a killed start may still be writing into the last one.
  const draft = await mkdtemp(join(dataDirectory, DRAFT))

  const common = ['-D', argumentFor(draft, user), '-U', SUPERUSER, '--encoding=UTF8', '--locale=C', '--no-instructions']
  try {
    if (user) await chown(draft, user.uid, user.gid)
    if (password === undefined) {
      await runInitdb(binaries, draft, user, [...common, '--auth=trust'])
      await writeFile(join(draft, 'pg_hba.conf'), 'local all all trust\n')
    } else {
      const secrets = await privateDirectory(tmpdir(), user)
      const file = join(secrets, 'password')
      await writeFile(file, `${password}\n`)
      await runInitdb(binaries, draft, user, [...common, '--auth=scram-sha-256', `--pwfile=${file}`]).finally(() =>
        rm(secrets, { recursive: true, force: true }),
      )
      await writeFile(join(draft, 'pg_hba.conf'), 'host all all 127.0.0.1/32 scram-sha-256\n')
    }
  } catch (error) {
    const hint = user ? ` It was tried as uid ${user.uid}, since Postgres does not run as root.` : ''
    throw new Error(`Could not make the database in ${dataDirectory}.${hint} ${String(error)}`, { cause: error })
  }
  await appendFile(
    join(draft, 'postgresql.conf'),
    `\n# The first is rewritten on every start; the second is yours.\ninclude_if_exists '${OWN_CONF}'\ninclude_if_exists '${OPERATOR_CONF}'\n`,
  )
  await rename(draft, directory)
  await syncDirectory(dataDirectory)
}

async function runInitdb(binaries: Binaries, cwd: string, user: SystemUser | undefined, args: string[]): Promise<void> {
  await promisify(execFile)(binaries.initdb, args, { cwd, ...asUser(user) })
}

async function checkVersion(directory: string, binaries: Binaries): Promise<void> {
  const made = (await readFile(join(directory, 'PG_VERSION'), 'utf8')).trim()
  const [major] = binaries.version.split('.')
  if (made === major) return
  throw new Error(
    `The database in ${directory} was made by Postgres ${made}, and this Tollgate brings ${binaries.version}. Move its contents with pg_dump, or start the Tollgate that made it.`,
  )
}

/** `more` comes after what every server has. */
async function configure(directory: string, user: SystemUser | undefined, more: string[]): Promise<void> {
  const lines = [
    '# Written by Tollgate on every start. Your own settings belong in operator.conf beside this file.',
    'max_connections = 200',
    "shared_buffers = '128MB'",
    // An answered call stays charged, also after a power cut.
    'fsync = on',
    'synchronous_commit = on',
    // One system call that returns when the record is on the disk, instead of a write and a wait for all of the file.
    ...(process.platform === 'linux' ? ['wal_sync_method = open_datasync'] : []),
    'full_page_writes = on',
    'wal_compression = on',
    "max_wal_size = '1GB'",
    // Balances are few rows that change with every call; vacuum follows closely so that they stay few pages.
    "autovacuum_naptime = '10s'",
    'jit = off',
    "timezone = 'UTC'",
    "log_timezone = 'UTC'",
    "log_line_prefix = '%m [%p] '",
    'log_checkpoints = off',
    'logging_collector = off',
    ...more,
  ]
  const file = join(directory, OWN_CONF)
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o600 })
  if (user) await chown(file, user.uid, user.gid)
}

interface PidFile {
  readonly pid: number
  readonly port: number
  readonly text: string
}

/** What a running server, or one that was killed, says of itself. */
export async function readPidFile(directory: string): Promise<PidFile | undefined> {
  const text = await readFile(join(directory, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const pid = Number(lines[0])
  return pid > 0 ? { pid, port: Number(lines[3]), text } : undefined
}

interface Socket {
  /** As the server's setting. */
  readonly setting: string
  /** As clients name it. */
  readonly directory: string
  tidy(): Promise<void>
}

/** The socket lies in the cluster, which is 0700 anyway, or, when that path is too long for one, in a short place. */
async function placeSocket(directory: string, dataDirectory: string, user: SystemUser | undefined): Promise<Socket> {
  if (Buffer.byteLength(join(directory, `.s.PGSQL.${SOCKET_PORT}`)) <= SOCKET_PATH_BYTES_MAX) {
    return { setting: '.', directory, tidy: noop }
  }
  // Written down, so that a later gateway finds the server that this one left running.
  const record = join(dataDirectory, 'postgres-socket')
  const recorded = (await readFile(record, 'utf8').catch(() => '')).trim()
  const uid = user?.uid ?? process.getuid?.()
  const found = recorded ? await lstat(recorded).catch(() => undefined) : undefined
  const usable = found?.isDirectory() && found.uid === uid && (found.mode & 0o077) === 0
  const short = usable ? recorded : await privateDirectory('/tmp', user)
  if (!usable) await writeFile(record, `${short}\n`, { mode: 0o600 })
  return {
    setting: short,
    directory: short,
    async tidy() {
      await rm(short, { recursive: true, force: true })
      await rm(record, { force: true })
    },
  }
}

async function privateDirectory(parent: string, user: SystemUser | undefined): Promise<string> {
  const made = await mkdtemp(join(parent, 'tollgate-'))
  await chmod(made, 0o700)
  if (user) await chown(made, user.uid, user.gid)
  return made
}

async function keepPassword(dataDirectory: string, world: World): Promise<string> {
  const file = join(dataDirectory, PASSWORD_FILE)
  const kept = (await readFile(file, 'utf8').catch(() => '')).trim()
  if (kept) return kept
  const made = world.bytes(32).toString('base64url')
  await writeFile(file, `${made}\n`, { mode: 0o600 })
  return made
}

/** A server that a killed gateway left behind keeps its port. */
async function runningPort(directory: string): Promise<number | undefined> {
  const found = await readPidFile(directory)
  return found && isAlive(found.pid) ? found.port : undefined
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resume, fail) => server.once('error', fail).listen(0, '127.0.0.1', resume))
  const address = server.address()
  await new Promise<void>((resume) => server.close(() => resume()))
  if (address === null || typeof address === 'string') throw new Error('No free port on 127.0.0.1.')
  return address.port
}

async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return // Directories cannot be opened there.
  const handle = await open(directory, 'r')
  await handle.sync().finally(() => handle.close())
}

async function noop(): Promise<void> {}

// Postgres refuses to run as root, rightly. When we are root, it runs as an ordinary user of the machine.

export interface SystemUser {
  readonly uid: number
  readonly gid: number
}

// The first of these that the machine knows. initdb looks its own user up, so a made-up number would not do.
const NAMES = ['tollgate', 'nobody', 'daemon']

/** Who runs Postgres for this data directory; undefined means that we do. */
export async function chooseUser(dataDirectory: string): Promise<SystemUser | undefined> {
  if (process.getuid?.() !== 0) return undefined

  // Files that already belong to somebody stay theirs.
  const cluster = await stat(join(dataDirectory, 'postgres')).catch(() => undefined)
  if (cluster && cluster.uid !== 0) return { uid: cluster.uid, gid: cluster.gid }

  const users = new Map<string, SystemUser>()
  for (const line of (await readFile('/etc/passwd', 'utf8').catch(() => '')).split('\n')) {
    const [name, , uid, gid] = line.split(':')
    // Some systems write the ids of nobody as -2; the file system knows them as unsigned.
    if (name && uid && gid && Number(uid) !== 0) users.set(name, { uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 })
  }
  const { uid } = await stat(dataDirectory)
  const owner = users.values().find((user) => user.uid === uid)
  if (owner) return owner
  const known = NAMES.find((name) => users.has(name))
  const user = known === undefined ? users.values().next().value : users.get(known)
  if (user) return user
  throw new Error(
    'Postgres does not run as root, and /etc/passwd names no other user. Start Tollgate as an ordinary user, or set DATABASE_URL to a Postgres server.',
  )
}

/**
 * What a child process is given: the user, and of our environment nothing, since it holds secrets and PG* surprises.
 */
export function asUser(user: SystemUser | undefined): { uid?: number; gid?: number; env?: Record<string, string> } {
  if (process.platform === 'win32') return {} // Programs there fail without SystemRoot and its like.
  const env = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/local/bin:/usr/bin:/bin' }
  return user ? { uid: user.uid | 0, gid: user.gid | 0, env } : { env }
}

// Which processes of this machine run.

/** Whether a process with this id runs. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // It runs, as somebody else.
  }
  // In a container whose first process does not collect the dead, they stay as zombies, and can still be signalled.
  return !/\) [ZX] /.test(readText(`/proc/${pid}/stat`))
}

/** Empty when the file is not there. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return '' // Not there, or not there yet.
  }
}

// The server of a data directory that another process has started.

/** The built-in Postgres of a data directory, if it runs: its own file says where it listens. */
export async function runningStore(dataDirectory: string): Promise<EmbeddedConnection | undefined> {
  const directory = join(dataDirectory, 'postgres')
  const lines = (await readFile(join(directory, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  const port = Number(lines[3]?.trim())
  if (!port || !isAlive(Number(lines[0]))) return undefined
  const shared = { port, user: SUPERUSER, database: DATABASE, ssl: false as const }
  // Its own name for the socket's directory may be relative to itself.
  const socket = lines[4]?.trim() ?? ''
  const listens = lines[5]?.trim() ?? ''
  if (socket === '' && listens !== '') {
    const password = (await readFile(join(dataDirectory, PASSWORD_FILE), 'utf8')).trim()
    return { ...shared, host: '127.0.0.1', password }
  }
  return { ...shared, host: socket.startsWith('/') && !socket.startsWith('/proc/') ? socket : directory }
}
