-- Which endpoints a key may use; null: every endpoint, as all keys so far.
alter table api_key add column endpoints text[];
