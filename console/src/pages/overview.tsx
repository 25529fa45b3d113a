import { api } from '../api.ts'
import { creditsAsNumber, formatCredits, sumCredits } from '../credits.ts'
import {
  formatAny,
  formatCompact,
  formatDate,
  formatHour,
  formatMs,
  formatPercent,
  formatTime,
  formatWhole,
  plural,
} from '../format.ts'
import { useQuery } from '../query.ts'
import { Link, setQuery, useLocation } from '../router.tsx'
import { LinkButton } from '../ui/button.tsx'
import { BarList, Chart, type ChartProps } from '../ui/chart.tsx'
import { Code } from '../ui/code.tsx'
import { Segments } from '../ui/field.tsx'
import { Amount, Card, Page, Stat, Stats } from '../ui/page.tsx'
import { Loaded, Skeleton } from '../ui/state.tsx'
import type { Overview } from '../wire.ts'
import { snippet } from './snippet.ts'

const PERIODS = [
  { value: '1', label: '24 h' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
] as const
type Period = (typeof PERIODS)[number]['value']

export function OverviewPage({ account }: { account: string }) {
  const { query } = useLocation()
  const days = PERIODS.find((period) => period.value === query.get('days'))?.value ?? '30'
  const overview = useQuery(`overview/${account}/${days}`, (signal) => api.overview(account, Number(days), signal), {
    everyMs: 60_000,
  })
  return (
    <Page
      title="Overview"
      actions={
        <Segments<Period>
          label="Period"
          value={days}
          options={PERIODS}
          onPick={(value) => setQuery({ days: value === '30' ? undefined : value })}
        />
      }
    >
      <Loaded
        query={overview}
        skeleton={
          <>
            <Skeleton lines={1} tall />
            <Skeleton lines={2} tall />
          </>
        }
      >
        {(data) => <OverviewBody account={account} data={data} />}
      </Loaded>
    </Page>
  )
}

export function OverviewBody({ account, data }: { account: string; data: Overview }) {
  const requests = data.series.reduce((sum, slot) => sum + slot.requests, 0)
  const errors = data.series.reduce((sum, slot) => sum + slot.errors, 0)
  const spent = sumCredits(data.series.map((slot) => slot.charged))
  const latencies = data.series.filter((slot) => slot.latencyMsAvg !== null)
  const answered = latencies.reduce((sum, slot) => sum + slot.requests, 0)
  const latency = latencies.reduce((sum, slot) => sum + (slot.latencyMsAvg ?? 0) * slot.requests, 0) / (answered || 1)
  const nothingYet = requests === 0
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
        <Stat label="Spent" value={formatCredits(spent, 2)} note="credits" />
        <Stat label="Requests" value={formatWhole(requests)} note={`${formatWhole(errors)} failed`} />
        <Stat
          label="Success rate"
          value={nothingYet ? '–' : formatPercent((requests - errors) / requests)}
          note={nothingYet ? 'no requests yet' : 'of all requests'}
        />
        <Stat label="Average latency" value={nothingYet ? '–' : formatMs(latency)} note="to the end of the answer" />
      </Stats>
      {nothingYet ? <FirstSteps account={account} /> : <Charts data={data} account={account} />}
    </>
  )
}

function Charts({ account, data }: { account: string; data: Overview }) {
  const slots = data.series
  const hourly = slots.length > 1 && Date.parse(slots[1]?.at ?? '') - Date.parse(slots[0]?.at ?? '') < 80_000_000
  const labels = slots.map((slot) => (hourly ? formatTime(slot.at) : `${formatDate(slot.at)} UTC`))
  const axis = slots.map((slot) => (hourly ? formatHour : formatDate)(slot.at))
  const charts: Pick<ChartProps, 'title' | 'kind' | 'format' | 'series'>[] = [
    {
      title: 'Spend',
      kind: 'bars',
      format: formatAny,
      series: [{ name: 'Credits', color: 1, values: slots.map((slot) => creditsAsNumber(slot.charged)) }],
    },
    {
      title: 'Requests',
      kind: 'bars',
      format: formatCompact,
      series: [
        { name: 'Succeeded', color: 4, values: slots.map((slot) => slot.requests - slot.errors) },
        { name: 'Failed', color: 'bad', values: slots.map((slot) => slot.errors) },
      ],
    },
    {
      title: 'Latency',
      kind: 'lines',
      format: formatMs,
      series: [{ name: 'Average', color: 3, values: slots.map((slot) => slot.latencyMsAvg) }],
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
  const products = [...data.products].sort((a, b) => creditsAsNumber(b.charged) - creditsAsNumber(a.charged))
  return (
    <>
      <div className="charts">
        {charts.map((chart) => (
          <Card key={chart.title}>
            <Chart labels={labels} axis={axis} {...chart} />
          </Card>
        ))}
      </div>
      {products.length ? (
        <Card title="By product" actions={<Link to={`/a/${encodeURIComponent(account)}/usage`}>All usage</Link>}>
          <BarList
            label="Spend by product"
            rows={products.slice(0, 8).map((entry) => ({
              name: entry.product,
              value: creditsAsNumber(entry.charged),
              shown: `${formatCredits(entry.charged, 2)} credits`,
              note: plural(entry.requests, 'request'),
            }))}
          />
        </Card>
      ) : null}
    </>
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
