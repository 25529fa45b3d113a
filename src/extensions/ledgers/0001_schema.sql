-- Which account the keys of other ledgers are of, in the control database: written with each key, by a trigger in its
-- ledger. Digests only.
create table key_home (
  digest bytea primary key,
  key_id text collate "C" not null,
  grant_id text,
  account_id text collate "C" not null references account
);
create index key_home_key on key_home (key_id);
create index key_home_grant on key_home (grant_id) where grant_id is not null;
