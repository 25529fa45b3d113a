-- The limits of the whole gateway. Each process takes a slice of what they leave, and admits calls against it by
-- itself; so no call waits for a row that all share. What a process has of credits and of calls at the same time stands
-- in `quota_slice`; requests and tokens are counted to the minute when they are given. Jobs outlive processes, and
-- their holds say what they have.
--
-- has: {credits, calls} that its running calls hold; what it had besides goes back, or was spent.
-- back: [[second, requests, tokens], …] that were counted and not used. need, want: {requests, tokens, credits, calls},
-- the least and the most that it would like to have.
-- everything: all that is left, not half of it. turn: the process counts what it sends; one that arrives after a later
-- one was given up, and says what is no longer so.
-- Answers {version, credits, calls, requests, tokens, second, refused: {limit, unit, span, max, wait}}; what is not
-- limited is left out. refused: the limit that left too little. Not sent to another server as a whole: it reads holds
-- of all accounts.
create or replace function ledger_quota_slice(process text, silent interval, has jsonb, back jsonb, need jsonb, want jsonb, everything boolean, turn bigint) returns jsonb
language plpgsql as $$
declare
  now_second bigint := floor(extract(epoch from clock_timestamp()))::bigint;
  c counter;
  given jsonb := '{}';
  refused jsonb;
  room bigint;
  part bigint;
  needs bigint;
begin
  perform 1 from counter o where o.account_id = '' order by o.name for update;
  if not found then
    delete from quota_slice o where o.account_id = '';
    return '{}';
  end if;
  if exists (select 1 from quota_slice o where o.account_id = '' and o.process_id = process and o.turn >= ledger_quota_slice.turn) then
    return '{}';
  end if;
  -- A process that asks is alive: this counts as its heartbeat, so its slice is not expired.
  update gateway_instance p set heartbeat_at = now() where p.id = process;
  delete from quota_slice o where o.account_id = '' and o.process_id <> process
    and not exists (select 1 from gateway_instance p where p.id = o.process_id and p.heartbeat_at between now() - silent and now() + silent);
  insert into quota_slice (account_id, process_id, unit, amount, turn) select '', process, x, coalesce((has ->> x)::bigint, 0), ledger_quota_slice.turn from unnest('{credits,calls}'::text[]) x
  on conflict (account_id, process_id, unit) do update set amount = excluded.amount, turn = excluded.turn, recalled_at = null;
  for c in select * from counter o where o.account_id = '' order by counter_rank(o.unit, o.span) loop
    if c.unit = 'credits' then
      c := system_closed(c);
      -- One statement, so that a settlement posted meanwhile is counted once. Test accounts spend no money.
      room := c.max - c.used - (select coalesce(sum(x.charged), 0) from (
          select u.charged from usage_hour u where u.hour >= c.since and right(u.account_id, 5) <> '_test'
          union all select j.charged from journal j where right(j.account_id, 5) <> '_test') x)
        - (select coalesce(sum(o.amount), 0) from quota_slice o where o.account_id = '' and o.unit = 'credits')
        - (select coalesce(sum(h.amount), 0) from hold h where h.job and right(h.account_id, 5) <> '_test')
        - (select coalesce(sum(l.charged), 0) from ledger_spent l where l.hour >= span_starts(c.span));
    elsif c.unit = 'calls' then
      room := c.max - (select coalesce(sum(o.amount), 0) from quota_slice o where o.account_id = '' and o.unit = 'calls') - (select count(*) from hold h where h.job and right(h.account_id, 5) <> '_test')
        - (select coalesce(sum(l.jobs), 0) from ledger_spent l where l.hour = 'infinity');
    else
      c := counter_now(c, now_second);
      c := counter_add(c, array(select (x -> 0)::bigint from jsonb_array_elements(back) x),
        array(select -(x -> case c.unit when 'requests' then 1 else 2 end)::bigint from jsonb_array_elements(back) x));
      room := c.max - counter_used(c, now_second);
    end if;
    -- A process that wants nothing gets nothing.
    needs := coalesce((need ->> c.unit)::bigint, 0);
    part := greatest(least(coalesce((want ->> c.unit)::bigint, 0), greatest(case when everything then room else (room + 1) / 2 end, least(needs, room))), 0);
    if room < needs and refused is null then
      refused := jsonb_build_object('limit', c.name, 'unit', c.unit, 'span', c.span, 'max', c.max::text, 'wait', counter_wait(c, needs - room));
    end if;
    given := given || jsonb_build_object(c.unit, least((given ->> c.unit)::bigint, part)::text);
    update counter o set used = c.used, second = c.second, seconds = c.seconds, since = c.since where o.account_id = '' and o.name = c.name;
  end loop;
  -- What is given is what all limits on it allow.
  for c in select * from counter o where o.account_id = '' and o.unit in ('requests', 'tokens') loop
    perform counter_put(array[counter_add(c, array[now_second + 1], array[(given ->> c.unit)::bigint])]);
  end loop;
  update quota_slice o set amount = o.amount + (given ->> o.unit)::bigint where o.account_id = '' and o.process_id = process and given ? o.unit;
  if refused is not null then
    update quota_slice o set recalled_at = now() where o.account_id = '' and o.process_id <> process and o.amount > 0;
  end if;
  return given || jsonb_build_object('version', (select s.value from setting s where s.name = 'system-limits'), 'second', now_second + 1, 'refused', refused);
end $$;

create or replace function span_starts(span text) returns timestamptz language sql stable as $$
  select case span when 'total' then '-infinity' else date_trunc(nullif(span, 'total'), now(), 'UTC') end
$$;

-- What all accounts have spent is in the sums of their hours. Of the gateway's counters on credits, `used` has the
-- hours that are closed, up to `since`; no statement that began in them still runs.
create or replace function system_closed(c counter) returns counter
language plpgsql as $$
declare
  starts timestamptz := span_starts(c.span);
  closed timestamptz := date_trunc('hour', now() - interval '10 minutes', 'UTC');
begin
  -- Or the server's clock was set back by more than an hour.
  if c.since < starts or c.since > now() + interval '1 hour' then
    c.used := 0; c.since := starts;
  end if;
  if c.since < closed then
    c.used := c.used + (select coalesce(sum(u.charged), 0) from usage_hour u where u.hour >= c.since and u.hour < closed and right(u.account_id, 5) <> '_test'); c.since := closed;
  end if;
  return c;
end $$;
