// Everything that is sent to receivers outside, whoever has something to say: one row a message and receiver, written with every attempt. The row
// is the truth and the queue an alarm clock: what a dead process was sending is sent again when its lease has ended, so that a message is
// delivered at least once, and no two processes make the same attempt.
import type { Audit, By } from '../database/audit.ts'
import { type Database, type Queryable, statement } from '../database/database.ts'
import { removeAll } from '../database/housekeeping.ts'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { every } from '../kernel/timers.ts'
import type { Paging } from '../kernel/view.ts'
import type { World } from '../kernel/world.ts'
import {
  attemptDelivery,
  type Message,
  type Outcome,
  type SendDeps,
  sealMessage,
  shownBody,
  shownTarget,
  unsealMessage,
} from './delivery.ts'
import type { DeliveryDetail, DeliveryKind, DeliveryPage, DeliveryView } from './delivery-views.ts'
import type { Queue } from './queue.ts'
import type { JobTiming } from './timing.ts'

interface DeliveryFilter extends Paging {
  readonly account?: string | undefined
  readonly status?: DeliveryView['status'] | undefined
  readonly kind?: DeliveryKind | undefined
}

export interface Deliveries {
  /** Writes them down, each once however often it is added; answers their ids. They are sent by somebody, also if nobody says that they are due. */
  add(on: Queryable, messages: readonly Message[]): Promise<string[]>
  /** They are written, and can be sent now. */
  due(ids: readonly string[]): void
  /** Of an account; of '' the gateway's own; of undefined all. Newest first. */
  list(filter: DeliveryFilter): Promise<DeliveryPage>
  /** Those about jobs or alerts. */
  about(subjects: readonly string[]): Promise<ReadonlyMap<string, DeliveryView[]>>
  /** `accounts`: only if it is of one of these. Throws not_found. */
  find(id: string, accounts?: readonly string[]): Promise<DeliveryDetail>
  /** Sends it again, now, under the same id; throws `conflict` while it is being sent. */
  repeat(id: string, by: By, accounts?: readonly string[]): Promise<DeliveryView>
  /** Gives up what waits of an account's alerts, or of '' the gateway's own, and is no longer wanted. */
  withdrawAlerts(
    account: string,
    why: string,
    unwanted: (message: Pick<Message, 'kind' | 'to'>) => boolean,
  ): Promise<void>
  forget(): Promise<void>
  stop(): Promise<void>
}

export interface DeliveryOptions extends SendDeps {
  readonly database: Database
  readonly queue: Queue
  readonly audit: Pick<Audit, 'write'>
  readonly world: World
  readonly log: Log
  readonly timing: Pick<
    JobTiming,
    'fetchEveryMs' | 'sweepEveryMs' | 'neglectedMs' | 'webhookRetrySeconds' | 'deliveryLeaseMs'
  >
  readonly meter?: ((kind: DeliveryKind, outcome: 'delivered' | 'failed' | 'given_up') => void) | undefined
}

const AT_ONCE_MAX = 50
/** Slow receivers of one account must not keep those of others, and of the operator, waiting. */
const ACCOUNT_AT_ONCE_MAX = 3
const HELD_TURNS = 5
/** With doubling pauses the last attempt is some six hours after the first. */
const TRIES_MAX = 13
const PAUSE_SECONDS_MAX = 7_200
/** An attempt is cut off before another process could begin the next. */
const LEASE_SHARE = 0.75

interface Claimed {
  readonly id: string
  readonly account_id: string
  readonly kind: DeliveryKind
  readonly sealed: Buffer | null
  readonly tries: number
  readonly attempt: number
}

export function createDeliveries(options: DeliveryOptions): Deliveries {
  const { database, queue, audit, world, log, timing } = options
  const stopping = new AbortController()
  /** How many of each account are being sent by this process. */
  const running = new Map<string, number>()

  const consumer = queue.consume('delivery', {
    atOnceMax: AT_ONCE_MAX,
    everyMs: timing.fetchEveryMs * 3,
    async run({ key: id }) {
      const [row] = await database.query<{ account_id: string }>(WHOSE, [id])
      if (!row) return
      const account = row.account_id
      const before = running.get(account) ?? 0
      // At the end of the queue, so that it is behind what waits for others.
      if (account !== '' && before >= ACCOUNT_AT_ONCE_MAX)
        return queue.push('delivery', id, timing.fetchEveryMs * HELD_TURNS)
      running.set(account, before + 1)
      try {
        await work(id)
      } finally {
        const left = (running.get(account) ?? 1) - 1
        if (left > 0) running.set(account, left)
        else running.delete(account)
      }
    },
  })

  async function work(id: string): Promise<void> {
    const askedMs = world.elapsedMs()
    const [row] = await database.query<Claimed>(CLAIM, [id, timing.deliveryLeaseMs / 1000])
    // It is not due, has ended, or is in the hands of another.
    if (!row) return
    const startedMs = world.elapsedMs()
    const leftMs = timing.deliveryLeaseMs * LEASE_SHARE - (startedMs - askedMs)
    // A process that slept meanwhile must not send what another may be sending: the sweep finds it.
    if (leftMs <= 0) return
    const outcome = await attempt(row, leftMs)
    const ms = Math.round(world.elapsedMs() - startedMs)
    await record(row, outcome, ms)
  }

  async function attempt(row: Claimed, leftMs: number): Promise<Outcome | undefined> {
    const ending = new AbortController()
    const cancel = world.after(leftMs, () => ending.abort(new Fault('upstream_timeout')))
    const signal = AbortSignal.any([stopping.signal, ending.signal])
    try {
      const { id, account_id: account, kind, sealed } = row
      return await attemptDelivery({ id, account, kind, sealed }, options, signal)
    } catch (error) {
      if (stopping.signal.aborted) return undefined
      if (!ending.signal.aborted) throw error
      return { delivered: false, statusCode: null, response: null, error: 'The receiver did not answer in time.' }
    } finally {
      cancel()
    }
  }

  /** `outcome` undefined: this process stops, and somebody else sends it at once. */
  async function record(
    { id, kind, attempt, tries }: Claimed,
    outcome: Outcome | undefined,
    ms: number,
  ): Promise<void> {
    const error = outcome ? outcome.error : 'The gateway stopped before the receiver had answered.'
    const ended = outcome && !outcome.delivered && (outcome.final || tries >= TRIES_MAX)
    const state = outcome?.delivered ? 'delivered' : ended ? 'given_up' : 'waiting'
    const pauseMs = state !== 'waiting' ? null : outcome ? Math.max(pauseMsAfter(tries), outcome.notBeforeMs ?? 0) : 0
    const told = { ms, status: outcome?.statusCode ?? null, error, response: outcome?.response ?? null }
    const [mine] = await database.query(RECORD, [id, attempt, JSON.stringify(told), state, pauseMs])
    options.meter?.(kind, state === 'waiting' ? 'failed' : state)
    if (state !== 'delivered')
      log.warn({ delivery: id, kind, attempt, status: told.status, error, state }, 'delivery was not accepted')
    if (mine && pauseMs !== null) await queue.push('delivery', id, pauseMs)
  }

  /** Doubling, with up to half as much again by chance, so that what failed together does not come back together. */
  function pauseMsAfter(tries: number): number {
    const seconds = Math.min(PAUSE_SECONDS_MAX, timing.webhookRetrySeconds * 2 ** (tries - 1))
    return Math.round(seconds * 1000 * (1 + world.bytes(2).readUInt16BE() / 131_072))
  }

  async function sweep(): Promise<void> {
    const rows = await database.query<{ id: string }>(NEGLECTED, [timing.neglectedMs / 1000])
    if (rows.length === 0) return
    await Promise.all(rows.map(({ id }) => queue.push('delivery', id, 0)))
    consumer.wake()
  }
  const stopSweep = every(world, timing.sweepEveryMs, sweep, log)

  function due(ids: readonly string[]): void {
    if (ids.length === 0) return
    Promise.all(ids.map((id) => queue.push('delivery', id, 0))).then(
      () => consumer.wake(),
      (error: unknown) => log.warn({ error }, 'deliveries were left to the sweep'),
    )
  }

  return {
    async add(on, messages) {
      for (const message of messages) {
        const { id, account, kind, event, subject } = message
        const sealed = sealMessage(message, options)
        await on.query(ADD, [id, account, kind, event, subject, shownTarget(message), sealed])
      }
      return messages.map(({ id }) => id)
    },
    due,
    async list({ account, status, kind, cursor, limit }) {
      const values = [account ?? null, status ?? null, kind ?? null, cursor ?? null, limit + 1]
      const rows = await database.query<DeliveryRow>(LIST, values)
      return {
        items: rows.slice(0, limit).map(view),
        next: rows.length > limit ? (rows[limit - 1]?.id ?? null) : null,
      }
    },
    async about(subjects) {
      const rows = subjects.length === 0 ? [] : await database.query<DeliveryRow>(ABOUT, [[...subjects]])
      return Map.groupBy(rows.map(view), ({ subject }) => subject)
    },
    async find(id, accounts) {
      const [row] = await database.query<DeliveryRow & { sealed: Buffer | null }>(FIND, [id, accounts ?? null])
      if (!row) throw notThere()
      const content = unsealMessage(id, row.sealed, options.secrets)
      return {
        ...view(row),
        body: content ? shownBody(content) : null,
        bodyBytes: content ? Buffer.byteLength(content.body) : null,
        history: row.attempts.map((one) => viewAttempt(one, row)),
      }
    },
    async repeat(id, by, accounts) {
      const row = await database.transaction(async (tx) => {
        const [found] = await tx.query<DeliveryRow & { sealed: boolean }>(LOCK, [id, accounts ?? null])
        if (!found) throw notThere()
        if (found.status === 'sending')
          throw new Fault('conflict', {
            message: 'This delivery is being sent at this moment. See how it ends before you repeat it.',
            retryAfterSeconds: Math.ceil(timing.deliveryLeaseMs / 1000),
          })
        if (!found.sealed)
          throw new Fault('conflict', {
            message: 'This delivery cannot be repeated: the version that sent it did not keep what it sent.',
          })
        const detail = { account: found.account_id || 'gateway', event: found.event, status: found.status }
        await audit.write(tx, by, { action: 'delivery.repeat', object: id, detail })
        const [again] = await tx.query<DeliveryRow>(REPEAT, [id])
        return again
      })
      if (!row) throw notThere()
      // One that waits for later in the queue is due now.
      await queue
        .hasten('delivery', id)
        .catch((error: unknown) => log.warn({ error }, 'delivery was left to the sweep'))
      consumer.wake()
      return view(row)
    },
    async withdrawAlerts(account, why, unwanted) {
      const rows = await database.query<{ id: string; kind: DeliveryKind; sealed: Buffer | null }>(OPEN_ALERTS, [
        account,
      ])
      const gone = rows.filter(({ id, kind, sealed }) => {
        const content = unsealMessage(id, sealed, options.secrets)
        return content !== undefined && unwanted({ kind, to: content.to })
      })
      if (gone.length > 0) await database.query(WITHDRAW, [gone.map(({ id }) => id), why])
    },
    forget: async () => void (await removeAll(database, FORGET)),
    async stop() {
      stopSweep()
      stopping.abort()
      await consumer.stop()
    },
  }
}

const notThere = () => new Fault('not_found', { message: 'There is no such delivery.' })

interface Attempt {
  readonly number: number
  readonly at: string
  /** Absent while it runs, or when its process died. */
  readonly ms?: number
  readonly status?: number | null
  readonly error?: string | null
  readonly response?: string | null
}

interface DeliveryRow {
  readonly id: string
  readonly created_at: Date
  readonly account_id: string
  readonly kind: DeliveryKind
  readonly event: string
  readonly subject: string
  readonly shown: string
  readonly status: DeliveryView['status']
  readonly attempt: number
  readonly attempts: readonly Attempt[]
  readonly next_at: Date | null
  readonly delivered_at: Date | null
  readonly given_up_at: Date | null
}

const CUT_OFF = 'The process that sent it ended before it knew the answer.'

function view(row: DeliveryRow): DeliveryView {
  const last = row.attempts.at(-1)
  const { statusCode = null, error = null } = last ? viewAttempt(last, row) : {}
  return {
    id: row.id,
    at: row.created_at.toISOString(),
    account: row.account_id === '' ? null : row.account_id,
    kind: row.kind,
    event: row.event,
    subject: row.subject,
    to: row.shown,
    status: row.status,
    attempts: row.attempt,
    statusCode,
    error,
    lastAttemptAt: last?.at ?? null,
    nextAttemptAt: row.status === 'sending' ? null : (row.next_at?.toISOString() ?? null),
    deliveredAt: row.delivered_at?.toISOString() ?? null,
    givenUpAt: row.given_up_at?.toISOString() ?? null,
  }
}

function viewAttempt(
  { number, at, ms, status, error, response }: Attempt,
  row: DeliveryRow,
): DeliveryDetail['history'][number] {
  const runs = ms === undefined && row.status === 'sending' && number === row.attempt
  return {
    number,
    at,
    durationMs: ms ?? null,
    statusCode: status ?? null,
    error: ms === undefined && !runs ? CUT_OFF : (error ?? null),
    response: response ?? null,
  }
}

const STATUS = `case when delivered_at is not null then 'delivered' when given_up_at is not null then 'given_up'
  when lease_until > now() then 'sending' else 'waiting' end`
const SEEN = `id, created_at, account_id, kind, event, subject, shown, ${STATUS} as status, attempt, attempts, next_at, delivered_at, given_up_at`

const ADD = statement(
  'delivery_add',
  `insert into delivery (id, account_id, kind, event, subject, shown, sealed) values ($1, $2, $3, $4, $5, $6, $7) on conflict (id) do nothing`,
)
const WHOSE = statement('delivery_whose', 'select account_id from delivery where id = $1 and next_at <= now()')
// Of the attempts so many are kept.
const CLAIM = statement(
  'delivery_claim',
  `update delivery set attempt = attempt + 1, tries = tries + 1, lease_until = now() + make_interval(secs => $2::float8),
     attempts = (case when jsonb_array_length(attempts) >= 20 then attempts - 0 else attempts end) || jsonb_build_object('number', attempt + 1,
       'at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
   where id = $1 and next_at <= now() and (lease_until is null or lease_until <= now())
   returning id, account_id, kind, sealed, tries, attempt`,
)
// What was withdrawn meanwhile stays so, unless it arrived.
const RECORD = statement(
  'delivery_record',
  `update delivery set lease_until = null, attempts = jsonb_set(attempts, '{-1}', (attempts -> -1) || $3::jsonb),
     delivered_at = case when $4 = 'delivered' then now() end,
     given_up_at = case when $4 = 'given_up' then now() when $4 = 'waiting' then given_up_at end,
     next_at = case when $4 = 'waiting' and given_up_at is null then now() + make_interval(secs => $5::float8 / 1000) end
   where id = $1 and attempt = $2 returning id`,
)
const NEGLECTED = statement(
  'delivery_neglected',
  `select id from delivery where next_at is not null and greatest(next_at, lease_until) < now() - make_interval(secs => $1::float8)
   order by next_at limit 1000`,
)
// A page goes on below its last row; where that one is gone, all that were older are gone too.
const LIST = statement(
  'delivery_list',
  `select ${SEEN} from delivery
   where ($1::text is null or account_id = $1) and ($2::text is null or ${STATUS} = $2) and ($3::text is null or kind = $3)
     and ($4::text is null or (created_at, id) < (select c.created_at, c.id from delivery c where c.id = $4))
   order by created_at desc, id desc limit $5`,
)
const ABOUT = statement('delivery_about', `select ${SEEN} from delivery where subject = any($1) order by id`)
const OF = '($2::text[] is null or account_id = any($2))'
const FIND = statement('delivery_find', `select ${SEEN}, sealed from delivery where id = $1 and ${OF}`)
const LOCK = statement(
  'delivery_lock',
  `select ${SEEN}, sealed is not null as sealed from delivery where id = $1 and ${OF} for update`,
)
const REPEAT = statement(
  'delivery_repeat',
  `update delivery set tries = 0, lease_until = null, next_at = now(), delivered_at = null, given_up_at = null where id = $1 returning ${SEEN}`,
)
// Alerts only: webhooks of jobs go to the address that each job named, and an account may have any number of them waiting.
const OPEN_ALERTS = statement(
  'delivery_open_alerts',
  `select id, kind, sealed from delivery where account_id = $1 and next_at is not null and event like 'alert.%'`,
)
// An attempt that runs says itself how it went.
const WITHDRAW = statement(
  'delivery_withdraw',
  `update delivery set given_up_at = now(), next_at = null, attempts = case when lease_until > now() then attempts
     else attempts || jsonb_build_object('number', attempt, 'at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'ms', 0, 'error', $2::text) end
   where id = any($1) and next_at is not null`,
)
const FORGET = statement(
  'delivery_forget',
  `with gone as (delete from delivery where id in (
     select id from delivery where created_at < now() - interval '30 days' order by created_at limit 1000) returning 1)
   select count(*)::int as count from gone`,
)
