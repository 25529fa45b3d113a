// A payment in words: what was bought.
import type { Payment } from '../../wire.ts'

const KINDS: Readonly<Record<Payment['kind'], string>> = {
  pack: 'Pack',
  amount: 'Amount',
  plan: 'Plan',
  top_up: 'Automatic top-up',
  other: 'Other',
}
export const paymentName = ({ kind, offer }: Payment) => (offer ? `${KINDS[kind]} ${offer}` : KINDS[kind])
