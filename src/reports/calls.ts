// Single calls: pages in any order, and one call with the computation of its charge. Calls that were rejected before
// credits were held are in a table of their own, and are listed among the others.
import { type Queryable, sql } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { FAULTS, isFaultName } from '../kernel/fault.ts'
import type { Page, Paging } from '../kernel/view.ts'
import { timeOfId } from '../kernel/world.ts'
import { BYOK } from '../ledger/operation.ts'
import { type AttemptLog, type UsageDetail, type UsageView, usageView } from '../ledger/views.ts'
import type { ChargeLine } from '../meter/charge.ts'
import { UNITS, type Unit } from '../meter/kind.ts'
import { type Dialect, USAGE_FAULT, USAGE_MESSAGE, Values } from './dialect.ts'

export interface UsageFilter extends CallFilter, Paging {
  /** The order of the list; by default the start of the calls. */
  readonly sort?: UsageSort | undefined
  /** The smallest first. */
  readonly ascending?: boolean | undefined
}

type UsageSort = 'time' | 'duration' | 'charged'

/** The call with its account. */
export type ListedCall = UsageView & { account: string }
type KnownDetail = Omit<UsageDetail, 'content' | 'trace'>

/** Sorts after every id. */
const LAST = '~'
/** The sort column, and its maximum value. */
const PLACES = {
  time: { COLUMN: '0', most: 0n },
  duration: { COLUMN: 'u.duration_ms', most: 2_147_483_647n },
  charged: { COLUMN: 'u.charged', most: 9_223_372_036_854_775_807n },
} satisfies Record<UsageSort, unknown>

/** A page starts after the last row of the previous one: by the sort column, then by id. */
export async function readCalls(database: Queryable, filter: UsageFilter): Promise<Page<ListedCall>> {
  const { limit, sort = 'time', ascending = false } = filter
  const values = new Values()
  const COUNT = values.put(limit + 1)
  const WAY = ascending ? 'asc' : 'desc'
  const parts = [
    ...(mayBeUsage(filter) ? [usagePart(filter, values, COUNT)] : []),
    ...(mayBeRefused(filter) ? [refusalPart(filter, values, COUNT)] : []),
  ]
  const ARMS = parts.join(' union all ')
  const text = `select x.* from (${ARMS}) x order by x.place ${WAY}, x.id ${WAY} limit ${COUNT}`
  const rows = await database.query<UsageRow & { place: bigint }>({ text }, values.list)
  const last = rows.length > limit ? rows[limit - 1] : undefined
  return {
    items: rows
      .slice(0, limit)
      .map(({ place: _, ...row }) => ({ ...toView(row as unknown as UsageRow), account: row.account_id })), // what is left is the row
    next: last ? (sort === 'time' && !ascending ? last.id : `${last.place}_${last.id}`) : null,
  }
}

function usagePart(filter: UsageFilter, values: Values, COUNT: string): string {
  const { sort = 'time', ascending = false } = filter
  const { COLUMN } = PLACES[sort]
  const [WAY, THAN] = ascending ? ['asc', '>'] : ['desc', '<']
  const after = placeOf(filter)
  const WHERE = whereOf(filter, usageColumns(values), values)
  const AFTER =
    after === undefined
      ? 'true'
      : sort === 'time'
        ? `u.id ${THAN} ${values.put(after.id)}::text`
        : `(${COLUMN}, u.id) ${THAN} (${values.put(String(after.place))}::bigint, ${values.put(after.id)}::text)`
  const BY = sort === 'time' ? `u.id ${WAY}` : `${COLUMN} ${WAY}, u.id ${WAY}`
  // The rows are selected first and joined then. Otherwise the join would run for every row of the range.
  return `(select u.place, ${USAGE_FIELDS}
    from (select ${COLUMN}::bigint as place, u.* from usage u where ${WHERE} and ${AFTER} order by ${BY} limit ${COUNT}) u ${OF_USAGE})`
}

/** Rejected calls have duration and charge zero, so all of them have the same sort value. */
function refusalPart(filter: UsageFilter, values: Values, COUNT: string): string {
  const [WAY, THAN] = filter.ascending ? ['asc', '>'] : ['desc', '<']
  const after = placeOf(filter)
  const WHERE = whereOf(filter, REFUSAL, values)
  const AFTER = after === undefined ? 'true' : `u.id ${THAN} ${values.put(after.refused)}::text`
  return `(select 0::bigint as place, ${REFUSAL_FIELDS}
    from (select u.* from refusal u where ${WHERE} and ${AFTER} order by u.id ${WAY} limit ${COUNT}) u ${OF_REFUSED})`
}

/**
 * The row after which a page starts: its sort value and id; and the id after which rejected calls start, whose sort
 * value is zero.
 */
function placeOf({ cursor, sort = 'time', ascending = false }: UsageFilter) {
  if (cursor === undefined) return undefined
  const [, place, id = ''] = /^(-?\d{1,19})_(.*)$/.exec(cursor) ?? []
  const { most } = PLACES[sort]
  if (place === undefined) return sort === 'time' && !ascending ? { place: 0n, id: cursor, refused: cursor } : undefined
  const at = BigInt(place) > most ? most : BigInt(place) < -1n ? -1n : BigInt(place)
  const isBefore = ascending ? at < 0n : at > 0n
  return { place: at, id, refused: at === 0n ? id : isBefore === ascending ? '' : LAST }
}

/** By `req_<id>`. */
export async function readCall(
  database: Queryable,
  requestId: string,
): Promise<{ account: string; detail: KnownDetail } | undefined> {
  if (!requestId.startsWith('req_')) return undefined
  const [row] = await database.query<UsageRow>(ONE, [requestId.slice('req_'.length)])
  return row && { account: row.account_id, detail: usageDetail(row) }
}

type UsageField = Exclude<keyof UsageView, 'id' | 'units'>

/** The key's name with its last characters, because a rotated key has the same name as its successor. */
export const KEY_NAME = `case when exists (select 1 from api_key o where o.account_id = k.account_id and o.name = k.name and o.id <> k.id)
     then k.name || ' (…' || k.last4 || ')' else k.name end`

/** Each field of the view is the column of the same name, except these; `units` are computed from the lines. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  keyName: KEY_NAME,
  job: 'j.id',
  fault: USAGE_FAULT,
  message: USAGE_MESSAGE,
  calls: '1',
  byok: `u.credential is not distinct from '${BYOK}'`,
  // Zero means that there was none.
  route: 'nullif(u.route, 0)',
  firstByteMs: 'nullif(u.first_byte_ms, 0)',
} satisfies Partial<Record<UsageField, string>>
const FIELDS = Object.keys(usageView.shape).filter((field) => field !== 'id' && field !== 'units')

/** The fields of a rejected call; columns that it has are named like those of usage. */
const OF_REFUSAL: Readonly<Record<string, string>> = {
  at: 'u.at',
  product: 'u.product',
  endpoint: 'u.endpoint',
  keyId: 'u.key_id',
  keyName: KEY_NAME,
  outcome: `'rejected'`,
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
  vendor: 'null::text',
  labels: 'null::jsonb',
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
  // The tests parse every answer with its view, so they find a column with a wrong type.
  const fields = Object.entries(row).map(([name, value]) => [name, memberView(value)])
  // Rows are written when a call ends. Their ids contain the time of the start, by which they are listed.
  const at = new Date(timeOfId(id)).toISOString()
  return { id: `req_${id}`, ...(Object.fromEntries(fields) as Omit<UsageView, 'id' | 'units'>), at, units }
}

function memberView(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'bigint' ? formatCredits(value) : value
}

/** The attempt log of a rejected call has only its fault. */
function attemptLogOfRefusal({ outcome, fault: name, status, message }: UsageRow): AttemptLog | null {
  if (outcome !== 'rejected' || !isFaultName(name)) return null
  const { code, blame } = FAULTS[name]
  const fault = { name, code, status: Number(status), blame, message: String(message) }
  return { heldMs: null, attempts: [], fault }
}

function usageDetail(row: UsageRow): KnownDetail {
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

/** A line before rounding, in millionths of a micro-credit. */
function formatExact(amount: bigint): string {
  const fraction = (amount % 1_000_000_000_000n)
    .toString()
    .padStart(12, '0')
    .replace(/(?<!0)0+$/, '')
  return `${amount / 1_000_000_000_000n}${fraction ? `.${fraction}` : ''}`
}

const SELECTED = FIELDS.map((field) => `${ELSEWHERE[field] ?? `u.${toColumn(field)}`} as "${field}"`)
const USAGE_FIELDS = `u.id, u.account_id, u.lines, u.catalog_version, u.attempt_log, ${SELECTED.join(', ')}`
const OF_USAGE =
  'left join api_key k on k.id = u.key_id left join job j on j.account_id = u.account_id and j.hold_id = u.id'
const SELECTED_REFUSED = FIELDS.map((field) => `${OF_REFUSAL[field]} as "${field}"`)
const REFUSAL_FIELDS = `u.id, u.account_id, '[]'::jsonb as lines, null::int as catalog_version, null::jsonb as attempt_log, ${SELECTED_REFUSED.join(', ')}`
const OF_REFUSED = 'left join api_key k on k.id = u.key_id'
const ONE = sql('call_one')`(select ${USAGE_FIELDS} from usage u ${OF_USAGE} where u.id = $1)
   union all (select ${REFUSAL_FIELDS} from refusal u ${OF_REFUSED} where u.id = $1) limit 1`

// The filter of calls, which lists, sums, latencies and CSV files share, so that they are about the same calls. The SQL
// is built from constants, with only the conditions that are used, so that the planner can choose an index; input is
// passed as parameters.

export interface CallFilter {
  /** Absent: the calls of all accounts. */
  readonly account?: string | undefined
  /** If all accounts are meant: only test accounts, instead of only others. */
  readonly test?: boolean | undefined
  /** The range of times at which calls started; `toMs` is exclusive. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  readonly product?: string | undefined
  readonly key?: string | undefined
  readonly endpoint?: string | undefined
  /** The vendor that answered, or was tried last. */
  readonly vendor?: string | undefined
  readonly client?: string | undefined
  /** Calls with all of these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** An outcome of the ledger; or `succeeded` and `failed`, by the status of calls that were not rejected. */
  readonly outcome?: string | undefined
  /** `429`, or `4xx`. */
  readonly status?: string | undefined
  /** The name of a fault. */
  readonly fault?: string | undefined
  readonly durationMsMin?: number | undefined
  readonly chargedMin?: bigint | undefined
  /** A request id, or a part of an error message, a fault, a model, an endpoint or an agent's name. */
  readonly q?: string | undefined
}

/** Filters that the hourly sums can answer. */
const SUMMED = new Set<string>(['account', 'test', 'fromMs', 'toMs', 'product', 'key'])

export function isSummedByTheHour(filter: CallFilter): boolean {
  return Object.entries(filter).every(([name, value]) => value === undefined || SUMMED.has(name))
}

/** Filters with an index. Every other condition is checked row by row. */
const INDEXED = new Set<string>(['account', 'fromMs', 'toMs'])
const isRequestId = (q: string) => q.startsWith('req_')

/** `isSorted`: by duration or charge, which are indexed within an account. */
export function isIndexed(filter: CallFilter, isSorted: boolean): boolean {
  if (filter.q !== undefined && isRequestId(filter.q)) return true
  if (isSorted && filter.account === undefined) return false
  return Object.entries(filter).every(([name, value]) => value === undefined || INDEXED.has(name))
}

/** The expressions of the filter for a table with the alias `u`. */
type Columns = Readonly<
  Record<'outcome' | 'status' | 'charged' | 'duration' | 'vendor' | 'client' | 'fault' | 'message', string>
>

export const usageColumns = ({ fault, message }: Dialect): Columns => ({
  outcome: 'u.outcome',
  status: 'u.status',
  charged: 'u.charged',
  duration: 'u.duration_ms',
  vendor: 'u.vendor',
  client: 'u.client',
  fault: `(${fault})`,
  message: `(${message})`,
})

/** Rejected calls have no charge, no duration and no vendor. */
export const REFUSAL: Columns = {
  outcome: `'rejected'::text`,
  status: 'u.status',
  charged: '0::bigint',
  duration: '0',
  vendor: 'null::text',
  client: `''::text`,
  fault: 'u.fault',
  message: 'u.message',
}

/** Whether the filter can match rows of the table; otherwise it is not read. */
export const mayBeRefused = ({ outcome }: CallFilter) => outcome === undefined || outcome === 'rejected'
export const mayBeUsage = ({ outcome }: CallFilter) => outcome !== 'rejected'

/** The condition for rows of a table. */
export function whereOf(filter: CallFilter, columns: Columns, dialect: Dialect): string {
  return [...scopeOf(filter, dialect), ...detailsOf(filter, columns, dialect)].join(' and ')
}

/** Conditions for account and time. */
function scopeOf({ account, test, fromMs, toMs }: CallFilter, dialect: Dialect): string[] {
  return [
    account === undefined ? `${test ? '' : 'not '}${dialect.IS_TEST}` : `u.account_id = ${dialect.text(account)}`,
    ...(fromMs === undefined ? [] : [dialect.since(fromMs)]),
    ...(toMs === undefined ? [] : [dialect.before(toMs)]),
  ]
}

/** Conditions of the hourly sums, besides account and time. */
export function chosenOf({ product, key }: CallFilter, dialect: Dialect): string[] {
  return [
    ...(product === undefined ? [] : [`u.product = ${dialect.text(product)}`]),
    ...(key === undefined ? [] : [`u.key_id = ${dialect.text(key)}`]),
  ]
}

function detailsOf(filter: CallFilter, columns: Columns, dialect: Dialect): string[] {
  const { endpoint, vendor, client, labels, outcome, status, fault, durationMsMin, chargedMin, q } = filter
  const equal = (column: string, value: string | undefined) =>
    value === undefined ? [] : [`${column} = ${dialect.text(value)}`]
  return [
    ...chosenOf(filter, dialect),
    ...equal('u.endpoint', endpoint),
    ...equal(columns.vendor, vendor),
    ...equal(columns.client, client),
    ...(labels === undefined ? [] : [columns === REFUSAL ? 'false' : dialect.hasLabels(labels)]),
    ...equal(columns.fault, fault),
    ...(outcome === 'failed' || outcome === 'succeeded'
      ? [`${columns.status} ${outcome === 'failed' ? '>=' : '<'} 400`]
      : equal(columns.outcome, outcome)),
    ...(status === undefined ? [] : [statusIs(columns.status, status, dialect)]),
    ...(durationMsMin === undefined ? [] : [`${columns.duration} >= ${dialect.whole(durationMsMin)}`]),
    ...(chargedMin === undefined ? [] : [`${columns.charged} >= ${dialect.whole(chargedMin)}`]),
    ...(q === undefined ? [] : [holds(columns, q, dialect)]),
  ]
}

function statusIs(column: string, status: string, dialect: Dialect): string {
  if (!status.endsWith('xx')) return `${column} = ${dialect.whole(Number(status))}`
  const from = Number(status.charAt(0)) * 100
  return `${column} between ${dialect.whole(from)} and ${dialect.whole(from + 99)}`
}

/** Searches for the literal text, not for a pattern. */
function holds({ fault, message, client }: Columns, q: string, dialect: Dialect): string {
  if (isRequestId(q)) return `u.id = ${dialect.text(q.slice('req_'.length))}`
  const sought = dialect.text(q.toLowerCase())
  const told = [message, fault, client, 'u.product', 'u.endpoint']
  return `(${told.map((column) => dialect.contains(column, sought)).join(' or ')})`
}
