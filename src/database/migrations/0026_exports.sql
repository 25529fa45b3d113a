-- Usage rows in the order in which they can be read to the end: a call's id says when it began, and its row is committed when it ends, so neither ids nor
-- times say what a reader has not seen yet. `posting` is the number of the transaction that wrote the row. Once no transaction with a smaller number runs
-- any more, no row with a smaller number can appear (usage_horizon). Rows that are older than this column have none; a backfill by date sends them.
-- Numbers of transactions begin anew in a database that was restored from a backup, so an offset is added, which migrate.ts raises beyond every known number.
create function usage_offset() returns bigint language sql immutable as 'select 0::bigint';
create function usage_posting() returns bigint language sql volatile as 'select pg_current_xact_id()::text::bigint + usage_offset()';
create function usage_horizon() returns bigint language sql stable as 'select pg_snapshot_xmin(pg_current_snapshot())::text::bigint + usage_offset()';

-- Without a default at first: existing rows are not rewritten.
alter table usage add column posting bigint;
alter table usage alter column posting set default usage_posting();
create index usage_posting on usage (posting) where posting is not null;

-- Where usage goes: one row for each destination, which is also its work row (jobs/work.ts). The cursor is the last usage row that the receiver accepted.
create table export (
  account_id text collate "C" not null default '',
  id text collate "C" not null primary key,
  name text not null,
  kind text not null,
  settings jsonb not null,
  version integer not null default 0,
  lease_until timestamptz,
  step_at timestamptz not null default now(),
  open boolean not null default true,
  cursor_posting bigint not null,
  cursor_account text collate "C" not null,
  cursor_id text collate "C" not null,
  -- {"number", "from", "to", "id", "account", "sent"}: a range of days that is sent beside what is new, and its own cursor.
  backfill jsonb,
  sent bigint not null default 0,
  skipped bigint not null default 0,
  -- Attempts in a row that were not accepted.
  failures integer not null default 0,
  status integer,
  error text,
  sent_at timestamptz,
  paused_at timestamptz,
  created_at timestamptz not null default now()
);
create unique index export_name on export (name);
create index export_open on export (step_at) where open;

-- By which name a destination knows an account, where that is not the account's id: a customer at Stripe, a subscription at Lago.
create table export_customer (
  export_id text collate "C" not null references export (id) on delete cascade,
  account_id text collate "C" not null,
  customer text not null,
  primary key (export_id, account_id)
);
