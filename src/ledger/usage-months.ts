// What calls of a month came to, by customer, product, key and vendor. Of months that are over it is stored, because usage rows go after a while and statements do not; of the
// present month it is summed up when somebody asks. A call belongs to the month in which it was posted.
import { type Database, PATIENT, type Queryable, statement } from '../database/database.ts'
import { DAY_MS, dayOfMs, formatDay, monthStart, parseDay } from '../kernel/calendar.ts'
import { idAtTime, type World } from '../kernel/world.ts'

const HOUR_MS = 3_600_000
/** A month can be stored when no transaction that began in it can still be open. */
export const OVER_AFTER_MS = HOUR_MS
/** Rows are found by their ids, which say when calls began. No call takes longer, and clocks differ by less. */
const CALL_DAYS_MAX = 40
const SETTING = 'usage-months'
const LOCK = 7_046_029_261n

/** `2026-10`; undefined where it is no month. */
export function parseMonth(text: string): number | undefined {
  return /^\d{4}-\d{2}$/.test(text) ? parseDay(`${text}-01`) : undefined
}

export const formatMonth = (day: number) => formatDay(day).slice(0, 7)

/** The first moment of the month of a day, and the first after it. */
export function monthRange(day: number): { readonly from: Date; readonly to: Date } {
  return { from: new Date(monthStart(day) * DAY_MS), to: new Date(monthStart(day, 1) * DAY_MS) }
}

/** The values that `SUMMED` takes. */
export function summedValues(
  { from, to }: { readonly from: Date; readonly to: Date },
  callDays = CALL_DAYS_MAX,
): [Date, Date, string, string] {
  const ids = [from.getTime() - callDays * DAY_MS, to.getTime() + HOUR_MS].map((ms) => idAtTime(Math.max(0, ms)))
  return [from, to, ids[0] ?? '', ids[1] ?? '']
}

/** Sums of usage rows: account_id, product, key_id, vendor, calls, charged, costed, cost. */
export const SUMMED = `(
  select u.account_id, u.product, u.key_id, coalesce(u.vendor, '') as vendor, count(*) as calls, sum(u.charged)::bigint as charged,
    coalesce(sum(u.charged) filter (where u.cost is not null), 0)::bigint as costed, coalesce(sum(u.cost), 0)::bigint as cost
  from usage u where u.at >= $1 and u.at < $2 and u.id >= $3 and u.id < $4 group by 1, 2, 3, 4
)`

const TRY_LOCK = statement('usage_months_lock', 'select pg_try_advisory_xact_lock($1) as mine, now() as now')
const LAST = statement('usage_months_last', `select value from setting where name = '${SETTING}'`)
const FIRST = statement('usage_months_first', 'select min(hour) as hour from usage_hour')
const ADD = statement(
  'usage_months_add',
  `insert into usage_month (account_id, month, product, key_id, vendor, calls, charged, costed, cost)
   select s.account_id, $1::timestamptz at time zone 'UTC', s.product, s.key_id, s.vendor, s.calls, s.charged, s.costed, s.cost from ${SUMMED} s
   on conflict do nothing`,
  600_000,
)
const DONE = statement(
  'usage_months_done',
  `insert into setting (name, value) values ('${SETTING}', $1) on conflict (name) do update set value = excluded.value`,
)

/** The last month that is stored, as its first day. */
export async function lastStoredMonth(on: Queryable): Promise<number | undefined> {
  const [row] = await on.query<{ value: string }>(LAST)
  return row && parseMonth(row.value)
}

/** Stores the months that are over, one transaction each. One process does it; the others leave it to that one. Answers those that it stored. */
export async function storeUsageMonths(database: Database, world: World): Promise<string[]> {
  const stored: string[] = []
  for (;;) {
    const month = await database.transaction((tx) => storeNext(tx, world.nowMs()), PATIENT)
    if (month === undefined) return stored
    stored.push(month)
  }
}

async function storeNext(tx: Queryable, nowMs: number): Promise<string | undefined> {
  const [lock] = await tx.query<{ mine: boolean; now: Date }>(TRY_LOCK, [LOCK])
  if (!lock?.mine) return undefined
  // Rows have the database's time: a process whose clock is ahead must not close a month that still gets some.
  const current = monthStart(dayOfMs(Math.min(nowMs, lock.now.getTime()) - OVER_AFTER_MS))
  const last = await lastStoredMonth(tx)
  const [first] = last === undefined ? await tx.query<{ hour: Date | null }>(FIRST) : []
  // Where nothing was used yet, there is nothing to be stored of what lies behind.
  const next =
    last === undefined ? monthStart(first?.hour ? dayOfMs(first.hour.getTime()) : current) : monthStart(last, 1)
  if (next >= current) {
    if (last === undefined) await tx.query(DONE, [formatMonth(monthStart(current, -1))])
    return undefined
  }
  await tx.query(ADD, summedValues(monthRange(next)))
  await tx.query(DONE, [formatMonth(next)])
  return formatMonth(next)
}
