// Calls: the list, totals over time and latencies, of one account or of all. All of them have the same filter.
import * as z from 'zod'
import { readLabelNames } from '../../admission/labels.ts'
import { DAY_MS } from '../../kernel/calendar.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { STORED_LABEL } from '../../kernel/label.ts'
import { testAccountOf } from '../../kernel/test-account.ts'
import { page } from '../../kernel/view.ts'
import type { World } from '../../kernel/world.ts'
import { callView, soughtOutcome, type UsageView, usageView } from '../../ledger/views.ts'
import { type CallFilter, isIndexed, type UsageFilter } from '../../reports/calls.ts'
import { callsCsv, labelSumsCsv, sumsCsv } from '../../reports/csv.ts'
import { CALLS_DAYS_MAX, type ReportSources } from '../../reports/dialect.ts'
import type { Statements } from '../../reports/statement.ts'
import {
  isHourly,
  readAccountNames,
  readAllLabelSums,
  readLabelSums,
  readLatency,
  readSums,
  type SumsFilter,
  type SumsOrder,
} from '../../reports/sums.ts'
import {
  grouping,
  type LabelSum,
  labelName,
  labelSort,
  labelSums,
  step,
  usageLatency,
  usageSums,
} from '../../reports/views.ts'
import { type Actor, amount, id, may, paging, type Resource, range, resource, test, text } from '../resource.ts'

export interface CallDeps extends ReportSources {
  readonly statements: Statements
  readonly world: World
}

const DAYS = 30
const DAYS_MAX = 366
const HOURLY_DAYS_MAX = 2
const HOUR_MS = 3_600_000
/** Steps of an hour that one answer may have. */
const HOURLY_SPAN_DAYS_MAX = 32
const DURATION_MS_MAX = 2_000_000_000

function isZone(timeZone: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en', { timeZone }))
  } catch {
    return false
  }
}

const zone = z
  .string()
  .regex(/^[A-Za-z][\w+/-]{0,63}$/, 'must be a time zone such as Europe/Berlin')
  .refine(isZone, 'is not a known time zone')

/** In a list, a comma of a value is written %2C, and so a percent sign %25. */
const plain = (value: string) => value.replaceAll(/%2c/gi, ',').replaceAll('%25', '%')

function readLabelFilter(given: string, context: z.core.$RefinementCtx): Readonly<Record<string, string>> {
  const pairs = given.split(',').map((pair) => /^([^=]+)=(.+)$/.exec(pair.trim()))
  if (pairs.every((pair) => pair !== null && STORED_LABEL.test(pair[1] ?? '')))
    return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? '', plain(pair?.[2] ?? '')]))
  context.addIssue('must be a list such as feature=chat,user=alice')
  return z.NEVER
}

const chosen = {
  ...range,
  test,
  product: text(100, 0).optional().meta({ description: 'Only this model or data endpoint', value: 'uid' }),
  key: id.optional().meta({ description: 'Only calls with this key', value: 'key', refersTo: 'key' }),
  endpoint: text(100).optional().describe('Only this endpoint'),
  /** For operators only: who answered, or was tried last. */
  vendor: text(100).optional().describe('Only calls that this vendor answered, or was tried last for'),
  client: text(80).optional().describe('Only calls of this agent'),
  labels: z
    .string()
    .max(1000)
    .transform(readLabelFilter)
    .optional()
    .meta({ description: 'Only calls with these labels, such as feature=chat,user=alice', value: 'a=b,…' }),
  outcome: soughtOutcome.optional().describe('Only calls that ended so'),
  status: z
    .string()
    .regex(/^[1-5](\d\d|xx)$/, 'must be a status such as 429, or 4xx')
    .optional()
    .describe('Only this HTTP status, such as 429, or 5xx'),
  fault: text(40).optional().describe('Only this error'),
  minMs: z.coerce
    .number()
    .int()
    .min(0)
    .max(DURATION_MS_MAX)
    .optional()
    .describe('Only calls that took at least as many milliseconds'),
  minCharged: amount.optional().describe('Only calls that were charged at least as many credits'),
  q: text(200)
    .optional()
    .meta({
      description: 'A request id, or a part of an error message, a fault, a model, an endpoint or an agent’s name',
      option: 'search',
    }),
}
const listed = {
  ...paging,
  /** A cursor is of one order. */
  sort: z.enum(['time', 'duration', 'charged']).optional().describe('Newest, slowest or most expensive first'),
  order: z.enum(['asc', 'desc']).default('desc').describe('Descending by default'),
}
const stepped = {
  by: grouping.default('product'),
  per: step.optional(),
  /** Whose days and hours the steps are. */
  zone: zone.default('UTC'),
}
const summed = { ...stepped, compare: test }
const ofAll = { account: id.optional() }
const byValue = {
  /** Whose values are summed up: `user`, `session` or a tag. */
  label: labelName.default('user'),
  sort: labelSort.default('charged').describe('Highest spending, most calls or newest first'),
  limit: paging.limit,
  cursor: z
    .string()
    .regex(/^\d{1,9}$/, 'is not a cursor that a page gave as next')
    .optional(),
}

const listQuery = z.strictObject({ ...chosen, ...listed })
const sumsQuery = z.strictObject({ ...chosen, ...summed })
const latencyQuery = z.strictObject({ ...chosen, ...stepped })
const labelQuery = z.strictObject({ ...chosen, ...byValue })
const allListQuery = listQuery.extend(ofAll)
const allSumsQuery = sumsQuery.extend(ofAll)
const allLatencyQuery = latencyQuery.extend(ofAll)
const allLabelQuery = labelQuery.extend(ofAll)

type Chosen = z.output<z.ZodObject<typeof chosen>>
type Listed = Chosen & z.output<z.ZodObject<typeof listed>>
type ByValue = z.output<typeof labelQuery>
type Stepped = Chosen & z.output<z.ZodObject<typeof stepped>> & { compare?: z.output<typeof test> }

/** Removes vendor, cost and credential, which only operators see. */
export function withoutVendor<T extends { cost?: string | null; credential?: string | null; vendor?: string | null }>({
  cost: _,
  credential: __,
  vendor: ___,
  ...rest
}: T): Omit<T, 'cost' | 'credential' | 'vendor'> {
  return rest
}

/** An account's own calls or those of its test account; without an account, those of all. */
function filterOf(account: string | undefined, query: Chosen): CallFilter {
  const { from, to, test: isTest, minMs, minCharged, ...rest } = query
  const { product, key, endpoint, vendor, client, labels, outcome, status, fault, q } = rest
  return {
    account: account !== undefined && isTest === 'true' ? testAccountOf(account) : account,
    test: account === undefined && isTest === 'true' ? true : undefined,
    fromMs: from,
    toMs: to,
    product,
    key,
    endpoint,
    vendor,
    client,
    labels,
    outcome,
    status,
    fault,
    q,
    durationMsMin: minMs || undefined,
    chargedMin: minCharged || undefined,
  }
}

export function callResources(deps: CallDeps): Resource[] {
  const { database, statements, world } = deps

  /**
   * A search that no index serves reads row by row, so its time is bounded: the last 92 days where no range is given.
   */
  function listOf(account: string | undefined, { limit, cursor, sort, order, ...query }: Listed): UsageFilter {
    const filter = filterOf(account, query)
    const isSorted = sort === 'duration' || sort === 'charged'
    return {
      ...filter,
      ...(isIndexed(filter, isSorted) ? {} : { fromMs: boundedFrom(filter) }),
      limit,
      cursor,
      sort,
      ascending: order === 'asc',
    }
  }

  function boundedFrom({ fromMs, toMs }: CallFilter): number {
    const lastMs = Math.min(toMs ?? Infinity, world.nowMs())
    if (fromMs === undefined) return Math.max(0, lastMs - CALLS_DAYS_MAX * DAY_MS)
    if (lastMs - fromMs > (CALLS_DAYS_MAX + 1) * DAY_MS)
      throw invalid(`from: at most ${CALLS_DAYS_MAX} days of calls are searched; choose a shorter time.`, 'from')
    return fromMs
  }

  /** The last month where no range is given, to the end of this hour. */
  function sumsOf(account: string | undefined, query: Stepped, timed = false): [SumsFilter, SumsOrder] {
    const { from, to, by, per, zone: timeZone, compare } = query
    const toMs = to ?? Math.ceil(world.nowMs() / HOUR_MS) * HOUR_MS
    const fromMs = from ?? toMs - DAYS * DAY_MS
    const spanDays = (toMs - fromMs) / DAY_MS
    if (spanDays <= 0) throw invalid('to: must lie after from.', 'to')
    if (spanDays > DAYS_MAX + 1) throw invalid(`from: at most ${DAYS_MAX} days are summed up.`, 'from')
    if (per === 'hour' && spanDays > HOURLY_SPAN_DAYS_MAX)
      throw invalid(`per: at most ${HOURLY_SPAN_DAYS_MAX - 1} days are shown by the hour.`, 'per')
    const filter = { ...filterOf(account, query), fromMs, toMs }
    if (!deps.callStore && spanDays > CALLS_DAYS_MAX + 1 && (timed || !isHourly(filter, by)))
      throw invalid(`from: at most ${CALLS_DAYS_MAX} days are summed up of single calls.`, 'from')
    return [
      filter,
      { by, zone: timeZone, compare: compare === 'true', per: per ?? (spanDays <= HOURLY_DAYS_MAX ? 'hour' : 'day') },
    ]
  }

  /** The last month where no range is given. */
  function valuesOf(account: string | undefined, { label, sort, limit, cursor, ...query }: ByValue) {
    const [filter] = sumsOf(account, { ...query, by: `label:${label}`, zone: 'UTC' })
    return { filter, order: { label, sort, limit, offset: Number(cursor ?? 0) } }
  }

  async function byLabel(account: string | undefined, query: ByValue, actor: Actor) {
    mayAsk(actor, query)
    const { filter, order } = valuesOf(account, query)
    const found = await readLabelSums(deps, filter, order)
    return may(actor, 'vendors:read') ? found : { ...found, items: found.items.map(withoutVendor) }
  }

  function byLabelCsv(account: string | undefined, query: ByValue, actor: Actor) {
    mayAsk(actor, query)
    const { filter, order } = valuesOf(account, query)
    const hidden: (keyof LabelSum)[] = [
      ...(account === undefined ? [] : (['account', 'accountName'] as const)),
      ...(may(actor, 'vendors:read') ? [] : (['cost'] as const)),
    ]
    return labelSumsCsv(() => readAllLabelSums(deps, filter, order), new Set(hidden))
  }

  async function withNames<T extends UsageView & { account: string }>(items: readonly T[]) {
    const names = await readAccountNames(database, [...new Set(items.map(({ account }) => account))])
    return items.map((item) => ({ ...item, accountName: names.get(item.account) ?? item.account }))
  }

  return [
    resource('GET /accounts/{id}/usage', 'usage:read', {
      title: 'List the calls of an account',
      query: listQuery,
      answer: page(usageView),
      async run({ params, query, actor }) {
        mayAsk(actor, query)
        const { items, next } = await statements.usage(listOf(params.id, query))
        const own = items.map(({ account: _, ...item }) => item)
        return { items: may(actor, 'vendors:read') ? own : own.map(withoutVendor), next }
      },
      csv: ({ params, query, actor }) => {
        mayAsk(actor, query)
        return callsCsv(statements.usage, listOf(params.id, query), may(actor, 'vendors:read') ? 'operator' : 'member')
      },
    }),
    resource('GET /accounts/{id}/usage/sums', 'usage:read', {
      title: 'Sum up the calls of an account',
      query: sumsQuery,
      answer: usageSums,
      run: ({ params, query, actor }) => {
        mayAsk(actor, query)
        return readSums(deps, ...sumsOf(params.id, query))
      },
      csv: ({ params, query, actor }) => {
        mayAsk(actor, query)
        return sumsCsv(() => readSums(deps, ...sumsOf(params.id, query)))
      },
    }),
    resource('GET /accounts/{id}/usage/latency', 'usage:read', {
      title: 'Show the latency of an account’s calls',
      query: latencyQuery,
      answer: usageLatency,
      run: ({ params, query, actor }) => {
        mayAsk(actor, query)
        return readLatency(deps, ...sumsOf(params.id, query, true))
      },
    }),
    // Totals by the values of a label, such as end users, sessions or teams.
    resource('GET /accounts/{id}/usage/labels', 'usage:read', {
      title: 'Sum up an account’s calls by label',
      query: labelQuery,
      answer: labelSums,
      run: ({ params, query, actor }) => byLabel(params.id, query, actor),
      csv: ({ params, query, actor }) => byLabelCsv(params.id, query, actor),
    }),
    resource('GET /usage/labels', 'usage:read', {
      title: 'Sum up all calls by label',
      query: allLabelQuery,
      answer: labelSums,
      run: ({ query: { account, ...query }, actor }) => byLabel(account, query, actor),
      csv: ({ query: { account, ...query }, actor }) => byLabelCsv(account, query, actor),
    }),
    resource('GET /accounts/{id}/labels', 'usage:read', {
      title: 'List the labels of an account',
      answer: z.object({ names: z.array(z.string()) }),
      run: async ({ params }) => ({ names: await readLabelNames(database, params.id) }),
    }),
    resource('GET /usage', 'usage:read', {
      title: 'List all calls',
      query: allListQuery,
      answer: page(callView),
      async run({ query: { account, ...query }, actor }) {
        mayAsk(actor, query)
        const { items, next } = await statements.usage(listOf(account, query))
        const named = await withNames(items)
        return { items: may(actor, 'vendors:read') ? named : named.map(withoutVendor), next }
      },
      csv: ({ query: { account, ...query }, actor }) => {
        mayAsk(actor, query)
        return callsCsv(
          async (filter) => {
            const { items, next } = await statements.usage(filter)
            const named = await withNames(items)
            return { items: may(actor, 'vendors:read') ? named : named.map(withoutVendor), next }
          },
          listOf(account, query),
          'all',
        )
      },
    }),
    resource('GET /usage/sums', 'usage:read', {
      title: 'Sum up all calls',
      query: allSumsQuery,
      answer: usageSums,
      run: ({ query: { account, ...query }, actor }) => {
        mayAsk(actor, query)
        return readSums(deps, ...sumsOf(account, query))
      },
      csv: ({ query: { account, ...query }, actor }) => {
        mayAsk(actor, query)
        return sumsCsv(() => readSums(deps, ...sumsOf(account, query)))
      },
    }),
    resource('GET /usage/latency', 'usage:read', {
      title: 'Show the latency of all calls',
      query: allLatencyQuery,
      answer: usageLatency,
      run: ({ query: { account, ...query }, actor }) => {
        mayAsk(actor, query)
        return readLatency(deps, ...sumsOf(account, query, true))
      },
    }),
  ]
}

/** Only operators may filter and group by vendor. */
function mayAsk(actor: Actor, { vendor, by }: { vendor?: string | undefined; by?: string }): void {
  if (!may(actor, 'vendors:read') && (vendor !== undefined || by === 'vendor'))
    throw new Fault('access_denied', { message: 'Only operators see which vendors answered.' })
}
