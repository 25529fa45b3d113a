// Buying credits: packs or a free amount, and the account's payments.
import { type ReactNode, useState } from 'react'
import { api } from '../../api.ts'
import { briefCredits, formatCredits, parseCredits, priceText } from '../../credits.ts'
import { plural } from '../../format.ts'
import { detailName } from '../../pages/billing-details.tsx'
import { PaymentState } from '../../pages/payment-fields.tsx'
import { useList, useQuery } from '../../query.ts'
import { Link } from '../../router.tsx'
import { useMay } from '../../session.tsx'
import { useAction } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, TextField } from '../../ui/field.tsx'
import { Card, Note, Page, When } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import { Named, TableCard, type TableColumn } from '../../ui/table.tsx'
import type { Payment, Sales } from '../../wire.ts'
import { paymentName } from './payment-name.ts'
import { Returned } from './returned.tsx'

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

function Offers({ account, sales }: { account: string; sales: Sales }) {
  const may = useMay()('purchases:write', account)
  const [saveCard, setSaveCard] = useState(false)
  const buying = useAction(async (_signal, order: { pack?: string; amount?: string }) => {
    const { url } = await api.buy(account, { ...order, ...(saveCard ? { saveCard } : {}) })
    window.location.assign(url)
  })
  const { currency, amounts, packs, missing } = sales
  if (currency === null || (packs.length === 0 && !amounts))
    return (
      <Empty icon="statement" title="Credits are not sold here">
        <p>Ask the operator of this gateway for credits.</p>
      </Empty>
    )
  const stopped = missing !== null || !may
  return (
    <>
      {sales.provider === 'simulated' ? <Note tone="warn">Test payments: nobody pays anything here.</Note> : null}
      {missing !== null && may ? <DetailsMissing account={account} field={missing} /> : null}
      {may ? null : <Note>Owners of the account, and those with the billing role, can buy credits.</Note>}
      {packs.length ? (
        <div className="offers">
          {packs.map((pack) => (
            <PackCard key={pack.id} pack={pack} currency={currency}>
              {may ? (
                <Button
                  look="primary"
                  busy={buying.busy}
                  disabled={stopped}
                  onClick={() => buying.go({ pack: pack.id })}
                >
                  {`Buy ${pack.name}`}
                </Button>
              ) : null}
            </PackCard>
          ))}
        </div>
      ) : null}
      {amounts && may ? (
        <AmountCard
          amounts={amounts}
          currency={currency}
          busy={buying.busy}
          disabled={stopped}
          onBuy={(amount) => void buying.go({ amount })}
        />
      ) : null}
      {sales.supportsSavedCards && may ? (
        <Checkbox
          label="Save the card for later payments"
          hint="For plans and automatic top-up."
          checked={saveCard}
          onCheck={setSaveCard}
        />
      ) : null}
      {buying.error ? <Fault error={buying.error} /> : null}
    </>
  )
}

function DetailsMissing({ account, field }: { account: string; field: string }) {
  return (
    <Note tone="warn">
      {`Invoices need an address: ${detailName(field)} is missing.`}{' '}
      <Link to={`/a/${encodeURIComponent(account)}/invoices`}>Fill in the billing details</Link>
    </Note>
  )
}

function PackCard(props: { pack: Sales['packs'][number]; currency: string; children: ReactNode }) {
  const { pack, currency, children } = props
  return (
    <section className="offer" aria-label={pack.name}>
      <h2>{pack.name}</h2>
      <p className="offer-price">{priceText(pack.price, currency)}</p>
      <ul>
        <li>{formatCredits(pack.credits)} credits</li>
        {pack.endsAfterDays === null ? null : <li>valid for {plural(pack.endsAfterDays, 'day')}</li>}
        {pack.products === null ? null : <li>only for {pack.products.join(', ')}</li>}
      </ul>
      {children}
    </section>
  )
}

function AmountCard(props: {
  amounts: NonNullable<Sales['amounts']>
  currency: string
  busy: boolean
  disabled: boolean
  onBuy: (amount: string) => void
}) {
  const { amounts, currency } = props
  const [amount, setAmount] = useState(amounts.minimum)
  const [money, price] = [parseCredits(amount), parseCredits(amounts.pricePerCredit)]
  const bought = money && money > 0n && price ? `${briefCredits((money * 1_000_000n) / price)} credits. ` : ''
  return (
    <Card title="Another amount" lead={`A credit costs ${amounts.pricePerCredit} ${currency}.`}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault()
          props.onBuy(amount.trim())
        }}
      >
        <div className="half">
          <TextField
            label={`Amount in ${currency}`}
            value={amount}
            onText={setAmount}
            inputMode="decimal"
            required
            hint={`${bought}From ${amounts.minimum} to ${amounts.maximum} ${currency}.`}
          />
        </div>
        <div className="row">
          <Button type="submit" look="primary" busy={props.busy} disabled={props.disabled}>
            Buy this amount
          </Button>
        </div>
      </form>
    </Card>
  )
}

const INVOICED: readonly Payment['state'][] = ['paid', 'refunded', 'disputed']

const columnsOf = (account: string): readonly TableColumn<Payment>[] => [
  { head: 'Payment', main: true, cell: (payment) => <Named name={paymentName(payment)} /> },
  { head: 'At', tight: true, cell: ({ createdAt }) => <When at={createdAt} /> },
  { head: 'Amount', right: true, cell: ({ amount, currency }) => `${amount} ${currency}` },
  { head: 'Credits', right: true, cell: ({ credits }) => formatCredits(credits) },
  { head: 'State', cell: (payment) => <PaymentState payment={payment} /> },
  {
    head: 'Receipt',
    cell: ({ receiptUrl, state }) => (
      <span className="row">
        {receiptUrl ? <a href={receiptUrl}>Receipt</a> : null}
        {INVOICED.includes(state) ? (
          <Link to={`/a/${encodeURIComponent(account)}/invoices`}>Invoices</Link>
        ) : (
          <span className="muted">–</span>
        )}
      </span>
    ),
  },
]

function AccountPayments({ account }: { account: string }) {
  const list = useList(`payments/${account}`, (cursor, signal) => api.accountPayments(account, cursor, signal))
  return (
    <TableCard
      title="Payments"
      label="Payments"
      list={list}
      empty={
        <Empty icon="statement" title="No payments yet">
          <p>Payments for this account appear here, with their receipts.</p>
        </Empty>
      }
      columns={columnsOf(account)}
      rowKey={({ id }) => id}
    />
  )
}
