-- Which key made a file: a restricted key sees only its own. Rows from before have none, and are for keys without a restriction.
alter table stored_file add column key_id text collate "C";
