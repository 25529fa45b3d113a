// What is worth an alert right now, by the database's own figures. A fact is true or it is not; alerts.ts tells when one has become true.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import { HELD } from '../ledger/available.ts'
import { type AlertRules, type AlertView, alertRules } from './views.ts'

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

export async function readFacts(on: Queryable, rulesOf: RulesOf, special: readonly string[]): Promise<AlertFact[]> {
  const thresholds = JSON.stringify([
    thresholdsOf(null, alertRules.parse({})),
    ...special.map((scope) => thresholdsOf(scope, rulesOf(scope))),
  ])
  const parts = await Promise.all([
    balances(on, thresholds),
    limits(on, thresholds, rulesOf),
    failures(on, thresholds),
    keys(on, thresholds),
    jobs(on, thresholds),
    verification(on, rulesOf),
  ])
  return parts.flat()
}

/** For the statements, which answer only what is worth an alert: of an account with rules of its own; of null those of all others. */
function thresholdsOf(scope: string | null, rules: AlertRules) {
  const { balanceBelow, balanceDays, limitShares, failurePercent, failureCalls, keyDays, jobFailed } = rules
  return {
    scope,
    below: balanceBelow === null ? null : (parseCredits(balanceBelow)?.toString() ?? null),
    days: balanceDays,
    share: limitShares.length === 0 ? null : Math.min(...limitShares),
    percent: failurePercent,
    calls: failureCalls,
    key_days: keyDays,
    job: jobFailed,
  }
}

async function balances(on: Queryable, thresholds: string): Promise<AlertFact[]> {
  const rows = await on.query<{ id: string; name: string; available: bigint; week: bigint }>(BALANCES, [thresholds])
  return rows.map(({ id, name, available, week }) => {
    const daysLeft = (Number(available) / Number(week)) * 7
    const pace = week === 0n ? '' : ` At the pace of the last seven days they last ${daysLeft.toFixed(1)} days.`
    const message = `${formatCredits(available)} credits are available.${pace} Calls that need more are refused with 402; add credits.`
    return fact(id, 'balance', id, { title: `The balance of ${name} is low`, message })
  })
}

async function limits(on: Queryable, thresholds: string, rulesOf: RulesOf): Promise<AlertFact[]> {
  const rows = await on.query<{ account_id: string; scope: string; name: string; used: bigint; max: bigint }>(LIMITS, [
    thresholds,
  ])
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

async function failures(on: Queryable, thresholds: string): Promise<AlertFact[]> {
  const rows = await on.query<{ account_id: string; requests: bigint; errors: bigint }>(FAILURES, [thresholds])
  return rows.map(({ account_id: account, requests, errors }) => {
    const percent = (Number(errors) / Number(requests)) * 100
    const message = `${errors} of ${requests} calls of this hour and the last have failed. The usage list says why.`
    return fact(account, 'failures', account, { title: `${Math.round(percent)} % of the calls fail`, message })
  })
}

async function keys(on: Queryable, thresholds: string): Promise<AlertFact[]> {
  const rows = await on.query<{ id: string; account_id: string; name: string; expires_at: Date }>(KEYS, [thresholds])
  return rows.map(({ id, account_id: account, name, expires_at: ends }) => {
    const message = `It ends at ${ends.toISOString()}, and is refused with 401 from then on. Rotate it, or give it a later end.`
    return fact(account, 'key', id, { title: `The key ${name} ends soon`, message })
  })
}

async function jobs(on: Queryable, thresholds: string): Promise<AlertFact[]> {
  const rows = await on.query<{ id: string; account_id: string; product: string; message: string | null }>(JOBS, [
    thresholds,
  ])
  return rows.map(({ id, account_id: account, product, message }) =>
    fact(account, 'job', id, { title: `A job of ${product} failed`, message: message ?? 'It was not charged.' }),
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
// No statement has a limit over all accounts: what one look left out would count as over, and fire anew at the next.
const RULES = `with own as materialized (
     select * from jsonb_to_recordset($1::jsonb) as x(scope text, below bigint, days numeric, share numeric, percent numeric, calls bigint,
       key_days float8, job boolean)
   ), usual as (select * from own where scope is null)`
const RULED = (account: string) => `cross join usual left join own on own.scope = ${account}`
const RULE = (name: keyof ReturnType<typeof thresholdsOf>) =>
  `case when own.scope is null then usual.${name} else own.${name} end`
const BALANCES = statement(
  'alert_balances',
  `${RULES}, spent as (
     select account_id, sum(charged)::bigint as week from usage_hour where hour >= now() - interval '7 days' group by account_id
   )
   select a.id, a.name, a.posted - ${HELD('a')} as available, coalesce(s.week, 0)::bigint as week
   from account a left join spent s on s.account_id = a.id ${RULED('a.id')}
   -- What was moved to another database has its money there.
   where ${OWN('a.id')} and a.frozen_until is distinct from 'infinity' and (a.posted - ${HELD('a')} < ${RULE('below')} or (s.week > 0 and (a.posted - ${HELD('a')})::numeric * 7 <= s.week * ${RULE('days')}))`,
)
const LIMITS = statement(
  'alert_limits',
  `${RULES}
   select n.account_id, n.scope, n.name, n.used, n.max
   from counter c cross join lateral counter_now(c, floor(extract(epoch from clock_timestamp()))::bigint) n
   ${RULED('c.account_id')}
   where c.account_id <> '' and ${OWN('c.account_id')} and c.unit = 'credits' and n.used > 0 and n.used::numeric * 100 >= n.max::numeric * ${RULE('share')}`,
)
const FAILURES = statement(
  'alert_failures',
  `${RULES}, recent as (
     select account_id, sum(requests)::bigint as requests, sum(errors)::bigint as errors from usage_hour
     where hour >= date_trunc('hour', now(), 'UTC') - interval '1 hour' and ${OWN('account_id')}
     group by account_id having sum(errors) > 0
   )
   select r.account_id, r.requests, r.errors from recent r ${RULED('r.account_id')}
   where r.requests >= ${RULE('calls')} and r.errors * 100 >= r.requests * ${RULE('percent')}`,
)
const KEYS = statement(
  'alert_keys',
  `${RULES}
   select k.id, k.account_id, k.name, k.expires_at from api_key k ${RULED('k.account_id')}
   where k.revoked_at is null and k.expires_at > now() and ${OWN('k.account_id')}
     and k.expires_at <= now() + make_interval(secs => 86400 * ${RULE('key_days')})`,
)
// The newest of each account: whose jobs fail by the hundred hides nobody else's, and does not need to hear of each.
const JOBS = statement(
  'alert_jobs',
  `${RULES}
   select id, account_id, product, message from (
     select j.id, j.account_id, j.product, j.error ->> 'message' as message,
       row_number() over (partition by j.account_id order by j.completed_at desc, j.id desc) as place
     from job j ${RULED('j.account_id')}
     where j.status = 'FAILED' and j.completed_at > now() - interval '1 hour' and ${OWN('j.account_id')} and ${RULE('job')}
   ) newest where place <= 20`,
)
const VERIFICATION = statement(
  'alert_verification',
  'select id, problems, failure from verification where ended_at is not null order by id desc limit 1',
)
