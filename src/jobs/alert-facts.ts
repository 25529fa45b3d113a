// What is worth an alert right now, by the database's own figures. A fact is true or it is not; alerts.ts tells when one has become true.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import type { AlertRules, AlertView } from './alert-views.ts'

export interface AlertFact {
  /** An account; empty for the gateway. */
  readonly scope: string
  readonly rule: AlertView['rule']
  readonly subject: string
  /** How far it has come; `rank` says which of two is more. */
  readonly level: string
  readonly rank: number
  readonly title: string
  readonly message: string
}

type RulesOf = (scope: string) => AlertRules

const HORIZON_DAYS = 365

export async function readFacts(on: Queryable, rulesOf: RulesOf, special: readonly string[]): Promise<AlertFact[]> {
  const parts = await Promise.all([
    balances(on, rulesOf, special),
    limits(on, rulesOf),
    failures(on, rulesOf),
    keys(on, rulesOf),
    jobs(on, rulesOf),
    verification(on, rulesOf),
  ])
  return parts.flat()
}

/** `special`: accounts with rules of their own, which may have thresholds in credits. */
async function balances(on: Queryable, rulesOf: RulesOf, special: readonly string[]): Promise<AlertFact[]> {
  const rows = await on.query<{ id: string; name: string; available: bigint; week: bigint }>(BALANCES, [
    special,
    HORIZON_DAYS,
  ])
  return rows.flatMap(({ id, name, available, week }) => {
    const { balanceBelow, balanceDays } = rulesOf(id)
    const least = balanceBelow === null ? undefined : parseCredits(balanceBelow)
    const daysLeft = week === 0n ? Number.POSITIVE_INFINITY : (Number(available) / Number(week)) * 7
    const isBelow = least !== undefined && available < least
    if (!isBelow && !(balanceDays !== null && daysLeft <= balanceDays)) return []
    const pace = week === 0n ? '' : ` At the pace of the last seven days they last ${daysLeft.toFixed(1)} days.`
    const message = `${formatCredits(available)} credits are available.${pace} Calls that need more are refused with 402; add credits.`
    return [fact(id, 'balance', id, { title: `The balance of ${name} is low`, message })]
  })
}

async function limits(on: Queryable, rulesOf: RulesOf): Promise<AlertFact[]> {
  const rows = await on.query<{ account_id: string; scope: string; name: string; used: bigint; max: bigint }>(LIMITS)
  return rows.flatMap(({ account_id: account, scope, name, used, max }) => {
    const percent = max === 0n ? 100 : Number((used * 100n) / max)
    const share = Math.max(0, ...rulesOf(account).limitShares.filter((one) => one <= percent))
    if (share === 0) return []
    const whose = scope === 'account' ? 'the account' : `key ${scope}`
    return [
      fact(account, 'limit', `${scope} ${name}`, {
        level: String(share),
        rank: share,
        title: `${share} % of a limit on spending is used`,
        message: `${formatCredits(used)} of ${formatCredits(max)} credits of ${name} of ${whose} are spent. At 100 % calls are refused with 429.`,
      }),
    ]
  })
}

async function failures(on: Queryable, rulesOf: RulesOf): Promise<AlertFact[]> {
  const rows = await on.query<{ account_id: string; requests: bigint; errors: bigint }>(FAILURES)
  return rows.flatMap(({ account_id: account, requests, errors }) => {
    const { failurePercent, failureCalls } = rulesOf(account)
    const percent = (Number(errors) / Number(requests)) * 100
    if (failurePercent === null || requests < BigInt(failureCalls) || percent < failurePercent) return []
    const message = `${errors} of ${requests} calls of this hour and the last have failed. The usage list says why.`
    return [fact(account, 'failures', account, { title: `${Math.round(percent)} % of the calls fail`, message })]
  })
}

async function keys(on: Queryable, rulesOf: RulesOf): Promise<AlertFact[]> {
  const rows = await on.query<{ id: string; account_id: string; name: string; expires_at: Date; days: number }>(KEYS, [
    HORIZON_DAYS,
  ])
  return rows.flatMap(({ id, account_id: account, name, expires_at: ends, days }) => {
    const { keyDays } = rulesOf(account)
    if (keyDays === null || days > keyDays) return []
    const message = `It ends at ${ends.toISOString()}, and is refused with 401 from then on. Rotate it, or give it a later end.`
    return [fact(account, 'key', id, { title: `The key ${name} ends soon`, message })]
  })
}

async function jobs(on: Queryable, rulesOf: RulesOf): Promise<AlertFact[]> {
  const rows = await on.query<{ id: string; account_id: string; product: string; message: string | null }>(JOBS)
  return rows.flatMap(({ id, account_id: account, product, message }) =>
    rulesOf(account).jobFailed
      ? [fact(account, 'job', id, { title: `A job of ${product} failed`, message: message ?? 'It was not charged.' })]
      : [],
  )
}

async function verification(on: Queryable, rulesOf: RulesOf): Promise<AlertFact[]> {
  const [row] = await on.query<{ id: string; problems: string[]; failure: string | null }>(VERIFICATION)
  if (!row || !rulesOf('').verification || (row.problems.length === 0 && row.failure === null)) return []
  const message = row.failure ?? row.problems.slice(0, 5).join(' ')
  return [fact('', 'verification', row.id, { title: 'The ledger or the audit trail is not as it should be', message })]
}

export function fact(
  scope: string,
  rule: AlertFact['rule'],
  subject: string,
  about: { title: string; message: string; level?: string; rank?: number },
): AlertFact {
  return { scope, rule, subject, level: 'on', rank: 1, ...about }
}

const OWN = (COLUMN: string) => `not ${IS_TEST(COLUMN)}`
const BALANCES = statement(
  'alert_balances',
  `select a.id, a.name, a.posted - a.held as available, coalesce(s.week, 0)::bigint as week from account a left join (
     select account_id, sum(charged)::bigint as week from usage_hour where hour >= now() - interval '7 days' group by account_id
   ) s on s.account_id = a.id
   where ${OWN('a.id')} and (a.id = any($1) or (s.week > 0 and (a.posted - a.held) * 7 < s.week * $2::int)) limit 10000`,
)
const LIMITS = statement(
  'alert_limits',
  `select n.account_id, n.scope, x.name, x.used, (n.limits ->> x.name)::bigint as max
   from limited l cross join lateral limited_now(l, floor(extract(epoch from clock_timestamp()))::bigint, (now() at time zone 'UTC')::date) n
   cross join lateral (values ('spendPerDay', n.day_spent), ('spendPerMonth', n.month_spent), ('spendTotal', n.total_spent)) as x(name, used)
   where l.account_id <> '' and ${OWN('l.account_id')} and n.limits ? x.name and x.used > 0 limit 10000`,
)
const FAILURES = statement(
  'alert_failures',
  `select account_id, sum(requests)::bigint as requests, sum(errors)::bigint as errors from usage_hour
   where hour >= date_trunc('hour', now(), 'UTC') - interval '1 hour' and ${OWN('account_id')}
   group by account_id having sum(errors) > 0 limit 10000`,
)
const KEYS = statement(
  'alert_keys',
  `select id, account_id, name, expires_at, extract(epoch from expires_at - now())::float8 / 86400 as days from api_key
   where revoked_at is null and expires_at between now() and now() + make_interval(days => $1) and ${OWN('account_id')} limit 10000`,
)
const JOBS = statement(
  'alert_jobs',
  `select id, account_id, product, error ->> 'message' as message from job
   where status = 'FAILED' and completed_at > now() - interval '1 hour' and ${OWN('account_id')} limit 1000`,
)
const VERIFICATION = statement(
  'alert_verification',
  'select id, problems, failure from verification where ended_at is not null order by id desc limit 1',
)
