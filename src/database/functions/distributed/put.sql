-- As ../put.sql: a row cannot be handed to a function where it lies, so that each is fetched.
create or replace function limited_put(accounts text[], scopes text[], now_second bigint, held bigint[], spent bigint[], opened int[],
  requests bigint[], tokens bigint[], k_place int[], k_second bigint[], k_requests bigint[], k_tokens bigint[]) returns void
language plpgsql as $$
declare
  l limited;
  k record;
begin
  for i in 1 .. cardinality(scopes) loop
    select array_agg(c.second) as seconds, array_agg(c.requests) as requests, array_agg(c.tokens) as tokens into k
      from unnest(k_place, k_second, k_requests, k_tokens) as c(place, second, requests, tokens) where c.place = i;
    continue when held[i] = 0 and spent[i] = 0 and opened[i] = 0 and requests[i] = 0 and tokens[i] = 0 and k.seconds is null;
    select * into l from limited o where o.account_id = accounts[i] and o.scope = scopes[i];
    l := limited_counted(l, now_second, (now() at time zone 'UTC')::date, requests[i], tokens[i], k.seconds, k.requests, k.tokens);
    update limited o set held = l.held + limited_put.held[i], open_calls = l.open_calls + opened[i], second = l.second,
      requests = l.requests, requests_used = l.requests_used, tokens = l.tokens, tokens_used = l.tokens_used,
      day = l.day, day_spent = l.day_spent + spent[i], month = l.month, month_spent = l.month_spent + spent[i], total_spent = l.total_spent + spent[i]
    where o.account_id = accounts[i] and o.scope = scopes[i];
  end loop;
end $$;
