-- Changes leases of one account: credits that a process holds in advance for calls of a key (and of the budgets in
-- `scopes`), with a slice of what limits on requests and tokens leave.
-- changes: [{id, key, scopes, budgets, fresh, give, add, least, requests, tokens, close, retired, back: {requests,
-- tokens, second}}, …].
-- give, add: what goes back and what it would like to have more; least: the least that is worth having. requests,
-- tokens: what it would like for a second, null where it keeps what it has; back: what it had before and did not use,
-- for the second to which that was counted. fresh: nothing was leased yet; else a lease that is not there has expired,
-- and none is made. close: all goes back. retired: its process admits no more calls by it.
-- Answers [{added, requests, tokens, rate_max, rate_left, seconds, second, available, rests}, …]: added is null where
-- the lease has expired, requests and tokens are null where nothing limits them, `second` is the one to which they were
-- counted, on the day of the counting where a limit ends with a day. rests: nothing is leased of an account with lots
-- or one that is about to move: its calls have holds of their own.
create or replace function ledger_lease(account text, process text, changes jsonb, system text) returns jsonb
language plpgsql as $$
declare
  moment timestamptz; now_second bigint; o record; x record; share record; answers jsonb[] := '{}';
  counters counter[]; places jsonb; mine int[]; p int; room bigint[]; changed boolean[]; budgets_held jsonb;
  freed bigint; given jsonb; kept jsonb;
begin
  -- A process closes a lease when all that it wrote under it is posted. After a failover to a standby that lagged, the
  -- postings may be lost and their rows in the journal not.
  if exists (select 1 from journal j where j.account_id = account and j.lease_id in (select k ->> 'id' from jsonb_array_elements(changes) k where (k ->> 'close')::boolean)) then
    perform ledger_post(account, '{}', true);
  end if;
  select a.posted, a.held, a.moved_at, a.chain, a.claims, a.has_lots or a.is_moving as rests, a.budgets, coalesce(a.frozen_until > now(), false) or a.status <> 'open' or a.has_lots or a.is_moving as is_shut into o from account a where a.id = account for update;
  -- Not before the account is locked, as that since which a counter counts: what is leased after it was made comes off
  -- it.
  moment := clock_timestamp(); now_second := floor(extract(epoch from moment))::bigint;
  budgets_held := case when o.budgets > 0 then budget_held(account) end;
  counters := counters_for(account, changes, now_second); places := counter_places(counters);
  for x in
    select c.*, e.amount, e.created_at, e.slices, e.claims, not o.is_shut and coalesce(e.claims, o.claims) = o.claims and system is not distinct from (select s.value from setting s where s.name = 'system-limits')
        and o.budgets = coalesce(c.budgets, 0) and (c.scopes is null or coalesce(places, '{}') ?& array(select jsonb_array_elements_text(c.scopes))) as may_have
    from jsonb_to_recordset(changes) as c(id text, key text, scopes jsonb, budgets int, fresh boolean, give bigint, add bigint, least bigint, requests bigint, tokens bigint, close boolean, retired boolean, back jsonb)
      left join lateral (select e.amount, e.created_at, e.slices, e.claims from lease e where e.account_id = account and e.id = c.id limit 1) e on true
  loop
    if x.amount is null and not x.fresh then
      answers := answers || '{"added": null}'::jsonb;
      continue;
    end if;
    freed := case when x.close then coalesce(x.amount, 0) else least(x.give, coalesce(x.amount, 0)) end;
    if freed > 0 and x.claims < o.claims then
      select k.* into o.posted, o.moved_at, o.chain from claim_take(account, x.claims, jsonb_build_array(jsonb_build_array('', freed)), 0, o.posted, o.moved_at, o.chain) k;
    end if;
    -- With its end all of it comes back, also what a call took that could never be settled.
    given := case when x.close and x.slices is not null then x.slices
      when x.back is not null then jsonb_build_object(x.back ->> 'second', jsonb_build_array(x.back -> 'requests', x.back -> 'tokens')) end;
    mine := counters_of(places, x.key, x.scopes);
    foreach p in array mine loop
      if counters[p].unit in ('requests', 'tokens') and given is not null and x.created_at >= counters[p].since then
        counters[p] := slice_return(counters[p], given); changed[p] := true;
      end if;
      room[p] := counter_room(counters[p], now_second, budgets_held);
    end loop;
    share := lease_share(counters, room, mine, array[(o.posted - o.held) / 8, x.add, x.least, x.requests, x.tokens], now_second, not x.close and x.add > 0 and x.may_have);
    foreach p in array mine loop
      continue when not share.slice ? counters[p].unit;
      counters[p] := counter_add(counters[p], array[share.until], array[(share.slice ->> counters[p].unit)::bigint]); changed[p] := true;
      if counters[p].unit = 'requests' and counters[p].span = 'minute' then
        share.slice := share.slice || jsonb_build_object('rate_max', counters[p].max, 'rate_left', room[p] - (share.slice ->> 'requests')::bigint);
      end if;
    end loop;
    kept := coalesce(x.slices, '{}');
    if x.back is not null then
      kept := slice_add(kept, (x.back ->> 'second')::bigint, -(x.back ->> 'requests')::bigint, -(x.back ->> 'tokens')::bigint);
    end if;
    if share.slice <> '{}' then
      kept := slice_add(kept, share.until, coalesce((share.slice ->> 'requests')::bigint, 0), coalesce((share.slice ->> 'tokens')::bigint, 0));
    end if;
    if x.close then
      delete from lease e where e.account_id = account and e.id = x.id;
    elsif x.amount is null and share.added > 0 then
      insert into lease (account_id, id, key_id, process_id, amount, scopes, slices, created_at, claims) values (account, x.id, x.key, process, share.added, x.scopes, kept, moment, o.claims);
    elsif share.added <> freed or x.retired or kept is distinct from x.slices then
      update lease e set amount = e.amount + share.added - freed, slices = kept, retired = e.retired or coalesce(x.retired, false) where e.account_id = account and e.id = x.id;
    end if;
    o.held := o.held + share.added - freed;
    if o.budgets > 0 and x.scopes is not null then
      budgets_held := budgets_held || coalesce((select jsonb_object_agg(s, coalesce((budgets_held ->> s)::bigint, 0) + share.added - freed) from jsonb_array_elements_text(x.scopes) s), '{}');
    end if;
    answers := answers || (share.slice || jsonb_build_object('added', share.added::text, 'seconds', share.until - now_second, 'second', share.until, 'available', (o.posted - o.held)::text, 'rests', o.rests));
  end loop;
  update account a set held = o.held, posted = o.posted, moved_at = o.moved_at, chain = o.chain where a.id = account and (a.held <> o.held or a.posted <> o.posted);
  perform counter_put(array(select counters[i] from generate_subscripts(counters, 1) i where changed[i]));
  return to_jsonb(answers);
end $$;

-- What a lease gets: credits, and of the limits on requests and tokens a slice (without what nothing limits), to be
-- used up to the second `until`. A small part of what is there, so that nobody is refused for what another only might
-- need.
-- wish: the most credits that it may have, those that it would like, the least that is worth having, and requests and
-- tokens for a second (null where it keeps what it has). Unless `gets`, it gets nothing.
create or replace function lease_share(counters counter[], room bigint[], places int[], wish bigint[], now_second bigint, gets boolean, out added bigint, out slice jsonb, out until bigint)
language plpgsql immutable as $$
declare
  seconds int := 16;
  p int;
begin
  added := 0; slice := '{}'; until := now_second + seconds;
  if gets is not true then
    return;
  end if;
  added := least(wish[1], wish[2]);
  foreach p in array places loop
    -- Calls at the same time are counted one by one.
    added := least(added, case counters[p].unit when 'calls' then 0 when 'credits' then room[p] / 8 end);
    -- For longer than a second only where that is little: what is given ahead leaves the minute later than what was
    -- used.
    if room[p] / 64 < (case counters[p].unit when 'requests' then wish[4] when 'tokens' then wish[5] end) then
      seconds := least(seconds, 1);
    end if;
    -- Never beyond midnight, where days, weeks and months end: what comes back of one would be taken off the next.
    if counters[p].unit in ('requests', 'tokens') and counters[p].span in ('day', 'week', 'month') then
      seconds := least(seconds, 86399 - now_second % 86400);
    end if;
  end loop;
  until := now_second + seconds;
  slice := ledger_slice(counters, room, places, wish[4:5], seconds);
  if added < wish[3] or (slice ->> 'requests')::bigint = 0 or (slice ->> 'tokens')::bigint < greatest(wish[5] / greatest(wish[4], 1), 1) then
    added := 0; slice := ledger_slice(counters, room, places, array[wish[4] * 0, wish[5] * 0], seconds);
  end if;
end $$;

-- What a lease gets of the limits on requests and tokens: {requests, tokens}, without what nothing limits. want: for a
-- second, null where it keeps what it has.
drop function if exists ledger_slice(counter[], bigint[], text, bigint[], int);
create or replace function ledger_slice(counters counter[], room bigint[], places int[], want bigint[], seconds int) returns jsonb
language plpgsql immutable as $$
declare
  slice jsonb := '{}';
  wish bigint;
  i int;
begin
  foreach i in array places loop
    wish := case counters[i].unit when 'requests' then want[1] when 'tokens' then want[2] end;
    if wish is not null then
      slice := slice || jsonb_build_object(counters[i].unit, least((slice ->> counters[i].unit)::bigint, wish * seconds, greatest(room[i], 0) / 8));
    end if;
  end loop;
  return slice;
end $$;
