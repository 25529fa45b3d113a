// The interface of payment providers, and their report of a payment. Providers know nothing of accounts, credits or the
// ledger.
import type { PROVIDER_NAMES } from './views.ts'

export type ProviderName = (typeof PROVIDER_NAMES)[number]

/** The whole state of one payment at the provider. Applying it late, twice or out of order gives the same result. */
export interface PaymentFacts {
  readonly provider: ProviderName
  /** The payment's id at the provider. */
  readonly providerId: string
  /** Our id of the payment, the account and the offer, if the provider has them in its metadata. */
  readonly payment?: string | undefined
  readonly account?: string | undefined
  readonly offer?: string | undefined
  readonly currency: string
  /** In the currency's smallest unit: what was paid in all, and the tax that was added to the price. */
  readonly amountMinor: bigint
  readonly taxMinor: bigint
  /** The tax in the amount, added or included. Absent: the provider computed no tax; 0: it did, and none is due. */
  readonly taxIncludedMinor?: bigint
  readonly status: 'pending' | 'paid' | 'failed'
  readonly refundedMinor: bigint
  readonly disputedMinor: bigint
  readonly dispute: 'none' | 'open' | 'lost' | 'won'
  /** The time of this state; older reports change nothing. */
  readonly asOfMs: number
  readonly reason?: string | undefined
  readonly receiptUrl?: string | undefined
  /** A card that may be charged again. */
  readonly card?: SavedCard | undefined
}

export interface SavedCard {
  readonly methodId: string
  readonly brand: string
  readonly last4: string
  readonly expires: string
}

export interface ProviderEvent {
  readonly id: string
  readonly type: string
  /** Undefined: the event is not about a payment. */
  readonly facts: PaymentFacts | undefined
  /** A card was saved for, or removed from, a customer. */
  readonly card?: { readonly customerId: string; readonly card: SavedCard | null }
}

export interface Purchase {
  readonly payment: string
  readonly account: string
  readonly offer?: string | undefined
  readonly name: string
  readonly currency: string
  readonly priceMinor: bigint
}

export interface Customer {
  readonly id: string
  readonly methodId: string | null
}

/**
 * The parameters of a charge, stored with the payment: a repeated request must have the same ones, or the provider
 * rejects its idempotency key.
 */
export interface ChargeTerms {
  readonly customerId: string
  readonly methodId: string
  /** With the tax that is added to the price. */
  readonly amountMinor: string
  /** Computed by the provider, in its own units: all tax in the amount, and the part that was added to the price. */
  readonly tax?: { readonly calculation: string; readonly all: number; readonly added: number }
}

/** The provider made no payment, and would not make one if asked again. */
export interface ChargeRefused {
  readonly refused: string
}

export interface Provider {
  readonly name: ProviderName
  /** Amounts in this currency must be a multiple of this number of its smallest unit. */
  step(currency: string): bigint
  /** Verifies the signature of an event before anything in it is used. */
  receive(body: Buffer, headers: Readonly<Record<string, string | undefined>>): Promise<ProviderEvent>
  /** Where the customer pays. */
  checkout(
    purchase: Purchase,
    options: { customer: Customer | null; email: string | null; saveCard: boolean; returnUrl: string },
  ): Promise<{ url: string; reference?: string }>
  /** Absent if the provider has no API. */
  readonly remote?: RemoteProvider
}

export interface RemoteProvider {
  customer(account: { id: string; name: string; email: string | null }): Promise<string>
  /** Computes the total of a charge of a saved card. */
  terms(purchase: Purchase, customer: { readonly id: string; readonly methodId: string }): Promise<ChargeTerms>
  /** Charges a saved card off-session. A repeated request for the same purchase does not charge twice. */
  charge(purchase: Purchase, terms: ChargeTerms): Promise<PaymentFacts | ChargeRefused>
  /** Finds the result of a charge whose answer was lost. Undefined: the provider made no payment. */
  charged(charge: {
    readonly payment: string
    readonly providerId: string | null
    readonly customerId: string
    readonly createdAt: Date
  }): Promise<PaymentFacts | undefined>
  read(payment: { providerId: string | null; reference: string | null }): Promise<PaymentFacts | undefined>
  refund(providerId: string, refund: { currency: string; amountMinor: bigint; key: string }): Promise<void>
  /** Everything that was paid, refunded or disputed in this time. */
  list(fromMs: number, untilMs: number): AsyncGenerator<PaymentFacts>
  /** The customer's own page at the provider. */
  portal(customerId: string, returnUrl: string): Promise<string>
  /** The page on which a card is saved without a payment. */
  saveCard(customerId: string, returnUrl: string): Promise<string>
}
