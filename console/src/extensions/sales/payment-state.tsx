// A payment in words: what was bought, and what became of it.
import { Badge } from '../../ui/page.tsx'
import type { Payment } from '../../wire.ts'

const STATES = {
  pending: { label: 'Pending', tone: 'calm' },
  paid: { label: 'Paid', tone: 'good' },
  refunded: { label: 'Refunded', tone: 'warn' },
  disputed: { label: 'Disputed', tone: 'bad' },
  quarantined: { label: 'Quarantined', tone: 'bad' },
  failed: { label: 'Failed', tone: 'warn' },
} as const

const KINDS: Readonly<Record<Payment['kind'], string>> = {
  pack: 'Pack',
  amount: 'Amount',
  plan: 'Plan',
  top_up: 'Automatic top-up',
  other: 'Other',
}
export const paymentName = ({ kind, offer }: Payment) => (offer ? `${KINDS[kind]} ${offer}` : KINDS[kind])

export const PAYMENT_STATES = Object.entries(STATES).map(([state, { label }]) => [state, label] as const)

export function PaymentState({ payment: { state, provider } }: { payment: Pick<Payment, 'state' | 'provider'> }) {
  const { label, tone } = STATES[state]
  return (
    <>
      <Badge tone={tone}>{label}</Badge> {provider === 'simulated' ? <Badge tone="warn">Test</Badge> : null}
    </>
  )
}
