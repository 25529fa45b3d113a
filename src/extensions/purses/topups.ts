// Top-ups: what customers pay into their purses. As for payments of accounts, a report only says which payment changed,
// and may come any number of times, in any order and to any process: the row is locked, older reports change nothing,
// and the purse gets its credits once, in the transaction that says so.
import type { By } from '../../database/audit.ts'
import { type Queryable, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import { CREDITS_MAX, type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { asPage, asView, type Page, type Paging } from '../../kernel/view.ts'
import { newId } from '../../kernel/world.ts'
import type { Issuing } from '../billing/invoices/issuing.ts'
import { formatMoney } from '../billing/money.ts'
import { checkStep, orderOfAmount } from '../billing/payments/amounts.ts'
import type { PaymentFacts, RemoteProvider } from '../billing/payments/provider.ts'
import type { ReconciledPayments } from '../billing/payments/reconcile.ts'
import {
  DISPUTED,
  isDisputed,
  isOlder,
  laterOf,
  owedBack,
  type PaymentState,
  refundable,
  refundOf,
} from '../billing/payments/state.ts'
import type { PursePayments } from './payments.ts'
import { findPurse, lockPurse, movePurse, requireAccount, TOP_UP } from './purses.ts'
import { type TopUpView, topUpView } from './views.ts'

interface TopUpRow extends PaymentState {
  readonly account_id: string
  readonly id: string
  readonly purse_id: string
  readonly price_minor: bigint
  readonly state: TopUpView['state']
  readonly reason: string | null
  /** Whether the purse got its credits. */
  readonly granted: boolean
  readonly taken: Credits
  readonly lost: Credits
  /** Of the provider's checkout. */
  readonly reference: string | null
  readonly created_at: Date
}

interface TopUpFilter extends Paging {
  readonly purse?: string | undefined
  readonly state?: TopUpView['state'] | undefined
}

interface Applied {
  readonly row: TopUpRow
  /** In words; empty: nothing. */
  readonly changes: readonly string[]
}

interface TopUpDeps extends Pick<CoreParts, 'database' | 'world' | 'audit' | 'log'> {
  readonly payments: PursePayments
  readonly invoices: Pick<Issuing, 'issue' | 'creditNote'>
}

/** Checkouts that one purse may start in an hour. */
const OPEN_MAX = 30
/** What the purchase is called at the provider: no pack or plan of the gateway can have this id. */
const OFFER = 'purse:topup'

export type TopUps = ReturnType<typeof createTopUps>

export function createTopUps({ database, world, audit, log, payments, invoices }: TopUpDeps) {
  async function apply(account: string, facts: PaymentFacts): Promise<Applied | undefined> {
    // Another account may use the same Stripe account.
    if (facts.account !== undefined && facts.account !== account) return undefined
    return database.transaction(async (tx) => {
      await requireAccount(tx, account)
      const was = await rowFor(tx, account, facts)
      // An older report is ignored, unless it is the first to say that it is paid.
      if (!was) return undefined
      if (isOlder(was, facts) && (was.paid_at !== null || facts.status !== 'paid')) return { row: was, changes: [] }
      let row: TopUpRow = { ...was, provider_id: facts.providerId, as_of: laterOf(was.as_of, new Date(facts.asOfMs)) }
      if (row.paid_at === null && facts.status === 'paid') row = await paid(tx, row, facts)
      else if (row.paid_at === null && facts.status === 'failed')
        row = { ...row, state: 'failed', reason: facts.reason ?? 'It was not paid.' }
      if (row.paid_at !== null) row = await takenBack(tx, row, facts)
      await save(tx, row)
      if (row.granted) await invoice(tx, was, row)
      return { row, changes: changesOf(was, row) }
    })
  }

  /** The last of all, because payments of the account wait for the number after it. */
  async function invoice(tx: Queryable, was: TopUpRow, row: TopUpRow): Promise<void> {
    const { account_id: account, purse_id: purse, id, currency, amount_minor: amountMinor, provider } = row
    const paidAt = row.paid_at ?? new Date(world.nowMs())
    const description = `${formatCredits(row.credits)} credits`
    const payment = { id, currency, amountMinor, paidAt, description, isTest: provider === 'simulated' }
    if (!was.granted) await invoices.issue(tx, { account, purse, payment })
    const { refunded_minor: refundedMinor } = row
    if (refundedMinor > was.refunded_minor) await invoices.creditNote(tx, { account, payment: id, refundedMinor })
  }

  /**
   * By the provider's id, or by ours. What nobody asked for here is none of ours: the account may sell other things.
   */
  async function rowFor(tx: Queryable, account: string, facts: PaymentFacts): Promise<TopUpRow | undefined> {
    const { payment, provider: at, providerId } = facts
    // First ours, so that of two reports at once the second one finds what the first one wrote.
    const [ours] = payment === undefined ? [] : await tx.query<TopUpRow>(LOCK_ID, [account, payment])
    const [known] = await tx.query<TopUpRow>(LOCK_PROVIDER, [account, at, providerId])
    if (known || ours?.provider !== at) return known
    if (ours.paid_at === null) return ours
    if (facts.status !== 'paid') return undefined
    // It is paid a second time, by another payment.
    const { purse_id, provider, currency, price_minor } = ours
    const [again] = await tx.query<TopUpRow>(INSERT, [
      account,
      newTopUp(),
      purse_id,
      provider,
      currency,
      price_minor,
      0n,
    ])
    return again
  }

  const newTopUp = () => `${TOP_UP}${newId(world)}`

  async function paid(tx: Queryable, row: TopUpRow, facts: PaymentFacts): Promise<TopUpRow> {
    const now: TopUpRow = {
      ...row,
      paid_at: new Date(Math.min(facts.asOfMs, world.nowMs())),
      amount_minor: facts.amountMinor,
    }
    const problem = await problemOf(tx, now, facts)
    if (problem !== undefined) return { ...now, state: 'quarantined', reason: problem }
    const note = `${row.provider === 'simulated' ? 'Test payment: ' : ''}${moneyOf(row, row.amount_minor)}`
    await put(tx, now, { kind: 'topup', by: row.credits, note, reference: row.id })
    return { ...now, state: 'paid', reason: null, granted: true }
  }

  /** Why the purse gets nothing for it. */
  async function problemOf(tx: Queryable, row: TopUpRow, facts: PaymentFacts): Promise<string | undefined> {
    const price = facts.amountMinor - facts.taxMinor
    if (row.credits === 0n) return `It was paid already, by another payment than ${facts.providerId}.`
    if (facts.currency !== row.currency || price !== row.price_minor)
      return `It should be ${moneyOf(row, row.price_minor)}, but is ${moneyOf(facts, price)}.`
    const { status, posted } = await lockPurse(tx, row.account_id, row.purse_id)
    if (status === 'closed') return 'The purse is closed.'
    return posted + row.credits > CREDITS_MAX ? 'The purse would have more than one can have.' : undefined
  }

  /**
   * Takes credits for money that was refunded or is disputed, as far as no call holds them, and returns them if the
   * money comes back.
   */
  async function takenBack(tx: Queryable, row: TopUpRow, facts: PaymentFacts): Promise<TopUpRow> {
    const refunded = facts.refundedMinor < row.amount_minor ? facts.refundedMinor : row.amount_minor
    let now: TopUpRow = {
      ...row,
      refunded_minor: refunded,
      disputed_minor: facts.disputedMinor,
      dispute: facts.dispute,
    }
    const isBack = refunded === row.amount_minor
    if (!row.granted) return isBack ? { ...now, state: 'refunded' } : now
    const due = owedBack(now) - row.taken - row.lost
    const { posted, held } = await lockPurse(tx, row.account_id, row.purse_id)
    const taken = due > 0n ? least(due, posted - held) : -least(-due, row.taken)
    now = { ...now, taken: row.taken + taken, lost: row.lost + due - taken }
    if (taken !== 0n) {
      const [kind, what] = taken > 0n ? (['takeback', 'Refund of'] as const) : (['topup', 'Returned to'] as const)
      await put(tx, row, {
        kind,
        by: -taken,
        note: `${what} ${moneyOf(row, row.amount_minor)}`,
        reference: `${row.id}-${newId(world)}`,
      })
    }
    const state = isDisputed(now) ? 'disputed' : isBack ? 'refunded' : 'paid'
    return { ...now, state, reason: isDisputed(now) ? DISPUTED[facts.dispute === 'open' ? 'open' : 'lost'] : null }
  }

  const put = (
    tx: Queryable,
    row: TopUpRow,
    entry: Pick<Parameters<typeof movePurse>[2], 'kind' | 'by' | 'note' | 'reference'>,
  ) => movePurse(tx, world, { ...entry, account: row.account_id, purse: row.purse_id, actor: row.provider })

  /** A provider without an API says by itself what changes. */
  async function remoteOf({ account_id: account, provider }: TopUpRow): Promise<RemoteProvider | undefined> {
    return provider === 'stripe' ? (await payments.provider(account, provider)).remote : undefined
  }

  async function refresh(row: TopUpRow): Promise<TopUpRow> {
    const remote = await remoteOf(row)
    const facts = await remote?.read({ providerId: row.provider_id, reference: row.reference })
    return (facts && (await apply(row.account_id, facts)))?.row ?? row
  }

  async function existing(account: string, id: string, purse?: string): Promise<TopUpRow> {
    const [row] = await database.query<TopUpRow>(BY_ID, [account, id])
    if (!row || (purse !== undefined && row.purse_id !== purse))
      throw new Fault('not_found', { message: 'There is no top-up with this id.' })
    return row
  }

  return {
    async begin(
      account: string,
      purse: string,
      { amount, currency, returnUrl }: { amount: string; currency?: string | undefined; returnUrl: string },
    ): Promise<{ id: string; credits: string; url: string }> {
      const { isOpen } = await requireAccount(database, account)
      const { status } = await findPurse(database, account, purse)
      if (status === 'closed')
        throw new Fault('conflict', { message: 'This purse is closed, and takes no more credits.' })
      const sale = isOpen ? await payments.sale(account) : undefined
      if (!sale) throw new Fault('conflict', { message: 'No credits are sold here.' })
      if (currency !== undefined && currency !== sale.currency)
        throw invalid(`currency: must be ${sale.currency}.`, 'currency')
      const { minor, credits } = orderOfAmount(sale.amounts, sale.currency, amount)
      checkStep(sale.provider, sale.currency, minor)
      if (credits === 0n) throw invalid('amount: is less than the smallest part of a credit costs.', 'amount')
      const [open] = await database.query<{ count: number }>(OPEN, [account, purse])
      if ((open?.count ?? 0) >= OPEN_MAX)
        throw new Fault('rate_limited', {
          message: 'Too many top-ups of this purse were started and not paid. Try again in an hour.',
          retryAfterSeconds: 3600,
        })
      const values = [account, newTopUp(), purse, sale.provider.name, sale.currency, minor, credits]
      const [row] = await database.query<TopUpRow>(INSERT, values)
      if (!row) throw new Fault('internal')
      const { id } = row
      const name = `${formatCredits(credits)} credits`
      const bought = { payment: id, account, offer: OFFER, name, currency: sale.currency, priceMinor: minor }
      const back = new URL(returnUrl)
      back.searchParams.set('topup', id)
      const options = { customer: null, email: null, saveCard: false, returnUrl: back.href }
      const { url, reference } = await sale.provider.checkout(bought, options)
      if (reference !== undefined) await database.query(REFER, [account, id, reference])
      return { id, credits: formatCredits(credits), url }
    },
    async list(account: string, { purse, state, cursor, limit }: TopUpFilter): Promise<Page<TopUpView>> {
      const values = [account, purse ?? null, state ?? null, cursor ?? '~', limit + 1]
      return asPage(await database.query<TopUpRow>(LIST, values), limit, viewOf)
    },
    /** `purse`: whose it must be. */
    get: async (account: string, id: string, purse: string): Promise<TopUpView> =>
      viewOf(await existing(account, id, purse)),
    /** The same, after asking the provider of one that is not paid, in case its events were lost. */
    async check(account: string, id: string, purse: string): Promise<TopUpView> {
      const row = await existing(account, id, purse)
      return viewOf(row.state === 'pending' ? await refresh(row) : row)
    },
    async refund(account: string, id: string, amount: string | undefined, by: By): Promise<TopUpView> {
      await requireAccount(database, account)
      const row = await existing(account, id)
      const minor = refundable(row, amount)
      const remote = await remoteOf(row)
      // What was refunded so far is part of the key, so that a refund that is asked for twice is made once.
      const key = `${row.id}-${row.refunded_minor}-${minor}`
      await remote?.refund(row.provider_id ?? '', { currency: row.currency, amountMinor: minor, key })
      const now = remote ? await refresh(row) : (await apply(account, refundOf(row, minor, world.nowMs())))?.row
      const detail = { purse: row.purse_id, amount: moneyOf(row, minor) }
      await database.transaction((tx) => audit.write(tx, by, { action: 'purse-topup.refund', object: id, detail }))
      return viewOf(now ?? row)
    },
    /** Checks who signed a report, and applies it. */
    async receive(account: string, body: Buffer, headers: Readonly<Record<string, string | undefined>>): Promise<void> {
      const name = headers['stripe-signature'] === undefined ? 'simulated' : 'stripe'
      const { facts } = await (await payments.provider(account, name)).receive(body, headers)
      if (facts) await apply(account, facts)
    },
    /** Those whose events may be lost, and those that nobody has paid. */
    async look(): Promise<void> {
      await database.query(GIVE_UP)
      for (const row of await database.query<TopUpRow>(WAITING))
        await refresh(row).catch((error: unknown) =>
          log.warn({ error, topUp: row.id }, 'the state of a top-up is still unknown'),
        )
    },
    /** By account. */
    reconciled: {
      owners: async () => (await database.query<{ id: string }>(SELLERS)).map(({ id }) => id),
      remote: async (account) => (await payments.provider(account, 'stripe')).remote,
      async apply(account, facts) {
        const applied = await apply(account, facts)
        if (applied) return { payment: applied.row.id, account, changes: applied.changes }
        // It was begun here, and is not known any more, as after a backup was restored.
        if (facts.account === account && facts.payment?.startsWith(TOP_UP))
          throw new Fault('not_found', { message: `There is no top-up ${facts.payment}.` })
        return undefined
      },
      unlisted: (account, { from, until, listed }) => database.query(UNLISTED, [account, from, until, listed]),
    } satisfies ReconciledPayments,
  }
}

const changesOf = (was: TopUpRow, now: TopUpRow) => [
  ...(was.state === now.state ? [] : [`it is ${now.state}, and was ${was.state}`]),
  ...(was.refunded_minor === now.refunded_minor ? [] : [`${moneyOf(now, now.refunded_minor)} were refunded`]),
]

const least = (a: bigint, b: bigint) => (a < b ? a : b)
const moneyOf = ({ currency }: { readonly currency: string }, minor: bigint) =>
  `${formatMoney(minor, currency)} ${currency}`

function viewOf(row: TopUpRow): TopUpView {
  const money = (minor: bigint) => formatMoney(minor, row.currency)
  return {
    ...asView(topUpView, row),
    purse: row.purse_id,
    amount: money(row.amount_minor),
    refunded: money(row.refunded_minor),
    creditsTaken: formatCredits(row.taken),
    creditsLost: formatCredits(row.lost),
  }
}

const save = (tx: Queryable, row: TopUpRow) =>
  tx.query(UPDATE, [
    row.account_id,
    row.id,
    row.provider_id,
    row.amount_minor,
    row.state,
    row.reason,
    row.granted,
    row.refunded_minor,
    row.disputed_minor,
    row.dispute,
    row.taken,
    row.lost,
    row.as_of,
    row.paid_at,
  ])

const COLUMNS = `account_id, id, purse_id, provider, provider_id, currency, price_minor, amount_minor, credits, state, reason, granted, refunded_minor, disputed_minor,
  dispute, taken, lost, reference, as_of, created_at, paid_at`
const BY_ID = sql('purse_topup')`select ${COLUMNS} from purse_topup where account_id = $1 and id = $2`
const LOCK_ID = sql('purse_topup_lock')`select ${COLUMNS} from purse_topup where account_id = $1 and id = $2 for update`
const LOCK_PROVIDER = sql('purse_topup_provider')`
  select ${COLUMNS} from purse_topup where account_id = $1 and provider = $2 and provider_id = $3 for update`
const INSERT = sql('purse_topup_insert')`
  insert into purse_topup (account_id, id, purse_id, provider, currency, price_minor, amount_minor, credits) values ($1, $2, $3, $4, $5, $6, $6, $7)
   returning ${COLUMNS}`
const UPDATE = sql('purse_topup_update')`
  update purse_topup set provider_id = $3, amount_minor = $4, state = $5, reason = $6, granted = $7, refunded_minor = $8, disputed_minor = $9, dispute = $10,
     taken = $11, lost = $12, as_of = $13, paid_at = $14 where account_id = $1 and id = $2`
const REFER = sql('purse_topup_refer')`update purse_topup set reference = $3 where account_id = $1 and id = $2`
const LIST = sql('purse_topup_list')`select ${COLUMNS} from purse_topup
   where account_id = $1 and ($2::text is null or purse_id = $2) and ($3::text is null or state = $3) and id < $4 order by id desc limit $5`
const OPEN = sql('purse_topup_open')`select count(*)::int as count from purse_topup
   where account_id = $1 and purse_id = $2 and state = 'pending' and created_at > now() - interval '1 hour'`
const GIVE_UP = sql('purse_topup_give_up')`
  update purse_topup set state = 'failed', reason = 'It was not paid within three days.' where state = 'pending' and created_at < now() - interval '3 days'`
// One that has moved to another database is compared there.
const SELLERS = sql('purse_topup_sellers')`
  select p.account_id as id from purse_payments p join account a on a.id = p.account_id
   where p.settings ->> 'provider' = 'stripe' and a.frozen_until > now() is not true order by 1`
const UNLISTED = sql('purse_topup_unlisted')`select id, account_id, provider_id from purse_topup
   where account_id = $1 and provider = 'stripe' and created_at >= $2 and paid_at < $3 and provider_id <> all($4) order by id`
const WAITING = sql('purse_topup_waiting')`
  select ${COLUMNS} from purse_topup where state = 'pending' and provider = 'stripe' and created_at between now() - interval '1 day' and now() - interval '10 minutes'
   order by id limit 100`
