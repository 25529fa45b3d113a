// Replays the ledger from its rows and reports in sentences what does not add up. It runs beside the load, one account
// after the other, in short statements, and does not read again what an earlier run has checked. See
// docs/decisions/0008-verification-and-records.md.
import { type Catalog, digestOf } from '../../catalog/store.ts'
import type { Audit, AuditRow } from '../../database/audit.ts'
import { type KeptRows, KeptRowsCheck } from '../../database/audited-rows.ts'
import { type Database, sql } from '../../database/database.ts'
import { formatCredits } from '../../kernel/credits.ts'
import { ownAccountOf } from '../../kernel/test-account.ts'
import { idAtTime, timeOfId } from '../../kernel/world.ts'
import { movedBy } from '../../reports/movements.ts'
import { type AccountCheck, verifyAccount } from './account.ts'
import { createRateCheck, type TransferRow } from './call.ts'
import { checkMargins, foldedBefore, type Margins } from './hours.ts'
import { checkSystemLimits } from './limits.ts'
import { checkTables } from './tables.ts'
import type { Verification } from './views.ts'

interface VerifyOptions {
  /** Usage rows from before this moment (the start of an hour) may have been pruned. Absent: none were. */
  readonly usageSinceMs?: number
  /** If set, every grant is looked up in the audit trail, and the trail's chain is verified. */
  readonly audit?: Pick<Audit, 'verify'>
  /** With which checkpoints of the archive are signed. Absent: their signatures are not checked. */
  readonly key?: Buffer | undefined
  /** False: rows that an earlier run checked are not read again. */
  readonly whole?: boolean
  /** The last run without problems. */
  readonly earlier?: { readonly startedAt: Date; readonly auditId: string | null } | undefined
  readonly onProgress?: (progress: Progress) => Promise<void>
  /** The number of an account's rows that are read before the progress is saved. */
  readonly pieceRows?: number
  /** Margins of fewer calls than this may be missing. */
  readonly marginCallsMin?: number
}

export interface Progress {
  readonly done: number
  readonly total: number
  readonly checked: Verification['checked']
}

const PROBLEMS_MAX = 200
const PIECE_ROWS = 50_000
/** A row's time is the start of its transaction, and no transaction takes longer than this. */
const COMMIT_SECONDS = 300
const YOUNG_MS = 3_600_000
const NEVER = new Date(0)
const MARGIN_CALLS_MIN = 1_000
/** Margins are kept for one day longer than this. */
const MARGIN_MS = 31 * 24 * 3_600_000

const CLOCK = sql('verify_clock')`
  select now() as now, date_trunc('hour', now() - make_interval(secs => ${COMMIT_SECONDS}), 'UTC') as settled, (select count(*) from account where ledger is null) as accounts`
// Includes ids that have only rows and no account.
const NEXT = sql('verify_next')`
  select least((select min(id) from account where id > $1 and ledger is null), (select min(account_id) from transfer where account_id > $1),
     (select min(account_id) from usage_hour where account_id > $1)) as id`
// A copy that is not whole yet.
const ARRIVES = sql('verify_arrives')`select 1 from account_move where account_id = $1 and state = 'arriving'`

interface Clock {
  readonly now: Date
  readonly settled: Date
  readonly accounts: bigint
}

/** Older margins may have lost their usage rows; newer ones may include calls that were written since. */
function marginsOf(clock: Clock | undefined, usageSinceMs: number): Margins {
  const untilMs = (clock?.settled.getTime() ?? 0) - YOUNG_MS
  return { fromMs: Math.max(usageSinceMs, untilMs - MARGIN_MS), untilMs, counted: new Map() }
}

export async function verifyLedger(
  database: Database,
  catalogs: { at(version: number): Promise<Catalog> },
  options: VerifyOptions = {},
): Promise<Verification & { auditId: string | null }> {
  const { audit, onProgress, whole = true } = options
  const earlier = whole ? undefined : options.earlier
  const problems: string[] = []
  let unlisted = 0
  const report = (problem: string) => {
    if (problems.length < PROBLEMS_MAX) problems.push(problem)
    else unlisted += 1
  }
  const rates = createRateCheck(catalogs)
  const [clock] = await database.query<Clock>(CLOCK)
  const check: AccountCheck = {
    database,
    rates,
    key: options.key,
    usageSinceMs: options.usageSinceMs ?? 0,
    nowMs: clock?.now.getTime() ?? 0,
    settledMs: clock?.settled.getTime() ?? 0,
    foldedMs: foldedBefore(clock?.now.getTime() ?? 0),
    whole,
    audited: audit && ((account, grant) => findAudited(database, account, grant)),
    margins: whole ? marginsOf(clock, options.usageSinceMs ?? 0) : undefined,
    pieceRows: options.pieceRows ?? PIECE_ROWS,
    onPage: async () => progress(),
  }
  const checked = { accounts: 0, transfers: 0, holds: 0, usage: 0, charges: 0, jobs: 0 }
  const progress = () =>
    onProgress?.({ done: checked.accounts, total: Math.max(Number(clock?.accounts ?? 0n), checked.accounts), checked })
  // Starts an hour earlier, because rows that ended just before the last run may have been too new for it.
  const since = earlier ? new Date(earlier.startedAt.getTime() - YOUNG_MS) : NEVER
  const {
    holds = 0,
    leases = 0,
    jobs = 0,
  } = await checkTables({ database, rates, since, report, usageSince: new Date(check.usageSinceMs) })
  checked.holds = holds + leases
  checked.jobs = jobs
  for await (const problem of checkSystemLimits(database)) report(problem)
  const lastId = options.earlier?.auditId ?? undefined
  const auditId = audit ? await checkAudit({ database, audit, report, lastId, since }) : null
  await progress()
  for (let account = ''; ; ) {
    const [next] = await database.query<{ id: string | null }>(NEXT, [account])
    if (!next?.id) break
    account = next.id
    if ((await database.query(ARRIVES, [account])).length > 0) continue
    const found = await verifyAccount(check, account)
    checked.transfers += found.transfers
    checked.usage += found.usage
    checked.charges += found.charges
    checked.accounts += 1
    for (const problem of found.problems) report(problem)
    await progress()
  }
  const bounds = { sinceMs: check.usageSinceMs, callsMin: options.marginCallsMin ?? MARGIN_CALLS_MIN }
  for await (const problem of checkMargins(database, check.margins, bounds)) report(problem)
  if (unlisted > 0) problems.push(`${unlisted} more problems are not listed.`)
  return { ok: problems.length === 0, checked, problems, auditId }
}

// Compares the ledger with the audit trail, whose rows are chained by hashes: an attacker who adds credits or changes a
// price in the database would have to forge the trail too. Each grant's audit row names its transfer, and each is
// looked up from the other.

interface AuditedCheck {
  readonly database: Database
  readonly audit: Pick<Audit, 'verify'>
  readonly report: (problem: string) => void
  /** The newest audit row that an earlier run saw. */
  readonly lastId: string | undefined
  readonly since: Date
}

/** Both rows are written by one transaction with one clock; the trail's id may be ahead to keep its order. */
const APART_MS = 600_000
const PAGE_ROWS = 1_000

const GRANTS = sql('verify_grants')`
  select account_id, id, kind, amount, note, actor from transfer where account_id = any($1) and id = any($2)`
const GRANT_KEYS = sql('verify_grant_keys')`
  select account_id, key from credit_idempotency where account_id = any($1) and key = any($2)`
const DOCUMENTS = sql('verify_documents')`select version, document from catalog_version where version = any($1::int[])`
const FIND = sql('verify_audit_find')`select detail from audit where id >= $1 and id < $2 and object = $3
     and action in ('account.credit', 'account.create', 'account.close', 'account.move', 'payment.paid', 'payment.back', 'plan.start', 'plan.renew', 'code.redeem') and detail ->> $4 = $5`
// Grants that an account brought from another database are in that database's trail. The move compared both, and the
// move itself is in this trail.
const ARRIVED = sql('verify_audit_arrived')`
  select 1 from audit where object = $1 and action = 'account.arrive' and id >= $2 limit 1`
// Within one installation nothing stays where an account was, and the ledger that has it verifies it. What was changed
// elsewhere is in the trail of there.
const ELSEWHERE = sql('verify_elsewhere')`
  select m.account_id as id, case m.state when 'arrived' then m.at end as at from account_move m left join account a on a.id = m.account_id and a.ledger is null
   where m.state in ('arrived', 'arriving') or (m.state = 'gone' and a.id is null)`
/** After every id. */
const ABSENT = '~'
const NEW_KEYS = sql('verify_new_grant_keys')`
  select account_id, key, at from credit_idempotency where (account_id, key) > ($1, $2) and at >= $3 order by account_id, key limit ${PAGE_ROWS}`
const KEYS = sql('verify_made_keys')`select id, account_id from api_key where id = any($1)`
const LAST = sql('verify_audit_last')`select id from audit where id = $1`

/** Returns a problem if a grant is not in the audit trail. */
async function findAudited(database: Database, account: string, grant: TransferRow): Promise<string | undefined> {
  const found = await isAudited(database, { account, name: 'transfer', value: grant.id, nearMs: timeOfId(grant.id) })
  if (found) return undefined
  return `The audit knows nothing of transfer ${grant.id}, a ${grant.kind} of ${formatCredits(grant.amount)} to account ${account}.`
}

interface Sought {
  readonly account: string
  readonly name: 'transfer' | 'key'
  readonly value: string
  readonly nearMs: number
}

async function isAudited(database: Database, { account, name, value, nearMs }: Sought): Promise<boolean> {
  const near = [idAtTime(Math.max(0, nearMs - APART_MS)), idAtTime(nearMs + APART_MS)] as const
  // The audit row is nearly always close in time. If it is not, the whole trail is searched, because clocks may have
  // been changed.
  for (const [low, high] of [near, ['', '~']] as const)
    if ((await database.query(FIND, [low, high, account, name, value])).length > 0) return true
  if (name === 'transfer' && (await database.query(FIND, ['', '~', account, 'takeback', value])).length > 0) return true
  return (await database.query(ARRIVED, [account, idAtTime(nearMs)])).length > 0
}

/** Returns the id of the newest audit row. */
async function checkAudit(check: AuditedCheck): Promise<string | null> {
  const { database, audit, report, lastId } = check
  let last: string | null = null
  const kept = new KeptRowsCheck()
  const moved = await database.query<{ id: string; at: Date | null }>(ELSEWHERE)
  const elsewhere = new Map(moved.map(({ id, at }) => [id, at ? idAtTime(at.getTime()) : ABSENT]))
  const isHere = ({ object }: AuditRow) => elsewhere.get(object) !== ABSENT
  const { problems } = await audit.verify(async (rows) => {
    last = rows.at(-1)?.id ?? last
    await checkGrants(
      check,
      rows.filter((row) => typeof row.detail.transfer === 'string' && isHere(row)),
    )
    await checkDocuments(
      check,
      rows.filter(({ detail }) => typeof detail.digest === 'string'),
    )
    await checkPayments(
      check,
      rows.filter((row) => row.action === 'payment.paid' && isHere(row)),
    )
    await kept.follow(
      database,
      // Written by `audit.write`, and covered by the row's hash.
      rows.flatMap(({ id, detail }) => (detail.rows ? [{ id, rows: detail.rows as KeptRows }] : [])),
      elsewhere,
    )
    await checkKeys(
      check,
      rows.filter(({ action, detail }) => action === 'key.create' && typeof detail.account === 'string'),
    )
  })
  for (const problem of [...problems, ...kept.problems()]) report(problem)
  if (lastId !== undefined && (await database.query(LAST, [lastId])).length === 0)
    report(`Audit row ${lastId}, which an earlier verification saw, was removed.`)
  await checkGrantKeys(check)
  return last
}

interface FoundGrant {
  readonly account_id: string
  readonly id: string
  readonly kind: string
  readonly amount: bigint
  readonly note: string | null
  readonly actor: string | null
}

async function checkGrants({ database, report }: AuditedCheck, rows: readonly AuditRow[]): Promise<void> {
  if (rows.length === 0) return
  const accounts = rows.map(({ object }) => object)
  const grants = await database.query<FoundGrant>(GRANTS, [accounts, rows.map(({ detail }) => String(detail.transfer))])
  const byId = new Map(grants.map((grant) => [`${grant.account_id} ${grant.id}`, grant]))
  const keyed = rows.filter(({ detail }) => typeof detail.key === 'string')
  const keys = await database.query<{ account_id: string; key: string }>(GRANT_KEYS, [
    keyed.map(({ object }) => object),
    keyed.map(({ detail }) => String(detail.key)),
  ])
  const known = new Set(keys.map(({ account_id, key }) => `${account_id} ${key}`))
  for (const { id, object, actor, detail } of rows) {
    const name = `Audit row ${id} says that account ${object}`
    const said = String(detail.amount ?? detail.credits)
    const grant = byId.get(`${object} ${detail.transfer}`)
    const moved = grant && formatCredits(movedBy(grant))
    if (!grant) report(`${name} was given ${said} (transfer ${detail.transfer}), but there is no such transfer.`)
    else if (moved !== said) report(`${name} was given ${said}, but transfer ${grant.id} is one of ${moved}.`)
    else if (grant.actor !== actor || (typeof detail.note === 'string' && detail.note !== grant.note))
      report(`${name} was given ${said} by others or for other reasons than transfer ${grant.id} says.`)
    if (typeof detail.key === 'string' && !known.has(`${object} ${detail.key}`))
      report(`${name} was given ${said} with an idempotency key that is gone: it could be given twice.`)
  }
}

async function checkDocuments({ database, report }: AuditedCheck, rows: readonly AuditRow[]): Promise<void> {
  if (rows.length === 0) return
  const digests = new Map(rows.map(({ object, detail }) => [Number(object.split('/')[1]), String(detail.digest)]))
  const stored = await database.query<{ version: number; document: string }>(DOCUMENTS, [[...digests.keys()]])
  const documents = new Map(stored.map(({ version, document }) => [version, document]))
  for (const [version, digest] of digests) {
    const document = documents.get(version)
    if (document === undefined) report(`Catalog version ${version} was removed: the audit says that it was applied.`)
    else if (digestOf(document) !== digest) report(`Catalog version ${version} is not what was applied.`)
  }
}

const PAYMENTS = sql('verify_audited_payments')`select id, account_id, provider_id, currency, amount_minor, credits,
     (select i.number from invoice i where i.account_id = payment.account_id and i.payment_id = payment.id and i.kind = 'payment') as invoice
   from payment where id = any($1)`

interface PaidRow {
  readonly id: string
  readonly account_id: string
  readonly provider_id: string
  readonly currency: string
  readonly amount_minor: bigint
  readonly credits: bigint
  readonly invoice: string | null
}

/** What was paid, for whom, and the number of its invoice are in the audit since the moment of payment. */
async function checkPayments({ database, report }: AuditedCheck, rows: readonly AuditRow[]): Promise<void> {
  if (rows.length === 0) return
  const found = await database.query<PaidRow>(PAYMENTS, [rows.map(({ detail }) => String(detail.payment))])
  const byId = new Map(found.map((row) => [row.id, row]))
  for (const { id, object, detail } of rows) {
    const row = byId.get(String(detail.payment))
    const said = [object, detail.providerId, detail.currency, detail.paid, detail.amount]
    const is = row && [
      row.account_id,
      row.provider_id,
      row.currency,
      String(row.amount_minor),
      formatCredits(row.credits),
    ]
    if (!is) report(`Audit row ${id} is of payment ${detail.payment}, but there is no such payment.`)
    else if (JSON.stringify(is) !== JSON.stringify(said))
      report(`Payment ${detail.payment} is not what audit row ${id} says: ${said.join(' ')}, but ${is.join(' ')}.`)
    if (row && typeof detail.invoice === 'string' && row.invoice !== detail.invoice)
      report(
        `Payment ${detail.payment} has the invoice ${row.invoice ?? 'none'}, but audit row ${id} says ${detail.invoice}.`,
      )
  }
}

/** A key must belong to the account that it was created for. */
async function checkKeys({ database, report }: AuditedCheck, rows: readonly AuditRow[]): Promise<void> {
  if (rows.length === 0) return
  const made = new Map(rows.map(({ object, detail }) => [object, ownAccountOf(String(detail.account))]))
  for (const { id, account_id } of await database.query<{ id: string; account_id: string }>(KEYS, [[...made.keys()]]))
    if (ownAccountOf(account_id) !== made.get(id))
      report(`Key ${id} was made for account ${made.get(id)}, but is one of account ${account_id}.`)
}

async function checkGrantKeys({ database, report, since }: AuditedCheck): Promise<void> {
  let last = { account_id: '', key: '' }
  for (;;) {
    const rows = await database.query<{ account_id: string; key: string; at: Date }>(NEW_KEYS, [
      last.account_id,
      last.key,
      since,
    ])
    for (const { account_id, key, at } of rows)
      if (!(await isAudited(database, { account: account_id, name: 'key', value: key, nearMs: at.getTime() })))
        report(`An idempotency key of account ${account_id} is kept for a grant of which the audit knows nothing.`)
    const next = rows.at(-1)
    if (!next || rows.length < PAGE_ROWS) return
    last = next
  }
}
