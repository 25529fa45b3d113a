// Which days a query looks at, in UTC.
import { formatDay, monthStart, parseDay } from '../kernel/calendar.ts'
import { invalid } from '../kernel/fault.ts'
import type { Selector } from './value.ts'

/** The data source is complete up to three days ago. */
const DAYS_BEHIND = 3

/** Days as numbers, both inclusive. */
interface Days {
  readonly from: number
  readonly to: number
}

export function daysOf({ unit, count }: Selector, today: number): Days {
  if (unit === 'months') return { from: monthStart(today, -count), to: monthStart(today) - 1 }
  const to = today - DAYS_BEHIND
  return { from: to - (count - 1), to }
}

/** Refuses days that are not complete months inside the last `monthsBackMax` complete months. */
export function checkCompleteMonths(from: string, to: string, monthsBackMax: number, today: number): void {
  const range = daysOf({ unit: 'months', count: monthsBackMax }, today)
  const first = parseDay(from) ?? Number.NaN
  const last = parseDay(to) ?? Number.NaN
  const inside = `complete months inside ${formatDay(range.from)} to ${formatDay(range.to)}`
  if (first !== monthStart(first) || !(first >= range.from))
    throw invalid(`from must be the first day of a month: explicit dates are ${inside}.`, 'from')
  if (last + 1 !== monthStart(last + 1) || !(last <= range.to))
    throw invalid(`to must be the last day of a month: explicit dates are ${inside}.`, 'to')
}
