// What a budget counts, and for how long.
export const BUDGET_UNITS = ['credits', 'requests', 'tokens'] as const
export type BudgetUnit = (typeof BUDGET_UNITS)[number]
export const BUDGET_SPANS = ['day', 'week', 'month', 'total', 'rolling'] as const
export type BudgetSpan = (typeof BUDGET_SPANS)[number]

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
