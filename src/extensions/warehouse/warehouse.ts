// Sends every row of usage to ClickHouse, in the order of postings. The position is stored when the rows have arrived;
// rows that were sent before a crash are sent again and replace themselves. One process sends, under a lock that ends
// with its connection.
import { type Queryable, sql } from '../../database/database.ts'
import { putSetting, readSetting } from '../../database/setting.ts'
import type { CoreParts } from '../../extension.ts'
import { dayOfMs } from '../../kernel/calendar.ts'
import { timeOfId } from '../../kernel/world.ts'
import { CALLS_ARRIVED } from '../../ledger/retention.ts'
import type { CallStore } from '../../reports/dialect.ts'
import { type ClickHouse, StoreFault } from './clickhouse.ts'
import { CLICKHOUSE } from './dialect.ts'
import {
  type Difference,
  differences,
  type Position,
  readFirstDay,
  readNext,
  readOfDay,
  readSumsHere,
  readSumsThere,
  readWaiting,
  sendRows,
} from './rows.ts'
import { CREATE } from './table.ts'
import type { WarehouseView } from './views.ts'

interface State extends Position {
  /** Which store this is the position of. */
  readonly place: string
  readonly sent: number
  readonly sentAt: string | null
  readonly failures: number
  readonly failingSince: string | null
  readonly error: string | null
  /** When the next attempt is due, after a failure. */
  readonly nextMs: number
  /** The day before which all days were compared. */
  readonly comparedDay: number
}

interface WarehouseOptions extends Pick<CoreParts, 'database' | 'world' | 'log'> {
  readonly clickhouse: ClickHouse
  readonly rowsMax?: number
}

const SETTING = 'analytics-store'
/** Longer than an answer can take. */
const ANSWER_MS_MAX = 150_000
const TRY_LOCK = sql('warehouse_try_lock')`select pg_try_advisory_xact_lock(7046029263) as mine`
const LOCK = sql('warehouse_lock', ANSWER_MS_MAX)`select true as mine from pg_advisory_xact_lock(7046029263)`
const PATIENCE = { locksMs: ANSWER_MS_MAX, idleMs: ANSWER_MS_MAX }
const UNPOSTED = sql('warehouse_unposted', 600_000)`select 1 from usage where posting is null limit 1`
const SENT_ARRIVED = sql('warehouse_arrived')`delete from setting where name = $1 and value = $2`
const ROWS_MAX = 10_000
const PAUSE_MS = 2_000
const PAUSE_MS_MAX = 60_000
const INCIDENT_MS = 600_000
/** Rows of younger transactions may lack in reports: the store is said to have all calls without them. */
const YOUNG_SECONDS = 10
const WAITING_MAX = 20_000
/** A day is closed when the transactions of its calls have ended; later calls are compared by the next run. */
const CLOSED_MS = 3_600_000
const TOLD_MAX = 5

const NO_DATABASE = /\bCode: 81\b/

export function createWarehouse({ database, clickhouse, world, log, rowsMax = ROWS_MAX }: WarehouseOptions) {
  const { place } = clickhouse
  let created = false
  let stopping = false
  let going: Promise<void> | undefined
  let latest: State | undefined

  async function readState(on: Queryable): Promise<State> {
    const stored = await readSetting(on, SETTING)
    const state: State | undefined = stored === undefined ? undefined : JSON.parse(stored)
    latest = state?.place === place ? state : NOTHING(place)
    return latest
  }

  async function putState(tx: Queryable, state: State): Promise<void> {
    await putSetting(tx, SETTING, JSON.stringify(state))
    latest = state
  }

  /** While nobody else sends. Undefined: somebody does, and it is not waited for. */
  const locked = <T>(run: (tx: Queryable, state: State) => Promise<T>, lock = LOCK): Promise<T | undefined> =>
    database.transaction(async (tx) => {
      const [row] = await tx.query<{ mine: boolean }>(lock)
      return row?.mine ? run(tx, await readState(tx)) : undefined
    }, PATIENCE)

  async function ensureTable(): Promise<void> {
    if (created) return
    await clickhouse.run(CREATE).catch(async (error: unknown) => {
      if (!NO_DATABASE.test(String(error))) throw error
      await clickhouse.makeDatabase()
      await clickhouse.run(CREATE)
    })
    created = true
  }

  /** Whether there may be more. */
  async function sendSome(tx: Queryable, state: State): Promise<boolean> {
    if (state.nextMs > world.nowMs()) return false
    const rows = await readNext(tx, state, rowsMax)
    const last = rows.at(-1)
    if (!last && state.failures === 0) return false
    try {
      await ensureTable()
      if (last) await sendRows(clickhouse, rows)
    } catch (error) {
      if (!(error instanceof StoreFault)) throw error
      // Somebody may have dropped the table.
      created = false
      await putState(tx, failed(state, error))
      return false
    }
    await putState(tx, {
      ...state,
      ...(last && { posting: String(last.posting), account: last.account_id, id: last.id }),
      sent: state.sent + rows.length,
      sentAt: last ? new Date(world.nowMs()).toISOString() : state.sentAt,
      failures: 0,
      failingSince: null,
      error: null,
      nextMs: 0,
    })
    // Those without a posting are not found by it, so a new store gets them as if they arrived now.
    if (last && state.sent === 0 && (await tx.query(UNPOSTED)).length > 0) await putSetting(tx, CALLS_ARRIVED, place)
    return rows.length === rowsMax
  }

  function failed(state: State, { message }: StoreFault): State {
    const failures = state.failures + 1
    const nowMs = world.nowMs()
    log.warn({ place, error: message, failures }, 'the analytics store did not accept calls, which are sent later')
    return {
      ...state,
      failures,
      error: message,
      failingSince: state.failingSince ?? new Date(nowMs).toISOString(),
      nextMs: nowMs + Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** Math.min(failures - 1, 10)),
    }
  }

  async function work(): Promise<void> {
    while (!stopping && (await locked(sendSome, TRY_LOCK)));
    await sendArrived()
    if (!latest) await readState(database)
  }

  /** Calls that came with an account from another database have no postings, and are found by comparing. */
  async function sendArrived(): Promise<void> {
    const arrived = await readSetting(database, CALLS_ARRIVED)
    const first = arrived === undefined ? undefined : await readFirstDay(database)
    if (arrived === undefined || first === undefined || (await readState(database)).failures > 0) return
    await compareDays(first, dayOfMs(world.nowMs()) + 1)
    // Another account may have arrived meanwhile.
    await database.query(SENT_ARRIVED, [CALLS_ARRIVED, arrived])
  }

  /** Compares a day, and sends again what differs. Answers sentences. */
  async function compareDay(day: number): Promise<string[]> {
    const state = await readState(database)
    const there = await readSumsThere(clickhouse, day)
    if (differences(day, await readSumsHere(database, day, state), there).length === 0) return []
    // Calls that were sent meanwhile differ too, so it is compared once more while nothing is sent.
    const told = await locked(async (tx, { posting, account, id }) => {
      const compare = async () =>
        differences(day, await readSumsHere(tx, day, { posting, account, id }), await readSumsThere(clickhouse, day))
      const found = await compare()
      for (const { account: of } of found) await resend(tx, of, day)
      return tell(found, found.length > 0 ? await compare() : [])
    })
    return told ?? []
  }

  async function resend(tx: Queryable, account: string, day: number): Promise<void> {
    for (let last = ''; ; ) {
      const rows = await readOfDay(tx, { account, day, last }, rowsMax)
      if (rows.length > 0) await sendRows(clickhouse, rows)
      if (rows.length < rowsMax) return
      last = rows.at(-1)?.id ?? ''
    }
  }

  async function compareDays(from: number, to: number): Promise<string[]> {
    await ensureTable()
    const problems: string[] = []
    for (let day = from; day < to && !stopping; day++) problems.push(...(await compareDay(day)))
    return problems
  }

  const store: CallStore = {
    dialect: CLICKHOUSE,
    async query(text) {
      try {
        return await clickhouse.read(text)
      } catch (error) {
        log.warn({ place, error }, 'a report could not be read from the analytics store')
        throw error
      }
    },
    async hasAll(toMs) {
      const state = await readState(database)
      if (state.sent === 0 || (await readSetting(database, CALLS_ARRIVED)) !== undefined) return false
      const { waiting, old } = await readWaiting(database, state, { toMs, seconds: YOUNG_SECONDS, most: WAITING_MAX })
      return old === 0 && waiting < WAITING_MAX
    },
    async hasRange(from, to) {
      const days = [from, to].map((id) => dayOfMs(timeOfId(id)))
      const problems = await compareDays(days[0] ?? 0, days[1] ?? 0).catch((error: unknown) => {
        if (error instanceof StoreFault) return [error.message]
        throw error
      })
      if (problems.length > 0)
        log.warn({ place, problems }, 'calls stay in the database that the analytics store lacks')
      return problems.length === 0
    },
  }

  return {
    store,
    /** Sends what waits. Every process may; one does. */
    async run() {
      going ??= work().finally(() => {
        going = undefined
      })
      await going
    },
    /** Compares the days that have ended: all that are here, or those since the last time. */
    async verify({ whole }: { readonly whole: boolean }): Promise<string[]> {
      const state = await readState(database)
      const first = await readFirstDay(database)
      if (first === undefined || state.sent === 0) return []
      const end = dayOfMs(world.nowMs() - CLOSED_MS)
      try {
        const problems = await compareDays(whole ? first : Math.max(first, state.comparedDay - 1), end)
        await locked((tx, now) => putState(tx, { ...now, comparedDay: end }))
        return problems
      } catch (error) {
        if (!(error instanceof StoreFault)) throw error
        log.warn({ place, error }, 'the analytics store could not be compared')
        return []
      }
    },
    async state(): Promise<WarehouseView> {
      const state = await readState(database)
      const most = { toMs: world.nowMs(), seconds: YOUNG_SECONDS, most: WAITING_MAX }
      const { waiting } = await readWaiting(database, state, most)
      const { sent, sentAt, failures, error } = state
      return { place, sent, waiting, sentAt, failures, error }
    },
    incidents() {
      const sinceMs = latest?.failingSince ? Date.parse(latest.failingSince) : undefined
      if (sinceMs === undefined || world.nowMs() - sinceMs < INCIDENT_MS) return []
      const minutes = Math.round((world.nowMs() - sinceMs) / 60_000)
      const message = `For ${minutes} min the analytics store has accepted no calls. They wait in the database, from which reports are read meanwhile. ${latest?.error} See the runbook "An export is stuck".`
      return [{ name: 'export' as const, serves: true as const, title: 'The analytics store is stuck', message }]
    },
    async stop() {
      stopping = true
      await going
    },
  }
}

const NOTHING = (place: string): State => ({
  place,
  posting: '0',
  account: '',
  id: '',
  sent: 0,
  sentAt: null,
  failures: 0,
  failingSince: null,
  error: null,
  nextMs: 0,
  comparedDay: 0,
})

/** What was found, and whether sending it again was enough. */
function tell(found: readonly Difference[], left: readonly Difference[]): string[] {
  const still = new Set(left.map(({ account }) => account))
  const told = found.slice(0, TOLD_MAX).map(({ account, text }) => {
    return `${text} ${still.has(account) ? 'Sending the calls again did not help.' : 'The calls were sent again, and now both are equal.'}`
  })
  const more = found.length - told.length
  return more > 0 ? [...told, `Of that day ${more} more accounts differ.`] : told
}
