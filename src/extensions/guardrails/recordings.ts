// Recordings of requests and answers, for accounts and keys with a recording policy. Recording does not delay the
// answer: bytes are collected in memory up to a limit, then redacted, encrypted and written later in batches. A
// recording that does not fit into memory is dropped and counted, and a killed process loses what it has not written.
// Nothing that concerns money reads recordings.

import { accountUnknown } from '../../admission/accounts.ts'
import { keyUnknown } from '../../admission/keys.ts'
import type { ContentRules, ContentView, RecordingPolicy } from '../../admission/views.ts'
import { credentialsOf } from '../../catalog/document.ts'
import type { CatalogStore } from '../../catalog/store.ts'
import type { Audit, By } from '../../database/audit.ts'
import type { Changes } from '../../database/changes.ts'
import { type Database, plain, type Queryable, quoted, SHORT_MS, sql } from '../../database/database.ts'
import { pruneAll } from '../../database/prune.ts'
import type { CoreParts } from '../../extension.ts'
import { redact, withoutCredentials, withoutFiles } from '../../kernel/redact.ts'
import { ownAccountOf, testAccountOf } from '../../kernel/test-account.ts'
import { createBufferedWriter, sleep } from '../../kernel/timers.ts'
import type { RecordedCall, Recorder, Recording } from '../../pipeline/hooks.ts'
import type { Credentials } from '../../upstream/credentials/credentials.ts'

import type { RuleGuards } from './chain.ts'

// The recording of one call: collects the bytes as they were sent, up to a limit, and truncates longer ones.

/**
 * The bytes collected of each body. Files and secrets are removed from them before the rest is truncated to the
 * policy's size.
 */
const GATHERED_BYTES_MAX = 524_288
/**
 * A secret that is cut in two at the end of a text would not be recognized, so the last characters before a cut are
 * never stored.
 */
const TAIL_CHARS = 256
/** The overhead of a call besides its bytes. Without it, many small bodies would use far more memory than the limit. */
const CALL_BYTES = 1_024

class Body {
  readonly #pieces: Buffer[] = []
  size = 0
  isCut = false

  /** Returns the number of bytes stored. It copies them, because a small piece may be part of a large buffer. */
  push(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): number {
    const room = GATHERED_BYTES_MAX - this.size
    const bytes = typeof piece === 'string' ? Buffer.from(piece.slice(0, room), encoding) : piece
    const taken = Buffer.from(bytes.subarray(0, room))
    if (taken.length < (typeof piece === 'string' ? Buffer.byteLength(piece, encoding) : piece.length))
      this.isCut = true
    if (taken.length > 0) this.#pieces.push(taken)
    this.size += taken.length
    return taken.length
  }

  text(clean: (text: string) => string, charsMax: number): { body: string; cut: boolean } {
    const whole = Buffer.concat(this.#pieces).toString('utf8')
    const words = withoutFiles(this.isCut ? whole.slice(0, -TAIL_CHARS) : whole)
    // Secrets are searched only in the part that is stored, because the search is slow in long texts.
    const seen = clean(words.slice(0, charsMax + TAIL_CHARS))
    const cut = this.isCut || words.length > charsMax + TAIL_CHARS || seen.length > charsMax
    return { body: seen.slice(0, charsMax).toWellFormed(), cut }
  }

  clear(): void {
    this.#pieces.length = 0
  }
}

const TEXT = /^(?:text\/|application\/(?:json|[\w.-]{1,60}\+json|x-ndjson))/

export class CallRecording implements Recording {
  readonly call: RecordedCall
  readonly #room: { left: number }
  readonly #done: (recording: CallRecording) => void
  readonly #request = new Body()
  readonly #answer = new Body()
  #status = 0
  #contentType = ''
  #taken = 0
  /** The length of an answer that is not text. */
  #unread = 0
  fits = true

  constructor(call: RecordedCall, room: { left: number }, done: (recording: CallRecording) => void) {
    this.call = call
    this.#room = room
    this.#done = done
    this.#taken = CALL_BYTES + call.path.length
    room.left -= this.#taken
  }

  asked(body: string | Buffer): void {
    this.#take(this.#request, body)
  }

  answers(status: number, contentType: string): void {
    this.#status = status
    this.#contentType = contentType
  }

  sent(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): void {
    if (TEXT.test(this.#contentType)) this.#take(this.#answer, piece, encoding)
    else this.#unread += piece.length
  }

  end(): void {
    this.#done(this)
  }

  stored(clean: (text: string) => string): Pick<ContentView, 'request' | 'answer'> {
    const { method, path, rule } = this.call
    const unread = { body: `[${this.#unread} bytes of ${this.#contentType || 'an unknown type'}]`, cut: true }
    const answer = this.#unread > 0 ? unread : this.#answer.text(clean, rule.maxBytes)
    return {
      request: { method, path: clean(path), ...this.#request.text(clean, rule.maxBytes) },
      answer: this.#status === 0 ? null : { status: this.#status, contentType: this.#contentType, ...answer },
    }
  }

  /** Returns its bytes to the shared limit. */
  free(): void {
    this.#room.left += this.#taken
    this.#taken = 0
    this.#request.clear()
    this.#answer.clear()
  }

  #take(into: Body, piece: string | Buffer, encoding?: 'latin1' | 'utf8'): void {
    if (!this.fits) return
    const taken = into.push(piece, encoding)
    this.#taken += taken
    this.#room.left -= taken
    if (this.#room.left >= 0) return
    this.fits = false
    this.free()
  }
}

export interface Recordings extends Omit<Recorder, 'ofAccount'> {
  begin(call: RecordedCall): CallRecording | undefined
  /** Writes the waiting recordings. */
  flush(): Promise<void>
  /** Writes the waiting recordings for the last time. */
  close(): Promise<void>
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

const HAS = sql('recording_has')`
  select 1 from recording where account_id = $1 and id = $2 and expires_at > now() and sealed is not null`
const WHOSE = sql('recording_whose')`select account_id from recording where id = $1`
const READ = sql('recording_read')`
  select sealed, at, expires_at from recording where account_id = $1 and id = $2 and expires_at > now() and sealed is not null`
// Any process may still be about to write this recording. An empty row stays for a day, so that the later insert
// conflicts and has no effect.
const REMOVE = sql('recording_remove')`insert into recording (account_id, id, key_id, sealed, expires_at)
   select $1, $2, '', null, now() + interval '1 day'
   where exists (select 1 from recording_policy where account_id = $1) or exists (select 1 from recording where account_id = $1 and id = $2)
   on conflict (account_id, id) do update set sealed = null, expires_at = excluded.expires_at where recording.sealed is not null
   returning 1`
// The share lock orders this insert against turning recording off: nothing is written after the recordings were
// deleted.
const PUT = sql('recording_put', SHORT_MS)`with rules as materialized (
     select account_id, scope from recording_policy where account_id = any($1::text[]) for share
   )
   insert into recording (account_id, id, key_id, sealed, expires_at)
   select c.account_id, c.id, c.key_id, decode(c.sealed, 'hex'), now() + make_interval(days => c.days)
   from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int[]) as c(account_id, id, key_id, sealed, days)
   where exists (select 1 from rules r where r.account_id = c.account_id and r.scope in ('account', c.key_id))
   on conflict do nothing`
const PRUNE = sql('recording_prune')`
  with gone as (delete from recording where (account_id, id) in (select account_id, id from recording where expires_at < now() limit 500) returning 1)
   select count(*)::int as count from gone`

export interface RecordingDeps extends Pick<CoreParts, 'database' | 'world' | 'log' | 'audit' | 'sealer'> {
  readonly catalog: Pick<CatalogStore, 'current'>
  readonly credentials: Pick<Credentials, 'get'>
  readonly guardrails: Pick<RuleGuards, 'withoutSecrets'>
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
}: RecordingDeps): Recordings {
  const waiting: CallRecording[] = []
  const room = { left: HELD_BYTES_MAX }
  let dropped = 0

  /** The vendor credentials, which must not be stored if a vendor's answer contains them. */
  const known = () =>
    Object.values(catalog.current.document.vendors)
      .flatMap(credentialsOf)
      .flatMap(({ name }) => credentials.get(name) ?? [])

  /** Runs after the answer was sent, because it is slow for long texts. */
  function sealed(recording: CallRecording): Buffer {
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
      const texts = (read: (recording: CallRecording) => string) => quoted(batch.map(read))
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
      return new CallRecording(call, room, (recording) => {
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

// Recording policies: which requests and answers are recorded. By default none are; an account's owner or an operator
// turns recording on for the account or for one key. A change is announced like a change of keys, because the cached
// keys carry the policy.

/** The scope of a policy for the whole account. */
const ACCOUNT = 'account'

const LIST = sql('content_rules')`
  select scope, days, bytes as "maxBytes" from recording_policy where account_id = any($1) order by account_id, scope`
const OF_ACCOUNT = sql('content_rule_of_account')`
  select days, bytes as "maxBytes" from recording_policy where account_id = $1 and scope = '${ACCOUNT}'`
const FIND = sql('content_rule_find')`
  select days, bytes as "maxBytes" from recording_policy where account_id = any($1) and scope = $2 limit 1 for update`
const COUNT = sql('content_count')`
  select count(*)::int as calls from recording where account_id = any($1) and expires_at > now() and sealed is not null`
const EXISTS = sql('content_account')`select 1 from account where id = $1`
const KEY = sql('content_key')`select account_id from api_key where id = $1 and account_id = any($2)`
const SET = sql('content_rule_set')`
  insert into recording_policy (account_id, scope, days, bytes) select x, $2, $3, $4 from unnest($1::text[]) x
   on conflict (account_id, scope) do update set days = excluded.days, bytes = excluded.bytes`
const UNSET = sql('content_rule_unset')`delete from recording_policy where account_id = any($1) and scope = $2`
// Recordings of other keys, and of keys with their own policy, do not belong to the removed policy and stay.
const REMOVE_POLICY = sql('content_remove_all')`with gone as (delete from recording where (account_id, id) in (
     select c.account_id, c.id from recording c where c.account_id = any($1) and case when $2 = '${ACCOUNT}'
       then not exists (select 1 from recording_policy r where r.account_id = c.account_id and r.scope = c.key_id) else c.key_id = $2 end
     limit 500) returning 1)
   select count(*)::int as count from gone`

export type RecordingPolicies = ReturnType<typeof createRecordingPolicies>

export function createRecordingPolicies(options: { database: Database; changes: Changes; audit: Audit }) {
  const { database, changes, audit } = options

  async function get(account: string): Promise<ContentRules> {
    const both = [account, testAccountOf(account)]
    const rows = await database.query<{ scope: string } & RecordingPolicy>(LIST, [both])
    const [stored] = await database.query<{ calls: number }>(COUNT, [both])
    const whole = rows.find(({ scope }) => scope === ACCOUNT)
    return {
      account: whole ? { days: whole.days, maxBytes: whole.maxBytes } : null,
      keys: rows.filter(({ scope }) => scope !== ACCOUNT).map(({ scope: key, ...rule }) => ({ key, ...rule })),
      storedCalls: stored?.calls ?? 0,
    }
  }

  /** The accounts of a policy, and its scope. */
  async function scopeOf(account: string, key: string | undefined): Promise<[accounts: string[], scope: string]> {
    const own = ownAccountOf(account)
    if ((await database.query(EXISTS, [own])).length === 0) throw accountUnknown()
    const both = [own, testAccountOf(own)]
    if (key === undefined) return [both, ACCOUNT]
    const [row] = await database.query<{ account_id: string }>(KEY, [key, both])
    if (!row) throw keyUnknown()
    return [[row.account_id], key]
  }

  async function changing(run: (tx: Queryable) => Promise<void>): Promise<void> {
    await database.transaction(async (tx) => {
      await changes.bump(tx, 'keys')
      await run(tx)
    })
    await changes.notice('keys')
  }

  return {
    get,
    /** The policy for calls of the account that are made without a key. */
    ofAccount: async (account: string): Promise<RecordingPolicy | undefined> =>
      (await database.query<RecordingPolicy>(OF_ACCOUNT, [account]))[0],
    /** Sets the policy for the account and its test account, or for one key of either. */
    async set(account: string, key: string | undefined, rule: RecordingPolicy, by: By): Promise<ContentRules> {
      const [accounts, scope] = await scopeOf(account, key)
      await changing(async (tx) => {
        const [before = {}] = await tx.query<RecordingPolicy>(FIND, [accounts, scope])
        await tx.query(SET, [accounts, scope, rule.days, rule.maxBytes])
        await audit.write(tx, by, {
          action: 'content.on',
          object: key ?? account,
          detail: { account, ...rule },
          before,
          after: rule,
        })
      })
      return get(account)
    },
    /** `remove`: also deletes the recordings at once. */
    async unset(account: string, key: string | undefined, remove: boolean, by: By): Promise<ContentRules> {
      const [accounts, scope] = await scopeOf(account, key)
      await changing(async (tx) => {
        const [before = {}] = await tx.query<RecordingPolicy>(FIND, [accounts, scope])
        await tx.query(UNSET, [accounts, scope])
        await audit.write(tx, by, {
          action: 'content.off',
          object: key ?? account,
          detail: { account, removed: remove },
          before,
          after: {},
        })
      })
      if (remove) await pruneAll(database, REMOVE_POLICY, [accounts, scope])
      return get(account)
    },
  }
}
