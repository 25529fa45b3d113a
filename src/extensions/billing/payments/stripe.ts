// Stripe, by its official library. An event says only which payment changed: its state is then read from Stripe, so
// that the order and the version of events do not matter.
import type Stripe from 'stripe'
import { Fault } from '../../../kernel/fault.ts'
import type { World } from '../../../kernel/world.ts'
import { currencyDecimals } from '../money.ts'
import type {
  ChargeRefused,
  ChargeTerms,
  PaymentFacts,
  Provider,
  ProviderEvent,
  Purchase,
  RemoteProvider,
  SavedCard,
} from './provider.ts'

interface StripeOptions {
  readonly world: World
  readonly apiKey: () => string | undefined
  readonly webhookSecret: () => string | undefined
  /** Instead of Stripe's own address. */
  readonly baseUrl: string | undefined
  readonly tax: () => Promise<'off' | 'inclusive' | 'exclusive'>
}

const TIMEOUT_MS = 20_000
const TOLERANCE_SECONDS = 300
const RETRIES = 2
/** The clock difference that is tolerated. */
const CLOCKS_MS = 3_600_000
/** Stripe wants these with two decimals although they have none. */
const AS_TWO_DECIMALS: ReadonlySet<string> = new Set(['ISK', 'UGX'])
/** And this one without decimals although it has two. */
const AS_NO_DECIMALS: ReadonlySet<string> = new Set(['MGA'])

function toStripe(minor: bigint, currency: string): number {
  return Number(AS_TWO_DECIMALS.has(currency) ? minor * 100n : AS_NO_DECIMALS.has(currency) ? minor / 100n : minor)
}
function fromStripe(amount: number, currency: string): bigint {
  const given = BigInt(amount)
  return AS_TWO_DECIMALS.has(currency) ? given / 100n : AS_NO_DECIMALS.has(currency) ? given * 100n : given
}

export function createStripe(options: StripeOptions): Provider {
  const { world } = options
  let known: { key: string; client: Stripe } | undefined

  async function client(): Promise<Stripe> {
    const key = options.apiKey()
    if (!key) throw new Fault('conflict', { message: 'Payments by Stripe are not set up: its secret key is missing.' })
    if (known?.key === key) return known.client
    // Loaded here, so that a gateway that sells nothing does not load it.
    const { default: Library } = await import('stripe')
    const url = options.baseUrl === undefined ? undefined : new URL(options.baseUrl)
    const made = new Library(key, {
      timeout: TIMEOUT_MS,
      maxNetworkRetries: RETRIES,
      telemetry: false,
      ...(url
        ? {
            host: url.hostname,
            port: url.port,
            protocol: url.protocol === 'http:' ? ('http' as const) : ('https' as const),
          }
        : {}),
    })
    known = { key, client: made }
    return made
  }

  async function ask<T>(run: (stripe: Stripe) => Promise<T>): Promise<T> {
    const stripe = await client()
    return run(stripe).catch((error: unknown) => {
      throw asFault(error)
    })
  }

  async function factsOf(stripe: Stripe, intentId: string): Promise<PaymentFacts> {
    const asOfMs = world.nowMs()
    const intent = await stripe.paymentIntents.retrieve(intentId, { expand: ['latest_charge', 'payment_method'] })
    return factsFrom(stripe, intent, asOfMs)
  }

  async function factsFrom(stripe: Stripe, intent: Stripe.PaymentIntent, asOfMs: number): Promise<PaymentFacts> {
    const currency = intent.currency.toUpperCase()
    const { metadata } = intent
    const charge = typeof intent.latest_charge === 'object' ? intent.latest_charge : null
    const disputes = charge?.disputed ? (await stripe.disputes.list({ payment_intent: intent.id, limit: 10 })).data : []
    const open = disputes.filter(({ status }) => status !== 'won' && status !== 'warning_closed')
    const paid = intent.status === 'succeeded'
    const tax = paid ? await taxOf(stripe, intent) : undefined
    return {
      provider: 'stripe',
      providerId: intent.id,
      currency,
      asOfMs,
      payment: metadata.tollgate_payment,
      account: metadata.tollgate_account,
      offer: metadata.tollgate_offer,
      amountMinor: fromStripe(paid ? intent.amount_received : intent.amount, currency),
      taxMinor: fromStripe(tax?.added ?? 0, currency),
      ...(tax ? { taxIncludedMinor: fromStripe(tax.all, currency) } : {}),
      status: paid ? 'paid' : intent.status === 'canceled' ? 'failed' : 'pending',
      refundedMinor: fromStripe(charge?.amount_refunded ?? 0, currency),
      disputedMinor: open.reduce((sum, { amount }) => sum + fromStripe(amount, currency), 0n),
      dispute: disputeOf(disputes, open),
      reason: intent.last_payment_error?.message,
      receiptUrl: charge?.receipt_url ?? undefined,
      card: intent.setup_future_usage === 'off_session' ? cardOf(intent.payment_method) : undefined,
    }
  }

  /** The tax that Stripe added to the price, and all tax in the amount. Undefined: Stripe computed none. */
  async function taxOf(stripe: Stripe, { id, metadata }: Stripe.PaymentIntent) {
    if (metadata.tollgate_tax !== undefined)
      return { all: Number(metadata.tollgate_tax), added: Number(metadata.tollgate_tax_added) }
    if (metadata.tollgate_taxed === undefined) return undefined
    const [session] = (await stripe.checkout.sessions.list({ payment_intent: id, limit: 1 })).data
    if (!session) return undefined
    const added = (session.amount_total ?? 0) - (session.amount_subtotal ?? 0)
    return { all: session.total_details?.amount_tax ?? 0, added }
  }

  const remote: RemoteProvider = {
    customer: ({ id, name, email }) =>
      ask(async (stripe) => {
        const about = { name, ...(email === null ? {} : { email }), metadata: { tollgate_account: id } }
        const made = await stripe.customers.create(about, { idempotencyKey: `tollgate-customer-${id}` })
        return made.id
      }),
    terms: (purchase, customer) => ask((stripe) => termsOf(stripe, purchase, customer)),
    charge: (purchase, terms) => ask((stripe) => chargeCard(stripe, purchase, terms)),
    charged: (charge) => ask((stripe) => chargeFacts(stripe, charge)),
    read: ({ providerId, reference }) =>
      ask(async (stripe) => {
        const intent =
          providerId ??
          (reference ? idOf((await stripe.checkout.sessions.retrieve(reference)).payment_intent) : undefined)
        return intent === undefined ? undefined : factsOf(stripe, intent)
      }),
    refund: (providerId, { currency, amountMinor, key }) =>
      ask(async (stripe) => {
        const amount = toStripe(amountMinor, currency)
        await stripe.refunds.create(
          { payment_intent: providerId, amount },
          { idempotencyKey: `tollgate-refund-${key}` },
        )
      }),
    async *list(fromMs, untilMs) {
      const stripe = await client()
      const created = { gte: Math.floor(fromMs / 1000), lt: Math.ceil(untilMs / 1000) }
      const seen = new Set<string>()
      try {
        // The payments of that time, and earlier ones that were refunded in it.
        const intents = stripe.paymentIntents.list({
          created,
          limit: 100,
          expand: ['data.latest_charge', 'data.payment_method'],
        })
        for await (const intent of intents) {
          seen.add(intent.id)
          const asOfMs = world.nowMs()
          if (intent.status === 'succeeded') yield await factsFrom(stripe, intent, asOfMs)
        }
        for (const list of [
          stripe.refunds.list({ created, limit: 100 }),
          stripe.disputes.list({ created, limit: 100 }),
        ])
          for await (const one of list) {
            const intent = idOf(one.payment_intent)
            if (intent === undefined || seen.has(intent)) continue
            seen.add(intent)
            yield await factsOf(stripe, intent)
          }
      } catch (error) {
        throw asFault(error)
      }
    },
    portal: (customer, return_url) =>
      ask(async (stripe) => (await stripe.billingPortal.sessions.create({ customer, return_url })).url),
    saveCard: (customer, returnUrl) =>
      ask(async (stripe) => {
        const urls = { success_url: returnUrl, cancel_url: returnUrl }
        const session = await stripe.checkout.sessions.create({ mode: 'setup', customer, ...urls })
        return addressOf(session)
      }),
  }

  async function termsOf(
    stripe: Stripe,
    { payment, currency, priceMinor }: Purchase,
    { id, methodId }: { id: string; methodId: string },
  ): Promise<ChargeTerms> {
    const behaviour = await options.tax()
    const terms = { customerId: id, methodId }
    if (behaviour === 'off') return { ...terms, amountMinor: String(priceMinor) }
    const price = toStripe(priceMinor, currency)
    const calculation = await stripe.tax.calculations.create({
      currency: currency.toLowerCase(),
      customer: id,
      line_items: [{ amount: price, reference: payment, tax_behavior: behaviour }],
    })
    const { amount_total: total, tax_amount_exclusive: exclusive, tax_amount_inclusive: inclusive } = calculation
    const tax = { calculation: calculation.id ?? '', all: exclusive + inclusive, added: total - price }
    return { ...terms, amountMinor: String(fromStripe(total, currency)), tax }
  }

  async function chargeCard(
    stripe: Stripe,
    purchase: Purchase,
    terms: ChargeTerms,
  ): Promise<PaymentFacts | ChargeRefused> {
    const { payment, account, offer, currency, name } = purchase
    const { customerId: customer, methodId, amountMinor, tax } = terms
    const params: Stripe.PaymentIntentCreateParams = {
      amount: toStripe(BigInt(amountMinor), currency),
      currency: currency.toLowerCase(),
      customer,
      description: name,
      off_session: true,
      confirm: true,
      payment_method: methodId,
      automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
      metadata: {
        ...metadataOf({ payment, account, offer }),
        ...(tax ? { tollgate_tax: String(tax.all), tollgate_tax_added: String(tax.added) } : {}),
      },
      ...(tax ? { hooks: { inputs: { tax: { calculation: tax.calculation } } } } : {}),
    }
    let intent: Stripe.PaymentIntent
    try {
      intent = await stripe.paymentIntents.create(params, { idempotencyKey: `tollgate-charge-${payment}` })
    } catch (error) {
      // For example, the card was removed at Stripe. The answer stays the same for this idempotency key.
      if (Object(error).type === 'StripeInvalidRequestError') return REFUSED
      // A declined card leaves a payment at Stripe, which has the reason.
      const declined = declinedOf(error)
      if (declined === undefined) throw error
      return { ...(await factsOf(stripe, declined.intent)), status: 'failed', reason: declined.reason }
    }
    return factsOf(stripe, intent.id)
  }

  async function chargeFacts(
    stripe: Stripe,
    { payment, providerId, customerId: customer, createdAt }: Parameters<RemoteProvider['charged']>[0],
  ): Promise<PaymentFacts | undefined> {
    let id = providerId
    if (id === null) {
      const created = { gte: Math.floor((createdAt.getTime() - CLOCKS_MS) / 1000) }
      // Not by Stripe's search, whose index lags behind.
      for await (const intent of stripe.paymentIntents.list({ customer, created, limit: 100 }))
        if (intent.metadata.tollgate_payment === payment) id = intent.id
    }
    if (id === null) return undefined
    const facts = await factsOf(stripe, id)
    if (facts.status !== 'pending') return facts
    const { status } = await stripe.paymentIntents.retrieve(id)
    // Off-session: there is no customer who could confirm the payment.
    return status.startsWith('requires_') ? { ...facts, status: 'failed' } : facts
  }

  return {
    name: 'stripe',
    remote,
    // Of three decimals Stripe wants the last to be 0.
    step: (currency) => (AS_NO_DECIMALS.has(currency) ? 100n : currencyDecimals(currency) === 3 ? 10n : 1n),
    async receive(body, headers) {
      const secret = options.webhookSecret()
      if (!secret) throw new Fault('not_found')
      const stripe = await client()
      const header = headers['stripe-signature'] ?? ''
      let event: Stripe.Event
      try {
        event = stripe.webhooks.constructEvent(body, header, secret, TOLERANCE_SECONDS, undefined, world.nowMs())
      } catch (error) {
        throw new Fault('key_unknown', { message: 'The signature of this event is not valid.', cause: error })
      }
      return ask(() => readEvent(stripe, event, factsOf))
    },
    checkout: (purchase, { customer, email, saveCard, returnUrl }) =>
      ask(async (stripe) => {
        const { payment, account, offer, currency, priceMinor, name } = purchase
        const behaviour = await options.tax()
        const metadata = {
          ...metadataOf({ payment, account, offer }),
          ...(behaviour === 'off' ? {} : { tollgate_taxed: behaviour }),
        }
        const taxed = behaviour === 'off' ? {} : { tax_behavior: behaviour }
        const session = await stripe.checkout.sessions.create(
          {
            mode: 'payment',
            client_reference_id: payment,
            metadata,
            ...(customer ? { customer: customer.id } : email === null ? {} : { customer_email: email }),
            line_items: [
              {
                quantity: 1,
                price_data: {
                  currency: currency.toLowerCase(),
                  unit_amount: toStripe(priceMinor, currency),
                  ...taxed,
                  product_data: { name },
                },
              },
            ],
            payment_intent_data: {
              metadata,
              ...(email === null ? {} : { receipt_email: email }),
              ...(saveCard ? { setup_future_usage: 'off_session' as const } : {}),
            },
            ...(behaviour === 'off'
              ? {}
              : { automatic_tax: { enabled: true }, billing_address_collection: 'required' as const }),
            ...(behaviour === 'off' || !customer
              ? {}
              : {
                  tax_id_collection: { enabled: true },
                  customer_update: { address: 'auto' as const, name: 'auto' as const },
                }),
            success_url: returnUrl,
            cancel_url: returnUrl,
          },
          { idempotencyKey: `tollgate-checkout-${payment}` },
        )
        return { url: addressOf(session), reference: session.id }
      }),
  }
}

const REFUSED: ChargeRefused = { refused: 'Stripe cannot charge the saved card. Save another one.' }

function metadataOf({ payment, account, offer }: { payment: string; account: string; offer?: string | undefined }) {
  return {
    tollgate_payment: payment,
    tollgate_account: account,
    ...(offer === undefined ? {} : { tollgate_offer: offer }),
  }
}

function disputeOf(all: readonly Stripe.Dispute[], open: readonly Stripe.Dispute[]): PaymentFacts['dispute'] {
  if (all.length === 0) return 'none'
  if (open.length === 0) return 'won'
  return open.every(({ status }) => status === 'lost') ? 'lost' : 'open'
}

/** Which payment an event is about; its state is read anew. */
async function readEvent(
  stripe: Stripe,
  { id, type, data }: Stripe.Event,
  factsOf: (stripe: Stripe, intent: string) => Promise<PaymentFacts>,
): Promise<ProviderEvent> {
  // Events have many shapes and versions; only these members are read.
  const object = data.object as unknown as Readonly<Record<string, unknown>>
  const intent = object.object === 'payment_intent' ? object.id : object.payment_intent
  if (typeof intent === 'string') return { id, type, facts: await factsOf(stripe, intent) }
  const customer = typeof object.customer === 'string' ? object.customer : undefined
  if (customer !== undefined && /^(setup_intent\.succeeded|checkout\.session\.completed)$/.test(type)) {
    const methods = await stripe.customers.listPaymentMethods(customer, { type: 'card', limit: 1 })
    const card = cardOf(methods.data[0] ?? null)
    if (card) return { id, type, facts: undefined, card: { customerId: customer, card } }
  }
  return { id, type, facts: undefined }
}

function cardOf(method: string | Stripe.PaymentMethod | null): SavedCard | undefined {
  if (method === null || typeof method === 'string' || !method.card) return undefined
  const { brand, last4, exp_month: month, exp_year: year } = method.card
  return { methodId: method.id, brand, last4, expires: `${year}-${String(month).padStart(2, '0')}` }
}

const idOf = (value: string | { id: string } | null) => (typeof value === 'object' ? value?.id : value)

function addressOf({ url }: Stripe.Checkout.Session): string {
  if (url === null) throw new Fault('upstream_failed', { message: 'Stripe made no page for this payment.' })
  return url
}

interface StripeFailure {
  readonly type?: string
  readonly message?: string
  readonly statusCode?: number
  readonly payment_intent?: { readonly id?: string }
}

function declinedOf(error: unknown): { intent: string; reason: string } | undefined {
  const { type, message, payment_intent: intent } = Object(error) as StripeFailure // whatever was thrown: its members are looked at one by one
  if (type !== 'StripeCardError' || typeof intent?.id !== 'string') return undefined
  return { intent: intent.id, reason: message ?? 'The card was declined.' }
}

/** If Stripe rejects a request, the operator must fix the cause. If it does not answer, a retry may succeed. */
function asFault(error: unknown): unknown {
  if (error instanceof Fault) return error
  const { type, message, statusCode } = Object(error) as StripeFailure // as above
  if (typeof type !== 'string' || !type.startsWith('Stripe')) return error
  const internal = { type, message, statusCode }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500 && statusCode !== 429)
    return new Fault('upstream_failed', {
      message: 'Stripe rejected this. The log has the reason.',
      internal,
      cause: error,
    })
  const again = 'Stripe does not answer. Nothing was charged twice; try again shortly.'
  return new Fault('unavailable', { message: again, retryAfterSeconds: 5, internal, cause: error })
}
