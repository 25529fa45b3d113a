// How the routes of one product have done lately, from the calls themselves: to decide by which of them to take.
import { type Database, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import type { RouteFigures } from './views.ts'

/** More calls than these say nothing new, and reading them takes its time. */
const CALLS_MAX = 50_000

export async function readRouteFigures(database: Database, product: string, hours: number): Promise<RouteFigures[]> {
  const rows = await database.query<Row>(FIGURES, [product, hours, CALLS_MAX])
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

// Test accounts reach simulated vendors, which say nothing about the routes.
// An attempt that failed stands in the story of its call, also where another route answered in the end.
const FIGURES = statement(
  'route_figures',
  `with calls as materialized (
     select route, status, first_byte_ms, charged, cost, story from usage
     where at >= now() - make_interval(hours => $2::int) and product = $1 and not ${IS_TEST('account_id')} limit $3
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
