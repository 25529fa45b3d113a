// Waiting and repeating, on the world's clock.
import type { Log } from './log.ts'
import type { World } from './world.ts'

/** The signal of what nobody gives up. */
export const NEVER = new AbortController().signal

export function sleep(world: World, ms: number): Promise<void> {
  return new Promise((resolve) => world.after(ms, resolve))
}

/** For work that takes no signal: after an abort it goes on, and its result is ignored. */
export function unlessAborted<T>(work: T | Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    Promise.resolve(work)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', stop))
    if (signal.aborted) stop()
  })
}

/** Repeats until stopped, the first time after a while. A failure is logged and does not end the repetition. */
export function every(world: World, intervalMs: number, run: () => Promise<unknown>, log: Log): () => void {
  let cancel: () => void = () => {}
  let stopped = false
  const schedule = () => {
    if (stopped) return
    cancel = world.after(intervalMs, () => {
      run()
        .catch((error: unknown) => log.warn({ error }, 'background work failed; it will be tried again'))
        .finally(schedule)
    })
  }
  schedule()
  return () => {
    stopped = true
    cancel()
  }
}

/** Single flight: a caller that asks while the same work runs waits for its result. */
export function singleFlight<T>(): (name: string, run: () => Promise<T>) => Promise<T> {
  const going = new Map<string, Promise<T>>()
  return (name, run) => {
    const known = going.get(name) ?? run().finally(() => going.delete(name))
    going.set(name, known)
    return known
  }
}

interface Writing {
  readonly world: World
  readonly log: Log
  /** Writes what waits, or fails and leaves it. */
  readonly write: () => Promise<void>
  /** What a line of the log says when that fails. */
  readonly failed: string
}

const WRITE_AFTER_MS = 1_000
const RETRY_AFTER_MS = 5_000

/** A buffered writer: items are collected in memory without waiting, and written together a moment later. */
export function createBufferedWriter({ world, log, write, failed }: Writing) {
  let cancel: (() => void) | undefined
  let closed = false
  let last: Promise<void> = Promise.resolve()

  function schedule(afterMs: number): void {
    if (cancel || closed) return
    cancel = world.after(afterMs, () => {
      cancel = undefined
      flush().catch((error: unknown) => {
        log.warn({ error }, failed)
        schedule(RETRY_AFTER_MS)
      })
    })
  }

  /** Writes what waits, now. One after the other: what came while one was under way is in the next. */
  function flush(): Promise<void> {
    last = last.catch(() => undefined).then(write)
    return last
  }

  return {
    /** Something waits: it is written within a second, and tried again for as long as that fails. */
    soon: () => schedule(WRITE_AFTER_MS),
    flush,
    /** Writes what waits for the last time: what comes later has nobody to write it. */
    close() {
      closed = true
      cancel?.()
      return flush()
    },
    get closed() {
      return closed
    },
  }
}
