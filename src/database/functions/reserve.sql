-- Makes holds for calls of one account, in the order of their arrival, as if they had come one by one.
-- calls: [{id, key, scopes, budgets, want, floor, most, open, product, products, version, tokens, last, idem, hash,
-- job: {id, input, request, callback, answer}}, …].
-- want, floor, most: what is held while it is there, the least that is worth holding, and the most that the call can
-- cost. What lies between is shared: of what is available, a call gets one part in twice the account's open calls, so
-- that a lone call is seldom cut short and many at once are all served. open: calls of the account that leases of the
-- process cover. last: it has waited for what others have leased, and now takes no for an answer.
-- due: it has waited for running calls as well, and takes what is there. Others that get less than `want` while calls
-- of the account run are `crowded`, and so are those behind them: first come, first served.
-- products: all that it may be charged as, where these are several. scopes: of its budgets; budgets: the version of the
-- account's budgets by which the process found them.
-- waited: for how long the first of them has, in milliseconds. system: the version of the gateway's limits that the
-- process goes by.
-- purse: of a call that a customer of the account pays, what its purse holds beside the account (extensions/purses/functions.sql).
-- Answers [{as, amount, available, held, calls, limit, scope, unit, span, max, left, wait, full, rate_max, rate_left,
-- status, reason, contact}, …]. `as` is held, short, limited or crowded (`held` is what `calls` running calls hold);
-- stale: the account has other budgets; tight: others were asked for what they have leased; away: it lies with a
-- process that does not answer; no_slice: the process must learn of the gateway's limits first; gone, frozen, blocked
-- (the account is suspended or closed), no_account, idem_conflict, idem_running, idem_replay.
create or replace function ledger_reserve(account text, process text, calls jsonb, waited int, system text) returns jsonb
language plpgsql as $$
declare
  -- When the first of these calls came, and a little before, for the way to the database: limits on the minute need it.
  came bigint := floor(extract(epoch from clock_timestamp()) - waited / 1000.0 - 0.25)::bigint;
  moment timestamptz; now_second bigint;
  o record; x record; judged record; r jsonb; answers jsonb[] := '{}';
  counters counter[] := '{}'; room bigint[] := '{}'; counted bigint[]; budgets_held jsonb; budget_scopes text[]; p int;
  -- Where the counters of each scope are, and those of the present call: the next one often has the same.
  places jsonb; mine int[] := '{}'; mine_key text; mine_of jsonb;
  amount bigint; open_calls bigint; one hold; made hold[] := '{}';
  -- Whether others were asked for what they have leased, and what lies with processes that do not answer.
  recalled boolean; elsewhere bigint; is_crowded boolean := false;
begin -- Step 1, account: locked, so that what follows is true until the commit.
  select a.posted, a.held, a.frozen_until > now() as is_frozen, a.status, a.status_reason, a.has_lots, a.budgets, a.claims into o from account a where a.id = account for update;
  if not found or system is distinct from (select s.value from setting s where s.name = 'system-limits') then
    return (select jsonb_agg(jsonb_build_object('as', case when o.posted is null then 'no_account' else 'no_slice' end)) from jsonb_array_elements(calls));
  end if;
  -- Not before the account is locked: new limits may be what was waited for.
  moment := clock_timestamp(); now_second := floor(extract(epoch from moment))::bigint;
  if o.budgets > 0 then -- Step 2, counters: what limits and budgets leave, for all calls at once.
    budget_scopes := array(select distinct s from jsonb_array_elements(calls) k cross join jsonb_array_elements_text(k -> 'scopes') s where (k ->> 'budgets')::int = o.budgets);
    perform budget_make(account, budget_scopes, moment);
    budgets_held := budget_held(account);
  end if;
  if exists (select 1 from counter c where c.account_id = account) then
    counters := counters_for(account, calls, now_second); places := counter_places(counters);
    room := array(select counter_room(c, came, budgets_held) from unnest(counters) c); counted := array_fill(0::bigint, array[cardinality(counters)]);
  end if;
  judged := counters_judge(counters, room, mine, 0, 0);
  for x in
    select c.*, h.amount as has, t.id is not null as is_gone, c.job is not null and h.amount is not null and j.id is null as becomes_job
    from jsonb_to_recordset(calls) as c(id text, key text, scopes jsonb, budgets int, want bigint, floor bigint, most bigint, open int, product text, products text[], version int, tokens bigint, last boolean, due boolean,
        idem text, hash text, job jsonb, purse jsonb)
      left join lateral (select h.amount from hold h where h.account_id = account and h.id = c.id limit 1) h on true
      left join lateral (select t.id from transfer t where t.account_id = account and t.id = c.id limit 1) t on true
      left join lateral (select j.id from job j where j.account_id = account and j.hold_id = c.id and c.job is not null limit 1) j on true
  loop -- Step 3: each call (x) in turn gets its answer (r) from the first of these that has one.
    -- Step 3a, known: it was decided before, or is not let in whatever it costs.
    if x.becomes_job and not coalesce(o.is_frozen, false) then
      perform ledger_make_job(account, x.id, x.key, x.product, x.version, x.idem, x.job);
    end if;
    r := case when x.has is not null or x.is_gone or o.is_frozen or o.status <> 'open' or o.budgets <> coalesce(x.budgets, 0) then reserve_known(x.has, x.is_gone, x.becomes_job, o.is_frozen, o.status, o.status_reason)
      when x.idem is not null then idempotency_found(account, x.idem, x.hash) end;
    -- Step 3b, refused: the credits, a limit or a budget do not suffice.
    if r is null then
      if places is not null then
        if x.key is distinct from mine_key or x.scopes is distinct from mine_of then
          mine := counters_of(places, x.key, x.scopes); mine_key := x.key; mine_of := x.scopes;
        end if;
        judged := counters_judge(counters, room, mine, x.tokens, x.floor);
      end if;
      amount := case when o.has_lots then lot_available(account, coalesce(x.products, array[x.product]), o.posted - o.held, moment) else o.posted - o.held end;
      -- Whoever cannot pay is told that, and not to come back when the minute is over.
      if amount < x.floor or (amount < x.want or is_crowded) and o.held > 0 and x.due is not true then
        recalled := case when x.last then recalled else coalesce(recalled, ledger_recall(account, null, false)) end;
        elsewhere := coalesce(elsewhere, case when x.last or not recalled then ledger_elsewhere(account, process) end);
        r := case when recalled and not x.last then '{"as": "tight"}' when x.floor - amount between 1 and elsewhere then '{"as": "away"}'
          else reserve_crowded(account, process, x.floor, x.open, array[o.posted, o.held], case when o.has_lots then coalesce(x.products, array[x.product]) end) end
          || jsonb_build_object('amount', x.want::text, 'available', amount::text);
        is_crowded := is_crowded or r ->> 'as' = 'crowded';
      elsif judged.refused is not null then
        r := ledger_limited(counters[judged.refused], not x.last, judged.lacks) || jsonb_build_object('available', amount::text, 'left', room[judged.refused]::text);
      elsif x.scopes is not null and not coalesce(places, '{}') ?& budget_scopes then
        r := budget_full(account, places, x.scopes);
      end if; r := coalesce(r, case when x.purse is not null then purse_refused(account, x.purse, x.floor, moment) end);
    end if;
    -- Step 3c, held: what it wants, or without an output limit its share of what is there.
    if r is null then
      amount := least(amount, judged.credits, case when x.purse is not null then purse_room(account, x.purse) end);
      if x.most > x.want and amount > x.want then
        open_calls := coalesce(open_calls, (select count(*) from hold h where h.account_id = account)) + 1;
        amount := greatest(x.want, least(x.most, amount / (2 * (open_calls + x.open))));
      else
        amount := least(x.want, amount);
      end if;
      r := jsonb_build_object('as', 'held', 'amount', amount::text) || judged.rate;
      one.account_id := account; one.id := x.id; one.key_id := x.key; one.process_id := process; one.job := x.job is not null; one.amount := amount;
      one.product := x.product; one.catalog_version := x.version; one.tokens := x.tokens; one.created_at := moment; one.scopes := x.scopes; one.claims := o.claims; one.purse := case when x.purse is not null then purse_take(account, x.purse, amount) end;
      one.lots := case when o.has_lots then lot_hold(account, coalesce(x.products, array[x.product]), o.posted - o.held, moment, amount) end;
      made := made || one;
      o.held := o.held + amount;
      foreach p in array mine loop
        room[p] := room[p] - counter_need(counters[p].unit, x.tokens, amount);
        counted[p] := counted[p] + case when counters[p].unit in ('requests', 'tokens') then counter_need(counters[p].unit, x.tokens, 0) else 0 end;
      end loop;
      if x.idem is not null or x.job is not null then
        perform idempotency_take(account, x.idem, x.hash, x.id) where x.idem is not null;
        perform ledger_make_job(account, x.id, x.key, x.product, x.version, x.idem, x.job) where x.job is not null;
      end if;
    end if;
    answers := answers || r;
  end loop;
  if made <> '{}' then -- Step 4, written: the holds together, what the account holds, and what was counted.
    insert into hold select m.* from unnest(made) m;
    update account a set held = o.held where a.id = account;
    perform counter_put(array(select counter_add(counters[i], array[now_second], array[counted[i]]) from generate_subscripts(counters, 1) i where counted[i] <> 0));
  end if;
  return to_jsonb(answers);
end $$;

-- The answer to a call that needs no look at credits and limits. has: its hold, by a try whose answer was lost, or made
-- before its job was known; is_gone: it was given up before its reservation arrived. An account that is being moved
-- (frozen) gets no new jobs.
create or replace function reserve_known(has bigint, is_gone boolean, becomes_job boolean, is_frozen boolean, status text, reason text) returns jsonb
language plpgsql stable as $$
begin
  return case when has is not null and not (becomes_job and coalesce(is_frozen, false)) then jsonb_build_object('as', 'held', 'amount', has::text)
    when is_gone then '{"as": "gone"}'
    when is_frozen then '{"as": "frozen"}'
    when status <> 'open' then jsonb_build_object('as', 'blocked', 'status', status, 'reason', reason, 'contact', (select s.value from setting s where s.name = 'contact'))
    else '{"as": "stale"}' end;
end $$;

-- The answer to a call for which too little is available: with nothing held, it could pay (crowded) or not (short);
-- what is claimed does not come back. balance: what the account has, and what of it is held; products: of an account
-- with lots, what the call may be charged as; open: calls that leases of its process cover. Of a lease of another
-- process it is known only that calls use it.
create or replace function reserve_crowded(account text, process text, floor bigint, open int, balance bigint[], products text[]) returns jsonb
language plpgsql as $$
declare
  back bigint := balance[1] - coalesce(claim_due(account, products), 0);
begin
  if floor > back or balance[2] = 0 or products is not null and floor > lot_payable(account, products, back) then
    return '{"as": "short"}';
  end if;
  -- Other processes may lease what the waiting call needs.
  perform ledger_recall(account, null, false);
  return jsonb_build_object('as', 'crowded', 'held', balance[2]::text, 'calls', open + (select count(*) from hold h where h.account_id = account)
    + (select count(*) from lease e where e.account_id = account and e.process_id <> process and e.in_use > 0));
end $$;

-- What the counters at these places say to a call. refused: the one without room for it, the first in their order, and
-- of those that count credits the tightest, and how much it lacks; credits: what they leave of credits; rate: of the
-- limit on requests in a minute, what it allows and leaves.
drop function if exists ledger_refused(counter[], bigint[], int[], bigint[]);
create or replace function counters_judge(counters counter[], room bigint[], places int[], tokens bigint, floor bigint, out refused int, out lacks bigint, out credits bigint, out rate jsonb)
language plpgsql immutable as $$
declare
  i int;
begin
  rate := '{}';
  foreach i in array places loop
    if room[i] < counter_need(counters[i].unit, tokens, floor)
      and (refused is null or counters[i].scope = counters[refused].scope and counters[refused].unit = 'credits' and room[i] < room[refused]) then
      refused := i; lacks := counter_need(counters[i].unit, tokens, floor) - room[i];
    end if;
    if counters[i].unit = 'credits' then
      credits := least(credits, room[i]);
    elsif counters[i].unit = 'requests' and counters[i].span = 'minute' then
      rate := jsonb_build_object('rate_max', counters[i].max, 'rate_left', room[i] - 1);
    end if;
  end loop;
end $$;

-- What others hold of an account although no call needs it, or although nobody has heard of them lately (they speak
-- every 2.5 seconds): it comes back when they answer, or are taken for dead. Until then, nobody can say that it is not
-- there.
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

-- The answer to a call for which a counter has no room. asks: others may be asked for what they have leased. lacks: how
-- much more room it needs.
drop function if exists ledger_limited(counter, text, boolean, bigint);
create or replace function ledger_limited(c counter, asks boolean, lacks bigint) returns jsonb
language plpgsql as $$
begin
  -- Also the process that asks may have been given some of a minute that it cannot use yet.
  if asks and c.unit <> 'calls' and ledger_recall(c.account_id, nullif(c.scope, 'account'), c.unit <> 'credits') then
    return '{"as": "tight"}';
  end if;
  return jsonb_build_object('as', 'limited', 'limit', c.name, 'scope', c.scope, 'unit', c.unit, 'span', c.span, 'max', c.max::text, 'wait', counter_wait(c, lacks));
end $$;

-- Asks processes for what they have leased of an account, or of a key or budget alone. What was asked for longer ago
-- has been given back, but for what calls need.
-- sliced: only leases that may have some of a limit on requests or tokens left, which one that admits no more calls has
-- given back. Answers whether something may come back.
drop function if exists ledger_recall(text, text, text);
create or replace function ledger_recall(account text, scope text, sliced boolean) returns boolean
language plpgsql as $$
begin
  update lease e set recalled_at = least(e.recalled_at, now())
  where e.account_id = account and e.amount > 0 and (e.recalled_at is null or e.recalled_at > now() - interval '2 seconds')
    and (scope is null or e.key_id = scope or e.scopes ? scope) and (not sliced or e.slices <> '{}' and not e.retired);
  return found;
end $$;

-- What became of the call that has an idempotency key; null where the key is free.
create or replace function idempotency_found(account text, name text, hash text) returns jsonb
language plpgsql stable as $$
begin
  return (select jsonb_build_object('as', case when d.request_hash <> hash then 'idem_conflict' when d.status is null then 'idem_running' else 'idem_replay' end)
    from idempotency d where d.account_id = account and d.key = name and not (d.freed or d.created_at < now() - interval '24 hours' and d.status is not null));
end $$;

-- Takes an idempotency key that is free for a call.
drop function if exists ledger_remember(text, text, text, text);
create or replace function idempotency_take(account text, name text, hash text, call text) returns void
language plpgsql as $$
begin
  insert into idempotency (account_id, key, request_hash, hold_id) values (account, name, hash, call)
  on conflict (account_id, key) do update set request_hash = excluded.request_hash, hold_id = excluded.hold_id, status = null,
    content_type = null, body = null, sealed = null, freed = false, created_at = excluded.created_at;
end $$;

-- A job is made with its hold, or for the hold that is there, and with the answer to its idempotency key.
create or replace function ledger_make_job(account text, call text, key text, product text, version int, name text, job jsonb) returns void
language plpgsql as $$
begin
  insert into job (id, account_id, key_id, hold_id, product, catalog_version, input, request, callback_url)
  values (job ->> 'id', account, key, call, product, version, job ->> 'input', job ->> 'request', job ->> 'callback');
  update hold h set job = true where h.account_id = account and h.id = call;
  update idempotency d set status = 200, content_type = 'application/json; charset=utf-8', body = convert_to(job ->> 'answer', 'UTF8')
  where d.account_id = account and d.key = name;
end $$;
