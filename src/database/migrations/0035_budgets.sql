-- Budgets: what a user, a tag, a session, a key, a member, a team or a project of an account may use in a span. What is counted stands in `counter`, as for limits;
-- its scope is the budget's id and the value (`bgt_1=alice`), its name is `budget`.
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

-- The version of an account's budgets, which a process must know that makes a hold; 0: there never were any. And how many counters they have.
alter table account add column budgets integer not null default 0;
alter table account add column budget_values integer not null default 0;

-- How long a slot of a minute or rolling window is, in seconds. Soft ones refuse nobody. own_max: somebody set the maximum for this value alone.
alter table counter add column width integer not null default 1;
alter table counter add column soft boolean not null default false;
alter table counter add column own_max boolean not null default false;

-- The budgets that a call counts for, as the scopes of their counters. Null: none.
alter table hold add column scopes jsonb;
alter table lease add column scopes jsonb;
alter table journal add column scopes jsonb;

-- The first of the keys that a key replaced: a budget goes on when a key is rotated. Null: it replaced none.
alter table api_key add column first_id text collate "C";
with recursive chain as (
  select k.id as first_id, k.replaced_by as id from api_key k
  where k.replaced_by is not null and not exists (select 1 from api_key e where e.replaced_by = k.id)
  union select c.first_id, k.replaced_by from chain c join api_key k on k.id = c.id where k.replaced_by is not null
)
update api_key k set first_id = c.first_id from (select id, min(first_id) as first_id from chain group by id) c where k.id = c.id;
