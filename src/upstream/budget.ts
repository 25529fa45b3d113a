// A budget of bytes in flight, shared by everything that must hold large bodies in memory. Whoever does not fit waits in
// line for a while, and is then asked to come back later.
import { Fault } from '../kernel/fault.ts'
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

interface Waiter {
  readonly bytes: number
  readonly admit: () => void
}

const WAIT_MS = 10_000
const RETRY_AFTER_SECONDS = 5

export function createByteBudget({ world, bytesMax, queueMax, waitMs = WAIT_MS }: ByteBudgetOptions): ByteBudget {
  let used = 0
  let refused = 0
  const line: Waiter[] = []

  function full(): Fault {
    refused += 1
    return fullFault()
  }

  function fits(bytes: number): boolean {
    // One that is larger than everything there is may run when it is alone.
    return used + bytes <= bytesMax || used === 0
  }

  function serveLine(): void {
    // Strictly in order, so that a large one is not overtaken for ever.
    while (line.length > 0 && fits(line[0]!.bytes)) {
      const next = line.shift()!
      used += next.bytes
      next.admit()
    }
  }

  function take(bytes: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason)
    if (line.length === 0 && fits(bytes)) {
      used += bytes
      return Promise.resolve()
    }
    if (line.length >= queueMax) return Promise.reject(full())
    return new Promise((resolve, reject) => {
      const leave = (reason: unknown) => {
        const at = line.indexOf(waiter)
        if (at >= 0) line.splice(at, 1)
        stop()
        reject(reason)
        serveLine()
      }
      const onAbort = () => leave(signal.reason)
      const cancel = world.after(waitMs, () => leave(full()))
      const stop = () => {
        cancel()
        signal.removeEventListener('abort', onAbort)
      }
      const waiter: Waiter = {
        bytes,
        admit() {
          stop()
          resolve()
        },
      }
      signal.addEventListener('abort', onAbort)
      line.push(waiter)
    })
  }

  function give(bytes: number): void {
    used -= bytes
    serveLine()
  }

  return {
    get bytesInUse() {
      return used
    },
    get waiting() {
      return line.length
    },
    get refused() {
      return refused
    },
    carry(bytes) {
      if (line.length > 0 || !fits(bytes)) throw full()
      used += bytes
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
