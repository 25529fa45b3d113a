-- Who made a key, and so knows its value: only keys that people made for themselves use their sign-ins. Null: a token of nobody, or from before.
alter table api_key add column maker_id text collate "C";
