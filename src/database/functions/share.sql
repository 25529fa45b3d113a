-- The limits of the whole system, in shares: each process has one, and the jobs, which outlive processes, have one together. A
-- share is a scope with limits of its own, which never sum to more than the system's, so that processes need not wait for one
-- another with every call. The row `system` has the limits themselves, and what was counted by shares that are no more.
--
-- Divides what is left anew: half of it for whoever asks, or all. Its own flushes must not be under way.
-- Answers whether its share is larger than before.
drop function if exists limited_share(text, interval);
drop function if exists limited_share(text, interval, boolean);
create function limited_share(process text, silent interval, everything boolean) returns boolean
language plpgsql as $$
declare
  whole limited;
  l limited;
  own text := 'system@' || process;
  -- Those others that have one.
  sharers text[] := '{}';
  sharer text;
  now_second bigint := floor(extract(epoch from clock_timestamp()))::bigint;
  today date := (now() at time zone 'UTC')::date;
  name text;
  shares jsonb := '{}';
  part bigint;
  free bigint;
  share jsonb;
  larger boolean;
  moment timestamptz;
begin
  select * into whole from limited where account_id = '' and scope = 'system' for update;
  if not found then
    return false;
  end if;
  whole := limited_now(whole, now_second, today);
  insert into limited (account_id, scope, limits) values ('', own, '{}') on conflict do nothing;
  for l in select * from limited where account_id = '' and scope like 'system@%' order by scope for update loop
    l := limited_now(l, now_second, today);
    if l.scope = own then
      select coalesce(sum(x.amount), 0), coalesce(sum(x.calls), 0) into l.held, l.open_calls from (
        select h.amount, 1 as calls from hold h where not {{test h.account_id}} and case when process = 'jobs' then h.job else h.process_id = process and not h.job end
        union all
        select e.amount, 0 from lease e where not {{test e.account_id}} and e.process_id = process) x;
    elsif l.scope <> 'system@jobs' and l.held = 0 and l.open_calls = 0
        and not exists (select 1 from process p where 'system@' || p.id = l.scope and p.heartbeat_at > now() - silent) then
      -- Its process is gone: what it counted stays counted.
      whole.day_spent := whole.day_spent + l.day_spent; whole.month_spent := whole.month_spent + l.month_spent;
      whole.total_spent := whole.total_spent + l.total_spent;
      for b in 1 .. {{buckets}} loop
        whole.requests[b] := coalesce(whole.requests[b], 0) + coalesce(l.requests[b], 0); whole.tokens[b] := coalesce(whole.tokens[b], 0) + coalesce(l.tokens[b], 0);
      end loop;
      whole.requests_used := whole.requests_used + l.requests_used; whole.tokens_used := whole.tokens_used + l.tokens_used;
      delete from limited where account_id = '' and scope = l.scope;
      continue;
    end if;
    if l.scope <> own and l.limits <> '{}' then
      sharers := sharers || l.scope;
    end if;
    update limited set held = l.held, open_calls = l.open_calls, second = l.second, requests = l.requests, requests_used = l.requests_used,
      tokens = l.tokens, tokens_used = l.tokens_used, day = l.day, day_spent = l.day_spent, month = l.month, month_spent = l.month_spent
    where account_id = '' and scope = l.scope;
  end loop;
  update limited set second = whole.second, requests = whole.requests, requests_used = whole.requests_used, tokens = whole.tokens,
    tokens_used = whole.tokens_used, day = whole.day, day_spent = whole.day_spent, month = whole.month, month_spent = whole.month_spent,
    total_spent = whole.total_spent where account_id = '' and scope = 'system';

  -- What each has used stays its own, as far as there is so much: a vendor may have reported more than was allowed, and limits may be lowered.
  -- Whoever has no share yet is given one when it asks: only then it is known what it holds.
  for name in select jsonb_object_keys(whole.limits) loop
    free := greatest((whole.limits ->> name)::bigint - limited_used(whole, name), 0);
    for l in select * from limited where account_id = '' and scope like 'system@%' order by scope loop
      part := least(limited_used(l, name), free);
      free := free - part;
      if l.scope = own or l.scope = any(sharers) then
        shares := jsonb_set(shares, array[l.scope], coalesce(shares -> l.scope, '{}') || jsonb_build_object(name, part));
      end if;
    end loop;
    foreach sharer in array sharers || own loop
      part := (shares -> sharer ->> name)::bigint + case
        when sharer = own then case when cardinality(sharers) = 0 or everything then free else (free + 1) / 2 end
        when everything then 0 else (free / 2) / cardinality(sharers) end;
      shares := jsonb_set(shares, array[sharer, name], to_jsonb(part));
    end loop;
  end loop;
  moment := clock_timestamp();
  for l in select * from limited where account_id = '' and scope = any(sharers || own) loop
    share := shares -> l.scope;
    if l.scope = own then
      larger := l.limits = '{}' or exists (select 1 from jsonb_each_text(share) s where s.value::bigint > (l.limits ->> s.key)::bigint);
    end if;
    -- Its minute may not have counted what it limits from now on.
    update limited set limits = share, since = case when l.limits ?& array(select jsonb_object_keys(share)) then l.since else moment end
    where account_id = '' and scope = l.scope;
  end loop;
  return larger;
end $$;

-- What a scope has used up of one of its limits.
create or replace function limited_used(l limited, name text) returns bigint
language sql immutable as $$
  select case name when 'concurrency' then l.open_calls::bigint when 'requestsPerMinute' then l.requests_used when 'tokensPerMinute' then l.tokens_used
    when 'spendPerDay' then l.day_spent + l.held when 'spendPerMonth' then l.month_spent + l.held when 'spendTotal' then l.total_spent + l.held else 0 end
$$;
