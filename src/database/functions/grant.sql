-- A negative amount takes back what is available, and no more. Statement by statement, because what one statement reads of
-- a row that it had to wait for may be older than what it then changes.
create or replace function ledger_grant(grant_id text, account text, amount bigint, note text, actor text)
returns table (posted bigint, held bigint)
language plpgsql as $$
declare
  moved bigint;
begin
  select a.posted, a.held into posted, held from account a where a.id = ledger_grant.account for update;
  if not found then
    return;
  end if;
  moved := greatest(amount, held - posted);
  posted := posted + moved;
  update account a set posted = ledger_grant.posted where a.id = ledger_grant.account;
  insert into transfer (id, account_id, kind, amount, note, actor)
  values (grant_id, account, case when moved >= 0 then 'grant' else 'takeback' end, abs(moved), note, actor);
  return next;
end $$;
