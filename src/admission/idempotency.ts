// Same account, same Idempotency-Key, same request within a day: the stored answer again, and no second effect.
import { createHash } from 'node:crypto'
import { type Database, statement } from '../database/database.ts'
import { removeAll } from '../database/housekeeping.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import type { Keep } from '../ledger/operation.ts'
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

const STORED = statement(
  'idempotency_stored',
  'select status, content_type, body from idempotency where account_id = $1 and key = $2',
)
const STORED_OF = statement(
  'idempotency_stored_of',
  'select key, hold_id as hold, status, body from idempotency where account_id = $1 and key = any($2) and status is not null',
)
/** Large, and alone: nobody else's settlement waits for it. It counts when the settlement has said its status. */
const PUT = statement(
  'idempotency_put',
  'update idempotency set body = $3 where account_id = $1 and hold_id = $2 and status is null',
)
const FORGET = statement(
  'idempotency_forget',
  `with gone as (
     delete from idempotency where (account_id, key) in (
       select account_id, key from idempotency where created_at < now() - interval '24 hours' and (status is not null or freed) limit 2000)
     returning 1
   ) select count(*)::int as count from gone`,
)

interface Replayable {
  readonly principal: { readonly accountId: string }
  readonly idempotency?: { readonly key: string } | undefined
  readonly out: { send(status: number, headers: Record<string, string>, body: Buffer): void }
}

export async function replay(call: Replayable, database: Database): Promise<undefined> {
  const [row] = await database.query<{ status: number | null; content_type: string; body: Buffer }>(STORED, [
    call.principal.accountId,
    call.idempotency!.key,
  ])
  if (!row || row.status === null)
    throw new Fault('conflict', {
      message: 'A request with this Idempotency-Key has just changed; try again.',
      retryAfterSeconds: 1,
    })
  call.out.send(row.status, { 'content-type': row.content_type, 'idempotent-replayed': 'true' }, row.body)
}

/** What was paid for with these keys, for somebody who will not call again. */
export function storedAnswers(
  database: Database,
  account: string,
  keys: readonly string[],
): Promise<readonly { key: string; hold: string; status: number; body: Buffer }[]> {
  return database.query(STORED_OF, [account, keys])
}

interface Keeping {
  readonly principal: { readonly accountId: string }
  readonly idempotency?: Application['idempotency']
  readonly admitted: { readonly id: string }
}

interface WholeAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: () => Buffer | undefined
}

/** What a replay will answer with; undefined: nobody can ask for one, or it is too much to go with the settlement. */
export function keepOf({ idempotency }: Keeping, { status, contentType, body }: WholeAnswer): Keep | undefined {
  if (!idempotency) return undefined
  const bytes = body()
  return bytes === undefined || bytes.length > KEPT_BYTES_MAX ? undefined : { status, contentType, body: bytes }
}

/** What would be made again is there, however large, before it is paid for. */
export async function keepLarge(call: Keeping, answer: WholeAnswer, database: Database): Promise<Keep | undefined> {
  const { idempotency, principal, admitted } = call
  const { status, contentType, body } = answer
  if (!idempotency?.keepsAll) return undefined
  await database.query(PUT, [principal.accountId, admitted.id, body() ?? null])
  return { status, contentType }
}

export async function forgetOldAnswers(database: Database): Promise<void> {
  await removeAll(database, FORGET)
}

/** Where the bytes of streams are counted that are under way; `carry` says whether there is room for so many more. */
interface Room {
  carry(bytes: number): boolean
}

/** A stream's bytes for a replay or a cache, as long as they are few enough to be stored. */
export class KeptStream {
  readonly #room: Room | undefined
  #pieces: Buffer[] = []
  #bytes = 0
  isOver = false

  constructor(room?: Room) {
    this.#room = room
  }

  push(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): void {
    if (this.isOver) return
    const bytes = bytesOf(piece, encoding)
    this.#bytes += bytes.length
    this.isOver = this.#bytes > KEPT_BYTES_MAX || this.#room?.carry(bytes.length) === false
    if (this.isOver) this.#pieces = []
    else this.#pieces.push(bytes)
  }

  /** Undefined when there was too much. */
  whole(end: string): Buffer | undefined {
    this.push(end)
    return this.isOver ? undefined : Buffer.concat(this.#pieces)
  }
}
