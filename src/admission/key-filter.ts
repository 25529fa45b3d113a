// Which keys exist, as far as four bytes of a digest can tell. While an address tries keys that nobody knows, this
// tells the keys of others behind the same address apart from guesses, without asking the database for each. It is
// loaded when it is first needed, and then at most once a second.
import { type Database, sql } from '../database/database.ts'
import type { World } from '../kernel/world.ts'

interface KeyFilter {
  /**
   * False: no such key existed a moment ago. True for all existing keys, and for one in thousands that do not exist (a
   * false positive).
   */
  has(digest: Buffer): boolean | Promise<boolean>
}

const LOAD = sql('key_filter')`select string_agg(substring(x.digest from 1 for 4), ''::bytea) as prints from (
     select digest from api_key where revoked_at is null or revoked_at > now()
     union all
     select digest from oauth_object where model = 'AccessToken' and (expires_at is null or expires_at > now())
   ) x`
const PRINT_BYTES = 4
const LOAD_EVERY_MS = 1_000
/** Of a very large table, loading takes no more than this part of the time. */
const LOAD_PART = 10

export function createKeyFilter(database: Database, world: World): KeyFilter {
  /** In order. */
  let prints: Uint32Array | undefined
  let nextMs = 0
  let loading: Promise<void> | undefined

  async function load(): Promise<void> {
    const startedMs = world.elapsedMs()
    const [row] = await database.query<{ prints: Buffer | null }>(LOAD)
    const bytes = row?.prints ?? Buffer.alloc(0)
    const read = new Uint32Array(bytes.length / PRINT_BYTES)
    for (let at = 0; at < read.length; at += 1) read[at] = bytes.readUInt32BE(at * PRINT_BYTES)
    prints = read.sort()
    const endedMs = world.elapsedMs()
    nextMs = endedMs + Math.max(LOAD_EVERY_MS, (endedMs - startedMs) * LOAD_PART)
  }

  function isAmong(print: number): boolean {
    if (!prints) return false
    let [from, to] = [0, prints.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((prints[middle] ?? 0) < print) from = middle + 1
      else to = middle
    }
    return prints[from] === print
  }

  return {
    has(digest) {
      const print = digest.readUInt32BE(0)
      if (isAmong(print)) return true
      if (prints && world.elapsedMs() < nextMs) return false
      loading ??= load().finally(() => {
        loading = undefined
      })
      return loading.then(() => isAmong(print))
    },
  }
}
