// The read side of the money: accounts, what they used, what moved, and how a charge came about.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import type { Page, Paging } from '../kernel/view.ts'
import { type Limits, showLimits } from '../ledger/limits.ts'
import type { AccountStatus, AccountView, BalanceView, LedgerView } from '../ledger/views.ts'
import { readBalance } from './balance.ts'
import { type ListedCall, readCall, readCalls, type UsageFilter } from './calls.ts'
import { type LedgerFilter, readMovements } from './movements.ts'
import { HELD } from './overview.ts'

export interface Statements {
  account(id: string): Promise<AccountView | undefined>
  /** With its lots. */
  balance(id: string): Promise<BalanceView | undefined>
  /** `only`: the accounts that the asker may see; absent: all. */
  accounts(filter: Paging & { q?: string | undefined; only?: readonly string[] }): Promise<Page<AccountView>>
  usage(filter: UsageFilter): Promise<Page<ListedCall>>
  /** By `req_<id>`. */
  usageOf(requestId: string): ReturnType<typeof readCall>
  ledger(filter: LedgerFilter): Promise<Page<LedgerView>>
}

/** Sorts after every id. */
const LAST = '~'
export function createStatements(database: Queryable): Statements {
  return {
    async account(id) {
      const [row] = await database.query<AccountRow>(ACCOUNT, [id])
      return row && accountView(row)
    },
    balance: (id) => readBalance(database, id),
    async accounts({ q, only, cursor, limit }) {
      const rows = await database.query<AccountRow>(ACCOUNTS, [cursor ?? LAST, q ?? '', only ?? null, limit + 1])
      return pageOf(rows, limit, accountView)
    },
    usage: (filter) => readCalls(database, filter),
    usageOf: (requestId) => readCall(database, requestId),
    ledger: (filter) => readMovements(database, filter),
  }
}

function pageOf<R extends { id: string }, V>(rows: R[], limit: number, view: (row: R) => V): Page<V> {
  const items = rows.slice(0, limit).map(view)
  return { items, next: rows.length > limit ? (rows[limit - 1]?.id ?? null) : null }
}

interface AccountRow {
  id: string
  name: string
  posted: bigint
  held: bigint
  limits: Limits
  created_at: Date
  status: AccountStatus
  status_reason: string | null
  status_at: Date | null
}

/** What an account may know of itself, at whichever address it is asked for. */
type Facts = 'id' | 'name' | 'balance' | 'held' | 'available' | 'limits'
export function accountFacts(
  row: Pick<AccountRow, 'id' | 'name' | 'posted' | 'held' | 'limits'>,
): Pick<AccountView, Facts> {
  return {
    id: row.id,
    name: row.name,
    balance: formatCredits(row.posted),
    held: formatCredits(row.held),
    available: formatCredits(row.posted - row.held),
    limits: showLimits(row.limits),
  }
}

function accountView(row: AccountRow): AccountView {
  return {
    ...accountFacts(row),
    createdAt: row.created_at.toISOString(),
    status: row.status,
    statusReason: row.status_reason,
    statusAt: row.status_at?.toISOString() ?? null,
  }
}

const ACCOUNT = statement(
  'statement_account',
  `select a.id, a.name, a.posted, ${HELD('a')} as held, a.limits, a.created_at, a.status, a.status_reason, a.status_at from account a where a.id = $1`,
)
// A search is for the text itself: no pattern language, so nothing in it can make the search slow.
const ACCOUNTS = statement(
  'statement_accounts',
  `select a.id, a.name, a.posted, ${HELD('a')} as held, a.limits, a.created_at, a.status, a.status_reason, a.status_at from account a
   where id < $1 and (not ${IS_TEST('id')} or id = $2) and ($2::text = '' or id = $2 or strpos(search, lower($2)) > 0)
     and ($3::text[] is null or id = any($3))
   order by id desc limit $4`,
)
