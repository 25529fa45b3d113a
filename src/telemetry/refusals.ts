// Calls that were rejected before a hold was made, for the usage list of their account. Recording does not delay the
// answer: calls are counted in memory and written a second later in batches. Each key has a limited number of rows per
// minute; further calls are counted in one row for each kind of rejection. While the database is down, a bounded number
// waits in memory, and the rest is dropped and counted.
import { type Database, plain, quoted, SHORT_MS, sql } from '../database/database.ts'
import { pruneAll } from '../database/prune.ts'
import { DAY_MS } from '../kernel/calendar.ts'
import type { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { withoutContent } from '../kernel/redact.ts'
import { createBufferedWriter } from '../kernel/timers.ts'
import { idAtTime, type World } from '../kernel/world.ts'

export interface RefusedCall {
  /** `req_<id>`. */
  readonly requestId: string
  readonly account: string
  readonly key: string
  /** Empty if the request was rejected before the product was known. */
  readonly product: string
  readonly endpoint: string
}

export interface Refusals {
  /**
   * Marks a fault as noted: the path, which knows the product, notes it first, and the outer layer skips it. Without
   * `call`: it has a usage row.
   */
  note(fault: Fault, call: RefusedCall | undefined): void
  isNoted(fault: Fault): boolean
  /** Writes the waiting rows. */
  flush(): Promise<void>
  /** Writes the waiting rows for the last time. Later rows are not written. */
  close(): Promise<void>
  /** Deletes older rows. */
  prune(days: number): Promise<number>
  readonly dropped: number
}

interface RefusalRow extends RefusedCall {
  readonly id: string
  readonly fault: string
  readonly status: number
  readonly message: string
  /** The number of calls that are not written yet. */
  count: number
}

interface KeyMinute {
  rows: number
  /** Rows for calls beyond the limit, one for each kind of rejection. */
  readonly rest: Map<string, RefusalRow>
}

const STATUSES: ReadonlySet<number> = new Set([400, 401, 402, 403, 404, 409, 413, 422, 429, 503])
const MINUTE_MS = 60_000
const ROWS_A_MINUTE = 100
/** The number of kinds counted separately beyond the limit; further kinds are added to the first. */
const KINDS_MAX = 10
const KEYS_MAX = 10_000
const WAITING_MAX = 5_000
const ROWS_AT_ONCE = 500
const MESSAGE_CHARS_MAX = 300

const PUT = sql('refusals_put', SHORT_MS)`
  insert into refusal as r (account_id, id, key_id, product, endpoint, status, fault, message, count)
   select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int[], $7::text[], $8::text[], $9::int[])
   on conflict (account_id, id) do update set count = r.count + excluded.count, at = now()`
const PRUNE = sql('refusals_prune')`
  with gone as (delete from refusal where ctid = any(array(select ctid from refusal where id < $1 limit 5000)) returning 1)
   select count(*)::int as count from gone`

export function createRefusals({ database, world, log }: { database: Database; world: World; log: Log }): Refusals {
  const noted = new WeakSet<Fault>()
  const keys = new Map<string, KeyMinute>()
  let minute = 0
  let waiting = new Map<string, RefusalRow>()
  let dropped = 0
  function wait(row: RefusalRow, count: number): void {
    row.count += count
    if (waiting.has(row.id)) return
    if (waiting.size >= WAITING_MAX) {
      dropped += row.count
      row.count = 0
    } else waiting.set(row.id, row)
  }

  async function write(): Promise<void> {
    const rows = [...waiting.values()]
    waiting = new Map()
    for (let at = 0; at < rows.length; at += ROWS_AT_ONCE) {
      const batch = rows.slice(at, at + ROWS_AT_ONCE).map((row) => ({ row, count: row.count }))
      for (const { row } of batch) row.count = 0
      try {
        await database.query(PUT, valuesOf(batch))
      } catch (error) {
        for (const { row, count } of batch) wait(row, count)
        for (const row of rows.slice(at + ROWS_AT_ONCE)) wait(row, 0)
        throw error
      }
    }
  }

  const { soon, flush, close } = createBufferedWriter({
    world,
    log,
    write,
    failed: 'rejected calls could not be written, and wait',
  })

  return {
    note(fault, call) {
      noted.add(fault)
      if (!call || !STATUSES.has(fault.status)) return
      const nowMinute = Math.floor(world.elapsedMs() / MINUTE_MS)
      if (nowMinute !== minute) keys.clear()
      minute = nowMinute
      let own = keys.get(call.key)
      if (!own) {
        if (keys.size >= KEYS_MAX) {
          dropped += 1
          return
        }
        own = { rows: 0, rest: new Map() }
        keys.set(call.key, own)
      }
      own.rows += 1
      if (own.rows <= ROWS_A_MINUTE) wait(rowOf(fault, call), 1)
      else wait(restOf(own.rest, fault, call), 1)
      soon()
    },
    isNoted: (fault) => noted.has(fault),
    flush,
    close,
    prune: (days) => pruneAll(database, PRUNE, [idAtTime(world.nowMs() - days * DAY_MS)]),
    get dropped() {
      return dropped
    },
  }
}

function rowOf(fault: Fault, call: RefusedCall): RefusalRow {
  return {
    ...call,
    id: call.requestId.slice('req_'.length),
    fault: fault.kind,
    status: fault.status,
    message: messageOf(fault).slice(0, MESSAGE_CHARS_MAX).toWellFormed(),
    count: 0,
  }
}

/**
 * Keeps an unknown model's name: it is not content, and the message is useless without it. It is escaped where the
 * fault is made.
 */
function messageOf({ kind, message }: Fault): string {
  return kind === 'model_unknown' ? message : withoutContent(message, '')
}

function restOf(rest: Map<string, RefusalRow>, fault: Fault, call: RefusedCall): RefusalRow {
  const kind = `${fault.kind} ${call.product} ${call.endpoint}`
  const known = rest.get(kind) ?? (rest.size >= KINDS_MAX ? rest.values().next().value : undefined)
  if (known) return known
  const row = rowOf(fault, call)
  rest.set(kind, row)
  return row
}

function valuesOf(batch: ReadonlyArray<{ row: RefusalRow; count: number }>): string[] {
  const texts = (read: (row: RefusalRow) => string) => quoted(batch.map(({ row }) => read(row)))
  return [
    texts((row) => row.account),
    texts((row) => row.id),
    texts((row) => row.key),
    texts((row) => row.product),
    texts((row) => row.endpoint),
    plain(batch.map(({ row }) => row.status)),
    texts((row) => row.fault),
    texts((row) => row.message),
    plain(batch.map(({ count }) => count)),
  ]
}
