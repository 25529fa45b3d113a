-- The windows and budgets of limits: what a scope counts, and whether one more call may pass.

create or replace function window_shift(buckets bigint[], last_second bigint, now_second bigint) returns bigint[]
language plpgsql immutable as $$
begin
  if now_second - last_second >= 60 then
    return array_fill(0::bigint, array[60]);
  end if;
  for s in last_second + 1 .. now_second loop
    buckets[(s % 60)::int + 1] := 0;
  end loop;
  return buckets;
end $$;

create or replace function window_sum(buckets bigint[]) returns bigint
language sql immutable as $$ select sum(b)::bigint from unnest(buckets) b $$;

-- Seconds until at least `excess` of the window has passed out of it.
create or replace function window_wait(buckets bigint[], now_second bigint, excess bigint) returns bigint
language plpgsql immutable as $$
declare
  gone bigint := 0;
begin
  for age in reverse 59 .. 0 loop
    gone := gone + buckets[((now_second - age) % 60)::int + 1];
    if gone >= excess then
      return 60 - age;
    end if;
  end loop;
  return 60;
end $$;

-- Brings a scope's state up to the present: buckets that have passed are emptied, a new day or month starts at zero.
create or replace function limited_now(l limited, now_second bigint, today date) returns limited
language plpgsql immutable as $$
begin
  if l.second - now_second >= 60 then
    -- The server's clock was set back. What the window counted lies in a future that will come again.
    l.requests := array_fill(0::bigint, array[60]);
    l.tokens := array_fill(0::bigint, array[60]);
    l.second := now_second;
  elsif now_second > l.second then
    l.requests := window_shift(l.requests, l.second, now_second);
    l.tokens := window_shift(l.tokens, l.second, now_second);
    l.second := now_second;
  end if;
  if l.day <> today then
    l.day := today;
    l.day_spent := 0;
  end if;
  if l.month <> date_trunc('month', today)::date then
    l.month := date_trunc('month', today)::date;
    l.month_spent := 0;
  end if;
  return l;
end $$;

-- What a scope says to one more call: null when it may pass, else {limit, max, wait}. `room` is what its spend limits leave.
create or replace function limited_refusal(l limited, floor_amount bigint, call_tokens bigint, room bigint) returns jsonb
language plpgsql immutable as $$
declare
  used bigint;
  most bigint;
begin
  most := (l.limits ->> 'concurrency')::bigint;
  if l.open_calls + 1 > most then
    return jsonb_build_object('limit', 'concurrency', 'max', most, 'wait', 1);
  end if;
  most := (l.limits ->> 'requestsPerMinute')::bigint;
  used := window_sum(l.requests);
  if used + 1 > most then
    return jsonb_build_object('limit', 'requestsPerMinute', 'max', most, 'wait', window_wait(l.requests, l.second, used + 1 - most));
  end if;
  most := (l.limits ->> 'tokensPerMinute')::bigint;
  used := window_sum(l.tokens);
  if used + call_tokens > most then
    return jsonb_build_object('limit', 'tokensPerMinute', 'max', most, 'wait', window_wait(l.tokens, l.second, used + call_tokens - most));
  end if;
  if room < floor_amount then
    if l.limits ? 'spendTotal' and (l.limits ->> 'spendTotal')::bigint - l.total_spent - l.held < floor_amount then
      return jsonb_build_object('limit', 'spendTotal', 'max', l.limits ->> 'spendTotal', 'wait', 86400);
    elsif l.limits ? 'spendPerMonth' and (l.limits ->> 'spendPerMonth')::bigint - l.month_spent - l.held < floor_amount then
      return jsonb_build_object('limit', 'spendPerMonth', 'max', l.limits ->> 'spendPerMonth',
        'wait', extract(epoch from (l.month + interval '1 month') at time zone 'UTC')::bigint - l.second);
    end if;
    return jsonb_build_object('limit', 'spendPerDay', 'max', l.limits ->> 'spendPerDay',
      'wait', extract(epoch from (l.day + interval '1 day') at time zone 'UTC')::bigint - l.second);
  end if;
  return null;
end $$;

create or replace function limited_room(l limited) returns bigint
language sql immutable as $$
  select least(
    coalesce((l.limits ->> 'spendTotal')::bigint - l.total_spent - l.held, 9223372036854775807),
    coalesce((l.limits ->> 'spendPerMonth')::bigint - l.month_spent - l.held, 9223372036854775807),
    coalesce((l.limits ->> 'spendPerDay')::bigint - l.day_spent - l.held, 9223372036854775807))
$$;
