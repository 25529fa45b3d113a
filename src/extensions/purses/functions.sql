-- Purses: what customers of an account have there. A call of a purse holds and charges both, in the statement that
-- holds and charges the account, whose row is locked first; what concerns the purse alone locks only the purse. A call
-- without one meets none of this but a column that is null.

-- Each movement of a purse has a hash over the one before it. extensions/purses/verify.ts reckons the same in its own
-- words.
create or replace function purse_hash(before bytea, m purse_movement) returns bytea
language sql stable as $$
  select sha256(coalesce(before, ''::bytea) || convert_to(concat_ws('|', m.account_id, m.id, m.purse_id, m.kind, m.amount, m.balance, m.held, m.charged,
    coalesce(m.list::text, ''), coalesce(m.product, ''), coalesce(m.reference, ''), coalesce(m.note, ''), coalesce(m.actor, '')), 'UTF8'))
$$;

-- When the next movement of a purse is: its month decides on discounts. Until the transaction ends nobody else changes
-- the purse.
create or replace function purse_moment(account text, purse text) returns timestamptz
language sql as $$
  select greatest(clock_timestamp(), x.moved_at + interval '1 microsecond') from purse x where x.account_id = account and x.id = purse for update
$$;

-- Writes a movement, and what the purse has after it. by: how much its balance changes; freed: what of its hold goes
-- back. Answers the balance.
create or replace function purse_move(m purse_movement, by bigint, freed bigint) returns bigint
language plpgsql as $$
declare
  p record; e record;
begin
  m.moved_at := coalesce(m.moved_at, purse_moment(m.account_id, m.purse_id));
  select x.posted, x.low, x.chain into p from purse x where x.account_id = m.account_id and x.id = m.purse_id;
  m.balance := p.posted + by; m.amount := abs(by); m.held := coalesce(m.held, 0); m.charged := coalesce(m.charged, 0);
  m.hash := purse_hash(p.chain, m);
  select x.settled into e from purse_events x where x.account_id = m.account_id;
  if found then
    m.untold := nullif(array_remove(array[
      case when m.kind in ('grant', 'topup') then 'topped_up' when m.kind = 'empty' then 'empty' when m.kind = 'settled' and e.settled then 'settled' end,
      case when by < 0 and m.balance < p.low and p.posted >= p.low then 'low' end,
      case when by < 0 and m.balance = 0 then 'empty' end], null), '{}');
  end if;
  update purse x set posted = m.balance, held = x.held - freed, moved_at = m.moved_at, chain = m.hash,
    volume = case m.kind when 'settled' then purse_volume(x, m.moved_at) + m.amount else x.volume end,
    volume_month = case m.kind when 'settled' then date_trunc('month', m.moved_at, 'UTC') at time zone 'UTC' else x.volume_month end,
    is_empty = case when by > 0 then false else x.is_empty or m.kind = 'empty' end,
    status = case m.kind when 'frozen' then 'frozen' when 'reopened' then 'open' when 'closed' then 'closed' else x.status end
  where x.account_id = m.account_id and x.id = m.purse_id;
  insert into purse_movement select m.*;
  return m.balance;
end $$;

-- What a purse has paid for calls in the month of a moment.
create or replace function purse_volume(p purse, moment timestamptz) returns bigint
language sql immutable as $$
  select case when p.volume_month = date_trunc('month', moment, 'UTC') at time zone 'UTC' then p.volume else 0 end
$$;

-- Why a call of a purse is not let in, although the account could pay `floor`; null: it may be. call: {id, list,
-- factor, least}: for each credit that the account holds the purse holds `factor` millionths, and `least` at least.
create or replace function purse_refused(account text, call jsonb, floor bigint, moment timestamptz) returns jsonb
language plpgsql as $$
declare
  p record; m purse_movement;
begin
  select x.posted - x.held as free, x.held, x.status, x.is_empty into p from purse x where x.account_id = account and x.id = call ->> 'id' for update;
  if not found then
    return '{"as": "limited", "limit": "purse:unknown"}';
  elsif p.status <> 'open' then
    return jsonb_build_object('as', 'limited', 'limit', 'purse:' || p.status);
  elsif purse_need(call, floor) <= p.free then
    return null;
  end if;
  -- Once until something is put into it, and not while running calls may give something back.
  if p.held = 0 and not p.is_empty then
    m.account_id := account; m.id := id_at(moment, (call ->> 'id') || moment); m.purse_id := call ->> 'id'; m.kind := 'empty';
    perform purse_move(m, 0, 0);
  end if;
  return jsonb_build_object('as', 'limited', 'limit', case when purse_need(call, floor) > p.free + p.held then 'purse:short' else 'purse:busy' end,
    'max', purse_need(call, floor)::text, 'available', p.free::text);
end $$;

-- How much the account may hold for a call of a purse, of which its session token allows `max`; null: any amount.
create or replace function purse_room(account text, call jsonb) returns bigint
language sql stable as $$
  select case when (call ->> 'factor')::bigint > 0 then least(trunc(least(x.posted - x.held, (call ->> 'max')::bigint) * 1000000.0 / (call ->> 'factor')::bigint), 9000000000000000000)::bigint end
  from purse x where x.account_id = account and x.id = call ->> 'id'
$$;

-- What a purse holds while its account holds so much.
create or replace function purse_need(call jsonb, amount bigint) returns bigint
language sql immutable as $$
  select greatest(ceil(amount * (call ->> 'factor')::numeric / 1000000), (call ->> 'least')::numeric)::bigint
$$;

-- Holds of the purse what it needs beside its account. Answers what the hold says of it.
create or replace function purse_take(account text, call jsonb, amount bigint) returns jsonb
language sql as $$
  update purse x set held = x.held + purse_need(call, amount) where x.account_id = account and x.id = call ->> 'id'
  returning jsonb_build_object('id', x.id, 'list', (call ->> 'list')::int, 'amount', purse_need(call, amount))
$$;

-- What a call costs its customer: by the first rule for its product, a multiple of what the account is charged, or
-- rates of its own for the units that were used. A unit without one costs the multiple. list: {inputs: [unit, …],
-- rules: [{model, factor, tiers: [{upTo, rates: {unit: rate}}, …]}, …]}, factors in millionths and rates as those of
-- charges.
create or replace function purse_price(list jsonb, product text, lines jsonb, charged bigint) returns bigint
language plpgsql immutable as $$
declare
  rule jsonb; tier jsonb; input numeric;
begin
  select r.rule into rule from jsonb_array_elements(list -> 'rules') with ordinality as r(rule, n)
    where r.rule ->> 'model' = product or right(r.rule ->> 'model', 1) = '*' and starts_with(product, left(r.rule ->> 'model', -1)) order by r.n limit 1;
  if rule -> 'tiers' is null then
    return ceil(charged * coalesce((rule ->> 'factor')::numeric, 1000000) / 1000000);
  end if;
  input := (select coalesce(sum((l ->> 1)::numeric), 0) from jsonb_array_elements(lines) l where list -> 'inputs' ? (l ->> 0));
  select t.tier into tier from jsonb_array_elements(rule -> 'tiers') with ordinality as t(tier, n) where t.tier -> 'upTo' is null or (t.tier ->> 'upTo')::numeric >= input order by t.n limit 1;
  return (select coalesce(ceil(sum((l ->> 1)::numeric * coalesce((tier -> 'rates' ->> (l ->> 0))::numeric, ceil((l ->> 2)::numeric * (rule ->> 'factor')::numeric / 1000000))) / 1000000), 0)
    from jsonb_array_elements(lines) l);
end $$;

-- A hold is gone, and its call is in the ledger: the purse pays its part, and gets back the rest.
create or replace function purse_resolved() returns trigger
language plpgsql as $$
declare
  c record; m purse_movement;
begin
  select t.kind, t.amount + greatest(t.loss, 0) as charged, j.lines into c from transfer t join journal j on j.account_id = t.account_id and j.id = t.id
    where t.account_id = old.account_id and t.id = old.id;
  -- Without a transfer its account is being moved or removed.
  if found then
    m.account_id := old.account_id; m.id := old.id; m.purse_id := old.purse ->> 'id'; m.kind := c.kind; m.held := (old.purse ->> 'amount')::bigint;
    m.list := (old.purse ->> 'list')::int; m.product := old.product; m.charged := c.charged; m.moved_at := purse_moment(m.account_id, m.purse_id);
    perform purse_move(m, -least(m.held, purse_charge(m, c.lines)), m.held);
  end if;
  return null;
end $$;
create or replace trigger purse_resolved after delete on hold for each row when (old.purse is not null) execute function purse_resolved();

-- What a movement of a call costs by its price list, with the discount for what the purse, which is locked, has paid in
-- this month before it.
create or replace function purse_charge(m purse_movement, lines jsonb) returns bigint
language sql as $$
  select case when m.kind = 'settled' then ceil(purse_price(l.list, m.product, lines, m.charged) * coalesce((
    select (t ->> 'factor')::numeric from jsonb_array_elements(l.list -> 'volume') t where (t ->> 'from')::bigint <= purse_volume(x, m.moved_at)
      order by (t ->> 'from')::bigint desc limit 1), 1000000) / 1000000)::bigint else 0 end
  from purse x left join purse_prices l on l.account_id = x.account_id and l.version = m.list where x.account_id = m.account_id and x.id = m.purse_id
$$;

-- A call whose hold had expired is settled after all: the purse pays anew, as far as it can, and no more than it had
-- held.
create or replace function purse_late() returns trigger
language plpgsql as $$
declare
  m purse_movement; j record; p record;
begin
  select x.* into m from purse_movement x where x.account_id = new.account_id and x.id = left(new.id, -5) and x.kind = 'expired';
  if not found then
    return null;
  end if;
  select x.lines, x.waived into j from journal x where x.account_id = new.account_id and x.id = left(new.id, -5);
  if found then
    m.moved_at := purse_moment(m.account_id, m.purse_id);
    select x.posted - x.held as free into p from purse x where x.account_id = m.account_id and x.id = m.purse_id;
    m.id := new.id; m.kind := 'settled'; m.charged := new.amount + greatest(new.loss, 0); m.untold := null;
    -- The same request was paid for by another call.
    perform purse_move(m, case when j.waived then 0 else -least(m.held, p.free, purse_charge(m, j.lines)) end, 0);
  end if;
  return null;
end $$;
create or replace trigger purse_late after insert on transfer for each row when (new.kind = 'settled' and right(new.id, 5) = '+late') execute function purse_late();

-- Movements from before the month of a moment go, but for their sum: the rest goes on from the last of them.
create or replace function purse_prune(before timestamptz, many int) returns int
language plpgsql as $$
declare
  g record; n int := 0; gone int;
begin
  -- Discounts go by whole months.
  before := date_trunc('month', before, 'UTC');
  for g in select x.account_id, x.purse_id from purse_movement x where x.moved_at < before and x.untold is null
      -- While they are copied to another database they stay.
      and not exists (select 1 from account_move v where v.account_id = x.account_id and v.state in ('leaving', 'arriving')) group by 1, 2 limit many loop
    -- One that a call has locked is next time's: whoever waits for it here may hold what the call waits for.
    perform 1 from purse x where x.account_id = g.account_id and x.id = g.purse_id for update skip locked;
    continue when not found;
    update purse x set base = l.balance, base_hash = l.hash from (select y.balance, y.hash from purse_movement y where y.account_id = g.account_id and y.purse_id = g.purse_id and y.moved_at < before
      order by y.moved_at desc limit 1) l where x.account_id = g.account_id and x.id = g.purse_id;
    delete from purse_movement x where x.account_id = g.account_id and x.purse_id = g.purse_id and x.moved_at < before;
    get diagnostics gone = row_count; n := n + gone;
  end loop;
  return n;
end $$;
