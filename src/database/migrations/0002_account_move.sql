-- Accounts that are moved to another database: see process/move.ts. While this lies ahead, calls and changes of the account are refused here.
alter table account add column frozen_until timestamptz;

create table account_move (
  account_id text collate "C" primary key,
  -- Of the move that last touched it: whoever is slower finds another one's, and stops.
  move_id text collate "C" not null,
  -- Here: leaving, gone, arriving or arrived.
  state text not null,
  -- The other database, without a password.
  other text not null,
  at timestamptz not null default now()
);
