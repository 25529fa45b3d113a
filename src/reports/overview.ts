// An account at a glance, from the hourly sums: what it costs does not grow with the number of calls.
import { type Database, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import type { Overview } from '../ledger/views.ts'

// What is available of an account to whoever looks: its balance less what running calls hold. What processes have leased in advance, and no call
// needs, counts as available, because it is given up before a call is refused for the lack of it.

/** What running calls hold of the account in this row of `account`. */
export const HELD = (ROW: string): string =>
  `(${ROW}.held - (select coalesce(sum(greatest(e.amount - e.in_use, 0)), 0) from lease e where e.account_id = ${ROW}.id))::bigint`

/** Up to two days are shown by the hour, more by the day; in UTC. */
const HOURLY_DAYS_MAX = 2

export async function readOverview(database: Database, account: string, days: number): Promise<Overview | undefined> {
  const unit = days <= HOURLY_DAYS_MAX ? 'hour' : 'day'
  const steps = unit === 'hour' ? days * 24 : days
  const [balances, series, products, [spent]] = await Promise.all([
    database.query<{ posted: bigint; held: bigint }>(BALANCES, [account]),
    database.query<SeriesRow>(SERIES, [account, unit, steps]),
    database.query<ProductRow>(PRODUCTS, [account, unit, steps]),
    database.query<{ week: bigint }>(WEEK, [account]),
  ])
  const [row] = balances
  if (!row) return undefined
  const requests = series.reduce((sum, entry) => sum + Number(entry.requests), 0)
  const errors = series.reduce((sum, entry) => sum + Number(entry.errors), 0)
  return {
    balance: formatCredits(row.posted),
    held: formatCredits(row.held),
    available: formatCredits(row.posted - row.held),
    daysLeft: daysLeft(row.posted - row.held, spent?.week ?? 0n),
    series: series.map((entry) => ({
      at: entry.at.toISOString(),
      requests: Number(entry.requests),
      errors: Number(entry.errors),
      charged: formatCredits(entry.charged),
      inputTokens: Number(entry.input_tokens),
      outputTokens: Number(entry.output_tokens),
      latencyMsAvg: entry.requests === 0n ? null : Math.round(Number(entry.duration_ms) / Number(entry.requests)),
    })),
    products: products.map((entry) => ({
      product: entry.product,
      requests: Number(entry.requests),
      charged: formatCredits(entry.charged),
    })),
    statuses: { ok: requests - errors, failed: errors },
  }
}

/** At the pace of the last seven days. */
export function daysLeft(available: bigint, week: bigint): number | null {
  return week > 0n ? Math.round((Number(available) / Number(week)) * 70) / 10 : null
}

/** What was taken and what it cost, of the calls whose cost is known; from the rows themselves, as only operators ask. */
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
  const shown = ({ requests, charged, cost }: typeof total) => ({
    ...{ requests: Number(requests), charged: formatCredits(charged), cost: formatCredits(cost) },
  })
  return { ...shown(total), products: rows.map((row) => ({ product: row.product, ...shown(row) })) }
}

interface SeriesRow {
  at: Date
  requests: bigint
  errors: bigint
  charged: bigint
  input_tokens: bigint
  output_tokens: bigint
  duration_ms: bigint
}

interface ProductRow {
  product: string
  requests: bigint
  charged: bigint
}

const BALANCES = statement('overview_balances', `select a.posted, ${HELD('a')} as held from account a where a.id = $1`)
// Steps of so many hours, because a day of a session's own time zone may have 23 or 25.
const STEPS = `span as (
     select date_trunc($2, now(), 'UTC') - ($3::int - 1 - i) * make_interval(hours => case $2 when 'hour' then 1 else 24 end) as at
     from generate_series(0, $3::int - 1) i
   )`
const SERIES = statement(
  'overview_series',
  `with ${STEPS}, summed as (
     select date_trunc($2, hour, 'UTC') as at, sum(requests) as requests, sum(errors) as errors, sum(charged) as charged,
       sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens, sum(duration_ms) as duration_ms
     from usage_hour where account_id = $1 and hour >= (select min(at) from span) group by 1
   )
   select span.at, coalesce(requests, 0)::bigint as requests, coalesce(errors, 0)::bigint as errors,
     coalesce(charged, 0)::bigint as charged, coalesce(input_tokens, 0)::bigint as input_tokens,
     coalesce(output_tokens, 0)::bigint as output_tokens, coalesce(duration_ms, 0)::bigint as duration_ms
   from span left join summed on summed.at = span.at order by span.at`,
)
const PRODUCTS = statement(
  'overview_products',
  `with ${STEPS}
   select product, sum(requests)::bigint as requests, sum(charged)::bigint as charged
   from usage_hour where account_id = $1 and hour >= (select min(at) from span)
   group by product order by sum(charged) desc, product limit 100`,
)
const WEEK = statement(
  'overview_week',
  `select coalesce(sum(charged), 0)::bigint as week from usage_hour where account_id = $1 and hour >= now() - interval '7 days'`,
)
const MARGIN = statement(
  'overview_margin',
  `select product, count(*) as requests, sum(charged)::bigint as charged, sum(cost)::bigint as cost
   from usage where account_id = $1 and at >= now() - make_interval(days => $2::int) and cost is not null
   group by product order by sum(charged) desc, product limit 100`,
)
