-- Alerts of an account, or with an empty scope of the gateway: what fired, to whom it was told, and what is true now,
-- so that each crossing fires once.
create table alert (
  id text collate "C" primary key,
  scope text collate "C" not null,
  rule text not null,
  subject text not null,
  level text not null,
  title text not null,
  message text not null,
  at timestamptz not null default now(),
  read_at timestamptz
);
create index alert_scope on alert (scope, id);
create index alert_unread on alert (scope) where read_at is null;

create table alert_state (
  scope text collate "C" not null,
  rule text not null,
  subject text not null,
  level text not null,
  rank integer not null,
  at timestamptz not null default now(),
  primary key (scope, rule, subject)
);

-- Rules and receivers, encrypted by the gateway.
create table alert_setting (
  scope text collate "C" primary key,
  sealed bytea not null
);

-- Mailboxes that were asked whether they want alerts, and those that answered (alerts/receivers.ts).
create table alert_mailbox (
  scope text collate "C" not null,
  -- Lower case, as it is looked up.
  address text not null,
  -- The same for all spellings of one mailbox.
  mailbox text not null,
  asked_at timestamptz,
  confirmed_at timestamptz,
  unsubscribed_at timestamptz,
  primary key (scope, address)
);
create index alert_mailbox_asked on alert_mailbox (mailbox, asked_at);
