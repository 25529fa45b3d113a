-- The holds of processes that have gone silent, and of none that is a job's.
drop function if exists ledger_expire(interval, int);
create function ledger_expire(silent interval, most int) returns table (gone int, given_back bigint)
language plpgsql as $$
begin
  create temp table if not exists expiring (id text, account_id text) on commit delete rows;
  delete from expiring;
  insert into expiring
  select h.id, h.account_id from hold h
  left join process p on p.id = h.process_id
  where not h.job and (p.id is null or p.heartbeat_at < now() - silent)
  order by h.account_id, h.id limit most;
  perform 1 from account a where a.id in (select account_id from expiring) order by a.id for update;
  -- A settlement may have come first while we waited for the accounts.
  with dead as (
    delete from hold h using expiring e where h.id = e.id
    returning h.*
  ), sums as (
    select account_id, sum(amount) as amount from dead group by account_id
  ), accounts as (
    update account a set held = a.held - s.amount from sums s where a.id = s.account_id
  ), scopes as (
    select scope, sum(d.amount) as amount, count(*) as calls from dead d, unnest(d.scopes) scope group by scope
  ), limits as (
    update limited l set held = l.held - s.amount, open_calls = greatest(l.open_calls - s.calls, 0) from scopes s where l.scope = s.scope
  ), moved as (
    insert into transfer (id, account_id, kind, amount, held) select id, account_id, 'expired', 0, amount from dead
  ), used as (
    insert into usage (id, account_id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines)
    select id, account_id, key_id, product, '', 'expired', 500, 0, amount, catalog_version, '[]' from dead
  ), summed as (
    insert into usage_hour as u (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
    select account_id, date_trunc('hour', now(), 'UTC'), product, key_id, count(*), count(*), 0, 0, 0, 0
    from dead group by account_id, product, key_id order by account_id, product, key_id
    on conflict (account_id, hour, product, key_id) do update set requests = u.requests + excluded.requests, errors = u.errors + excluded.errors
  ), forgotten as (
    delete from idempotency i using dead d where i.hold_id = d.id and i.status is null
  )
  select count(*), coalesce(sum(d.amount), 0) into gone, given_back from dead d;
  return next;
end $$;
