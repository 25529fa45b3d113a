// What a worker may do to a job, whatever its statements say: seen from outside, by what a statement found and what it
// left.
import type { Queryable, Statement, Value } from '../../src/database/database.ts'

interface Seen {
  readonly id: string
  readonly version: number
  /** Somebody is believed to work on it. */
  readonly leased: boolean
  /** Nobody may order anything for it. */
  readonly ordered: boolean
  readonly ended: boolean
  readonly text: string
}

const SEE = {
  text: `select id, version, coalesce(lease_until > now(), false) as leased,
      submit_started_at is not null or task_id is not null as ordered, verdict is not null as ended, job::text as text
    from job where $1::text[] is null or id = any($1)`,
}

/** Those that say which version of the job they are about. */
const FENCED = /^job_(release|begin_submission|refused_submission|submitted|decide|processing|conclude)$/

/** These may take any. */
const TAKING = /^job_(take|claim)$/

/** By job: the versions that it is about; a worker that had a job twice may release it twice at once. */
function jobsOf({ name = '' }: Statement, [ids, versions]: readonly Value[]): Map<string, number[]> {
  const jobs = new Map<string, number[]>()
  if (!FENCED.test(name)) return jobs
  for (const [at, id] of [ids as string | string[]].flat().entries())
    jobs.set(id, [...(jobs.get(id) ?? []), [versions as number | number[]].flat()[at]!])
  return jobs
}

/** Runs a statement, and answers besides what was wrong with it. */
export async function watchFences<T>(
  statement: Statement,
  values: readonly Value[],
  on: Queryable,
  run: () => Promise<T>,
): Promise<{ result: T; broken: string[] }> {
  const jobs = jobsOf(statement, values)
  const isTaking = TAKING.test(statement.name ?? '')
  if (jobs.size === 0 && !isTaking) return { result: await run(), broken: [] }
  const ids = isTaking ? null : [...jobs.keys()]
  const before = await on.query<Seen>(SEE, [ids])
  const result = await run()
  const after = new Map((await on.query<Seen>(SEE, [ids])).map((job) => [job.id, job]))
  const broken = before
    .filter(({ id, text }) => after.get(id)?.text !== text)
    .flatMap((job) => offences(statement.name ?? '', job, jobs.get(job.id)))
  return { result, broken }
}

function offences(
  name: string,
  { id, version, leased, ordered, ended }: Seen,
  given: readonly number[] = [],
): string[] {
  return [
    ...(TAKING.test(name) && leased ? [`${id} was taken from somebody who works on it`] : []),
    ...(given.length > 0 && !given.includes(version)
      ? [`${id} was written by a worker that had lost it: ${name}`]
      : []),
    ...(name === 'job_begin_submission' && (ordered || ended) ? [`${id} was ordered although it was before`] : []),
    ...(name === 'job_decide' && ended ? [`${id} was decided twice`] : []),
  ]
}
