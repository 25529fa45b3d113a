-- Calls that failed at a vendor, by their ids, which are times: few, so the index is small, and calls that succeed do not write it.
create index usage_attempts on usage (id) where attempt_log is not null;
