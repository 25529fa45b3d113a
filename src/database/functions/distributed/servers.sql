-- How long a flush waits for a row (longer than on one server, as each takes longer), said to the servers on which the rows lie: a function's own settings are not told to them, and what is set for
-- the transaction is, but only from inside a function that another one calls.
create or replace function ledger_wait_briefly() returns void
language plpgsql
set citus.propagate_set_commands = 'local'
as $$
begin
  set local lock_timeout = '1s';
end $$;

-- A flush that writes to the accounts' server alone is committed there, and then here. One that also writes what lies here, as a job that is made with its
-- hold, must be prepared there first: else this server could fail between the two. A row that is sent from here makes Citus prepare; there need not be one.
create or replace function ledger_commit_together() returns void
language plpgsql as $$
begin
  insert into hold (account_id, id, key_id, process_id, amount, product, catalog_version)
  select '', '', '', '', 0, '', 0 from generate_series(1, 0);
end $$;
