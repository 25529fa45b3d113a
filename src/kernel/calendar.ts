// Days of the platform's calendar, in UTC, as integers: day 0 is 1970-01-01. No clock and no time zone, so that a date
// is the same on every machine.

export const DAY_MS = 86_400_000

interface CivilDate {
  readonly year: number
  readonly month: number
  readonly day: number
}

/** The UTC day of a moment. */
export function dayOfMs(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

/** A month or a day beyond its range counts on. */
export function dayNumber({ year, month, day }: CivilDate): number {
  return new Date(0).setUTCFullYear(year, month - 1, day) / DAY_MS
}

export function civilDate(number: number): CivilDate {
  const date = new Date(number * DAY_MS)
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() }
}

/** Reads `2026-11-15` or `2026|11|15`; undefined when that is not a real day. */
export function parseDay(text: string): number | undefined {
  const match = /^(\d{4})([-|])(\d{2})\2(\d{2})$/.exec(text)
  if (!match) return undefined
  const number = dayNumber({ year: Number(match[1]), month: Number(match[3]), day: Number(match[4]) })
  // A day that does not exist, such as February 30, lands on another one. The year 0 is none.
  return match[1] !== '0000' && formatDay(number, match[2]) === text ? number : undefined
}

export function formatDay(number: number, separator = '-'): string {
  const { year, month, day } = civilDate(number)
  return [String(year).padStart(4, '0'), two(month), two(day)].join(separator)
}

/** The first day of the month that lies `months` away from the month of a day. */
export function monthStart(number: number, months = 0): number {
  const { year, month } = civilDate(number)
  return dayNumber({ year, month: month + months, day: 1 })
}

const two = (value: number) => String(value).padStart(2, '0')

/** The same day of the month, in UTC; or its last, where it has no such day. */
export function monthsAfter(anchor: Date, months: number): Date {
  const at = new Date(anchor)
  const day = at.getUTCDate()
  at.setUTCDate(1)
  at.setUTCMonth(at.getUTCMonth() + months)
  const last = new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 0)).getUTCDate()
  at.setUTCDate(Math.min(day, last))
  return at
}
