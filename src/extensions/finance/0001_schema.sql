-- By which name a destination knows an account, where that is not the account's id: a customer at Stripe, a
-- subscription at Lago.
create table export_customer (
  export_id text collate "C" not null references export on delete cascade,
  account_id text collate "C" not null,
  customer text not null,
  primary key (export_id, account_id)
);

-- Where the audit log is exported to, and how far that has come: one row at most, worked on as all background work. The
-- address and its secret are sealed.
create table audit_export (
  account_id text collate "C" not null default '' check (account_id = ''),
  id text collate "C" not null default 'audit' check (id = 'audit'),
  version integer not null default 0,
  lease_until timestamptz,
  step_at timestamptz not null default now(),
  open boolean not null default true,
  sealed bytea not null,
  wait_seconds integer not null,
  -- The last audit row that the receiver accepted.
  sent_until text collate "C" not null default '',
  sent bigint not null default 0,
  sent_at timestamptz,
  failures integer not null default 0,
  error text,
  primary key (account_id, id)
);

-- What vendors say they were used for, to be compared with recorded calls and costs. A line says what it knows: by the
-- day (UTC), model and, where the vendor tells, credential.
create table vendor_report (
  id text collate "C" primary key,
  vendor text not null,
  source text not null,
  from_day date not null,
  to_day date not null,
  currency text not null,
  -- What a unit of the currency is in credits.
  credits_per_unit numeric not null,
  created_at timestamptz not null default now()
);

create table vendor_report_line (
  report_id text collate "C" not null references vendor_report on delete cascade,
  number integer not null,
  day date not null,
  model text not null,
  -- Null: of all credentials.
  credential text,
  requests bigint,
  input_tokens bigint,
  output_tokens bigint,
  -- In the report's currency.
  cost numeric,
  primary key (report_id, number)
);
