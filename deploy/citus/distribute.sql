-- Spreads the accounts of an installation over the workers of a Citus cluster. To be run once on the coordinator, in a database in which a gateway
-- has made its tables, with all gateways stopped:
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f deploy/citus/distribute.sql
-- The next gateway that starts makes the functions anew, in the form that works here. See docs/guides/23-citus.md.

-- What is written with every call lies with its account. All else stays on the coordinator: keys, jobs and catalog,
-- which are small, and refusals, alerts and kept contents, which are written beside the calls, in batches of many accounts.
begin;
-- Settlements that wait to be booked can only be booked on one server.
do $$ begin
  if exists (select 1 from journal) then
    raise exception 'a gateway did not end in order, and its calls wait to be booked: start one again, wait half a minute, stop it, and run this again';
  end if;
end $$;
-- A table that lies here may not refer to one that is spread. Nothing of Tollgate's removes accounts that keys, members or grants belong to.
alter table api_key drop constraint if exists api_key_account_id_fkey;
alter table membership drop constraint if exists membership_account_id_fkey;
alter table invite drop constraint if exists invite_account_id_fkey;
alter table grant_key drop constraint if exists grant_key_account_id_fkey;
select create_distributed_table('account', 'id');
select create_distributed_table('hold', 'account_id', colocate_with => 'account');
select create_distributed_table('lease', 'account_id', colocate_with => 'account');
select create_distributed_table('transfer', 'account_id', colocate_with => 'account');
select create_distributed_table('usage', 'account_id', colocate_with => 'account');
select create_distributed_table('usage_hour', 'account_id', colocate_with => 'account');
select create_distributed_table('limited', 'account_id', colocate_with => 'account');
select create_distributed_table('idempotency', 'account_id', colocate_with => 'account');
commit;
