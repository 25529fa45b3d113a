-- Why the month that is due could not be charged.
alter table account_plan add column problem text;
-- However many processes renew a plan, its card is charged for one month at a time. A checkout that the customer has left open does not count.
create unique index payment_plan on payment (account_id) where kind = 'plan' and state = 'pending' and detail ? 'charge';
