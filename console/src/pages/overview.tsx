import { api } from '../api.ts'
import { creditsAsNumber, formatCredits, sumCredits } from '../credits.ts'
import { formatCompact, formatDate, formatHour, formatPercent, formatTime, formatWhole, plural } from '../format.ts'
import { useQuery } from '../query.ts'
import { Link, setQuery, useLocation } from '../router.tsx'
import { LinkButton } from '../ui/button.tsx'
import { BarList, Chart, type ChartProps } from '../ui/chart.tsx'
import { Code } from '../ui/code.tsx'
import { Segments, TextField } from '../ui/field.tsx'
import { Amount, Card, Page, Stat, Stats } from '../ui/page.tsx'
import { Loaded, Skeleton } from '../ui/state.tsx'
import type { Overview, UsageSums } from '../wire.ts'
import { dayStart } from '../zone.ts'
import { AccountFills } from './limit-fill.tsx'
import { snippet } from './snippet.ts'
import { LatencyTable, StackedSums } from './sums.tsx'

const PERIODS = [
  { value: '1', label: '24 h' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
  { value: 'range', label: 'Range' },
] as const
type Period = (typeof PERIODS)[number]['value']
const HOUR_MS = 3_600_000
const STACKS = [
  { value: 'product', label: 'By model' },
  { value: 'key', label: 'By key' },
] as const
type Stack = (typeof STACKS)[number]['value']

export function OverviewPage({ account }: { account: string }) {
  const { query } = useLocation()
  const period = PERIODS.find(({ value }) => value === query.get('days'))?.value ?? '30'
  const by = STACKS.find(({ value }) => value === query.get('by'))?.value ?? 'product'
  const days = period === 'range' ? 1 : Number(period)
  const everyMs = 60_000
  const overview = useQuery(`overview/${account}/${days}`, (signal) => api.overview(account, days, signal), { everyMs })
  const range = rangeOf(period, query)
  const sums = useQuery(
    `overview/${account}/sums/${by}/${JSON.stringify(range)}`,
    (signal) => api.sums(account, { ...range, by }, signal),
    { everyMs },
  )
  return (
    <Page
      title="Overview"
      actions={
        <>
          <Segments<Stack>
            label="Stack"
            value={by}
            options={STACKS}
            onPick={(value) => setQuery({ by: value === 'product' ? undefined : value })}
          />
          <Segments<Period>
            label="Period"
            value={period}
            options={PERIODS}
            onPick={(value) => setQuery({ days: value === '30' ? undefined : value })}
          />
        </>
      }
    >
      {period === 'range' ? <RangeFields query={query} /> : null}
      <Loaded
        query={overview}
        skeleton={
          <>
            <Skeleton lines={1} tall />
            <Skeleton lines={2} tall />
          </>
        }
      >
        {(data) => (
          <Loaded query={sums} skeleton={<Skeleton lines={2} tall />}>
            {(summed) => (
              <OverviewBody account={account} data={data} sums={summed} days={period === 'range' ? undefined : days} />
            )}
          </Loaded>
        )}
      </Loaded>
    </Page>
  )
}

/** Whole hours, so that the same question is asked until the next one. */
function rangeOf(period: Period, query: URLSearchParams): { from?: string | undefined; to?: string | undefined } {
  if (period === 'range')
    return { from: dayStart(query.get('from') ?? undefined, 0), to: dayStart(query.get('to') ?? undefined, 1) }
  const end = Math.ceil(Date.now() / HOUR_MS) * HOUR_MS
  return { from: new Date(end - Number(period) * 24 * HOUR_MS).toISOString() }
}

function RangeFields({ query }: { query: URLSearchParams }) {
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? '']
  return (
    <div className="filters">
      <TextField label="From" type="date" value={from} max={to} onText={(text) => setQuery({ from: text })} />
      <TextField label="To" type="date" value={to} min={from} onText={(text) => setQuery({ to: text })} />
    </div>
  )
}

interface BodyProps {
  account: string
  data: Overview
  sums: UsageSums
  /** Undefined for a range of one's own, which has no tokens over time. */
  days: number | undefined
}

/** The same figure as in the operator's list and in alerts. */
function lastsOf({ daysLeft: left }: Overview): string | undefined {
  if (left === null) return undefined
  return left < 1 ? 'less than a day' : left > 365 ? 'over a year' : plural(Math.floor(left), 'day')
}

export function OverviewBody({ account, data, sums, days }: BodyProps) {
  const { requests, errors, charged, refused } = sums.totals
  const nothingYet = requests === 0 && refused === 0
  return (
    <>
      <Stats>
        <Stat
          label="Available"
          value={<Amount value={data.available} decimals={2} />}
          note={
            <>
              credits, <Amount value={data.held} decimals={2} /> held
            </>
          }
        />
        {data.daysLeft === null ? null : <Stat label="Runway" value={lastsOf(data)} note="at last week’s rate" />}
        <Stat label="Spent" value={formatCredits(charged, 2)} note="credits" />
        <Stat label="Requests" value={formatWhole(requests)} note={`${formatWhole(errors)} failed`} />
        <Stat
          label="Success rate"
          value={requests === 0 ? '–' : formatPercent((requests - errors) / requests)}
          note={requests === 0 ? 'no requests yet' : 'of all requests'}
        />
        <Stat
          label="Rejected"
          value={
            <Link to={`/a/${encodeURIComponent(account)}/usage?outcome=refused`} className="plain-link">
              {formatWhole(refused)}
            </Link>
          }
          note="by the gateway, not charged"
        />
        {data.margin?.requests ? (
          <Stat
            label="Margin"
            value={formatCredits(sumCredits([data.margin.charged]) - sumCredits([data.margin.cost]), 2)}
            note={`of ${plural(data.margin.requests, 'call')} with a known cost`}
          />
        ) : null}
      </Stats>
      <AccountFills account={account} />
      {nothingYet ? <FirstSteps account={account} /> : <Charts {...{ account, data, sums, days }} />}
    </>
  )
}

function Charts({ account, data, sums, days }: BodyProps) {
  const slots = data.series
  const hourly = slots.length > 1 && Date.parse(slots[1]?.at ?? '') - Date.parse(slots[0]?.at ?? '') < 80_000_000
  const labels = slots.map((slot) => (hourly ? formatTime(slot.at) : `${formatDate(slot.at)} UTC`))
  const axis = slots.map((slot) => (hourly ? formatHour : formatDate)(slot.at))
  const charts: Pick<ChartProps, 'title' | 'kind' | 'format' | 'series'>[] = [
    {
      title: 'Failed requests',
      kind: 'bars',
      format: formatCompact,
      series: [{ name: 'Failed', color: 'bad', values: slots.map((slot) => slot.errors) }],
    },
    {
      title: 'Tokens',
      kind: 'bars',
      format: formatCompact,
      series: [
        { name: 'Input', color: 1, values: slots.map((slot) => slot.inputTokens) },
        { name: 'Output', color: 2, values: slots.map((slot) => slot.outputTokens) },
      ],
    },
  ]
  return (
    <>
      <div className="charts">
        <Card>
          <StackedSums data={sums} measure="charged" title="Spend" />
        </Card>
        <Card>
          <StackedSums data={sums} measure="requests" title="Requests" />
        </Card>
        {(days ? charts : []).map((chart) => (
          <Card key={chart.title}>
            <Chart labels={labels} axis={axis} {...chart} />
          </Card>
        ))}
      </div>
      <Spenders account={account} sums={sums} />
      {sums.latency.length ? (
        <Card flush title="Time to answer" lead="Of the newest calls of the period, by kind: jobs apart from chats.">
          <LatencyTable rows={sums.latency} />
        </Card>
      ) : null}
    </>
  )
}

const SPENDERS_MAX = 8

/** The dearest, each a way to its calls, and the rest in one line. */
function Spenders({ account, sums }: { account: string; sums: UsageSums }) {
  const base = `/a/${encodeURIComponent(account)}/usage`
  const filter = sums.by === 'key' ? 'key' : 'product'
  const rest = sums.groups.slice(SPENDERS_MAX)
  const row = ({ group, name, requests, charged }: UsageSums['groups'][number]) => ({
    name: name ?? group,
    value: creditsAsNumber(charged),
    shown: `${formatCredits(charged, 2)} credits`,
    note: plural(requests, 'request'),
    to: `${base}?${filter}=${encodeURIComponent(group)}`,
  })
  if (sums.groups.length === 0) return null
  const restSum = sumCredits(rest.map(({ charged }) => charged))
  const more = {
    name: `${rest.length} more`,
    value: Number(restSum) / 1e6,
    shown: `${formatCredits(restSum, 2)} credits`,
    note: plural(
      rest.reduce((sum, { requests }) => sum + requests, 0),
      'request',
    ),
    to: `${base}?by=${sums.by}`,
  }
  return (
    <Card
      title={sums.by === 'key' ? 'By key' : 'By product'}
      actions={<Link to={`${base}?by=${sums.by}`}>All usage</Link>}
    >
      <BarList
        label={sums.by === 'key' ? 'Spend by key' : 'Spend by product'}
        rows={[...sums.groups.slice(0, SPENDERS_MAX).map(row), ...(rest.length ? [more] : [])]}
      />
    </Card>
  )
}

function FirstSteps({ account }: { account: string }) {
  const base = `/a/${encodeURIComponent(account)}`
  return (
    <Card
      title="Getting started"
      lead="This account has made no requests in this period. Three steps to the first one:"
    >
      <ol className="steps">
        <li>
          <h3>Make a key</h3>
          <p className="muted">It is shown once. Give it a name that says where it is used.</p>
          <LinkButton to={`${base}/keys?new=1`} look="primary" icon="key">
            Create a key
          </LinkButton>
        </li>
        <li>
          <h3>Send a request</h3>
          <p className="muted">From a terminal, with the key in place of the variable:</p>
          <Code label="Example request" text={snippet('curl', { kind: 'chat', model: 'alpha-5.4' })} />
        </li>
        <li>
          <h3>Or try it here</h3>
          <p className="muted">The playground talks to the same endpoints and shows what each answer costs.</p>
          <LinkButton to={`${base}/playground`} icon="play">
            Open the playground
          </LinkButton>
        </li>
      </ol>
    </Card>
  )
}
