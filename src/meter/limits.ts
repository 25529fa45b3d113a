// What may be limited. Accounts and keys have limits, and plans of the catalog bring some with them.
import * as z from 'zod'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { LABEL_NAME } from '../kernel/label.ts'
import { count, credits } from '../kernel/view.ts'

/**
 * What a limit or a budget counts, and in which span. The database counts all of them alike: functions/counters.sql.
 */
export type LimitUnit = 'credits' | 'requests' | 'tokens' | 'calls'
export type LimitSpan = 'minute' | 'day' | 'week' | 'month' | 'total' | 'rolling' | 'open'

/**
 * What an account, a key and the whole gateway may have of them, by the names in the API. Budgets are for others:
 * users, tags, sessions, teams.
 */
export const LIMITS = {
  requestsPerMinute: { unit: 'requests', span: 'minute' },
  requestsPerDay: { unit: 'requests', span: 'day' },
  tokensPerMinute: { unit: 'tokens', span: 'minute' },
  concurrency: { unit: 'calls', span: 'open' },
  spendTotal: { unit: 'credits', span: 'total' },
  spendPerDay: { unit: 'credits', span: 'day' },
  spendPerMonth: { unit: 'credits', span: 'month' },
} as const satisfies Record<string, { unit: LimitUnit; span: LimitSpan }>
export type LimitName = keyof typeof LIMITS
export const LIMIT_NAMES = Object.keys(LIMITS) as LimitName[] // its own names
/** What is stored may be of another version. */
export const isLimit = (name: string): name is LimitName => Object.hasOwn(LIMITS, name)
type Counted = { [N in LimitName]: (typeof LIMITS)[N]['unit'] extends 'credits' ? never : N }[LimitName]

/** The same for every limit, by what it counts. */
function ofLimits<C extends z.ZodType, S extends z.ZodType>(count: C, spend: S) {
  const shape = LIMIT_NAMES.map((name) => [
    name,
    (LIMITS[name].unit === 'credits' ? spend : count).describe(optionOf(LIMITS[name])),
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
export function spanWords(span: LimitSpan, windowSeconds: number | null = null): string {
  if (span === 'rolling') return `in any ${durationOf(windowSeconds ?? 0)}`
  if (span === 'open') return 'at the same time'
  if (span === 'total') return 'in total'
  return `per ${span}${span === 'minute' ? '' : ' (UTC)'}`
}

/** After a number of requests, tokens, calls or credits: "requests per minute". */
export function limitWords({ unit, span }: { unit: LimitUnit; span: LimitSpan }): string {
  return `${unit === 'credits' ? 'spend' : unit} ${spanWords(span)}`
}

/** Millionths of a credit are shown as credits. */
export const amountOf = (unit: string, amount: bigint) => (unit === 'credits' ? formatCredits(amount) : String(amount))
export const shareOf = (used: bigint, max: bigint) =>
  max === 0n ? 1 : Math.round((Number(used) / Number(max)) * 1000) / 1000

/** On the command line: "Calls a minute". */
function optionOf({ unit, span }: { unit: LimitUnit; span: LimitSpan }): string {
  const of = unit === 'requests' ? 'calls' : unit
  const words = spanWords(span).replace('per ', 'a ').replace('total', 'all')
  return `${of[0]?.toUpperCase()}${of.slice(1)} ${words}`
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
