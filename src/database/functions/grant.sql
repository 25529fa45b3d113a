-- Gives credits to an account. A negative amount takes back what is available, and no more. Statement by statement,
-- because what one statement reads of a row that it had to wait for may be older than what it then changes. kind: what
-- the transfer is; by itself a grant or a takeback. What a refund cannot take back is a loss; recovered: what a
-- purchase makes up of such a loss.
-- lot: {source, endsAt, products, priority} of credits that are a lot of their own; {id} of the lot from which credits
-- are taken back first, and with {only} alone; {payment} that is
-- refunded: what calls hold of it is claimed. Answers what the account has afterwards, and what was moved.
drop function if exists ledger_grant(text, text, bigint, text, text);
drop function if exists ledger_grant(text, text, bigint, text, text, text);
drop function if exists ledger_grant(text, text, bigint, text, text, text, bigint);
drop function if exists ledger_grant(text, text, bigint, text, text, text, bigint, jsonb);
create function ledger_grant(grant_id text, account text, amount bigint, note text, actor text, kind text default null, recovered bigint default 0, lot jsonb default null)
returns table (posted bigint, held bigint, moved bigint)
language plpgsql as $$
declare
  moment timestamptz;
  link bytea;
  what text;
  lost bigint;
  had_lots boolean;
  of_lots jsonb;
  claims_made int;
  claimed bigint := 0;
begin
  select a.posted, a.held, a.moved_at, a.chain, a.has_lots, a.claims into posted, held, moment, link, had_lots, claims_made from account a where a.id = ledger_grant.account for update;
  if not found then
    return;
  end if;
  if had_lots then
    select x.posted, x.moved_at, x.chain into posted, moment, link from lot_expire(account, clock_timestamp(), posted, moment, link) x;
  end if;
  moved := greatest(amount, held - posted);
  if lot ? 'only' then
    moved := greatest(moved, -coalesce((select l.remaining - l.held from lot l where l.account_id = ledger_grant.account and l.id = lot ->> 'id'), 0));
  end if;
  if had_lots and moved < 0 then
    of_lots := lot_take_back(account, lot ->> 'id', posted - held, '-infinity', -moved);
  elsif lot ? 'source' and moved > 0 then
    of_lots := jsonb_build_object(grant_id, moved); had_lots := true;
    insert into lot (account_id, id, source, amount, remaining, ends_at, products, priority)
    values (account, grant_id, lot ->> 'source', moved, moved, (lot ->> 'endsAt')::timestamptz,
      case when jsonb_typeof(lot -> 'products') = 'array' then array(select jsonb_array_elements_text(lot -> 'products')) end, coalesce((lot ->> 'priority')::smallint, 50));
    -- Calls that a lease covers spend plain credits, also where a lot should be spent first.
    update lease e set recalled_at = least(e.recalled_at, now()) where e.account_id = account;
  end if;
  posted := posted + moved;
  what := coalesce(kind, case when moved >= 0 then 'grant' else 'takeback' end);
  lost := case what when 'refund' then moved - amount when 'purchase' then recovered else 0 end;
  if what = 'refund' and lost > 0 and lot ? 'payment' then
    claimed := least(lost, case when lot ? 'only' then coalesce((select l.held from lot l where l.account_id = ledger_grant.account and l.id = lot ->> 'id'), 0) else held end);
  end if;
  if claimed > 0 then
    claims_made := claims_made + 1;
    insert into claim (account_id, id, payment_id, number, amount, lot_id, only_lot) values (account, grant_id, lot ->> 'payment', claims_made, claimed, lot ->> 'id', lot ? 'only');
    -- They admit no more calls, and what they have goes back.
    update lease e set recalled_at = least(e.recalled_at, now()) where e.account_id = account;
  end if;
  moment := greatest(clock_timestamp(), moment + interval '1 microsecond');
  link := transfer_hash(link, account, grant_id, what, abs(moved), lost, claimed, posted, note, actor, of_lots);
  update account a set posted = ledger_grant.posted, moved_at = moment, chain = link, claims = claims_made,
    has_lots = had_lots and exists (select 1 from lot l where l.account_id = ledger_grant.account and l.remaining > 0) where a.id = ledger_grant.account;
  insert into transfer (id, account_id, kind, amount, loss, held, note, actor, moved_at, balance, hash, lots)
  values (grant_id, account, what, abs(moved), lost, claimed, note, actor, moment, posted, link, of_lots);
  return next;
end $$;
