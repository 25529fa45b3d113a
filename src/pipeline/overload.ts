// Refusing early what cannot be served in time: by the lag of the event loop, by calls that wait for the database, and by
// calls that run. A refusal before any work is what keeps the admitted calls fast.
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'

export interface Overload {
  /** Throws `unavailable` when the process has too much to do. */
  check(): void
  readonly lagMs: number
  readonly shed: number
  stop(): void
}

export interface OverloadOptions {
  readonly world: World
  /** Calls that wait for the ledger or for a connection. */
  readonly waiting: () => number
  readonly running: () => number
  readonly lagMsMax?: number
  readonly waitingMax?: number
  readonly runningMax?: number
}

const LOOK_EVERY_MS = 50

export function createOverload(options: OverloadOptions): Overload {
  const { world, lagMsMax = 250, waitingMax = 4_000, runningMax = 20_000 } = options
  let lagMs = 0
  let lastLateMs = 0
  let shed = 0
  let cancel: () => void = () => {}

  function look(): void {
    const dueMs = world.elapsedMs() + LOOK_EVERY_MS
    cancel = world.after(LOOK_EVERY_MS, () => {
      const lateMs = Math.max(0, world.elapsedMs() - dueMs)
      // Late twice in a row: a single pause (a start, a collection) is not overload.
      lagMs = Math.min(lateMs, lastLateMs)
      lastLateMs = lateMs
      look()
    })
  }
  look()

  return {
    check() {
      const why =
        lagMs > lagMsMax
          ? 'event loop lag'
          : options.waiting() > waitingMax
            ? 'database wait'
            : options.running() > runningMax
              ? 'calls running'
              : undefined
      if (why === undefined) return
      shed += 1
      throw new Fault('unavailable', { retryAfterSeconds: 1, internal: { why } })
    },
    get lagMs() {
      return lagMs
    },
    get shed() {
      return shed
    },
    stop: () => cancel(),
  }
}
