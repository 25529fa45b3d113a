-- Who may use the console: people, the accounts they belong to, their sessions, and what keeps guessing slow.

create table person (
  id text collate "C" primary key,
  -- Lower case, as it is looked up.
  email text not null unique,
  operator boolean not null default false,
  -- `$argon2id$v=19$m=…,t=…,p=…$salt$hash`
  password text not null,
  created_at timestamptz not null default now()
);

create table membership (
  account_id text collate "C" not null references account,
  person_id text collate "C" not null references person on delete cascade,
  role text not null check (role in ('owner', 'member')),
  created_at timestamptz not null default now(),
  primary key (person_id, account_id)
);
create index membership_account on membership (account_id);

-- A link that somebody was given: to join an account, or to choose a new password. Kept as a digest, used once.
create table invite (
  digest bytea primary key,
  kind text not null check (kind in ('member', 'password')),
  account_id text collate "C" references account,
  email text not null,
  role text check (role in ('owner', 'member')),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  check ((kind = 'member') = (account_id is not null and role is not null))
);
create index invite_age on invite (expires_at);

-- The cookie holds 32 random bytes; the row holds their SHA-256.
create table session (
  id text collate "C" primary key,
  digest bytea not null unique,
  person_id text collate "C" not null references person on delete cascade,
  ip text not null,
  user_agent text not null,
  created_at timestamptz not null default now(),
  seen_at timestamptz not null default now()
);
create index session_person on session (person_id);

-- Tries to log in, by e-mail address (as a digest, whether anyone has it or not) and by network address.
create table login_attempt (
  subject text collate "C" primary key,
  tries integer not null,
  since timestamptz not null default now(),
  blocked_until timestamptz not null default now()
);
create index login_attempt_age on login_attempt (blocked_until);

-- What was done stays written.
create function audit_is_append_only() returns trigger
language plpgsql as $$
begin
  raise exception 'audit rows are never changed or removed';
end $$;
create trigger audit_append_only before update or delete or truncate on audit
  for each statement execute function audit_is_append_only();

-- Searched for in lower case; kept, because lowering 100,000 names takes longer than searching them.
alter table account add column search text generated always as (lower(name)) stored;
