// A budget of bytes in flight, shared by everything that must hold large bodies in memory. Whoever does not fit waits in
// line for a while, and is then asked to come back later.
import { Fault } from '../kernel/fault.ts'
import { Semaphore } from '../kernel/semaphore.ts'
import type { World } from '../kernel/world.ts'

export interface ByteLease {
  readonly bytes: number
  /** Takes more, in line with everyone else. Whoever holds and waits is not waited for: after `waitMs` it is refused. */
  grow(bytes: number, signal: AbortSignal): Promise<void>
  /** Gives back what is over. */
  shrinkTo(bytes: number): void
  release(): void
}

export interface ByteBudget {
  readonly bytesInUse: number
  readonly waiting: number
  /** Rejects with unavailable (503) when the line is too long or does not move, or with the signal's reason. */
  acquire(bytes: number, signal: AbortSignal): Promise<ByteLease>
  /** Without waiting: throws `unavailable` when there is no room. Answers the function that gives the bytes back. */
  carry(bytes: number): () => void
  /** How many were refused. */
  readonly refused: number
}

interface ByteBudgetOptions {
  readonly world: World
  readonly bytesMax: number
  readonly queueMax: number
  readonly waitMs?: number
}

const WAIT_MS = 10_000
const RETRY_AFTER_SECONDS = 5

export function createByteBudget({ world, bytesMax, queueMax, waitMs = WAIT_MS }: ByteBudgetOptions): ByteBudget {
  let refused = 0
  const semaphore = new Semaphore({
    unitsMax: bytesMax,
    waitersMax: queueMax,
    patience: { world, waitMs },
    refusal() {
      refused += 1
      return fullFault()
    },
  })
  const give = (bytes: number) => semaphore.give(bytes)

  async function take(bytes: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    await semaphore.take(bytes, signal)
  }

  return {
    get bytesInUse() {
      return semaphore.used
    },
    get waiting() {
      return semaphore.waiting
    },
    get refused() {
      return refused
    },
    carry(bytes) {
      if (!semaphore.tryTake(bytes)) throw semaphore.rules.refusal()
      let carried = true
      return () => {
        if (carried) give(bytes)
        carried = false
      }
    },
    async acquire(bytes, signal) {
      await take(bytes, signal)
      let held = bytes
      let released = false
      return {
        get bytes() {
          return held
        },
        async grow(more, growSignal) {
          await take(more, growSignal)
          if (released) give(more)
          else held += more
        },
        shrinkTo(less) {
          if (released || less >= held) return
          const over = held - less
          held = less
          give(over)
        },
        release() {
          if (released) return
          released = true
          give(held)
        },
      }
    },
  }
}

function fullFault(): Fault {
  return new Fault('unavailable', {
    message: 'Too many large requests are in progress. Nothing was charged; try again shortly.',
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  })
}
