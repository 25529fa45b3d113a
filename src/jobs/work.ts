// The step runner for all background work: videos, deliveries, batches, background responses, exports. Each kind has a
// table, and the table is the queue: a row says when its next step is due, until when it is leased, and which version
// fences its writes. Any number of processes take due rows from the same tables. A step may be cut off anywhere; the
// process that takes the row after its lease has expired continues.
import { type Database, SHORT_MS, sql, statement } from '../database/database.ts'
import { createBatch } from '../kernel/batch.ts'
import type { Log } from '../kernel/log.ts'
import { every } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'

/** The tables. Each has account_id, id, version, lease_until, step_at and open. */
const NAMES = ['job', 'delivery', 'batch', 'background', 'export', 'audit_export'] as const
type WorkName = (typeof NAMES)[number]

/**
 * The columns of every work row. The version is the fence: a worker raises it when it takes the row, and writes only
 * while it is unchanged.
 */
export interface WorkRow {
  readonly account_id: string
  readonly id: string
  readonly version: number
}

/** How a step ended. A table may add its own fields, which its ENDED part writes. */
export interface Ending {
  /** When the next step is due; undefined: the work is done. */
  readonly afterMs: number | undefined
}

/** The SQL parts of one table, each a list of columns. */
interface TableParts {
  /** Assignments when a row is taken. */
  readonly TAKEN?: string
  /** Assignments when a step ends; `e.ending` is the ending as JSON. */
  readonly ENDED?: string
  readonly COLUMNS: string
}

export interface WorkTable<T extends WorkRow, E extends Ending = Ending> {
  readonly name: WorkName
  readonly leaseMs: number
  /**
   * Takes due rows, first those of the least busy accounts. `busy` is how many rows of each account this process has;
   * an account may have `shareMax`.
   */
  take(room: number, busy: ReadonlyMap<string, number>, shareMax: number): Promise<T[]>
  /** Takes one row, due or not. Undefined: its work is done, or another worker has it. */
  claim(id: string): Promise<T | undefined>
  renew(rows: readonly WorkRow[]): Promise<void>
  /** Returns whether the next step is due already; undefined: this worker has lost the row. */
  release(row: WorkRow, ending: E): Promise<boolean | undefined>
}

/** Not leased. */
const FREE = '(lease_until is null or lease_until < now())'
const DUE = `open and step_at <= now() and ${FREE}`

// One query for all tables, so that an idle process costs the database almost nothing.
const LOOK = statement(
  'work_due',
  NAMES.map((TABLE) => `select '${TABLE}' as name where exists (select from ${TABLE} where ${DUE})`).join(
    ' union all ',
  ),
)

function statementsOf(TABLE: WorkName, { TAKEN, ENDED, COLUMNS }: TableParts) {
  const CLAIM = `version = version + 1, lease_until = now() + make_interval(secs => $1)${TAKEN ? `, ${TAKEN}` : ''}`
  return {
    // Rows of the gateway itself have no account and no share limit. Rows are found again by ctid, so that no plan
    // reads the whole table. A row that another process took meanwhile is locked, or no longer free.
    take: sql(`${TABLE}_take`)`with due as (
         select ${TABLE}.ctid as spot, account_id, step_at, coalesce(has, 0) + row_number() over (partition by account_id order by step_at) as place
         from ${TABLE} left join unnest($3::text[], $4::int[]) as busy (who, has) on who = account_id
         where ${DUE}
       ), free as (
         select account_id as free_account, id as free_id from ${TABLE}
         where ctid = any(array(select spot from due where place <= $5 or account_id = '' order by place, step_at limit $2)) and open and ${FREE}
         for update skip locked
       )
       update ${TABLE} set ${CLAIM} from free where account_id = free_account and id = free_id returning ${COLUMNS}`,
    claim: sql(`${TABLE}_claim`)`update ${TABLE} set ${CLAIM} where id = $2 and open and ${FREE} returning ${COLUMNS}`,
    // A locked row is skipped: waiting for it could deadlock.
    renew: sql(`${TABLE}_renew`, SHORT_MS)`with held as (
         select account_id as held_account, id as held_id from ${TABLE}
         join unnest($1::text[], $2::int[], $3::text[]) as h (h_id, h_version, h_account) on id = h_id and account_id = h_account and version = h_version
         where lease_until is not null for update of ${TABLE} skip locked
       )
       update ${TABLE} set lease_until = now() + make_interval(secs => $4) from held where account_id = held_account and id = held_id`,
    // A step_at of -infinity, set while a worker has the row, asks for another step at once.
    release: sql(`${TABLE}_release`)`
      update ${TABLE} set lease_until = null, open = ${TABLE}.open and e.ending ? 'afterMs',
         step_at = case when step_at = '-infinity' then now() else now() + make_interval(secs => coalesce((e.ending ->> 'afterMs')::float8, 0) / 1000) end
         ${ENDED ? `, ${ENDED}` : ''}
       from unnest($1::text[], $2::int[], $3::text[], $4::jsonb[]) as e (id, version, account_id, ending)
       where ${TABLE}.account_id = e.account_id and ${TABLE}.id = e.id and ${TABLE}.version = e.version
       returning ${TABLE}.id, ${TABLE}.version, ${TABLE}.open and ${TABLE}.step_at <= now() as due`,
  }
}

export function createWorkTable<T extends WorkRow, E extends Ending = Ending>(
  database: Database,
  name: WorkName,
  { leaseMs, ...parts }: TableParts & { readonly leaseMs: number },
): WorkTable<T, E> {
  const { take, claim, renew, release } = statementsOf(name, parts)
  const leaseSeconds = leaseMs / 1000
  const named = (rows: readonly WorkRow[]) => [
    rows.map(({ id }) => id),
    rows.map(({ version }) => version),
    rows.map(({ account_id }) => account_id),
  ]
  const key = ({ id, version }: Pick<WorkRow, 'id' | 'version'>) => `${version} ${id}`
  // Steps that end in the same moment share a statement.
  const releases = createBatch<{ row: WorkRow; ending: E }, boolean | undefined>({
    async flush(ended) {
      const endings = ended.map(({ ending }) => JSON.stringify(ending))
      const rows = await database.query<WorkRow & { due: boolean }>(release, [
        ...named(ended.map(({ row }) => row)),
        endings,
      ])
      const due = new Map(rows.map((row) => [key(row), row.due]))
      return ended.map(({ row }) => due.get(key(row)))
    },
    flushesMax: 2,
    sizeMax: 500,
  })
  return {
    name,
    leaseMs,
    take: (room, busy, shareMax) =>
      database.query<T>(take, [leaseSeconds, room, [...busy.keys()], [...busy.values()], shareMax]),
    claim: async (id) => (await database.query<T>(claim, [leaseSeconds, id]))[0],
    async renew(rows) {
      if (rows.length > 0) await database.query(renew, [...named(rows), leaseSeconds])
    },
    release: (row, ending) => releases.run({ row, ending }),
  }
}

/** One kind of work. */
interface Kind<T extends WorkRow, E extends Ending> {
  readonly table: WorkTable<T, E>
  /** Rows that one process works on at once. */
  readonly atOnceMax: number
  /** Of these, rows of one account: an account with thousands of waiting rows must not delay the others. */
  readonly shareMax: number
  /** One step. Undefined: the row is left alone until its lease expires. */
  run(row: T, about: Turn): Promise<E | undefined>
  /** The ending of a step that threw. Absent: the step is retried after `retryMs`. */
  failed?(row: T, error: unknown): E
}

interface Turn {
  /** When the row was requested, by the world's clock. The lease is at most as old as that. */
  readonly askedMs: number
  /** Fires at shutdown: begin nothing new. */
  readonly stopping: AbortSignal
}

interface Steps<E extends Ending> {
  /** A row may be due now. */
  wake(): void
  /** For a row taken by `claim`. False: the caller has lost it. */
  release(row: WorkRow, ending: E): Promise<boolean>
}

export interface Work {
  begin<T extends WorkRow, E extends Ending>(kind: Kind<T, E>): Steps<E>
  /** Takes no more rows and waits up to `forMs` for the running steps. Other processes continue the rest. */
  stop(forMs: number): Promise<void>
}

interface WorkOptions {
  readonly database: Database
  readonly world: World
  readonly log: Log
  readonly timing: { readonly fetchEveryMs: number; readonly retryMs: number }
}

interface Worker {
  wake(): void
  ended(): Promise<unknown>
  leave(): void
}

const TAKE_MAX = 500
/**
 * After so many idle intervals the tables are queried less often. Work created in this process still wakes its worker
 * at once.
 */
const QUIET_TURNS = 30
const QUIET_FACTOR = 5

export function startWork({ database, world, log, timing }: WorkOptions): Work {
  const workers = new Map<WorkName, Worker>()
  const stopping = new AbortController()
  let busyMs = world.elapsedMs()
  let cancelLook = () => {}

  function scheduleLook(): void {
    if (stopping.signal.aborted) return
    const { fetchEveryMs } = timing
    const isQuiet = world.elapsedMs() - busyMs > fetchEveryMs * QUIET_TURNS
    cancelLook = world.after(isQuiet ? fetchEveryMs * QUIET_FACTOR : fetchEveryMs, () => {
      look()
        .catch((error: unknown) => log.warn({ error }, 'due work could not be read; it will be tried again'))
        .finally(scheduleLook)
    })
  }
  async function look(): Promise<void> {
    for (const { name } of await database.query<{ name: WorkName }>(LOOK)) workers.get(name)?.wake()
  }
  scheduleLook()

  return {
    begin(kind) {
      const taken = () => {
        busyMs = world.elapsedMs()
      }
      const worker = startWorker(kind, { world, log, retryMs: timing.retryMs, stopping: stopping.signal, taken })
      workers.set(kind.table.name, worker)
      worker.wake()
      return worker
    },
    async stop(forMs) {
      stopping.abort()
      cancelLook()
      const late = Promise.withResolvers<void>()
      const cancel = world.after(forMs, late.resolve)
      await Promise.race([late.promise, Promise.all([...workers.values()].map((worker) => worker.ended()))])
      cancel()
      for (const worker of workers.values()) worker.leave()
    },
  }
}

interface WorkerOptions extends Pick<WorkOptions, 'world' | 'log'> {
  readonly retryMs: number
  readonly stopping: AbortSignal
  /** Called when rows were taken, or when the query failed. */
  readonly taken: () => void
}

function startWorker<T extends WorkRow, E extends Ending>(
  kind: Kind<T, E>,
  { world, log, retryMs, stopping, taken }: WorkerOptions,
): Worker & Steps<E> {
  const { table, atOnceMax, shareMax } = kind
  const running = new Map<T, Promise<void>>()
  /** The number of running rows of each account. */
  const busy = new Map<string, number>()
  let taking: Promise<void> | undefined
  let woken = false

  function wake(): void {
    woken = true
    taking ??= takeAll().finally(() => {
      taking = undefined
      if (woken) wake()
    })
  }

  async function takeAll(): Promise<void> {
    while (woken) {
      woken = false
      const room = stopping.aborted ? 0 : Math.min(TAKE_MAX, atOnceMax - running.size)
      // A step that ends at full capacity calls `wake`.
      if (room <= 0) return
      const askedMs = world.elapsedMs()
      const rows = await table.take(room, busy, shareMax).catch((error: unknown) => {
        log.warn({ error, work: table.name }, 'due work could not be claimed; it will be tried again')
        taken()
        return []
      })
      for (const row of rows) start(row, askedMs)
      if (rows.length > 0) taken()
      if (rows.length === room) woken = true
    }
  }

  function start(row: T, askedMs: number): void {
    const account = row.account_id
    busy.set(account, (busy.get(account) ?? 0) + 1)
    const ended = step(row, askedMs).finally(() => {
      const had = busy.get(account) ?? 1
      const isFull = running.size >= atOnceMax || had >= shareMax
      running.delete(row)
      if (had > 1) busy.set(account, had - 1)
      else busy.delete(account)
      if (isFull) wake()
    })
    running.set(row, ended)
  }

  async function step(row: T, askedMs: number): Promise<void> {
    try {
      const ending = await kind.run(row, { askedMs, stopping }).catch((error: unknown) => afterFailure(row, error))
      if (ending) await release(row, ending)
    } catch (error) {
      log.warn(
        { [table.name]: row.id, error },
        'the result of a step could not be stored; the step runs again when its lease ends',
      )
    }
  }

  function afterFailure(row: T, error: unknown): E {
    if (kind.failed) return kind.failed(row, error)
    log.error({ [table.name]: row.id, error }, 'a step failed, and will be tried again')
    return { afterMs: retryMs } as E // A kind whose endings have more fields provides `failed`.
  }

  async function release(row: WorkRow, ending: E): Promise<boolean> {
    const due = await table.release(row, ending)
    if (due) wake()
    return due !== undefined
  }

  const leave = every(world, table.leaseMs / 3, () => table.renew([...running.keys()]), log)
  return {
    wake,
    release,
    leave,
    async ended() {
      await taking
      await Promise.all(running.values())
    },
  }
}
