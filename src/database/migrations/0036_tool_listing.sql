-- What each foreign MCP server listed when somebody last looked. It says which tools are held back; what is sold stands in the catalog.
create table tool_listing (
  server text collate "C" primary key,
  looked_at timestamptz not null default now(),
  -- The last time that it answered.
  seen_at timestamptz,
  error text,
  tools jsonb not null default '[]'
);
