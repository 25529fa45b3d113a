// Days of the civil calendar as integers: day 0 is 1970-01-01. No clock, no time zone, no Date object, so that a date is
// the same on every machine.

const DAY_MS = 86_400_000

interface CivilDate {
  readonly year: number
  readonly month: number
  readonly day: number
}

/** The UTC day of a moment. */
export function dayOfMs(ms: number): number {
  return Math.floor(ms / DAY_MS)
}

/** Years run from March in this arithmetic, so that the leap day comes last. */
export function dayNumber({ year, month, day }: CivilDate): number {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

export function civilDate(number: number): CivilDate {
  const shifted = number + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153)
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
  const day = dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day }
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
  const index = year * 12 + month - 1 + months
  return dayNumber({ year: Math.floor(index / 12), month: (((index % 12) + 12) % 12) + 1, day: 1 })
}

const two = (value: number) => String(value).padStart(2, '0')
