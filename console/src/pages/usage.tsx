import { useState } from 'react'
import { api, type UsageFilter } from '../api.ts'
import { formatCredits } from '../credits.ts'
import { formatCompact, formatMs, plural } from '../format.ts'
import { useList, useQuery } from '../query.ts'
import { Link, setQuery, useLocation } from '../router.tsx'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/code.tsx'
import { Checkbox, SelectField } from '../ui/field.tsx'
import { Amount, Badge, Name, Page, When } from '../ui/page.tsx'
import { Empty } from '../ui/state.tsx'
import { TableCard, type TableColumn } from '../ui/table.tsx'
import { UNIT_NAMES, type UsageRow, unitRow } from '../wire.ts'
import { dayStart } from '../zone.ts'
import { CsvButton } from './csv.tsx'
import { faultTitle } from './fault-words.ts'
import { keyLabels } from './key-label.ts'
import { RangeFields } from './range-fields.tsx'
import { readChoice, SumsCard } from './sums.tsx'

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

const ALL = ['', 'All'] as const
const CLIENTS_SHOWN = 10
const OUTCOMES = { settled: 'Charged', released: 'Failed', expired: 'Expired', refused: 'Rejected' }
const FILTERS = ['from', 'to', 'product', 'key', 'outcome', 'client', 'test'] as const

export function UsagePanel({ account }: { account: string }) {
  const { query } = useLocation()
  const keys = useKeyLabels(account)
  const chosen = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? undefined]))
  const filter: UsageFilter = {
    ...chosen,
    from: dayStart(chosen.from, 0),
    to: dayStart(chosen.to, 1),
  }
  const filtered = FILTERS.some((name) => chosen[name])
  const [sort, order] = [query.get('sort') ?? undefined, query.get('order') ?? undefined]
  const everyMs = query.get('live') ? LIVE_MS : undefined
  const list = useList(
    `usage/${account}/${JSON.stringify({ ...filter, sort, order })}`,
    (cursor, signal) => api.usage(account, { ...filter, sort, order, cursor, limit: 50 }, signal),
    { everyMs },
  )
  const [hidden, setHidden] = useHiddenColumns()
  const to = (row: UsageRow) => `/a/${encodeURIComponent(account)}/usage/${encodeURIComponent(row.id)}`
  return (
    <>
      <div className="filters">
        <UsageFilters keys={keys} chosen={chosen} />
        <CsvButton
          label="Export calls"
          fetchIt={() => api.csv(account, 'usage', filter)}
          name={`usage-${account}.csv`}
        />
        <CopyButton text={window.location.href} label="Copy link" small={false} />
        <Button icon="live" aria-pressed={Boolean(everyMs)} onClick={() => setQuery({ live: everyMs ? '' : '1' })}>
          {everyMs ? 'Live' : 'Auto-refresh'}
        </Button>
      </div>
      <Clients account={account} filter={filter} chosen={chosen.client} />
      <SumsCard
        account={account}
        filter={{
          ...{ from: filter.from, to: filter.to, product: filter.product, key: filter.key, test: filter.test },
          outcome: filter.outcome,
        }}
        choice={readChoice(query)}
        onChoice={setQuery}
        everyMs={everyMs}
      />
      <Columns hidden={hidden} onHidden={setHidden} />
      <TableCard
        label="Calls"
        list={list}
        rowKey={(row) => row.id}
        to={to}
        served={{
          sort: sort ?? null,
          down: order !== 'asc',
          onSort: (next, down) => setQuery({ sort: next, order: next && !down ? 'asc' : undefined }),
        }}
        empty={<NoCalls filtered={filtered} />}
        columns={callColumns(keys, to).filter(({ head }) => !hidden.includes(head))}
      />
    </>
  )
}

function NoCalls({ filtered }: { filtered: boolean }) {
  const clear = () => setQuery(Object.fromEntries(FILTERS.map((name) => [name, undefined])))
  return (
    <Empty
      icon="usage"
      title={filtered ? 'No calls match' : 'No calls yet'}
      action={filtered ? <Button onClick={clear}>Clear the filters</Button> : null}
    >
      <p>{filtered ? 'Try a longer period or fewer filters.' : 'Calls appear here the moment they end.'}</p>
    </Empty>
  )
}

/** Those that may be left out; the first names the row. */
const OPTIONAL = ['Started', 'Key', 'Outcome', 'Endpoint', 'Consumed', 'First byte', 'Duration', 'Credits']
const HIDDEN_FIRST = ['Endpoint', 'First byte']
const STORED_COLUMNS = 'usage-columns'
const LIVE_MS = 5000

function callColumns(keys: ReadonlyMap<string, string>, to: (row: UsageRow) => string) {
  const columns: TableColumn<UsageRow>[] = [
    {
      head: 'Product',
      main: true,
      cell: (row) => (
        <>
          <Link to={to(row)} className="cell-link">
            <Name text={row.product || 'unknown model'} />
          </Link>
          {row.calls > 1 ? <span className="cell-sub">stands for {plural(row.calls, 'call')}</span> : null}
        </>
      ),
    },
    { head: 'Started', cell: (row) => <When at={row.at} />, tight: true, sort: 'time' },
    {
      head: 'Key',
      cell: (row) => keys.get(row.keyId) ?? row.keyName ?? <span className="muted">console</span>,
    },
    { head: 'Outcome', cell: (row) => <OutcomeBadge row={row} />, tight: true },
    { head: 'Endpoint', cell: (row) => <code>{row.endpoint}</code>, wideOnly: true },
    { head: 'Consumed', cell: (row) => <span className="muted">{describeUnits(row.units)}</span>, wideOnly: true },
    { head: 'First byte', cell: (row) => formatMs(row.firstByteMs), right: true, wideOnly: true },
    {
      head: 'Duration',
      cell: (row) => (row.outcome === 'refused' ? '–' : formatMs(row.durationMs)),
      right: true,
      wideOnly: true,
      sort: 'duration',
    },
    {
      head: 'Credits',
      cell: (row) => <Amount value={row.charged} />,
      right: true,
      sort: 'charged',
    },
  ]
  return columns
}

/** Which columns are left out, remembered in this browser. */
function useHiddenColumns(): [readonly string[], (hidden: readonly string[]) => void] {
  const [hidden, setHidden] = useState<readonly string[]>(() => {
    try {
      return localStorage.getItem(STORED_COLUMNS)?.split(',') ?? HIDDEN_FIRST
    } catch {
      return HIDDEN_FIRST
    }
  })
  const change = (next: readonly string[]) => {
    setHidden(next)
    try {
      localStorage.setItem(STORED_COLUMNS, next.join(','))
    } catch {
      // Without storage the choice lasts until the reload.
    }
  }
  return [hidden, change]
}

function Columns({ hidden, onHidden }: { hidden: readonly string[]; onHidden: (hidden: readonly string[]) => void }) {
  return (
    <details className="fold">
      <summary>Columns</summary>
      <div className="row">
        {OPTIONAL.map((head) => (
          <Checkbox
            key={head}
            label={head}
            checked={!hidden.includes(head)}
            onCheck={(on) => onHidden(on ? hidden.filter((one) => one !== head) : [...hidden, head])}
          />
        ))}
      </div>
    </details>
  )
}

function useKeyLabels(account: string): Map<string, string> {
  const keys = useQuery(`keys/${account}/choice`, (signal) => api.keys(account, { limit: 200 }, signal))
  return keyLabels(keys.data?.items ?? [])
}

/** What agents and batches spent, where there were any; a click shows the calls of one. */
function Clients({ account, filter, chosen }: { account: string; filter: UsageFilter; chosen: string | undefined }) {
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
          {clientName(client)}: {formatCredits(charged)} credits,{' '}
          {requests === 1 ? '1 call' : `${formatCompact(requests)} calls`}
        </Button>
      ))}
    </section>
  )
}

/** Of an id the end tells it apart. */
const clientName = (client: string) => (/^batch_\w{20,}$/.test(client) ? `Batch …${client.slice(-6)}` : client)

function UsageFilters({ keys, chosen }: { keys: ReadonlyMap<string, string>; chosen: UsageFilter }) {
  const catalog = useQuery('public-catalog', api.publicCatalog)
  const products = [
    ...new Set([
      ...(catalog.data?.models.map((model) => model.uid) ?? []),
      ...(catalog.data?.endpoints.map((endpoint) => endpoint.product) ?? []),
    ]),
  ]
  // What the address names stays selectable, also when the list does not have it.
  if (chosen.product && !products.includes(chosen.product)) products.unshift(chosen.product)
  return (
    <>
      <RangeFields from={chosen.from} to={chosen.to} />
      <SelectField
        label="Product"
        value={chosen.product ?? ''}
        onText={(text) => setQuery({ product: text })}
        options={[ALL, ...products]}
      />
      <SelectField
        label="Key"
        value={chosen.key ?? ''}
        onText={(text) => setQuery({ key: text })}
        options={[ALL, ...keys]}
      />
      <SelectField
        label="Outcome"
        value={chosen.outcome ?? ''}
        onText={(text) => setQuery({ outcome: text })}
        options={[ALL, ...Object.entries(OUTCOMES)]}
      />
      <SelectField
        label="Calls"
        value={chosen.test ?? ''}
        onText={(text) => setQuery({ test: text })}
        options={[
          ['', 'Live'],
          ['true', 'Test keys'],
        ]}
      />
    </>
  )
}

export function OutcomeBadge({ row }: { row: Pick<UsageRow, 'outcome' | 'status' | 'estimated' | 'fault'> }) {
  const failed = row.status >= 400
  const tone = row.outcome === 'expired' ? 'warn' : failed ? 'bad' : row.outcome === 'settled' ? 'good' : 'calm'
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
