// How the routes of one product have done lately, from the calls themselves: to decide by which of them to take.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import { idAtTime } from '../kernel/world.ts'
import type { RouteFigures } from '../ledger/views.ts'

/** More calls than these, or of more accounts, say nothing new, and reading them takes its time. */
const CALLS_MAX = 50_000
const ACCOUNTS_MAX = 2_000
const HOUR_MS = 3_600_000

/** Of the calls that began since. */
export async function readRouteFigures(database: Queryable, product: string, sinceMs: number): Promise<RouteFigures[]> {
  const hour = new Date(Math.floor(sinceMs / HOUR_MS) * HOUR_MS)
  const rows = await database.query<Row>(FIGURES, [product, hour, idAtTime(sinceMs), ACCOUNTS_MAX, CALLS_MAX])
  return rows.map(({ route, answered, failed, first_byte_ms: firstByteMs, charged, cost }) => ({
    route,
    answered: Number(answered),
    failed: Number(failed),
    firstByteMsP50: firstByteMs === null ? null : Math.round(firstByteMs),
    chargedAvg: charged === null ? null : formatCredits(charged),
    costAvg: cost === null ? null : formatCredits(cost),
  }))
}

interface Row {
  route: number
  answered: bigint
  failed: bigint
  first_byte_ms: number | null
  charged: bigint | null
  cost: bigint | null
}

// The hourly sums say whose calls to read, and the key of usage, which begins with the account, finds them: what this costs grows with the calls
// of the window, and not with the month in which they lie. An index of its own would cost every call something.
// Test accounts reach simulated vendors, which say nothing about the routes.
// An attempt that failed stands in the story of its call, also where another route answered in the end.
const FIGURES = statement(
  'route_figures',
  `with callers as materialized (
     select account_id from usage_hour where hour >= $2 and product = $1 and not ${IS_TEST('account_id')} group by account_id limit $4
   ), calls as materialized (
     select u.route, u.first_byte_ms, u.charged, u.cost, u.story from callers c
     cross join lateral (select route, first_byte_ms, charged, cost, story from usage where account_id = c.account_id and id >= $3 and product = $1) u limit $5
   ), served as (
     select route, count(*) as answered, percentile_cont(0.5) within group (order by first_byte_ms) filter (where first_byte_ms > 0) as first_byte_ms,
       round(avg(charged))::bigint as charged, round(avg(cost))::bigint as cost
     from calls where route > 0 group by route
   ), missed as (
     select (attempt ->> 'route')::int as route, count(*) as failed
     from calls, jsonb_array_elements(story -> 'attempts') attempt where attempt ->> 'fault' is not null group by 1
   )
   select coalesce(s.route, m.route)::int as route, coalesce(s.answered, 0)::bigint as answered, coalesce(m.failed, 0)::bigint as failed,
     s.first_byte_ms, s.charged, s.cost
   from served s full join missed m on m.route = s.route where coalesce(s.route, m.route) > 0 order by 1`,
)
