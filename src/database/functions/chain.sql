-- The transfers of an account are a chain: each has a hash over the one before it, also those that moved nothing. Written with the account
-- locked, as its balance is. ledger/verify-chain.ts reckons the same in its own words.
create or replace function transfer_hash(before bytea, account text, id text, kind text, amount bigint, loss bigint, held bigint, balance bigint,
  note text default null, actor text default null) returns bytea
language plpgsql immutable as $$
begin
  return sha256(coalesce(before, '') || convert_to(concat(account, '|', id, '|', kind, '|', amount, '|', loss, '|', held, '|', balance, '|', note, '|', actor), 'UTF8'));
end $$;

-- The same of several calls, one after the other, from the hash before the first of them.
create or replace function transfer_link(hash bytea, before bytea, account text, id text, kind text, amount bigint, held bigint, balance bigint) returns bytea
language plpgsql immutable as $$
begin
  return transfer_hash(coalesce(hash, before), account, id, kind, amount, 0, held, balance);
end $$;
create or replace aggregate transfer_chain(before bytea, account text, id text, kind text, amount bigint, held bigint, balance bigint) (
  sfunc = transfer_link, stype = bytea
);
