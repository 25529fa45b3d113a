// The read side of the money: accounts, what they used, what moved, and how a charge came about.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { idAtTime } from '../kernel/world.ts'
import { type ChargeLine, PER_MILLION } from '../meter/charge.ts'
import type { Unit } from '../meter/usage.ts'
import { type Limits, type ShownLimits, showLimits } from './limits.ts'

export interface Page<T> {
  readonly items: T[]
  /** The cursor of the next page; null at the end. */
  readonly next: string | null
}

export interface Paging {
  readonly cursor?: string | undefined
  readonly limit: number
}

export interface AccountView {
  readonly id: string
  readonly name: string
  readonly balance: string
  readonly held: string
  readonly available: string
  readonly limits: ShownLimits
  readonly createdAt: string
}

export interface UsageFilter extends Paging {
  readonly account: string
  /** Moments at which calls began; `toMs` is the first moment after. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  readonly product?: string | undefined
  readonly key?: string | undefined
  readonly outcome?: string | undefined
}

export interface UsageView {
  readonly id: string
  readonly at: string
  readonly product: string
  readonly door: string
  readonly keyId: string
  readonly keyName: string | null
  readonly outcome: string
  readonly status: number
  readonly charged: string
  readonly held: string
  readonly loss: string
  readonly units: Partial<Record<Unit, number>>
  readonly estimated: boolean
  readonly stream: boolean
  readonly durationMs: number
  readonly firstByteMs: number
  readonly route: number
  readonly job: string | null
}

export interface UsageDetail extends UsageView {
  readonly lines: Array<{ unit: Unit; quantity: number; rate: string; per: number; amount: string }>
  readonly catalogVersion: number
}

export interface LedgerFilter extends Paging {
  readonly account: string
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  readonly kind?: string | undefined
  /** Whether rows carry the balance after them. It costs a sum over everything newer than the page. */
  readonly balances: boolean
}

export interface LedgerView {
  readonly id: string
  readonly at: string
  readonly kind: string
  readonly amount: string
  readonly loss: string
  /** Never in a list of one kind: what lies between its rows is not in it. */
  readonly balanceAfter?: string
  readonly requestId: string | null
  readonly product: string | null
  readonly note: string | null
  readonly actor: string | null
}

export interface Statements {
  account(id: string): Promise<AccountView | undefined>
  /** `only`: the accounts that the asker may see; absent: all. */
  accounts(filter: Paging & { q?: string | undefined; only?: readonly string[] }): Promise<Page<AccountView>>
  usage(filter: UsageFilter): Promise<Page<UsageView>>
  /** By `req_<id>`. */
  usageOf(requestId: string): Promise<{ account: string; detail: UsageDetail } | undefined>
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
    async accounts({ q, only, cursor, limit }) {
      const rows = await database.query<AccountRow>(ACCOUNTS, [cursor ?? LAST, q ?? '', only ?? null, limit + 1])
      return pageOf(rows, limit, accountView)
    },
    async usage(filter) {
      const { account, product, key, outcome, limit } = filter
      const values = [account, ...range(filter), product ?? null, key ?? null, outcome ?? null, limit + 1]
      return pageOf(await database.query<UsageRow>(USAGE, values as string[]), limit, usageView)
    },
    async usageOf(requestId) {
      if (!requestId.startsWith('req_')) return undefined
      const [row] = await database.query<UsageRow>(USAGE_ONE, [requestId.slice('req_'.length)])
      return row && { account: row.account_id, detail: usageDetail(row) }
    },
    async ledger(filter) {
      const { account, kind, limit } = filter
      const balances = filter.balances && kind === undefined
      const rows = await database.query<TransferRow>(LEDGER, [
        account,
        ...range(filter),
        kind ?? null,
        limit + 1,
        balances,
      ] as string[])
      // Newest first: each row's balance is that of the row above it, less what that one moved.
      let balance = rows[0]?.top_balance ?? 0n
      return pageOf(rows, limit, (row) => {
        const view = ledgerView(row, balances ? balance : undefined)
        balance -= row.moved
        return view
      })
    },
  }
}

/** Ids carry the time, so a range of time is a range of ids. */
function range(filter: { cursor?: string | undefined; fromMs?: number | undefined; toMs?: number | undefined }) {
  const to = filter.toMs === undefined ? LAST : idAtTime(filter.toMs)
  const [before] = [filter.cursor ?? LAST, to].sort()
  return [before, filter.fromMs === undefined ? '' : idAtTime(filter.fromMs)]
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
}

function accountView(row: AccountRow): AccountView {
  return {
    id: row.id,
    name: row.name,
    balance: formatCredits(row.posted),
    held: formatCredits(row.held),
    available: formatCredits(row.posted - row.held),
    limits: showLimits(row.limits),
    createdAt: row.created_at.toISOString(),
  }
}

interface UsageRow {
  id: string
  account_id: string
  at: Date
  product: string
  door: string
  key_id: string
  key_name: string | null
  outcome: string
  status: number
  charged: bigint
  held: bigint
  loss: bigint
  lines: ChargeLine[]
  estimated: boolean
  stream: boolean
  duration_ms: number
  first_byte_ms: number
  route: number
  job: string | null
  catalog_version: number
}

function usageView(row: UsageRow): UsageView {
  const units: Partial<Record<Unit, number>> = {}
  for (const [unit, quantity] of row.lines) units[unit] = (units[unit] ?? 0) + quantity
  return {
    id: `req_${row.id}`,
    at: row.at.toISOString(),
    product: row.product,
    door: row.door,
    keyId: row.key_id,
    keyName: row.key_name,
    outcome: row.outcome,
    status: row.status,
    charged: formatCredits(row.charged),
    held: formatCredits(row.held),
    loss: formatCredits(row.loss),
    units,
    estimated: row.estimated,
    stream: row.stream,
    durationMs: row.duration_ms,
    firstByteMs: row.first_byte_ms,
    route: row.route,
    job: row.job,
  }
}

function usageDetail(row: UsageRow): UsageDetail {
  const lines = row.lines.map(([unit, quantity, ratePerMillion]) => {
    const rate = BigInt(ratePerMillion)
    const perMillion = PER_MILLION.has(unit)
    return {
      unit,
      quantity,
      rate: formatCredits(perMillion ? rate : rate / 1_000_000n),
      per: perMillion ? 1_000_000 : 1,
      amount: formatExact(BigInt(quantity) * rate),
    }
  })
  return { ...usageView(row), lines, catalogVersion: row.catalog_version }
}

/** A line before the rounding: whole millionths of a micro-credit. */
function formatExact(amount: bigint): string {
  const fraction = (amount % 1_000_000_000_000n)
    .toString()
    .padStart(12, '0')
    .replace(/(?<!0)0+$/, '')
  return `${amount / 1_000_000_000_000n}${fraction ? `.${fraction}` : ''}`
}

interface TransferRow {
  id: string
  at: Date
  kind: string
  amount: bigint
  loss: bigint
  note: string | null
  actor: string | null
  product: string | null
  moved: bigint
  top_balance: bigint
}

function ledgerView(row: TransferRow, balance: bigint | undefined): LedgerView {
  const ofCall = row.kind !== 'grant' && row.kind !== 'takeback'
  return {
    id: row.id,
    at: row.at.toISOString(),
    kind: row.kind,
    amount: formatCredits(row.amount),
    loss: formatCredits(row.loss),
    ...(balance === undefined ? {} : { balanceAfter: formatCredits(balance) }),
    requestId: ofCall ? `req_${row.id}` : null,
    product: row.product,
    note: row.note,
    actor: row.actor,
  }
}

const ACCOUNT = statement(
  'statement_account',
  'select id, name, posted, held, limits, created_at from account where id = $1',
)
// A search is for the text itself: no pattern language, so nothing in it can make the search slow.
const ACCOUNTS = statement(
  'statement_accounts',
  `select id, name, posted, held, limits, created_at from account
   where id < $1 and ($2::text = '' or id = $2 or strpos(search, lower($2)) > 0)
     and ($3::text[] is null or id = any($3))
   order by id desc limit $4`,
)
const USAGE_COLUMNS = `select u.id, u.account_id, u.at, u.product, u.door, u.key_id, k.name as key_name, u.outcome, u.status,
     u.charged, u.held, u.loss, u.lines, u.estimated, u.stream, u.duration_ms, u.first_byte_ms, u.route, j.id as job, u.catalog_version
   from usage u left join api_key k on k.id = u.key_id left join job j on j.hold_id = u.id`
const USAGE = statement(
  'statement_usage',
  `${USAGE_COLUMNS}
   where u.account_id = $1 and u.id < $2 and u.id >= $3 and ($4::text is null or u.product = $4)
     and ($5::text is null or u.key_id = $5) and ($6::text is null or u.outcome = $6)
   order by u.id desc limit $7`,
)
const USAGE_ONE = statement('statement_usage_one', `${USAGE_COLUMNS} where u.id = $1`)
// The balance after the newest row of the page is today's, less everything that moved since.
const LEDGER = statement(
  'statement_ledger',
  `with signed as not materialized (
     select *, case kind when 'grant' then amount when 'takeback' then -amount when 'settled' then -amount else 0 end as moved
     from transfer where account_id = $1
   ), page as (
     select * from signed where id < $2 and id >= $3 and ($4::text is null or kind = $4) order by id desc limit $5
   ), newer as (
     select coalesce(sum(moved), 0)::bigint as moved from signed where $6 and id > (select max(id) from page)
   )
   select p.id, p.at, p.kind, p.amount, p.loss, p.note, p.actor, p.moved, u.product, a.posted - n.moved as top_balance
   from page p cross join newer n join account a on a.id = $1 left join usage u on u.id = p.id
   order by p.id desc`,
)
