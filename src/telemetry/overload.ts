// Load shedding: rejects calls early that cannot be served in time, by event loop lag, calls waiting for the database,
// and calls in flight. A call without room first waits for a moment, before its body is read, and is rejected only
// after that. A caller that is rejected at once retries at once, and rejections cost too: at four times the peak with
// 4,000 callers, immediate rejection left a ninth of the peak for answers, a wait of one second two thirds, a wait of
// three seconds four fifths.
import type { Database } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Monitor } from './monitor.ts'

export type Overload = ReturnType<typeof createOverload>

interface OverloadOptions {
  readonly world: World
  readonly monitor: Pick<Monitor, 'running'>
  /** Calls wait for it, or for a connection to the database. */
  readonly ledger: Pick<Ledger, 'pending'>
  readonly database: Pick<Database, 'waiting'>
  readonly lagMsMax?: number
  readonly waitingMax?: number
  readonly runningMax?: number
}

interface InLine {
  readonly sinceMs: number
  enter(): void
  refuse(fault: Fault): void
}

const LOOK_EVERY_MS = 50
const LINE_LOOK_MS = 5
/** How long a call may wait for room, and how many calls may wait. */
const LINE_MS = 3_000
const LINE_MAX = 5_000
const RETRY_AFTER_SECONDS = 1
/** Background work stops at this fraction (one in so many) of the limits for calls. */
const SPARE_PART = 4

export function createOverload(options: OverloadOptions) {
  const { world, monitor, ledger, database, lagMsMax = 250, waitingMax = 256, runningMax = 20_000 } = options
  const waiting = () => ledger.pending + database.waiting()
  const line: InLine[] = []
  let lagMs = 0
  let lastLateMs = 0
  let shed = 0
  /** Undefined: no call came since the last check, so an idle process has no timer. */
  let cancel: (() => void) | undefined
  let called = false
  let cancelLine: (() => void) | undefined

  function look(): void {
    const dueMs = world.elapsedMs() + LOOK_EVERY_MS
    cancel = world.after(LOOK_EVERY_MS, () => {
      const lateMs = Math.max(0, world.elapsedMs() - dueMs)
      // Only lag in two checks in a row counts: a single pause (startup, garbage collection) is not overload.
      lagMs = Math.min(lateMs, lastLateMs)
      lastLateMs = lateMs
      cancel = undefined
      if (called || monitor.running > 0 || lagMs > 0) look()
      called = false
    })
  }

  function trouble(): string | undefined {
    if (lagMs > lagMsMax) return 'event loop lag'
    if (waiting() > waitingMax) return 'database wait'
    if (monitor.running > runningMax) return 'calls running'
    return undefined
  }

  /**
   * One fault is shared by all calls rejected at the same moment: a stack trace for each would cost more than the rest.
   */
  function refusal(why: string): Fault {
    return new Fault('unavailable', { retryAfterSeconds: RETRY_AFTER_SECONDS, internal: { why }, counted: true })
  }

  function moveLine(): void {
    cancelLine = undefined
    const why = trouble()
    if (why === undefined) {
      // Newest first: callers of the oldest may be gone already, and in order of arrival every call would be late.
      for (let room = waitingMax - waiting(); room > 0 && line.length > 0; room--) line.pop()!.enter()
    }
    const lateMs = world.elapsedMs() - LINE_MS
    let late = 0
    while (late < line.length && line[late]!.sinceMs <= lateMs) late += 1
    if (late > 0) {
      shed += late
      const fault = refusal(why ?? 'no room in time')
      for (const one of line.splice(0, late)) one.refuse(fault)
    }
    watchLine()
  }

  function watchLine(): void {
    if (cancelLine === undefined && line.length > 0) cancelLine = world.after(LINE_LOOK_MS, moveLine)
  }

  return {
    /**
     * Undefined while there is room. Otherwise a promise that resolves when there is room, or rejects with
     * `unavailable`.
     */
    admit(): undefined | Promise<void> {
      called = true
      if (!cancel) look()
      const why = trouble()
      if (why === undefined) return undefined
      if (line.length >= LINE_MAX) {
        shed += 1
        throw refusal(why)
      }
      return new Promise((enter, refuse) => {
        line.push({ sinceMs: world.elapsedMs(), enter, refuse })
        watchLine()
      })
    },
    /** Whether there is capacity for background work. It becomes false long before calls are rejected. */
    get spare() {
      const share = (value: number, most: number) => value <= most / SPARE_PART
      return line.length === 0 && share(lagMs, lagMsMax) && share(waiting(), waitingMax)
    },
    get lagMs() {
      return lagMs
    },
    get shed() {
      return shed
    },
    stop(): void {
      cancel?.()
      cancelLine?.()
      const fault = refusal('the process stops')
      for (const one of line.splice(0)) one.refuse(fault)
    },
  }
}
