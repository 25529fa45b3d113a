// So much a minute for each account, network address or host: what it may have this process send to and fetch from addresses that it
// names, how many unknown keys it may try. What was spent comes back evenly, so that nobody who is refused waits for the end of a minute.
import type { World } from '../kernel/world.ts'

export interface MinuteBudget {
  readonly perMinute: number
  /** Undefined: it is spent. Else the seconds until there is room for it. */
  spend(account: string, amount: number): number | undefined
  /** It was not needed after all. */
  giveBack(account: string, amount: number): void
}

interface Spent {
  readonly amount: number
  readonly atMs: number
}

/** Beyond this many, those whose budget is whole again are forgotten, and if there is none, whoever spent longest ago. */
const ACCOUNTS_MAX = 10_000

export function createMinuteBudget(world: World, perMinute: number): MinuteBudget {
  const spent = new Map<string, Spent>()
  const left = ({ amount, atMs }: Spent, nowMs: number) => amount - ((nowMs - atMs) * perMinute) / 60_000

  function forgetWhole(nowMs: number): void {
    // In the order of their last spending, so that the first which is not whole may be followed only by few that are.
    for (const [account, entry] of spent) {
      if (left(entry, nowMs) > 0 && spent.size <= ACCOUNTS_MAX) return
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
    giveBack(account, amount) {
      const entry = spent.get(account)
      if (entry) spent.set(account, { ...entry, amount: entry.amount - amount })
    },
  }
}
