import { useState } from 'react'
import { api } from '../../api.ts'
import { formatMs } from '../../format.ts'
import { useList } from '../../query.ts'
import { Link } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { Amount, Badge, Clock, Page, ShortId, type Tone } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import type { LiveCall } from '../../wire.ts'

const EVERY_MS = 2000

export function LivePage() {
  const [paused, setPaused] = useState(false)
  const calls = useList('live', (_, signal) => api.liveCalls(signal), { everyMs: paused ? undefined : EVERY_MS })
  const running = calls.data?.filter((call) => call.running).length ?? 0
  return (
    <Page
      title="Live requests"
      lead="The last 200 calls of this process, newest first."
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
      <TableCard
        label="Live requests"
        list={calls}
        rowKey={(call) => call.id}
        empty={
          <Empty icon="live" title="No calls since the start">
            <p>Calls appear here as they arrive.</p>
          </Empty>
        }
        columns={[
          {
            head: 'Call',
            main: true,
            cell: (call) => (
              <>
                <b>{call.product}</b>
                <span className="cell-sub">
                  <CallLink call={call} />
                </span>
              </>
            ),
          },
          { head: 'Time', cell: (call) => <Clock at={call.at} />, tight: true },
          {
            head: 'Account',
            cell: (call) => (
              <Link to={`/operator/accounts/${encodeURIComponent(call.account)}`}>
                <ShortId id={call.account} />
              </Link>
            ),
          },
          { head: 'State', cell: (call) => <LiveBadge call={call} />, tight: true },
          { head: 'Duration', right: true, cell: (call) => formatMs(call.durationMs) },
          { head: 'Credits', right: true, cell: (call) => <Amount value={call.charged} /> },
        ]}
      />
    </Page>
  )
}

function CallLink({ call }: { call: LiveCall }) {
  return (
    <Link to={`/a/${encodeURIComponent(call.account)}/usage/${encodeURIComponent(call.id)}`}>
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
  const tone: Tone = status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good'
  return (
    <Badge tone={tone}>
      {call.status ?? '–'}
      {call.outcome ? ` · ${call.outcome}` : ''}
    </Badge>
  )
}
