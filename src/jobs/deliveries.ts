// Every message to an outside receiver: job webhooks and alerts. There is one row per message and receiver, updated
// with every attempt. When a process crashes, another process sends its messages again after the lease has expired. So
// delivery is at least once, and no two processes make the same attempt.
import type { Audit, By } from '../database/audit.ts'
import { type Database, type Queryable, sql } from '../database/database.ts'
import { pruneAll } from '../database/prune.ts'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { asPage, asView, type Paging } from '../kernel/view.ts'
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
import type { JobTiming } from './job.ts'
import { type DeliveryDetail, type DeliveryKind, type DeliveryPage, type DeliveryView, deliveryView } from './views.ts'
import { createWorkTable, type Ending, type Work, type WorkRow } from './work.ts'

interface DeliveryFilter extends Paging {
  readonly account?: string | undefined
  readonly status?: DeliveryView['status'] | undefined
  readonly kind?: DeliveryKind | undefined
}

export interface Deliveries {
  /** Stores the messages, each id once. The workers send them even without a call of `wake`. */
  add(on: Queryable, messages: readonly Message[]): Promise<void>
  /** One attempt at each, at once and without the database, for what cannot be stored. */
  sendUnstored(messages: readonly Message[]): Promise<void>
  /** New messages are stored: send them now. */
  wake(): void
  /** Newest first. `account` '' means the gateway's own deliveries, undefined means all. */
  list(filter: DeliveryFilter): Promise<DeliveryPage>
  /** Deliveries by subject: the id of a job or an alert. */
  about(subjects: readonly string[]): Promise<ReadonlyMap<string, DeliveryView[]>>
  /** With `accounts`, only a delivery of one of these accounts. Throws not_found. */
  find(id: string, accounts?: readonly string[]): Promise<DeliveryDetail>
  /** Sends it again, now, under the same id; throws `conflict` while it is being sent. */
  repeat(id: string, by: By, accounts?: readonly string[]): Promise<DeliveryView>
  /** Gives up those waiting alerts of an account ('' for the gateway's own) that `unwanted` selects. */
  withdrawAlerts(
    account: string,
    why: string,
    unwanted: (message: Pick<Message, 'kind' | 'to'>) => boolean,
  ): Promise<void>
  /**
   * Forgets what the alert mails of an account to this address say: those that wait are given up, and none can be
   * repeated.
   */
  forgetAlertMails(on: Queryable, account: string, to: string): Promise<void>
  /** Removes the mails to somebody about themselves, sent or not. */
  forgetMails(on: Queryable, to: string): Promise<void>
  prune(): Promise<void>
}

export interface DeliveryOptions extends SendDeps {
  readonly database: Database
  readonly work: Pick<Work, 'begin'>
  readonly audit: Pick<Audit, 'write'>
  readonly world: World
  readonly log: Log
  readonly timing: Pick<JobTiming, 'webhookRetrySeconds' | 'deliveryLeaseMs'>
  readonly meter?: ((kind: DeliveryKind, outcome: 'delivered' | 'failed' | 'given_up') => void) | undefined
}

const AT_ONCE_MAX = 50
/** Slow receivers of one account must not delay those of other accounts and of the operator. */
const ACCOUNT_AT_ONCE_MAX = 3
/** With doubling pauses, the last attempt is some six hours after the first. */
const TRIES_MAX = 13
const PAUSE_SECONDS_MAX = 7_200
/** An attempt is aborted before its lease expires, so that no other process begins the next attempt meanwhile. */
const LEASE_SHARE = 0.75

/** `version` is the number of the attempt. */
interface Claimed extends WorkRow {
  readonly kind: DeliveryKind
  readonly sealed: Buffer | null
  readonly tries: number
}

interface AttemptEnding extends Ending {
  readonly state: 'delivered' | 'given_up' | 'waiting'
  readonly told: Required<Pick<Attempt, 'ms' | 'status' | 'error' | 'response'>>
}

const UNSTORED_MS = 10_000
/** The event of the mail that asks a mailbox whether it wants alerts. */
export const CONFIRMATION = 'alert.confirmation'

export function createDeliveries(options: DeliveryOptions): Deliveries {
  const { database, audit, world, log, timing } = options
  const leaseMs = timing.deliveryLeaseMs

  const { wake } = options.work.begin<Claimed, AttemptEnding>({
    table: createWorkTable(database, 'delivery', { leaseMs, TAKEN, ENDED, COLUMNS: CLAIMED }),
    atOnceMax: AT_ONCE_MAX,
    shareMax: ACCOUNT_AT_ONCE_MAX,
    async run(row, { askedMs, stopping }) {
      const startedMs = world.elapsedMs()
      const leftMs = leaseMs * LEASE_SHARE - (startedMs - askedMs)
      // A process that was suspended since it took the row must not send it: another process may be sending it.
      if (leftMs <= 0) return undefined
      const outcome = await attempt(row, leftMs, stopping)
      return endingOf(row, outcome, Math.round(world.elapsedMs() - startedMs))
    },
  })

  async function attempt(row: Claimed, leftMs: number, stopping: AbortSignal): Promise<Outcome | undefined> {
    const ending = new AbortController()
    const cancel = world.after(leftMs, () => ending.abort(new Fault('upstream_timeout')))
    const signal = AbortSignal.any([stopping, ending.signal])
    try {
      const { id, account_id: account, kind, sealed } = row
      return await attemptDelivery({ id, account, kind, sealed }, options, signal)
    } catch (error) {
      if (stopping.aborted) return undefined
      if (!ending.signal.aborted) throw error
      return { delivered: false, statusCode: null, response: null, error: 'The receiver did not answer in time.' }
    } finally {
      cancel()
    }
  }

  /** `outcome` undefined: this process is shutting down, and another process sends the message at once. */
  function endingOf({ id, kind, version, tries }: Claimed, outcome: Outcome | undefined, ms: number): AttemptEnding {
    const error = outcome ? outcome.error : 'The gateway stopped before the receiver had answered.'
    const ended = outcome && !outcome.delivered && (outcome.final || tries >= TRIES_MAX)
    const state = outcome?.delivered ? 'delivered' : ended ? 'given_up' : 'waiting'
    const pauseMs = outcome ? Math.max(pauseMsAfter(tries), outcome.notBeforeMs ?? 0) : 0
    const told = { ms, status: outcome?.statusCode ?? null, error, response: outcome?.response ?? null }
    options.meter?.(kind, state === 'waiting' ? 'failed' : state)
    if (state !== 'delivered')
      log.warn({ delivery: id, kind, attempt: version, status: told.status, error, state }, 'delivery was not accepted')
    return { afterMs: state === 'waiting' ? pauseMs : undefined, state, told }
  }

  /** Exponential backoff with up to 50 % jitter, so that deliveries that failed together are not retried together. */
  function pauseMsAfter(tries: number): number {
    const seconds = Math.min(PAUSE_SECONDS_MAX, timing.webhookRetrySeconds * 2 ** (tries - 1))
    return Math.round(seconds * 1000 * (1 + world.bytes(2).readUInt16BE() / 131_072))
  }

  return {
    async add(on, messages) {
      for (const message of messages) {
        const { id, account, kind, event, subject } = message
        const sealed = sealMessage(message, options)
        await on.query(ADD, [id, account, kind, event, subject, shownTarget(message), sealed])
      }
    },
    async sendUnstored(messages) {
      const signal = AbortSignal.timeout(UNSTORED_MS)
      await Promise.allSettled(
        messages.map(async (message) => {
          const outcome = await attemptDelivery({ ...message, sealed: sealMessage(message, options) }, options, signal)
          options.meter?.(message.kind, outcome.delivered ? 'delivered' : 'given_up')
        }),
      )
    },
    wake,
    async list({ account, status, kind, cursor, limit }) {
      const [, ms = null, id = cursor ?? null] = /^(\d{1,15})_(.*)$/.exec(cursor ?? '') ?? []
      const values = [account ?? null, status ?? null, kind ?? null, id, limit + 1, ms === null ? null : Number(ms)]
      const rows = await database.query<DeliveryRow>(LIST, values)
      return asPage(rows, limit, view)
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
          throw new Fault('conflict', { message: 'This delivery cannot be repeated: its message is not stored.' })
        if (found.event === CONFIRMATION)
          throw new Fault('conflict', { message: 'A stranger is asked once whether alerts are wanted.' })
        const detail = { account: found.account_id || 'gateway', event: found.event, status: found.status }
        await audit.write(tx, by, { action: 'delivery.repeat', object: id, detail })
        const [again] = await tx.query<DeliveryRow>(REPEAT, [id])
        return again
      })
      if (!row) throw notThere()
      wake()
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
    forgetAlertMails: async (on, account, to) => void (await on.query(FORGET_ALERT_MAILS, [account, to])),
    forgetMails: async (on, to) => void (await on.query(FORGET_MAILS, [to])),
    prune: async () => void (await pruneAll(database, PRUNE)),
  }
}

const notThere = () => new Fault('not_found', { message: 'There is no such delivery.' })

interface Attempt {
  readonly number: number
  readonly at: string
  /** Absent while the attempt runs, or when its process crashed. */
  readonly ms?: number
  readonly status?: number | null
  readonly error?: string | null
  readonly response?: string | null
}

interface DeliveryRow {
  readonly id: string
  readonly account_id: string
  readonly event: string
  readonly shown: string
  readonly status: DeliveryView['status']
  readonly version: number
  readonly attempts: readonly Attempt[]
  readonly open: boolean
  readonly step_at: Date
}

const CUT_OFF = 'The process that sent it ended before it knew the answer.'

function view(row: DeliveryRow): DeliveryView {
  const last = row.attempts.at(-1)
  const { statusCode = null, error = null } = last ? viewAttempt(last, row) : {}
  return {
    ...asView(deliveryView, row),
    account: row.account_id || null,
    to: row.shown,
    attempts: row.version,
    statusCode,
    error,
    lastAttemptAt: last?.at ?? null,
    nextAttemptAt: row.open && row.status !== 'sending' ? row.step_at.toISOString() : null,
  }
}

function viewAttempt(
  { number, at, ms, status, error, response }: Attempt,
  row: DeliveryRow,
): DeliveryDetail['history'][number] {
  const runs = ms === undefined && row.status === 'sending' && number === row.version
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
const SEEN = `id, created_at as at, account_id, kind, event, subject, shown, ${STATUS} as status, version, attempts, open, step_at, delivered_at, given_up_at`

const ADD = sql('delivery_add')`
  insert into delivery (id, account_id, kind, event, subject, shown, sealed) values ($1, $2, $3, $4, $5, $6, $7) on conflict (id) do nothing`
const CLAIMED = 'account_id, id, version, kind, sealed, tries'
// The row keeps the last 20 attempts.
const TAKEN = `tries = tries + 1,
  attempts = (case when jsonb_array_length(attempts) >= 20 then attempts - 0 else attempts end) || jsonb_build_object('number', version + 1,
    'at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`
// A delivery that was withdrawn during the attempt stays given up, unless the receiver accepted it.
const ENDED = `attempts = jsonb_set(attempts, '{-1}', (attempts -> -1) || (e.ending -> 'told')),
  delivered_at = case when e.ending ->> 'state' = 'delivered' then now() end,
  given_up_at = case e.ending ->> 'state' when 'given_up' then now() when 'waiting' then given_up_at end`
// A page continues below its cursor. If the cursor's row was pruned, all older rows were pruned too. A row of another
// ledger is not here: such a cursor has its time too.
const LIST = sql('delivery_list')`select ${SEEN} from delivery
   where ($1::text is null or account_id = $1) and ($2::text is null or ${STATUS} = $2) and ($3::text is null or kind = $3)
     and ($4::text is null or ($6::double precision is null and (created_at, id) < (select c.created_at, c.id from delivery c where c.id = $4))
       or (created_at < to_timestamp(($6 + 1) / 1000) and (date_trunc('milliseconds', created_at), id) < (to_timestamp($6 / 1000), $4)))
   order by created_at desc, id desc limit $5`
const ABOUT = sql('delivery_about')`select ${SEEN} from delivery where subject = any($1) order by id`
const OF = '($2::text[] is null or account_id = any($2))'
const FIND = sql('delivery_find')`select ${SEEN}, sealed from delivery where id = $1 and ${OF}`
const LOCK = sql('delivery_lock')`
  select ${SEEN}, sealed is not null as sealed from delivery where id = $1 and ${OF} for update`
const REPEAT = sql('delivery_repeat')`
  update delivery set tries = 0, lease_until = null, open = true, step_at = now(), delivered_at = null, given_up_at = null where id = $1 returning ${SEEN}`
// Alerts only: each job names the address of its own webhook, and an account may have any number of those waiting.
const OPEN_ALERTS = sql('delivery_open_alerts')`
  select id, kind, sealed from delivery where account_id = $1 and open and event like 'alert.%'`
// An attempt in flight records its own outcome.
const WITHDRAW = sql('delivery_withdraw')`
  update delivery set given_up_at = now(), open = false, attempts = case when lease_until > now() then attempts
     else attempts || jsonb_build_object('number', version, 'at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'ms', 0, 'error', $2::text) end
   where id = any($1) and open`
const FORGET_ALERT_MAILS = sql('delivery_forget_alert_mails')`
  update delivery set sealed = null where account_id = $1 and kind = 'email' and event like 'alert.%' and lower(shown) = $2`
const FORGET_MAILS = sql('delivery_forget_mails')`
  delete from delivery where kind = 'email' and event like 'person.%' and shown = $1`
const PRUNE = sql('delivery_prune')`with gone as (delete from delivery where id in (
     select id from delivery where created_at < now() - interval '30 days' order by created_at limit 1000) returning 1)
   select count(*)::int as count from gone`
