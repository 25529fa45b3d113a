-- How long a flush waits for a row (longer than on one server, as each takes longer), said to the servers on which the rows lie: a function's own settings are not told to them, and what is set for
-- the transaction is, but only from inside a function that another one calls.
create or replace function ledger_wait_briefly() returns void
language plpgsql
set citus.propagate_set_commands = 'local'
as $$
begin
  set local lock_timeout = '1s';
end $$;
