// What an operator may limit, and the rows by which the ledger's statement counts it. The names and the form of the
// stored values are those that functions/limits.sql reads: counts as numbers, spends as whole micro-credits in text.
import { type Queryable, statement } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
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

function nameOf(scope: Scope): string {
  if (scope.kind === 'system') return 'system'
  return scope.kind === 'account' ? `account:${scope.account}` : `key:${scope.key}`
}

/**
 * Makes a scope's limits hold from this moment on, to be called in the transaction that stores them. The locks are those
 * of a flush, in its order, so that no call is counted twice or not at all while the row appears.
 */
export async function keepLimits(tx: Queryable, scope: Scope, limits: Limits): Promise<void> {
  if (scope.kind === 'system') await tx.query(LOCK_ALL)
  else await tx.query(LOCK_ONE, [scope.account])
  const name = nameOf(scope)
  if (Object.keys(limits).length === 0) {
    await tx.query(FORGET, [name])
    return
  }
  const account = scope.kind === 'system' ? null : scope.account
  const key = scope.kind === 'key' ? scope.key : null
  const spenders = scope.kind === 'key' ? [scope.key, ...scope.earlier] : null
  const [row] = await tx.query<{ inserted: boolean }>(KEEP, [name, JSON.stringify(limits), account, key, spenders])
  // Calls that are under way were held before anyone counted for this scope: from now on they are.
  if (row?.inserted) await tx.query(JOIN_HOLDS, [name, account, key])
}

export async function readSystemLimits(on: Queryable): Promise<Limits> {
  const [row] = await on.query<{ limits: Limits }>(SYSTEM)
  return row?.limits ?? {}
}

const LOCK_ONE = statement('limits_lock_account', 'select 1 from account where id = $1 for update')
// A flush locks account rows before anything else, which this mode keeps out; reads go on.
const LOCK_ALL = statement('limits_lock_all', 'lock table account in exclusive mode')
const FORGET = statement('limits_forget', 'delete from limited where scope = $1')
const SYSTEM = statement('limits_system', `select limits from limited where scope = 'system'`)
const KEEP = statement(
  'limits_keep',
  `with spent as (
     select coalesce(sum(charged), 0) as total,
       coalesce(sum(charged) filter (where hour >= date_trunc('month', now(), 'UTC')), 0) as month,
       coalesce(sum(charged) filter (where hour >= date_trunc('day', now(), 'UTC')), 0) as day
     from usage_hour
     where ($3::text is null or account_id = $3) and ($5::text[] is null or key_id = any($5))
   ), open as (
     select coalesce(sum(amount), 0) as held, count(*) as calls from hold
     where ($3::text is null or account_id = $3) and ($4::text is null or key_id = $4)
   )
   insert into limited (scope, limits, held, open_calls, day, day_spent, month, month_spent, total_spent)
   select $1, $2, open.held, open.calls, (now() at time zone 'UTC')::date, spent.day,
     date_trunc('month', now() at time zone 'UTC')::date, spent.month, spent.total
   from spent, open
   on conflict (scope) do update set limits = excluded.limits
   returning xmax = 0 as inserted`,
)
const JOIN_HOLDS = statement(
  'limits_join_holds',
  `update hold set scopes = array_append(coalesce(scopes, '{}'), $1)
   where ($2::text is null or account_id = $2) and ($3::text is null or key_id = $3)
     and not ($1 = any(coalesce(scopes, '{}')))`,
)
