-- The call that answered a line. When the lines go, a hash over the calls of those that were completed stays with the batch. Null: ended before there was one.
alter table batch_line add column call_id text collate "C";
alter table batch add column calls_hash bytea;
