-- What a cloud gave for a login: sealed, and shared by all processes, so that one renewal serves them all.
create table login_token (
  -- The digest of the login and its credential.
  id text collate "C" primary key,
  sealed bytea,
  renew_at timestamptz,
  expires_at timestamptz,
  -- Until then one process renews it, and the others wait.
  claimed_until timestamptz not null
);
