// Usage of limits, figures of keys, low balances, the search, routes, and overviews of accounts.
import { type Database, type Queryable, SHORT_MS, sql } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { IS_TEST, ownAccountOf } from '../kernel/test-account.ts'
import { asView } from '../kernel/view.ts'
import { idAtTime, timeOfId } from '../kernel/world.ts'
import { USAGE_DAYS } from '../ledger/usage-sums.ts'
import {
  type ClientSum,
  clientSum,
  type Overview,
  overviewProduct,
  overviewStep,
  type RouteFigures,
  routeFigures,
} from '../ledger/views.ts'
import { amountOf, shareOf } from '../meter/limits.ts'
import type { FillView, Found, HomeFigures, KeyFigures, VendorError } from './views.ts'

interface Summed {
  requests: bigint
  errors: bigint
  charged: bigint
  duration_ms: bigint
}
/** Rows that are read to find the last error of each key. */
const ERRORS_AMONG = 2_000
const LISTED = 10

const shownSums = ({ requests, errors, charged }: Omit<Summed, 'duration_ms'>) => ({
  requests: Number(requests),
  errors: Number(errors),
  charged: formatCredits(charged),
})
const NONE: Summed = { requests: 0n, errors: 0n, charged: 0n, duration_ms: 0n }

interface CounterRow {
  scope: string
  name: FillView['limit']
  unit: string
  max: bigint
  used: bigint
  held: bigint
}

function fillOf({ name, unit, max, used, held }: CounterRow): FillView {
  const counted = unit === 'calls' ? held : used
  return {
    limit: name,
    max: amountOf(unit, max),
    used: amountOf(unit, counted),
    held: unit === 'credits' ? formatCredits(held) : null,
    share: shareOf(counted, max),
  }
}

/** The limits of an account, under `account`, and of its keys, under their ids. */
export async function readFills(database: Database, account: string): Promise<Map<string, FillView[]>> {
  const rows = await database.query<CounterRow>(COUNTERS, [account])
  const byScope = Map.groupBy(rows, ({ scope }) => scope)
  return new Map(Array.from(byScope, ([scope, counters]) => [scope, counters.map(fillOf)]))
}

interface ErrorRow {
  key_id: string
  id: string
  status: number
  fault: string | null
  message: string | null
}

export async function readKeyFigures(database: Database, account: string, days: number): Promise<KeyFigures[]> {
  const [sums, errors, fills] = await Promise.all([
    database.query<Summed & { key_id: string }>(KEY_SUMS, [account, days]),
    database.query<ErrorRow>(KEY_ERRORS, [account, ERRORS_AMONG]),
    readFills(database, account),
  ])
  const byKey = new Map(sums.map((row) => [row.key_id, row]))
  const failed = new Map(errors.map((row) => [row.key_id, row]))
  const ids = new Set([...byKey.keys(), ...failed.keys(), ...[...fills.keys()].filter((scope) => scope !== 'account')])
  return [...ids].map((keyId) => {
    const error = failed.get(keyId)
    return {
      keyId,
      ...shownSums(byKey.get(keyId) ?? NONE),
      limits: fills.get(keyId) ?? [],
      lastError: error
        ? {
            requestId: `req_${error.id}`,
            at: new Date(timeOfId(error.id)).toISOString(),
            status: error.status,
            fault: error.fault,
            message: error.message,
          }
        : null,
    }
  })
}

/** The accounts that run out first, without test accounts. */
export async function readLowBalances(database: Database): Promise<HomeFigures['lowBalances']> {
  const rows = await database.query<{ id: string; name: string; available: bigint; week: bigint }>(LOW, [LISTED])
  return rows.map(({ id, name, available, week }) => ({
    id,
    name,
    available: formatCredits(available),
    perDay: formatCredits(week / 7n),
    daysLeft: daysLeft(available, week) ?? 0,
  }))
}

const SUMMED = `sum(requests)::bigint as requests, sum(errors)::bigint as errors, sum(charged)::bigint as charged,
  sum(duration_ms)::bigint as duration_ms`
const COUNTERS = sql('figures_counters')`
  select n.scope, n.name, n.unit, n.max, counter_used(n, n.second) as used, counter_held(n) as held
   from counter c cross join lateral counter_now(c, floor(extract(epoch from clock_timestamp()))::bigint) n
   where c.account_id = $1 and c.name <> 'budget' order by n.scope, counter_rank(n.unit, n.span) limit 1000`
const KEY_SUMS = sql('figures_keys')`
  select key_id, ${SUMMED} from usage_hour where account_id = $1 and hour >= now() - make_interval(days => $2) group by key_id limit 1000`
const KEY_ERRORS = sql('figures_errors')`select distinct on (key_id) * from (
     select key_id, id, status, attempt_log -> 'fault' ->> 'name' as fault, attempt_log -> 'fault' ->> 'message' as message
     from (select * from usage where account_id = $1 order by id desc limit $2) u where status >= 400
     union all
     (select key_id, id, status, fault, message from refusal where account_id = $1 order by id desc limit $2)
   ) x order by key_id, id desc`
const OWN = `not ${IS_TEST('account_id')}`
/** What running calls hold of the account in this row of `account`. */
export const HELD = (ROW: string): string =>
  `(${ROW}.held - (select coalesce(sum(greatest(e.amount - e.in_use, 0)), 0) from lease e where e.account_id = ${ROW}.id))::bigint`

const LOW = sql('low_balances')`select a.id, a.name, a.posted - ${HELD('a')} as available, s.week from (
     select account_id, sum(charged)::bigint as week from usage_hour where hour >= now() - interval '7 days' and ${OWN} group by account_id having sum(charged) > 0
   ) s join account a on a.id = s.account_id order by (a.posted - ${HELD('a')})::numeric / s.week limit $1`

// The search: one query over names and ids of calls, jobs, keys, accounts and members.

const FOUND_MAX = 8
/** A shorter text is not compared with key prefixes, because all keys begin alike. */
const PREFIX_CHARS_MIN = 9

/** Of each kind, the accounts in which the person may see it; null: all. */
type SeenAccounts = Readonly<Record<'calls' | 'jobs' | 'keys' | 'accounts' | 'members', readonly string[] | null>>

export async function search(database: Queryable, q: string, seen: SeenAccounts): Promise<Found[]> {
  const rows = await database.query<{ kind: Found['kind']; id: string; label: string; account: string }>(SEARCH, [
    q,
    q.replace(/^req_/, ''),
    FOUND_MAX,
    seen.calls,
    seen.jobs,
    seen.keys,
    seen.accounts,
    seen.members,
  ])
  return rows.map((row) => ({ ...row, account: ownAccountOf(row.account) }))
}

// A test account is visible to everybody who sees its account. The search is for the literal text, not for a pattern.
const SEEN = (PARAMETER: string) =>
  `(${PARAMETER}::text[] is null or regexp_replace(account_id, '_test$', '') = any(${PARAMETER}))`
// Exact names come first: a command that names an account or key must find all with that name.
const NAMED = 'lower(name) = lower($1) desc'
const SEARCH = sql('search')`
  (select 'call' as kind, 'req_' || id as id, product || ' · ' || status as label, account_id as account from usage where id = $2 and ${SEEN('$4')} limit 1)
   union all
   (select 'call', 'req_' || id, 'Rejected · ' || replace(fault, '_', ' '), account_id from refusal where id = $2 and ${SEEN('$4')} limit 1)
   union all
   (select 'job', id, product || ' · ' || status, account_id from job where id = $1 and ${SEEN('$5')} limit 1)
   union all
   (select 'key', id, name || ' · …' || last4 || case when revoked_at <= now() then ' · revoked' else '' end, account_id from api_key
    where (id = $1 or last4 = $1 or strpos(lower(name), lower($1)) > 0 or $1 = prefix || '…' || last4
      or (length($1) >= ${PREFIX_CHARS_MIN} and starts_with(prefix, $1))) and ${SEEN('$6')} order by ${NAMED}, id desc limit $3)
   union all
   (select 'account', id, name, id from account where ledger is null and (id = $1 or strpos(search, lower($1)) > 0) and right(id, 5) <> '_test' and ($7::text[] is null or id = any($7)) order by ${NAMED}, id desc limit $3)
   union all
   (select 'member', p.id, p.email || ' · ' || a.name, a.id from person p join membership m on m.person_id = p.id join account a on a.id = m.account_id
    where strpos(p.email, lower($1)) > 0 and ($8::text[] is null or a.id = any($8)) order by p.email, a.id limit $3)`

// Recent figures of a product's routes, from single calls, as a basis for choosing routes.

/** The maximum of calls and accounts that are read: more would not change the result, but take time. */
const CALLS_MAX = 50_000
const ACCOUNTS_MAX = 2_000
const HOUR_MS = 3_600_000

/** Of the calls that began since. */
export async function readRouteFigures(database: Queryable, product: string, sinceMs: number): Promise<RouteFigures[]> {
  const hour = new Date(Math.floor(sinceMs / HOUR_MS) * HOUR_MS)
  const rows = await database.query(FIGURES, [product, hour, idAtTime(sinceMs), ACCOUNTS_MAX, CALLS_MAX])
  return rows.map((row) => asView(routeFigures, row))
}

// The hourly sums give the accounts, and the primary key of usage, which begins with the account, finds their calls. So
// the cost grows with the calls of the window, not of the whole month. An index for this would make every call slower.
// Test accounts are left out, because they use simulated vendors.
// A failed attempt is in the attempt log of its call, even if another route answered in the end.
const FIGURES = sql('route_figures')`with callers as materialized (
     select account_id from usage_hour where hour >= $2 and product = $1 and not ${IS_TEST('account_id')} group by account_id limit $4
   ), calls as materialized (
     select u.route, u.first_byte_ms, u.charged, u.cost, u.attempt_log from callers c
     cross join lateral (select route, first_byte_ms, charged, cost, attempt_log from usage where account_id = c.account_id and id >= $3 and product = $1) u limit $5
   ), served as (
     select route, count(*) as answered, percentile_cont(0.5) within group (order by first_byte_ms) filter (where first_byte_ms > 0) as first_byte_ms,
       round(avg(charged))::bigint as charged, round(avg(cost))::bigint as cost
     from calls where route > 0 group by route
   ), missed as (
     select (attempt ->> 'route')::int as route, count(*) as failed
     from calls, jsonb_array_elements(attempt_log -> 'attempts') attempt where attempt ->> 'fault' is not null group by 1
   )
   select coalesce(s.route, m.route)::int as route, coalesce(s.answered, 0)::bigint as answered, coalesce(m.failed, 0)::bigint as failed,
     round(s.first_byte_ms)::int as first_byte_ms_p50, s.charged as charged_avg, s.cost as cost_avg
   from served s full join missed m on m.route = s.route where coalesce(s.route, m.route) > 0 order by 1`

// The overview of an account, from the hourly sums, so its cost does not grow with the number of calls.

// The available balance: the balance minus what running calls hold. Credits that processes have leased and no call
// needs count as available, because they are recalled before a call is rejected.

/** Up to two days are shown by the hour, more by the day; in UTC. */
const HOURLY_DAYS_MAX = 2

export async function readOverview(database: Database, account: string, days: number): Promise<Overview | undefined> {
  const unit = days <= HOURLY_DAYS_MAX ? 'hour' : 'day'
  const count = unit === 'hour' ? days * 24 : days
  const [balances, steps, products, [spent]] = await Promise.all([
    database.query<{ posted: bigint; held: bigint }>(BALANCES, [account]),
    database.query(SERIES, [account, unit, count]),
    database.query(PRODUCTS, [account, unit, count]),
    database.query<{ week: bigint }>(WEEK, [account]),
  ])
  const [row] = balances
  if (!row) return undefined
  const series = steps.map((step) => asView(overviewStep, step))
  const requests = series.reduce((sum, step) => sum + step.requests, 0)
  const errors = series.reduce((sum, step) => sum + step.errors, 0)
  return {
    balance: formatCredits(row.posted),
    held: formatCredits(row.held),
    available: formatCredits(row.posted - row.held),
    daysLeft: daysLeft(row.posted - row.held, spent?.week ?? 0n),
    series,
    products: products.map((row) => asView(overviewProduct, row)),
    statuses: { ok: requests - errors, failed: errors },
  }
}

/** At the pace of the last seven days. */
function daysLeft(available: bigint, week: bigint): number | null {
  return week > 0n ? Math.round((Number(available) / Number(week)) * 70) / 10 : null
}

/** Charges and costs of the calls whose cost is known. */
export async function readMargin(
  database: Database,
  account: string,
  days: number,
): Promise<NonNullable<Overview['margin']>> {
  const rows = await database.query<ProductRow & { cost: bigint }>(MARGIN, [account, days])
  const total = rows.reduce(
    (sum, row) => ({
      requests: sum.requests + row.requests,
      charged: sum.charged + row.charged,
      cost: sum.cost + row.cost,
    }),
    { requests: 0n, charged: 0n, cost: 0n },
  )
  const viewSums = ({ requests, charged, cost }: typeof total) => ({
    requests: Number(requests),
    charged: formatCredits(charged),
    cost: formatCredits(cost),
  })
  return { ...viewSums(total), products: rows.map((row) => ({ product: row.product, ...viewSums(row) })) }
}

interface ProductRow {
  product: string
  requests: bigint
  charged: bigint
}

const BALANCES = sql('overview_balances')`select a.posted, ${HELD('a')} as held from account a where a.id = $1`
// Steps of so many hours, because a day of a session's own time zone may have 23 or 25.
const STEPS = `span as (
     select date_trunc($2, now(), 'UTC') - ($3::int - 1 - i) * make_interval(hours => case $2 when 'hour' then 1 else 24 end) as at
     from generate_series(0, $3::int - 1) i
   )`
const SERIES = sql('overview_series')`with ${STEPS}, summed as (
     select date_trunc($2, hour, 'UTC') as at, sum(requests) as requests, sum(errors) as errors, sum(charged) as charged,
       sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens, sum(duration_ms) as duration_ms
     from usage_hour where account_id = $1 and hour >= (select min(at) from span) group by 1
   )
   select span.at, coalesce(requests, 0)::bigint as requests, coalesce(errors, 0)::bigint as errors,
     coalesce(charged, 0)::bigint as charged, coalesce(input_tokens, 0)::bigint as input_tokens,
     coalesce(output_tokens, 0)::bigint as output_tokens, round(duration_ms / nullif(requests, 0))::int as latency_ms_avg
   from span left join summed on summed.at = span.at order by span.at`
const PRODUCTS = sql('overview_products')`with ${STEPS}
   select product, sum(requests)::bigint as requests, sum(charged)::bigint as charged
   from usage_hour where account_id = $1 and hour >= (select min(at) from span)
   group by product order by sum(charged) desc, product limit 100`
const WEEK = sql('overview_week')`
  select coalesce(sum(charged), 0)::bigint as week from usage_hour where account_id = $1 and hour >= now() - interval '7 days'`
const MARGIN = sql('overview_margin')`
  select product, sum(costed_calls)::bigint as requests, sum(costed)::bigint as charged, sum(cost)::bigint as cost
   from ${USAGE_DAYS} d where account_id = $1 and day > (now() at time zone 'UTC')::date - $2::int
   group by product having sum(costed_calls) > 0 order by sum(costed) desc, product limit 100`

// Spending of agents by session or program name, highest first.

const CLIENTS = sql('statement_clients')`
  select client, count(*) as requests, sum(charged)::bigint as charged, min(at) as first_at, max(at) as last_at from usage
   where account_id = $1 and id >= $2 and id < $3 and client <> '' group by client order by sum(charged) desc, client limit 100`

const RUN_CHARGE = sql('run_charge', SHORT_MS)`with of as (
     select charged from usage where account_id = $1 and labels ->> 'session' = $2
     union all select charged from journal where account_id = $1 and labels ->> 'session' = $2
   )
   select coalesce(sum(charged), 0)::bigint as charged from of`

/** Of a run of an agent so far. Settlements that are not posted yet count. */
export async function readRunCharge(database: Queryable, account: string, run: string): Promise<bigint> {
  const [row] = await database.query<{ charged: bigint }>(RUN_CHARGE, [account, run])
  return row?.charged ?? 0n
}

/** Sorts after all ids, which contain the time. */
const LAST = '~'

export async function readClients(
  database: Queryable,
  { account, fromMs, toMs }: { account: string; fromMs?: number | undefined; toMs?: number | undefined },
): Promise<ClientSum[]> {
  const from = fromMs === undefined ? '' : idAtTime(fromMs)
  const to = toMs === undefined ? LAST : idAtTime(toMs)
  const rows = await database.query(CLIENTS, [account, from, to])
  return rows.map((row) => asView(clientSum, row))
}

// Recent errors of a vendor: failed attempts grouped by cause, each with the newest calls.

interface VendorErrorRow {
  readonly fault: string
  readonly status: number | null
  readonly phase: string | null
  readonly cause: string | null
  readonly fix: string | null
  readonly said: string | null
  readonly calls: number
  readonly products: readonly string[]
  readonly newest: readonly { id: string; account: string; name: string | null; product: string }[]
}

/** Only the newest attempts are read, because they show current problems. */
const ATTEMPTS_MAX = 2_000
const CAUSES_MAX = 20

const ERRORS = sql('vendor_errors')`with failed as (
     select u.id, u.account_id, u.product, a.attempt from usage u
     cross join lateral jsonb_array_elements(u.attempt_log -> 'attempts') as a(attempt)
     where u.id >= $2 and u.attempt_log is not null and a.attempt ->> 'vendor' = $1
       and a.attempt ->> 'fault' is not null and a.attempt -> 'skipped' is distinct from 'true'::jsonb
     order by u.id desc limit ${ATTEMPTS_MAX}
   ), grouped as (
     select attempt ->> 'fault' as fault, (attempt ->> 'status')::int as status, attempt ->> 'phase' as phase, attempt ->> 'cause' as cause,
       max(attempt ->> 'fix') as fix, (array_agg(attempt ->> 'vendorError' order by id desc) filter (where attempt ? 'vendorError'))[1] as said,
       count(distinct id)::int as calls, (array_agg(distinct product))[1:5] as products, (array_agg(distinct id || ' ' || account_id || ' ' || product order by id || ' ' || account_id || ' ' || product desc))[1:3] as last
     from failed group by 1, 2, 3, 4
   )
   select g.fault, g.status, g.phase, g.cause, g.fix, g.said, g.calls, g.products,
     (select jsonb_agg(jsonb_build_object('id', split_part(x, ' ', 1), 'account', split_part(x, ' ', 2), 'product', split_part(x, ' ', 3),
       'name', (select name from account c where c.id = split_part(x, ' ', 2)))) from unnest(g.last) x) as newest
   from grouped g order by g.calls desc, g.last[1] desc limit ${CAUSES_MAX}`

/** The cause of most failures first. */
export async function readVendorErrors(database: Database, vendor: string, sinceMs: number): Promise<VendorError[]> {
  const rows = await database.query<VendorErrorRow>(ERRORS, [vendor, idAtTime(sinceMs)])
  return rows.map(({ newest, said, products, ...row }) => ({
    ...row,
    vendorError: said,
    products: [...products],
    newest: newest.map(({ id, account, name, product }) => ({
      requestId: `req_${id}`,
      at: new Date(timeOfId(id)).toISOString(),
      account,
      accountName: name,
      product,
    })),
  }))
}
