// Recordings of requests and answers, for accounts and keys with a recording policy. Recording does not delay the answer: bytes are collected in
// memory up to a limit, then redacted, encrypted and written later in batches. A recording that does not fit into memory is dropped and counted,
// and a killed process loses what it has not written. Nothing that concerns money reads recordings.

import type { ContentView } from '../admission/views.ts'
import { credentialsOf } from '../catalog/document.ts'
import type { CatalogStore } from '../catalog/store.ts'
import type { Credentials } from '../credentials/credentials.ts'
import type { Audit, By } from '../database/audit.ts'
import { type Database, plain, quoted, SHORT_MS, statement } from '../database/database.ts'
import { pruneAll } from '../database/prune.ts'
import type { Guardrails } from '../guardrails/chain.ts'
import type { Log } from '../kernel/log.ts'
import { redact, withoutCredentials } from '../kernel/redact.ts'
import type { ContentSealer } from '../kernel/secret.ts'
import { createBufferedWriter, sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { type Call, Recording } from './recording.ts'

export interface Recordings {
  /** Undefined: the memory limit is reached. */
  begin(call: Call): Recording | undefined
  /** Writes the waiting recordings. */
  flush(): Promise<void>
  /** Writes the waiting recordings for the last time. */
  close(): Promise<void>
  /** Calls that should have been recorded and were not. */
  readonly dropped: number
  has(account: string, requestId: string): Promise<boolean>
  /** The account of a recorded call, also while the recording waits to be written. */
  accountOf(requestId: string): Promise<string | undefined>
  /** Reads a recording and writes an audit entry. */
  read(account: string, requestId: string, by: By): Promise<ContentView | undefined>
  /** Deletes a recording for good, even one that is not written yet. False when there is none and none can come. */
  remove(account: string, requestId: string, by: By): Promise<boolean>
  /** Deletes expired recordings. */
  prune(): Promise<number>
}

/** Bytes of all recordings in memory, both in progress and waiting to be written. */
const HELD_BYTES_MAX = 64 * 1024 * 1024
const BATCH_CALLS = 16

const HAS = statement(
  'recording_has',
  'select 1 from recording where account_id = $1 and id = $2 and expires_at > now() and sealed is not null',
)
const WHOSE = statement('recording_whose', 'select account_id from recording where id = $1')
const READ = statement(
  'recording_read',
  'select sealed, at, expires_at from recording where account_id = $1 and id = $2 and expires_at > now() and sealed is not null',
)
// Any process may still be about to write this recording. An empty row stays for a day, so that the later insert conflicts and has no effect.
const REMOVE = statement(
  'recording_remove',
  `insert into recording (account_id, id, key_id, sealed, expires_at)
   select $1, $2, '', null, now() + interval '1 day'
   where exists (select 1 from recording_policy where account_id = $1) or exists (select 1 from recording where account_id = $1 and id = $2)
   on conflict (account_id, id) do update set sealed = null, expires_at = excluded.expires_at where recording.sealed is not null
   returning 1`,
)
// The share lock orders this insert against turning recording off: nothing is written after the recordings were deleted.
const PUT = statement(
  'recording_put',
  `with rules as materialized (
     select account_id, scope from recording_policy where account_id = any($1::text[]) for share
   )
   insert into recording (account_id, id, key_id, sealed, expires_at)
   select c.account_id, c.id, c.key_id, decode(c.sealed, 'hex'), now() + make_interval(days => c.days)
   from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int[]) as c(account_id, id, key_id, sealed, days)
   where exists (select 1 from rules r where r.account_id = c.account_id and r.scope in ('account', c.key_id))
   on conflict do nothing`,
  SHORT_MS,
)
const PRUNE = statement(
  'recording_prune',
  `with gone as (delete from recording where (account_id, id) in (select account_id, id from recording where expires_at < now() limit 500) returning 1)
   select count(*)::int as count from gone`,
)

interface Options {
  readonly database: Database
  readonly world: World
  readonly log: Log
  readonly audit: Audit
  readonly sealer: ContentSealer
  readonly catalog: Pick<CatalogStore, 'current'>
  readonly credentials: Pick<Credentials, 'get'>
  readonly guardrails: Guardrails
}

export function createRecordings({
  database,
  world,
  log,
  audit,
  sealer,
  catalog,
  credentials,
  guardrails,
}: Options): Recordings {
  const waiting: Recording[] = []
  const room = { left: HELD_BYTES_MAX }
  let dropped = 0

  /** The vendor credentials, which must not be stored if a vendor's answer contains them. */
  const known = () =>
    Object.values(catalog.current.document.vendors)
      .flatMap(credentialsOf)
      .flatMap(({ name }) => credentials.get(name) ?? [])

  /** Runs after the answer was sent, because it is slow for long texts. */
  function sealed(recording: Recording): Buffer {
    const { account, requestId } = recording.call
    const { document } = catalog.current
    // What is kept from vendors is not kept here either.
    const hidden = (text: string) => (document.guardrails ? guardrails.withoutSecrets(document, account, text) : text)
    const clean = (text: string) => withoutCredentials(redact(hidden(text), known()))
    return sealer.seal(placeOf(account, idOf(requestId)), JSON.stringify(recording.stored(clean)))
  }

  async function write(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH_CALLS)
      const bodies: string[] = []
      for (const recording of batch) {
        // Lets other calls run between two recordings.
        await sleep(world, 0)
        bodies.push(sealed(recording).toString('hex'))
      }
      const texts = (read: (recording: Recording) => string) => quoted(batch.map(read))
      await database.query(PUT, [
        texts(({ call }) => call.account),
        texts(({ call }) => idOf(call.requestId)),
        texts(({ call }) => call.key),
        quoted(bodies),
        plain(batch.map(({ call }) => call.rule.days)),
      ])
      waiting.splice(0, batch.length)
      for (const recording of batch) recording.free()
    }
  }

  const writing = createBufferedWriter({ world, log, write, failed: 'recordings could not be written and are retried' })

  return {
    begin(call) {
      if (room.left <= 0 || writing.closed) {
        dropped += 1
        return undefined
      }
      return new Recording(call, room, (recording) => {
        if (!recording.fits) {
          dropped += 1
          recording.free()
          return
        }
        waiting.push(recording)
        writing.soon()
      })
    },
    flush: writing.flush,
    close: writing.close,
    get dropped() {
      return dropped
    },
    has: async (account, requestId) => (await database.query(HAS, [account, idOf(requestId)])).length > 0,
    async accountOf(requestId) {
      const here = waiting.find(({ call }) => call.requestId === requestId)
      if (here) return here.call.account
      const [row] = await database.query<{ account_id: string }>(WHOSE, [idOf(requestId)])
      return row?.account_id
    },
    async read(account, requestId, by) {
      const [row] = await database.query<{ sealed: Buffer; at: Date; expires_at: Date }>(READ, [
        account,
        idOf(requestId),
      ])
      if (!row) return undefined
      const text = sealer.open(placeOf(account, idOf(requestId)), row.sealed)?.toString()
      if (text === undefined) return undefined
      await database.transaction((tx) =>
        audit.write(tx, by, { action: 'content.read', object: requestId, detail: { account } }),
      )
      const kept = JSON.parse(text) as Pick<ContentView, 'request' | 'answer'> // Only `sealed` writes this text.
      return { requestId, at: row.at.toISOString(), expiresAt: row.expires_at.toISOString(), ...kept }
    },
    remove: (account, requestId, by) =>
      database.transaction(async (tx) => {
        const rows = await tx.query(REMOVE, [account, idOf(requestId)])
        if (rows.length === 0) return false
        await audit.write(tx, by, { action: 'content.remove', object: requestId, detail: { account } })
        return true
      }),
    prune: () => pruneAll(database, PRUNE),
  }
}

const idOf = (requestId: string) => requestId.slice('req_'.length)

const placeOf = (account: string, id: string) => ({ table: 'content', row: `${account} ${id}`, column: 'sealed' })
