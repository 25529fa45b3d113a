// What may be limited. Accounts and keys have limits, and plans of the catalog bring some with them.
import * as z from 'zod'
import { parseCredits } from '../kernel/credits.ts'
import { LABEL_NAME } from '../kernel/label.ts'
import { count, credits } from '../kernel/view.ts'

/**
 * Everything that may be limited: what is counted, in which span, and how people read it. Counters in the database, what operators and owners send and see, the
 * command line, the console and the messages of refused calls follow from this table.
 */
export const LIMITS = {
  requestsPerMinute: { unit: 'requests', span: 'minute', words: 'requests per minute', option: 'Calls a minute' },
  requestsPerDay: { unit: 'requests', span: 'day', words: 'requests per day (UTC)', option: 'Calls a day (UTC)' },
  tokensPerMinute: { unit: 'tokens', span: 'minute', words: 'tokens per minute', option: 'Tokens a minute' },
  concurrency: { unit: 'calls', span: 'open', words: 'calls at the same time', option: 'Calls at the same time' },
  spendTotal: { unit: 'credits', span: 'total', words: 'spend in total', option: 'Credits in all' },
  spendPerDay: { unit: 'credits', span: 'day', words: 'spend per day (UTC)', option: 'Credits a day (UTC)' },
  spendPerMonth: { unit: 'credits', span: 'month', words: 'spend per month (UTC)', option: 'Credits a month (UTC)' },
} as const satisfies Record<string, Limit>
interface Limit {
  readonly unit: 'requests' | 'tokens' | 'calls' | 'credits'
  readonly span: 'minute' | 'day' | 'week' | 'month' | 'total' | 'open'
  /** After a number, in the message of a refused call. */
  readonly words: string
  /** What its option on the command line says. */
  readonly option: string
}
export type LimitName = keyof typeof LIMITS
export const LIMIT_NAMES = Object.keys(LIMITS) as LimitName[] // its own names
/** What is stored may be of another version. */
export const isLimit = (name: string): name is LimitName => Object.hasOwn(LIMITS, name)
type Counted = { [N in LimitName]: (typeof LIMITS)[N]['unit'] extends 'credits' ? never : N }[LimitName]

/** The same for every limit, by what it counts. */
function ofLimits<C extends z.ZodType, S extends z.ZodType>(count: C, spend: S) {
  const shape = LIMIT_NAMES.map((name) => [
    name,
    (LIMITS[name].unit === 'credits' ? spend : count).describe(LIMITS[name].option),
  ])
  return Object.fromEntries(shape) as { [N in LimitName]: N extends Counted ? C : S } // as the table says
}

/** A name that is absent is not limited. */
export const limitsView = z.object(ofLimits(count.exactOptional(), credits.exactOptional()))
export type LimitsView = z.infer<typeof limitsView>

const COUNT_MAX = 1_000_000_000_000
const countInput = count.max(COUNT_MAX).nullable().optional()
const spendInput = z
  .union([z.string(), z.number()])
  .transform((value, context) => {
    const amount = parseCredits(value)
    if (amount !== undefined && amount >= 0n) return amount.toString()
    context.addIssue('must be an amount of credits such as "12.5", with at most six decimals')
    return z.NEVER
  })
  .nullable()
  .optional()

/** What an operator sends: null removes a limit, absence leaves it as it is. */
export const limitsInput = z.strictObject(ofLimits(countInput, spendInput))
export type LimitsInput = z.input<typeof limitsInput>

// What a budget counts, for whom, and for how long.

export const BUDGET_UNITS = ['credits', 'requests', 'tokens'] as const
export type BudgetUnit = (typeof BUDGET_UNITS)[number]
export const BUDGET_SPANS = ['day', 'week', 'month', 'total', 'rolling'] as const
export type BudgetSpan = (typeof BUDGET_SPANS)[number]

const SCOPES = ['user', 'session', 'key', 'member', 'team', 'project']
/** Names that no tag has. */
const RESERVED = ['user', 'session', 'client']
export const budgetScope = z.string().refine(
  (value) => {
    const tag = value.startsWith('tag:') ? value.slice('tag:'.length) : undefined
    if (tag !== undefined) return LABEL_NAME.test(tag) && !RESERVED.includes(tag)
    return SCOPES.includes(value) || /^session:[\w+-]{1,100}$/.test(value)
  },
  `must be ${SCOPES.join(', ')}, a tag such as tag:feature, or session:<id of a team or project>`,
)
/** A minute at least; beyond a quarter of a year one slot of the window is longer than a day. */
export const budgetWindow = z.int().min(60).max(7_776_000)
export const budgetAlertPercent = z.int().min(1).max(100).nullable()

const BUDGET_MAX = 1_000_000_000_000n

/** Millionths of a credit, or so many requests or tokens. */
export function readBudgetMax(unit: BudgetUnit, max: string | number): { max: bigint } | { problem: string } {
  if (unit === 'credits') {
    const amount = parseCredits(max)
    if (amount !== undefined && amount >= 0n) return { max: amount }
    return { problem: 'must be an amount of credits such as "12.5", with at most six decimals' }
  }
  if (/^\d{1,13}$/.test(String(max)) && BigInt(max) <= BUDGET_MAX) return { max: BigInt(max) }
  return { problem: `must be a whole number of ${unit}` }
}

/** After an amount. */
export function spanWords(span: BudgetSpan, windowSeconds: number | null): string {
  if (span === 'total') return 'in total'
  return span === 'rolling' ? `in any ${durationOf(windowSeconds ?? 0)}` : `per ${span} (UTC)`
}

function durationOf(seconds: number): string {
  for (const [size, unit] of [
    [86_400, 'day'],
    [3_600, 'hour'],
    [60, 'minute'],
  ] as const)
    if (seconds % size === 0) return seconds === size ? unit : `${seconds / size} ${unit}s`
  return `${seconds} seconds`
}
