-- Where the calls of a key may go: vendors, regions, and the highest price. Null: anywhere.
alter table api_key add column routing jsonb;
