-- Money that was paid for credits. This table is the truth: what a provider says of a payment changes a row, and the
-- row says what was granted for it.
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
  -- In the currency's smallest unit: what was asked for (null: nothing was), what was paid with its tax, and the tax in
  -- it.
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
create index payment_open on payment (state, id) where state in ('pending', 'quarantined');
-- However many processes renew a plan, its card is charged for one month at a time. A checkout that the customer has
-- left open does not count.
create unique index payment_plan on payment (account_id) where kind = 'plan' and state = 'pending' and detail ? 'charge';
create unique index payment_provider on payment (provider, provider_id);
-- However many processes see a low balance, one tops it up.
create unique index payment_top_up on payment (account_id) where kind = 'top_up' and state = 'pending';

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
  -- Whose customers paid; empty: the gateway's own.
  account_id text collate "C" not null,
  id text collate "C" not null,
  provider text not null,
  from_at timestamptz not null,
  until_at timestamptz not null,
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  checked integer not null default 0,
  differences jsonb not null default '[]',
  failure text,
  -- By which it is done once a night. Null: somebody asked for it.
  night date,
  primary key (account_id, id),
  unique (account_id, night)
);

-- Whom the invoices of an account are made out to.
create table billing_details (
  account_id text collate "C" primary key,
  details jsonb not null
);

-- A mailbox as a keyed digest, which outlives the person: who deletes their account and signs up again gets no second
-- starting credits.
create table starting_credit (
  mailbox bytea primary key,
  at timestamptz not null default now()
);

-- The plan of an account: its row stays when the plan has ended, because it says that there was a trial.
create table account_plan (
  account_id text collate "C" primary key,
  -- By its id in the catalog; null: it has ended, or its first month is not paid yet and never was.
  plan_id text,
  -- What it becomes at the period's end. Null: the same again; empty: it ends.
  next_plan text,
  -- Periods are whole months from the anchor: the first has the number 1.
  anchor timestamptz not null,
  period integer not null,
  period_end timestamptz not null,
  trial boolean not null default false,
  trialled boolean not null default false,
  -- The next period waits for its payment; so often it was asked for, and is asked for again then.
  due boolean not null default false,
  tries integer not null default 0,
  retry_at timestamptz,
  -- Limits of the account that the plan has set.
  limits text[] not null default '{}',
  -- Why the month that is due could not be charged.
  problem text
);
create index account_plan_end on account_plan (period_end) where plan_id is not null;

-- Codes that grant credits. A code is known by its hash only; it is shown once, when it is made.
create table code_batch (
  id text collate "C" primary key,
  name text not null,
  credits bigint not null,
  -- How many codes it has, and how often each can be redeemed, by as many accounts.
  codes integer not null,
  uses_max integer not null,
  -- Codes cannot be redeemed after this. Null: always.
  ends_at timestamptz,
  -- The credits end so many days after they were granted. Null: they do not.
  lot_days integer,
  products text[],
  priority smallint,
  created_at timestamptz not null default now(),
  created_by text not null
);

create table code (
  hash bytea primary key,
  batch_id text collate "C" not null,
  uses integer not null default 0
);
create index code_of_batch on code (batch_id);

-- An account redeems a code once.
create table code_use (
  account_id text collate "C" not null,
  hash bytea not null,
  batch_id text collate "C" not null,
  transfer_id text collate "C" not null,
  at timestamptz not null default now(),
  primary key (account_id, hash)
);
create index code_use_of_batch on code_use (batch_id);
