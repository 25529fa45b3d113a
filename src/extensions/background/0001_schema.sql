-- Files of callers: what they uploaded for batches, and what batches gave. Their bytes are in the store of results, by
-- this name.
create table stored_file (
  account_id text collate "C" not null,
  id text collate "C" not null,
  purpose text not null,
  filename text not null,
  bytes bigint not null,
  asset text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  -- Which key made a file: a restricted key sees only its own.
  key_id text collate "C",
  primary key (account_id, id)
);
create index stored_file_age on stored_file (expires_at);

-- Requests of a file that are worked off in the background. As of jobs, the row is the truth and the queue only says
-- when to look at it.
create table batch (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  endpoint text not null,
  input_file_id text not null,
  completion_window text not null,
  metadata jsonb,
  -- How long its results are kept.
  output_seconds integer not null,
  status text not null default 'validating'
    check (status in ('validating', 'failed', 'in_progress', 'finalizing', 'completed', 'expired', 'cancelling', 'cancelled')),
  -- Why it was not begun: [{code, line, message, param}].
  errors jsonb,
  output_file_id text,
  error_file_id text,
  total integer not null default 0,
  completed integer not null default 0,
  failed integer not null default 0,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  in_progress_at timestamptz,
  finalizing_at timestamptz,
  cancelling_at timestamptz,
  ended_at timestamptz,
  -- The fence, the lease and the next step: as of a job.
  version integer not null default 0,
  lease_until timestamptz,
  step_at timestamptz not null default now(),
  open boolean not null default true,
  calls_hash bytea,
  -- Of the request that ordered the work; its calls inherit them.
  labels jsonb,
  primary key (account_id, id)
) with (fillfactor = 70);
create index batch_open on batch (step_at) where open;

-- Responses that nobody waits for on a connection: what was asked, and what was answered.
create table background (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  product text not null,
  request text,
  status text not null default 'queued' check (status in ('queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled')),
  -- The response, whole, when it has ended.
  answer text,
  -- Its events are kept for those who follow it.
  streams boolean not null default false,
  -- What its vendor calls it, where that keeps it too.
  vendor_id text,
  -- Tries that a vendor failed.
  tries smallint not null default 0,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '1 day',
  ended_at timestamptz,
  version integer not null default 0,
  lease_until timestamptz,
  step_at timestamptz not null default now(),
  open boolean not null default true,
  -- What callers sent and were sent is stored encrypted (kernel/secret.ts), wherever it is stored.
  sealed_request bytea,
  sealed_answer bytea,
  -- The call that answered it: its usage row.
  call_id text collate "C",
  labels jsonb,
  primary key (account_id, id)
) with (fillfactor = 70);
create index background_age on background (created_at);
create index background_open on background (step_at) where open;

-- What was streamed of them: events in lines, the last of which has the number `last`.
create table background_event (
  account_id text collate "C" not null,
  id text collate "C" not null,
  last integer not null,
  events text,
  created_at timestamptz not null default now(),
  sealed bytea,
  primary key (account_id, id, last)
);
create index background_event_age on background_event (created_at);

-- Where each request of a batch stands in its file, and what became of it. Gone when the results are files.
create table batch_line (
  account_id text collate "C" not null,
  batch_id text collate "C" not null,
  number integer not null,
  custom_id text not null,
  first_byte bigint not null,
  bytes integer not null,
  -- Tries that a vendor failed.
  tries smallint not null default 0,
  -- A line of the results, or of the errors.
  result text,
  ok boolean,
  sealed bytea,
  -- The call that answered a line. When the lines go, a hash over the calls of those that were completed stays with the
  -- batch.
  call_id text collate "C",
  primary key (account_id, batch_id, number)
) with (fillfactor = 70);
create index batch_line_open on batch_line (account_id, batch_id, number) where ok is null;
