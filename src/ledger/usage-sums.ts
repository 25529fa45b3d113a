// What calls came to by the day (UTC), customer, product, key and vendor, and by the value of each label. Calls are
// added some seconds after they were posted, in the order of their postings, so that settling them costs no more;
// whoever reads the sums adds the calls that wait. A call belongs to the day in which it was posted.
import { type Database, PATIENT, type Queryable, sql, statement } from '../database/database.ts'
import { putSetting, readSetting } from '../database/setting.ts'
import { DAY_MS, dayOfMs, formatDay, monthStart, parseDay } from '../kernel/calendar.ts'
import { INPUT_UNITS, OUTPUT_UNITS } from '../meter/usage.ts'

const HOUR_MS = 3_600_000
/** A month is over when no transaction that began in it can still be open. */
export const OVER_AFTER_MS = HOUR_MS
const LOCK = 7_046_029_261n
const SETTING = 'usage-sums'
/** Calls that one transaction adds. */
const CALLS = 20_000

/** `2026-10`; undefined where it is no month. */
export function parseMonth(text: string): number | undefined {
  return /^\d{4}-\d{2}$/.test(text) ? parseDay(`${text}-01`) : undefined
}

export const formatMonth = (day: number) => formatDay(day).slice(0, 7)

/** The first moment of the month of a day, and the first after it. */
export function monthRange(day: number): { readonly from: Date; readonly to: Date } {
  return { from: new Date(monthStart(day) * DAY_MS), to: new Date(monthStart(day, 1) * DAY_MS) }
}

/** `t.input` and `t.output` of a usage row with the alias `u`: tokens with a price, and those with a cost only. */
export const TOKENS = `cross join lateral (
     select coalesce(sum(q.quantity) filter (where q.unit in (${quoted(INPUT_UNITS)})), 0)::bigint as input,
       coalesce(sum(q.quantity) filter (where q.unit in (${quoted(OUTPUT_UNITS)})), 0)::bigint as output
     from (select x ->> 0 as unit, (x ->> 1)::numeric as quantity from jsonb_array_elements(u.lines) x
       union all select b.key, b.value::numeric from jsonb_each_text(coalesce(u.cost_basis -> 'units', '{}')) b) q
   ) t`

function quoted(units: readonly string[]): string {
  return units.map((unit) => `'${unit}'`).join(', ')
}

const DAY = `(u.at at time zone 'UTC')::date`
const COSTED = `coalesce(sum(u.charged) filter (where u.cost is not null), 0)::bigint`
/** The rows of `usage_day` that these calls make. */
const DAYS_OF = (WHERE: string) =>
  `select u.account_id, ${DAY} as day, u.product, u.key_id, coalesce(u.vendor, '') as vendor, count(*) as calls, count(u.cost) as costed_calls, sum(u.charged)::bigint as charged,
     ${COSTED} as costed, coalesce(sum(u.cost), 0)::bigint as cost
   from usage u where ${WHERE} group by 1, 2, 3, 4, 5`
const CLIENTS_MAX = 20
/** The rows of `label_day`. */
const LABELS_OF = (WHERE: string) =>
  `select u.account_id, ${DAY} as day, l.key as name, l.value, u.product, coalesce(u.vendor, '') as vendor, count(*) as calls, count(*) filter (where u.status >= 400) as errors,
     sum(u.charged)::bigint as charged, ${COSTED} as costed, sum(u.cost)::bigint as cost, sum(t.input)::bigint as input_tokens, sum(t.output)::bigint as output_tokens,
     min(u.id) as first_id, max(u.id) as last_id, coalesce((array_agg(distinct u.client) filter (where u.client <> ''))[1:${CLIENTS_MAX}], '{}') as clients
   from usage u ${TOKENS} cross join lateral jsonb_each_text(u.labels) l where ${WHERE} and u.labels is not null and l.key not in (':agent', ':parent', ':purse-token') group by 1, 2, 3, 4, 5, 6`

/**
 * Calls whose posting is not below this number wait to be added. It is not known when the statement is planned, and the
 * planner expects a third of all calls then and reads those of the account instead; of a range with two ends it expects
 * few, and uses the index.
 */
export const WAITING = `u.posting >= coalesce((select (s.value::jsonb ->> 'posting')::bigint from setting s where s.name = '${SETTING}'), 0)
  and u.posting < 9223372036854775807`
/** All sums, to be read like a table: those that are stored, and those of the calls that wait. */
export const USAGE_DAYS = `(
  select account_id, day, product, key_id, vendor, calls, costed_calls, charged, costed, cost from usage_day union all ${DAYS_OF(WAITING)}
)`
export const LABEL_DAYS = `(
  select account_id, day, name, value, product, vendor, calls, errors, charged, costed, cost, input_tokens, output_tokens, first_id, last_id, clients from label_day
  union all ${LABELS_OF(WAITING)}
)`

const ADD_DAYS = (WHERE: string) =>
  `insert into usage_day as d (account_id, day, product, key_id, vendor, calls, costed_calls, charged, costed, cost) ${DAYS_OF(WHERE)}
   on conflict (account_id, day, product, key_id, vendor) do update set calls = d.calls + excluded.calls, costed_calls = d.costed_calls + excluded.costed_calls,
     charged = d.charged + excluded.charged, costed = d.costed + excluded.costed, cost = d.cost + excluded.cost`
const ADD_LABELS = (WHERE: string) =>
  `insert into label_day as d (account_id, day, name, value, product, vendor, calls, errors, charged, costed, cost, input_tokens, output_tokens, first_id, last_id, clients) ${LABELS_OF(WHERE)}
   on conflict (account_id, day, name, value, product, vendor) do update set calls = d.calls + excluded.calls, errors = d.errors + excluded.errors, charged = d.charged + excluded.charged,
     costed = d.costed + excluded.costed, cost = coalesce(d.cost + excluded.cost, d.cost, excluded.cost), input_tokens = d.input_tokens + excluded.input_tokens,
     output_tokens = d.output_tokens + excluded.output_tokens, first_id = least(d.first_id, excluded.first_id), last_id = greatest(d.last_id, excluded.last_id),
     clients = (array(select distinct c from unnest(d.clients || excluded.clients) c order by 1))[1:${CLIENTS_MAX}]`

const TRY_LOCK = sql('usage_sums_lock')`select pg_try_advisory_xact_lock($1) as mine`
// As far as no transaction that runs can still add a call.
const NEXT = sql('usage_sums_next')`
  select now() as now, usage_horizon() as horizon, (select posting + 1 from usage where posting >= $1 order by posting offset ${CALLS} limit 1) as full,
     exists (select 1 from usage where posting >= $1) as some`
const POSTED = 'u.posting >= $1 and u.posting < $2'
const ADDED = [
  statement('usage_sums_days', ADD_DAYS(POSTED), 600_000),
  statement('usage_sums_labels', ADD_LABELS(POSTED), 600_000),
]

interface State {
  /** Calls with a smaller number are added. */
  readonly posting: number
  /** When there were no others. */
  readonly until: string
}

async function readState(on: Queryable): Promise<State | undefined> {
  const value = await readSetting(on, SETTING)
  return value === undefined ? undefined : JSON.parse(value)
}

/** Calls of before this moment are added. */
export async function summedUntilMs(on: Queryable): Promise<number> {
  const state = await readState(on)
  return state ? Math.max(0, Date.parse(state.until) - OVER_AFTER_MS) : 0
}

/** The last month of which all calls are added, as its first day. */
export async function lastSummedMonth(on: Queryable): Promise<number | undefined> {
  const untilMs = await summedUntilMs(on)
  return untilMs === 0 ? undefined : monthStart(dayOfMs(untilMs), -1)
}

/** Adds the calls that wait. One process does it; the others leave it to that one. */
export async function sumUsage(database: Database): Promise<void> {
  while (await database.transaction(addSome, PATIENT));
}

/** Whether there may be more. */
async function addSome(tx: Queryable): Promise<boolean> {
  const [lock] = await tx.query<{ mine: boolean }>(TRY_LOCK, [LOCK])
  if (!lock?.mine) return false
  const state = await readState(tx)
  const low = BigInt(state?.posting ?? 0)
  const [next] = await tx.query<{ now: Date; horizon: bigint; full: bigint | null; some: boolean }>(NEXT, [low])
  if (!next) return false
  const isFull = next.full !== null && next.full < next.horizon
  const high = isFull && next.full !== null ? next.full : next.horizon
  if (next.some) for (const add of ADDED) await tx.query(add, [low, high])
  const until = isFull ? (state?.until ?? new Date(0).toISOString()) : next.now.toISOString()
  await putSetting(tx, SETTING, JSON.stringify({ posting: Number(high), until }))
  return isFull
}

// An account that moves brings its sums; its calls have no postings where it arrives.

const OF_ACCOUNT = 'u.account_id = $1 and u.id = any($2::text[])'
const ARRIVED = statement('usage_sums_arrived', `with days as (${ADD_DAYS(OF_ACCOUNT)}) ${ADD_LABELS(OF_ACCOUNT)}`)

/** Adds to the sums that an account brought those calls that waited where it came from. */
export async function sumArrived(target: Queryable, account: string, waiting: readonly string[]): Promise<void> {
  await target.query(ARRIVED, [account, waiting])
}
