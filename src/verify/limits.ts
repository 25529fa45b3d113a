// Compares limit counters with what was spent.
import { type Queryable, statement } from '../database/database.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import { LIMITS, type LimitName } from '../meter/limits.ts'
import { find, judge } from './rules.ts'

interface CounterRow {
  readonly scope: string
  readonly name: string
  readonly unit: string
  readonly span: string
  readonly max: bigint
  readonly used: bigint
  /** For a span of a minute: the sum of its seconds. */
  readonly sum: bigint
  /** For credits: what was spent in the span by this scope alone, and together with the keys that it replaced. */
  readonly own: bigint
  readonly all: bigint
}

const COUNTED = `c.scope, c.name, c.unit, c.span, c.max, c.used, (select coalesce(sum(x), 0) from unnest(c.seconds) x)::bigint as sum`
/** The hours within the span of a credit counter, optionally starting earlier by BEFORE. */
const IN_SPAN = (BEFORE = '0 hours') =>
  `(c.span = 'total' or u.hour >= to_timestamp(c.second) - interval '${BEFORE}'
    and u.hour < (to_timestamp(c.second) at time zone 'UTC' + ('1 ' || nullif(c.span, 'total'))::interval) at time zone 'UTC')`
/**
 * A charge posted around midnight is in the hour in which its transaction began, but the counter counts it when the account is locked, so the
 * previous hour is included.
 */
const AND_HOUR_BEFORE = IN_SPAN('1 hour')

// A statement of its own, because keys may be on another server than the counters.
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
  /** The key itself and the keys that it replaced. */
  readonly spenders: readonly string[]
}
const OWN_LIMITS = statement('verify_own_limits', 'select limits from account where id = $1')
const COUNTERS = statement(
  'verify_counters',
  `with earlier as (
     select x.scope, x.id from unnest($2::text[], $3::text[]) as x(scope, id)
   )
   select ${COUNTED},
     coalesce((select sum(u.charged) from usage_hour u where u.account_id = $1 and c.unit = 'credits' and c.scope in ('account', u.key_id) and ${IN_SPAN()}), 0)::bigint as own,
     coalesce((select sum(u.charged) from usage_hour u where u.account_id = $1 and c.unit = 'credits' and (c.scope in ('account', u.key_id)
       or exists (select 1 from earlier e where e.scope = c.scope and e.id = u.key_id)) and ${AND_HOUR_BEFORE}), 0)::bigint as all
   from counter c where c.account_id = $1 and c.name <> 'budget' order by c.scope, c.name`,
)
const ALL_HOURS = statement(
  'verify_all_hours',
  'select coalesce(sum(charged), 0)::bigint as charged from usage_hour where account_id = $1',
)

/** Runs in the account's snapshot. `settled`: all that the account ever paid. */
export async function checkLimits(tx: Queryable, account: string, settled: bigint): Promise<string[]> {
  const problems: string[] = []
  const keys = await tx.query<KeyRow>(KEYS, [account])
  const [own] = await tx.query<{ limits: object }>(OWN_LIMITS, [account])
  const set = new Map([['account', own?.limits ?? {}], ...keys.map(({ id, limits }) => [id, limits] as const)])
  const spenders = keys.flatMap(({ id, spenders }) => spenders.map((spender) => [id, spender] as const))
  const values = [spenders.map(([id]) => id), spenders.map(([, id]) => id)]
  const rows = await tx.query<CounterRow>(COUNTERS, [account, ...values])
  for (const [scope, limits] of set) {
    const counted = new Map(rows.filter((row) => row.scope === scope).map(({ name, max }) => [name, max]))
    const due = Object.entries(limits).map(([name, max]) => [name, BigInt(max)] as const)
    if (due.some(([name]) => !counted.has(name)))
      problems.push(`Limits of ${named(account, scope)} are set, but nothing counts for them.`)
    else if (counted.size !== due.length || due.some(([name, max]) => counted.get(name) !== max))
      problems.push(`The limits of ${named(account, scope)} that are counted are not those that were set.`)
  }
  if (rows.length === 0) return problems
  const [kept] = await tx.query<{ charged: bigint }>(ALL_HOURS, [account])
  // Older limits still count sums that have been pruned.
  const trimmed = settled - (kept?.charged ?? 0n)
  for (const row of rows) {
    if (!set.has(row.scope))
      problems.push(`The limits of ${named(account, row.scope)} are those of a key that the account does not have.`)
    const most = row.span === 'total' && trimmed > 0n ? row.all + trimmed : row.all
    const facts = { scope: named(account, row.scope), when: whenOf(row), least: row.own, most }
    judgeCounter(row, facts, (problem) => problems.push(problem))
  }
  return problems
}

interface CounterFacts {
  readonly scope: string
  readonly when: string
  /** Bounds of what was spent. */
  readonly least: bigint
  readonly most: bigint
}

const whenOf = ({ span }: CounterRow) => (span === 'total' ? 'in all' : `of the ${span}`)

const judgeCounter = judge<CounterRow, CounterFacts>({
  'The limit {name} of {of.scope} counts {unit} by {span}, which it does not limit.': ({ name, unit, span }) => {
    const limit = LIMITS[name as LimitName] as { unit: string; span: string } | undefined // the row's name may be unknown
    return limit?.unit !== unit || limit.span !== span
  },
  'The limits of {of.scope} count {used} {unit} in a minute whose seconds have {sum}.': ({ span, used, sum }) =>
    span === 'minute' && used !== sum,
  'The limit {name} of {of.scope} counts {used} {unit}, which holds say by themselves.': ({ unit, used }) =>
    unit === 'calls' && used !== 0n,
  'The limits of {of.scope} count {used:credits} as spent {of.when}, but its usage sums to {of.least:credits}.': (
    { unit, used },
    { least },
  ) => unit === 'credits' && used < least,
  'The limits of {of.scope} count {used:credits} as spent {of.when}, but its usage sums to {of.most:credits}.': (
    { unit, used },
    { most },
  ) => unit === 'credits' && used > most,
})

// What a process has spent since its last report is part of its quota slice, together with its open holds.
/** For credits, `used` is what was spent up to `since`; see functions/quota-slice.sql. */
const SYSTEM = statement(
  'verify_system_limits',
  `select ${COUNTED}, x.spent as own, x.spent as all
   from counter c cross join lateral (
     select coalesce(sum(u.charged), 0)::bigint as spent from usage_hour u
     where c.unit = 'credits' and not ${IS_TEST('u.account_id')} and u.hour < c.since and (c.span = 'total' or u.hour >= date_trunc(nullif(c.span, 'total'), c.since, 'UTC'))) x
   where c.account_id = '' order by c.name`,
)
const SYSTEM_FINDINGS = {
  // Processes take quota slices only if this setting (the version of the system's limits) exists.
  'The limits of the system are set, but nothing counts for them.': `setting where name = 'system-limits' and not exists (select 1 from counter where account_id = '')`,
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
  for (const row of await database.query<CounterRow>(SYSTEM)) {
    // A total still counts sums that have been pruned.
    const most = row.span === 'total' && row.used > row.all ? row.used : row.all
    const facts = { scope: 'the system', when: whenOf(row), least: row.all, most }
    judgeCounter(row, facts, (problem) => problems.push(problem))
  }
  yield* problems
  yield* find(database, SYSTEM_FINDINGS)
}

function named(account: string, scope: string): string {
  return scope === 'account' ? `account:${account}` : `key:${scope}`
}
