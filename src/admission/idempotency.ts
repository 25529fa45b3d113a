// Same account, same Idempotency-Key, same request within a day: the stored answer again, and no second effect.
import { createHash } from 'node:crypto'
import { type Database, sql } from '../database/database.ts'
import { pruneAll } from '../database/prune.ts'
import { Fault, type FaultDetails, type FaultName, invalid } from '../kernel/fault.ts'
import type { ContentSealer } from '../kernel/secret.ts'
import type { ReplayAnswer } from '../ledger/operation.ts'
import { bytesOf } from '../upstream/sse.ts'
import type { Application } from './admit.ts'

const KEY_CHARS_MAX = 255
/** Answers beyond this are not stored with their settlement; the key of a caller is then free again. */
const KEPT_BYTES_MAX = 8_000_000

export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  if (header.length > KEY_CHARS_MAX || !/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(header))
    throw invalid(`Idempotency-Key must be 1 to ${KEY_CHARS_MAX} printable ASCII characters.`, 'Idempotency-Key')
  return header
}

export function hashRequest(endpoint: string, body: string | Buffer): string {
  return createHash('sha256').update(endpoint).update('\n').update(body).digest('base64url')
}

const STORED = sql('idempotency_stored')`
  select hold_id as hold, status, content_type, body, sealed from idempotency where account_id = $1 and key = $2`
const STORED_OF = sql('idempotency_stored_of')`
  select key, hold_id as hold, status, content_type, body, sealed from idempotency where account_id = $1 and key = any($2) and status is not null`
/**
 * A large answer is written by itself, so that no other settlement waits for it. It becomes valid when the settlement
 * writes its status.
 */
const PUT = sql('idempotency_put')`
  update idempotency set sealed = $3 where account_id = $1 and hold_id = $2 and status is null`
const RUNS = sql('idempotency_runs')`
  select 1 from idempotency where account_id = $1 and key = $2 and status is null and not freed`
const DROP = sql('idempotency_drop')`
  delete from idempotency where account_id = $1 and key = $2 and (status is not null or freed)`
const PRUNE = sql('idempotency_forget')`with gone as (
     delete from idempotency where (account_id, key) in (
       select account_id, key from idempotency where created_at < now() - interval '24 hours' and (status is not null or freed) limit 2000)
     returning 1
   ) select count(*)::int as count from gone`

interface Replayable {
  readonly principal: { readonly accountId: string }
  readonly idempotency?: { readonly key: string } | undefined
  readonly out: { send(status: number, headers: Record<string, string>, body: Buffer): void }
}

interface Stores {
  readonly database: Database
  readonly sealer: ContentSealer
}

interface StoredRow {
  readonly hold: string
  /** Of what is made here and says nothing (a job's id), and of rows of the version before. */
  readonly body: Buffer | null
  readonly sealed: Buffer | null
}

/** A charged answer that the caller did not get: each API format reports the fault in its own form. */
const FAULT_TYPE = 'application/vnd.tollgate.fault+json'

type StoredFault = Pick<FaultDetails, 'message' | 'vendorCode' | 'headers'> & { readonly kind: FaultName }

function storedFault(body: Buffer): Fault {
  const { kind, headers, ...details } = JSON.parse(body.toString()) as StoredFault // Written by `faultReplayOf`.
  return new Fault(kind, { ...details, headers: { ...headers, 'idempotent-replayed': 'true' } })
}

const sealedPlaceOf = (account: string, hold: string) => ({
  table: 'idempotency',
  row: `${account} ${hold}`,
  column: 'sealed',
})

/** Undefined: it was sealed under another secret. */
function opened(account: string, { hold, body, sealed }: StoredRow, sealer: ContentSealer): Buffer | undefined {
  return sealed ? sealer.open(sealedPlaceOf(account, hold), sealed) : (body ?? Buffer.alloc(0))
}

export async function replay(call: Replayable, { database, sealer }: Stores): Promise<undefined> {
  const account = call.principal.accountId
  const [row] = await database.query<StoredRow & { status: number | null; content_type: string }>(STORED, [
    account,
    call.idempotency!.key,
  ])
  if (!row || row.status === null)
    throw new Fault('conflict', {
      message: 'A request with this Idempotency-Key has just changed; try again.',
      retryAfterSeconds: 1,
    })
  const body = opened(account, row, sealer)
  if (!body)
    throw invalid(
      'The answer to this Idempotency-Key was encrypted under another TOLLGATE_SECRET and cannot be given again. Use another key.',
      'Idempotency-Key',
    )
  if (row.content_type === FAULT_TYPE) throw storedFault(body)
  call.out.send(row.status, { 'content-type': row.content_type, 'idempotent-replayed': 'true' }, body)
}

/** The charged answers of these keys, for background work. */
export async function storedAnswers(
  { database, sealer }: Stores,
  account: string,
  keys: readonly string[],
): Promise<readonly { key: string; hold: string; status: number; answer: Buffer | Fault }[]> {
  const rows = await database.query<StoredRow & { key: string; status: number; content_type: string }>(STORED_OF, [
    account,
    keys,
  ])
  return rows.flatMap((row) => {
    const body = opened(account, row, sealer)
    if (!body) return []
    const answer = row.content_type === FAULT_TYPE ? storedFault(body) : body
    return [{ key: row.key, hold: row.hold, status: row.status, answer }]
  })
}

/** Whether the call of this key has not ended. */
export async function runsWith(database: Database, account: string, key: string): Promise<boolean> {
  return (await database.query(RUNS, [account, key])).length > 0
}

/** Deletes what is stored under this internal key, once its call has ended. */
export async function dropStoredAnswer(database: Database, account: string, key: string): Promise<void> {
  await database.query(DROP, [account, key])
}

interface RepeatableCall {
  readonly principal: { readonly accountId: string }
  readonly idempotency?: Application['idempotency']
  readonly admitted: { readonly id: string }
}

interface WholeAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: () => Buffer | undefined
}

/**
 * The answer for a replay; undefined: there is no idempotency key, or the answer is too large to be stored with the
 * settlement.
 */
export function replayOf(
  call: RepeatableCall,
  { status, contentType, body }: WholeAnswer,
  sealer: ContentSealer,
): ReplayAnswer | undefined {
  if (!call.idempotency) return undefined
  const bytes = body()
  if (bytes === undefined || bytes.length > KEPT_BYTES_MAX) return undefined
  return { status, contentType, sealed: sealedFor(call, bytes, sealer) }
}

/** A repetition of a call that was charged but not delivered gets the same fault. */
export function faultReplayOf(call: RepeatableCall, fault: Fault, sealer: ContentSealer): ReplayAnswer | undefined {
  const { kind, status, message, details } = fault
  const { vendorCode, headers } = details
  const body = () => Buffer.from(JSON.stringify({ kind, message, vendorCode, headers }))
  return replayOf(call, { status, contentType: FAULT_TYPE, body }, sealer)
}

/** An answer that would otherwise be made again is stored before it is charged, whatever its size. */
export async function storeLargeReplay(
  call: RepeatableCall,
  answer: WholeAnswer,
  { database, sealer }: Stores,
): Promise<ReplayAnswer | undefined> {
  const { idempotency, principal, admitted } = call
  const { status, contentType, body } = answer
  if (!idempotency?.keepsAll) return undefined
  const bytes = body()
  await database.query(PUT, [principal.accountId, admitted.id, bytes ? sealedFor(call, bytes, sealer) : null])
  return { status, contentType }
}

function sealedFor({ principal, admitted }: RepeatableCall, bytes: Buffer, sealer: ContentSealer): Buffer {
  return sealer.seal(sealedPlaceOf(principal.accountId, admitted.id), bytes)
}

export async function pruneReplays(database: Database): Promise<void> {
  await pruneAll(database, PRUNE)
}

/** Counts the bytes of running streams; `carry` says whether there is room for more. */
interface Room {
  carry(bytes: number): boolean
}

/** A stream's bytes for a replay or a cache, as long as they are few enough to be stored. */
export class StreamCopy {
  readonly #room: Room | undefined
  readonly #bytesMax: number
  #pieces: Buffer[] = []
  #bytes = 0
  isOver = false

  constructor(room?: Room, bytesMax = KEPT_BYTES_MAX) {
    this.#room = room
    this.#bytesMax = bytesMax
  }

  push(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): void {
    if (this.isOver) return
    const bytes = bytesOf(piece, encoding)
    this.#bytes += bytes.length
    this.isOver = this.#bytes > this.#bytesMax || this.#room?.carry(bytes.length) === false
    if (this.isOver) this.#pieces = []
    else this.#pieces.push(bytes)
  }

  /** Undefined when there was too much. */
  whole(end: string): Buffer | undefined {
    this.push(end)
    return this.isOver ? undefined : Buffer.concat(this.#pieces)
  }
}
