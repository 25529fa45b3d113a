-- Tables get the names that the documents use.
alter table kept_answer rename to vendor_object;
alter index kept_answer_age rename to vendor_object_age;
alter index kept_answer_conversation_age rename to vendor_object_conversation_age;
alter table vendor_object rename constraint kept_answer_pkey to vendor_object_pkey;
alter table content_rule rename to recording_policy;
alter table grant_key rename to credit_idempotency;
-- The formats in which a model is offered to callers.
update catalog_version set document = regexp_replace(document, '"doors"\s*:', '"clientFormats":', 'g') where document like '%"doors"%';
