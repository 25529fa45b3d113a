-- What was done stays written.
create or replace function audit_is_append_only() returns trigger
language plpgsql as $$
begin
  raise exception 'audit rows are never changed or removed';
end $$;
create or replace trigger audit_append_only before update or delete or truncate on audit
  for each statement execute function audit_is_append_only();
