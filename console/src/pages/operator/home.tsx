// What an operator looks at first: whether something is ill, who runs out of credits, what is spent, and what is left to set up.
import { api } from '../../api.ts'
import { creditsAsNumber, formatCredits, parseCredits } from '../../credits.ts'
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
} from '../../format.ts'
import { useQuery } from '../../query.ts'
import { Link, setQuery, useLocation } from '../../router.tsx'
import { BarList, Chart } from '../../ui/chart.tsx'
import { Segments } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Amount, Badge, Card, Page, Stat, Stats } from '../../ui/page.tsx'
import { Empty, Loaded, Skeleton } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import type { HomeFigures } from '../../wire.ts'
import { vendorState, worstFirst } from './vendor-state.ts'

const PERIODS = [
  { value: '1', label: '24 h' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
] as const
type Period = (typeof PERIODS)[number]['value']

const accountAt = (id: string) => `/operator/accounts/${encodeURIComponent(id)}`

export function HomePage() {
  const { query } = useLocation()
  const days = PERIODS.find(({ value }) => value === query.get('days'))?.value ?? '7'
  const home = useQuery(`home/${days}`, (signal) => api.home(Number(days), signal), { everyMs: 30_000 })
  return (
    <Page
      title="Home"
      lead="All accounts together."
      actions={
        <Segments<Period> label="Period" value={days} options={PERIODS} onPick={(value) => setQuery({ days: value })} />
      }
    >
      <Loaded query={home} skeleton={<Skeleton lines={3} tall />}>
        {(data) => (
          <>
            <Checklist calls={data.totals.requests} />
            <HomeStats data={data} />
            <Vendors />
            <Losses data={data} />
            <LowBalances rows={data.lowBalances} />
            <HomeCharts data={data} />
            <TopAccounts rows={data.topAccounts} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function HomeStats({ data: { totals, margin } }: { data: HomeFigures }) {
  return (
    <Stats>
      <Stat label="Spent" value={formatCredits(totals.charged, 2)} note="credits" />
      <Stat label="Calls" value={formatWhole(totals.requests)} note={`${formatWhole(totals.errors)} failed`} />
      <Stat
        label="Failure rate"
        value={totals.requests ? formatPercent(totals.errors / totals.requests) : '–'}
        note="of the calls"
      />
      <MarginStat margin={margin} />
      <Stat label="Rejected" value={formatWhole(totals.refused)} note="by the gateway, not charged" />
      <Stat label="Average latency" value={formatMs(totals.latencyMsAvg)} note="to the end of the answer" />
    </Stats>
  )
}

/** What is left of the calls whose cost is known; of the others it cannot be said. */
function MarginStat({ margin }: { margin: HomeFigures['margin'] }) {
  const [charged, costed, cost] = [margin.charged, margin.costed, margin.cost].map((text) => parseCredits(text) ?? 0n)
  if (!costed && !cost) return <Stat label="Margin" value="–" note="no route has a cost in the catalog" />
  const left = (costed ?? 0n) - (cost ?? 0n)
  const share = costed ? ` (${formatPercent(Number(left) / Number(costed))})` : ''
  const known =
    charged && charged > (costed ?? 0n) ? `, of ${formatPercent(Number(costed) / Number(charged))} of the spend` : ''
  return <Stat label="Margin" value={formatCredits(left, 2)} note={`credits${share}${known}`} />
}

/** Routes that cost more than they bring: as counted, and as the catalog prices them. */
function Losses({ data: { losing, lossNotes } }: { data: HomeFigures }) {
  if (losing.length === 0 && lossNotes.length === 0) return null
  return (
    <Card
      flush={losing.length > 0}
      title="Losing money"
      lead="Routes on which the vendor’s cost is above the charge."
      actions={<Link to="/operator/catalogue">Prices and routes</Link>}
    >
      {losing.length ? (
        <Table
          label="Losing routes"
          rows={losing}
          rowKey={({ product, route }) => `${product} ${route}`}
          columns={[
            { head: 'Model', main: true, cell: ({ product }) => <b>{product}</b> },
            { head: 'Route', right: true, cell: ({ route }) => route },
            { head: 'Calls', right: true, cell: ({ calls }) => formatWhole(calls) },
            { head: 'Brought', right: true, cell: ({ charged }) => <Amount value={charged} decimals={2} /> },
            { head: 'Cost', right: true, cell: ({ cost }) => <Amount value={cost} decimals={2} /> },
          ]}
        />
      ) : null}
      {lossNotes.length ? (
        <ul className={losing.length ? 'card-note small' : 'small'}>
          {lossNotes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      ) : null}
    </Card>
  )
}

/** Those that need somebody; the others are on their own page. */
function Vendors() {
  const vendors = useQuery('vendors', api.vendors, { everyMs: 10_000 })
  const ill = worstFirst(vendors.data?.items ?? []).filter((vendor) => vendorState(vendor).worry > 1)
  return (
    <Card title="Vendors" actions={<Link to="/operator/vendors">All vendors</Link>}>
      {ill.length === 0 ? (
        <p className="muted">{vendors.data ? 'All vendors are healthy.' : '…'}</p>
      ) : (
        <Table
          label="Unhealthy vendors"
          rows={ill}
          rowKey={(vendor) => vendor.name}
          to={() => '/operator/vendors'}
          columns={[
            { head: 'Vendor', main: true, cell: (vendor) => <Named name={vendor.name} to="/operator/vendors" /> },
            {
              head: 'State',
              cell: (vendor) => <Badge tone={vendorState(vendor).tone}>{vendorState(vendor).label}</Badge>,
            },
            { head: 'Last error', cell: (vendor) => vendor.lastError ?? <span className="muted">–</span> },
          ]}
        />
      )}
    </Card>
  )
}

/** What lasts longer than this is not low. */
const LOW_DAYS = 30

function LowBalances({ rows: all }: { rows: HomeFigures['lowBalances'] }) {
  const rows = all.filter(({ daysLeft }) => daysLeft < LOW_DAYS)
  if (rows.length === 0) return null
  return (
    <Card flush title="Running out of credits" lead="At last week’s rate.">
      <Table
        label="Running out of credits"
        rows={rows}
        rowKey={(row) => row.id}
        to={(row) => accountAt(row.id)}
        columns={[
          { head: 'Account', main: true, cell: (row) => <Named name={row.name} to={accountAt(row.id)} /> },
          { head: 'Available', right: true, cell: (row) => <Amount value={row.available} decimals={2} /> },
          { head: 'A day', right: true, cell: (row) => <Amount value={row.perDay} decimals={2} /> },
          {
            head: 'Runway',
            right: true,
            cell: (row) => (
              <Badge tone={row.daysLeft < 2 ? 'bad' : row.daysLeft < 7 ? 'warn' : 'calm'}>
                {row.daysLeft < 1 ? 'less than a day' : plural(Math.floor(row.daysLeft), 'day')}
              </Badge>
            ),
          },
        ]}
      />
    </Card>
  )
}

function HomeCharts({ data: { series, per } }: { data: HomeFigures }) {
  if (series.every(({ requests }) => requests === 0)) return null
  const hourly = per === 'hour'
  const labels = series.map(({ at }) => (hourly ? formatTime(at) : `${formatDate(at)} UTC`))
  const axis = series.map(({ at }) => (hourly ? formatHour : formatDate)(at))
  return (
    <div className="charts">
      <Card>
        <Chart
          title="Spend"
          kind="bars"
          format={formatAny}
          {...{ labels, axis }}
          series={[{ name: 'Credits', color: 1, values: series.map(({ charged }) => creditsAsNumber(charged)) }]}
        />
      </Card>
      <Card>
        <Chart
          title="Calls"
          kind="bars"
          format={formatCompact}
          {...{ labels, axis }}
          series={[
            { name: 'Succeeded', color: 4, values: series.map(({ requests, errors }) => requests - errors) },
            { name: 'Failed', color: 'bad', values: series.map(({ errors }) => errors) },
          ]}
        />
      </Card>
      <Card>
        <Chart
          title="Latency"
          kind="lines"
          format={formatMs}
          {...{ labels, axis }}
          series={[{ name: 'Average', color: 3, values: series.map(({ latencyMsAvg }) => latencyMsAvg) }]}
        />
      </Card>
    </div>
  )
}

function TopAccounts({ rows }: { rows: HomeFigures['topAccounts'] }) {
  if (rows.length === 0)
    return (
      <Empty icon="accounts" title="No calls in this period">
        <p>Accounts that spend credits appear here.</p>
      </Empty>
    )
  return (
    <Card title="Top customers" actions={<Link to="/operator/accounts">All accounts</Link>}>
      <BarList
        label="Spend by account"
        rows={rows.map((row) => ({
          name: row.name,
          value: creditsAsNumber(row.charged),
          shown: `${formatCredits(row.charged, 2)} credits`,
          note: plural(row.requests, 'call'),
          to: accountAt(row.id),
        }))}
      />
    </Card>
  )
}

/** Gone once everything is done. */
function Checklist({ calls }: { calls: number }) {
  const vendors = useQuery('vendors', api.vendors)
  const accounts = useQuery('accounts/first', (signal) => api.accounts({ limit: 20 }, signal))
  const operators = useQuery('operators', api.operators)
  const checks = useQuery('ledger-checks', api.ledgerChecks)
  const alerts = useQuery('alert-settings/', (signal) => api.alertSettings(undefined, signal))
  if (!vendors.data || !accounts.data || !operators.data || !checks.data || !alerts.data) return null
  const real = vendors.data.items.some((one) => !one.simulated && (one.credential.present || !one.credential.name))
  const funded = accounts.data.items.some(({ available }) => creditsAsNumber(available) > 0)
  const steps = [
    { done: accounts.data.items.length > 0, to: '/operator/accounts', label: 'Create an account' },
    { done: funded, to: '/operator/accounts', label: 'Give it credits' },
    { done: calls > 0, to: '/', label: 'Make a key and the first call' },
    { done: real, to: '/operator/vendors', label: 'Connect a real vendor; all are simulated until then' },
    { done: operators.data.items.length > 1, to: '/operator/operators', label: 'Invite a second operator' },
    {
      done: alerts.data.receivers.length > 0,
      to: '/operator/alerts/rules',
      label: 'Set up alert recipients',
    },
    { done: checks.data.last !== null, to: '/operator/ledger', label: 'Check the ledger once' },
  ]
  const left = steps.filter(({ done }) => !done).length
  if (left === 0) return null
  return (
    <Card title="Setup" lead={`${plural(left, 'step')} left.`}>
      <ul className="checklist">
        {steps.map(({ done, to, label }) => (
          <li key={label} className={done ? 'muted' : undefined}>
            <Icon name={done ? 'check' : 'right'} size={16} />
            {done ? <span>{label}</span> : <Link to={to}>{label}</Link>}
            <span className="sr-only">{done ? 'done' : 'to do'}</span>
          </li>
        ))}
      </ul>
    </Card>
  )
}
