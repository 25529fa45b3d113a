// All payments: their state, what is quarantined and why, refunds, and the differences that reconciliation found.
import { useState } from 'react'
import { api } from '../../api.ts'
import { formatCredits } from '../../credits.ts'
import { PAYMENT_STATES, PaidAmount, PaymentState, RefundDialog } from '../../pages/payment-fields.tsx'
import { Reconciliations } from '../../pages/reconciliations.tsx'
import { refresh, useList } from '../../query.ts'
import { Link } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import { Confirm, FormDialog } from '../../ui/dialog.tsx'
import { SelectField, TextField } from '../../ui/field.tsx'
import { Menu, type MenuItem } from '../../ui/menu.tsx'
import { Page, When } from '../../ui/page.tsx'
import { Empty } from '../../ui/state.tsx'
import { Named, TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Payment } from '../../wire.ts'
import { paymentName } from './payment-name.ts'

type Act = 'refund' | 'accept' | 'dismiss'

const COMPARED = { key: 'reconciliations', corrects: 'all-payments/', list: api.reconciliations, run: api.reconcile }

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
          { head: 'Amount', right: true, cell: PaidAmount },
          { head: 'Credits', right: true, cell: ({ credits }) => formatCredits(credits) },
          { head: 'State', cell: (payment) => <PaymentState payment={payment} /> },
          { head: 'Reason', cell: ({ reason }) => reason ?? '–' },
          may && {
            head: 'Actions',
            cell: (payment) => (actions(payment).length ? <Menu label="Actions" items={actions(payment)} /> : null),
          },
        ]}
      />
      <Reconciliations may={may} api={COMPARED} />
      {acting ? <ActDialog {...acting} onClose={() => setActing(undefined)} /> : null}
    </Page>
  )
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
  if (act === 'refund')
    return (
      <RefundDialog
        payment={payment}
        run={(amount) => done(() => api.refundPayment(payment.id, amount), 'It was refunded.')}
        onClose={onClose}
      />
    )
  return (
    <FormDialog
      title="Grant credits"
      action="Grant"
      onClose={onClose}
      run={(form) => {
        const field = (name: string) => String(form.get(name))
        const granted = { account: field('account'), credits: field('credits') }
        return done(() => api.acceptPayment(payment.id, granted), 'Credits were granted.')
      }}
    >
      <TextField name="account" label="Account id" defaultValue={payment.account ?? ''} required />
      <TextField name="credits" label="Credits" required />
    </FormDialog>
  )
}
