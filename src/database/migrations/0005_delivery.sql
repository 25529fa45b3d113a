-- What is sent to receivers outside: webhooks of jobs and of alerts, messages for Slack, mails. One row for each message and receiver, with
-- every attempt. The row is the truth; the queue only says when to look at it.
create table delivery (
  -- What receivers are told as the id of the message: the same for every attempt.
  id text collate "C" primary key,
  -- Empty: the gateway's own.
  account_id text collate "C" not null,
  kind text not null check (kind in ('webhook', 'slack', 'email')),
  event text not null,
  -- The job or the alert.
  subject text collate "C" not null,
  -- To whom, as far as it may be shown.
  shown text not null,
  -- The address and what is sent, encrypted by the gateway. Null: an earlier version did not keep it.
  sealed bytea,
  created_at timestamptz not null default now(),
  -- Attempts since it was made or repeated.
  tries integer not null default 0,
  -- All attempts. The fence: whoever sends has raised this, and writes only while it still has that value.
  attempt integer not null default 0,
  -- Until when the process that raised it is believed to be sending.
  lease_until timestamptz,
  next_at timestamptz default now(),
  delivered_at timestamptz,
  given_up_at timestamptz,
  -- The last attempts: number, at, ms, status, error, response. One without `ms` runs, or died with its process.
  attempts jsonb not null default '[]',
  check (delivered_at is null or given_up_at is null),
  check ((next_at is null) = (delivered_at is not null or given_up_at is not null))
);
create index delivery_listed on delivery (created_at, id);
create index delivery_of_account on delivery (account_id, created_at, id);
create index delivery_subject on delivery (subject);
create index delivery_due on delivery (next_at) where next_at is not null;

insert into delivery (id, account_id, kind, event, subject, shown, created_at, tries, attempt, next_at, delivered_at, given_up_at, attempts)
select 'msg_' || d.id, a.scope, d.kind, 'alert.' || a.rule, a.id, coalesce(d.shown, ''), a.at, d.tries, d.tries, null,
  case when d.state = 'delivered' then d.at end, case when d.state <> 'delivered' then d.at end,
  case when d.tries = 0 then '[]' else jsonb_build_array(jsonb_build_object('number', d.tries,
    'at', to_char(d.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'ms', 0, 'error', d.error)) end
from alert_delivery d join alert a on a.id = d.alert_id where a.at > now() - interval '30 days';

-- An alert that was still on its way fires anew if what it says is still true: its receivers are encrypted, and can only be told by the gateway.
delete from alert_state s using alert a join alert_delivery d on d.alert_id = a.id
where d.state = 'waiting' and a.at > now() - interval '1 day' and s.scope = a.scope and s.rule = a.rule and s.subject = a.subject;
drop table alert_delivery;

-- A job whose caller was not told yet gets one more step, which makes its delivery.
update job set open = true, step_at = now(), lease_until = null, version = version + 1, attempts = 1
where completed_at > now() - interval '1 day' and callback_url is not null and called_back_at is null;
alter table job drop column called_back_at;
