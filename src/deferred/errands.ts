// Rows that are worked on in steps, by one process at a time: the fence, the lease and the moment of the next step. The row is
// the truth; the queue only says when to look at it.
import { type Database, SHORT_MS, statement } from '../database/database.ts'
import type { Queue, QueueName } from '../jobs/queue.ts'
import type { JobTiming } from '../jobs/timing.ts'
import type { Log } from '../kernel/log.ts'
import { every } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'

/** What every such row has. */
export interface Errand {
  readonly account_id: string
  readonly id: string
  readonly version: number
}

interface ErrandsOptions<T extends Errand> {
  readonly database: Database
  readonly queue: Queue
  readonly world: World
  readonly log: Log
  readonly timing: Pick<JobTiming, 'leaseMs' | 'fetchEveryMs' | 'sweepEveryMs' | 'neglectedMs' | 'retryMs'>
  readonly atOnceMax: number
  /** When the next step is due, in milliseconds; undefined: it is done. */
  readonly step: (row: T, isStopping: () => boolean) => Promise<number | undefined>
}

export interface Errands {
  /** There is something to do now. */
  wake(row: Pick<Errand, 'account_id' | 'id'>): void
  /** The same where a later step may be due already. Its row has `step_at` set to -infinity, for the step that may run meanwhile. */
  hasten(row: Pick<Errand, 'account_id' | 'id'>): void
  /** Begins no step; resolves when those that run have ended, or after `forMs`. */
  stop(forMs: number): Promise<void>
}

function statementsOf(TABLE: QueueName) {
  return {
    claim: statement(
      `${TABLE}_claim`,
      `update ${TABLE} set version = version + 1, lease_until = now() + make_interval(secs => $3), step_at = now()
       where account_id = $1 and id = $2 and open and (lease_until is null or lease_until < now())
       returning *, now() >= expires_at as overdue`,
    ),
    renew: statement(
      `${TABLE}_renew`,
      `update ${TABLE} set lease_until = now() + make_interval(secs => $4)
       where account_id = $1 and id = $2 and version = $3 and lease_until is not null`,
      SHORT_MS,
    ),
    putDown: statement(
      `${TABLE}_put_down`,
      `update ${TABLE} set lease_until = null, open = open and $4::float8 is not null,
         step_at = case when step_at = '-infinity' then now() else now() + make_interval(secs => coalesce($4::float8, 0) / 1000.0) end
       where account_id = $1 and id = $2 and version = $3 returning step_at <= now() as due`,
    ),
    neglected: statement(
      `${TABLE}_neglected`,
      `select account_id, id from ${TABLE}
       where open and step_at < now() - make_interval(secs => $1) and (lease_until is null or lease_until < now())
       order by step_at limit 100`,
    ),
  }
}

const keyOf = ({ account_id, id }: Pick<Errand, 'account_id' | 'id'>) => `${account_id} ${id}`

export function startErrands<T extends Errand>(TABLE: QueueName, options: ErrandsOptions<T>): Errands {
  const { database, queue, world, log, timing, step } = options
  const { claim, renew, putDown, neglected } = statementsOf(TABLE)
  let stopping = false

  async function work({ key }: { key: string }): Promise<void> {
    const [account = '', id = ''] = key.split(' ')
    try {
      const [row] = await database.query<T>(claim, [account, id, timing.leaseMs / 1000])
      // Done, or in the hands of another.
      if (!row) return
      const keepLease = () => database.query(renew, [account, id, row.version, timing.leaseMs / 1000])
      const end = every(world, timing.leaseMs / 3, keepLease, log)
      const afterMs = await step(row, () => stopping)
        .catch((error: unknown) => {
          log.error({ [TABLE]: id, error }, 'a step failed, and will be tried again')
          return timing.retryMs
        })
        .finally(end)
      const [mine] = await database.query<{ due: boolean }>(putDown, [account, id, row.version, afterMs ?? null])
      if (mine && afterMs !== undefined) await queue.push(TABLE, key, mine.due ? 0 : afterMs)
    } catch (error) {
      log.warn({ [TABLE]: id, error }, 'a step was left to the sweep')
    }
  }

  const { atOnceMax } = options
  const steps = queue.consume(TABLE, { atOnceMax, everyMs: timing.fetchEveryMs, run: work })

  async function sweep(): Promise<void> {
    const rows = await database.query<Errand>(neglected, [timing.neglectedMs / 1000])
    if (rows.length === 0) return
    await Promise.all(rows.map((row) => queue.push(TABLE, keyOf(row), 0)))
    steps.wake()
  }
  const endSweep = every(world, timing.sweepEveryMs, sweep, log)

  function told(row: Pick<Errand, 'account_id' | 'id'>, queued: Promise<void>): void {
    queued
      .then(() => steps.wake())
      .catch((error: unknown) => log.warn({ [TABLE]: row.id, error }, 'a step was left to the sweep'))
  }

  return {
    wake: (row) => told(row, queue.push(TABLE, keyOf(row), 0)),
    hasten: (row) => told(row, queue.hasten(TABLE, keyOf(row))),
    async stop(forMs) {
      stopping = true
      endSweep()
      await new Promise<void>((resolve) => {
        const cancel = world.after(forMs, resolve)
        void steps.stop().then(() => {
          cancel()
          resolve()
        })
      })
    },
  }
}
