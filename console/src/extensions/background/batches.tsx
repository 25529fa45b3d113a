import { api } from '../../api.ts'
import { formatWhole } from '../../format.ts'
import { useJobRefresh } from '../../pages/job-progress.tsx'
import { useList } from '../../query.ts'
import { setQuery, useDialogInAddress, useLocation } from '../../router.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/code.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Ago, Amount, Page } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import type { Batch } from '../../wire.ts'
import { BATCH_STATUS_LABELS, BatchBadge, Done, isOpen } from './batch-status.tsx'
import { FilesCard } from './files-card.tsx'
import { NewBatch } from './new-batch.tsx'

const EXAMPLE = JSON.stringify({
  custom_id: 'first',
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Say hello.' }] },
})

export function BatchesPage({ account }: { account: string }) {
  const { query } = useLocation()
  const status = query.get('status') ?? ''
  const [making, setMaking] = useDialogInAddress('create')
  const base = `/a/${encodeURIComponent(account)}/batches`
  const list = useList(`batches/${account}/${status}`, (cursor, signal) =>
    api.batches(account, { status: status || undefined, cursor, limit: 20 }, signal),
  )
  useJobRefresh(list.data?.some(isOpen) ?? false, list.reload)
  const to = (batch: Batch) => `${base}/${encodeURIComponent(batch.id)}`
  const make = (
    <Button right="playground:write" account={account} look="primary" icon="plus" onClick={() => setMaking(true)}>
      New batch
    </Button>
  )
  return (
    <Page
      title="Batches"
      lead="Many requests in one file, processed in the background within the account’s limits. Each line is a call of its own, with its own charge."
      actions={
        <>
          <SelectField
            label="Status"
            quiet
            value={status}
            onText={(text) => setQuery({ status: text })}
            options={[['', 'All statuses'], ...Object.entries(BATCH_STATUS_LABELS)]}
          />
          {make}
        </>
      }
    >
      <TableCard
        label="Batches"
        list={list}
        rowKey={(batch) => batch.id}
        to={to}
        empty={status ? <Empty icon="batches" title="No batches with this status" /> : <NoBatches action={make} />}
        columns={[
          {
            head: 'Batch',
            main: true,
            cell: (batch) => <Named to={to(batch)} name={batch.input.name ?? 'File deleted'} sub={batch.id} />,
          },
          { head: 'Endpoint', cell: ({ endpoint }) => <code>{endpoint}</code>, wideOnly: true },
          { head: 'Status', cell: ({ status: now }) => <BatchBadge status={now} />, tight: true },
          { head: 'Done', cell: (batch) => <Done counts={batch.counts} />, right: true },
          { head: 'Failed', cell: ({ counts }) => formatWhole(counts.failed), right: true },
          { head: 'Credits', cell: ({ charged }) => <Amount value={charged} />, right: true },
          { head: 'Created', cell: (batch) => <Ago at={batch.createdAt} />, tight: true },
          { head: 'Ended', cell: (batch) => <Ago at={batch.endedAt} />, tight: true },
        ]}
      />
      <FilesCard account={account} />
      {making ? <NewBatch account={account} onClose={() => setMaking(false)} /> : null}
    </Page>
  )
}

function NoBatches({ action }: { action: React.ReactNode }) {
  return (
    <Empty icon="batches" title="No batches yet" action={action}>
      <p>
        Write a request into each line of a file, as below, and upload it here or with the <code>openai</code> package.{' '}
        <a href="/docs/guides/jobs-and-batches#batches">How batches work</a>
      </p>
      <Code label="A line of the file" text={EXAMPLE} wrap />
    </Empty>
  )
}
