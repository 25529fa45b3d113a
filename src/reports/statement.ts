// Reads accounts, usage, movements and the computation of charges.
import { type Queryable, sql } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import { asPage, asView, type Page, type Paging } from '../kernel/view.ts'
import { type Limits, showLimits } from '../ledger/limits.ts'
import {
  type AccountView,
  accountView,
  type BalanceView,
  type LedgerView,
  type LotView,
  lotView,
} from '../ledger/views.ts'
import { type ListedCall, readCall, readCalls, type UsageFilter } from './calls.ts'
import { HELD } from './figures.ts'
import { type LedgerFilter, readMovements } from './movements.ts'

export type Statements = ReturnType<typeof createStatements>

/** Sorts after every id. */
const LAST = '~'
export function createStatements(database: Queryable) {
  return {
    async account(id: string): Promise<AccountView | undefined> {
      const [row] = await database.query<AccountRow>(ACCOUNT, [id])
      return row && viewOf(row)
    },
    /** With its lots. */
    balance: (id: string): Promise<BalanceView | undefined> => readBalance(database, id),
    /** `only`: the accounts that the actor may see; absent: all. */
    async accounts({
      q,
      only,
      cursor,
      limit,
    }: Paging & { q?: string | undefined; only?: readonly string[] }): Promise<Page<AccountView>> {
      const rows = await database.query<AccountRow>(ACCOUNTS, [cursor ?? LAST, q ?? '', only ?? null, limit + 1])
      return asPage(rows, limit, viewOf)
    },
    usage: (filter: UsageFilter): Promise<Page<ListedCall>> => readCalls(database, filter),
    /** By `req_<id>`. */
    usageOf: (requestId: string): ReturnType<typeof readCall> => readCall(database, requestId),
    ledger: (filter: LedgerFilter): Promise<Page<LedgerView>> => readMovements(database, filter),
  }
}

interface AccountRow {
  id: string
  name: string
  posted: bigint
  held: bigint
  limits: Limits
}

/** What an account sees of itself, in the API and the console. */
type Facts = 'id' | 'name' | 'balance' | 'held' | 'available' | 'limits'
export function accountFacts(row: AccountRow): Pick<AccountView, Facts> {
  return {
    id: row.id,
    name: row.name,
    balance: formatCredits(row.posted),
    held: formatCredits(row.held),
    available: formatCredits(row.posted - row.held),
    limits: showLimits(row.limits),
  }
}

const viewOf = (row: AccountRow): AccountView => ({ ...asView(accountView, row), ...accountFacts(row) })

const ACCOUNT = sql('statement_account')`
  select a.id, a.name, a.posted, ${HELD('a')} as held, limits_of(a.id, 'account') as limits, a.created_at, a.status, a.status_reason, a.status_at from account a where a.id = $1`
// The search is for the literal text, not for a pattern, so no input can make it slow.
const ACCOUNTS = sql('statement_accounts')`
  select a.id, a.name, a.posted, ${HELD('a')} as held, limits_of(a.id, 'account') as limits, a.created_at, a.status, a.status_reason, a.status_at from account a
   where id < $1 and ledger is null and (not ${IS_TEST('id')} or id = $2) and ($2::text = '' or id = $2 or strpos(search, lower($2)) > 0)
     and ($3::text[] is null or id = any($3))
   order by id desc limit $4`

// The balance of an account with its lots: the parts that expire or are for some products only.

export async function readBalance(on: Queryable, account: string): Promise<BalanceView | undefined> {
  const rows = await on.query<BalanceRow & (LotRow | { readonly id: null })>(BALANCE, [account])
  const [of] = rows
  if (!of) return undefined
  // A lot that has ended counts no more, even before the next sweep, except for what calls hold of it.
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
    lots: lots.map(lotOf),
  }
}

function lotOf(row: LotRow): LotView {
  const { ended, remaining, lot_held: held } = row
  const left = formatCredits(ended ? held : remaining)
  return { ...asView(lotView, row), remaining: left, held: formatCredits(held) }
}

interface BalanceRow {
  readonly posted: bigint
  readonly held: bigint
}
interface LotRow {
  readonly id: string
  readonly remaining: bigint
  readonly lot_held: bigint
  readonly ended: boolean
}

/** Balance and lots, in the order in which lots are spent. One statement, because a lot could end between two. */
const BALANCE = sql('balance')`
  select a.posted, ${HELD('a')} as held, l.id, l.source, l.amount, l.remaining, l.held as lot_held, coalesce(l.ends_at <= now(), false) as ended, l.ends_at, l.products,
     l.priority, l.created_at
   from account a left join lot l on a.has_lots and l.account_id = a.id and l.remaining > 0 where a.id = $1 order by l.priority, l.ends_at nulls last, l.id`
