-- What a flush counted, written to each of its scopes at once.
drop function if exists limited_put(text[], text[], bigint, bigint[], bigint[], int[], bigint[], bigint[], int[], bigint[], bigint[], bigint[]);
create or replace function limited_put(changed limited[]) returns void
language plpgsql as $$
begin
  update limited o set held = x.held, open_calls = x.open_calls, second = x.second, requests = x.requests, requests_used = x.requests_used,
    tokens = x.tokens, tokens_used = x.tokens_used, day = x.day, day_spent = x.day_spent, month = x.month, month_spent = x.month_spent, total_spent = x.total_spent
  from unnest(changed) x
  where o.account_id = any(array(select c.account_id from unnest(changed) c)) and o.scope = any(array(select c.scope from unnest(changed) c))
    and o.account_id = x.account_id and o.scope = x.scope;
end $$;
