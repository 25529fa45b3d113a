// The rows of jobs: one statement for each change, fenced by the version that the worker raised when it took the job. A
// worker that lost its lease finds another version, and its writes have no effect.
import { keySeenBy } from '../admission/api-key.ts'
import { type Database, type Queryable, type Statement, sql, statement } from '../database/database.ts'
import { createBatch } from '../kernel/batch.ts'
import { Fault } from '../kernel/fault.ts'
import type { CallbackRow, JobRow, Jobs, ListedJob } from './job.ts'
import { createWorkTable } from './work.ts'

const FACTS_OF_ONE =
  'id, account_id, key_id, product, hold_id, status, error, files, version, created_at, started_at, completed_at'
const SEEN = `${FACTS_OF_ONE}, input`
/** Bytes of callers' input in one result of the database. Further rows come with the next query. */
const INPUT_BYTES_MAX = 4_000_000

const FIND = sql('job_find')`select ${SEEN} from job where id = $1`

const FIND_CALLBACK = sql('job_find_callback')`select ${SEEN}, callback_url from job where id = $1`

// A page stops at the byte limit, but always has at least one row.
const LIST = sql('job_list')`with page as (
     select ${SEEN} from job
     where account_id = $1 and ($2::text is null or status = $2)
       and ($5::text is null or key_id = $5)
       and ($3::text is null or hold_id < (select b.hold_id from job b where b.id = $3 and b.account_id = $1))
     order by hold_id desc limit $4 + 1
   ), measured as (
     select page.*, count(*) over () as found, row_number() over byte_order as place,
       sum(octet_length(input)) over byte_order - octet_length(input) as bytes_before
     from page window byte_order as (order by hold_id desc)
   ), shown as materialized (
     select * from measured where place <= $4 and bytes_before < ${INPUT_BYTES_MAX}
   ), paid as materialized (
     select id as paid_id, amount as charged from transfer where account_id = $1 and id in (select hold_id from shown)
   )
   select shown.*, paid.charged from shown left join paid on paid_id = hold_id order by hold_id desc`

const CHANGED = sql('job_changed')`with measured as (
     select job.*, sum(octet_length(input)) over (order by id) - octet_length(input) as bytes_before
     from job join unnest($1::text[], $2::text[]) as seen (seen_id, seen_status) on id = seen_id where status <> seen_status
   )
   select ${SEEN} from measured where bytes_before < ${INPUT_BYTES_MAX}`

const CLAIMED = `${FACTS_OF_ONE}, catalog_version, request, callback_url, attempts, misses,
  submissions, vendor, route, credential, task_id, verdict, delivered,
  now() >= deadline_at as overdue, coalesce(now() < watch_until, false) as watching,
  extract(epoch from now() - created_at)::float8 * 1000 as age_ms,
  extract(epoch from now() - submit_started_at)::float8 * 1000 as submit_age_ms,
  extract(epoch from submit_started_at)::float8 as submit_started_seconds`

// The status only moves forward.
const ENDED = `attempts = (e.ending ->> 'attempts')::int, misses = (e.ending ->> 'misses')::int,
  status = case when e.ending ? 'status' and job_rank(e.ending ->> 'status') > job_rank(status) then e.ending ->> 'status' else status end,
  started_at = case when e.ending ->> 'status' = 'PROCESSING' then coalesce(started_at, now()) else started_at end`

/**
 * Whether the job's hold still exists. It is found by account and id, because it may be on another server than the job.
 */
const HELD = (FROM: number) => `select 1 from hold where account_id = $${FROM} and id = $${FROM + 1}`

const BEGIN_SUBMISSION = sql('job_begin_submission')`with held as materialized (${HELD(5)})
   update job set status = 'CONNECT', submit_started_at = now(), submissions = submissions + 1, vendor = $3, route = $4, credential = $7
   where id = $1 and version = $2 and status in ('PENDING', 'CONNECT') and verdict is null and task_id is null
     and submit_started_at is null and exists (select 1 from held)
   returning id`

const OPEN_AT = sql('job_open_at')`select count(*)::int as count from job
   where open and submit_started_at is not null and vendor = $1 and coalesce(credential, $2) = $2`

const REFUSED_SUBMISSION = sql('job_refused_submission')`
  update job set submit_started_at = null where id = $1 and version = $2 and task_id is null and verdict is null returning id`

const SUBMITTED = sql('job_submitted')`with done as (
     update job set task_id = $3, request = $4
     where id = $1 and version = $2 and task_id is null and verdict is null returning id
   ), unneeded as (
     delete from job_body using done where job_id = done.id
   )
   select id from done`

/**
 * For a worker that lost its lease while the vendor was accepting the order: another worker has the job, but only this
 * one knows the task's id. The fence is the number of the submission. Raising the version takes the job from the other
 * worker, whose view of it is out of date.
 */
const KEEP_TASK = sql('job_keep_task')`with done as (
     update job set task_id = $3, request = $4, version = version + 1, lease_until = null, step_at = now()
     where id = $1 and submissions = $2 and submit_started_at is not null and task_id is null and verdict is null
     returning id
   ), unneeded as (
     delete from job_body using done where job_id = done.id
   )
   select id from done`
const IS_DECIDED = sql('job_is_decided')`select 1 from job where id = $1 and verdict is not null`

const DECIDE = sql('job_decide')`with done as (
     update job set verdict = $3, error = $4, files = $5, delivered = $6,
       watch_until = now() + make_interval(secs => $7::float8 / 1000.0)
     where id = $1 and version = $2 and verdict is null returning id
   ), unneeded as (
     delete from job_body using done where job_id = done.id
   )
   select id from done`

const PROCESSING = sql('job_processing')`update job set status = 'PROCESSING', started_at = coalesce(started_at, now())
   where id = $1 and version = $2 and status in ('PENDING', 'CONNECT') and verdict is null`

const CONCLUDE = sql('job_conclude')`with held as materialized (${HELD(3)}), moment as materialized (select now() as at)
   update job set status = verdict, completed_at = coalesce(completed_at, moment.at),
     started_at = case when verdict = 'COMPLETED' then coalesce(started_at, moment.at) else started_at end
   from moment where id = $1 and version = $2 and verdict is not null and not exists (select 1 from held)
   returning id`

const ANOMALY = sql('job_anomaly')`update job set anomaly = coalesce(anomaly, $2) where id = $1`
const BODY = sql('job_body')`select body from job_body where job_id = $1`
const KEEP_BODY = sql('job_keep_body')`insert into job_body (job_id, body) values ($1, $2)`
const DROP_BODY = sql('job_drop_body')`delete from job_body where job_id = $1`
const DROP_BODIES = sql('job_drop_bodies')`
  delete from job_body b where at < now() - interval '1 hour' and not exists (select 1 from job where id = b.job_id)`
const IS_HELD = statement('job_is_held', HELD(1))
const FACTS = sql('job_facts')`
  select status, case when lease_until > now() then 'active' when attempts > 0 then 'failed' else 'created' end as state,
     count(*) as count
   from job where open group by 1, 2`

type Values = NonNullable<Parameters<Database['query']>[1]>

interface Change {
  readonly what: Statement
  readonly values: Values
}

async function apply(on: Queryable, { what, values }: Change): Promise<boolean> {
  return (await on.query(what, values)).length > 0
}

export function createJobs(database: Database, { leaseMs }: { leaseMs: number }): Jobs {
  // Each change is its own statement, but changes of the same moment share a commit, because the disk is the slow part.
  const changes = createBatch<Change, boolean>({
    flush: (group) =>
      group.length === 1
        ? apply(database, group[0]!).then((done) => [done])
        : database
            .transaction(async (tx) => {
              const done: boolean[] = []
              for (const one of group) done.push(await apply(tx, one))
              return done
            })
            .catch((error: unknown) => {
              if (error instanceof Fault) throw error
              // A change that the database rejects must not fail the others.
              return Promise.all(group.map((one) => apply(database, one).catch((cause: Error) => cause)))
            }),
    flushesMax: 2,
    sizeMax: 200,
  })
  // However many bodies arrive at once, they use two connections at most.
  const bodies = createBatch<readonly [id: string, body: string], void>({
    flush: async ([one]) => database.query(KEEP_BODY, one).then(() => [undefined]),
    flushesMax: 2,
    sizeMax: 1,
  })
  const change = (what: Statement, values: Values) => changes.run({ what, values })

  return {
    work: createWorkTable(database, 'job', { leaseMs, TAKEN: 'attempts = attempts + 1', ENDED, COLUMNS: CLAIMED }),
    find: async (id) => (await database.query<JobRow>(FIND, [id]))[0],
    findCallback: async (id) => (await database.query<CallbackRow>(FIND_CALLBACK, [id]))[0],
    async list(account, { status, before, limit, viewer }) {
      const rows = await database.query<ListedJob & { found: bigint }>(LIST, [
        account,
        status ?? null,
        before ?? null,
        limit,
        viewer ? keySeenBy(viewer) : null,
      ])
      return { rows, more: rows.length > 0 && rows[0]!.found > rows.length }
    },
    changed: (ids, seen) => database.query<JobRow>(CHANGED, [ids, seen]),
    beginSubmission: ({ id, version, account_id, hold_id }, { vendor, route, credential }) =>
      change(BEGIN_SUBMISSION, [id, version, vendor, route, account_id, hold_id, credential ?? null]),
    refusedSubmission: ({ id, version }) => change(REFUSED_SUBMISSION, [id, version]),
    submitted: ({ id, version }, taskId, request) => change(SUBMITTED, [id, version, taskId, request]),
    storeTask: ({ id, submission }, taskId, request) => change(KEEP_TASK, [id, submission, taskId, request]),
    isDecided: async (id) => (await database.query(IS_DECIDED, [id])).length > 0,
    decide: ({ id, version }, { verdict, error, files, delivered, watchMs }) =>
      change(DECIDE, [
        id,
        version,
        verdict,
        error ? JSON.stringify(error) : null,
        files ? JSON.stringify(files) : null,
        delivered ? JSON.stringify(delivered) : null,
        watchMs ?? null,
      ]),
    async processing({ id, version }) {
      await change(PROCESSING, [id, version])
    },
    async openAt(vendor, credential) {
      const [row] = await database.query<{ count: number }>(OPEN_AT, [vendor, credential])
      return row?.count ?? 0
    },
    conclude: ({ id, version, account_id, hold_id }) => change(CONCLUDE, [id, version, account_id, hold_id]),
    async noteAnomaly(id, anomaly) {
      await database.query(ANOMALY, [id, anomaly])
    },
    body: async (id) => (await database.query<{ body: string }>(BODY, [id]))[0]?.body,
    storeBody: (id, body) => bodies.run([id, body]),
    async dropBody(id) {
      await database.query(DROP_BODY, [id])
    },
    isHeld: async ({ account_id, hold_id }) => (await database.query(IS_HELD, [account_id, hold_id])).length > 0,
    async prune() {
      await database.query(DROP_BODIES)
    },
    async facts() {
      const rows = await database.query<{ status: string; state: 'active' | 'created' | 'failed'; count: bigint }>(
        FACTS,
      )
      const facts = { byStatus: {} as Record<string, number>, active: 0, created: 0, failed: 0 }
      for (const { status, state, count } of rows) {
        facts.byStatus[status] = (facts.byStatus[status] ?? 0) + Number(count)
        facts[state] += Number(count)
      }
      return facts
    },
  }
}
