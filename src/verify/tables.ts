// What is open: holds, leases, jobs and idempotency keys, each against its money; the processes that have them, and the
// catalog versions that they name. These tables are small, or their ended rows are left out, and are read in pages. Jobs may
// lie on another server than their money: what is joined with them is found first, by itself.
import { type Database, type Statement, statement } from '../database/database.ts'
import type { Attributes, ChargeLine, CostBasis } from '../meter/charge.ts'
import { BATCH, LATE, type RateCheck } from './call.ts'

interface TableCheck {
  readonly database: Database
  readonly rates: RateCheck
  /** Jobs that ended before were checked by an earlier run. */
  readonly since: Date
  /** Usage from before may have been trimmed. */
  readonly usageSince: Date
  readonly report: (problem: string) => void
}

/** Whether a process lives, by its id. */
type Living = (process: string) => boolean

interface Keyed {
  readonly account_id: string
  readonly id: string
}

const PAGE_ROWS = 1_000
const MINUTE_MS = 60_000
/** Silence is noticed after 20 seconds, and what was held is given back soon after. */
const DEAD_MINUTES = 5
/** No call takes longer. */
const CALL_MINUTES = 60
const JOB_LATE_MINUTES = 120

/** All rows of a statement that takes the last row's account and id. */
async function* rowsOf<R extends Keyed>(
  database: Database,
  page: Statement,
  more: readonly Date[] = [],
): AsyncGenerator<R> {
  let last: Keyed = { account_id: '', id: '' }
  for (;;) {
    const rows = await database.query<R>(page, [last.account_id, last.id, ...more])
    yield* rows
    const next = rows.at(-1)
    if (!next || rows.length < PAGE_ROWS) return
    last = next
  }
}

const MINUTES = (column: string) => `floor(extract(epoch from now() - ${column}) / 60)::int as minutes`

interface ProcessRow {
  readonly id: string
  readonly silent_ms: number
  readonly age_ms: number
}
const PROCESSES = statement(
  'verify_processes',
  `select id, (extract(epoch from now() - heartbeat_at) * 1000)::float8 as silent_ms,
     (extract(epoch from now() - started_at) * 1000)::float8 as age_ms from gateway_instance`,
)

/** Answers who lives; nobody is called dead where none has lived for long enough to have noticed. */
async function checkProcesses({ database, report }: TableCheck): Promise<Living> {
  const rows = await database.query<ProcessRow>(PROCESSES)
  for (const { id, silent_ms } of rows)
    if (silent_ms < -MINUTE_MS)
      report(`Process ${id} is said to have lived in the future: what it holds would never expire.`)
  const dead = DEAD_MINUTES * MINUTE_MS
  const living = new Set(rows.filter(({ silent_ms }) => silent_ms < dead).map(({ id }) => id))
  const watched = rows.some(({ silent_ms, age_ms }) => silent_ms < dead && age_ms > dead)
  return (process) => !watched || living.has(process)
}

interface HoldRow extends Keyed {
  readonly amount: bigint
  readonly process_id: string
  readonly job: boolean
  readonly product: string
  readonly catalog_version: number
  readonly minutes: number
  readonly known: boolean
  readonly resolved: boolean
  readonly has_job: boolean
}
const HOLDS = statement(
  'verify_holds',
  `with page as materialized (
     select h.account_id, h.id, h.amount, h.process_id, h.job, h.product, h.catalog_version, ${MINUTES('h.created_at')}, a.id is not null as known,
       exists (select 1 from transfer t where t.account_id = h.account_id and t.id = h.id) as resolved
     from hold h left join account a on a.id = h.account_id
     where (h.account_id, h.id) > ($1, $2) order by h.account_id, h.id limit ${PAGE_ROWS}
   )
   select page.*, exists (select 1 from job j where j.account_id = page.account_id and j.hold_id = page.id) as has_job
   from page order by account_id, id`,
)

async function checkHolds({ database, rates, report }: TableCheck, lives: Living): Promise<number> {
  let count = 0
  for await (const hold of rowsOf<HoldRow>(database, HOLDS)) {
    count += 1
    const name = `Hold ${hold.id} of account ${hold.account_id}`
    if (!hold.known) report(`${name}: there is no such account; it does not exist.`)
    if (hold.resolved) report(`${name} has been resolved, but still stands.`)
    if (hold.amount < 0n) report(`${name} is negative.`)
    if (hold.job && !hold.has_job) report(`${name} is that of a job, but there is no such job.`)
    if (!hold.job && hold.has_job) report(`${name} is that of a job, but would expire with its process.`)
    const wrong = await rates.knows(hold.catalog_version, hold.product)
    if (wrong) report(`${name}: ${wrong}`)
    if (hold.job) continue
    if (!lives(hold.process_id)) {
      if (hold.minutes >= DEAD_MINUTES) report(`${name} is ${hold.minutes} minutes old, and its process is dead.`)
    } else if (hold.minutes >= CALL_MINUTES) report(`${name} is ${hold.minutes} minutes old.`)
  }
  return count
}

interface LeaseRow extends Keyed {
  readonly amount: bigint
  readonly process_id: string
  readonly minutes: number
  readonly known: boolean
  readonly used: boolean
}
const LEASES = statement(
  'verify_leases',
  `select e.account_id, e.id, e.amount, e.process_id, ${MINUTES('e.created_at')}, a.id is not null as known,
     exists (select 1 from usage_hour u where u.account_id = e.account_id and u.key_id = e.key_id and u.hour > now() - interval '3 hours') as used
   from lease e left join account a on a.id = e.account_id
   where (e.account_id, e.id) > ($1, $2) order by e.account_id, e.id limit ${PAGE_ROWS}`,
)

/** A lease lives for as long as its key is busy, and not longer. */
async function checkLeases({ database, report }: TableCheck, lives: Living): Promise<number> {
  let count = 0
  for await (const lease of rowsOf<LeaseRow>(database, LEASES)) {
    count += 1
    const name = `Lease ${lease.id} of account ${lease.account_id}`
    if (!lease.known) report(`${name}: there is no such account; it does not exist.`)
    if (lease.amount < 0n) report(`${name} is negative.`)
    if (!lives(lease.process_id)) {
      if (lease.minutes >= DEAD_MINUTES) report(`${name} is ${lease.minutes} minutes old, and its process is dead.`)
    } else if (lease.minutes >= CALL_MINUTES && !lease.used)
      report(`${name} is ${lease.minutes} minutes old, and nobody uses it.`)
  }
  return count
}

interface JobRow extends Keyed {
  readonly job_id: string
  readonly product: string
  readonly key_id: string
  readonly catalog_version: number
  readonly status: string
  readonly verdict: string | null
  readonly late_minutes: number
  readonly known: boolean
  readonly held_as: string | null
  readonly kind: string | null
  readonly used_as: string | null
  readonly route: number
  readonly credential: string | null
  readonly used_route: number | null
  readonly used_credential: string | null
}
const FACTS_OF = `product || ' ' || key_id || ' ' || catalog_version as facts`
// By its hold, whose id sorts by time. The trimmed usage of a job that has ended long ago is not missed.
const JOBS = statement(
  'verify_jobs',
  `with page as materialized (
     select j.account_id, j.hold_id as id, j.id as job_id, j.product, j.key_id, j.catalog_version, j.status, j.verdict, j.route, j.credential,
       floor(extract(epoch from now() - j.deadline_at) / 60)::int as late_minutes
     from job j where (j.account_id, j.hold_id) > ($1, $2) and (j.open or j.completed_at is null or j.completed_at >= $3)
     order by j.account_id, j.hold_id limit ${PAGE_ROWS}
   ), a as materialized (
     select id from account where id in (select account_id from page)
   ), h as materialized (
     select account_id, id, ${FACTS_OF} from hold where (account_id, id) in (select account_id, id from page)
   ), t as materialized (
     select account_id, id, kind from transfer where (account_id, id) in (select account_id, id from page)
   ), u as materialized (
     select account_id, id, ${FACTS_OF}, route, credential from usage where (account_id, id) in (select account_id, id from page)
   )
   select page.*, a.id is not null as known, h.facts as held_as, t.kind, u.facts as used_as, u.route as used_route, u.credential as used_credential
   from page left join h using (account_id, id) left join t using (account_id, id) left join u using (account_id, id) left join a on a.id = page.account_id
   order by page.account_id, page.id`,
)
const PAID_AS: Readonly<Record<string, string>> = { COMPLETED: 'settled', FAILED: 'released', CANCELLED: 'released' }

async function checkJobs({ database, rates, since, report }: TableCheck): Promise<number> {
  let count = 0
  for await (const job of rowsOf<JobRow>(database, JOBS, [since])) {
    count += 1
    const name = `Job ${job.job_id} of account ${job.account_id}`
    for (const problem of jobProblems(job)) report(`${name} ${problem}`)
    const wrong = await rates.knows(job.catalog_version, job.product)
    if (wrong) report(`${name}: ${wrong}`)
  }
  return count
}

function* jobProblems(job: JobRow): Generator<string> {
  const { status, verdict, held_as, kind } = job
  if (!job.known) yield 'belongs to an account that does not exist.'
  if (held_as === null && kind === null) yield `is ${status}, but has neither a hold nor a charge (${job.id}).`
  if (held_as !== null && kind !== null) yield 'has been paid for, but its hold still stands.'
  if (kind !== null && verdict === null) yield `was ${kind} before it was decided.`
  if (kind !== null && verdict !== null && kind !== PAID_AS[verdict]) yield `is ${verdict}, but its hold was ${kind}.`
  if (PAID_AS[status] && held_as !== null) yield `is ${status}, but its hold still stands.`
  if (PAID_AS[status] && status !== verdict) yield `is ${status}, but was decided otherwise.`
  const facts = `${job.product} ${job.key_id} ${job.catalog_version}`
  const paidAs = held_as ?? job.used_as
  if (paidAs !== null && paidAs !== facts) yield `is one of ${facts}, but its hold or charge is one of ${paidAs}.`
  if (kind === 'settled' && job.used_route !== null) {
    if (job.used_route !== job.route) yield `was done by route ${job.route}, but its charge says ${job.used_route}.`
    if (job.used_credential !== job.credential)
      yield `was done with the credential ${job.credential}, but its charge says ${job.used_credential}.`
  }
  if (verdict === null && job.late_minutes >= JOB_LATE_MINUTES)
    yield `should have ended ${job.late_minutes} minutes ago.`
}

interface KeyRow extends Keyed {
  readonly hold_id: string
  readonly is_done: boolean
  readonly freed: boolean
  readonly known: boolean
  readonly held_for_job: boolean | null
  readonly resolved: boolean
}
const KEYS = statement(
  'verify_idempotency',
  `select i.account_id, i.key as id, i.hold_id, i.status is not null as is_done, i.freed, a.id is not null as known, h.job as held_for_job,
     exists (select 1 from transfer t where t.account_id = i.account_id and t.id = i.hold_id) as resolved
   from idempotency i left join account a on a.id = i.account_id
   left join hold h on h.account_id = i.account_id and h.id = i.hold_id
   where (i.account_id, i.key) > ($1, $2) order by i.account_id, i.key limit ${PAGE_ROWS}`,
)

async function checkKeys({ database, report }: TableCheck): Promise<void> {
  for await (const key of rowsOf<KeyRow>(database, KEYS)) {
    const name = `The idempotency key of call ${key.hold_id} of account ${key.account_id}`
    const isHeld = key.held_for_job !== null
    if (!key.known) report(`${name}: there is no such account; it does not exist.`)
    if (key.freed && key.is_done) report(`${name} is free, but has an answer.`)
    else if (key.freed && isHeld) report(`${name} is free, but the call is still held for.`)
    else if (!key.freed && !key.is_done && !isHeld) report(`${name} says that it runs, but nothing is held for it.`)
    else if (key.is_done && key.held_for_job === false) report(`${name} has an answer, but the call is still held for.`)
    else if (key.is_done && !isHeld && !key.resolved) report(`${name} has an answer, but there never was such a call.`)
  }
}

interface DeferredRow extends Keyed {
  readonly status: string
  readonly known: boolean
  /** Neither the account's own key nor that of another is told by a null: it was removed. */
  readonly key_account: string | null
  readonly wrong: boolean
  /** What its calls in the ledger say against it, if they do. */
  readonly unpaid: string | null
}
/** `CALLS`: finds by `page` what is in the ledger; by itself, since it may lie on another server. `UNPAID`: a sentence. */
const DEFERRED = ({ TABLE, WRONG, CALLS, UNPAID }: Record<'TABLE' | 'WRONG' | 'CALLS' | 'UNPAID', string>) =>
  `with page as materialized (
     select x.*, ${WRONG} as wrong from ${TABLE} x
     where (x.account_id, x.id) > ($1, $2) and (x.open or x.ended_at is null or x.ended_at >= $3) order by x.account_id, x.id limit ${PAGE_ROWS}
   ), a as materialized (
     select id from account where id in (select account_id from page)
   ), k as materialized (
     select id, account_id from api_key where id in (select key_id from page)
   ), u as materialized (
     ${CALLS}
   )
   select page.account_id, page.id, page.status, page.wrong, a.id is not null as known, k.account_id as key_account,
     case when page.created_at >= $4 then ${UNPAID} end as unpaid
   from page left join a on a.id = page.account_id left join k on k.id = page.key_id left join u on u.account_id = page.account_id and u.name = page.id
   order by page.account_id, page.id`
/** Which calls completed a batch: what stays of them when its lines go. */
export const CALLS_HASH = (ID: string) =>
  `sha256(convert_to(coalesce(string_agg(${ID}, ' ' order by ${ID}), ''), 'UTF8'))`
/** A batch from before may have none, and one that a process of the version before has ended, or that came from another database. */
const CALLS_ARE_KNOWN = `page.created_at > (select at + interval '1 day' from migration where name like '%_batch_calls.sql')
  and not exists (select 1 from account_move m where m.account_id = page.account_id)`
// What it says of itself must agree: whoever is told of a result has paid for it. A request that failed may have been charged for what was delivered of it.
const BATCHES = statement(
  'verify_batches',
  DEFERRED({
    TABLE: 'batch',
    WRONG: `(x.completed < 0 or x.failed < 0 or x.completed + x.failed > x.total or (x.status = 'completed' and x.completed + x.failed <> x.total)
       or (x.status in ('completed', 'failed', 'expired', 'cancelled')) <> (x.ended_at is not null))`,
    CALLS: `select account_id, client as name, count(*) as calls, ${CALLS_HASH(`split_part(id, '${LATE}', 1)`)} as hash from usage
       where client <> '' and (account_id, client) in (select account_id, id from page) and outcome = 'settled' and status between 200 and 299 and endpoint like 'batch:%'
       group by account_id, client`,
    UNPAID: `case when coalesce(u.calls, 0) < page.completed or (page.ended_at is not null and coalesce(u.calls, 0) > page.completed + page.failed)
       then 'has ' || page.completed || ' completed and ' || page.failed || ' failed requests, but ' || coalesce(u.calls, 0) || ' of its calls were charged.'
       when u.calls = page.completed and u.hash <> page.calls_hash then 'was completed by other calls than those that were charged for it.'
       when page.completed > 0 and page.ended_at is not null and page.calls_hash is null and ${CALLS_ARE_KNOWN} then 'does not say which calls completed it.' end`,
  }),
)
const BACKGROUND = statement(
  'verify_background',
  DEFERRED({
    TABLE: 'background',
    WRONG: `((x.status in ('completed', 'incomplete')) and x.answer is null and x.sealed_answer is null or (x.status in ('queued', 'in_progress')) <> (x.ended_at is null))`,
    // A settlement that came after its hold had expired has a name of its own.
    CALLS: `select page.account_id, page.id as name, max(c.id) as call, bool_or(c.outcome = 'settled') as settled,
         bool_and(c.product = page.product) as same_product
       from page join usage c on c.account_id = page.account_id and c.id in (page.call_id, page.call_id || '${LATE}')
       where page.call_id is not null group by page.account_id, page.id`,
    UNPAID: `case when page.call_id is null then null
       when u.call is null and page.status in ('completed', 'incomplete') then 'was answered by call ' || page.call_id || ', of which there is no usage row.'
       when not u.settled and page.status in ('completed', 'incomplete') then 'was answered by call ' || page.call_id || ', which was not settled.'
       when not u.same_product then 'is one of ' || page.product || ', but call ' || page.call_id || ' is not.' end`,
  }),
)

/** Batches and responses in the background: whose they are, and whether what they say of themselves agrees with itself and the ledger. */
async function checkDeferred({ database, since, usageSince, report }: TableCheck): Promise<void> {
  for (const [what, page] of [
    ['Batch', BATCHES],
    ['Background response', BACKGROUND],
  ] as const)
    for await (const row of rowsOf<DeferredRow>(database, page, [since, usageSince])) {
      const name = `${what} ${row.id} of account ${row.account_id}`
      if (!row.known) report(`${name}: there is no such account; it does not exist.`)
      if (row.key_account !== null && row.key_account !== row.account_id)
        report(`${name} is paid for by a key of account ${row.key_account}.`)
      if (row.wrong) report(`${name} is ${row.status}, but its counts, its answer or its end say otherwise.`)
      if (row.unpaid !== null) report(`${name} ${row.unpaid}`)
    }
}

const VERSIONS = statement(
  'verify_catalog_versions',
  'select version, document from catalog_version where version > $1 order by version limit 20',
)

async function checkVersions({ database, report }: TableCheck): Promise<void> {
  for (let last = 0; ; ) {
    const rows = await database.query<{ version: number; document: string }>(VERSIONS, [last])
    for (const { version, document } of rows) {
      if (version !== last + 1) report(`Catalogue version ${last + 1} was removed: the next is ${version}.`)
      if (!isJson(document)) report(`Catalogue version ${version} cannot be read.`)
      last = version
    }
    if (rows.length === 0) return
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

export async function checkTables(check: TableCheck): Promise<{ holds: number; jobs: number }> {
  const lives = await checkProcesses(check)
  const holds = (await checkHolds(check, lives)) + (await checkLeases(check, lives))
  const jobs = await checkJobs(check)
  await checkJournal(check)
  await checkDeferred(check)
  await checkKeys(check)
  await checkVersions(check)
  return { holds, jobs }
}

// What is on its way into the ledger: each settlement of the journal against its account, its lease and what was posted.

interface JournalCheck {
  readonly database: Database
  readonly rates: RateCheck
  readonly report: (problem: string) => void
}

interface JournalRow {
  readonly id: string
  readonly account_id: string
  readonly product: string
  readonly catalog_version: number
  readonly outcome: string
  readonly charged: bigint
  readonly held: bigint
  readonly lines: ChargeLine[]
  readonly estimated: boolean
  readonly credential: string | null
  readonly endpoint: string
  readonly route: number
  readonly first_byte_ms: number
  readonly attributes: Attributes | null
  readonly cost: bigint | null
  readonly cost_basis: CostBasis | null
  readonly minutes: number
  readonly stays_leased: boolean
  readonly waived: boolean
  readonly leased: boolean
  readonly known: boolean
  readonly posted: boolean
}

const JOURNAL_ROWS = 1_000
/** A settlement is posted within a second; that of a process that died, by the next that looks. */
const LATE_MINUTES = 2
const JOURNAL = statement(
  'verify_journal',
  `select j.id, j.account_id, j.product, j.catalog_version, j.outcome, j.charged, j.held, j.lines, j.estimated, j.credential, j.endpoint, j.route, j.first_byte_ms, j.attributes, j.cost, j.cost_basis, floor(extract(epoch from now() - j.at) / 60)::int as minutes,
     j.stays_leased, j.waived, a.id is not null as known, exists (select 1 from lease e where e.account_id = j.account_id and e.id = j.lease_id) as leased,
     exists (select 1 from transfer t where t.account_id = j.account_id and t.id = j.id) as posted
   from journal j left join account a on a.id = j.account_id
   where (j.account_id, j.id) > ($1, $2) order by j.account_id, j.id limit ${JOURNAL_ROWS}`,
)

/** Where accounts lie on several servers it always is, and the other statement cannot be asked. */
const SOME = statement('verify_journal_some', 'select 1 from journal limit 1')

async function checkJournal({ database, rates, report }: JournalCheck): Promise<void> {
  if ((await database.query(SOME)).length === 0) return
  for (let last = { account_id: '', id: '' }; ; ) {
    const rows = await database.query<JournalRow>(JOURNAL, [last.account_id, last.id])
    for (const row of rows) {
      const name = `Settlement ${row.id} of account ${row.account_id} in the journal`
      for (const problem of problemsOf(row)) report(`${name} ${problem}`)
      const wrong = await (row.outcome === 'settled'
        ? rates.check({ ...row, charge: row.charged })
        : rates.knows(row.catalog_version, row.product))
      if (wrong) report(`${name}: ${wrong}`)
    }
    const next = rows.at(-1)
    if (!next || rows.length < JOURNAL_ROWS) return
    last = next
  }
}

function* problemsOf({
  known,
  outcome,
  charged,
  held,
  stays_leased: staysLeased,
  waived,
  endpoint,
  minutes,
  posted,
  leased,
}: JournalRow): Generator<string> {
  if (!known) yield 'is of an account that does not exist.'
  if (outcome !== 'settled' && outcome !== 'released') yield `is "${outcome}".`
  // Seen by others only while a lease covers it, which does not end before it is posted: a call with a hold of its own is written and posted at once.
  if (!leased && !posted) yield 'is covered by no lease.'
  if (charged < 0n || charged > held) yield `charges ${charged} micro-credits of ${held} that were held for it.`
  if (!staysLeased || waived) yield 'is posted otherwise than one that a lease covers.'
  if (endpoint.startsWith(BATCH)) yield 'is of a batch, whose calls have holds of their own.'
  if (minutes >= LATE_MINUTES)
    yield posted ? `was posted, but still stands there after ${minutes} minutes.` : `has waited for ${minutes} minutes.`
}
