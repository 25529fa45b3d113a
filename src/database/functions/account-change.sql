-- Which account's keys or sign-ins have changed, for processes that keep them (src/database/by-account.ts). The topic's
-- row stays locked until the commit, so that versions become visible in their order.
create or replace function account_changed() returns trigger
language plpgsql as $$
declare
  now_version bigint;
begin
  insert into cache_version (topic) values (tg_argv[0])
  on conflict (topic) do update set version = cache_version.version + 1 returning version into now_version;
  insert into account_change (topic, account_id, version)
  values (tg_argv[0], coalesce(case when tg_op = 'DELETE' then old.account_id else new.account_id end, ''), now_version)
  on conflict (topic, account_id) do update set version = excluded.version;
  return null;
end $$;
create or replace trigger byok_key_changed after insert or update or delete on byok_key
  for each row execute function account_changed('byok-keys');
-- A renewed token is no change: it is read when it is needed.
create or replace trigger tool_connection_changed after insert or delete on tool_connection
  for each row execute function account_changed('tool-connections');
