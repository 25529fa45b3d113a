// Plans: a month's credits, limits and a price, as the catalog says. A change or the end of a plan comes at the end of its period. Each period begins in one transaction
// with its row locked, so that any number of processes renew a plan once, whenever they are killed.
import type { Accounts } from '../admission/accounts.ts'
import type { Sales } from '../catalog/sales.ts'
import type { CatalogStore } from '../catalog/store.ts'
import type { Audit, By } from '../database/audit.ts'
import { type Database, type Queryable, statement } from '../database/database.ts'
import { monthsAfter } from '../kernel/calendar.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { formatMoney } from '../kernel/money.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { type LimitsPatch, mergeLimits, showLimits } from '../ledger/limits.ts'
import type { Lot } from '../ledger/lots.ts'
import { lockBuyer } from './buyer.ts'
import type { AccountPlanView, PlanOffer } from './plan-views.ts'

export interface Plans {
  view(account: string): Promise<AccountPlanView>
  /** All of the catalog, with how many accounts are on each. */
  list(): Promise<PlanOffer[]>
  /** Starts a plan; or, where there is one, changes what it becomes at its period's end. Null: it ends then. */
  choose(account: string, plan: string | null, by: By): Promise<AccountPlanView>
  /** Begins the next period of every plan whose period is over. */
  renew(): Promise<void>
  /**
   * The month of a plan was paid: to be called in the transaction that records the payment, with the account locked. Answers the transfer that granted its credits; undefined
   * where the account does not wait for this payment.
   */
  paid(
    tx: Queryable,
    payment: { readonly account: string; readonly plan: string; readonly actor: string },
  ): Promise<string | undefined>
}

/** What is charged to an account's saved card. `key`: the same for the same month. */
interface PlanCharge {
  readonly account: string
  readonly plan: string
  readonly name: string
  readonly currency: string
  readonly priceMinor: bigint
  readonly credits: Credits
  readonly key: string
}

interface PlansOptions {
  readonly database: Database
  readonly world: World
  readonly ledger: Pick<Ledger, 'grant' | 'posted'>
  readonly audit: Audit
  readonly catalog: Pick<CatalogStore, 'current'>
  readonly accounts: Pick<Accounts, 'setLimits'>
  readonly log: Log
  /** Whether an account can pay, and charges it; absent: only free plans and trials. */
  readonly charge?: ((charge: PlanCharge) => Promise<void>) | undefined
}

interface Row {
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
  readonly limits: string[]
}
type Plan = Sales['plans'][number]

const DAY_MS = 86_400_000
const SYSTEM: By = { actor: 'system', ip: null, requestId: null }
/** A month that is not paid after so many tries, a day apart, ends the plan. */
const TRIES_MAX = 4
const ROWS_MAX = 200

const READ = statement('plan_read', 'select * from account_plan where account_id = $1')
const LOCK = statement('plan_lock', 'select * from account_plan where account_id = $1 for update')
const PUT = statement(
  'plan_put',
  `insert into account_plan (account_id, plan_id, next_plan, anchor, period, period_end, trial, trialled, due, tries, retry_at, limits)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
   on conflict (account_id) do update set plan_id = excluded.plan_id, next_plan = excluded.next_plan, anchor = excluded.anchor, period = excluded.period,
     period_end = excluded.period_end, trial = excluded.trial, trialled = excluded.trialled, due = excluded.due, tries = excluded.tries, retry_at = excluded.retry_at,
     limits = excluded.limits`,
)
const OVER = statement(
  'plan_over',
  `select p.account_id as account from account_plan p join account a on a.id = p.account_id
   where p.plan_id is not null and p.period_end <= $1 and (p.retry_at is null or p.retry_at <= $1) and a.status <> 'closed' and coalesce(a.frozen_until <= now(), true)
   order by p.period_end limit ${ROWS_MAX}`,
)
const COUNT = statement(
  'plan_count',
  'select plan_id as id, count(*)::int as accounts from account_plan where plan_id is not null group by 1',
)

export function createPlans(options: PlansOptions): Plans {
  const { database, world, ledger, audit, catalog, accounts, log, charge } = options

  const salesNow = () => catalog.current.document.sales
  const planOf = (id: string | null) => salesNow()?.plans.find((one) => one.id === id)

  async function put(
    tx: Queryable,
    account: string,
    row: Omit<Row, 'retry_at'>,
    retryAt: Date | null = null,
  ): Promise<void> {
    const { plan_id, next_plan, anchor, period, period_end, trial, trialled, due, tries, limits } = row
    await tx.query(PUT, [
      account,
      plan_id,
      next_plan,
      anchor,
      period,
      period_end,
      trial,
      trialled,
      due,
      tries,
      retryAt,
      limits,
    ])
  }

  /** The limits of the plan before go, those of this one come. */
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

  /** Grants the credits of a period that begins. */
  async function begin(
    tx: Queryable,
    {
      account,
      plan,
      row,
      by,
      action,
    }: { account: string; plan: Plan; row: Row; by: By; action: 'plan.start' | 'plan.renew' },
  ): Promise<string> {
    const { products, priority, credits } = plan
    const lot: Lot = { source: 'plan', endsAt: row.period_end, products, priority }
    const isPaid = plan.priceMinor > 0n && !row.trial
    const note = `${plan.name}${row.trial ? ', trial' : ''}`
    const kind = isPaid ? ('purchase' as const) : ('plan' as const)
    const granted = await ledger.grant({ account, amount: credits, note, actor: by.actor, kind, lot }, tx)
    if (!granted) throw new Error(`The plan of ${account} is of an account that is gone.`)
    const limits = await setLimits(tx, account, row.limits, plan)
    await put(tx, account, { ...row, limits })
    const detail = {
      plan: plan.id,
      note,
      until: row.period_end.toISOString(),
      amount: formatCredits(credits),
      transfer: granted.id,
    }
    await audit.write(tx, by, { action, object: account, detail })
    return granted.id
  }

  async function finish(tx: Queryable, account: string, row: Row, reason: string): Promise<void> {
    await setLimits(tx, account, row.limits, undefined)
    await put(tx, account, { ...row, plan_id: null, next_plan: null, trial: false, due: false, tries: 0, limits: [] })
    await audit.write(tx, SYSTEM, { action: 'plan.end', object: account, detail: { plan: row.plan_id, reason } })
  }

  /** What is to be charged when the transaction is over. */
  function chargeOf(account: string, plan: Plan, row: Row): PlanCharge {
    const { id, name, priceMinor, credits } = plan
    const key = `${account}-${row.anchor.getTime()}-${row.period + 1}`
    return { account, plan: id, name, priceMinor, credits, currency: salesNow()?.currency ?? '', key }
  }

  async function collect(order: PlanCharge | undefined): Promise<void> {
    if (order)
      await charge?.(order).catch((error: unknown) =>
        log.warn({ error, account: order.account }, 'a plan could not be charged'),
      )
  }

  const cannotPay = () => new Fault('conflict', { message: 'This plan costs money, and no payments are set up here.' })

  /** The first plan of an account, or one after another had ended. */
  async function start(
    tx: Queryable,
    { account, plan, by, before }: { account: string; plan: Plan; by: By; before: Row | undefined },
  ) {
    const nowMs = world.nowMs()
    const isFree = plan.priceMinor === 0n
    const hasTrial = !isFree && plan.trialDays !== undefined && !before?.trialled
    if (!isFree && !hasTrial && !charge) throw cannotPay()
    const anchor = new Date(nowMs + (hasTrial ? (plan.trialDays ?? 0) * DAY_MS : 0))
    const row: Row = {
      ...{
        plan_id: plan.id,
        next_plan: null,
        anchor,
        due: false,
        tries: 0,
        retry_at: null,
        limits: before?.limits ?? [],
      },
      ...{ trial: hasTrial, trialled: hasTrial || (before?.trialled ?? false) },
      period: hasTrial ? 0 : 1,
      period_end: hasTrial ? anchor : monthsAfter(anchor, 1),
    }
    if (isFree || hasTrial) {
      await begin(tx, { account, plan, row, by, action: 'plan.start' })
      return undefined
    }
    const waiting = { ...row, period: 0, period_end: anchor, due: true, tries: 1 }
    await put(tx, account, waiting, new Date(nowMs + DAY_MS))
    return chargeOf(account, plan, waiting)
  }

  async function change(
    tx: Queryable,
    { account, id, row, by }: { account: string; id: string | null; row: Row; by: By },
  ) {
    const plan = planOf(id)
    if (plan && plan.priceMinor > 0n && !charge) throw cannotPay()
    // A month that was never paid for has nothing that it must be waited for.
    if (id === null && row.due && row.period === 0) return finish(tx, account, row, 'cancelled')
    await put(tx, account, { ...row, next_plan: id === row.plan_id ? null : (id ?? '') }, row.retry_at)
    await audit.write(tx, by, {
      action: 'plan.change',
      object: account,
      detail: { from: row.plan_id, to: id, at: row.period_end.toISOString() },
    })
  }

  /** With the row locked. Answers what is to be charged. */
  async function advance(tx: Queryable, account: string): Promise<PlanCharge | undefined> {
    await lockBuyer(tx, account)
    const [row] = await tx.query<Row>(LOCK, [account])
    const nowMs = world.nowMs()
    const dueMs = Math.max(row?.period_end.getTime() ?? 0, row?.retry_at?.getTime() ?? 0)
    // Another process was faster.
    if (row?.plan_id == null || dueMs > nowMs) return undefined
    if (row.next_plan === '') return void (await finish(tx, account, row, 'cancelled'))
    const plan = planOf(row.next_plan ?? row.plan_id)
    if (!plan) return void (await finish(tx, account, row, 'it is not in the catalog any more'))
    if (plan.priceMinor === 0n) {
      await begin(tx, { account, plan, row: nextOf(row, plan, nowMs), by: SYSTEM, action: 'plan.renew' })
      return undefined
    }
    if (!charge || row.tries >= TRIES_MAX) return void (await finish(tx, account, row, 'it was not paid'))
    await put(tx, account, { ...row, due: true, tries: row.tries + 1 }, new Date(nowMs + DAY_MS))
    return chargeOf(account, plan, row)
  }

  async function view(account: string): Promise<AccountPlanView> {
    const [row] = await database.query<Row>(READ, [account])
    const plan = row && planOf(row.plan_id)
    const plans = offersOf(salesNow()).filter(
      ({ price }) => charge !== undefined || Number(price) === 0 || row?.trialled !== true,
    )
    if (!row?.plan_id) return { plan: null, plans }
    return {
      plan: {
        ...{ id: row.plan_id, name: plan?.name ?? row.plan_id, trial: row.trial, due: row.due },
        endsAt: row.period_end.toISOString(),
        next: row.next_plan === null ? row.plan_id : row.next_plan || null,
      },
      plans,
    }
  }

  return {
    view,
    async list() {
      const counts = await database.query<{ id: string; accounts: number }>(COUNT)
      const byId = new Map(counts.map(({ id, accounts }) => [id, accounts]))
      return offersOf(salesNow()).map((offer) => ({ ...offer, accounts: byId.get(offer.id) ?? 0 }))
    },
    async choose(account, id, by) {
      if (isTestAccount(account)) throw new Fault('conflict', { message: 'A test account has no plan.' })
      const plan = planOf(id)
      if (id !== null && !plan) throw invalid(`plan: there is no plan "${id}".`, 'plan')
      await ledger.posted(account)
      const order = await database.transaction(async (tx) => {
        await lockBuyer(tx, account)
        const [row] = await tx.query<Row>(LOCK, [account])
        if (row?.plan_id != null) return void (await change(tx, { account, id, row, by }))
        if (!plan) throw new Fault('conflict', { message: 'This account has no plan.' })
        return start(tx, { account, plan, by, before: row })
      })
      await collect(order)
      return view(account)
    },
    async renew() {
      for (const { account } of await database.query<{ account: string }>(OVER, [new Date(world.nowMs())])) {
        try {
          await ledger.posted(account)
          await collect(await database.transaction((tx) => advance(tx, account)))
        } catch (error) {
          // One that is locked, moving or closed waits for the next time, and keeps nobody else waiting.
          log.warn({ error, account }, 'a plan could not be renewed')
        }
      }
    },
    async paid(tx, { account, plan: id, actor }) {
      const [row] = await tx.query<Row>(LOCK, [account])
      const plan = planOf(id)
      if (!row?.due || row.plan_id === null || !plan || (row.next_plan ?? row.plan_id) !== id) return undefined
      const by = { ...SYSTEM, actor }
      const isFirst = row.period === 0 && !row.trial
      const next = nextOf({ ...row, ...(isFirst ? { anchor: new Date(world.nowMs()) } : {}) }, plan, world.nowMs())
      return begin(tx, { account, plan, row: next, by, action: isFirst ? 'plan.start' : 'plan.renew' })
    },
  }
}

/** The period that is running now: months in which nothing ran are not made up for. */
function nextOf(row: Row, plan: Plan, nowMs: number): Row {
  let period = row.period + 1
  while (monthsAfter(row.anchor, period).getTime() <= nowMs) period += 1
  const fresh = { next_plan: null, trial: false, due: false, tries: 0 }
  return { ...row, ...fresh, plan_id: plan.id, period, period_end: monthsAfter(row.anchor, period) }
}

function offersOf(sales: Sales | undefined): PlanOffer[] {
  if (!sales) return []
  return sales.plans.map(({ id, name, priceMinor, credits, products, limits, trialDays }) => ({
    ...{ id, name, price: formatMoney(priceMinor, sales.currency), currency: sales.currency },
    ...{ credits: formatCredits(credits), products: products ?? null, trialDays: trialDays ?? null },
    limits: showLimits(mergeLimits({}, limits)),
  }))
}
