-- Limits and budgets count here. A counter has a unit (requests, tokens, credits, calls) and a span (minute, rolling,
-- day, week, month, total, open); what a call needs of it follows from the unit, and when it forgets what it counted
-- from the span. A new limit is a row with a new name.
--
-- A rolling window is a minute whose seconds are longer: each is a slot of `width` seconds, and all that is said of a
-- minute holds for it in slots. A minute has 83 seconds: the present one, the 60 before it, 6 of calls that waited, and
-- 16 ahead, to which is counted what a process was given in advance. No 60 seconds admit more than the limit: a call is
-- judged by the second in which it came and the 60 before, and counted when it is judged, which is not earlier.

-- The limits of an account (scope `account`), of a key, or with an empty account of the whole gateway (scope `system`),
-- by their names. Credits are text: amounts may be large.
create or replace function limits_of(account text, scope text) returns jsonb
language sql stable as $$
  select coalesce(jsonb_object_agg(c.name, case c.unit when 'credits' then to_jsonb(c.max::text) else to_jsonb(c.max) end), '{}')
  from counter c where c.account_id = account and c.scope = limits_of.scope
$$;

-- In which order counters of a scope are asked: who may not call at all is told that first, and of budgets the one that
-- lasts longest.
create or replace function counter_rank(unit text, span text) returns int
language sql immutable as $$
  select 10 * array_position('{calls,requests,tokens,credits}', unit) + array_position('{open,minute,total,month,week,day,rolling}', span)
$$;

-- What a call needs of a counter.
create or replace function counter_need(unit text, tokens bigint, credits bigint) returns bigint
language sql immutable as $$
  select case unit when 'tokens' then tokens when 'credits' then credits else 1 end
$$;

-- A counter as it is in this second: what has left the minute is forgotten, a new day or month starts at zero.
create or replace function counter_now(c counter, now_second bigint) returns counter
language plpgsql stable as $$
declare
  starts bigint;
  slot bigint := now_second / c.width;
  b int;
begin
  if c.span in ('minute', 'rolling') then
    if slot - c.second >= 83 or c.second - slot >= 60 or c.seconds = '{}' then
      -- Nothing was counted for a minute; or the server's clock was set back, and what was counted lies in a future
      -- that will come again.
      c.seconds := array_fill(0::bigint, array[83]); c.used := 0; c.second := slot;
    elsif slot > c.second then
      for s in c.second + 17 - 83 .. slot + 16 - 83 loop
        b := (s % 83)::int + 1;
        if c.seconds[b] <> 0 then
          c.used := c.used - c.seconds[b]; c.seconds[b] := 0;
        end if;
      end loop;
      c.second := slot;
    end if;
  elsif c.span in ('day', 'week', 'month') then
    starts := extract(epoch from date_trunc(c.span, to_timestamp(now_second), 'UTC'))::bigint;
    -- A clock that steps back over midnight gives nobody a second budget; one that was years ahead must not keep
    -- anybody waiting for them.
    if starts > c.second or c.second > now_second + 172800 then
      c.second := starts; c.used := 0;
    end if;
  end if;
  return c;
end $$;

-- What a counter has counted for a call that came in the second `came`. The counter is up to the present.
create or replace function counter_used(c counter, came bigint) returns bigint
language plpgsql immutable as $$
declare
  used bigint := c.used;
begin
  if c.span in ('minute', 'rolling') and used <> 0 then
    for s in c.second + 17 - 83 .. came / c.width - 61 loop
      used := used - c.seconds[(s % 83)::int + 1];
    end loop;
  end if;
  return used;
end $$;

-- Counts amounts in the seconds to which they belong. What the minute no longer has, or not yet, is left out, and what
-- comes back of yesterday is not taken off today. The counter is up to the present.
create or replace function counter_add(c counter, at bigint[], amounts bigint[]) returns counter
language plpgsql immutable as $$
declare
  b int;
begin
  for i in 1 .. coalesce(cardinality(amounts), 0) loop
    if c.span not in ('minute', 'rolling') then
      c.used := c.used + case when amounts[i] > 0 or at[i] >= c.second then amounts[i] else 0 end;
    elsif at[i] / c.width between c.second + 17 - 83 and c.second + 16 then
      b := (at[i] / c.width % 83)::int + 1;
      c.seconds[b] := c.seconds[b] + amounts[i]; c.used := c.used + amounts[i];
    end if;
  end loop;
  return c;
end $$;

-- Seconds until a counter has room for `excess` more than it leaves now. The counter is up to the present.
create or replace function counter_wait(c counter, excess bigint) returns bigint
language plpgsql stable as $$
declare
  gone bigint := 0;
  -- Of the present slot, what is over.
  over bigint := case c.width when 1 then 0 else floor(extract(epoch from clock_timestamp()))::bigint % c.width end;
begin
  case
    when c.span = 'open' then return 1;
    when c.span = 'total' then return 86400;
    when c.span in ('minute', 'rolling') then
      -- What was given ahead leaves it later than a minute from now.
      for age in reverse 60 .. -16 loop
        gone := gone + c.seconds[((c.second - age) % 83)::int + 1];
        if gone >= excess then
          return (61 - age) * c.width - over;
        end if;
      end loop;
      return 61 * c.width - over;
    else
      return greatest(1, extract(epoch from (to_timestamp(c.second) at time zone 'UTC' + ('1 ' || c.span)::interval) at time zone 'UTC' - clock_timestamp())::bigint);
  end case;
end $$;

-- Writes counters back that have changed.
create or replace function counter_put(changed counter[]) returns void
language plpgsql as $$
declare
  c counter;
begin
  foreach c in array coalesce(changed, '{}') loop
    update counter o set used = c.used, second = c.second, seconds = c.seconds where o.account_id = c.account_id and o.scope = c.scope and o.name = c.name;
  end loop;
end $$;

-- Counts what settlements spent, the tokens that they used instead of the worst case, and the requests that were not
-- counted, or are none. The arrays have an element for each settlement; those that count alike, as those of one lease
-- and second, come together. `made`: when its hold or lease was made; `scopes`: of its budgets. The account is locked.
drop function if exists counter_settle(text, text[], bigint[], bigint[], bigint[], timestamptz[]);
drop function if exists counter_settle(text, text[], bigint[], bigint[], bigint[], timestamptz[], jsonb[]);
drop function if exists counter_settle(text, text[], bigint[], int[], bigint[], bigint[], timestamptz[], jsonb[]);
create or replace function counter_settle(account text, keys text[], paid bigint[], requests bigint[], tokens bigint[], at bigint[], made timestamptz[], scopes jsonb[]) returns void
language plpgsql as $$
declare
  now_second bigint := floor(extract(epoch from clock_timestamp()))::bigint;
  m record;
  c counter;
begin
  for m in
    select s.scope, sum(x.paid)::bigint as paid, bool_or(x.requests <> 0) as has_requests, array_agg(x.at) as at, array_agg(x.requests) as requests, array_agg(x.tokens) as tokens, array_agg(x.made) as made
    from (select x.key, x.at, x.made, x.scopes, sum(x.paid) as paid, sum(x.requests)::bigint as requests, sum(x.tokens)::bigint as tokens
        from unnest(keys, paid, requests, tokens, at, made, scopes) as x(key, paid, requests, tokens, at, made, scopes) group by x.key, x.at, x.made, x.scopes) x
      cross join lateral (select 'account' union all select x.key union all select jsonb_array_elements_text(x.scopes)) s(scope)
    group by s.scope
  loop
    for c in select * from counter o where o.account_id = account and o.scope = m.scope and (o.unit in ('credits', 'tokens') or m.has_requests and o.unit = 'requests') loop
      c := counter_now(c, now_second);
      if c.unit = 'credits' then
        c := counter_add(c, array[now_second], array[m.paid]);
      else
        -- What was not counted is not taken off.
        c := counter_add(c, x.at, x.amounts) from (select array_agg(x.at) as at, array_agg(x.amount) as amounts
          from unnest(m.at, case c.unit when 'requests' then m.requests else m.tokens end, m.made) as x(at, amount, made) where x.amount > 0 or x.amount < 0 and x.made >= c.since) x;
      end if;
      perform counter_put(array[c]);
    end loop;
  end loop;
end $$;

-- What a lease has of limits on requests and tokens (the column `slices`), with so much more, or less.
create or replace function slice_add(slices jsonb, second bigint, requests bigint, tokens bigint) returns jsonb
language plpgsql immutable as $$
declare
  was jsonb := slices -> second::text;
begin
  requests := greatest(coalesce((was ->> 0)::bigint, 0) + requests, 0); tokens := greatest(coalesce((was ->> 1)::bigint, 0) + tokens, 0);
  return case when requests = 0 and tokens = 0 then slices - second::text else slices || jsonb_build_object(second::text, jsonb_build_array(requests, tokens)) end;
end $$;

-- A counter from which is taken off what a lease gives back of it. The counter is up to the present.
create or replace function slice_return(c counter, slices jsonb) returns counter
language plpgsql immutable as $$
begin
  return counter_add(c, x.at, x.amounts) from (
    select array_agg(s.key::bigint) as at, array_agg(-(s.value ->> case c.unit when 'requests' then 0 else 1 end)::bigint) as amounts from jsonb_each(slices) s) x;
end $$;

-- What running calls, and leases for calls to come, have of a counter that counts credits or calls at the same time.
create or replace function counter_held(c counter) returns bigint
language plpgsql stable as $$
begin
  return case c.unit
    when 'credits' then (select coalesce(sum(x.amount), 0) from (select h.key_id, h.scopes, h.amount from hold h where h.account_id = c.account_id
      union all select e.key_id, e.scopes, e.amount from lease e where e.account_id = c.account_id) x where c.scope in ('account', x.key_id) or x.scopes ? c.scope)
    when 'calls' then (select count(*) from hold h where h.account_id = c.account_id and c.scope in ('account', h.key_id))
    else 0 end;
end $$;
