// What a payment provider can do, and what it says of a payment. Providers know nothing of accounts, credits or the ledger.

export type ProviderName = 'stripe' | 'webhook'

/** The whole state of one payment at the provider. Applying it late, twice or out of order gives the same result. */
export interface PaymentFacts {
  readonly provider: ProviderName
  /** The payment's id at the provider. */
  readonly providerId: string
  /** Our own id of it, the account, and the offer, where the provider was told. */
  readonly payment?: string | undefined
  readonly account?: string | undefined
  readonly offer?: string | undefined
  readonly currency: string
  /** In the currency's smallest unit: what was paid in all, and the tax that was added to the price. */
  readonly amountMinor: bigint
  readonly taxMinor: bigint
  /** The tax that lies in the amount, whether it was added or included. Absent: the provider worked out none; 0: it did, and none is due. */
  readonly taxIncludedMinor?: bigint
  readonly status: 'pending' | 'paid' | 'failed'
  readonly refundedMinor: bigint
  readonly disputedMinor: bigint
  readonly dispute: 'none' | 'open' | 'lost' | 'won'
  /** The moment of which this is true; older facts change nothing any more. */
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
  /** Undefined: an event that says nothing of a payment. */
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

/** Everything of a charge that may not change when it is asked for again: a provider takes the same charge twice only with the same parameters. Stored with the payment. */
export interface ChargeTerms {
  readonly customerId: string
  readonly methodId: string
  /** With the tax that is added to the price. */
  readonly amountMinor: string
  /** As the provider worked it out, in its own units: all tax in the amount, and what of it was added to the price. */
  readonly tax?: { readonly calculation: string; readonly all: number; readonly added: number }
}

/** The provider made no payment of it, and would not the next time either. */
export interface ChargeRefused {
  readonly refused: string
}

export interface Provider {
  readonly name: ProviderName
  /** Amounts of this currency must be a multiple of so many of its smallest unit. */
  step(currency: string): bigint
  /** Proves that an event is genuine, by its bytes and headers, before anything of it is read. */
  receive(body: Buffer, headers: Readonly<Record<string, string | undefined>>): Promise<ProviderEvent>
  /** Where the customer pays. */
  checkout(
    purchase: Purchase,
    options: { customer: Customer | null; email: string | null; saveCard: boolean; returnUrl: string },
  ): Promise<{ url: string; reference?: string }>
  /** What cannot be asked of a provider is absent. */
  readonly remote?: RemoteProvider
}

export interface RemoteProvider {
  customer(account: { id: string; name: string; email: string | null }): Promise<string>
  /** What a charge of a saved card comes to. */
  terms(purchase: Purchase, customer: { readonly id: string; readonly methodId: string }): Promise<ChargeTerms>
  /** Charges a saved card while nobody is there. The same purchase is charged once, however often it is asked for. */
  charge(purchase: Purchase, terms: ChargeTerms): Promise<PaymentFacts | ChargeRefused>
  /** What became of a charge of which nobody heard the end. Undefined: the provider made no payment of it. */
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
