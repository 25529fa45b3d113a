-- What callers sent and were sent is stored encrypted (kernel/secret.ts), wherever it is stored. Rows from before keep what they have in plain until they go.
alter table background alter column request drop not null, add column sealed_request bytea, add column sealed_answer bytea;
alter table background_event alter column events drop not null, add column sealed bytea;
alter table batch_line add column sealed bytea;
create index batch_line_open on batch_line (account_id, batch_id, number) where ok is null;
drop index batch_line_left;
alter table idempotency add column sealed bytea;
-- Answers to calls of responses in the background, among which those are looked for whose response was deleted.
create index idempotency_background on idempotency (account_id, key) where key like ' resp_bg%';
