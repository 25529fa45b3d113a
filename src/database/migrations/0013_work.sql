-- Everything that waits is its own queue (src/jobs/work.ts): its row says when its next step is due and who has it. What pg-boss kept only repeated that.
drop schema if exists pgboss cascade;

alter table job alter column step_at set default now();
alter table batch alter column step_at set default now();
alter table background alter column step_at set default now();
drop index job_open;
create index job_open on job (step_at) where open;

-- Deliveries have the columns of the others: what was the number of the attempt is the version, and `open` says what an empty time said.
alter table delivery rename column attempt to version;
alter table delivery rename column next_at to step_at;
alter table delivery add column open boolean not null default true;
alter table delivery drop constraint delivery_check1;
drop index delivery_due;
update delivery set open = false, step_at = created_at where step_at is null;
alter table delivery alter column step_at set not null;
alter table delivery add check (open = (delivered_at is null and given_up_at is null));
create index delivery_open on delivery (step_at) where open;
