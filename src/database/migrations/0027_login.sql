-- Single sign-on, second factors, and how each session was proved.

-- Whoever came by single sign-on has no password.
alter table person alter column password drop not null;

create table login_provider (
  id text collate "C" primary key,
  name text not null,
  issuer text not null,
  client_id text not null,
  scopes text[] not null,
  groups_claim text not null,
  -- The provider asks for a second factor itself, so none of ours is asked for after it.
  proves_second_factor boolean not null default false,
  enabled boolean not null default true,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

-- A domain belongs to one provider, which alone may vouch for its addresses. Without an account nobody joins by it.
create table login_domain (
  domain text collate "C" primary key,
  provider_id text collate "C" not null references login_provider on delete cascade,
  account_id text collate "C" references account on delete cascade,
  role text,
  sso_only boolean not null default false,
  constraint login_domain_check check ((account_id is null) = (role is null))
);
create index login_domain_provider on login_domain (provider_id);

-- Without an account the role is one of those who run the gateway.
create table login_group (
  provider_id text collate "C" not null references login_provider on delete cascade,
  name text not null,
  account_id text collate "C" references account on delete cascade,
  role text not null,
  constraint login_group_key unique nulls not distinct (provider_id, name, account_id)
);

-- Who somebody is: what the issuer calls them, never their e-mail address.
create table identity (
  id text collate "C" primary key,
  issuer text collate "C" not null,
  subject text collate "C" not null,
  person_id text collate "C" not null references person on delete cascade,
  provider_id text collate "C" references login_provider on delete set null,
  email text,
  created_at timestamptz not null default now(),
  used_at timestamptz not null default now(),
  constraint identity_key unique (issuer, subject)
);
create index identity_person on identity (person_id);

-- A membership that single sign-on made follows the groups of its provider; one that was made by hand stays.
alter table membership add column provider_id text collate "C" references login_provider on delete set null;
alter table person add column operator_provider_id text collate "C" references login_provider on delete set null;

-- Passkeys, and the shared secret of an authenticator app. `counter` is the passkey's own, or the last time step whose code was used.
create table second_factor (
  id text collate "C" primary key,
  person_id text collate "C" not null references person on delete cascade,
  kind text not null constraint second_factor_kind_check check (kind in ('totp', 'passkey')),
  name text not null,
  sealed bytea,
  credential_id text collate "C" constraint second_factor_credential_key unique,
  public_key bytea,
  transports text[] not null default '{}',
  counter bigint not null default 0,
  confirmed boolean not null default false,
  created_at timestamptz not null default now(),
  used_at timestamptz
);
create index second_factor_person on second_factor (person_id);

create table recovery_code (
  person_id text collate "C" not null references person on delete cascade,
  digest bytea not null,
  primary key (person_id, digest)
);

-- What has begun in a browser and is finished once, or never: a journey to a provider, a passkey's challenge, a login link. Also the ids of
-- logout tokens, so that each is used once.
create table login_flow (
  digest bytea primary key,
  kind text not null,
  person_id text collate "C" references person on delete cascade,
  data jsonb not null,
  expires_at timestamptz not null
);
create index login_flow_age on login_flow (expires_at);

alter table session
  add column method text not null default 'password',
  -- A second factor was part of it.
  add column strong boolean not null default false,
  -- The second factor is still to come: until then it opens nothing.
  add column awaits_factor boolean not null default false,
  add column proved_at timestamptz not null default now(),
  add column provider_id text collate "C",
  -- The provider's own id of the session, by which it ends it.
  add column sid text;
create index session_provider on session (provider_id, sid) where provider_id is not null;
