// Numbers and times as people read them. The page is English, so the formats are too; the time zone is the one that the
// reader chose, and every time of day says which.
import { type Zone, zone } from './zone.ts'

function formsIn(timeZone: string | undefined) {
  const form = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat('en-GB', timeZone ? { ...options, timeZone } : options)
  return {
    dateTime: form({ dateStyle: 'medium', timeStyle: 'medium' }),
    dayMonth: form({ day: 'numeric', month: 'short' }),
    day: form({ dateStyle: 'medium' }),
    year: form({ year: 'numeric' }),
    hourMinute: form({ hour: '2-digit', minute: '2-digit' }),
    clock: form({ timeStyle: 'medium' }),
    named: form({ timeZoneName: 'short' }),
  }
}
const FORMS: Record<Zone, ReturnType<typeof formsIn>> = { local: formsIn(undefined), utc: formsIn('UTC') }
const forms = () => FORMS[zone()]
const utcMonth = new Intl.DateTimeFormat('en-GB', { month: 'short', year: 'numeric', timeZone: 'UTC' })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const precise = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 })

const valid = (iso: string) => !Number.isNaN(Date.parse(iso))

/** "CET", "UTC": it depends on the season, so it is asked for a moment. */
export const zoneAt = (iso: string) =>
  forms()
    .named.formatToParts(valid(iso) ? new Date(iso) : new Date())
    .find(({ type }) => type === 'timeZoneName')?.value ?? ''
export const formatTime = (iso: string) =>
  valid(iso) ? `${forms().dateTime.format(new Date(iso))} ${zoneAt(iso)}` : iso
/** In a list: without the year while it is the present one. The zone stands beside it. */
export function formatMoment(iso: string): string {
  if (!valid(iso)) return iso
  const at = new Date(iso)
  const { year, dayMonth, clock, dateTime } = forms()
  if (year.format(at) !== year.format(new Date())) return dateTime.format(at)
  return `${dayMonth.format(at)}, ${clock.format(at)}`
}
export const formatHour = (iso: string) => (valid(iso) ? forms().hourMinute.format(new Date(iso)) : iso)
/** Of a step of a chart, in the reader's zone. */
export const formatDay = (iso: string) => (valid(iso) ? forms().day.format(new Date(iso)) : iso)
export const formatDayMonth = (iso: string) => (valid(iso) ? forms().dayMonth.format(new Date(iso)) : iso)
export const formatClock = (iso: string) => (valid(iso) ? forms().clock.format(new Date(iso)) : iso)
/** Days and months that a vendor of figures names are those of its own calendar, wherever the reader is. */
export const formatDate = (iso: string) => (valid(iso) ? FORMS.utc.dayMonth.format(new Date(iso)) : iso)
export const formatMonth = (iso: string) => (valid(iso) ? utcMonth.format(new Date(iso)) : iso)
/** "October 2026", of `2026-10`. */
const wholeMonth = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' })
export const monthName = (month: string) => (valid(month) ? wholeMonth.format(new Date(month)) : month)
/** With its year, in the calendar of statements. */
export const formatUtcDay = (iso: string) => (valid(iso) ? FORMS.utc.day.format(new Date(iso)) : iso)
export const formatCompact = (value: number) => compact.format(value)
export const formatWhole = (value: number) => whole.format(value)
/** For values whose size nobody knows beforehand: 0.0342, 12.5, 1,234, 45.2M. */
export const formatAny = (value: number) => (Math.abs(value) >= 10_000 ? compact.format(value) : precise.format(value))

/** "3 min ago", "in 2 days"; a date when that is clearer. */
export function formatAgo(iso: string, nowMs: number): string {
  const seconds = (Date.parse(iso) - nowMs) / 1000
  if (Number.isNaN(seconds)) return iso
  const size = Math.abs(seconds)
  // Two clocks are never quite the same: a moment ahead is now, too.
  if (size < 45) return 'just now'
  if (size >= 26 * 86_400) return forms().day.format(new Date(iso))
  const [amount, unit] =
    size < 45 * 60
      ? [Math.round(size / 60), 'min']
      : size < 36 * 3600
        ? [Math.round(size / 3600), 'h']
        : [Math.round(size / 86_400), Math.round(size / 86_400) === 1 ? 'day' : 'days']
  return seconds > 0 ? `in ${amount} ${unit}` : `${amount} ${unit} ago`
}

export function formatMs(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–'
  if (ms < 1000) return `${Math.round(ms)} ms`
  // Number drops the zeros that an exact second would carry.
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(ms < 10_000 ? 2 : 1))} s`
  return formatDuration(ms / 1000)
}

export function formatDuration(seconds: number): string {
  const total = Math.max(0, Math.round(seconds))
  const days = Math.floor(total / 86_400)
  const hours = Math.floor((total % 86_400) / 3600)
  const minutes = Math.floor((total % 3600) / 60)
  if (days) return `${days} d ${hours} h`
  if (hours) return `${hours} h ${minutes} min`
  if (minutes) return `${minutes} min ${total % 60} s`
  return `${total} s`
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let size = bytes
  let unit = 0
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000
    unit++
  }
  return `${size.toFixed(size < 10 && unit > 0 ? 1 : 0)} ${units[unit]}`
}

export const formatPercent = (share: number) => `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`

export const plural = (count: number, one: string, many = `${one}s`) =>
  `${formatWhole(count)} ${count === 1 ? one : many}`

/** "Starter 2026" becomes "starter-2026". */
export const idOf = (name: string) =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
