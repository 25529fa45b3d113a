// Vendor credentials: from the environment variable that the catalog names, else sealed from the database. They are
// held in memory, so a call does not wait for them, and reloaded whenever one changes.

import type { Audit, By } from '../../database/audit.ts'
import type { Changes } from '../../database/changes.ts'
import { type Database, type Queryable, sql } from '../../database/database.ts'
import { type Secrets, seal, unseal } from '../../kernel/secret.ts'
import type { World } from '../../kernel/world.ts'

export type Credentials = Awaited<ReturnType<typeof openCredentials>>

const LIST = sql('credential_list')`select name, sealed from credential`
const STORE = sql('credential_store')`with old as (select updated_at from credential where name = $1)
   insert into credential (name, sealed) values ($1, $2)
   on conflict (name) do update set sealed = excluded.sealed, updated_at = now()
   returning (select updated_at from old) as stored_before`
const REMOVE = sql('credential_remove')`delete from credential where name = $1 returning name`

export async function openCredentials(options: {
  database: Database
  changes: Changes
  world: World
  audit: Audit
  secrets: Secrets
  /** The vendor keys of the environment, which come before stored ones. */
  environment: ReadonlyMap<string, string>
}) {
  const { database, changes, world, audit, environment } = options
  const key = options.secrets.key('credential')
  let stored = new Map<string, string>()
  let unreadable: string[] = []
  let asked = 0
  let taken = 0

  async function read(): Promise<void> {
    const turn = ++asked
    const rows = await database.query<{ name: string; sealed: Buffer }>(LIST)
    // Of two at once the later one has the newer values, whichever is answered first.
    if (turn < taken) return
    taken = turn
    const opened = rows.map(({ name, sealed }) => [name, unseal(key, placeOf(name), sealed)] as const)
    stored = new Map(opened.filter((entry): entry is readonly [string, string] => entry[1] !== undefined))
    unreadable = opened.filter(([, value]) => value === undefined).map(([name]) => name)
  }
  await read()
  changes.watch('credentials', read)

  /** Stores as part of another transaction; call `noticed` after its commit. */
  async function storeWith(tx: Queryable, name: string, value: string, by: By): Promise<void> {
    const [row] = await tx.query<{ stored_before: Date | null }>(STORE, [name, seal(key, placeOf(name), value, world)])
    await changes.bump(tx, 'credentials')
    // Of a secret, only whether there was one.
    await audit.write(tx, by, {
      action: 'credential.store',
      object: name,
      before: { value: row?.stored_before ? `one stored on ${row.stored_before.toISOString()}` : null },
      after: { value: 'a new one' },
    })
  }

  return {
    get: (name: string) => environment.get(name) ?? stored.get(name),
    source: (name: string): 'env' | 'stored' | 'none' =>
      environment.has(name) ? 'env' : stored.has(name) ? 'stored' : 'none',
    /** Names of credentials that are stored but sealed under another TOLLGATE_SECRET; they count as missing. */
    get unreadable(): readonly string[] {
      return unreadable
    },
    async store(name: string, value: string, by: By): Promise<void> {
      await database.transaction((tx) => storeWith(tx, name, value, by))
      await changes.notice('credentials')
    },
    storeWith,
    noticed: () => changes.notice('credentials'),
    /** Returns false if none was stored. */
    async remove(name: string, by: By): Promise<boolean> {
      const removed = await database.transaction(async (tx) => {
        const [row] = await tx.query(REMOVE, [name])
        if (!row) return false
        await changes.bump(tx, 'credentials')
        await audit.write(tx, by, {
          action: 'credential.remove',
          object: name,
          before: { stored: true },
          after: { stored: false },
        })
        return true
      })
      await changes.notice('credentials')
      return removed
    },
  }
}

/**
 * The sealing context (table, row, column and format version): a sealed value that is moved to another place cannot be
 * opened.
 */
function placeOf(name: string): string {
  return `credential|${name}|sealed|1`
}
