-- For the functions that calls wait for, when all are made. Every row is reached by its key, whatever the planner knows
-- of the tables' sizes: a table that was empty when it was last vacuumed is believed to have one row, and a plan that
-- reads all of an account's rows is right then, and ruinous a day later. Hence the settings, and lookups that cannot
-- become a join (`limit 1`). An account whose lock takes longer goes to a queue of its own: see ledger/queue.ts.
do $$
declare
  name text;
begin
  foreach name in array array['ledger_reserve(text, text, jsonb, int, text)', 'ledger_resolve(text, jsonb)', 'ledger_lease(text, text, jsonb, text)', 'ledger_post(text, text[], boolean)',
    'ledger_expire(text, interval)'] loop
    execute format('alter function %s set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
      set plan_cache_mode = force_generic_plan set lock_timeout = %L', name, '300ms');
  end loop;
end $$;
