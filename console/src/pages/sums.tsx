// Sums of calls over time, stacked by what the reader chose, what they were in the period before, and how long calls
// took.
import { api, type CallFilter } from '../api.ts'
import { amountsName, creditsAsNumber } from '../credits.ts'
import { formatAny, formatCompact, formatMs, formatPercent, formatWhole } from '../format.ts'
import { callsPath, labelFilter, stepSpan } from '../period.ts'
import { useQuery } from '../query.ts'
import { Link } from '../router.tsx'
import { useMay } from '../session.tsx'
import { Chart } from '../ui/chart.tsx'
import { SelectField } from '../ui/field.tsx'
import { Amount, Card, Stat, Stats } from '../ui/page.tsx'
import { Empty, Loaded, Skeleton } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import { timeAxis } from '../ui/time-axis.ts'
import type { UsageLatency, UsageSums } from '../wire.ts'
import { CsvButton, csvName } from './csv.tsx'

const GROUPINGS = [
  ['product', 'Model'],
  ['key', 'Key'],
  ['status', 'Status'],
  ['endpoint', 'Endpoint'],
  ['vendor', 'Vendor'],
  ['client', 'Agent'],
  ['label:user', 'End user'],
  ['label:session', 'Session'],
  ['account', 'Account'],
] as const satisfies readonly (readonly [Grouping, string])[]
type Grouping = UsageSums['by']
const LABEL = 'label:'

/** A label's own name where there is no better word for it. */
const groupingName = (by: Grouping) => GROUPINGS.find(([value]) => value === by)?.[1] ?? by.replace(LABEL, '')
const MEASURES = [
  ['charged', 'Credits'],
  ['calls', 'Calls'],
] as const
type Measure = (typeof MEASURES)[number][0]
const STEPS = [
  ['', 'Automatic'],
  ['hour', 'Hour'],
  ['day', 'Day'],
] as const
const PERCENTILES = [
  ['p50Ms', 'p50'],
  ['p95Ms', 'p95'],
  ['p99Ms', 'p99'],
] as const

/** As many as are told apart at a glance; the rest is one group. */
const STACKED_MAX = 5

/** Anything may stand in an address. */
const one = <T extends string>(options: readonly (readonly [T, string])[], given: string | null, first: T): T =>
  options.find(([value]) => value === given)?.[0] ?? first

/** A label of the address counts before the account's names are there. */
function groupingOf(groupings: ReadonlyArray<readonly [Grouping, string]>, given: string | null): Grouping {
  if (given?.startsWith(LABEL)) return given as Grouping // The server judges the name.
  return one(groupings, given, 'product')
}

interface SumsScope {
  /** Undefined: all accounts. */
  account: string | undefined
  filter: CallFilter
  query: URLSearchParams
  onChoice: (change: Record<string, string>) => void
  everyMs: number | undefined
}

function useChoice({ account, query }: Pick<SumsScope, 'account' | 'query'>) {
  const seesVendors = useMay()('vendors:read')
  const groupings: ReadonlyArray<readonly [Grouping, string]> = [
    ...GROUPINGS.filter(
      ([value]) => (value !== 'vendor' || seesVendors) && (value !== 'account' || account === undefined),
    ),
    ...useTagNames(account).map((name) => [`label:${name}`, name] as const),
  ]
  return {
    groupings,
    by: groupingOf(groupings, query.get('by')),
    per: one(STEPS, query.get('per'), ''),
    measure: one(MEASURES, query.get('sum'), 'charged'),
    percentile: one(PERCENTILES, query.get('percentile'), 'p95Ms'),
  }
}

/** Names of the tags that an account uses; of all accounts together they are not listed. */
export function useTagNames(account: string | undefined): readonly string[] {
  const labels = useQuery(account === undefined ? undefined : `labels/${account}`, (signal) =>
    api.labels(account ?? '', signal),
  )
  return labels.data?.names ?? []
}

/** What the calls of the filter sum up to, and how that compares with the period before. */
export function Totals({ account, filter, everyMs }: Pick<SumsScope, 'account' | 'filter' | 'everyMs'>) {
  const asked = { ...filter, by: 'product', per: 'day', compare: 'true' } as const
  const sums = useQuery(
    `sums/${account}/totals/${JSON.stringify(asked)}`,
    (signal) => api.sums(account, asked, signal),
    { everyMs },
  )
  return (
    <Loaded query={sums} skeleton={<Skeleton lines={1} like="tall" />}>
      {({ totals, previous }) => <TotalStats totals={totals} before={previous} />}
    </Loaded>
  )
}

type TotalFigures = UsageSums['totals']

export const callsOf = ({ requests, rejected }: Pick<TotalFigures, 'requests' | 'rejected'>) => requests + rejected
export const successRate = ({ requests, errors }: Pick<TotalFigures, 'requests' | 'errors'>) =>
  requests ? formatPercent((requests - errors) / requests) : '–'

function TotalStats({ totals, before }: { totals: TotalFigures; before: TotalFigures | undefined }) {
  const change = (of: (figures: TotalFigures) => number) => (before ? changeOf(of(totals), of(before)) : '')
  return (
    <Stats>
      <Stat label="Calls" value={formatWhole(callsOf(totals))} change={change(callsOf)} />
      <Stat
        label={amountsName()}
        value={<Amount value={totals.charged} decimals={2} />}
        change={change(({ charged }) => creditsAsNumber(charged))}
      />
      <Stat label="Failed" value={formatWhole(totals.errors)} change={change(({ errors }) => errors)} />
      <Stat label="Rejected" value={formatWhole(totals.rejected)} change={change(({ rejected }) => rejected)} />
      <Stat
        label="Success rate"
        value={successRate(totals)}
        note={before?.requests ? `${successRate(before)} before` : 'of calls not rejected'}
      />
    </Stats>
  )
}

/** What each group spent against as long a time right before; empty until that is known. */
export function useGroupChange(account: string | undefined, { from, to, by }: UsageSums, filter: CallFilter = {}) {
  const start = new Date(2 * Date.parse(from) - Date.parse(to)).toISOString()
  const asked = { ...filter, from: start, to: from, by, per: 'day' } as const
  const before = useQuery(`sums/${account}/before/${JSON.stringify(asked)}`, (signal) =>
    api.sums(account, asked, signal),
  )
  const known = new Map(before.data?.groups.map(({ group, charged }) => [group, charged]))
  return ({ group, charged }: Group & { charged: string }) =>
    before.data ? changeOf(creditsAsNumber(charged), creditsAsNumber(known.get(group) ?? '0')) : ''
}

/** The sum of each step of the period. */
export const perStep = (sums: UsageSums, of: (row: UsageSums['series'][number]) => number): number[] => {
  const at = Map.groupBy(sums.series, (row) => row.at)
  return sums.steps.map((step) => at.get(step)?.reduce((sum, row) => sum + of(row), 0) ?? 0)
}

/** What became of the calls, each a way to them: "43 failed, 0 rejected". */
export function Unserved({ totals, to }: { totals: TotalFigures; to: (filter: Record<string, string>) => string }) {
  return (
    <>
      <Link to={to({ outcome: 'failed' })}>{formatWhole(totals.errors)} failed</Link>,{' '}
      <Link to={to({ outcome: 'rejected' })}>{formatWhole(totals.rejected)} rejected</Link>
    </>
  )
}

/** Against as long a time right before. */
export function changeOf(now: number, before: number): string {
  if (before === 0) return now === 0 ? 'no change' : 'new'
  const share = (now - before) / before
  if (Math.abs(share) < 0.0005) return 'no change'
  if (share >= 10) return `${formatWhole(share + 1)}× previous period`
  return `${share > 0 ? '▲' : '▼'} ${formatPercent(Math.abs(share))} vs. before`
}

export function SumsCard(scope: SumsScope) {
  const { account, filter, everyMs, onChoice } = scope
  const { groupings, by, per, measure } = useChoice(scope)
  const asked = { ...filter, by, per: per || undefined }
  const sums = useQuery(`sums/${account}/${JSON.stringify(asked)}`, (signal) => api.sums(account, asked, signal), {
    everyMs,
  })
  return (
    <Card>
      <div className="filters">
        <SelectField label="Show" value={measure} onText={(sum) => onChoice({ sum })} options={MEASURES} />
        <SelectField label="Group by" value={by} onText={(text) => onChoice({ by: text })} options={groupings} />
        <SelectField label="Step" value={per} onText={(text) => onChoice({ per: text })} options={STEPS} />
        <CsvButton
          label="Export totals"
          fetchIt={() => api.sumsCsv(account, asked)}
          name={() => csvName('totals', account, filter)}
        />
      </div>
      <Loaded query={sums} skeleton={<Skeleton lines={4} like="tall" />}>
        {(data) =>
          data.groups.length === 0 ? (
            <NoCalls />
          ) : (
            <>
              <StackedSums
                data={data}
                measure={measure}
                to={(span) => callsPath(account, { ...Object.fromEntries(scope.query), ...ofStep, ...span })}
              />
              <GroupTable data={data} account={account} filter={scope.query} asked={filter} />
            </>
          )
        }
      </Loaded>
    </Card>
  )
}

/** The calls of one step: the list, of that time alone. */
const ofStep = { view: undefined, period: undefined }

const NoCalls = () => (
  <Empty icon="usage" title="No calls match">
    <p>Try a longer period or fewer filters.</p>
  </Empty>
)

/** The largest groups as bars on one another, the others summed up above them. */
export function StackedSums({
  data,
  measure,
  title,
  to,
}: {
  data: UsageSums
  measure: Measure
  title?: string
  to?: (span: { from: string; to: string }) => string
}) {
  const value = (row: { charged: string; requests: number; rejected: number }) =>
    measure === 'charged' ? creditsAsNumber(row.charged) : callsOf(row)
  const ranked = data.groups.filter((row) => value(row) > 0).toSorted((a, b) => value(b) - value(a))
  const named = ranked.slice(0, STACKED_MAX)
  const place = new Map(named.map(({ group }, index) => [group, index]))
  const values = [...named, null].map(() => data.steps.map(() => 0))
  const column = new Map(data.steps.map((at, index) => [at, index]))
  for (const row of data.series) {
    const line = values[place.get(row.group) ?? named.length]
    const index = column.get(row.at)
    if (line && index !== undefined) line[index] = (line[index] ?? 0) + value(row)
  }
  const rest = ranked.length - named.length
  return (
    <Chart
      title={title ?? (measure === 'charged' ? amountsName() : 'Calls')}
      kind="bars"
      format={measure === 'charged' ? formatAny : formatCompact}
      to={to && ((index) => to(stepSpan(data.steps, index, data.to)))}
      {...timeAxis(data.steps, data.per)}
      series={[
        ...named.map((group, index) => ({ name: groupName(group, data.by), values: values[index] ?? [] })),
        ...(rest > 0 ? [{ name: `${rest} more`, color: 'rest' as const, values: values[named.length] ?? [] }] : []),
      ]}
    />
  )
}

interface Group {
  group: string
  name: string | null
}
/** What is in no group: calls that were rejected before their model was known, or that no vendor answered. */
const NONE: Partial<Record<Grouping, string>> = { product: 'unknown model', vendor: 'no vendor', client: 'no agent' }
const groupName = ({ group, name }: Group, by: Grouping) =>
  name ?? (group || (NONE[by] ?? (by.startsWith(LABEL) ? 'not given' : 'unknown')))

/** A group's calls are one click away: with the filters of the page, and this one. */
function GroupTable({
  data,
  account,
  filter,
  asked,
}: {
  data: UsageSums
  account: string | undefined
  filter: URLSearchParams
  asked: CallFilter
}) {
  const changeIn = useGroupChange(account, data, asked)
  const of = (group: string) =>
    data.by.startsWith(LABEL) ? { labels: labelFilter(data.by.replace(LABEL, ''), group) } : { [data.by]: group }
  const to = ({ group }: Group) =>
    callsPath(account, { ...Object.fromEntries(filter), view: undefined, by: undefined, ...of(group) })
  return (
    <Table
      label="Totals by group"
      rows={data.groups}
      rowKey={(row) => row.group}
      columns={[
        {
          head: groupingName(data.by),
          main: true,
          cell: (row) =>
            row.group ? (
              <Link to={to(row)} className="cell-link">
                {groupName(row, data.by)}
              </Link>
            ) : (
              groupName(row, data.by)
            ),
        },
        { head: 'Calls', right: true, cell: (row) => formatWhole(callsOf(row)), sort: callsOf },
        { head: 'Failed', right: true, cell: (row) => formatWhole(row.errors), sort: (row) => row.errors },
        { head: 'Rejected', right: true, cell: (row) => formatWhole(row.rejected), sort: (row) => row.rejected },
        {
          head: amountsName(),
          right: true,
          cell: (row) => <Amount value={row.charged} />,
          sort: (row) => creditsAsNumber(row.charged),
        },
        { head: 'Change', right: true, tight: true, cell: changeIn },
      ]}
    />
  )
}

/** How long calls took that succeeded: all of the filter together, and the percentile of each group. */
export function LatencyCard(scope: SumsScope) {
  const { account, filter, everyMs, onChoice } = scope
  const { groupings, by, per, percentile } = useChoice(scope)
  const asked = { ...filter, by, per: per || undefined }
  const latency = useQuery(
    `latency/${account}/${JSON.stringify(asked)}`,
    (signal) => api.latency(account, asked, signal),
    { everyMs },
  )
  return (
    <Card>
      <div className="filters">
        <SelectField label="Group by" value={by} onText={(text) => onChoice({ by: text })} options={groupings} />
        <SelectField
          label="Percentile by group"
          value={percentile}
          onText={(text) => onChoice({ percentile: text })}
          options={PERCENTILES}
        />
        <SelectField label="Step" value={per} onText={(text) => onChoice({ per: text })} options={STEPS} />
      </div>
      <Loaded query={latency} skeleton={<Skeleton lines={4} like="tall" />}>
        {(data) => (data.overall === null ? <NoCalls /> : <Latencies data={data} percentile={percentile} />)}
      </Loaded>
    </Card>
  )
}

function Latencies({ data, percentile }: { data: UsageLatency; percentile: (typeof PERCENTILES)[number][0] }) {
  const axis = timeAxis(data.steps, data.per)
  const at = new Map(data.overTime.map((row) => [row.at, row]))
  const shown = data.groups.slice(0, STACKED_MAX)
  const byGroup = new Map(data.series.map((row) => [`${row.at} ${row.group}`, row]))
  const label = PERCENTILES.find(([value]) => value === percentile)?.[1]
  return (
    <>
      {data.truncated ? <p className="muted">Of the newest {formatWhole(data.overall?.calls ?? 0)} calls.</p> : null}
      <Chart
        title="Latency of all calls"
        kind="lines"
        format={formatMs}
        {...axis}
        series={PERCENTILES.map(([value, name]) => ({
          name,
          values: data.steps.map((step) => at.get(step)?.[value] ?? null),
        }))}
      />
      <Chart
        title={`Latency ${label} by ${groupingName(data.by).toLowerCase()}`}
        kind="lines"
        format={formatMs}
        {...axis}
        series={shown.map((group) => ({
          name: groupName(group, data.by),
          values: data.steps.map((step) => byGroup.get(`${step} ${group.group}`)?.[percentile] ?? null),
        }))}
      />
      <LatencyTable data={data} />
    </>
  )
}

/** A job takes minutes and a chat seconds: one figure for both would be neither. */
export function LatencyTable({ data: { by, groups } }: { data: Pick<UsageLatency, 'by' | 'groups'> }) {
  if (groups.length === 0) return null
  return (
    <Table
      label="Latency"
      rows={groups}
      rowKey={(row) => row.group}
      columns={[
        { head: groupingName(by), main: true, cell: (row) => groupName(row, by) },
        { head: 'Calls', right: true, cell: (row) => formatWhole(row.calls), sort: (row) => row.calls },
        ...PERCENTILES.map(([value, head]) => ({
          head,
          right: true,
          cell: (row: UsageLatency['groups'][number]) => formatMs(row[value]),
          sort: (row: UsageLatency['groups'][number]) => row[value],
        })),
      ]}
    />
  )
}
