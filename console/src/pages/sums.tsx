// Sums of calls over time, stacked by what the reader chose: a model, a key, a status or an endpoint.
import { api, type SumsFilter } from '../api.ts'
import { creditsAsNumber, formatCredits } from '../credits.ts'
import {
  formatAny,
  formatCompact,
  formatDate,
  formatHour,
  formatMs,
  formatPercent,
  formatTime,
  formatWhole,
} from '../format.ts'
import { useQuery } from '../query.ts'
import { Chart } from '../ui/chart.tsx'
import { SelectField } from '../ui/field.tsx'
import { Card, Stat, Stats } from '../ui/page.tsx'
import { Loaded, Skeleton } from '../ui/state.tsx'
import { Table } from '../ui/table.tsx'
import type { UsageSums } from '../wire.ts'
import { CsvButton } from './csv.tsx'

const GROUPINGS = [
  ['product', 'By model'],
  ['key', 'By key'],
  ['status', 'By status'],
  ['endpoint', 'By endpoint'],
] as const
type Grouping = (typeof GROUPINGS)[number][0]
const MEASURES = [
  ['charged', 'Credits'],
  ['requests', 'Requests'],
] as const
type Measure = (typeof MEASURES)[number][0]
const STEPS = [
  ['', 'Automatic'],
  ['hour', 'By the hour'],
  ['day', 'By the day'],
] as const

/** As many as the palette tells apart; the rest is one group. */
const STACKED_MAX = 5
const COLORS = [1, 2, 3, 4, 5] as const

interface SumsChoice {
  by: Grouping
  per: '' | 'hour' | 'day'
  measure: Measure
}

/** Reads the choice from the address, where anything may stand. */
export function readChoice(query: URLSearchParams): SumsChoice {
  const one = <T extends string>(options: readonly (readonly [T, string])[], name: string, first: T) =>
    options.find(([value]) => value === query.get(name))?.[0] ?? first
  return { by: one(GROUPINGS, 'by', 'product'), per: one(STEPS, 'per', ''), measure: one(MEASURES, 'sum', 'charged') }
}

export function SumsCard({
  account,
  filter,
  choice,
  onChoice,
  everyMs,
}: {
  account: string
  filter: Omit<SumsFilter, 'by' | 'per'>
  choice: SumsChoice
  onChoice: (change: Record<string, string>) => void
  everyMs?: number | undefined
}) {
  const asked = { ...filter, by: choice.by, per: choice.per || undefined }
  const sums = useQuery(`sums/${account}/${JSON.stringify(asked)}`, (signal) => api.sums(account, asked, signal), {
    everyMs,
  })
  return (
    <Card>
      <div className="filters">
        <SelectField label="Show" value={choice.measure} onText={(sum) => onChoice({ sum })} options={MEASURES} />
        <SelectField label="Group" value={choice.by} onText={(by) => onChoice({ by })} options={GROUPINGS} />
        <SelectField label="Step" value={choice.per} onText={(per) => onChoice({ per })} options={STEPS} />
        <CsvButton label="Export totals" fetchIt={() => api.sumsCsv(account, asked)} name={`sums-${account}.csv`} />
      </div>
      <Loaded query={sums} skeleton={<Skeleton lines={4} tall />}>
        {(data) => <SumsBody data={data} measure={choice.measure} />}
      </Loaded>
    </Card>
  )
}

function SumsBody({ data, measure }: { data: UsageSums; measure: Measure }) {
  const { totals } = data
  return (
    <>
      <Stats>
        <Stat label="Credits" value={formatCredits(totals.charged, 2)} note="charged" />
        <Stat label="Calls" value={formatWhole(totals.requests)} note={`${formatWhole(totals.errors)} failed`} />
        <Stat
          label="Rejected"
          value={formatWhole(totals.refused)}
          note="by the gateway; not charged, not counted above"
        />
        <Stat
          label="Success rate"
          value={totals.requests ? formatPercent((totals.requests - totals.errors) / totals.requests) : '–'}
          note="of the calls"
        />
      </Stats>
      {data.series.length ? <StackedSums data={data} measure={measure} /> : null}
      {data.groups.length ? <GroupTable data={data} /> : null}
    </>
  )
}

/** The dearest groups as bars on one another, the others summed up above them. */
export function StackedSums({ data, measure, title }: { data: UsageSums; measure: Measure; title?: string }) {
  const times = stepsOf(data)
  const value = (row: { charged: string; requests: number }) =>
    measure === 'charged' ? creditsAsNumber(row.charged) : row.requests
  const ranked = data.groups.toSorted((a, b) => value(b) - value(a))
  const named = ranked.slice(0, STACKED_MAX)
  const place = new Map(named.map(({ group }, index) => [group, index]))
  const values = [...named, null].map(() => times.map(() => 0))
  const column = new Map(times.map((at, index) => [at, index]))
  for (const row of data.series) {
    const line = values[place.get(row.group) ?? named.length]
    const index = column.get(row.at) ?? 0
    if (line) line[index] = (line[index] ?? 0) + value(row)
  }
  const rest = ranked.length - named.length
  const hourly = data.per === 'hour'
  return (
    <Chart
      title={title ?? (measure === 'charged' ? 'Credits' : 'Requests')}
      kind="bars"
      format={measure === 'charged' ? formatAny : formatCompact}
      labels={times.map((at) => (hourly ? formatTime(at) : `${formatDate(at)} UTC`))}
      axis={times.map(hourly ? formatHour : formatDate)}
      series={[
        ...named.map((group, index) => ({
          name: groupName(group),
          color: COLORS[index] ?? 1,
          values: values[index] ?? [],
        })),
        ...(rest > 0 ? [{ name: `${rest} more`, color: 6 as const, values: values[named.length] ?? [] }] : []),
      ]}
    />
  )
}

const HOUR_MS = 3_600_000

/** Each step of the range, also those in which nothing happened: a chart without them is no chart of time. */
function stepsOf({ from, to, per }: UsageSums): string[] {
  const stepMs = per === 'hour' ? HOUR_MS : 24 * HOUR_MS
  const [first, last] = [Date.parse(from), Math.min(Date.parse(to), Date.now())]
  const count = Math.max(1, Math.floor((last - first) / stepMs) + 1)
  return Array.from({ length: count }, (_, index) => new Date(first + index * stepMs).toISOString())
}

const groupName = ({ group, name }: UsageSums['groups'][number]) => name ?? (group || 'unknown')

function GroupTable({ data }: { data: UsageSums }) {
  return (
    <details className="fold">
      <summary>All {formatWhole(data.groups.length)} groups and latency</summary>
      <Table
        label="Groups"
        rows={data.groups}
        rowKey={(row) => row.group}
        columns={[
          { head: 'Group', main: true, cell: groupName },
          { head: 'Calls', right: true, cell: (row) => formatWhole(row.requests), sort: (row) => row.requests },
          { head: 'Failed', right: true, cell: (row) => formatWhole(row.errors), sort: (row) => row.errors },
          {
            head: 'Credits',
            right: true,
            cell: (row) => formatCredits(row.charged),
            sort: (row) => creditsAsNumber(row.charged),
          },
        ]}
      />
      <LatencyTable rows={data.latency} />
    </details>
  )
}

/** A job takes minutes and a chat seconds: one figure for both would be neither. */
export function LatencyTable({ rows }: { rows: UsageSums['latency'] }) {
  if (rows.length === 0) return null
  return (
    <Table
      label="Time to answer, by kind"
      rows={rows}
      rowKey={(row) => row.kind}
      columns={[
        { head: 'Kind', main: true, cell: (row) => row.kind },
        { head: 'Calls looked at', right: true, cell: (row) => formatWhole(row.calls) },
        { head: 'p50', right: true, cell: (row) => formatMs(row.p50Ms) },
        { head: 'p95', right: true, cell: (row) => formatMs(row.p95Ms) },
      ]}
    />
  )
}
