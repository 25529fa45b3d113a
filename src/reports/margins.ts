// What calls brought and what vendors took for them, by the hour, product and route: counted where the ledger settles, and added to the hour's
// rows now and then, so that no sum over single calls is needed. A process that is killed loses the last seconds of it, never of the money.
import { type Database, statement } from '../database/database.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import type { World } from '../kernel/world.ts'
import type { Resolution } from '../ledger/operation.ts'
import type { HomeFigures } from './views.ts'

interface Margins {
  count(resolution: Pick<Resolution, 'account' | 'product' | 'route' | 'cost'>, paid: Credits): void
  /** Adds what was counted to the database. */
  flush(): Promise<void>
  prune(): Promise<void>
}

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

export function createMargins(database: Database, world: World): Margins {
  const counted = new Map<string, Counted>()

  function rowOf(hourMs: number, product: string, route: number): Counted | undefined {
    const key = `${hourMs} ${product} ${route}`
    let row = counted.get(key)
    if (!row && counted.size < COUNTED_MAX) {
      row = { hourMs, product, route, calls: 0, charged: 0n, costed: 0n, cost: 0n }
      counted.set(key, row)
    }
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
    count({ account, product, route, cost }, paid) {
      if (isTestAccount(account)) return
      const known = cost !== undefined
      const row = rowOf(Math.floor(world.nowMs() / HOUR_MS) * HOUR_MS, product, route)
      add(row, { calls: 1, charged: paid, costed: known ? paid : 0n, cost: cost ?? 0n })
    },
    async flush() {
      if (counted.size === 0) return
      const rows = [...counted.values()]
      counted.clear()
      try {
        await database.query(ADD, [JSON.stringify(rows.map(shown))])
      } catch (error) {
        // Nobody waits for them: they are added with the next ones.
        for (const row of rows) add(rowOf(row.hourMs, row.product, row.route), row)
        throw error
      }
    },
    async prune() {
      await database.query(PRUNE, [KEPT_DAYS])
    },
  }
}

function shown({ hourMs, charged, costed, cost, ...row }: Counted) {
  return {
    ...row,
    hour: new Date(hourMs).toISOString(),
    ...{ charged: String(charged), costed: String(costed), cost: String(cost) },
  }
}

interface Row {
  product: string
  route: number
  calls: bigint
  charged: bigint
  costed: bigint
  cost: bigint
}

/** Of all accounts but those for tests. The routes are those on which more was paid than earned, the dearest first. */
export async function readMargin(database: Database, days: number): Promise<Pick<HomeFigures, 'margin' | 'losing'>> {
  const rows = await database.query<Row>(READ, [days])
  const sum = (of: (row: Row) => bigint) => formatCredits(rows.reduce((all, row) => all + of(row), 0n))
  return {
    margin: { charged: sum((row) => row.charged), costed: sum((row) => row.costed), cost: sum((row) => row.cost) },
    losing: rows
      .filter(({ cost, costed }) => cost > costed)
      .sort((a, b) => Number(b.cost - b.costed - (a.cost - a.costed)))
      .slice(0, LOSING_MAX)
      .map(({ product, route, calls, costed, cost }) => ({
        ...{ product, route, calls: Number(calls) },
        ...{ charged: formatCredits(costed), cost: formatCredits(cost) },
      })),
  }
}

const ADD = statement(
  'margin_add',
  `insert into margin_hour as m (hour, product, route, calls, charged, costed, cost)
   select x.hour, x.product, x.route, x.calls, x.charged, x.costed, x.cost
   from jsonb_to_recordset($1::jsonb) as x(hour timestamptz, product text, route smallint, calls bigint, charged bigint, costed bigint, cost bigint)
   order by x.hour, x.product, x.route
   on conflict (hour, product, route) do update set calls = m.calls + excluded.calls, charged = m.charged + excluded.charged,
     costed = m.costed + excluded.costed, cost = m.cost + excluded.cost`,
)
const READ = statement(
  'margin_read',
  `select product, route::int as route, sum(calls)::bigint as calls, sum(charged)::bigint as charged, sum(costed)::bigint as costed, sum(cost)::bigint as cost
   from margin_hour where hour > now() - make_interval(days => $1::int) group by product, route`,
)
const PRUNE = statement('margin_prune', 'delete from margin_hour where hour < now() - make_interval(days => $1::int)')
