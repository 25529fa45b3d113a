-- Gives credits to an account. A negative amount takes back what is available, and no more. Statement by statement, because what one statement
-- reads of a row that it had to wait for may be older than what it then changes. kind: what the transfer is; by itself a grant or a takeback.
-- What a refund cannot take back is a loss; recovered: what a purchase makes up of such a loss.
drop function if exists ledger_grant(text, text, bigint, text, text);
drop function if exists ledger_grant(text, text, bigint, text, text, text);
create or replace function ledger_grant(grant_id text, account text, amount bigint, note text, actor text, kind text default null, recovered bigint default 0)
returns table (posted bigint, held bigint)
language plpgsql as $$
declare
  moved bigint;
  moment timestamptz;
  link bytea;
  what text;
  lost bigint;
begin
  select a.posted, a.held, a.moved_at, a.chain into posted, held, moment, link from account a where a.id = ledger_grant.account for update;
  if not found then
    return;
  end if;
  moved := greatest(amount, held - posted);
  posted := posted + moved;
  what := coalesce(kind, case when moved >= 0 then 'grant' else 'takeback' end);
  lost := case what when 'refund' then moved - amount when 'purchase' then recovered else 0 end;
  moment := greatest(clock_timestamp(), moment + interval '1 microsecond');
  link := transfer_hash(link, account, grant_id, what, abs(moved), lost, 0, posted, note, actor);
  update account a set posted = ledger_grant.posted, moved_at = moment, chain = link where a.id = ledger_grant.account;
  insert into transfer (id, account_id, kind, amount, loss, note, actor, moved_at, balance, hash)
  values (grant_id, account, what, abs(moved), lost, note, actor, moment, posted, link);
  return next;
end $$;
