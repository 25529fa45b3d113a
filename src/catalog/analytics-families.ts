// What several analytics endpoints are alike in: their days, and whole entries that differ in a word.
import { bySource, fields, points, rows } from './analytics-answers.ts'
import type { AnalyticsEntry } from './analytics-entry.ts'
import {
  granularity,
  HISTORY_MONTHS,
  onlyFalse,
  onlyWorldwide,
  ROLLING_OR_MONTHS,
  standard,
} from './analytics-params.ts'
import type { Pair, Window } from './endpoint.ts'
import { list } from './schema.ts'

export const ROLLING: Window = { unit: 'days', count: 28 }
export const ONE_MONTH: Window = { unit: 'months', count: 1 }
export const THREE_MONTHS: Window = { unit: 'months', count: 3 }
const SIX_MONTHS: Window = { unit: 'months', count: 6, monthsBackMax: 6 }

export const COMPARISON: Pair = { from: 'compareFrom', to: 'compareTo', together: true }

/** `field,min,max`, where a bound may be left out. */
export const RANGE = '[A-Za-z][\\w.]*,(-?\\d+(\\.\\d+)?)?,(-?\\d+(\\.\\d+)?)?'

export const monthly = { latest: ROLLING_OR_MONTHS, timeGranularity: granularity('Monthly') }
const history = {
  country: onlyWorldwide,
  latest: HISTORY_MONTHS,
  isWindow: onlyFalse,
  timeGranularity: granularity('Monthly'),
}

export const historyOf = (what: string, unit: string): AnalyticsEntry => ({
  title: `History of ${what}`,
  description: `The history of ${what}, month by month, for up to six complete months.`,
  returns: `\`Data.<domain>.<source>\` as Key/Value points, in ${unit}. Source names are kept as given.`,
  answer: bySource(list(points)),
  window: SIX_MONTHS,
  params: standard(history),
})

export const rankTable = (which: string): AnalyticsEntry => ({
  title: `${which} rank, as a table`,
  description: `The ${which.toLowerCase()} rank of a website.`,
  returns: 'Rows in `Data` with Domain and Rank. `TotalCount` can be 0 while `Data` has rows: test the array itself.',
  answer: rows('Data', fields('Rank Change', 'Domain Category Favicon')),
  window: ROLLING,
  params: standard(monthly),
})
