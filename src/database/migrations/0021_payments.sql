-- Money that was paid for credits. This table is the truth: what a provider says of a payment changes a row, and the row says what was granted for it.
create table payment (
  -- Empty: nobody knows whose it is.
  account_id text collate "C" not null,
  id text collate "C" not null,
  -- stripe or webhook
  provider text not null,
  -- The payment's id there. Null: the provider has not named it yet.
  provider_id text,
  -- pack, amount, plan or top_up; other: nothing that was asked for.
  kind text not null,
  offer_id text,
  currency text not null,
  -- In the currency's smallest unit: what was asked for (null: nothing was), what was paid with its tax, and the tax in it.
  price_minor bigint,
  amount_minor bigint not null,
  tax_minor bigint not null default 0,
  -- What it buys, by this version of the catalog.
  credits bigint not null,
  catalog_version integer,
  -- pending, paid, refunded, disputed, quarantined or failed
  state text not null,
  -- Why it is quarantined, disputed or failed.
  reason text,
  -- Of what was paid: what went back to the customer, and what a dispute holds back.
  refunded_minor bigint not null default 0,
  disputed_minor bigint not null default 0,
  -- none, open, lost or won
  dispute text not null default 'none',
  -- The transfer that granted the credits. Null: none were.
  transfer_id text collate "C",
  -- Of the credits: what was taken back, and what could not be.
  taken bigint not null default 0,
  lost bigint not null default 0,
  person_id text,
  -- The moment of which the provider's last word on it is.
  as_of timestamptz,
  created_at timestamptz not null default now(),
  paid_at timestamptz,
  detail jsonb not null default '{}',
  primary key (account_id, id)
);
create unique index payment_id on payment (id);
create unique index payment_provider on payment (provider, provider_id);
-- However many processes see a low balance, one tops it up.
create unique index payment_top_up on payment (account_id) where kind = 'top_up' and state = 'pending';
create index payment_open on payment (state, id) where state in ('pending', 'quarantined');

-- Events of providers that were applied: each is applied once. Kept for months.
create table payment_event (
  provider text not null,
  event_id text not null,
  type text not null,
  payment_id text,
  received_at timestamptz not null default now(),
  primary key (provider, event_id)
);
create index payment_event_age on payment_event (received_at);

-- An account as a customer of a provider, its saved card, and whether and how the card tops it up by itself.
create table payment_customer (
  account_id text collate "C" primary key,
  provider text not null,
  customer_id text not null,
  method_id text,
  card jsonb,
  -- Below so many credits, this amount is charged, at most so much in a month (UTC). Null: no automatic top-up.
  top_up_below bigint,
  top_up_minor bigint,
  top_up_ceiling_minor bigint,
  top_up_currency text,
  top_up_by text,
  -- Why it does not top up for the time being, and until when.
  top_up_problem text,
  top_up_failures integer not null default 0,
  top_up_after timestamptz
);
create index payment_customer_top_up on payment_customer (account_id) where top_up_below is not null;

-- Comparisons with a provider's own list, and every difference that they found.
create table reconciliation (
  id text collate "C" primary key,
  provider text not null,
  from_at timestamptz not null,
  until_at timestamptz not null,
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  checked integer not null default 0,
  differences jsonb not null default '[]',
  failure text
);

-- A purchase grants credits; a refund takes them back, and what could not be taken back is a loss. A purchase that has a loss makes up for one.
create or replace view entry as
  select t.account_id, t.id as transfer_id, t.at, leg.account, leg.amount
  from transfer t
  cross join lateral (values
    ('account:' || t.account_id,
     case when t.kind in ('grant', 'correction', 'purchase') then t.amount when t.kind in ('takeback', 'payout', 'writeoff', 'refund', 'settled') then -t.amount else 0 end),
    ('platform:grants',
     case when t.kind in ('grant', 'correction') then -t.amount when t.kind in ('takeback', 'payout', 'writeoff') then t.amount
       when t.kind = 'purchase' then -(t.amount + t.loss) when t.kind = 'refund' then t.amount + t.loss else 0 end),
    ('platform:loss', case when t.kind = 'purchase' then t.loss else -t.loss end),
    ('platform:revenue', case when t.kind = 'settled' then t.amount + t.loss when t.kind in ('purchase', 'refund') then 0 else t.loss end)
  ) as leg (account, amount)
  where leg.amount <> 0;
drop index transfer_given;
create index transfer_given on transfer (account_id, moved_at) where kind in ('grant', 'correction', 'takeback', 'payout', 'writeoff', 'purchase', 'refund');
