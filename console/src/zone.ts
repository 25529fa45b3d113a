// The zone in which times are shown: the reader's own, or UTC as in logs and invoices. One choice for all pages.
import { useSyncExternalStore } from 'react'

export type Zone = 'local' | 'utc'
const STORED = 'zone'
const listeners = new Set<() => void>()
let chosen: Zone = readZone()

function readZone(): Zone {
  try {
    return localStorage.getItem(STORED) === 'utc' ? 'utc' : 'local'
  } catch {
    return 'local'
  }
}

export const zone = (): Zone => chosen

export function setZone(next: Zone): void {
  chosen = next
  try {
    localStorage.setItem(STORED, next)
  } catch {
    // Without storage the choice lasts until the reload.
  }
  for (const run of listeners) run()
}

export function useZone(): Zone {
  return useSyncExternalStore((run) => {
    listeners.add(run)
    return () => listeners.delete(run)
  }, zone)
}

/** "Europe/Berlin", as the browser knows it. */
export const localZoneName = () => new Intl.DateTimeFormat('en-GB').resolvedOptions().timeZone

/** As the server takes it: a browser that knows no zone, or only an offset, has none that has a name. */
export function zoneName(): string {
  const own = localZoneName()
  return chosen === 'utc' || own === 'Etc/Unknown' || !/^[A-Za-z]/.test(own) ? 'UTC' : own
}

/** The moment at which a day begins in the chosen zone, a number of days later. */
export function dayStart(day: string | undefined, daysLater: number): string | undefined {
  if (!day || !/^\d{4}-\d\d-\d\d$/.test(day)) return undefined
  const moment = new Date(`${day}T00:00:00${chosen === 'utc' ? 'Z' : ''}`)
  if (Number.isNaN(moment.getTime())) return undefined
  if (chosen === 'utc') moment.setUTCDate(moment.getUTCDate() + daysLater)
  else moment.setDate(moment.getDate() + daysLater)
  return moment.toISOString()
}

/** The day of a moment in the chosen zone, as a date field holds it. */
export function dayOf(iso: string): string {
  const at = new Date(iso)
  if (chosen === 'utc') return at.toISOString().slice(0, 10)
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 10)
}
