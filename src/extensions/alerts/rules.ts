// The rules of alerts: a rule is a row of `RULES`. Its schema with its words, the condition, and when it may fire again
// stand together; settings, the command, the console's form and the evaluation follow.
import * as z from 'zod'
import { type Queryable, type Statement, sql, statement } from '../../database/database.ts'
import { type Credits, formatCredits, parseCredits } from '../../kernel/credits.ts'
import { LABEL_NAME } from '../../kernel/label.ts'
import { IS_TEST } from '../../kernel/test-account.ts'
import { credits } from '../../kernel/view.ts'
import { LIMITS as SPENDING } from '../../meter/limits.ts'
import { HELD } from '../../reports/figures.ts'
import { readSpenders } from '../../reports/sums.ts'
import type { Incident } from '../../telemetry/incidents.ts'

/** A condition that is true now. */
interface Condition {
  /** An account's id; empty for the gateway. */
  readonly scope: string
  readonly subject: string
  /** How severe it is, as text; `rank` orders the levels. */
  readonly level: string
  readonly rank: number
  readonly title: string
  readonly message: string
}

export interface AlertFact extends Condition {
  readonly rule: AlertKind | 'test'
}

interface FailingVendor {
  readonly name: string
  readonly isRejected: boolean
  /** In words. */
  readonly reason: string | null
}

/** What only this process knows. */
export interface OwnConditions {
  /** Vendors whose circuit breaker is open in this process, or that reject their credential. */
  readonly failingVendors: () => readonly FailingVendor[]
  /** Vendors whose calls cost more than was held for them, within the last hour. */
  readonly overruns: () => ReadonlyArray<{ readonly vendor: string; readonly calls: number; readonly loss: Credits }>
  /** What is stored and unknown to this version: process/set-aside.ts. */
  readonly setAside: () => readonly string[]
  /** What keeps this process from its work. */
  readonly incidents: () => readonly Incident[]
}

interface Look {
  readonly on: Queryable
  readonly own: OwnConditions
  readonly rulesOf: (scope: string) => AlertRules
  /** Accounts with rules of their own. */
  readonly special: readonly string[]
  /** All rules, for statements. */
  readonly rules: string
}

type Reader = (look: Look) => Promise<readonly Condition[]>

interface Rule {
  /** Alerts are listed by it; rules of one kind are told as one. */
  readonly kind: string
  /** How long it must be clear before it may fire again. */
  readonly clears?: string
  /** That time begins when it was last true, and not when it fired. */
  readonly lasts?: true
  /** Absent: another rule of its kind reads it too. */
  readonly read?: Reader | readonly Reader[]
  readonly schema: z.ZodType
}

const condition = (
  scope: string,
  subject: string,
  about: { title: string; message: string; level?: string; rank?: number },
): Condition => ({ scope, subject, level: 'on', rank: 1, ...about })

// Parts of statements. The parameter is every scope with its rules; null: of the accounts without rules of their own.
const OWN_RULES = `with own as materialized (select * from jsonb_to_recordset($1::jsonb) as x(scope text, rules jsonb)),
   usual as (select * from own where scope is null)`
const RULED = (account: string) => `cross join usual left join own on own.scope = ${account}`
const RULE = (name: string, type: string) =>
  `(case when own.scope is null then usual.rules else own.rules end ->> '${name}')::${type}`
const LEAST_SHARE = `(select min(s::numeric) from jsonb_array_elements_text(${RULE('limitShares', 'jsonb')}) s)`
const NOT_TEST = (account: string) => `not ${IS_TEST(account)}`

/**
 * No statement has a limit over all accounts: an omitted condition would count as cleared and fire again at the next
 * evaluation.
 */
const asked = <Row extends object>(sql: Statement, conditionOf: (row: Row) => Condition): Reader => {
  return async ({ on, rules }) => (await on.query<Row>(sql, sql.text.includes('$1') ? [rules] : [])).map(conditionOf)
}

const BELOW = `a.posted - ${HELD('a')} < (${RULE('balanceBelow', 'numeric')} * 1000000)`
const ENDING = `s.week > 0 and (a.posted - ${HELD('a')})::numeric * 7 <= s.week * ${RULE('balanceDays', 'numeric')}`
const balances = asked<{ id: string; name: string; available: bigint; week: bigint }>(
  sql('alert_balances')`${OWN_RULES}, spent as (
       select account_id, sum(charged)::bigint as week from usage_hour where hour >= now() - interval '7 days' group by account_id
     )
     select a.id, a.name, a.posted - ${HELD('a')} as available, coalesce(s.week, 0)::bigint as week
     from account a left join spent s on s.account_id = a.id ${RULED('a.id')}
     -- What was moved to another database has its money there.
     where ${NOT_TEST('a.id')} and a.frozen_until is distinct from 'infinity' and a.status = 'open' and (${BELOW} or (${ENDING}))`,
  ({ id, name, available, week }) => {
    const daysLeft = (Number(available) / Number(week)) * 7
    const pace = week === 0n ? '' : ` At last week’s rate they last ${daysLeft.toFixed(1)} days.`
    const message = `${formatCredits(available)} credits are available.${pace} Calls that need more are rejected with 402; add credits.`
    return condition(id, id, { title: `The balance of ${name} is low`, message })
  },
)

interface LimitRow {
  readonly account_id: string
  /** The account, or the id of a key. */
  readonly scope: string
  readonly name: string
  readonly key_name: string | null
  readonly used: bigint
  readonly max: bigint
}

const LIMITS = sql('alert_limits')`${OWN_RULES}
   select n.account_id, n.scope, n.name, n.used, n.max, (select k.name from api_key k where k.id = n.scope) as key_name
   from counter c cross join lateral counter_now(c, floor(extract(epoch from clock_timestamp()))::bigint) n
   ${RULED('c.account_id')}
   where c.account_id <> '' and ${NOT_TEST('c.account_id')} and c.name <> 'budget' and c.unit = 'credits' and n.used > 0
     and n.used::numeric * 100 >= n.max::numeric * ${LEAST_SHARE}`
const limits: Reader = async ({ on, rules, rulesOf }) => {
  const rows = await on.query<LimitRow>(LIMITS, [rules])
  return rows.flatMap(({ account_id: account, scope, name, key_name: key, used, max }) => {
    const percent = max === 0n ? 100 : Number((used * 100n) / max)
    const share = Math.max(0, ...rulesOf(account).limitShares.filter((one) => one <= percent))
    if (share === 0) return []
    const whose = scope === 'account' ? 'the account' : `the key "${key ?? scope}"`
    const span = Object.entries(SPENDING).find(([limit]) => limit === name)?.[1].span
    const when = span === 'total' ? 'in total' : `this ${span} (UTC)`
    const message = `${formatCredits(used)} of the ${formatCredits(max)} credits that ${whose} may spend ${when} are spent. At 100 % calls are rejected with 429.`
    const title = `A spending limit has reached ${share} %`
    return [condition(account, `${scope} ${name}`, { level: String(share), rank: share, title, message })]
  })
}

interface BudgetRow {
  readonly account_id: string
  readonly id: string
  readonly name: string
  readonly scope: string
  readonly hard: boolean
  readonly percent: bigint
  readonly values: bigint
  readonly first: readonly string[]
}

/** One for each budget, however many values have come so far: users may be many. */
const budgets = asked<BudgetRow>(
  sql('alert_budgets')`${OWN_RULES}
     select b.account_id, b.id, b.name, b.scope, b.hard, count(*) as values,
       -- The highest of the steps at which it tells again.
       max(case when n.used >= n.max then 100 else coalesce(b.alert_percent, ${LEAST_SHARE}) end)::bigint as percent,
       (array_agg(substr(n.scope, length(b.id) + 2) order by n.used::numeric / greatest(n.max, 1) desc, n.scope))[1:3] as first
     from budget b ${RULED('b.account_id')}
       join counter c on c.account_id = b.account_id and c.scope >= b.id || '=' and c.scope < b.id || '>'
         and c.used > 0 and c.used::numeric * 100 >= c.max::numeric * coalesce(b.alert_percent, ${LEAST_SHARE})
       cross join lateral counter_now(c, floor(extract(epoch from clock_timestamp()))::bigint) n
     where ${NOT_TEST('b.account_id')} and n.used > 0 and n.used::numeric * 100 >= n.max::numeric * coalesce(b.alert_percent, ${LEAST_SHARE})
     group by b.account_id, b.id, b.name, b.scope, b.hard`,
  ({ account_id: account, id, name, scope, hard, percent, values, first }) => {
    const share = percent >= 100n ? '100' : String(percent)
    const more = values > BigInt(first.length) ? ` and ${values - BigInt(first.length)} more` : ''
    const then = hard ? 'At 100 % calls are rejected with 429.' : 'It is soft: calls continue.'
    const title = `The budget ${name} has reached ${share} %`
    const message = `By ${scope}: ${first.join(', ')}${more}. ${then}`
    return condition(account, id, { level: share, rank: Number(share), title, message })
  },
)

const failures = asked<{ account_id: string; requests: bigint; errors: bigint }>(
  sql('alert_failures')`${OWN_RULES}, recent as (
       select account_id, sum(requests)::bigint as requests, sum(errors)::bigint as errors from usage_hour
       where hour >= date_trunc('hour', now(), 'UTC') - interval '1 hour' and ${NOT_TEST('account_id')}
       group by account_id having sum(errors) > 0
     )
     select r.account_id, r.requests, r.errors from recent r ${RULED('r.account_id')}
     where r.requests >= ${RULE('failureCalls', 'bigint')} and r.errors * 100 >= r.requests * ${RULE('failurePercent', 'numeric')}`,
  ({ account_id: account, requests, errors }) => {
    const percent = Math.round((Number(errors) / Number(requests)) * 100)
    const message = `${errors} of ${requests} calls of this hour and the last have failed. The usage list says why.`
    return condition(account, account, { title: `${percent} % of the calls fail`, message })
  },
)

const keys = asked<{ id: string; account_id: string; name: string; expires_at: Date }>(
  sql('alert_keys')`${OWN_RULES}
     select k.id, k.account_id, k.name, k.expires_at from api_key k ${RULED('k.account_id')}
     where k.revoked_at is null and k.expires_at > now() and ${NOT_TEST('k.account_id')}
       and k.expires_at <= now() + make_interval(secs => 86400 * ${RULE('keyDays', 'float8')})`,
  ({ id, account_id: account, name, expires_at: ends }) => {
    const message = `It ends at ${ends.toISOString()}, and its calls are rejected with 401 from then on. Rotate it, or give it a later expiry.`
    return condition(account, id, { title: `The key ${name} ends soon`, message })
  },
)

/** Nothing is read for accounts without such a rule. */
const labels: Reader = async ({ on, rulesOf, special }) => {
  const found: Condition[] = []
  for (const account of special)
    for (const [label, amount] of Object.entries(rulesOf(account).labelSpend)) {
      const above = parseCredits(amount) ?? 0n
      for (const { value, charged } of await readSpenders(on, account, { label, above }))
        found.push(
          condition(account, `${label}=${value}`, {
            title: `${label} ${value} has spent ${formatCredits(charged)} credits in 24 hours`,
            message: `The rule is ${formatCredits(above)} credits for each ${label}. The usage page lists the calls: labels ${label}=${value}.`,
          }),
        )
    }
  return found
}

/**
 * The newest 20 of each account, so that an account with hundreds of failed jobs does not hide the others and is not
 * sent an alert for each.
 */
const jobs = asked<{ id: string; account_id: string; product: string; message: string | null }>(
  sql('alert_jobs')`${OWN_RULES}
     select id, account_id, product, message from (
       select j.id, j.account_id, j.product, j.error ->> 'message' as message,
         row_number() over (partition by j.account_id order by j.completed_at desc, j.id desc) as place
       from job j ${RULED('j.account_id')}
       where j.status = 'FAILED' and j.completed_at > now() - interval '1 hour' and ${NOT_TEST('j.account_id')} and ${RULE('jobFailed', 'boolean')}
     ) newest where place <= 20`,
  ({ id, account_id: account, product, message }) =>
    condition(account, id, { title: `A job of ${product} failed`, message: message ?? 'It was not charged.' }),
)

const vendors: Reader = async ({ own }) =>
  own.failingVendors().map(({ name, isRejected, reason }) => {
    if (isRejected)
      return condition('', name, { title: `${name} rejects its credential`, message: `A probe found: ${reason}` })
    const message = `The reason: ${reason}. Calls use routes to other vendors if there are any; the vendor’s page has details.`
    return condition('', name, { title: `The circuit breaker of ${name} is open`, message })
  })

const overruns: Reader = async ({ own }) =>
  own.overruns().map(({ vendor, calls, loss }) => {
    const lost = loss > 0n ? ` ${formatCredits(loss)} credits of it were not on the accounts, and are lost.` : ''
    const message = `${calls} of its calls in the last hour used more than was held for them.${lost} The page of each call says why: check how the vendor counts, the model's limits and its price.`
    return condition('', `${vendor} overrun`, {
      title: `Calls of ${vendor || 'the cache'} use more than was held`,
      message,
    })
  })

const verification = asked<{ id: string; problems: string[]; failure: string | null }>(
  sql('alert_verification')`select id, problems, failure from (
       select id, problems, failure from verification where ended_at is not null order by id desc limit 1
     ) last where failure is not null or problems <> '[]'`,
  ({ id, problems, failure }) => {
    const message = failure ?? problems.slice(0, 5).join(' ')
    return condition('', id, { title: 'A check of the ledger or the audit log found problems', message })
  },
)

/** Not those that an operator has paused. */
const exports = asked<{ id: string; name: string; error: string }>(
  sql('alert_exports')`select id, name, error from export where not open and error is not null order by id limit 100`,
  ({ id, name, error }) => {
    const message = `${error} Nothing is lost: correct it, and resume the export.`
    return condition('', id, { title: `The export ${name} is paused`, message })
  },
)

const quarantined = asked<{ id: string; reason: string | null }>(
  sql('alert_quarantined')`select id, reason from payment where state = 'quarantined'`,
  ({ id, reason }) => {
    const act = 'No credits were granted. Accept, refund or dismiss it on the page of payments.'
    return condition('', id, { title: 'A payment is quarantined', message: `${reason ?? ''} ${act}`.trim() })
  },
)
/** What the last comparison with the provider's list found. */
const reconciled = (name: string, WHOSE: string) =>
  asked<{ account_id: string; id: string; count: number; problem: string | null }>(
    statement(
      name,
      `${OWN_RULES}
       select r.* from (select distinct on (account_id) account_id, id, jsonb_array_length(differences) as count,
           coalesce(failure, differences -> 0 ->> 'problem') as problem
         from reconciliation where ended_at is not null order by account_id, id desc) r ${RULED('r.account_id')}
       where r.problem is not null and ${WHOSE}`,
    ),
    ({ account_id: account, id, count, problem }) => {
      const message = `${count} differences. ${problem ?? ''}`
      return condition(account, id, { title: 'Payments differ from the list of Stripe', message })
    },
  )
/** What customers of an account pay, by its own payment provider. */
const topUps = asked<{ account_id: string; id: string; purse_id: string; reason: string | null }>(
  sql('alert_top_ups')`${OWN_RULES}
     select t.account_id, t.id, t.purse_id, t.reason from purse_topup t ${RULED('t.account_id')}
     where t.state = 'quarantined' and ${NOT_TEST('t.account_id')} and ${RULE('topUps', 'boolean')}`,
  ({ account_id: account, id, purse_id: purse, reason }) => {
    const message = `${reason ?? ''} The purse ${purse} got no credits. Refund the top-up, or grant them.`.trim()
    return condition(account, id, { title: 'A top-up by a customer is quarantined', message })
  },
)

export const incidentCondition = ({ name, title, message }: Incident): Condition =>
  condition('', name, { title, message })

/** Labels whose spending one account watches: each is a sum over a day of calls. */
const LABELS_MAX = 5
const days = z.number().min(0.1).max(365).nullable()

/** Of the gateway: on or off. */
const gatewayRule = (title: string, words = title) =>
  z
    .boolean()
    .default(true)
    .meta({ title, description: `${words} (gateway only)`, of: 'gateway' })

/**
 * Null, false or nothing switches a rule off. `title`, `unit` and `usual` are words of the form, `description` and
 * `value` of the command. Balances change with every hold and failure rates with every call, so they must stay clear
 * for an hour; otherwise one near its threshold would fire every other minute. Each process has its own circuit
 * breakers, so a vendor counts as recovered after ten minutes in which no process saw its breaker open. A failed job
 * stays for two hours. A value of a label spends within a day, and is told once in a day.
 */
const RULES = {
  balanceBelow: {
    kind: 'balance',
    clears: '1 hour',
    lasts: true,
    schema: credits
      .refine(
        (text) => (parseCredits(text) ?? -1n) >= 0n,
        'must be an amount such as "12.5", with at most six decimals',
      )
      .nullable()
      .default(null)
      .meta({
        title: 'Available credits fall below',
        unit: 'credits',
        usual: '100',
        description: 'Fewer credits than this are available',
        value: 'credits',
        none: 'off',
      }),
  },
  balanceDays: {
    kind: 'balance',
    read: balances,
    schema: days
      .default(3)
      .meta({
        title: 'At last week’s rate the balance is used up within',
        unit: 'days',
        usual: '3',
        description: 'At the rate of the last seven days, the balance is used up within so many days',
        value: 'days',
        none: 'off',
      }),
  },
  limitShares: {
    kind: 'limit',
    read: [limits, budgets],
    schema: z
      .array(z.number().int().min(1).max(100))
      .max(10)
      .default([50, 80, 100])
      .meta({
        title: 'A spending limit of the account or a key reaches',
        unit: '%',
        usual: '50, 80, 100',
        description: 'Percentages of a spending limit, such as 50,80,100',
        value: 'list',
        none: 'off',
      }),
  },
  failurePercent: {
    kind: 'failures',
    clears: '1 hour',
    lasts: true,
    read: failures,
    schema: z
      .number()
      .min(1)
      .max(100)
      .nullable()
      .default(50)
      .meta({
        title: 'Failing calls in two hours reach',
        unit: '%',
        usual: '50',
        description: 'At least so many percent of the calls of the current and the previous hour failed',
        none: 'off',
      }),
  },
  failureCalls: {
    kind: 'failures',
    schema: z
      .number()
      .int()
      .min(1)
      .max(1_000_000)
      .default(20)
      .meta({
        title: 'of at least',
        unit: 'calls',
        usual: '20',
        after: 'failurePercent',
        description: 'Minimum number of calls for that',
      }),
  },
  keyDays: {
    kind: 'key',
    read: keys,
    schema: days
      .default(7)
      .meta({
        title: 'A key expires within',
        unit: 'days',
        usual: '7',
        description: 'A key expires within so many days',
        value: 'days',
        none: 'off',
      }),
  },
  labelSpend: {
    kind: 'label',
    clears: '1 day',
    read: labels,
    schema: z
      .record(z.string().regex(LABEL_NAME, 'must be the name of a label'), credits)
      .refine(
        (amounts) => Object.values(amounts).every((text) => (parseCredits(text) ?? 0n) > 0n),
        'must have an amount such as "5" for each label',
      )
      .refine((amounts) => Object.keys(amounts).length <= LABELS_MAX, `must have at most ${LABELS_MAX} labels`)
      .default({})
      .meta({
        title: 'An end user, tag or session spends more than this in 24 hours',
        unit: 'credits',
        usual: 'user=5',
        description: 'A value of a label, such as one end user, is charged so many credits in 24 hours: user=5',
        value: 'label=credits,…',
        none: 'off',
      }),
  },
  jobFailed: {
    kind: 'job',
    clears: '2 hours',
    read: jobs,
    schema: z.boolean().default(true).meta({ title: 'A job failed', description: 'A job failed' }),
  },
  topUps: {
    kind: 'topup',
    read: [topUps, reconciled('alert_top_ups_reconciled', `r.account_id <> '' and ${RULE('topUps', 'boolean')}`)],
    schema: z
      .boolean()
      .default(true)
      .meta({
        title: 'A customer’s top-up of a purse is quarantined, or top-ups differ from Stripe’s list',
        description: 'A top-up of a purse is quarantined, or top-ups differ from the list of Stripe',
      }),
  },
  vendorOpen: {
    kind: 'vendor',
    clears: '10 minutes',
    lasts: true,
    read: vendors,
    schema: gatewayRule('The circuit breaker of a vendor is open'),
  },
  chargeAboveHold: { kind: 'vendor', read: overruns, schema: gatewayRule('A call costs more than was held for it') },
  verification: {
    kind: 'verification',
    read: verification,
    schema: gatewayRule(
      'A check of the ledger or the audit log found problems or did not finish',
      'A check of the ledger or the audit log found problems',
    ),
  },
  exportPaused: {
    kind: 'export',
    read: exports,
    schema: gatewayRule(
      'An export of usage is paused because its receiver rejected it',
      'A receiver of usage rejected what was sent, and its export is paused',
    ),
  },
  setAside: {
    kind: 'stored',
    clears: '1 hour',
    lasts: true,
    read: async ({ own }: Look): Promise<Condition[]> =>
      own.setAside().map((part) => condition('', ...setAsideText(part))),
    schema: gatewayRule(
      'Stored data of another version is not used',
      'Stored data of another version of Tollgate is not used',
    ),
  },
  gateway: {
    kind: 'gateway',
    clears: '10 minutes',
    lasts: true,
    read: async ({ own }: Look): Promise<Condition[]> => own.incidents().map(incidentCondition),
    schema: gatewayRule(
      'The gateway cannot do its work',
      'The gateway cannot do its work, as when the database’s disk is full',
    ),
  },
  payments: {
    kind: 'payment',
    read: [quarantined, reconciled('alert_reconciled', `r.account_id = ''`)],
    schema: gatewayRule('A payment is quarantined, or payments differ from the payment provider’s list'),
  },
} as const satisfies Readonly<Record<string, Rule>>

type Rules = typeof RULES
type AlertKind = Rules[keyof Rules]['kind']

const ROWS: readonly (readonly [name: string, rule: Rule])[] = Object.entries(RULES)
/** The kinds of alerts, in the order of the rules. */
export const ALERT_KINDS = [...new Set(ROWS.map(([, { kind }]) => kind))] as [AlertKind, ...AlertKind[]] // There are rules.

export const alertRules = z.strictObject(
  // The same names.
  Object.fromEntries(ROWS.map(([name, { schema }]) => [name, schema])) as { [N in keyof Rules]: Rules[N]['schema'] },
)
export type AlertRules = z.infer<typeof alertRules>

/** The conditions that are true now. What was already told is left out by alerts.ts. */
export async function readConditions(look: Omit<Look, 'rules'>): Promise<AlertFact[]> {
  const { rulesOf, special } = look
  const own = special.map((scope) => ({ scope, rules: rulesOf(scope) }))
  const rules = JSON.stringify([{ scope: null, rules: alertRules.parse({}) }, ...own])
  const ofGateway: Readonly<Record<string, unknown>> = rulesOf('')
  const parts = await Promise.all(
    ROWS.flatMap(([name, { kind, read = [], schema }]) => {
      if (schema.meta()?.of === 'gateway' && !ofGateway[name]) return []
      return [read]
        .flat()
        .map(async (one) => (await one({ ...look, rules })).map((found) => ({ ...found, rule: kind })))
    }),
  )
  return parts.flat() as AlertFact[] // The kind is one of the table.
}

const LASTING = ROWS.flatMap(([, { kind, lasts }]) => (lasts ? [`'${kind}'`] : [])).join(', ')
const PAUSES = ROWS.flatMap(([, { kind, clears }]) =>
  clears ? [`when '${kind}' then interval '${clears}'`] : [],
).join(' ')

/** Lowers the level of conditions that have improved and removes those that have cleared. */
export const LOWER = sql('alert_lower')`with now_true as (
     select * from jsonb_to_recordset($1::jsonb) as x(scope text, rule text, subject text, rank int)
   ), fresh as (
     update alert_state s set rank = least(s.rank, n.rank), at = now() from now_true n
     where s.scope = n.scope and s.rule = n.rule and s.subject = n.subject and (n.rank < s.rank or s.rule in (${LASTING}))
   )
   delete from alert_state s where not exists (select 1 from now_true n where n.scope = s.scope and n.rule = s.rule and n.subject = s.subject)
     and s.at <= now() - case s.rule ${PAUSES} else interval '0' end`

/** Subject and text of an alert about what another version has stored. */
function setAsideText(part: string): [string, { title: string; message: string }] {
  const message = `${part}. A newer version of Tollgate may have stored it: finish the upgrade, or correct it.`
  return [part.split(':')[0] ?? part, { title: 'Stored data of another version is not used', message }]
}
