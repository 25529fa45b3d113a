// What `npm test` runs: one real Postgres for the whole run, then node's test runner over the quick tier, or over
// those files of any tier whose path contains one of the arguments (or matches it as a glob). With --full, what `npm
// run test:full` runs: the other files. With --long, what `npm run test:long` runs: the files called *.long.ts, one at
// a time. They install foreign programs, break machines or put minutes of load on this one. With --no-extensions: the
// tests of the core, or those of the files that are named, by gateways with no extension; --full does that at its end,
// too. With --alone: each extension's tests, by gateways with no other. With --failed: the files that failed in the
// last run, each in the way in which it failed.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import {
  access,
  appendFile,
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
import { basename, dirname, join, matchesGlob, relative, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { buildConsole } from '../console/build.ts'
import { startEmbedded } from '../src/extensions/postgres/embedded.ts'
import { writeClients } from './clients/write.ts'
import type { Counted } from './counts.ts'
import { SERVER_VARIABLE } from './database.ts'
import { EXTENSIONS_OFF_VARIABLE } from './runs.ts'

const ROOT = resolve(import.meta.dirname, '..')
const PREFIX = 'tollgate-test-'
/** Which files failed in the last run. */
const FAILED = join(ROOT, 'node_modules/.cache/tollgate-failed-tests.json')
/** Where .ci/run collects the closing lines of its runs. */
const CLOSING_VARIABLE = 'TOLLGATE_TEST_CLOSING'
/** So many files do not fail by accident: --failed does not try them. */
const FAILED_FILES_MAX = 5
/** A disk that stalls makes tests wait for nothing that they test. */
const MEMORY = '/dev/shm'
const MEMORY_BYTES_MIN = 6 * 1024 ** 3
/** The more processors there are, the more gateways share the server: more than an operator has. */
const SERVER_SETTINGS = ['max_connections = 1000']
const ABANDONED_AFTER_MS = 60_000
const REMOVAL_TRIES = 10
const PROGRESS_EVERY_MS = 10_000
/** With --beside-load: processes that do nothing and keep every processor busy, as many as this for each. */
const LOAD_PER_PROCESSOR = 2

/**
 * A test that imports one of these, even through another file in test/, starts a gateway, a database, a browser or
 * processes of its own: it is in the full tier. So are these themselves.
 */
const STARTERS = [
  'test/gateway.ts',
  'test/database.ts',
  'test/chaos/gateway-process.ts',
  'test/browser/chromium.ts',
  'src/extensions/postgres/embedded.ts',
  'test/left-behind.test.ts',
  'src/protocols/media/openai-images/memory.test.ts',
]
/** Those that are in the quick tier all the same. */
const QUICK = [
  // The contract of both documents.
  'test/contract*.test.ts',
  'test/{api-paths,data,images,video,unknown-model}.test.ts',
  // Money: the models, the engine, how calls end.
  'test/*-model.test.ts',
  'src/ledger/*.test.ts',
  'src/extensions/sales/payments.test.ts',
  'test/{endings,one-path,extras-priced,price-media}.test.ts',
  // Access: roles, keys, limits.
  'src/operator/{roles,audit}.test.ts',
  'test/{restricted-keys,test-keys,account-status}.test.ts',
  'src/admission/*.test.ts',
  'test/{budgets,outbound}.test.ts',
  'src/cli/login.test.ts',
  'src/extensions/shell/call.test.ts',
  // Streams, and what goes wrong with vendors and callers.
  'test/stream-order.test.ts',
  'test/sdk/{openai,anthropic}.test.ts',
  'test/faults/{broken,carry,leaving,silence,usage,why}.test.ts',
  'src/database/*.test.ts',
  'src/catalog/store.test.ts',
  'src/jobs/job-table.test.ts',
  'src/reports/*.test.ts',
  // In a browser: a newcomer's first call, a customer's purchase, an operator who finds why a call failed.
  'test/browser/{first-day,nothing-to-paid,why}.test.ts',
]

/**
 * With --no-extensions: what starts gateways and has to pass with every extension switched off. `npm run test:full`
 * runs these so, too.
 */
const CORE = [
  // The contract, and streams.
  'test/{contract,analytics-contract,api-paths,data,images}.test.ts',
  'test/{text-streams,text-whole}.test.ts',
  // Money, limits, keys.
  'test/{endings,one-path,extras-priced,price-media,hold-bound,credit-line}.test.ts',
  'test/{budgets,restricted-keys,account-status,refusals,unknown-model}.test.ts',
  // People: passwords, second factors, proved addresses.
  'src/operator/{login,second-factors}.test.ts',
  'test/proved-addresses.test.ts',
  // Jobs.
  'test/{video,openai-videos,work,deliveries}.test.ts',
]

/** Folders of an extension of the gateway; others have commands alone, or what several extensions need. */
const EXTENSIONS = globSync('src/extensions/*/extension.ts', { cwd: ROOT }).map((file) => basename(dirname(file)))
const present = (without: string) => EXTENSIONS.filter((name) => !without.split(',').includes(name)).join()

interface Suite {
  readonly globs: readonly string[]
  readonly processesAtOnce: number
  /** Each loads the gateway once for all of its files. */
  readonly filesPerProcess: number
  /** A guard against tests that hang; none comes near it. */
  readonly testMsMax: number
  /**
   * When no file ends for so long, something hangs: what a test started may keep its process open after the test has
   * failed.
   */
  readonly stallMsMax: number
  /** The extensions that its gateways lack: `all`, names with commas between, or none. */
  readonly without: string
}
const ORDINARY: Suite = {
  globs: ['src/**/*.test.ts', 'sandbox/**/*.test.ts', 'console/src/**/*.test.ts', 'test/**/*.test.ts'],
  // More than there are processors: a file often waits, for its database or for a vendor that is slow on purpose.
  processesAtOnce: 3 * availableParallelism(),
  filesPerProcess: 8,
  testMsMax: 600_000,
  stallMsMax: 900_000,
  without: '',
}
const LONG: Suite = {
  globs: ['test/**/*.long.ts'],
  processesAtOnce: 1,
  filesPerProcess: 1,
  without: '',
  testMsMax: 3_600_000,
  stallMsMax: 7_200_000,
}
/** What a test says that looks at its process or changes it: it is alone in its process. */
const ALONE =
  /process\.(?:memoryUsage|cpuUsage|threadCpuUsage|resourceUsage|on\(|once\(|chdir|env\.\w+ = )|mock\.(?:timers|method)|addSections|ledger-part/

function chooseFiles({ globs, without }: Suite, patterns: readonly string[]): string[] {
  const files = globSync(globs, { cwd: ROOT }).sort()
  if (patterns.length === 0 && without === 'all')
    return files.filter((file) => CORE.some((glob) => matchesGlob(file, glob)))
  if (patterns.length === 0) return values.long ? files : files.filter((file) => isQuick(file) !== values.full)
  return files.filter((file) =>
    patterns.some((pattern) => {
      const path = relative(ROOT, resolve(pattern))
      return file.includes(pattern) || file === path || matchesGlob(file, pattern)
    }),
  )
}

const isQuick = (file: string) => !isStarter(file) || QUICK.some((glob) => matchesGlob(file, glob))

const known = new Map(STARTERS.map((file) => [file, true]))
function isStarter(file: string): boolean {
  const isKnown = known.get(file)
  if (isKnown !== undefined) return isKnown
  known.set(file, false)
  if (!file.startsWith('test/') && !file.endsWith('.test.ts')) return false
  const imports = readFileSync(join(ROOT, file), 'utf8').matchAll(/ from '(\.[^']+)'/g)
  const found = [...imports].some(([, path = '']) => isStarter(join(file, '..', path)))
  known.set(file, found)
  return found
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
 * Removes a run's directory. A server that was left to itself may still be writing into it, and a test that was killed
 * may have left a file system mounted there. What cannot be removed is named and left: it must not hold up this run.
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

/**
 * The runner reports a file only after all that were started before it, which may take minutes; so this says how far
 * the run is.
 */
class Progress {
  readonly #files: readonly string[]
  readonly #ended: string
  readonly #timer: NodeJS.Timeout

  constructor(files: readonly string[], ended: string, { stallMsMax }: Suite, onStall: () => void) {
    this.#files = files
    this.#ended = ended
    const start = Date.now()
    let done = 0
    let changed = start
    this.#timer = setInterval(() => {
      const now = this.#files.length - this.#left().length
      console.error(`${now} of ${files.length} files have run after ${Math.round((Date.now() - start) / 1000)} s.`)
      if (now > done) [done, changed] = [now, Date.now()]
      else if (Date.now() - changed > stallMsMax) onStall()
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

type Running = { readonly env: NodeJS.ProcessEnv; readonly signal: AbortSignal }

/** Of the runner, for what is left of it when it is told to end: a test that blocks its process hears nothing. */
const ENDS_WITHIN_MS = 10_000

/** With every process of its group, which are those that it has started. */
function kill({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {} // None is left.
}

/**
 * The modules that processes run. Each loads the gateway once and has it compiled for all of its files; each file is a
 * suite of its own, with its own hooks. Neighbours come into different processes, since they take about as long. Files
 * with a browser or with processes that end take the longest, so they start first.
 */
async function groupFiles(files: readonly string[], suite: Suite, directory: string): Promise<string[]> {
  const texts = await Promise.all(files.map((file) => readFile(join(ROOT, file), 'utf8')))
  const alone = files.filter((_, at) => ALONE.test(texts[at] ?? ''))
  // Files that share a gateway are in one process.
  const sharing = files.filter((file, at) => texts[at]?.includes('isShared: true') && !alone.includes(file))
  const shared = files.filter((file) => !alone.includes(file) && !sharing.includes(file))
  const isLong = (file: string) => /\/browser\/|workers|crash|-model|patterns|ledger\/limits/.test(file)
  const sorted = [...shared.filter(isLong), ...shared.filter((file) => !isLong(file))]
  const count = Math.ceil(sorted.length / suite.filesPerProcess)
  const groups = Array.from({ length: count }, (_, group) => sorted.filter((_, at) => at % count === group))
  await mkdir(directory)
  return Promise.all(
    // None that takes long starts last, when nothing is left to run beside it.
    [
      ...(sharing.length > 0 ? [sharing] : []),
      ...alone.filter(isLong).map((file) => [file]),
      ...groups,
      ...alone.filter((file) => !isLong(file)).map((file) => [file]),
    ].map(async (group, at) => {
      // They are started in the order of their names.
      const path = join(directory, `group-${String(at + 1).padStart(3, '0')}.mjs`)
      await writeFile(path, groupOf(group, suite))
      return path
    }),
  )
}

function groupOf(files: readonly string[], { testMsMax }: Suite): string {
  const addresses = Object.fromEntries(files.map((file) => [file, pathToFileURL(join(ROOT, file)).href]))
  return `import { runGroup } from '${pathToFileURL(join(ROOT, 'test/group.ts'))}'\nawait runGroup(${JSON.stringify(addresses)}, ${testMsMax})\n`
}

async function runTests(files: readonly string[], suite: Suite, { env, signal }: Running): Promise<Counted> {
  const counts = join(env.TMPDIR ?? '', 'counts.json')
  const settings = [
    '--test',
    `--test-concurrency=${suite.processesAtOnce}`,
    `--test-timeout=${suite.testMsMax * suite.filesPerProcess}`,
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
    `--test-reporter=${join(ROOT, 'test', 'counts.ts')}`,
    `--test-reporter-destination=${counts}`,
  ]
  // Detached, it has a group of its own.
  const tests = spawn(process.execPath, [...settings, ...files], {
    cwd: ROOT,
    env,
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const load = Array.from({ length: values['beside-load'] ? LOAD_PER_PROCESSOR * availableParallelism() : 0 }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
  )
  signal.addEventListener('abort', () => {
    tests.kill(signal.reason as NodeJS.Signals)
    globalThis.setTimeout(kill, ENDS_WITHIN_MS, tests).unref()
  })
  const code = await new Promise<number>((done, fail) => {
    tests.once('error', fail)
    tests.once('close', (code) => done(code ?? 1))
  }).finally(() => {
    kill(tests)
    for (const busy of load) busy.kill('SIGKILL')
  })
  const { passed, failed, failures } = JSON.parse(
    (await readFile(counts, 'utf8').catch(() => '')) || '{"passed":0,"failed":0,"failures":[]}',
  ) as Counted
  return { passed, failed: code === 0 ? failed : Math.max(1, failed), failures }
}

const interrupted = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interrupted.abort(name))

async function run(files: readonly string[], suite: Suite): Promise<string[]> {
  await removeAbandoned()
  const directory = await mkdtemp(join(await choosePlace(), PREFIX))
  // Whatever the tests leave behind, most of all when they are interrupted, goes with this directory. It can be
  // entered, but not listed, by the user who runs Postgres for root.
  const temporary = join(directory, 'tmp')
  const ended = join(temporary, 'ended')
  await chmod(directory, 0o711)
  await mkdir(temporary)
  const stalled = new AbortController()
  try {
    const server = await startEmbedded({
      dataDirectory: join(directory, 'data'),
      log: (line) => console.error(`[postgres] ${line}`),
      settings: SERVER_SETTINGS,
      ...(process.env.TOLLGATE_TEST_AS_LEDGER ? { loopback: true } : {}),
    })
    try {
      if (interrupted.signal.aborted) return [...files]
      const env = {
        ...process.env,
        TMPDIR: temporary,
        [SERVER_VARIABLE]: JSON.stringify(server.connection),
        TOLLGATE_TEST_ENDED: ended,
        // Hundreds of processes load the same modules: each is compiled once.
        NODE_COMPILE_CACHE: join(directory, 'compiled'),
        ...(suite.without === '' ? {} : { [EXTENSIONS_OFF_VARIABLE]: suite.without }),
      }
      const grouped = await groupFiles(files, suite, join(directory, 'groups'))
      const progress = new Progress(files, ended, suite, () => stalled.abort('SIGTERM'))
      const { passed, failed, failures } = await runTests(grouped, suite, {
        env,
        signal: AbortSignal.any([interrupted.signal, stalled.signal]),
      })
      const unfinished = progress.stop()
      const left = interrupted.signal.aborted ? [] : unfinished
      if (values.times) console.log(progress.longest())
      const isGood = failed + left.length === 0
      await close([
        ...failures.map(({ file, test, why }) => `Failed: ${file}: ${test}: ${why}`),
        ...left.map((file) => `Did not come to its end: ${file}`),
        `${passed} passed, ${failed + left.length} failed${lacking(suite)}`,
      ])
      const known = files.filter((file) => left.includes(file) || failures.some((failure) => failure.file === file))
      return isGood || known.length > 0 ? known : [...files]
    } finally {
      await server.stop()
    }
  } finally {
    await remove(directory)
  }
}

const lacking = ({ without }: Suite) =>
  without === '' ? '' : without === 'all' ? ', without extensions' : `, with ${present(without)} alone`

async function close(lines: readonly string[]): Promise<void> {
  const text = `${lines.join('\n')}\n`
  process.stdout.write(text)
  const collected = process.env[CLOSING_VARIABLE]
  if (collected) await appendFile(collected, text)
}

type Chosen = { readonly suite: Suite; readonly files: readonly string[] }

function chooseRuns(patterns: readonly string[]): Chosen[] {
  if (values.alone) return chooseAlone(patterns)
  const suite = { ...(values.long ? LONG : ORDINARY), ...(values['no-extensions'] ? { without: 'all' } : {}) }
  const files = chooseFiles(suite, patterns)
  if (files.length === 0) throw new Error(`No test file matches ${patterns.join(' ') || suite.globs.join(' ')}.`)
  const bare = { ...suite, without: 'all' }
  // The core stands without its extensions, or the full tier fails.
  const isWhole = values.full && patterns.length === 0
  return [{ suite, files }, ...(isWhole ? [{ suite: bare, files: chooseFiles(bare, []) }] : [])]
}

/** Each extension with its own tests, and all others switched off. */
function chooseAlone(patterns: readonly string[]): Chosen[] {
  return EXTENSIONS.filter((name) => patterns.length === 0 || patterns.includes(name)).map((name) => ({
    suite: { ...ORDINARY, without: EXTENSIONS.filter((other) => other !== name).join(',') },
    files: globSync(`src/extensions/${name}/**/*.test.ts`, { cwd: ROOT }).sort(),
  }))
}

function failedRuns(): Chosen[] {
  if (!existsSync(FAILED)) throw new Error('No test has failed in the last run, or there was none.')
  const runs = JSON.parse(readFileSync(FAILED, 'utf8')) as Chosen[]
  const count = runs.reduce((sum, { files }) => sum + files.length, 0)
  if (count > FAILED_FILES_MAX) throw new Error(`${count} files failed: run them by name.`)
  return runs
}

const { values, positionals } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    long: { type: 'boolean' },
    failed: { type: 'boolean' },
    times: { type: 'boolean' },
    'beside-load': { type: 'boolean' },
    'no-extensions': { type: 'boolean', default: false },
    alone: { type: 'boolean' },
  },
  allowPositionals: true,
})
let chosen: Chosen[]
try {
  chosen = values.failed ? failedRuns() : chooseRuns(positionals)
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
}
await rm(FAILED, { force: true })
await writeClients()
// Once, before several files need it at the same time.
if (chosen.some(({ files }) => files.some((file) => file.includes('/browser/'))))
  await buildConsole({ ifStale: true, say: console.error })
if (values.failed) await close(['Once more, what failed:'])
const failed: Chosen[] = []
for (const { suite, files } of chosen) {
  const ofRun = interrupted.signal.aborted ? [...files] : await run(files, suite)
  if (ofRun.length > 0) failed.push({ suite, files: ofRun })
}
if (failed.length > 0) {
  await mkdir(join(FAILED, '..'), { recursive: true })
  await writeFile(FAILED, JSON.stringify(failed))
}
process.exit(failed.length)
