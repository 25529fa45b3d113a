// The one axis of time: every chart of a page has the same steps, in the zone that the reader chose, and calls them
// alike.
import { formatDay, formatDayMonth, formatHour, formatTime, zoneAt } from '../format.ts'

interface TimeAxis {
  /** In full. */
  labels: string[]
  /** Short. */
  axis: string[]
}

const HOURS_A_DAY = 24
const MIDNIGHT = '00:00'

export function timeAxis(steps: readonly string[], per: 'hour' | 'day'): TimeAxis {
  if (per === 'day')
    return { labels: steps.map((at) => `${formatDay(at)} ${zoneAt(at)}`), axis: steps.map(formatDayMonth) }
  // Over more than a day, an hour alone does not say which: the beginnings of days are named.
  const short = (at: string) => (formatHour(at) === MIDNIGHT ? formatDayMonth(at) : '')
  return { labels: steps.map(formatTime), axis: steps.map(steps.length > HOURS_A_DAY + 1 ? short : formatHour) }
}
