-- What running calls may spend of a lease. The rest of it is available to whoever looks, and given up before anybody is refused.
alter table lease add column in_use bigint not null default 0;
