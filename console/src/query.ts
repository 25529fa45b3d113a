// Reading from the server: stale while revalidate, so what was read before is shown until the new answer is
// there. The cache lives as long as the page and is cleared at sign-out; none of it is written to the browser's
// storage.
import { useCallback, useEffect, useEffectEvent, useState } from 'react'
import { ApiError } from './api.ts'

const cache = new Map<string, unknown>()
const watchers = new Map<string, Set<() => void>>()

export function clearCache(): void {
  cache.clear()
}

/** Everything whose key starts like this is read again where it is on screen, and forgotten where it is not. */
export function refresh(...prefixes: string[]): void {
  const stale = (key: string) => prefixes.some((prefix) => key.startsWith(prefix))
  for (const key of [...cache.keys()]) if (stale(key) && !watchers.get(key)?.size) cache.delete(key)
  for (const [key, runs] of watchers) if (stale(key)) for (const run of runs) run()
}

export interface Query<T> {
  data: T | undefined
  error: Error | undefined
  /** The gateway or its database is away: the page reads again by itself until it is back. */
  retrying: boolean
  /** A read is under way; with `data` it is a refresh. */
  busy: boolean
  reload: () => void
}

/** The gateway or its database is away and may be back in a moment. */
const isAway = (error: Error | undefined): boolean =>
  error instanceof ApiError && (error.status === 0 || error.status === 503)

const RETRY_MS = [2_000, 4_000, 8_000, 15_000] as const

interface State<T> {
  key: string | undefined
  /** The reload that this is of. */
  round: number
  data?: T
  error?: Error | undefined
  /** How often it failed in a row. */
  failures: number
  busy: boolean
}

/** An undefined key reads nothing. `everyMs` reads again while the page is visible. */
export function useQuery<T>(
  key: string | undefined,
  read: (signal: AbortSignal) => Promise<T>,
  options: { everyMs?: number | undefined } = {},
): Query<T> {
  const [state, setState] = useState<State<T>>({ key: undefined, round: 0, failures: 0, busy: false })
  const [round, setRound] = useState(0)
  const reload = useCallback(() => setRound((count) => count + 1), [])
  const readNow = useEffectEvent(read)

  useEffect(() => {
    if (key === undefined) return
    const runs = watchers.get(key) ?? new Set()
    watchers.set(key, runs.add(reload))
    return () => {
      runs.delete(reload)
      if (runs.size === 0) watchers.delete(key)
    }
  }, [key, reload])

  useEffect(() => {
    if (key === undefined) return
    const aborter = new AbortController()
    setState((old) => ({ ...(old.key === key ? old : { failures: 0 }), key, round, busy: true }))
    readNow(aborter.signal).then(
      (data) => {
        if (aborter.signal.aborted) return
        cache.set(key, data)
        setState({ key, round, data, error: undefined, failures: 0, busy: false })
      },
      (error: Error) => {
        if (aborter.signal.aborted) return
        setState((old) => ({ ...old, key, round, error, failures: old.failures + 1, busy: false }))
      },
    )
    return () => aborter.abort()
  }, [key, round])

  useEffect(() => {
    if (!options.everyMs || key === undefined) return
    const timer = window.setInterval(() => {
      if (document.visibilityState === 'visible') reload()
    }, options.everyMs)
    return () => window.clearInterval(timer)
  }, [options.everyMs, key, reload])

  const { failures } = state
  const retrying = isAway(state.error)
  useEffect(() => {
    if (!retrying) return
    const timer = window.setTimeout(reload, RETRY_MS[Math.min(failures, RETRY_MS.length) - 1])
    window.addEventListener('online', reload)
    return () => {
      window.clearTimeout(timer)
      window.removeEventListener('online', reload)
    }
  }, [retrying, failures, reload])

  const current = state.key === key
  const known = key === undefined ? undefined : (cache.get(key) as T | undefined)
  return {
    data: current ? (state.data ?? known) : known,
    error: current ? state.error : undefined,
    retrying: current && retrying,
    // Also before the effect that reads again has run.
    busy: key !== undefined && (!current || state.busy || state.round !== round),
    reload,
  }
}

/** Typing is not asked about letter by letter. */
const SETTLED_MS = 500

/** A text once it has not changed for a while. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(text), SETTLED_MS)
    return () => window.clearTimeout(timer)
  }, [text])
  return text === '' ? '' : settled
}

export interface List<T> extends Query<T[]> {
  more: (() => void) | undefined
  moreBusy: boolean
}

interface Tail<T> {
  head: unknown
  items: T[]
  next: string | null
  busy: boolean
  error?: Error | undefined
}

/** A long list, a page at a time. A refresh reads the first page again and drops the rest. */
export function useList<T>(
  key: string | undefined,
  read: (cursor: string | undefined, signal?: AbortSignal) => Promise<{ items: T[]; next: string | null }>,
  options: { everyMs?: number | undefined } = {},
): List<T> {
  const head = useQuery(key, (signal) => read(undefined, signal), options)
  const [tail, setTail] = useState<Tail<T>>()
  const following = tail && tail.head === head.data ? tail : undefined
  const next = following ? following.next : (head.data?.next ?? null)
  const more = () => {
    if (next === null || following?.busy) return
    const before = following?.items ?? []
    setTail({ head: head.data, items: before, next, busy: true })
    read(next).then(
      (page) => setTail({ head: head.data, items: [...before, ...page.items], next: page.next, busy: false }),
      (error: Error) => setTail({ head: head.data, items: before, next, busy: false, error }),
    )
  }
  return {
    data: head.data && [...head.data.items, ...(following?.items ?? [])],
    error: head.error ?? following?.error,
    retrying: head.retrying,
    busy: head.busy,
    reload: head.reload,
    more: next === null ? undefined : more,
    moreBusy: following?.busy ?? false,
  }
}
