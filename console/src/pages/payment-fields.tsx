// What the pages of payments share, the gateway's own and those by customers of an account: secrets, the webhook's
// address, states and refunds.
import { parseCredits } from '../credits.ts'
import { Allowed, type RightProps } from '../session.tsx'
import { useAction } from '../ui/action.ts'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/code.tsx'
import { FormDialog } from '../ui/dialog.tsx'
import { TextField } from '../ui/field.tsx'
import { Badge } from '../ui/page.tsx'
import { Fault } from '../ui/state.tsx'
import type { Payment } from '../wire.ts'

/** What Stripe is to tell of a payment. */
export const PAYMENT_EVENTS = [
  'payment_intent.succeeded',
  'payment_intent.canceled',
  'checkout.session.completed',
  'charge.refunded',
  'charge.dispute.created',
  'charge.dispute.closed',
]

const STATES = {
  pending: { label: 'Pending', tone: 'calm' },
  paid: { label: 'Paid', tone: 'good' },
  refunded: { label: 'Refunded', tone: 'warn' },
  disputed: { label: 'Disputed', tone: 'bad' },
  quarantined: { label: 'Quarantined', tone: 'bad' },
  failed: { label: 'Failed', tone: 'warn' },
} as const

export const PAYMENT_STATES = Object.entries(STATES).map(([state, { label }]) => [state, label] as const)

export function PaymentState({ payment: { state, provider } }: { payment: Pick<Payment, 'state' | 'provider'> }) {
  const { label, tone } = STATES[state]
  return (
    <>
      <Badge tone={tone}>{label}</Badge> {provider === 'simulated' ? <Badge tone="warn">Test</Badge> : null}
    </>
  )
}

type Paid = Pick<Payment, 'amount' | 'currency' | 'refunded'>

export const PaidAmount = ({ amount, currency, refunded }: Paid) => (
  <>
    {`${amount} ${currency}`}
    {Number(refunded) > 0 ? <span className="cell-sub">{`${refunded} refunded`}</span> : null}
  </>
)

/** What was not refunded yet, with the decimals of its currency. */
function refundable({ amount, refunded }: Paid): string {
  const left = Number((parseCredits(amount) ?? 0n) - (parseCredits(refunded) ?? 0n)) / 1_000_000
  return left.toFixed(amount.split('.')[1]?.length ?? 0)
}

export function RefundDialog(props: { payment: Paid; run: (amount: string) => Promise<unknown>; onClose: () => void }) {
  const { payment, run, onClose } = props
  return (
    <FormDialog title="Refund" action="Refund" onClose={onClose} run={(form) => run(String(form.get('amount')))}>
      <TextField name="amount" label={`Amount in ${payment.currency}`} defaultValue={refundable(payment)} required />
    </FormDialog>
  )
}

interface SecretProps extends Omit<RightProps, 'children'> {
  readonly name: string
  readonly label: string
  readonly hint: string
  readonly stored: boolean
  readonly remove: () => Promise<unknown>
}

export function SecretField({ name, label, hint, stored, remove, ...needs }: SecretProps) {
  const removal = useAction(remove)
  return (
    <div className="stack-tight">
      <TextField
        name={name}
        label={label}
        type="password"
        autoComplete="new-password"
        maxLength={300}
        placeholder={stored ? 'Stored. Type to replace it.' : ''}
        hint={hint}
        mono
      />
      {stored ? (
        <Allowed {...needs}>
          <div>
            <Button
              small
              icon="trash"
              busy={removal.busy}
              aria-label={`Remove the ${label.toLowerCase()}`}
              onClick={() => void removal.go()}
            >
              Remove
            </Button>
          </div>
        </Allowed>
      ) : null}
      {removal.error ? <Fault error={removal.error} /> : null}
    </div>
  )
}

type StripeProps = Omit<SecretProps, 'name' | 'label' | 'hint' | 'stored' | 'remove'> & {
  readonly stored: Readonly<Record<'stripe' | 'stripe-webhook', boolean>>
  readonly remove: (name: 'stripe' | 'stripe-webhook') => Promise<unknown>
}

export const StripeSecrets = ({ stored, remove, ...needs }: StripeProps) => (
  <div className="grid-2">
    <SecretField
      name="stripe"
      label="Secret key"
      hint="sk_live_… or a restricted key rk_live_…; sk_test_… to try it."
      stored={stored.stripe}
      remove={() => remove('stripe')}
      {...needs}
    />
    <SecretField
      name="stripe-webhook"
      label="Signing secret of the webhook"
      hint="whsec_…, as Stripe shows it at the endpoint."
      stored={stored['stripe-webhook']}
      remove={() => remove('stripe-webhook')}
      {...needs}
    />
  </div>
)

export function WebhookAddress({ address, events = [] }: { address: string; events?: readonly string[] }) {
  return (
    <>
      <div className="field">
        <span className="field-label">Webhook address</span>
        <div className="secret">
          <code>{address}</code>
          <CopyButton text={address} />
        </div>
      </div>
      {events.length === 0 ? null : (
        <p className="muted">
          Events: <code>{events.join(', ')}</code>
        </p>
      )}
    </>
  )
}

export async function base64Of(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer())
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}
