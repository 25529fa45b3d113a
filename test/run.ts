// What `npm test` runs: one real Postgres for the whole run, then node's test runner over every test file, or over those
// whose path contains one of the arguments (or matches it as a glob). With --long, what `npm run test:long` runs: the files
// called *.long.ts, one at a time. They install foreign programs, break machines or put minutes of load on this one.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import {
  access,
  chmod,
  constants,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  statfs,
  writeFile,
} from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join, matchesGlob, relative, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { startEmbedded } from '../src/postgres/embedded.ts'
import { SERVER_VARIABLE } from './database.ts'

const ROOT = resolve(import.meta.dirname, '..')
const PREFIX = 'tollgate-test-'
/** A disk that stalls makes tests wait for nothing that they test. */
const MEMORY = '/dev/shm'
const MEMORY_BYTES_MIN = 6 * 1024 ** 3
const ABANDONED_AFTER_MS = 60_000
const REMOVAL_TRIES = 10
const PROGRESS_EVERY_MS = 30_000

interface Suite {
  readonly globs: readonly string[]
  readonly processesAtOnce: number
  /** Each loads the gateway once for all of its files. */
  readonly filesPerProcess: number
  /** A guard against a run that hangs; no process comes near it. */
  readonly processMsMax: number
}
const ORDINARY: Suite = {
  globs: ['src/**/*.test.ts', 'sandbox/**/*.test.ts', 'console/src/**/*.test.ts', 'test/**/*.test.ts'],
  // More than there are processors: a file often waits, for its database or for a vendor that is slow on purpose.
  processesAtOnce: 3 * availableParallelism(),
  filesPerProcess: 8,
  processMsMax: 1_800_000,
}
const LONG: Suite = {
  ...{ globs: ['test/**/*.long.ts'], processesAtOnce: 1, filesPerProcess: 1 },
  processMsMax: 3_600_000,
}
/** What a test says that looks at its process or changes it: it is alone in its process. */
const ALONE =
  /process\.(?:memoryUsage|cpuUsage|resourceUsage|on\(|once\(|chdir|env\.\w+ = )|mock\.(?:timers|method)|ledger-part/

function chooseFiles({ globs }: Suite, patterns: readonly string[]): string[] {
  const files = globSync(globs, { cwd: ROOT }).sort()
  if (patterns.length === 0) return files
  return files.filter((file) =>
    patterns.some((pattern) => {
      const path = relative(ROOT, resolve(pattern))
      return file.includes(pattern) || file === path || matchesGlob(file, pattern)
    }),
  )
}

/** In the order in which they were mounted; nothing where the system does not tell. */
async function mounts(): Promise<{ path: string; options: string[] }[]> {
  const text = await readFile('/proc/self/mounts', 'utf8').catch(() => '')
  return text.split('\n').map((line) => {
    const [, path = '', , options = ''] = line.split(' ')
    return { path, options: options.split(',') }
  })
}

/**
 * Removes a run's directory. A server that was left to itself may still be writing into it, and a test that was killed may
 * have left a file system mounted there. What cannot be removed is named and left: it must not hold up this run.
 */
async function remove(directory: string): Promise<void> {
  for (const { path } of (await mounts()).reverse()) {
    if (path.startsWith(`${directory}/`)) spawnSync('umount', ['-l', path])
  }
  for (let tries = 1; ; tries += 1) {
    try {
      // Its own retries multiply with the depth of what is in the way.
      return await rm(directory, { recursive: true, force: true })
    } catch (error) {
      if (tries === REMOVAL_TRIES) return console.error(`Could not remove ${directory}: ${String(error)}`)
      await setTimeout(100)
    }
  }
}

/** Servers of runs that were killed. Whoever still holds the lock of such a directory is alive and left alone. */
async function removeAbandoned(): Promise<void> {
  const places = [tmpdir(), MEMORY].map(async (place) => {
    const names = await readdir(place).catch(() => [])
    return names.filter((name) => name.startsWith(PREFIX)).map((name) => join(place, name))
  })
  for (const directory of (await Promise.all(places)).flat()) {
    const made = await stat(directory).catch(() => undefined)
    if (!made || Date.now() - made.mtimeMs < ABANDONED_AFTER_MS) continue
    try {
      const left = await startEmbedded({ dataDirectory: join(directory, 'data'), log: () => {} })
      await left.stop()
    } catch {
      continue
    }
    await remove(directory)
  }
}

/** Where a run keeps its database and everything temporary: in memory, if it has the room and lets programs run. */
async function choosePlace(): Promise<string> {
  try {
    await access(MEMORY, constants.W_OK)
    const { bavail, bsize } = await statfs(MEMORY)
    const bytesFree = Math.min(bavail * bsize, process.availableMemory())
    const mount = (await mounts()).findLast(({ path }) => path === MEMORY)
    const isFit = mount && !mount.options.includes('noexec') && bytesFree >= MEMORY_BYTES_MIN
    return isFit ? MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}

/** The runner reports a file only after all that were started before it, which may take minutes; so this says how far the run is. */
class Progress {
  readonly #files: readonly string[]
  readonly #ended: string
  readonly #timer: NodeJS.Timeout

  constructor(files: readonly string[], ended: string) {
    this.#files = files
    this.#ended = ended
    const start = Date.now()
    this.#timer = setInterval(() => {
      const done = this.#files.length - this.#left().length
      console.error(`${done} of ${files.length} files have run after ${Math.round((Date.now() - start) / 1000)} s.`)
    }, PROGRESS_EVERY_MS)
  }

  /** Files that have ended, with the seconds of processor time that they took. */
  #times(): Map<string, string> {
    const text = existsSync(this.#ended) ? readFileSync(this.#ended, 'utf8') : ''
    return new Map(
      text
        .trim()
        .split('\n')
        .map((line) => line.split(' ') as [string, string]),
    )
  }

  #left(): string[] {
    const times = this.#times()
    return this.#files.filter((file) => !times.has(file))
  }

  longest(): string {
    const sorted = [...this.#times()].sort(([, a], [, b]) => Number(b) - Number(a))
    return sorted.map(([file, seconds]) => `${seconds} ${file}`).join('\n')
  }

  /** Answers with the files that have not come to their end. */
  stop(): string[] {
    clearInterval(this.#timer)
    return this.#left()
  }
}

interface Running {
  readonly env: NodeJS.ProcessEnv
  readonly signal: AbortSignal
}

/**
 * The modules that processes run. Each loads the gateway once and has it compiled for all of its files; each file is a suite of its own, with its own
 * hooks. Neighbours come into different processes, since they take about as long. Files with a browser or with processes that end take the longest, so
 * they start first.
 */
async function groupFiles(files: readonly string[], { filesPerProcess }: Suite, directory: string): Promise<string[]> {
  const texts = await Promise.all(files.map((file) => readFile(join(ROOT, file), 'utf8')))
  const alone = files.filter((_, at) => ALONE.test(texts[at] ?? ''))
  const shared = files.filter((file) => !alone.includes(file))
  const isLong = (file: string) => /\/browser\/|workers|crash/.test(file)
  const sorted = [...shared.filter(isLong), ...shared.filter((file) => !isLong(file))]
  const count = Math.ceil(sorted.length / filesPerProcess)
  const groups = Array.from({ length: count }, (_, group) => sorted.filter((_, at) => at % count === group))
  await mkdir(directory)
  return Promise.all(
    [...groups, ...alone.map((file) => [file])].map(async (group, at) => {
      // They are started in the order of their names.
      const path = join(directory, `group-${String(at + 1).padStart(3, '0')}.mjs`)
      await writeFile(path, groupOf(group))
      return path
    }),
  )
}

function groupOf(files: readonly string[]): string {
  const addresses = Object.fromEntries(files.map((file) => [file, pathToFileURL(join(ROOT, file)).href]))
  return `import { runGroup } from '${pathToFileURL(join(ROOT, 'test/group.ts'))}'\nawait runGroup(${JSON.stringify(addresses)})\n`
}

function runTests(files: readonly string[], suite: Suite, { env, signal }: Running): Promise<number> {
  const settings = [
    ...['--test', `--test-concurrency=${suite.processesAtOnce}`, `--test-timeout=${suite.processMsMax}`],
    '--test-reporter=spec',
  ]
  const tests = spawn(process.execPath, [...settings, ...files], { cwd: ROOT, stdio: 'inherit', env })
  signal.addEventListener('abort', () => tests.kill(signal.reason as NodeJS.Signals))
  return new Promise<number>((done, fail) => {
    tests.once('error', fail)
    tests.once('close', (code) => done(code ?? 1))
  })
}

async function run(files: readonly string[], suite: Suite): Promise<number> {
  await removeAbandoned()
  const directory = await mkdtemp(join(await choosePlace(), PREFIX))
  // Whatever the tests leave behind, most of all when they are interrupted, goes with this directory. It can be entered,
  // but not listed, by the user who runs Postgres for root.
  const temporary = join(directory, 'tmp')
  const ended = join(temporary, 'ended')
  await chmod(directory, 0o711)
  await mkdir(temporary)
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interrupted.abort(name))
  try {
    const server = await startEmbedded({
      dataDirectory: join(directory, 'data'),
      log: (line) => console.error(`[postgres] ${line}`),
    })
    try {
      if (interrupted.signal.aborted) return 1
      const env = {
        ...process.env,
        ...{ TMPDIR: temporary, [SERVER_VARIABLE]: JSON.stringify(server.connection), TOLLGATE_TEST_ENDED: ended },
        // Hundreds of processes load the same modules: each is compiled once.
        NODE_COMPILE_CACHE: join(directory, 'compiled'),
      }
      const grouped = await groupFiles(files, suite, join(directory, 'groups'))
      const progress = new Progress(files, ended)
      const code = await runTests(grouped, suite, { env, signal: interrupted.signal })
      const left = progress.stop()
      if (values.times) console.log(progress.longest())
      if (left.length === 0 || interrupted.signal.aborted) return code
      console.error(`These files did not come to their end:\n${left.join('\n')}`)
      return code || 1
    } finally {
      await server.stop()
    }
  } finally {
    await remove(directory)
  }
}

const { values, positionals } = parseArgs({
  options: { long: { type: 'boolean' }, times: { type: 'boolean' } },
  allowPositionals: true,
})
const suite = values.long ? LONG : ORDINARY
const files = chooseFiles(suite, positionals)
if (files.length === 0) {
  console.error(`No test file matches ${positionals.join(' ') || suite.globs.join(' ')}.`)
  process.exit(1)
}
process.exit(await run(files, suite))
