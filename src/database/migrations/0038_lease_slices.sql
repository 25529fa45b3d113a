-- What a lease was given of the limits and budgets that count requests and tokens, and has neither used nor given back: {second: [requests, tokens]}, by the second to
-- which it was counted. It comes off the counters when the lease ends. Null: made before this was written down.
alter table lease add column slices jsonb;
-- Its process admits no more calls by it, and said so.
alter table lease add column retired boolean not null default false;
