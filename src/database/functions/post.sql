-- Posts rows of an account's journal, whoever wrote them. A row is the right to post it once, so that it does not
-- matter who does and how often it is tried. Those of `told` come first, and then as many others as one statement
-- should take; without `others`, none. Answers {"left": whether there are more}.
create or replace function ledger_post(account text, told text[], others boolean) returns jsonb
language plpgsql as $$
declare
  more text[] := '{}';
begin
  if others then
    more := array(select j.id from journal j where j.account_id = account order by j.id limit 500);
  end if;
  perform ledger_settle(account, told || more);
  return jsonb_build_object('left', cardinality(more) = 500);
end $$;

-- The one arithmetic of settlements: of those of these rows of the journal that are there still. Answers [[id, outcome,
-- paid, loss, hold], …]. Outcomes besides the row's own: `late` (its hold or lease had expired, and the amount was
-- taken anew), `already` (it was posted before: by a try whose answer was lost, or because its hold expired while its
-- process slept).
create or replace function ledger_settle(account text, wanted text[]) returns jsonb
language plpgsql as $$
declare
  o record; r record; spent record; before record;
  -- Those that have a transfer already. The bounds of the ids say in which months it is looked for.
  known text[];
  moment timestamptz; n int := 0; at int; freed bigint; charge bigint; has_holds boolean := false; is_late boolean; answers jsonb := '[]';
  -- The leases of these rows, what is left of each (null: it has expired), when it was made, and the claims then.
  cover record; leases text[] := '{}'; lease_left bigint[] := '{}'; lease_made timestamptz[] := '{}'; lease_claims int[] := '{}';
  -- Of each row that is posted now, by id: 1, or 2 (beside the transfer of its expired hold); its outcome and transfer.
  kinds int[]; outcomes text[]; ids text[]; paid bigint[]; lost bigint[]; held bigint[]; moved timestamptz[]; balances bigint[]; hashes bytea[]; lots jsonb[];
  -- Where there are limits: what counts for them.
  is_limited boolean; is_sliced boolean := false; covers text[]; keys text[]; at_second bigint[]; made timestamptz[]; scopes jsonb[]; given bigint[]; requests bigint[]; tokens bigint[];
begin
  select a.posted, a.held, a.moved_at, a.chain, a.has_lots, a.claims into o from account a where a.id = account and a.ledger is null for update;
  if not found then
    raise exception 'there is no account % here any more', account using errcode = 'no_data_found';
  end if;
  moment := clock_timestamp(); is_limited := exists (select 1 from counter c where c.account_id = account);
  known := array(select t.id from transfer t where t.account_id = account and t.id = any(wanted) and t.id >= (select min(w collate "C") from unnest(wanted) w) and t.id <= (select max(w collate "C") from unnest(wanted) w));
  for r in
    select j.id, j.outcome, j.charged, case when j.lease_id is null then coalesce(h.amount, 0) else j.held end as held, j.lease_id, j.stays_leased, j.waived, j.product, j.key_id, j.tokens, h.lots, h.claims, h.created_at as made,
      -- A job's hold says its budgets. One that has expired is known only to the process that made it.
      coalesce(h.scopes, j.scopes) as scopes, case when j.lease_id is null then floor(extract(epoch from coalesce(h.created_at, moment)))::bigint else j.second end as second,
      -- One that expired or was given up (it has no endpoint) was no request.
      case when h.amount is not null and j.endpoint = '' then -1 else 0 end as requests, j.input_tokens + j.output_tokens as used,
      case when j.lease_id is null then coalesce(h.tokens, 0) else j.tokens end as counted, 1 as kind
    from journal j
      left join lateral (select x.amount, x.lots, x.scopes, x.created_at, x.tokens, x.claims from hold x where x.account_id = account and x.id = j.id and j.lease_id is null limit 1) h on true
    where j.account_id = account and j.id = any(wanted) order by j.id
  loop
    if r.id = any(known) then
      -- Posted before; but if its hold expired, what it spent and used is taken anew, once.
      select x.kind, x.amount, x.loss into before from transfer x where x.account_id = account
        and x.id = any(array[r.id, case when r.outcome = 'settled' and r.lease_id is null then r.id || '+late' end]) order by x.id desc limit 1;
      if before.kind <> 'expired' or r.outcome <> 'settled' or r.lease_id is not null then
        delete from journal j where j.account_id = account and j.id = r.id;
        answers := answers || jsonb_build_array(jsonb_build_array(r.id, 'already', before.amount::text, before.loss::text, r.held::text));
        continue;
      end if;
      r.kind := 2;
    end if;
    n := n + 1; ids[n] := r.id; kinds[n] := r.kind; outcomes[n] := r.outcome; held[n] := r.held; freed := 0; at := null;
    if r.lease_id is not null then
      at := array_position(leases, r.lease_id);
      if at is null then
        select x.amount, x.created_at, x.claims, x.slices <> '{}' as is_sliced into cover from lease x where x.account_id = account and x.id = r.lease_id;
        leases := leases || r.lease_id; at := cardinality(leases); lease_left[at] := cover.amount; lease_made[at] := cover.created_at; lease_claims[at] := cover.claims; is_sliced := is_sliced or coalesce(cover.is_sliced, false);
      end if;
      r.claims := lease_claims[at];
    end if;
    is_late := r.kind = 2 or r.lease_id is not null and lease_left[at] is null;
    if is_late then
      outcomes[n] := case r.outcome when 'settled' then 'late' else r.outcome end;
    elsif r.lease_id is null then
      freed := r.held; has_holds := true;
    else
      freed := least(r.held, lease_left[at], case when r.stays_leased then r.charged end); lease_left[at] := lease_left[at] - freed;
    end if;
    o.held := o.held - freed; charge := case when r.waived then 0 else r.charged end;
    if o.has_lots then
      -- A lease, and a hold that was made before there were lots, have plain credits.
      select s.paid, s.lots into spent from lot_settle(account, coalesce(r.lots, jsonb_build_array(jsonb_build_array('', freed))), r.product, o.posted - o.held, moment, charge) s;
      paid[n] := spent.paid; lots[n] := spent.lots;
    else
      paid[n] := least(charge, o.posted - o.held);
    end if;
    if is_limited then
      -- What was counted in advance for one whose hold or lease has expired came off the counters then.
      requests[n] := case when is_late then 1 else r.requests end; tokens[n] := r.used - case when is_late then 0 else r.counted end;
      keys[n] := r.key_id; at_second[n] := r.second; made[n] := coalesce(r.made, lease_made[at]); scopes[n] := r.scopes; covers[n] := r.lease_id; given[n] := r.tokens;
    end if;
    lost[n] := r.charged - paid[n]; o.posted := o.posted - paid[n]; balances[n] := o.posted;
    o.moved_at := greatest(clock_timestamp(), o.moved_at + interval '1 microsecond'); moved[n] := o.moved_at;
    o.chain := transfer_hash(o.chain, account, case r.kind when 1 then r.id else r.id || '+late' end, r.outcome, paid[n], lost[n], held[n], o.posted, null, null, lots[n]); hashes[n] := o.chain;
    if freed > charge and r.claims < o.claims then
      select k.* into o.posted, o.moved_at, o.chain from claim_take(account, r.claims, coalesce(r.lots, jsonb_build_array(jsonb_build_array('', freed))), charge, o.posted, o.moved_at, o.chain) k;
    end if;
  end loop;
  if n > 0 then
    insert into transfer (account_id, id, kind, amount, loss, held, moved_at, balance, hash, lots)
    select account, case t.n when 1 then t.id else t.id || '+late' end, case t.kind when 'late' then 'settled' else t.kind end, t.paid, t.lost, t.held, t.moved_at, t.balance, t.hash, t.lots
    from unnest(ids, kinds, outcomes, paid, lost, held, moved, balances, hashes, lots) as t(id, n, kind, paid, lost, held, moved_at, balance, hash, lots);
    if o.has_lots then
      -- What went back to a lot that has ended meanwhile expires at once.
      select e.posted, o.held as held, e.moved_at, e.chain, e.has_lots, o.claims into o from lot_expire(account, moment, o.posted, o.moved_at, o.chain) e;
    end if;
    if is_limited then
      perform counter_settle(account, keys, paid, requests, tokens, at_second, made, scopes);
    end if;
    if is_sliced then
      perform slices_use(account, covers, at_second, given);
    end if;
    update lease e set amount = l.amount from unnest(leases, lease_left) as l(id, amount) where e.account_id = account and e.id = l.id and e.amount <> l.amount;
    delete from hold h where has_holds and h.account_id = account and h.id = any(ids);
    update account a set posted = o.posted, held = o.held, moved_at = o.moved_at, chain = o.chain, has_lots = o.has_lots where a.id = account;
    perform ledger_use(account, ids, kinds, paid, lost, held);
  end if;
  return answers || (select coalesce(jsonb_agg(jsonb_build_array(t.id, t.outcome, t.paid::text, t.lost::text, t.held::text)), '[]') from unnest(ids, outcomes, paid, lost, held) as t(id, outcome, paid, lost, held));
end $$;

-- Takes off the slices of leases what these calls had of them: each by its lease (none of a hold), second and tokens.
create or replace function slices_use(account text, leases text[], at bigint[], tokens bigint[]) returns void
language plpgsql as $$
declare
  g record;
begin
  for g in select x.lease, x.at, count(*) as calls, sum(x.tokens)::bigint as tokens from unnest(leases, at, tokens) as x(lease, at, tokens) where x.lease is not null group by x.lease, x.at loop
    update lease e set slices = slice_add(e.slices, g.at, -g.calls, -g.tokens) where e.account_id = account and e.id = g.lease and e.slices <> '{}';
  end loop;
end $$;

-- Takes rows out of the journal, and writes their usage rows and the sums of their hour: by the place of each row in
-- the order of ids.
create or replace function ledger_use(account text, ids text[], b_kind int[], b_paid bigint[], b_lost bigint[], b_held bigint[]) returns void
language plpgsql as $$
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
    from placed j
  )
  insert into usage_hour as u (account_id, hour, product, key_id, requests, errors, charged, input_tokens, output_tokens, duration_ms)
  select j.account_id, date_trunc('hour', now(), 'UTC'), j.product, j.key_id, count(*), count(*) filter (where j.status >= 400), sum(b_paid[j.n]),
    sum(j.input_tokens), sum(j.output_tokens), sum(j.duration_ms)
  from placed j group by j.account_id, j.product, j.key_id
  on conflict (account_id, hour, product, key_id) do update set requests = u.requests + excluded.requests, errors = u.errors + excluded.errors,
    charged = u.charged + excluded.charged, input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens,
    duration_ms = u.duration_ms + excluded.duration_ms;
end $$;
