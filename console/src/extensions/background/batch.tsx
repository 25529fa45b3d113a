import { useState } from 'react'
import { api } from '../../api.ts'
import { formatWhole } from '../../format.ts'
import { useJobRefresh } from '../../pages/job-progress.tsx'
import { refresh, useList, useQuery } from '../../query.ts'
import { Link } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Amount, Badge, Card, Facts, Page, ShortId, Stat, Stats, When } from '../../ui/page.tsx'
import { Loaded } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { BatchDetail, BatchLine } from '../../wire.ts'
import { BatchBadge, Done, isCancellable, isOpen } from './batch-status.tsx'
import { Download } from './files-card.tsx'
import { Problems } from './new-batch.tsx'

export function BatchPage({ account, batch: id }: { account: string; batch: string }) {
  const base = `/a/${encodeURIComponent(account)}`
  const batch = useQuery(`batch/${account}/${id}`, (signal) => api.batch(account, id, signal))
  const reload = () => refresh(`batch/${account}/${id}`, `batch-lines/${account}/${id}`)
  useJobRefresh(batch.data !== undefined && isOpen(batch.data), reload)
  return (
    <Page
      title="Batch"
      lead={<code>{id}</code>}
      back={{ to: `${base}/batches`, label: 'Batches' }}
      actions={batch.data ? <Actions account={account} batch={batch.data} onDone={reload} /> : null}
    >
      <Loaded query={batch}>
        {(data) => (
          <>
            <Stats>
              <Stat label="Status" value={<BatchBadge status={data.status} />} />
              <Stat label="Done" value={<Done counts={data.counts} />} note="requests" />
              <Stat label="Failed" value={formatWhole(data.counts.failed)} note="requests" />
              <Stat label="Cost so far" value={<Amount value={data.charged} />} note="credits" />
            </Stats>
            {data.errors.length > 0 ? (
              <Card title="What is wrong with the file">
                <Problems check={data} />
              </Card>
            ) : (
              <>
                <Lines account={account} batch={data} outcome="failed" />
                <Lines account={account} batch={data} outcome="completed" />
              </>
            )}
            <Details account={account} batch={data} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function Actions({ account, batch, onDone }: { account: string; batch: BatchDetail; onDone: () => void }) {
  const [asking, setAsking] = useState(false)
  const { id, outputFile, errorFile } = batch
  return (
    <>
      {outputFile ? <Download account={account} file={outputFile} name={`${id}_output.jsonl`} label="Answers" /> : null}
      {errorFile ? <Download account={account} file={errorFile} name={`${id}_errors.jsonl`} label="Errors" /> : null}
      {isCancellable(batch) ? (
        <Button right="jobs:write" account={account} icon="stop" onClick={() => setAsking(true)}>
          Cancel
        </Button>
      ) : null}
      {asking ? (
        <Confirm
          title="Cancel this batch?"
          action="Cancel the batch"
          cancel="Let it run"
          danger
          onClose={() => setAsking(false)}
          run={async () => {
            await api.cancelBatch(account, id)
            toast('No more lines are started.')
            onDone()
          }}
        >
          <p>No more of its lines are started. Answered lines stay available and are charged.</p>
        </Confirm>
      ) : null}
    </>
  )
}

const TITLES = { failed: 'Failed lines', completed: 'Answered lines' }

function Lines(props: { account: string; batch: BatchDetail; outcome: 'failed' | 'completed' }) {
  const { account, batch, outcome } = props
  // Lines that were read just before the batch ended are read again: nothing refreshes them afterwards.
  const phase = isOpen(batch) ? 'open' : 'ended'
  const list = useList(`batch-lines/${account}/${batch.id}/${outcome}/${phase}`, (cursor, signal) =>
    api.batchLines(account, batch.id, { outcome, cursor, limit: 20 }, signal),
  )
  const isFailed = outcome === 'failed'
  if (!list.error && !list.data?.length) return null
  const call = (line: BatchLine) =>
    line.call === null ? undefined : `/a/${encodeURIComponent(account)}/usage/${encodeURIComponent(line.call)}`
  return (
    <TableCard
      title={TITLES[outcome]}
      {...(isFailed ? { lead: 'Lines without a call were rejected before credits were held. They cost nothing.' } : {})}
      label={TITLES[outcome]}
      list={list}
      rowKey={({ line }) => String(line)}
      to={call}
      columns={[
        { head: 'Line', cell: ({ line }) => formatWhole(line), right: true, tight: true },
        { head: 'Custom id', main: true, cell: ({ customId }) => <b>{customId}</b> },
        {
          head: 'Status',
          tight: true,
          cell: ({ status }) => <Badge tone={isFailed ? 'bad' : 'good'}>{status ?? 'not started'}</Badge>,
        },
        isFailed && { head: 'Why', cell: ({ message }) => message ?? '–' },
        {
          head: 'Call',
          tight: true,
          cell: (line) => {
            const to = call(line)
            return to && line.call ? (
              <Link to={to}>
                <ShortId id={line.call} />
              </Link>
            ) : (
              '–'
            )
          },
        },
      ]}
    />
  )
}

function Details({ account, batch }: { account: string; batch: BatchDetail }) {
  const { input, startedAt, endedAt } = batch
  const base = `/a/${encodeURIComponent(account)}`
  return (
    <Card title="Details">
      <Facts
        items={[
          ['Endpoint', <code key="e">{batch.endpoint}</code>],
          [
            'From the file',
            input.name === null ? (
              'It is deleted.'
            ) : (
              <a key="f" href={api.fileAddress(account, input.id)} download={input.name}>
                {input.name}
              </a>
            ),
          ],
          ['Created with', batch.key === 'console' ? 'the console' : <code key="k">{batch.key}</code>],
          [
            'Calls',
            <Link key="u" to={`${base}/usage?period=90d&client=${encodeURIComponent(batch.id)}`}>
              Show its calls
            </Link>,
          ],
          ['Created', <When key="c" at={batch.createdAt} />],
          ['Started', startedAt ? <When key="s" at={startedAt} /> : '–'],
          ['Ended', endedAt ? <When key="d" at={endedAt} /> : '–'],
          endedAt === null && ['Expires', <When key="x" at={batch.expiresAt} />],
        ]}
      />
    </Card>
  )
}
