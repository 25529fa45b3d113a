// Retries an operation until its outcome is known. Operations carry their id, so a try whose answer was lost can simply
// be repeated.
import { isRefused } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { AccountLocked, type Done, type Op } from './operation.ts'

interface RetryOptions {
  readonly world: World
  readonly log?: Log | undefined
  readonly run: (op: Op) => Promise<Done>
}

const RETRY_MS = 100

/** `lost` is called for each try whose outcome is unknown. */
export function createRetry({ world, log, run }: RetryOptions) {
  return async function retryUntilKnown<T extends Done>(op: Op, forMs: number, lost?: () => void): Promise<T> {
    const started = world.elapsedMs()
    for (let attempt = 0; ; attempt++) {
      try {
        return (await run(op)) as T
      } catch (error) {
        // A statement that waited in vain for a lock did nothing.
        if (!(error instanceof AccountLocked)) lost?.()
        const waitMs = Math.min(RETRY_MS * 2 ** attempt, 2_000)
        if (isFinal(error)) throw error
        // The database answered with an error that is not expected.
        if (!(error instanceof Fault || error instanceof AccountLocked))
          log?.error({ error }, 'the ledger’s statement fails')
        if (world.elapsedMs() - started + waitMs > forMs) throw asUnavailable(error)
        await sleep(world, waitMs)
      }
    }
  }
}

/** Only an error about the operation's own data is final. Any other error of the database may pass. */
export function isFinal(error: unknown): boolean {
  return isRefused(error) || (error instanceof Fault && error.kind !== 'unavailable')
}

function asUnavailable(error: unknown): Fault {
  if (error instanceof Fault) return error
  return new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'database' }, cause: error })
}

/** The same promise with a time limit. */
export function within<T>(promise: Promise<T>, forMs: number, world: World): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = world.after(forMs, () =>
      reject(new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'the database is slow' } })),
    )
    promise.then(
      (value) => {
        cancel()
        resolve(value)
      },
      (error) => {
        cancel()
        reject(error)
      },
    )
  })
}
