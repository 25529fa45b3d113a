// Tokens that live for an hour: renewed ahead of their end, by one process for all. While a renewal fails, the old
// token is used for as long as it is valid.
import { type Database, sql } from '../../database/database.ts'
import { type Secrets, seal, unseal } from '../../kernel/secret.ts'
import { sleep } from '../../kernel/timers.ts'
import type { World } from '../../kernel/world.ts'

export interface Token {
  readonly value: string
  readonly expiresMs: number
}

export type TokenCache = ReturnType<typeof createTokenCache>

interface Kept extends Token {
  readonly renewMs: number
}

interface Entry {
  kept?: Kept
  renewing?: Promise<Kept> | undefined
  /** After a failure: not before this time again. */
  retryMs: number
  failure?: unknown
  /** The last that a vendor refused, and when. */
  dropped?: { readonly value: string; readonly atMs: number }
}

/** Where all processes see the same token. */
type TokenStore = ReturnType<typeof createTokenStore>

/** A token is renewed this long before its end, or at four fifths of its life. */
const AHEAD_MS = 300_000
const AHEAD_PART = 0.2
/** Nobody is asked again sooner after a failure. */
const RETRY_MS = 5_000
/** A vendor that refuses every token must not have each call ask one. */
const DROP_MS = 30_000
const LOOK_MS = 200
/** As long as a claim holds, and a little more. */
const LOOKS_MAX = 150
const TOKENS_MAX = 10_000

export function createTokenCache({ world, store }: { world: World; store?: TokenStore | undefined }) {
  const entries = new Map<string, Entry>()

  async function renew(id: string, entry: Entry, ask: () => Promise<Token>): Promise<Kept> {
    // All processes see the same one: another may have replaced the one that was refused.
    const read = async () => {
      const found = await store?.read(id)
      return found?.value === entry.dropped?.value ? undefined : found
    }
    for (let looks = 0; store && looks < LOOKS_MAX; looks++) {
      const found = await read()
      if (found && found.renewMs > world.nowMs()) return found
      if (await store.claim(id)) break
      // Another process renews it. A token that still works is good enough meanwhile.
      if (found && found.expiresMs > world.nowMs()) return found
      await sleep(world, LOOK_MS)
    }
    try {
      // Whoever renewed it may have finished between the look and the claim.
      const found = await read()
      if (found && found.renewMs > world.nowMs()) {
        await store?.release(id)
        return found
      }
      const nowMs = world.nowMs()
      const token = await ask()
      const lifeMs = token.expiresMs - nowMs
      const kept = { ...token, renewMs: token.expiresMs - Math.min(AHEAD_MS, lifeMs * AHEAD_PART) }
      await store?.write(id, kept)
      return kept
    } catch (error) {
      await store?.release(id).catch(() => undefined)
      throw error
    }
  }

  function entryOf(id: string): Entry {
    const known = entries.get(id)
    if (known) return known
    // The oldest goes: it is read from the store again.
    const oldest = entries.size < TOKENS_MAX ? undefined : entries.keys().next().value
    if (oldest !== undefined) entries.delete(oldest)
    const entry: Entry = { retryMs: 0 }
    entries.set(id, entry)
    return entry
  }

  function begin(entry: Entry, id: string, ask: () => Promise<Token>): Promise<Kept> {
    entry.renewing ??= renew(id, entry, ask)
      .then(
        (kept) => {
          entry.kept = kept
          entry.failure = undefined
          // One that another process is about to renew is looked at again soon.
          entry.retryMs = kept.renewMs > world.nowMs() ? 0 : world.nowMs() + RETRY_MS
          return kept
        },
        (error: unknown) => {
          entry.failure = error
          entry.retryMs = world.nowMs() + RETRY_MS
          throw error
        },
      )
      .finally(() => {
        entry.renewing = undefined
      })
    return entry.renewing
  }

  return {
    /**
     * At once while it is fresh. `id` is a digest of the login and its credential; `ask` is called by one process at
     * a time.
     */
    get(id: string, ask: () => Promise<Token>): string | Promise<string> {
      const entry = entryOf(id)
      const nowMs = world.nowMs()
      const { kept } = entry
      if (kept && kept.renewMs > nowMs) return kept.value // The usual case.
      const isValid = kept !== undefined && kept.expiresMs > nowMs
      const mayAsk = entry.retryMs <= nowMs
      if (isValid) {
        if (mayAsk) begin(entry, id, ask).catch(() => undefined)
        return kept.value
      }
      if (!mayAsk && entry.failure !== undefined && !entry.renewing) return Promise.reject(entry.failure)
      return begin(entry, id, ask).then(({ value }) => value)
    },
    /** The vendor refuses a token before its end. True: the next `get` brings another. */
    drop(value: string): boolean {
      const entry = [...entries.values()].find(({ kept, dropped }) => kept?.value === value || dropped?.value === value)
      // Another call has dropped it already.
      if (entry?.dropped?.value === value) return entry.kept?.value !== value
      const nowMs = world.nowMs()
      if (!entry || (entry.dropped && entry.dropped.atMs > nowMs - DROP_MS)) return false
      entry.dropped = { value, atMs: nowMs }
      delete entry.kept
      entry.retryMs = 0
      return true
    },
  }
}

const READ = sql('login_token_read')`select sealed, renew_at, expires_at from login_token where id = $1`
const CLAIM = sql('login_token_claim')`
  insert into login_token (id, claimed_until) values ($1, now() + interval '25 seconds')
   on conflict (id) do update set claimed_until = excluded.claimed_until where login_token.claimed_until < now()
   returning id`
const WRITE = sql('login_token_write')`
  with gone as (delete from login_token where expires_at < now() - interval '1 day' and claimed_until < now())
   update login_token set sealed = $2, renew_at = $3, expires_at = $4, claimed_until = '-infinity' where id = $1`
const RELEASE = sql('login_token_release')`update login_token set claimed_until = '-infinity' where id = $1`

type SealedTokenRow = Readonly<Record<'renew_at' | 'expires_at', Date | null>> & { readonly sealed: Buffer | null }

export function createTokenStore(options: { database: Database; world: World; secrets: Secrets }) {
  const { database, world } = options
  const key = options.secrets.key('credential')
  // The sealing context (table, row, column and format version): a sealed value that is moved to another place cannot
  // be opened.
  const placeOf = (id: string) => `login_token|${id}|sealed|1`
  return {
    async read(id: string): Promise<Kept | undefined> {
      const [row] = await database.query<SealedTokenRow>(READ, [id])
      const value = row?.sealed ? unseal(key, placeOf(id), row.sealed) : undefined
      if (value === undefined || !row?.renew_at || !row.expires_at) return undefined
      return { value, renewMs: row.renew_at.getTime(), expiresMs: row.expires_at.getTime() }
    },
    /** True: this process renews it. */
    claim: async (id: string) => (await database.query(CLAIM, [id])).length > 0,
    /** Also ends the claim. */
    async write(id: string, { value, renewMs, expiresMs }: Kept): Promise<void> {
      const sealed = seal(key, placeOf(id), value, world)
      await database.query(WRITE, [id, sealed, new Date(renewMs), new Date(expiresMs)])
    },
    async release(id: string): Promise<void> {
      await database.query(RELEASE, [id])
    },
  }
}
