-- What vendors say they were used for, to be compared with recorded calls and costs. A line says what it knows: by the day (UTC), model and, where the vendor tells, credential.
create table vendor_report (
  id text collate "C" not null primary key,
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
  report_id text collate "C" not null references vendor_report (id) on delete cascade,
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
