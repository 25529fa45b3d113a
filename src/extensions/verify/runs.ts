// When the ledger is verified, and the results: every night and on demand, one run at a time over all processes.
// Progress and result are in the database, where every process can read them.
import { type CatalogStore, storedCatalogs } from '../../catalog/store.ts'
import type { Audit } from '../../database/audit.ts'
import { type Database, type Queryable, sql } from '../../database/database.ts'
import { DAY_MS, dayOfMs, monthStart } from '../../kernel/calendar.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Log } from '../../kernel/log.ts'
import { newId, type World } from '../../kernel/world.ts'
import { callsSinceDay } from '../../ledger/retention.ts'
import { type Progress, verifyLedger } from './verify.ts'
import type { VerificationRun, VerificationState } from './views.ts'

export type Verifier = ReturnType<typeof createVerifier>

interface VerifierOptions {
  readonly database: Database
  readonly audit: Pick<Audit, 'verify'>
  readonly world: World
  readonly log: Log
  /** The retention of usage rows, in months. */
  readonly usageMonths: number
  /** The days that single calls stay here, where another store has them. */
  readonly callDays?: number | undefined
  /** Compares them with that store. */
  readonly compareCalls?: (of: { readonly whole: boolean }) => Promise<readonly string[]>
  /** A time of day in UTC such as `03:00`; `off`: never. */
  readonly nightlyAt: string
  /** With which checkpoints of the archive are signed. */
  readonly key?: Buffer
  readonly catalogs?: Pick<CatalogStore, 'at'>
}

const SAY_EVERY_MS = 1_000
const RETRY_MS = 3_600_000
const PROBLEMS_LOGGED = 20
const NO_COUNTS: Progress['checked'] = { accounts: 0, transfers: 0, holds: 0, usage: 0, charges: 0, jobs: 0 }

/** A run without progress for this long has died with its process. */
const SILENT = `interval '1 minute'`
const COLUMNS = `id, whole, started_at, ended_at, accounts_done, accounts_total, checked, problems, failure, audit_id,
  ended_at is null and seen_at > now() - ${SILENT} as running`

const LOCK = sql('verification_lock')`select pg_advisory_xact_lock(7046029261)`
const RECENT = sql('verification_recent')`select ${COLUMNS} from verification order by id desc limit 30`
const BEGIN = sql('verification_begin')`insert into verification (id, whole) values ($1, $2) returning ${COLUMNS}`
// The last run without problems is kept, because the next one starts from it.
const PRUNE = sql('verification_forget')`
  delete from verification where id < (select min(id) from (select id from verification order by id desc limit 30) x)
     and id <> (select max(id) from verification where ended_at is not null and failure is null and problems = '[]')`
const SAY = sql('verification_say')`
  update verification set seen_at = now(), accounts_done = $2, accounts_total = $3, checked = $4 where id = $1 and ended_at is null returning id`
const END = sql('verification_end')`
  update verification set ended_at = now(), checked = coalesce($2, checked), problems = $3, failure = $4, audit_id = $5 where id = $1 and ended_at is null`
const GOOD = sql('verification_good')`
  select started_at, audit_id from verification where ended_at is not null and failure is null and problems = '[]' order by id desc limit 1`

interface RunRow {
  readonly id: string
  readonly whole: boolean
  readonly started_at: Date
  readonly ended_at: Date | null
  readonly accounts_done: bigint
  readonly accounts_total: bigint
  readonly checked: Partial<Progress['checked']>
  readonly problems: string[]
  readonly failure: string | null
  readonly audit_id: string | null
  readonly running: boolean
}

class Stopped extends Error {}

export function createVerifier(options: VerifierOptions) {
  const { database, world, log, nightlyAt } = options
  const startedMs = world.nowMs()
  let stopping = false
  let going: Promise<void> | undefined
  let compareLedgers: () => Promise<readonly string[]> = async () => []

  async function recent(on: Queryable = database) {
    const rows = await on.query<RunRow>(RECENT)
    return { running: rows.find((row) => row.running), last: rows.find((row) => row.ended_at !== null), rows }
  }

  async function run({ id, whole }: RunRow): Promise<void> {
    let saidMs = world.elapsedMs()
    const say = async (progress: Progress) => {
      if (stopping) throw new Stopped('the process was stopped')
      if (world.elapsedMs() - saidMs < SAY_EVERY_MS) return
      saidMs = world.elapsedMs()
      const values = [id, progress.done, progress.total, JSON.stringify(progress.checked)]
      if ((await database.query(SAY, values)).length === 0) throw new Stopped('another process took it for dead')
    }
    try {
      const found = await verifyLedger(database, options.catalogs ?? storedCatalogs(database), {
        usageSinceMs: usageSinceMs(world.nowMs(), options),
        audit: options.audit,
        key: options.key,
        whole,
        earlier: await lastGood(database),
        onProgress: say,
      })
      const calls = (await options.compareCalls?.({ whole })) ?? []
      const problems = [...found.problems, ...calls, ...(await compareLedgers())]
      const { checked } = found
      await end(id, { ...found, problems })
      if (problems.length === 0) log.info({ ...checked }, 'the ledger adds up')
      else log.error({ problems: problems.slice(0, PROBLEMS_LOGGED), alert: true }, 'the ledger does not add up')
    } catch (error) {
      log.warn({ error }, 'the ledger could not be verified; it will be tried again')
      const failure = error instanceof Error ? error.message : String(error)
      await end(id, { checked: null, problems: [], failure }).catch(() => undefined)
    }
  }

  /**
   * The first nightly run is due only if the process was already running at that time of day. A failed run is retried
   * later.
   */
  function isDue(rows: readonly RunRow[]): boolean {
    const nowMs = world.nowMs()
    const done = rows.find((row) => row.ended_at !== null && row.failure === null)
    const doneMs = done?.started_at.getTime() ?? startedMs
    const triedMs = rows[0]?.started_at.getTime() ?? 0
    return doneMs < nightBefore(nowMs, nightlyAt) && nowMs - triedMs >= RETRY_MS
  }

  async function end(
    id: string,
    ending: { checked: object | null; problems: readonly string[]; failure?: string; auditId?: string | null },
  ): Promise<void> {
    const { checked, problems, failure = null, auditId = null } = ending
    await database.query(END, [id, checked && JSON.stringify(checked), JSON.stringify(problems), failure, auditId])
  }

  /** Returns the run of a faster process, if there is one; undefined if a run is no longer needed. */
  async function begin(whole: boolean, isNeeded: (rows: readonly RunRow[]) => boolean): Promise<RunRow | undefined> {
    const begun = await database.transaction(async (tx) => {
      await tx.query(LOCK)
      const { running, rows } = await recent(tx)
      if (running || !isNeeded(rows)) return { row: running, own: false }
      const [row] = await tx.query<RunRow>(BEGIN, [newId(world), whole])
      await tx.query(PRUNE)
      return { row, own: true }
    })
    if (begun.own && begun.row)
      going = run(begun.row).finally(() => {
        going = undefined
      })
    return begun.row
  }

  return {
    async state(): Promise<VerificationState> {
      const { running, last } = await recent()
      const nextMs = nightlyAt === 'off' ? undefined : nightBefore(world.nowMs(), nightlyAt) + DAY_MS
      return {
        running: running ? viewOf(running) : null,
        last: last ? viewOf(last) : null,
        nextAt: nextMs === undefined ? null : new Date(nextMs).toISOString(),
      }
    },
    /** Starts a run in this process. Returns the running one, if there is one. */
    async start({ whole }: { readonly whole: boolean }): Promise<VerificationRun> {
      const row = await begin(whole, () => true)
      if (!row) throw new Fault('unavailable', { internal: { why: 'no run was begun' } })
      return viewOf(row)
    },
    /** With several ledgers: what control alone does not see. */
    comparing: (compare: typeof compareLedgers) => {
      compareLedgers = compare
    },
    /** Starts the nightly run if it is due. Every process calls it regularly. */
    async tick(): Promise<void> {
      if (nightlyAt === 'off' || going) return
      const { running, rows } = await recent()
      if (!running && isDue(rows)) await begin(false, isDue)
    },
    /** Ends this process's run; another process may start a new one. */
    async stop(): Promise<void> {
      stopping = true
      await going
    },
  }
}

async function lastGood(database: Queryable) {
  const [row] = await database.query<{ started_at: Date; audit_id: string | null }>(GOOD)
  return row && { startedAt: row.started_at, auditId: row.audit_id }
}

/** The last moment at which it was this time of day. */
function nightBefore(nowMs: number, time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  const atMs = dayOfMs(nowMs) * DAY_MS + (hours * 60 + minutes) * 60_000
  return atMs > nowMs ? atMs - DAY_MS : atMs
}

/** The oldest month may be partly pruned, so it is left out. */
function usageSinceMs(
  nowMs: number,
  { usageMonths, callDays }: Pick<VerifierOptions, 'usageMonths' | 'callDays'>,
): number {
  const today = dayOfMs(nowMs)
  // Tomorrow's, since a month may go while it is read.
  const callsSince = callDays === undefined ? 0 : callsSinceDay(today + 1, callDays)
  return Math.max(0, callsSince, monthStart(today, 1 - usageMonths)) * DAY_MS
}

function viewOf(row: RunRow): VerificationRun {
  return {
    id: row.id,
    full: row.whole,
    startedAt: row.started_at.toISOString(),
    endedAt: row.ended_at?.toISOString() ?? null,
    durationMs: row.ended_at && row.ended_at.getTime() - row.started_at.getTime(),
    ok: row.ended_at === null || row.failure !== null ? null : row.problems.length === 0,
    progress: { accounts: Number(row.accounts_done), total: Number(row.accounts_total) },
    checked: { ...NO_COUNTS, ...row.checked },
    problems: row.problems,
    failure: row.failure,
  }
}
