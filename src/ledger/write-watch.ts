// Whether the ledger can write: since when no write of it succeeds, and what the database says. Reads may go on
// meanwhile, as with a full disk, so a query that only reads proves nothing. The heartbeat is a write too: it tells
// while there are no calls.
import { type Database, isLockWait, isRefused, serverErrorOf } from '../database/database.ts'
import type { World } from '../kernel/world.ts'

/** What the parts of the ledger share. */
export interface Around {
  readonly database: Database
  readonly watch: WriteWatch
  readonly world: World
  readonly processId: string
}

export interface WriteTrouble {
  readonly forMs: number
  /** The SQL state, or the driver's code where no server answered. */
  readonly code: string
  readonly message: string
}

interface WriteWatch {
  /** Watches a write, and answers as it does. */
  <T>(write: Promise<T>): Promise<T>
  trouble(): WriteTrouble | undefined
  /**
   * After that moment no call may begin that a lease covers: it could not be settled, and its caller would wait for
   * that.
   */
  readonly stuck: { readonly fromMs: number }
}

const STUCK_MS = 2_000

export function createWriteWatch(world: World): WriteWatch {
  let failing: (Omit<WriteTrouble, 'forMs'> & { readonly sinceMs: number }) | undefined
  const stuck = { fromMs: Number.POSITIVE_INFINITY }
  function succeeded(): void {
    failing = undefined
    stuck.fromMs = Number.POSITIVE_INFINITY
  }
  function failed(error: unknown): void {
    // Data that is refused was answered by a server that works. A lock is one account's, and says nothing about the
    // others.
    if (isRefused(error)) succeeded()
    else if (!isLockWait(error)) {
      failing = { sinceMs: world.elapsedMs(), ...failing, ...serverErrorOf(error) }
      stuck.fromMs = failing.sinceMs + STUCK_MS
    }
  }
  const watch = <T>(write: Promise<T>): Promise<T> => {
    write.then(succeeded, failed)
    return write
  }
  return Object.assign(watch, {
    stuck,
    trouble() {
      if (!failing) return undefined
      const { sinceMs, code, message } = failing
      return { forMs: world.elapsedMs() - sinceMs, code, message }
    },
  })
}
