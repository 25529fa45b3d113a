-- What holds and leases release that were there before a claim goes to it, in the statement that releases: by a
-- transfer of its own, a refund that makes up for a loss. Called with the account locked. before: the number of the
-- account's claims when the hold or lease was made. parts: what it held, [[lot, amount], …] in the order in which it
-- was spent, of which `spent` is gone. Of the rest, those that would be spent last are taken first.
create or replace function claim_take(account text, before int, parts jsonb, spent bigint, inout posted bigint, inout moved_at timestamptz, inout chain bytea)
language plpgsql as $$
declare
  c record; x record;
  part bigint; got bigint; rest jsonb; lots jsonb; id text;
begin
  for c in select k.*, t.note, t.actor from claim k join transfer t on t.account_id = account and t.id = k.id
    where k.account_id = account and k.number > before and k.taken < k.amount order by k.number
  loop
    got := 0; lots := null; rest := '[]';
    for x in
      select p.lot, least(p.amount, greatest(p.upto - spent, 0)) as amount from (
        select a.p ->> 0 as lot, (a.p ->> 1)::bigint as amount, sum((a.p ->> 1)::bigint) over (order by a.n) as upto, a.n from jsonb_array_elements(parts) with ordinality as a(p, n)
      ) p order by p.lot is distinct from c.lot_id, p.n desc
    loop
      part := case when c.only_lot and x.lot is distinct from c.lot_id then 0 else least(x.amount, c.amount - c.taken - got) end;
      got := got + part; rest := jsonb_build_array(jsonb_build_array(x.lot, x.amount - part)) || rest;
      if x.lot <> '' and part > 0 then
        update lot l set remaining = l.remaining - part where l.account_id = account and l.id = x.lot;
        lots := coalesce(lots, '{}') || jsonb_build_object(x.lot, -part);
      end if;
    end loop;
    parts := rest; spent := 0;
    continue when got = 0;
    update claim k set taken = k.taken + got where k.account_id = account and k.id = c.id;
    posted := posted - got; moved_at := greatest(clock_timestamp(), moved_at + interval '1 microsecond');
    id := id_at(moved_at, c.id);
    chain := transfer_hash(chain, account, id, 'refund', got, -got, 0, posted, c.note, c.actor, lots);
    insert into transfer (account_id, id, kind, amount, loss, note, actor, moved_at, balance, hash, lots)
    values (account, id, 'refund', got, -got, c.note, c.actor, claim_take.moved_at, posted, chain, lots);
  end loop;
end $$;

-- What claims will take of what the account's holds and leases from before them release, at most. asked: of an account
-- with lots, what a call may be charged as: a claim on a lot that does not serve them takes nothing from it.
create or replace function claim_due(account text, asked text[]) returns bigint
language plpgsql stable as $$
begin
  return (with older as (select h.amount, h.claims from hold h where h.account_id = account union all select e.amount, e.claims from lease e where e.account_id = account)
  select least(sum(least(c.amount - c.taken, (select sum(o.amount) from older o where o.claims < c.number))), (select sum(o.amount) from older o where o.claims < max(c.number)))::bigint
  from claim c left join lot l on l.account_id = account and l.id = c.lot_id
  where c.account_id = account and c.taken < c.amount and not exists (select 1 from unnest(asked) a where not lot_serves(l.products, a)));
end $$;
