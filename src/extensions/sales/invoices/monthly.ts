// Invoices for a month: the credits that an account used and that neither a payment nor a gift covers, that is credits
// that an operator added by hand (a top-up on account), as they are used. They are counted from the first month on and
// what earlier invoices had is taken away, so that a month that was left out is in the next one.
import { sql } from '../../../database/database.ts'
import { putSetting, readSetting } from '../../../database/setting.ts'
import type { CoreParts } from '../../../extension.ts'
import { dayOfMs, monthStart, parseDay } from '../../../kernel/calendar.ts'
import { formatCredits } from '../../../kernel/credits.ts'
import type { Log } from '../../../kernel/log.ts'
import { IS_TEST } from '../../../kernel/test-account.ts'
import { formatMonth, monthRange, OVER_AFTER_MS } from '../../../ledger/usage-sums.ts'
import { type Billing, formatMoney } from '../../../reports/billing.ts'
import { BALANCE_AT } from '../../../reports/movements.ts'
import { parseMoney } from '../../billing/money.ts'
import type { Invoices } from './invoices.ts'

// What was added by hand and ended unused.
const EXPIRED_AT = (MOMENT: string) =>
  `coalesce((select sum(t.amount) from transfer t, jsonb_object_keys(t.lots) k join transfer g on g.id = k
      where t.account_id = a.id and g.account_id = a.id and g.kind = 'grant' and t.kind = 'expiry' and t.at < ${MOMENT}), 0)`
// What was added by hand and is no longer there: what calls took that nothing else paid for.
const UNPAID_AT = (MOMENT: string) =>
  `(coalesce((select sum(case when t.kind = 'grant' then t.amount else -t.amount end) from transfer t
      where t.account_id = a.id and t.kind in ('grant', 'takeback', 'payout', 'writeoff') and t.at < ${MOMENT}), 0) - ${EXPIRED_AT(MOMENT)} - ${BALANCE_AT(MOMENT)})`
const UNPAID = sql('invoice_unpaid', 600_000)`
  select a.id, (greatest(${UNPAID_AT('$3::timestamptz')}, 0) - greatest(${UNPAID_AT('$2::timestamptz')}, 0)
     - coalesce((select sum(i.credits) from invoice i where i.account_id = a.id and i.kind = 'month' and i.month >= ($2::timestamptz at time zone 'UTC')::date), 0))::bigint as credits
   from account a where a.id > $1 and a.ledger is null and not ${IS_TEST('a.id')} and a.created_at < $3 order by a.id limit $4`
const LOCK = sql('invoice_month_lock')`select pg_advisory_xact_lock(7046029264)`
const IS_MADE = sql('invoice_month_made')`select 1 from invoice where account_id = $1 and kind = 'month' and month = $2`
const DONE = 'invoiced-month'
const PAGE = 200

interface MonthDeps extends Pick<CoreParts, 'database' | 'world'> {
  readonly log: Pick<Log, 'warn'>
  readonly invoices: Pick<Invoices, 'settings' | 'missing' | 'issueMonth'>
  readonly billing: Pick<Billing, 'worthAt'>
}

/** Issues those of the last month that is over, once; answers how many. */
export async function invoiceMonths({ database, world, log, invoices, billing }: MonthDeps): Promise<number> {
  const { issuer, monthly, monthlySince } = await invoices.settings()
  const since = monthlySince === null ? undefined : parseDay(monthlySince)
  if (!issuer || !monthly || since === undefined) return 0
  const firstDay = monthStart(dayOfMs(world.nowMs() - OVER_AFTER_MS), -1)
  const done = await readSetting(database, DONE)
  const month = formatMonth(firstDay)
  if (firstDay < since || (done && done >= month)) return 0
  const { from, to } = monthRange(firstDay)
  const worth = await billing.worthAt(to.getTime())
  if (!worth) {
    log.warn({ month }, 'months cannot be invoiced: the worth of a credit is not set')
    return 0
  }
  let count = 0
  for (let after = ''; ; ) {
    const range = [monthRange(since).from, to]
    const rows = await database.query<{ id: string; credits: bigint }>(UNPAID, [after, ...range, PAGE])
    for (const { id: account, credits } of rows) {
      const netMinor = credits > 0n ? (parseMoney(formatMoney(credits, worth), worth.currency) ?? 0n) : 0n
      if (netMinor === 0n) continue
      const missing = await invoices.missing(account)
      if (missing) log.warn({ account, missing }, 'an account without billing details is invoiced with a later month')
      else if (await issue(account, credits, netMinor)) count += 1
    }
    if (rows.length < PAGE) break
    after = rows.at(-1)?.id ?? ''
  }
  await putSetting(database, DONE, month)
  return count

  /** One process at a time, and each looks whether another has been there. */
  function issue(account: string, credits: bigint, netMinor: bigint): Promise<boolean> {
    return database.transaction(async (tx) => {
      await tx.query(LOCK)
      if ((await tx.query(IS_MADE, [account, from])).length > 0) return false
      await invoices.issueMonth(tx, {
        account,
        credits,
        netMinor,
        firstDay,
        lastDay: monthStart(firstDay, 1) - 1,
        // Of the worth that was just read.
        currency: worth?.currency ?? '',
        description: `Usage in ${month}: ${formatCredits(credits)} credits`,
      })
      return true
    })
  }
}
