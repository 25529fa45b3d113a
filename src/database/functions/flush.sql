-- The ledger's one statement. A flush resolves holds, makes holds and moves leases for many calls at once, in arrival order
-- within an account, exactly as if they had come one by one. All rows that it will change are locked first, in one order:
-- accounts, then limits. Whoever changes a hold, a lease or a limit of an account has locked the account before, but for `in_use` and `recalled_at` of a lease, which move no money.
--
-- `accounts`, `keys` and `leases` are those of the flush, each once; s_account, s_key, s_lease and their kin are places in them.
-- Every s_ array has an element for each resolution, every r_ array for each reservation, every l_ array for each lease, in the
-- order of their arrival.
-- waited: for how long the first of the reservations has, in milliseconds.
-- patient: false leaves out the accounts that somebody else has locked; what concerns them becomes `busy`.
-- s_lease: null where the call has a hold of its own; else the lease that covered it, by s_cover. s_keep: what was not spent stays in the lease.
-- s_again: one of these was tried before, and the answer was lost.
-- {{facts}}: an array for each column of `usage` that is not money, named s_ and the column; see database/functions.ts.
-- s_kept: null, or [{id, keep?: {status, type, sealed}}] for the resolutions that had an idempotency key.
-- s_given_up: null, or those of s_id whose reservation made a job of which nobody was told. Unless it has been begun, the job
-- goes with its hold; if it has, it goes on, and its hold stays.
-- r_want, r_floor, r_most: what is held while it is there, the least that is worth holding, and the most that the call can cost. What lies between is
-- shared: of what is available, a call gets one part in twice the account's open calls, so that a lone call is seldom cut short and many at once are all
-- served. r_open: how many calls of the account are covered by leases of this process.
-- r_last: the reservation has waited for what others have leased, and now takes no for an answer.
-- r_job: null, or [{i, id, input, request, callback, answer}], `i` the place of the reservation, from 1. A creation has its answer
-- at once: the row, its hold and the answer to its idempotency key are made together.
-- l_give, l_add: what a lease gives back and what it would like to have more; l_least: the least that is worth having. l_requests,
-- l_tokens: how much of the minute's limits it would like for a second, where there are such limits, null where it keeps what it has of
-- them; l_back_: what it had before and did not use, for the second to which that was counted; null where there is none. l_close: all goes back.
-- Answers columns again, joined by commas within and semicolons between: of the resolutions what became of each, paid, loss,
-- posted, held and what its hold was; of the reservations what became of each, amount, posted, held, and what the tightest limit on
-- requests allows and leaves, empty where there is none; of the leases what
-- was added (-1: busy, -2: it has expired), requests and tokens (-1: unlimited), what the tightest limit on requests allows and leaves,
-- for how many seconds, the present second (they were counted to the last of these), and what is available of the account. `details`, by place, says which limit
-- refused a reservation.

-- What others hold of an account although no call needs it, or although nobody has heard of them lately (they speak every 2.5 seconds): of those that were asked for it.
create or replace function ledger_unreturned(account text, process text) returns bigint
language sql stable as $$
  select coalesce(sum(x.amount), 0)::bigint from (
    select case when p.heartbeat_at > now() - interval '4 seconds' then greatest(e.amount - e.in_use, 0) else e.amount end as amount
      from lease e left join process p on p.id = e.process_id where e.account_id = account and e.process_id <> process
    union all
    select h.amount from hold h left join process p on p.id = h.process_id
      where h.account_id = account and not h.job and h.process_id <> process and (p.id is null or p.heartbeat_at <= now() - interval '4 seconds')) x
$$;

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
  process text, accounts text[], keys text[], key_accounts int[], leases text[] default null, patient boolean default true, waited int default 0,
  s_id text[] default null, s_account int[] default null, s_key int[] default null, s_kind text[] default null, s_charge bigint[] default null,
  s_lease int[] default null, s_cover bigint[] default null, s_keep boolean[] default null, s_tokens bigint[] default null, s_second bigint[] default null,
  s_in bigint[] default null, s_out bigint[] default null, s_again boolean default false, s_kept jsonb default null, s_given_up text[] default null,
  {{facts as parameters}},
  r_id text[] default null, r_account int[] default null, r_key int[] default null, r_want bigint[] default null,
  r_floor bigint[] default null, r_most bigint[] default null, r_open int[] default null, r_product text[] default null, r_version int[] default null, r_tokens bigint[] default null,
  r_last boolean[] default null, r_idem text[] default null, r_hash text[] default null, r_job jsonb default null,
  l_lease int[] default null, l_account int[] default null, l_key int[] default null, l_new boolean[] default null, l_give bigint[] default null, l_add bigint[] default null,
  l_least bigint[] default null, l_requests bigint[] default null, l_tokens bigint[] default null, l_close boolean[] default null,
  l_back_requests bigint[] default null, l_back_tokens bigint[] default null, l_back_second bigint[] default null
) returns table (resolved text, reserved text, leased text, details jsonb)
language plpgsql
-- Every row is reached by its key, whatever the planner knows of the tables' sizes: a plan that reads a whole table is
-- right for a large flush on a small table, and ruinous a day later. For the same reason a join says twice which rows it is about: a table that was empty
-- when it was last vacuumed is believed to have one row, and a join that begins with that row reads all of thousands.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = {{plans}}
-- Whoever has locked an account for longer has trouble of its own: see ledger/lanes.ts.
set lock_timeout = '300ms'
as $$
declare
  now_second bigint := floor(extract(epoch from clock_timestamp()))::bigint;
  -- When the first of these calls came, and a little before: the way to the database takes a while as well. Limits on the minute judge by it.
  came bigint := floor(extract(epoch from clock_timestamp()) - waited / 1000.0 - 0.25)::bigint;
  today date := (now() at time zone 'UTC')::date;
  yesterday timestamptz := now() - interval '24 hours';
  s_count int := coalesce(cardinality(s_id), 0);
  r_count int := coalesce(cardinality(r_id), 0);
  l_count int := coalesce(cardinality(l_lease), 0);
  now_posted bigint[] := array_fill(null::bigint, array[cardinality(accounts)]);
  now_held bigint[] := now_posted;
  -- When the last transfer of each account was written, and the moments of this flush's.
  now_moved timestamptz[] := array_fill(null::timestamptz, array[cardinality(accounts)]);
  done_moved timestamptz[];
  -- The hash of each account's last transfer, and those of this flush.
  now_chain bytea[] := array_fill(null::bytea, array[cardinality(accounts)]);
  done_hash bytea[];
  moment timestamptz;
  was_posted bigint[];
  was_held bigint[];
  was_moved timestamptz[];
  -- Places of accounts that are being moved to another database, or were: what runs ends, nothing begins.
  frozen int[] := '{}';
  r record;
  a int;
  n int;
  at int;
  kind text;
  amount bigint;
  paid bigint;
  freed bigint;
  room bigint;
  is_job boolean;
  had_hold boolean;
  has_jobs boolean := false;
  -- How many calls of an account have a hold of their own, with those that this flush has made.
  open_calls bigint[];
  -- Whether an account's leases were asked for.
  asked boolean[];
  earlier idempotency;
{{declare}}  refusal jsonb;
  rate_max bigint[];
  rate_left bigint[];
  begun text[] := '{}';
  lease_amount bigint[];
  lease_was bigint[];
  lease_made timestamptz[];
  lease_account int[];
  lease_key int[];
  -- Limits, by their place among those that were found: what they still leave, and what this flush counts.
  are_limited boolean;
  is_shared boolean := false;
  share_own int;
  share_jobs int;
  shares_ready boolean[] := '{f,f}';
  concerned int[];
  of_account int[];
  of_key int[];
  places int[];
  current limited;
  c_now limited[];
  c_account text[];
  c_scope text[];
  -- Whether it counts what is spent, and what is held: a share that is not divided yet does not (share.sql), nor does one that limits only the minute.
  -- What test accounts spend is no money, and counts for none of the system's.
  c_spends boolean[];
  c_holds boolean[];
  c_room bigint[];
  c_calls_left bigint[];
  c_requests_max bigint[];
  c_requests_left bigint[];
  c_tokens_left bigint[];
  c_since timestamptz[];
  d_held bigint[];
  d_spent bigint[];
  d_open int[];
  d_requests bigint[];
  d_tokens bigint[];
  -- Seconds of the minute that counted something else.
  corrected int := 0;
  k_place int[];
  k_second bigint[];
  k_requests bigint[];
  k_tokens bigint[];
  hold_amount bigint[];
  hold_job boolean[];
  hold_tokens bigint[];
  hold_second bigint[];
  hold_made timestamptz[];
  done_as text[];
  done_paid bigint[];
  done_lost bigint[];
  new_as text[];
  new_amount bigint[];
  is_new boolean[];
  after_posted bigint[];
  after_held bigint[];
  given_requests bigint[];
  given_tokens bigint[];
  -- For how long: the window has some seconds ahead of the present one.
  given_seconds int[];
begin
{{at first}}  if patient then
    for r in select o.id, o.posted, o.held, o.moved_at, o.chain, o.frozen_until from account o where o.id = any(accounts){{one o.id}} order by o.id for update loop
      a := array_position(accounts, r.id);
      now_posted[a] := r.posted; now_held[a] := r.held; now_moved[a] := r.moved_at; now_chain[a] := r.chain;
      if r.frozen_until > now() then
        frozen := frozen || a;
      end if;
    end loop;
  else
    for r in select o.id, o.posted, o.held, o.moved_at, o.chain, o.frozen_until from account o where o.id = any(accounts){{one o.id}} order by o.id for update skip locked loop
      a := array_position(accounts, r.id);
      now_posted[a] := r.posted; now_held[a] := r.held; now_moved[a] := r.moved_at; now_chain[a] := r.chain;
      if r.frozen_until > now() then
        frozen := frozen || a;
      end if;
    end loop;
  end if;
  was_posted := now_posted; was_held := now_held; was_moved := now_moved;

  -- Not before the accounts are locked: new limits may be what was waited for.
  are_limited := exists (select 1 from limited{{where limits}});
  if are_limited then
    -- A request asks all limits of its account, a settlement only those that it changes.
    concerned := '{}';
    if exists (select 1 from limited where {{limits of accounts}}) then
      concerned := array(select p from generate_series(1, cardinality(accounts)) p where now_posted[p] is not null and (p = any(r_account) or p = any(l_account)
        or exists (select 1 from limited l where l.account_id = accounts[p]{{one l.account_id}} and l.limits - 'requestsPerMinute' <> '{}')));
    end if;
    of_account := array_fill(null::int, array[cardinality(accounts)]);
    of_key := array_fill(null::int, array[cardinality(keys)]);
    is_shared := exists (select 1 from limited where account_id = '' and scope = 'system');
    if is_shared then
      -- Jobs have holds of their own.
      if s_count > 0 and (s_lease is null or array_position(s_lease, null) is not null) then
        has_jobs := exists (select 1 from unnest(s_account, s_id) as x(place, id) join hold h on h.account_id = accounts[x.place] and h.id = x.id
          where h.account_id = any(accounts) and h.id = any(s_id) and h.job{{one h.account_id}});
      end if;
      -- Without limits until it is divided: it only counts.
      insert into limited (account_id, scope, limits) select '', x, '{}' from unnest(array['system@' || process, 'system@jobs']) x
        where not exists (select 1 from limited l where l.account_id = '' and l.scope = x) on conflict do nothing;
      -- By a statement of its own: what is below reads a join, and a row of a join that changes while it is waited for is left out.
      -- Those of an account are changed by nobody who has not locked the account.
      perform 1 from limited l where l.account_id = '' and (l.scope = 'system@' || process or (l.scope = 'system@jobs' and (has_jobs or r_job is not null)))
        order by l.scope for update;
    end if;
{{each}}    for r in
      select x.place, x.what, {{limits now}} from (
        select accounts[p] as account_id, 'account' as scope, p as place, 'account' as what from unnest(concerned) p
        union all
        select accounts[key_accounts[k]], keys[k], k, 'key' from generate_series(1, cardinality(keys)) k where key_accounts[k] = any(concerned)
        union all
        select '', 'system@' || process, 1, 'own' where is_shared
        union all
        select '', 'system@jobs', 2, 'jobs' where is_shared and (has_jobs or r_job is not null)
      ) x join limited l on l.account_id = x.account_id and l.scope = x.scope
      {{where own limits}}order by l.account_id, l.scope for update of l
    loop
      current := limited_now({{as a scope}}, now_second, today);
      n := coalesce(cardinality(c_now), 0) + 1; c_now[n] := current;
      case r.what when 'account' then of_account[r.place] := n; when 'key' then of_key[r.place] := n; when 'own' then share_own := n; else share_jobs := n; end case;
      if current.account_id = '' then
        shares_ready[r.place] := current.limits <> '{}';
      end if;
      c_account[n] := current.account_id; c_scope[n] := current.scope; c_spends[n] := current.account_id = '' or limited_is_money(current.limits);
      c_holds[n] := c_spends[n] and current.limits <> '{}';
      if c_holds[n] then
        c_room[n] := least((current.limits ->> 'spendTotal')::bigint - current.total_spent, (current.limits ->> 'spendPerMonth')::bigint - current.month_spent,
          (current.limits ->> 'spendPerDay')::bigint - current.day_spent) - current.held;
        c_calls_left[n] := (current.limits ->> 'concurrency')::bigint - current.open_calls;
      end if;
      c_requests_max[n] := (current.limits ->> 'requestsPerMinute')::bigint;
      c_requests_left[n] := c_requests_max[n] - limited_minute(current.requests, current.requests_used, current.second, came);
      c_tokens_left[n] := (current.limits ->> 'tokensPerMinute')::bigint - limited_minute(current.tokens, current.tokens_used, current.second, came);
      c_since[n] := current.since;
    end loop;
{{end each}}    are_limited := c_now is not null;
    if are_limited then
      d_held := array_fill(0::bigint, array[cardinality(c_now)]);
      d_spent := d_held; d_open := d_held::int[]; d_requests := d_held; d_tokens := d_held;
    end if;
  end if;

  if leases is not null then
    lease_amount := array_fill(null::bigint, array[cardinality(leases)]);
    lease_account := array_fill(null::int, array[cardinality(leases)]);
    lease_key := lease_account;
    for r in select e.id, e.amount, e.created_at from lease e where e.account_id = any(accounts){{one e.account_id}} and e.id = any(leases) loop
      at := array_position(leases, r.id);
      lease_amount[at] := r.amount; lease_made[at] := r.created_at;
    end loop;
    lease_was := lease_amount;
  end if;

  if s_count > 0 then
    hold_amount := array_fill(null::bigint, array[s_count]);
    done_as := array_fill(null::text, array[s_count]);
    done_paid := hold_amount; done_lost := hold_amount; after_posted := hold_amount; after_held := hold_amount;
    -- Not before the accounts are locked: what others moved lies before it.
    moment := clock_timestamp();
    if s_given_up is not null then
      -- Those of an account that is locked by others wait for it, as all else does.
      s_given_up := array(select s_id[i] from generate_series(1, s_count) i where s_id[i] = any(s_given_up) and now_posted[s_account[i]] is not null);
      for r in
        delete from job j where j.account_id = any(accounts) and j.hold_id = any(s_given_up) and j.verdict is null and j.submit_started_at is null
        returning j.id, j.account_id, j.hold_id
      loop
        delete from job_body b where b.job_id = r.id;
        delete from idempotency d where d.account_id = r.account_id and d.hold_id = r.hold_id;
      end loop;
      begun := array(select j.hold_id from job j where j.account_id = any(accounts) and j.hold_id = any(s_given_up));
    end if;
    if s_lease is null or array_position(s_lease, null) is not null then
      for r in
        delete from hold h using unnest(s_account, s_id) as x(place, id)
        where h.account_id = any(accounts) and h.id = any(s_id) and h.account_id = accounts[x.place]{{one h.account_id}} and h.id = x.id
          and now_posted[x.place] is not null and h.id <> all(begun)
        returning h.id, h.amount, h.job, h.tokens, h.created_at
      loop
        at := array_position(s_id, r.id);
        hold_amount[at] := r.amount; hold_job[at] := r.job; hold_tokens[at] := r.tokens;
        hold_second[at] := floor(extract(epoch from r.created_at))::bigint; hold_made[at] := r.created_at;
      end loop;
    end if;

    for i in 1 .. s_count loop
      a := s_account[i];
      if now_posted[a] is null then
        if patient then
          raise exception 'there is no account %', accounts[a];
        end if;
        done_as[i] := 'busy'; done_paid[i] := 0; done_lost[i] := 0; after_posted[i] := 0; after_held[i] := 0;
        continue;
      end if;
      kind := s_kind[i]; freed := 0; is_job := false; had_hold := false; at := s_lease[i];
      if at is not null then
        hold_amount[i] := s_cover[i];
        -- A condition with a query in it is a query, also where it need not be asked.
        if s_again then
          if exists (select 1 from transfer t where t.account_id = accounts[a] and t.id = s_id[i]) then
            kind := 'already';
          end if;
        end if;
        if kind = 'already' then
          null;
        elsif lease_amount[at] is null then
          -- The lease expired while the process slept: what was spent is taken anew.
          kind := case kind when 'settled' then 'late' else kind end;
        else
          amount := least(s_cover[i], lease_amount[at]);
          freed := case when s_keep[i] then least(amount, s_charge[i]) else amount end;
          lease_amount[at] := lease_amount[at] - freed;
        end if;
      elsif hold_amount[i] is not null then
        freed := hold_amount[i]; is_job := hold_job[i]; had_hold := true;
      elsif s_id[i] = any(s_id[:i - 1]) or s_id[i] = any(begun) then
        -- The same resolution twice in one flush, or one that comes too late to give up the job.
        kind := 'already'; hold_amount[i] := 0;
      else
        -- Resolved before: by a try whose answer was lost, or by the sweep while the process slept. If there never was such a
        -- hold, a release is written down all the same: the reservation that it gives up may still be on its way, and must find that it is over.
        -- A settlement is a fact, and takes its amount anew.
        hold_amount[i] := 0;
        select case when t.kind = 'expired' and s_kind[i] = 'settled' and s_charge[i] > 0
            and not exists (select 1 from transfer u where u.account_id = accounts[a] and u.id = s_id[i] || '+late') then 'late' else 'already' end
          into kind from transfer t where t.account_id = accounts[a] and t.id = s_id[i];
        kind := coalesce(kind, s_kind[i]);
      end if;
      if kind = 'already' then
        select t.amount, t.loss into paid, amount from transfer t
          where t.account_id = accounts[a] and t.id in (s_id[i], s_id[i] || '+late') order by t.id desc limit 1;
        done_as[i] := kind; after_posted[i] := now_posted[a]; after_held[i] := now_held[a];
        done_paid[i] := coalesce(paid, 0); done_lost[i] := coalesce(amount, 0);
        continue;
      end if;
      now_held[a] := now_held[a] - freed;
      paid := least(s_charge[i], now_posted[a] - now_held[a]);
      if kind = 'late' and s_kept is not null and s_kept @> jsonb_build_array(jsonb_build_object('id', s_id[i])) then
        if not exists (select 1 from idempotency d where d.account_id = accounts[a] and d.hold_id = s_id[i]) then
          -- Its key was free again, and somebody used it: the same request is not paid twice.
          paid := 0;
        end if;
      end if;
      now_posted[a] := now_posted[a] - paid;
      now_moved[a] := greatest(moment, now_moved[a] + interval '1 microsecond');
      done_moved[i] := now_moved[a];
      now_chain[a] := transfer_hash(now_chain[a], accounts[a], case when kind = 'late' and s_lease[i] is null then s_id[i] || '+late' else s_id[i] end,
        case kind when 'late' then 'settled' else kind end, paid, s_charge[i] - paid, hold_amount[i], now_posted[a]);
      done_hash[i] := now_chain[a];
      done_as[i] := kind; done_paid[i] := paid; done_lost[i] := s_charge[i] - paid; after_posted[i] := now_posted[a]; after_held[i] := now_held[a];
      if are_limited then
        foreach n in array array[case when {{test accounts[a]}} then null when is_job then share_jobs else share_own end, of_account[a], of_key[s_key[i]]] loop
          continue when n is null;
          if c_spends[n] then
            d_spent[n] := d_spent[n] + paid;
          end if;
          if c_holds[n] then
            d_held[n] := d_held[n] - freed; c_room[n] := c_room[n] + freed - paid;
            if had_hold then
              d_open[n] := d_open[n] - 1; c_calls_left[n] := c_calls_left[n] + 1;
            end if;
          end if;
          if c_tokens_left[n] is not null then
            -- The minute counted the worst case; from here on it counts what was used.
            amount := s_in[i] + s_out[i] - coalesce(hold_tokens[i], s_tokens[i]);
            if amount > 0 or amount < 0 and coalesce(hold_made[i], lease_made[s_lease[i]]) >= c_since[n] then
              corrected := corrected + 1; k_place[corrected] := n; k_second[corrected] := coalesce(hold_second[i], s_second[i]); k_requests[corrected] := 0; k_tokens[corrected] := amount;
            end if;
          end if;
        end loop;
      end if;
    end loop;

    with done as (
      select i, {{own accounts[s_account[i]]}} as account_id, case when done_as[i] = 'late' and s_lease[i] is null then s_id[i] || '+late' else s_id[i] end as id,
        case when done_as[i] = 'late' then 'settled' else done_as[i] end as outcome
      from generate_series(1, s_count) i{{beside own}} where done_as[i] not in ('already', 'busy'){{one o.id}}
    ), moved as (
      insert into transfer (account_id, id, kind, amount, loss, held, moved_at, balance, hash)
      select account_id, id, outcome, done_paid[i], done_lost[i], hold_amount[i], done_moved[i], after_posted[i], done_hash[i] from done
    ), used as (
      insert into usage (account_id, id, outcome, charged, loss, held, {{facts as columns}})
      select account_id, id, outcome, done_paid[i], done_lost[i], hold_amount[i], {{facts as values}} from done
    )
    {{into hours}}
    select account_id, date_trunc('hour', now(), 'UTC'), s_product[i], s_key_id[i], count(*),
      count(*) filter (where s_status[i] >= 400), sum(done_paid[i]), sum(s_in[i]), sum(s_out[i]), sum(s_duration_ms[i])
    from done group by 1, 3, 4 order by 1, 3, 4
    {{added up}};

    if s_kept is not null then
      delete from idempotency d using jsonb_to_recordset(s_kept) as x(id text, keep jsonb)
      where d.account_id = any(accounts){{one d.account_id}} and d.hold_id = x.id and x.keep is null and d.status is null and done_as[array_position(s_id, x.id)] <> 'busy';
      update idempotency d set status = (x.keep ->> 'status')::int, content_type = x.keep ->> 'type', freed = false,
        -- A large one was put there before: see admission/idempotency.ts.
        sealed = coalesce(decode(x.keep ->> 'sealed', 'base64'), d.sealed),
        -- Of processes of the version before.
        body = coalesce(decode(x.keep ->> 'body', 'base64'), d.body)
      from jsonb_to_recordset(s_kept) as x(id text, keep jsonb)
      where d.account_id = any(accounts){{one d.account_id}} and d.hold_id = x.id and x.keep is not null and d.status is null and done_as[array_position(s_id, x.id)] <> 'busy';
    end if;
    resolved := array_to_string(done_as, ',') || ';' || array_to_string(done_paid, ',') || ';' || array_to_string(done_lost, ',')
      || ';' || array_to_string(after_posted, ',') || ';' || array_to_string(after_held, ',') || ';' || array_to_string(hold_amount, ',', '0');
  end if;

  if r_count > 0 then
    new_amount := array_fill(0::bigint, array[r_count]);
    new_as := array_fill(null::text, array[r_count]);
    is_new := array_fill(false, array[r_count]); after_posted := new_amount; after_held := new_amount;
    if are_limited then
      rate_max := array_fill(null::bigint, array[r_count]); rate_left := rate_max;
    end if;
    for r in
      select x.place, 'held' as kind, h.amount from unnest(r_account, r_id) with ordinality as x(account, id, place) join hold h on h.account_id = accounts[x.account]{{one h.account_id}} and h.id = x.id
        where h.account_id = any(accounts) and h.id = any(r_id)
      union all
      select x.place, 'gone', 0 from unnest(r_account, r_id) with ordinality as x(account, id, place) join transfer t on t.account_id = accounts[x.account]{{one t.account_id}} and t.id = x.id
        where t.account_id = any(accounts) and t.id = any(r_id)
    loop
      -- A try whose answer was lost, or a call that was given up before its reservation arrived.
      new_as[r.place] := r.kind; new_amount[r.place] := r.amount;
    end loop;

    for i in 1 .. r_count loop
      a := r_account[i];
      if now_posted[a] is null then
        new_as[i] := case when patient then 'no_account' else 'busy' end;
        continue;
      end if;
      after_posted[i] := now_posted[a]; after_held[i] := now_held[a];
      continue when new_as[i] is not null;
      if a = any(frozen) then
        new_as[i] := 'frozen';
        continue;
      end if;
      is_job := r_job is not null and r_job @> jsonb_build_array(jsonb_build_object('i', i));
      if is_shared and not shares_ready[1 + is_job::int] and not {{test accounts[a]}} then
        new_as[i] := 'share';
        continue;
      end if;
      if r_idem[i] is not null then
        insert into idempotency (account_id, key, request_hash, hold_id) values (accounts[a], r_idem[i], r_hash[i], r_id[i])
        on conflict (account_id, key) do update set request_hash = excluded.request_hash, hold_id = excluded.hold_id, status = null,
          content_type = null, body = null, sealed = null, freed = false, created_at = excluded.created_at
          where idempotency.created_at < yesterday and idempotency.status is not null or idempotency.freed
        returning * into earlier;
        if not found then
          select * into earlier from idempotency where account_id = accounts[a] and key = r_idem[i];
          new_as[i] := case when earlier.request_hash <> r_hash[i] then 'idem_conflict' when earlier.status is null then 'idem_running' else 'idem_replay' end;
          continue;
        end if;
      end if;
      room := now_posted[a] - now_held[a];
      refusal := null; kind := 'held';
      -- Whoever cannot pay is told that, and not to come back when the minute is over.
      if room < r_floor[i] then
        kind := 'short';
      elsif are_limited then
        places := array[case when {{test accounts[a]}} then null when is_job then share_jobs else share_own end, of_account[a], of_key[r_key[i]]];
        foreach n in array places loop
          continue when n is null;
          if c_calls_left[n] < 1 or c_requests_left[n] < 1 or c_tokens_left[n] < r_tokens[i] or c_room[n] < r_floor[i] then
            kind := 'limited';
            refusal := limited_refusal(c_account[n], c_scope[n], array[c_calls_left[n], c_requests_left[n], c_tokens_left[n], c_room[n]], array[r_tokens[i], r_floor[i]], now_second);
            exit;
          end if;
          room := least(room, c_room[n]);
          if c_requests_max[n] is not null then
            rate_max[i] := c_requests_max[n]; rate_left[i] := c_requests_left[n] - 1;
          end if;
        end loop;
      end if;
      if kind <> 'held' and not r_last[i] then
        -- It may be that others only have leased what is missing here. They are asked to give it back.
        if n in (share_own, share_jobs) and kind = 'limited' then
          new_as[i] := 'share';
        elsif kind = 'short' or c_room[n] < r_floor[i] or c_requests_left[n] < 1 or c_tokens_left[n] < r_tokens[i] then
          -- What was asked for longer ago has been given back, but for what calls need. Of a minute, this process has used up what it was given itself.
          if asked[a] is null or kind <> 'short' then
            update lease e set recalled_at = least(e.recalled_at, now()) where e.account_id = accounts[a] and e.amount > 0
              and (e.recalled_at is null or e.recalled_at > now() - interval '2 seconds')
              and (kind = 'short' or c_scope[n] in ('account', e.key_id) and (c_room[n] < r_floor[i] or e.process_id <> process));
            asked[a] := found;
          end if;
          if asked[a] then
            new_as[i] := 'tight';
          end if;
        end if;
      end if;
      if kind = 'short' and new_as[i] is null then
        -- What a process holds that does not answer comes back when it is taken for dead: until then, nobody can say that it is not there.
        if room + ledger_unreturned(accounts[a], process) >= r_floor[i] then
          new_as[i] := 'away';
        end if;
      end if;
      if kind = 'held' then
        amount := least(r_want[i], room);
        if r_most[i] > amount and room > amount then
          open_calls[a] := coalesce(open_calls[a], (select count(*) from hold h where h.account_id = accounts[a])) + 1;
          amount := greatest(amount, least(r_most[i], room / (2 * (open_calls[a] + r_open[i]))));
        end if;
        now_held[a] := now_held[a] + amount;
        new_as[i] := kind; new_amount[i] := amount; is_new[i] := true; after_held[i] := now_held[a];
        if are_limited then
          foreach n in array places loop
            continue when n is null;
            if c_holds[n] then
              d_held[n] := d_held[n] + amount; c_room[n] := c_room[n] - amount;
              d_open[n] := d_open[n] + 1; c_calls_left[n] := c_calls_left[n] - 1;
            end if;
            if c_requests_max[n] is not null then
              d_requests[n] := d_requests[n] + 1; c_requests_left[n] := c_requests_left[n] - 1;
            end if;
            if c_tokens_left[n] is not null then
              d_tokens[n] := d_tokens[n] + r_tokens[i]; c_tokens_left[n] := c_tokens_left[n] - r_tokens[i];
            end if;
          end loop;
        end if;
      else
        if r_idem[i] is not null then
          delete from idempotency where account_id = accounts[a] and key = r_idem[i] and hold_id = r_id[i];
        end if;
        new_as[i] := coalesce(new_as[i], kind);
        new_amount[i] := r_want[i];
      end if;
      if refusal is not null then
        details := coalesce(details, '{}') || jsonb_build_object(i, refusal);
      end if;
    end loop;

    if r_job is not null then
      insert into job (id, account_id, key_id, hold_id, product, catalog_version, input, request, callback_url)
      select x.id, accounts[r_account[x.i]], keys[r_key[x.i]], r_id[x.i], r_product[x.i], r_version[x.i], x.input, x.request, x.callback
      from jsonb_to_recordset(r_job) as x(i int, id text, input text, request text, callback text) where is_new[x.i];
      for r in select x.i, x.answer from jsonb_to_recordset(r_job) as x(i int, answer text) where is_new[x.i] and r_idem[x.i] is not null loop
        update idempotency d set status = 200, content_type = 'application/json; charset=utf-8', body = convert_to(r.answer, 'UTF8')
        where d.account_id = accounts[r_account[r.i]] and d.key = r_idem[r.i];
      end loop;
    end if;
    insert into hold (account_id, id, key_id, process_id, job, amount, product, catalog_version, tokens)
    select {{own accounts[r_account[i]]}}, r_id[i], keys[r_key[i]], process, r_job is not null and r_job @> jsonb_build_array(jsonb_build_object('i', i)),
      new_amount[i], r_product[i], r_version[i], r_tokens[i]
    from generate_series(1, r_count) i{{beside own}} where is_new[i]{{one o.id}};
    reserved := array_to_string(new_as, ',') || ';' || array_to_string(new_amount, ',')
      || ';' || array_to_string(after_posted, ',') || ';' || array_to_string(after_held, ',')
      || coalesce(';' || array_to_string(rate_max, ',', '') || ';' || array_to_string(rate_left, ',', ''), '');
  end if;

  if l_count > 0 then
    given_requests := array_fill(-1::bigint, array[l_count]);
    given_seconds := array_fill({{ahead}}, array[l_count]);
    given_tokens := given_requests; new_amount := given_requests; after_posted := given_requests; after_held := given_requests;
    for i in 1 .. l_count loop
      a := l_account[i]; at := l_lease[i];
      continue when now_posted[a] is null;
      if lease_amount[at] is null and not l_new[i] then
        new_amount[i] := -2;
        continue;
      end if;
      places := case when are_limited then array[case when not {{test accounts[a]}} then share_own end, of_account[a], of_key[l_key[i]]] else '{}' end;
      lease_account[at] := a; lease_key[at] := l_key[i];
      freed := case when l_close[i] then coalesce(lease_amount[at], 0) else least(l_give[i], coalesce(lease_amount[at], 0)) end;
      room := 0;
      if l_back_second[i] is not null then
        foreach n in array places loop
          continue when n is null or lease_made[at] < c_since[n];
          corrected := corrected + 1; k_place[corrected] := n; k_second[corrected] := l_back_second[i];
          k_requests[corrected] := case when c_requests_max[n] is null then 0 else -l_back_requests[i] end;
          k_tokens[corrected] := case when c_tokens_left[n] is null then 0 else -l_back_tokens[i] end;
        end loop;
      end if;
      if not l_close[i] and l_add[i] > 0 and a <> all(frozen) then
        -- A small part of what is there, so that nobody is refused for what another only might need.
        room := least(l_add[i], (now_posted[a] - now_held[a]) / 8);
        foreach n in array places loop
          continue when n is null;
          -- Calls at the same time are counted one by one.
          room := least(room, c_room[n] / 8, case when c_calls_left[n] is not null then 0 end);
          -- For longer than a second only where that is little: what is given ahead leaves the minute later than what was used.
          if c_requests_left[n] / 64 < l_requests[i] or c_tokens_left[n] / 64 < l_tokens[i] then
            given_seconds[i] := 1;
          end if;
        end loop;
        foreach n in array places loop
          -- Null: it keeps what it has.
          continue when n is null or l_requests[i] is null;
          if c_requests_max[n] is not null then
            given_requests[i] := least(nullif(given_requests[i], -1), l_requests[i] * given_seconds[i], greatest(c_requests_left[n], 0) / 8);
          end if;
          if c_tokens_left[n] is not null then
            given_tokens[i] := least(nullif(given_tokens[i], -1), l_tokens[i] * given_seconds[i], greatest(c_tokens_left[n], 0) / 8);
          end if;
        end loop;
        if (is_shared and not shares_ready[1] and not {{test accounts[a]}}) or room < l_least[i] or given_requests[i] = 0
          or (given_tokens[i] >= 0 and given_tokens[i] < greatest(l_tokens[i] / greatest(l_requests[i], 1), 1)) then
          room := 0; given_requests[i] := least(given_requests[i], 0); given_tokens[i] := least(given_tokens[i], 0);
        end if;
      end if;
      now_held[a] := now_held[a] + room - freed;
      lease_amount[at] := coalesce(lease_amount[at], 0) + room - freed;
      new_amount[i] := room;
      foreach n in array places loop
        continue when n is null;
        if c_holds[n] then
          d_held[n] := d_held[n] + room - freed; c_room[n] := c_room[n] - room + freed;
        end if;
        if given_requests[i] > 0 and c_requests_max[n] is not null or given_tokens[i] > 0 and c_tokens_left[n] is not null then
          corrected := corrected + 1; k_place[corrected] := n; k_second[corrected] := now_second + given_seconds[i];
          k_requests[corrected] := case when c_requests_max[n] is null then 0 else greatest(given_requests[i], 0) end;
          k_tokens[corrected] := case when c_tokens_left[n] is null then 0 else greatest(given_tokens[i], 0) end;
          c_requests_left[n] := c_requests_left[n] - k_requests[corrected]; c_tokens_left[n] := c_tokens_left[n] - k_tokens[corrected];
        end if;
        if c_requests_max[n] is not null then
          after_posted[i] := c_requests_max[n]; after_held[i] := c_requests_left[n];
        end if;
      end loop;
    end loop;
    insert into lease (account_id, id, key_id, process_id, amount)
    select {{own accounts[lease_account[p]]}}, leases[p], keys[lease_key[p]], process, lease_amount[p]
    from generate_series(1, cardinality(leases)) p{{beside own}} where lease_was[p] is null and lease_amount[p] > 0 and lease_account[p] is not null{{one o.id}};
    delete from lease e using unnest(l_account, l_lease, l_close) as x(a, p, closed)
    where e.account_id = any(accounts) and e.id = any(leases) and e.account_id = accounts[x.a]{{one e.account_id}} and e.id = leases[x.p]
      and x.closed and now_posted[x.a] is not null;
    leased := array_to_string(new_amount, ',') || ';' || array_to_string(given_requests, ',') || ';' || array_to_string(given_tokens, ',')
      || ';' || array_to_string(after_posted, ',') || ';' || array_to_string(after_held, ',') || ';' || array_to_string(given_seconds, ',') || ';' || now_second
      || ';' || array_to_string(array(select now_posted[x] - now_held[x] from unnest(l_account) x), ',', '0');
  end if;

  if leases is not null then
    update lease e set amount = x.amount from unnest(leases, lease_amount, lease_was) as x(id, amount, was)
    where e.account_id = any(accounts){{one e.account_id}} and e.id = any(leases) and e.id = x.id and x.amount <> x.was;
  end if;
  if are_limited then
    perform limited_put(limited_counted(c_now, now_second, d_held, d_spent, d_open, d_requests, d_tokens, k_place, k_second, k_requests, k_tokens));
  end if;
  update account o set posted = x.posted, held = x.held, moved_at = x.moved_at, chain = x.chain
  from unnest(accounts, now_posted, now_held, now_moved, now_chain, was_posted, was_held, was_moved) as x(id, posted, held, moved_at, chain, posted_was, held_was, moved_was)
  where o.id = any(accounts) and o.id = x.id{{one o.id}} and (x.posted <> x.posted_was or x.held <> x.held_was or x.moved_at is distinct from x.moved_was);
  return next;
end $$;
