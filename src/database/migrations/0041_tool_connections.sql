-- Sign-ins of people at foreign MCP servers (OAuth). Without a person: for keys that belong to nobody. Without an account: the operator's, for looking at tools.
create table tool_connection (
  id text collate "C" primary key,
  account_id text collate "C",
  person_id text collate "C",
  server text collate "C" not null,
  -- The server's address then: its tokens are sent nowhere else.
  url text not null,
  issuer text not null,
  sealed bytea not null,
  connected_at timestamptz not null default now(),
  foreign key (account_id) references account,
  -- Whoever leaves the account loses it.
  foreign key (person_id, account_id) references membership on delete cascade
);
create unique index tool_connection_of on tool_connection (coalesce(account_id, ''), coalesce(person_id, ''), server);
