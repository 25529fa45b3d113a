import { api } from '../api.ts'
import { amountText, creditsAsNumber, sumCredits } from '../credits.ts'
import { formatCompact, formatWhole, plural } from '../format.ts'
import { callsPath, PERIODS, type Period, periodQuery, spanOf, stepSpan } from '../period.ts'
import { useQuery } from '../query.ts'
import { Link, setQuery, useLocation } from '../router.tsx'
import { LinkButton } from '../ui/button.tsx'
import { BarList, Chart, type ChartProps } from '../ui/chart.tsx'
import { Code } from '../ui/code.tsx'
import { Segments } from '../ui/field.tsx'
import { Amount, Card, Page, Stat, Stats } from '../ui/page.tsx'
import { Loaded, Skeleton } from '../ui/state.tsx'
import { timeAxis } from '../ui/time-axis.ts'
import type { Overview, UsageSums } from '../wire.ts'
import { AccountFills } from './limit-fill.tsx'
import { RangeFields } from './range-fields.tsx'
import { snippet } from './snippet.ts'
import {
  callsOf,
  changeOf,
  LatencyTable,
  perStep,
  StackedSums,
  successRate,
  Unserved,
  useGroupChange,
} from './sums.tsx'

const SHOWN = PERIODS.filter(({ value }) => value !== 'today' && value !== 'yesterday')
/** Of the margin, which is of so many days before now. */
const DAYS: Partial<Record<Period, number>> = { '24h': 1, '7d': 7, '30d': 30, '90d': 90 }
const STACKS = [
  { value: 'product', label: 'By model' },
  { value: 'key', label: 'By key' },
] as const
type Stack = (typeof STACKS)[number]['value']

export function OverviewPage({ account }: { account: string }) {
  const { query } = useLocation()
  const { period, from, to } = spanOf(query)
  const by = STACKS.find(({ value }) => value === query.get('by'))?.value ?? 'product'
  const days = DAYS[period]
  const everyMs = 60_000
  const overview = useQuery(`overview/${account}/${days}`, (signal) => api.overview(account, days ?? 1, signal), {
    everyMs,
  })
  const sums = useQuery(
    `overview/${account}/sums/${by}/${from}/${to}`,
    (signal) => api.sums(account, { from, to, by, compare: 'true' }, signal),
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
            options={SHOWN}
            onPick={(value) =>
              setQuery({ period: value === '30d' ? undefined : value, from: undefined, to: undefined })
            }
          />
        </>
      }
    >
      {period === 'range' ? (
        <div className="filters">
          <RangeFields from={query.get('from') ?? undefined} to={query.get('to') ?? undefined} />
        </div>
      ) : null}
      <Loaded
        query={overview}
        skeleton={
          <>
            <Skeleton lines={1} like="tall" />
            <Skeleton lines={2} like="tall" />
          </>
        }
      >
        {(data) => (
          <Loaded query={sums} skeleton={<Skeleton lines={2} like="tall" />}>
            {(summed) => <OverviewBody account={account} data={data} sums={summed} days={days} />}
          </Loaded>
        )}
      </Loaded>
    </Page>
  )
}

interface BodyProps {
  account: string
  data: Overview
  sums: UsageSums
  /** Undefined for a range of one's own, which has no margin. */
  days?: number | undefined
}

/** The same figure as in the operator's list and in alerts. */
function lastsOf({ daysLeft: left }: Overview): string | undefined {
  if (left === null) return undefined
  return left < 1 ? 'less than a day' : left > 365 ? 'over a year' : plural(Math.floor(left), 'day')
}

/** The figures, each a way to the calls behind it. */
function OverviewBody({ account, data, sums, days }: BodyProps) {
  const { query } = useLocation()
  const { totals, previous: before } = sums
  const to = (filter: Record<string, string> = {}) => callsPath(account, { ...periodQuery(query), ...filter })
  const change = (of: (figures: UsageSums['totals']) => number) => (before ? changeOf(of(totals), of(before)) : '')
  return (
    <>
      <Stats>
        <Stat
          label="Available"
          value={<Amount value={data.available} decimals={2} />}
          note={
            <>
              {data.daysLeft === null ? '' : `lasts ${lastsOf(data)}, `}
              <Amount value={data.held} decimals={2} worth={null} /> held
            </>
          }
        />
        <Stat
          label="Spent"
          value={<Amount value={totals.charged} decimals={2} />}
          change={change(({ charged }) => creditsAsNumber(charged))}
          spark={perStep(sums, ({ charged }) => creditsAsNumber(charged))}
          to={to({ outcome: 'settled' })}
        />
        <Stat
          label="Calls"
          value={formatWhole(callsOf(totals))}
          change={change(callsOf)}
          spark={perStep(sums, callsOf)}
          to={to()}
        />
        <Stat
          label="Success rate"
          value={successRate(totals)}
          note={<Unserved totals={totals} to={to} />}
          to={to({ outcome: 'succeeded' })}
        />
        {days && data.margin?.requests ? (
          <Stat
            label="Margin"
            value={<Amount value={sumCredits([data.margin.charged]) - sumCredits([data.margin.cost])} decimals={2} />}
            note={`of ${plural(data.margin.requests, 'call')} with a known cost`}
            to={to({ outcome: 'settled' })}
          />
        ) : null}
      </Stats>
      <AccountFills account={account} />
      {callsOf(totals) === 0 ? <FirstSteps account={account} /> : <Charts account={account} sums={sums} />}
    </>
  )
}

function Charts({ account, sums }: Pick<BodyProps, 'account' | 'sums'>) {
  const { from, to } = sums
  const latency = useQuery(`overview/${account}/latency/${from}/${to}`, (signal) =>
    api.latency(account, { from, to, by: 'endpoint' }, signal),
  )
  const over = (of: (row: UsageSums['series'][number]) => number) => perStep(sums, of)
  const hasTokens = sums.series.some(({ inputTokens, outputTokens }) => inputTokens || outputTokens)
  const charts: Pick<ChartProps, 'title' | 'series'>[] = [
    {
      title: 'Failed and rejected calls',
      series: [
        { name: 'Failed', values: over(({ errors }) => errors) },
        { name: 'Rejected', values: over(({ rejected }) => rejected) },
      ],
    },
    {
      title: 'Tokens',
      series: [
        { name: 'Input', values: over(({ inputTokens }) => inputTokens ?? 0) },
        { name: 'Output', values: over(({ outputTokens }) => outputTokens ?? 0) },
      ],
    },
  ]
  return (
    <>
      <div className="charts">
        <Card>
          <StackedSums data={sums} measure="charged" title="Spend" to={(span) => callsPath(account, span)} />
        </Card>
        <Card>
          <StackedSums data={sums} measure="calls" title="Calls" to={(span) => callsPath(account, span)} />
        </Card>
        {charts.slice(0, hasTokens ? 2 : 1).map((chart) => (
          <Card key={chart.title}>
            <Chart
              kind="bars"
              format={formatCompact}
              to={(index) => callsPath(account, stepSpan(sums.steps, index, sums.to))}
              {...timeAxis(sums.steps, sums.per)}
              {...chart}
            />
          </Card>
        ))}
      </div>
      <Spenders account={account} sums={sums} />
      {latency.data?.groups.length ? (
        <Card flush title="Latency" lead="Successful calls, by endpoint.">
          <LatencyTable data={latency.data} />
        </Card>
      ) : null}
    </>
  )
}

const SPENDERS_MAX = 8

/** The dearest, each a way to its calls, and the rest in one line. */
function Spenders({ account, sums }: { account: string; sums: UsageSums }) {
  const { query } = useLocation()
  const period = periodQuery(query)
  const filter = sums.by === 'key' ? 'key' : 'product'
  const changeIn = useGroupChange(account, sums)
  // What was only rejected spent nothing.
  const groups = sums.groups.filter(({ requests }) => requests > 0)
  const rest = groups.slice(SPENDERS_MAX)
  const row = (one: UsageSums['groups'][number]) => ({
    name: one.name ?? one.group,
    value: creditsAsNumber(one.charged),
    shown: amountText(one.charged),
    note: [plural(one.requests, 'call'), changeIn(one)].filter(Boolean).join(', '),
    to: callsPath(account, { ...period, [filter]: one.group }),
  })
  if (groups.length === 0) return null
  const restSum = sumCredits(rest.map(({ charged }) => charged))
  const more = {
    name: `${rest.length} more`,
    color: 'rest' as const,
    value: rest.reduce((sum, { charged }) => sum + creditsAsNumber(charged), 0),
    shown: amountText(restSum),
    note: plural(
      rest.reduce((sum, { requests }) => sum + requests, 0),
      'call',
    ),
    to: callsPath(account, { ...period, view: 'chart', by: sums.by }),
  }
  return (
    <Card
      title={sums.by === 'key' ? 'By key' : 'By model'}
      actions={<Link to={callsPath(account, { ...period, view: 'chart', by: sums.by })}>All usage</Link>}
    >
      <BarList
        named
        label={sums.by === 'key' ? 'Spend by key' : 'Spend by model'}
        rows={[...groups.slice(0, SPENDERS_MAX).map(row), ...(rest.length ? [more] : [])]}
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
          <h3>Create a key</h3>
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
          <p className="muted">The playground uses the same endpoints and shows what each answer costs.</p>
          <LinkButton to={`${base}/playground`} icon="play">
            Open the playground
          </LinkButton>
        </li>
      </ol>
    </Card>
  )
}
