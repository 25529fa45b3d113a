// Exports of usage to finance systems. Each destination has a cursor over the usage rows. A step reads a page
// after the cursor, sends it, and moves the cursor to the last accepted row. Rows that were sent before a crash are
// sent again with the same ids and content.

import type { CatalogStore } from '../../catalog/store.ts'
import type { By } from '../../database/audit.ts'
import { type Database, type Statement, sql } from '../../database/database.ts'
import type { CoreParts } from '../../extension.ts'
import type { Branding } from '../../identity/branding/branding.ts'
import { createWorkTable, type Ending, type WorkRow } from '../../jobs/work.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { isTestAccount } from '../../kernel/test-account.ts'
import { asView, type Page, type Paging } from '../../kernel/view.ts'
import { idAtTime, newId } from '../../kernel/world.ts'
import type { Billing } from '../../reports/billing.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'
import type { GuardedFetch } from '../../upstream/guard.ts'
import { fileReceiver } from './files.ts'
import { readFocusNames } from './focus.ts'
import {
  lagoReceiver,
  openMeterReceiver,
  type Problem,
  type Receiver,
  type ReceiverDeps,
  stripeReceiver,
  webhookReceiver,
} from './receivers.ts'
import { type Cursor, countAfter, readAfter, readWithin, type UsageRow } from './usage-rows.ts'
import {
  type ExportCustomer,
  type ExportKind,
  type ExportTest,
  type ExportView,
  exportView,
  SETTINGS,
} from './views.ts'

interface ExportPatch {
  readonly name?: string | undefined
  readonly settings?: Record<string, unknown> | undefined
}

export interface ExportOptions extends Pick<CoreParts, 'database' | 'audit' | 'secrets' | 'world' | 'log' | 'work'> {
  readonly credentials: Pick<Credentials, 'get' | 'source'>
  readonly billing: Pick<Billing, 'get'>
  readonly branding: Pick<Branding, 'get'>
  readonly catalog: Pick<CatalogStore, 'at' | 'current'>
  readonly guard: Pick<GuardedFetch, 'check' | 'send'>
  readonly timing: { readonly leaseMs: number; readonly retryMs: number; readonly fetchEveryMs: number }
}

interface Backfill {
  readonly number: string
  readonly from: number
  readonly to: number
  readonly id: string
  readonly account: string
  readonly sent: number
}

interface ExportRow extends WorkRow {
  readonly name: string
  readonly kind: ExportKind
  readonly settings: Record<string, unknown>
  readonly cursor_posting: bigint
  readonly cursor_account: string
  readonly cursor_id: string
  readonly backfill: Backfill | null
  readonly failures: number
}

/** The state that a step stores. */
interface StepEnding extends Ending {
  readonly cursor: { readonly posting: string; readonly account: string; readonly id: string }
  /** Null: it has ended, or there is none. */
  readonly backfill: Backfill | null
  /** The backfill of this step. */
  readonly backfillNumber: string | null
  readonly sent: number
  readonly skipped: number
  readonly failures: number
  readonly status: number | null
  readonly error: string | null
  readonly paused: boolean
}

const AT_ONCE_MAX = 20
/** A destination that is up to date checks for new rows this many times less often than the engine checks for work. */
const LOOK_TURNS = 5
const PAUSE_MS_MAX = 600_000
const DOUBLINGS_MAX = 12
const BACKFILL_DAYS_MAX = 3_700
const WAITING_MAX = 10_000
const CUSTOMERS_MAX = 100_000
const EXPORTS_MAX = 100
/** Sorts after every id. */
const LAST = '~'

export function createExports(options: ExportOptions): Exports {
  const { database, credentials, world, log, timing } = options

  const { wake } = options.work.begin<ExportRow, StepEnding>({
    table: createWorkTable(database, 'export', { leaseMs: timing.leaseMs, ENDED, COLUMNS: CLAIMED }),
    atOnceMax: AT_ONCE_MAX,
    shareMax: AT_ONCE_MAX,
    run: (row) => step(row),
    failed(row, error) {
      log.error({ export: row.name, error }, 'an export step failed and will be retried')
      const problem = { final: false, status: null, message: 'The gateway could not read or write the usage.' }
      return endingOf(row, { live: NOTHING, past: NOTHING }, problem)
    },
  })

  async function step(row: ExportRow): Promise<StepEnding> {
    const receiver = await receiverOf(row)
    if ('final' in receiver) return endingOf(row, { live: NOTHING, past: NOTHING }, receiver)
    const cursor = { posting: row.cursor_posting, account: row.cursor_account, id: row.cursor_id }
    const live = await pass(receiver, await readAfter(database, cursor, receiver.rowsMax))
    if (live.problem || !row.backfill) return endingOf(row, { live, past: NOTHING }, live.problem)
    const { from, to, id, account } = row.backfill
    const range = { from: idAtTime(from), to: idAtTime(to), id, account }
    const past = await pass(receiver, await readWithin(database, range, receiver.rowsMax))
    return endingOf(row, { live, past }, past.problem)
  }

  /** Sends the rows of a page that are ready and belong to this receiver. */
  async function pass(receiver: Receiver, page: readonly UsageRow[]): Promise<Passed> {
    const { everyMs } = receiver
    const nowMs = world.nowMs()
    const readyMs = everyMs === undefined ? Number.POSITIVE_INFINITY : nowMs - (nowMs % everyMs)
    const early = page.findIndex(({ at }) => at.getTime() >= readyMs)
    const ready = early < 0 ? page : page.slice(0, early)
    const meant = ready.filter(
      ({ account_id: account }) => !isTestAccount(account) && (receiver.knows?.(account) ?? true),
    )
    const { accepted, problem } = meant.length === 0 ? { accepted: 0, problem: undefined } : await receiver.send(meant)
    // The cursor moves past the last accepted row, and past skipped rows before the first row that was not accepted.
    const stopped = meant[accepted]
    const passed = stopped ? ready.slice(0, ready.indexOf(stopped)) : ready
    return {
      last: passed.at(-1),
      sent: accepted,
      skipped: passed.filter(({ account_id: account }) => !isTestAccount(account)).length - accepted,
      isFull: early < 0 && page.length === receiver.rowsMax,
      isWaiting: early >= 0,
      lookMs: everyMs === undefined ? timing.fetchEveryMs * LOOK_TURNS : everyMs - (nowMs % everyMs),
      ...(problem && { problem }),
    }
  }

  async function receiverOf(row: Pick<ExportRow, 'id' | 'kind' | 'settings'>): Promise<Receiver | Problem> {
    const parsed = SETTINGS[row.kind].safeParse(row.settings)
    const name = credentialOf(row.settings)
    const secret = name === undefined ? '' : credentials.get(name)
    if (!parsed.success || secret === undefined) {
      const message = parsed.success
        ? `The credential ${row.settings.credential} is not stored for this address.`
        : 'Its settings are not valid any more.'
      return { final: true, status: null, message }
    }
    const rows = await database.query<ExportCustomer>(CUSTOMERS, [row.id, '', CUSTOMERS_MAX])
    const deps: ReceiverDeps = {
      upstream: options.guard,
      world,
      secrets: options.secrets,
      id: row.id,
      secret,
      customers: new Map(rows.map(({ account, customer }) => [account, customer])),
    }
    switch (row.kind) {
      case 'webhook':
        return webhookReceiver(SETTINGS.webhook.parse(row.settings), deps)
      case 'openmeter':
        return openMeterReceiver(SETTINGS.openmeter.parse(row.settings), deps)
      case 'lago':
        return lagoReceiver(SETTINGS.lago.parse(row.settings), deps)
      case 'stripe':
        return stripeReceiver(SETTINGS.stripe.parse(row.settings), deps)
      case 's3':
        return fileReceiver(SETTINGS.s3.parse(row.settings), deps, {
          worth: (await options.billing.get()).worth,
          names: (rows) => readFocusNames(options, rows),
        })
    }
  }

  function endingOf(row: ExportRow, { live, past }: { live: Passed; past: Passed }, problem?: Problem): StepEnding {
    const failures = problem ? row.failures + 1 : 0
    const paused = problem?.final === true
    if (problem)
      log.warn(
        { export: row.name, status: problem.status, error: problem.message, paused },
        'a receiver did not accept usage',
      )
    const { last } = live
    const isBackfilled = row.backfill !== null && !past.isFull && !past.isWaiting && !problem
    const sent = live.sent + past.sent
    return {
      afterMs: paused
        ? undefined
        : problem
          ? pauseMsAfter(failures, problem)
          : afterMs(live, past, row.backfill !== null),
      cursor: {
        posting: String(last?.posting ?? row.cursor_posting),
        account: last?.account_id ?? row.cursor_account,
        id: last?.id ?? row.cursor_id,
      },
      backfill: row.backfill && !isBackfilled ? moved(row.backfill, past) : null,
      backfillNumber: row.backfill?.number ?? null,
      sent,
      skipped: live.skipped + past.skipped,
      failures,
      status: problem?.status ?? null,
      error: problem?.message ?? null,
      paused,
    }
  }

  /** Exponential, with up to 50 % jitter; at least as long as the receiver asks for. */
  function pauseMsAfter(failures: number, { afterMs: asked = 0 }: Problem): number {
    const pauseMs = Math.min(PAUSE_MS_MAX, timing.retryMs * 2 ** Math.min(failures - 1, DOUBLINGS_MAX))
    return Math.max(asked, Math.round(pauseMs * (1 + world.bytes(2).readUInt16BE() / 131_072)))
  }

  /** When the next step is due: at once while there is more. */
  function afterMs(live: Passed, past: Passed, hasBackfill: boolean): number {
    if (live.isFull || (hasBackfill && past.isFull)) return 0
    return live.lookMs
  }

  return createOffice(options, wake, receiverOf)
}

type ReceiverOf = (row: Pick<ExportRow, 'id' | 'kind' | 'settings'>) => Promise<Receiver | Problem>

export type Exports = ReturnType<typeof createOffice>

/** The resources of the operator. */
function createOffice(
  { database, audit, credentials, guard, world }: ExportOptions,
  awake: () => void,
  receiverOf: ReceiverOf,
) {
  async function find(id: string): Promise<SeenRow> {
    const [row] = await database.query<SeenRow>(FIND, [id])
    if (!row) throw new Fault('not_found', { message: 'There is no such export.' })
    return row
  }
  async function view(row: SeenRow): Promise<ExportView> {
    const cursor: Cursor = { posting: row.cursor_posting, account: row.cursor_account, id: row.cursor_id }
    return viewExport(row, await countAfter(database, cursor, WAITING_MAX), credentials)
  }
  const read = async (id: string) => view(await find(id))
  /** Changes one destination by one statement, and writes it to the audit log. */
  async function write(id: string, by: By, change: ExportChange): Promise<ExportView> {
    await find(id)
    await database.transaction(async (tx) => {
      const [was] = await tx.query<SeenRow>(FIND, [id])
      await tx.query(change.statement, [id, ...change.values])
      const [is] = await tx.query<SeenRow>(FIND, [id])
      const { action, detail } = change
      await audit.write(tx, by, { action, object: id, detail, before: setOf(was), after: setOf(is) })
    })
    awake()
    return read(id)
  }

  return {
    read,
    async list(): Promise<ExportView[]> {
      const rows = await database.query<SeenRow>(LIST, [EXPORTS_MAX])
      return Promise.all(rows.map(view))
    },
    /** Exports what is posted from now on; a backfill sends earlier calls. */
    async create(
      { name, kind, settings }: { name: string; kind: ExportKind; settings: Record<string, unknown> },
      by: By,
    ): Promise<ExportView> {
      const checked = await settingsOf(kind, settings, guard)
      await refuseTaken(database, name, '')
      const id = `exp_${newId(world)}`
      await database.transaction(async (tx) => {
        const [made] = await tx.query(CREATE, [id, name, kind, JSON.stringify(checked), LAST, EXPORTS_MAX])
        if (!made) throw new Fault('conflict', { message: `There can be at most ${EXPORTS_MAX} exports.` })
        await audit.write(tx, by, {
          action: 'export.create',
          object: id,
          detail: { name, kind },
          before: {},
          after: { name, kind, settings: audited(checked) },
        })
      })
      awake()
      return read(id)
    },
    async change(id: string, { name, settings }: ExportPatch, by: By): Promise<ExportView> {
      const { kind } = await find(id)
      if (name !== undefined) await refuseTaken(database, name, id)
      const checked = settings && JSON.stringify(await settingsOf(kind, settings, guard))
      return write(id, by, {
        statement: CHANGE,
        values: [name ?? null, checked ?? null],
        action: 'export.change',
        detail: { name },
      })
    },
    async remove(id: string, by: By): Promise<ExportView> {
      const gone = await read(id)
      await database.transaction(async (tx) => {
        const [was] = await tx.query<SeenRow>(FIND, [id])
        await tx.query(REMOVE, [id])
        await audit.write(tx, by, { action: 'export.remove', object: id, before: setOf(was), after: {} })
      })
      return gone
    },
    pause: (id: string, by: By): Promise<ExportView> =>
      write(id, by, { statement: PAUSE, values: [], action: 'export.pause' }),
    /** Resumes a paused export, or retries a failed one at once. */
    resume: (id: string, by: By): Promise<ExportView> =>
      write(id, by, { statement: RESUME, values: [], action: 'export.resume' }),
    /** Sends the calls that started in a time range, even if they were sent before. */
    async backfill(id: string, { fromMs, toMs }: { fromMs: number; toMs: number }, by: By): Promise<ExportView> {
      if (toMs <= fromMs) throw invalid('to: must be after from.', 'to')
      if (toMs - fromMs > BACKFILL_DAYS_MAX * 86_400_000) throw invalid('from: is too long ago.', 'from')
      const to = Math.min(toMs, world.nowMs())
      const begun: Backfill = { number: newId(world), from: fromMs, to, id: '', account: '', sent: 0 }
      const detail = { from: new Date(fromMs).toISOString(), to: new Date(to).toISOString() }
      return write(id, by, { statement: BACKFILL, values: [JSON.stringify(begun)], action: 'export.backfill', detail })
    },
    /** Tests the receiver without changing its meters. */
    async test(id: string): Promise<ExportTest> {
      const receiver = await receiverOf(await find(id))
      const problem = 'final' in receiver ? receiver : await receiver.test()
      return { ok: problem === undefined, status: problem?.status ?? null, error: problem?.message ?? null }
    },
    async customers(id: string, { cursor, limit }: Paging): Promise<Page<ExportCustomer>> {
      await find(id)
      const rows = await database.query<ExportCustomer>(CUSTOMERS, [id, cursor ?? '', limit + 1])
      const items = rows.slice(0, limit)
      return { items, next: rows.length > limit ? (items.at(-1)?.account ?? null) : null }
    },
    /** Sets the account's name at the destination; null: removes it. */
    async nameCustomer(id: string, account: string, customer: string | null, by: By): Promise<ExportCustomer[]> {
      await find(id)
      return database.transaction(async (tx) => {
        const [was] = await tx.query<{ customer: string }>(CUSTOMER, [id, account])
        if (customer === null) await tx.query(UNNAME_CUSTOMER, [id, account])
        else {
          const [named] = await tx.query(NAME_CUSTOMER, [id, account, customer, CUSTOMERS_MAX])
          if (!named) throw new Fault('not_found', { message: 'There is no such account, or there are too many.' })
        }
        await audit.write(tx, by, {
          action: 'export.customer',
          object: id,
          detail: { account, customer },
          before: { customer: was?.customer ?? null },
          after: { customer },
        })
        return customer === null ? [] : [{ account, customer }]
      })
    },
  }
}

/**
 * The name of a credential includes its address. Otherwise a person who may change an export or a report could send a
 * credential that they do not know to another address. Names of vendor credentials have another form.
 */
export const boundTo = (credential: string, url: string) => `${credential} ${new URL(url).origin}`

function credentialOf({ credential, url }: Record<string, unknown>): string | undefined {
  return typeof credential === 'string' ? boundTo(credential, String(url)) : undefined
}

/** The result of sending a page. */
interface Passed {
  readonly last: UsageRow | undefined
  readonly sent: number
  readonly skipped: number
  /** There may be more. */
  readonly isFull: boolean
  /** Some rows belong to an hour or day that is not over. */
  readonly isWaiting: boolean
  /** When to check again, if there is nothing more now. */
  readonly lookMs: number
  readonly problem?: Problem
}
const NOTHING: Passed = { last: undefined, sent: 0, skipped: 0, isFull: false, isWaiting: false, lookMs: 0 }

interface ExportChange {
  readonly statement: Statement
  readonly values: readonly (string | null)[]
  readonly action: 'export.change' | 'export.pause' | 'export.resume' | 'export.backfill'
  readonly detail?: Readonly<Record<string, unknown>>
}

/** The settings, for the audit log. */
const setOf = (row: SeenRow | undefined) =>
  row ? { name: row.name, kind: row.kind, settings: audited(row.settings), paused: !row.open } : {}

/** Only the host of an address, because knowing the path can be enough to post to it. */
const audited = ({ url, ...settings }: Record<string, unknown>) => ({ ...settings, host: new URL(String(url)).host })

function moved(backfill: Backfill, { last, sent }: Passed): Backfill {
  return last ? { ...backfill, id: last.id, account: last.account_id, sent: backfill.sent + sent } : backfill
}

const CHECK_MS = 10_000

async function settingsOf(
  kind: ExportKind,
  given: Record<string, unknown>,
  guard: ExportOptions['guard'],
): Promise<Record<string, unknown>> {
  const parsed = SETTINGS[kind].safeParse(given)
  if (parsed.success) {
    await guard.check(parsed.data.url, { signal: AbortSignal.timeout(CHECK_MS) })
    return parsed.data
  }
  const problems = parsed.error.issues.slice(0, 5).map((issue) => {
    const path = ['settings', ...issue.path].join('.')
    return `${path}: ${issue.message.replace(/^Invalid input: /, '')}.`
  })
  throw invalid(problems.join(' '), 'settings')
}

async function refuseTaken(database: Database, name: string, but: string): Promise<void> {
  const [taken] = await database.query(TAKEN, [name, but])
  if (taken) throw new Fault('conflict', { message: `There is an export "${name}" already.` })
}

interface SeenRow extends Omit<ExportRow, 'version'> {
  readonly open: boolean
  readonly step_at: Date
}

function viewExport(row: SeenRow, waiting: number, credentials: Pick<Credentials, 'source'>): ExportView {
  const { settings, open, failures, backfill } = row
  const named = credentialOf(settings)
  return {
    ...asView(exportView, row),
    waiting,
    settings: settings as ExportView['settings'], // checked when it was written
    state: open ? (failures > 0 ? 'retrying' : 'running') : 'paused',
    nextAttemptAt: open && failures > 0 ? row.step_at.toISOString() : null,
    backfill: backfill && {
      from: new Date(backfill.from).toISOString(),
      to: new Date(backfill.to).toISOString(),
      sent: backfill.sent,
      at: backfill.id === '' ? null : `req_${backfill.id}`,
    },
    credentialPresent: named === undefined ? null : credentials.source(named) !== 'none',
  }
}

const CLAIMED =
  'account_id, id, version, name, kind, settings, cursor_posting, cursor_account, cursor_id, backfill, failures'
// A backfill that was started during the step keeps its own cursor.
const ENDED = `cursor_posting = (e.ending -> 'cursor' ->> 'posting')::bigint, cursor_account = e.ending -> 'cursor' ->> 'account', cursor_id = e.ending -> 'cursor' ->> 'id',
  backfill = case when export.backfill is null then null
    when export.backfill ->> 'number' = e.ending ->> 'backfillNumber' then nullif(e.ending -> 'backfill', 'null') else export.backfill end,
  sent = sent + (e.ending ->> 'sent')::bigint, skipped = skipped + (e.ending ->> 'skipped')::bigint,
  failures = (e.ending ->> 'failures')::int, status = (e.ending ->> 'status')::int, error = e.ending ->> 'error',
  sent_at = case when (e.ending ->> 'sent')::bigint > 0 then now() else sent_at end,
  paused_at = case when (e.ending ->> 'paused')::boolean then now() else paused_at end`
const SEEN = `account_id, id, name, kind, settings, open, cursor_posting, cursor_account, cursor_id, backfill, failures, sent, skipped, status, error,
  step_at, sent_at, paused_at, created_at`
const LIST = sql('export_list')`select ${SEEN} from export order by name limit $1`
const FIND = sql('export_find')`select ${SEEN} from export where id = $1`
const TAKEN = sql('export_taken')`select 1 from export where name = $1 and id <> $2`
// Rows of transactions that are still running come after the cursor.
const CREATE = sql('export_create')`
  insert into export (id, name, kind, settings, cursor_posting, cursor_account, cursor_id)
   select $1, $2, $3, $4::jsonb, usage_horizon() - 1, $5, $5 where (select count(*) from export) < $6 returning id`
// The new version makes a step with the old settings fail to store its result.
const CHANGE = sql('export_change')`
  update export set name = coalesce($2, name), settings = coalesce($3::jsonb, settings), version = version + 1, lease_until = null, step_at = now() where id = $1`
const REMOVE = sql('export_remove')`delete from export where id = $1`
const PAUSE = sql('export_pause')`
  update export set open = false, error = null, status = null, paused_at = now() where id = $1 and open`
const RESUME = sql('export_resume')`
  update export set open = true, failures = 0, error = null, status = null, paused_at = null, step_at = now() where id = $1`
const BACKFILL = sql('export_backfill')`update export set backfill = $2::jsonb, step_at = now() where id = $1`
const CUSTOMERS = sql('export_customers')`
  select account_id as account, customer from export_customer where export_id = $1 and account_id > $2 order by account_id limit $3`
const NAME_CUSTOMER = sql('export_customer_name')`insert into export_customer (export_id, account_id, customer)
   select $1, a.id, $3 from account a where a.id = $2 and (select count(*) from export_customer where export_id = $1) < $4
   on conflict (export_id, account_id) do update set customer = excluded.customer returning account_id`
const CUSTOMER = sql('export_customer_one')`
  select customer from export_customer where export_id = $1 and account_id = $2`
const UNNAME_CUSTOMER = sql('export_customer_unname')`
  delete from export_customer where export_id = $1 and account_id = $2`
