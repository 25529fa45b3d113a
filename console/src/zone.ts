// The zone in which times are shown: the reader's own, or UTC as in logs and invoices. One choice for all pages.
import { storedChoice } from './choice.ts'

const choice = storedChoice('zone', ['local', 'utc'])
export const zone = choice.get
export const setZone = choice.set
export const useZone = choice.use
export type Zone = ReturnType<typeof zone>

/** "Europe/Berlin", as the browser knows it. */
export const localZoneName = () => new Intl.DateTimeFormat('en-GB').resolvedOptions().timeZone

/** As the server takes it: a browser that knows no zone, or only an offset, has none that has a name. */
export function zoneName(): string {
  const own = localZoneName()
  return zone() === 'utc' || own === 'Etc/Unknown' || !/^[A-Za-z]/.test(own) ? 'UTC' : own
}

/** The moment at which a day begins in the chosen zone, a number of days later. */
export function dayStart(day: string | undefined, daysLater: number): string | undefined {
  if (!day || !/^\d{4}-\d\d-\d\d$/.test(day)) return undefined
  const moment = new Date(`${day}T00:00:00${zone() === 'utc' ? 'Z' : ''}`)
  if (Number.isNaN(moment.getTime())) return undefined
  if (zone() === 'utc') moment.setUTCDate(moment.getUTCDate() + daysLater)
  else moment.setDate(moment.getDate() + daysLater)
  return moment.toISOString()
}

/** The day of a moment in the chosen zone, as a date field holds it. */
export function dayOf(iso: string): string {
  const at = new Date(iso)
  if (zone() === 'utc') return at.toISOString().slice(0, 10)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 10)
}
