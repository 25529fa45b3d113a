// Totals of calls over time, and their latencies. If the filter allows it, the hourly sums are read, whose cost does
// not grow with the number of calls; otherwise single calls, by their start.
import { type Database, type Queryable, statement } from '../database/database.ts'
import { DAY_MS, formatDay } from '../kernel/calendar.ts'
import { formatCredits } from '../kernel/credits.ts'
import { invalid } from '../kernel/fault.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import { asView } from '../kernel/view.ts'
import { idAtTime, timeOfId } from '../kernel/world.ts'
import { LABEL_DAYS, TOKENS } from '../ledger/usage-sums.ts'
import {
  type CallFilter,
  chosenOf,
  isSummedByTheHour,
  KEY_NAME,
  mayBeRefused,
  mayBeUsage,
  REFUSAL,
  USAGE,
  Values,
  whereOf,
} from './calls.ts'
import {
  type Grouping,
  type LabelSort,
  type LabelSum,
  type LabelSums,
  type LatencyPoint,
  labelSum,
  type Step,
  type SumRow,
  type UsageLatency,
  type UsageSums,
} from './views.ts'

export interface SumsFilter extends CallFilter {
  readonly fromMs: number
  readonly toMs: number
}

export interface SumsOrder {
  readonly by: Grouping
  readonly per: Step
  /** The time zone of days and hours. */
  readonly zone: string
  /** Also returns the totals of the previous period of the same length. */
  readonly compare?: boolean | undefined
}

interface Summed {
  requests: bigint
  errors: bigint
  rejected: bigint
  charged: bigint
  duration_ms: bigint
  input_tokens: bigint | null
  output_tokens: bigint | null
}
interface SummedRow extends Summed {
  /** From 1. */
  step: number
  group: string
}

/**
 * The maximum of rows: steps times groups. A part of the rows would give wrong sums, so a larger request is rejected.
 */
const ROWS_MAX = 100_000
/** The number of calls from which percentiles are computed, the newest first. */
const TIMED_MAX = 100_000
const HOUR_MS = 3_600_000
/** The longest range for single calls. */
export const CALLS_DAYS_MAX = 92

const NONE: Summed = {
  requests: 0n,
  errors: 0n,
  rejected: 0n,
  charged: 0n,
  duration_ms: 0n,
  input_tokens: 0n,
  output_tokens: 0n,
}
const plus = (a: bigint | null, b: bigint | null) => (a === null || b === null ? null : a + b)

function added(a: Summed, b: Summed): Summed {
  return {
    requests: a.requests + b.requests,
    errors: a.errors + b.errors,
    rejected: a.rejected + b.rejected,
    charged: a.charged + b.charged,
    duration_ms: a.duration_ms + b.duration_ms,
    input_tokens: plus(a.input_tokens, b.input_tokens),
    output_tokens: plus(a.output_tokens, b.output_tokens),
  }
}

const shownSums = ({ requests, errors, rejected, charged }: Summed) => ({
  requests: Number(requests),
  errors: Number(errors),
  rejected: Number(rejected),
  charged: formatCredits(charged),
})

export async function readSums(database: Database, filter: SumsFilter, order: SumsOrder): Promise<UsageSums> {
  const { fromMs, toMs } = filter
  const { by, per, zone } = order
  const steps = await readSteps(database, filter, order)
  const earlier = periodBefore(filter)
  const [rows, before] = await Promise.all([
    readRows(database, filter, { by, steps }),
    order.compare ? readRows(database, earlier, { by: 'none', steps: [new Date(earlier.fromMs)] }) : undefined,
  ])
  const groups = new Map<string, Summed>()
  const points = new Map<string, SummedRow>()
  for (const row of rows) {
    groups.set(row.group, added(groups.get(row.group) ?? NONE, row))
    const place = `${row.step} ${row.group}`
    points.set(place, { ...row, ...added(points.get(place) ?? NONE, row) })
  }
  const names = await readNames(database, by, [...groups.keys()])
  const named = (group: string) => ({ group, name: names.get(group) ?? null })
  return {
    by,
    per,
    zone,
    steps: steps.map((at) => at.toISOString()),
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    totals: totalsOf(rows),
    ...(before ? { previous: totalsOf(before) } : {}),
    groups: [...groups]
      .sort(([, a], [, b]) => Number(b.charged - a.charged) || Number(b.requests - a.requests))
      .map(([group, sum]) => ({ ...named(group), ...shownSums(sum) })),
    series: [...points.values()].map((row) => ({ at: atStep(steps, row.step), ...named(row.group), ...sumsOf(row) })),
  }
}

/** The previous period of the same length. */
const periodBefore = <F extends SumsFilter>(filter: F): F => ({
  ...filter,
  fromMs: Math.max(0, 2 * filter.fromMs - filter.toMs),
  toMs: filter.fromMs,
})

function totalsOf(rows: readonly Summed[]): UsageSums['totals'] {
  const total = rows.reduce<Summed>(added, NONE)
  return { ...shownSums(total), latencyMsAvg: averageOf(total) }
}

const averageOf = ({ requests, duration_ms: ms }: Summed) =>
  requests === 0n ? null : Math.round(Number(ms) / Number(requests))

function sumsOf(row: Summed): Omit<SumRow, 'at' | 'group' | 'name'> {
  const tokens = (count: bigint | null) => (count === null ? null : Number(count))
  return {
    ...shownSums(row),
    latencyMsAvg: averageOf(row),
    inputTokens: tokens(row.input_tokens),
    outputTokens: tokens(row.output_tokens),
  }
}

/** All steps of the range, also those without calls. */
async function readSteps(database: Queryable, filter: SumsFilter, { per, zone }: SumsOrder): Promise<Date[]> {
  const values = [new Date(filter.fromMs), new Date(filter.toMs - 1), zone]
  const rows = await database.query<{ at: Date }>(STEPS[per], values)
  return rows.map(({ at }) => at)
}

const atStep = (steps: readonly Date[], step: number) => (steps[Math.max(0, step - 1)] ?? new Date(0)).toISOString()

/**
 * The step in which a call started. Ids contain the time, so the starts of steps are compared as ids; hours are
 * compared as times.
 */
const stepOf = (steps: readonly Date[], values: Values) =>
  `width_bucket(u.id, ${values.put(steps.map((at) => idAtTime(at.getTime())))}::text[])`
const stepOfHour = (steps: readonly Date[], values: Values) =>
  `width_bucket(u.hour, ${values.put(steps.map((at) => at.toISOString()))}::timestamptz[])`

/** The expression of a group in each table; the hourly sums do not have all of them. */
interface GroupColumns {
  readonly CALLS: string
  readonly REFUSED: string
  readonly HOURS?: string
}

const GROUPS: Readonly<Record<Exclude<Grouping, `label:${string}`> | 'none', GroupColumns>> = {
  none: { CALLS: `''::text`, REFUSED: `''::text`, HOURS: `''::text` },
  product: { CALLS: 'u.product', REFUSED: 'u.product', HOURS: 'u.product' },
  key: { CALLS: 'u.key_id', REFUSED: 'u.key_id', HOURS: 'u.key_id' },
  account: { CALLS: 'u.account_id', REFUSED: 'u.account_id', HOURS: 'u.account_id' },
  status: { CALLS: 'u.status::text', REFUSED: 'u.status::text' },
  endpoint: { CALLS: 'u.endpoint', REFUSED: 'u.endpoint' },
  vendor: { CALLS: `coalesce(u.vendor, '')`, REFUSED: `''::text` },
  client: { CALLS: 'u.client', REFUSED: `''::text` },
}

/** Calls without the label are a group of their own. */
function columnsOf(by: Grouping | 'none', values: Values): GroupColumns {
  if (!isLabel(by)) return GROUPS[by]
  return { CALLS: `coalesce(u.labels ->> ${values.put(by.slice(LABEL.length))}::text, '')`, REFUSED: `''::text` }
}

const LABEL = 'label:'
const isLabel = (by: Grouping | 'none'): by is `label:${string}` => by.startsWith(LABEL)

/** Whether hourly sums are read: the range has whole hours, or is too long for single calls and is rounded to hours. */
export function isHourly(filter: SumsFilter, by: Grouping | 'none'): boolean {
  const { fromMs, toMs } = filter
  const isWhole = fromMs % HOUR_MS === 0 && toMs % HOUR_MS === 0
  return (
    !isLabel(by) &&
    GROUPS[by].HOURS !== undefined &&
    isSummedByTheHour(filter) &&
    (isWhole || toMs - fromMs > (CALLS_DAYS_MAX + 1) * DAY_MS)
  )
}

interface Wanted {
  readonly by: Grouping | 'none'
  readonly steps: readonly Date[]
}

async function readRows(database: Queryable, filter: SumsFilter, wanted: Wanted): Promise<SummedRow[]> {
  const { by, steps } = wanted
  const values = new Values()
  const part = (FROM: string, GROUP: string, SUMS: string, where: () => string) => {
    const [STEP, WHERE] = [stepOf(steps, values), where()]
    return `select ${STEP} as step, ${GROUP} as group, ${SUMS} from ${FROM} u where ${WHERE} group by 1, 2`
  }
  const { CALLS, REFUSED } = columnsOf(by, values)
  const parts = [
    ...(!mayBeUsage(filter)
      ? []
      : isHourly(filter, by)
        ? [hoursPart(filter, wanted, values)]
        : [part('usage', CALLS, COUNTED, () => whereOf(filter, USAGE, values))]),
    ...(mayBeRefused(filter) ? [part('refusal', REFUSED, REJECTED, () => whereOf(filter, REFUSAL, values))] : []),
  ]
  const ARMS = parts.join(' union all ')
  const text = `${ARMS} order by 1, 2 limit ${ROWS_MAX + 1}`
  const rows = await database.query<SummedRow>({ text }, values.list)
  if (rows.length > ROWS_MAX)
    throw invalid(
      `by: these are more than ${ROWS_MAX} rows of sums: choose a longer step, a shorter time or a filter.`,
      'by',
    )
  return rows
}

function hoursPart(filter: SumsFilter, { by, steps }: Wanted, values: Values): string {
  const { fromMs, toMs } = filter
  const STEP = stepOfHour(steps, values)
  const WHOSE = whoseOf(filter, 'u', values)
  const FROM = values.put(new Date(Math.floor(fromMs / HOUR_MS) * HOUR_MS))
  const TO = values.put(new Date(toMs))
  const WHERE = [WHOSE, `u.hour >= ${FROM}`, `u.hour < ${TO}`, ...chosenOf(filter, values)].join(' and ')
  const GROUP = columnsOf(by, values).HOURS
  return `select ${STEP} as step, ${GROUP} as group, ${SUMMED} from usage_hour u where ${WHERE} group by 1, 2`
}

/** Readable names of groups; groups without one are shown as they are. */
async function readNames(
  database: Queryable,
  by: Grouping,
  groups: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (by !== 'key' && by !== 'account') return new Map()
  const rows = await database.query<{ id: string; name: string }>(NAMES[by], [groups])
  return new Map(rows.map(({ id, name }) => [id, name]))
}

/** Names of accounts by their ids. */
export const readAccountNames = (database: Queryable, ids: readonly string[]) => readNames(database, 'account', ids)

interface TimedRow {
  step: number | null
  group: string | null
  is_step: boolean
  is_group: boolean
  calls: bigint
  spread: number[]
}

/** Latency percentiles of successful calls: of all and of each group, by step and overall. */
export async function readLatency(database: Database, filter: SumsFilter, order: SumsOrder): Promise<UsageLatency> {
  const { by, per, zone } = order
  const steps = await readSteps(database, filter, order)
  const values = new Values()
  const STEP = stepOf(steps, values)
  const WHERE = whereOf(filter, USAGE, values)
  const GROUP = columnsOf(by, values).CALLS
  const text = `select x.step, x.group, grouping(x.step) = 0 as is_step, grouping(x.group) = 0 as is_group, count(*) as calls,
     percentile_cont(array[0.5, 0.95, 0.99]) within group (order by x.ms) as spread
   from (
     select ${STEP} as step, ${GROUP} as group, u.duration_ms as ms
     from usage u where ${WHERE} and u.status < 400 and u.outcome = 'settled' order by u.id desc limit ${TIMED_MAX}
   ) x group by grouping sets ((1, 2), (1), (2), ()) having count(*) > 0 order by calls desc, x.group, x.step limit ${ROWS_MAX}`
  const rows = await database.query<TimedRow>({ text }, values.list)
  const whole = rows.find(({ is_step, is_group }) => !is_step && !is_group)
  const of = (isStep: boolean, isGroup: boolean) =>
    rows.filter(({ is_step, is_group }) => is_step === isStep && is_group === isGroup)
  const groups = of(false, true)
  const names = await readNames(
    database,
    by,
    groups.map(({ group }) => group ?? ''),
  )
  const named = ({ group }: TimedRow) => ({ group: group ?? '', name: names.get(group ?? '') ?? null })
  const timed = (row: TimedRow) => ({ at: atStep(steps, row.step ?? 1), ...percentiles(row) })
  return {
    by,
    per,
    zone,
    steps: steps.map((at) => at.toISOString()),
    overall: whole ? percentiles(whole) : null,
    /** At most TIMED_MAX calls are evaluated, the newest. */
    truncated: Number(whole?.calls ?? 0n) >= TIMED_MAX,
    overTime: of(true, false).map(timed),
    groups: groups.map((row) => ({ ...named(row), ...percentiles(row) })),
    series: of(true, true).map((row) => ({ ...timed(row), group: row.group ?? '' })),
  }
}

function percentiles({ calls, spread: [p50 = 0, p95 = 0, p99 = 0] }: TimedRow): LatencyPoint {
  return { calls: Number(calls), p50Ms: Math.round(p50), p95Ms: Math.round(p95), p99Ms: Math.round(p99) }
}

const SUMMED = `sum(u.requests)::bigint as requests, sum(u.errors)::bigint as errors, 0::bigint as rejected, sum(u.charged)::bigint as charged,
  sum(u.duration_ms)::bigint as duration_ms, sum(u.input_tokens)::bigint as input_tokens, sum(u.output_tokens)::bigint as output_tokens`
const COUNTED = `count(*) as requests, count(*) filter (where u.status >= 400) as errors, 0::bigint as rejected, sum(u.charged)::bigint as charged,
  sum(u.duration_ms)::bigint as duration_ms, null::bigint as input_tokens, null::bigint as output_tokens`
const REJECTED = `0::bigint as requests, 0::bigint as errors, sum(u.count)::bigint as rejected, 0::bigint as charged, 0::bigint as duration_ms,
  0::bigint as input_tokens, 0::bigint as output_tokens`
// Days start at midnight in the reader's time zone; a day may have 23 or 25 hours.
const STEPS = {
  hour: statement(
    'sums_hours',
    `select generate_series(date_trunc('hour', $1::timestamptz, $3::text), $2::timestamptz, interval '1 hour') as at`,
  ),
  day: statement(
    'sums_days',
    `select generate_series(date_trunc('day', $1::timestamptz at time zone $3::text), $2::timestamptz at time zone $3::text, interval '1 day')
       at time zone $3::text as at`,
  ),
} satisfies Record<Step, unknown>
const NAMES = {
  key: statement('sums_key_names', `select k.id, ${KEY_NAME} as name from api_key k where k.id = any($1)`),
  account: statement('sums_account_names', 'select id, name from account where id = any($1)'),
}

// Totals by the values of one label: end users, sessions of agents, teams, features. Ranges of days are read from sums
// by the day, whose cost grows with the values and not with the calls; other ranges and filters from single calls, by
// the key of the table.

interface LabelOrder {
  readonly label: string
  readonly sort: LabelSort
  readonly offset: number
  readonly limit: number
}

/** The maximum of values in an answer or file. A larger result is rejected, because a part would look like all. */
export const LABEL_VALUES_MAX = 100_000
const NAMED_MAX = 20
const WITHIN_MS = 60_000

interface LabelValueRow {
  account_id: string
  first: string
  last: string
  clients: string[] | null
  all_values: bigint
  all_calls: bigint
  all_charged: bigint
}

const ORDERS: Readonly<Record<LabelSort, string>> = {
  charged: '5 desc, 3 desc',
  calls: '3 desc, 5 desc',
  last: '10 desc',
}

/** Filters that the sums by the day can answer, and from which range on they are read. */
const DAILY = new Set<string>(['account', 'test', 'fromMs', 'toMs', 'product', 'vendor'])
const DAILY_MS = 2 * DAY_MS
const LIST_SEPARATOR = `E'\\x1f'`

function whoseOf({ account, test }: SumsFilter, ALIAS: string, values: Values): string {
  if (account !== undefined) return `${ALIAS}.account_id = ${values.put(account)}`
  return `${test ? '' : 'not '}${IS_TEST(`${ALIAS}.account_id`)}`
}

/**
 * The range as whole days (UTC), each limit rounded to the nearest; today counts if the range reaches it. Undefined:
 * single calls are read.
 */
async function daysOf(on: Queryable, filter: SumsFilter): Promise<{ from: number; to: number } | undefined> {
  const { fromMs, toMs } = filter
  const isDaily = Object.entries(filter).every(([name, value]) => value === undefined || DAILY.has(name))
  if (!isDaily || toMs - fromMs < DAILY_MS) return undefined
  const [now] = await on.query<{ ms: number }>(NOW)
  const nowMs = now?.ms ?? 0
  return {
    from: Math.round(fromMs / DAY_MS),
    to: toMs > nowMs - HOUR_MS ? Math.floor(nowMs / DAY_MS) + 1 : Math.round(toMs / DAY_MS),
  }
}

const VALUES_OF_CALLS = (NAME: string, WHERE: string) =>
  `select u.account_id, u.labels ->> ${NAME}::text as value, count(*) as calls, count(*) filter (where u.status >= 400) as errors,
     sum(u.charged)::bigint as charged, sum(u.cost)::bigint as cost, sum(t.input)::bigint as input_tokens, sum(t.output)::bigint as output_tokens,
     min(u.id) as first, max(u.id) as last, (array_agg(distinct u.product))[1:${NAMED_MAX}] as products,
     (array_agg(distinct u.client) filter (where u.client <> ''))[1:${NAMED_MAX}] as clients
   from usage u ${TOKENS} where ${WHERE} and u.labels ? ${NAME}::text group by 1, 2`
const VALUES_OF_DAYS = (NAME: string, WHERE: string) =>
  `select u.account_id, u.value, sum(u.calls)::bigint as calls, sum(u.errors)::bigint as errors, sum(u.charged)::bigint as charged, sum(u.cost)::bigint as cost,
     sum(u.input_tokens)::bigint as input_tokens, sum(u.output_tokens)::bigint as output_tokens, min(u.first_id) as first, max(u.last_id) as last,
     (array_agg(distinct u.product))[1:${NAMED_MAX}] as products,
     string_to_array(string_agg(array_to_string(u.clients, ${LIST_SEPARATOR}), ${LIST_SEPARATOR}) filter (where u.clients <> '{}'), ${LIST_SEPARATOR}) as clients
   from ${LABEL_DAYS} u where u.name = ${NAME} and ${WHERE} group by 1, 2`

function dayConditions(filter: SumsFilter, days: { from: number; to: number }, values: Values): string {
  const { product, vendor } = filter
  return [
    whoseOf(filter, 'u', values),
    `u.day >= ${values.put(formatDay(days.from))}::date and u.day < ${values.put(formatDay(days.to))}::date`,
    ...(product === undefined ? [] : [`u.product = ${values.put(product)}`]),
    ...(vendor === undefined ? [] : [`u.vendor = ${values.put(vendor)}`]),
  ].join(' and ')
}

/** Equal values of different accounts are different groups. */
export async function readLabelSums(database: Database, filter: SumsFilter, order: LabelOrder): Promise<LabelSums> {
  const { label, sort, offset, limit } = order
  const values = new Values()
  const NAME = values.put(label)
  const days = await daysOf(database, filter)
  const GROUPED = days
    ? VALUES_OF_DAYS(NAME, dayConditions(filter, days, values))
    : VALUES_OF_CALLS(NAME, whereOf(filter, USAGE, values))
  const [COUNT, FROM] = [values.put(limit + 1), values.put(offset)]
  const text = `select x.*, count(*) over () as all_values, (sum(x.calls) over ())::bigint as all_calls, (sum(x.charged) over ())::bigint as all_charged
   from (${GROUPED}) x order by ${ORDERS[sort]}, 1, 2 limit ${COUNT} offset ${FROM}`
  const rows = mayBeUsage(filter) ? await database.query<LabelValueRow>({ text, withinMs: WITHIN_MS }, values.list) : []
  const names = filter.account === undefined ? await readAccountNames(database, idsOf(rows)) : undefined
  const [first] = rows
  const from = days ? days.from * DAY_MS : filter.fromMs
  const to = days ? Math.min(days.to * DAY_MS, Math.max(filter.toMs, (days.to - 1) * DAY_MS)) : filter.toMs
  return {
    label,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    totals: {
      values: Number(first?.all_values ?? 0n),
      calls: Number(first?.all_calls ?? 0n),
      charged: formatCredits(first?.all_charged ?? 0n),
    },
    items: rows.slice(0, limit).map((row) => viewLabelSum(row, names)),
    next: rows.length > limit ? String(offset + limit) : null,
  }
}

const idsOf = (rows: readonly LabelValueRow[]) => [...new Set(rows.map(({ account_id: id }) => id))]

function viewLabelSum(row: LabelValueRow, names: ReadonlyMap<string, string> | undefined): LabelSum {
  const at = (id: string) => new Date(timeOfId(id)).toISOString()
  return {
    ...(names && { account: row.account_id, accountName: names.get(row.account_id) ?? row.account_id }),
    ...asView(labelSum, row),
    firstAt: at(row.first),
    lastAt: at(row.last),
    clients: [...new Set(row.clients)].sort().slice(0, NAMED_MAX),
  }
}

/** All of them, for a file. */
export async function readAllLabelSums(
  database: Database,
  filter: SumsFilter,
  order: Pick<LabelOrder, 'label' | 'sort'>,
): Promise<readonly LabelSum[]> {
  const { items, next } = await readLabelSums(database, filter, { ...order, offset: 0, limit: LABEL_VALUES_MAX })
  if (next !== null) throw tooManyValues('label')
  return items
}

export const tooManyValues = (field: string) =>
  invalid(`${field}: these are more than ${LABEL_VALUES_MAX} values: choose a shorter time or a filter.`, field)

/** For alerts: the number of newest calls of a day that are read. */
const WATCHED_CALLS = 200_000
const WATCHED_VALUES = 20
const SPENDERS = statement(
  'label_spenders',
  `select x.value, sum(x.charged)::bigint as charged from (
     select u.labels ->> $3::text as value, u.charged from usage u
     where u.account_id = $1 and u.id >= $2 and u.labels ? $3::text order by u.id desc limit ${WATCHED_CALLS}
   ) x group by 1 having sum(x.charged) >= $4::bigint order by 2 desc, 1 limit ${WATCHED_VALUES}`,
)

/** Values of a label that were charged at least an amount within a day, highest first. */
export async function readSpenders(
  on: Queryable,
  account: string,
  { label, above }: { readonly label: string; readonly above: bigint },
): Promise<{ value: string; charged: bigint }[]> {
  const [now] = await on.query<{ ms: number }>(NOW)
  return on.query(SPENDERS, [account, idAtTime((now?.ms ?? 0) - DAY_MS), label, above])
}

const NOW = statement('label_now', 'select extract(epoch from now())::float8 * 1000 as ms')
