-- The ledger's one statement. A flush resolves holds and makes holds for many calls at once, in arrival order within an
-- account, exactly as if they had come one by one. All rows that it will change are locked first, in one order.

create function window_shift(buckets bigint[], last_second bigint, now_second bigint) returns bigint[]
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

create function window_sum(buckets bigint[]) returns bigint
language sql immutable as $$ select sum(b)::bigint from unnest(buckets) b $$;

-- Seconds until at least `excess` of the window has passed out of it.
create function window_wait(buckets bigint[], now_second bigint, excess bigint) returns bigint
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
create function limited_now(l limited, now_second bigint, today date) returns limited
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
create function limited_refusal(l limited, floor_amount bigint, call_tokens bigint, room bigint) returns jsonb
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

create function limited_room(l limited) returns bigint
language sql immutable as $$
  select least(
    coalesce((l.limits ->> 'spendTotal')::bigint - l.total_spent - l.held, 9223372036854775807),
    coalesce((l.limits ->> 'spendPerMonth')::bigint - l.month_spent - l.held, 9223372036854775807),
    coalesce((l.limits ->> 'spendPerDay')::bigint - l.day_spent - l.held, 9223372036854775807))
$$;

-- `i` is a record's place in its array.
-- settles: [{i,id,account,kind,charge,key,product,door,status,lines,estimated,stream,route,ms,first,version,in,out,
--            keep?: {status,type,body}}]
-- reserves: [{i,id,account,key,want,floor,product,version,tokens,job?,idem?,hash?}]
-- answers {settles: [[i, kind, paid, loss, posted, held]], reserves: [[i, outcome, amount, posted, held, detail]]}
create function ledger_flush(process text, accounts text[], settles jsonb, reserves jsonb) returns jsonb
language plpgsql
-- Every row is reached by its key, whatever the planner knows of the tables' sizes: a plan that reads a whole table is
-- right for a large flush on a small table, and ruinous a day later.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
declare
  now_second bigint := floor(extract(epoch from clock_timestamp()))::bigint;
  today date := (now() at time zone 'UTC')::date;
  limits_exist boolean;
  r record;
  l limited;
  earlier idempotency;
  scope_names text[];
  scope_name text;
  refusal jsonb;
  tightest jsonb;
  room bigint;
  account text;
  posted bigint;
  held bigint;
  paid bigint;
  lost bigint;
  kind text;
  granted bigint;
  touched text[] := '{}';
  touched_posted bigint[] := '{}';
  touched_held bigint[] := '{}';
  done_i int[] := '{}';
  done_ids text[] := '{}';
  done_as text[] := '{}';
  done_kind text[] := '{}';
  done_paid bigint[] := '{}';
  done_lost bigint[] := '{}';
  done_held bigint[] := '{}';
  new_i int[] := '{}';
  new_ids text[] := '{}';
  new_amounts bigint[] := '{}';
  new_scopes text[] := '{}';
  settled_out jsonb[] := '{}';
  reserved_out jsonb[] := '{}';
begin
  perform 1 from account a where a.id = any(accounts) order by a.id for update;
  limits_exist := exists (select 1 from limited);

  for r in
    select x.*, h.amount as hold_amount, h.scopes, h.tokens as hold_tokens, a.posted as a_posted, a.held as a_held,
      floor(extract(epoch from h.created_at))::bigint as hold_second,
      row_number() over (partition by x.id order by x.i) as nth
    from jsonb_to_recordset(settles) as x(i int, id text, account text, kind text, charge bigint, "in" bigint, "out" bigint)
    join account a on a.id = x.account
    left join hold h on h.id = x.id
    order by x.account, x.i
  loop
    if account is distinct from r.account then
      if account is not null then
        touched := touched || account; touched_posted := touched_posted || posted; touched_held := touched_held || held;
      end if;
      account := r.account; posted := r.a_posted; held := r.a_held;
    end if;
    kind := r.kind;
    if r.nth > 1 then
      -- The same resolution twice in one flush.
      settled_out := settled_out || jsonb_build_array(r.i, 'already', '0', '0', posted::text, held::text);
      continue;
    end if;
    if r.hold_amount is null then
      -- Resolved before: by a try whose answer was lost, or by the sweep while the process slept.
      select t.kind into kind from transfer t where t.id = r.id;
      if kind = 'expired' and r.kind = 'settled' and r.charge > 0
         and not exists (select 1 from transfer t where t.id = r.id || '+late') then
        paid := least(r.charge, posted - held);
        lost := r.charge - paid;
        posted := posted - paid;
        done_i := done_i || r.i; done_ids := done_ids || r.id; done_as := done_as || (r.id || '+late'); done_kind := done_kind || 'settled'::text;
        done_paid := done_paid || paid; done_lost := done_lost || lost; done_held := done_held || 0::bigint;
        settled_out := settled_out || jsonb_build_array(r.i, 'late', paid::text, lost::text, posted::text, held::text);
        continue;
      elsif kind is not null then
        select t.amount, t.loss into paid, lost from transfer t where t.id in (r.id, r.id || '+late') order by t.id desc limit 1;
        settled_out := settled_out || jsonb_build_array(r.i, 'already', paid::text, lost::text, posted::text, held::text);
        continue;
      end if;
      -- There was no such hold. A release is written down all the same: the reservation that it gives up may still be on
      -- its way, and must find that it is over. A settlement is a fact, and takes its amount anew.
      kind := r.kind;
      r.hold_amount := 0;
    end if;
    held := held - r.hold_amount;
    paid := least(r.charge, posted - held);
    lost := r.charge - paid;
    posted := posted - paid;
    done_i := done_i || r.i; done_ids := done_ids || r.id; done_as := done_as || r.id; done_kind := done_kind || kind;
    done_paid := done_paid || paid; done_lost := done_lost || lost; done_held := done_held || r.hold_amount;
    settled_out := settled_out || jsonb_build_array(r.i, kind, paid::text, lost::text, posted::text, held::text);
    if r.scopes is not null then
      foreach scope_name in array r.scopes loop
        select * into l from limited where scope = scope_name for update;
        if found then
          l := limited_now(l, now_second, today);
          if now_second - r.hold_second < 60 then
            -- The minute counted the worst case; from here on it counts what was used.
            l.tokens[(r.hold_second % 60)::int + 1] := l.tokens[(r.hold_second % 60)::int + 1] - r.hold_tokens + r."in" + r."out";
          end if;
          update limited set held = l.held - r.hold_amount, open_calls = greatest(l.open_calls - 1, 0), second = l.second,
            requests = l.requests, tokens = l.tokens, day = l.day, month = l.month,
            day_spent = l.day_spent + paid, month_spent = l.month_spent + paid, total_spent = l.total_spent + paid
          where scope = scope_name;
        end if;
      end loop;
    end if;
  end loop;
  if account is not null then
    touched := touched || account; touched_posted := touched_posted || posted; touched_held := touched_held || held;
  end if;

  if cardinality(done_ids) > 0 then
    delete from hold h where h.id = any(done_ids);
    with x as (
      select d.as_id, d.kind, d.paid, d.lost, d.held, x.*
      from unnest(done_i, done_as, done_kind, done_paid, done_lost, done_held) as d(i, as_id, kind, paid, lost, held)
      cross join lateral jsonb_to_record(settles -> d.i) as x(id text, account text, key text, product text, door text, status int, lines jsonb,
        estimated boolean, stream boolean, route smallint, ms int, first int, version int, "in" bigint, "out" bigint)
    ), moved as (
      insert into transfer (id, account_id, kind, amount, loss, held)
      select x.as_id, x.account, x.kind, x.paid, x.lost, x.held from x
    ), used as (
      insert into usage (id, account_id, key_id, product, door, outcome, status, charged, loss, held, catalog_version, lines, estimated,
        stream, route, duration_ms, first_byte_ms)
      select x.as_id, x.account, x.key, x.product, x.door, x.kind, x.status, x.paid, x.lost, x.held, x.version, x.lines, x.estimated,
        x.stream, x.route, x.ms, x.first from x
    )
    insert into usage_hour as u (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
    select x.account, date_trunc('hour', now(), 'UTC'), x.product, x.key, count(*), count(*) filter (where x.status >= 400), sum(x.paid),
      sum(x."in"), sum(x."out"), sum(x.ms)
    from x group by x.account, x.product, x.key order by x.account, x.product, x.key
    on conflict (account_id, hour, product, key_id) do update set requests = u.requests + excluded.requests,
      errors = u.errors + excluded.errors, charged = u.charged + excluded.charged,
      input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens,
      duration_ms = u.duration_ms + excluded.duration_ms;

    if jsonb_path_exists(settles, '$[*].idem') then
      delete from idempotency d using jsonb_to_recordset(settles) as x(id text, idem boolean, keep jsonb)
      where d.hold_id = x.id and x.idem and x.keep is null and d.status is null;
      update idempotency d set status = (x.keep ->> 'status')::int, content_type = x.keep ->> 'type',
        body = decode(x.keep ->> 'body', 'base64')
      from jsonb_to_recordset(settles) as x(id text, keep jsonb)
      where d.hold_id = x.id and x.keep is not null and d.status is null;
    end if;

    update account a set posted = t.posted, held = t.held
    from unnest(touched, touched_posted, touched_held) as t(id, posted, held) where a.id = t.id;
  end if;

  touched := '{}'; touched_posted := '{}'; touched_held := '{}'; account := null;
  for r in
    select x.*, a.id as found_account, a.posted as a_posted, a.held as a_held, h.amount as hold_amount, t.id as resolved
    from jsonb_to_recordset(reserves) as x(i int, id text, account text, key text, want bigint, floor bigint, tokens bigint, idem text, hash text)
    left join account a on a.id = x.account
    left join hold h on h.id = x.id
    left join transfer t on t.id = x.id
    order by x.account, x.i
  loop
    if r.resolved is not null then
      -- Given up before it arrived.
      reserved_out := reserved_out || jsonb_build_array(r.i, 'gone', '0', '0', '0', null);
      continue;
    end if;
    if r.found_account is null then
      reserved_out := reserved_out || jsonb_build_array(r.i, 'no_account', '0', '0', '0', null);
      continue;
    end if;
    if account is distinct from r.account then
      if account is not null then
        touched := touched || account; touched_posted := touched_posted || posted; touched_held := touched_held || held;
      end if;
      account := r.account; posted := r.a_posted; held := r.a_held;
    end if;
    if r.hold_amount is not null then
      -- A try whose answer was lost.
      reserved_out := reserved_out || jsonb_build_array(r.i, 'held', r.hold_amount::text, posted::text, held::text, null);
      continue;
    end if;
    if r.idem is not null then
      insert into idempotency (account_id, key, request_hash, hold_id) values (r.account, r.idem, r.hash, r.id)
      on conflict (account_id, key) do update set request_hash = excluded.request_hash, hold_id = excluded.hold_id, status = null,
        content_type = null, body = null, created_at = now()
        where idempotency.created_at < now() - interval '24 hours' and idempotency.status is not null
      returning * into earlier;
      if not found then
        select * into earlier from idempotency where account_id = r.account and key = r.idem;
        reserved_out := reserved_out || jsonb_build_array(r.i,
          case when earlier.request_hash <> r.hash then 'idem_conflict' when earlier.status is null then 'idem_running' else 'idem_replay' end,
          '0', posted::text, held::text, null);
        continue;
      end if;
    end if;
    room := posted - held;
    refusal := null; tightest := null; scope_names := null;
    if limits_exist then
      for l in select * from limited where scope in ('system', 'account:' || r.account, 'key:' || r.key) order by scope for update loop
        l := limited_now(l, now_second, today);
        refusal := limited_refusal(l, least(r.floor, room), r.tokens, limited_room(l));
        exit when refusal is not null;
        room := least(room, limited_room(l));
        scope_names := scope_names || l.scope;
        if l.limits ? 'requestsPerMinute' then
          tightest := jsonb_build_object('max', (l.limits ->> 'requestsPerMinute')::bigint,
            'left', (l.limits ->> 'requestsPerMinute')::bigint - window_sum(l.requests) - 1);
        end if;
      end loop;
    end if;
    if refusal is null and room >= r.floor then
      granted := least(r.want, room);
      held := held + granted;
      new_i := new_i || r.i; new_ids := new_ids || r.id; new_amounts := new_amounts || granted;
      new_scopes := new_scopes || array_to_string(scope_names, ' ');
      if scope_names is not null then
        foreach scope_name in array scope_names loop
          select * into l from limited where scope = scope_name;
          l := limited_now(l, now_second, today);
          l.requests[(now_second % 60)::int + 1] := l.requests[(now_second % 60)::int + 1] + 1;
          l.tokens[(now_second % 60)::int + 1] := l.tokens[(now_second % 60)::int + 1] + r.tokens;
          update limited set held = l.held + granted, open_calls = l.open_calls + 1, second = l.second, requests = l.requests,
            tokens = l.tokens, day = l.day, day_spent = l.day_spent, month = l.month, month_spent = l.month_spent
          where scope = scope_name;
        end loop;
      end if;
      reserved_out := reserved_out || jsonb_build_array(r.i, 'held', granted::text, posted::text, held::text, tightest);
    else
      if r.idem is not null then
        delete from idempotency where account_id = r.account and key = r.idem and hold_id = r.id;
      end if;
      reserved_out := reserved_out || jsonb_build_array(r.i, case when refusal is null then 'short' else 'limited' end,
        r.want::text, posted::text, held::text, refusal);
    end if;
  end loop;
  if account is not null then
    touched := touched || account; touched_posted := touched_posted || posted; touched_held := touched_held || held;
  end if;

  if cardinality(new_ids) > 0 then
    with x as (
      select n.id, n.amount, n.scopes, x.account, x.key, x.product, x.version, x.tokens, x.job
      from unnest(new_i, new_ids, new_amounts, new_scopes) as n(i, id, amount, scopes)
      cross join lateral jsonb_to_record(reserves -> n.i) as x(account text, key text, product text, version int, tokens bigint, job jsonb)
    ), jobs as (
      insert into job (id, account_id, key_id, hold_id, product, catalog_version, input, request, callback_url)
      select x.job ->> 'id', x.account, x.key, x.id, x.product, x.version, x.job ->> 'input', x.job ->> 'request', x.job ->> 'callback'
      from x where x.job is not null
    )
    insert into hold (id, account_id, key_id, process_id, job, amount, product, catalog_version, scopes, tokens)
    select x.id, x.account, x.key, process, x.job is not null, x.amount, x.product, x.version, string_to_array(x.scopes, ' '), x.tokens from x;
    update account a set held = t.held
    from unnest(touched, touched_held) as t(id, held) where a.id = t.id;
  end if;

  return jsonb_build_object('settles', to_jsonb(settled_out), 'reserves', to_jsonb(reserved_out));
end $$;

-- A negative amount takes back what is available, and no more. Statement by statement, because what one statement reads of
-- a row that it had to wait for may be older than what it then changes.
create function ledger_grant(grant_id text, account text, amount bigint, note text, actor text)
returns table (posted bigint, held bigint)
language plpgsql as $$
declare
  moved bigint;
begin
  select a.posted, a.held into posted, held from account a where a.id = ledger_grant.account for update;
  if not found then
    return;
  end if;
  moved := greatest(amount, held - posted);
  posted := posted + moved;
  update account a set posted = ledger_grant.posted where a.id = ledger_grant.account;
  insert into transfer (id, account_id, kind, amount, note, actor)
  values (grant_id, account, case when moved >= 0 then 'grant' else 'takeback' end, abs(moved), note, actor);
  return next;
end $$;

-- The holds of processes that have gone silent, and of none that is a job's.
create function ledger_expire(silent interval, most int) returns int
language plpgsql as $$
declare
  gone int;
begin
  create temp table if not exists expiring (id text, account_id text) on commit delete rows;
  delete from expiring;
  insert into expiring
  select h.id, h.account_id from hold h
  left join process p on p.id = h.process_id
  where not h.job and (p.id is null or p.heartbeat_at < now() - silent)
  order by h.account_id, h.id limit most;
  perform 1 from account a where a.id in (select account_id from expiring) order by a.id for update;
  -- A settlement may have come first while we waited for the accounts.
  with dead as (
    delete from hold h using expiring e where h.id = e.id
    returning h.*
  ), sums as (
    select account_id, sum(amount) as amount from dead group by account_id
  ), accounts as (
    update account a set held = a.held - s.amount from sums s where a.id = s.account_id
  ), scopes as (
    select scope, sum(d.amount) as amount, count(*) as calls from dead d, unnest(d.scopes) scope group by scope
  ), limits as (
    update limited l set held = l.held - s.amount, open_calls = greatest(l.open_calls - s.calls, 0) from scopes s where l.scope = s.scope
  ), moved as (
    insert into transfer (id, account_id, kind, amount, held) select id, account_id, 'expired', 0, amount from dead
  ), used as (
    insert into usage (id, account_id, key_id, product, door, outcome, status, charged, held, catalog_version, lines)
    select id, account_id, key_id, product, '', 'expired', 500, 0, amount, catalog_version, '[]' from dead
  ), summed as (
    insert into usage_hour as u (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
    select account_id, date_trunc('hour', now(), 'UTC'), product, key_id, count(*), count(*), 0, 0, 0, 0
    from dead group by account_id, product, key_id order by account_id, product, key_id
    on conflict (account_id, hour, product, key_id) do update set requests = u.requests + excluded.requests, errors = u.errors + excluded.errors
  ), forgotten as (
    delete from idempotency i using dead d where i.hold_id = d.id and i.status is null
  )
  select count(*) into gone from dead;
  return gone;
end $$;
