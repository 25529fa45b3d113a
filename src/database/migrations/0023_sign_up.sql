-- Sign-up: a link by which somebody who has no account makes one, which terms a person accepted, and who had starting credits already.
alter table invite drop constraint invite_kind_check,
  add constraint invite_kind_check check (kind in ('member', 'operator', 'password', 'sign-up'));
create index invite_email on invite (email);

alter table person add column terms_version text, add column terms_at timestamptz;

-- A mailbox as a keyed digest, which outlives the person: who deletes their account and signs up again gets no second starting credits.
create table starting_credit (
  mailbox bytea primary key,
  at timestamptz not null default now()
);
