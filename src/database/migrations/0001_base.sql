-- Ids are text that sorts by time (see kernel/world.ts), compared byte by byte. Amounts are millionths of a credit.

create table account (
  id text collate "C" primary key,
  name text not null,
  posted bigint not null default 0,
  held bigint not null default 0,
  -- When its last transfer was written. Each comes after the one before it, whatever the clock says: see transfer.
  moved_at timestamptz,
  limits jsonb not null default '{}',
  created_at timestamptz not null default now(),
  -- It is moved to another database (process/move.ts): while this lies ahead, calls and changes are refused here.
  frozen_until timestamptz,
  -- Searched for in lower case; kept, because lowering 100,000 names takes longer than searching them.
  search text generated always as (lower(name)) stored,
  -- And so no balance below zero. Read anew by every statement, and therefore short.
  check (held >= 0 and held <= posted)
) with (fillfactor = 50);

-- Holds that have not resolved yet. Resolving deletes the row and writes its transfer in the same statement.
create table hold (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  process_id text collate "C" not null,
  -- A job's hold outlives the process that made it.
  job boolean not null default false,
  amount bigint not null,
  product text not null,
  catalog_version integer not null,
  -- What limits on tokens counted for it.
  tokens bigint not null default 0,
  created_at timestamptz not null default now(),
  primary key (account_id, id)
  -- Empty one moment and full the next: whoever gave its empty pages back to the disk would lock it for that.
) with (vacuum_truncate = off);

-- Credits that a process holds in advance, for the calls of one key. It admits calls against them by itself; each settlement takes its charge
-- out of the lease. They are part of what the account has held, and go back like a hold when their process is silent.
create table lease (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  process_id text collate "C" not null,
  amount bigint not null,
  -- The account is tight: since then its process is asked to give back what no call needs.
  recalled_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (account_id, id)
) with (fillfactor = 50, vacuum_truncate = off);
create index lease_process on lease (process_id);

-- Every movement of money, for ever. A resolved hold's transfer has the hold's id, so a hold resolves once.
create table transfer (
  account_id text collate "C" not null,
  id text collate "C" not null,
  -- grant, takeback, settled, released or expired. What is written here is proved by `ledger verify`: a check is read anew by every statement,
  -- and four of them cost as much as the rest of a small settlement.
  kind text not null,
  -- What the account paid, or was given.
  amount bigint not null,
  -- What the account could not pay: the platform's.
  loss bigint not null default 0,
  held bigint not null default 0,
  note text,
  actor text,
  at timestamptz not null default now(),
  -- Its place in the statement, and what the account had after it: written with the account locked, so that no two movements of an account
  -- have the same moment and none ever comes before one that can be read. Null where nothing moved before 0007.
  moved_at timestamptz,
  balance bigint,
  primary key (account_id, id)
);
create index transfer_moved on transfer (account_id, moved_at) where moved_at is not null;
-- Credits that were given or taken back are few among charges.
create index transfer_given on transfer (account_id, moved_at) where kind <> 'settled' and moved_at is not null;

-- Everything that is held, by calls and by processes.
create view held as
  select account_id, id, amount from hold union all select account_id, id, amount from lease;

-- The double entry of each transfer. Sums to zero by transfer, and so on the whole.
create view entry as
  select t.account_id, t.id as transfer_id, t.at, leg.account, leg.amount
  from transfer t
  cross join lateral (values
    ('account:' || t.account_id,
     case t.kind when 'grant' then t.amount when 'takeback' then -t.amount when 'settled' then -t.amount else 0 end),
    ('platform:grants',
     case t.kind when 'grant' then -t.amount when 'takeback' then t.amount else 0 end),
    ('platform:loss', -t.loss),
    ('platform:revenue', case t.kind when 'settled' then t.amount + t.loss else t.loss end)
  ) as leg (account, amount)
  where leg.amount <> 0;

-- One row per call that made a hold, written by the statement that resolves it. The ids carry the time, so ranges of
-- ids are ranges of time: the table is partitioned by them and trimmed by dropping partitions.
create table usage (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  product text not null,
  endpoint text not null,
  outcome text not null,
  status integer not null,
  charged bigint not null,
  loss bigint not null default 0,
  held bigint not null,
  catalog_version integer not null,
  -- The arithmetic: [unit, quantity, rate per million]; the charge is the sum of the products, rounded up once.
  lines jsonb not null,
  estimated boolean not null default false,
  stream boolean not null default false,
  route smallint not null default 0,
  duration_ms integer not null default 0,
  first_byte_ms integer not null default 0,
  -- How a call went that failed or needed more than one attempt: `Story` in ledger/views.ts. Null for all others, which have nothing to explain.
  story jsonb,
  -- What the vendor took for it, in micro-credits, by the catalogue's cost of the route at that moment. Null: not known.
  cost bigint,
  -- Which of the vendor's credentials it used, by its name; `own`: the account's own. Null: the only one.
  credential text,
  -- Of a call by an agent: its session, or what its program calls itself.
  client text not null default '',
  at timestamptz not null default now(),
  primary key (account_id, id)
) partition by range (id);
create table usage_rest partition of usage default;
create index usage_client on usage (account_id, client, id) where client <> '';

-- Settlements that leases cover, on their way into the books: written before the caller has its last byte, and booked with many others a moment
-- later, by functions/post.sql. First by process, because each books its own; in the order of ids, so that old and new ones do not mix.
create table journal (
  like usage including defaults,
  process_id text collate "C" not null,
  lease_id text collate "C" not null,
  -- What limits on tokens counted for it, and in which second.
  tokens bigint not null,
  second bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  primary key (process_id, id)
) with (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0);

-- Calls that were refused before they held anything. Kept for days, a bounded number for each key: ledger/refusals.ts.
create table refusal (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  product text not null,
  endpoint text not null,
  status integer not null,
  fault text not null,
  message text not null,
  -- How many calls it stands for.
  count integer not null,
  at timestamptz not null default now(),
  primary key (account_id, id)
);
create index refusal_age on refusal (id);

-- Whose requests and answers are kept, which is nobody's by itself: of an account, or of the key that `scope` names.
create table content_rule (
  account_id text collate "C" not null,
  scope text collate "C" not null,
  days integer not null,
  -- Of each body.
  bytes integer not null,
  primary key (account_id, scope)
);
-- What was kept, encrypted by the gateway: admission/contents.ts.
create table content (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  -- Null: it was removed, and what is still on its way must not come after that.
  sealed bytea,
  at timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (account_id, id)
);
create index content_age on content (expires_at);
create index content_call on content (id);

create table usage_hour (
  account_id text collate "C" not null,
  hour timestamptz not null,
  product text collate "C" not null,
  key_id text collate "C" not null,
  requests bigint not null,
  errors bigint not null,
  charged bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  duration_ms bigint not null,
  primary key (account_id, hour, product, key_id)
) with (fillfactor = 70);
-- Rows are made in the order of their hours, so that this costs next to nothing; for sums over all accounts.
create index usage_hour_time on usage_hour using brin (hour);

-- The state of limits, one row per scope that has any: `account`, the id of a key, and for no account `system` and its shares.
-- The functions in limits.sql read and write it.
create table limited (
  account_id text collate "C" not null,
  scope text collate "C" not null,
  limits jsonb not null,
  held bigint not null default 0,
  open_calls integer not null default 0,
  second bigint not null default 0,
  requests bigint[] not null default '{}',
  requests_used bigint not null default 0,
  tokens bigint[] not null default '{}',
  tokens_used bigint not null default 0,
  day date not null default (now() at time zone 'UTC')::date,
  day_spent bigint not null default 0,
  month date not null default date_trunc('month', now() at time zone 'UTC')::date,
  month_spent bigint not null default 0,
  total_spent bigint not null default 0,
  -- Since when it counts all that it limits of a minute: what began before was not counted here, and is not taken off.
  since timestamptz not null default '-infinity',
  primary key (account_id, scope)
) with (fillfactor = 50, vacuum_truncate = off);

-- Those that a settlement concerns. One that limits only requests is none of its business, and not looked for.
create index limited_settled on limited (account_id) where limits - 'requestsPerMinute' <> '{}';

create table idempotency (
  account_id text collate "C" not null,
  key text collate "C" not null,
  request_hash text not null,
  hold_id text collate "C" not null,
  -- Null while the call runs.
  status integer,
  content_type text,
  body bytea,
  -- Its call's process went silent. Whoever comes with the key again may have it, unless the call ends after all.
  freed boolean not null default false,
  created_at timestamptz not null default now(),
  primary key (account_id, key)
);
create index idempotency_hold on idempotency (account_id, hold_id);
create index idempotency_age on idempotency (created_at);

create table process (
  id text collate "C" primary key,
  started_at timestamptz not null default now(),
  heartbeat_at timestamptz not null default now(),
  -- What it last told operators of its calls and vendors, because one asked: pipeline/reports.ts.
  report jsonb,
  reported_at timestamptz
);

-- Requests to vendors by the hour, over all processes and accounts: routing/vendor-hours.ts. Kept for days.
create table vendor_hour (
  hour timestamptz not null,
  vendor text not null,
  product text not null,
  requests bigint not null,
  errors bigint not null,
  -- How many answers took how long: each place is longer than the one before by a fixed ratio.
  latencies integer[] not null,
  primary key (hour, vendor, product)
);

-- What calls brought and what vendors took for them, over all accounts: ledger/margins.ts. Kept for weeks.
create table margin_hour (
  hour timestamptz not null,
  product text not null,
  route smallint not null,
  calls bigint not null,
  charged bigint not null,
  -- What was charged for the calls whose cost is known.
  costed bigint not null,
  cost bigint not null,
  primary key (hour, product, route)
);

create table api_key (
  id text collate "C" primary key,
  account_id text collate "C" not null references account,
  name text not null,
  digest bytea not null unique,
  prefix text not null,
  last4 text not null,
  models text[],
  ip_ranges text[],
  limits jsonb not null default '{}',
  -- Whether its calls may be answered from kept answers; null: as the model says.
  keeps_answers boolean,
  expires_at timestamptz,
  revoked_at timestamptz,
  replaced_by text,
  -- Of a connection that somebody allowed a program by OAuth: nobody has the key's value, only the tokens of this grant stand for it.
  grant_id text unique,
  -- What the program calls itself.
  client text,
  last_used_at timestamptz,
  created_at timestamptz not null default now()
);
create index api_key_account on api_key (account_id, id);

-- What the library for OAuth keeps: clients, grants, codes, tokens, consents that are under way. By a digest of the id, which may be the secret itself.
create table oauth_object (
  model text not null,
  digest bytea not null,
  payload jsonb not null,
  grant_id text,
  consumed_at timestamptz,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  primary key (model, digest)
);
create index oauth_object_grant on oauth_object (grant_id) where grant_id is not null;
create index oauth_object_age on oauth_object (expires_at);
-- How many programs registered lately, which is asked before each registration.
create index oauth_object_client on oauth_object (created_at) where model = 'Client';

create table catalog_version (
  version integer primary key,
  document text not null,
  note text not null default '',
  actor text not null,
  at timestamptz not null default now()
);

-- Vendors' credentials, encrypted by the gateway.
create table credential (
  name text primary key,
  sealed bytea not null,
  updated_at timestamptz not null default now()
);

-- Keys at vendors that accounts have brought themselves, encrypted by the gateway.
create table own_key (
  account_id text collate "C" not null,
  vendor text not null,
  sealed bytea not null,
  -- Its last characters, by which its owner recognises it.
  last4 text,
  -- Where it fails, calls may go by the gateway's own credential, at the full price.
  fallback boolean not null default false,
  updated_at timestamptz not null default now(),
  primary key (account_id, vendor)
);

create table audit (
  id text collate "C" primary key,
  at timestamptz not null default now(),
  actor text not null,
  action text not null,
  object text not null,
  ip text,
  request_id text,
  detail jsonb not null default '{}',
  -- SHA-256 over the previous row's hash and this row, so that a removed or changed row shows.
  hash bytea not null
);

create table setting (
  name text primary key,
  value text not null
);

-- What other processes must notice: a counter a topic, bumped by the transaction that makes the change.
create table change (
  topic text primary key,
  version bigint not null default 1
);

-- What the job engine keeps of a job besides what its creation fixed. The row is the truth; the queue only says when to look
-- at it next. Every time here is the database's, so that no machine's clock can end a job or steal one.
create table job (
  id text collate "C" primary key,
  account_id text collate "C" not null,
  key_id text collate "C" not null,
  hold_id text collate "C" not null unique,
  product text not null,
  catalog_version integer not null,
  status text not null default 'PENDING'
    check (status in ('PENDING', 'CONNECT', 'PROCESSING', 'COMPLETED', 'FAILED', 'CANCELLED')),
  input text not null,
  -- What is sent upstream, and where: fixed at creation.
  request text not null,
  callback_url text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  completed_at timestamptz,
  -- The fence: whoever works on a job has raised this, and writes only while it still has that value.
  version integer not null default 0,
  -- Until when the process that raised it is believed to be working.
  lease_until timestamptz,
  -- When a step is due. A row whose time has passed without a step is queued anew. A new row's first step is queued by its
  -- creator; should that one have died, or never have learned that the row was made, others take over after this while.
  step_at timestamptz not null default now() + interval '15 seconds',
  -- Something is still to be done: to move it, to settle it, to tell about it, or to look whether the vendor changed its mind.
  open boolean not null default true,
  -- Steps in a row that failed for no reason of the vendor's.
  attempts smallint not null default 0,
  -- Looks in a row that found no such task.
  misses smallint not null default 0,
  deadline_at timestamptz not null default now() + interval '26 hours',
  -- Set before a submission leaves and cleared when it was certainly refused. Set and without a task: nobody knows.
  submit_started_at timestamptz,
  submissions smallint not null default 0,
  vendor text,
  route smallint not null default 0,
  -- Which of the vendor's credentials made the task, by its name: only that one may read it. Null: the only one.
  credential text,
  task_id text,
  -- How it ends. Written before the money moves, which moves before `status` says it; so each step can be repeated.
  verdict text check (verdict in ('COMPLETED', 'FAILED', 'CANCELLED')),
  delivered jsonb,
  error jsonb,
  -- Ids of stored files; addresses are made when somebody asks.
  files jsonb,
  -- When the caller's own address was told, or given up.
  called_back_at timestamptz,
  -- After an ending that was ours to declare: until when the task is still looked at.
  watch_until timestamptz,
  -- What an operator should know, such as a success that came after the refund.
  anomaly text
) with (fillfactor = 70); -- A step changes none of the indexed columns, and needs no index entry when its page has room.
-- A hold's id sorts by time; a job's own id must not tell any.
create index job_listed on job (account_id, hold_id);
create index job_open on job (id) where open;
create index job_failed on job (completed_at) where status = 'FAILED';

-- Requests too large to travel with the reservation: pictures that were sent inline. Gone when the vendor has them.
create table job_body (
  job_id text collate "C" primary key,
  body text not null,
  at timestamptz not null default now()
);

-- Who may use the console: people, the accounts they belong to, their sessions, and what keeps guessing slow.

create table person (
  id text collate "C" primary key,
  -- Lower case, as it is looked up.
  email text not null unique,
  operator boolean not null default false,
  -- `$argon2id$v=19$m=…,t=…,p=…$salt$hash`
  password text not null,
  created_at timestamptz not null default now()
);

create table membership (
  account_id text collate "C" not null references account,
  person_id text collate "C" not null references person on delete cascade,
  role text not null check (role in ('owner', 'member')),
  created_at timestamptz not null default now(),
  primary key (person_id, account_id)
);
create index membership_account on membership (account_id);

-- A link that somebody was given: to join an account, to become an operator, or to choose a new password. Kept as a digest, used once.
create table invite (
  digest bytea primary key,
  kind text not null check (kind in ('member', 'operator', 'password')),
  account_id text collate "C" references account,
  email text not null,
  role text check (role in ('owner', 'member')),
  -- As the audit names who made it: what they made ends with their own rights.
  made_by text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  check ((kind = 'member') = (account_id is not null and role is not null))
);
create index invite_age on invite (expires_at);

-- The cookie holds 32 random bytes; the row holds their SHA-256.
create table session (
  id text collate "C" primary key,
  digest bytea not null unique,
  person_id text collate "C" not null references person on delete cascade,
  ip text not null,
  user_agent text not null,
  created_at timestamptz not null default now(),
  seen_at timestamptz not null default now()
);
create index session_person on session (person_id);

-- Tries to log in, by e-mail address (as a digest, whether anyone has it or not) and by network address.
create table login_attempt (
  subject text collate "C" primary key,
  tries integer not null,
  since timestamptz not null default now(),
  blocked_until timestamptz not null default now()
);
create index login_attempt_age on login_attempt (blocked_until);

-- The Idempotency-Keys with which credits were given or taken back, and what was answered. Kept for ever, as the money is: who
-- repeats a payment's message days later must not pay twice.
create table grant_key (
  account_id text collate "C" not null references account,
  key text collate "C" not null,
  request_hash text not null,
  answer jsonb not null,
  at timestamptz not null default now(),
  primary key (account_id, key)
);
-- Answers that a vendor keeps for a caller (stored responses, threads): whose they are, and which vendor has them. All accounts
-- share the vendor's credentials, so that this is what keeps them apart.
create table kept_answer (
  account_id text collate "C" not null,
  -- The vendor's own.
  id text collate "C" not null,
  vendor text not null,
  product text not null,
  -- Which of the vendor's credentials made it, by its name. Null: the only one.
  credential text,
  created_at timestamptz not null default now(),
  primary key (account_id, id)
);
-- Conversations stay longer.
create index kept_answer_age on kept_answer (created_at) where id not like 'conv%';
create index kept_answer_conversation_age on kept_answer (created_at) where id like 'conv%';

-- Files of callers: what they uploaded for batches, and what batches gave. Their bytes are in the store of results, by this name.
create table stored_file (
  account_id text collate "C" not null,
  id text collate "C" not null,
  purpose text not null,
  filename text not null,
  bytes bigint not null,
  asset text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (account_id, id)
);
create index stored_file_age on stored_file (expires_at);

-- Requests of a file that are worked off in the background. As of jobs, the row is the truth and the queue only says when to look at it.
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
  step_at timestamptz not null default now() + interval '15 seconds',
  open boolean not null default true,
  primary key (account_id, id)
) with (fillfactor = 70);
create index batch_open on batch (step_at) where open;

-- Responses that nobody waits for on a connection: what was asked, and what was answered.
create table background (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  product text not null,
  request text not null,
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
  step_at timestamptz not null default now() + interval '15 seconds',
  open boolean not null default true,
  primary key (account_id, id)
) with (fillfactor = 70);
create index background_open on background (step_at) where open;
create index background_age on background (created_at);

-- What was streamed of them: events in lines, the last of which has the number `last`.
create table background_event (
  account_id text collate "C" not null,
  id text collate "C" not null,
  last integer not null,
  events text not null,
  created_at timestamptz not null default now(),
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
  primary key (account_id, batch_id, number)
) with (fillfactor = 70);
create index batch_line_left on batch_line (account_id, batch_id, number) where result is null;

-- Alerts of an account, or with an empty scope of the gateway: what fired, to whom it was told, and what is true now, so that each crossing
-- fires once.
create table alert (
  id text collate "C" primary key,
  scope text collate "C" not null,
  rule text not null,
  subject text not null,
  level text not null,
  title text not null,
  message text not null,
  at timestamptz not null default now(),
  read_at timestamptz
);
create index alert_scope on alert (scope, id);
create index alert_unread on alert (scope) where read_at is null;

create table alert_delivery (
  id text collate "C" primary key,
  alert_id text collate "C" not null references alert on delete cascade,
  -- Its place among the receivers in the settings.
  receiver smallint not null,
  kind text not null,
  -- To whom, as far as it may be shown.
  shown text,
  state text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
  tries integer not null default 0,
  error text,
  at timestamptz not null default now()
);
create index alert_delivery_alert on alert_delivery (alert_id);
create index alert_delivery_waiting on alert_delivery (at) where state = 'waiting';

create table alert_state (
  scope text collate "C" not null,
  rule text not null,
  subject text not null,
  level text not null,
  rank integer not null,
  at timestamptz not null default now(),
  primary key (scope, rule, subject)
);

-- Rules and receivers, encrypted by the gateway.
create table alert_setting (
  scope text collate "C" primary key,
  sealed bytea not null
);

-- How far `ledger verify` has come, by account: what was written before a moment of the database's clock has been checked, and
-- sums to this. An account in which something was wrong has no row, and is read from its beginning again.
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

-- Accounts that came from another database or went to one.
create table account_move (
  account_id text collate "C" primary key,
  -- Of the move that last touched it: whoever is slower finds another one's, and stops.
  move_id text collate "C" not null,
  -- Here: leaving, gone, arriving or arrived.
  state text not null,
  -- The other database, without a password.
  other text not null,
  at timestamptz not null default now()
);
