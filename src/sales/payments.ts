// Payments: buying, what providers say, refunds, and what an operator does about those that are quarantined.
import { accountUnknown } from '../admission/accounts.ts'
import { creditsFor, type Sales } from '../catalog/sales.ts'
import type { Credentials } from '../credentials/credentials.ts'
import type { By } from '../database/audit.ts'
import { type Database, type Queryable, statement } from '../database/database.ts'
import type { Invoices } from '../invoices/invoices.ts'
import { CREDITS_MAX, type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { formatMoney, parseMoney } from '../kernel/money.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import type { Page } from '../kernel/view.ts'
import { newId } from '../kernel/world.ts'
import { type Applied, type ApplyDeps, createApply, lotOf } from './apply.ts'
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
import type { Customer, Provider, ProviderName, RemoteProvider } from './provider.ts'
import { createSignedWebhook } from './providers/signed-webhook.ts'
import { createStripe } from './providers/stripe.ts'
import { createPaymentSettings, type PaymentSettings } from './settings.ts'
import type { CheckoutView, PaymentView } from './views.ts'

export interface PaymentsOptions extends ApplyDeps {
  readonly credentials: Credentials
  readonly invoices: Pick<Invoices, 'issue' | 'creditNote' | 'missing'>
  readonly stripeUrl: string | undefined
}

/** What is charged to a saved card while nobody is there. */
interface CardCharge {
  readonly account: string
  readonly kind: 'plan' | 'top_up'
  readonly name: string
  readonly offer?: string
  readonly currency: string
  readonly priceMinor: bigint
  readonly credits: Credits
  readonly detail?: PaymentDetail
  /** Who asked for it; null: the account's own settings. */
  readonly person: string | null
}

interface Buyer {
  readonly personId: string | null
  readonly email: string | null
}

export interface Payments {
  readonly settings: PaymentSettings
  /** The provider by which is bought now. */
  provider(): Promise<Provider | undefined>
  remote(name: ProviderName): RemoteProvider | undefined
  /** Applies what a stranger's bytes say, when they are proved to be a provider's. */
  receive(provider: ProviderName, body: Buffer, headers: Readonly<Record<string, string | undefined>>): Promise<void>
  apply: ReturnType<typeof createApply>['apply']
  buy(
    account: string,
    order: {
      pack?: string | undefined
      amount?: string | undefined
      saveCard?: boolean | undefined
      returnUrl: string
    },
    buyer: Buyer,
  ): Promise<CheckoutView>
  /** Asks the provider for the state of a payment, whether or not its events came. */
  check(account: string, payment: string): Promise<PaymentView>
  /** The customer of an account at the provider, made on first use. */
  customer(account: string, email: string | null): Promise<Customer>
  /** A payment by a saved card. `failed`: the card was declined. Whoever repeats it after a crash passes the row that is there. */
  charge(order: CardCharge | PaymentRow): Promise<PaymentRow>
  /** Writes the row of a charge, as a part of a transaction; undefined where one is under way. */
  order(tx: Queryable, order: CardCharge): Promise<PaymentRow | undefined>
  list(filter: PaymentFilter): Promise<Page<PaymentView>>
  get(id: string): Promise<PaymentView>
  refund(id: string, amount: string | undefined, by: By): Promise<PaymentView>
  /** Grants credits for a quarantined payment after all. */
  accept(id: string, to: { account: string; credits: Credits }, by: By): Promise<PaymentView>
  /** Leaves a quarantined payment without credits. */
  dismiss(id: string, by: By): Promise<PaymentView>
  prune(): Promise<void>
}

const CUSTOMER = statement(
  'payment_customer',
  'select customer_id, method_id from payment_customer where account_id = $1 and provider = $2',
)
const PUT_CUSTOMER = statement(
  'payment_customer_put',
  `insert into payment_customer (account_id, provider, customer_id) values ($1, $2, $3)
   on conflict (account_id) do update set provider = excluded.provider, customer_id = excluded.customer_id, method_id = null, card = null
   where payment_customer.provider <> excluded.provider`,
)
const PUT_CARD = statement(
  'payment_card_put',
  `update payment_customer set method_id = $3, card = $4, top_up_problem = null, top_up_failures = 0, top_up_after = null where provider = $1 and customer_id = $2`,
)
const ACCOUNT = statement('payment_buyer', 'select name, status from account where id = $1')
const LOCK_BUYER = statement(
  'payment_buyer_lock',
  'select status, posted, coalesce(frozen_until > now(), false) as moving from account where id = $1 for update',
)
const OPEN_COUNT = statement(
  'payment_open_count',
  `select count(*)::int as count from payment where account_id = $1 and state = 'pending' and created_at > now() - interval '1 hour'`,
)
const GIVE_UP = statement(
  'payment_give_up',
  `update payment set state = 'failed', reason = 'It was not paid within three days.' where state = 'pending' and kind in ('pack', 'amount') and created_at < now() - interval '3 days'`,
)
const PRUNE_EVENTS = statement(
  'payment_event_prune',
  `delete from payment_event where ctid = any(array(select ctid from payment_event where received_at < now() - interval '180 days' limit 1000))`,
)
/** Checkouts that one account may begin in an hour. */
const OPEN_MAX = 30

export function createPayments(options: PaymentsOptions): Payments {
  const { database, world, audit, catalog, credentials, invoices } = options
  const settings = createPaymentSettings({ database, audit, credentials })
  const { apply, grantFor } = createApply(options)
  const providers: Readonly<Record<ProviderName, Provider>> = {
    stripe: createStripe({
      ...{ world, baseUrl: options.stripeUrl, tax: async () => (await settings.get()).tax },
      apiKey: () => credentials.get('stripe'),
      webhookSecret: () => credentials.get('stripe-webhook'),
    }),
    webhook: createSignedWebhook({
      ...{ world, secret: () => credentials.get('payment-webhook') },
      checkoutUrl: async () => (await settings.get()).checkoutUrl,
    }),
  }

  async function provider(): Promise<Provider | undefined> {
    const { provider: name } = await settings.get()
    return name === 'off' ? undefined : providers[name]
  }

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

  async function buy(
    account: string,
    { pack, amount, saveCard = false, returnUrl }: Parameters<Payments['buy']>[1],
    { personId, email }: Buyer,
  ): Promise<CheckoutView> {
    const at = await provider()
    const { sales } = catalog.current.document
    if (!at || !sales) throw new Fault('conflict', { message: 'Nothing is sold here.' })
    const { status } = await buyerOf(database, account)
    if (isTestAccount(account) || status === 'closed')
      throw new Fault('conflict', { message: 'Nothing can be bought for this account.' })
    const missing = await invoices.missing(account)
    if (missing !== null)
      throw new Fault('request_invalid', {
        message: `The billing details are not complete: ${missing} is missing. Fill it in before you buy.`,
        param: missing,
      })
    const [open] = await database.query<{ count: number }>(OPEN_COUNT, [account])
    if ((open?.count ?? 0) >= OPEN_MAX)
      throw new Fault('rate_limited', {
        message: 'Too many purchases of this account were begun and not paid. Try again in an hour.',
        retryAfterSeconds: 3600,
      })
    const order = orderOf(sales, { pack, amount })
    const buying = at.remote && saveCard ? await customer(account, email) : null
    const row = await insertPayment(database, {
      ...{ account_id: account, id: `pay_${newId(world)}`, provider: at.name, person_id: personId },
      ...{ currency: sales.currency, catalog_version: catalog.current.version, ...order },
    })
    if (!row) throw new Fault('conflict')
    const purchase = {
      ...{ payment: row.id, account, name: order.detail.name, currency: row.currency, priceMinor: order.price_minor },
      ...(order.offer_id === null ? {} : { offer: order.offer_id }),
    }
    const back = `${returnUrl}${returnUrl.includes('?') ? '&' : '?'}payment=${row.id}`
    const { url, reference } = await at.checkout(purchase, { customer: buying, email, saveCard, returnUrl: back })
    if (reference !== undefined) await keepReference(row.id, reference)
    return { payment: row.id, url }
  }

  async function keepReference(id: string, reference: string): Promise<void> {
    await database.query(KEEP_REFERENCE, [id, reference])
  }

  async function order(tx: Queryable, charge: CardCharge): Promise<PaymentRow | undefined> {
    const at = await provider()
    if (!at) return undefined
    return insertPayment(tx, {
      ...{ account_id: charge.account, id: `pay_${newId(world)}`, provider: at.name, kind: charge.kind },
      ...{ offer_id: charge.offer ?? null, currency: charge.currency, price_minor: charge.priceMinor },
      ...{ credits: charge.credits, catalog_version: catalog.current.version, person_id: charge.person },
      detail: { name: charge.name, ...charge.detail },
    })
  }

  async function charge(asked: CardCharge | PaymentRow): Promise<PaymentRow> {
    const row = 'account_id' in asked ? asked : await order(database, asked)
    if (!row) throw new Fault('conflict', { message: 'A payment of this account is under way already.' })
    const remote = providers[row.provider].remote
    const on = await customer(row.account_id, null)
    if (!remote || on.methodId === null) return failed(row, 'There is no saved card that could be charged.')
    const purchase = {
      ...{ payment: row.id, account: row.account_id, name: row.detail.name ?? row.id, currency: row.currency },
      ...{ priceMinor: row.price_minor ?? 0n, ...(row.offer_id === null ? {} : { offer: row.offer_id }) },
    }
    const applied = await apply(await remote.charge(purchase, on))
    return applied.row ?? row
  }

  async function failed(row: PaymentRow, reason: string): Promise<PaymentRow> {
    const now = { ...row, state: 'failed' as const, reason }
    await database.transaction((tx) => updatePayment(tx, now))
    return now
  }

  /** What the provider says of it now. */
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
    ...{ settings, provider, customer, apply, buy, charge, order },
    remote: (name) => providers[name].remote,
    async receive(name, body, headers) {
      const { id, type, facts, card } = await providers[name].receive(body, headers)
      if (facts) await apply(facts, { id, type })
      if (card)
        await database.query(PUT_CARD, [name, card.customerId, card.card?.methodId ?? null, JSON.stringify(card.card)])
    },
    async check(account, id) {
      const row = await existing(id)
      if (row.account_id !== account) throw new Fault('not_found', { message: 'There is no payment with this id.' })
      const now = row.state === 'pending' ? (await refresh(row)).row : row
      return showPayment(database, now ?? row)
    },
    list: (filter) => listPayments(database, filter),
    get: async (id) => showPayment(database, await existing(id)),
    async refund(id, amount, by) {
      const row = await existing(id)
      const left = row.amount_minor - row.refunded_minor
      const minor = amount === undefined ? left : parseMoney(amount, row.currency)
      if (row.paid_at === null || left === 0n || row.dispute === 'open' || row.dispute === 'lost')
        throw new Fault('conflict', { message: 'There is nothing of this payment that could be refunded.' })
      if (minor === undefined || minor <= 0n || minor > left)
        throw invalid(`amount: must be above 0 and at most ${formatMoney(left, row.currency)}.`, 'amount')
      const { remote } = providers[row.provider]
      // The same refund asked for twice is one: it is known by what was refunded before it.
      const key = `${row.id}-${row.refunded_minor}-${minor}`
      if (remote && row.provider_id !== null)
        await remote.refund(row.provider_id, { currency: row.currency, amountMinor: minor, key })
      const { row: now } = remote ? await refresh(row) : await apply(refundOf(row, minor, world.nowMs()))
      const detail = { amount: formatMoney(minor, row.currency), currency: row.currency }
      await database.transaction((tx) => audit.write(tx, by, { action: 'payment.refund', object: id, detail }))
      return showPayment(database, now ?? row)
    },
    ...decided,
    async prune() {
      await database.query(GIVE_UP)
      await database.query(PRUNE_EVENTS)
    },
  }
}

const KEEP_REFERENCE = statement(
  'payment_reference',
  `update payment set detail = detail || jsonb_build_object('reference', $2::text) where id = $1`,
)

async function buyerOf(database: Database, account: string): Promise<{ name: string; status: string }> {
  const [row] = await database.query<{ name: string; status: string }>(ACCOUNT, [account])
  if (!row) throw accountUnknown()
  return row
}

/** Money that went back at a provider that cannot be asked: the operator says so. */
function refundOf(row: PaymentRow, minor: bigint, nowMs: number): Parameters<Payments['apply']>[0] {
  return {
    ...{ provider: row.provider, providerId: row.provider_id ?? '', currency: row.currency, status: 'paid' },
    ...{ amountMinor: row.amount_minor, taxMinor: 0n, refundedMinor: row.refunded_minor + minor },
    ...{ disputedMinor: row.disputed_minor, dispute: row.dispute, asOfMs: nowMs },
  }
}

interface Order {
  readonly kind: PaymentKind
  readonly offer_id: string | null
  readonly price_minor: bigint
  readonly credits: Credits
  readonly detail: PaymentDetail & { readonly name: string }
}

function orderOf(
  sales: Sales,
  { pack: id, amount }: { pack?: string | undefined; amount?: string | undefined },
): Order {
  if ((id === undefined) === (amount === undefined)) throw invalid('Give either a pack or an amount.', 'pack')
  if (id !== undefined) {
    const pack = sales.packs.find((one) => one.id === id)
    if (!pack) throw invalid(`pack: there is no pack "${id}".`, 'pack')
    const detail = { name: pack.name, ...lotOf(pack) }
    return { kind: 'pack', offer_id: pack.id, price_minor: pack.priceMinor, credits: pack.credits, detail }
  }
  const { amounts, currency } = sales
  const minor = parseMoney(amount ?? '', currency)
  if (!amounts) throw invalid('amount: only packs are sold here.', 'amount')
  if (minor === undefined || minor < amounts.minimumMinor || minor > amounts.maximumMinor) {
    const [least, most] = [amounts.minimumMinor, amounts.maximumMinor].map((one) => formatMoney(one, currency))
    throw invalid(`amount: must be between ${least} and ${most} ${currency}.`, 'amount')
  }
  const credits = creditsFor(sales, minor)
  const detail = { name: `${formatCredits(credits)} credits` }
  return { kind: 'amount', offer_id: null, price_minor: minor, credits, detail }
}

/** What an operator does about a quarantined payment. */
function createDecisions({
  options: { database, audit },
  grantFor,
}: {
  options: PaymentsOptions
  grantFor: ReturnType<typeof createApply>['grantFor']
}): Pick<Payments, 'accept' | 'dismiss'> {
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
    accept: (id, { account, credits }, by) =>
      decide(id, async (tx, row) => {
        const [found] = await tx.query<{ status: string; posted: bigint; moving: boolean }>(LOCK_BUYER, [account])
        if (!found) throw accountUnknown()
        if (found.status === 'closed' || found.moving || isTestAccount(account))
          throw new Fault('conflict', { message: 'Nothing can be bought for this account.' })
        if (row.refunded_minor > 0n || row.dispute === 'open' || row.dispute === 'lost')
          throw new Fault('conflict', { message: 'This payment was refunded or is disputed. Dismiss it.' })
        if (found.posted + credits > CREDITS_MAX)
          throw new Fault('conflict', { message: 'The balance would exceed what an account can have.' })
        Object.assign(row, { account_id: account, credits })
        const notes: Array<() => Promise<void>> = []
        await grantFor(tx, row, by, { changes: [], notes })
        const detail = { payment: id, credits: formatCredits(credits) }
        return [...notes, () => audit.write(tx, by, { action: 'payment.accept', object: account, detail })]
      }),
    dismiss: (id, by) =>
      decide(id, async (tx, row) => {
        Object.assign(row, { state: 'failed', reason: `Dismissed by ${by.actor}. ${row.reason ?? ''}`.trim() })
        return [() => audit.write(tx, by, { action: 'payment.dismiss', object: id })]
      }),
  }
}
