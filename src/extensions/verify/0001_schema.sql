-- How far `ledger verify` has come, by account: what was written before a moment of the database's clock has been
-- checked, and sums to this. An account in which something was wrong has no row, and is read from its beginning again.
create table verified (
  account_id text collate "C" primary key,
  -- The start of an hour, so that the hours' sums before it are complete.
  until timestamptz not null,
  -- What was written since has this id or a greater one, unless it came very late; the sums tell if it did.
  oldest text collate "C" not null,
  posted bigint not null,
  settled bigint not null
);

-- The runs of `ledger verify`, the last of them; one at a time.
create table verification (
  id text collate "C" primary key,
  whole boolean not null,
  started_at timestamptz not null default now(),
  -- While it runs it says so; a silent one has died with its process.
  seen_at timestamptz not null default now(),
  ended_at timestamptz,
  accounts_done bigint not null default 0,
  accounts_total bigint not null default 0,
  checked jsonb not null default '{}',
  problems jsonb not null default '[]',
  -- Why it could not come to an end.
  failure text,
  -- The newest row of the audit trail that it saw: whoever cuts off the end of the trail does not know of it.
  audit_id text collate "C"
);
