-- The windows and budgets of limits: what a scope counts, and what it answers to one more call.
--
-- The sliding minute has 64 buckets of a second, by the second modulo 64: the last 60 seconds, and the next, to which the
-- requests are counted that a process was given ahead. `second` says up to when a row is current, `..._used` what its minute sums to.

-- Brings a scope's state up to the present: what has left the minute is no longer counted, a new day or month starts at zero.
create or replace function limited_now(l limited, now_second bigint, today date) returns limited
language plpgsql immutable as $$
declare
  b int;
begin
  if now_second - l.second > 61 or l.second - now_second >= 60 then
    -- A minute in which nothing was counted; or the server's clock was set back, and what the window counted lies in a future that will come again.
    if l.requests_used <> 0 then
      l.requests := array_fill(0::bigint, array[64]); l.requests_used := 0;
    end if;
    if l.tokens_used <> 0 then
      l.tokens := array_fill(0::bigint, array[64]); l.tokens_used := 0;
    end if;
    l.second := now_second;
  elsif now_second > l.second then
    for s in l.second - 59 .. now_second - 60 loop
      b := (s % 64)::int + 1;
      if l.requests[b] <> 0 then
        l.requests_used := l.requests_used - l.requests[b]; l.requests[b] := 0;
      end if;
      if l.tokens[b] <> 0 then
        l.tokens_used := l.tokens_used - l.tokens[b]; l.tokens[b] := 0;
      end if;
    end loop;
    l.second := now_second;
  end if;
  -- A clock that steps back over midnight gives nobody a second budget; one that was years ahead must not keep anybody waiting for them.
  if today > l.day or l.day > today + 2 then
    l.day := today; l.day_spent := 0;
  end if;
  if date_trunc('month', today)::date > l.month or l.month > today + 2 then
    l.month := date_trunc('month', today)::date; l.month_spent := 0;
  end if;
  return l;
end $$;

-- What a flush counted, written to each of its scopes at once.
create or replace function limited_put(accounts text[], scopes text[], now_second bigint, held bigint[], spent bigint[], opened int[],
  requests bigint[], requests_ahead bigint[], tokens bigint[], tokens_ahead bigint[]) returns void
language plpgsql as $$
declare
  l limited;
  now_bucket int := (now_second % 64)::int + 1;
  next_bucket int := ((now_second + 1) % 64)::int + 1;
begin
  for i in 1 .. cardinality(scopes) loop
    continue when held[i] = 0 and spent[i] = 0 and opened[i] = 0 and requests[i] = 0 and requests_ahead[i] = 0 and tokens_ahead[i] = 0;
    select * into l from limited o where o.account_id = accounts[i] and o.scope = scopes[i];
    l := limited_now(l, now_second, (now() at time zone 'UTC')::date);
    if requests[i] + requests_ahead[i] + tokens[i] + tokens_ahead[i] <> 0 then
      l.requests[now_bucket] := l.requests[now_bucket] + requests[i];
      l.requests[next_bucket] := l.requests[next_bucket] + requests_ahead[i];
      l.requests_used := l.requests_used + requests[i] + requests_ahead[i];
      l.tokens[now_bucket] := l.tokens[now_bucket] + tokens[i];
      l.tokens[next_bucket] := l.tokens[next_bucket] + tokens_ahead[i];
      l.tokens_used := l.tokens_used + tokens[i] + tokens_ahead[i];
    end if;
    update limited o set held = l.held + limited_put.held[i], open_calls = l.open_calls + opened[i], second = l.second,
      requests = l.requests, requests_used = l.requests_used, tokens = l.tokens, tokens_used = l.tokens_used,
      day = l.day, day_spent = l.day_spent + spent[i], month = l.month, month_spent = l.month_spent + spent[i], total_spent = l.total_spent + spent[i]
    where o.account_id = accounts[i] and o.scope = scopes[i];
  end loop;
end $$;

-- The minute counted something else for a second that it still has.
create or replace function limited_correct(account text, scope_name text, at_second bigint, by_tokens bigint, now_second bigint, by_requests bigint default 0) returns void
language plpgsql as $$
declare
  b int := (at_second % 64)::int + 1;
begin
  if now_second - at_second < 60 and (by_tokens <> 0 or by_requests <> 0) then
    update limited l set tokens[b] = l.tokens[b] + by_tokens, tokens_used = l.tokens_used + by_tokens,
      requests[b] = l.requests[b] + by_requests, requests_used = l.requests_used + by_requests
    where l.account_id = account and l.scope = scope_name and now_second - l.second < 60 and l.second - now_second < 60;
  end if;
end $$;

-- What a lease was given of a minute and did not use.
create or replace function limited_give_back(account text, scope_name text, back jsonb, place int, now_second bigint) returns void
language plpgsql as $$
declare
  r record;
begin
  select * into r from jsonb_to_recordset(back) as x(i int, requests bigint, tokens bigint, second bigint) where x.i = place;
  if found then
    perform limited_correct(account, scope_name, r.second, -r.tokens, now_second, -r.requests);
  end if;
end $$;

-- Seconds until at least `excess` of the window has passed out of it.
create or replace function window_wait(buckets bigint[], now_second bigint, excess bigint) returns bigint
language plpgsql immutable as $$
declare
  gone bigint := 0;
begin
  for age in reverse 59 .. 0 loop
    gone := gone + buckets[((now_second - age) % 64)::int + 1];
    if gone >= excess then
      return 60 - age;
    end if;
  end loop;
  return 60;
end $$;

-- Why a scope refuses one more call: {limit, max, wait}. have: calls, requests, tokens and spending that it leaves; need: tokens and spending.
create or replace function limited_refusal(account text, scope_name text, have bigint[], need bigint[], now_second bigint) returns jsonb
language plpgsql as $$
declare
  l limited;
  spend text;
begin
  select * into l from limited o where o.account_id = account and o.scope = scope_name;
  l := limited_now(l, now_second, (now() at time zone 'UTC')::date);
  if account = '' then
    -- A process' share of it is nobody else's business.
    l.limits := (select o.limits from limited o where o.account_id = '' and o.scope = 'system');
  end if;
  if have[1] < 1 then
    return jsonb_build_object('limit', 'concurrency', 'max', l.limits -> 'concurrency', 'wait', 1);
  elsif have[2] < 1 then
    return jsonb_build_object('limit', 'requestsPerMinute', 'max', l.limits -> 'requestsPerMinute', 'wait', window_wait(l.requests, now_second, 1 - have[2]));
  elsif have[3] < need[1] then
    return jsonb_build_object('limit', 'tokensPerMinute', 'max', l.limits -> 'tokensPerMinute', 'wait', window_wait(l.tokens, now_second, need[1] - have[3]));
  end if;
  -- What this flush counted is not in the row yet; it moves all three alike, so that the tightest is the same.
  spend := (select x.name from (values ('spendTotal', (l.limits ->> 'spendTotal')::bigint - l.total_spent, 1),
      ('spendPerMonth', (l.limits ->> 'spendPerMonth')::bigint - l.month_spent, 2),
      ('spendPerDay', (l.limits ->> 'spendPerDay')::bigint - l.day_spent, 3)) x(name, room, rank) where x.room is not null order by x.room, x.rank limit 1);
  return jsonb_build_object('limit', spend, 'max', l.limits ->> spend, 'wait', case spend when 'spendTotal' then 86400
    when 'spendPerMonth' then extract(epoch from (l.month + interval '1 month') at time zone 'UTC')::bigint - now_second
    else extract(epoch from (l.day + interval '1 day') at time zone 'UTC')::bigint - now_second end);
end $$;
