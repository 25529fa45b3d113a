-- Who spent a call and for what: `user`, `session` and the caller's tags, by name.
alter table usage add column labels jsonb;
alter table journal add column labels jsonb;
-- Of the request that ordered the work; its calls inherit them.
alter table batch add column labels jsonb;
alter table background add column labels jsonb;
-- Names of labels that calls of a key must carry; null: none.
alter table api_key add column required_labels text[];

-- The names of tags that an account has used. There is a limit on them.
create table label_name (
  account_id text collate "C" not null references account,
  name text collate "C" not null,
  created_at timestamptz not null default now(),
  primary key (account_id, name)
);
