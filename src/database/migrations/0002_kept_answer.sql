-- Answers that a vendor keeps for a caller (stored responses, threads): whose they are, and which vendor has them. All accounts
-- share the vendor's credential, so that this is what keeps them apart.
create table kept_answer (
  account_id text collate "C" not null,
  -- The vendor's own.
  id text collate "C" not null,
  vendor text not null,
  product text not null,
  created_at timestamptz not null default now(),
  primary key (account_id, id)
);
create index kept_answer_age on kept_answer (created_at);
