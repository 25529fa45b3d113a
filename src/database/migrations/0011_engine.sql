-- The third design of the ledger: functions of one account each (functions/*.sql), limits as counters, and a journal by account.
drop function if exists ledger_post(text, text[], boolean);
drop function if exists ledger_post_apart(text, text[]);
drop function if exists ledger_expire(interval, int);
drop function if exists ledger_unreturned(text, text);
drop function if exists limited_share(text, interval, boolean);
drop function if exists window_wait(bigint[], bigint, bigint);
drop aggregate if exists transfer_chain(bytea, text, text, text, bigint, bigint, bigint);
drop function if exists transfer_link(bytea, bytea, text, text, text, bigint, bigint, bigint);
do $$
declare
  f regprocedure;
begin
  for f in select p.oid::regprocedure from pg_proc p where (p.proname = 'ledger_flush' or p.proname like 'limited\_%') and p.pronamespace = current_schema()::regnamespace loop
    execute 'drop function ' || f || ' cascade';
  end loop;
end $$;

-- A row for each limit that is set: of an account, of a key, or with an empty account of the whole gateway. What running calls hold is not
-- counted here: holds and leases say it.
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
  -- What began before was not counted here, and is not taken off. Of credits of the whole gateway: up to when `used` has what was spent.
  since timestamptz not null default '-infinity',
  primary key (account_id, scope, name)
) with (fillfactor = 50, vacuum_truncate = off);

with shown as (
  select l.account_id, l.scope, x.name, x.unit, x.span, (l.limits ->> x.name)::bigint as max, x.used, x.second, x.seconds, l.since
  from limited l cross join lateral (values
    ('concurrency', 'calls', 'open', 0::bigint, 0::bigint, '{}'::bigint[]),
    ('requestsPerMinute', 'requests', 'minute', l.requests_used, l.second, l.requests),
    ('tokensPerMinute', 'tokens', 'minute', l.tokens_used, l.second, l.tokens),
    ('spendPerDay', 'credits', 'day', l.day_spent, extract(epoch from l.day::timestamp at time zone 'UTC')::bigint, '{}'),
    ('spendPerMonth', 'credits', 'month', l.month_spent, extract(epoch from l.month::timestamp at time zone 'UTC')::bigint, '{}'),
    ('spendTotal', 'credits', 'total', l.total_spent, 0, '{}')) as x(name, unit, span, used, second, seconds)
  where l.limits ? x.name and l.account_id > ''
)
insert into counter (account_id, scope, name, unit, span, max, used, second, seconds, since) select * from shown;
insert into counter (account_id, scope, name, unit, span, max)
select '', 'system', x.name, x.unit, x.span, (l.limits ->> x.name)::bigint
from limited l cross join lateral (values ('concurrency', 'calls', 'open'), ('requestsPerMinute', 'requests', 'minute'), ('tokensPerMinute', 'tokens', 'minute'),
  ('spendPerDay', 'credits', 'day'), ('spendPerMonth', 'credits', 'month'), ('spendTotal', 'credits', 'total')) as x(name, unit, span)
where l.account_id = '' and l.scope = 'system' and l.limits ? x.name;
-- Which limits of the gateway are in force: whoever knows another version asks for them anew.
insert into setting (name, value) select 'system-limits', '1' where exists (select 1 from counter where account_id = '') on conflict do nothing;
drop table limited;

-- Settlements on their way into the books, each the right to be booked once: whoever deletes it does so in the transaction that books it, with
-- the account locked. A call that a lease covers is written here before its caller has the last byte, and booked with others a moment later;
-- a call with a hold of its own is written and booked by one statement.
alter table journal rename to journal_before;
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
  keeps boolean not null default true,
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
  story jsonb,
  cost bigint,
  cost_basis jsonb,
  attributes jsonb,
  credential text,
  client text not null default '',
  -- When it was written: one that stays for minutes cannot be booked.
  at timestamptz not null default now(),
  primary key (account_id, id)
) with (vacuum_truncate = off, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0);
insert into journal (account_id, id, key_id, outcome, charged, held, lease_id, tokens, second, input_tokens, output_tokens, product, endpoint, status,
  catalog_version, lines, estimated, stream, route, duration_ms, first_byte_ms, story, cost, cost_basis, attributes, credential, client)
select account_id, id, key_id, outcome, charged, held, lease_id, tokens, second, input_tokens, output_tokens, product, endpoint, status,
  catalog_version, lines, estimated, stream, route, duration_ms, first_byte_ms, story, cost, cost_basis, attributes, credential, client
from journal_before;
drop table journal_before;

-- What each process has of the gateway's limits on credits and on calls at the same time: functions/share.sql. The account is always empty.
create table share (
  account_id text collate "C" not null,
  process_id text collate "C" not null,
  unit text collate "C" not null,
  amount bigint not null,
  -- Of the statements that the process has sent, the last one that was heard.
  turn bigint not null,
  -- Since then another process lacks what this one may not need.
  asked_at timestamptz,
  primary key (account_id, process_id, unit)
) with (fillfactor = 50);
