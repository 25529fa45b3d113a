-- The Idempotency-Keys with which credits were given or taken back, and what was answered. Kept for ever, as the money is: who
-- repeats a payment's message days later must not pay twice.
create table grant_key (
  account_id text collate "C" not null references account,
  key text collate "C" not null,
  request_hash text not null,
  answer jsonb not null,
  at timestamptz not null default now(),
  primary key (account_id, key)
);
