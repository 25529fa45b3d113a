-- What decided the price and the cost of a call, and the chain of an account's transfers. The first four were part of 0001 for a while.
alter table account add column if not exists chain bytea;
alter table transfer add column if not exists hash bytea;
alter table usage add column if not exists attributes jsonb;
alter table journal add column if not exists attributes jsonb;

-- What decided the cost besides `lines` and `attributes`, which decided the price: {units: {output: 1200}, attributes: {resolution: "2k"}}. Nearly always null.
alter table usage add column cost_basis jsonb;
alter table journal add column cost_basis jsonb;

-- From when on every transfer is in the chain, also those that moved nothing, and every cost can be recomputed. Transfers of statements that run while this is applied may
-- still be missing.
alter table account add column chained_at timestamptz not null default '-infinity';
update account set chained_at = now() + interval '5 minutes';

-- What moved nothing has a place among the transfers now: grants are named by their kinds.
drop index transfer_given;
create index transfer_given on transfer (account_id, moved_at) where kind in ('grant', 'takeback');

-- The call that answered it: its usage row.
alter table background add column call_id text collate "C";
