// Guardrails: rules that check calls before and after. Each rule selects calls and makes one of three checks.
import { createRequire } from 'node:module'
import * as z from 'zod'
import type { CatalogSection, Problem } from '../../catalog/section.ts'
import { reviewGuardrails } from './review.ts'

declare module '../../catalog/section.ts' {
  interface Sections {
    guardrails?: Guardrails
  }
  interface SectionInputs {
    guardrails?: z.input<typeof guardrails>
  }
}

/** Found by guardrails/patterns.ts. */
const PATTERN_NAMES = ['email', 'phone', 'card', 'iban', 'api_key', 'private_key'] as const
export type PatternName = (typeof PATTERN_NAMES)[number]

const PATTERN_CHARS_MAX = 1000
/** Linear time still grows with the states of a pattern, and a counted repetition multiplies its states. */
const REPETITIONS_MAX = 1000
const STATES_MAX = 1000
const PATTERNS_MAX = 50
const RULES_MAX = 50

const names = z.array(z.string().min(1).max(200)).min(1).max(1000)
/** What is checked: the request, the answer, or both. */
const on = z
  .array(z.enum(['request', 'answer']))
  .min(1)
  .default(['request'])
/** What happens if the check itself fails. */
const onFailure = z.enum(['allow', 'block']).default('block')

export const redaction = z.strictObject({
  patterns: z
    .array(z.enum(PATTERN_NAMES))
    .max(PATTERN_NAMES.length)
    .refine((all) => new Set(all).size === all.length, 'names a pattern twice')
    .default([]),
  /** The operator's patterns, by their name in the placeholder, in the syntax of RE2, which takes linear time. */
  own: z
    .record(
      z.string().regex(/^[a-z][a-z_]{0,19}$/, 'must be up to 20 lower-case letters or "_", beginning with a letter'),
      z.string().min(1).max(PATTERN_CHARS_MAX),
    )
    .refine((all) => Object.keys(all).length <= PATTERNS_MAX, `has more than ${PATTERNS_MAX} patterns`)
    .default({}),
  on,
})

export type Redaction = z.output<typeof redaction>

const deadlineMs = z.number().int().min(50).max(30_000)

const hook = z.strictObject({
  url: z.string().refine((value) => /^https?:$/.test(URL.parse(value)?.protocol ?? ''), 'must be an http(s) address'),
  on,
  deadlineMs: deadlineMs.default(2_000),
  onFailure,
})

const moderate = z.strictObject({
  /** A moderation model of this catalog. The operator pays for its calls. */
  model: z.string().min(1).max(200),
  /** Only these categories block; absent: everything that the model flags. */
  categories: z.array(z.string().min(1).max(100)).min(1).optional(),
  on,
  deadlineMs: deadlineMs.default(5_000),
  onFailure,
})

const rule = z.strictObject({
  enabled: z.boolean().default(true),
  /** Ids. Absent: the calls of all accounts. */
  accounts: names.optional(),
  /** Ids. */
  keys: names.optional(),
  /**
   * A name that ends in * matches all names with that prefix. Data endpoints and tools are included only if they are
   * named.
   */
  models: names.optional(),
  /** The call must have all of them. */
  labels: z.record(z.string(), z.string()).optional(),
  redact: redaction.optional(),
  hook: hook.optional(),
  moderate: moderate.optional(),
})

const guardrails = z
  .record(z.string().regex(/^[a-z0-9][a-z0-9._-]{0,59}$/, 'must be lower-case letters, digits, ".", "_" or "-"'), rule)
  .optional()
export type GuardrailRule = z.output<typeof rule>
type Guardrails = z.output<typeof guardrails>

function guardrailProblems({
  guardrails: rules = {},
  models,
}: {
  guardrails?: Guardrails
  models: Readonly<Record<string, { type: string }>>
}): Problem[] {
  const all = Object.entries(rules)
  const many = all.length > RULES_MAX ? [{ path: ['guardrails'], message: `has more than ${RULES_MAX} rules` }] : []
  return [...many, ...all.flatMap(([name, one]) => ruleProblems(one, models).map((said) => at(name, said)))]
}

const at = (name: string, [member, message]: readonly [string, string]): Problem => ({
  path: ['guardrails', name, ...(member === '' ? [] : member.split('.'))],
  message,
})

function ruleProblems(
  { redact: hides, hook: asks, moderate: judges }: GuardrailRule,
  models: Readonly<Record<string, { type: string }>>,
): (readonly [member: string, message: string])[] {
  if ([hides, asks, judges].filter((one) => one !== undefined).length !== 1)
    return [['', 'must have exactly one of "redact", "hook" and "moderate"']]
  const { patterns = [], own = {} } = hides ?? {}
  const count = patterns.length + Object.keys(own).length
  const model = judges && Object.hasOwn(models, judges.model) ? models[judges.model] : undefined
  return [
    ...(hides && count === 0 ? [['redact', 'names no pattern'] as const] : []),
    ...(count > PATTERNS_MAX ? [['redact', `has more than ${PATTERNS_MAX} patterns`] as const] : []),
    ...Object.entries(own).flatMap(([label, source]) => {
      const read = compilePattern(source)
      return typeof read === 'string' ? [[`redact.own.${label}`, read] as const] : []
    }),
    ...(judges && model?.type !== 'moderation'
      ? [['moderate.model', `there is no moderation model "${judges.model}"`] as const]
      : []),
  ]
}

export const guardrailSection = {
  name: 'guardrails',
  schema: guardrails,
  check: guardrailProblems,
  review: reviewGuardrails,
  guards: true,
} satisfies CatalogSection

/** Of the package re2js, as far as it is used. */
export interface LinearPattern {
  programSize(): number
  matcher(text: string): { find(from?: number): boolean; start(): number; end(): number }
}

let compile: ((source: string) => LinearPattern) | undefined

/**
 * Compiles a pattern, or returns what is wrong with it. The package is loaded with the first pattern, because most
 * catalogs have none.
 */
export function compilePattern(source: string): LinearPattern | string {
  if (repetitionsOf(source) > REPETITIONS_MAX) return `repeats something more than ${REPETITIONS_MAX} times in all`
  if (!compile) {
    const { RE2JS } = createRequire(import.meta.url)('re2js') as { RE2JS: { compile(source: string): LinearPattern } } // The package's own class.
    compile = (text) => RE2JS.compile(text)
  }
  try {
    const pattern = compile(source)
    if (pattern.programSize() > STATES_MAX) return 'is too large: use fewer or smaller counted repetitions'
    if (pattern.matcher('').find() || matchesNothing(pattern)) return 'matches the empty text, which is everywhere'
    return pattern
  } catch (error) {
    return `is no pattern: ${error instanceof Error ? error.message : 'it cannot be read'}`
  }
}

/** The sum of all counts, as in `{2,64}`. */
function repetitionsOf(source: string): number {
  const counts = [...source.matchAll(/\{(\d{1,9})(?:,(\d{0,9}))?\}/g)]
  return counts.reduce((sum, [, least, most]) => sum + Math.max(Number(least), Number(most ?? 0)), 0)
}

function matchesNothing(pattern: LinearPattern): boolean {
  const matcher = pattern.matcher('a')
  return matcher.find() && matcher.end() === matcher.start()
}
