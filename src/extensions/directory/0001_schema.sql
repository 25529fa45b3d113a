-- Mail domains that an account has proved to be its own, by a DNS record.
create table account_domain (
  account_id text collate "C" not null references account,
  domain text collate "C" not null,
  proved_at timestamptz not null default now(),
  primary key (account_id, domain)
);

-- Without an account the role is one of those who run the gateway.
create table login_group (
  provider_id text collate "C" not null references login_provider on delete cascade,
  name text not null,
  account_id text collate "C" references account on delete cascade,
  role text not null,
  constraint login_group_key unique nulls not distinct (provider_id, name, account_id)
);
