-- What the last free probe of each vendor found, for all processes. Its lease keeps them to one probe at a time, and
-- its version fences the result.
create table vendor_probe (
  vendor text collate "C" primary key,
  version integer not null default 0,
  every_seconds integer not null,
  lease_until timestamptz,
  next_at timestamptz not null default now(),
  -- Null: the first one has not ended yet.
  probed_at timestamptz,
  state text not null default 'waiting' check (state in ('waiting', 'answering', 'failing', 'rejected', 'unsupported')),
  since timestamptz not null default now(),
  message text not null default '',
  -- In a row.
  failures integer not null default 0,
  latency_ms integer,
  -- The address at which the vendor has answered probes: only there does an answer that is no list count against it.
  listed_url text
);
