// Several test files in one process, which loads the gateway once. Each is a suite with its own hooks, and they run one after the other.
// Files and what they import get `node:test` from here: which suite something belongs to cannot be left to the runner, since it knows no file
// whose modules wait for each other.
import { appendFileSync, readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { devNull } from 'node:os'
import nodeTest from 'node:test'

/** What the file that is being loaded declares. */
let declared: Array<() => void> | undefined

function noting<Declare extends (...given: never[]) => unknown>(declare: Declare): Declare {
  const note = (...given: never[]) => (declared ? void declared.push(() => declare(...given)) : declare(...given))
  return Object.assign(note, declare) as Declare // It takes what the other takes; nobody asks what it answers.
}

export const after = noting(nodeTest.after)
export const afterEach = noting(nodeTest.afterEach)
export const before = noting(nodeTest.before)
export const beforeEach = noting(nodeTest.beforeEach)
export const describe = noting(nodeTest.describe)
export const test = noting(nodeTest.test)

/** How long what a test has left open may hold up the run. By then the runner has read everything that the tests reported. */
const LEFT_OPEN_MS = 1000
/** Of Linux, on every kind of processor that Node runs on. */
const TICKS_PER_SECOND = 100

/** Loads the files, by their addresses, and then has them run. */
export async function runGroup(files: Readonly<Record<string, string>>): Promise<void> {
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
  const suites: Array<[name: string, declared: Array<() => void>]> = []
  for (const [name, url] of Object.entries(files)) {
    const ofFile: Array<() => void> = []
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
      for (const declare of ofFile) declare()
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
