// The ways of operations to the database. Most go together; what is large goes alone; and what concerns an account that
// somebody else has locked, or whose rows cannot be written, goes apart, so that nobody waits for another's trouble.
import { type Database, isLockWait, isOfAPart, isRefused } from '../database/database.ts'
import { sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { createBatch } from './batch.ts'
import { flush, isLarge } from './flush.ts'
import { Busy, type Done, type Op } from './operation.ts'

interface Lanes {
  run(op: Op): Promise<Done>
  /** Runs something while nothing is on its way; what arrives meanwhile waits. */
  alone<T>(run: () => Promise<T>): Promise<T>
  idle(): Promise<void>
  /** Those that wait in the queue that all accounts share. */
  readonly pending: number
  /** Those that wait in queues where they are in nobody else's way. */
  readonly isolated: number
  /** Whether operations of this account wait apart from others', because it is locked or has large texts to be written. */
  isIsolated(account: string): boolean
}

interface LanesOptions {
  readonly database: Database
  readonly world: World
  readonly processId: string
  readonly flushesMax: number
  /** Accounts lie on several servers: each has a statement of its own. */
  readonly distributed: boolean
  readonly observe?: ((size: number) => void) | undefined
}

const SIZE_MAX = 256
/** All of these are locked while a flush runs or settlements are booked, and what is locked others cannot have: with a thousand accounts and four processes, hundreds would be. */
export const ACCOUNTS_MAX = 32
/** Connections that may wait for locked accounts at once. */
const WAITED_MAX = 3
/** Another process' flush has ended after the first of these waits, or the second. Who is locked after all of them is in somebody's hands. */
const MOMENTS_MS = [3, 6, 12, 25, 50]

export function createLanes({ database, world, processId, flushesMax, distributed, observe }: LanesOptions): Lanes {
  /** Accounts that could not be locked in time, or not be written. */
  const locked = new Set<string>()
  const lane = (most: number, sizeMax: number, flush: (ops: readonly Op[]) => Promise<Array<Done | Error>>) =>
    createBatch<Op, Done>({
      flush,
      flushesMax: most,
      sizeMax,
      together: countOfFew,
      ...(observe ? { observe } : {}),
    })
  const shared = lane(flushesMax, SIZE_MAX, (ops) => flushApart(ops, distributed || isOfOneAccount(ops)))
  const large = lane(1, 1, (ops) => flushApart(ops, !ops.some((op) => locked.has(op.value.account))))
  const apart = lane(1, SIZE_MAX, flushLocked)
  /** The large operations of each account, one after the other: so accounts take turns in the queue of large ones. */
  const largeOf = new Map<string, { last: Promise<unknown>; waiting: number }>()

  /**
   * Whatever is wrong with one operation must not be felt by its neighbours. `patient`: it waits for what is locked, which only those may do who have
   * locked nothing else: processes whose flushes wait for each other's would all wait for the slowest.
   */
  async function flushApart(ops: readonly Op[], patient: boolean): Promise<Array<Done | Error>> {
    try {
      if (distributed && !isOfOneAccount(ops)) return await byAccount(ops, (group) => flushApart(group, patient))
      const results = await flush({ database, processId, nowMs: world.elapsedMs() }, ops, patient)
      if (locked.size > 0) forgetDone(ops, results)
      return results
    } catch (error) {
      if (isLockWait(error)) return patient ? flushWaited(ops) : flushUnlocked(ops)
      if (ops.length === 1 || !isOfAPart(error)) throw error
      return byAccount(ops, (group) => oneByOne(group, patient))
    }
  }

  /** Whoever was waited for once is not waited for again where others wait as well. */
  function flushWaited(ops: readonly Op[]): Promise<Array<Done | Error>> {
    for (const op of ops) locked.add(op.value.account)
    return flushApart(ops, false)
  }

  async function oneByOne(ops: readonly Op[], patient: boolean): Promise<Array<Done | Error>> {
    const done: Array<Done | Error> = []
    for (const op of ops) {
      // Who is waited for once is not waited for with each.
      const isBusy = done.at(-1) instanceof Busy
      done.push(isBusy ? new Busy() : await flushAlone(op, patient))
    }
    return done
  }

  async function flushAlone(op: Op, patient: boolean): Promise<Done | Error> {
    try {
      return (await flushApart([op], patient))[0] as Done | Error // one for one
    } catch (error) {
      // It will be tried again and again, and should not make others go alone each time.
      if (isOfAPart(error) && !isRefused(error)) locked.add(op.value.account)
      return error as Error // nothing else is thrown
    }
  }

  /** What is locked is no account, which would have been left out, but a row of one: of its limits, its holds or its leases. */
  async function flushUnlocked(ops: readonly Op[]): Promise<Array<Done | Error>> {
    if (!isOfOneAccount(ops)) return byAccount(ops, (group) => flushApart(group, false))
    return ops.map(({ value }) => {
      locked.add(value.account)
      return new Busy()
    })
  }

  /** An account may only be much in demand: some of those that are locked are waited for, each by itself. */
  async function flushLocked(ops: readonly Op[]): Promise<Array<Done | Error>> {
    const results = await flushApart(ops, false)
    const accounts = new Set(ops.filter((_, at) => results[at] instanceof Busy).map(({ value }) => value.account))
    await Promise.all(
      [...accounts].slice(0, WAITED_MAX).map(async (account) => {
        const places = [...ops.keys()].filter((at) => results[at] instanceof Busy && ops[at]?.value.account === account)
        const own = places.map((at) => ops[at] as Op) // each is a place of one
        const done = await flushApart(own, true).catch((cause: Error) => own.map(() => cause))
        places.forEach((at, i) => {
          results[at] = done[i] as Done | Error // one for one
        })
      }),
    )
    return results
  }

  async function byAccount(
    ops: readonly Op[],
    run: (group: readonly Op[]) => Promise<Array<Done | Error>>,
  ): Promise<Array<Done | Error>> {
    const results = new Map<Op, Done | Error>()
    const groups = Map.groupBy(ops, (op) => op.value.account)
    await Promise.all(
      Array.from(groups.values(), async (group) => {
        const done = await run(group).catch((error: Error) => group.map(() => error))
        group.forEach((op, at) => {
          results.set(op, done[at] ?? new Busy())
        })
      }),
    )
    return ops.map((op) => results.get(op) ?? new Busy())
  }

  function forgetDone(ops: readonly Op[], results: ReadonlyArray<Done | Error>): void {
    ops.forEach(({ value: { account } }, at) => {
      if (!(results[at] instanceof Busy)) locked.delete(account)
    })
  }

  async function again(op: Op): Promise<Done> {
    const { account } = op.value
    for (const waitMs of MOMENTS_MS) {
      await sleep(world, waitMs)
      if (locked.has(account)) break
      try {
        return await shared.run(op)
      } catch (error) {
        if (!(error instanceof Busy)) throw error
      }
    }
    locked.add(account)
    return apart.run(op)
  }

  function runLarge(op: Op): Promise<Done> {
    const { account } = op.value
    const own = largeOf.get(account) ?? { last: Promise.resolve(), waiting: 0 }
    const done = own.last.then(() => large.run(op))
    own.waiting += 1
    own.last = done
      .catch(() => undefined)
      .then(() => {
        own.waiting -= 1
        if (own.waiting === 0) largeOf.delete(account)
      })
    largeOf.set(account, own)
    return done
  }

  return {
    run(op) {
      if (isLarge(op)) return runLarge(op)
      if (locked.has(op.value.account)) return apart.run(op)
      return shared.run(op).catch((error: unknown) => {
        if (error instanceof Busy) return again(op)
        throw error
      })
    },
    // Most go by the shared one: it stands still last, and for the shortest time.
    alone: (run) => apart.alone(() => large.alone(() => shared.alone(run))),
    async idle() {
      while (largeOf.size > 0) await Promise.all(Array.from(largeOf.values(), (own) => own.last))
      await Promise.all([shared.idle(), large.idle(), apart.idle()])
    },
    get pending() {
      return shared.pending
    },
    get isolated() {
      let sum = apart.pending
      for (const own of largeOf.values()) sum += own.waiting
      return sum
    },
    isIsolated: (account) => locked.has(account) || largeOf.has(account),
  }
}

/** How many of the first ones concern few enough accounts: all of them are locked at once, and other processes want them as well. */
function countOfFew(waiting: ReadonlyArray<{ readonly op: Op }>): number {
  if (waiting.length <= ACCOUNTS_MAX) return waiting.length
  const accounts = new Set<string>()
  let count = 0
  for (const { op } of waiting) {
    accounts.add(op.value.account)
    if (accounts.size > ACCOUNTS_MAX || count === SIZE_MAX) break
    count += 1
  }
  return count
}

function isOfOneAccount(ops: readonly Op[]): boolean {
  return ops.every((op) => op.value.account === ops[0]?.value.account)
}
