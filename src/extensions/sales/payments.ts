// Payments: purchases, events of payment providers, refunds, and the operator's decisions about quarantined payments.

import { accountUnknown } from '../../admission/accounts.ts'
import { hasRealVendor } from '../../catalog/simulated.ts'
import type { By } from '../../database/audit.ts'
import { type Database, type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { CREDITS_MAX, type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import type { Page } from '../../kernel/view.ts'
import { newId } from '../../kernel/world.ts'
import { formatMoney } from '../billing/money.ts'
import { checkStep, orderOfAmount } from '../billing/payments/amounts.ts'
import type {
  ChargeTerms,
  Customer,
  Provider,
  ProviderName,
  Purchase,
  RemoteProvider,
} from '../billing/payments/provider.ts'
import { createSignedWebhook } from '../billing/payments/signed-webhook.ts'
import { createSimulatedPayments, type SimulatedOptions } from '../billing/payments/simulated.ts'
import { refundable, refundOf } from '../billing/payments/state.ts'
import { createStripe } from '../billing/payments/stripe.ts'
import { type Applied, type ApplyDeps, createApply, lotOf } from './apply.ts'
import type { Invoices } from './invoices/invoices.ts'
import type { Sales } from './offers.ts'
import {
  insertPayment,
  listPayments,
  type PaymentDetail,
  type PaymentFilter,
  type PaymentKind,
  type PaymentRow,
  paymentById,
  showPayment,
  updatePayment,
} from './payment-rows.ts'
import { createPaymentSettings } from './payment-settings.ts'
import type { CheckoutView, PaymentView } from './views.ts'

export interface PaymentsOptions
  extends Pick<CoreParts, 'secrets' | 'publicUrl' | 'credentials' | 'log'>,
    ApplyDeps,
    Pick<SimulatedOptions, 'upstream' | 'sandboxUrl'> {
  /** Where this machine reaches the gateway. */
  readonly localUrl: () => string
  readonly invoices: Pick<Invoices, 'issue' | 'creditNote' | 'missing'>
  readonly stripeUrl: string | undefined
}

export const TEST_PAYMENTS = '/test-payments'
export const TEST_WEBHOOK = '/webhooks/test-payments'

/** A charge of a saved card without the customer present (off-session). */
interface CardCharge {
  readonly account: string
  readonly kind: 'plan' | 'top_up'
  readonly name: string
  readonly offer?: string
  readonly currency: string
  readonly priceMinor: bigint
  readonly credits: Credits
  readonly detail?: PaymentDetail
  /** The person who asked for it; null: the account's settings did. */
  readonly person: string | null
}

export interface Buyer {
  readonly personId: string | null
  readonly email: string | null
}

const CUSTOMER = sql('payment_customer')`
  select customer_id, method_id from payment_customer where account_id = $1 and provider = $2`
const PUT_CUSTOMER = sql('payment_customer_put')`
  insert into payment_customer (account_id, provider, customer_id) values ($1, $2, $3)
   on conflict (account_id) do update set provider = excluded.provider, customer_id = excluded.customer_id, method_id = null, card = null
   where payment_customer.provider <> excluded.provider`
const PUT_CARD = sql('payment_card_put')`
  update payment_customer set method_id = $3, card = $4, top_up_problem = null, top_up_failures = 0, top_up_after = null where provider = $1 and customer_id = $2`
const ACCOUNT = sql('payment_buyer')`select name, status from account where id = $1`
const LOCK_BUYER = sql('payment_buyer_lock')`
  select status, posted, coalesce(frozen_until > now(), false) as moving, ledger from account where id = $1 for update`
const OPEN_COUNT = sql('payment_open_count')`
  select count(*)::int as count from payment where account_id = $1 and state = 'pending' and created_at > now() - interval '1 hour'`
const GIVE_UP = sql('payment_give_up')`
  update payment set state = 'failed', reason = 'It was not paid within three days.'
   where state = 'pending' and kind in ('pack', 'amount', 'plan') and not detail ? 'charge' and created_at < now() - interval '3 days'`
const FAIL = sql('payment_fail')`
  update payment set state = 'failed', reason = $2 where id = $1 and state = 'pending' returning 1`
const KEEP_TERMS = sql('payment_terms')`
  update payment set amount_minor = $3, detail = jsonb_set(detail, '{charge}', $2::jsonb)
   where id = $1 and state = 'pending' and detail #>> '{charge,methodId}' is null`
const UNKNOWN = sql('payment_unknown')`
  select id from payment where kind = $1 and state = 'pending' and (kind = 'top_up' or detail ? 'charge') and created_at < now() - interval '30 seconds' order by id limit 100`
const PRUNE_EVENTS = sql('payment_event_prune')`
  delete from payment_event where ctid = any(array(select ctid from payment_event where received_at < now() - interval '180 days' limit 1000))`
/** Checkouts that one account may start in an hour. */
const OPEN_MAX = 30
/** After this time Stripe may have deleted the idempotency key, so the charge is not repeated. */
const GIVE_UP_MS = 20 * 3_600_000

export type Payments = ReturnType<typeof createPayments>

export function createPayments(options: PaymentsOptions) {
  const { database, world, audit, catalog, credentials, invoices } = options
  /** A gateway whose vendors cost money gives nothing away for test payments. */
  const canSimulate = () => !hasRealVendor(catalog.current.document)
  const settings = createPaymentSettings({ database, audit, credentials, canSimulate })
  const { apply, grantFor } = createApply(options)
  const providers = createProviders(options, settings)
  const { simulated } = providers

  /** The provider for new purchases. */
  async function provider(on?: Queryable): Promise<Provider | undefined> {
    const { provider: name } = await settings.get(on)
    return name === 'off' || (name === 'simulated' && !canSimulate()) ? undefined : providers[name]
  }

  /** The customer of an account at the provider, made on first use. */
  async function customer(account: string, email: string | null): Promise<Customer> {
    if (isTestAccount(account)) throw new Fault('conflict', { message: 'A test account has no card.' })
    const at = await provider()
    if (!at?.remote) throw new Fault('conflict', { message: 'Cards cannot be saved with this payment provider.' })
    const [known] = await database.query<{ customer_id: string; method_id: string | null }>(CUSTOMER, [
      account,
      at.name,
    ])
    if (known) return { id: known.customer_id, methodId: known.method_id }
    const { name } = await buyerOf(database, account)
    const id = await at.remote.customer({ id: account, name, email })
    await database.query(PUT_CUSTOMER, [account, at.name, id])
    return { id, methodId: null }
  }

  /**
   * Throws if an account cannot buy: a field of its billing details is missing (the error names it), or nothing is
   * sold.
   */
  async function checkBuyer(account: string): Promise<void> {
    if (!(await provider())) throw new Fault('conflict', { message: 'Nothing is sold here: no payments are set up.' })
    const { status } = await buyerOf(database, account)
    if (isTestAccount(account) || status === 'closed')
      throw new Fault('conflict', { message: 'Nothing can be bought for this account.' })
    const missing = await invoices.missing(account)
    if (missing !== null)
      throw new Fault('request_invalid', {
        message: `The billing details are not complete: ${missing} is missing. Fill it in before you buy.`,
        param: missing,
      })
  }

  async function buy(
    account: string,
    { saveCard = false, returnUrl, ...choice }: Choice & { saveCard?: boolean | undefined; returnUrl: string },
    { personId, email }: Buyer,
  ): Promise<CheckoutView> {
    const at = await provider()
    const { sales } = catalog.current.document
    if (!at || !sales) throw new Fault('conflict', { message: 'Nothing is sold here.' })
    await checkBuyer(account)
    const [open] = await database.query<{ count: number }>(OPEN_COUNT, [account])
    if ((open?.count ?? 0) >= OPEN_MAX)
      throw new Fault('rate_limited', {
        message: 'Too many purchases of this account were started and not paid. Try again in an hour.',
        retryAfterSeconds: 3600,
      })
    const order = orderOf(sales, choice)
    checkStep(at, sales.currency, order.price_minor)
    const buying = at.remote && saveCard ? await customer(account, email) : null
    const row = await insertPayment(database, {
      account_id: account,
      id: `pay_${newId(world)}`,
      provider: at.name,
      person_id: personId,
      currency: sales.currency,
      catalog_version: catalog.current.version,
      ...order,
    })
    if (!row) throw new Fault('conflict')
    const back = `${returnUrl}${returnUrl.includes('?') ? '&' : '?'}payment=${row.id}`
    const { url, reference } = await at.checkout(purchaseOf(row), {
      customer: buying,
      email,
      saveCard,
      returnUrl: back,
    })
    if (reference !== undefined) await keepReference(row.id, reference)
    return { payment: row.id, url }
  }

  async function keepReference(id: string, reference: string): Promise<void> {
    await database.query(KEEP_REFERENCE, [id, reference])
  }

  /** Inserts the row of a charge, within the transaction; undefined: another charge is pending. */
  async function order(tx: Queryable, charge: CardCharge): Promise<PaymentRow | undefined> {
    const at = await provider(tx)
    if (!at) return undefined
    return insertPayment(tx, {
      account_id: charge.account,
      id: `pay_${newId(world)}`,
      provider: at.name,
      kind: charge.kind,
      offer_id: charge.offer ?? null,
      currency: charge.currency,
      price_minor: charge.priceMinor,
      credits: charge.credits,
      catalog_version: catalog.current.version,
      person_id: charge.person,
      detail: { name: charge.name, charge: {}, ...charge.detail },
    })
  }

  /** Stores the terms of a charge before its first attempt. Undefined: there is no card. */
  async function termsOf(row: PaymentRow, remote: RemoteProvider): Promise<PaymentRow | undefined> {
    if (isFixed(row.detail.charge)) return row
    const { id, methodId } = await customer(row.account_id, null)
    if (methodId === null) return undefined
    const terms = await remote.terms(purchaseOf(row), { id, methodId })
    await database.query(KEEP_TERMS, [row.id, JSON.stringify(terms), terms.amountMinor])
    // Another process may have stored its terms first; then those are used.
    return paymentById(database, row.id)
  }

  /**
   * Charges a saved card for a row that `order` made. Can be repeated after a crash. The returned row is `failed` if
   * the card was declined. `refuses` gets the total with tax, and returns a reason if it must not be charged.
   */
  async function charge(
    row: PaymentRow,
    refuses?: (row: PaymentRow) => Promise<string | undefined>,
  ): Promise<PaymentRow> {
    const { remote } = providers[row.provider]
    const fixed = remote && (await termsOf(row, remote))
    if (!fixed || !isFixed(fixed.detail.charge)) return failed(row, 'There is no saved card that could be charged.')
    if (fixed.state !== 'pending') return fixed
    const refusal = await refuses?.(fixed)
    if (refusal !== undefined) return failed(row, refusal)
    const facts = await remote.charge(purchaseOf(fixed), fixed.detail.charge)
    if ('refused' in facts) return failed(row, facts.refused)
    return (await apply(facts)).row ?? fixed
  }

  /** If the provider has charged it nevertheless, reconciliation finds that. */
  async function failed(row: PaymentRow, reason: string): Promise<PaymentRow> {
    await database.query(FAIL, [row.id, reason])
    return existing(row.id)
  }

  /**
   * Completes charges whose result is unknown, for example after a crash. A repeated request with the same terms
   * returns the first result. `end` charges one row and does what follows.
   */
  async function finish(kind: CardCharge['kind'], end: (row: PaymentRow) => Promise<unknown>): Promise<void> {
    for (const { id } of await database.query<{ id: string }>(UNKNOWN, [kind])) {
      const row = await existing(id)
      const isOld = row.created_at.getTime() < world.nowMs() - GIVE_UP_MS
      try {
        const known = isOld ? await givenUp(row) : row
        if (known) await end(known)
      } catch (error) {
        options.log.warn({ error, payment: id }, 'the result of a charge is still unknown')
      }
    }
  }

  /**
   * For a charge that is too old to be repeated: applies what the provider reports. Undefined: it is still pending
   * there. Throws if the provider does not answer.
   */
  async function givenUp(row: PaymentRow): Promise<PaymentRow | undefined> {
    const { id, provider_id: providerId, detail, created_at: createdAt } = row
    const { remote } = providers[row.provider]
    // Without terms it was never sent to the provider.
    const facts =
      remote && isFixed(detail.charge)
        ? await remote.charged({ payment: id, providerId, customerId: detail.charge.customerId, createdAt })
        : undefined
    if (!facts) return failed(row, 'The payment provider does not know this payment.')
    const { row: now } = await apply(facts)
    return now?.state === 'pending' ? undefined : now
  }

  /** Reads its state from the provider and applies it. */
  async function refresh(row: PaymentRow): Promise<Applied> {
    const remote = providers[row.provider].remote
    const facts = await remote?.read({ providerId: row.provider_id, reference: row.detail.reference ?? null })
    return facts ? apply(facts) : { row, changes: [] }
  }

  async function existing(id: string): Promise<PaymentRow> {
    const row = await paymentById(database, id)
    if (!row) throw new Fault('not_found', { message: 'There is no payment with this id.' })
    return row
  }

  const decided = createDecisions({ options, grantFor })

  return {
    settings,
    provider,
    customer,
    apply,
    buy,
    checkBuyer,
    charge,
    finish,
    order,
    /** Whether there is a saved card. */
    async hasCard(on: Queryable, account: string): Promise<boolean> {
      const at = await provider(on)
      const [row] = at?.remote ? await on.query<{ method_id: string | null }>(CUSTOMER, [account, at.name]) : []
      return row?.method_id != null
    },
    remote: (name: ProviderName): RemoteProvider | undefined => providers[name].remote,
    /** The page of a test payment, as the sandbox has it. */
    testPage: simulated.page,
    /** Verifies the signature of a webhook and applies it. */
    async receive(
      name: ProviderName,
      body: Buffer,
      headers: Readonly<Record<string, string | undefined>>,
    ): Promise<void> {
      if (name === 'simulated' && (await provider()) !== simulated) throw new Fault('not_found')
      const { id, type, facts, card } = await providers[name].receive(body, headers)
      if (facts) await apply(facts, { id, type })
      if (card)
        await database.query(PUT_CARD, [name, card.customerId, card.card?.methodId ?? null, JSON.stringify(card.card)])
    },
    /** Reads the state of a payment from the provider, in case its events were lost. */
    async check(account: string, id: string): Promise<PaymentView> {
      const row = await existing(id)
      if (row.account_id !== account) throw new Fault('not_found', { message: 'There is no payment with this id.' })
      const now = row.state === 'pending' ? (await refresh(row)).row : row
      return showPayment(database, now ?? row)
    },
    list: (filter: PaymentFilter): Promise<Page<PaymentView>> => listPayments(database, filter),
    get: async (id: string): Promise<PaymentView> => showPayment(database, await existing(id)),
    async refund(id: string, amount: string | undefined, by: By): Promise<PaymentView> {
      const row = await existing(id)
      const minor = refundable(row, amount)
      const { remote } = providers[row.provider]
      // The amount refunded so far is part of the idempotency key, so that a refund that is requested twice is made
      // once.
      const key = `${row.id}-${row.refunded_minor}-${minor}`
      if (remote && row.provider_id !== null)
        await remote.refund(row.provider_id, { currency: row.currency, amountMinor: minor, key })
      const { row: now } = remote ? await refresh(row) : await apply(refundOf(row, minor, world.nowMs()))
      const detail = { amount: formatMoney(minor, row.currency), currency: row.currency }
      await database.transaction((tx) => audit.write(tx, by, { action: 'payment.refund', object: id, detail }))
      return showPayment(database, now ?? row)
    },
    ...decided,
    async prune(): Promise<void> {
      await database.query(GIVE_UP)
      await database.query(PRUNE_EVENTS)
    },
  }
}

const KEEP_REFERENCE = sql('payment_reference')`
  update payment set detail = detail || jsonb_build_object('reference', $2::text) where id = $1`

async function buyerOf(database: Database, account: string): Promise<{ name: string; status: string }> {
  const [row] = await database.query<{ name: string; status: string }>(ACCOUNT, [account])
  if (!row) throw accountUnknown()
  return row
}

interface Order {
  readonly kind: PaymentKind
  readonly offer_id: string | null
  readonly price_minor: bigint
  readonly credits: Credits
  readonly detail: PaymentDetail & { readonly name: string }
}

const isFixed = (terms: Partial<ChargeTerms> | undefined): terms is ChargeTerms => terms?.methodId !== undefined

function purchaseOf({ id, account_id: account, currency, detail, price_minor, offer_id }: PaymentRow): Purchase {
  return {
    payment: id,
    account,
    name: detail.name ?? id,
    currency,
    priceMinor: price_minor ?? 0n,
    ...(offer_id === null ? {} : { offer: offer_id }),
  }
}

interface Choice {
  readonly pack?: string | undefined
  readonly amount?: string | undefined
  /** A month of it. plans.ts decides whether the account can have it now. */
  readonly plan?: string | undefined
}

function orderOf(sales: Sales, { pack, amount, plan }: Choice): Order {
  if ([pack, amount, plan].filter((one) => one !== undefined).length !== 1)
    throw invalid('Give either a pack or an amount.', 'pack')
  if (amount === undefined) {
    const [kind, offers, id] =
      plan === undefined ? (['pack', sales.packs, pack] as const) : (['plan', sales.plans, plan] as const)
    const offer = offers.find((one) => one.id === id)
    if (!offer) throw invalid(`${kind}: there is no ${kind} "${id}".`, kind)
    const detail = { name: offer.name, ...lotOf(offer) }
    return { kind, offer_id: offer.id, price_minor: offer.priceMinor, credits: offer.credits, detail }
  }
  const { amounts, currency } = sales
  if (!amounts) throw invalid('amount: only packs are sold here.', 'amount')
  const { minor, credits } = orderOfAmount(amounts, currency, amount)
  const detail = { name: `${formatCredits(credits)} credits` }
  return { kind: 'amount', offer_id: null, price_minor: minor, credits, detail }
}

interface BuyerRow {
  readonly status: string
  readonly posted: bigint
  readonly moving: boolean
  readonly ledger: string | null
}

function createProviders(options: PaymentsOptions, settings: ReturnType<typeof createPaymentSettings>) {
  const { world, credentials } = options
  const simulated = createSimulatedPayments({
    ...options,
    secret: () => options.secrets.key('test-payments').toString('base64'),
    pageUrl: (id) => `${options.publicUrl()}${TEST_PAYMENTS}/${id}`,
    webhookUrl: () => `${options.localUrl()}${TEST_WEBHOOK}`,
  })
  return {
    simulated,
    stripe: createStripe({
      world,
      baseUrl: options.stripeUrl,
      tax: async () => (await settings.get()).tax,
      apiKey: () => credentials.get('stripe'),
      webhookSecret: () => credentials.get('stripe-webhook'),
    }),
    webhook: createSignedWebhook({
      world,
      secret: () => credentials.get('payment-webhook'),
      checkoutUrl: async () => (await settings.get()).checkoutUrl,
    }),
  }
}

/** The operator's decision about a quarantined payment. */
function createDecisions({
  options: { database, audit, plans },
  grantFor,
}: {
  options: PaymentsOptions
  grantFor: ReturnType<typeof createApply>['grantFor']
}) {
  const decide = (id: string, change: (tx: Queryable, row: PaymentRow) => Promise<Array<() => Promise<void>>>) =>
    database.transaction(async (tx) => {
      const row = await paymentById(tx, id, true)
      if (!row) throw new Fault('not_found', { message: 'There is no payment with this id.' })
      if (row.state !== 'quarantined') throw new Fault('conflict', { message: 'This payment is not quarantined.' })
      const notes = await change(tx, row)
      await updatePayment(tx, row)
      for (const note of notes) await note()
      return showPayment(tx, row)
    })
  return {
    /** Grants credits for a quarantined payment after all. */
    accept: (id: string, { account, credits }: { account: string; credits: Credits }, by: By) =>
      decide(id, async (tx, row) => {
        const [found] = await tx.query<BuyerRow>(LOCK_BUYER, [account])
        if (!found) throw accountUnknown()
        if (found.ledger !== null)
          throw new Fault('conflict', {
            message: `The payment is in control, and this account in the ledger ${found.ledger}. Grant it the credits, and dismiss the payment.`,
          })
        if (found.status === 'closed' || found.moving || isTestAccount(account))
          throw new Fault('conflict', { message: 'Nothing can be bought for this account.' })
        if (row.refunded_minor > 0n || row.dispute === 'open' || row.dispute === 'lost')
          throw new Fault('conflict', { message: 'This payment was refunded or is disputed. Dismiss it.' })
        if (found.posted + credits > CREDITS_MAX)
          throw new Fault('conflict', { message: 'The balance would exceed what an account can have.' })
        Object.assign(row, { account_id: account, credits })
        const month = row.kind === 'plan' ? await plans.paid(tx, row, by) : undefined
        if (typeof month === 'string') throw new Fault('conflict', { message: month })
        if (month) row.detail = { ...row.detail, period: month }
        const notes: Array<() => Promise<void>> = []
        await grantFor(tx, row, by, { changes: [], notes })
        const detail = { payment: id, credits: formatCredits(credits) }
        const change = { before: { state: 'quarantined' }, after: { state: row.state } }
        await audit.write(tx, by, {
          action: 'payment.accept',
          object: account,
          detail,
          ...change,
          rows: [['payment', id]],
        })
        return notes
      }),
    /** Dismisses a quarantined payment without granting credits. */
    dismiss: (id: string, by: By) =>
      decide(id, async (tx, row) => {
        Object.assign(row, { state: 'failed', reason: `Dismissed by ${by.actor}. ${row.reason ?? ''}`.trim() })
        const change = { before: { state: 'quarantined' }, after: { state: row.state } }
        await audit.write(tx, by, { action: 'payment.dismiss', object: id, ...change, rows: [['payment', id]] })
        return []
      }),
  }
}
