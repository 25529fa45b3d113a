// What reports of a payment come to, whoever keeps it: which of two is the newer, and how many credits go back.
import type { Credits } from '../../../kernel/credits.ts'
import { Fault, invalid } from '../../../kernel/fault.ts'
import { formatMoney, parseMoney } from '../money.ts'
import type { PaymentFacts, ProviderName } from './provider.ts'

/** As it is kept. */
export interface PaymentState {
  readonly provider: ProviderName
  readonly provider_id: string | null
  readonly currency: string
  readonly amount_minor: bigint
  readonly credits: Credits
  readonly refunded_minor: bigint
  readonly disputed_minor: bigint
  readonly dispute: PaymentFacts['dispute']
  readonly as_of: Date | null
  readonly paid_at: Date | null
}

/** The credits to take for money that was refunded or is disputed. `ledger verify` computes the same. */
export function owedBack({
  credits,
  amount_minor: paid,
  refunded_minor: refunded,
  disputed_minor,
  dispute,
}: Pick<PaymentState, 'credits' | 'amount_minor' | 'refunded_minor' | 'disputed_minor' | 'dispute'>): Credits {
  const back = refunded + (isDisputed({ dispute }) ? disputed_minor : 0n)
  return back >= paid ? credits : (credits * back) / paid
}

/** Reports of one moment come in any order: the one that says less about money that went back is the older one. */
export function isOlder(
  row: Pick<PaymentState, 'as_of' | 'refunded_minor' | 'dispute'>,
  { asOfMs, refundedMinor, dispute }: PaymentFacts,
): boolean {
  const knownMs = row.as_of?.getTime() ?? Number.NEGATIVE_INFINITY
  const saysLess = refundedMinor < row.refunded_minor || DISPUTE_STEPS[dispute] < DISPUTE_STEPS[row.dispute]
  return asOfMs < knownMs || (asOfMs === knownMs && saysLess)
}

const DISPUTE_STEPS = { none: 0, open: 1, lost: 2, won: 2 }

export const isDisputed = ({ dispute }: Pick<PaymentState, 'dispute'>) => dispute === 'open' || dispute === 'lost'

/** Why it is disputed, in words. */
export const DISPUTED = { open: 'The customer disputes it.', lost: 'The dispute was lost.' }

export function laterOf(a: Date | null, b: Date): Date {
  return a !== null && a > b ? a : b
}

/** How much of it is refunded where so much is asked for; by default all that is left. */
export function refundable(row: PaymentState, amount: string | undefined): bigint {
  const { currency } = row
  const left = row.amount_minor - row.refunded_minor
  const minor = amount === undefined ? left : parseMoney(amount, currency)
  if (row.paid_at === null || left === 0n || isDisputed(row))
    throw new Fault('conflict', { message: 'Nothing of this payment can be refunded.' })
  if (minor === undefined || minor <= 0n || minor > left)
    throw invalid(`amount: must be above 0 and at most ${formatMoney(left, currency)}.`, 'amount')
  return minor
}

/** The report of a refund that was made at a provider without an API. */
export function refundOf(row: PaymentState, minor: bigint, nowMs: number): PaymentFacts {
  return {
    provider: row.provider,
    providerId: row.provider_id ?? '',
    currency: row.currency,
    status: 'paid',
    amountMinor: row.amount_minor,
    taxMinor: 0n,
    refundedMinor: row.refunded_minor + minor,
    disputedMinor: row.disputed_minor,
    dispute: row.dispute,
    asOfMs: nowMs,
  }
}
