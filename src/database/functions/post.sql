-- The way of settlements from the journal into the books. A row of the journal is the right to book it: whoever deletes it does so in the
-- same transaction, with the account locked, so that each is booked once, whoever does it and however often it is tried.

-- Books those of a process' rows whose leases cover them: `ids`, as many as are still there. What is locked by others is waited for, or stays if
-- not `patient`, as does all of an account of which a lease is not what it should be: ledger_post_apart takes these.
-- Answers the ids that stay because their accounts are locked, and those that must go apart.
drop function if exists ledger_post(text, text[], boolean);
create function ledger_post(process text, ids text[], patient boolean) returns table (busy text[], apart text[])
language plpgsql
-- As ledger_flush: every row is reached by its key, whatever the planner knows of the tables' sizes.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
set lock_timeout = '300ms'
as $$
declare
  now_second bigint := floor(extract(epoch from clock_timestamp()))::bigint;
  accounts text[];
  today date := (now() at time zone 'UTC')::date;
  moment timestamptz;
  wanted text[];
  leases text[];
  troubled text[];
  is_shared boolean;
  are_limited boolean;
  spends boolean;
  current limited;
  n int;
  b_account text[];
  b_scope text[];
  b_paid bigint[];
  u_account text[];
  u_scope text[];
  u_second bigint[];
  u_made timestamptz[];
  u_more bigint[];
  own text := 'system@' || process;
  r record;
  c_now limited[];
  none bigint[];
  d_held bigint[];
  d_spent bigint[];
  k_place int[];
  k_second bigint[];
  k_tokens bigint[];
begin
  wanted := array(select distinct j.account_id from journal j where j.process_id = process and j.id = any(ids));
  leases := array(select distinct j.lease_id from journal j where j.process_id = process and j.id = any(ids));
  if patient then
    accounts := array(select a.id from account a where a.id = any(wanted) order by a.id for update);
  else
    accounts := array(select a.id from account a where a.id = any(wanted) order by a.id for update skip locked);
  end if;
  if cardinality(accounts) < cardinality(wanted) then
    busy := array(select j.id from journal j where j.process_id = process and j.id = any(ids) and j.account_id <> all(accounts));
  end if;
  troubled := array(
    select distinct x.account_id from (
      select j.account_id, j.lease_id, sum(j.charged) as spent from journal j
      where j.process_id = process and j.id = any(ids) group by 1, 2
    ) x left join lease e on e.account_id = any(wanted) and e.id = any(leases) and e.account_id = x.account_id and e.id = x.lease_id
    where (e.amount is null or e.amount < x.spent) and (busy is null or x.account_id = any(accounts)));
  if cardinality(troubled) > 0 then
    apart := array(select j.id from journal j where j.process_id = process and j.id = any(ids) and j.account_id = any(troubled));
    accounts := array(select x from unnest(accounts) x where x <> all(troubled));
  end if;
  if busy is not null or apart is not null then
    ids := array(select x from unnest(ids) x where x <> all(coalesce(busy, '{}') || coalesce(apart, '{}')));
  end if;

  -- Not before the accounts are locked: new limits may be what was waited for. What is counted is summed up here and written at the end, so that the
  -- system's share is locked for a moment only: every flush of this process needs it, and has accounts locked while it waits.
  is_shared := exists (select 1 from limited l where l.account_id = '' and l.scope = 'system');
  are_limited := is_shared or exists (select 1 from limited l where l.account_id = any(accounts) and l.limits - 'requestsPerMinute' <> '{}');
  if are_limited then
    -- What test accounts spend is no money.
    select array_agg(x.account_id), array_agg(x.scope), array_agg(x.paid) into b_account, b_scope, b_paid from (
      select v.account_id, v.scope, sum(j.charged)::bigint as paid
      from journal j cross join lateral (values ('', own), (j.account_id, 'account'), (j.account_id, j.key_id)) v(account_id, scope)
      where j.process_id = process and j.id = any(ids) and (v.account_id > '' or not {{test j.account_id}}) group by 1, 2 order by 1, 2) x;
    if exists (select 1 from limited l where l.account_id = any(accounts || ''::text) and l.limits ? 'tokensPerMinute') then
      select array_agg(v.account_id), array_agg(v.scope), array_agg(j.second), array_agg(e.created_at), array_agg(j.input_tokens + j.output_tokens - j.tokens)
        into u_account, u_scope, u_second, u_made, u_more
      from journal j cross join lateral (values ('', own), (j.account_id, 'account'), (j.account_id, j.key_id)) v(account_id, scope)
      join lease e on e.account_id = any(wanted) and e.id = any(leases) and e.account_id = j.account_id and e.id = j.lease_id
      where j.process_id = process and j.id = any(ids) and (v.account_id > '' or not {{test j.account_id}});
    end if;
  end if;

  -- Not before the accounts are locked: what others moved lies before it.
  moment := clock_timestamp();
  with taken as (
    delete from journal j where j.process_id = process and j.id = any(ids) returning j.*
  ), placed as (
    select t.*, a.chain, (a.posted - sum(t.charged) over w)::bigint as balance,
      greatest(moment, a.moved_at + interval '1 microsecond') + (row_number() over w - 1) * interval '1 microsecond' as moved_at
    from taken t join account a on a.id = any(wanted) and a.id = t.account_id window w as (partition by t.account_id order by t.id)
  ), linked as (
    select p.*, transfer_chain(p.chain, p.account_id, p.id, p.outcome, p.charged, p.held, p.balance) over (partition by p.account_id order by p.id) as hash from placed p
  ), moved as (
    insert into transfer (account_id, id, kind, amount, held, moved_at, balance, hash)
    select p.account_id, p.id, p.outcome, p.charged, p.held, p.moved_at, p.balance, p.hash from linked p
  ), used as (
    insert into usage (account_id, id, outcome, charged, held, {{facts as columns}})
    select account_id, id, outcome, charged, held, {{facts as columns}} from taken
  ), summed as (
    {{into hours}}
    select t.account_id, date_trunc('hour', now(), 'UTC'), t.product, t.key_id, count(*), count(*) filter (where t.status >= 400), sum(t.charged),
      sum(t.input_tokens), sum(t.output_tokens), sum(t.duration_ms)
    from taken t group by 1, 3, 4 order by 1, 3, 4
    {{added up}}
  ), leased as (
    update lease e set amount = e.amount - x.spent
    from (select t.account_id, t.lease_id, sum(t.charged) as spent from taken t group by 1, 2) x
    where e.account_id = any(wanted) and e.id = any(leases) and e.account_id = x.account_id and e.id = x.lease_id and x.spent > 0
  ), paid as (
    update account a set posted = a.posted - x.charged, held = a.held - x.charged, moved_at = x.moved_at, chain = x.hash
    from (select p.account_id, (array_agg(p.hash order by p.id desc))[1] as hash, sum(p.charged) as charged, max(p.moved_at) as moved_at from linked p group by 1) x
    where a.id = any(wanted) and a.id = x.account_id returning a.id
  )
  select count(*) into n from paid;

  if are_limited then
    -- As in ledger_flush: the system's share first, by a statement of its own.
    if is_shared then
      insert into limited (account_id, scope, limits) select '', own, '{}' where not exists (select 1 from limited l where l.account_id = '' and l.scope = own)
        on conflict do nothing;
      perform 1 from limited l where l.account_id = '' and l.scope = own for update;
    end if;
    for r in
      select l as scope, x.paid from unnest(b_account, b_scope, b_paid) as x(account_id, scope, paid) join limited l on l.account_id = x.account_id and l.scope = x.scope
      where l.account_id = any(b_account) and l.scope = any(b_scope) and (l.account_id = '' or l.limits - 'requestsPerMinute' <> '{}')
      order by l.account_id, l.scope for update of l
    loop
      current := limited_now(r.scope, now_second, today);
      n := coalesce(cardinality(c_now), 0) + 1; c_now[n] := current;
      -- What each counts: see ledger_flush.
      spends := current.account_id = '' or limited_is_money(current.limits);
      d_spent[n] := case when spends then r.paid else 0 end;
      d_held[n] := case when spends and current.limits <> '{}' then -r.paid else 0 end;
    end loop;
  end if;
  if c_now is not null then
    if u_account is not null then
      -- Only here two lists meet that have no keys.
      perform set_config('enable_hashjoin', 'on', true);
      select array_agg(x.n), array_agg(x.second), array_agg(x.more) into k_place, k_second, k_tokens from (
        select s.ordinality::int as n, u.second, sum(u.more)::bigint as more from unnest(u_account, u_scope, u_second, u_made, u_more) as u(account_id, scope, second, made, more)
        join unnest(c_now) with ordinality as s on s.account_id = u.account_id and s.scope = u.scope
        -- The minute counted the worst case; what began before it counted is not taken off.
        where s.limits ? 'tokensPerMinute' and (u.more > 0 or u.more < 0 and u.made >= s.since) group by 1, 2) x;
      perform set_config('enable_hashjoin', 'off', true);
    end if;
    none := array_fill(0::bigint, array[cardinality(c_now)]);
    perform limited_put(limited_counted(c_now, now_second, d_held, d_spent, none::int[], none, none,
      k_place, k_second, array_fill(0::bigint, array[coalesce(cardinality(k_place), 0)]), k_tokens));
  end if;
  return next;
end $$;

-- Books rows as ledger_flush books settlements: those whose lease has expired take what they spent anew, and what was booked before is
-- only taken out of the journal.
drop function if exists ledger_post_apart(text, text[]);
create function ledger_post_apart(process text, ids text[]) returns table (id text, resolved text)
language plpgsql as $$
declare
  j journal;
begin
  for j in select * from journal o where o.process_id = process and o.id = any(ids) order by o.id loop
    id := j.id;
    select f.resolved into resolved from ledger_flush(process => process, accounts => array[j.account_id], keys => array[j.key_id], key_accounts => '{1}',
      leases => array[j.lease_id], patient => false, s_id => array[j.id], s_account => '{1}', s_key => '{1}', s_kind => array[j.outcome], s_charge => array[j.charged],
      s_lease => '{1}', s_cover => array[j.held], s_keep => '{true}', s_tokens => array[j.tokens], s_second => array[j.second],
      s_in => array[j.input_tokens], s_out => array[j.output_tokens], s_again => true, {{facts of a journal row}}) f;
    if resolved not like 'busy;%' then
      delete from journal o where o.process_id = process and o.id = j.id;
    end if;
    return next;
  end loop;
end $$;
