// Background responses: accepted at once, run on the paid path when there is capacity, and stored until the caller
// fetches them. They work with any text model, whether or not its vendor has such a feature.

import { createHash } from 'node:crypto'
import { type ApiKeys, maySee, type Principal } from '../../admission/api-key.ts'
import type { Labels } from '../../admission/labels.ts'
import { PAID } from '../../catalog/generation.ts'
import { catalogFor } from '../../catalog/store.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/database.ts'
import { pruneAll } from '../../database/prune.ts'
import type { JobTiming } from '../../jobs/job.ts'
import { createWorkTable, type Work, type WorkRow } from '../../jobs/work.ts'
import { CLIENT_CLOSED, Fault, invalid } from '../../kernel/fault.ts'
import { edited, isObject, type Json, type JsonText, readJson, splice, text } from '../../kernel/json.ts'
import type { ContentSealer } from '../../kernel/secret.ts'
import { every } from '../../kernel/timers.ts'
import { newId } from '../../kernel/world.ts'
import type { Background } from '../../pipeline/hooks.ts'
import { completed } from '../../pipeline/paid-endpoint.ts'
import { broughtBy, read } from '../../pipeline/read.ts'
import type { ResponseSink } from '../../pipeline/response-sink.ts'
import { mustBe } from '../../protocols/check.ts'
import { echoed } from '../../protocols/text/openai-responses/pass.ts'
import { routingHeaders } from '../../routing/preference.ts'
import type { Overload } from '../../telemetry/overload.ts'
import {
  type BackgroundCallDeps,
  dropStoredResult,
  isLater,
  isUnderWay,
  paidBefore,
  runBackgroundCall,
  type Told,
} from './call.ts'
import { secondsOf } from './files.ts'
import { EventTaker, follow, hasEvents, ours, pruneEvents, removeEvents } from './response-events.ts'

/** A response that runs in the background, or ran there. */
interface BackgroundResponse {
  readonly account_id: string
  readonly id: string
  /** The vendor's own id of it; null: it has none yet, or the vendor keeps nothing. */
  readonly vendor_id: string | null
  /** The response as it is now. */
  readonly answer: string
}

export type Responses = ReturnType<typeof startBackground>

const JSON_TYPE = 'application/json; charset=utf-8'
const NOTHING_YET = -1

interface BackgroundDeps extends BackgroundCallDeps {
  readonly keys: Pick<ApiKeys, 'holder' | 'whenChanged'>
  readonly overload: Pick<Overload, 'spare'>
  readonly work: Pick<Work, 'begin'>
  readonly timing: Pick<JobTiming, 'leaseMs'>
}

/** The calls in flight in this process, by response id. */
type Running = Map<string, { readonly abort: AbortController; readonly ended: Promise<void> }>

interface BackgroundRow extends WorkRow {
  readonly key_id: string
  readonly product: string
  /** Unencrypted only in rows of an earlier version. */
  readonly request: string | null
  readonly answer: string | null
  readonly sealed_request: Buffer | null
  readonly sealed_answer: Buffer | null
  readonly status: string
  readonly vendor_id: string | null
  readonly created_at: Date
  readonly overdue: boolean
  /** Its events are stored for followers. */
  readonly streams: boolean
  readonly labels: Labels | null
}

/** A decrypted row. `request` is undefined when it was sealed with another secret. */
interface Opened extends Omit<BackgroundRow, 'request' | 'answer' | 'sealed_request' | 'sealed_answer'> {
  readonly request: string | undefined
  readonly answer: string | null | undefined
}

const PREFIX = 'resp_bg'
const UNREADABLE = 'This response was encrypted under another TOLLGATE_SECRET and cannot be read.'
const ID = /^resp_bg[0-9a-z]{26}$/
const AT_ONCE = 64
const ACCOUNT_AT_ONCE = 32
const OPEN_MAX = 100
const REQUEST_CHARS_MAX = 4_000_000
const NO_ROOM_MS = 500
const WAIT_MS_MAX = 30_000
const VENDOR_TRIES_MAX = 5
const CANCEL_LOOK_MS = 1_000
const CANCEL_WAIT_MS = 2_000
const SPEC = completed({ ...PAID.responses, sells: 'text' })

const COLUMNS = '*, now() >= expires_at as overdue'
const INSERT = sql('background_insert')`
  insert into background (account_id, id, key_id, product, sealed_request, streams, labels)
   select $1, $2, $3, $4, $5, $7, $8::jsonb where (select count(*) from background where account_id = $1 and open) < $6
   on conflict (account_id, id) do update set id = excluded.id returning *`
const FIND = sql('background_find')`select * from background where account_id = $1 and id = $2`
const BEGIN = sql('background_begin')`
  update background set status = 'in_progress' where account_id = $1 and id = $2 and version = $3 and status in ('queued', 'in_progress') returning id`
const TRIED = sql('background_tried')`
  update background set tries = tries + 1 where account_id = $1 and id = $2 returning tries`
const END = sql('background_end')`
  update background set status = $4, sealed_answer = $5, vendor_id = $6, call_id = $7, ended_at = now()
   where account_id = $1 and id = $2 and version = $3 and status in ('queued', 'in_progress') returning id`
// The row stays open until the charge is known. Its worker reports it, or, if that worker crashed, the next one.
const CANCEL = sql('background_cancel')`
  update background set status = 'cancelled', ended_at = now(), step_at = '-infinity'
   where account_id = $1 and id = $2 and status in ('queued', 'in_progress') returning account_id, id`
const CANCELLED = sql('background_cancelled')`
  update background set sealed_answer = $4 where account_id = $1 and id = $2 and version = $3 and status = 'cancelled' and sealed_answer is null`
const REMOVE = sql('background_remove')`delete from background where account_id = $1 and id = $2`
const STATUS = sql('background_status')`
  select status, status in ('queued', 'in_progress') or (status = 'cancelled' and open) as going from background where account_id = $1 and id = $2`
const PRUNE = sql('background_prune')`with gone as (
     delete from background where ctid = any(array(
       select ctid from background where created_at < now() - interval '30 days' limit 1000)) returning 1
   ) select count(*)::int as count from gone`

/** Stored answers left behind when a response was deleted while it ran, and its process was killed. */
const PRUNE_STRAY = sql('background_forget_stray')`with gone as (
     delete from idempotency where (account_id, key) in (
       select i.account_id, i.key from idempotency i where i.key like ' ${PREFIX}%' and (i.status is not null or i.freed)
         and not exists (select 1 from background b where b.account_id = i.account_id and b.id = substr(i.key, 2)) limit 1000)
     returning 1
   ) select count(*)::int as count from gone`

export function startBackground(deps: BackgroundDeps) {
  const { path, timing, work } = deps
  const { database, world } = path
  const running: Running = new Map()
  const steps = work.begin({
    table: createWorkTable<BackgroundRow>(database, 'background', { leaseMs: timing.leaseMs, COLUMNS }),
    atOnceMax: AT_ONCE,
    shareMax: ACCOUNT_AT_ONCE,
    run: async (row) => ({ afterMs: await stepOne(opened(row, path.sealer), { ...deps, running }) }),
  })
  const load = async (account: string, id: string) => {
    const [row] = ID.test(id) ? await database.query<BackgroundRow>(FIND, [account, id]) : []
    return row && opened(row, path.sealer)
  }

  async function goingOn(json: JsonText, account: string): Promise<JsonText> {
    const previous = text(json.value.previous_response_id)
    const kept = previous === undefined ? undefined : await load(account, previous)
    if (!kept?.vendor_id) return json
    return edited(json, { replace: { previous_response_id: JSON.stringify(kept.vendor_id) } })
  }

  /** Aborts the call at once if it runs in this process. Other processes check for a cancellation once a second. */
  async function cut(id: string): Promise<void> {
    const call = running.get(id)
    if (!call) return
    call.abort.abort(CLIENT_CLOSED)
    // Most aborted calls are settled within a moment, and then the answer can show the partial output.
    const waited = Promise.withResolvers<void>()
    const cancel = world.after(CANCEL_WAIT_MS, waited.resolve)
    await Promise.race([call.ended, waited.promise])
    cancel()
  }

  /** Streams the events after number `after`, until the response has ended. */
  async function followFrom(
    { account_id, id }: Pick<WorkRow, 'account_id' | 'id'>,
    after: number,
    out: ResponseSink,
  ): Promise<void> {
    const row = await load(account_id, id)
    if (!row) throw new Fault('not_found')
    const ended = async () => {
      if ((await statusOf(row, database))?.going) return undefined
      const last = await load(account_id, id)
      return last ? (JSON.parse(viewOf(last)) as Json) : null // `viewOf` returns a JSON object.
    }
    await follow(row, { out, after, begun: begun({ ...row, status: 'queued' }), ended }, path)
  }

  const hooks: Background = {
    goingOn,
    async accept({ principal, spec, json, headers, idempotencyKey }, out) {
      const { accountId, keyId } = principal
      const [beside] = routingHeaders(headers)
      // Only the body is stored until it runs.
      if (beside !== undefined)
        throw invalid('For background responses, send "models" and "provider" in the body.', beside.split(':', 1)[0])
      const request = await goingOn(readyToRun(json), accountId)
      const catalog = catalogFor(accountId, deps.catalog.current)
      const brought = await broughtBy(principal, deps.read)
      const { paidRequest, labels } = read(
        { spec, catalog, principal, brought, params: {}, query: '', body: { json: request }, headers },
        deps.read,
      )
      const id = PREFIX + (idempotencyKey === undefined ? newId(world) : nameOf(accountId, idempotencyKey))
      const streams = json.value.stream === true
      const sealed = path.sealer.seal(placeOf(accountId, id, 'request'), request.text)
      const values = [accountId, id, keyId, paidRequest.product, sealed, OPEN_MAX, streams, labels ?? null]
      const [made] = await database.query<BackgroundRow>(INSERT, values)
      const row = made && opened(made, path.sealer)
      if (!row)
        throw new Fault('rate_limited', {
          message: `This account has ${OPEN_MAX} background responses that have not ended, which is the maximum.`,
          retryAfterSeconds: 5,
        })
      if (row.request !== request.text || row.streams !== streams)
        throw new Fault('conflict', { message: 'This Idempotency-Key was used with a different request.' })
      steps.wake()
      if (row.streams) return followFrom(row, NOTHING_YET, out)
      out.send(200, { 'content-type': JSON_TYPE }, viewOf(row))
    },
  }

  return {
    hooks,
    follow: followFrom,
    /** Undefined: the account has no such response, or this key may not see it. */
    async find(principal: Principal, id: string): Promise<BackgroundResponse | undefined> {
      const row = await load(principal.accountId, id)
      return row && maySee(principal, row) ? { ...row, answer: viewOf(row) } : undefined
    },
    async cancel({ account_id, id, answer }: BackgroundResponse): Promise<string> {
      const [cancelled] = await database.query<Pick<WorkRow, 'account_id' | 'id'>>(CANCEL, [account_id, id])
      if (cancelled) steps.wake()
      await cut(id)
      const row = await load(account_id, id)
      return row ? viewOf(row) : answer
    },
    /** Deletes it and returns the answer's body. */
    async remove({ account_id, id }: BackgroundResponse): Promise<string> {
      await database.query(REMOVE, [account_id, id])
      running.get(id)?.abort.abort(CLIENT_CLOSED)
      await removeRest({ account_id, id }, database)
      return JSON.stringify({ id, object: 'response', deleted: true })
    },
  }
}

export async function pruneBackground(database: Database): Promise<void> {
  await pruneAll(database, PRUNE)
  await pruneAll(database, PRUNE_STRAY)
  await pruneEvents(database)
}

/** Removes the events and the stored answer of a deleted response. */
async function removeRest(row: Pick<WorkRow, 'account_id' | 'id'>, database: Database): Promise<void> {
  await removeEvents(row, database)
  await dropStoredResult(row.account_id, row.id, database)
}

const placeOf = (account: string, id: string, column: 'request' | 'answer') => ({
  table: 'background',
  row: `${account} ${id}`,
  column,
})

function opened(row: BackgroundRow, sealer: ContentSealer): Opened {
  const { sealed_request, sealed_answer, request, answer, ...rest } = row
  const open = (column: 'request' | 'answer', sealed: Buffer) =>
    sealer.open(placeOf(row.account_id, row.id, column), sealed)?.toString()
  return {
    ...rest,
    request: sealed_request ? open('request', sealed_request) : (request ?? undefined),
    answer: sealed_answer ? open('answer', sealed_answer) : answer,
  }
}

/** Two requests with the same idempotency key get the same id. */
function nameOf(account: string, key: string): string {
  return createHash('sha256')
    .update(JSON.stringify([account, key]))
    .digest('hex')
    .slice(0, 26)
}

/** The request as it is run in the background. */
function readyToRun(json: JsonText): JsonText {
  const { stream } = json.value
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean')
    throw mustBe('stream', 'true or false', stream)
  if (json.value.store === false)
    throw invalid('"store" must be true with "background": the response is read later.', 'store')
  if (json.text.length > REQUEST_CHARS_MAX)
    throw new Fault('request_too_large', {
      message: `With "background", a request may have ${REQUEST_CHARS_MAX} characters.`,
    })
  return edited(json, { remove: ['background', 'stream', 'stream_options'] })
}

async function stepOne(row: Opened, deps: BackgroundDeps & { running: Running }): Promise<number | undefined> {
  const { path, overload } = deps
  const { database } = path
  if (row.status === 'cancelled') return endCancelled(row, deps)
  if (row.status !== 'queued' && row.status !== 'in_progress') return undefined
  if (row.overdue) {
    const paid = await paidFor(row, deps)
    const late = failed(row, 'expired', 'This response was not started within a day.')
    return end(row, paid ? answerOf(row, paid) : late, deps)
  }
  if (row.request === undefined) return end(row, failed(row, 'server_error', UNREADABLE), deps)
  if (!overload.spare) return NO_ROOM_MS
  const [mine] = await database.query(BEGIN, [row.account_id, row.id, row.version])
  if (!mine) return endCancelled(row, deps)
  const abort = new AbortController()
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  deps.running.set(row.id, { abort, ended })
  const look = async () => {
    const now = await statusOf(row, database)
    if (!now || now.status === 'cancelled') abort.abort(CLIENT_CLOSED)
  }
  const stopLooking = every(path.world, CANCEL_LOOK_MS, look, path.log)
  // What a key has begun ends with it.
  const unwatch = deps.keys.whenChanged(() => {
    endWithKey(row, deps).catch((error: unknown) =>
      path.log.error({ err: error }, 'a background response outlives its key'),
    )
  })
  try {
    return await answer(row, row.request, abort.signal, deps)
  } finally {
    stopLooking()
    unwatch()
    deps.running.delete(row.id)
    resolve()
  }
}

async function endWithKey(
  { key_id: key, account_id: account, id, labels }: Opened,
  deps: BackgroundDeps & { running: Running },
) {
  if (await deps.keys.holder(key, account, labels ?? undefined)) return
  await deps.path.database.query(CANCEL, [account, id])
  deps.running.get(id)?.abort.abort(CLIENT_CLOSED)
}

/** What was paid for before its process died. */
async function paidFor({ account_id: account, id }: Opened, deps: BackgroundDeps): Promise<Told | undefined> {
  return (await paidBefore({ account, spec: SPEC }, [id], deps)).get(id)
}

async function answer(row: Opened, request: string, signal: AbortSignal, deps: BackgroundDeps) {
  const { path, keys } = deps
  const { database } = path
  const principal = await keys.holder(row.key_id, row.account_id, row.labels ?? undefined)
  const isShown = row.streams && !(await hasEvents(row, database))
  const out = new EventTaker(row, { signal, isShown }, path)
  // Always as a stream, even without followers: after a cancellation the partial output is known.
  const body = Buffer.from(streaming(request))
  const labels = row.labels ?? undefined
  const call = { account: row.account_id, principal, spec: SPEC, body, labels, name: row.id, signal, out }
  const ending = await runBackgroundCall(call, deps)
  await out.flushed()
  if (signal.aborted) return endCancelled(row, deps)
  if (!isLater(ending)) return await end(row, answerOf(row, ending), deps)
  if (!ending.isVendors || (await triedOf(row, database)) < VENDOR_TRIES_MAX)
    return Math.min(ending.afterMs, WAIT_MS_MAX)
  return await end(row, answerOf(row, ending.told), deps)
}

interface StatusRow {
  readonly status: string
  /** Still running, or cancelled and not settled yet. */
  readonly going: boolean
}

async function statusOf({ account_id, id }: Pick<WorkRow, 'account_id' | 'id'>, database: Database) {
  return (await database.query<StatusRow>(STATUS, [account_id, id]))[0]
}

/** The output made before a cancellation is charged and shown. A deleted response leaves nothing behind. */
async function endCancelled(row: Opened, deps: BackgroundDeps): Promise<number | undefined> {
  const { path } = deps
  const { account_id, id } = row
  const now = await statusOf(row, path.database)
  if (now?.status !== 'cancelled') {
    if (!now) await removeRest(row, path.database)
    return undefined
  }
  if (await isUnderWay(account_id, id, path.database)) return CANCEL_LOOK_MS
  const paid = await paidFor(row, deps)
  const made = paid && answerOf(row, paid)
  const shown = made && made.status !== 'failed' ? made.answer : begun(row)
  const sealed = path.sealer.seal(
    placeOf(account_id, id, 'answer'),
    JSON.stringify({ ...shown, status: 'cancelled', completed_at: null }),
  )
  await path.database.query(CANCELLED, [account_id, id, row.version, sealed])
  return undefined
}

function streaming(request: string): string {
  return splice(readJson(Buffer.from(request)), { add: { stream: 'true' } })
}

async function triedOf({ account_id, id }: Opened, database: Database): Promise<number> {
  const [row] = await database.query<{ tries: number }>(TRIED, [account_id, id])
  return row?.tries ?? 0
}

interface Ended {
  readonly status: string
  readonly answer: Json
  readonly vendorId: string | null
  /** The id of the call that produced the answer. */
  readonly callId?: string
}

/** A cancellation that came between the call's end and here has what the call brought. */
async function end(row: Opened, ended: Ended, deps: BackgroundDeps): Promise<number | undefined> {
  const { path } = deps
  const { status, answer, vendorId, callId = null } = ended
  const sealed = path.sealer.seal(placeOf(row.account_id, row.id, 'answer'), JSON.stringify(answer))
  const [mine] = await path.database.query(END, [row.account_id, row.id, row.version, status, sealed, vendorId, callId])
  return mine ? undefined : endCancelled(row, deps)
}

function answerOf(row: Opened, { status, body, requestId }: Told): Ended {
  const said: unknown = JSON.parse(body)
  const response = isObject(said) ? said : {}
  if (status < 200 || status > 299) {
    const { code, message } = isObject(response.error) ? response.error : {}
    return failed(row, text(code) ?? 'server_error', text(message) ?? 'The response failed.')
  }
  const isWhole = response.status !== 'incomplete'
  return {
    status: isWhole ? 'completed' : 'incomplete',
    answer: { ...response, ...ours(row.id) },
    vendorId: response.store === true ? (text(response.id) ?? null) : null,
    callId: requestId.replace(/^req_/, ''),
  }
}

function failed(row: Opened, code: string, message: string): Ended {
  return { status: 'failed', answer: { ...begun(row), status: 'failed', error: { code, message } }, vendorId: null }
}

/** The response before there is an answer. */
function begun({ id, request, product, created_at, status }: Opened): Json {
  return {
    id,
    object: 'response',
    created_at: secondsOf(created_at),
    status,
    output: [],
    ...(request === undefined ? {} : echoed(readJson(Buffer.from(request)).value)),
    model: product,
    ...ours(id),
  }
}

function viewOf(row: Opened): string {
  if (typeof row.answer === 'string') return row.answer
  const isReadable = row.request !== undefined && row.answer === null
  return JSON.stringify(isReadable ? begun(row) : failed(row, 'server_error', UNREADABLE).answer)
}
