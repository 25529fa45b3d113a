-- Without this, ClickHouse keeps calls for ever. In a cluster it is for the table of each shard:
-- alter table tollgate_usage_local on cluster '{cluster}' modify ttl day + interval 36 month;
alter table tollgate_usage modify ttl day + interval 36 month;
-- Versions before 19.6 know no TTL. There a month is dropped by hand:
-- alter table tollgate_usage drop partition 202601;
