-- The holds and leases of processes that have gone silent, and of none that is a job's. An account that somebody else has locked
-- waits for the next sweep. A word from the future was said before the clock was set back: whoever lives has spoken since.
drop function if exists ledger_expire(interval, int);
create function ledger_expire(silent interval, most int) returns table (gone int, given_back bigint)
language plpgsql as $$
declare
  free text[];
  moment timestamptz;
begin
  free := array(
    select a.id from account a where a.id in (
      select distinct x.account_id from (
        select h.account_id, h.process_id from hold h where not h.job union all select e.account_id, e.process_id from lease e
      ) x left join process p on p.id = x.process_id
      where p.id is null or p.heartbeat_at not between now() - silent and now() + silent
      order by x.account_id limit most)
    order by a.id for update skip locked);
  -- Not before the accounts are locked: what others wrote lies before it.
  moment := clock_timestamp();
  with silent_ones as (
    select p.id from process p where p.heartbeat_at not between now() - silent and now() + silent
  ), dead as (
    delete from hold h where h.account_id = any(free) and not h.job
      and (h.process_id in (select id from silent_ones) or not exists (select 1 from process p where p.id = h.process_id))
    returning h.*
  ), ended as (
    -- What its calls have spent of a lease is in the journal, and booked before it ends.
    delete from lease e where e.account_id = any(free) and not exists (select 1 from journal j where j.process_id = e.process_id and j.account_id = e.account_id)
      and (e.process_id in (select id from silent_ones) or not exists (select 1 from process p where p.id = e.process_id))
    returning e.*
  ), given as (
    select account_id, key_id, process_id, amount, 1 as calls from dead union all select account_id, key_id, process_id, amount, 0 from ended
  ), sums as (
    select account_id, sum(amount) as amount from given group by account_id
  ), placed as (
    select d.account_id, d.id, d.amount, a.posted, a.chain,
      greatest(moment, a.moved_at + interval '1 microsecond') + (row_number() over (partition by d.account_id order by d.id) - 1) * interval '1 microsecond' as moved_at
    from dead d join account a on a.id = d.account_id
  ), linked as (
    select p.*, transfer_chain(p.chain, p.account_id, p.id, 'expired', 0, p.amount, p.posted) over (partition by p.account_id order by p.id) as hash from placed p
  ), last_ones as (
    select distinct on (l.account_id) l.account_id, l.moved_at, l.hash from linked l order by l.account_id, l.id desc
  ), accounts as (
    update account a set held = a.held - s.amount, moved_at = coalesce(l.moved_at, a.moved_at), chain = coalesce(l.hash, a.chain)
    from sums s left join last_ones l on l.account_id = s.account_id where a.id = s.account_id
  ), scopes as (
    select x.account_id, x.scope, sum(g.amount) as amount, sum(g.calls) as calls from given g,
      lateral (values (g.account_id, 'account'), (g.account_id, g.key_id), ('', case when not {{test g.account_id}} then 'system@' || g.process_id end)) as x(account_id, scope)
    group by x.account_id, x.scope
  ), limits as (
    update limited l set held = l.held - s.amount, open_calls = l.open_calls - s.calls
    -- A share that is not divided yet has counted none of it, nor has a scope that limits only the minute.
    from scopes s where l.account_id = s.account_id and l.scope = s.scope and l.limits <> '{}' and (l.account_id = '' or limited_is_money(l.limits))
  ), moved as (
    insert into transfer (account_id, id, kind, amount, held, moved_at, balance, hash)
    select account_id, id, 'expired', 0, amount, moved_at, posted, hash from linked
  ), used as (
    insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines)
    select account_id, id, key_id, product, '', 'expired', 500, 0, amount, catalog_version, '[]' from dead
  ), summed as (
    {{into hours}}
    select account_id, date_trunc('hour', now(), 'UTC'), product, key_id, count(*), count(*), 0, 0, 0, 0
    from dead group by account_id, product, key_id order by account_id, product, key_id
    {{added up}}
  ), forgotten as (
    -- The key is free again, but remembers for whom it was: see the late settlement.
    update idempotency i set freed = true from dead d where i.account_id = d.account_id and i.hold_id = d.id and i.status is null
  )
  select (select count(*) from dead), (select coalesce(sum(g.amount), 0) from given g) into gone, given_back;
  return next;
end $$;
