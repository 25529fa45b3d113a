-- The one arithmetic of settlements: posts rows of an account's journal, whoever wrote them. A row is the right to post it once, so that it does not
-- matter who does and how often it is tried. Those of `told` come first, and then as many others as one statement should take; without `others`, none.
-- Answers {"left": whether there are more, "told": [[id, outcome, paid, loss, hold], …]}, also of those that the account could not pay. Outcomes besides the row's own: `late` (its hold or lease
-- had expired, and the amount was taken anew), `already` (it was posted before).
create or replace function ledger_post(account text, told text[], others boolean) returns jsonb
language plpgsql
-- Every row is reached by its key, whatever the planner knows of the tables' sizes: a table that was empty when it was last vacuumed is
-- believed to have one row, and a plan that reads all of an account's rows is right then, and ruinous a day later. Hence the settings, and a statement
-- for each hold and lease: lookups of many at once might become a join.
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
-- An account whose lock takes longer goes to a queue of its own: see ledger/queue.ts.
set lock_timeout = '300ms'
as $$
declare
  o record; r record;
  h_amount bigint; h_tokens bigint; h_made timestamptz; e_amount bigint; e_made timestamptz; t_was text; t_amount bigint; t_loss bigint;
  -- What is posted now; and these in their order, as far as they are there. What is written meanwhile waits for the next time.
  wanted text[] := told; ids text[];
  -- Those that have a transfer already: by a try whose answer was lost, or because their hold expired while their process slept.
  known text[];
  with_holds boolean := false; is_limited boolean; at int; n int := 0; what text; freed bigint; paid bigint; answers jsonb[] := '{}';
  -- The leases of these rows; one that has expired has no amount.
  leases text[] := '{}'; lease_left bigint[] := '{}'; lease_made timestamptz[] := '{}'; lease_slices jsonb[] := '{}'; e_slices jsonb;
  -- By the place of the row in the order of ids: 0 (posted before), 1, or 2 (beside the transfer of its expired hold); what of it was paid, lost and held.
  b_kind int[]; b_paid bigint[]; b_lost bigint[]; b_held bigint[];
  h_scopes jsonb;
  -- What counts for limits and budgets, by call; those that one lease covers and that it was given for the same second come one after the other, and are counted together. Of the
  -- sums (what was paid, calls, tokens that a lease was given for them, requests and tokens to add) each group has what they were before it, until the end.
  g int := 0; g_lease int[]; g_key text[]; g_second bigint[]; g_made timestamptz[]; g_scopes jsonb[]; last_lease int; last_second bigint;
  g_paid bigint[]; g_calls bigint[]; g_given bigint[]; g_requests bigint[]; g_used bigint[];
  s_paid bigint := 0; s_calls bigint := 0; s_given bigint := 0; s_requests bigint := 0; s_used bigint := 0;
  -- Its transfers.
  t_id text[]; t_kind text[]; t_at timestamptz[]; t_place int[]; t_balance bigint[]; t_hash bytea[];
  -- When it is; and of an account with lots, what a call had of them, and by transfer what came out of them.
  moment timestamptz := clock_timestamp(); h_lots jsonb; h_product text; lots jsonb; t_lots jsonb[];
begin
  select a.posted, a.held, a.moved_at, a.chain, a.has_lots, a.budgets into o from account a where a.id = account for update;
  if not found then
    raise exception 'there is no account %', account;
  end if;
  is_limited := o.budgets > 0 or exists (select 1 from counter c where c.account_id = account);
  if others then
    wanted := wanted || array(select j.id from journal j where j.account_id = account order by j.id limit 500);
  end if;
  known := array(select x.id from transfer x where x.account_id = account and x.id = any(wanted));
  for r in
    select j.id, j.outcome, j.charged, j.held, j.lease_id, j.stays_leased, j.waived, j.key_id, j.input_tokens + j.output_tokens as used, j.tokens, j.second, j.scopes, j.endpoint
    from journal j where j.account_id = account and j.id = any(wanted) order by j.id
  loop
    n := n + 1; ids[n] := r.id; what := r.outcome; freed := 0; at := array_position(leases, r.lease_id); b_held[n] := r.held;
    if r.lease_id is null then
      select x.amount, x.tokens, x.created_at, x.scopes into h_amount, h_tokens, h_made, h_scopes from hold x where x.account_id = account and x.id = r.id;
      b_held[n] := coalesce(h_amount, 0);
    elsif at is null then
      select x.amount, x.created_at, x.slices into e_amount, e_made, e_slices from lease x where x.account_id = account and x.id = r.lease_id;
      leases := leases || r.lease_id; lease_left := lease_left || e_amount; lease_made := lease_made || e_made; at := cardinality(leases); lease_slices[at] := e_slices;
    end if;
    if r.id = any(known) then
      select x.kind, x.amount, x.loss into t_was, t_amount, t_loss from transfer x where x.account_id = account and x.id = r.id;
      what := 'already';
      if t_was = 'expired' and r.outcome = 'settled' and r.lease_id is null then
        -- Its hold expired, and what it spent and used is taken anew; unless that was done before.
        select x.kind, x.amount, x.loss into t_was, t_amount, t_loss from transfer x where x.account_id = account and x.id = r.id || '+late';
        what := case when found then 'already' else 'late' end;
      end if;
    elsif r.lease_id is null then
      freed := b_held[n]; with_holds := true;
    elsif lease_left[at] is null then
      what := case r.outcome when 'settled' then 'late' else r.outcome end;
    else
      freed := least(r.held, lease_left[at], case when r.stays_leased then r.charged end); lease_left[at] := lease_left[at] - freed;
    end if;
    if what = 'already' then
      b_kind[n] := 0; b_paid[n] := t_amount; b_lost[n] := t_loss;
    else
      o.held := o.held - freed;
      if o.has_lots then
        -- A lease, and a hold that was made before there were lots, have plain credits.
        select x.lots into h_lots from hold x where x.account_id = account and x.id = r.id and r.lease_id is null and freed > 0;
        select j.product into h_product from journal j where j.account_id = account and j.id = r.id;
        select x.paid, x.lots into paid, lots from lot_settle(account, coalesce(h_lots, jsonb_build_array(jsonb_build_array('', freed))), h_product,
          o.posted - o.held, moment, case when r.waived then 0 else r.charged end) x;
      else
        paid := case when r.waived then 0 else least(r.charged, o.posted - o.held) end;
      end if;
      o.posted := o.posted - paid;
      b_kind[n] := case when r.id = any(known) then 2 else 1 end; b_paid[n] := paid; b_lost[n] := r.charged - paid;
      if is_limited then
        if at is null or last_lease is distinct from at or last_second <> r.second then
          g := g + 1; g_lease[g] := at; g_key[g] := r.key_id; last_lease := at; last_second := r.second;
          g_paid[g] := s_paid; g_calls[g] := s_calls; g_given[g] := s_given; g_requests[g] := s_requests; g_used[g] := s_used;
          g_second[g] := case when at is null then floor(extract(epoch from coalesce(h_made, moment))) else r.second end;
          g_made[g] := case when at is null then h_made else lease_made[at] end;
          -- A job's hold says it. One that has expired is known only to the process that made it.
          g_scopes[g] := case when at is null then coalesce(h_scopes, r.scopes) else r.scopes end;
        end if;
        s_paid := s_paid + paid; s_calls := s_calls + 1; s_given := s_given + r.tokens;
        if b_kind[n] = 2 or at is not null and lease_left[at] is null then
          -- What was counted for it in advance came off the counters when its hold or lease expired.
          s_requests := s_requests + 1; s_used := s_used + r.used;
        elsif at is not null then
          s_used := s_used + r.used - r.tokens;
        else
          -- One that expired or was given up (it has no endpoint) was no request.
          s_requests := s_requests - case when r.endpoint = '' and h_made is not null then 1 else 0 end; s_used := s_used + r.used - coalesce(h_tokens, 0);
        end if;
      end if;
      o.moved_at := greatest(clock_timestamp(), o.moved_at + interval '1 microsecond'); at := coalesce(cardinality(t_id), 0) + 1;
      t_id[at] := case b_kind[n] when 1 then r.id else r.id || '+late' end; t_kind[at] := r.outcome; t_at[at] := o.moved_at; t_place[at] := n; t_balance[at] := o.posted;
      o.chain := transfer_hash(o.chain, account, t_id[at], r.outcome, paid, b_lost[n], b_held[n], o.posted, null, null, lots); t_hash[at] := o.chain;
      if o.has_lots then
        t_lots[at] := lots;
      end if;
    end if;
    if b_lost[n] > 0 or r.id = any(told) then
      answers := answers || jsonb_build_array(r.id, what, b_paid[n]::text, b_lost[n]::text, b_held[n]::text);
    end if;
  end loop;
  if t_id is not null then
    insert into transfer (account_id, id, kind, amount, loss, held, moved_at, balance, hash, lots)
    select account, x.id, x.kind, b_paid[x.place], b_lost[x.place], b_held[x.place], x.moved_at, x.balance, x.hash, x.lots
    from unnest(t_id, t_kind, t_place, t_at, t_balance, t_hash, t_lots) as x(id, kind, place, moved_at, balance, hash, lots);
    if o.has_lots then
      -- What went back to a lot that has ended meanwhile expires at once.
      select x.posted, o.held as held, x.moved_at, x.chain, x.has_lots, o.budgets as budgets into o from lot_expire(account, moment, o.posted, o.moved_at, o.chain) x;
    end if;
    if is_limited then
      for i in 1 .. g loop
        g_paid[i] := coalesce(g_paid[i + 1], s_paid) - g_paid[i]; g_calls[i] := coalesce(g_calls[i + 1], s_calls) - g_calls[i]; g_given[i] := coalesce(g_given[i + 1], s_given) - g_given[i];
        g_requests[i] := coalesce(g_requests[i + 1], s_requests) - g_requests[i]; g_used[i] := coalesce(g_used[i + 1], s_used) - g_used[i];
        at := g_lease[i];
        if lease_slices[at] <> '{}' then
          lease_slices[at] := slice_add(lease_slices[at], g_second[i], -g_calls[i], -g_given[i]);
        end if;
      end loop;
      perform counter_settle(account, g_key, g_paid, g_requests, g_used, g_second, g_made, g_scopes);
    end if;
    update lease e set amount = x.amount, slices = x.slices from unnest(leases, lease_left, lease_slices) as x(id, amount, slices)
    where e.account_id = account and e.id = x.id and (e.amount <> x.amount or e.slices <> x.slices);
    if with_holds then
      delete from hold h where h.account_id = account and h.id = any(t_id);
    end if;
    update account a set posted = o.posted, held = o.held, moved_at = o.moved_at, chain = o.chain, has_lots = o.has_lots where a.id = account;
  end if;
  perform ledger_use(account, ids, b_kind, b_paid, b_lost, b_held);
  return jsonb_build_object('left', cardinality(wanted) - cardinality(told) = 500, 'told', to_jsonb(answers));
end $$;

-- Takes rows out of the journal, and writes their usage rows and the sums of their hour: by the place of each row in the order of ids.
create or replace function ledger_use(account text, ids text[], b_kind int[], b_paid bigint[], b_lost bigint[], b_held bigint[]) returns void
language plpgsql
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
begin
  with taken as (
    delete from journal j where j.account_id = account and j.id = any(ids) returning j.*
  ), placed as (
    select t.*, row_number() over (order by t.id) as n from taken t
  ), used as (
    insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, loss, held, catalog_version, lines, estimated, stream, route,
      duration_ms, first_byte_ms, attempt_log, cost, cost_basis, attributes, credential, client, vendor, labels)
    select j.account_id, case b_kind[j.n] when 2 then j.id || '+late' else j.id end, j.key_id, j.product, j.endpoint, j.outcome, j.status, b_paid[j.n], b_lost[j.n], b_held[j.n],
      j.catalog_version, j.lines, j.estimated, j.stream, j.route, j.duration_ms, j.first_byte_ms, j.attempt_log, j.cost, j.cost_basis, j.attributes, j.credential, j.client, j.vendor, j.labels
    from placed j where b_kind[j.n] > 0
  )
  insert into usage_hour as u (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
  select j.account_id, date_trunc('hour', now(), 'UTC'), j.product, j.key_id, count(*), count(*) filter (where j.status >= 400), sum(b_paid[j.n]),
    sum(j.input_tokens), sum(j.output_tokens), sum(j.duration_ms)
  from placed j where b_kind[j.n] > 0 group by j.account_id, j.product, j.key_id
  on conflict (account_id, hour, product, key_id) do update set requests = u.requests + excluded.requests, errors = u.errors + excluded.errors,
    charged = u.charged + excluded.charged, input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens,
    duration_ms = u.duration_ms + excluded.duration_ms;
end $$;
