// What may be limited. Accounts and keys have limits, and plans of the catalog bring some with them.
import * as z from 'zod'
import { parseCredits } from '../kernel/credits.ts'
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
type Counted = { [N in LimitName]: (typeof LIMITS)[N]['unit'] extends 'credits' ? never : N }[LimitName]

/** The same for every limit, by what it counts. */
function ofLimits<C extends z.ZodType, S extends z.ZodType>(count: C, spend: S) {
  const shape = LIMIT_NAMES.map((name) => [name, LIMITS[name].unit === 'credits' ? spend : count])
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
