-- Forward only, whatever the program believes.
create or replace function job_rank(status text) returns integer
language sql immutable as $$
  select case status when 'PENDING' then 0 when 'CONNECT' then 1 when 'PROCESSING' then 2 else 3 end
$$;

create or replace function job_forward() returns trigger
language plpgsql as $$
begin
  if new.status <> old.status and job_rank(new.status) <= job_rank(old.status) then
    raise exception 'job % cannot go from % to %', old.id, old.status, new.status;
  end if;
  if old.verdict is not null and new.verdict is distinct from old.verdict then
    raise exception 'job % has its verdict already', old.id;
  end if;
  if job_rank(new.status) = 3 and new.status is distinct from new.verdict then
    raise exception 'job % ends otherwise than its verdict', old.id;
  end if;
  if old.task_id is not null and new.task_id is distinct from old.task_id then
    raise exception 'job % has its task already', old.id;
  end if;
  return new;
end $$;
create or replace trigger job_forward before update on job
for each row
when (old.status is distinct from new.status or old.verdict is distinct from new.verdict
  or old.task_id is distinct from new.task_id)
execute function job_forward();
