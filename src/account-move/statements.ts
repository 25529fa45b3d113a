// The steps of a move as statements. Whoever changes the state of a move has locked the account, and names the move by its id. A test
// account stays where it is, and is closed and opened with its owner.
import { type Queryable, type Statement, statement, type Value } from '../database/database.ts'

/** The row of a statement that always has one. */
export async function one<R>(on: Queryable, what: Statement, values: readonly Value[]): Promise<R> {
  const [row] = await on.query<R>(what, values)
  if (!row) throw new Error(`The statement ${what.name} found nothing, though it always finds something.`)
  return row
}

export const IS_MADE = statement('move_is_made', `select to_regclass('migration') is not null as is`)
export const SCHEMA = statement('move_schema', 'select max(number) as number from migration')
export const STATE = statement('move_state', 'select move_id, state, other from account_move where account_id = $1')
export const OPEN_JOBS = statement(
  'move_jobs',
  'select id from job where account_id = $1 and open order by id limit 10',
)
export const STILL_HELD = statement(
  'move_still_held',
  `select (select count(*)::int from hold where account_id = $1) as holds, (select count(*)::int from lease where account_id = $1) + (select count(*)::int from journal where account_id = $1) as leases`,
)
export const ACCOUNT = statement(
  'move_account',
  `select (to_jsonb(a) - 'search')::text as account, posted from account a where id = $1`,
)
export const TALLY_ACCOUNT = statement(
  'move_tally_account',
  `select 1 as rows, hashtextextended((to_jsonb(a) - 'frozen_until')::text, 0)::text as mark from account a where id = $1`,
)

/** At the source: begins, unless it has gone or is still to come. */
export const LEAVE = statement(
  'move_leave',
  `with locked as materialized (select id from account where id = $1 for update)
   insert into account_move as m (account_id, move_id, state, other) select id, $2, 'leaving', $3 from locked
   on conflict (account_id) do update set move_id = excluded.move_id, state = excluded.state, other = excluded.other, at = now()
   where m.state in ('leaving', 'arrived') returning now() as now`,
)
export const FREEZE = statement(
  'move_freeze',
  `with frozen as (
     update account a set frozen_until = now() + make_interval(secs => $3) from account_move m
     where a.id in ($1, $4) and m.account_id = $1 and m.move_id = $2 and m.state = 'leaving' returning a.id
   ), recalled as (
     update lease e set recalled_at = now() from frozen f where e.account_id = f.id and e.recalled_at is null
   ) select id from frozen`,
)
export const THAW = statement(
  'move_thaw',
  `update account a set frozen_until = null from account_move m
   where a.id in ($1, $3) and m.account_id = $1 and m.move_id = $2 and m.state = 'leaving'`,
)
export const LOCK = statement('move_lock', 'select posted, held <> 0 as busy from account where id = $1 for update')
/** After the account, and by itself: the two may lie on different servers. */
export const LOCK_LEAVING = statement(
  'move_lock_leaving',
  `select exists (select 1 from job j where j.account_id = $1 and j.open) as busy
   from account_move m where m.account_id = $1 and m.move_id = $2 and m.state = 'leaving' for update of m`,
)
export const TAKE_BACK = statement('move_take_back', 'select 1 from ledger_grant($1, $2, -$3::bigint, $4, $5)')
export const CLOSE = statement(
  'move_close',
  `update account set posted = case when id = $1 then 0 else posted end, frozen_until = 'infinity' where id in ($1, $2)`,
)
export const GONE = statement(
  'move_gone',
  `update account_move set state = 'gone', other = $3, at = now() where account_id = $1 and move_id = $2`,
)
export const CANCEL = statement(
  'move_cancel',
  `with mine as (
     update account_move set move_id = $2 where account_id = $1 and move_id = $3 and state = 'leaving' returning account_id
   ) update account a set frozen_until = null from mine where a.id in (mine.account_id, $4) returning a.id`,
)
export const FORGET_LEAVING = statement(
  'move_forget_leaving',
  'delete from account_move where account_id = $1 and move_id = $2',
)

/** At the target. Nothing stands beside an account that is open there in the usual way. */
export const LOCK_ARRIVAL = statement(
  'move_lock_arrival',
  `select m.move_id, m.state, m.other from account a left join account_move m on m.account_id = a.id where a.id = $1 for update of a`,
)
export const PUT_ACCOUNT = statement(
  'move_put_account',
  `insert into account (id, name, limits, created_at, moved_at, chain, chained_at, posted, frozen_until)
   select x.id, x.name, x.limits, x.created_at, x.moved_at, x.chain, x.chained_at, $2, 'infinity'
   from jsonb_to_record($1::jsonb) as x(id text, name text, limits jsonb, created_at timestamptz, moved_at timestamptz, chain bytea, chained_at timestamptz)
   on conflict (id) do update set name = excluded.name, limits = excluded.limits, created_at = excluded.created_at, moved_at = excluded.moved_at, chain = excluded.chain, chained_at = excluded.chained_at,
     posted = excluded.posted, frozen_until = excluded.frozen_until`,
)
export const PUT_ARRIVAL = statement(
  'move_put_arrival',
  `insert into account_move (account_id, move_id, state, other) values ($1, $2, 'arriving', $3)
   on conflict (account_id) do update set move_id = excluded.move_id, state = excluded.state, other = excluded.other, at = now()`,
)
export const OPEN = statement(
  'move_open',
  `with opened as (update account set frozen_until = null where id in ($1, $2))
   update account_move set state = 'arrived', at = now() where account_id = $1`,
)
export const FORGET_MOVE = statement('move_forget', 'delete from account_move where account_id = $1')
export const FORGET_ACCOUNT = statement('move_forget_account', 'delete from account where id = $1')
