// Plans: a month's credits, limits and a price, from the catalog. An upgrade starts now; a downgrade or cancellation
// takes effect at the end of the period. Each period starts in one transaction with its row locked, so a plan is
// renewed once, even if processes are killed. A paid month starts in the transaction that records its payment, so
// nothing is granted before it is paid.

import { type Accounts, limitedRows } from '../../admission/accounts.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import type { By } from '../../database/audit.ts'
import type { AuditedRow } from '../../database/audited-rows.ts'
import { type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import type { Branding } from '../../identity/branding/branding.ts'
import { renderMail } from '../../identity/branding/mail.ts'
import type { PersonMails } from '../../identity/person-mails.ts'
import { DAY_MS, monthsAfter } from '../../kernel/calendar.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { type LimitsPatch, mergeLimits, showLimits } from '../../ledger/limits.ts'
import type { Lot } from '../../ledger/lots.ts'
import { formatMoney } from '../billing/money.ts'
import { lotOf } from './apply.ts'
import { PLAN_MAILS } from './mails.ts'
import type { Sales } from './offers.ts'
import { lockBuyer, type PaymentRow } from './payment-rows.ts'
import type { Buyer, Payments } from './payments.ts'
import type { AccountPlanView, ChosenPlanView, PlanOffer } from './views.ts'

export type Plans = ReturnType<typeof createPlans>

interface Chooser {
  readonly by: By
  readonly buyer: Buyer
  /** The address to which the checkout page returns. */
  readonly returnUrl: string
}

export interface PlansOptions extends Pick<CoreParts, 'database' | 'world' | 'audit' | 'publicUrl' | 'log'> {
  readonly ledger: Pick<Ledger, 'grant' | 'posted'>
  readonly catalog: Pick<CatalogStore, 'current'>
  readonly accounts: Pick<Accounts, 'setLimits'>
  readonly payments: Pick<Payments, 'provider' | 'buy' | 'checkBuyer' | 'hasCard' | 'order' | 'charge' | 'finish'>
  readonly branding: Pick<Branding, 'get'>
  /** Undefined: no mail server is configured. */
  readonly mails: PersonMails | undefined
}

interface PlanStateRow {
  readonly plan_id: string | null
  readonly next_plan: string | null
  readonly anchor: Date
  readonly period: number
  readonly period_end: Date
  readonly trial: boolean
  readonly trialled: boolean
  readonly due: boolean
  readonly tries: number
  readonly retry_at: Date | null
  readonly problem: string | null
  readonly limits: string[]
}
type Plan = Sales['plans'][number]

const SYSTEM: By = { actor: 'system', ip: null, requestId: null }
/** If a month is not paid after this many attempts, a day apart, the plan ends. */
const TRIES_MAX = 4
/**
 * A payment up to this long before the end of the period is for the next month: providers that charge on their own
 * schedule may be early.
 */
const EARLY_MS = 3 * DAY_MS
const ROWS_MAX = 200
/** Charges that one account may start in an hour. */
const CHARGES_MAX = 5

const COLUMNS = [
  'plan_id',
  'next_plan',
  'anchor',
  'period',
  'period_end',
  'trial',
  'trialled',
  'due',
  'tries',
  'retry_at',
  'problem',
  'limits',
] as const satisfies (keyof PlanStateRow)[]
const READ = sql('plan_read')`select * from account_plan where account_id = $1`
const LOCK = sql('plan_lock')`select * from account_plan where account_id = $1 for update`
const PUT = sql('plan_put')`
  insert into account_plan (account_id, ${COLUMNS.join(', ')}) values ($1, ${COLUMNS.map((_, at) => `$${at + 2}`).join(', ')})
   on conflict (account_id) do update set ${COLUMNS.map((name) => `${name} = excluded.${name}`).join(', ')}`
// Plans of suspended accounts wait; plans of closed accounts end.
const OVER = sql('plan_over')`select p.account_id as account from account_plan p join account a on a.id = p.account_id
   where p.plan_id is not null and p.period_end <= $1 and (p.retry_at is null or p.retry_at <= $1) and a.status <> 'suspended' and coalesce(a.frozen_until <= now(), true)
   order by p.period_end limit ${ROWS_MAX}`
const COUNT = sql('plan_count')`
  select plan_id as id, count(*)::int as accounts from account_plan where plan_id is not null group by 1`
const UNDER_WAY = sql('plan_under_way')`
  select coalesce(bool_or(state = 'pending'), false) as pending, count(*) filter (where created_at > now() - interval '1 hour')::int as tries
   from payment where account_id = $1 and kind = 'plan' and detail ? 'charge'`
const CLOSED = sql('plan_closed')`select 1 from account where id = $1 and status = 'closed' for update`
const OWNERS = sql('plan_owners')`
  select a.name, p.id, p.email from account a join membership m on m.account_id = a.id and m.role = 'owner' join person p on p.id = m.person_id where a.id = $1`

export function createPlans(options: PlansOptions) {
  const { database, world, ledger, audit, catalog, accounts, payments, log } = options

  const salesNow = () => catalog.current.document.sales
  const planOf = (id: string | null) => salesNow()?.plans.find((one) => one.id === id)
  const priceOf = (id: string | null) => planOf(id)?.priceMinor ?? 0n

  async function put(tx: Queryable, account: string, row: PlanStateRow): Promise<void> {
    await tx.query(PUT, [account, ...COLUMNS.map((name) => row[name])])
  }

  /** Removes the limits of the previous plan and sets those of the new one. */
  async function setLimits(
    tx: Queryable,
    account: string,
    before: readonly string[],
    plan: Plan | undefined,
  ): Promise<string[]> {
    const wanted = plan?.limits ?? {}
    const none = Object.fromEntries(before.map((name) => [name, null])) as LimitsPatch // names of limits that a plan has set
    const patch = { ...none, ...wanted }
    if (Object.keys(patch).length > 0) await accounts.setLimits(tx, account, patch)
    return Object.keys(wanted)
  }

  /** Starts a period. Grants its credits here, unless they come with a payment. */
  async function begin(tx: Queryable, { account, row, by, before, isPaid = false }: Beginning): Promise<void> {
    const plan = planOf(row.plan_id)
    await put(tx, account, { ...row, limits: await setLimits(tx, account, row.limits, plan) })
    const granted = isPaid || !plan ? {} : await give(tx, { account, plan, row, actor: by.actor })
    const action = before === row.plan_id && !row.trial ? 'plan.renew' : 'plan.start'
    const detail = { plan: row.plan_id, until: row.period_end.toISOString(), ...granted }
    await audit.write(tx, by, {
      action,
      object: account,
      detail,
      before: { plan: before ?? null },
      after: { plan: row.plan_id, until: row.period_end },
      rows: planRows(account),
    })
  }

  async function give(tx: Queryable, to: { account: string; plan: Plan; row: PlanStateRow; actor: string }) {
    const { account, plan, row, actor } = to
    const { products, priority, credits: amount } = plan
    const lot: Lot = { source: 'plan', endsAt: row.period_end, products, priority }
    const note = `${plan.name}${row.trial ? ', trial' : ''}`
    const granted = await ledger.grant({ account, amount, note, actor, kind: 'plan', lot }, tx)
    if (!granted) throw new Error(`The plan of ${account} is of an account that is gone.`)
    return { note, amount: formatCredits(amount), transfer: granted.id }
  }

  async function finish(tx: Queryable, account: string, row: PlanStateRow, reason: string): Promise<void> {
    await setLimits(tx, account, row.limits, undefined)
    const over = { trial: false, due: false, tries: 0, retry_at: null, problem: null, limits: [] }
    await put(tx, account, { ...row, ...over, plan_id: null, next_plan: null })
    await audit.write(tx, SYSTEM, {
      action: 'plan.end',
      object: account,
      detail: { plan: row.plan_id, reason },
      before: { plan: row.plan_id },
      after: { plan: null },
      rows: planRows(account),
    })
  }

  /** Stores a mail to the owners in the transaction of the change. */
  async function tell(tx: Queryable, account: string, row: PlanStateRow, mail: { name: PlanMail; reason: string }) {
    if (!options.mails) return
    const now = options.branding.get()
    const url = `${options.publicUrl()}/console/a/${account}/billing`
    const until = new Date(row.period_end.getTime() + TRIES_MAX * DAY_MS).toISOString().slice(0, 10)
    const name = planOf(row.plan_id)?.name ?? row.plan_id ?? ''
    for (const owner of await tx.query<{ name: string; id: string; email: string }>(OWNERS, [account])) {
      const plan = { name, account: owner.name, reason: mail.reason, until }
      const made = renderMail(PLAN_MAILS[mail.name].make({ name: now.name, url, plan }), now, options.publicUrl())
      await options.mails.add(tx, { ...made, to: owner.email, event: `account.${mail.name}`, about: owner.id })
    }
  }

  /** Inserts the row of a card charge in the transaction. Undefined: another one is pending. */
  function order(tx: Queryable, account: string, plan: Plan, person: string | null) {
    const { id: offer, name, priceMinor, credits } = plan
    const currency = salesNow()?.currency ?? ''
    return payments.order(tx, {
      account,
      kind: 'plan',
      offer,
      name,
      currency,
      priceMinor,
      credits,
      person,
      detail: lotOf(plan),
    })
  }

  /** The first month of a free plan, or a trial. */
  function startOf(plan: Plan, before: PlanStateRow | undefined): PlanStateRow {
    const nowMs = world.nowMs()
    const trialDays = plan.priceMinor > 0n ? plan.trialDays : undefined
    const anchor = new Date(nowMs + (trialDays ?? 0) * DAY_MS)
    const trial = trialDays !== undefined
    return {
      ...FRESH,
      plan_id: plan.id,
      limits: before?.limits ?? [],
      anchor,
      trial,
      trialled: trial || (before?.trialled ?? false),
      period: trial ? 0 : 1,
      period_end: trial ? anchor : monthsAfter(anchor, 1),
    }
  }

  /** The next step after the customer's choice. The row is locked. */
  function stepOf(row: PlanStateRow | undefined, plan: Plan | undefined): 'begin' | 'pay' | 'later' | 'end' {
    const has = row?.plan_id != null ? row : undefined
    if (!plan) {
      if (!has) throw new Fault('conflict', { message: 'This account has no plan.' })
      // An unpaid month has no end to wait for.
      return has.due ? 'end' : 'later'
    }
    if (has?.plan_id === plan.id) return has.due ? 'pay' : 'later'
    if (has && plan.priceMinor <= priceOf(has.plan_id)) return 'later'
    return plan.priceMinor === 0n || (plan.trialDays !== undefined && !row?.trialled) ? 'begin' : 'pay'
  }

  async function later(tx: Queryable, { account, plan, row, by }: Change): Promise<void> {
    const to = plan?.id ?? null
    // Clears a retry that was due for an unpaid month.
    await put(tx, account, { ...row, next_plan: to === row.plan_id ? null : (to ?? ''), retry_at: null })
    const detail = { from: row.plan_id, to, at: row.period_end.toISOString() }
    await audit.write(tx, by, {
      action: 'plan.change',
      object: account,
      detail,
      before: { nextPlan: row.next_plan || row.plan_id },
      after: { nextPlan: to },
      rows: planRows(account),
    })
  }

  /** Returns the payment to charge to the saved card, or `elsewhere` if it is paid at a checkout. */
  function decide(account: string, plan: Plan | undefined, { by, buyer, byCard }: Deciding) {
    return database.transaction(async (tx): Promise<PaymentRow | 'elsewhere' | undefined> => {
      await lockBuyer(tx, account)
      const [row] = await tx.query<PlanStateRow>(LOCK, [account])
      const step = stepOf(row, plan)
      const [charges] = await tx.query<{ pending: boolean; tries: number }>(UNDER_WAY, [account])
      // A pending charge will start its own month, which would overwrite this decision.
      if (charges?.pending) throw underWay()
      if (step === 'pay' && plan) {
        if (!byCard) return 'elsewhere'
        if ((charges?.tries ?? 0) >= CHARGES_MAX) throw tooMany()
        const ordered = await order(tx, account, plan, buyer.personId)
        if (!ordered) throw underWay()
        return ordered
      }
      if (step === 'begin' && plan)
        await begin(tx, { account, row: startOf(plan, row), by, before: row?.plan_id ?? null })
      else if (row && step === 'end') await finish(tx, account, row, 'it was cancelled')
      else if (row) await later(tx, { account, plan, row, by })
      return undefined
    })
  }

  /** Charges the card, and stores the reason if it was declined. */
  async function collect(row: PaymentRow): Promise<PaymentRow> {
    const done = row.state === 'pending' ? await payments.charge(row) : row
    if (done.state === 'failed') await declined(row.account_id, done.reason ?? 'The card was declined.')
    return done
  }

  async function declined(account: string, reason: string): Promise<void> {
    await database.transaction(async (tx) => {
      const [row] = await tx.query<PlanStateRow>(LOCK, [account])
      if (row?.due) await noteProblem(tx, account, row, reason)
    })
    options.mails?.wake()
  }

  async function noteProblem(tx: Queryable, account: string, row: PlanStateRow, reason: string): Promise<void> {
    if (row.problem === null) await tell(tx, account, row, { name: 'planUnpaid', reason })
    await put(tx, account, { ...row, problem: reason })
  }

  /** Moves a plan into its next period. Returns the payment to charge. */
  async function advance(tx: Queryable, account: string): Promise<PaymentRow | undefined> {
    const isClosed = (await tx.query(CLOSED, [account])).length > 0
    if (!isClosed) await lockBuyer(tx, account)
    const [row] = await tx.query<PlanStateRow>(LOCK, [account])
    const nowMs = world.nowMs()
    const dueMs = Math.max(row?.period_end.getTime() ?? 0, row?.retry_at?.getTime() ?? 0)
    // Another process has done it.
    if (row?.plan_id == null || dueMs > nowMs) return undefined
    if (isClosed) return void (await finish(tx, account, row, 'the account was closed'))
    if (row.next_plan === '') return void (await finish(tx, account, row, 'it was cancelled'))
    const plan = planOf(row.next_plan ?? row.plan_id)
    if (!plan) return void (await finish(tx, account, row, 'it is not in the catalog any more'))
    if (plan.priceMinor === 0n) {
      await begin(tx, { account, row: nextOf(row, plan.id, nowMs), by: SYSTEM, before: row.plan_id })
      return undefined
    }
    if (row.tries >= TRIES_MAX) {
      await tell(tx, account, row, { name: 'planEnded', reason: row.problem ?? 'It was not paid.' })
      return void (await finish(tx, account, row, 'it was not paid'))
    }
    const waiting = { ...row, due: true, tries: row.tries + 1, retry_at: new Date(nowMs + DAY_MS) }
    await put(tx, account, waiting)
    if (await payments.hasCard(tx, account)) return order(tx, account, plan, null)
    return void (await noteProblem(tx, account, waiting, 'There is no saved card.'))
  }

  async function view(account: string): Promise<AccountPlanView> {
    const [row] = await database.query<PlanStateRow>(READ, [account])
    const plan = row && planOf(row.plan_id)
    const sales = salesNow()
    const isSold = (await payments.provider()) !== undefined
    const plans = offersOf(sales)
      .filter(({ price }) => isSold || Number(price) === 0)
      // An account has one trial.
      .map((offer) => (row?.trialled ? { ...offer, trialDays: null } : offer))
    if (!row?.plan_id) return { plan: null, plans }
    return {
      plan: {
        id: row.plan_id,
        name: plan?.name ?? row.plan_id,
        trial: row.trial,
        due: row.due,
        problem: row.problem,
        price: formatMoney(plan?.priceMinor ?? 0n, sales?.currency ?? ''),
        currency: sales?.currency ?? '',
        endsAt: row.period_end.toISOString(),
        next: row.next_plan === null ? row.plan_id : row.next_plan || null,
        retryAt: row.due ? (row.retry_at?.toISOString() ?? null) : null,
      },
      plans,
    }
  }

  return {
    view,
    /** All plans of the catalog, with the number of accounts that have each. */
    async list(): Promise<PlanOffer[]> {
      const counts = await database.query<{ id: string; accounts: number }>(COUNT)
      const byId = new Map(counts.map(({ id, accounts }) => [id, accounts]))
      return offersOf(salesNow()).map((offer) => ({ ...offer, accounts: byId.get(offer.id) ?? 0 }))
    },
    /**
     * Starts or changes a plan: to a more expensive one now, to a cheaper one at the end of the period; null: it ends
     * then. The saved card is charged; without one, or with `checkout`, the answer has the checkout address, and the
     * plan starts when it is paid.
     */
    async choose(
      account: string,
      { plan: id, checkout = false }: { plan: string | null; checkout?: boolean | undefined },
      { by, buyer, returnUrl }: Chooser,
    ): Promise<ChosenPlanView> {
      if (isTestAccount(account)) throw new Fault('conflict', { message: 'A test account has no plan.' })
      const plan = planOf(id)
      if (id !== null && !plan) throw invalid(`plan: there is no plan "${id}".`, 'plan')
      const isPriced = plan !== undefined && plan.priceMinor > 0n
      if (isPriced) await payments.checkBuyer(account)
      await ledger.posted(account)
      const byCard = isPriced && !checkout && (await payments.hasCard(database, account))
      const order = await decide(account, plan, { by, buyer, byCard })
      if (order === undefined) return { ...(await view(account)), checkout: null }
      if (order === 'elsewhere') {
        const page = await payments.buy(account, { plan: id ?? '', saveCard: true, returnUrl }, buyer)
        return { ...(await view(account)), checkout: page }
      }
      const { state, reason } = await collect(order)
      if (state === 'failed') throw new Fault('conflict', { message: `The card was declined: ${reason}` })
      if (state === 'quarantined') throw new Fault('conflict', { message: `The payment is held back: ${reason}` })
      return { ...(await view(account)), checkout: null }
    },
    /** Starts the next period, and charges for it, of every plan whose period has ended. */
    async renew(): Promise<void> {
      for (const { account } of await database.query<{ account: string }>(OVER, [new Date(world.nowMs())])) {
        try {
          await ledger.posted(account)
          const order = await database.transaction((tx) => advance(tx, account))
          if (order) await collect(order)
        } catch (error) {
          // An account that is locked, moving or closed is tried again next time and does not delay others.
          log.warn({ error, account }, 'a plan could not be renewed')
        }
      }
      await payments.finish('plan', collect)
      options.mails?.wake()
    },
    /**
     * A month was paid. Call it in the transaction that records the payment, with the account locked, before the
     * credits are granted. Returns the month that was paid, or the reason why the payment belongs to no month.
     */
    async paid(
      tx: Queryable,
      { account_id: account, offer_id: id }: Pick<PaymentRow, 'account_id' | 'offer_id'>,
      by: By,
    ): Promise<{ from: string; to: string } | string> {
      const [row] = await tx.query<PlanStateRow>(LOCK, [account])
      const now = new Date(world.nowMs())
      const has = row?.plan_id != null ? row : undefined
      const isOver = has !== undefined && has.period_end.getTime() - EARLY_MS <= now.getTime()
      const isSame = has !== undefined && id === (isOver ? (has.next_plan ?? has.plan_id) : has.plan_id)
      if (isSame && !isOver && !has.trial)
        return `This month of the plan is paid already, until ${has.period_end.toISOString().slice(0, 10)}.`
      const runs = has !== undefined && !has.due && !has.trial && has.period_end > now
      // A checkout page from before the upgrade was still open, and was paid.
      if (runs && id !== has.plan_id && !isSame && priceOf(id) <= priceOf(has.plan_id))
        return `A plan that costs as much or more is paid already, until ${has.period_end.toISOString().slice(0, 10)}.`
      const start = { ...FRESH, anchor: now, period: 0, trialled: row?.trialled ?? false, limits: row?.limits ?? [] }
      const next =
        isSame && isOver
          ? nextOf(has, id, now.getTime())
          : nextOf({ ...start, plan_id: id, period_end: now }, id, now.getTime())
      await begin(tx, { account, row: next, by, before: has?.plan_id ?? null, isPaid: true })
      const from = isSame && isOver ? monthsAfter(next.anchor, next.period - 1) : now
      return { from: from.toISOString(), to: next.period_end.toISOString() }
    },
    /**
     * A month was refunded or is disputed. If it is the current month, the plan ends now. A refund of an older month
     * changes nothing; after a dispute of an older month the plan ends with its period, so that the card is not charged
     * again. Call it in the transaction that records the refund, with the account locked.
     */
    async takenBack(
      tx: Queryable,
      account: string,
      { to, isDisputed }: { readonly to: string; readonly isDisputed: boolean },
    ): Promise<void> {
      const [row] = await tx.query<PlanStateRow>(LOCK, [account])
      if (row?.plan_id == null) return
      if (row.period_end.toISOString() === to) await finish(tx, account, row, 'its payment was refunded or disputed')
      else if (isDisputed && row.next_plan !== '') await later(tx, { account, plan: undefined, row, by: SYSTEM })
    },
  }
}

/** A plan sets limits of its account. */
function planRows(account: string): AuditedRow[] {
  return [['account_plan', account], ...limitedRows(account)]
}

type PlanMail = 'planUnpaid' | 'planEnded'
interface Beginning {
  readonly account: string
  readonly row: PlanStateRow
  readonly by: By
  /** The previous plan. */
  readonly before: string | null
  /** The credits are granted with the payment, not here. */
  readonly isPaid?: boolean
}
interface Change {
  readonly account: string
  readonly plan: Plan | undefined
  readonly row: PlanStateRow
  readonly by: By
}
interface Deciding {
  readonly by: By
  readonly buyer: Buyer
  readonly byCard: boolean
}

const FRESH = { next_plan: null, trial: false, due: false, tries: 0, retry_at: null, problem: null } as const
const tooMany = () =>
  new Fault('rate_limited', {
    message: 'Too many charges for plans were started. Try again in an hour.',
    retryAfterSeconds: 3600,
  })
const underWay = () => new Fault('conflict', { message: 'A payment for the plan is pending. Try again in a minute.' })

/** The current period: missed months are skipped. */
function nextOf(row: PlanStateRow, plan: string | null, nowMs: number): PlanStateRow {
  let period = row.period + 1
  while (monthsAfter(row.anchor, period).getTime() <= nowMs) period += 1
  return { ...row, ...FRESH, plan_id: plan, period, period_end: monthsAfter(row.anchor, period) }
}

function offersOf(sales: Sales | undefined): PlanOffer[] {
  if (!sales) return []
  return sales.plans.map(({ id, name, priceMinor, credits, products, limits, trialDays }) => ({
    id,
    name,
    price: formatMoney(priceMinor, sales.currency),
    currency: sales.currency,
    credits: formatCredits(credits),
    products: products ?? null,
    trialDays: trialDays ?? null,
    limits: showLimits(mergeLimits({}, limits)),
  }))
}
