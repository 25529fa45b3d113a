-- Stored values get the names that the API uses.
update unbilled_day set kind = case kind when 'copy' then 'shadow' when 'outrun' then 'hedge_lost' when 'late' then 'first_token_timeout' else 'client_closed' end
where kind in ('copy', 'outrun', 'late', 'left');
update reconciliation set differences = replace(differences::text, '"mended":', '"corrected":')::jsonb where differences <> '[]';
update setting set value = replace(value, '"refusedDomains":', '"blockedDomains":') where name = 'sign-up';
