// What an operator may limit, and the rows by which the ledger's statement counts it. The names and the form of the
// stored values are those that functions/limits.sql reads: counts as numbers, spends as whole micro-credits in text.
import { type Database, type Queryable, statement } from '../database/database.ts'
import { MINUTE_BUCKETS } from '../database/functions.ts'
import { formatCredits } from '../kernel/credits.ts'
import { IS_TEST } from '../kernel/test-account.ts'
import type { LimitName, LimitsView } from './views.ts'

/** As the rows hold them; a name that is absent is not limited. */
export type Limits = Readonly<LimitsView>
/** Null removes a limit, absence leaves it as it is. */
export type LimitsPatch = { readonly [name in LimitName]?: Limits[name] | null | undefined }

export function mergeLimits(before: Limits, patch: LimitsPatch | null | undefined): Limits {
  if (patch === null) return {}
  const merged = Object.entries({ ...before, ...withoutUndefined(patch ?? {}) })
  return Object.fromEntries(merged.filter(([, value]) => value !== null)) as Limits
}

function withoutUndefined(patch: LimitsPatch): LimitsPatch {
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined))
}

/** Spends are shown as decimal strings of credits. */
export function showLimits(limits: Limits): LimitsView {
  const shown = Object.entries(limits).map(([name, value]) => [
    name,
    typeof value === 'string' ? formatCredits(BigInt(value)) : value,
  ])
  return Object.fromEntries(shown) as LimitsView
}

type Scope =
  | { readonly kind: 'system' }
  | { readonly kind: 'account'; readonly account: string }
  /** `earlier`: the keys that it replaced, whose spending counts on. */
  | { readonly kind: 'key'; readonly account: string; readonly key: string; readonly earlier: readonly string[] }

/**
 * Makes a scope's limits hold from this moment on, to be called in the transaction that stores them. The account is locked as a
 * flush locks it, so that no call is counted twice or not at all while the row appears. The system's are divided into shares, of which each process
 * asks for its own: see share.sql.
 */
export async function keepLimits(tx: Queryable, scope: Scope, limits: Limits): Promise<void> {
  const none = Object.keys(limits).length === 0
  if (scope.kind === 'system') {
    for (const part of [LOCK_SYSTEM, FORGET_STRAYS]) await tx.query(part)
    if (none) await tx.query(FORGET_SYSTEM)
    else {
      await tx.query(KEEP_SYSTEM, [JSON.stringify(limits)])
      await tx.query(CUT_SHARES, [JSON.stringify(limits), await momentOf(tx)])
    }
    return
  }
  const { account } = scope
  await tx.query(LOCK, [account])
  const name = scope.kind === 'account' ? 'account' : scope.key
  if (none) {
    await tx.query(FORGET, [account, name])
    return
  }
  const key = scope.kind === 'key' ? scope.key : null
  const spenders = scope.kind === 'key' ? [scope.key, ...scope.earlier] : null
  await tx.query(KEEP, [account, name, JSON.stringify(limits), key, spenders, await momentOf(tx)])
  // What processes have leased was leased under other limits.
  await tx.query(RECALL, [account])
}

/** When the account is locked, and not when the transaction began. Exact, which a Date is not. */
async function momentOf(tx: Queryable): Promise<string> {
  const [row] = await tx.query<{ moment: string }>(MOMENT)
  if (!row) throw new Error('The database does not know what time it is.')
  return row.moment
}

/**
 * A flush that was under way while the system's limits were removed may have made a share of them. It would make every call look for limits, and
 * count what was spent a second time for the next ones.
 */
export async function forgetStrayShares(database: Database): Promise<void> {
  await database.transaction(async (tx) => {
    for (const part of [LOCK_SYSTEM, FORGET_STRAYS]) await tx.query(part)
  })
}

export async function readSystemLimits(on: Queryable): Promise<Limits> {
  const [row] = await on.query<{ limits: Limits }>(SYSTEM)
  return row?.limits ?? {}
}

const LOCK = statement('limits_lock', 'select 1 from account where id = $1 for update')
const MOMENT = statement('limits_moment', 'select clock_timestamp()::text as moment')
const FORGET = statement('limits_forget', 'delete from limited where account_id = $1 and scope = $2')
const RECALL = statement(
  'limits_recall',
  'update lease set recalled_at = least(recalled_at, now()) where account_id = $1',
)
/** Whoever sets them, or takes away what is left of earlier ones. */
const LOCK_SYSTEM = statement('limits_lock_system', 'select pg_advisory_xact_lock(7046029262)')
const FORGET_STRAYS = statement(
  'limits_forget_strays',
  `delete from limited where account_id = '' and scope <> 'system' and not exists (select 1 from limited l where l.account_id = '' and l.scope = 'system')`,
)
const SYSTEM = statement('limits_system', `select limits from limited where account_id = '' and scope = 'system'`)
const SPENT = `select coalesce(sum(charged), 0) as total,
    coalesce(sum(charged) filter (where hour >= date_trunc('month', now(), 'UTC')), 0) as month,
    coalesce(sum(charged) filter (where hour >= date_trunc('day', now(), 'UTC')), 0) as day
  from usage_hour`
// A scope that limited only the minute has counted none of these.
const COUNTED_ANEW = ['held', 'open_calls', 'day', 'day_spent', 'month', 'month_spent', 'total_spent']
  .map((name) => `${name} = case when limited_is_money(limited.limits) then limited.${name} else excluded.${name} end`)
  .join(', ')
/** Since when a scope counts its minute: from now on, where it has a limit on it that it did not have. */
const SINCE = (AFTER: string, MOMENT: string) =>
  `case when ${['requestsPerMinute', 'tokensPerMinute']
    .map((name) => `${AFTER} -> '${name}' is not null and limited.limits -> '${name}' is null`)
    .join(' or ')} then ${MOMENT} else limited.since end`
/** A row that grows with its first request has no room beside it for its next version. */
const WINDOW = (NAME: string) =>
  `case when $3::jsonb ? '${NAME}' then array_fill(0::bigint, array[${MINUTE_BUCKETS}]) else '{}' end`
const KEEP = statement(
  'limits_keep',
  `with spent as (${SPENT} where account_id = $1 and ($5::text[] is null or key_id = any($5))
   ), open as (
     select coalesce(sum(amount), 0) as held, coalesce(sum(calls), 0) as calls from (
       select amount, key_id, 1 as calls from hold where account_id = $1
       union all select amount, key_id, 0 from lease where account_id = $1) x
     where $4::text is null or key_id = $4
   )
   insert into limited (account_id, scope, limits, held, open_calls, day_spent, month_spent, total_spent, since, requests, tokens)
   select $1, $2, $3, open.held, open.calls, spent.day, spent.month, spent.total, $6, ${WINDOW('requestsPerMinute')}, ${WINDOW('tokensPerMinute')} from spent, open
   on conflict (account_id, scope) do update set limits = excluded.limits, since = ${SINCE('excluded.limits', 'excluded.since')}, ${COUNTED_ANEW}`,
)
// What was spent is summed up for a row that is new, and before anything is locked that a call needs.
const KEEP_SYSTEM = statement(
  'limits_keep_system',
  `with changed as (
     update limited set limits = $1 where account_id = '' and scope = 'system' returning 1
   )
   insert into limited (account_id, scope, limits, day_spent, month_spent, total_spent)
   select '', 'system', $1, spent.day, spent.month, spent.total from (${SPENT} where not ${IS_TEST('account_id')}) spent where not exists (select 1 from changed)
   on conflict (account_id, scope) do update set limits = excluded.limits`,
)
// Nothing is left of any share: each asks anew with its next call.
const CUT_SHARES = statement(
  'limits_cut_shares',
  `with recalled as (
     update lease set recalled_at = least(recalled_at, now())
   )
   update limited set limits = (select jsonb_object_agg(name, 0) from jsonb_object_keys($1::jsonb) name), since = ${SINCE('$1::jsonb', '$2::timestamptz')}
   where account_id = '' and scope like 'system@%' and limits <> '{}'`,
)
const FORGET_SYSTEM = statement('limits_forget_system', `delete from limited where account_id = ''`)
