// Numbers and times as people read them. The page is English, so the formats are too; the time zone is the reader's.

const dateTime = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const dayMonth = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const utc = { timeZone: 'UTC' } as const
const utcDayMonth = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', ...utc })
const utcDay = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', ...utc })
const dayOnly = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium' })
const utcMonth = new Intl.DateTimeFormat('en-GB', { month: 'short', year: 'numeric', ...utc })
const hourMinute = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const precise = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 })

const valid = (iso: string) => !Number.isNaN(Date.parse(iso))

export const formatTime = (iso: string) => (valid(iso) ? dateTime.format(new Date(iso)) : iso)
/** In a list: without the year while it is the present one. */
export const formatMoment = (iso: string) =>
  valid(iso) && new Date(iso).getFullYear() === new Date().getFullYear()
    ? `${dayMonth.format(new Date(iso))}, ${clock.format(new Date(iso))}`
    : formatTime(iso)
/** Days and months of statistics are those of UTC, wherever the reader is. */
export const formatDay = (iso: string) => (valid(iso) ? utcDay.format(new Date(iso)) : iso)
export const formatDayShort = (iso: string) => (valid(iso) ? utcDayMonth.format(new Date(iso)) : iso)
export const formatMonth = (iso: string) => (valid(iso) ? utcMonth.format(new Date(iso)) : iso)
export const formatHour = (iso: string) => (valid(iso) ? hourMinute.format(new Date(iso)) : iso)
export const formatClock = (iso: string) => (valid(iso) ? clock.format(new Date(iso)) : iso)
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
  if (size >= 26 * 86_400) return dayOnly.format(new Date(iso))
  const [amount, unit] =
    size < 45 * 60
      ? [Math.round(size / 60), 'min']
      : size < 22 * 3600
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
