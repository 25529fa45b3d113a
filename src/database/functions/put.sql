-- What a flush counted, written to each of its scopes at once. k_: for the scope at k_place, the seconds for which the minute counted something else.
create or replace function limited_put(accounts text[], scopes text[], now_second bigint, held bigint[], spent bigint[], opened int[],
  requests bigint[], tokens bigint[], k_place int[], k_second bigint[], k_requests bigint[], k_tokens bigint[]) returns void
language plpgsql as $$
begin
  update limited o set held = n.held + x.held, open_calls = n.open_calls + x.opened, second = n.second,
    requests = n.requests, requests_used = n.requests_used, tokens = n.tokens, tokens_used = n.tokens_used,
    day = n.day, day_spent = n.day_spent + x.spent, month = n.month, month_spent = n.month_spent + x.spent, total_spent = n.total_spent + x.spent
  from unnest(accounts, scopes, limited_put.held, spent, opened, limited_put.requests, limited_put.tokens)
      with ordinality as x(account_id, scope, held, spent, opened, requests, tokens, place)
    join limited l on l.account_id = x.account_id and l.scope = x.scope
    left join (
      select c.place, array_agg(c.second) as seconds, array_agg(c.requests) as requests, array_agg(c.tokens) as tokens
      from unnest(k_place, k_second, k_requests, k_tokens) as c(place, second, requests, tokens) group by c.place
    ) k on k.place = x.place
    cross join lateral limited_counted(l, now_second, (now() at time zone 'UTC')::date,
      x.requests, x.tokens, k.seconds, k.requests, k.tokens) n
  where o.account_id = x.account_id and o.scope = x.scope
    and (x.held <> 0 or x.spent <> 0 or x.opened <> 0 or x.requests <> 0 or x.tokens <> 0 or k.place is not null);
end $$;
