// Compares the counters of budgets with what was used, by the labels of calls.
import { type Queryable, statement } from '../database/database.ts'
import { judge } from './rules.ts'

interface BudgetCounter {
  readonly scope: string
  readonly unit: string
  readonly span: string
  readonly used: bigint
  /** Of a rolling window: the sum of its slots. */
  readonly sum: bigint
  /** As its budget says: null where there is none. */
  readonly is_right: boolean | null
  /** Bounds of what was spent, and the calls that were certainly counted. */
  readonly least: bigint
  readonly most: bigint
  readonly calls: bigint
}

/** For so long a process may still admit calls by what it leased before a budget was made; clocks of processes may differ by as much. */
const LATE = `interval '60 seconds'`
/** When a call began, as its id says. */
const BEGAN = (MOMENT: string) => `u.id >= left(id_at(${MOMENT}, ''), 10)`
const SPAN_STARTS = `case when c.span in ('day', 'week', 'month') then to_timestamp(c.second) else '-infinity' end`

/**
 * A charge is counted when it is posted, a request when it is admitted. What was posted is in `usage.at`, which is when the transaction began: a little earlier. Labels
 * of the gateway's own begin with a colon; a key counts as the first of those that it replaced.
 */
const COUNTERS = statement(
  'verify_budgets',
  `with named as materialized (
     select c.*, b.account_id is not null as known, b.created_at,
       b.unit = c.unit and b.span = c.span and b.hard <> c.soft and (c.own_max or b.max = c.max) and c.width = coalesce((b.window_seconds + 59) / 60, 1) as is_right,
       ${SPAN_STARTS} as starts
     from counter c left join budget b on b.account_id = c.account_id and b.id = split_part(c.scope, '=', 1) where c.account_id = $1 and c.name = 'budget'
   ), used as (
     select b.id || '=' || x.value as scope, u.id, u.at, u.charged, u.outcome, b.created_at
     from budget b join usage u on u.account_id = $1
       cross join lateral (select case when b.scope = 'key' then coalesce((select k.first_id from api_key k where k.id = u.key_id), u.key_id)
         else u.labels ->> case when b.scope like 'tag:%' then substr(b.scope, 5) when b.scope in ('user', 'session') then b.scope else ':' || b.scope end end as value) x
     where b.account_id = $1 and x.value is not null and (b.value is null or b.value = x.value)
   ), sums as (
     select c.scope,
       sum(u.charged) filter (where u.at >= greatest(c.since, c.starts) and ${BEGAN(`c.created_at + ${LATE}`)})::bigint as least,
       sum(u.charged) filter (where u.at >= greatest(c.since, c.starts) - interval '1 hour')::bigint as most,
       count(*) filter (where u.outcome = 'settled' and u.id not like '%+%' and u.charged >= 0
         and ${BEGAN(`greatest(c.created_at, c.since, nullif(c.starts, '-infinity')) + ${LATE}`)}) as calls
     from named c join used u on u.scope = c.scope where c.known group by c.scope
   )
   select c.scope, c.unit, c.span, c.used, (select coalesce(sum(x), 0) from unnest(c.seconds) x)::bigint as sum, c.is_right,
     coalesce(s.least, 0) as least, coalesce(s.most, 0) as most, coalesce(s.calls, 0) as calls
   from named c left join sums s on s.scope = c.scope order by c.scope`,
  600_000,
)
const VALUES = statement(
  'verify_budget_values',
  `select a.budgets, exists (select 1 from budget b where b.account_id = a.id) as has, a.budget_values as said, (select count(*)::int from counter c where c.account_id = a.id and c.name = 'budget') as found,
     coalesce((select sum(u.charged) from usage u where u.account_id = a.id), 0)::bigint as kept
   from account a where a.id = $1 and (a.budgets > 0 or a.budget_values <> 0 or exists (select 1 from counter c where c.account_id = a.id and c.name = 'budget')
     or exists (select 1 from budget b where b.account_id = a.id))`,
  600_000,
)

/** Runs in the account's snapshot. `settled`: all that the account ever paid. */
export async function checkBudgets(tx: Queryable, account: string, settled: bigint): Promise<string[]> {
  const [values] = await tx.query<{ budgets: number; has: boolean; said: number; found: number; kept: bigint }>(
    VALUES,
    [account],
  )
  if (!values) return []
  const problems: string[] = []
  if (values.said !== values.found)
    problems.push(`The budgets of account:${account} have ${values.found} counters, not ${values.said}.`)
  if (values.has && values.budgets === 0)
    problems.push(`Account ${account} has budgets, but is said to have none, so that no call counts for them.`)
  // Usage that was pruned is still counted by totals.
  const pruned = settled > values.kept ? settled - values.kept : 0n
  for (const row of await tx.query<BudgetCounter>(COUNTERS, [account]))
    judgeBudget(row, { account, pruned }, (problem) => problems.push(problem))
  return problems
}

const judgeBudget = judge<BudgetCounter, { account: string; pruned: bigint }>({
  'The counter {scope} of account:{of.account} belongs to no budget.': ({ is_right }) => is_right === null,
  'The counter {scope} of account:{of.account} is not as its budget says.': ({ is_right }) => is_right === false,
  'The budget {scope} of account:{of.account} counts {used} {unit} in slots that have {sum}.': ({ span, used, sum }) =>
    span === 'rolling' && used !== sum,
  'The budget {scope} of account:{of.account} counts {used} {unit}, which cannot be.': ({ used }) => used < 0n,
  'The budget {scope} of account:{of.account} counts {used:credits} as spent, but its usage sums to {least:credits}.':
    ({ unit, span, used, least }) => unit === 'credits' && span !== 'rolling' && used < least,
  'The budget {scope} of account:{of.account} counts {used:credits} as spent, but its usage sums to only {most:credits}.':
    ({ unit, span, used, most }, { pruned }) => unit === 'credits' && used > most + (span === 'total' ? pruned : 0n),
  'The budget {scope} of account:{of.account} counts {used} requests, but {calls} were answered.': ({
    unit,
    span,
    used,
    calls,
  }) => unit === 'requests' && span !== 'rolling' && used < calls,
})
