-- Tokens of the operator API: of the whole gateway (no account), or of one account. identity/tokens.ts says what one may do.
create table access_token (
  id text collate "C" primary key,
  -- An HMAC of the token: whoever reads the database cannot guess by it.
  digest bytea not null unique,
  account_id text collate "C" references account,
  name text not null,
  last4 text not null,
  scopes text[] not null,
  -- Null: from anywhere.
  ip_ranges text[],
  expires_at timestamptz,
  -- Whose rights bound it, at every use. Null: the token of the first start, or one that it made.
  person_id text collate "C" references person on delete cascade,
  made_by text not null,
  -- The token that a process was started with.
  is_first boolean not null default false,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  last_ip text,
  revoked_at timestamptz
);
create index access_token_account on access_token (account_id);
create index access_token_person on access_token (person_id);
