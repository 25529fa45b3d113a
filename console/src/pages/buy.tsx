// Buying credits: packs or a free amount, the saved card, automatic top-up, and the account's payments.
import { useEffect, useState } from 'react'
import { api } from '../api.ts'
import { refresh, useList, useQuery } from '../query.ts'
import { useLocation } from '../router.tsx'
import { useMay } from '../session.tsx'
import { useAction, useSubmit } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { Checkbox, TextField } from '../ui/field.tsx'
import { Badge, Card, Facts, Note, Page, When } from '../ui/page.tsx'
import { Empty, Fault, Loaded } from '../ui/state.tsx'
import { TableCard, type TableColumn } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import type { Payment, Sales } from '../wire.ts'
import { PaymentState } from './payment-state.tsx'

const go = (url: string) => window.location.assign(url)

export function BuyPage({ account }: { account: string }) {
  const sales = useQuery(`sales/${account}`, (signal) => api.sales(account, signal))
  return (
    <Page title="Buy credits" lead="Credits are added when the payment has arrived, usually within seconds.">
      <Returned account={account} />
      <Loaded query={sales}>{(data) => <Offers account={account} sales={data} />}</Loaded>
      <AccountPayments account={account} />
    </Page>
  )
}

/** Back from the provider's page: asked until it is known what became of the payment. */
function Returned({ account }: { account: string }) {
  const payment = useLocation().query.get('payment')
  const [done, setDone] = useState(false)
  const read = useQuery(
    payment === null ? undefined : `returned/${payment}`,
    () => api.checkPayment(account, payment ?? ''),
    done ? {} : { everyMs: 2_000 },
  )
  const state = read.data?.state
  useEffect(() => {
    if (state === undefined || state === 'pending') return
    setDone(true)
    refresh(`sales/${account}`, `payments/${account}`)
  }, [state, account])
  if (payment === null || !read.data) return null
  if (state === 'paid') return <Note>{`${read.data.credits} credits were added.`}</Note>
  if (state === 'pending') return <Note>The payment has not arrived yet. This page shows it when it has.</Note>
  return <Note tone="warn">{read.data.reason ?? 'The payment was not completed.'}</Note>
}

function Offers({ account, sales }: { account: string; sales: Sales }) {
  const may = useMay()('purchases:write', account)
  const [saveCard, setSaveCard] = useState(false)
  const buying = useAction(async (_signal, order: { pack?: string; amount?: string }) => {
    const { url } = await api.buy(account, { ...order, ...(saveCard ? { saveCard } : {}) })
    go(url)
  })
  const amount = useSubmit(async (form) => buying.go({ amount: String(form.get('amount')) }))
  if (sales.currency === null) return <Empty icon="statement" title="Nothing is sold here" />
  return (
    <>
      {sales.missing ? (
        <Note tone="warn">{`Fill in the billing details first: ${sales.missing} is missing.`}</Note>
      ) : null}
      <Card title="Packs and amounts">
        {sales.packs.map((pack) => (
          <Facts
            key={pack.id}
            items={[
              [pack.name, `${pack.credits} credits for ${pack.price} ${sales.currency}`],
              pack.endsAfterDays === null ? false : ['Valid for', `${pack.endsAfterDays} days`],
              may
                ? [
                    'Buy',
                    <Button key="buy" look="primary" busy={buying.busy} onClick={() => buying.go({ pack: pack.id })}>
                      {`Buy ${pack.name}`}
                    </Button>,
                  ]
                : false,
            ]}
          />
        ))}
        {sales.amounts && may ? (
          <form onSubmit={amount.onSubmit}>
            <TextField
              name="amount"
              label={`Amount in ${sales.currency}`}
              defaultValue={sales.amounts.minimum}
              inputMode="decimal"
              required
              hint={`${sales.amounts.pricePerCredit} ${sales.currency} a credit, from ${sales.amounts.minimum} to ${sales.amounts.maximum}`}
            />
            <Button type="submit" look="primary" busy={buying.busy}>
              Buy this amount
            </Button>
          </form>
        ) : null}
        {sales.savesCards && may ? (
          <Checkbox label="Save the card for later payments" checked={saveCard} onCheck={setSaveCard} />
        ) : null}
        {buying.error ? <Fault error={buying.error} /> : null}
      </Card>
      {sales.savesCards && may ? <SavedCard account={account} sales={sales} /> : null}
    </>
  )
}

function SavedCard({ account, sales }: { account: string; sales: Sales }) {
  const { card, topUp } = sales
  const open = useAction(async (_signal, which: 'card' | 'portal') => {
    const { url } = await (which === 'card' ? api.saveCard(account) : api.portal(account))
    go(url)
  })
  const off = useAction(async () => {
    await api.endTopUp(account)
    refresh(`sales/${account}`)
  })
  const set = useSubmit(async (form) => {
    const field = (name: string) => String(form.get(name))
    await api.setTopUp(account, { below: field('below'), amount: field('amount'), ceiling: field('ceiling') })
    toast('Automatic top-up is on.')
    refresh(`sales/${account}`)
  })
  return (
    <Card title="Saved card and automatic top-up">
      <Facts items={[['Card', card ? `${card.brand} •••• ${card.last4}, until ${card.expires}` : 'none']]} />
      <Button busy={open.busy} onClick={() => open.go('card')}>
        {card ? 'Replace the card' : 'Save a card'}
      </Button>{' '}
      {card ? (
        <Button busy={open.busy} onClick={() => open.go('portal')}>
          Receipts and cards at Stripe
        </Button>
      ) : null}
      {open.error ? <Fault error={open.error} /> : null}
      {topUp?.problem ? <Note tone="warn">{topUp.problem}</Note> : null}
      {card && sales.amounts ? (
        <form onSubmit={set.onSubmit}>
          <TextField
            name="below"
            label="When fewer credits are left than"
            defaultValue={topUp?.below ?? '100'}
            required
          />
          <TextField
            name="amount"
            label={`Charge (${sales.currency})`}
            defaultValue={topUp?.amount ?? sales.amounts.minimum}
            required
          />
          <TextField
            name="ceiling"
            label={`At most in a month (${sales.currency})`}
            defaultValue={topUp?.ceiling ?? sales.amounts.maximum}
            hint={topUp ? `${topUp.used} ${topUp.currency} were charged this month.` : undefined}
            required
          />
          <Button type="submit" look="primary" busy={set.busy}>
            {topUp ? 'Change automatic top-up' : 'Turn on automatic top-up'}
          </Button>{' '}
          {topUp ? (
            <Button busy={off.busy} onClick={() => off.go()}>
              Turn off
            </Button>
          ) : null}
          {set.error ? <Fault error={set.error} /> : null}
        </form>
      ) : null}
    </Card>
  )
}

const COLUMNS: readonly TableColumn<Payment>[] = [
  { head: 'Payment', main: true, cell: ({ createdAt }) => <When at={createdAt} /> },
  { head: 'Amount', right: true, cell: ({ amount, currency }) => `${amount} ${currency}` },
  { head: 'Credits', right: true, cell: ({ credits }) => credits },
  { head: 'State', cell: (payment) => <PaymentState payment={payment} /> },
  {
    head: 'Receipt',
    cell: ({ receiptUrl }) => (receiptUrl ? <a href={receiptUrl}>Receipt</a> : <Badge>none</Badge>),
  },
]

function AccountPayments({ account }: { account: string }) {
  const list = useList(`payments/${account}`, (cursor, signal) => api.accountPayments(account, cursor, signal))
  return (
    <TableCard
      title="Payments"
      label="Payments"
      list={list}
      empty={<Empty icon="statement" title="No payments yet" />}
      columns={COLUMNS}
      rowKey={({ id }) => id}
    />
  )
}
