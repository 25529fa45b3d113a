// Several test files in one process, which loads the gateway once. Each is a suite with its own hooks, and they run one
// after the other. Files and what they import get `node:test` from here: which suite something belongs to cannot be
// left to the runner, since it knows no file whose modules wait for each other.
import { ChildProcess } from 'node:child_process'
import { appendFileSync, readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { devNull } from 'node:os'
import nodeTest, { type HookFn, type HookOptions, type TestFn, type TestOptions } from 'node:test'

/** What the file that is being loaded declares; what it closes last comes first. */
let declared: Declared | undefined
type Declared = { readonly tests: Array<() => void>; readonly closing: Array<() => void> }

function noting<Declare extends (...given: never[]) => unknown>(declare: Declare, closes = false): Declare {
  const note = (...given: never[]) => {
    if (!declared) return declare(...given)
    return closes ? declared.closing.unshift(() => declare(...given)) : declared.tests.push(() => declare(...given))
  }
  return Object.assign(note, declare) as Declare // It takes what the other takes; nobody asks what it answers.
}

/** What a test or a hook waits for may never come: it fails then, and the next one runs. */
let msMax = Number.POSITIVE_INFINITY

type Hook = (run?: HookFn, options?: HookOptions) => void
const limitedHook = (hook: Hook, closes = false) =>
  noting<Hook>((run, options) => hook(run, { timeout: msMax, ...options }), closes)
function limitedTest(name: string, ...given: [TestFn] | [TestOptions, TestFn]): unknown {
  const [options, run] = given.length === 1 ? [{}, ...given] : given
  return nodeTest.test(name, { timeout: msMax, ...options }, run)
}

export const after = limitedHook(nodeTest.after, true)
export const afterEach = limitedHook(nodeTest.afterEach)
export const before = limitedHook(nodeTest.before)
export const beforeEach = limitedHook(nodeTest.beforeEach)
export const describe = noting(nodeTest.describe)
export const test = noting(limitedTest)

/**
 * How long what a test has left open may hold up the run. By then the runner has read everything that the tests
 * reported.
 */
const LEFT_OPEN_MS = 1000
/** Of Linux, on every kind of processor that Node runs on. */
const TICKS_PER_SECOND = 100

/**
 * What a test has started and left ends with its process: it would hold open the outputs that it shares with it, and
 * the run would wait for them. The programs of tests are told so by nobody else.
 */
function endChildren(): void {
  const running = new Set<ChildProcess>()
  // Every way to start a process comes by here, and the types do not show it.
  const starting = ChildProcess.prototype as ChildProcess & { spawn(options: unknown): number }
  const { spawn } = starting
  starting.spawn = function (options) {
    running.add(this.once('exit', () => running.delete(this)))
    return spawn.call(this, options)
  }
  process.once('exit', () => {
    for (const child of running) child.kill('SIGKILL')
  })
}

/** Loads the files, by their addresses, and then has them run. */
export async function runGroup(files: Readonly<Record<string, string>>, testMsMax: number): Promise<void> {
  msMax = testMsMax
  endChildren()
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'node:test' ? { url: import.meta.url, shortCircuit: true } : next(specifier, context),
  })
  // A test that ends the process with 0 would hide what comes after it.
  let isComplete = false
  nodeTest.after(() => {
    isComplete = true
    setTimeout(() => process.exit(), LEFT_OPEN_MS).unref()
  })
  process.once('exit', () => {
    if (!isComplete) process.exitCode = 1
  })
  const suites: Array<[name: string, declared: Declared]> = []
  for (const [name, url] of Object.entries(files)) {
    const ofFile: Declared = { tests: [], closing: [] }
    declared = ofFile
    suites.push([name, ofFile])
    await import(url).catch((error: unknown) =>
      test('is loaded', () => {
        throw error
      }),
    )
  }
  declared = undefined
  for (const [name, ofFile] of suites)
    describe(name, () => {
      let before = 0
      nodeTest.before(() => {
        before = processorSeconds()
      })
      nodeTest.after(() => {
        const seconds = processorSeconds() - before
        appendFileSync(process.env.TOLLGATE_TEST_ENDED ?? devNull, `${name} ${seconds.toFixed(1)}\n`)
      })
      for (const declare of [...ofFile.tests, ...ofFile.closing]) declare()
    })
}

/** Of this process and, where the system tells, of those that it started and that have ended. */
function processorSeconds(): number {
  const { user, system } = process.cpuUsage()
  const own = (user + system) / 1e6
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
    return own + (Number(fields[13]) + Number(fields[14])) / TICKS_PER_SECOND
  } catch {
    return own
  }
}
