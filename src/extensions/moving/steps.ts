// The steps of a move as statements. Whoever changes the state of a move has locked the account, and names the move by
// its id. A test account stays where it is, and is closed and opened with its owner.
import { type Queryable, type Statement, sql, type Value } from '../../database/database.ts'

/** As a ledger is called that is none: the control database. */
export const CONTROL = 'control'

/** The row of a statement that always has one. */
export async function one<R>(on: Queryable, what: Statement, values: readonly Value[]): Promise<R> {
  const [row] = await on.query<R>(what, values)
  if (!row) throw new Error(`The statement ${what.name} found nothing, though it always finds something.`)
  return row
}

export const IS_MADE = sql('move_is_made')`select to_regclass('migration') is not null as is`
export const SCHEMA = sql('move_schema')`select max(number) as number from migration`
export const STATE = sql('move_state')`select move_id, state, other from account_move where account_id = $1`
export const OPEN_JOBS = sql('move_jobs')`select id from job where account_id = $1 and open order by id limit 10`
export const STILL_HELD = sql('move_still_held')`
  select (select count(*)::int from hold where account_id = $1) as holds, (select count(*)::int from lease where account_id = $1) + (select count(*)::int from journal where account_id = $1) as leases`
export const ACCOUNT = sql('move_account')`
  select (to_jsonb(a) - 'search')::text as account, posted from account a where id = $1`
/** At the source: begins, unless it has gone or is still to come. */
export const LEAVE = sql('move_leave')`
  with locked as materialized (select id from account where id = $1 for update)
  insert into account_move as m (account_id, move_id, state, other) select id, $2, 'leaving', $3 from locked
  on conflict (account_id) do update set move_id = excluded.move_id, state = excluded.state, other = excluded.other, at = now()
  where m.state in ('leaving', 'arrived') returning now() as now`
export const MOMENT = sql('move_moment')`
  select coalesce(moved_at, '-infinity')::text as moved, now() as at from account where id = $1`
/** Nothing is leased of it any more, or again: what was is given back, so that all that is held are running calls. */
export const UNLEASE = sql('move_unlease')`
  with changed as (update account set is_moving = $3 where id in ($1, $2) returning id)
  update lease e set recalled_at = least(e.recalled_at, now()) from changed c where $3 and e.account_id = c.id`
export const FREEZE = sql('move_freeze')`
  with frozen as (
    update account a set frozen_until = now() + make_interval(secs => $3) from account_move m
    where a.id in ($1, $4) and m.account_id = $1 and m.move_id = $2 and m.state = 'leaving' returning a.id
  ), recalled as (
    update lease e set recalled_at = now() from frozen f where e.account_id = f.id and e.recalled_at is null
  ) select id from frozen`
export const THAW = sql('move_thaw')`
  update account a set frozen_until = null from account_move m
  where a.id in ($1, $3) and m.account_id = $1 and m.move_id = $2 and m.state = 'leaving'`
export const LOCK = sql('move_lock')`select posted, held <> 0 as busy from account where id = $1 for update`
/** After the account, and by itself: the two may lie on different servers. */
export const LOCK_LEAVING = sql('move_lock_leaving')`
  select exists (select 1 from job j where j.account_id = $1 and j.open) as busy
  from account_move m where m.account_id = $1 and m.move_id = $2 and m.state = 'leaving' for update of m`
export const TAKE_BACK = sql('move_take_back')`select moved from ledger_grant($1, $2, -$3::bigint, $4, $5)`
export const CLOSE = sql('move_close')`
  update account set posted = case when id = $1 then 0 else posted end, frozen_until = 'infinity' where id in ($1, $2)`
/** Whoever moves it says so again and again. */
export const DRIVEN = sql('move_driven')`
  update account_move set at = now() where account_id = $1 and move_id = $2 and at < 'infinity'`
/** Nothing is left to do for the account and its test account here. */
export const ENDED = sql('move_ended')`
  update account_move set at = 'infinity' where account_id = $1 and state = 'gone' and at < 'infinity'
  and not exists (select 1 from account where id in ($1, $2) and (ledger is null or moved_at is not null))`
/** Nobody has said for a minute that they move it. Those of an account that went to another installation end there. */
export const ABANDONED = sql('move_abandoned')`
  update account_move m set at = now() where m.at < now() - interval '1 minute'
    and (m.state in ('leaving', 'gone') and m.other = any($1)
      or m.state = 'leaving' and exists (select 1 from account a where a.id = m.account_id and a.is_moving))
  returning m.account_id as account, m.move_id as move, m.state, m.other as to`
export const GIVEN_UP = sql('move_given_up')`
  update account_move set at = 'infinity' where account_id = $1 and move_id = $2 and state = 'gone'`
export const GONE = sql('move_gone')`
  update account_move set state = 'gone', other = $3, at = now() where account_id = $1 and move_id = $2`
export const CANCEL = sql('move_cancel')`
  with mine as (
    update account_move set move_id = $2 where account_id = $1 and move_id = $3 and state = 'leaving' returning account_id
  ) update account a set frozen_until = null from mine where a.id in (mine.account_id, $4) returning a.id`
export const PRUNE_LEAVING = sql('move_forget_leaving')`delete from account_move where account_id = $1 and move_id = $2`

/** At the target. Nothing stands beside an account that is open there in the usual way. */
export const LOCK_ARRIVAL = sql('move_lock_arrival')`
  select m.move_id, m.state, m.other, a.ledger from account a left join account_move m on m.account_id = a.id where a.id = $1 for update of a`
export const PUT_ACCOUNT = sql('move_put_account')`
  insert into account (id, name, created_at, moved_at, chain, status, status_reason, status_at, has_lots, budgets, budget_values, claims, region, posted, frozen_until)
  select x.id, x.name, x.created_at, x.moved_at, x.chain, x.status, x.status_reason, x.status_at, x.has_lots, x.budgets, x.budget_values, x.claims, x.region, $2, 'infinity'
  from jsonb_to_record($1::jsonb) as x(id text, name text, created_at timestamptz, moved_at timestamptz, chain bytea,
    status text, status_reason text, status_at timestamptz, has_lots boolean, budgets int, budget_values int, claims int, region text)
  on conflict (id) do update set name = excluded.name, created_at = excluded.created_at, moved_at = excluded.moved_at, chain = excluded.chain,
    status = excluded.status, status_reason = excluded.status_reason, status_at = excluded.status_at, has_lots = excluded.has_lots, budgets = excluded.budgets, budget_values = excluded.budget_values, claims = excluded.claims, region = excluded.region, posted = excluded.posted, frozen_until = excluded.frozen_until`
export const PUT_ARRIVAL = sql('move_put_arrival')`
  insert into account_move (account_id, move_id, state, other) values ($1, $2, 'arriving', $3)
  on conflict (account_id) do update set move_id = excluded.move_id, state = excluded.state, other = excluded.other, at = now()`
export const OPEN = sql('move_open')`
  with opened as (update account set frozen_until = null, is_moving = false where id in ($1, $2))
  update account_move set state = 'arrived', at = now() where account_id = $1`
/** A copy that was begun here is gone again. */
export const REMOVE_ARRIVAL = sql('move_remove_arrival')`
  update account_move set state = 'gone', at = 'infinity' where account_id = $1`
export const PRUNE_ACCOUNT = sql('move_forget_account')`delete from account where id = $1 and ledger is null`

// Within one installation: the directory of the control database, which says where each account is.

export const HOME = sql('place_of')`select coalesce(ledger, $2) as name, region from account where id = $1`
/** For a while before it changes, so that no process serves by what it knew. */
export const PASS = sql('move_pass')`update account set is_moving = $2 where id = $1 and is_moving is distinct from $2`
export const FLIP = sql('move_flip')`update account set ledger = $2, is_moving = false where id = $1`
/** What control has decided, and nobody has done yet. */
export const CROSSINGS_FOLLOW = sql('move_crossings')`
  update crossing set ledger = coalesce($2, 'control') where detail ->> 'account' = $1`
/** In the control database it goes on as the row that people's memberships refer to. */
export const EMPTY_SHELL = sql('move_empty_shell')`
  update account set posted = 0, has_lots = false, chain = null, moved_at = null, budgets = 0, budget_values = 0, claims = 0 where id = $1 and ledger is not null`
/** Whether exports of the source have sent all of its calls. */
export const UNSENT = sql('move_unsent')`
  select 1 from export e where e.open and e.account_id in ('', $1) and (e.backfill is not null
  or exists (select 1 from usage u where u.account_id = $1 and u.posting is not null and (u.posting, u.account_id, u.id) > (e.cursor_posting, e.cursor_account, e.cursor_id))) limit 1`
