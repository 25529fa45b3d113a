// Automatic top-up: when the balance falls below the account's threshold, the saved card is charged, up to a ceiling
// per calendar month. Every process checks this every few seconds, outside of calls. A unique index allows one pending
// top-up per account, so several processes make one charge.

import type { CatalogStore } from '../../catalog/store.ts'
import type { Audit, By } from '../../database/audit.ts'
import { type Database, type Queryable, sql } from '../../database/database.ts'
import { type Credits, formatCredits } from '../../kernel/credits.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import type { Log } from '../../kernel/log.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import { formatMoney, parseMoney } from '../billing/money.ts'
import { checkStep, creditsFor } from '../billing/payments/amounts.ts'
import type { PaymentRow } from './payment-rows.ts'
import type { Payments } from './payments.ts'
import type { SalesView, TopUpView } from './views.ts'

interface TopUpInput {
  readonly below: Credits
  readonly amount: string
  readonly ceiling: string
}

interface TopUpRow {
  account_id: string
  card: { brand: string; last4: string; expires: string } | null
  method_id: string | null
  top_up_below: bigint | null
  top_up_minor: bigint
  top_up_ceiling_minor: bigint
  top_up_currency: string
  top_up_problem: string | null
  used: bigint
  low: boolean
}

const MONTH = `date_trunc('month', now(), 'UTC')`
// What running calls hold comes back for the most part, so it is no reason to charge a card.
const LOW = `a.posted < c.top_up_below`
const READY = `c.top_up_below is not null and c.method_id is not null and coalesce(c.top_up_after <= now(), true) and a.status = 'open' and a.frozen_until is null`
// In the same snapshot as the balance: if another process is charging, either its pending payment or its credits are
// visible.
const NOT_PENDING = `not exists (select 1 from payment p where p.account_id = c.account_id and p.kind = 'top_up' and p.state = 'pending')`
const DUE = sql('top_up_due')`select c.account_id from payment_customer c join account a on a.id = c.account_id
   where ${READY} and ${LOW} and ${NOT_PENDING} limit 100`
const COLUMNS = `c.account_id, c.card, c.method_id, c.top_up_below, c.top_up_minor, c.top_up_ceiling_minor, c.top_up_currency, c.top_up_problem,
  (select coalesce(sum(p.amount_minor), 0)::bigint from payment p where p.account_id = c.account_id and p.kind = 'top_up' and p.state <> 'failed' and p.created_at >= ${MONTH}) as used`
const LOCK = sql('top_up_lock')`select 1 from payment_customer where account_id = $1 for update`
// A statement of its own after the lock, so that its snapshot is not older than the lock.
const CLAIM = sql('top_up_claim')`
  select ${COLUMNS}, ${READY} and ${LOW} and ${NOT_PENDING} as low from payment_customer c join account a on a.id = c.account_id where c.account_id = $1`
const VIEW = sql('top_up_view')`select ${COLUMNS}, false as low from payment_customer c where c.account_id = $1`
// A declined card is tried again after one hour, then after four; then not until the customer changes the settings.
const ENDED = sql('top_up_ended')`
  update payment_customer set top_up_problem = $2, top_up_failures = case when $2::text is null then 0 else top_up_failures + 1 end,
     top_up_after = case when $2::text is null then null when top_up_failures = 0 then now() + interval '1 hour' when top_up_failures = 1 then now() + interval '4 hours' else 'infinity' end
   where account_id = $1`
const PAUSE = sql('top_up_pause')`
  update payment_customer set top_up_problem = $2, top_up_after = ${MONTH} + interval '1 month' where account_id = $1`
const WAIT = sql('top_up_wait')`
  update payment_customer set top_up_after = now() + interval '1 minute' where account_id = $1`
const PUT = sql('top_up_put')`
  update payment_customer set top_up_below = $2, top_up_minor = $3, top_up_ceiling_minor = $4, top_up_currency = $5, top_up_by = $6,
     top_up_problem = null, top_up_failures = 0, top_up_after = null where account_id = $1 returning method_id`

export function createTopUps(options: {
  database: Database
  catalog: CatalogStore
  audit: Audit
  payments: Payments
  log: Log
}) {
  const { database, catalog, audit, payments, log } = options

  /** Undefined: nothing to charge, or another process charges it. */
  async function claim(tx: Queryable, account: string): Promise<PaymentRow | undefined> {
    await tx.query(LOCK, [account])
    const [row] = await tx.query<TopUpRow>(CLAIM, [account])
    if (!row?.low) return undefined
    const { top_up_minor: minor, top_up_ceiling_minor: ceiling, top_up_currency: currency, used } = row
    const { sales } = catalog.current.document
    const pause = async (why: string) => {
      await tx.query(PAUSE, [account, why])
      return undefined
    }
    if (!sales?.amounts || sales.currency !== currency)
      return pause('The price of credits has changed: set it up again.')
    if (used + minor > ceiling) return pause(ceilingReached(row))
    // No other top-up for a minute, whatever the result of this one.
    await tx.query(WAIT, [account])
    const credits = creditsFor({ currency, ...sales.amounts }, minor)
    const name = `${formatCredits(credits)} credits (automatic top-up)`
    return payments.order(tx, { account, kind: 'top_up', name, currency, priceMinor: minor, credits, person: null })
  }

  /** Checks the ceiling with the tax, which is known only now. */
  async function aboveCeiling({ account_id: account }: PaymentRow): Promise<string | undefined> {
    const [row] = await database.query<TopUpRow>(VIEW, [account])
    return row && row.used > row.top_up_ceiling_minor ? ceilingReached(row) : undefined
  }

  async function charge(row: PaymentRow): Promise<boolean> {
    let ceiling: string | undefined
    const done =
      row.state === 'pending'
        ? await payments.charge(row, async (fixed) => {
            ceiling = await aboveCeiling(fixed)
            return ceiling
          })
        : row
    if (done.state === 'pending') return false
    // A quarantined payment counts as a failure too. Otherwise the card would be charged again and again without
    // credits.
    const problem = done.state === 'paid' ? null : (done.reason ?? 'The card was declined.')
    await database.query(ceiling === undefined ? ENDED : PAUSE, [row.account_id, ceiling ?? problem])
    return done.state === 'paid'
  }

  return {
    /** Charges the cards of all accounts below their threshold. Returns how many were charged. */
    async look(): Promise<number> {
      let count = 0
      for (const { account_id: account } of await database.query<{ account_id: string }>(DUE))
        try {
          const row = await database.transaction((tx) => claim(tx, account))
          if (row && (await charge(row))) count += 1
        } catch (error) {
          log.warn({ error, account }, 'an automatic top-up was not completed; it will be tried again')
        }
      await payments.finish('top_up', async (row) => {
        if (await charge(row)) count += 1
      })
      return count
    },
    async view(account: string): Promise<{ card: SalesView['card']; topUp: TopUpView | null }> {
      const [row] = await database.query<TopUpRow>(VIEW, [account])
      if (!row) return { card: null, topUp: null }
      const { card, top_up_below: below, top_up_currency: currency, top_up_problem: problem } = row
      const shown = card && { brand: card.brand, last4: card.last4, expires: card.expires }
      if (below === null) return { card: shown, topUp: null }
      const money = (minor: bigint) => formatMoney(minor, currency)
      const topUp = {
        below: formatCredits(below),
        currency,
        problem,
        used: money(row.used),
        amount: money(row.top_up_minor),
        ceiling: money(row.top_up_ceiling_minor),
      }
      return { card: shown, topUp }
    },
    /** Null: no more automatic top-ups. */
    async change(account: string, settings: TopUpInput | null, by: By): Promise<void> {
      if (isTestAccount(account)) throw new Fault('conflict', { message: 'A test account has no automatic top-up.' })
      const { sales } = catalog.current.document
      const values = settings === null ? [null, null, null, null] : valuesOf(sales, settings)
      const at = await payments.provider()
      if (at && typeof values[1] === 'bigint') checkStep(at, sales?.currency ?? '', values[1])
      await database.transaction(async (tx) => {
        const before = await audited(tx, account)
        const [row] = await tx.query<{ method_id: string | null }>(PUT, [account, ...values, by.actor])
        if (settings !== null && !row?.method_id)
          throw new Fault('conflict', { message: 'Save a card first: automatic top-up charges it.' })
        await audit.write(tx, by, {
          action: 'payment.top-up',
          object: account,
          before,
          after: await audited(tx, account),
        })
      })
    },
  }
}

/** The settings, for the audit log. */
async function audited(tx: Queryable, account: string) {
  const [row] = await tx.query<TopUpRow>(VIEW, [account])
  if (!row || row.top_up_below === null) return { topUp: 'off' }
  const money = (minor: bigint) => formatMoney(minor, row.top_up_currency)
  const [amount, ceiling] = [money(row.top_up_minor), money(row.top_up_ceiling_minor)]
  return { topUp: 'on', below: formatCredits(row.top_up_below), amount, ceiling }
}

const ceilingReached = ({ top_up_ceiling_minor: ceiling, top_up_currency: currency }: TopUpRow) =>
  `The ceiling of ${formatMoney(ceiling, currency)} ${currency} for this month is reached.`

function valuesOf(
  sales: CatalogStore['current']['document']['sales'],
  { below, amount, ceiling }: TopUpInput,
): [bigint, bigint, bigint, string] {
  if (!sales?.amounts) throw new Fault('conflict', { message: 'Free amounts are not sold here.' })
  const { minimumMinor, maximumMinor } = sales.amounts
  const [minor, most] = [parseMoney(amount, sales.currency), parseMoney(ceiling, sales.currency)]
  if (minor === undefined || minor < minimumMinor || minor > maximumMinor)
    throw invalid(
      `amount: must be between ${formatMoney(minimumMinor, sales.currency)} and ${formatMoney(maximumMinor, sales.currency)} ${sales.currency}.`,
      'amount',
    )
  if (most === undefined || most < minor)
    throw invalid('ceiling: must be an amount, at least that of one top-up.', 'ceiling')
  if (below <= 0n) throw invalid('below: must be above 0.', 'below')
  return [below, minor, most, sales.currency]
}
