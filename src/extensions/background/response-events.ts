// The event stream of a background response. Events are stored for a day, so that a caller may connect, disconnect and
// reconnect at any process. The worker writes events and the follower reads them; they share nothing but the table.

import { type Database, sql } from '../../database/database.ts'
import { pruneAll } from '../../database/prune.ts'
import type { CoreParts } from '../../extension.ts'
import { Fault } from '../../kernel/fault.ts'
import { isObject, type Json, text } from '../../kernel/json.ts'
import { sleep } from '../../kernel/timers.ts'
import type { World } from '../../kernel/world.ts'
import { BufferedSink, type ResponseSink } from '../../pipeline/response-sink.ts'
import { readData } from '../../protocols/text/relay.ts'
import { bytesOf, encodeEvent, SseDecoder } from '../../upstream/sse.ts'

/** The first two events, created and queued, are known before a vendor is called. */
const FIRST = 2
const FLUSH_MS = 150
const FLUSH_CHARS = 200_000
/** Events beyond this are not stored. The last event has the whole response. */
const KEPT_CHARS_MAX = 32_000_000
const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const LOOK_MS = 200
const PING_MS = 10_000
const PAGE = 20
const FOLLOWERS_MAX = 1_000
const DAY_MS = 86_400_000
/** The first and last events, which are made from the response's row. */
const FROM_ROW = new Set([
  'response.created',
  'response.queued',
  'response.completed',
  'response.incomplete',
  'response.failed',
  'error',
])

/** One row holds the events of one flush, one per line, numbered up to `last`. */
// Locks the response's row: a concurrent deletion either comes first, and nothing is inserted, or removes these
// events too.
const KEEP = sql('background_event_keep')`insert into background_event (account_id, id, last, sealed)
   select $1, $2, $3, $4 from (select 1 from background where account_id = $1 and id = $2 and version = $5 for key share) mine
   on conflict do nothing`
const HAS = sql('background_event_has')`select 1 from background_event where account_id = $1 and id = $2 limit 1`
const AFTER = sql('background_event_after')`
  select last, events, sealed from background_event where account_id = $1 and id = $2 and last > $3 order by last limit ${PAGE}`
const LAST = sql('background_event_last')`
  select coalesce(max(last), 1)::int as last from background_event where account_id = $1 and id = $2`
const REMOVE = sql('background_event_remove')`delete from background_event where account_id = $1 and id = $2`
const PRUNE = sql('background_event_prune')`with gone as (
     delete from background_event where ctid = any(array(
       select ctid from background_event where created_at < now() - interval '1 day' limit 1000)) returning 1
   ) select count(*)::int as count from gone`

interface Whose {
  readonly account_id: string
  readonly id: string
}

type Stores = Pick<CoreParts, 'database' | 'sealer' | 'world'>

const placeOf = ({ account_id, id }: Whose, last: number) => ({
  table: 'background_event',
  row: `${account_id} ${id} ${last}`,
  column: 'sealed',
})

export const pruneEvents = (database: Database) => pruneAll(database, PRUNE)
export const removeEvents = ({ account_id, id }: Whose, database: Database) => database.query(REMOVE, [account_id, id])

/**
 * Stores the stream of the first attempt that has events. Later attempts show only their end: readers would take two
 * beginnings for one answer.
 */
export class EventTaker extends BufferedSink {
  readonly #row: Whose & { readonly version: number }
  readonly #stores: Stores
  readonly #decoder = new SseDecoder()
  #isShown: boolean
  #lines: string[] = []
  #chars = 0
  #keptChars = 0
  #last = FIRST - 1
  #writing: Promise<unknown> = Promise.resolve()
  #cancel: (() => void) | undefined

  constructor(
    row: Whose & { readonly version: number },
    { signal, isShown }: { signal: AbortSignal; isShown: boolean },
    stores: Stores,
  ) {
    super(signal, ANSWER_BYTES_MAX)
    this.#row = row
    this.#stores = stores
    this.#isShown = isShown
  }

  override write(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Promise<void> | undefined {
    super.write(piece, encoding)
    if (!this.#isShown) return undefined
    for (const { data } of this.#decoder.push(bytesOf(piece, encoding))) this.#take(readData(data))
    if (this.#chars > FLUSH_CHARS) return this.#flush()
    if (this.#lines.length > 0) this.#cancel ??= this.#stores.world.after(FLUSH_MS, () => void this.#flush())
    return undefined
  }

  /**
   * Resolves when all events are stored. Events that could not be stored are left out; the last event has the whole
   * response.
   */
  async flushed(): Promise<void> {
    await this.#flush()
  }

  #take(event: unknown): void {
    const type = isObject(event) ? text(event.type) : undefined
    if (!isObject(event) || type === undefined || FROM_ROW.has(type) || !this.#isShown) return
    const response = isObject(event.response) ? { ...event.response, ...ours(this.#row.id) } : undefined
    this.#last += 1
    const line = JSON.stringify({ ...event, ...(response ? { response } : {}), sequence_number: this.#last })
    this.#lines.push(line)
    this.#chars += line.length
    this.#keptChars += line.length
    if (this.#keptChars > KEPT_CHARS_MAX) this.#isShown = false
  }

  async #flush(): Promise<void> {
    this.#cancel?.()
    this.#cancel = undefined
    const { account_id, id, version } = this.#row
    if (this.#lines.length > 0) {
      const { database, sealer } = this.#stores
      const sealed = sealer.seal(placeOf(this.#row, this.#last), this.#lines.join('\n'))
      const values = [account_id, id, this.#last, sealed, version]
      this.#lines = []
      this.#chars = 0
      const write = () => database.query(KEEP, values)
      this.#writing = this.#writing.then(write).catch(() => {
        // A gap would shift the numbers of later events.
        this.#isShown = false
      })
    }
    await this.#writing
  }
}

/** The response fields that the gateway sets, whichever vendor answered. */
export function ours(id: string): Json {
  return { id, background: true, store: true }
}

export async function hasEvents({ account_id, id }: Whose, database: Database): Promise<boolean> {
  return (await database.query(HAS, [account_id, id])).length > 0
}

interface Followed extends Whose {
  readonly streams: boolean
  readonly created_at: Date
}

interface Following {
  readonly out: ResponseSink
  /** The number of the last event that the caller has. */
  readonly after: number
  /** The response as it was accepted. */
  readonly begun: Json
  /** The final response; undefined while it runs, null when it was deleted. */
  ended(): Promise<Json | undefined | null>
}

let followers = 0

/** Sends the stored and the new events, until the response has ended or the caller disconnects. */
export async function follow(row: Followed, following: Following, deps: Stores): Promise<void> {
  checkFollowed(row, deps.world)
  followers += 1
  try {
    await send(row, following, deps)
  } finally {
    followers -= 1
  }
}

function checkFollowed({ streams, created_at }: Followed, world: World): void {
  const why = !streams
    ? 'this response was not made with "stream": true'
    : world.nowMs() - created_at.getTime() > DAY_MS
      ? 'the events of a response are kept for a day'
      : undefined
  if (why !== undefined)
    throw new Fault('request_invalid', {
      message: `"stream" must be false: ${why}. Ask for it whole.`,
      param: 'stream',
    })
  if (followers >= FOLLOWERS_MAX) throw new Fault('unavailable', { retryAfterSeconds: 2 })
}

async function send(
  { account_id, id }: Followed,
  { out, after, begun, ended }: Following,
  { database, sealer, world }: Stores,
): Promise<void> {
  out.startStream({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-store, no-transform',
    'x-accel-buffering': 'no',
  })
  for (const [number, type] of ['response.created', 'response.queued'].entries())
    if (number > after) await out.write(encoded({ type, sequence_number: number, response: begun }))
  let seen = Math.max(after, FIRST - 1)
  let wroteMs = world.elapsedMs()
  while (!out.signal.aborted) {
    // Read before the events: once the response has ended, all of its events are stored.
    const ending = await ended()
    type EventsRow = { last: number; events: string | null; sealed: Buffer | null }
    const rows = await database.query<EventsRow>(AFTER, [account_id, id, seen])
    for (const { last, events, sealed } of rows) {
      const text = sealed ? sealer.open(placeOf({ account_id, id }, last), sealed)?.toString() : events
      // Events sealed with another secret are skipped; the last event has the whole response.
      if (text === undefined || text === null) {
        seen = last
        continue
      }
      const lines = text.split('\n')
      const fresh = lines.slice(Math.max(0, lines.length - (last - seen)))
      await out.write(fresh.map((line) => encodeEvent(line, typeOf(line))).join(''))
      seen = last
      wroteMs = world.elapsedMs()
    }
    if (rows.length === PAGE) continue
    if (ending !== undefined) return out.end(await lastOf(ending))
    if (world.elapsedMs() - wroteMs > PING_MS) {
      await out.write(': ping\n')
      wroteMs = world.elapsedMs()
    }
    await sleep(world, LOOK_MS)
  }

  async function lastOf(response: Json | null): Promise<string> {
    const [row] = await database.query<{ last: number }>(LAST, [account_id, id])
    const number = (row?.last ?? 1) + 1
    const gone = { type: 'error', code: 'not_found', message: 'This response was deleted.', param: null }
    const told = response ? { type: `response.${endOf(response)}`, response } : gone
    return (number > after ? encoded({ ...told, sequence_number: number }) : '') + DONE
  }
}

const DONE = 'data: [DONE]\n\n'

/** The Responses format has no event for a cancelled response, so it ends as failed. */
function endOf({ status }: Json): string {
  return status === 'completed' || status === 'incomplete' ? status : 'failed'
}

function encoded(event: Json & { type: string }): string {
  return encodeEvent(JSON.stringify(event), event.type)
}

function typeOf(line: string): string | undefined {
  const event = readData(line)
  return isObject(event) ? text(event.type) : undefined
}
