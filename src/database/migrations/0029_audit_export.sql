-- Where the audit log is exported to, and how far that has come: one row at most, worked on as all background work. The address and its secret are sealed.
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
