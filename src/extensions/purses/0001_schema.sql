-- Tokens of a purse's customer for an app or a page: what one may do is sealed in it.
create table purse_session (
  account_id text collate "C" not null,
  id text collate "C" not null,
  purse_id text collate "C" not null,
  -- The start of its token.
  prefix text not null,
  -- The most that the purse pays for one call. Null: any amount.
  call_max bigint,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  created_at timestamptz not null default now(),
  primary key (account_id, id),
  foreign key (account_id, purse_id) references purse
);
create index purse_session_purse on purse_session (account_id, purse_id, id);
create index purse_session_age on purse_session (expires_at);

-- The payment provider of an account whose customers pay into their purses, what a credit costs there, and how the page
-- for customers looks.
create table purse_payments (
  account_id text collate "C" primary key references account,
  settings jsonb not null,
  -- The secrets of its provider. Null: there are none.
  sealed bytea
);

-- What customers pay into purses through the provider of their account. What is asked for, and reports of the provider
-- apply to it as to a payment.
create table purse_topup (
  account_id text collate "C" not null,
  -- The reference of its movement; those of what went back begin with it.
  id text collate "C" not null,
  purse_id text collate "C" not null,
  -- stripe or simulated
  provider text not null,
  -- The payment's id there. Null: the provider has not named it yet.
  provider_id text,
  currency text not null,
  -- In the currency's smallest unit: what was asked for, and what was paid.
  price_minor bigint not null,
  amount_minor bigint not null,
  credits bigint not null,
  -- pending, paid, refunded, disputed, quarantined or failed
  state text not null default 'pending',
  reason text,
  -- Whether the purse got its credits.
  granted boolean not null default false,
  refunded_minor bigint not null default 0,
  disputed_minor bigint not null default 0,
  -- none, open, lost or won
  dispute text not null default 'none',
  -- Of the credits, for money that went back: what was taken, and what was spent before.
  taken bigint not null default 0,
  lost bigint not null default 0,
  -- Of the provider's checkout.
  reference text,
  -- The moment of which the provider's last word on it is.
  as_of timestamptz,
  created_at timestamptz not null default now(),
  paid_at timestamptz,
  primary key (account_id, id),
  foreign key (account_id, purse_id) references purse,
  check (taken >= 0 and lost >= 0 and taken + lost <= credits)
);
create unique index purse_topup_provider on purse_topup (account_id, provider, provider_id);
create index purse_topup_purse on purse_topup (account_id, purse_id, created_at);
create index purse_topup_open on purse_topup (created_at) where state = 'pending';
create index purse_topup_quarantined on purse_topup (account_id) where state = 'quarantined';
