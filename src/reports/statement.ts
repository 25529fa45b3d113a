// The read side of the money: accounts, what they used, what moved, and how a charge came about.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { FAULTS, isFaultName } from '../kernel/fault.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import type { Page, Paging } from '../kernel/view.ts'
import { idAtTime, timeOfId } from '../kernel/world.ts'
import { type Limits, showLimits } from '../ledger/limits.ts'
import { BYOK } from '../ledger/operation.ts'
import {
  type AccountStatus,
  type AccountView,
  type AttemptLog,
  type LedgerView,
  type UsageDetail,
  type UsageView,
  usageView,
} from '../ledger/views.ts'
import type { ChargeLine } from '../meter/charge.ts'
import { UNITS, type Unit } from '../meter/kind.ts'
import { type LedgerFilter, readMovements } from './movements.ts'
import { HELD } from './overview.ts'

export interface UsageFilter extends Paging {
  readonly account: string
  /** Moments at which calls began; `toMs` is the first moment after. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  readonly product?: string | undefined
  readonly key?: string | undefined
  readonly outcome?: string | undefined
  /** The name of a fault. */
  readonly fault?: string | undefined
  readonly client?: string | undefined
  /** What the list is in the order of; by itself the moment at which calls began. */
  readonly sort?: UsageSort | undefined
  /** The least first. */
  readonly ascending?: boolean | undefined
}

type UsageSort = 'time' | 'duration' | 'charged'

export interface Statements {
  account(id: string): Promise<AccountView | undefined>
  /** `only`: the accounts that the asker may see; absent: all. */
  accounts(filter: Paging & { q?: string | undefined; only?: readonly string[] }): Promise<Page<AccountView>>
  usage(filter: UsageFilter): Promise<Page<UsageView>>
  /** By `req_<id>`. */
  usageOf(requestId: string): Promise<{ account: string; detail: Omit<UsageDetail, 'content' | 'trace'> } | undefined>
  ledger(filter: LedgerFilter): Promise<Page<LedgerView>>
}

/** Sorts after every id. */
const LAST = '~'
/** The most that the columns hold by which a list may be in order. */
const PLACE_MAX = { time: 0n, duration: 2_147_483_647n, charged: 9_223_372_036_854_775_807n }

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
      const { account, product, key, outcome, fault, client, limit, sort = 'time', ascending = false } = filter
      const byId = sort === 'time' && !ascending
      const values = [
        account,
        ...range(byId ? filter : { ...filter, cursor: undefined }),
        product ?? null,
        key ?? null,
        outcome ?? null,
        limit + 1,
        fault ?? null,
        client ?? null,
      ]
      if (byId) return pageOf(await database.query<UsageRow>(USAGE, values), limit, toView)
      const asked = USAGE_SORTED[sort][ascending ? 'asc' : 'desc']
      const rows = await database.query<UsageRow & { place: bigint }>(asked, [...values, ...placeOf(filter)])
      const last = rows.length > limit ? rows[limit - 1] : undefined
      const items = rows.slice(0, limit).map(({ place: _, ...row }) => toView(row as unknown as UsageRow)) // what is left is the row
      return { items, next: last ? `${last.place}_${last.id}` : null }
    },
    async usageOf(requestId) {
      if (!requestId.startsWith('req_')) return undefined
      const [row] = await database.query<UsageRow>(USAGE_ONE, [requestId.slice('req_'.length)])
      return row && { account: row.account_id, detail: usageDetail(row) }
    },
    ledger: (filter) => readMovements(database, filter),
  }
}

/** Ids carry the time, so a range of time is a range of ids. */
function range(filter: {
  cursor?: string | undefined
  fromMs?: number | undefined
  toMs?: number | undefined
}): [before: string, from: string] {
  const { cursor = LAST, fromMs, toMs } = filter
  const to = toMs === undefined ? LAST : idAtTime(toMs)
  return [cursor < to ? cursor : to, fromMs === undefined ? '' : idAtTime(fromMs)]
}

/** After which row a page begins: its place and id, and the id that this means for refusals, whose place is zero. */
function placeOf({
  cursor,
  sort = 'time',
  ascending = false,
}: UsageFilter): [place: string, id: string, refused: string] {
  const [, place, id = ''] = /^(-?\d{1,19})_(.*)$/.exec(cursor ?? '') ?? []
  const most = PLACE_MAX[sort]
  if (place === undefined) return ascending ? ['-1', '', ''] : [String(most), LAST, LAST]
  const at = BigInt(place) > most ? most : BigInt(place) < -1n ? -1n : BigInt(place)
  const isBefore = ascending ? at < 0n : at > 0n
  return [String(at), id, at === 0n ? id : isBefore === ascending ? '' : LAST]
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

type UsageField = Exclude<keyof UsageView, 'id' | 'units'>

/** Each field of the view comes from the column of its name, except these; `units` are made of the lines. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  keyName: 'k.name',
  job: 'j.id',
  fault: `u.attempt_log -> 'fault' ->> 'name'`,
  message: `u.attempt_log -> 'fault' ->> 'message'`,
  calls: '1',
  byok: `u.credential is not distinct from '${BYOK}'`,
  // A zero says that there was none.
  route: 'nullif(u.route, 0)',
  firstByteMs: 'nullif(u.first_byte_ms, 0)',
} satisfies Partial<Record<UsageField, string>>
const USAGE_COLUMNS = Object.keys(usageView.shape)
  .filter((field) => field !== 'id' && field !== 'units')
  .map((field) => [field, ELSEWHERE[field] ?? `u.${toColumn(field)}`] as const)

/** What a refusal has for each field; its columns have the names of usage where it has them. */
const OF_REFUSAL: Readonly<Record<string, string>> = {
  at: 'u.at',
  product: 'u.product',
  endpoint: 'u.endpoint',
  keyId: 'u.key_id',
  keyName: 'k.name',
  outcome: `'refused'`,
  status: 'u.status',
  charged: '0::bigint',
  held: '0::bigint',
  loss: '0::bigint',
  estimated: 'false',
  stream: 'false',
  durationMs: '0',
  firstByteMs: 'null::int',
  route: 'null::smallint',
  job: 'null::text',
  fault: 'u.fault',
  message: 'u.message',
  calls: 'u.count',
  cost: 'null::bigint',
  credential: 'null::text',
  byok: 'false',
  client: `''`,
} satisfies Record<UsageField, string>

function toColumn(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

type UsageRow = Readonly<Record<UsageField, unknown>> & {
  readonly id: string
  readonly account_id: string
  readonly lines: readonly ChargeLine[]
  readonly catalog_version: number | null
  readonly attempt_log: AttemptLog | null
}

function toView({ id, account_id: _, lines, catalog_version: __, attempt_log: ___, ...row }: UsageRow): UsageView {
  const units: Partial<Record<Unit, number>> = {}
  for (const [unit, quantity] of lines) units[unit] = (units[unit] ?? 0) + quantity
  // The tests read every answer by its view, so a column of another type than its field is found.
  const fields = Object.entries(row).map(([name, value]) => [name, shown(value)])
  // Rows are written when a call ends; their ids, by which they are listed, say when it began.
  const at = new Date(timeOfId(id)).toISOString()
  return { id: `req_${id}`, ...(Object.fromEntries(fields) as Omit<UsageView, 'id' | 'units'>), at, units }
}

function shown(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'bigint' ? formatCredits(value) : value
}

/** A refusal has a fault, and nothing else to tell. */
function attemptLogOfRefusal({ outcome, fault: name, status, message }: UsageRow): AttemptLog | null {
  if (outcome !== 'refused' || !isFaultName(name)) return null
  const { code, blame } = FAULTS[name]
  const fault = { name, code, status: Number(status), blame, message: String(message) }
  return { heldMs: null, attempts: [], fault }
}

function usageDetail(row: UsageRow): Omit<UsageDetail, 'content'> {
  const lines = row.lines.map(([unit, quantity, ratePerMillion]) => {
    const rate = BigInt(ratePerMillion)
    const { per } = UNITS[unit]
    return {
      unit,
      quantity,
      rate: formatCredits((rate * BigInt(per)) / 1_000_000n),
      per,
      amount: formatExact(BigInt(quantity) * rate),
    }
  })
  const attemptLog = row.attempt_log ?? attemptLogOfRefusal(row)
  return { ...toView(row), account: row.account_id, lines, catalogVersion: row.catalog_version, attemptLog }
}

/** A line before the rounding: whole millionths of a micro-credit. */
function formatExact(amount: bigint): string {
  const fraction = (amount % 1_000_000_000_000n)
    .toString()
    .padStart(12, '0')
    .replace(/(?<!0)0+$/, '')
  return `${amount / 1_000_000_000_000n}${fraction ? `.${fraction}` : ''}`
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
const SELECTED = USAGE_COLUMNS.map(([name, column]) => `${column} as "${name}"`)
const SELECT_USAGE = `select u.id, u.account_id, u.lines, u.catalog_version, u.attempt_log, ${SELECTED.join(', ')}
   from usage u left join api_key k on k.id = u.key_id left join job j on j.account_id = u.account_id and j.hold_id = u.id`
const SELECT_REFUSALS = `select u.id, u.account_id, '[]'::jsonb as lines, null::int as catalog_version, null::jsonb as attempt_log, ${USAGE_COLUMNS.map(
  ([name]) => `${OF_REFUSAL[name]} as "${name}"`,
).join(', ')}
   from refusal u left join api_key k on k.id = u.key_id`
const CHOSEN = `u.account_id = $1 and u.id < $2 and u.id >= $3 and ($4::text is null or u.product = $4)
     and ($5::text is null or u.key_id = $5) and ($8::text is null or {fault} = $8) and ($9::text is null or {client} = $9)`
// Both by their ids, which are times; a page is made of as many rows of each as it has.
const USAGE = statement(
  'statement_usage',
  `(${SELECT_USAGE} where ${CHOSEN.replace('{fault}', ELSEWHERE.fault ?? '').replace('{client}', 'u.client')} and ($6::text is null or u.outcome = $6) order by u.id desc limit $7)
   union all
   (${SELECT_REFUSALS} where ${CHOSEN.replace('{fault}', 'u.fault').replace('{client}', `''`)} and coalesce($6::text, 'refused') = 'refused' order by u.id desc limit $7)
   order by id desc limit $7`,
)
// By what a call took or cost, and then by its id: a page begins after the last row of the one before. A refusal took and cost nothing.
const PLACES = {
  time: { PLACE: '0', after: (THAN: string) => `u.id ${THAN} $11::text and $10::bigint is not null` },
  duration: { PLACE: 'u.duration_ms', after: (THAN: string) => `(u.duration_ms, u.id) ${THAN} ($10::int, $11::text)` },
  charged: { PLACE: 'u.charged', after: (THAN: string) => `(u.charged, u.id) ${THAN} ($10::bigint, $11::text)` },
} satisfies Record<UsageSort, unknown>
function sorted(sort: UsageSort, DESC: boolean) {
  const { PLACE, after } = PLACES[sort]
  const [WAY, THAN] = DESC ? ['desc', '<'] : ['asc', '>']
  const BY = sort === 'time' ? `u.id ${WAY}` : `${PLACE} ${WAY}, u.id ${WAY}`
  const used = `(${SELECT_USAGE.replace('select ', `select ${PLACE}::bigint as place, `)}
     where ${CHOSEN.replace('{fault}', ELSEWHERE.fault ?? '').replace('{client}', 'u.client')} and ($6::text is null or u.outcome = $6)
       and ${after(THAN)} order by ${BY} limit $7)`
  const refused = `(${SELECT_REFUSALS.replace('select ', 'select 0::bigint as place, ')}
     where ${CHOSEN.replace('{fault}', 'u.fault').replace('{client}', `''`)} and coalesce($6::text, 'refused') = 'refused'
       and u.id ${THAN} $12::text order by u.id ${WAY} limit $7)`
  return statement(
    `statement_usage_${sort}_${WAY}`,
    `${used} union all ${refused} order by place ${WAY}, id ${WAY} limit $7`,
  )
}
const USAGE_SORTED = {
  time: { desc: USAGE, asc: sorted('time', false) },
  duration: { desc: sorted('duration', true), asc: sorted('duration', false) },
  charged: { desc: sorted('charged', true), asc: sorted('charged', false) },
} satisfies Record<UsageSort, unknown>
const USAGE_ONE = statement(
  'statement_usage_one',
  `(${SELECT_USAGE} where u.id = $1) union all (${SELECT_REFUSALS} where u.id = $1) limit 1`,
)
