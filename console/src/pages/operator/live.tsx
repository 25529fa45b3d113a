import { useState } from 'react'
import { api } from '../../api.ts'
import { formatMs, plural } from '../../format.ts'
import { useQuery } from '../../query.ts'
import { Link, setQuery, useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Amount, Badge, Clock, Page, ShortId, type Tone } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import type { Live, LiveCall } from '../../wire.ts'
import { faultPage, faultTitle } from '../fault-words.ts'

const EVERY_MS = 2000

/** As many as fit a screen or two; a list that grows under the finger cannot be read. */
const SHOWN_MAX = 40

export function LivePage() {
  const { query } = useLocation()
  const [paused, setPaused] = useState(false)
  const [all, setAll] = useState(false)
  const live = useQuery('live', api.liveCalls, { everyMs: paused ? undefined : EVERY_MS })
  const running = live.data?.running ?? 0
  const calls = live.data?.items
  const show = query.get('show') ?? ''
  const text = query.get('q') ?? ''
  const matching = calls?.filter((call) => SHOWS[show]?.(call) !== false && mentions(call, text))
  const data = all ? matching : matching?.slice(0, SHOWN_MAX)
  const hidden = (matching?.length ?? 0) - (data?.length ?? 0)
  const accounts = useQuery('accounts/filter', (signal) => api.accounts({ limit: 200 }, signal))
  const names = new Map(accounts.data?.items.map(({ id, name }) => [id, name]))
  return (
    <Page
      title="Live calls"
      lead={
        live.data ? `The last 200 calls${ofProcesses(live.data)}, newest first.` : 'The last 200 calls, newest first.'
      }
      actions={
        <>
          <Badge tone={paused ? 'warn' : 'good'}>{paused ? 'Paused' : 'Live'}</Badge>
          <Badge tone={running ? 'busy' : 'calm'}>{running} in flight</Badge>
          <Button icon={paused ? 'live' : 'stop'} onClick={() => setPaused(!paused)}>
            {paused ? 'Resume' : 'Pause'}
          </Button>
        </>
      }
    >
      <div className="filters">
        <SelectField label="Show" value={show} onText={(value) => setQuery({ show: value })} options={SHOW_NAMES} />
        <TextField
          label="Find"
          value={text}
          onText={(value) => setQuery({ q: value })}
          placeholder="Model, account, key or reason"
        />
      </div>
      <TableCard
        label="Live calls"
        list={{ ...live, data, more: undefined, moreBusy: false }}
        rowKey={(call) => call.id}
        empty={
          <Empty icon="live" title={calls?.length ? 'No calls match' : 'No calls since the start'}>
            <p>Calls appear here as they arrive.</p>
          </Empty>
        }
        columns={columnsOf(names)}
      />
      {hidden > 0 ? (
        <div className="more">
          <Button onClick={() => setAll(true)}>Show {plural(hidden, 'older call')}</Button>
        </div>
      ) : null}
    </Page>
  )
}

function ofProcesses({ processes: { answering, silent } }: Live): string {
  if (silent) return ` of ${plural(answering, 'process', 'processes')} (${silent} did not answer)`
  return answering === 1 ? '' : ` of all ${answering} processes`
}

const SHOWS: Record<string, (call: LiveCall) => boolean> = {
  running: (call) => call.running,
  failed: (call) => call.outcome === 'failed',
  rejected: (call) => call.outcome === 'rejected',
  charged: (call) => call.outcome === 'settled',
}
const SHOW_NAMES = [
  ['', 'Everything'],
  ['running', 'In flight'],
  ['failed', 'Failed at a vendor'],
  ['rejected', 'Rejected'],
  ['charged', 'Charged'],
] as const

const mentions = (call: LiveCall, text: string) =>
  [call.product, call.endpoint, call.account, call.key, call.fault ?? '', faultTitle(call.fault ?? ''), call.id]
    .join(' ')
    .toLowerCase()
    .includes(text.trim().toLowerCase())

const columnsOf = (names: ReadonlyMap<string, string>): Parameters<typeof TableCard<LiveCall>>[0]['columns'] => [
  {
    head: 'Call',
    main: true,
    cell: (call) => (
      <>
        <b>{call.product || call.endpoint}</b>
        <span className="cell-sub">
          <CallLink call={call} />
        </span>
        {call.calls > 1 ? <span className="cell-sub">{plural(call.calls, 'call')}</span> : null}
      </>
    ),
  },
  { head: 'Time', cell: (call) => <Clock at={call.at} />, tight: true },
  {
    head: 'Account and key',
    cell: (call) => (
      <>
        <Link to={`/operator/accounts/${encodeURIComponent(call.account)}`}>
          {names.get(call.account) ?? <ShortId id={call.account} />}
        </Link>
        <span className="cell-sub">
          <Link to={`/a/${encodeURIComponent(call.account)}/usage?key=${encodeURIComponent(call.key)}`}>
            <ShortId id={call.key} />
          </Link>
        </span>
      </>
    ),
  },
  { head: 'State', cell: (call) => <LiveBadge call={call} />, tight: true },
  {
    head: 'Reason',
    cell: (call) =>
      call.fault ? <a href={faultPage(call.fault)}>{faultTitle(call.fault)}</a> : <span className="muted">–</span>,
  },
  { head: 'Duration', right: true, cell: (call) => (call.durationMs ? formatMs(call.durationMs) : '–') },
  { head: 'Credits', right: true, cell: (call) => <Amount value={call.charged} /> },
]

function CallLink({ call }: { call: LiveCall }) {
  return (
    <Link to={`/operator/calls/${encodeURIComponent(call.id)}`}>
      <code>{call.id}</code>
    </Link>
  )
}

function LiveBadge({ call }: { call: LiveCall }) {
  if (call.running)
    return (
      <Badge tone="busy">
        <span className="spinner" aria-hidden="true" /> {call.stream ? 'Streaming' : 'Running'}
      </Badge>
    )
  const status = call.status ?? 0
  const tone: Tone = call.outcome === 'failed' || status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good'
  return (
    <Badge tone={tone}>
      {call.status ?? '–'}
      {call.outcome ? ` · ${call.outcome}` : ''}
    </Badge>
  )
}
