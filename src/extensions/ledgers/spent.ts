// Limits of the whole gateway on credits and jobs count at control what the accounts of all ledgers have spent. Before
// a process asks for its slice, it brings that up to date: what it has spent since is still in its slice.
import { type Database, type Queryable, SHORT_MS, sql, statement } from '../../database/database.ts'
import { sleep } from '../../kernel/timers.ts'
import type { World } from '../../kernel/world.ts'

const ASK = statement(
  'ledger_spent_ask',
  // Postings come to no hour that was over ten minutes before (system_closed in functions/quota-slice.sql).
  `select clock_timestamp()::text as asked,
     coalesce((select max(hour) - interval '1 hour' from ledger_spent where ledger = $1 and hour < 'infinity'), '-infinity')::text as since`,
  SHORT_MS,
)
/** One statement, so that a settlement posted meanwhile is counted once. Test accounts spend no money. */
const READ = sql('ledger_spent_read', SHORT_MS)`
  select jsonb_agg(x)::text as hours from (
  select u.hour, sum(u.charged) as charged, 0 as jobs from usage_hour u
  where u.hour >= $1::timestamptz and right(u.account_id, 5) <> '_test' group by u.hour
  union all
  select 'infinity', coalesce(sum(h.amount), 0)
    + (select coalesce(sum(j.charged), 0) from journal j where right(j.account_id, 5) <> '_test'), count(*)
  from hold h where h.job and right(h.account_id, 5) <> '_test') x`
/** What was asked for earlier may have been read later: then it has nothing that the other has not. */
const WRITE = sql('ledger_spent_write', SHORT_MS)`
  insert into ledger_spent as s (ledger, hour, charged, jobs, asked_at)
  select $1, x.hour, x.charged, x.jobs, $3::timestamptz
  from jsonb_to_recordset($2::jsonb) as x(hour timestamptz, charged bigint, jobs bigint) order by x.hour
  on conflict (ledger, hour) do update set charged = excluded.charged, jobs = excluded.jobs, asked_at = excluded.asked_at
  where s.asked_at <= excluded.asked_at or s.asked_at > now() + interval '1 minute'`

/** A ledger that takes longer is taken for one that does not answer: calls of all others wait for it. */
const READ_MS_MAX = 500

/** Answers whether what is spent in all of them is counted. */
export function createSpent(control: Queryable, cells: ReadonlyMap<string, { database: Database }>, world: World) {
  const going = new Set<string>()

  async function bring(name: string, database: Database): Promise<true> {
    const [{ asked, since } = { asked: '', since: '' }] = await control.query<{ asked: string; since: string }>(ASK, [
      name,
    ])
    const [{ hours } = { hours: '' }] = await database.query<{ hours: string }>(READ, [since])
    await control.query(WRITE, [name, hours, asked])
    return true
  }

  async function bringInTime(name: string, database: Database): Promise<boolean> {
    if (going.has(name)) return false
    going.add(name)
    const brought = bring(name, database)
      .catch(() => false)
      .finally(() => going.delete(name))
    return Promise.race([brought, sleep(world, READ_MS_MAX).then(() => false)])
  }

  return async () =>
    (await Promise.all([...cells].map(([name, { database }]) => bringInTime(name, database)))).every(Boolean)
}
