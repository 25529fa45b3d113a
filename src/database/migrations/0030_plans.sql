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
  limits text[] not null default '{}'
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
