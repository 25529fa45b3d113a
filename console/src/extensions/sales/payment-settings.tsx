// How payments are taken, and what is missing before something can be bought.
import { type ReactNode, useState } from 'react'
import { api } from '../../api.ts'
import { PAYMENT_EVENTS, SecretField, StripeSecrets, WebhookAddress } from '../../pages/payment-fields.tsx'
import { refresh, useQuery } from '../../query.ts'
import { Link } from '../../router.tsx'
import { Allowed, AllowedFields } from '../../session.tsx'
import { useSubmit } from '../../ui/action.ts'
import { Button } from '../../ui/button.tsx'
import { RadioCards, SelectField, TextField } from '../../ui/field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Badge, Card, Note, Page } from '../../ui/page.tsx'
import { Fault, Loaded } from '../../ui/state.tsx'
import { toast } from '../../ui/toast.tsx'
import type { CatalogDocument, InvoiceSettings, PaymentSettings } from '../../wire.ts'

type Provider = PaymentSettings['provider']
type SecretName = keyof PaymentSettings['secrets']

const PROVIDERS = [
  { value: 'off', label: 'Off', hint: 'Nothing is sold. Operators add credits by hand.' },
  { value: 'stripe', label: 'Stripe', hint: 'Checkout, saved cards, automatic top-up, tax and receipts by Stripe.' },
  {
    value: 'webhook',
    label: 'Another payment provider',
    hint: 'Customers pay on its page; it reports payments by signed webhooks.',
  },
  {
    value: 'simulated',
    label: 'Test payments',
    hint: 'A simulated payment page. Nobody pays anything; only while every vendor is simulated.',
  },
] as const

/** Cards are saved for automatic top-up. */
const EVENTS = [...PAYMENT_EVENTS, 'setup_intent.succeeded']

export function PaymentSettingsPage() {
  const settings = useQuery('payment-settings', api.paymentSettings)
  return (
    <Page title="Payment settings" lead="How customers pay, and what is missing before they can.">
      <Loaded query={settings}>
        {(data) => (
          <>
            <Checklist settings={data} />
            <AllowedFields right="payment-settings:write">
              <SettingsForm key={JSON.stringify(data)} settings={data} />
            </AllowedFields>
          </>
        )}
      </Loaded>
    </Page>
  )
}

interface Step {
  readonly done: boolean
  readonly text: ReactNode
  /** It can be sold without. */
  readonly optional?: boolean
}

/** What a browser elsewhere could not open either. */
function isLocal(address: string): boolean {
  const { protocol = '', hostname = '' } = URL.parse(address) ?? {}
  return protocol !== 'https:' || /^(localhost|127\.|\[::1\]|10\.|192\.168\.)/.test(hostname)
}

function stepsOf(settings: PaymentSettings, sales: CatalogDocument['sales'], invoices: InvoiceSettings): Step[] {
  const { provider, secrets, webhookUrls, mode, checkoutUrl } = settings
  const isSold = Boolean(sales?.pricePerCredit || sales?.packs?.length || sales?.plans?.length)
  const ofStripe: Step[] = [
    { done: secrets.stripe, text: <>A secret key of Stripe {mode ? <Badge>{mode}</Badge> : null}</> },
    { done: secrets['stripe-webhook'], text: 'The signing secret of the webhook endpoint at Stripe' },
  ]
  const ofOther: Step[] = [
    { done: secrets['payment-webhook'], text: 'The secret with which the payment provider signs its webhooks' },
    { done: checkoutUrl !== null, text: 'The address of the payment provider’s page' },
  ]
  return [
    {
      done: isSold,
      text: (
        <>
          <Link to="/operator/plans">Plans, packs or a price of a credit</Link> (
          <a href="/docs/guides/selling">guide</a>)
        </>
      ),
    },
    { done: provider !== 'off', text: 'A payment provider' },
    ...(provider === 'stripe' ? ofStripe : provider === 'webhook' ? ofOther : []),
    ...(provider === 'off' || provider === 'simulated'
      ? []
      : [
          {
            done: !isLocal(webhookUrls[provider]),
            text: 'An https address that the payment provider can reach (PUBLIC_URL)',
          },
        ]),
    {
      done: invoices.issuer !== null,
      optional: true,
      text: (
        <>
          Who issues <Link to="/operator/finance/invoices">invoices</Link>
        </>
      ),
    },
  ]
}

function Checklist({ settings }: { settings: PaymentSettings }) {
  const catalog = useQuery('catalog', api.catalog)
  const invoices = useQuery('invoice-settings', api.invoiceSettings)
  return (
    <Loaded query={catalog}>
      {({ document }) => (
        <Loaded query={invoices}>{(issuing) => <Steps steps={stepsOf(settings, document.sales, issuing)} />}</Loaded>
      )}
    </Loaded>
  )
}

function Steps({ steps }: { steps: readonly Step[] }) {
  const missing = steps.filter(({ done, optional }) => !done && !optional).length
  return (
    <Card title={missing === 0 ? 'Ready to sell' : 'Before something can be bought'}>
      <ul className="checklist">
        {steps.map(({ done, text, optional }, index) => (
          <li key={index}>
            <Icon name={done ? 'check' : optional ? 'info' : 'warning'} size={16} />
            <span>
              {text}
              {done ? null : (
                <>
                  {' '}
                  <Badge tone={optional ? 'calm' : 'warn'}>{optional ? 'optional' : 'missing'}</Badge>
                </>
              )}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  )
}

function SettingsForm({ settings }: { settings: PaymentSettings }) {
  const [provider, setProvider] = useState<Provider>(settings.provider)
  const { busy, error, onSubmit } = useSubmit(async (form) => {
    const text = (name: string) => String(form.get(name) ?? '').trim()
    const names: readonly SecretName[] = provider === 'stripe' ? ['stripe', 'stripe-webhook'] : ['payment-webhook']
    const typed = names.filter((name) => text(name)).map((name) => [name, text(name)] as const)
    await api.changePaymentSettings({
      provider,
      ...(provider === 'stripe' ? { tax: text('tax') as PaymentSettings['tax'] } : {}), // one of the options below
      ...(provider === 'webhook' ? { checkoutUrl: text('checkoutUrl') || null } : {}),
      ...(typed.length ? { secrets: Object.fromEntries(typed) } : {}),
    })
    refresh('payment-settings', 'session')
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
              ? 'Test mode: every purchase succeeds without money. Invoices are numbered TEST-… and say so. Turn it off before you connect a real vendor; credits that were bought in the test stay on their accounts.'
              : 'Off: a real vendor is connected, so test payments buy nothing.'}
          </Note>
        ) : null}
      </Card>
      {provider === 'stripe' ? <StripeCard settings={settings} /> : null}
      {provider === 'webhook' ? <OtherCard settings={settings} /> : null}
      {error ? <Fault error={error} /> : null}
      <Allowed right="payment-settings:write">
        <div>
          <Button type="submit" look="primary" busy={busy}>
            Save
          </Button>
        </div>
      </Allowed>
    </form>
  )
}

async function removeSecret(name: SecretName): Promise<void> {
  await api.changePaymentSettings({ secrets: { [name]: null } })
  refresh('payment-settings', 'session')
  toast('It was removed.')
}

function StripeCard({ settings: { secrets, webhookUrls, tax } }: { settings: PaymentSettings }) {
  return (
    <Card title="Stripe" lead="Create a webhook endpoint at Stripe with this address, and copy its signing secret.">
      <WebhookAddress address={webhookUrls.stripe} events={EVENTS} />
      <StripeSecrets right="payment-settings:write" stored={secrets} remove={removeSecret} />
      <div className="half">
        <SelectField
          name="tax"
          label="Tax"
          defaultValue={tax}
          options={[
            ['off', 'Stripe computes no tax'],
            ['exclusive', 'Stripe adds tax to the prices'],
            ['inclusive', 'Prices include tax, which Stripe computes'],
          ]}
        />
      </div>
    </Card>
  )
}

function OtherCard({ settings: { secrets, webhookUrls, checkoutUrl } }: { settings: PaymentSettings }) {
  return (
    <Card
      title="Another payment provider"
      lead="It sends each change of a payment to this address, signed as Standard Webhooks specifies."
    >
      <WebhookAddress address={webhookUrls.webhook} />
      <SecretField
        name="payment-webhook"
        label="Secret of its webhooks"
        hint="whsec_ and at least 24 bytes in base64."
        stored={secrets['payment-webhook']}
        right="payment-settings:write"
        remove={() => removeSecret('payment-webhook')}
      />
      <TextField
        name="checkoutUrl"
        label="Payment page"
        type="url"
        maxLength={500}
        defaultValue={checkoutUrl ?? ''}
        placeholder="https://pay.example.com/?payment={payment}&amount={amount}&currency={currency}&return={return}"
        hint="{payment}, {amount}, {currency} and {return} are filled in."
      />
    </Card>
  )
}
