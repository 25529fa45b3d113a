-- Budgets of an account: what counts for them is a counter for each value, whose scope is the budget's id and the value
-- (`bgt_1=alice`). Called with the account locked, and only for accounts with budgets.

-- Makes the counters of values that were never seen, at the moment of the holds that they count, so that what these do
-- not use is given back. An account has at most so many: callers choose the values. What is left out then has no
-- counter.
drop function if exists budget_make(text, text[]);
create or replace function budget_make(account text, scopes text[], moment timestamptz default clock_timestamp()) returns void
language plpgsql as $$
declare
  missing text[] := array(select s from unnest(scopes) s where not exists (select 1 from counter c where c.account_id = account and c.scope = s));
  n int;
begin
  if missing = '{}' then
    return;
  end if;
  insert into counter (account_id, scope, name, unit, span, max, soft, width, second, since)
  select account, s, 'budget', b.unit, b.span, b.max, not b.hard, budget_width(b.window_seconds), budget_second(b.span), moment
  from unnest(missing) s cross join lateral (select * from budget b where b.account_id = account and b.id = split_part(s, '=', 1) limit 1) b
  limit greatest(100000 - (select a.budget_values from account a where a.id = account), 0)
  on conflict do nothing;
  get diagnostics n = row_count;
  update account a set budget_values = a.budget_values + n where a.id = account and n > 0;
end $$;

-- Removes counters of values whose span is over, or of sessions that began a month ago, and that no call holds; not
-- those with a maximum of their own.
create or replace function ledger_end_budget_values(account text) returns int
language plpgsql
set lock_timeout = '300ms'
as $$
declare
  now_second bigint := floor(extract(epoch from clock_timestamp()))::bigint;
  held jsonb;
  n int;
begin
  perform 1 from account a where a.id = account for update;
  held := budget_held(account);
  delete from counter c using budget b
  where c.account_id = account and c.name = 'budget' and not c.own_max and b.account_id = account and b.id = split_part(c.scope, '=', 1) and b.value is null
    and not held ? c.scope
    and case when c.span in ('day', 'week', 'month') then c.second < extract(epoch from date_trunc(c.span, to_timestamp(now_second), 'UTC'))::bigint
      when c.span = 'rolling' then greatest(c.second * c.width, extract(epoch from c.since)::bigint) < now_second - 83 * c.width
      else split_part(b.scope, ':', 1) = 'session' and c.since < clock_timestamp() - interval '30 days' end;
  get diagnostics n = row_count;
  update account a set budget_values = a.budget_values - n where a.id = account and n > 0;
  return n;
end $$;

-- Of a rolling window: how long its slots are. A call leaves the window at most one slot late.
create or replace function budget_width(window_seconds int) returns int
language sql immutable as $$
  select coalesce((window_seconds + 59) / 60, 1)
$$;

-- Where a new counter's span begins.
create or replace function budget_second(span text) returns bigint
language sql stable as $$
  select case when span in ('day', 'week', 'month') then extract(epoch from date_trunc(span, clock_timestamp(), 'UTC'))::bigint else 0 end
$$;

-- What running calls, and leases for calls to come, have of all budgets: {scope: credits}.
create or replace function budget_held(account text) returns jsonb
language plpgsql stable as $$
begin
  return (select coalesce(jsonb_object_agg(y.scope, y.amount), '{}') from (
    select s.scope, sum(x.amount) as amount from (select h.scopes, h.amount from hold h where h.account_id = account and h.scopes is not null
      union all select e.scopes, e.amount from lease e where e.account_id = account and e.scopes is not null) x
      cross join lateral jsonb_array_elements_text(x.scopes) s(scope) group by s.scope) y);
end $$;

-- What a counter leaves for calls that came in the second `came`. held: of budgets, as above. Soft ones always leave
-- enough.
create or replace function counter_room(c counter, came bigint, held jsonb) returns bigint
language plpgsql stable as $$
begin
  return case when c.soft then 4000000000000000000
    else c.max - counter_used(c, came) - case when c.name <> 'budget' then counter_held(c) when c.unit = 'credits' then coalesce((held ->> c.scope)::bigint, 0) else 0 end end;
end $$;

-- The counters of these calls or leases, of an account, its keys and budgets, as they are in this second.
create or replace function counters_for(account text, asked jsonb, now_second bigint) returns counter[]
language plpgsql stable as $$
begin
  return array(select counter_now(c, now_second) from counter c where c.account_id = account
    and c.scope = any(array(select 'account' union select k ->> 'key' from jsonb_array_elements(asked) k
      union select s from jsonb_array_elements(asked) k cross join jsonb_array_elements_text(k -> 'scopes') s)) order by c.scope, counter_rank(c.unit, c.span));
end $$;

-- Where the counters of each scope are: {scope: [place, …]}.
create or replace function counter_places(counters counter[]) returns jsonb
language plpgsql immutable as $$
begin
  return (select jsonb_object_agg(x.scope, x.places) from (
    select (counters[i]).scope as scope, jsonb_agg(i order by i) as places from generate_subscripts(counters, 1) i group by 1) x);
end $$;

-- The places of those that count for a call, in their order.
create or replace function counters_of(places jsonb, key text, scopes jsonb) returns int[]
language plpgsql immutable as $$
begin
  return array(select p::int from (select 'account' union all select key union all select jsonb_array_elements_text(scopes)) s(scope)
    cross join lateral jsonb_array_elements(places -> s.scope) p order by 1);
end $$;

-- The first budget of a call that cannot count it because the account has too many values already.
create or replace function budget_full(account text, places jsonb, scopes jsonb) returns jsonb
language plpgsql stable as $$
begin
  return (select jsonb_build_object('as', 'limited', 'limit', 'budget', 'scope', s, 'unit', b.unit, 'span', b.span, 'full', true, 'max', '100000', 'wait', 3600)
    from jsonb_array_elements_text(scopes) s join budget b on b.account_id = account and b.id = split_part(s, '=', 1) and b.hard where not coalesce(places, '{}') ? s limit 1);
end $$;
