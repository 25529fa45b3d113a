// Charges and vendor costs by hour, product and route: counted when calls are settled, and added to the hourly
// rows from time to time, so that single calls need not be summed. A killed process loses its last seconds of these
// figures, but no money.
import { type Database, sql } from '../database/database.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import type { World } from '../kernel/world.ts'
import type { Resolution } from '../ledger/operation.ts'
import type { HomeFigures } from './views.ts'

interface Counted {
  readonly hourMs: number
  readonly product: string
  readonly route: number
  calls: number
  charged: Credits
  /** Of the calls whose cost is known. */
  costed: Credits
  cost: Credits
}

const HOUR_MS = 3_600_000
const KEPT_DAYS = 32
const COUNTED_MAX = 5_000
const LOSING_MAX = 10

export function createMargins(database: Database, world: World) {
  const counted = new Map<string, Counted>()

  /** The last one that was counted in: consecutive calls often have the same. */
  let last: Counted | undefined

  function rowOf(hourMs: number, product: string, route: number): Counted | undefined {
    const key = `${hourMs} ${product} ${route}`
    let row = counted.get(key)
    if (!row && counted.size < COUNTED_MAX) {
      row = { hourMs, product, route, calls: 0, charged: 0n, costed: 0n, cost: 0n }
      counted.set(key, row)
    }
    last = row
    return row
  }

  function add(to: Counted | undefined, from: Omit<Counted, 'hourMs' | 'product' | 'route'>): void {
    if (!to) return
    to.calls += from.calls
    to.charged += from.charged
    to.costed += from.costed
    to.cost += from.cost
  }

  return {
    count(
      { account, product, route, cost }: Pick<Resolution, 'account' | 'product' | 'route' | 'cost'>,
      paid: Credits,
    ): void {
      if (isTestAccount(account)) return
      const known = cost !== undefined
      const hourMs = Math.floor(world.nowMs() / HOUR_MS) * HOUR_MS
      const isLast = last?.product === product && last.route === route && last.hourMs === hourMs
      const row = isLast ? last : rowOf(hourMs, product, route)
      add(row, { calls: 1, charged: paid, costed: known ? paid : 0n, cost: cost ?? 0n })
    },
    /** Writes the counts to the database. */
    async flush(): Promise<void> {
      if (counted.size === 0) return
      const rows = [...counted.values()]
      counted.clear()
      last = undefined
      try {
        await database.query(ADD, [JSON.stringify(rows.map(storedSumOf))])
      } catch (error) {
        // Not an error for anybody: they are written with the next counts.
        for (const row of rows) add(rowOf(row.hourMs, row.product, row.route), row)
        throw error
      }
    },
    async prune(): Promise<void> {
      await database.query(PRUNE, [KEPT_DAYS])
    },
  }
}

function storedSumOf({ hourMs, charged, costed, cost, ...row }: Counted) {
  return {
    ...row,
    hour: new Date(hourMs).toISOString(),
    charged: String(charged),
    costed: String(costed),
    cost: String(cost),
  }
}

interface RouteSumRow {
  product: string
  route: number
  calls: bigint
  charged: bigint
  costed: bigint
  cost: bigint
}

/** Of all accounts except test accounts. The routes are those with a loss, the largest first; or every one. */
export async function readMargin(
  database: Database,
  { days, everyRoute = false }: { readonly days: number; readonly everyRoute?: boolean },
): Promise<Pick<HomeFigures, 'margin' | 'unprofitableRoutes'>> {
  const [rows, [unbilled]] = await Promise.all([
    database.query<RouteSumRow>(READ, [days]),
    database.query<{ cost: bigint }>(UNBILLED_LATELY, [days]),
  ])
  const sum = (of: (row: RouteSumRow) => bigint, first = 0n) =>
    formatCredits(rows.reduce((all, row) => all + of(row), first))
  return {
    margin: {
      charged: sum((row) => row.charged),
      chargedWithKnownCost: sum((row) => row.costed),
      cost: sum((row) => row.cost, unbilled?.cost),
    },
    unprofitableRoutes: rows
      .filter(({ cost, costed }) => everyRoute || cost > costed)
      .sort((a, b) => Number(b.cost - b.costed - (a.cost - a.costed)))
      .slice(0, everyRoute ? undefined : LOSING_MAX)
      .map(({ product, route, calls, costed, cost }) => ({
        product,
        route,
        calls: Number(calls),
        charged: formatCredits(costed),
        cost: formatCredits(cost),
      })),
  }
}

const ADD = sql('margin_add')`insert into margin_hour as m (hour, product, route, calls, charged, costed, cost)
   select x.hour, x.product, x.route, x.calls, x.charged, x.costed, x.cost
   from jsonb_to_recordset($1::jsonb) as x(hour timestamptz, product text, route smallint, calls bigint, charged bigint, costed bigint, cost bigint)
   order by x.hour, x.product, x.route
   on conflict (hour, product, route) do update set calls = m.calls + excluded.calls, charged = m.charged + excluded.charged,
     costed = m.costed + excluded.costed, cost = m.cost + excluded.cost`
const READ = sql('margin_read')`
  select product, route::int as route, sum(calls)::bigint as calls, sum(charged)::bigint as charged, sum(costed)::bigint as costed, sum(cost)::bigint as cost
   from margin_hour where hour > now() - make_interval(days => $1::int) group by product, route`
const UNBILLED_LATELY = sql('margin_unbilled_lately')`
  select coalesce(sum(cost), 0)::bigint as cost from unbilled_day where day > ((now() at time zone 'UTC') - make_interval(days => $1::int))::date`
const PRUNE = sql('margin_prune')`delete from margin_hour where hour < now() - make_interval(days => $1::int)`
