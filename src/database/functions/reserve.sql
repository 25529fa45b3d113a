-- Makes holds for calls of one account, in the order of their arrival, as if they had come one by one.
-- calls: [{id, key, scopes, budgets, want, floor, most, open, product, products, version, tokens, last, idem, hash, job: {id, input, request, callback, answer}}, …].
-- want, floor, most: what is held while it is there, the least that is worth holding, and the most that the call can cost. What lies between is shared:
-- of what is available, a call gets one part in twice the account's open calls, so that a lone call is seldom cut short and many at once are all
-- served. open: calls of the account that leases of the process cover. last: it has waited for what others have leased, and now takes no for an answer.
-- products: all that it may be charged as, where these are several. scopes: of its budgets; budgets: the version of the account's budgets by which the process found them.
-- waited: for how long the first of them has, in milliseconds. system: the version of the gateway's limits that the process goes by.
-- Answers [{as, amount, available, limit, scope, max, left, wait, full, rate_max, rate_left, status, reason, contact}, …]. `as` is held, short or limited; stale: the account has other
-- budgets; tight: others were asked for what they have leased; away:
-- it lies with a process that does not answer; no_slice: the process must learn of the gateway's limits first; gone, frozen, blocked (the account is suspended or closed), no_account, idem_conflict, idem_running, idem_replay.
create or replace function ledger_reserve(account text, process text, calls jsonb, waited int, system text) returns jsonb
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
set lock_timeout = '300ms'
as $$
declare
  now_second bigint;
  -- When the first of these calls came, and a little before: the way to the database takes a while as well. Limits on the minute judge by it.
  came bigint := floor(extract(epoch from clock_timestamp()) - waited / 1000.0 - 0.25)::bigint;
  o record; x record;
  r jsonb; answers jsonb[] := '{}';
  counters counter[] := '{}'; room bigint[]; counted bigint[];
  -- Where the counters of each scope are, and those of the present call, by its key and budgets: the next one often has the same.
  places jsonb; mine int[]; mine_key text; mine_of jsonb; budgets_held jsonb; scopes text[]; mine_scopes text[]; p int;
  amount bigint; open_calls bigint; n int;
  made text[] := '{}'; made_amount bigint[] := '{}';
  -- Of an account with lots: from which of them each hold took how much.
  made_lots jsonb[];
  -- When the account was locked, and its holds were made.
  moment timestamptz;
  -- Whether others were asked for what they have leased, and what lies with processes that do not answer: worked out once.
  recalled boolean; elsewhere bigint;
begin
  select a.posted, a.held, a.frozen_until > now() as is_frozen, a.status, a.status_reason, a.has_lots, a.budgets into o from account a where a.id = account for update;
  if not found or system is distinct from (select s.value from setting s where s.name = 'system-limits') then
    return (select jsonb_agg(jsonb_build_object('as', case when o.posted is null then 'no_account' else 'no_slice' end)) from jsonb_array_elements(calls));
  end if;
  -- Not before the account is locked: new limits may be what was waited for.
  moment := clock_timestamp(); now_second := floor(extract(epoch from moment))::bigint;
  scopes := array(select distinct k ->> 'key' from jsonb_array_elements(calls) k) || 'account'::text;
  if o.budgets > 0 then
    mine_scopes := array(select distinct s from jsonb_array_elements(calls) k cross join jsonb_array_elements_text(k -> 'scopes') s where (k ->> 'budgets')::int = o.budgets);
    perform budget_make(account, mine_scopes, moment);
    scopes := scopes || mine_scopes; budgets_held := budget_held(account);
  end if;
  counters := array(select counter_now(c, now_second) from counter c where c.account_id = account and c.scope = any(scopes) order by c.scope, counter_rank(c.unit, c.span));
  for n in 1 .. cardinality(counters) loop
    room[n] := counter_room(counters[n], came, budgets_held); counted[n] := 0;
  end loop;
  if counters <> '{}' then
    places := counter_places(counters);
  end if;
  for x in
    select c.*, h.amount as has, t.id is not null as is_gone
    from jsonb_to_recordset(calls) as c(id text, key text, scopes jsonb, budgets int, want bigint, floor bigint, most bigint, open int, product text, products text[], version int, tokens bigint, last boolean, idem text, hash text,
        job jsonb)
      left join lateral (select h.amount from hold h where h.account_id = account and h.id = c.id limit 1) h on true
      left join lateral (select t.id from transfer t where t.account_id = account and t.id = c.id limit 1) t on true
  loop
    if x.has is not null and x.job is not null and not exists (select 1 from job j where j.account_id = account and j.hold_id = x.id) then
      -- Its hold was made before the job was known. An account that is being moved gets no new jobs.
      if o.is_frozen then
        x.has := null;
      else
        update hold h set job = true where h.account_id = account and h.id = x.id;
        perform ledger_make_job(account, x.id, x.key, x.product, x.version, x.idem, x.job);
      end if;
    end if;
    if x.has is not null or x.is_gone or o.is_frozen then
      -- A try whose answer was lost, or a call that was given up before its reservation arrived.
      answers := answers || jsonb_build_object('as', case when x.has is not null then 'held' when x.is_gone then 'gone' else 'frozen' end, 'amount', x.has::text);
      continue;
    end if;
    if o.status <> 'open' then
      answers := answers || jsonb_build_object('as', 'blocked', 'status', o.status, 'reason', o.status_reason, 'contact', (select s.value from setting s where s.name = 'contact'));
      continue;
    end if;
    if o.budgets <> coalesce(x.budgets, 0) then
      answers := answers || '{"as": "stale"}'::jsonb;
      continue;
    end if;
    if places is not null and (x.key is distinct from mine_key or x.scopes is distinct from mine_of) then
      mine := counters_of(places, x.key, x.scopes); mine_key := x.key; mine_of := x.scopes;
    end if;
    r := case when x.idem is not null then ledger_remember(account, x.idem, x.hash, x.id) end;
    if r is null then
      n := case when places is not null then ledger_refused(counters, room, mine, array[x.tokens, x.floor]) end;
      amount := case when o.has_lots then lot_available(account, coalesce(x.products, array[x.product]), o.posted - o.held, moment) else o.posted - o.held end;
      -- Whoever cannot pay is told that, and not to come back when the minute is over.
      if amount < x.floor then
        recalled := case when x.last then recalled else coalesce(recalled, ledger_recall(account, null, null)) end;
        elsewhere := coalesce(elsewhere, case when x.last or not recalled then ledger_elsewhere(account, process) end);
        r := jsonb_build_object('as', case when recalled and not x.last then 'tight' when x.floor - amount <= elsewhere then 'away' else 'short' end,
          'amount', x.want::text, 'available', amount::text);
      elsif n is not null then
        r := ledger_limited(counters[n], process, not x.last, counter_need(counters[n].unit, x.tokens, x.floor) - room[n]) || jsonb_build_object('available', amount::text, 'left', room[n]::text);
      elsif x.scopes is not null and not coalesce(places, '{}') ?& mine_scopes then
        r := budget_full(account, places, x.scopes);
      end if;
      if r is not null and x.idem is not null then
        delete from idempotency d where d.account_id = account and d.key = x.idem and d.hold_id = x.id;
      end if;
    end if;
    if r is null then
      r := '{"as": "held"}';
      foreach p in array coalesce(mine, '{}') loop
        if counters[p].unit = 'credits' then
          amount := least(amount, room[p]);
        elsif counters[p].unit = 'requests' and counters[p].span = 'minute' then
          r := r || jsonb_build_object('rate_max', counters[p].max, 'rate_left', room[p] - 1);
        end if;
      end loop;
      if x.most > x.want and amount > x.want then
        open_calls := coalesce(open_calls, (select count(*) from hold h where h.account_id = account)) + 1;
        amount := greatest(x.want, least(x.most, amount / (2 * (open_calls + x.open))));
      else
        amount := least(x.want, amount);
      end if;
      if o.has_lots then
        made_lots[cardinality(made) + 1] := lot_hold(account, coalesce(x.products, array[x.product]), o.posted - o.held, moment, amount);
      end if;
      o.held := o.held + amount;
      foreach p in array coalesce(mine, '{}') loop
        room[p] := room[p] - counter_need(counters[p].unit, x.tokens, amount);
        counted[p] := counted[p] + case when counters[p].unit in ('requests', 'tokens') then counter_need(counters[p].unit, x.tokens, 0) else 0 end;
      end loop;
      made := made || x.id; made_amount := made_amount || amount;
      if x.job is not null then
        perform ledger_make_job(account, x.id, x.key, x.product, x.version, x.idem, x.job);
      end if;
      r := r || jsonb_build_object('amount', amount::text);
    end if;
    answers := answers || r;
  end loop;
  if made <> '{}' then
    insert into hold (account_id, id, key_id, process_id, job, amount, product, catalog_version, tokens, lots, scopes, created_at)
    select a.id, c.id, c.key, process, c.job is not null, made_amount[array_position(made, c.id)], c.product, c.version, c.tokens, made_lots[array_position(made, c.id)], c.scopes, moment
    from account a cross join jsonb_to_recordset(calls) as c(id text, key text, scopes jsonb, product text, version int, tokens bigint, job jsonb) where a.id = account and c.id = any(made);
    update account a set held = o.held where a.id = account;
  end if;
  if counters <> '{}' then
    perform counter_put(array(select counter_add(counters[i], array[now_second], array[counted[i]]) from generate_series(1, cardinality(counters)) i where counted[i] <> 0));
  end if;
  return to_jsonb(answers);
end $$;

-- Which of the counters at these places, if any, has no room for a call: the first in their order, and of those that count credits the tightest. need: tokens and credits.
drop function if exists ledger_refused(counter[], bigint[], text, bigint, bigint);
create or replace function ledger_refused(counters counter[], room bigint[], places int[], need bigint[]) returns int
language plpgsql immutable as $$
declare
  found_at int;
  i int;
begin
  foreach i in array places loop
    if room[i] < counter_need(counters[i].unit, need[1], need[2]) then
      if found_at is null or counters[i].scope = counters[found_at].scope and counters[found_at].unit = 'credits' and room[i] < room[found_at] then
        found_at := i;
      end if;
    end if;
  end loop;
  return found_at;
end $$;

-- What others hold of an account although no call needs it, or although nobody has heard of them lately (they speak every 2.5 seconds): it comes back when they
-- answer, or are taken for dead. Until then, nobody can say that it is not there.
create or replace function ledger_elsewhere(account text, process text) returns bigint
language plpgsql stable as $$
begin
  return (select coalesce(sum(u.amount), 0) from (
    select case when p.heartbeat_at > now() - interval '4 seconds' then greatest(e.amount - e.in_use, 0) else e.amount end as amount
      from lease e left join gateway_instance p on p.id = e.process_id where e.account_id = account and e.process_id <> process
    union all
    select h.amount from hold h left join gateway_instance p on p.id = h.process_id
      where h.account_id = account and not h.job and h.process_id <> process and (p.id is null or p.heartbeat_at <= now() - interval '4 seconds')) u);
end $$;

-- The answer to a call for which a counter has no room. asks: others may be asked for what they have leased. lacks: how much more room it needs.
create or replace function ledger_limited(c counter, process text, asks boolean, lacks bigint) returns jsonb
language plpgsql as $$
begin
  -- Of a minute, this process has used up what it was given itself.
  if asks and c.unit <> 'calls' and ledger_recall(c.account_id, nullif(c.scope, 'account'), case when c.span = 'minute' then process end) then
    return '{"as": "tight"}';
  end if;
  return jsonb_build_object('as', 'limited', 'limit', c.name, 'scope', c.scope, 'max', c.max::text, 'wait', counter_wait(c, lacks));
end $$;

-- Asks processes for what they have leased of an account, or of a key or budget alone. What was asked for longer ago has been given back, but for what calls need.
-- Answers whether something may come back.
drop function if exists ledger_recall(text, text, text);
create or replace function ledger_recall(account text, scope text, but text) returns boolean
language plpgsql as $$
begin
  update lease e set recalled_at = least(e.recalled_at, now())
  where e.account_id = account and e.amount > 0 and (e.recalled_at is null or e.recalled_at > now() - interval '2 seconds')
    and (scope is null or e.key_id = scope or e.scopes ? scope) and (but is null or e.process_id <> but);
  return found;
end $$;

-- Takes an idempotency key for a call. Answers null, or what became of the call that has it.
create or replace function ledger_remember(account text, name text, hash text, call text) returns jsonb
language plpgsql as $$
declare
  earlier idempotency;
begin
  insert into idempotency (account_id, key, request_hash, hold_id) values (account, name, hash, call)
  on conflict (account_id, key) do update set request_hash = excluded.request_hash, hold_id = excluded.hold_id, status = null,
    content_type = null, body = null, sealed = null, freed = false, created_at = excluded.created_at
    where idempotency.created_at < now() - interval '24 hours' and idempotency.status is not null or idempotency.freed;
  if found then
    return null;
  end if;
  select * into earlier from idempotency d where d.account_id = account and d.key = name;
  return jsonb_build_object('as', case when earlier.request_hash <> hash then 'idem_conflict' when earlier.status is null then 'idem_running' else 'idem_replay' end);
end $$;

-- A job is made with its hold, and with the answer to its idempotency key.
create or replace function ledger_make_job(account text, call text, key text, product text, version int, name text, job jsonb) returns void
language plpgsql as $$
begin
  insert into job (id, account_id, key_id, hold_id, product, catalog_version, input, request, callback_url)
  values (job ->> 'id', account, key, call, product, version, job ->> 'input', job ->> 'request', job ->> 'callback');
  update idempotency d set status = 200, content_type = 'application/json; charset=utf-8', body = convert_to(job ->> 'answer', 'UTF8')
  where d.account_id = account and d.key = name;
end $$;
