// What an operator looks at first: whether something is ill, who runs out of credits, what is spent, and what is left
// to set up.
import { api } from '../../api.ts'
import { amountText, creditsAsNumber, parseCredits } from '../../credits.ts'
import { formatCompact, formatMs, formatPercent, formatWhole, plural } from '../../format.ts'
import { callsPath, PERIODS, type Period, periodQuery, spanOf, stepSpan } from '../../period.ts'
import { useQuery } from '../../query.ts'
import { Link, setQuery, useLocation } from '../../router.tsx'
import { useSession } from '../../session.tsx'
import { BarList, Chart } from '../../ui/chart.tsx'
import { Segments } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Amount, Badge, Card, Page, Stat, Stats } from '../../ui/page.tsx'
import { Empty, Loaded, Skeleton } from '../../ui/state.tsx'
import { Named, Table } from '../../ui/table.tsx'
import { timeAxis } from '../../ui/time-axis.ts'
import type { HomeFigures, UsageSums } from '../../wire.ts'
import { callsOf, changeOf, perStep, StackedSums, Unserved } from '../sums.tsx'
import { vendorState, worstFirst } from './vendor-state.ts'

const DAYS: Partial<Record<Period, number>> = { '24h': 1, '7d': 7, '30d': 30 }
const SHOWN = PERIODS.filter(({ value }) => DAYS[value])
const USUAL: Period = '7d'

const accountAt = (id: string) => `/operator/accounts/${encodeURIComponent(id)}`

export function HomePage() {
  const { query } = useLocation()
  const { period, from, to } = spanOf(query, USUAL)
  const days = DAYS[period] ?? 7
  const everyMs = 30_000
  const home = useQuery(`home/${days}`, (signal) => api.home(days, signal), { everyMs })
  const sums = useQuery(
    `home/sums/${from}/${to}`,
    (signal) => api.sums(undefined, { from, to, by: 'account', compare: 'true' }, signal),
    { everyMs },
  )
  return (
    <Page
      title="Home"
      lead="Across all accounts"
      actions={
        <Segments<Period>
          label="Period"
          value={period}
          options={SHOWN}
          onPick={(value) => setQuery({ period: value })}
        />
      }
    >
      <Loaded query={home} skeleton={<Skeleton lines={3} like="tall" />}>
        {(data) => (
          <Loaded query={sums} skeleton={<Skeleton lines={2} like="tall" />}>
            {(summed) => (
              <>
                <Checklist calls={summed.totals.requests} />
                <HomeStats sums={summed} margin={data.margin} />
                <Vendors />
                <Losses data={data} />
                <LowBalances rows={data.lowBalances} />
                <HomeCharts sums={summed} />
                <TopAccounts sums={summed} />
              </>
            )}
          </Loaded>
        )}
      </Loaded>
    </Page>
  )
}

/** Each figure is a way to the calls behind it. */
function HomeStats({ sums, margin }: { sums: UsageSums; margin: HomeFigures['margin'] }) {
  const { totals, previous: before } = sums
  const { query } = useLocation()
  const to = (filter: Record<string, string> = {}) => callsPath(undefined, { ...periodQuery(query, USUAL), ...filter })
  const change = (of: (figures: UsageSums['totals']) => number) => (before ? changeOf(of(totals), of(before)) : '')
  return (
    <Stats>
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
        note={<Unserved totals={totals} to={to} />}
        spark={perStep(sums, callsOf)}
        to={to()}
      />
      <MarginStat margin={margin} to={to({ view: 'chart', by: 'vendor' })} />
      <Stat
        label="Average latency"
        value={formatMs(totals.latencyMsAvg)}
        note="to the end of the answer"
        to={to({ view: 'latency', by: 'vendor' })}
      />
    </Stats>
  )
}

/** What is left of the calls whose cost is known; of the others it cannot be said. */
function MarginStat({ margin, to }: { margin: HomeFigures['margin']; to: string }) {
  const [charged, costed, cost] = [margin.charged, margin.chargedWithKnownCost, margin.cost].map(
    (text) => parseCredits(text) ?? 0n,
  )
  if (!costed && !cost) return <Stat label="Margin" value="–" note="no route has a cost in the catalog" />
  const left = (costed ?? 0n) - (cost ?? 0n)
  const share = costed ? ` (${formatPercent(Number(left) / Number(costed))})` : ''
  const known =
    charged && charged > (costed ?? 0n) ? `, of ${formatPercent(Number(costed) / Number(charged))} of the spend` : ''
  return <Stat label="Margin" value={<Amount value={left} decimals={2} />} note={`credits${share}${known}`} to={to} />
}

/** Routes that cost more than they bring: as counted, and as the catalog prices them. */
function Losses({ data: { unprofitableRoutes, belowCostNotes } }: { data: HomeFigures }) {
  const { query } = useLocation()
  if (unprofitableRoutes.length === 0 && belowCostNotes.length === 0) return null
  return (
    <Card
      flush={unprofitableRoutes.length > 0}
      title="Losing money"
      lead="Routes on which the vendor’s cost is above the charge."
      actions={<Link to="/operator/catalog">Prices and routes</Link>}
    >
      {unprofitableRoutes.length ? (
        <Table
          label="Losing routes"
          rows={unprofitableRoutes}
          rowKey={({ product, route }) => `${product} ${route}`}
          columns={[
            { head: 'Model', main: true, cell: ({ product }) => <b>{product}</b> },
            { head: 'Route', right: true, cell: ({ route }) => route },
            {
              head: 'Calls',
              right: true,
              cell: ({ product, calls }) => (
                <Link to={callsPath(undefined, { ...periodQuery(query, USUAL), product })}>{formatWhole(calls)}</Link>
              ),
            },
            { head: 'Brought', right: true, cell: ({ charged }) => <Amount value={charged} decimals={2} /> },
            { head: 'Cost', right: true, cell: ({ cost }) => <Amount value={cost} decimals={2} /> },
          ]}
        />
      ) : null}
      {belowCostNotes.length ? (
        <ul className={unprofitableRoutes.length ? 'card-note small' : 'small'}>
          {belowCostNotes.map((note) => (
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
          to={(vendor) => `/operator/vendors/${encodeURIComponent(vendor.name)}`}
          columns={[
            {
              head: 'Vendor',
              main: true,
              cell: (vendor) => (
                <Named name={vendor.name} to={`/operator/vendors/${encodeURIComponent(vendor.name)}`} />
              ),
            },
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

function HomeCharts({ sums }: { sums: UsageSums }) {
  if (sums.series.length === 0) return null
  const at = Map.groupBy(sums.series, (row) => row.at)
  const over = (of: (row: UsageSums['series'][number]) => number) =>
    sums.steps.map((step) => at.get(step)?.reduce((sum, row) => sum + of(row), 0) ?? 0)
  return (
    <div className="charts">
      <Card>
        <StackedSums data={sums} measure="charged" title="Spend" to={(span) => callsPath(undefined, span)} />
      </Card>
      <Card>
        <Chart
          title="Calls"
          kind="bars"
          format={formatCompact}
          to={(index) => callsPath(undefined, stepSpan(sums.steps, index, sums.to))}
          {...timeAxis(sums.steps, sums.per)}
          series={[
            { name: 'Succeeded', values: over(({ requests, errors }) => requests - errors) },
            { name: 'Failed', values: over(({ errors }) => errors) },
            { name: 'Rejected', values: over(({ rejected }) => rejected) },
          ]}
        />
      </Card>
    </div>
  )
}

const TOP_MAX = 10

function TopAccounts({ sums }: { sums: UsageSums }) {
  const { query } = useLocation()
  if (sums.totals.requests === 0)
    return (
      <Empty icon="accounts" title="No calls in this period">
        <p>Accounts that spend credits appear here.</p>
      </Empty>
    )
  return (
    <Card title="Top customers" actions={<Link to="/operator/accounts">All accounts</Link>}>
      <BarList
        named
        label="Spend by account"
        rows={sums.groups
          .filter(({ requests }) => requests > 0)
          .slice(0, TOP_MAX)
          .map((row) => ({
            name: row.name ?? row.group,
            value: creditsAsNumber(row.charged),
            shown: amountText(row.charged),
            note: plural(callsOf(row), 'call'),
            to: callsPath(undefined, { ...periodQuery(query, USUAL), account: row.group }),
          }))}
      />
    </Card>
  )
}

/** Gone once everything is done. */
function Checklist({ calls }: { calls: number }) {
  const { extensions } = useSession()
  const [canConnect, canVerify] = [extensions.includes('connect'), extensions.includes('verify')]
  const vendors = useQuery('vendors', api.vendors)
  const accounts = useQuery('accounts/first', (signal) => api.accounts({ limit: 20 }, signal))
  const operators = useQuery('operators', api.operators)
  const checks = useQuery('ledger-checks', async (signal) => (canVerify ? api.ledgerChecks(signal) : null))
  const alerts = useQuery('alert-settings/', (signal) => api.alertSettings(undefined, signal))
  if (!vendors.data || !accounts.data || !operators.data || checks.data === undefined || !alerts.data) return null
  const real = vendors.data.items.some((one) => !one.simulated && (one.credential.present || !one.credential.name))
  const funded = accounts.data.items.some(({ available }) => creditsAsNumber(available) > 0)
  const steps = [
    { done: accounts.data.items.length > 0, to: '/operator/accounts', label: 'Create an account' },
    { done: funded, to: '/operator/accounts', label: 'Give it credits' },
    { done: calls > 0, to: '/', label: 'Create a key and make the first call' },
    {
      done: real,
      to: canConnect ? '/operator/vendors/new' : '/operator/catalog/document',
      label: 'Connect a real vendor; all are simulated until then',
    },
    { done: operators.data.items.length > 1, to: '/operator/operators', label: 'Invite a second operator' },
    { done: alerts.data.receivers.length > 0, to: '/operator/alerts/rules', label: 'Set up alert recipients' },
    ...(checks.data
      ? [{ done: checks.data.last !== null, to: '/operator/ledger', label: 'Check the ledger once' }]
      : []),
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
