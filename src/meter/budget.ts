// What a budget counts, for whom, and for how long.
import * as z from 'zod'
import { parseCredits } from '../kernel/credits.ts'
import { LABEL_NAME } from '../kernel/label.ts'

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
    return tag === undefined ? SCOPES.includes(value) : LABEL_NAME.test(tag) && !RESERVED.includes(tag)
  },
  `must be ${SCOPES.join(', ')}, or a tag such as tag:feature`,
)
/** A minute at least; beyond a quarter of a year one slot of the window is longer than a day. */
export const budgetWindow = z.int().min(60).max(7_776_000)
export const budgetAlertPercent = z.int().min(1).max(100).nullable()

const COUNT_MAX = 1_000_000_000_000n

/** Millionths of a credit, or so many requests or tokens. */
export function readBudgetMax(unit: BudgetUnit, max: string | number): { max: bigint } | { problem: string } {
  if (unit === 'credits') {
    const amount = parseCredits(max)
    if (amount !== undefined && amount >= 0n) return { max: amount }
    return { problem: 'must be an amount of credits such as "12.5", with at most six decimals' }
  }
  if (/^\d{1,13}$/.test(String(max)) && BigInt(max) <= COUNT_MAX) return { max: BigInt(max) }
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
