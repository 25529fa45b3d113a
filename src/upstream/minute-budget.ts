// What each account may have this process send to, and fetch from, addresses that the account names: so much a minute. What
// was spent comes back evenly, so that nobody who is refused waits for the end of a minute.
import type { World } from '../kernel/world.ts'

export interface MinuteBudget {
  readonly perMinute: number
  /** Undefined: it is spent. Else the seconds until there is room for it. */
  spend(account: string, amount: number): number | undefined
}

interface Spent {
  readonly amount: number
  readonly atMs: number
}

/** Beyond this many accounts, those whose budget is whole again are forgotten. */
const ACCOUNTS_MAX = 10_000

export function createMinuteBudget(world: World, perMinute: number): MinuteBudget {
  const spent = new Map<string, Spent>()
  const left = ({ amount, atMs }: Spent, nowMs: number) => amount - ((nowMs - atMs) * perMinute) / 60_000

  function forgetWhole(nowMs: number): void {
    // In the order of their last spending, so that the first which is not whole may be followed only by few that are.
    for (const [account, entry] of spent) {
      if (left(entry, nowMs) > 0) return
      spent.delete(account)
    }
  }

  return {
    perMinute,
    spend(account, amount) {
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
  }
}
