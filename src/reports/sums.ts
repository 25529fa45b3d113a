// Totals of calls over time, and their latencies. If the filter allows it, the hourly sums are read, whose cost does
// not grow with the number of calls; otherwise single calls, by their start.
import { type Queryable, sql } from '../database/database.ts'
import { DAY_MS, formatDay } from '../kernel/calendar.ts'
import { formatCredits } from '../kernel/credits.ts'
import { invalid } from '../kernel/fault.ts'
import { asView } from '../kernel/view.ts'
import { idAtTime, timeOfId } from '../kernel/world.ts'
import { LABEL_DAYS } from '../ledger/usage-sums.ts'
import {
  type CallFilter,
  chosenOf,
  isSummedByTheHour,
  KEY_NAME,
  mayBeRefused,
  mayBeUsage,
  REFUSAL,
  usageColumns,
  whereOf,
} from './calls.ts'
import { CALLS_DAYS_MAX, type CallReader, type Dialect, type ReportSources, readCallRows, Values } from './dialect.ts'
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

export async function readSums(from: ReportSources, filter: SumsFilter, order: SumsOrder): Promise<UsageSums> {
  const { database } = from
  const { fromMs, toMs } = filter
  const { by, per, zone } = order
  const steps = await readSteps(database, filter, order)
  const earlier = periodBefore(filter)
  const [{ found: rows, source }, before] = await Promise.all([
    readRows(from, filter, { by, steps }),
    order.compare ? readRows(from, earlier, { by: 'none', steps: [new Date(earlier.fromMs)] }) : undefined,
  ])
  const sources = [source, before?.source]
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
    ...(before ? { previous: totalsOf(before.found) } : {}),
    ...(source ? { source: sources.includes('database') ? 'database' : source } : {}),
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

const stepOfHour = (steps: readonly Date[], values: Values) =>
  `width_bucket(u.hour, ${values.put(steps.map((at) => at.toISOString()))}::timestamptz[])`

/** Columns that the hourly sums have too. */
const HOURLY = new Set<string>(['none', 'product', 'key', 'account'])
const COLUMNS = {
  none: `''`,
  product: 'u.product',
  key: 'u.key_id',
  account: 'u.account_id',
  endpoint: 'u.endpoint',
  client: 'u.client',
  vendor: `coalesce(u.vendor, '')`,
}
type By = Grouping | 'none'

/** Calls without the label are a group of their own. */
function groupOf(by: By, dialect: Dialect): string {
  if (isLabel(by)) return dialect.label(by.slice(LABEL.length))
  return by === 'status' ? dialect.asText('u.status') : COLUMNS[by]
}

/** Rejected calls have no label, no vendor and no agent. */
const refusedGroupOf = (by: By, dialect: Dialect) =>
  isLabel(by) || by === 'vendor' || by === 'client' ? COLUMNS.none : groupOf(by, dialect)

const LABEL = 'label:'
const isLabel = (by: By): by is `label:${string}` => by.startsWith(LABEL)

/** Whether hourly sums are read: the range has whole hours, or is too long for single calls and is rounded to hours. */
export function isHourly(filter: SumsFilter, by: By): boolean {
  const { fromMs, toMs } = filter
  const isWhole = fromMs % HOUR_MS === 0 && toMs % HOUR_MS === 0
  return HOURLY.has(by) && isSummedByTheHour(filter) && (isWhole || toMs - fromMs > (CALLS_DAYS_MAX + 1) * DAY_MS)
}

interface Wanted {
  readonly by: By
  readonly steps: readonly Date[]
}

async function readRows(from: ReportSources, filter: SumsFilter, wanted: Wanted) {
  const isOfCalls = mayBeUsage(filter) && !isHourly(filter, wanted.by)
  const { found, source } = isOfCalls
    ? await readCallRows(from, filter, async (reader, values) => {
        const CALLS = callsPart(filter, wanted, reader.dialect)
        if (reader.isDatabase) return readParts(from, filter, wanted, { values, CALLS })
        const refused = await readParts(from, filter, wanted, { values, CALLS: undefined })
        const rows = await reader.query<SummedRow>(`${CALLS} order by step, "group" limit ${ROWS_MAX + 1}`)
        return [...rows, ...refused].sort((a, b) => a.step - b.step)
      })
    : { found: await readParts(from, filter, wanted, hoursOf(filter, wanted)), source: undefined }
  if (found.length > ROWS_MAX)
    throw invalid(
      `by: these are more than ${ROWS_MAX} rows of sums: choose a longer step, a shorter time or a filter.`,
      'by',
    )
  return { found, source }
}

interface Parts {
  readonly values: Values
  /** Undefined: without rows of calls. */
  readonly CALLS: string | undefined
}

/** Sums of calls, of which the database has rows, and of rejected calls, of which nobody else has. */
async function readParts(
  { database }: ReportSources,
  filter: SumsFilter,
  { by, steps }: Wanted,
  { values, CALLS }: Parts,
): Promise<SummedRow[]> {
  const refused = () => {
    const [STEP, GROUP, WHERE] = [values.step(steps), refusedGroupOf(by, values), whereOf(filter, REFUSAL, values)]
    return `select ${STEP} as step, ${GROUP} as "group", ${REJECTED} from refusal u where ${WHERE} group by step, "group"`
  }
  const ARMS = [CALLS, mayBeRefused(filter) ? refused() : undefined]
    .filter((part) => part !== undefined)
    .join(' union all ')
  const text = `${ARMS} order by step, "group" limit ${ROWS_MAX + 1}`
  return ARMS === '' ? [] : database.query<SummedRow>({ text }, values.list)
}

function callsPart(filter: SumsFilter, { by, steps }: Wanted, dialect: Dialect): string {
  const { CALLS, NO_SUMS } = dialect
  const [STEP, GROUP] = [dialect.step(steps), groupOf(by, dialect)]
  const [CHARGED, MS] = [dialect.sum('u.charged'), dialect.sum('u.duration_ms')]
  const WHERE = whereOf(filter, usageColumns(dialect), dialect)
  return `select x.step as step, x.place as "group", x.n as requests, x.failed as errors, x.credits as charged,
     x.ms as duration_ms, ${NO_SUMS}
   from (
     select ${STEP} as step, ${GROUP} as place, count(*) as n, ${FAILED}, ${CHARGED} as credits, ${MS} as ms
     from ${CALLS} where ${WHERE} group by step, place
   ) x`
}

function hoursOf(filter: SumsFilter, { by, steps }: Wanted): Parts {
  const values = new Values()
  if (!mayBeUsage(filter)) return { values, CALLS: undefined }
  const { fromMs, toMs } = filter
  const [STEP, GROUP] = [stepOfHour(steps, values), groupOf(by, values)]
  const WHOSE = whoseOf(filter, values)
  const FROM = values.put(new Date(Math.floor(fromMs / HOUR_MS) * HOUR_MS))
  const TO = values.put(new Date(toMs))
  const WHERE = [WHOSE, `u.hour >= ${FROM}`, `u.hour < ${TO}`, ...chosenOf(filter, values)].join(' and ')
  return {
    values,
    CALLS: `select ${STEP} as step, ${GROUP} as "group", ${SUMMED} from usage_hour u where ${WHERE} group by step, "group"`,
  }
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
  /** Also 1 and 0. */
  is_step: boolean | number
  is_group: boolean | number
  calls: bigint
  spread: number[]
}

/** Latency percentiles of successful calls: of all and of each group, by step and overall. */
export async function readLatency(from: ReportSources, filter: SumsFilter, order: SumsOrder): Promise<UsageLatency> {
  const { database } = from
  const { by, per, zone } = order
  const steps = await readSteps(database, filter, order)
  const { found: rows, source } = await readCallRows(from, filter, ({ dialect, query }) => {
    const WHERE = whereOf(filter, usageColumns(dialect), dialect)
    const [STEP, GROUP, CALLS] = [dialect.step(steps), groupOf(by, dialect), dialect.CALLS]
    const TIMED = `select ${STEP} as step, ${GROUP} as "group", u.duration_ms as ms
      from ${CALLS} where ${WHERE} and u.status < 400 and u.outcome = 'settled' order by u.id desc limit ${TIMED_MAX}`
    return query<TimedRow>(dialect.spread(TIMED, ROWS_MAX))
  })
  const whole = rows.find(({ is_step, is_group }) => !is_step && !is_group)
  const of = (isStep: boolean, isGroup: boolean) =>
    rows.filter(({ is_step, is_group }) => Boolean(is_step) === isStep && Boolean(is_group) === isGroup)
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
    ...(source ? { source } : {}),
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

const FAILED = 'sum(case when u.status >= 400 then 1 else 0 end) as failed'
const SUMMED = `sum(u.requests)::bigint as requests, sum(u.errors)::bigint as errors, sum(u.charged)::bigint as charged,
  sum(u.duration_ms)::bigint as duration_ms, 0::bigint as rejected, sum(u.input_tokens)::bigint as input_tokens,
  sum(u.output_tokens)::bigint as output_tokens`
const REJECTED = `0::bigint as requests, 0::bigint as errors, 0::bigint as charged, 0::bigint as duration_ms, sum(u.count)::bigint as rejected,
  0::bigint as input_tokens, 0::bigint as output_tokens`
// Days start at midnight in the reader's time zone; a day may have 23 or 25 hours.
const STEPS = {
  hour: sql('sums_hours')`
    select generate_series(date_trunc('hour', $1::timestamptz, $3::text), $2::timestamptz, interval '1 hour') as at`,
  day: sql('sums_days')`
    select generate_series(date_trunc('day', $1::timestamptz at time zone $3::text), $2::timestamptz at time zone $3::text, interval '1 day')
       at time zone $3::text as at`,
} satisfies Record<Step, unknown>
const NAMES = {
  key: sql('sums_key_names')`select k.id, ${KEY_NAME} as name from api_key k where k.id = any($1)`,
  account: sql('sums_account_names')`select id, name from account where id = any($1)`,
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

interface LabelValueRow extends Partial<OverallRow> {
  account_id: string
  first: string
  last: string
  clients: string[] | null
}

/** Of all pages. */
interface OverallRow {
  all_values: bigint
  all_calls: bigint
  all_charged: bigint
}

const ORDERS: Readonly<Record<LabelSort, string>> = {
  charged: 'credits desc, n desc',
  calls: 'n desc, credits desc',
  last: 'newest desc',
}

/** Filters that the sums by the day can answer, and from which range on they are read. */
const DAILY = new Set<string>(['account', 'test', 'fromMs', 'toMs', 'product', 'vendor'])
const DAILY_MS = 2 * DAY_MS
const LIST_SEPARATOR = `E'\\x1f'`

function whoseOf({ account, test }: SumsFilter, dialect: Dialect): string {
  return account === undefined ? `${test ? '' : 'not '}${dialect.IS_TEST}` : `u.account_id = ${dialect.text(account)}`
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

function valuesOfCalls(filter: SumsFilter, label: string, dialect: Dialect): string {
  const { CALLS_WITH_TOKENS } = dialect
  const [LABELED, VALUE] = [dialect.hasLabel(label), dialect.label(label)]
  const [CHARGED, COST] = [dialect.sum('u.charged'), dialect.sum('u.cost')]
  const [INPUT, OUTPUT] = [dialect.sum(dialect.INPUT), dialect.sum(dialect.OUTPUT)]
  const [PRODUCTS, CLIENTS] = [dialect.some('u.product', NAMED_MAX), dialect.some('u.client', NAMED_MAX)]
  const WHERE = whereOf(filter, usageColumns(dialect), dialect)
  return `select u.account_id as account_id, ${VALUE} as value, count(*) as n, ${FAILED}, ${CHARGED} as credits,
     ${COST} as paid, ${INPUT} as inputs, ${OUTPUT} as outputs, min(u.id) as oldest, max(u.id) as newest,
     ${PRODUCTS} as sold, ${CLIENTS} as agents
   from ${CALLS_WITH_TOKENS} where ${WHERE} and ${LABELED} group by account_id, value`
}

const VALUES_OF_DAYS = (NAME: string, WHERE: string) =>
  `select u.account_id, u.value, sum(u.calls)::bigint as n, sum(u.errors)::bigint as failed, sum(u.charged)::bigint as credits, sum(u.cost)::bigint as paid,
     sum(u.input_tokens)::bigint as inputs, sum(u.output_tokens)::bigint as outputs, min(u.first_id) as oldest, max(u.last_id) as newest,
     (array_agg(distinct u.product collate "C"))[1:${NAMED_MAX}] as sold,
     string_to_array(string_agg(array_to_string(u.clients, ${LIST_SEPARATOR}), ${LIST_SEPARATOR}) filter (where u.clients <> '{}'), ${LIST_SEPARATOR}) as agents
   from ${LABEL_DAYS} u where u.name = ${NAME} and ${WHERE} group by 1, 2`

function dayConditions(filter: SumsFilter, days: { from: number; to: number }, values: Values): string {
  return [
    whoseOf(filter, values),
    `u.day >= ${values.put(formatDay(days.from))}::date and u.day < ${values.put(formatDay(days.to))}::date`,
    ...(filter.product === undefined ? [] : [`u.product = ${values.text(filter.product)}`]),
    ...(filter.vendor === undefined ? [] : [`u.vendor = ${values.text(filter.vendor)}`]),
  ].join(' and ')
}

interface LabelPage {
  readonly rows: LabelValueRow[]
  readonly all: Partial<OverallRow> | undefined
  readonly days?: { readonly from: number; readonly to: number } | undefined
}

async function readLabelPage(
  { database }: ReportSources,
  filter: SumsFilter,
  { label, sort, offset, limit }: LabelOrder,
  { reader: { dialect, query, isDatabase }, values }: { readonly reader: CallReader; readonly values: Values },
): Promise<LabelPage> {
  const days = isDatabase ? await daysOf(database, filter) : undefined
  const GROUPED = days
    ? VALUES_OF_DAYS(values.text(label), dayConditions(filter, days, values))
    : valuesOfCalls(filter, label, dialect)
  const { OVERALL, BYTES } = dialect
  const PAGE = dialect.page(offset, limit + 1)
  const rows = await query<LabelValueRow>(
    `select x.account_id as account_id, x.value as value, n as calls, failed as errors, credits as charged, paid as cost,
       inputs as input_tokens, outputs as output_tokens, oldest as first, newest as last, sold as products,
       agents as clients${OVERALL ? `, ${OVERALL}` : ''}
     from (${GROUPED}) x order by ${ORDERS[sort]}, account_id, value ${BYTES} ${PAGE}`,
  )
  if (OVERALL) return { rows, all: rows[0], days }
  const [all] = await query<OverallRow>(
    `select count(*) as all_values, sum(n) as all_calls, sum(credits) as all_charged from (${GROUPED}) x`,
  )
  return { rows, all }
}

/** Equal values of different accounts are different groups. */
export async function readLabelSums(from: ReportSources, filter: SumsFilter, order: LabelOrder): Promise<LabelSums> {
  const { label, offset, limit } = order
  const { found, source } = mayBeUsage(filter)
    ? await readCallRows(from, filter, (reader, values) => readLabelPage(from, filter, order, { reader, values }))
    : { found: { rows: [], all: undefined, days: undefined } satisfies LabelPage, source: undefined }
  const { rows, all, days } = found
  const names = filter.account === undefined ? await readAccountNames(from.database, idsOf(rows)) : undefined
  const fromMs = days ? days.from * DAY_MS : filter.fromMs
  const toMs = days ? Math.min(days.to * DAY_MS, Math.max(filter.toMs, (days.to - 1) * DAY_MS)) : filter.toMs
  return {
    label,
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    ...(source ? { source } : {}),
    totals: {
      values: Number(all?.all_values ?? 0n),
      calls: Number(all?.all_calls ?? 0n),
      charged: formatCredits(all?.all_charged ?? 0n),
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
  from: ReportSources,
  filter: SumsFilter,
  order: Pick<LabelOrder, 'label' | 'sort'>,
): Promise<readonly LabelSum[]> {
  const { items, next } = await readLabelSums(from, filter, { ...order, offset: 0, limit: LABEL_VALUES_MAX })
  if (next !== null) throw tooManyValues('label')
  return items
}

export const tooManyValues = (field: string) =>
  invalid(`${field}: these are more than ${LABEL_VALUES_MAX} values: choose a shorter time or a filter.`, field)

/** For alerts: the number of newest calls of a day that are read. */
const WATCHED_CALLS = 200_000
const WATCHED_VALUES = 20
const SPENDERS = sql('label_spenders')`select x.value, sum(x.charged)::bigint as charged from (
     select u.labels ->> $3::text as value, u.charged from usage u
     where u.account_id = $1 and u.id >= $2 and u.labels ? $3::text order by u.id desc limit ${WATCHED_CALLS}
   ) x group by 1 having sum(x.charged) >= $4::bigint order by 2 desc, 1 limit ${WATCHED_VALUES}`

/** Values of a label that were charged at least an amount within a day, highest first. */
export async function readSpenders(
  on: Queryable,
  account: string,
  { label, above }: { readonly label: string; readonly above: bigint },
): Promise<{ value: string; charged: bigint }[]> {
  const [now] = await on.query<{ ms: number }>(NOW)
  return on.query(SPENDERS, [account, idAtTime((now?.ms ?? 0) - DAY_MS), label, above])
}

const NOW = sql('label_now')`select extract(epoch from now())::float8 * 1000 as ms`
