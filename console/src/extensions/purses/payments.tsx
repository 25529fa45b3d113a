// How customers pay into purses: the account's own payment provider, what a credit costs, how the page for customers
// looks, and what was paid.
import { useState } from 'react'
import { formatCredits } from '../../credits.ts'
import { Invoices } from '../../pages/invoice-table.tsx'
import { IssuerCard } from '../../pages/issuer.tsx'
import {
  base64Of,
  PAYMENT_EVENTS,
  PAYMENT_STATES,
  PaidAmount,
  PaymentState,
  RefundDialog,
  StripeSecrets,
  WebhookAddress,
} from '../../pages/payment-fields.tsx'
import { Reconciliations } from '../../pages/reconciliations.tsx'
import { refresh, useList, useQuery } from '../../query.ts'
import { Link } from '../../router.tsx'
import { Allowed, AllowedFields, useMay } from '../../session.tsx'
import { useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { Checkbox, RadioCards, SelectField, TextField } from '../../ui/field.tsx'
import { Card, Note, Page, When } from '../../ui/page.tsx'
import { Empty, Fault, Loaded } from '../../ui/state.tsx'
import { TableCard } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import type { PursePayments, PurseTopUp } from '../../wire.ts'
import { pursesApi } from './api.ts'
import { purseAt } from './purses.tsx'

interface Of {
  readonly account: string
  readonly settings: PursePayments
}

const RIGHT = 'purse-payments:write'

const PROVIDERS = [
  { value: 'off', label: 'Off', hint: 'Customers buy nothing here. You put credits into their purses.' },
  { value: 'stripe', label: 'Stripe', hint: 'Your own Stripe account: the money is yours.' },
  { value: 'simulated', label: 'Test payments', hint: 'A simulated payment page. Nobody pays anything.' },
] as const

export function PursePaymentsPage({ account }: { account: string }) {
  const settings = useQuery(`purse-payments/${account}`, (signal) => pursesApi.payments(account, signal))
  return (
    <Page title="Payments by customers" lead="How your customers pay into their purses, and what they paid.">
      <Loaded query={settings}>
        {(data) => (
          <AllowedFields right={RIGHT} account={account}>
            <SettingsForm key={JSON.stringify(data)} account={account} settings={data} />
            <IssuerCard
              key={JSON.stringify(data.issuer)}
              issuer={data.issuer}
              right={RIGHT}
              account={account}
              save={async (issuer) => {
                await pursesApi.changePayments(account, { issuer })
                refresh(`purse-payments/${account}`)
              }}
            />
          </AllowedFields>
        )}
      </Loaded>
      <TopUps account={account} />
      <PurseInvoices account={account} />
      {settings.data?.secrets.stripe ? <Compared account={account} /> : null}
    </Page>
  )
}

function Compared({ account }: { account: string }) {
  const may = useMay()(RIGHT, account)
  const api = {
    key: `purse-reconciliations/${account}`,
    corrects: `purses/${account}`,
    list: (cursor?: string, signal?: AbortSignal) => pursesApi.reconciliations(account, cursor, signal),
    run: () => pursesApi.reconcile(account),
  }
  return <Reconciliations may={may} api={api} />
}

function SettingsForm({ account, settings }: Of) {
  const [provider, setProvider] = useState(settings.provider)
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    await pursesApi.changePayments(account, await givenIn(form, provider))
    refresh(`purse-payments/${account}`)
    toast('Saved.')
  })
  return (
    <form className="stack" onSubmit={onSubmit}>
      <Card title="How customers pay">
        <RadioCards
          label="Payment provider"
          value={provider}
          options={PROVIDERS.filter(({ value }) => value !== 'simulated' || settings.canSimulate || value === provider)}
          onPick={setProvider}
        />
        {provider === 'simulated' ? (
          <Note tone="warn">
            {settings.canSimulate
              ? 'A test: every purchase succeeds without money. Credits that were bought in the test stay in their purses.'
              : 'Off: a real vendor is connected, so test payments buy nothing.'}
          </Note>
        ) : null}
        {provider === 'stripe' ? <Stripe account={account} settings={settings} /> : null}
      </Card>
      {provider === 'off' ? null : <Sold settings={settings} />}
      <Look settings={settings} />
      {error ? <Fault error={error} /> : null}
      <Allowed right={RIGHT} account={account}>
        <div>
          <Button type="submit" look="primary" busy={busy}>
            Save
          </Button>
        </div>
      </Allowed>
    </form>
  )
}

const SOLD = ['currency', 'pricePerCredit', 'minimum', 'maximum'] as const
const LOOK = ['name', 'color', 'colorDark'] as const
const SECRETS = ['stripe', 'stripe-webhook'] as const

/** What is not typed stays: amounts that are not shown, and secrets. */
async function givenIn(form: FormData, provider: PursePayments['provider']): Promise<object> {
  const typed = (names: readonly string[]) =>
    names.flatMap((name) => {
      const text = String(form.get(name) ?? '').trim()
      return text ? [[name, text] as const] : []
    })
  const secrets = Object.fromEntries(typed(SECRETS))
  const file = form.get('logo')
  return {
    provider,
    ...Object.fromEntries(typed(SOLD)),
    ...Object.fromEntries(LOOK.map((name) => [name, null])),
    ...Object.fromEntries(typed(LOOK)),
    ...(Object.keys(secrets).length > 0 ? { secrets } : {}),
    ...(file instanceof File && file.size > 0 ? { logo: await base64Of(file) } : {}),
    ...(form.has('noLogo') ? { logo: null } : {}),
  }
}

function Stripe({ account, settings: { secrets, webhookUrl, mode } }: Of) {
  const remove = async (name: keyof PursePayments['secrets']) => {
    await pursesApi.changePayments(account, { secrets: { [name]: null } })
    refresh(`purse-payments/${account}`)
    toast('It was removed.')
  }
  return (
    <>
      {mode === 'test' ? <Note tone="warn">The stored key is a test key of Stripe: no money moves.</Note> : null}
      <p>Create a webhook endpoint at Stripe with this address, and copy its signing secret.</p>
      <WebhookAddress address={webhookUrl} events={PAYMENT_EVENTS} />
      <StripeSecrets right={RIGHT} account={account} stored={secrets} remove={remove} />
    </>
  )
}

function Sold({ settings: { currency, pricePerCredit, minimum, maximum } }: Pick<Of, 'settings'>) {
  const amount = { inputMode: 'decimal', maxLength: 20, required: true } as const
  return (
    <Card title="What is sold">
      <div className="grid-2">
        <TextField
          name="currency"
          label="Currency"
          defaultValue={currency ?? ''}
          placeholder="EUR"
          pattern="[A-Z]{3}"
          title="Such as EUR"
          required
        />
        <TextField
          name="pricePerCredit"
          label="Price of a credit"
          defaultValue={pricePerCredit ?? ''}
          placeholder="0.01"
          {...amount}
        />
        <TextField name="minimum" label="Least at once" defaultValue={minimum ?? ''} placeholder="5.00" {...amount} />
        <TextField name="maximum" label="Most at once" defaultValue={maximum ?? ''} placeholder="500.00" {...amount} />
      </div>
    </Card>
  )
}

function Look({ settings: { name, color, colorDark, hasLogo } }: Pick<Of, 'settings'>) {
  const hex = { maxLength: 7, pattern: '#[0-9A-Fa-f]{6}', title: 'Such as #7a1fa2', placeholder: '#0e6e74' }
  return (
    <Card title="The page for customers" lead="Where they see the balance and top up: a link of each purse opens it.">
      <div className="grid-2">
        <TextField name="name" label="Name" defaultValue={name ?? ''} maxLength={60} hint="Empty: the account’s" />
        <TextField
          name="logo"
          label={hasLogo ? 'Replace the logo' : 'Logo'}
          type="file"
          accept="image/png,image/jpeg"
          hint="PNG or JPEG, at most 50 kB"
        />
        <TextField name="color" label="Color" defaultValue={color ?? ''} hint="Of its buttons" {...hex} />
        <TextField name="colorDark" label="Color on dark pages" defaultValue={colorDark ?? ''} {...hex} />
      </div>
      {hasLogo ? <RemoveLogo /> : null}
    </Card>
  )
}

function RemoveLogo() {
  const [gone, setGone] = useState(false)
  return (
    <>
      <Checkbox label="Remove the logo" checked={gone} onCheck={setGone} />
      {gone ? <input type="hidden" name="noLogo" value="1" /> : null}
    </>
  )
}

/** Of one purse, or of all. */
export function PurseInvoices({ account, purse }: { account: string; purse?: string }) {
  return (
    <Invoices
      name={`purses/${account}/invoices/${purse ?? ''}`}
      ask={(cursor, signal) => pursesApi.invoices(account, purse, { limit: 50, cursor }, signal)}
      file={(invoice) => pursesApi.invoiceFile(account, invoice)}
      hasCustomer={purse === undefined}
    />
  )
}

/** Of one purse, or of all. */
export function TopUps({ account, purse }: { account: string; purse?: string }) {
  const [state, setState] = useState('')
  const [refunding, setRefunding] = useState<PurseTopUp>()
  const may = useMay()(RIGHT, account)
  const key = `purses/${account}/topups/`
  const list = useList(`${key}${purse ?? ''}/${state}`, (cursor, signal) =>
    pursesApi.topUps(account, purse, { limit: 50, state: state || undefined, cursor }, signal),
  )
  if (purse !== undefined && !list.data?.length && !list.error) return null
  return (
    <>
      <TableCard
        title="Top-ups"
        label="Top-ups"
        list={list}
        rowKey={({ id }) => id}
        actions={
          purse === undefined ? (
            <SelectField
              label="State"
              value={state}
              onText={setState}
              options={[['', 'All'], ...PAYMENT_STATES]}
              quiet
            />
          ) : null
        }
        empty={<Empty icon="statement" title={state ? 'No top-ups in this state' : 'No top-ups yet'} />}
        columns={[
          { head: 'At', tight: true, cell: ({ createdAt }) => <When at={createdAt} /> },
          {
            head: 'For',
            main: true,
            cell: (row) => (purse === undefined ? <Link to={purseAt(account, row.purse)}>{row.purse}</Link> : row.id),
          },
          { head: 'Amount', right: true, cell: PaidAmount },
          { head: 'Credits', right: true, cell: Credits },
          { head: 'State', cell: (payment) => <PaymentState payment={payment} /> },
          { head: 'Reason', wideOnly: true, cell: ({ reason }) => reason ?? '–' },
          may && {
            head: 'Actions',
            tight: true,
            cell: (row) =>
              ['paid', 'quarantined'].includes(row.state) ? (
                <Button small icon="swap" onClick={() => setRefunding(row)}>
                  Refund
                </Button>
              ) : null,
          },
        ]}
      />
      {refunding ? (
        <RefundDialog
          payment={refunding}
          run={async (amount) => {
            await pursesApi.refund(account, refunding.id, amount)
            toast('It was refunded.')
            refresh(`purses/${account}`)
          }}
          onClose={() => setRefunding(undefined)}
        />
      ) : null}
    </>
  )
}

const Credits = ({ credits, creditsLost }: PurseTopUp) => (
  <>
    {formatCredits(credits)}
    {creditsLost === '0' ? null : <span className="cell-sub">{`${formatCredits(creditsLost)} lost`}</span>}
  </>
)
