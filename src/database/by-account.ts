// What some accounts have, and most have not: read by account and on use, and kept for those that called last. Each
// process knows the ids of all that have any, so that the calls of others ask nothing, and learns of a change which
// account it is about (functions/account-change.sql).
import type { Changes } from './changes.ts'
import { type Database, sql } from './database.ts'

interface ByAccount<T> {
  readonly having: ReadonlySet<string>
  has(account: string): boolean
  /** Undefined: the account has none. */
  of(account: string): Promise<T> | undefined
}

const ACCOUNTS_MAX = 10_000

interface Source<T> {
  readonly topic: 'byok-keys' | 'tool-connections'
  readonly TABLE: string
  /** The account in a row; the operator's own have an empty one. */
  readonly ACCOUNT: string
  readonly read: (account: string) => Promise<T>
}

interface AccountOwnedRow {
  readonly account: string
  readonly has: boolean
  readonly version: bigint
}

export async function openByAccount<T>(
  { database, changes }: { readonly database: Database; readonly changes: Changes },
  { topic, TABLE, ACCOUNT, read }: Source<T>,
): Promise<ByAccount<T>> {
  const START = sql(`${TABLE}_accounts`)`select distinct ${ACCOUNT} as account, true as has,
       (select coalesce(max(version), 0) from account_change where topic = $1) as version
     from ${TABLE}`
  const CHANGED = sql(`${TABLE}_changed`)`
    select account_id as account, exists (select from ${TABLE} t where ${ACCOUNT} = c.account_id) as has, version
     from account_change c where topic = $1 and version > $2`
  const having = new Set<string>()
  /** Least recently used first. */
  const kept = new Map<string, Promise<T>>()
  let seen = -1n

  function take(rows: readonly AccountOwnedRow[]): void {
    // A reading that ends late says nothing about what a newer one has read.
    const news = rows.filter(({ version }) => version > seen)
    for (const { account, has, version } of news) {
      if (has) having.add(account)
      else having.delete(account)
      kept.delete(account)
      if (version > seen) seen = version
    }
  }
  changes.watch(topic, async () => take(await database.query<AccountOwnedRow>(CHANGED, [topic, seen])))
  take(await database.query<AccountOwnedRow>(START, [topic]))

  return {
    having,
    has: (account) => having.has(account),
    of(account) {
      if (!having.has(account)) return undefined
      const known = kept.get(account) ?? read(account)
      kept.delete(account)
      kept.set(account, known)
      // Whoever asks next tries again.
      known.catch(() => kept.get(account) === known && kept.delete(account))
      const [oldest] = kept.keys()
      if (kept.size > ACCOUNTS_MAX && oldest !== undefined) kept.delete(oldest)
      return known
    },
  }
}
