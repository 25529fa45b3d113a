// What tidies up beside the calls must never stand before them. A change of tables waits a moment for its locks, because
// everybody else queues behind it while it waits, and comes again later; rows are removed a few thousand at a time.
import { Fault } from '../kernel/fault.ts'
import { sleep } from '../kernel/timers.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { type Database, PATIENT, type Queryable, type Statement, type Value } from './database.ts'

interface TableChange {
  /** Any number that only this kind of change uses: two processes do it one after the other. */
  readonly lock: bigint
  /** How long it may stand in the way of others. */
  readonly locksMs: number
  readonly tries: number
  readonly world?: World
}

const RETRY_MS = 1_000
/** A change that runs stands in nobody's way who can wait; building an index takes its time. */
export const CHANGE_MS_MAX = 3_600_000

/** One transaction. Throws `isLocked` when others were in the way at every try. */
export async function changeTables<T>(
  database: Database,
  { lock, locksMs, tries, world = realWorld }: TableChange,
  change: (tx: Queryable) => Promise<T>,
): Promise<T> {
  for (let left = tries; ; left--) {
    try {
      return await database.transaction(async (tx) => {
        // Whoever waits here has no other lock yet, and may wait for as long as it takes.
        await tx.query({ text: 'select pg_advisory_xact_lock($1)', withinMs: CHANGE_MS_MAX }, [lock])
        await tx.query({ text: `select set_config('lock_timeout', $1, true)` }, [`${locksMs}ms`])
        return await change(tx)
      }, PATIENT)
    } catch (error) {
      if (!isLocked(error) || left <= 1) throw error
      await sleep(world, RETRY_MS)
    }
  }
}

export function isLocked(error: unknown): boolean {
  return error instanceof Fault && error.details.internal?.code === '55P03'
}

/** Repeats a removal of a limited number of rows, which answers that number as `count`, until none are left. */
export async function pruneAll(database: Database, removal: Statement, values: readonly Value[] = []): Promise<number> {
  for (let sum = 0; ; ) {
    const [row] = await database.query<{ count: number }>(removal, values)
    if (!row?.count) return sum
    sum += row.count
  }
}
