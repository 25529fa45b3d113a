-- Resolves calls of an account that have holds of their own, or that a lease covers no more: they are written to the
-- journal and posted at once.
-- calls: rows of the journal, each with `idempotent` where the call had an idempotency key, `replay` where its answer
-- is to be replayed ({status, type, sealed}), and `given_up` where its reservation made a job of which nobody was told:
-- unless that has been begun, it goes with its hold; if it has, it goes on, and its hold stays.
-- Answers [[id, outcome, paid, loss, hold], …].
create or replace function ledger_resolve(account text, calls jsonb) returns jsonb
language plpgsql as $$
declare
  ids text[] := array(select x ->> 'id' from jsonb_array_elements(calls) x);
  given_up text[] := array(select x ->> 'id' from jsonb_array_elements(calls) x where (x ->> 'given_up')::boolean);
  begun text[] := '{}';
  answers jsonb;
  r record;
begin
  perform 1 from account a where a.id = account for update;
  if given_up <> '{}' then
    -- A body that it has besides is removed by maintenance.
    for r in delete from job j where j.account_id = account and j.hold_id = any(given_up) and j.verdict is null and j.submit_started_at is null returning j.hold_id loop
      delete from idempotency d where d.account_id = account and d.hold_id = r.hold_id;
    end loop;
    begun := array(select j.hold_id from job j where j.account_id = account and j.hold_id = any(given_up));
  end if;
  insert into journal
  select j.* from account a cross join jsonb_array_elements(calls) c cross join jsonb_populate_record(null::journal, c || jsonb_build_object('at', now(),
    -- Its key was free again, and somebody used it: the same request is not paid twice.
    'waived', coalesce((c ->> 'idempotent')::boolean, false) and exists (select 1 from transfer t where t.account_id = account and t.id = c ->> 'id' and t.kind = 'expired')
      and not exists (select 1 from idempotency d where d.account_id = account and d.hold_id = c ->> 'id'))) j
  where a.id = account and j.id <> all(begun)
  on conflict (account_id, id) do nothing;
  answers := ledger_settle(account, ids);
  for r in select x.id, x.replay from jsonb_to_recordset(calls) as x(id text, replay jsonb, idempotent boolean) where x.idempotent and x.id <> all(begun) loop
    if r.replay is null then
      delete from idempotency d where d.account_id = account and d.hold_id = r.id and d.status is null;
    else
      -- A large answer was put there before: see admission/idempotency.ts.
      update idempotency d set status = (r.replay ->> 'status')::int, content_type = r.replay ->> 'type', freed = false, sealed = coalesce(decode(r.replay ->> 'sealed', 'base64'), d.sealed)
      where d.account_id = account and d.hold_id = r.id and d.status is null;
    end if;
  end loop;
  return answers || coalesce((select jsonb_agg(jsonb_build_array(x, 'already', '0', '0', '0')) from unnest(begun) x), '[]');
end $$;
