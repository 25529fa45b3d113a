// Alerts of budgets: soft ones, and those of which so much is used.
import { type Queryable, statement } from '../database/database.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import type { AlertView } from './views.ts'

// How alerts compare: the thresholds of all rules as rows of a statement, and what is made of a row that crosses one.

export interface AlertFact {
  /** An account's id; empty for the gateway. */
  readonly scope: string
  readonly rule: AlertView['rule']
  readonly subject: string
  /** How severe it is, as text; `rank` orders the levels. */
  readonly level: string
  readonly rank: number
  readonly title: string
  readonly message: string
}

/** A column of the thresholds, one for each rule that compares a figure. */
type Threshold = 'below' | 'days' | 'share' | 'percent' | 'calls' | 'key_days' | 'job'
export const OWN = (COLUMN: string) => `not ${IS_TEST(COLUMN)}`
export const RULES = `with own as materialized (
     select * from jsonb_to_recordset($1::jsonb) as x(scope text, below bigint, days numeric, share numeric, percent numeric, calls bigint,
       key_days float8, job boolean)
   ), usual as (select * from own where scope is null)`
export const RULED = (account: string) => `cross join usual left join own on own.scope = ${account}`
export const RULE = (name: Threshold) => `case when own.scope is null then usual.${name} else own.${name} end`

export function fact(
  scope: string,
  rule: AlertFact['rule'],
  subject: string,
  about: { title: string; message: string; level?: string; rank?: number },
): AlertFact {
  return { scope, rule, subject, level: 'on', rank: 1, ...about }
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
export async function budgetAlerts(on: Queryable, thresholds: string): Promise<AlertFact[]> {
  const rows = await on.query<BudgetRow>(BUDGETS, [thresholds])
  return rows.map(({ account_id: account, id, name, scope, hard, percent, values, first }) => {
    const share = percent >= 100n ? '100' : String(percent)
    const more = values > BigInt(first.length) ? ` and ${values - BigInt(first.length)} more` : ''
    const then = hard ? 'At 100 % calls are rejected with 429.' : 'It is soft: calls continue.'
    return fact(account, 'limit', id, {
      ...{ level: share, rank: Number(share), title: `The budget ${name} has reached ${share} %` },
      message: `By ${scope}: ${first.join(', ')}${more}. ${then}`,
    })
  })
}

const BUDGETS = statement(
  'alert_budgets',
  `${RULES}
   select b.account_id, b.id, b.name, b.scope, b.hard, count(*) as values,
     -- The highest of the steps at which it tells again.
     max(case when n.used >= n.max then 100 else coalesce(b.alert_percent, ${RULE('share')}) end)::bigint as percent,
     (array_agg(substr(n.scope, length(b.id) + 2) order by n.used::numeric / greatest(n.max, 1) desc, n.scope))[1:3] as first
   from budget b ${RULED('b.account_id')}
     join counter c on c.account_id = b.account_id and c.scope >= b.id || '=' and c.scope < b.id || '>'
       and c.used > 0 and c.used::numeric * 100 >= c.max::numeric * coalesce(b.alert_percent, ${RULE('share')})
     cross join lateral counter_now(c, floor(extract(epoch from clock_timestamp()))::bigint) n
   where ${OWN('b.account_id')} and n.used > 0 and n.used::numeric * 100 >= n.max::numeric * coalesce(b.alert_percent, ${RULE('share')})
   group by b.account_id, b.id, b.name, b.scope, b.hard`,
)
