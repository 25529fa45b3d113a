// The period that a page is about: one of a few, or two days of one's own. It stands in the address and means the same
// on every page, so that a figure and the calls behind it are of the same time.
import { dayOf, dayStart } from './zone.ts'

export const PERIODS = [
  { value: '24h', label: '24 h' },
  { value: 'today', label: 'Today' },
  { value: 'yesterday', label: 'Yesterday' },
  { value: '7d', label: '7 days' },
  { value: '30d', label: '30 days' },
  { value: '90d', label: '90 days' },
  { value: 'range', label: 'Range' },
] as const
export type Period = (typeof PERIODS)[number]['value']

interface Span {
  period: Period
  /** Moments, as the server takes them. */
  from: string | undefined
  to: string | undefined
}

const HOUR_MS = 3_600_000
const USUAL: Period = '30d'

/** To the end of this hour, so that the same question is asked until the next one. */
function nextHour(): string {
  return new Date(Math.ceil(Date.now() / HOUR_MS) * HOUR_MS).toISOString()
}

/** A day, or a moment: the step of a chart. */
function edge(text: string | undefined, daysLater: number): string | undefined {
  if (!text?.includes('T')) return dayStart(text, daysLater)
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString()
}

/** The step of a chart as a period of its own. */
export function stepSpan(steps: readonly string[], index: number, end: string): { from: string; to: string } {
  return { from: steps[index] ?? end, to: steps[index + 1] ?? end }
}

/** Anything may stand in an address. Days without a period are a range. */
export function spanOf(query: URLSearchParams, usual: Period = USUAL): Span {
  const [first, last] = [query.get('from') ?? undefined, query.get('to') ?? undefined]
  const named = PERIODS.find(({ value }) => value === query.get('period'))?.value
  const period = named ?? (first || last ? 'range' : usual)
  const today = dayOf(new Date().toISOString())
  const daysBack = (days: number) => ({ period, from: dayStart(today, -days), to: nextHour() })
  switch (period) {
    case '24h':
      return { period, from: new Date(Date.parse(nextHour()) - 24 * HOUR_MS).toISOString(), to: nextHour() }
    case 'today':
      return daysBack(0)
    case 'yesterday':
      return { period, from: dayStart(today, -1), to: dayStart(today, 0) }
    case '7d':
      return daysBack(6)
    case '30d':
      return daysBack(29)
    case '90d':
      return daysBack(89)
    case 'range':
      return { period, from: edge(first, 0), to: edge(last, 1) ?? nextHour() }
  }
}

/** What of an address says the period, for a link to another page about the same time. */
export function periodQuery(query: URLSearchParams, usual: Period = USUAL): Record<string, string> {
  const { period } = spanOf(query, usual)
  const days = period === 'range' ? { from: query.get('from') ?? '', to: query.get('to') ?? '' } : {}
  return { period, ...days }
}

/** The calls of an account, or without one of all accounts, that these filters mean. */
export function callsPath(account: string | undefined, filter: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(filter).flatMap(([name, value]): [string, string][] => (value ? [[name, value]] : []))
  const search = new URLSearchParams(given).toString()
  const page = account === undefined ? '/operator/calls' : `/a/${encodeURIComponent(account)}/usage`
  return `${page}${search ? `?${search}` : ''}`
}

/** One label as the filter of calls has it. */
export const labelFilter = (name: string, value: string) =>
  `${name}=${value.replaceAll('%', '%25').replaceAll(',', '%2C')}`
