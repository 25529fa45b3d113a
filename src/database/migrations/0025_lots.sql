-- Credits that end, that only some products may use, or that are spent before or after others are lots: functions/lot.sql. All others are the
-- plain credits of the account: what its balance has beyond its lots. An account without lots has no rows here, and costs what it did before.
create table lot (
  account_id text collate "C" not null,
  -- The transfer that granted it.
  id text collate "C" not null,
  -- bought, given, plan or code
  source text not null,
  amount bigint not null,
  -- What was neither spent nor taken back nor has expired; and what of it running calls hold.
  remaining bigint not null,
  held bigint not null default 0,
  ends_at timestamptz,
  -- Null: for all products. A name that ends in * stands for all that begin so.
  products text[],
  -- 0 is spent first, 100 last. Plain credits have 50.
  priority smallint not null default 50,
  created_at timestamptz not null default now(),
  primary key (account_id, id),
  check (held >= 0 and held <= remaining and remaining <= amount)
) with (fillfactor = 50);
create index lot_open on lot (account_id) where remaining > 0;
create index lot_ends on lot (ends_at) where remaining > 0;

-- Whether some of its balance lies in lots.
alter table account add column has_lots boolean not null default false;
-- From which lots a hold took how much, in the order in which its charge is taken: [[lot, amount], …]; an empty lot is plain credit. Null: all of it.
alter table hold add column lots jsonb;
-- What a transfer moved of lots: {lot: amount, …}, negative for what was taken. Null: of none. Part of the chain's hash where it is not.
alter table transfer add column lots jsonb;
create index transfer_lots on transfer (account_id, id) where lots is not null;

-- `plan` and `code` grant credits like `grant`; `expiry` takes what was left of a lot at its end, which nobody is given.
create or replace view entry as
  select t.account_id, t.id as transfer_id, t.at, leg.account, leg.amount
  from transfer t
  cross join lateral (values
    ('account:' || t.account_id,
     case when t.kind in ('grant', 'correction', 'purchase', 'plan', 'code') then t.amount
       when t.kind in ('takeback', 'payout', 'writeoff', 'refund', 'expiry', 'settled') then -t.amount else 0 end),
    ('platform:grants',
     case when t.kind in ('grant', 'correction', 'plan', 'code') then -t.amount when t.kind in ('takeback', 'payout', 'writeoff') then t.amount
       when t.kind = 'purchase' then -(t.amount + t.loss) when t.kind = 'refund' then t.amount + t.loss else 0 end),
    ('platform:expiry', case when t.kind = 'expiry' then t.amount else 0 end),
    ('platform:loss', case when t.kind = 'purchase' then t.loss else -t.loss end),
    ('platform:revenue', case when t.kind = 'settled' then t.amount + t.loss when t.kind in ('purchase', 'refund') then 0 else t.loss end)
  ) as leg (account, amount)
  where leg.amount <> 0;
drop index transfer_given;
create index transfer_given on transfer (account_id, moved_at)
  where kind in ('grant', 'correction', 'takeback', 'payout', 'writeoff', 'purchase', 'refund', 'plan', 'code', 'expiry');
