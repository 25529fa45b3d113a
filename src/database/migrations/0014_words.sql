-- Tables and columns get the names that the documents use.
alter table share rename to quota_slice;
alter table quota_slice rename constraint share_pkey to quota_slice_pkey;
alter table quota_slice rename column asked_at to recalled_at;
drop function if exists ledger_share(text, interval, jsonb, jsonb, jsonb, jsonb, boolean, bigint);
alter table change rename to cache_version;
alter table cache_version rename constraint change_pkey to cache_version_pkey;
alter table process rename to gateway_instance;
alter table gateway_instance rename constraint process_pkey to gateway_instance_pkey;
alter table content rename to recording;
alter table recording rename constraint content_pkey to recording_pkey;
alter index content_age rename to recording_age;
alter index content_call rename to recording_call;
alter table recording_policy rename constraint content_rule_pkey to recording_policy_pkey;
alter table credit_idempotency rename constraint grant_key_pkey to credit_idempotency_pkey;
alter table credit_idempotency rename constraint grant_key_account_id_fkey to credit_idempotency_account_id_fkey;
alter table own_key rename to byok_key;
alter table byok_key rename constraint own_key_pkey to byok_key_pkey;
alter table api_key rename column keeps_answers to response_cache;
-- What a call does not spend stays in its lease.
alter table journal rename column keeps to stays_leased;
alter table journal rename column story to attempt_log;
alter table usage rename column story to attempt_log;
-- Members of stored documents.
update usage set attempt_log = replace(replace(replace(replace(replace(attempt_log::text, '"asked": ', '"parameters": '), '"said": ', '"vendorError": '),
  '"mend": ', '"fix": '), '"own_key_refused"', '"byok_key_rejected"'), '"own_key_limited"', '"byok_key_limited"')::jsonb where attempt_log is not null;
update job set request = replace(request, '"ownKey":', '"byok":') where open;
update catalog_version set document = regexp_replace(document, '"ownKeyFee"\s*:', '"byokFee":', 'g') where document like '%"ownKeyFee"%';
update refusal set fault = case fault when 'own_key_refused' then 'byok_key_rejected' else 'byok_key_limited' end where fault in ('own_key_refused', 'own_key_limited');
