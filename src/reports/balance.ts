// The balance of an account: what it has, and which part of it ends when or is for some products only.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import type { BalanceView, LotSource, LotView } from '../ledger/views.ts'
import { HELD } from './overview.ts'

export async function readBalance(on: Queryable, account: string): Promise<BalanceView | undefined> {
  const rows = await on.query<BalanceRow & (LotRow | { readonly id: null })>(BALANCE, [account])
  const [of] = rows
  if (!of) return undefined
  // Lots that have ended and wait for the next sweep are not there any more, but for what calls hold of them.
  const all = rows.filter((row) => row.id !== null)
  const gone = all.reduce((sum, { ended, remaining, lot_held }) => sum + (ended ? remaining - lot_held : 0n), 0n)
  const lots = all.filter(({ ended, lot_held }) => !ended || lot_held > 0n)
  const inLots = lots.reduce((sum, { ended, remaining, lot_held }) => sum + (ended ? lot_held : remaining), 0n)
  const balance = of.posted - gone
  return {
    balance: formatCredits(balance),
    held: formatCredits(of.held),
    available: formatCredits(balance - of.held),
    plain: formatCredits(balance - inLots),
    lots: lots.map(lotView),
  }
}

function lotView({ id, source, amount, remaining, lot_held: held, ended, priority, products, ...at }: LotRow): LotView {
  return {
    ...{ id, source, priority, products },
    amount: formatCredits(amount),
    remaining: formatCredits(ended ? held : remaining),
    held: formatCredits(held),
    endsAt: at.ends_at?.toISOString() ?? null,
    createdAt: at.created_at.toISOString(),
  }
}

interface BalanceRow {
  readonly posted: bigint
  readonly held: bigint
}
interface LotRow {
  readonly id: string
  readonly source: LotSource
  readonly amount: bigint
  readonly remaining: bigint
  readonly lot_held: bigint
  readonly ended: boolean
  readonly ends_at: Date | null
  readonly products: string[] | null
  readonly priority: number
  readonly created_at: Date
}

/** The lots in the order in which they are spent. One statement, because a lot that ends meanwhile would be gone from one of two and not from the other. */
const BALANCE = statement(
  'balance',
  `select a.posted, ${HELD('a')} as held, l.id, l.source, l.amount, l.remaining, l.held as lot_held, coalesce(l.ends_at <= now(), false) as ended, l.ends_at, l.products,
     l.priority, l.created_at
   from account a left join lot l on a.has_lots and l.account_id = a.id and l.remaining > 0 where a.id = $1 order by l.priority, l.ends_at nulls last, l.id`,
)
