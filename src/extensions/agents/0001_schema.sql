-- What agents proposed, until a person answers.
create table budget_proposal (
  account_id text collate "C" not null references account,
  id text collate "C" not null,
  budget_id text collate "C" not null,
  -- Its maximum then, and the one that is wanted.
  was text not null,
  max text not null,
  reason text not null,
  proposer text not null,
  created_at timestamptz not null default now(),
  primary key (account_id, id)
);

-- What each foreign MCP server listed when somebody last looked. It says which tools are held back; what is sold stands
-- in the catalog.
create table tool_listing (
  server text collate "C" primary key,
  looked_at timestamptz not null default now(),
  -- The last time that it answered.
  seen_at timestamptz,
  error text,
  tools jsonb not null default '[]'
);

-- Sign-ins of people at foreign MCP servers (OAuth). Without a person: for keys that belong to nobody. Without an
-- account: the operator's, for looking at tools.
create table tool_connection (
  id text collate "C" primary key,
  account_id text collate "C" references account,
  person_id text collate "C",
  server text collate "C" not null,
  -- The server's address then: its tokens are sent nowhere else.
  url text not null,
  issuer text not null,
  sealed bytea not null,
  connected_at timestamptz not null default now(),
  constraint tool_connection_person_id_account_id_fkey foreign key (person_id, account_id) references membership (person_id, account_id) on delete cascade
);
create unique index tool_connection_of on tool_connection (coalesce(account_id, ''), coalesce(person_id, ''), server);
create index tool_connection_issuer on tool_connection (issuer);
