// The limits that an operator can set: one table, from which the counters in the database (functions/counters.sql) and
// all descriptions are derived.
import { type Queryable, sql } from '../database/database.ts'
import { formatCredits } from '../kernel/credits.ts'
import { isLimit, LIMITS, type LimitName, type LimitsView } from '../meter/limits.ts'

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
  const shown = Object.entries(limits)
    .filter(([name]) => isLimit(name))
    .map(([name, value]) => [name, typeof value === 'string' ? formatCredits(BigInt(value)) : value])
  return Object.fromEntries(shown) as LimitsView
}

type Scope =
  | { readonly kind: 'system' }
  | { readonly kind: 'account'; readonly account: string }
  /** `earlier`: the keys that it replaced, whose spending counts on. */
  | { readonly kind: 'key'; readonly account: string; readonly key: string; readonly earlier: readonly string[] }

/**
 * Makes a scope's limits hold from this moment on, to be called in the transaction that stores them. The account is
 * locked as every function of the ledger locks it, so that no call is counted twice or not at all while a counter
 * appears. Processes learn of the gateway's own with their next statement, or by a look twice a second
 * (ledger/system.ts).
 */
export async function storeLimits(tx: Queryable, scope: Scope, limits: Limits): Promise<void> {
  const account = scope.kind === 'system' ? '' : scope.account
  await (scope.kind === 'system' ? tx.query(LOCK_SYSTEM) : tx.query(LOCK, [account]))
  const name = scope.kind === 'key' ? scope.key : scope.kind
  const spenders = scope.kind === 'key' ? [scope.key, ...scope.earlier] : null
  // A limit that another version has set keeps its counter, which is enforced by its unit and span whatever its name.
  const rows = Object.entries(limits).flatMap(([limit, max]) => {
    const known = isLimit(limit) ? LIMITS[limit] : undefined
    return known ? [{ name: limit, unit: known.unit, span: known.span, max: String(max) }] : []
  })
  await tx.query(REMOVE_LIMITS, [account, name, Object.keys(limits)])
  if (rows.length > 0) await tx.query(KEEP, [account, name, JSON.stringify(rows), spenders])
  if (scope.kind === 'system') await tx.query(rows.length > 0 ? KEEP_VERSION : PRUNE_VERSION)
  if (scope.kind !== 'system') await recallLeases(tx, account)
}

/**
 * They were made under other limits or budgets. `recalled` of the ledger waits until no process admits calls by them.
 */
export const recallLeases = (tx: Queryable, account: string) => tx.query(RECALL, [account])

/** Of the whole gateway, or of an account or key. Who changes them reads them after the account is locked. */
export async function readLimits(on: Queryable, account = '', scope = account === '' ? 'system' : 'account') {
  const [row] = await on.query<{ limits: Limits }>(READ, [account, scope])
  return row?.limits ?? {}
}

const LOCK = sql('limits_lock')`select 1 from account where id = $1 for update`
/** Whoever sets them. */
const LOCK_SYSTEM = sql('limits_lock_system')`select pg_advisory_xact_lock(7046029262)`
const REMOVE_LIMITS = sql('limits_forget')`
  delete from counter where account_id = $1 and scope = $2 and name <> all($3::text[])`
const RECALL = sql('limits_recall')`update lease set recalled_at = least(recalled_at, now()) where account_id = $1`
const READ = sql('limits_read')`select limits_of($1, $2) as limits`
// Those that are set after there were none are others than any before.
const KEEP_VERSION = sql('limits_version')`
  insert into setting (name, value) values ('system-limits', (extract(epoch from now()) * 1000000)::bigint::text)
   on conflict (name) do update set value = (setting.value::bigint + 1)::text`
const PRUNE_VERSION = sql('limits_no_version')`delete from setting where name = 'system-limits'`
/**
 * A counter that is new begins with what was spent in its span (those of the whole gateway are summed up in
 * functions/quota-slice.sql), and counts requests and tokens from the moment in which the account is locked, which is
 * not when the transaction began.
 */
const KEEP = sql('limits_keep')`insert into counter (account_id, scope, name, unit, span, max, used, second, since)
   select $1, $2, x.name, x.unit, x.span, x.max,
     case when $1 = '' or x.unit <> 'credits' or exists (select 1 from counter c where c.account_id = $1 and c.scope = $2 and c.name = x.name) then 0 else (
       select coalesce(sum(u.charged), 0)::bigint from usage_hour u
       where u.account_id = $1 and ($4::text[] is null or u.key_id = any($4))
         and (x.span = 'total' or u.hour >= date_trunc(nullif(x.span, 'total'), now(), 'UTC'))) end,
     case when x.span in ('day', 'week', 'month') then extract(epoch from date_trunc(x.span, now(), 'UTC'))::bigint else 0 end,
     case when $1 = '' then '-infinity' else clock_timestamp() end
   from jsonb_to_recordset($3::jsonb) as x(name text, unit text, span text, max bigint)
   on conflict (account_id, scope, name) do update set max = excluded.max, unit = excluded.unit, span = excluded.span`
