-- The slowest and the dearest calls of an account, page by page, without reading all of them.
create index usage_duration on usage (account_id, duration_ms, id);
create index usage_charged on usage (account_id, charged, id);
