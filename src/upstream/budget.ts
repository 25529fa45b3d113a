// A budget of bytes in flight, shared by all code that holds large bodies in memory. An account's share shrinks as the
// budget fills up, so that there is always room for others. A request that does not fit waits for a while, and is then
// rejected with a retry-after.
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'

/** The memory of one request. */
export interface ByteLease {
  readonly bytes: number
  /**
   * Takes more bytes when there is room. Rejects with unavailable (503) after the wait, or with the signal's reason.
   */
  grow(bytes: number, signal: AbortSignal): Promise<void>
  /** Returns the bytes above `bytes` to the budget. */
  shrinkTo(bytes: number): void
  release(): void
}

export type ByteBudget = ReturnType<typeof createByteBudget>

interface Waiter {
  readonly account: string
  readonly bytes: number
  /** The bytes that the same request holds already. */
  readonly held: () => number
  enter(): void
}

const WAIT_MS = 10_000
const RETRY_AFTER_SECONDS = 5
/** A body up to this size is always read and not counted. */
export const SMALL_BODY_BYTES = 65_536

export function createByteBudget(options: {
  readonly world: World
  readonly bytesMax: number
  readonly queueMax: number
  readonly waitMs?: number
  /** Called once for each request before it takes more than a small body. Rejects if the account may not. */
  readonly mayHold?: (account: string) => Promise<void>
}) {
  const { world, bytesMax, queueMax, waitMs = WAIT_MS } = options
  const heldBy = new Map<string, number>()
  const waiting: Waiter[] = []
  let used = 0
  let refused = 0

  /**
   * An account's first request only needs room. Beyond that, an account may hold at most as much as it leaves free for
   * others.
   */
  function fits({ account, bytes, held }: Omit<Waiter, 'enter'>): boolean {
    // A request larger than the whole budget may run alone.
    if (used === held()) return true
    const own = heldBy.get(account) ?? 0
    const free = bytesMax - used - bytes
    return free >= 0 && (own === 0 || own + bytes <= free)
  }

  function take(account: string, bytes: number): void {
    used += bytes
    heldBy.set(account, (heldBy.get(account) ?? 0) + bytes)
  }

  function give(account: string, bytes: number): void {
    used -= bytes
    const left = (heldBy.get(account) ?? 0) - bytes
    if (left > 0) heldBy.set(account, left)
    else heldBy.delete(account)
    // A waiter that fits may overtake one that does not, so that no account waits behind another's large request.
    for (let at = 0; at < waiting.length; ) {
      const next = waiting[at] as Waiter // `at` is below the length.
      if (!fits(next)) at += 1
      else {
        waiting.splice(at, 1)
        take(next.account, next.bytes)
        next.enter()
      }
    }
  }

  function refusal(): Fault {
    refused += 1
    return new Fault('unavailable', {
      message: 'Too many large requests are in progress. Nothing was charged; try again shortly.',
      retryAfterSeconds: RETRY_AFTER_SECONDS,
      counted: true,
    })
  }

  /** The queue's slots are shared by the same rule. */
  function mayWait(account: string): boolean {
    const own = waiting.filter((waiter) => waiter.account === account).length
    return waiting.length < queueMax && (own === 0 || own < queueMax - waiting.length)
  }

  async function takeInTime(wanted: Omit<Waiter, 'enter'>, signal: AbortSignal): Promise<void> {
    const { account, bytes } = wanted
    signal.throwIfAborted()
    if (fits(wanted)) return take(account, bytes)
    if (!mayWait(account)) throw refusal()
    await new Promise<void>((resolve, reject) => {
      const stop = () => {
        cancel()
        signal.removeEventListener('abort', onAbort)
      }
      const leave = (reason: unknown) => {
        stop()
        waiting.splice(waiting.indexOf(waiter), 1)
        reject(reason)
      }
      const onAbort = () => leave(signal.reason)
      const cancel = world.after(waitMs, () => leave(refusal()))
      const waiter: Waiter = {
        ...wanted,
        enter() {
          stop()
          resolve()
        },
      }
      signal.addEventListener('abort', onAbort)
      waiting.push(waiter)
    })
  }

  /** An empty lease for a request of this account. */
  function open(account: string): ByteLease {
    let held = 0
    let released = false
    let mayHold = options.mayHold
    return {
      get bytes() {
        return held
      },
      async grow(bytes, signal) {
        if (released || bytes === 0) return
        if (mayHold && held + bytes > SMALL_BODY_BYTES) {
          await mayHold(account)
          mayHold = undefined
        }
        await takeInTime({ account, bytes, held: () => held }, signal)
        if (released) give(account, bytes)
        else held += bytes
      },
      shrinkTo(less) {
        if (released || less >= held) return
        const over = held - less
        held = less
        give(account, over)
      },
      release() {
        if (released) return
        released = true
        give(account, held)
      },
    }
  }

  return {
    get bytesInUse() {
      return used
    },
    get waiting() {
      return waiting.length
    },
    /** The number of rejected requests. */
    get refused() {
      return refused
    },
    open,
    /** A lease that holds `bytes` already. */
    async acquire(account: string, bytes: number, signal: AbortSignal): Promise<ByteLease> {
      const lease = open(account)
      await lease.grow(bytes, signal)
      return lease
    },
  }
}

// A budget per minute for each account, network address or host, for example for outbound fetches and sends, or for
// attempts with unknown keys. It refills evenly, so that a rejected caller need not wait for the end of a minute.

export type MinuteBudget = ReturnType<typeof createMinuteBudget>

interface Spent {
  readonly amount: number
  readonly atMs: number
}

/** Beyond this many entries, full budgets are dropped, and if none is full, the one that was used longest ago. */
const ACCOUNTS_MAX = 10_000

export function createMinuteBudget(world: World, perMinute: number) {
  const spent = new Map<string, Spent>()
  const left = ({ amount, atMs }: Spent, nowMs: number) => amount - ((nowMs - atMs) * perMinute) / 60_000

  function forgetWhole(nowMs: number): void {
    // In the order of the last use: after the first entry that is not full, few full ones can follow.
    for (const [account, entry] of spent) {
      if (left(entry, nowMs) > 0 && spent.size <= ACCOUNTS_MAX) return
      spent.delete(account)
    }
  }

  return {
    perMinute,
    /** Undefined: the amount was spent. Otherwise the seconds until the budget has room for it. */
    spend(account: string, amount: number): number | undefined {
      const nowMs = world.elapsedMs()
      const entry = spent.get(account)
      const before = entry ? Math.max(0, left(entry, nowMs)) : 0
      const over = before + amount - perMinute
      if (over > 0) return Math.max(1, Math.ceil((over * 60) / perMinute))
      spent.delete(account)
      spent.set(account, { amount: before + amount, atMs: nowMs })
      if (spent.size > ACCOUNTS_MAX) forgetWhole(nowMs)
      return undefined
    },
    /** Returns an amount that was not needed. */
    giveBack(account: string, amount: number): void {
      const entry = spent.get(account)
      if (entry) spent.set(account, { ...entry, amount: entry.amount - amount })
    },
  }
}
