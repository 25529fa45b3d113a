-- The windows and budgets of limits: what a scope counts, and what it answers to one more call.
--
-- The sliding minute has 64 buckets of a second, by the second modulo 64: the last 60 seconds, and the next four, to which the
-- requests are counted that a process was given ahead; none until something is counted. `second` says up to when a row is current, `..._used` what its minute sums to.

-- Whether a scope limits more than the minute. One that does not counts neither what is held nor what was spent: it is not read with every settlement.
create or replace function limited_is_money(limits jsonb) returns boolean
language sql immutable as $$ select limits - '{requestsPerMinute,tokensPerMinute}'::text[] <> '{}' $$;

-- Brings a scope's state up to the present: what has left the minute is no longer counted, a new day or month starts at zero.
create or replace function limited_now(l limited, now_second bigint, today date) returns limited
language plpgsql immutable as $$
declare
  b int;
begin
  if now_second - l.second > 63 or l.second - now_second >= 60 then
    -- A minute in which nothing was counted; or the server's clock was set back, and what the window counted lies in a future that will come again.
    if l.requests_used <> 0 then
      l.requests := '{}'; l.requests_used := 0;
    end if;
    if l.tokens_used <> 0 then
      l.tokens := '{}'; l.tokens_used := 0;
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

-- The same, and what a flush counted: requests and tokens now, and by how much more or less in other seconds that the minute has, or will
-- have: what was given to a process ahead, what it did not use, what a call used instead of its worst case.
create or replace function limited_counted(l limited, now_second bigint, today date, requests bigint, tokens bigint,
  at_second bigint[], by_requests bigint[], by_tokens bigint[]) returns limited
language plpgsql immutable as $$
declare
  b int;
begin
  l := limited_now(l, now_second, today);
  at_second := coalesce(at_second, '{}') || now_second; by_requests := by_requests || requests; by_tokens := by_tokens || tokens;
  for k in 1 .. cardinality(at_second) loop
    continue when at_second[k] not between l.second - 59 and l.second + 4;
    b := (at_second[k] % 64)::int + 1;
    if by_requests[k] <> 0 then
      if l.requests = '{}' then
        l.requests := array_fill(0::bigint, array[64]);
      end if;
      l.requests[b] := l.requests[b] + by_requests[k]; l.requests_used := l.requests_used + by_requests[k];
    end if;
    if by_tokens[k] <> 0 then
      if l.tokens = '{}' then
        l.tokens := array_fill(0::bigint, array[64]);
      end if;
      l.tokens[b] := l.tokens[b] + by_tokens[k]; l.tokens_used := l.tokens_used + by_tokens[k];
    end if;
  end loop;
  return l;
end $$;

-- Seconds until at least `excess` of the window has passed out of it.
create or replace function window_wait(buckets bigint[], now_second bigint, excess bigint) returns bigint
language plpgsql immutable as $$
declare
  gone bigint := 0;
begin
  for age in reverse 59 .. 0 loop
    gone := gone + coalesce(buckets[((now_second - age) % 64)::int + 1], 0);
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
