// Applies a provider's report of a payment: its row, credits, invoice and audit entry, in one transaction. The same
// report may come any number of times, in any order, to any process: the row is locked, older reports change nothing,
// and credits are granted once, when the payment becomes paid.

import type { By } from '../../database/audit.ts'
import { type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { DAY_MS, dayOfMs, formatDay } from '../../kernel/calendar.ts'
import { CREDITS_MAX, type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import { newId } from '../../kernel/world.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { endClaims, type Lot } from '../../ledger/lots.ts'
import { groupedCredits } from '../../meter/price-words.ts'
import { dateName } from '../../reports/balance-sentence.ts'
import { formatMoney } from '../billing/money.ts'
import { creditsFor } from '../billing/payments/amounts.ts'
import type { PaymentFacts } from '../billing/payments/provider.ts'
import { DISPUTED, isDisputed, isOlder, laterOf, owedBack } from '../billing/payments/state.ts'
import type { Invoices } from './invoices/invoices.ts'
import type { Sales } from './offers.ts'
import { findPayment, insertPayment, type PaymentRow, paymentById, updatePayment } from './payment-rows.ts'
import type { Plans } from './plans.ts'

export interface ApplyDeps extends Pick<CoreParts, 'database' | 'world' | 'audit' | 'catalog'> {
  readonly ledger: Pick<Ledger, 'grant' | 'posted' | 'returned' | 'recalled'>
  readonly invoices: Pick<Invoices, 'issue' | 'creditNote'>
  readonly plans: Pick<Plans, 'paid' | 'takenBack'>
}

export interface Applied {
  /** Undefined: the event was applied before, or there is no payment to record yet. */
  readonly row: PaymentRow | undefined
  /** What changed, in words; empty: nothing. */
  readonly changes: readonly string[]
}

const KEEP_EVENT = sql('payment_event_keep')`
  insert into payment_event (provider, event_id, type, payment_id) values ($1, $2, $3, $4) on conflict do nothing returning 1`
const KNOWN_EVENT = sql('payment_event_known')`select 1 from payment_event where provider = $1 and event_id = $2`
const ACCOUNT = sql('payment_account')`
  select status, posted, coalesce(frozen_until > now(), false) or ledger is not null as moving from account where id = $1 for update`
const SAVE_CARD = sql('payment_save_card')`
  update payment_customer set method_id = $2, card = $3, top_up_problem = null, top_up_failures = 0, top_up_after = null where account_id = $1 and method_id is distinct from $2`

export function createApply(deps: ApplyDeps) {
  const { database, world, ledger, audit } = deps

  async function apply(facts: PaymentFacts, event?: { id: string; type: string }): Promise<Applied> {
    if (event && (await database.query(KNOWN_EVENT, [facts.provider, event.id])).length > 0) return AGAIN
    const before = await findPayment(database, facts, false)
    await settle(before?.account_id || facts.account, facts)
    const applied = await database.transaction(async (tx) => {
      const row = await rowFor(tx, facts)
      if (event && (await tx.query(KEEP_EVENT, [facts.provider, event.id, event.type, row?.id ?? null])).length === 0)
        return AGAIN
      if (!row) return { row, changes: [] }
      return change(tx, row, facts)
    })
    // Leases from before admit no more calls: what they have is claimed.
    if (applied.row && applied.row.lost > (before?.lost ?? 0n)) await ledger.recalled(applied.row.account_id)
    return applied
  }

  /**
   * Posts earlier calls, so that they stand before these credits in the statement; before credits are taken, also
   * recalls leases. Neither is possible with the account locked.
   */
  async function settle(account: string | undefined, { refundedMinor, disputedMinor }: PaymentFacts): Promise<void> {
    if (!account) return
    await (refundedMinor + disputedMinor > 0n ? ledger.returned(account) : ledger.posted(account))
  }

  /** A payment that was not started here gets a row when it is paid. */
  async function rowFor(tx: Queryable, facts: PaymentFacts): Promise<PaymentRow | undefined> {
    for (;;) {
      const known = await findPayment(tx, facts, true)
      if (known || facts.status !== 'paid') return known
      const offer = offerOf(deps.catalog.current.document.sales, facts)
      const made = await insertPayment(tx, {
        account_id: await knownAccount(tx, facts.account),
        id: `pay_${newId(world)}`,
        provider: facts.provider,
        provider_id: facts.providerId,
        currency: facts.currency,
        ...offer,
        catalog_version: offer.price_minor === null ? null : deps.catalog.current.version,
      })
      if (made) return made
      // Another process has inserted it: read it.
    }
  }

  async function change(tx: Queryable, was: PaymentRow, facts: PaymentFacts): Promise<Applied> {
    const asOf = new Date(facts.asOfMs)
    const isPaid = was.paid_at !== null
    // An older report is ignored, unless it is the first to say that the payment is paid.
    if (isOlder(was, facts) && (isPaid || facts.status !== 'paid')) return { row: was, changes: [] }
    const row: PaymentRow = { ...was, provider_id: facts.providerId, as_of: laterOf(was.as_of, asOf) }
    if (facts.receiptUrl !== undefined) row.detail = { ...row.detail, receiptUrl: facts.receiptUrl }
    const changes: string[] = []
    const notes: Array<() => Promise<void>> = []
    if (!isPaid && facts.status === 'paid') await becomePaid(tx, row, { facts, changes, notes })
    else if (!isPaid && facts.status === 'failed' && row.state !== 'failed') {
      Object.assign(row, { state: 'failed', reason: facts.reason ?? 'It was not paid.' })
      changes.push('it failed')
    }
    if (row.paid_at !== null) await takeBack(tx, row, { facts, changes, notes })
    // Only when it becomes paid: reading an old payment again must not restore an old card.
    if (facts.card && !isPaid && row.paid_at !== null)
      await tx.query(SAVE_CARD, [row.account_id, facts.card.methodId, JSON.stringify(facts.card)])
    await updatePayment(tx, row)
    // Last, because the counter of invoice numbers is a row that all transactions lock.
    for (const note of notes) await note()
    if (isChangedOnly(was, row))
      await audit.write(tx, providerOf(row), {
        action: 'payment.change',
        object: row.id,
        before: stateOf(was),
        after: stateOf(row),
        rows: [['payment', row.id]],
      })
    return { row, changes }
  }

  async function becomePaid(tx: Queryable, row: PaymentRow, step: Step): Promise<void> {
    const { facts, changes } = step
    row.paid_at = new Date(Math.min(facts.asOfMs, world.nowMs()))
    row.amount_minor = facts.amountMinor
    row.tax_minor = facts.taxIncludedMinor ?? 0n
    if (facts.taxIncludedMinor !== undefined) row.detail = { ...row.detail, taxed: true }
    const by = providerOf(row)
    const month =
      (await problemOf(tx, row, facts)) ?? (row.kind === 'plan' ? await deps.plans.paid(tx, row, by) : undefined)
    if (typeof month === 'string') {
      Object.assign(row, { state: 'quarantined', reason: month })
      changes.push(`it was quarantined: ${month}`)
      return
    }
    if (month) row.detail = { ...row.detail, period: month }
    await grantFor(tx, row, by, step)
  }

  /** Grants the credits of a payment. Its row is locked, and its credits were not granted yet. */
  async function grantFor(tx: Queryable, row: PaymentRow, by: By, { changes, notes }: Omit<Step, 'facts'>) {
    const { id, currency, amount_minor: amountMinor, account_id: account, detail } = row
    const test = row.provider === 'simulated' ? 'Test payment: ' : ''
    const note = `${test}${detail.name ?? `${formatMoney(amountMinor, currency)} ${currency}`} (${id})`
    const granted = await ledger.grant(
      { account, amount: row.credits, note, actor: by.actor, kind: 'purchase', ...lotFrom(row) },
      tx,
    )
    if (!granted) throw new Error(`Payment ${row.id} is for an account that is gone.`)
    Object.assign(row, { state: 'paid', reason: null, transfer_id: granted.id })
    changes.push(`${formatCredits(row.credits)} credits were granted`)
    const paidAt = row.paid_at ?? new Date(world.nowMs())
    const about = invoiced(row)
    notes.push(async () => {
      const tax = detail.taxed ? { taxMinor: row.tax_minor } : {}
      const payment = { id, currency, amountMinor, paidAt, isTest: row.provider === 'simulated', ...about, ...tax }
      const invoice = await deps.invoices.issue(tx, { account, payment })
      const paid = { payment: id, providerId: row.provider_id, currency, paid: String(amountMinor), note }
      const bought = { amount: formatCredits(row.credits), transfer: granted.id, invoice: invoice?.number ?? null }
      await audit.write(tx, by, {
        action: 'payment.paid',
        object: account,
        detail: { ...paid, ...bought },
        rows: [['payment', id]],
      })
    })
  }

  /**
   * Takes credits for money that was refunded or is disputed, and returns them if the money comes back (a dispute that
   * was won).
   */
  async function takeBack(tx: Queryable, row: PaymentRow, { facts, changes, notes }: Step): Promise<void> {
    const refunded = facts.refundedMinor < row.amount_minor ? facts.refundedMinor : row.amount_minor
    const refundedNow = refunded - row.refunded_minor
    const wasBack = isBack(row)
    Object.assign(row, { refunded_minor: refunded, disputed_minor: facts.disputedMinor, dispute: facts.dispute })
    const { account_id: account, id: payment } = row
    const { period } = row.detail
    // Only at the change to refunded or disputed: a repeated report must not end a plan that the customer chose later.
    if (period && !wasBack && isBack(row)) {
      await lockAccount(tx, account)
      await deps.plans.takenBack(tx, account, { ...period, isDisputed: isDisputed(row) })
    }
    if (row.transfer_id !== null) {
      const delta = owedBack(row) - row.taken - row.lost
      if (delta !== 0n) await move(tx, row, delta, changes)
      // Otherwise automatic top-up would charge the card for the credits that were just taken.
      if (delta > 0n) await tx.query(STOP_TOP_UP, [row.account_id])
    }
    if (row.transfer_id !== null) {
      row.state = isDisputed(row) ? 'disputed' : refunded === row.amount_minor ? 'refunded' : 'paid'
      row.reason = isDisputed(row) ? DISPUTED[facts.dispute === 'open' ? 'open' : 'lost'] : null
    } else if (refunded === row.amount_minor) row.state = 'refunded'
    if (refundedNow === 0n) return
    changes.push(`${formatMoney(refundedNow, row.currency)} ${row.currency} were refunded`)
    if (refundedNow > 0n && row.transfer_id !== null)
      // After the invoice, which may be issued in this transaction too.
      notes.push(async () => void (await deps.invoices.creditNote(tx, { account, payment, refundedMinor: refunded })))
  }

  async function move(tx: Queryable, row: PaymentRow, delta: Credits, changes: string[]) {
    const { account_id: account, provider: actor } = row
    const note = `${delta > 0n ? 'Refund of' : 'Returned to'} ${row.detail.name ?? row.id} (${row.id})`
    await lockAccount(tx, account)
    const claimed = delta > 0n ? 0n : await endClaims(tx, account, row.id)
    row.taken += claimed
    row.lost -= claimed
    const back = -delta < row.taken ? -delta : row.taken
    // For a month of a plan, only credits of that month are taken, not those that were bought otherwise.
    const from = {
      from: row.detail.lotId ?? row.transfer_id ?? '',
      onlyFrom: row.detail.period !== undefined,
      payment: row.id,
    }
    const booked =
      delta > 0n
        ? await ledger.grant({ account, amount: -delta, note, actor, kind: 'refund', ...from }, tx)
        : await ledger.grant(
            { account, amount: back, recovered: -delta - back, note, actor, kind: 'purchase', ...lotFrom(row) },
            tx,
          )
    if (!booked) throw new Error(`Payment ${row.id} is for an account that is gone.`)
    const { moved } = booked
    if (moved > 0n) row.detail = { ...row.detail, lotId: booked.id }
    row.taken -= moved
    row.lost += delta + moved
    changes.push(
      delta > 0n
        ? `${formatCredits(-moved)} credits were taken back, and ${formatCredits(delta + moved)} are lost`
        : `${formatCredits(back)} credits were returned`,
    )
    const detail = { payment: row.id, amount: formatCredits(moved), transfer: booked.id, note }
    await audit.write(tx, providerOf(row), {
      action: 'payment.back',
      object: account,
      detail,
      rows: [['payment', row.id]],
    })
  }

  /** Why no credits are granted for it; undefined: they are. The account stays locked. */
  async function problemOf(tx: Queryable, row: PaymentRow, facts: PaymentFacts): Promise<string | undefined> {
    const { currency, price_minor: price } = row
    const show = (minor: bigint, of: string) => `${formatMoney(minor, of)} ${of}`
    if (row.account_id === '')
      return facts.account === undefined
        ? 'It names no account.'
        : `There is no account ${facts.account.slice(0, 100)}.`
    if (facts.account !== undefined && facts.account !== row.account_id)
      return `It names the account ${facts.account}, but was asked for by ${row.account_id}.`
    const ordered = facts.payment === undefined ? undefined : await paymentById(tx, facts.payment)
    if (ordered && ordered.account_id !== row.account_id)
      return `It names the payment ${ordered.id} of the account ${ordered.account_id}, but the account ${row.account_id}.`
    if (price === null) return `Nothing is sold at this price: ${show(facts.amountMinor, facts.currency)}.`
    if (facts.currency !== currency || facts.amountMinor - facts.taxMinor !== price)
      return `It should be ${show(price, currency)}, but is ${show(facts.amountMinor - facts.taxMinor, facts.currency)}.`
    const account = await lockAccount(tx, row.account_id)
    if (!account || isTestAccount(row.account_id)) return 'Nothing can be bought for this account.'
    if (account.status === 'closed') return 'The account is closed.'
    if (account.posted + row.credits > CREDITS_MAX) return 'The balance would exceed what an account can have.'
    return undefined
  }

  return { apply, grantFor }
}

const STOP_TOP_UP = sql('payment_stop_top_up')`
  update payment_customer set top_up_problem = 'A payment was refunded or disputed: set up automatic top-up again.', top_up_after = 'infinity'
   where account_id = $1 and top_up_below is not null`
function providerOf({ provider: actor }: PaymentRow): By {
  return { actor, ip: null, requestId: null }
}

const stateOf = (row: PaymentRow) => ({
  state: row.state,
  refundedMinor: String(row.refunded_minor),
  disputedMinor: String(row.disputed_minor),
  dispute: row.dispute,
})

/** A paid payment changed, and no credits moved, of which another audit row would tell. */
function isChangedOnly(was: PaymentRow, is: PaymentRow): boolean {
  const hasMoved = is.transfer_id !== was.transfer_id || is.taken !== was.taken || is.lost !== was.lost
  return is.paid_at !== null && !hasMoved && JSON.stringify(stateOf(was)) !== JSON.stringify(stateOf(is))
}

const AGAIN: Applied = { row: undefined, changes: [] }

interface Step {
  readonly facts: PaymentFacts
  readonly changes: string[]
  readonly notes: Array<() => Promise<void>>
}

/** Locks the account. An account that is being moved to another database must not change here. */
async function lockAccount(tx: Queryable, account: string): Promise<AccountRow | undefined> {
  const [row] = await tx.query<AccountRow>(ACCOUNT, [account])
  if (row?.moving) throw new Fault('unavailable', { retryAfterSeconds: 30, internal: { why: 'the account is moving' } })
  return row
}

const EXISTS = sql('payment_account_exists')`select id from account where id = $1 and ledger is null`

/** Empty if there is no such account: the name comes from the provider's metadata and may be anything. */
async function knownAccount(tx: Queryable, account: string | undefined): Promise<string> {
  const [row] = account === undefined ? [] : await tx.query<{ id: string }>(EXISTS, [account])
  return row?.id ?? ''
}

interface AccountRow {
  readonly status: string
  readonly posted: bigint
  readonly moving: boolean
}

/** Refunded completely, or disputed. */
function isBack({ amount_minor: paid, refunded_minor: refunded, dispute }: PaymentRow): boolean {
  return refunded === paid || isDisputed({ dispute })
}

/** Packs and plans do not share ids. */
function offerNamed({ packs, plans }: Sales, offer: string) {
  const pack = packs.find(({ id }) => id === offer)
  return pack ? (['pack', pack] as const) : (['plan', plans.find(({ id }) => id === offer)] as const)
}

/** What a payment that was not started here buys, by the current catalog; without a price: nothing. */
function offerOf(
  sales: Sales | undefined,
  { offer, currency, amountMinor, taxMinor }: PaymentFacts,
): Pick<PaymentRow, 'kind' | 'offer_id' | 'price_minor' | 'credits' | 'detail'> {
  const unknown = { kind: 'other' as const, offer_id: offer ?? null, price_minor: null, credits: 0n, detail: {} }
  if (!sales || sales.currency !== currency) return unknown
  const price = amountMinor - taxMinor
  if (offer !== undefined) {
    const [kind, found] = offerNamed(sales, offer)
    if (!found) return unknown
    const detail = { name: found.name, ...lotOf(found) }
    return { kind, offer_id: found.id, price_minor: found.priceMinor, credits: found.credits, detail }
  }
  const { amounts } = sales
  if (!amounts || price < amounts.minimumMinor || price > amounts.maximumMinor) return unknown
  const credits = creditsFor({ currency, ...amounts }, price)
  return {
    kind: 'amount',
    offer_id: null,
    price_minor: price,
    credits,
    detail: { name: `${formatCredits(credits)} credits` },
  }
}

/** The text of an invoice: what was bought, how many credits, and until when they are valid. */
function invoiced(row: PaymentRow) {
  const { name, period } = row.detail
  const amount = `${groupedCredits(row.credits)} credits`
  // An amount that was chosen freely has no other name.
  const what = row.kind === 'amount' || name === undefined ? amount : `${name}: ${amount}`
  const { endsAt } = lotFrom(row).lot
  if (!period) return { description: endsAt ? `${what}, valid until ${dateName(endsAt.toISOString())}` : what }
  const days = { fromDay: dayOfMs(Date.parse(period.from)), toDay: dayOfMs(Date.parse(period.to) - 1) }
  const [from, to] = [days.fromDay, days.toDay].map((day) => dateName(formatDay(day)))
  return { description: `${what}, ${from} to ${to}`, period: days }
}

/** Credits that end, or are for some products only. */
function lotFrom({ detail: { lot = {}, period }, paid_at: paidAt }: PaymentRow): { lot: Lot } {
  const { endsAfterDays, products, priority } = lot
  const endsAt = period
    ? new Date(period.to)
    : endsAfterDays === undefined
      ? undefined
      : new Date((paidAt ?? new Date(0)).getTime() + endsAfterDays * DAY_MS)
  return { lot: { source: period ? 'plan' : 'bought', endsAt, products, priority } }
}

/** The end, products and priority of a pack's or plan's credits, as stored with the payment. */
export function lotOf(offer: {
  endsAfterDays?: number | undefined
  products?: string[] | undefined
  priority?: number | undefined
}) {
  const { endsAfterDays, products, priority } = offer
  const lot = {
    ...(endsAfterDays === undefined ? {} : { endsAfterDays }),
    ...(products ? { products } : {}),
    ...(priority === undefined ? {} : { priority }),
  }
  return Object.keys(lot).length === 0 ? {} : { lot }
}
