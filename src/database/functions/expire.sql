-- Gives back what processes hold of an account that have been silent for so long: their holds but for those of jobs,
-- and their leases, of which all that was spent is in the ledger. A heartbeat from the future was written before the
-- clock was set back; a living process has written one since.
-- Answers [how many holds expired, how much was given back].
create or replace function ledger_expire(account text, silent interval) returns jsonb
language plpgsql as $$
declare
  dead text[];
  ids text[];
  freed bigint := 0;
  ended bigint := 0;
  now_second bigint := floor(extract(epoch from clock_timestamp()))::bigint;
  r record;
  o record;
begin
  perform 1 from account a where a.id = account for update;
  dead := array(
    select x.process_id from (select h.process_id from hold h where h.account_id = account and not h.job union select e.process_id from lease e where e.account_id = account) x
    where not exists (select 1 from gateway_instance p where p.id = x.process_id and p.heartbeat_at between now() - silent and now() + silent));
  insert into journal (account_id, id, key_id, outcome, charged, held, tokens, second, input_tokens, output_tokens, product, endpoint, status, catalog_version, lines,
    estimated, stream, route, duration_ms, first_byte_ms)
  select h.account_id, h.id, h.key_id, 'expired', 0, 0, 0, 0, 0, 0, h.product, '', 500, h.catalog_version, '[]', false, false, 0, 0, 0
  from hold h where h.account_id = account and not h.job and h.process_id = any(dead)
  on conflict (account_id, id) do nothing;
  ids := array(select h.id from hold h where h.account_id = account and not h.job and h.process_id = any(dead));
  freed := coalesce((select sum(h.amount) from hold h where h.account_id = account and h.id = any(ids)), 0);
  perform ledger_settle(account, ids);
  -- The key is free again, but remembers for whom it was: see the late settlement.
  update idempotency i set freed = true where i.account_id = account and i.hold_id = any(ids) and i.status is null;
  select a.posted, a.moved_at, a.chain, a.claims into o from account a where a.id = account;
  for r in delete from lease e where e.account_id = account and e.process_id = any(dead)
    and not exists (select 1 from journal j where j.account_id = account and j.lease_id = e.id) returning e.* loop
    ended := ended + r.amount;
    if r.claims < o.claims then
      select k.* into o.posted, o.moved_at, o.chain from claim_take(account, r.claims, jsonb_build_array(jsonb_build_array('', r.amount)), 0, o.posted, o.moved_at, o.chain) k;
    end if;
    -- What it did not use of limits on requests and tokens, and what calls took that nobody will settle. One that is
    -- settled after all is counted then.
    if r.slices <> '{}' then
      perform counter_put(array(select slice_return(counter_now(c, now_second), r.slices) from counter c
        where c.account_id = account and c.scope in (select 'account' union all select r.key_id union all select jsonb_array_elements_text(r.scopes))
          and c.unit in ('requests', 'tokens') and c.since <= r.created_at));
    end if;
  end loop;
  update account a set held = a.held - ended, posted = o.posted, moved_at = o.moved_at, chain = o.chain where a.id = account and ended > 0;
  return jsonb_build_array(cardinality(ids), (freed + ended)::text);
end $$;
