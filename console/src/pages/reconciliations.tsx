// Payments compared with the payment provider's own list, every night and now: the gateway's own, or those by customers
// of an account.
import { refresh, useList } from '../query.ts'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { When } from '../ui/page.tsx'
import { Empty, Fault } from '../ui/state.tsx'
import { TableCard } from '../ui/table.tsx'
import type { Page, Reconciliation } from '../wire.ts'

interface Api {
  readonly key: string
  /** The list of payments that a run may correct. */
  readonly corrects: string
  readonly list: (cursor?: string, signal?: AbortSignal) => Promise<Page<Reconciliation>>
  readonly run: () => Promise<unknown>
}

export function Reconciliations({ may, api }: { may: boolean; api: Api }) {
  const list = useList(api.key, (cursor, signal) => api.list(cursor, signal))
  const running = useAction(async () => {
    await api.run()
    refresh(api.key, api.corrects)
  })
  return (
    <>
      <TableCard
        title="Reconciliation"
        lead="Compared with Stripe’s own list every night."
        actions={
          may ? (
            <Button busy={running.busy} onClick={() => running.go()}>
              Reconcile now
            </Button>
          ) : null
        }
        label="Reconciliation"
        list={list}
        empty={
          <Empty icon="statement" title="Nothing was compared yet">
            <p>While Stripe is set up, this happens every night after 02:00 UTC.</p>
          </Empty>
        }
        rowKey={({ id }) => id}
        columns={[
          { head: 'Run', main: true, cell: ({ startedAt }) => <When at={startedAt} /> },
          { head: 'Payments', right: true, cell: ({ checked }) => checked },
          {
            head: 'Differences',
            cell: ({ differences, failure }) =>
              failure ?? (differences.map((one) => `${one.providerId}: ${one.problem}`).join(' ') || 'none'),
          },
        ]}
      />
      {running.error ? <Fault error={running.error} /> : null}
    </>
  )
}
