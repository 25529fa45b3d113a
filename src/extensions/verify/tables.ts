// Checks open state: holds, leases, jobs and idempotency keys, each against its money; the processes that own them, and
// the catalog versions that they name. These tables are small, or their ended rows are skipped, and they are read in
// pages. Jobs may be on another server than their money, so the rows to join with are selected separately first.
import { type Database, sql } from '../../database/database.ts'
import { BATCH, type ChargedCall, LATE, type RateCheck } from './call.ts'
import { type CheckedRow, find, PAGE_ROWS, readTable, type Table } from './rules.ts'

interface TableCheck {
  readonly database: Database
  readonly rates: RateCheck
  /** Jobs that ended before this were checked by an earlier run. */
  readonly since: Date
  /** Usage rows from before this may have been pruned. */
  readonly usageSince: Date
  readonly report: (problem: string) => void
}

type Given = 'since' | 'usageSince' | 'living'
/** The charge's columns are present only if the table selects them. */
interface PricedRow extends CheckedRow, ChargedCall {
  readonly outcome: string
}
interface BookTable extends Table<Given> {
  readonly price?: (rates: RateCheck, row: PricedRow) => ReturnType<RateCheck['check']>
}

const MINUTE_MS = 60_000
/** A dead process is noticed after 20 seconds, and its holds are released soon after. */
const DEAD_MINUTES = 5
/** No call takes longer. */
const CALL_MINUTES = 60
const JOB_LATE_MINUTES = 120
/** A settlement is posted within a second; that of a dead process is posted by the next process that checks. */
const LATE_MINUTES = 2

const MINUTES = (column: string) => `floor(extract(epoch from now() - ${column}) / 60)::int`
/**
 * $3 is the list of live processes. It is null, and no process counts as dead, if none has lived long enough to notice
 * a death.
 */
const DEAD = (column: string) => `coalesce(${column} <> all($3::text[]), false)`
const FACTS_OF = `product || ' ' || key_id || ' ' || catalog_version as facts`
const NO_ACCOUNT = { '{it}: there is no such account; it does not exist.': 'not known' }

const HOLDS: BookTable = {
  it: 'Hold {id} of account {account_id}',
  rows: `with page as materialized (
     select h.account_id, h.id, h.amount, h.job, h.product, h.catalog_version, ${MINUTES('h.created_at')} as minutes, ${DEAD('h.process_id')} as dead, a.id is not null as known,
       exists (select 1 from transfer t where t.account_id = h.account_id and t.id = h.id) as resolved
     from hold h left join account a on a.id = h.account_id
     where (h.account_id, h.id) > ($1, $2) order by h.account_id, h.id limit ${PAGE_ROWS}
   )
   select page.*, exists (select 1 from job j where j.account_id = page.account_id and j.hold_id = page.id) as has_job from page`,
  given: ['living'],
  rules: {
    ...NO_ACCOUNT,
    '{it} has been resolved, but still stands.': 'resolved',
    '{it} is negative.': 'amount < 0',
    '{it} is that of a job, but there is no such job.': 'job and not has_job',
    '{it} is that of a job, but would expire with its process.': 'not job and has_job',
    '{it} is {minutes} minutes old, and its process is dead.': `not job and dead and minutes >= ${DEAD_MINUTES}`,
    '{it} is {minutes} minutes old.': `not job and not dead and minutes >= ${CALL_MINUTES}`,
  },
  columns: 'catalog_version, product',
  price: (rates, row) => rates.knows(row.catalog_version, row.product),
}

/** A lease exists only while its key is in use. */
const LEASES: BookTable = {
  it: 'Lease {id} of account {account_id}',
  rows: `select e.account_id, e.id, e.amount, ${MINUTES('e.created_at')} as minutes, ${DEAD('e.process_id')} as dead, a.id is not null as known,
     exists (select 1 from usage_hour u where u.account_id = e.account_id and u.key_id = e.key_id and u.hour > now() - interval '3 hours') as used
   from lease e left join account a on a.id = e.account_id
   where (e.account_id, e.id) > ($1, $2) order by e.account_id, e.id limit ${PAGE_ROWS}`,
  given: ['living'],
  rules: {
    ...NO_ACCOUNT,
    '{it} is negative.': 'amount < 0',
    '{it} is {minutes} minutes old, and its process is dead.': `dead and minutes >= ${DEAD_MINUTES}`,
    '{it} is {minutes} minutes old, and nobody uses it.': `not dead and not used and minutes >= ${CALL_MINUTES}`,
  },
}

// Ordered by the hold's id, which sorts by time. Usage of a job that ended long ago may have been pruned and is not
// required.
const JOBS: BookTable = {
  it: 'Job {job_id} of account {account_id}',
  rows: `with page as materialized (
     select j.account_id, j.hold_id as id, j.id as job_id, j.product, j.catalog_version, j.status, j.verdict, j.route, j.credential, ${FACTS_OF},
       ${MINUTES('j.deadline_at')} as late_minutes, j.status in ('COMPLETED', 'FAILED', 'CANCELLED') as is_over
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
   select page.*, a.id is not null as known, h.facts is not null as is_held, t.kind, coalesce(h.facts, u.facts) as paid_as, u.route as used_route, u.credential as used_credential
   from page left join h using (account_id, id) left join t using (account_id, id) left join u using (account_id, id) left join a on a.id = page.account_id`,
  given: ['since'],
  rules: {
    '{it} belongs to an account that does not exist.': 'not known',
    '{it} is {status}, but has neither a hold nor a charge ({id}).': 'not is_held and kind is null',
    '{it} has been paid for, but its hold still stands.': 'is_held and kind is not null',
    '{it} was {kind} before it was decided.': 'kind is not null and verdict is null',
    '{it} is {verdict}, but its hold was {kind}.': `verdict is not null and kind <> case verdict when 'COMPLETED' then 'settled' when 'FAILED' then 'released' when 'CANCELLED' then 'released' else '' end`,
    '{it} is {status}, but its hold still stands.': 'is_over and is_held',
    '{it} is {status}, but was decided otherwise.': 'is_over and status is distinct from verdict',
    '{it} is one of {facts}, but its hold or charge is one of {paid_as}.': 'paid_as <> facts',
    '{it} was done by route {route}, but its charge says {used_route}.': `kind = 'settled' and used_route <> route`,
    '{it} was done with the credential {credential}, but its charge says {used_credential}.': `kind = 'settled' and used_route is not null and used_credential is distinct from credential`,
    '{it} should have ended {late_minutes} minutes ago.': `verdict is null and late_minutes >= ${JOB_LATE_MINUTES}`,
  },
  columns: 'catalog_version, product',
  price: (rates, row) => rates.knows(row.catalog_version, row.product),
}

const KEYS: BookTable = {
  it: 'The idempotency key of call {hold_id} of account {account_id}',
  rows: `select i.account_id, i.key as id, i.hold_id, i.status is not null as is_done, i.freed, a.id is not null as known, h.id is not null as is_held, h.job,
     exists (select 1 from transfer t where t.account_id = i.account_id and t.id = i.hold_id) as resolved
   from idempotency i left join account a on a.id = i.account_id
   left join hold h on h.account_id = i.account_id and h.id = i.hold_id
   where (i.account_id, i.key) > ($1, $2) order by i.account_id, i.key limit ${PAGE_ROWS}`,
  rules: {
    ...NO_ACCOUNT,
    '{it} is free, but has an answer.': 'freed and is_done',
    '{it} is free, but the call is still held for.': 'freed and not is_done and is_held',
    '{it} says that it runs, but nothing is held for it.': 'not freed and not is_done and not is_held',
    '{it} has an answer, but the call is still held for.': 'not freed and is_done and not job',
    '{it} has an answer, but there never was such a call.': 'not freed and is_done and not is_held and not resolved',
  },
}

/**
 * `CALLS` selects the ledger's rows for `page`, separately because they may be on another server. `PAID` selects the
 * columns to compare.
 */
const DEFERRED = ({ TABLE, WRONG, CALLS, PAID }: Record<'TABLE' | 'WRONG' | 'CALLS' | 'PAID', string>) =>
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
   select page.account_id, page.id, page.status, page.wrong, a.id is not null as known, k.account_id as key_account, page.created_at >= $4 as has_usage, ${PAID}
   from page left join a on a.id = page.account_id left join k on k.id = page.key_id left join u on u.account_id = page.account_id and u.name = page.id`
/** Checks the owner and that the row's own columns agree with each other. A key without an account was removed. */
const OF_DEFERRED = {
  ...NO_ACCOUNT,
  '{it} is paid for by a key of account {key_account}.': 'key_account <> account_id',
  '{it} is {status}, but its counts, its answer or its end say otherwise.': 'wrong',
}
/** A hash over the ids of the calls that completed a batch; it remains when the batch's lines are pruned. */
export const CALLS_HASH = (ID: string) =>
  `sha256(convert_to(coalesce(string_agg(${ID}, ' ' order by ${ID}), ''), 'UTF8'))`
/** The hash may be missing for accounts that moved here. */
const CALLS_ARE_KNOWN = 'not exists (select 1 from account_move m where m.account_id = page.account_id)'
// Every delivered result must have been charged. A failed request may have been charged for the part that was
// delivered.
const BATCHES: BookTable = {
  it: 'Batch {id} of account {account_id}',
  rows: DEFERRED({
    TABLE: 'batch',
    WRONG: `(x.completed < 0 or x.failed < 0 or x.completed + x.failed > x.total or (x.status = 'completed' and x.completed + x.failed <> x.total)
       or (x.status in ('completed', 'failed', 'expired', 'cancelled')) <> (x.ended_at is not null))`,
    CALLS: `select account_id, client as name, count(*) as calls, ${CALLS_HASH(`split_part(id, '${LATE}', 1)`)} as hash from usage
       where client <> '' and (account_id, client) in (select account_id, id from page) and outcome = 'settled' and status between 200 and 299 and endpoint like 'batch:%'
       group by account_id, client`,
    PAID: `page.completed, page.failed, page.ended_at is not null as is_over, coalesce(u.calls, 0) as calls, u.hash <> page.calls_hash as of_others,
       page.calls_hash is null and ${CALLS_ARE_KNOWN} as unnamed`,
  }),
  given: ['since', 'usageSince'],
  rules: {
    ...OF_DEFERRED,
    '{it} has {completed} completed and {failed} failed requests, but {calls} of its calls were charged.':
      'has_usage and (calls < completed or (is_over and calls > completed + failed))',
    '{it} was completed by other calls than those that were charged for it.':
      'has_usage and calls = completed and of_others',
    '{it} does not say which calls completed it.':
      'has_usage and calls >= completed and completed > 0 and is_over and unnamed',
  },
}
const BACKGROUND: BookTable = {
  it: 'Background response {id} of account {account_id}',
  rows: DEFERRED({
    TABLE: 'background',
    WRONG: `((x.status in ('completed', 'incomplete')) and x.answer is null and x.sealed_answer is null or (x.status in ('queued', 'in_progress')) <> (x.ended_at is null))`,
    // A late settlement, posted after its hold had expired, has an id of its own.
    CALLS: `select page.account_id, page.id as name, max(c.id) as call, bool_or(c.outcome = 'settled') as settled,
         bool_and(c.product = page.product) as same_product
       from page join usage c on c.account_id = page.account_id and c.id in (page.call_id, page.call_id || '${LATE}')
       where page.call_id is not null group by page.account_id, page.id`,
    PAID: `page.call_id, page.product, u.call, u.settled, u.same_product, page.call_id is not null and page.status in ('completed', 'incomplete') as is_answered`,
  }),
  given: ['since', 'usageSince'],
  rules: {
    ...OF_DEFERRED,
    '{it} was answered by call {call_id}, of which there is no usage row.':
      'has_usage and is_answered and call is null',
    '{it} was answered by call {call_id}, which was not settled.': 'has_usage and is_answered and not settled',
    '{it} is one of {product}, but call {call_id} is not.':
      'has_usage and not same_product and (settled or not is_answered)',
  },
}

// Checks each settlement in the journal, which is not posted yet, against its account, its lease and its transfer.
const JOURNAL: BookTable = {
  it: 'Settlement {id} of account {account_id} in the journal',
  // If accounts are spread over several servers, the journal is always empty and the other statement would fail.
  unless: sql('verify_journal_some')`select 1 from journal limit 1`,
  rows: `select j.*, ${MINUTES('j.at')} as minutes, a.id is not null as known,
     exists (select 1 from lease e where e.account_id = j.account_id and e.id = j.lease_id) as leased,
     exists (select 1 from transfer t where t.account_id = j.account_id and t.id = j.id) as posted
   from journal j left join account a on a.id = j.account_id
   where (j.account_id, j.id) > ($1, $2) order by j.account_id, j.id limit ${PAGE_ROWS}`,
  rules: {
    '{it} is of an account that does not exist.': 'not known',
    '{it} is "{outcome}".': `outcome not in ('settled', 'released')`,
    // Only settlements under a lease are visible in the journal, and the lease ends after they are posted. A call with
    // its own hold is written and posted in one transaction.
    '{it} is covered by no lease.': 'not leased and not posted',
    '{it} charges {charged} micro-credits of {held} that were held for it.': 'charged < 0 or charged > held',
    '{it} is posted otherwise than one that a lease covers.': 'not stays_leased or waived',
    '{it} is of a batch, whose calls have holds of their own.': `endpoint like '${BATCH}%'`,
    '{it} was posted, but still stands there after {minutes} minutes.': `minutes >= ${LATE_MINUTES} and posted`,
    '{it} has waited for {minutes} minutes.': `minutes >= ${LATE_MINUTES} and not posted`,
  },
  columns:
    'catalog_version, product, outcome, charged as charge, held, lines, estimated, credential, endpoint, route, first_byte_ms, attributes, cost, cost_basis',
  price: (rates, row) => (row.outcome === 'settled' ? rates.check(row) : rates.knows(row.catalog_version, row.product)),
}

/** Of what was paid: what went back, or is held back by a dispute. */
const BACK = `least(p.amount_minor, p.refunded_minor + case when p.dispute in ('open', 'lost') then p.disputed_minor else 0 end)`
const PAYMENTS: BookTable = {
  it: 'Payment {id} of account {account_id}',
  rows: `with page as materialized (
     select p.account_id, p.id, p.state, p.credits, p.taken, p.lost, p.transfer_id, p.refunded_minor < 0 or p.refunded_minor > p.amount_minor or p.credits < 0 as wrong,
       case when ${BACK} >= p.amount_minor then p.credits else floor(p.credits::numeric * ${BACK} / p.amount_minor) end as owed
     from payment p where (p.account_id, p.id) > ($1, $2) order by p.account_id, p.id limit ${PAGE_ROWS}
   )
   select page.*, a.id is not null or page.account_id = '' as known, t.kind, t.amount as granted from page left join account a on a.id = page.account_id
   left join transfer t on t.account_id = page.account_id and t.id = page.transfer_id`,
  rules: {
    ...NO_ACCOUNT,
    '{it} is said to be paid back by more than was paid.': 'wrong',
    '{it} is {state}, but credits were granted for it.': `state in ('pending', 'failed', 'quarantined') and transfer_id is not null`,
    '{it} is {state}, but nothing was granted for it.': `state in ('paid', 'disputed') and credits > 0 and transfer_id is null`,
    '{it} is for {credits} micro-credits, but transfer {transfer_id} granted {granted}.': `transfer_id is not null and (kind is distinct from 'purchase' or granted is distinct from credits)`,
    '{it} took back {taken} and lost {lost} micro-credits, but its money that went back stands for {owed}.':
      'taken < 0 or lost < 0 or taken + lost <> case when transfer_id is null then 0 else owed end',
  },
}

const INVOICES: BookTable = {
  it: 'Invoice {number} of account {account_id}',
  rows: `with page as materialized (
     select i.* from invoice i where (i.account_id, i.id) > ($1, $2) order by i.account_id, i.id limit ${PAGE_ROWS}
   )
   select page.account_id, page.id, page.number, page.payment_id, page.gross_minor, page.currency, page.kind, a.id is not null as known,
     p.amount_minor, p.currency as paid_currency, p.refunded_minor, coalesce(p.granted, false) as granted, n.credited, o.id is not null as corrects_known,
     page.number is distinct from format('%s-%s-%s', page.series, page.year, lpad(page.sequence::text, 6, '0')) as misnumbered,
     (page.document ->> 'number', page.document ->> 'grossMinor', page.document ->> 'taxMinor', page.document ->> 'currency', page.document ->> 'kind')
       is distinct from (page.number, page.gross_minor::text, page.tax_minor::text, page.currency, page.kind) as differs
   from page left join account a on a.id = page.account_id
   left join lateral (
     select x.amount_minor, x.currency, x.refunded_minor, x.transfer_id is not null as granted from payment x
       where page.purse_id is null and x.account_id = page.account_id and x.id = page.payment_id
     union all select x.amount_minor, x.currency, x.refunded_minor, x.granted from purse_topup x
       where x.purse_id = page.purse_id and x.account_id = page.account_id and x.id = page.payment_id) p on true
   left join invoice o on o.account_id = page.account_id and o.id = page.corrects and o.kind = 'payment' and o.payment_id = page.payment_id
     and o.purse_id is not distinct from page.purse_id
   left join lateral (select coalesce(sum(c.gross_minor), 0)::bigint as credited from invoice c where c.account_id = page.account_id and c.corrects = page.id) n on true`,
  rules: {
    ...NO_ACCOUNT,
    '{it} has another number than its place in the series.': 'misnumbered',
    '{it} is not what its document says.': 'differs',
    '{it} is for payment {payment_id}, for which nothing was granted.': `kind = 'payment' and not granted`,
    '{it} is over {gross_minor} {currency}, but {amount_minor} {paid_currency} were paid.': `kind = 'payment' and granted
      and (gross_minor <> amount_minor or currency <> paid_currency)`,
    '{it} is over {gross_minor} {currency}, of which {refunded_minor} were refunded and {credited} credited.': `kind = 'payment' and granted
      and (credited > gross_minor or credited < refunded_minor)`,
    '{it} corrects no invoice of its payment.': `kind = 'credit_note' and not corrects_known`,
  },
}

/** With several ledgers, what is counted at control is in all of them: no database sees both. */
const ALONE = `to_regnamespace('control') is null and not exists (select 1 from account where ledger is not null)`

const FINDINGS = {
  'A code of the batch {batch_id} was used {uses} times, but {redeemed} accounts have redeemed it.': `(
     select c.batch_id, c.uses, (select count(*) from code_use u where u.hash = c.hash and u.batch_id = c.batch_id) as redeemed from code c
   ) x where uses < redeemed or (uses > redeemed and ${ALONE})`,
  'The batch {id} is one of {codes} codes, but {found} are there, and one was used {most} times of {uses_max}.': `(
     select b.id, b.codes, b.uses_max, count(c.hash) as found, coalesce(max(c.uses), 0) as most
     from code_batch b left join code c on c.batch_id = b.id group by b.id, b.codes, b.uses_max
   ) x where found <> codes or most > uses_max`,
  'Codes of the batch {batch_id} are there, but it is not.': `(select distinct batch_id from code) c where not exists (select 1 from code_batch b where b.id = c.batch_id)`,
  'Account {account_id} has redeemed a code of the batch {batch_id} ({at}), but transfer {transfer_id} did not grant it {credits} micro-credits then.': `(
     select u.account_id, u.batch_id, u.transfer_id, u.at, b.credits, t.id is null as is_wrong
     from code_use u left join code_batch b on b.id = u.batch_id
     left join transfer t on t.account_id = u.account_id and t.id = u.transfer_id and t.kind = 'code' and t.amount = b.credits and t.at = u.at
   ) x where is_wrong`,
  // Of series that another database issues there is no counter here. Of several ledgers, see extensions/ledgers.
  'Invoices of the series {series} in {year} go to {last}, but there are {count}, and the highest is {highest}.': `(
     select c.account_id, c.series, c.year, c.last, count(i.id) as count, coalesce(max(i.sequence), 0) as highest
     from invoice_counter c left join invoice i on i.series = c.series and i.year = c.year and i.sequence > 0
       and c.account_id = case when i.purse_id is null then '' else i.account_id end group by 1, 2, 3, 4
   ) x where (count <> last or highest <> last) and ${ALONE}`,
  'Account {account_id} bought {bought} micro-credits and lost {lost} by its payments and claims, but {moved} and {loss} by its transfers.': `(
     select account_id, coalesce(bought, 0) as bought, coalesce(lost, 0) as lost, coalesce(moved, 0) as moved, coalesce(loss, 0) as loss from
       (select account_id, sum(credits - taken) as bought, sum(lost) as lost from (
          select account_id, credits, taken, lost from payment where transfer_id is not null union all select account_id, 0, taken, -taken from claim) x group by account_id) p full join
       (select account_id, sum(case kind when 'purchase' then amount else -amount end) as moved, sum(case kind when 'purchase' then -loss else loss end) as loss
        from transfer where kind in ('purchase', 'refund') group by account_id) t using (account_id)
   ) x where bought <> moved or lost <> loss`,
  'Claim {id} of account {account_id} is number {number}, of {amount} micro-credits for payment {payment_id}; its refund says: number {nth}, of {held}, for {paid}.': `(
     select c.*, r.held, r.nth, p.id as paid from claim c
     left join (select account_id, id, held, row_number() over (partition by account_id order by moved_at) as nth from transfer where kind = 'refund' and held > 0) r using (account_id, id)
     left join payment p on p.account_id = c.account_id and p.id = c.payment_id and p.transfer_id is not null
       and c.lot_id = coalesce(p.detail ->> 'lotId', p.transfer_id) and c.only_lot = (p.detail ? 'period')
   ) x where (number, amount) is distinct from (nth, held) or paid is null`,
  'Account {id} has had {claims} claims, but {made} of its refunds made one, and a hold or lease knows of {known}.': `(
     select a.id, a.claims, (select count(*) from transfer t where t.account_id = a.id and t.kind = 'refund' and t.held > 0) as made,
       greatest((select max(h.claims) from hold h where h.account_id = a.id), (select max(e.claims) from lease e where e.account_id = a.id)) as known from account a
   ) x where claims <> made or known > claims`,
  'Process {id} is said to have lived in the future: what it holds would never expire.': `gateway_instance where heartbeat_at > now() + interval '1 minute'`,
  'Catalog version {missing} was removed: the next is {version}.':
    '(select version, lag(version, 1, 0) over (order by version) + 1 as missing from catalog_version where version > 0) v where version <> missing',
}

const PROCESSES = sql('verify_processes')`
  select id, (extract(epoch from now() - heartbeat_at) * 1000)::float8 as silent_ms,
     (extract(epoch from now() - started_at) * 1000)::float8 as age_ms from gateway_instance`

/** The live processes; null if none has lived long enough to notice a death. */
async function readLiving(database: Database): Promise<readonly string[] | null> {
  const rows = await database.query<{ id: string; silent_ms: number; age_ms: number }>(PROCESSES)
  const living = rows.filter(({ silent_ms }) => silent_ms < DEAD_MINUTES * MINUTE_MS)
  return living.some(({ age_ms }) => age_ms > DEAD_MINUTES * MINUTE_MS) ? living.map(({ id }) => id) : null
}

const VERSIONS = sql('verify_catalog_versions')`
  select version, document from catalog_version where version > $1 order by version limit 20`

async function checkVersions({ database, report }: TableCheck): Promise<void> {
  for (let last = 0; ; ) {
    const rows = await database.query<{ version: number; document: string }>(VERSIONS, [last])
    for (const { version, document } of rows)
      if (!isJson(document)) report(`Catalog version ${version} cannot be read.`)
    last = rows.at(-1)?.version ?? last
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

const TABLES = {
  holds: HOLDS,
  leases: LEASES,
  jobs: JOBS,
  journal: JOURNAL,
  batches: BATCHES,
  background: BACKGROUND,
  idempotency: KEYS,
  payments: PAYMENTS,
  invoices: INVOICES,
}

/** Returns the number of rows per table. */
export async function checkTables(check: TableCheck): Promise<Record<string, number>> {
  const { database, rates, report, since, usageSince } = check
  const given = { since, usageSince, living: await readLiving(database) }
  const counts: Record<string, number> = {}
  for await (const problem of find(database, FINDINGS)) report(problem)
  for (const [name, table] of Object.entries<BookTable>(TABLES))
    for await (const row of readTable<PricedRow, Given>(database, [name, table], given)) {
      counts[name] = (counts[name] ?? 0) + 1
      for (const problem of row.problems) report(problem)
      const wrong = await table.price?.(rates, row)
      if (wrong) report(`${row.it}: ${wrong}`)
    }
  await checkVersions(check)
  return counts
}
