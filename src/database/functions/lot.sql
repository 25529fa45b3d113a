-- Lots: credits of an account with an end, for some products only, or with a priority of their own. The account's
-- balance includes them; its plain credits are what it has beyond them. Credits are spent by priority, then by their
-- end, then by age; plain credits never end and come after all lots that are like them. All of these are called with
-- the account locked, and only for accounts with lots. `free`: what the account has that nothing holds, lots included.
-- `moment`: when it is, the same for all steps of one statement; a lot that has ended is not there for new calls, while
-- what calls hold of it is theirs until they end.

-- Whether calls of a product may use credits that are for these products only.
create or replace function lot_serves(products text[], product text) returns boolean
language sql immutable as $$
  select products is null or exists (select 1 from unnest(products) p where p = product or right(p, 1) = '*' and starts_with(product, left(p, -1)))
$$;

-- What is there for calls that may be charged as any of these products, in the order in which it is spent. An empty id
-- is plain credit. Products null: whatever it is for.
drop function if exists lot_order(text, text, bigint, timestamptz);
create or replace function lot_order(account text, asked text[], free bigint, moment timestamptz) returns table (id text, amount bigint)
language sql stable as $$
  select x.id, x.amount from (
    select l.id, l.remaining - l.held as amount, l.priority, coalesce(l.ends_at, 'infinity') as ends_at, 0 as plain
    from lot l where l.account_id = account and l.remaining > l.held and (l.products is null or asked is null or not exists (select 1 from unnest(asked) a where not lot_serves(l.products, a))) and (l.ends_at is null or l.ends_at > moment)
    union all
    select '', free - coalesce((select sum(l.remaining - l.held) from lot l where l.account_id = account and l.remaining > 0), 0)::bigint, 50, 'infinity', 1
  ) x where x.amount > 0 order by x.priority, x.ends_at, x.plain, x.id
$$;

-- What calls that may be charged as any of these products can hold.
drop function if exists lot_available(text, text, bigint, timestamptz);
create or replace function lot_available(account text, asked text[], free bigint, moment timestamptz) returns bigint
language sql stable as $$
  select coalesce(sum(x.amount), 0)::bigint from lot_order(account, asked, free, moment) x
$$;

-- What calls that may be charged as any of these products could pay if nothing were held.
create or replace function lot_payable(account text, asked text[], posted bigint) returns bigint
language sql stable as $$
  select posted - coalesce(sum(l.remaining), 0)::bigint from lot l
  where l.account_id = account and l.remaining > 0 and (l.ends_at <= now() or exists (select 1 from unnest(asked) a where not lot_serves(l.products, a)))
$$;

-- Holds credits for a call: [[lot, amount], …], in the order in which its charge will be taken.
drop function if exists lot_hold(text, text, bigint, timestamptz, bigint);
create or replace function lot_hold(account text, asked text[], free bigint, moment timestamptz, amount bigint) returns jsonb
language plpgsql as $$
declare
  x record;
  part bigint;
  parts jsonb := '[]';
begin
  for x in select * from lot_order(account, asked, free, moment) loop
    part := least(x.amount, amount);
    exit when part <= 0;
    parts := parts || jsonb_build_array(jsonb_build_array(x.id, part)); amount := amount - part;
    update lot l set held = l.held + part where l.account_id = account and l.id = x.id;
  end loop;
  return parts;
end $$;

-- Takes a charge out of what a call held, in its order, and gives the rest back to where it came from; what the call
-- cost beyond that is taken from what is there for its product. free: with what the call held. Answers what the account
-- paid, and what of it came out of lots.
create or replace function lot_settle(account text, parts jsonb, product text, free bigint, moment timestamptz, charge bigint, out paid bigint, out lots jsonb)
language plpgsql as $$
declare
  x record;
  part bigint;
begin
  paid := 0;
  for x in select p ->> 0 as id, (p ->> 1)::bigint as amount from jsonb_array_elements(parts) with ordinality as a(p, n) order by n loop
    part := least(x.amount, charge - paid);
    paid := paid + part;
    update lot l set held = l.held - x.amount, remaining = l.remaining - part where l.account_id = account and l.id = x.id;
    if x.id <> '' and part > 0 then
      lots := coalesce(lots, '{}') || jsonb_build_object(x.id, -part);
    end if;
  end loop;
  if paid < charge then
    for x in select * from lot_order(account, array[product], free - paid, moment) loop
      part := least(x.amount, charge - paid);
      exit when part <= 0;
      paid := paid + part;
      update lot l set remaining = l.remaining - part where l.account_id = account and l.id = x.id;
      if x.id <> '' then
        lots := coalesce(lots, '{}') || jsonb_build_object(x.id, coalesce((lots ->> x.id)::bigint, 0) - part);
      end if;
    end loop;
  end if;
end $$;

-- Takes credits back that nothing holds: first of the lot that is named, then those that would be spent last. Answers
-- what came out of lots.
create or replace function lot_take_back(account text, first_lot text, free bigint, moment timestamptz, amount bigint) returns jsonb
language plpgsql as $$
declare
  x record;
  part bigint;
  lots jsonb;
begin
  for x in select o.id, o.amount from lot_order(account, null, free, moment) with ordinality as o(id, amount, n) order by o.id is distinct from first_lot, o.n desc loop
    part := least(x.amount, amount);
    exit when part <= 0;
    amount := amount - part;
    update lot l set remaining = l.remaining - part where l.account_id = account and l.id = x.id;
    if x.id <> '' then
      lots := coalesce(lots, '{}') || jsonb_build_object(x.id, -part);
    end if;
  end loop;
  return lots;
end $$;

-- What has ended and is not held expires, each lot by a transfer of its own. has_lots: whether there are lots
-- afterwards.
create or replace function lot_expire(account text, moment timestamptz, inout posted bigint, inout moved_at timestamptz, inout chain bytea, out has_lots boolean)
language plpgsql as $$
declare
  l lot;
  id text;
  part bigint;
  said text;
  moved jsonb;
begin
  for l in select * from lot o where o.account_id = account and o.remaining > o.held and o.ends_at <= moment order by o.ends_at, o.id loop
    part := l.remaining - l.held; posted := posted - part; moved := jsonb_build_object(l.id, -part);
    moved_at := greatest(clock_timestamp(), moved_at + interval '1 microsecond');
    id := id_at(moved_at, l.id);
    said := 'ended on ' || to_char(l.ends_at at time zone 'UTC', 'YYYY-MM-DD');
    chain := transfer_hash(chain, account, id, 'expiry', part, 0, 0, posted, said, 'system', moved);
    insert into transfer (account_id, id, kind, amount, note, actor, moved_at, balance, hash, lots)
    values (account, id, 'expiry', part, said, 'system', lot_expire.moved_at, posted, chain, moved);
    update lot o set remaining = o.held where o.account_id = account and o.id = l.id;
  end loop;
  has_lots := exists (select 1 from lot o where o.account_id = account and o.remaining > 0);
end $$;

-- An id of a moment, as kernel/world.ts makes them; what follows the time is made from a text.
create or replace function id_at(moment timestamptz, seed text) returns text
language sql stable as $$
  select string_agg(substr('0123456789abcdefghjkmnpqrstvwxyz', (floor(extract(epoch from moment) * 1000)::bigint >> (45 - 5 * n) & 31)::int + 1, 1), '' order by n)
    || left(encode(sha256(convert_to(seed || moment, 'UTF8')), 'hex'), 16)
  from generate_series(0, 9) n
$$;

-- For whoever looks after accounts whose lots have ended: see ledger/lots.ts.
create or replace function ledger_end_lots(account text) returns void
language plpgsql
set lock_timeout = '300ms'
as $$
declare
  o record;
begin
  select a.posted, a.moved_at, a.chain into o from account a where a.id = account for update;
  if found then
    select x.* into o from lot_expire(account, clock_timestamp(), o.posted, o.moved_at, o.chain) x;
    update account a set posted = o.posted, moved_at = o.moved_at, chain = o.chain, has_lots = o.has_lots where a.id = account;
  end if;
end $$;
