-- The transfers of an account are a chain: each has a hash over the one before it, also those that moved nothing.
-- Written with the account locked, as its balance is. verify/account.ts reckons the same in its own words.
-- Neither strict nor in plpgsql, so that its text becomes part of the statements that use it. A transfer that moved
-- nothing of a lot has the hash that it had before there were lots.
drop function if exists transfer_hash(bytea, text, text, text, bigint, bigint, bigint, bigint, text, text);
drop function if exists transfer_hash(bytea, text, text, text, bigint, bigint, bigint, bigint, text, text, jsonb);
create function transfer_hash(before bytea, account text, id text, kind text, amount bigint, loss bigint, held bigint, balance bigint,
  note text, actor text, lots jsonb) returns bytea
language sql stable as $$
  select sha256(coalesce(before, ''::bytea) || convert_to(concat(account, '|', id, '|', kind, '|', amount, '|', loss, '|', held, '|', balance, '|', note, '|', actor, '|' || lots::text), 'UTF8'))
$$;
