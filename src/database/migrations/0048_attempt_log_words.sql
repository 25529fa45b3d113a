-- Stored attempt logs get the words that the API uses for why a call stopped and for who was at fault. Inside a text a quotation mark is escaped, so no message changes.
do $$
declare
  word text[];
begin
  foreach word slice 1 in array array[['stop', 'refused', 'rejected'], ['stop', 'slow', 'timeout'], ['stop', 'left', 'client_closed'], ['stop', 'broke', 'interrupted'],
    ['stop', 'outrun', 'hedge_lost'], ['blame', 'upstream', 'vendor'], ['blame', 'us', 'gateway']] loop
    update usage set attempt_log = replace(attempt_log::text, format('"%s": "%s"', word[1], word[2]), format('"%s": "%s"', word[1], word[3]))::jsonb
    where attempt_log is not null and position(format('"%s": "%s"', word[1], word[2]) in attempt_log::text) > 0;
  end loop;
end $$;
