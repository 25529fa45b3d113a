-- Ids are text that sorts by time (see kernel/world.ts), compared byte by byte. Amounts are millionths of a credit.

create table account (
  id text collate "C" primary key,
  name text not null,
  posted bigint not null default 0,
  held bigint not null default 0,
  -- When its last transfer was written. Each comes after the one before it, whatever the clock says: see transfer.
  moved_at timestamptz,
  created_at timestamptz not null default now(),
  -- It is moved to another database (process/move.ts): while this lies ahead, calls and changes are refused here.
  frozen_until timestamptz,
  -- Searched for in lower case; kept, because lowering 100,000 names takes longer than searching them.
  search text generated always as (lower(name)) stored,
  -- The hash of its last transfer, which the hash of the next one covers.
  chain bytea,
  -- Whether calls are served: open, suspended or closed (admission/accounts.ts), why, and since when. Functions check
  -- it with the account locked.
  status text not null default 'open',
  status_reason text,
  status_at timestamptz,
  -- Whether some of its balance lies in lots.
  has_lots boolean not null default false,
  -- The version of an account's budgets, which a process must know that makes a hold; 0: there never were any. And how
  -- many counters they have.
  budgets integer not null default 0,
  budget_values integer not null default 0,
  -- How many claims were made on it: see claim.
  claims integer not null default 0,
  -- The ledger that has it (TOLLGATE_LEDGERS). Null: this database. Of the others this row has what people are shown of
  -- an account, and what memberships refer to; nothing is ever posted to it.
  ledger text,
  -- It is about to change: processes ask for it with every call.
  is_moving boolean not null default false,
  -- Where it must stay (TOLLGATE_LEDGERS). Null: anywhere.
  region text,
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
  -- From which lots a hold took how much, in the order in which its charge is taken: [[lot, amount], …]; an empty lot
  -- is plain credit. Null: all of it.
  lots jsonb,
  -- The budgets that a call counts for, as the scopes of their counters. Null: none.
  scopes jsonb,
  -- The account's claims when it was made: what it releases goes to the later ones.
  claims integer not null default 0,
  -- Of a call that a customer of the account pays: {id, list, amount}, the purse, the version of the price list, and
  -- what the purse holds (extensions/purses/functions.sql).
  purse jsonb,
  primary key (account_id, id)
  -- Empty one moment and full the next: whoever gave its empty pages back to the disk would lock it for that.
) with (vacuum_truncate = off);

-- Credits that a process holds in advance, for the calls of one key. It admits calls against them by itself; each
-- settlement takes its charge out of the lease. They are part of what the account has held, and go back like a hold
-- when their process is silent.
create table lease (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  process_id text collate "C" not null,
  amount bigint not null,
  -- The account is tight: since then its process is asked to give back what no call needs.
  recalled_at timestamptz,
  created_at timestamptz not null default now(),
  -- What running calls may spend of a lease. The rest of it is available to whoever looks, and given up before anybody
  -- is refused.
  in_use bigint not null default 0,
  scopes jsonb,
  -- What a lease was given of the limits and budgets that count requests and tokens, and has neither used nor given
  -- back: {second: [requests, tokens]}, by the second to which it was counted. It comes off the counters when the lease
  -- ends.
  slices jsonb,
  -- Its process admits no more calls by it, and said so.
  retired boolean not null default false,
  -- As of a hold.
  claims integer not null default 0,
  primary key (account_id, id)
) with (fillfactor = 50, vacuum_truncate = off);
create index lease_process on lease (process_id);

-- Every movement of money. A resolved hold's transfer has the hold's id, so a hold resolves once. Partitioned like
-- usage. When a month is in the archive, its calls leave, and what was given or taken back stays, in the partition
-- `transfer_kept` (extensions/archive).
create table transfer (
  account_id text collate "C" not null,
  id text collate "C" not null,
  -- grant, takeback, settled, released or expired. What is written here is proved by `ledger verify`: a check is read
  -- anew by every statement, and four of them cost as much as the rest of a small settlement.
  kind text not null,
  -- What the account paid, or was given.
  amount bigint not null,
  -- What the account could not pay: the platform's.
  loss bigint not null default 0,
  held bigint not null default 0,
  note text,
  actor text,
  at timestamptz not null default now(),
  -- Its place in the statement, and what the account had after it: written with the account locked, so that no two
  -- movements of an account have the same moment and none ever comes before one that can be read.
  moved_at timestamptz,
  balance bigint,
  hash bytea,
  -- What a transfer moved of lots: {lot: amount, …}, negative for what was taken. Null: of none. Part of the chain's
  -- hash where it is not.
  lots jsonb,
  primary key (account_id, id)
) partition by range (id);
create table transfer_rest partition of transfer default;
-- Credits that were given or taken back are few among charges.
create index transfer_given on transfer (account_id, moved_at)
  where kind in ('grant', 'correction', 'takeback', 'payout', 'writeoff', 'purchase', 'refund', 'plan', 'code', 'expiry');
create index transfer_lots on transfer (account_id, id) where lots is not null;
create index transfer_moved on transfer (account_id, moved_at) where moved_at is not null;

-- What an account's transfers of a month come to that are in the archive. Each is signed together with the one before
-- it.
create table ledger_checkpoint (
  account_id text collate "C" not null,
  month date not null,
  -- Of its last transfer in that month: when it moved, what the account had then, and its hash.
  moved_at timestamptz not null,
  balance bigint not null,
  hash bytea not null,
  -- [[kind, transfers, amount, loss], …]
  sums jsonb not null,
  -- What calls moved of lots: [[lot, amount], …]
  lots jsonb not null,
  -- Where in the archive they are.
  folder text not null,
  signature bytea not null,
  primary key (account_id, month)
);
create index ledger_checkpoint_folder on ledger_checkpoint (folder);

-- The months of the archive. While one is written, its process says so; a silent one has died with it.
create table ledger_archive (
  month date primary key,
  folder text not null,
  seen_at timestamptz not null default now(),
  accounts bigint not null default 0,
  transfers bigint not null default 0,
  bytes bigint not null default 0,
  -- [{name, rows, bytes, sha256}, …]
  files jsonb not null default '[]',
  -- Null: it is not complete yet, and why it could not be completed.
  archived_at timestamptz,
  failure text,
  -- When it was last read again, and what was wrong.
  checked_at timestamptz,
  problems jsonb not null default '[]'
);

-- Usage rows in the order in which they can be read to the end: a call's id says when it began, and its row is
-- committed when it ends, so neither ids nor times say what a reader has not seen yet. `posting` is the number of the
-- transaction that wrote the row. Once no transaction with a smaller number runs any more, no row with a smaller number
-- can appear (usage_horizon).
-- Numbers of transactions begin anew in a database that was restored from a backup, so an offset is added, which
-- migrate.ts raises beyond every known number.
create function usage_offset() returns bigint language sql immutable as 'select 0::bigint';
create function usage_posting() returns bigint language sql volatile as 'select pg_current_xact_id()::text::bigint + usage_offset()';
create function usage_horizon() returns bigint language sql stable as 'select pg_snapshot_xmin(pg_current_snapshot())::text::bigint + usage_offset()';

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
  -- How a call went that failed or needed more than one attempt: `AttemptLog` in ledger/views.ts. Null for all others,
  -- which have nothing to explain.
  attempt_log jsonb,
  -- What the vendor took for it, in micro-credits, by the catalogue's cost of the route at that moment. Null: not
  -- known.
  cost bigint,
  -- Which of the vendor's credentials it used, by its name; `own`: the account's own. Null: the only one.
  credential text,
  -- Of a call by an agent: its session, or what its program calls itself.
  client text not null default '',
  at timestamptz not null default now(),
  attributes jsonb,
  -- What decided the cost besides `lines` and `attributes`, which decided the price: {units: {output: 1200},
  -- attributes: {resolution: "2k"}}. Nearly always null.
  cost_basis jsonb,
  -- Which vendor answered a call, or was tried last: calls are sought, counted and timed by it.
  vendor text,
  -- Who spent a call and for what: `user`, `session` and the caller's tags, by name.
  labels jsonb,
  posting bigint default usage_posting(),
  primary key (account_id, id)
) partition by range (id);
create table usage_rest partition of usage default;
-- Calls that failed at a vendor, by their ids, which are times: few, so the index is small, and calls that succeed do
-- not write it.
create index usage_attempts on usage (id) where attempt_log is not null;
create index usage_charged on usage (account_id, charged, id);
create index usage_client on usage (account_id, client, id) where client <> '';
-- The slowest and the dearest calls of an account, page by page, without reading all of them.
create index usage_duration on usage (account_id, duration_ms, id);
create index usage_posting on usage (posting) where posting is not null;
-- Calls by their ids alone, which are times: one of them, and those of all accounts together. New ones come at the end,
-- where an index costs least. The calls of an agent's run.
create index usage_run on usage (account_id, (labels ->> 'session'), id) where labels ->> 'session' is not null;
create index usage_time on usage (id);

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
create table recording_policy (
  account_id text collate "C" not null,
  scope text collate "C" not null,
  days integer not null,
  -- Of each body.
  bytes integer not null,
  primary key (account_id, scope)
);

-- What was kept, encrypted by the gateway: admission/contents.ts.
create table recording (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  -- Null: it was removed, and what is still on its way must not come after that.
  sealed bytea,
  at timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (account_id, id)
);
create index recording_age on recording (expires_at);
create index recording_call on recording (id);

-- Sums by the hour, written by the statement that posts calls. After 60 days the hours of a day become one row at its
-- noon, UTC (ledger/fold.ts).
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
  sealed bytea,
  primary key (account_id, key)
);
create index idempotency_age on idempotency (created_at);
-- Answers to calls of responses in the background, among which those are looked for whose response was deleted.
create index idempotency_background on idempotency (account_id, key) where key like ' resp_bg%';
create index idempotency_hold on idempotency (account_id, hold_id);

create table gateway_instance (
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
  -- Whether its calls may be answered from kept answers; null: as the model says.
  response_cache boolean,
  expires_at timestamptz,
  revoked_at timestamptz,
  replaced_by text,
  -- Of a connection that somebody allowed a program by OAuth: nobody has the key's value, only the tokens of this grant
  -- stand for it.
  grant_id text unique,
  -- What the program calls itself.
  client text,
  last_used_at timestamptz,
  created_at timestamptz not null default now(),
  -- Which endpoints a key may use; null: every endpoint.
  endpoints text[],
  -- Names of labels that calls of a key must carry; null: none.
  required_labels text[],
  -- The first of the keys that a key replaced: a budget goes on when a key is rotated. Null: it replaced none.
  first_id text collate "C",
  -- Where a key belongs, a team or a project, and whose it is. Its calls carry that as labels, so that they keep it
  -- when the key moves.
  team_id text collate "C",
  member_id text collate "C",
  -- Where the calls of a key may go: vendors, regions, and the highest price. Null: anywhere.
  routing jsonb,
  -- Who made a key, and so knows its value: only keys that people made for themselves use their sign-ins. Null: a token
  -- of nobody.
  maker_id text collate "C"
);
create index api_key_account on api_key (account_id, id);

-- What control has decided and a ledger has to do, once: it is written with the decision, and goes when it is done.
create table crossing (
  id text collate "C" primary key default gen_random_uuid()::text,
  ledger text not null,
  kind text not null,
  detail jsonb not null,
  created_at timestamptz not null default now()
);
create index crossing_ledger on crossing (ledger, created_at);

-- In the control database: what accounts of each ledger have spent by the hour, for the gateway's limits. At 'infinity'
-- is what waits in its journal and what its jobs hold, and how many these are.
create table ledger_spent (
  ledger text collate "C" not null,
  hour timestamptz not null,
  charged bigint not null,
  jobs bigint not null,
  -- By the clock here, before it was read there.
  asked_at timestamptz not null,
  primary key (ledger, hour)
);

create index api_key_team on api_key (team_id) where team_id is not null;

-- What the library for OAuth keeps: clients, grants, codes, tokens, consents that are under way. By a digest of the id,
-- which may be the secret itself.
create table oauth_object (
  model text not null,
  digest bytea not null,
  payload jsonb not null,
  grant_id text,
  consumed_at timestamptz,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  -- From which network address a program was registered: each has a share of the registrations of an hour.
  origin text collate "C",
  primary key (model, digest)
);
create index oauth_object_age on oauth_object (expires_at);
-- How many programs registered lately, which is asked before each registration.
create index oauth_object_client on oauth_object (created_at) where model = 'Client';
-- By what a person types at a sign-in from another machine.
create index oauth_object_user_code on oauth_object ((payload ->> 'userCode')) where model = 'DeviceCode';
create index oauth_object_grant on oauth_object (grant_id) where grant_id is not null;

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
create table byok_key (
  account_id text collate "C" not null,
  vendor text not null,
  sealed bytea not null,
  -- Its last characters, by which its owner recognises it.
  last4 text,
  -- Where it fails, calls may go by the gateway's own credential, at the full price.
  fallback boolean not null default false,
  updated_at timestamptz not null default now(),
  -- Where the vendor was when an account stored its key: it goes nowhere else.
  origin text,
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

-- How far each backfill has come (database/backfill.ts).
create table backfill (
  name text primary key,
  -- The primary key of the last row that was looked at. Null: none was.
  last_key text[],
  rows bigint not null default 0,
  started_at timestamptz not null default now(),
  ended_at timestamptz
);

-- What other processes must notice: a counter a topic, bumped by the transaction that makes the change.
create table cache_version (
  topic text primary key,
  version bigint not null default 1
);

-- By which version of its topic an account's rows last changed.
create table account_change (
  topic text not null,
  -- Empty: the operator's.
  account_id text collate "C" not null,
  version bigint not null,
  primary key (topic, account_id)
);
create index account_change_version on account_change (topic, version);

-- What the job engine keeps of a job besides what its creation fixed. The row is the truth; the queue only says when to
-- look at it next. Every time here is the database's, so that no machine's clock can end a job or steal one.
create table job (
  id text collate "C" primary key,
  account_id text collate "C" not null,
  key_id text collate "C" not null,
  hold_id text collate "C" not null unique,
  product text not null,
  catalog_version integer not null,
  status text not null default 'PENDING' check (status in ('PENDING', 'CONNECT', 'PROCESSING', 'COMPLETED', 'FAILED', 'CANCELLED')),
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
  -- When a step is due. A row whose time has passed without a step is queued anew. A new row's first step is queued by
  -- its creator; should that one have died, or never have learned that the row was made, others take over after this
  -- while.
  step_at timestamptz not null default now(),
  -- Something is still to be done: to move it, to settle it, to tell about it, or to look whether the vendor changed
  -- its mind.
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
  -- After an ending that was ours to declare: until when the task is still looked at.
  watch_until timestamptz,
  -- What an operator should know, such as a success that came after the refund.
  anomaly text
) with (fillfactor = 70);
create index job_failed on job (completed_at) where status = 'FAILED';
-- A hold's id sorts by time; a job's own id must not tell any.
create index job_listed on job (account_id, hold_id);
create index job_open on job (step_at) where open;

-- Requests too large to travel with the reservation: pictures that were sent inline. Gone when the vendor has them.
create table job_body (
  job_id text collate "C" primary key,
  body text not null,
  at timestamptz not null default now()
);

create table login_provider (
  id text collate "C" primary key,
  name text not null,
  issuer text not null,
  client_id text not null,
  scopes text[] not null,
  groups_claim text not null,
  -- The provider asks for a second factor itself, so none of ours is asked for after it.
  proves_second_factor boolean not null default false,
  enabled boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table person (
  id text collate "C" primary key,
  -- Lower case, as it is looked up.
  email text not null unique,
  -- `$argon2id$v=19$m=…,t=…,p=…$salt$hash`
  password text,
  -- Null: nobody has proved that the mailbox is theirs (identity/proving.ts).
  email_verified_at timestamptz,
  -- A link to sign in or to choose a password was opened that somebody had made who has not all rights. No further role
  -- until the mailbox is proved again, which ends all other ways in.
  lent_at timestamptz,
  created_at timestamptz not null default now(),
  terms_version text,
  terms_at timestamptz,
  -- Roles as data (identity/roles.ts has the table of what each may do; the names are checked there).
  operator_role text,
  operator_provider_id text collate "C" references login_provider on delete set null
);
create index person_operator on person (operator_role) where operator_role is not null;

create table membership (
  account_id text collate "C" not null references account,
  person_id text collate "C" not null references person on delete cascade,
  role text not null,
  created_at timestamptz not null default now(),
  -- A membership that single sign-on made follows the groups of its provider; one that was made by hand stays.
  provider_id text collate "C" references login_provider on delete set null,
  primary key (person_id, account_id)
);
create index membership_account on membership (account_id);

-- A link that somebody was given: to join an account, to become an operator, or to choose a new password. Kept as a
-- digest, used once.
create table invite (
  digest bytea primary key,
  kind text not null check (kind in ('member', 'operator', 'password', 'sign-up')),
  account_id text collate "C" references account,
  email text not null,
  role text,
  -- As the audit names who made it: what they made ends with their own rights.
  made_by text not null,
  -- Using it proves the mailbox: it was only mailed, or an operator made it.
  proves boolean not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  check (((kind = 'member') = (account_id is not null)) and ((kind in ('member', 'operator')) = (role is not null)))
);
create index invite_age on invite (expires_at);
create index invite_email on invite (email);

-- The cookie holds 32 random bytes; the row holds their SHA-256.
create table session (
  id text collate "C" primary key,
  digest bytea not null unique,
  person_id text collate "C" not null references person on delete cascade,
  ip text not null,
  user_agent text not null,
  created_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  method text not null default 'password',
  -- A second factor was part of it.
  strong boolean not null default false,
  -- The second factor is still to come: until then it opens nothing.
  awaits_factor boolean not null default false,
  proved_at timestamptz not null default now(),
  provider_id text collate "C",
  -- The provider's own id of the session, by which it ends it.
  sid text
);
create index session_person on session (person_id);
create index session_provider on session (provider_id, sid) where provider_id is not null;

-- Tries to log in, by e-mail address (as a digest, whether anyone has it or not) and by network address.
create table login_attempt (
  subject text collate "C" primary key,
  tries integer not null,
  since timestamptz not null default now(),
  blocked_until timestamptz not null default now()
);
create index login_attempt_age on login_attempt (blocked_until);

-- The Idempotency-Keys with which credits were given or taken back, and what was answered. Kept for ever, as the money
-- is: who repeats a payment's message days later must not pay twice.
create table credit_idempotency (
  account_id text collate "C" not null references account,
  key text collate "C" not null,
  request_hash text not null,
  answer jsonb not null,
  at timestamptz not null default now(),
  primary key (account_id, key)
);

-- Answers that a vendor keeps for a caller (stored responses, threads): whose they are, and which vendor has them. All
-- accounts share the vendor's credentials, so that this is what keeps them apart.
create table vendor_object (
  account_id text collate "C" not null,
  -- The vendor's own.
  id text collate "C" not null,
  vendor text not null,
  product text not null,
  -- Which of the vendor's credentials made it, by its name. Null: the only one.
  credential text,
  -- The key that made it; other restricted keys do not see it.
  key_id text collate "C" not null,
  created_at timestamptz not null default now(),
  primary key (account_id, id)
);
-- Conversations stay longer.
create index vendor_object_age on vendor_object (created_at) where id not like 'conv%';
create index vendor_object_conversation_age on vendor_object (created_at) where id like 'conv%';

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

-- What is sent to receivers outside: webhooks of jobs and of alerts, messages for Slack, mails. One row for each
-- message and receiver, with every attempt. The row is the truth; the queue only says when to look at it.
create table delivery (
  -- What receivers are told as the id of the message: the same for every attempt.
  id text collate "C" primary key,
  -- Empty: the gateway's own.
  account_id text collate "C" not null,
  kind text not null check (kind in ('webhook', 'slack', 'email')),
  event text not null,
  -- The job or the alert.
  subject text collate "C" not null,
  -- To whom, as far as it may be shown.
  shown text not null,
  -- The address and what is sent, encrypted by the gateway.
  sealed bytea,
  created_at timestamptz not null default now(),
  -- Attempts since it was made or repeated.
  tries integer not null default 0,
  -- All attempts. The fence: whoever sends has raised this, and writes only while it still has that value.
  version integer not null default 0,
  -- Until when the process that raised it is believed to be sending.
  lease_until timestamptz,
  step_at timestamptz not null default now(),
  delivered_at timestamptz,
  given_up_at timestamptz,
  -- The last attempts: number, at, ms, status, error, response. One without `ms` runs, or died with its process.
  attempts jsonb not null default '[]',
  open boolean not null default true,
  check (delivered_at is null or given_up_at is null),
  check (open = (delivered_at is null and given_up_at is null))
);
create index delivery_listed on delivery (created_at, id);
create index delivery_of_account on delivery (account_id, created_at, id);
create index delivery_open on delivery (step_at) where open;
create index delivery_subject on delivery (subject);

-- A row for each limit that is set: of an account, of a key, or with an empty account of the whole gateway. What
-- running calls hold is not counted here: holds and leases say it.
create table counter (
  account_id text collate "C" not null,
  -- `account`, the id of a key, or `system`.
  scope text collate "C" not null,
  name text collate "C" not null,
  -- What is counted: requests, tokens, credits, or calls at the same time.
  unit text not null,
  -- minute (the last 60 seconds), day, month, total; or open: what is under way.
  span text not null,
  max bigint not null,
  -- Counted in the present span.
  used bigint not null default 0,
  -- The second up to which a minute is current, or the first second of the present day or month.
  second bigint not null default 0,
  -- Of a minute: what was counted in each second, by the second modulo 83. See counters.sql.
  seconds bigint[] not null default '{}',
  -- What began before was not counted here, and is not taken off. Of credits of the whole gateway: up to when `used`
  -- has what was spent.
  since timestamptz not null default '-infinity',
  -- How long a slot of a minute or rolling window is, in seconds. Soft ones refuse nobody. own_max: somebody set the
  -- maximum for this value alone.
  width integer not null default 1,
  soft boolean not null default false,
  own_max boolean not null default false,
  primary key (account_id, scope, name)
) with (fillfactor = 50, vacuum_truncate = off);

-- Settlements on their way into the books, each the right to be booked once: whoever deletes it does so in the
-- transaction that books it, with the account locked. A call that a lease covers is written here before its caller has
-- the last byte, and booked with others a moment later; a call with a hold of its own is written and booked by one
-- statement.
create table journal (
  account_id text collate "C" not null,
  id text collate "C" not null,
  key_id text collate "C" not null,
  -- settled, released or expired
  outcome text not null,
  charged bigint not null,
  -- What of its lease covers the call; 0 where it has a hold.
  held bigint not null,
  -- Null: the call has a hold of its own.
  lease_id text collate "C",
  -- What was not spent stays in the lease.
  stays_leased boolean not null default true,
  -- The account does not pay: its idempotency key was used again after the hold had expired.
  waived boolean not null default false,
  -- What limits on tokens counted for it, and in which second.
  tokens bigint not null,
  second bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  -- The facts of its usage row.
  product text not null,
  endpoint text not null,
  status integer not null,
  catalog_version integer not null,
  lines jsonb not null,
  estimated boolean not null,
  stream boolean not null,
  route smallint not null,
  duration_ms integer not null,
  first_byte_ms integer not null,
  attempt_log jsonb,
  cost bigint,
  cost_basis jsonb,
  attributes jsonb,
  credential text,
  client text not null default '',
  -- When it was written: one that stays for minutes cannot be booked.
  at timestamptz not null default now(),
  vendor text,
  labels jsonb,
  scopes jsonb,
  primary key (account_id, id)
) with (
  vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0
);

-- What each process has of the gateway's limits on credits and on calls at the same time: functions/quota-slice.sql.
-- The account is always empty.
create table quota_slice (
  account_id text collate "C" not null,
  process_id text collate "C" not null,
  unit text collate "C" not null,
  amount bigint not null,
  -- Of the statements that the process has sent, the last one that was heard.
  turn bigint not null,
  -- Since then another process lacks what this one may not need.
  recalled_at timestamptz,
  primary key (account_id, process_id, unit)
) with (fillfactor = 50);

-- The filters that a person has given a name, of one page of the console.
create table saved_view (
  person_id text collate "C" not null references person on delete cascade,
  page text collate "C" not null,
  name text not null,
  -- As it stands in the address of the page.
  query text not null,
  created_at timestamptz not null default now(),
  primary key (person_id, page, name)
);

-- Usage by the day (UTC), customer, product, key and vendor: what statements and margins say of calls, also when these
-- are no longer stored. Calls are added some seconds after they were posted (ledger/usage-sums.ts); the setting
-- `usage-sums` says up to which. Days of months whose calls are gone become one row on the first of the month.
create table usage_day (
  account_id text collate "C" not null,
  day date not null,
  product text collate "C" not null,
  key_id text collate "C" not null,
  -- Empty: nobody answered, or it was a cached response.
  vendor text collate "C" not null,
  calls bigint not null,
  -- The calls whose cost is known, what was charged for them, and that cost.
  costed_calls bigint not null,
  charged bigint not null,
  costed bigint not null,
  cost bigint not null,
  primary key (account_id, day, product, key_id, vendor)
) with (fillfactor = 70);
create index usage_day_time on usage_day (day);

-- The same by the value of each label that calls carried: end users, sessions, tags. Kept as long as calls.
create table label_day (
  account_id text collate "C" not null,
  day date not null,
  name text collate "C" not null,
  value text collate "C" not null,
  product text collate "C" not null,
  vendor text collate "C" not null,
  calls bigint not null,
  errors bigint not null,
  charged bigint not null,
  costed bigint not null,
  -- Null: it is known of none of them.
  cost bigint,
  input_tokens bigint not null,
  output_tokens bigint not null,
  first_id text collate "C" not null,
  last_id text collate "C" not null,
  -- Some of the agents or sessions that made them.
  clients text[] not null,
  primary key (account_id, day, name, value, product, vendor)
) with (fillfactor = 70);
create index label_day_time on label_day (day);

-- The names of tags that an account has used. There is a limit on them.
create table label_name (
  account_id text collate "C" not null references account,
  name text collate "C" not null,
  created_at timestamptz not null default now(),
  primary key (account_id, name)
);

-- Credits that end, that only some products may use, or that are spent before or after others are lots:
-- functions/lot.sql. All others are the plain credits of the account: what its balance has beyond its lots. An account
-- without lots has no rows here.
create table lot (
  account_id text collate "C" not null,
  -- The transfer that granted it.
  id text collate "C" not null,
  -- bought, given, plan or code
  source text not null,
  amount bigint not null,
  -- What was neither spent nor taken back nor has expired; and what of it running calls hold.
  remaining bigint not null,
  held bigint not null default 0,
  ends_at timestamptz,
  -- Null: for all products. A name that ends in * stands for all that begin so.
  products text[],
  -- 0 is spent first, 100 last. Plain credits have 50.
  priority smallint not null default 50,
  created_at timestamptz not null default now(),
  primary key (account_id, id),
  check (held >= 0 and held <= remaining and remaining <= amount)
) with (fillfactor = 50);
create index lot_ends on lot (ends_at) where remaining > 0;
create index lot_open on lot (account_id) where remaining > 0;

-- What a refund or dispute could not take because calls and leases held it. It is taken from what those release that
-- were there before it, and from nothing else (functions/claim.sql).
create table claim (
  account_id text collate "C" not null,
  -- The transfer of the refund. Its loss includes all of it, and its `held` is the amount; what is taken makes up for
  -- that loss.
  id text collate "C" not null,
  payment_id text collate "C" not null,
  -- Its place among the account's claims.
  number integer not null,
  amount bigint not null,
  taken bigint not null default 0,
  -- The lot from which it takes first; and from no other.
  lot_id text,
  only_lot boolean not null default false,
  primary key (account_id, id),
  check (taken >= 0 and taken <= amount)
);

-- Where usage goes: one row for each destination, which is also its work row (jobs/work.ts). The cursor is the last
-- usage row that the receiver accepted.
create table export (
  account_id text collate "C" not null default '',
  id text collate "C" primary key,
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
  -- {"number", "from", "to", "id", "account", "sent"}: a range of days that is sent beside what is new, and its own
  -- cursor.
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

-- A domain belongs to one provider, which alone may vouch for its addresses. Without an account nobody joins by it.
create table login_domain (
  domain text collate "C" primary key,
  provider_id text collate "C" not null references login_provider on delete cascade,
  account_id text collate "C" references account on delete cascade,
  role text,
  sso_only boolean not null default false,
  check ((account_id is null) = (role is null))
);
create index login_domain_provider on login_domain (provider_id);

-- Who somebody is: what the issuer calls them, never their e-mail address.
create table identity (
  id text collate "C" primary key,
  issuer text collate "C" not null,
  subject text collate "C" not null,
  person_id text collate "C" not null references person on delete cascade,
  provider_id text collate "C" references login_provider on delete set null,
  email text,
  created_at timestamptz not null default now(),
  used_at timestamptz not null default now(),
  constraint identity_key unique (issuer, subject)
);
create index identity_person on identity (person_id);

-- Passkeys, and the shared secret of an authenticator app. `counter` is the passkey's own, or the last time step whose
-- code was used.
create table second_factor (
  id text collate "C" primary key,
  person_id text collate "C" not null references person on delete cascade,
  kind text not null check (kind in ('totp', 'passkey')),
  name text not null,
  sealed bytea,
  credential_id text collate "C",
  public_key bytea,
  transports text[] not null default '{}',
  counter bigint not null default 0,
  confirmed boolean not null default false,
  created_at timestamptz not null default now(),
  used_at timestamptz,
  constraint second_factor_credential_key unique (credential_id)
);
create index second_factor_person on second_factor (person_id);

create table recovery_code (
  person_id text collate "C" not null references person on delete cascade,
  digest bytea not null,
  primary key (person_id, digest)
);

-- What has begun in a browser and is finished once, or never: a journey to a provider, a passkey's challenge, a login
-- link. Also the ids of logout tokens, so that each is used once.
create table login_flow (
  digest bytea primary key,
  kind text not null,
  person_id text collate "C" references person on delete cascade,
  data jsonb not null,
  expires_at timestamptz not null
);
create index login_flow_age on login_flow (expires_at);

-- Tokens of the operator API: of the whole gateway (no account), or of one account. identity/tokens.ts says what one
-- may do.
create table access_token (
  id text collate "C" primary key,
  -- An HMAC of the token: whoever reads the database cannot guess by it.
  digest bytea not null unique,
  account_id text collate "C" references account,
  name text not null,
  last4 text not null,
  scopes text[] not null,
  -- Null: from anywhere.
  ip_ranges text[],
  expires_at timestamptz,
  -- Whose rights bound it, at every use. Null: the token of the first start, or one that it made.
  person_id text collate "C" references person on delete cascade,
  made_by text not null,
  -- The token that a process was started with.
  is_first boolean not null default false,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  last_ip text,
  revoked_at timestamptz,
  -- The token with which a token was made. It is revoked with it.
  parent_id text collate "C" references access_token on delete set null
);
create index access_token_account on access_token (account_id);
create index access_token_parent on access_token (parent_id) where parent_id is not null;
create index access_token_person on access_token (person_id);

-- What a company's directory says of people and groups by SCIM. scope: an account, or empty for those who run the
-- gateway.
create table scim_user (
  scope text collate "C" not null,
  person_id text collate "C" not null references person on delete cascade,
  user_name text not null,
  external_id text,
  attributes jsonb not null default '{}',
  active boolean not null default true,
  -- The directory made the person.
  managed boolean not null default false,
  -- A group gives the role; without it the role falls back.
  by_group boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  primary key (scope, person_id)
);
create unique index scim_user_name on scim_user (scope, lower(user_name));
create index scim_user_person on scim_user (person_id);

create table scim_group (
  scope text collate "C" not null,
  id text collate "C" not null,
  display_name text not null,
  external_id text,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  primary key (scope, id)
);
create unique index scim_group_name on scim_group (scope, lower(display_name));

create table scim_group_member (
  scope text collate "C" not null,
  group_id text collate "C" not null,
  person_id text collate "C" not null,
  primary key (scope, group_id, person_id),
  constraint scim_group_member_scope_group_id_fkey foreign key (scope, group_id) references scim_group (scope, id) on delete cascade,
  constraint scim_group_member_scope_person_id_fkey foreign key (scope, person_id) references scim_user (scope, person_id) on delete cascade
);
create index scim_group_member_person on scim_group_member (scope, person_id);

-- Budgets: what a user, a tag, a session, a key, a member, a team or a project of an account may use in a span. What is
-- counted stands in `counter`, as for limits; its scope is the budget's id and the value (`bgt_1=alice`), its name is
-- `budget`.
create table budget (
  account_id text collate "C" not null references account,
  id text collate "C" not null,
  name text not null,
  -- key, user, session, member, team, project, or a tag: `tag:feature`.
  scope text collate "C" not null,
  -- Whom it is for. Null: each value has one of its own, made by its first call.
  value text collate "C",
  -- credits, requests or tokens
  unit text not null,
  -- day, week, month, total, or rolling with so many seconds
  span text not null,
  window_seconds integer,
  max bigint not null,
  -- Soft ones only count, and alert.
  hard boolean not null,
  alert_percent smallint,
  created_at timestamptz not null default now(),
  primary key (account_id, id),
  check ((span = 'rolling') = (window_seconds is not null))
);

-- Teams of an account, and projects, which are teams in a team. All use the account's balance; what each may use is a
-- budget.
create table team (
  account_id text collate "C" not null references account,
  id text collate "C" not null,
  name text not null,
  -- Of a project: its team. A team has none.
  parent_id text collate "C",
  created_at timestamptz not null default now(),
  -- A team whose members are those of a group of the company's directory (SCIM), by the group's name.
  scim_group text,
  primary key (account_id, id),
  constraint team_account_id_parent_id_fkey foreign key (account_id, parent_id) references team (account_id, id)
);

-- What people may do with the programs and keys of their own: those of a team or project, and of everybody else
-- (`account`).
create table agent_settings (
  account_id text collate "C" not null references account,
  -- account, or the id of a team or project.
  scope text collate "C" not null,
  -- Null: every model.
  models text[],
  default_model text,
  small_model text,
  -- The most that one call may cost. Null: no bound.
  call_max bigint,
  primary key (account_id, scope)
);

create table team_member (
  account_id text collate "C" not null,
  team_id text collate "C" not null,
  person_id text collate "C" not null,
  primary key (account_id, team_id, person_id),
  constraint team_member_account_id_person_id_fkey foreign key (account_id, person_id) references membership (account_id, person_id) on delete cascade,
  constraint team_member_account_id_team_id_fkey foreign key (account_id, team_id) references team (account_id, id) on delete cascade
);
create index team_member_person on team_member (account_id, person_id);

-- What vendors took for answers that no caller pays: copies of calls, calls that were broken off, checks by moderation
-- models. By the day (UTC): reports/unbilled.ts. Kept, as margins are.
create table unbilled_day (
  day date not null,
  kind text collate "C" not null,
  vendor text collate "C" not null,
  product text collate "C" not null,
  -- The product by the vendor's name of it.
  model text collate "C" not null,
  -- Empty: the vendor has one.
  credential text collate "C" not null,
  calls bigint not null check (calls > 0),
  input_tokens bigint not null check (input_tokens >= 0),
  output_tokens bigint not null check (output_tokens >= 0),
  -- Null: it is known of none of them.
  cost bigint check (cost >= 0),
  primary key (day, kind, vendor, product, model, credential)
);

-- What customers of an account have there to spend, at the account's own prices. Calls of a purse hold and charge it
-- beside the account (extensions/purses/functions.sql).
create table purse (
  account_id text collate "C" not null references account,
  -- The account's own name of its customer.
  id text collate "C" not null,
  name text not null,
  -- open, frozen (calls are refused), or closed (for good)
  status text not null default 'open',
  posted bigint not null default 0,
  held bigint not null default 0,
  -- Below this the account is told. Null: at no amount.
  low bigint,
  -- Since something was put into it, a call was refused because too little is left.
  is_empty boolean not null default false,
  -- What it had, and the hash, after the last movement that is no longer kept.
  base bigint not null default 0,
  base_hash bytea,
  -- Whom its invoices are made out to. Null: to its name.
  billing jsonb,
  -- What it paid for calls in a month of UTC, and in which: discounts go by that.
  volume bigint not null default 0,
  volume_month date,
  -- When its last movement was written, and the hash of that, which the hash of the next one covers.
  moved_at timestamptz,
  chain bytea,
  created_at timestamptz not null default now(),
  primary key (account_id, id),
  check (held >= 0 and held <= posted)
) with (fillfactor = 50);

-- Every change of a purse, each with a hash over the one before it. Of a call: under the id of its transfer, whatever
-- became of it.
create table purse_movement (
  account_id text collate "C" not null,
  id text collate "C" not null,
  purse_id text collate "C" not null,
  -- grant, topup, takeback, settled, released, expired, empty, frozen, reopened, closed
  kind text not null,
  amount bigint not null,
  balance bigint not null,
  moved_at timestamptz not null,
  -- Of a call: what the purse held, what the account was charged for it, and the price list.
  held bigint not null default 0,
  charged bigint not null default 0,
  list integer,
  product text,
  -- The account's own name of a grant, which makes it only once.
  reference text collate "C",
  note text,
  actor text,
  hash bytea not null,
  -- What the account is still to be told of it. Null: nothing.
  untold text[],
  -- Its purse is always there, but a copy to another database writes movements first.
  primary key (account_id, id)
);
create unique index purse_movement_order on purse_movement (account_id, purse_id, moved_at);
create unique index purse_movement_reference on purse_movement (account_id, purse_id, reference) where reference is not null;
create index purse_movement_age on purse_movement (moved_at);
create index purse_movement_untold on purse_movement (account_id, id) where untold is not null;

-- What an account charges its customers: each change is a new version, and a call keeps the one by which it was held.
create table purse_prices (
  account_id text collate "C" not null references account,
  version integer not null,
  -- As it was given, and in millionths, first rule first (extensions/purses/functions.sql).
  given jsonb not null,
  list jsonb not null,
  actor text not null,
  created_at timestamptz not null default now(),
  primary key (account_id, version)
);

-- Where an account is told of its purses.
create table purse_events (
  account_id text collate "C" primary key references account,
  url text not null,
  settled boolean not null
);

-- Everything that is held, by calls and by processes.
create view held as
  select account_id, id, amount from hold union all select account_id, id, amount from lease;

-- The double entry of each transfer. Sums to zero by transfer, and so on the whole.
-- `plan` and `code` grant credits like `grant`; `expiry` takes what was left of a lot at its end, which nobody is
-- given.
create view entry as
  select t.account_id, t.id as transfer_id, t.at, leg.account, leg.amount
  from transfer t
  cross join lateral (values
    ('account:' || t.account_id,
     case when t.kind in ('grant', 'correction', 'purchase', 'plan', 'code') then t.amount
       when t.kind in ('takeback', 'payout', 'writeoff', 'refund', 'expiry', 'settled') then -t.amount else 0 end),
    ('platform:grants',
     case when t.kind in ('grant', 'correction', 'plan', 'code') then -t.amount when t.kind in ('takeback', 'payout', 'writeoff') then t.amount
       when t.kind = 'purchase' then -(t.amount + t.loss) when t.kind = 'refund' then t.amount + t.loss else 0 end),
    ('platform:expiry', case when t.kind = 'expiry' then t.amount else 0 end),
    ('platform:loss', case when t.kind = 'purchase' then t.loss else -t.loss end),
    ('platform:revenue', case when t.kind = 'settled' then t.amount + t.loss when t.kind in ('purchase', 'refund') then 0 else t.loss end)
  ) as leg (account, amount)
  where leg.amount <> 0;

-- Who is in a team. Rows of team_member count until the directory has sent the group, and of a team without one.
create view team_person as
  select account_id, team_id, person_id from team_member
  union
  select t.account_id, t.id, n.person_id from team t
    join scim_group g on g.scope = t.account_id and lower(g.display_name) = lower(t.scim_group)
    join scim_group_member n on n.scope = g.scope and n.group_id = g.id
    join membership s on s.account_id = t.account_id and s.person_id = n.person_id;
