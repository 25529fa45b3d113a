// Replays the ledger from its rows and says in sentences what does not add up. It runs beside the load, an account after the
// other, in short statements; what it has read of an account it need not read again. See docs/decisions/0010-verification-and-statements.md.
import type { Catalog } from '../catalog/store.ts'
import type { Audit } from '../database/audit.ts'
import { type Database, statement } from '../database/database.ts'
import type { Verification } from '../ledger/views.ts'
import { type AccountCheck, verifyAccount } from './account.ts'
import { checkAudit, findAudited } from './audit.ts'
import { checkMargins, type Margins } from './hours.ts'
import { checkSystemLimits } from './limits.ts'
import { createRateCheck } from './rate-check.ts'
import { checkTables } from './tables.ts'

interface VerifyOptions {
  /** Usage from before this moment, the start of an hour, may have been trimmed. Absent: none was. */
  readonly usageSinceMs?: number
  /** With it, every grant is looked for in the audit, and the audit's chain is walked. */
  readonly audit?: Pick<Audit, 'verify'>
  /** False: what was checked before is not read again. */
  readonly whole?: boolean
  /** The last run that found nothing. */
  readonly earlier?: { readonly startedAt: Date; readonly auditId: string | null } | undefined
  readonly onProgress?: (progress: Progress) => Promise<void>
  /** How many rows of an account are read before that is written down. */
  readonly pieceRows?: number
  /** Margins of fewer calls may be missing. */
  readonly marginCallsMin?: number
}

export interface Progress {
  readonly done: number
  readonly total: number
  readonly checked: Verification['checked']
}

const PROBLEMS_MAX = 200
const PIECE_ROWS = 50_000
/** Rows bear the time at which their transaction began, and no transaction takes longer. */
const COMMIT_SECONDS = 300
const YOUNG_MS = 3_600_000
const NEVER = new Date(0)
const MARGIN_CALLS_MIN = 1_000
/** They are kept for one day longer. */
const MARGIN_MS = 31 * 24 * 3_600_000

const CLOCK = statement(
  'verify_clock',
  `select now() as now, date_trunc('hour', now() - make_interval(secs => ${COMMIT_SECONDS}), 'UTC') as settled, (select count(*) from account) as accounts,
     (select at from migration where name like '%_chain.sql') as chained`,
)
// Also those that have only rows, and no account.
const NEXT = statement(
  'verify_next',
  `select least((select min(id) from account where id > $1), (select min(account_id) from transfer where account_id > $1),
     (select min(account_id) from usage_hour where account_id > $1)) as id`,
)

interface Clock {
  readonly now: Date
  readonly settled: Date
  readonly accounts: bigint
  readonly chained: Date | null
}

/** Older ones may have lost their usage rows; younger ones may count what was written since. */
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
    usageSinceMs: options.usageSinceMs ?? 0,
    nowMs: clock?.now.getTime() ?? 0,
    settledMs: clock?.settled.getTime() ?? 0,
    chainedMsMax: (clock?.chained?.getTime() ?? 0) + 2 * COMMIT_SECONDS * 1000,
    whole,
    audited: audit && ((account, grant) => findAudited(database, account, grant)),
    margins: whole ? marginsOf(clock, options.usageSinceMs ?? 0) : undefined,
    pieceRows: options.pieceRows ?? PIECE_ROWS,
    onPage: async () => progress(),
  }
  const checked = { accounts: 0, transfers: 0, holds: 0, usage: 0, charges: 0, jobs: 0 }
  const progress = () =>
    onProgress?.({ done: checked.accounts, total: Math.max(Number(clock?.accounts ?? 0n), checked.accounts), checked })
  // What ended just before the last run may have been younger than what it looked at.
  const since = earlier ? new Date(earlier.startedAt.getTime() - YOUNG_MS) : NEVER
  const { holds, jobs } = await checkTables({
    database,
    rates,
    since,
    usageSince: new Date(check.usageSinceMs),
    report,
  })
  checked.holds = holds
  checked.jobs = jobs
  for (const problem of await checkSystemLimits(database)) report(problem)
  const lastId = options.earlier?.auditId ?? undefined
  const auditId = audit ? await checkAudit({ database, audit, report, lastId, since }) : null
  await progress()
  for (let account = ''; ; ) {
    const [next] = await database.query<{ id: string | null }>(NEXT, [account])
    if (!next?.id) break
    account = next.id
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
