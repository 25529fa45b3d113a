-- The windows and budgets of limits: what a scope counts, and what it answers to one more call.
--
-- The sliding minute has {{buckets}} buckets of a second, by the second modulo {{buckets}}: the present one, those before it, and the next {{ahead}}, to which the
-- requests are counted that a process was given ahead; none where nothing was ever counted. `second` says up to when a row is current, `..._used` what all of them sum to.
--
-- No 60 seconds admit more than the limit. A call is judged by the second in which it came and the 60 before: of the first of these some may be a minute ago and some not.
-- It is counted when it is judged, which is not earlier. One that waited for its account came some seconds ago, so that a few more are kept than a minute has.

-- Whether a scope limits more than the minute. One that does not counts neither what is held nor what was spent: it is not read with every settlement.
create or replace function limited_is_money(limits jsonb) returns boolean
language sql immutable as $$ select limits - '{requestsPerMinute,tokensPerMinute}'::text[] <> '{}' $$;

-- Brings a scope's state up to the present: what has left the minute is no longer counted, a new day or month starts at zero.
create or replace function limited_now(l limited, now_second bigint, today date) returns limited
language plpgsql immutable as $$
declare
  b int;
begin
  if now_second - l.second >= {{buckets}} or l.second - now_second >= 60 then
    -- A minute in which nothing was counted; or the server's clock was set back, and what the window counted lies in a future that will come again.
    if l.requests_used <> 0 then
      l.requests := array_fill(0::bigint, array[{{buckets}}]); l.requests_used := 0;
    end if;
    if l.tokens_used <> 0 then
      l.tokens := array_fill(0::bigint, array[{{buckets}}]); l.tokens_used := 0;
    end if;
    l.second := now_second;
  elsif now_second > l.second then
    for s in l.second + {{ahead}} + 1 - {{buckets}} .. now_second + {{ahead}} - {{buckets}} loop
      b := (s % {{buckets}})::int + 1;
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

-- Those of a flush's scopes that it has changed, as they are now: what is held, was spent and is under way, and requests and tokens of the
-- present second. Each is up to the present already. k_: for the scope at k_place, the seconds for which the minute counts something
-- else, of those that it has or will have: what was given to a process ahead, what it did not use, what a call used instead of its worst case.
-- A loop of its own, because a function that is given a row and returns it costs more than all that is done here.
drop function if exists limited_counted(limited, bigint, date, bigint, bigint, bigint[], bigint[], bigint[]);
create or replace function limited_counted(scopes limited[], now_second bigint, held bigint[], spent bigint[], opened int[],
  requests bigint[], tokens bigint[], k_place int[], k_second bigint[], k_requests bigint[], k_tokens bigint[]) returns limited[]
language plpgsql immutable as $$
declare
  l limited;
  changed limited[];
  count int := 0;
  -- The corrections of each scope: the last one, and before each the one before.
  last_of int[];
  before int[];
  k int;
  at bigint;
  b int;
  more_requests bigint;
  more_tokens bigint;
begin
  for i in 1 .. coalesce(cardinality(k_place), 0) loop
    before[i] := last_of[k_place[i]]; last_of[k_place[i]] := i;
  end loop;
  for n in 1 .. cardinality(scopes) loop
    k := last_of[n]; more_requests := requests[n]; more_tokens := tokens[n]; at := now_second;
    continue when k is null and more_requests = 0 and more_tokens = 0 and held[n] = 0 and spent[n] = 0 and opened[n] = 0;
    l := scopes[n];
    if held[n] <> 0 or opened[n] <> 0 then
      l.held := l.held + held[n]; l.open_calls := l.open_calls + opened[n];
    end if;
    if spent[n] <> 0 then
      l.day_spent := l.day_spent + spent[n]; l.month_spent := l.month_spent + spent[n]; l.total_spent := l.total_spent + spent[n];
    end if;
    loop
      if at between l.second + {{ahead}} + 1 - {{buckets}} and l.second + {{ahead}} then
        b := (at % {{buckets}})::int + 1;
        if more_requests <> 0 then
          if l.requests = '{}' then
            l.requests := array_fill(0::bigint, array[{{buckets}}]);
          end if;
          l.requests[b] := l.requests[b] + more_requests; l.requests_used := l.requests_used + more_requests;
        end if;
        if more_tokens <> 0 then
          if l.tokens = '{}' then
            l.tokens := array_fill(0::bigint, array[{{buckets}}]);
          end if;
          l.tokens[b] := l.tokens[b] + more_tokens; l.tokens_used := l.tokens_used + more_tokens;
        end if;
      end if;
      exit when k is null;
      at := k_second[k]; more_requests := k_requests[k]; more_tokens := k_tokens[k]; k := before[k];
    end loop;
    count := count + 1; changed[count] := l;
  end loop;
  return changed;
end $$;

-- What a scope that is up to `second` has counted, of requests or of tokens, for a call that came in `came`.
create or replace function limited_minute(counts bigint[], used bigint, second bigint, came bigint) returns bigint
language plpgsql immutable as $$
begin
  if used <> 0 then
    for s in second + {{ahead}} + 1 - {{buckets}} .. came - 61 loop
      used := used - counts[(s % {{buckets}})::int + 1];
    end loop;
  end if;
  return used;
end $$;

-- Seconds until at least `excess` of the window has passed out of it.
create or replace function window_wait(buckets bigint[], now_second bigint, excess bigint) returns bigint
language plpgsql immutable as $$
declare
  gone bigint := 0;
begin
  -- What was given ahead leaves it later than a minute from now.
  for age in reverse 60 .. -{{ahead}} loop
    gone := gone + coalesce(buckets[((now_second - age) % {{buckets}})::int + 1], 0);
    if gone >= excess then
      return 61 - age;
    end if;
  end loop;
  -- What was counted just now is not there yet.
  return 61;
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
