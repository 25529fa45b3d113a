// Maintenance must never block calls. A table change waits only briefly for its locks, because all other statements
// queue behind it while it waits, and retries later. Rows are removed a few thousand at a time.
import { Fault } from '../kernel/fault.ts'
import { sleep } from '../kernel/timers.ts'
import { realWorld, type World } from '../kernel/world.ts'
import { type Database, PATIENT, type Queryable, type Statement, type Value } from './database.ts'

interface TableChange {
  /** The advisory lock of this kind of change, so that two processes do it one after the other. */
  readonly lock: bigint
  /**
   * How long it may wait for locks at most, and so block others. The first tries wait for less: most statements are
   * short.
   */
  readonly locksMs: number
  readonly tries: number
  readonly world?: World
}

const FIRST_LOCKS_MS = 100
const RETRY_MS = 1_000
const TURN_MS = 100
/** A running change may take this long, e.g. to build an index. */
export const CHANGE_MS_MAX = 3_600_000

/**
 * Runs the change in one transaction. Throws an error that `isLocked` recognises if every attempt timed out waiting for
 * locks.
 */
export async function changeTables<T>(
  database: Database,
  { lock, locksMs, tries, world = realWorld }: TableChange,
  change: (tx: Queryable) => Promise<T>,
): Promise<T> {
  let waitMs = Math.min(FIRST_LOCKS_MS, locksMs)
  for (let left = tries; ; left--) {
    try {
      for (;;) {
        const done = await database.transaction(async (tx) => {
          // Not waited for in the database: an index that is built concurrently waits for every statement that began
          // before it.
          const [its] = await tx.query<{ turn: boolean }>({ text: 'select pg_try_advisory_xact_lock($1) as turn' }, [
            lock,
          ])
          if (!its?.turn) return undefined
          await tx.query({ text: `select set_config('lock_timeout', $1, true)` }, [`${waitMs}ms`])
          return { result: await change(tx) }
        }, PATIENT)
        if (done) return done.result
        await sleep(world, TURN_MS)
      }
    } catch (error) {
      if (!isLocked(error) || left <= 1) throw error
      waitMs = Math.min(waitMs * 2, locksMs)
      await sleep(world, RETRY_MS)
    }
  }
}

export function isLocked(error: unknown): boolean {
  return error instanceof Fault && error.details.internal?.code === '55P03'
}

/**
 * Repeats a removal of a limited number of rows until none are left. The statement returns the number of removed rows
 * as `count`.
 */
export async function pruneAll(database: Database, removal: Statement, values: readonly Value[] = []): Promise<number> {
  for (let sum = 0; ; ) {
    const [row] = await database.query<{ count: number }>(removal, values)
    if (!row?.count) return sum
    sum += row.count
  }
}
