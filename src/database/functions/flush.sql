-- The ledger's one statement. A flush resolves holds and makes holds for many calls at once, in arrival order within an
-- account, exactly as if they had come one by one. All rows that it will change are locked first, in one order.
--
-- `accounts` are the accounts of the flush, each once; `s_account` and `r_account` are places in it. Every s_ array has an
-- element for each resolution, every r_ array for each reservation, in the order of their arrival.
-- {{facts}}: an array for each column of `usage` that is not money, named s_ and the column; see database/functions.ts.
-- s_kept: null, or [{id, keep?: {status, type, body}}] for the resolutions that had an idempotency key.
-- s_given_up: null, or those of s_id whose reservation made a job of which nobody was told. Unless it has been begun, the job
-- goes with its hold; if it has, it goes on, and its hold stays.
-- r_job: null, or [{i, id, input, request, callback, answer}], `i` the place of the reservation, from 1. A creation has its answer
-- at once: the row, its hold and the answer to its idempotency key are made together.
-- Answers columns again, joined by commas within and semicolons between: of the resolutions what became of each, paid, loss,
-- posted, held and what its hold was; of the reservations what became of each, amount, posted and held. `details`, by place, says which limit
-- refused, or what the tightest one leaves.

-- Its parameters follow the columns of `usage`: one with others would stand beside this one and not be replaced by it.
do $$
declare
  f regprocedure;
begin
  for f in select p.oid::regprocedure from pg_proc p where p.proname = 'ledger_flush' and p.pronamespace = current_schema()::regnamespace loop
    execute 'drop function ' || f;
  end loop;
end $$;

create function ledger_flush(
  process text, accounts text[],
  s_id text[] default null, s_account int[] default null, s_kind text[] default null, s_charge bigint[] default null,
  s_in bigint[] default null, s_out bigint[] default null, s_kept jsonb default null, s_given_up text[] default null,
  {{facts as parameters}},
  r_id text[] default null, r_account int[] default null, r_key text[] default null, r_want bigint[] default null,
  r_floor bigint[] default null, r_product text[] default null, r_version int[] default null, r_tokens bigint[] default null,
  r_idem text[] default null, r_hash text[] default null, r_job jsonb default null
) returns table (resolved text, reserved text, details jsonb)
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
  s_count int := cardinality(s_id);
  r_count int := cardinality(r_id);
  now_posted bigint[] := array_fill(null::bigint, array[cardinality(accounts)]);
  now_held bigint[] := now_posted;
  r record;
  l limited;
  a int;
  at int;
  kind text;
  amount bigint;
  paid bigint;
  lost bigint;
  room bigint;
  earlier idempotency;
  scope_names text[];
  scope_name text;
  refusal jsonb;
  tightest jsonb;
  limits_exist boolean;
  begun text[] := '{}';
  hold_amount bigint[];
  hold_scopes text[];
  hold_tokens bigint[];
  hold_second bigint[];
  done_as text[];
  done_paid bigint[];
  done_lost bigint[];
  new_as text[];
  new_amount bigint[];
  new_scopes text[];
  is_new boolean[];
  after_posted bigint[];
  after_held bigint[];
begin
  for r in select o.id, o.posted, o.held from account o where o.id = any(accounts) order by o.id for update loop
    a := array_position(accounts, r.id);
    now_posted[a] := r.posted; now_held[a] := r.held;
  end loop;

  if s_count > 0 then
    hold_amount := array_fill(null::bigint, array[s_count]);
    hold_scopes := array_fill(null::text, array[s_count]);
    done_as := hold_scopes; done_paid := hold_amount; done_lost := hold_amount; after_posted := hold_amount; after_held := hold_amount;
    if s_given_up is not null then
      with gone as (
        delete from job j where j.account_id = any(accounts) and j.hold_id = any(s_given_up) and j.verdict is null and j.submit_started_at is null
        returning j.id, j.hold_id
      ), bodies as (
        delete from job_body b using gone where b.job_id = gone.id
      )
      delete from idempotency d using gone where d.hold_id = gone.hold_id;
      begun := array(select j.hold_id from job j where j.account_id = any(accounts) and j.hold_id = any(s_given_up));
    end if;
    for r in delete from hold h where h.id = any(s_id) and h.id <> all(begun) returning h.id, h.amount, h.scopes, h.tokens, h.created_at loop
      at := array_position(s_id, r.id);
      hold_amount[at] := r.amount;
      if r.scopes is not null then
        hold_scopes[at] := array_to_string(r.scopes, ' ');
        hold_tokens[at] := r.tokens;
        hold_second[at] := floor(extract(epoch from r.created_at))::bigint;
      end if;
    end loop;

    for i in 1 .. s_count loop
      a := s_account[i];
      kind := s_kind[i];
      amount := hold_amount[i];
      if now_posted[a] is null then
        raise exception 'there is no account %', accounts[a];
      end if;
      if amount is null then
        kind := null;
        if s_id[i] = any(s_id[:i - 1]) or s_id[i] = any(begun) then
          -- The same resolution twice in one flush, or one that comes too late to give up the job.
          kind := 'already'; paid := 0; lost := 0;
        else
          -- Resolved before: by a try whose answer was lost, or by the sweep while the process slept.
          select t.kind into kind from transfer t where t.id = s_id[i];
          if kind = 'expired' and s_kind[i] = 'settled' and s_charge[i] > 0
             and not exists (select 1 from transfer t where t.id = s_id[i] || '+late') then
            kind := 'late';
            paid := least(s_charge[i], now_posted[a] - now_held[a]);
            lost := s_charge[i] - paid;
            now_posted[a] := now_posted[a] - paid;
            hold_amount[i] := 0;
          elsif kind is not null then
            kind := 'already';
            select t.amount, t.loss into paid, lost from transfer t where t.id in (s_id[i], s_id[i] || '+late') order by t.id desc limit 1;
          else
            -- There was no such hold. A release is written down all the same: the reservation that it gives up may still be
            -- on its way, and must find that it is over. A settlement is a fact, and takes its amount anew.
            kind := null;
            amount := 0;
            hold_amount[i] := 0;
          end if;
        end if;
        if kind is not null then
          done_as[i] := kind; done_paid[i] := paid; done_lost[i] := lost; after_posted[i] := now_posted[a]; after_held[i] := now_held[a];
          continue;
        end if;
        kind := s_kind[i];
      end if;
      now_held[a] := now_held[a] - amount;
      paid := least(s_charge[i], now_posted[a] - now_held[a]);
      lost := s_charge[i] - paid;
      now_posted[a] := now_posted[a] - paid;
      done_as[i] := kind; done_paid[i] := paid; done_lost[i] := lost; after_posted[i] := now_posted[a]; after_held[i] := now_held[a];
      if hold_scopes[i] is not null then
        foreach scope_name in array string_to_array(hold_scopes[i], ' ') loop
          select * into l from limited where scope = scope_name for update;
          if found then
            l := limited_now(l, now_second, today);
            if now_second - hold_second[i] < 60 then
              -- The minute counted the worst case; from here on it counts what was used.
              l.tokens[(hold_second[i] % 60)::int + 1] := l.tokens[(hold_second[i] % 60)::int + 1] - hold_tokens[i] + s_in[i] + s_out[i];
            end if;
            update limited set held = l.held - amount, open_calls = greatest(l.open_calls - 1, 0), second = l.second,
              requests = l.requests, tokens = l.tokens, day = l.day, month = l.month,
              day_spent = l.day_spent + paid, month_spent = l.month_spent + paid, total_spent = l.total_spent + paid
            where scope = scope_name;
          end if;
        end loop;
      end if;
    end loop;

    with moved as (
      insert into transfer (id, account_id, kind, amount, loss, held)
      select case done_as[i] when 'late' then s_id[i] || '+late' else s_id[i] end, accounts[s_account[i]],
        case done_as[i] when 'late' then 'settled' else done_as[i] end, done_paid[i], done_lost[i], hold_amount[i]
      from generate_series(1, s_count) i where done_as[i] <> 'already'
    ), used as (
      insert into usage (id, account_id, outcome, charged, loss, held, {{facts as columns}})
      select case done_as[i] when 'late' then s_id[i] || '+late' else s_id[i] end, accounts[s_account[i]],
        case done_as[i] when 'late' then 'settled' else done_as[i] end, done_paid[i], done_lost[i], hold_amount[i], {{facts as values}}
      from generate_series(1, s_count) i where done_as[i] <> 'already'
    )
    insert into usage_hour as u (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
    select accounts[s_account[i]], date_trunc('hour', now(), 'UTC'), s_product[i], s_key_id[i], count(*),
      count(*) filter (where s_status[i] >= 400), sum(done_paid[i]), sum(s_in[i]), sum(s_out[i]), sum(s_duration_ms[i])
    from generate_series(1, s_count) i where done_as[i] <> 'already'
    group by 1, 3, 4 order by 1, 3, 4
    on conflict (account_id, hour, product, key_id) do update set requests = u.requests + excluded.requests,
      errors = u.errors + excluded.errors, charged = u.charged + excluded.charged,
      input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens,
      duration_ms = u.duration_ms + excluded.duration_ms;

    if s_kept is not null then
      delete from idempotency d using jsonb_to_recordset(s_kept) as x(id text, keep jsonb)
      where d.hold_id = x.id and x.keep is null and d.status is null;
      update idempotency d set status = (x.keep ->> 'status')::int, content_type = x.keep ->> 'type',
        body = decode(x.keep ->> 'body', 'base64')
      from jsonb_to_recordset(s_kept) as x(id text, keep jsonb)
      where d.hold_id = x.id and x.keep is not null and d.status is null;
    end if;
    resolved := array_to_string(done_as, ',') || ';' || array_to_string(done_paid, ',') || ';' || array_to_string(done_lost, ',')
      || ';' || array_to_string(after_posted, ',') || ';' || array_to_string(after_held, ',') || ';' || array_to_string(hold_amount, ',', '0');
  end if;

  if r_count > 0 then
    limits_exist := exists (select 1 from limited);
    new_amount := array_fill(0::bigint, array[r_count]);
    new_as := array_fill(null::text, array[r_count]);
    new_scopes := new_as; is_new := array_fill(false, array[r_count]); after_posted := new_amount; after_held := new_amount;
    for r in
      select h.id, 'held' as kind, h.amount from hold h where h.id = any(r_id)
      union all
      select t.id, 'gone', 0 from transfer t where t.id = any(r_id)
    loop
      -- A try whose answer was lost, or a call that was given up before its reservation arrived.
      foreach at in array array_positions(r_id, r.id) loop
        new_as[at] := r.kind; new_amount[at] := r.amount;
      end loop;
    end loop;

    for i in 1 .. r_count loop
      a := r_account[i];
      if now_posted[a] is null then
        new_as[i] := 'no_account';
        continue;
      end if;
      if new_as[i] is not null then
        after_posted[i] := now_posted[a]; after_held[i] := now_held[a];
        continue;
      end if;
      if r_idem[i] is not null then
        insert into idempotency (account_id, key, request_hash, hold_id) values (accounts[a], r_idem[i], r_hash[i], r_id[i])
        on conflict (account_id, key) do update set request_hash = excluded.request_hash, hold_id = excluded.hold_id, status = null,
          content_type = null, body = null, created_at = now()
          where idempotency.created_at < now() - interval '24 hours' and idempotency.status is not null
        returning * into earlier;
        if not found then
          select * into earlier from idempotency where account_id = accounts[a] and key = r_idem[i];
          new_as[i] := case when earlier.request_hash <> r_hash[i] then 'idem_conflict' when earlier.status is null then 'idem_running' else 'idem_replay' end;
          after_posted[i] := now_posted[a]; after_held[i] := now_held[a];
          continue;
        end if;
      end if;
      room := now_posted[a] - now_held[a];
      refusal := null; tightest := null; scope_names := null;
      -- Whoever cannot pay is told that, and not to come back when the minute is over.
      if limits_exist and room >= r_floor[i] then
        for l in select * from limited where scope in ('system', 'account:' || accounts[a], 'key:' || r_key[i]) order by scope for update loop
          l := limited_now(l, now_second, today);
          refusal := limited_refusal(l, r_floor[i], r_tokens[i], limited_room(l));
          exit when refusal is not null;
          room := least(room, limited_room(l));
          scope_names := scope_names || l.scope;
          if l.limits ? 'requestsPerMinute' then
            tightest := jsonb_build_object('max', (l.limits ->> 'requestsPerMinute')::bigint,
              'left', (l.limits ->> 'requestsPerMinute')::bigint - window_sum(l.requests) - 1);
          end if;
        end loop;
        if coalesce(refusal, tightest) is not null then
          details := coalesce(details, '{}') || jsonb_build_object(i, coalesce(refusal, tightest));
        end if;
      end if;
      if refusal is null and room >= r_floor[i] then
        amount := least(r_want[i], room);
        now_held[a] := now_held[a] + amount;
        new_as[i] := 'held'; new_amount[i] := amount; is_new[i] := true;
        if scope_names is not null then
          new_scopes[i] := array_to_string(scope_names, ' ');
          foreach scope_name in array scope_names loop
            select * into l from limited where scope = scope_name;
            l := limited_now(l, now_second, today);
            l.requests[(now_second % 60)::int + 1] := l.requests[(now_second % 60)::int + 1] + 1;
            l.tokens[(now_second % 60)::int + 1] := l.tokens[(now_second % 60)::int + 1] + r_tokens[i];
            update limited set held = l.held + amount, open_calls = l.open_calls + 1, second = l.second, requests = l.requests,
              tokens = l.tokens, day = l.day, day_spent = l.day_spent, month = l.month, month_spent = l.month_spent
            where scope = scope_name;
          end loop;
        end if;
      else
        if r_idem[i] is not null then
          delete from idempotency where account_id = accounts[a] and key = r_idem[i] and hold_id = r_id[i];
        end if;
        new_as[i] := case when refusal is null then 'short' else 'limited' end;
        new_amount[i] := r_want[i];
      end if;
      after_posted[i] := now_posted[a]; after_held[i] := now_held[a];
    end loop;

    if r_job is not null then
      insert into job (id, account_id, key_id, hold_id, product, catalog_version, input, request, callback_url)
      select x.id, accounts[r_account[x.i]], r_key[x.i], r_id[x.i], r_product[x.i], r_version[x.i], x.input, x.request, x.callback
      from jsonb_to_recordset(r_job) as x(i int, id text, input text, request text, callback text) where is_new[x.i];
      update idempotency d set status = 200, content_type = 'application/json; charset=utf-8', body = convert_to(x.answer, 'UTF8')
      from jsonb_to_recordset(r_job) as x(i int, answer text)
      where is_new[x.i] and d.account_id = accounts[r_account[x.i]] and d.key = r_idem[x.i];
    end if;
    insert into hold (id, account_id, key_id, process_id, job, amount, product, catalog_version, scopes, tokens)
    select r_id[i], accounts[r_account[i]], r_key[i], process, r_job is not null and r_job @> jsonb_build_array(jsonb_build_object('i', i)),
      new_amount[i], r_product[i], r_version[i], string_to_array(new_scopes[i], ' '), r_tokens[i]
    from generate_series(1, r_count) i where is_new[i];
    reserved := array_to_string(new_as, ',') || ';' || array_to_string(new_amount, ',')
      || ';' || array_to_string(after_posted, ',') || ';' || array_to_string(after_held, ',');
  end if;

  update account o set posted = x.posted, held = x.held
  from unnest(accounts, now_posted, now_held) as x(id, posted, held)
  where o.id = x.id and (o.posted <> x.posted or o.held <> x.held);
  return next;
end $$;
