-- Teams of an account, and projects, which are teams in a team. All use the account's balance; what each may use is a budget.
create table team (
  account_id text collate "C" not null references account,
  id text collate "C" not null,
  name text not null,
  -- Of a project: its team. A team has none.
  parent_id text collate "C",
  created_at timestamptz not null default now(),
  primary key (account_id, id),
  foreign key (account_id, parent_id) references team
);

create table team_member (
  account_id text collate "C" not null,
  team_id text collate "C" not null,
  person_id text collate "C" not null,
  primary key (account_id, team_id, person_id),
  foreign key (account_id, team_id) references team on delete cascade,
  foreign key (account_id, person_id) references membership (account_id, person_id) on delete cascade
);
create index team_member_person on team_member (account_id, person_id);

-- Where a key belongs, a team or a project, and whose it is. Its calls carry that as labels, so that they keep it when the key moves.
alter table api_key add column team_id text collate "C";
alter table api_key add column member_id text collate "C";
create index api_key_team on api_key (team_id) where team_id is not null;
