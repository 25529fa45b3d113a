-- Whether calls are served: open, suspended or closed (admission/accounts.ts), why, and since when. Functions check it with the account locked.
alter table account add column status text not null default 'open', add column status_reason text, add column status_at timestamptz;

-- Kinds of transfers that are no calls: a correction in the customer's favour, and what became of a closed account's balance.
create or replace view entry as
  select t.account_id, t.id as transfer_id, t.at, leg.account, leg.amount
  from transfer t
  cross join lateral (values
    ('account:' || t.account_id,
     case when t.kind in ('grant', 'correction') then t.amount when t.kind in ('takeback', 'payout', 'writeoff', 'settled') then -t.amount else 0 end),
    ('platform:grants',
     case when t.kind in ('grant', 'correction') then -t.amount when t.kind in ('takeback', 'payout', 'writeoff') then t.amount else 0 end),
    ('platform:loss', -t.loss),
    ('platform:revenue', case t.kind when 'settled' then t.amount + t.loss else t.loss end)
  ) as leg (account, amount)
  where leg.amount <> 0;
drop index transfer_given;
create index transfer_given on transfer (account_id, moved_at) where kind in ('grant', 'correction', 'takeback', 'payout', 'writeoff');
