// What limits count, against what is held and what was spent.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import type { LimitName } from './views.ts'

interface LimitedRow {
  readonly scope: string
  readonly held: bigint
  readonly open_calls: number
  readonly day_spent: bigint
  readonly month_spent: bigint
  readonly total_spent: bigint
  readonly requests_used: bigint
  readonly requests_sum: bigint
  readonly tokens_used: bigint
  readonly tokens_sum: bigint
}

interface ScopeRow extends LimitedRow {
  /** Null for a scope that is neither the account nor one of its keys. */
  readonly is_set: boolean | null
  /** False for one that limits only the minute: it counts nothing else. */
  readonly is_money: boolean
  readonly due_held: bigint
  readonly due_calls: number
  /** By this scope alone, and with the keys that it replaced. */
  readonly day_own: bigint
  readonly day_all: bigint
  readonly month_own: bigint
  readonly month_all: bigint
  readonly total_own: bigint
  readonly total_all: bigint
}

const SUMS_OF_WINDOWS = `l.requests_used, (select coalesce(sum(x), 0) from unnest(l.requests) x)::bigint as requests_sum,
  l.tokens_used, (select coalesce(sum(x), 0) from unnest(l.tokens) x)::bigint as tokens_sum`
const HELD_BY = `select account_id, key_id, process_id, job, amount, 1 as calls from hold
  union all select account_id, key_id, process_id, false, amount, 0 from lease`
const HELD_OF = `select key_id, amount, 1 as calls from hold where account_id = $1
  union all select key_id, amount, 0 from lease where account_id = $1`

// Keys may lie on another server than what counts for them.
const KEYS = statement(
  'verify_keys',
  `with recursive earlier as (
     select id as scope, id from api_key where account_id = $1
     union select e.scope, k.id from earlier e join api_key k on k.account_id = $1 and k.replaced_by = e.id
   )
   select k.id, k.limits, array(select e.id from earlier e where e.scope = k.id) as spenders from api_key k where k.account_id = $1`,
)
interface KeyRow {
  readonly id: string
  readonly limits: object
  /** Itself, and those that it replaced. */
  readonly spenders: readonly string[]
}
const LIMITED = statement(
  'verify_limited',
  `select a.limits, array(select l.scope from limited l where l.account_id = $1) as scopes from account a where a.id = $1`,
)
// A key that replaced others may count what they have spent, but for what they spent since.
const SCOPES = statement(
  'verify_scopes',
  `with earlier as (
     select x.scope, x.id from unnest($2::text[], $3::text[]) as x(scope, id)
   ), open as (
     select key_id, sum(amount)::bigint as held, sum(calls)::int as calls from (${HELD_OF}) h group by key_id
   ), spent as (
     select l.scope, u.key_id = l.scope or l.scope = 'account' as own,
       coalesce(sum(u.charged) filter (where u.hour >= l.day::timestamp at time zone 'UTC' and u.hour < (l.day + 1)::timestamp at time zone 'UTC'), 0)::bigint as day,
       coalesce(sum(u.charged) filter (where u.hour >= l.month::timestamp at time zone 'UTC' and u.hour < (l.month + interval '1 month') at time zone 'UTC'), 0)::bigint as month,
       sum(u.charged)::bigint as total
     from limited l join usage_hour u on u.account_id = $1 and (l.scope = 'account' or u.key_id = l.scope
       or exists (select 1 from earlier e where e.scope = l.scope and e.id = u.key_id))
     where l.account_id = $1 group by 1, 2
   )
   select l.scope, limited_is_money(l.limits) as is_money, l.held, l.open_calls, l.day_spent, l.month_spent, l.total_spent, ${SUMS_OF_WINDOWS},
     $4::jsonb -> l.scope = l.limits as is_set,
     coalesce((select sum(o.held) from open o where l.scope in ('account', o.key_id)), 0)::bigint as due_held,
     coalesce((select sum(o.calls) from open o where l.scope in ('account', o.key_id)), 0)::int as due_calls,
     coalesce(sum(s.day) filter (where s.own), 0)::bigint as day_own, coalesce(sum(s.day), 0)::bigint as day_all,
     coalesce(sum(s.month) filter (where s.own), 0)::bigint as month_own, coalesce(sum(s.month), 0)::bigint as month_all,
     coalesce(sum(s.total) filter (where s.own), 0)::bigint as total_own, coalesce(sum(s.total), 0)::bigint as total_all
   from limited l left join spent s on s.scope = l.scope where l.account_id = $1 group by l.account_id, l.scope`,
)
const ALL_HOURS = statement(
  'verify_all_hours',
  'select coalesce(sum(charged), 0)::bigint as charged from usage_hour where account_id = $1',
)

/** In the account's snapshot. `settled`: all that it ever paid. */
export async function checkLimits(tx: Queryable, account: string, settled: bigint): Promise<string[]> {
  const problems: string[] = []
  const keys = await tx.query<KeyRow>(KEYS, [account])
  const [own] = await tx.query<{ limits: object; scopes: string[] }>(LIMITED, [account])
  const set = new Map([['account', own?.limits ?? {}], ...keys.map(({ id, limits }) => [id, limits] as const)])
  for (const [scope, limits] of set)
    if (Object.keys(limits).length > 0 && !own?.scopes.includes(scope))
      problems.push(`Limits of ${named(account, scope)} are set, but nothing counts for them.`)
  if (!own || own.scopes.length === 0) return problems
  const [kept] = await tx.query<{ charged: bigint }>(ALL_HOURS, [account])
  // Sums that were trimmed away are still counted by limits that are older.
  const trimmed = settled - (kept?.charged ?? 0n)
  const spenders = keys.flatMap(({ id, spenders }) => spenders.map((spender) => [id, spender] as const))
  const values = [spenders.map(([id]) => id), spenders.map(([, id]) => id), JSON.stringify(Object.fromEntries(set))]
  for (const row of await tx.query<ScopeRow>(SCOPES, [account, ...values]))
    problems.push(...checkScope(named(account, row.scope), row, trimmed > 0n ? trimmed : 0n))
  return problems
}

function* checkScope(name: string, row: ScopeRow, trimmed: bigint): Generator<string> {
  if (row.is_set === null) yield `The limits of ${name} are those of a key that the account does not have.`
  else if (!row.is_set) yield `The limits of ${name} that are counted are not those that were set.`
  yield* checkWindows(name, row)
  if (!row.is_money) return
  yield* checkHeld(name, row)
  const spends = [
    ['of the day', row.day_spent, row.day_own, row.day_all],
    ['of the month', row.month_spent, row.month_own, row.month_all],
    ['in all', row.total_spent, row.total_own, row.total_all + trimmed],
  ] as const
  for (const [what, is, least, most] of spends)
    if (is < least || is > most)
      yield `The limits of ${name} count ${formatCredits(is)} as spent ${what}, but its usage sums to ${formatCredits(is < least ? least : most)}.`
}

function* checkHeld(name: string, row: LimitedRow & { due_held: bigint; due_calls: number }): Generator<string> {
  if (row.held !== row.due_held)
    yield `The limits of ${name} count ${formatCredits(row.held)} as held, but its holds sum to ${formatCredits(row.due_held)}.`
  if (row.open_calls !== row.due_calls)
    yield `The limits of ${name} count ${row.open_calls} open calls, but it has ${row.due_calls} holds.`
}

function* checkWindows(name: string, row: LimitedRow): Generator<string> {
  if (row.requests_used !== row.requests_sum)
    yield `The limits of ${name} count ${row.requests_used} requests in a minute whose seconds have ${row.requests_sum}.`
  if (row.tokens_used !== row.tokens_sum)
    yield `The limits of ${name} count ${row.tokens_used} tokens in a minute whose seconds have ${row.tokens_sum}.`
}

interface SystemRow extends LimitedRow {
  readonly limits: Readonly<Partial<Record<LimitName, string | number>>>
  readonly counts_holds: boolean
  readonly due_held: bigint
  readonly due_calls: number
}

const SYSTEM = statement(
  'verify_system_limits',
  `select l.scope, l.limits <> '{}' and l.scope <> 'system' as counts_holds, l.limits, l.held, l.open_calls, l.day_spent, l.month_spent, l.total_spent, ${SUMS_OF_WINDOWS},
     coalesce(h.held, 0)::bigint as due_held, coalesce(h.calls, 0)::int as due_calls
   from limited l left join (
     select 'system@' || case when h.job then 'jobs' else h.process_id end as scope, sum(h.amount) as held, sum(h.calls) as calls
     from (${HELD_BY}) h where not ${IS_TEST('h.account_id')} group by 1
   ) h on h.scope = l.scope
   where l.account_id = ''`,
)
const SYSTEM_SPENT = statement(
  'verify_system_spent',
  `with counted as (
     select sum(day_spent) filter (where day = (now() at time zone 'UTC')::date) as day,
       sum(month_spent) filter (where month = date_trunc('month', now() at time zone 'UTC')::date) as month
     from limited where account_id = ''
   ), spent as (
     select coalesce(sum(charged), 0) as month, coalesce(sum(charged) filter (where hour >= date_trunc('day', now(), 'UTC')), 0) as day
     from usage_hour where hour >= date_trunc('month', now(), 'UTC') and not ${IS_TEST('account_id')}
   )
   select coalesce(counted.day, 0)::bigint as day_spent, spent.day::bigint as day_due,
     coalesce(counted.month, 0)::bigint as month_spent, spent.month::bigint as month_due
   from counted, spent where exists (select 1 from limited where account_id = '' and scope = 'system')`,
)
const STRANGERS = statement(
  'verify_limited_strangers',
  `select l.account_id, l.scope from limited l left join account a on a.id = l.account_id
   where l.account_id <> '' and a.id is null order by 1, 2 limit 100`,
)
/** Calls that were under way when the system's limits were set may count twice or not at all: nobody waits for them. */
const TOLERANCE = 100n

/** Where accounts lie on several servers, each is read at its own moment, beside calls that change two of them. What is wrong is so at every look. */
const LOOKS_MAX = 20

export async function checkSystemLimits(database: Queryable): Promise<string[]> {
  let problems = await lookAtSystemLimits(database)
  for (let looks = 1; problems.length > 0 && looks < LOOKS_MAX; looks++) problems = await lookAtSystemLimits(database)
  return problems
}

async function lookAtSystemLimits(database: Queryable): Promise<string[]> {
  const problems: string[] = []
  const rows = await database.query<SystemRow>(SYSTEM)
  for (const row of rows) {
    if (row.counts_holds) problems.push(...checkHeld(row.scope, row))
    problems.push(...checkWindows(row.scope, row))
  }
  const [spent] =
    await database.query<Record<'day_spent' | 'day_due' | 'month_spent' | 'month_due', bigint>>(SYSTEM_SPENT)
  if (spent)
    for (const window of ['day', 'month'] as const) {
      const is = spent[`${window}_spent`]
      const due = spent[`${window}_due`]
      const apart = is > due ? is - due : due - is
      if (apart * TOLERANCE > due)
        problems.push(
          `The limits of the system count ${formatCredits(is)} as spent of the ${window}, but usage sums to ${formatCredits(due)}.`,
        )
    }
  for (const name of sharedTooOften(rows))
    problems.push(`The shares of the system's limit ${name} are more than the limit.`)
  for (const { account_id, scope } of await database.query<{ account_id: string; scope: string }>(STRANGERS))
    problems.push(`There are limits (${scope}) of account ${account_id}, which does not exist.`)
  return problems
}

/** What a scope has used up of a limit, as limited_used says in the database. */
const USED: Readonly<Record<LimitName, (row: LimitedRow) => bigint>> = {
  concurrency: (row) => BigInt(row.open_calls),
  requestsPerMinute: (row) => row.requests_used,
  tokensPerMinute: (row) => row.tokens_used,
  spendPerDay: (row) => row.day_spent + row.held,
  spendPerMonth: (row) => row.month_spent + row.held,
  spendTotal: (row) => row.total_spent + row.held,
}

function sharedTooOften(rows: readonly SystemRow[]): LimitName[] {
  const whole = rows.find(({ scope }) => scope === 'system')?.limits
  if (!whole) return []
  const sum = (of: (row: SystemRow) => bigint) => rows.reduce((all, row) => all + of(row), 0n)
  const names = Object.keys(USED) as LimitName[] // it has no others
  return names.filter((name) => {
    const given = sum(({ scope, limits }) => (scope === 'system' ? 0n : BigInt(limits[name] ?? 0)))
    return given > BigInt(whole[name] ?? 0) && given > sum(USED[name])
  })
}

function named(account: string, scope: string): string {
  return scope === 'account' ? `account:${account}` : `key:${scope}`
}
