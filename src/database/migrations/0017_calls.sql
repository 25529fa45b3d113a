-- Which vendor answered a call, or was tried last: calls are sought, counted and timed by it.
alter table usage add column vendor text;
alter table journal add column vendor text;
with used as (
  select distinct catalog_version, product, route from usage where route > 0
), named as (
  select u.catalog_version, u.product, u.route,
    coalesce(d.document -> 'models' -> u.product, d.document -> 'endpoints' -> u.product) -> 'routes' -> (u.route - 1) ->> 'vendor' as vendor
  from used u join (select version, document::jsonb as document from catalog_version) d on d.version = u.catalog_version
)
update usage u set vendor = n.vendor from named n where n.catalog_version = u.catalog_version and n.product = u.product and n.route = u.route;
update usage set vendor = attempt_log -> 'attempts' -> -1 ->> 'vendor' where vendor is null and attempt_log is not null;
-- Calls by their ids alone, which are times: one of them, and those of all accounts together. New ones come at the end, where an index costs least.
create index usage_time on usage (id);

-- The filters that a person has given a name, of one page of the console.
create table saved_view (
  person_id text collate "C" not null references person on delete cascade,
  page text collate "C" not null,
  name text not null,
  -- As it stands in the address of the page.
  query text not null,
  created_at timestamptz not null default now(),
  primary key (person_id, page, name)
);
