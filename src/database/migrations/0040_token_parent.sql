-- The token with which a token was made. It is revoked with it.
alter table access_token add column parent_id text collate "C" references access_token on delete set null;
create index access_token_parent on access_token (parent_id) where parent_id is not null;
