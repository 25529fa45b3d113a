-- What a company's directory says of people and groups by SCIM. scope: an account, or empty for those who run the gateway.
create table scim_user (
  scope text collate "C" not null,
  person_id text collate "C" not null references person on delete cascade,
  user_name text not null,
  external_id text,
  attributes jsonb not null default '{}',
  active boolean not null default true,
  -- The directory made the person.
  managed boolean not null default false,
  -- A group gives the role; without it the role falls back.
  by_group boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  primary key (scope, person_id)
);
create unique index scim_user_name on scim_user (scope, lower(user_name));
create index scim_user_person on scim_user (person_id);

create table scim_group (
  scope text collate "C" not null,
  id text collate "C" not null,
  display_name text not null,
  external_id text,
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  primary key (scope, id)
);
create unique index scim_group_name on scim_group (scope, lower(display_name));

create table scim_group_member (
  scope text collate "C" not null,
  group_id text collate "C" not null,
  person_id text collate "C" not null,
  primary key (scope, group_id, person_id),
  foreign key (scope, group_id) references scim_group on delete cascade,
  foreign key (scope, person_id) references scim_user on delete cascade
);
create index scim_group_member_person on scim_group_member (scope, person_id);
