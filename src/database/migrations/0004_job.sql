-- What the job engine keeps of a job besides what its creation fixed. The row is the truth; the queue only says when to look
-- at it next. Every time here is the database's, so that no machine's clock can end a job or steal one.
alter table job
  -- The fence: whoever works on a job has raised this, and writes only while it still has that value.
  add column version integer not null default 0,
  -- Until when the process that raised it is believed to be working.
  add column lease_until timestamptz,
  -- When a step is due. A row whose time has passed without a step is queued anew. A new row's first step is queued by its
  -- creator; should that one have died, or never have learned that the row was made, others take over after this while.
  add column step_at timestamptz not null default now() + interval '15 seconds',
  -- Something is still to be done: to move it, to settle it, to tell about it, or to look whether the vendor changed its mind.
  add column open boolean not null default true,
  -- Steps in a row that failed for no reason of the vendor's.
  add column attempts smallint not null default 0,
  -- Looks in a row that found no such task.
  add column misses smallint not null default 0,
  add column deadline_at timestamptz not null default now() + interval '26 hours',
  -- Set before a submission leaves and cleared when it was certainly refused. Set and without a task: nobody knows.
  add column submit_started_at timestamptz,
  add column submissions smallint not null default 0,
  add column vendor text,
  add column route smallint not null default 0,
  add column task_id text,
  -- How it ends. Written before the money moves, which moves before `status` says it; so each step can be repeated.
  add column verdict text check (verdict in ('COMPLETED', 'FAILED', 'CANCELLED')),
  add column delivered jsonb,
  add column error jsonb,
  -- Ids of stored files; addresses are made when somebody asks.
  add column files jsonb,
  -- When the caller's own address was told, or given up.
  add column called_back_at timestamptz,
  -- After an ending that was ours to declare: until when the task is still looked at.
  add column watch_until timestamptz,
  -- What an operator should know, such as a success that came after the refund.
  add column anomaly text;

-- A step changes none of the indexed columns, and so needs no index entry when there is room on the page.
alter table job set (fillfactor = 70);
drop index job_account;
-- A hold's id sorts by time; a job's own id must not tell any.
create index job_listed on job (account_id, hold_id);
create index job_open on job (id) where open;

-- Requests too large to travel with the reservation: pictures that were sent inline. Gone when the vendor has them.
create table job_body (
  job_id text collate "C" primary key,
  body text not null,
  at timestamptz not null default now()
);

-- Forward only, whatever the program believes.
create function job_rank(status text) returns integer
language sql immutable as $$
  select case status when 'PENDING' then 0 when 'CONNECT' then 1 when 'PROCESSING' then 2 else 3 end
$$;

create function job_forward() returns trigger
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
create trigger job_forward before update on job
for each row
when (old.status is distinct from new.status or old.verdict is distinct from new.verdict
  or old.task_id is distinct from new.task_id)
execute function job_forward();

-- A creation with an Idempotency-Key has its answer at once: the row, its hold and its answer are made together.
create function job_answer() returns trigger
language plpgsql as $$
begin
  update idempotency set status = 200, content_type = 'application/json; charset=utf-8',
    body = convert_to(format('{"success":true,"data":{"jobId":"%s","status":"%s"},"requestId":"req_%s"}',
      new.id, new.status, new.hold_id), 'UTF8')
  where hold_id = new.hold_id;
  return null;
end $$;
create trigger job_answer after insert on job for each row execute function job_answer();
