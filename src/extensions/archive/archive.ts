// The ledger archives itself. A month that is over and verified becomes one signed checkpoint for each account, and its
// transfers become files with digests. Then its calls leave the database; what was given or taken back stays, since
// invoices, lots and payments refer to it. What is here of an account after its last checkpoint is all that
// verification replays.
import { PATIENT, type Queryable, sql } from '../../database/database.ts'
import { changeTables, isLocked } from '../../database/prune.ts'
import type { CoreParts } from '../../extension.ts'
import { DAY_MS, dayOfMs, formatDay, monthStart, parseDay } from '../../kernel/calendar.ts'
import { asView } from '../../kernel/view.ts'
import { idAtTime } from '../../kernel/world.ts'
import {
  DETACH_LOCKS_MS,
  listPartitions,
  oldestDayOf,
  partitionOf,
  TABLES_LOCK,
  usageStoredSinceMs,
} from '../../ledger/retention.ts'
import { GIVEN } from '../../ledger/views.ts'
import { CHECKPOINTS_OF, type Checkpoint, type StoredCheckpoint, signatureOf } from '../verify/checkpoint.ts'
import { AccountMonths, type ArchivedRow, digestOfBytes, endOfMonth, type FileRow, parquetOf } from './rows.ts'
import { type ArchiveState, archiveState } from './views.ts'

/** Where the files lie: a directory, or a bucket. */
export interface ArchiveStore {
  /** For people. */
  readonly place: string
  put(name: string, bytes: Buffer): Promise<void>
  /** Undefined: there is no such file. */
  get(name: string): Promise<Buffer | undefined>
}

export interface ArchivedFile {
  readonly name: string
  readonly rows: number
  readonly bytes: number
  readonly sha256: string
}

interface ArchiveOptions extends Pick<CoreParts, 'database' | 'world' | 'log'> {
  readonly key: Buffer
  /** Undefined: nothing is archived. */
  readonly store: ArchiveStore | undefined
  /** How many whole months stay, at least as many as of usage. */
  readonly months: number
  readonly usageMonths: number
  readonly fileRows?: number
}

const FILE_ROWS = 50_000
const PAGE_ROWS = 2_000
const ACCOUNTS = 200
const TRIES = 20
const SAY_EVERY_MS = 1_000
/** Jobs and settlements that were tried for long have ended by then. */
const SETTLED_DAYS = 3
const SILENT = `interval '1 minute'`

const STATE = sql('archive_state')`
  select to_char(month, 'YYYY-MM') as month, folder, accounts, transfers, bytes, archived_at, failure, checked_at, problems,
     seen_at > now() - ${SILENT} and failure is null and (archived_at is null or checked_at is null) as running
   from ledger_archive order by month desc limit 1200`
const LAST = sql('archive_last')`
  select to_char(max(month), 'YYYY-MM-DD') as month from ledger_archive where archived_at is not null`
/** Ids begin with their time, so later months are not read. */
const FIRST = sql('archive_first', 600_000)`select min(moved_at) as at from transfer where id < $1`
const VERIFIED = sql('archive_verified')`
  select started_at, problems = '[]' as ok from verification where ended_at is not null and failure is null order by id desc limit 1`
const CLAIM = sql('archive_claim')`with was as (select folder from ledger_archive where month = $1::date)
   insert into ledger_archive as a (month, folder) values ($1::date, $2)
   on conflict (month) do update set folder = excluded.folder, seen_at = now(), accounts = 0, transfers = 0, bytes = 0, failure = null
     where a.archived_at is null and (a.failure is not null or a.seen_at < now() - ${SILENT})
   returning (select folder from was) as was`
const FORGET = sql('archive_forget', 600_000)`delete from ledger_checkpoint where folder = $1`
const SAY = sql('archive_say')`
  update ledger_archive set seen_at = now(), accounts = $3, transfers = $4, bytes = $5 where month = $1::date and folder = $2 and archived_at is null returning 1`
const FAILED = sql('archive_failed')`
  update ledger_archive set failure = $3 where month = $1::date and folder = $2 and archived_at is null`
const DONE = sql('archive_done')`
  update ledger_archive set archived_at = now(), checked_at = now(), files = $3 where month = $1::date and folder = $2 and archived_at is null returning 1`
const NEXT_ACCOUNTS = sql('archive_accounts')`select id from account where id > $1 order by id limit ${ACCOUNTS}`
const CHECKPOINT = sql('archive_checkpoint')`${CHECKPOINTS_OF} order by ledger_checkpoint.month desc limit 1`
const ROWS = sql('archive_rows')`
  select id, kind, amount, loss, held, balance, note, actor, lots::text as lots, hash, moved_at::text as place,
     (extract(epoch from at) * 1000000)::bigint as at_us, (extract(epoch from moved_at) * 1000000)::bigint as moved_us
   from transfer where account_id = $1 and moved_at > $2::text::timestamptz and moved_at < $3 order by moved_at limit ${PAGE_ROWS}`
const PUT = sql('archive_put')`
  insert into ledger_checkpoint (account_id, month, moved_at, balance, hash, sums, lots, folder, signature)
   select account, month, place, balance, decode(hash, 'hex'), sums, lots, folder, decode(signature, 'hex')
   from jsonb_to_recordset($1::jsonb) as x(account text, month date, place timestamptz, balance bigint, hash text, sums jsonb, lots jsonb, folder text, signature text)`

interface StoredRow extends ArchivedRow {
  readonly hash: Buffer | null
  readonly place: string
}
/** Why a month stays in the database, as a sentence for its operator. */
class NotArchived extends Error {}
/** Another process goes on, or this one ends. */
class Stopped extends Error {}

export function createLedgerArchive(options: ArchiveOptions) {
  const { database, world, log, store } = options
  let stopping = false
  let going: Promise<void> | undefined

  /** Answers the month that this process may write now. */
  async function claim(firstDay: number | undefined): Promise<Month | undefined> {
    if (firstDay === undefined) return undefined
    const month = formatDay(firstDay)
    const folder = `ledger/${month.slice(0, 7)}-${world.bytes(4).toString('hex')}`
    const [mine] = await database.query<{ was: string | null }>(CLAIM, [month, folder])
    if (!mine) return undefined
    if (mine.was !== null) await database.query(FORGET, [mine.was])
    return { firstDay, month, folder }
  }

  async function begin(): Promise<Month | undefined> {
    if (!store || stopping) return undefined
    const { due, waitsFor } = await whatIsDue(options)
    return waitsFor === null ? claim(due[0]) : undefined
  }

  async function work(first: Month | undefined): Promise<void> {
    for (let next = first; store && next; next = await begin()) {
      const { month, folder } = next
      const writer = new MonthWriter({ ...options, store }, next, () => stopping)
      try {
        await writer.write()
        log.info(
          { month, transfers: writer.transfers, files: writer.files.length },
          'a month of the ledger is archived',
        )
      } catch (error) {
        if (error instanceof Stopped) return
        const failure = isLocked(error)
          ? 'The table was in use; it is tried again.'
          : error instanceof Error
            ? error.message
            : String(error)
        await database.query(FAILED, [month, folder, failure])
        if (error instanceof NotArchived) log.error({ month, failure, alert: true }, 'a month cannot be archived')
        else log.warn({ month, error }, 'a month could not be archived; it will be tried again')
        return
      }
    }
  }

  async function start(): Promise<void> {
    if (going) return
    const first = await begin()
    going ??= work(first)
      .catch((error: unknown) => log.warn({ error }, 'the ledger could not be archived'))
      .finally(() => {
        going = undefined
      })
  }

  return {
    async state(): Promise<ArchiveState> {
      const rows = await database.query<{ running: boolean }>(STATE)
      const { due, waitsFor } = await whatIsDue(options)
      return {
        place: store?.place ?? null,
        running: rows.some(({ running }) => running),
        due: store ? due.map((day) => formatDay(day).slice(0, 7)) : [],
        waitsFor: store ? waitsFor : null,
        months: rows.map((row) => asView(archiveState.shape.months.element, row)),
      }
    },
    /** Archives what is due, the oldest month first. Every process may; one does. */
    async run() {
      await going
      await start()
      await going
    },
    /** Begins that. */
    start,
    async stop() {
      stopping = true
      await going
    },
  }
}

/** The months that are over for long enough, and what they wait for. */
async function whatIsDue({ database, world, months, usageMonths }: ArchiveOptions) {
  const none = { due: [], waitsFor: null }
  const today = dayOfMs(world.nowMs())
  // Calls and their transfers are read together, so no transfer goes before its call, which may stay longer while
  // somebody reads it.
  const until = Math.min(
    monthStart(today - SETTLED_DAYS, -months),
    await oldestDayOf(database, today, usageMonths),
    dayOfMs(await usageStoredSinceMs(database)),
  )
  const [last] = await database.query<{ month: string | null }>(LAST)
  const after = last?.month ? monthStart(parseDay(last.month) ?? 0, 1) : undefined
  if (after !== undefined && after >= until) return none
  const [first] =
    after === undefined ? await database.query<{ at: Date | null }>(FIRST, [idAtTime(until * DAY_MS)]) : []
  const from = after ?? (first?.at ? monthStart(dayOfMs(first.at.getTime())) : until)
  const due: number[] = []
  for (let day = from; day < until; day = monthStart(day, 1)) due.push(day)
  const [verified] = due.length > 0 ? await database.query<{ started_at: Date; ok: boolean }>(VERIFIED) : []
  const isOver = verified !== undefined && verified.started_at >= endOfMonth(due.at(-1) ?? 0)
  if (due.length === 0 || (isOver && verified.ok)) return { due, waitsFor: null }
  return {
    due,
    waitsFor: isOver
      ? 'The last verification of the ledger found problems.'
      : 'The ledger has not been verified since the end of that month.',
  }
}

interface Month {
  readonly firstDay: number
  readonly month: string
  readonly folder: string
}

/** Writes the files and checkpoints of one month, reads the files again, and takes its calls out of the database. */
class MonthWriter {
  private readonly on: ArchiveOptions & { readonly store: ArchiveStore }
  private readonly month: Month
  private readonly isStopping: () => boolean
  readonly files: ArchivedFile[] = []
  accounts = 0
  transfers = 0
  bytes = 0
  private rows: FileRow[] = []
  private made: object[] = []
  private saidMs = -SAY_EVERY_MS

  constructor(on: ArchiveOptions & { readonly store: ArchiveStore }, month: Month, isStopping: () => boolean) {
    this.on = on
    this.month = month
    this.isStopping = isStopping
  }

  async write(): Promise<void> {
    const { database, store } = this.on
    const { month, folder } = this.month
    for (let last = ''; ; ) {
      const ids = (await database.query<{ id: string }>(NEXT_ACCOUNTS, [last])).map(({ id }) => id)
      for (const id of ids) await this.writeAccount(id)
      await this.putCheckpoints()
      last = ids.at(-1) ?? ''
      if (ids.length < ACCOUNTS) break
    }
    await this.flush()
    const manifest = { month: month.slice(0, 7), accounts: this.accounts, transfers: this.transfers, files: this.files }
    await store.put(`${folder}/manifest.json`, Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`))
    for (const { name, sha256 } of this.files) {
      const bytes = await store.get(name)
      if (!bytes || digestOfBytes(bytes) !== sha256)
        throw new NotArchived(`${name} is not in ${store.place} as it was written.`)
    }
    await this.say(0)
    await removeArchived(this.on, this.month, JSON.stringify(this.files))
  }

  private async writeAccount(account: string): Promise<void> {
    const { database, key } = this.on
    const { firstDay, month, folder } = this.month
    const [last] = await database.query<StoredCheckpoint>(CHECKPOINT, [account])
    // It came from another database, which had archived it so far.
    if (last && last.month >= month) return
    const months = new AccountMonths(account, folder, last?.hash ?? null)
    let signature = last?.signature ?? null
    let place = last?.place ?? '-infinity'
    const end = (checkpoint: Checkpoint | undefined) => {
      if (!checkpoint) return
      signature = signatureOf(key, signature, checkpoint)
      const hash = checkpoint.hash.toString('hex')
      this.made.push({ ...checkpoint, moved_us: undefined, place, hash, signature: signature.toString('hex') })
    }
    for (let more = true; more; ) {
      const values = [account, place, endOfMonth(firstDay)]
      const rows = await database.query<StoredRow>(ROWS, values)
      for (const { hash, place: moved, ...row } of rows) {
        end(months.add(row))
        if (!hash || !months.hash?.equals(hash))
          throw new NotArchived(`Transfer ${row.id} of account ${account} is not what was written. Verify the ledger.`)
        place = moved
        this.rows.push({ account, ...row })
        this.transfers += 1
        if (this.rows.length >= (this.on.fileRows ?? FILE_ROWS)) await this.flush()
      }
      more = rows.length === PAGE_ROWS
      await this.say()
    }
    const before = this.made.length
    end(months.end())
    this.accounts += this.made.length - before
  }

  private async putCheckpoints(): Promise<void> {
    const made = this.made.splice(0)
    if (made.length > 0)
      await this.on.database.query(PUT, [
        JSON.stringify(made, (_, value) => (typeof value === 'bigint' ? `${value}` : value)),
      ])
  }

  private async flush(): Promise<void> {
    const rows = this.rows.splice(0)
    if (rows.length === 0) return
    const bytes = await parquetOf(rows)
    const name = `${this.month.folder}/${String(this.files.length + 1).padStart(5, '0')}.parquet`
    await this.on.store.put(name, bytes)
    this.files.push({ name, rows: rows.length, bytes: bytes.length, sha256: digestOfBytes(bytes) })
    this.bytes += bytes.length
  }

  private async say(everyMs = SAY_EVERY_MS): Promise<void> {
    if (this.isStopping()) throw new Stopped('the process was stopped')
    const nowMs = this.on.world.elapsedMs()
    if (nowMs - this.saidMs < everyMs) return
    this.saidMs = nowMs
    const { month, folder } = this.month
    const values = [month, folder, this.accounts, this.transfers, this.bytes]
    if ((await this.on.database.query(SAY, values)).length === 0) throw new Stopped('another process took it for dead')
  }
}

/**
 * What stays: all that is no call, what no checkpoint covers, and the few calls whose transaction began in another
 * month than it ended, which statements need.
 */
const STAYS = `t.kind in (${GIVEN.map((kind) => `'${kind}'`).join(', ')}) or c.until is null or t.moved_at is null or t.moved_at > c.until
  or date_trunc('month', t.at, 'UTC') <> date_trunc('month', t.moved_at, 'UTC')`
const STAYING = (TRANSFERS: string) =>
  `select t.* from ${TRANSFERS} t left join (select account_id, max(moved_at) as until from ledger_checkpoint group by 1) c on c.account_id = t.account_id where ${STAYS}`
const OLD = 'transfer_kept_old'

/**
 * In one transaction, of which the last moment alone locks calls out: the month's partition goes, and what stays of it
 * is in `transfer_kept`.
 */
async function removeArchived(
  { database, world }: ArchiveOptions,
  { firstDay, month, folder }: Month,
  files: string,
): Promise<void> {
  const end = idAtTime(endOfMonth(firstDay).getTime())
  const gone = await changeTables(
    database,
    { lock: TABLES_LOCK, locksMs: DETACH_LOCKS_MS, tries: TRIES, world },
    async (tx) => {
      const run = (text: string) => tx.query({ text, withinMs: 3_600_000 })
      const last = partitionOf('transfer', firstDay).name
      // Detached ones are left of a process that died before it dropped them.
      const months = [...(await listPartitions(tx, 'transfer'))].filter(([name]) => name <= last)
      const attached = months.flatMap(([name, is]) => (is ? [name] : []))
      const parts = [...attached, ...((await hasKept(tx)) ? ['transfer_kept'] : [])]
      // Nothing is written there any more, except for an account that arrives from elsewhere: it waits.
      for (const name of parts) await run(`lock table ${name} in share mode`)
      await run(`drop table if exists ${OLD}`)
      await run('create table transfer_next (like transfer including all)')
      for (const name of parts) await run(`insert into transfer_next ${STAYING(name)}`)
      await run(
        `with gone as (delete from transfer_rest where id < '${end}' returning *) insert into transfer_next ${STAYING('gone')}`,
      )
      // So that attaching need not read it.
      await run(`alter table transfer_next add constraint transfer_next_ids check (id < '${end}')`)
      for (const name of parts) await run(`alter table transfer detach partition ${name}`)
      if (parts.includes('transfer_kept')) await run(`alter table transfer_kept rename to ${OLD}`)
      await run(`alter table transfer attach partition transfer_next for values from (minvalue) to ('${end}')`)
      await run('alter table transfer_next drop constraint transfer_next_ids')
      await run('alter table transfer_next rename to transfer_kept')
      if ((await tx.query(DONE, [month, folder, files])).length === 0) throw new Stopped('another process was faster')
      return months.map(([name]) => name)
    },
  )
  // When nobody looks at them any more; the removal of large files takes a while.
  for (const name of [...gone, OLD])
    await database.transaction((tx) => tx.query({ text: `drop table if exists ${name}` }), PATIENT)
}

async function hasKept(on: Queryable): Promise<boolean> {
  const [row] = await on.query<{ is: boolean }>({ text: `select to_regclass('transfer_kept') is not null as is` })
  return row?.is === true
}
