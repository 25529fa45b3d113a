// Which calls are meant: one filter for lists, sums, latencies and CSV files, so that they are always about the same calls. Conditions are put
// together from constants, each only where it is asked for, so that the planner sees what a question is about; what callers give are values.
import type { Value } from '../database/database.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import { idAtTime } from '../kernel/world.ts'

export interface CallFilter {
  /** Absent: the calls of all accounts. */
  readonly account?: string | undefined
  /** Of all accounts: those for tests instead of the others. */
  readonly test?: boolean | undefined
  /** Moments at which calls began; `toMs` is the first moment after. */
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  readonly product?: string | undefined
  readonly key?: string | undefined
  readonly endpoint?: string | undefined
  /** Who answered, or was tried last. */
  readonly vendor?: string | undefined
  readonly client?: string | undefined
  /** Calls that carry all of these. */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** Of the ledger; or `succeeded` and `failed` by their status, of those that were not rejected. */
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

/** What the hourly sums know. */
const SUMMED = new Set<string>(['account', 'test', 'fromMs', 'toMs', 'product', 'key'])

export function isSummedByTheHour(filter: CallFilter): boolean {
  return Object.entries(filter).every(([name, value]) => value === undefined || SUMMED.has(name))
}

/** What the indexes of calls find. Every other condition is checked row by row. */
const INDEXED = new Set<string>(['account', 'fromMs', 'toMs'])
const isRequestId = (q: string) => q.startsWith('req_')

/** `isSorted`: by duration or charge, which are indexed within an account. */
export function isIndexed(filter: CallFilter, isSorted: boolean): boolean {
  if (filter.q !== undefined && isRequestId(filter.q)) return true
  if (isSorted && filter.account === undefined) return false
  return Object.entries(filter).every(([name, value]) => value === undefined || INDEXED.has(name))
}

/** Values of a statement, each put in as its place. */
export class Values {
  readonly list: Value[] = []

  put(value: Value): string {
    return `$${this.list.push(value)}`
  }
}

/** Where a table that is `u` has what is asked for. */
type Columns = Readonly<
  Record<'outcome' | 'status' | 'charged' | 'duration' | 'vendor' | 'client' | 'labels' | 'fault' | 'message', string>
>

export const USAGE_FAULT = `u.attempt_log -> 'fault' ->> 'name'`
export const USAGE_MESSAGE = `u.attempt_log -> 'fault' ->> 'message'`

export const USAGE: Columns = {
  outcome: 'u.outcome',
  status: 'u.status',
  charged: 'u.charged',
  duration: 'u.duration_ms',
  vendor: 'u.vendor',
  client: 'u.client',
  labels: 'u.labels',
  fault: `(${USAGE_FAULT})`,
  message: `(${USAGE_MESSAGE})`,
}

/** Rejected before anything was held: it cost nothing, took no time and reached nobody. */
export const REFUSAL: Columns = {
  outcome: `'refused'::text`,
  status: 'u.status',
  charged: '0::bigint',
  duration: '0',
  vendor: 'null::text',
  client: `''::text`,
  labels: 'null::jsonb',
  fault: 'u.fault',
  message: 'u.message',
}

/** Whether the table can have any of them: what cannot is not read. */
export const mayBeRefused = ({ outcome }: CallFilter) => outcome === undefined || outcome === 'refused'
export const mayBeUsage = ({ outcome }: CallFilter) => outcome !== 'refused'

/** The condition for rows of a table. */
export function whereOf(filter: CallFilter, columns: Columns, values: Values): string {
  return [...scopeOf(filter, values), ...detailsOf(filter, columns, values)].join(' and ')
}

/** Whose calls, and when: ids carry the time, so a range of time is a range of ids. */
function scopeOf({ account, test, fromMs, toMs }: CallFilter, values: Values): string[] {
  return [
    account === undefined
      ? `${test ? '' : 'not '}${IS_TEST('u.account_id')}`
      : `u.account_id = ${values.put(account)}::text`,
    ...(fromMs === undefined ? [] : [`u.id >= ${values.put(idAtTime(fromMs))}::text`]),
    ...(toMs === undefined ? [] : [`u.id < ${values.put(idAtTime(toMs))}::text`]),
  ]
}

/** What the hourly sums know besides whose they are, and when. */
export function chosenOf({ product, key }: CallFilter, values: Values): string[] {
  return [
    ...(product === undefined ? [] : [`u.product = ${values.put(product)}::text`]),
    ...(key === undefined ? [] : [`u.key_id = ${values.put(key)}::text`]),
  ]
}

function detailsOf(filter: CallFilter, columns: Columns, values: Values): string[] {
  const { endpoint, vendor, client, labels, outcome, status, fault, durationMsMin, chargedMin, q } = filter
  const equal = (column: string, value: string | undefined) =>
    value === undefined ? [] : [`${column} = ${values.put(value)}::text`]
  return [
    ...chosenOf(filter, values),
    ...equal('u.endpoint', endpoint),
    ...equal(columns.vendor, vendor),
    ...equal(columns.client, client),
    ...(labels === undefined ? [] : [`${columns.labels} @> ${values.put(JSON.stringify(labels))}::jsonb`]),
    ...equal(columns.fault, fault),
    ...(outcome === 'failed' || outcome === 'succeeded'
      ? [`${columns.status} ${outcome === 'failed' ? '>=' : '<'} 400`]
      : equal(columns.outcome, outcome)),
    ...(status === undefined ? [] : [statusIs(columns.status, status, values)]),
    ...(durationMsMin === undefined ? [] : [`${columns.duration} >= ${values.put(durationMsMin)}::int`]),
    ...(chargedMin === undefined ? [] : [`${columns.charged} >= ${values.put(String(chargedMin))}::bigint`]),
    ...(q === undefined ? [] : [holds(columns, q, values)]),
  ]
}

function statusIs(column: string, status: string, values: Values): string {
  if (!status.endsWith('xx')) return `${column} = ${values.put(Number(status))}::int`
  const from = Number(status.charAt(0)) * 100
  return `${column} between ${values.put(from)}::int and ${values.put(from + 99)}::int`
}

/** What is sought is the text itself, and no pattern. Capitals are compared as ASCII has them: by a language's rules it takes five times as long. */
function holds({ fault, message, client }: Columns, q: string, values: Values): string {
  if (isRequestId(q)) return `u.id = ${values.put(q.slice('req_'.length))}::text`
  const sought = values.put(q.toLowerCase())
  const told = [message, fault, client, 'u.product', 'u.endpoint']
  return `(${told.map((column) => `strpos(lower(${column} collate "C"), ${sought}::text) > 0`).join(' or ')})`
}
