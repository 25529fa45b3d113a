// Calls: of one account, or for operators of all accounts together. The list comes first; totals, chart and latencies
// are of the same calls.
import { lazy, Suspense, useState } from 'react'
import { api, type CallFilter } from '../api.ts'
import { creditsText } from '../credits.ts'
import { formatCompact, formatMs, plural } from '../format.ts'
import { type List, useList, useQuery } from '../query.ts'
import { Link, setQuery, useLocation } from '../router.tsx'
import { useMay } from '../session.tsx'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/code.tsx'
import { Menu } from '../ui/menu.tsx'
import { Amount, Badge, Name, Page, When } from '../ui/page.tsx'
import { Empty } from '../ui/state.tsx'
import { TableCard, type TableColumn } from '../ui/table.tsx'
import { RouteTabs } from '../ui/tabs.tsx'
import { type ListedCall, UNIT_NAMES, type UsageRow, unitRow } from '../wire.ts'
import { CallFilters, clearFilters, useCallChoice, useKeyLabels } from './call-filters.tsx'
import { CsvButton, csvName } from './csv.tsx'
import { faultTitle } from './fault-words.ts'
import { LabelSumsCard } from './label-sums.tsx'
import { SavedViews } from './saved-views.tsx'
import { LatencyCard, SumsCard, Totals } from './sums.tsx'

export function UsagePage({ account }: { account: string }) {
  return (
    <Page
      title="Usage"
      lead="Every call with what it consumed and what it cost. Open one to see how its charge was calculated."
    >
      <UsagePanel account={account} />
    </Page>
  )
}

/** For operators. */
export function CallsPage() {
  return (
    <Page
      title="Calls"
      lead="The calls of all accounts: find one by its request id or error message, or filter by customer, model and vendor."
    >
      <UsagePanel account={undefined} />
    </Page>
  )
}

const VIEWS = [
  { name: 'list', label: 'Calls', icon: 'usage' },
  { name: 'chart', label: 'Over time', icon: 'chart' },
  { name: 'latency', label: 'Latency', icon: 'history' },
  { name: 'labels', label: 'End users and sessions', icon: 'members' },
] as const
type View = (typeof VIEWS)[number]['name']
const CLIENTS_SHOWN = 10
const CallPanel = lazy(async () => ({ default: (await import('./call.tsx')).CallPanel }))
const OUTCOMES = { settled: 'Charged', released: 'Failed', expired: 'Expired', rejected: 'Rejected' }

/** Undefined: of all accounts. */
export function UsagePanel({ account }: { account: string | undefined }) {
  const { path, query } = useLocation()
  const choice = useCallChoice()
  const { filter, filtered } = choice
  const view: View = VIEWS.find(({ name }) => name === query.get('view'))?.name ?? 'list'
  const everyMs = query.get('live') ? LIVE_MS : undefined
  const scope = { account, filter, query, everyMs, onChoice: setQuery }
  const columns = useColumns(account)
  const tabTo = (name: View) => {
    const next = new URLSearchParams(query)
    if (name === 'list') next.delete('view')
    else next.set('view', name)
    return `${path}${next.size ? `?${next}` : ''}`
  }
  return (
    <>
      <CallFilters account={account} choice={choice} />
      <SavedViews page={account === undefined ? 'calls' : `usage/${account}`} query={query} filtered={filtered} />
      {account === undefined ? null : <Clients account={account} filter={filter} chosen={filter.client} />}
      <Totals {...scope} />
      <div className="tabs-row">
        <RouteTabs label="Views" tabs={VIEWS.map((tab) => ({ ...tab, to: tabTo(tab.name) }))} current={view} />
        {view === 'list' ? <ListActions account={account} filter={filter} everyMs={everyMs} columns={columns} /> : null}
      </div>
      {view === 'list' ? (
        <Calls account={account} filter={filter} filtered={filtered} everyMs={everyMs} columns={columns} />
      ) : null}
      {view === 'chart' ? <SumsCard {...scope} /> : null}
      {view === 'latency' ? <LatencyCard {...scope} /> : null}
      {view === 'labels' ? <LabelSumsCard account={account} filter={filter} /> : null}
    </>
  )
}

interface CallsProps {
  account: string | undefined
  filter: CallFilter
  filtered: boolean
  everyMs: number | undefined
  columns: CallColumns
}

const orderOf = (query: URLSearchParams) => ({
  sort: query.get('sort') ?? undefined,
  order: query.get('order') ?? undefined,
})

function ListActions({ account, filter, everyMs, columns }: Omit<CallsProps, 'filtered'>) {
  const { query } = useLocation()
  const { all, hidden, setHidden } = columns
  return (
    <div className="row">
      <Menu
        label="Columns"
        small
        items={all
          .slice(1)
          .map(({ head }) =>
            hidden.includes(head)
              ? { label: `Show ${head}`, icon: 'plus', run: () => setHidden(hidden.filter((one) => one !== head)) }
              : { label: `Hide ${head}`, icon: 'check', run: () => setHidden([...hidden, head]) },
          )}
      >
        Columns
      </Menu>
      <CsvButton
        label="Export calls"
        fetchIt={() => api.usageCsv(account, { ...filter, ...orderOf(query) })}
        name={() => csvName('calls', account, filter)}
      />
      <CopyButton text={window.location.href} label="Copy link" />
      <Button small icon="live" aria-pressed={Boolean(everyMs)} onClick={() => setQuery({ live: everyMs ? '' : '1' })}>
        {everyMs ? 'Live' : 'Auto-refresh'}
      </Button>
    </div>
  )
}

/** A click on a row shows the call beside the list; its name leads to the call's page. */
function Calls({ account, filter, filtered, everyMs, columns }: CallsProps) {
  const { query } = useLocation()
  const { sort, order } = orderOf(query)
  const [open, setOpen] = useState<ListedCall>()
  const list: List<ListedCall> = useList(
    `usage/${account}/${JSON.stringify({ ...filter, sort, order })}`,
    (cursor, signal) => api.usage(account, { ...filter, sort, order, cursor, limit: 50 }, signal),
    { everyMs },
  )
  return (
    <>
      <TableCard
        label="Calls"
        list={list}
        rowKey={(row) => row.id}
        onOpen={setOpen}
        served={{
          sort: sort ?? null,
          down: order !== 'asc',
          onSort: (next, down) => setQuery({ sort: next, order: next && !down ? 'asc' : undefined }),
        }}
        empty={<NoCalls filtered={filtered} />}
        columns={columns.all.filter(({ head }) => !columns.hidden.includes(head))}
      />
      {open ? (
        <Suspense>
          <CallPanel
            account={account ?? open.account ?? ''}
            request={open.id}
            to={columns.to(open)}
            onClose={() => setOpen(undefined)}
          />
        </Suspense>
      ) : null}
    </>
  )
}

function NoCalls({ filtered }: { filtered: boolean }) {
  return (
    <Empty
      icon="usage"
      title={filtered ? 'No calls match' : 'No calls in 30 days'}
      action={filtered ? <Button onClick={clearFilters}>Clear the filters</Button> : null}
    >
      <p>{filtered ? 'Try a longer period or fewer filters.' : 'Calls appear here the moment they end.'}</p>
    </Empty>
  )
}

/** Until somebody asks for them. The first column names the row and stays. */
const HIDDEN_FIRST = { one: ['Endpoint', 'Vendor', 'First byte'], all: ['Key', 'Endpoint', 'Consumed', 'First byte'] }
const STORED_COLUMNS = 'usage-columns'
const LIVE_MS = 5000

function callColumns(keys: ReadonlyMap<string, string>, to: (row: ListedCall) => string) {
  const columns: TableColumn<ListedCall>[] = [
    {
      head: 'Model',
      main: true,
      cell: (row) => (
        <>
          <Link to={to(row)} className="cell-link">
            <Name text={row.product || 'unknown model'} />
          </Link>
          {row.calls > 1 ? <span className="cell-sub">{plural(row.calls, 'call')}</span> : null}
        </>
      ),
    },
    { head: 'Started', cell: (row) => <When at={row.at} />, tight: true, sort: 'time' },
    {
      head: 'Account',
      cell: (row) => (
        <Link to={`/operator/accounts/${encodeURIComponent(row.account ?? '')}`}>{row.accountName ?? row.account}</Link>
      ),
    },
    { head: 'Key', cell: (row) => keys.get(row.keyId) ?? row.keyName ?? <span className="muted">console</span> },
    { head: 'Outcome', cell: (row) => <OutcomeBadge row={row} />, tight: true },
    { head: 'Endpoint', cell: (row) => <code>{row.endpoint}</code>, wideOnly: true },
    { head: 'Vendor', cell: (row) => row.vendor ?? <span className="muted">–</span>, wideOnly: true },
    { head: 'Consumed', cell: (row) => <span className="muted">{describeUnits(row.units)}</span>, wideOnly: true },
    { head: 'First byte', cell: (row) => formatMs(row.firstByteMs), right: true, wideOnly: true },
    {
      head: 'Duration',
      cell: (row) => (row.outcome === 'rejected' ? '–' : formatMs(row.durationMs)),
      right: true,
      wideOnly: true,
      sort: 'duration',
    },
    { head: 'Credits', cell: (row) => <Amount value={row.charged} decimals={4} />, right: true, sort: 'charged' },
  ]
  return columns
}

type CallColumns = ReturnType<typeof useColumns>

/** All that the reader may see, and which of them are left out, remembered in this browser. */
function useColumns(account: string | undefined) {
  const { query } = useLocation()
  const seesVendors = useMay()('vendors:read')
  const keys = useKeyLabels(account)
  const of = account === undefined ? 'all' : 'one'
  const stored = account === undefined ? `${STORED_COLUMNS}-all` : STORED_COLUMNS
  const [hidden, setHidden] = useState<readonly string[]>(() => {
    try {
      return localStorage.getItem(stored)?.split(',') ?? HIDDEN_FIRST[of]
    } catch {
      return HIDDEN_FIRST[of]
    }
  })
  // An operator's list leads to the operator's page of the call, which leads back to the same filters.
  const to = (row: ListedCall) =>
    account === undefined
      ? `/operator/calls/${encodeURIComponent(row.id)}${query.size > 0 ? `?${query}` : ''}`
      : `/a/${encodeURIComponent(account)}/usage/${encodeURIComponent(row.id)}`
  const all = callColumns(keys, to).filter(
    ({ head }) => (head !== 'Account' || account === undefined) && (head !== 'Vendor' || seesVendors),
  )
  const change = (next: readonly string[]) => {
    setHidden(next)
    try {
      localStorage.setItem(stored, next.join(','))
    } catch {
      // Without storage the choice lasts until the reload.
    }
  }
  return { all, hidden, setHidden: change, to }
}

/** What agents and batches spent, where there were any; a click shows the calls of one. */
function Clients({ account, filter, chosen }: { account: string; filter: CallFilter; chosen: string | undefined }) {
  const { from, to, test } = filter
  const sums = useQuery(`clients/${account}/${from}/${to}/${test}`, (signal) =>
    api.usageByClient(account, { from, to, test }, signal),
  )
  const items = sums.data?.items ?? []
  if (items.length === 0) return null
  return (
    <section className="filters" aria-label="Spent by agents and batches">
      <span className="field-label">Agents and batches</span>
      {items.slice(0, CLIENTS_SHOWN).map(({ client, requests, charged }) => (
        <Button
          key={client}
          small
          className="button-long"
          title={client}
          aria-pressed={client === chosen}
          onClick={() => setQuery({ client: client === chosen ? undefined : client })}
        >
          {clientName(client)}: {creditsText(charged)}, {requests === 1 ? '1 call' : `${formatCompact(requests)} calls`}
        </Button>
      ))}
    </section>
  )
}

/** Of an id the end tells it apart. */
const clientName = (client: string) => (/^batch_\w{20,}$/.test(client) ? `Batch …${client.slice(-6)}` : client)

export function OutcomeBadge({ row }: { row: Pick<UsageRow, 'outcome' | 'status' | 'estimated' | 'fault'> }) {
  const failed = row.status >= 400
  const tone = row.outcome === 'expired' ? 'warn' : failed ? 'bad' : row.outcome === 'settled' ? 'good' : 'calm'
  // No vendor was called.
  if (row.outcome === 'released' && row.fault === 'guardrail_blocked')
    return <Badge tone={tone}>{faultTitle(row.fault)}</Badge>
  return (
    <Badge tone={tone}>
      {OUTCOMES[row.outcome]}
      {row.fault ? ` · ${faultTitle(row.fault)}` : failed ? ` · ${row.status}` : ''}
      {row.estimated ? ' · estimated' : ''}
    </Badge>
  )
}

export function describeUnits(units: UsageRow['units']): string {
  return (
    UNIT_NAMES.flatMap((unit) => {
      const quantity = units[unit]
      return quantity ? `${formatCompact(quantity)} ${unitRow(unit)[quantity === 1 ? 'one' : 'many']}` : []
    })
      .join(', ')
      .replaceAll(' tokens', '') || '–'
  )
}
