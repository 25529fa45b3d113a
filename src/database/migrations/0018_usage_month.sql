-- Usage of a month that is over, by customer, product, key and vendor: what statements and margins say of it when its calls are no longer stored. Written once for each
-- month by maintenance (ledger/usage-months.ts), from the usage rows that were posted in it. The setting `usage-months` names the last such month.
create table usage_month (
  account_id text collate "C" not null,
  month date not null,
  product text collate "C" not null,
  key_id text collate "C" not null,
  -- Empty: nobody answered, or it was a cached response.
  vendor text collate "C" not null,
  calls bigint not null,
  charged bigint not null,
  -- What was charged for the calls whose cost is known, and that cost.
  costed bigint not null,
  cost bigint not null,
  primary key (account_id, month, product, key_id, vendor)
);
create index usage_month_month on usage_month (month);
