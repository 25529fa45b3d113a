// All payments: their state, what is quarantined and why, refunds, and the differences that reconciliation found.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatCredits, parseCredits } from '../../credits.ts'
import { refresh, useList } from '../../query.ts'
import { Link } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Menu, type MenuItem } from '../../ui/menu.tsx'
import { Page, When } from '../../ui/page.tsx'
import { Empty, Fault } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Payment } from '../../wire.ts'
import { PAYMENT_STATES, PaymentState, paymentName } from './payment-state.tsx'

type Act = 'refund' | 'accept' | 'dismiss'

export function PaymentsPage() {
  const has = useMay()
  const [may, maySet] = [has('payments:write'), has('payment-settings:read')]
  const [state, setState] = useState('')
  const [acting, setActing] = useState<{ act: Act; payment: Payment }>()
  const list = useList(`all-payments/${state}`, (cursor, signal) =>
    api.payments({ state: state || undefined, cursor }, signal),
  )
  const actions = (payment: Payment): MenuItem[] => {
    const item = (act: Act, label: string): MenuItem => ({
      label,
      icon: 'swap',
      run: () => setActing({ act, payment }),
    })
    if (payment.state === 'quarantined')
      return [item('accept', 'Grant credits'), item('refund', 'Refund'), item('dismiss', 'Dismiss')]
    return payment.state === 'paid' ? [item('refund', 'Refund')] : []
  }
  return (
    <Page title="Payments" lead="All payments and their states.">
      <div className="filters">
        <SelectField label="State" value={state} onText={setState} options={[['', 'All'], ...PAYMENT_STATES]} />
      </div>
      <TableCard
        label="Payments"
        list={list}
        empty={
          state ? (
            <Empty icon="statement" title="No payments in this state" />
          ) : (
            <Empty icon="statement" title="No payments yet">
              <p>
                What customers pay appears here.{' '}
                {maySet ? <Link to="/operator/payments/settings">What is missing to sell</Link> : null}
              </p>
            </Empty>
          )
        }
        rowKey={({ id }) => id}
        columns={[
          {
            head: 'Account',
            main: true,
            cell: (one) => (
              <Named
                name={one.accountName ?? 'unknown'}
                sub={one.providerId}
                {...(one.account ? { to: `/operator/accounts/${encodeURIComponent(one.account)}` } : {})}
              />
            ),
          },
          { head: 'For', cell: (payment) => paymentName(payment) },
          { head: 'At', tight: true, cell: ({ createdAt }) => <When at={createdAt} /> },
          {
            head: 'Amount',
            right: true,
            cell: ({ amount, currency, refunded }) => (
              <>
                {`${amount} ${currency}`}
                {Number(refunded) > 0 ? <span className="cell-sub">{`${refunded} refunded`}</span> : null}
              </>
            ),
          },
          { head: 'Credits', right: true, cell: ({ credits }) => formatCredits(credits) },
          { head: 'State', cell: (payment) => <PaymentState payment={payment} /> },
          { head: 'Reason', cell: ({ reason }) => reason ?? '–' },
          may && {
            head: 'Actions',
            cell: (payment) => (actions(payment).length ? <Menu label="Actions" items={actions(payment)} /> : null),
          },
        ]}
      />
      <Differences may={may} />
      {acting ? <ActDialog {...acting} onClose={() => setActing(undefined)} /> : null}
    </Page>
  )
}

/** What was not refunded yet, with the decimals of its currency. */
function refundable({ amount, refunded }: Payment): string {
  const left = Number((parseCredits(amount) ?? 0n) - (parseCredits(refunded) ?? 0n)) / 1_000_000
  return left.toFixed(amount.split('.')[1]?.length ?? 0)
}

function ActDialog({ act, payment, onClose }: { act: Act; payment: Payment; onClose: () => void }) {
  const done = async (run: () => Promise<unknown>, text: string) => {
    await run()
    toast(text)
    refresh('all-payments/')
  }
  if (act === 'dismiss')
    return (
      <Confirm
        title="Dismiss this payment"
        action="Dismiss"
        onClose={onClose}
        run={() => done(() => api.dismissPayment(payment.id), 'It was dismissed.')}
      >
        No credits are granted for it.
      </Confirm>
    )
  const isRefund = act === 'refund'
  return (
    <FormDialog
      title={isRefund ? 'Refund' : 'Grant credits'}
      action={isRefund ? 'Refund' : 'Grant'}
      onClose={onClose}
      run={(form) => {
        const field = (name: string) => String(form.get(name))
        return isRefund
          ? done(() => api.refundPayment(payment.id, field('amount')), 'It was refunded.')
          : done(
              () => api.acceptPayment(payment.id, { account: field('account'), credits: field('credits') }),
              'Credits were granted.',
            )
      }}
    >
      {isRefund ? (
        <TextField name="amount" label={`Amount in ${payment.currency}`} defaultValue={refundable(payment)} required />
      ) : (
        <>
          <TextField name="account" label="Account id" defaultValue={payment.account ?? ''} required />
          <TextField name="credits" label="Credits" required />
        </>
      )}
    </FormDialog>
  )
}

function Differences({ may }: { may: boolean }) {
  const list = useList('reconciliations', (cursor, signal) => api.reconciliations(cursor, signal))
  const running = useAction(async () => {
    await api.reconcile()
    refresh('reconciliations', 'all-payments/')
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
