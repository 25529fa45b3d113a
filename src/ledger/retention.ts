// Calls are cut by time: usage and transfer have a partition a month, made ahead. Those of usage are dropped when they
// are older than what is kept, and jobs of that time that have ended go with them. Transfers leave for the archive
// (archive.ts). None of this waits in front of calls: docs/decisions/0003-ledger-engine.md.
import { type Database, type Queryable, sql } from '../database/database.ts'
import { CHANGE_MS_MAX, changeTables, isLocked, pruneAll } from '../database/prune.ts'
import { putSetting, readSetting } from '../database/setting.ts'
import { DAY_MS, dayOfMs, formatDay, monthStart } from '../kernel/calendar.ts'
import { idAtTime, type World } from '../kernel/world.ts'
import { foldSums } from './fold.ts'
import { lastSummedMonth } from './usage-sums.ts'

const MONTHS_AHEAD = 2
/** The setting that says from which day on labels are still summed up, where some are not. */
export const LABELS_SINCE = 'labels-since'
/** The setting that says from when on single calls are here, where another store has the older ones. */
const CALLS_SINCE = 'calls-since'
export const TABLES_LOCK = 7_046_029_256n
/** Attaching waits for whoever reads the rest, and only those who read it wait behind it. */
const ATTACH_LOCKS_MS = 1_000
/**
 * Detaching locks the whole table: calls wait behind it. Postgres detaches concurrently only where there is no rest.
 */
export const DETACH_LOCKS_MS = 100

// Those that were detached, and not dropped because the process died, have their names still.
const PARTITIONS = sql('partitions')`select c.relname as name, c.relispartition as attached from pg_class c
   where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname ~ ('^' || $1 || '_[0-9]{4}_[0-9]{2}$')`

// By its key, since the rows may lie on several servers.
const DROP_REST = sql('usage_rest_drop')`
  with gone as (delete from usage_rest where (account_id, id) in (select account_id, id from usage_rest where id < $1 limit 5000) returning 1)
   select count(*)::int as count from gone`
const DROP_HOURS = sql('usage_hour_drop', CHANGE_MS_MAX)`with gone as (
     delete from usage_hour where (account_id, hour, product, key_id) in (select account_id, hour, product, key_id from usage_hour where hour < $1 limit 5000)
     returning 1
   ) select count(*)::int as count from gone`
const DROP_LABELS = sql('label_day_drop', CHANGE_MS_MAX)`
  with gone as (delete from label_day where ctid = any(array(select ctid from label_day where day < $1 limit 5000)) returning 1)
   select count(*)::int as count from gone`
// Nothing refers to a job: a usage row names it by its hold, which is as old. One that is open still has something to
// do.
const DROP_JOBS = sql('jobs_drop')`with gone as (
     delete from job where ctid = any(array(select ctid from job where not open and hold_id < $1 and completed_at < $2 limit 5000))
     returning 1
   ) select count(*)::int as count from gone`
// A process that wakes up writes its row anew.
const DROP_PROCESSES = sql('process_drop')`with gone as (
     delete from gateway_instance where ctid = any(array(select ctid from gateway_instance where heartbeat_at < now() - interval '1 day' limit 5000))
     returning 1
   ) select count(*)::int as count from gone`

type Cut = 'usage' | 'transfer'

/** The partition of a day's month. Names come from dates that we compute, never from input. */
export function partitionOf(table: Cut, day: number, months = 0) {
  const start = monthStart(day, months)
  const name = `${table}_${formatDay(start, '_').slice(0, 7)}`
  return { table, name, from: idAtTime(start * DAY_MS), to: idAtTime(monthStart(start, 1) * DAY_MS) }
}

interface Maintained {
  /** Partitions. */
  readonly made: string[]
  readonly dropped: string[]
  /** Those that wait for the next time, because somebody reads usage. */
  readonly left: string[]
  readonly jobs: number
}

/** For how many days calls stay that another store has, and whether it has all of a range of ids. */
interface Offloaded {
  readonly callDays: number
  readonly hasRange: (from: string, to: string) => Promise<boolean>
}

interface Retention {
  readonly usageMonths: number
  readonly offloaded?: Offloaded | undefined
  /** How often a change of tables is tried before it is left for the next time. */
  readonly tries: number
}

/**
 * The first day whose calls are stored. They go when their month is summed up, and the one after it, in which some of
 * them ended.
 */
export async function oldestDayOf(database: Database, today: number, usageMonths: number): Promise<number> {
  return Math.min(monthStart(today, -usageMonths), (await lastSummedMonth(database)) ?? 0)
}

export async function maintainUsage(
  database: Database,
  world: World,
  { usageMonths, tries, offloaded }: Retention,
): Promise<Maintained> {
  const today = dayOfMs(world.nowMs())
  const oldestDay = await oldestDayOf(database, today, usageMonths)
  const oldest = partitionOf('usage', oldestDay)
  const done: Maintained = { made: [], dropped: [], left: [], jobs: 0 }
  const attempt = async (name: string, locksMs: number, change: (tx: Queryable) => Promise<string[]>) => {
    try {
      return await changeTables(database, { lock: TABLES_LOCK, locksMs, tries, world }, change)
    } catch (error) {
      if (!isLocked(error)) throw error
      done.left.push(name)
      return []
    }
  }
  for (const table of ['transfer', 'usage'] as const) {
    const present = await listPartitions(database, table)
    for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead++) {
      const month = partitionOf(table, today, ahead)
      if (present.get(month.name) === true) continue
      done.made.push(...(await attempt(month.name, ATTACH_LOCKS_MS, (tx) => makePartition(tx, month))))
    }
  }
  const detached: string[] = []
  const gone = offloaded ? await offloadedMonths(database, oldest.name, { today, ...offloaded }) : []
  for (const name of (await listPartitions(database, 'usage')).keys())
    if (name < oldest.name || gone.includes(name))
      detached.push(...(await attempt(name, DETACH_LOCKS_MS, (tx) => detachPartition(tx, name))))
  // When nobody looks at them any more; the removal of large files takes a while.
  for (const name of detached) done.dropped.push(...(await attempt(name, ATTACH_LOCKS_MS, (tx) => dropTable(tx, name))))

  const oldestDate = new Date(oldestDay * DAY_MS)
  await pruneAll(database, DROP_REST, [oldest.from])
  await pruneAll(database, DROP_HOURS, [oldestDate])
  if ((await pruneAll(database, DROP_LABELS, [oldestDate])) > 0)
    await putSetting(database, LABELS_SINCE, formatDay(oldestDay))
  await foldSums(database, world.nowMs(), oldestDay)
  await pruneAll(database, DROP_PROCESSES)
  return { ...done, jobs: await pruneAll(database, DROP_JOBS, [oldest.from, oldestDate]) }
}

/** The months whose calls may go earlier, because another store has them. From now on they are not read here. */
async function offloadedMonths(
  database: Database,
  oldestName: string,
  { today, callDays, hasRange }: Offloaded & { readonly today: number },
): Promise<string[]> {
  const firstDay = Math.min(callsSinceDay(today, callDays), (await lastSummedMonth(database)) ?? 0)
  const gone: string[] = []
  for (const name of [...(await listPartitions(database, 'usage')).keys()].sort()) {
    const day = dayOfMs(startOfPartition(name))
    const { from, to } = partitionOf('usage', day)
    if (name < oldestName) continue
    // The oldest first, so that what is here has no gaps.
    if (day >= firstDay || !(await hasRange(from, to))) break
    gone.push(name)
    await putSetting(database, CALLS_SINCE, String(monthStart(day, 1) * DAY_MS))
  }
  return gone
}

/** The first day whose calls stay. */
export const callsSinceDay = (today: number, callDays: number) => monthStart(today - callDays)

/** From when on all calls are here that are still stored anywhere. */
export async function callsSinceMs(on: Queryable): Promise<number> {
  return Number((await readSetting(on, CALLS_SINCE)) ?? 0)
}

/** The setting that says that an account came with calls, which have no postings here. */
export const CALLS_ARRIVED = 'calls-arrived'

const startOfPartition = (name: string) => Date.parse(name.slice(-'2026_01'.length).replace('_', '-'))

/** Whether each is attached. */
export async function listPartitions(on: Queryable, table: Cut): Promise<Map<string, boolean>> {
  const rows = await on.query<{ name: string; attached: boolean }>(PARTITIONS, [table])
  return new Map(rows.map(({ name, attached }) => [name, attached]))
}

/** From when on calls are stored: older ones than the oldest partition were pruned. */
export async function usageStoredSinceMs(on: Queryable): Promise<number> {
  const [oldest] = [...(await listPartitions(on, 'usage')).keys()].sort()
  return oldest === undefined ? 0 : startOfPartition(oldest)
}

async function makePartition(
  tx: Queryable,
  { table, name, from, to }: ReturnType<typeof partitionOf>,
): Promise<string[]> {
  // Another process may have been faster.
  if ((await listPartitions(tx, table)).has(name)) return []
  // Rows that came before their partition wait in the rest; such a month is left there.
  const [row] = await tx.query<{ some: boolean }>(
    { text: `select exists (select 1 from ${table}_rest where id >= $1 and id < $2) as some` },
    [from, to],
  )
  if (row?.some) return []
  await tx.query({ text: `create table ${name} (like ${table} including all)` })
  await tx.query({ text: `alter table ${table} attach partition ${name} for values from ('${from}') to ('${to}')` })
  return [name]
}

async function dropTable(tx: Queryable, name: string): Promise<string[]> {
  await tx.query({ text: `drop table if exists ${name}` })
  return [name]
}

async function detachPartition(tx: Queryable, name: string): Promise<string[]> {
  const attached = (await listPartitions(tx, 'usage')).get(name)
  if (attached === true) await tx.query({ text: `alter table usage detach partition ${name}` })
  return attached === undefined ? [] : [name]
}
