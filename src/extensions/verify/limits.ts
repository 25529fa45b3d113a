// Compares the counters of limits and budgets with what was used.
import { type Queryable, sql } from '../../database/database.ts'
import { IS_TEST } from '../../kernel/test-account.ts'
import { LIMITS } from '../../meter/limits.ts'
import { INPUT_UNITS, OUTPUT_UNITS } from '../../meter/usage.ts'
import { find, judge } from './rules.ts'

/** A counter of a limit, or of a value of a budget. */
interface CounterRow {
  readonly scope: string
  readonly name: string
  readonly unit: string
  readonly span: string
  readonly used: bigint
  /** Of a minute or a rolling window: the sum of its slots. */
  readonly sum: bigint
  /** Counts as its limit or budget says; null where there is none. */
  readonly is_right: boolean | null
  /** Bounds of what was spent, for credits. */
  readonly least: bigint
  readonly most: bigint
}

/** A budget's has more: a limit's counts from another moment on. */
interface BudgetRow extends CounterRow {
  /** What calls used of its unit, requests or tokens: those that were certainly counted, and all that may have been. */
  readonly used_least: bigint
  readonly used_most: bigint
  /** What running calls have of it, and what leases were given. */
  readonly given: bigint
  /** No usage since it counts has been pruned. */
  readonly is_whole: boolean
}

/** The parameter is the table of limits. */
const IS_LIMIT = (PARAMETER: string) =>
  `coalesce(${PARAMETER}::jsonb -> c.name @> jsonb_build_object('unit', c.unit, 'span', c.span), false)`
const COUNTED = `c.scope, c.name, c.unit, c.span, c.used, (select coalesce(sum(x), 0) from unnest(c.seconds) x)::bigint as sum`
/** The hours within the span of a credit counter, optionally starting earlier by BEFORE. */
const IN_SPAN = (BEFORE = '0 hours') =>
  `(c.span = 'total' or u.hour >= to_timestamp(c.second) - interval '${BEFORE}'
    and u.hour < (to_timestamp(c.second) at time zone 'UTC' + ('1 ' || nullif(c.span, 'total'))::interval) at time zone 'UTC')`
/**
 * A charge posted around midnight is in the hour in which its transaction began, but the counter counts it when the
 * account is locked, so the previous hour is included.
 */
const AND_HOUR_BEFORE = IN_SPAN('1 hour')

const COUNTERS = sql('verify_counters')`with recursive earlier as (
     select id as scope, id from api_key where account_id = $1
     union select e.scope, k.id from earlier e join api_key k on k.account_id = $1 and k.replaced_by = e.id
   )
   select ${COUNTED},
     case when c.scope = 'account' or exists (select 1 from earlier e where e.scope = c.scope) then ${IS_LIMIT('$2')} end as is_right,
     coalesce((select sum(u.charged) from usage_hour u where u.account_id = $1 and c.unit = 'credits' and c.scope in ('account', u.key_id) and ${IN_SPAN()}), 0)::bigint as least,
     coalesce((select sum(u.charged) from usage_hour u where u.account_id = $1 and c.unit = 'credits' and (c.scope in ('account', u.key_id)
       or exists (select 1 from earlier e where e.scope = c.scope and e.id = u.key_id)) and ${AND_HOUR_BEFORE}), 0)::bigint as most,
     (select coalesce(sum(charged), 0) from usage_hour where account_id = $1)::bigint as kept
   from counter c where c.account_id = $1 and c.name <> 'budget' order by c.scope, c.name`

/** Runs in the account's snapshot. `settled`: all that the account ever paid. */
export async function checkLimits(tx: Queryable, account: string, settled: bigint): Promise<string[]> {
  const problems: string[] = []
  // Older limits still count sums that have been pruned.
  for (const row of await tx.query<CounterRow & { readonly kept: bigint }>(COUNTERS, [account, JSON.stringify(LIMITS)]))
    judgeCounter(row, aboutOf(row, account, row.scope, settled - row.kept), (problem) => problems.push(problem))
  return problems
}

interface About {
  readonly it: string
  /** Spent, and not in the usage that is left: totals count it still. */
  readonly pruned: bigint
}

function aboutOf({ name, span }: CounterRow, account: string, scope: string, pruned: bigint): About {
  const whose = scope === 'account' ? `account:${account}` : scope === 'system' ? 'the system' : `key:${scope}`
  const it = name === 'budget' ? `budget ${scope} of account:${account}` : `limit ${name} of ${whose}`
  return { it, pruned: span === 'total' && pruned > 0n ? pruned : 0n }
}

const COUNTER_RULES: Parameters<typeof judge<CounterRow, About>>[0] = {
  'The {of.it} belongs to no key and no budget.': ({ is_right }) => is_right === null,
  'The {of.it} is not counted as it was set.': ({ is_right }) => is_right === false,
  'The {of.it} counts {used} {unit} in slots that have {sum}.': ({ span, used, sum }) =>
    (span === 'minute' || span === 'rolling') && used !== sum,
  'The {of.it} counts {used} {unit}, which holds say by themselves.': ({ unit, used }) =>
    unit === 'calls' && used !== 0n,
  'The {of.it} counts {used:credits} as spent, but its usage sums to {least:credits}.': ({ unit, span, used, least }) =>
    unit === 'credits' && span !== 'rolling' && used < least,
  'The {of.it} counts {used:credits} as spent, but its usage sums to only {most:credits}.': (
    { unit, span, used, most },
    { pruned },
  ) => unit === 'credits' && span !== 'rolling' && used > most + pruned,
}
const judgeCounter = judge(COUNTER_RULES)
const judgeBudget = judge<BudgetRow, About>({
  ...COUNTER_RULES,
  'The {of.it} counts {used} {unit}, which cannot be.': ({ used }) => used < 0n,
  'The {of.it} counts {used} {unit}, but calls used {used_least} and {given} are given to calls and processes.': (
    row,
  ) => isCounted(row) && row.used < row.used_least + row.given,
  'The {of.it} counts {used} {unit}, but calls used only {used_most} and {given} are given to calls and processes.': (
    row,
  ) => isCounted(row) && row.is_whole && row.used > row.used_most + row.given,
})

/** What a rolling window forgets is not in its usage. */
function isCounted({ unit, span }: CounterRow): boolean {
  return unit !== 'credits' && span !== 'rolling'
}

// What a process has spent since its last report is part of its quota slice, together with its open holds.
/** For credits, `used` is what was spent up to `since`; see functions/quota-slice.sql. */
const SYSTEM = sql('verify_system_limits')`
  select ${COUNTED}, ${IS_LIMIT('$1')} as is_right, x.spent as least, x.spent as most
   from counter c cross join lateral (
     select coalesce(sum(u.charged), 0)::bigint as spent from usage_hour u
     where c.unit = 'credits' and not ${IS_TEST('u.account_id')} and u.hour < c.since and (c.span = 'total' or u.hour >= date_trunc(nullif(c.span, 'total'), c.since, 'UTC'))) x
   where c.account_id = '' order by c.name`
const SYSTEM_FINDINGS = {
  // Processes take quota slices only if this setting (the version of the system's limits) exists.
  // Those of a ledger count in the control database.
  'The limits of the system are set, but nothing counts for them.': `setting where name = 'system-limits' and not exists (select 1 from counter where account_id = '')
     and to_regnamespace('control') is null`,
  'The limits of the system are counted, but not in force.': `(select 1 from counter where account_id = '' limit 1) c where not exists (select 1 from setting where name = 'system-limits')`,
  "The quota slices of the system's limit {name} are more than the limit.": `counter c where c.account_id = '' and c.unit in ('credits', 'calls')
     and c.max < (select coalesce(sum(s.amount), 0) from quota_slice s where s.account_id = '' and s.unit = c.unit)`,
  'There are limits ({scope}) that are neither those of the system nor of an account.': `(select distinct scope from counter where account_id = '' and scope <> 'system') c`,
  'There are limits ({scope}) of account {account_id}, which does not exist.': `(select distinct c.account_id, c.scope from counter c
     left join account a on a.id = c.account_id where c.account_id <> '' and a.id is null) x`,
  'The quota slice of process {process_id} ({unit}) is that of account {account_id}.': `quota_slice where account_id <> ''`,
  'The quota slice of process {process_id} ({unit}) cannot be {amount}.': `quota_slice where account_id = '' and (unit not in ('credits', 'calls') or amount < 0)`,
}

export async function* checkSystemLimits(database: Queryable): AsyncGenerator<string> {
  const problems: string[] = []
  // A total still counts sums that have been pruned.
  for (const row of await database.query<CounterRow>(SYSTEM, [JSON.stringify(LIMITS)]))
    judgeCounter(row, aboutOf(row, '', 'system', row.used - row.most), (problem) => problems.push(problem))
  yield* problems
  yield* find(database, SYSTEM_FINDINGS)
}

// The counters of budgets, by the labels of calls.

/** Clocks of processes may differ by as much, and calls wait for their hold. */
const LATE = `interval '60 seconds'`
/** When a call began, as its id says. */
const BEGAN = (MOMENT: string) => `u.id >= left(id_at(${MOMENT}, ''), 10)`
const SPAN_STARTS = `case when c.span in ('day', 'week', 'month') then to_timestamp(c.second) else '-infinity' end`

/** Those of them that count tokens: of a usage row, what its lines say, which leave out what has no price. */
const TOKENS = [...INPUT_UNITS, ...OUTPUT_UNITS]

/**
 * A charge is counted when it is posted, a request when it is admitted: when that was, its id says. What was posted is
 * in `usage.at`, which is when the transaction began: a little earlier. A row without an endpoint is that of a hold
 * that expired or was given up, which counts for nothing. Labels of the gateway's own begin with a colon; a key counts
 * as the first of those that it replaced.
 */
const BUDGET_COUNTERS = sql('verify_budgets', 600_000)`with named as materialized (
     select c.*, b.account_id is not null as known, b.created_at,
       b.unit = c.unit and b.span = c.span and b.hard <> c.soft and (c.own_max or b.max = c.max) and c.width = coalesce((b.window_seconds + 59) / 60, 1) as is_right,
       ${SPAN_STARTS} as starts
     from counter c left join budget b on b.account_id = c.account_id and b.id = split_part(c.scope, '=', 1) where c.account_id = $1 and c.name = 'budget'
   ), used as (
     select b.id || '=' || x.value as scope, u.id, u.at, u.charged, case b.unit when 'requests' then case when u.endpoint <> '' then 1 else 0 end
         when 'tokens' then (select coalesce(sum((l ->> 1)::bigint), 0) from jsonb_array_elements(u.lines) l where l ->> 0 = any($2)) else 0 end as quantity
     from budget b join usage u on u.account_id = $1
       cross join lateral (select case when b.scope = 'key' then coalesce((select k.first_id from api_key k where k.id = u.key_id), u.key_id)
         else u.labels ->> case when b.scope like 'tag:%' then substr(b.scope, 5) when b.scope in ('user', 'session') then b.scope
           when b.scope like 'session:%' then 'session' else ':' || b.scope end end as value) x
     where b.account_id = $1 and (b.scope not like 'session:%' or substr(b.scope, 9) in (u.labels ->> ':team', u.labels ->> ':project')) and x.value is not null and (b.value is null or b.value = x.value)
   ), sums as (
     select c.scope,
       sum(u.charged) filter (where u.at >= greatest(c.since, c.starts) and ${BEGAN(`c.created_at + ${LATE}`)})::bigint as least,
       sum(u.charged) filter (where u.at >= greatest(c.since, c.starts) - interval '1 hour')::bigint as most,
       sum(u.quantity) filter (where ${BEGAN(`greatest(c.created_at, c.since, nullif(c.starts, '-infinity')) + ${LATE}`)})::bigint as used_least,
       sum(u.quantity) filter (where ${BEGAN(`greatest(c.since, nullif(c.starts, '-infinity')) - ${LATE}`)})::bigint as used_most
     from named c join used u on u.scope = c.scope where c.known group by c.scope
   ), given as (
     select c.scope, sum(case c.unit when 'requests' then x.requests when 'tokens' then x.tokens end)::bigint as amount from (
       select h.scopes, h.created_at, floor(extract(epoch from h.created_at))::bigint as second, 1 as requests, h.tokens from hold h where h.account_id = $1
       union all
       select e.scopes, e.created_at, s.key::bigint, (s.value ->> 0)::bigint, (s.value ->> 1)::bigint from lease e cross join jsonb_each(e.slices) s where e.account_id = $1
     ) x cross join jsonb_array_elements_text(x.scopes) n(scope) join named c on c.scope = n.scope
     where x.created_at >= c.since and (c.starts = '-infinity' or x.second >= c.second) group by c.scope
   )
   select ${COUNTED}, c.is_right, coalesce(s.least, 0) as least, coalesce(s.most, 0) as most,
     coalesce(s.used_least, 0) as used_least, coalesce(g.amount, 0) as given, greatest(c.since, c.starts) >= $3 as is_whole,
     case c.unit when 'requests' then coalesce(s.used_most, 0) else (select coalesce(sum(h.input_tokens + h.output_tokens), 0)::bigint from usage_hour h
       where h.account_id = $1 and h.hour >= greatest(c.since, c.starts) - interval '1 hour' - ${LATE}) end as used_most
   from named c left join sums s on s.scope = c.scope left join given g on g.scope = c.scope order by c.scope`
const VALUES = sql('verify_budget_values', 600_000)`
  select a.budgets, exists (select 1 from budget b where b.account_id = a.id) as has, a.budget_values as said, (select count(*)::int from counter c where c.account_id = a.id and c.name = 'budget') as found,
     coalesce((select sum(u.charged) from usage u where u.account_id = a.id), 0)::bigint as kept
   from account a where a.id = $1 and (a.budgets > 0 or a.budget_values <> 0 or exists (select 1 from counter c where c.account_id = a.id and c.name = 'budget')
     or exists (select 1 from budget b where b.account_id = a.id))`

/**
 * Runs in the account's snapshot. `settled`: all that the account ever paid. Usage from before `usageSinceMs` may have
 * been pruned.
 */
export async function checkBudgets(
  tx: Queryable,
  account: string,
  { settled, usageSinceMs }: { readonly settled: bigint; readonly usageSinceMs: number },
): Promise<string[]> {
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
  for (const row of await tx.query<BudgetRow>(BUDGET_COUNTERS, [account, TOKENS, new Date(usageSinceMs)]))
    judgeBudget(row, aboutOf(row, account, row.scope, settled - values.kept), (problem) => problems.push(problem))
  return problems
}
