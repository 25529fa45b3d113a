// The audit log, sent to a place outside as JSON lines: a webhook that is signed as all of ours, or objects in S3. Rows
// are read in the order of their chain, and how far it has come advances only after the receiver has accepted: a
// process that is killed in between sends the same rows again. So each row arrives at least once, under its id, and
// with the hashes by which a receiver sees that none is missing or changed.

import type { Audit, AuditLine, By } from '../../../database/audit.ts'
import { sql } from '../../../database/database.ts'
import type { CoreParts } from '../../../extension.ts'
import { signedHeaders, webhookSecret } from '../../../jobs/webhook.ts'
import { createWorkTable, type Ending, type WorkRow } from '../../../jobs/work.ts'
import { Fault } from '../../../kernel/fault.ts'
import { seal, unseal } from '../../../kernel/secret.ts'
import { timeOfId } from '../../../kernel/world.ts'
import type { GuardedFetch } from '../../../upstream/guard.ts'
import { createS3Client } from '../../s3/s3.ts'
import type { AuditExportInput, AuditExportView } from './views.ts'

export type AuditExport = ReturnType<typeof createAuditExport>

export interface AuditExportOptions extends Pick<CoreParts, 'database' | 'work' | 'secrets' | 'world' | 'log'> {
  readonly audit: Pick<Audit, 'write' | 'lines'>
  readonly guard: Pick<GuardedFetch, 'check' | 'post' | 'send'>
  readonly timing: { readonly leaseMs: number; readonly retryMs: number; readonly fetchEveryMs: number }
}

type Target =
  | { readonly kind: 'webhook'; readonly url: string }
  | {
      readonly kind: 's3'
      readonly endpoint: string
      readonly bucket: string
      readonly region: string
      readonly prefix: string
      readonly accessKeyId: string
      readonly secretAccessKey: string
      readonly virtualHost: boolean
    }

interface AuditExportRow extends WorkRow {
  readonly sealed: Buffer
  readonly wait_seconds: number
  readonly sent_until: string
  readonly sent: bigint
  readonly sent_at: Date | null
  readonly failures: number
  readonly error: string | null
  readonly step_at: Date
}

interface Sent extends Ending {
  /** The last row that was accepted, and how many there were. */
  readonly until?: string
  readonly rows?: number
  readonly error?: string
}

const ROWS_MAX = 1_000
const WEBHOOK_BYTES_MAX = 1_000_000
const OBJECT_BYTES_MAX = 8_000_000
const ANSWER_BYTES_MAX = 65_536
const HOUR_MS = 3_600_000
const PAUSE_MS_MAX = HOUR_MS
/** How often the log is looked at for new rows. */
const LOOKS_APART = 5
const LEASE_SHARE = 0.75
const CHECK_MS = 10_000
/** It has a secret of its own: receivers of the gateway's other webhooks must not be able to forge an audit log. */
const SIGNER = 'audit-export'

const COLUMNS = 'account_id, id, version, sealed, wait_seconds, sent_until, sent, sent_at, failures, error, step_at'
const ENDED = `sent_until = coalesce(e.ending ->> 'until', sent_until), sent = sent + coalesce((e.ending ->> 'rows')::int, 0),
  sent_at = case when e.ending ? 'until' then now() else sent_at end,
  failures = case when e.ending ? 'error' then failures + 1 when e.ending ? 'until' then 0 else failures end,
  error = case when e.ending ? 'error' then e.ending ->> 'error' when e.ending ? 'until' then null else error end`
const FIND = sql('audit_export_find')`select ${COLUMNS} from audit_export`
const LOCK = sql('audit_export_lock')`select ${COLUMNS} from audit_export for update`
const WAITING = sql('audit_export_waiting')`select count(*)::int as count from audit where id > $1`
const NEWEST = sql('audit_export_newest')`select coalesce(max(id), '') as id from audit`
// A new version takes the row away from a worker that sends to the place before: what it sends is sent again.
const SET = sql('audit_export_set')`insert into audit_export (sealed, wait_seconds, sent_until) values ($1, $2, $3)
   on conflict (account_id, id) do update set sealed = excluded.sealed, wait_seconds = excluded.wait_seconds, sent_until = excluded.sent_until,
     version = audit_export.version + 1, lease_until = null, step_at = now(), failures = 0, error = null`
const REMOVE = sql('audit_export_remove')`delete from audit_export returning ${COLUMNS}`
const PLACE = 'audit_export|audit|sealed|1'

export function createAuditExport(options: AuditExportOptions) {
  const { database, audit, secrets, world, log, timing } = options
  const key = secrets.key('audit-export')
  const lookMs = timing.fetchEveryMs * LOOKS_APART

  function targetOf({ sealed }: Pick<AuditExportRow, 'sealed'>): Target | undefined {
    const text = unseal(key, PLACE, sealed)
    // Only what `set` has sealed can be unsealed.
    return text === undefined ? undefined : (JSON.parse(text) as Target)
  }

  const { wake } = options.work.begin<AuditExportRow, Sent>({
    table: createWorkTable(database, 'audit_export', { leaseMs: timing.leaseMs, ENDED, COLUMNS }),
    atOnceMax: 1,
    shareMax: 1,
    run: (row, { askedMs, stopping }) => step(row, askedMs, stopping),
    failed: failure,
  })

  function failure(row: AuditExportRow, error: unknown): Sent {
    const why = whyOf(error)
    log.warn({ error: why, failures: row.failures + 1 }, 'the audit log could not be exported; it will be tried again')
    return { afterMs: Math.min(PAUSE_MS_MAX, timing.retryMs * 2 ** Math.min(row.failures, 20)), error: why }
  }

  async function step(row: AuditExportRow, askedMs: number, stopping: AbortSignal): Promise<Sent | undefined> {
    const target = targetOf(row)
    if (!target)
      return failure(row, new Fault('conflict', { message: 'Its settings were sealed with another TOLLGATE_SECRET.' }))
    const rows = await audit.lines(row.sent_until, ROWS_MAX)
    const { batch, isFull } = batchOf(rows, target)
    const [first, last] = [batch[0], batch.at(-1)]
    if (!first || !last) return { afterMs: lookMs }
    const ageMs = world.nowMs() - timeOfId(first.id)
    if (!isFull && ageMs < row.wait_seconds * 1000)
      return { afterMs: Math.min(row.wait_seconds * 1000 - ageMs, HOUR_MS) }
    // An attempt ends before its lease does, so that no other process begins the next one meanwhile.
    const leftMs = timing.leaseMs * LEASE_SHARE - (world.elapsedMs() - askedMs)
    if (leftMs <= 0) return undefined
    const ending = new AbortController()
    const cancel = world.after(leftMs, () => ending.abort(new Fault('upstream_timeout')))
    try {
      await send(target, batch, AbortSignal.any([stopping, ending.signal]))
    } catch (error) {
      return stopping.aborted ? { afterMs: 0 } : failure(row, error)
    } finally {
      cancel()
    }
    return {
      afterMs: batch.length < rows.length || rows.length === ROWS_MAX ? 0 : lookMs,
      until: last.id,
      rows: batch.length,
    }
  }

  async function send(target: Target, batch: readonly AuditLine[], signal: AbortSignal): Promise<void> {
    const [first, last] = [batch[0]?.id ?? '', batch.at(-1)?.id ?? '']
    const body = batch.map((line) => `${JSON.stringify(line)}\n`).join('')
    if (target.kind === 's3') {
      // One hour's rows are together, and the same rows are the same object however often they are sent.
      const hour = new Date(timeOfId(first)).toISOString().slice(0, 13).replaceAll(/[-T]/g, '/')
      const { region, accessKeyId, secretAccessKey } = target
      const store = createS3Client({
        ...target,
        world,
        upstream: options.guard,
        credentials: { region, accessKeyId, secretAccessKey },
      })
      const object = `${target.prefix.replace(/^\/+|(?<!\/)\/+$/g, '')}/${hour}/${first}-${last}.jsonl`
      const headers = { 'content-type': 'application/x-ndjson' }
      const reply = await store('PUT', object, { headers, body: [Buffer.from(body)] })
      await reply.read(ANSWER_BYTES_MAX)
      if (reply.status >= 300)
        throw new Fault('upstream_failed', { message: `The store answered with status ${reply.status}.` })
      return
    }
    // The id names the rows, so a receiver that has seen it has seen all of them.
    const headers = {
      ...signedHeaders(options, { account: SIGNER, id: `audit_${first}_${last}`, body }),
      'content-type': 'application/x-ndjson',
    }
    const { status } = await options.guard.post(target.url, body, headers, { account: '', signal })
    if (status < 200 || status >= 300)
      throw new Fault('upstream_failed', { message: `The receiver answered with status ${status}.` })
  }

  async function view(): Promise<AuditExportView> {
    const [row] = await database.query<AuditExportRow>(FIND)
    if (!row) return NONE
    const target = targetOf(row)
    const [waiting] = await database.query<{ count: number }>(WAITING, [row.sent_until])
    return {
      target: target ? viewTarget(target) : null,
      waitSeconds: row.wait_seconds,
      sent: Number(row.sent),
      waiting: waiting?.count ?? 0,
      sentUntil: row.sent_until === '' ? null : new Date(timeOfId(row.sent_until)).toISOString(),
      lastSentAt: row.sent_at?.toISOString() ?? null,
      failures: row.failures,
      error: row.error,
      nextAttemptAt: row.step_at.toISOString(),
      secret: target?.kind === 'webhook' ? webhookSecret(secrets, SIGNER) : null,
    }
  }

  async function targetFrom(input: AuditExportInput): Promise<Target> {
    const url = input.kind === 'webhook' ? input.url : input.endpoint
    await options.guard.check(url, { signal: AbortSignal.timeout(CHECK_MS) })
    if (input.kind === 'webhook') return { kind: 'webhook', url: input.url }
    const { waitSeconds: _, from: __, secretAccessKey, ...rest } = input
    const [row] = await database.query<AuditExportRow>(FIND)
    const known = row && targetOf(row)
    // A stored secret goes nowhere else than where it was given for.
    const isSame = known?.kind === 's3' && known.endpoint === rest.endpoint && known.accessKeyId === rest.accessKeyId
    const secret = secretAccessKey ?? (isSame ? known.secretAccessKey : undefined)
    if (secret === undefined)
      throw new Fault('request_invalid', { message: 'secretAccessKey: is missing.', param: 'secretAccessKey' })
    return { ...rest, secretAccessKey: secret }
  }

  return {
    get: view,
    /** Throws request_invalid for an address that may not be used. */
    async set(input: AuditExportInput, by: By): Promise<AuditExportView> {
      const target = await targetFrom(input)
      await database.transaction(async (tx) => {
        const [row] = await tx.query<AuditExportRow>(LOCK)
        const [newest] = await tx.query<{ id: string }>(NEWEST)
        const until = input.from === 'now' ? (newest?.id ?? '') : input.from === 'start' ? '' : (row?.sent_until ?? '')
        await tx.query(SET, [seal(key, PLACE, JSON.stringify(target), world), input.waitSeconds, until])
        const was = row && targetOf(row)
        await audit.write(tx, by, {
          action: 'audit.export',
          object: 'system',
          before: was ? { ...viewTarget(was), waitSeconds: row.wait_seconds } : {},
          after: { ...viewTarget(target), waitSeconds: input.waitSeconds },
        })
      })
      wake()
      return view()
    },
    /** False: there was none. */
    async remove(by: By): Promise<boolean> {
      return database.transaction(async (tx) => {
        const [row] = await tx.query<AuditExportRow>(REMOVE)
        if (!row) return false
        const was = targetOf(row)
        await audit.write(tx, by, {
          action: 'audit.export',
          object: 'system',
          before: was ? viewTarget(was) : {},
          after: {},
        })
        return true
      })
    },
  }
}

const NONE: AuditExportView = {
  target: null,
  waitSeconds: 0,
  sent: 0,
  waiting: 0,
  sentUntil: null,
  lastSentAt: null,
  failures: 0,
  error: null,
  nextAttemptAt: null,
  secret: null,
}

function viewTarget(target: Target): NonNullable<AuditExportView['target']> {
  if (target.kind === 'webhook') return { kind: 'webhook', host: new URL(target.url).host }
  const { secretAccessKey: _, ...rest } = target
  return rest
}

/** As many rows as go together: up to a size, and for S3 of one hour. Full: nothing more would be added to it. */
function batchOf(rows: readonly AuditLine[], { kind }: Target): { batch: AuditLine[]; isFull: boolean } {
  const batch: AuditLine[] = []
  const hourOf = ({ id }: AuditLine) => Math.floor(timeOfId(id) / HOUR_MS)
  let bytes = 0
  for (const row of rows) {
    const [first] = batch
    bytes += Buffer.byteLength(JSON.stringify(row)) + 1
    const isOther = kind === 's3' && first !== undefined && hourOf(row) !== hourOf(first)
    if (first && (isOther || bytes > (kind === 's3' ? OBJECT_BYTES_MAX : WEBHOOK_BYTES_MAX)))
      return { batch, isFull: true }
    batch.push(row)
  }
  return { batch, isFull: batch.length === ROWS_MAX }
}

/** For operators; what a receiver said may be anything, and is left out. */
function whyOf(error: unknown): string {
  if (!(error instanceof Fault)) return 'It failed for a reason that the log has.'
  const { status, why, code } = error.details.internal ?? {}
  const about = [status, why, code].filter((one) => typeof one === 'string' || typeof one === 'number').join(', ')
  return `${error.message}${about === '' ? '' : ` (${about})`}`.slice(0, 300)
}
