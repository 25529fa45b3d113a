// Every regular expression of the gateway and the console against the worst that can be sent to it. F58.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { parseAst } from 'vite'
import { isDataEndpoint } from '../src/catalog/endpoint.ts'
import { ENDPOINTS } from '../src/catalog/index.ts'
import { patternOf } from '../src/kernel/redact.ts'
import { type Attack, attackOf, attacksOn } from './attack-strings.ts'
import { assert, runs, test } from './kit.ts'

const ROOT = resolve(import.meta.dirname, '..')
const CHARS = 100_000
/**
 * Below this nothing is told: a pattern that is bounded, but by hundreds of steps, and the first run of any. A
 * quadratic one takes seconds.
 */
const MS_MAX = 30
/** Four times as much text takes a linear pattern four times as long; twice that is for a busy machine. */
const GROWTH_MAX = 8
/** However a pattern grows, a caller's 100 kB must not hold up the others for longer. */
const MS_EVER = 250
/** For the short texts that are tried before. */
const SHORT_MS_MAX = 25
const HARMLESS_MS = 0.1
const RUNS = 3

/**
 * Patterns that are put together at run time, by the file that does so; whoever adds one says here what it can become.
 */
const COMPOSED: Record<string, readonly RegExp[]> = {
  'src/catalog/value.ts': ENDPOINTS.filter(isDataEndpoint)
    .flatMap(({ params }) => Object.values(params))
    .flatMap((field) => ('pattern' in field && typeof field.pattern === 'string' ? [new RegExp(field.pattern)] : [])),
  // What a document brings, and what the catalog says, is used only where few ways lead through it: see
  // product-import.test.ts.
  'src/catalog/json-schema.ts': [/^[a-z]{2}-\d+$/u],
  'src/catalog/pattern.ts': [],
  'src/kernel/redact.ts': [patternOf('sk-"aaaa\\\\/é+12'), patternOf('aaaaaaaa')],
  'src/catalog/vendor-edit.ts': [
    /^https:\/\/[a-z0-9-]{1,63}\.openai\.azure\.com$/,
    /^https:\/\/a\.[a-z0-9-]{1,63}-b\.com$/,
  ],
  'src/extensions/importers/deployment.ts': [/^https:\/\/[a-z0-9-]+\.openai\.azure\.com$/],
  'src/extensions/s3/s3.ts': [/<Key>([^<]*)<\/Key>/g],
  'src/identity/password.ts': [/password|admin|qwerty/g],
  'src/extensions/docs/page.ts': [/(?<![\p{L}\p{N}])aaa/u, /(?<![\p{L}\p{N}])aaas?(?![\p{L}\p{N}])/u],
  // Of patterns that stand in it.
  'src/extensions/docs/highlight.ts': [],
  'console/src/markdown-blocks.ts': [/^ {0,3}`{3,}\s*$/],
}

type Found = { readonly file: string; readonly pattern: RegExp }

function patternsOf(file: string): Found[] {
  const found: Found[] = []
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    const { type, regex, callee } = node as {
      type?: string
      regex?: { pattern: string; flags: string }
      callee?: { name?: string }
    }
    if (regex) found.push({ file, pattern: new RegExp(regex.pattern, regex.flags) })
    if ((type === 'NewExpression' || type === 'CallExpression') && callee?.name === 'RegExp') {
      assert.ok(COMPOSED[file], `${file} puts a pattern together: say in COMPOSED what it can become`)
      for (const pattern of COMPOSED[file]) found.push({ file, pattern })
    }
    Object.values(node).forEach(visit)
  }
  visit(parseAst(readFileSync(join(ROOT, file), 'utf8'), { lang: file.endsWith('x') ? 'tsx' : 'ts' }, file))
  return found
}

const FILES = ['src', 'sandbox', 'console/src'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/\.test\.tsx?$/.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
)

/** Longer runs are interrupted where others use the machine as well. */
const UNINTERRUPTED_MS = 20

/**
 * The quickest of a few runs, as it is used: once, or for all that it finds; one that is quick enough is the last, and
 * so is one that takes `hopelessMs`. Short runs by the clock, because processor time is counted in steps of several
 * milliseconds on some machines; long ones in processor time.
 */
function msOf(pattern: RegExp, text: string, enoughMs = HARMLESS_MS, hopelessMs = MS_EVER): number {
  let ms = Number.POSITIVE_INFINITY
  for (let i = 0; i < RUNS && ms > enoughMs && !(ms > hopelessMs && i > 0); i++) {
    const [before, cpuBefore] = [performance.now(), process.threadCpuUsage()]
    if (pattern.global) text.replace(pattern, '')
    else pattern.test(text)
    const took = performance.now() - before
    ms = Math.min(ms, took < UNINTERRUPTED_MS ? took : process.threadCpuUsage(cpuBefore).user / 1000)
  }
  return ms
}

/**
 * Of the attacks on a pattern, those that take the longest in a short text are tried with a long one: many have
 * hundreds that are alike.
 */
const LONG_TRIES = runs(1, Number.POSITIVE_INFINITY)

/** What a harmless pattern takes for a text of a million characters, on a machine that does nothing else. */
const YARDSTICK_MS = 3
const YARD = 'ab'.repeat(500_000)
/** How many times as long as there everything takes now. */
const slowness = () => Math.max(1, msOf(/^[ab]*c/, YARD, 0) / YARDSTICK_MS)

/** Found again, measured by what everything takes now: a busy machine is no problem of the pattern. */
function isFoundAgain(attempt: (slow: number) => string | undefined): boolean {
  const before = slowness()
  return attempt(before) !== undefined && attempt(Math.max(before, slowness())) !== undefined
}

function problemOf(pattern: RegExp, longTries = LONG_TRIES): string | undefined {
  const slow: { attack: Attack; ms: number }[] = []
  for (const attack of attacksOn(pattern)) {
    const { ms, problem } = tryShort(pattern, attack)
    if (problem && isFoundAgain((slow) => tryShort(pattern, attack, { slow }).problem))
      return `${problem}: ${JSON.stringify(attack)}`
    if (ms >= HARMLESS_MS) slow.push({ attack, ms })
  }
  for (const { attack } of slow.sort((a, b) => b.ms - a.ms).slice(0, longTries)) {
    const problem = problemInLong(pattern, attack)
    if (problem && isFoundAgain((slow) => problemInLong(pattern, attack, slow)))
      return `${problem}: ${JSON.stringify(attack)}`
  }
  return undefined
}

/** Most patterns show here that they are harmless, and the worst would not come back from a long text. */
function tryShort(
  pattern: RegExp,
  attack: Attack,
  { slow = 1, lengths = [24, 500, 2_000] }: { readonly slow?: number; readonly lengths?: readonly number[] } = {},
): { ms: number; problem?: string } {
  const msMax = SHORT_MS_MAX * slow
  let ms = 0
  for (const chars of lengths) {
    ms = msOf(pattern, attackOf(attack, chars), msMax, 4 * msMax)
    if (ms > msMax) return { ms, problem: `${Math.round(ms)} ms for ${chars} characters` }
  }
  return { ms }
}

function problemInLong(pattern: RegExp, attack: Attack, slow = 1): string | undefined {
  const { problem } = tryShort(pattern, attack, { slow, lengths: [8_000] })
  const everMs = MS_EVER * slow
  const enoughMs = MS_MAX * slow
  if (problem) return problem
  const [quarter, whole] = [attackOf(attack, CHARS / 4), attackOf(attack, CHARS)]
  if (msOf(pattern, quarter, everMs / 4, everMs) > everMs / 4)
    return `more than ${Math.round(everMs / 4)} ms for ${CHARS / 4} characters`
  if (msOf(pattern, whole, enoughMs, everMs) <= enoughMs) return undefined
  const [quarterMs, ms] = [msOf(pattern, quarter), msOf(pattern, whole)]
  if (ms > everMs || (ms > enoughMs && ms / quarterMs > GROWTH_MAX))
    return `${Math.round(ms)} ms for ${CHARS} characters, ${Math.round(quarterMs)} ms for a quarter of them`
  return undefined
}

test('no regular expression takes longer than linear time for 100 kB of its worst case', () => {
  const seen = new Set<string>()
  const problems: string[] = []
  for (const { file, pattern } of FILES.flatMap(patternsOf)) {
    if (seen.has(String(pattern))) continue
    seen.add(String(pattern))
    const problem = problemOf(pattern)
    if (problem !== undefined) problems.push(`${file}: ${pattern}: ${problem}`)
  }
  assert.ok(seen.size > 200, `${seen.size} patterns were found`)
  assert.deepEqual(problems, [])
})

test('the attacks find the patterns that are known to be slow', () => {
  // Which attack takes longest in a short text is chance on a busy machine.
  for (const pattern of [
    /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+\.[^\s@\p{Cc}]+$/u,
    /\s+$/,
    /^(?:a+)+$/,
    /\b(?:[a-z0-9-]+\.)+com/gi,
    /\bfrom\b.*\bto\b/,
  ])
    assert.ok(problemOf(pattern, 20), String(pattern))
})
