// The usage table is cut by time: a partition a month, made ahead, dropped when it is older than what is kept. Jobs of that
// time that have ended go with it. Money stays.
import { type Database, statement } from '../database/database.ts'
import { DAY_MS, dayOfMs, formatDay, monthStart } from '../kernel/calendar.ts'
import { idAtTime, type World } from '../kernel/world.ts'

const MONTHS_AHEAD = 2
const LOCK = 7_046_029_256n

const PARTITIONS = statement(
  'usage_partitions',
  `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'usage'::regclass`,
)

// Nothing refers to a job: a usage row names it by its hold, which is as old. One that is open still has something to do.
const DROP_JOBS = statement(
  'jobs_drop',
  `with gone as (delete from job where not open and hold_id < $1 and completed_at < $2 returning 1)
   select count(*)::int as count from gone`,
)

/** The month of a day. Names come from dates that we compute, never from input. */
function monthOf(day: number, months: number): { name: string; from: string; to: string } {
  const start = monthStart(day, months)
  const name = `usage_${formatDay(start, '_').slice(0, 7)}`
  return { name, from: idAtTime(start * DAY_MS), to: idAtTime(monthStart(start, 1) * DAY_MS) }
}

/** Answers the names of the partitions that were made and dropped, and the number of jobs that were. */
export async function maintainUsage(
  database: Database,
  world: World,
  keepMonths: number,
): Promise<{ made: string[]; dropped: string[]; jobs: number }> {
  const today = dayOfMs(world.nowMs())
  return database.transaction(async (tx) => {
    await tx.query({ text: 'select pg_advisory_xact_lock($1)' }, [LOCK])
    const present = new Set((await tx.query<{ name: string }>(PARTITIONS)).map(({ name }) => name))
    const made: string[] = []
    const dropped: string[] = []
    for (let ahead = 0; ahead <= MONTHS_AHEAD; ahead++) {
      const { name, from, to } = monthOf(today, ahead)
      if (present.has(name)) continue
      // Rows that came before their partition wait in the rest; such a month is left there.
      const [row] = await tx.query<{ some: boolean }>(
        { text: 'select exists (select 1 from usage_rest where id >= $1 and id < $2) as some' },
        [from, to],
      )
      if (row?.some) continue
      await tx.query({ text: `create table ${name} partition of usage for values from ('${from}') to ('${to}')` })
      made.push(name)
    }
    const oldest = monthOf(today, -keepMonths)
    for (const name of present) {
      if (name === 'usage_rest' || name >= oldest.name) continue
      await tx.query({ text: `drop table ${name}` })
      dropped.push(name)
    }
    await tx.query({ text: 'delete from usage_rest where id < $1' }, [oldest.from])
    const oldestDate = new Date(monthStart(today, -keepMonths) * DAY_MS)
    await tx.query({ text: 'delete from usage_hour where hour < $1' }, [oldestDate])
    const [row] = await tx.query<{ count: number }>(DROP_JOBS, [oldest.from, oldestDate])
    return { made, dropped, jobs: row?.count ?? 0 }
  })
}
