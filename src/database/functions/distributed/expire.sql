-- The same as its namesake, for accounts that lie on several servers: account by account, in the words of a flush. One that somebody
-- else has locked waits for the next sweep.
drop function if exists ledger_expire(interval, int);
create function ledger_expire(silent interval, most int) returns table (gone int, given_back bigint)
language plpgsql as $$
declare
  alive text[] := array(select p.id from process p where p.heartbeat_at between now() - silent and now() + silent);
  done record;
  r record;
begin
  gone := 0; given_back := 0;
  for r in
    select h.account_id, h.process_id, h.id, h.key_id, h.product, h.catalog_version, h.amount from hold h
    where not h.job and h.process_id <> all(alive) order by h.account_id, h.id limit most
  loop
    select * into done from ledger_flush(process => r.process_id, accounts => array[r.account_id], keys => array[r.key_id], key_accounts => array[1],
      patient => false, s_id => array[r.id], s_account => array[1], s_key => array[1], s_kind => array['expired'], s_charge => array[0],
      s_in => array[0], s_out => array[0], s_key_id => array[r.key_id], s_product => array[r.product], s_endpoint => array[''],
      s_status => array[500], s_catalog_version => array[r.catalog_version], s_lines => '[[]]', s_duration_ms => array[0]);
    continue when done.resolved like 'busy;%';
    gone := gone + 1; given_back := given_back + r.amount;
    -- The key is free again, but remembers for whom it was: see the late settlement.
    update idempotency i set freed = true where i.account_id = r.account_id and i.hold_id = r.id and i.status is null;
  end loop;
  for r in
    select e.account_id, e.process_id, e.id, e.key_id, e.amount from lease e where e.process_id <> all(alive) order by e.account_id, e.id limit most
  loop
    select * into done from ledger_flush(process => r.process_id, accounts => array[r.account_id], keys => array[r.key_id], key_accounts => array[1],
      leases => array[r.id], patient => false, l_lease => array[1], l_account => array[1], l_key => array[1], l_new => array[false], l_give => array[0],
      l_add => array[0], l_least => array[0], l_requests => array[0], l_tokens => array[0], l_close => array[true]);
    continue when done.leased like '-1;%';
    given_back := given_back + r.amount;
  end loop;
  return next;
end $$;
