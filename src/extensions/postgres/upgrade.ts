// The command `migrate`, and the databases of commands that need no gateway.
import type pg from 'pg'
import type { Config } from '../../config.ts'
import { type Database, openDatabase } from '../../database/database.ts'
import { type Migrations, migrate, planMigrations } from '../../database/migrate.ts'
import { LEDGER_SCHEMAS } from '../../database/tables.ts'
import { runningStore } from './cluster.ts'
import { startEmbedded } from './embedded.ts'
import { installationOf, readLedgers } from './ledgers.ts'
import { prepareLedger } from './mount.ts'

export type Say = (line: string) => void

/** The control database, or a ledger. */
export interface Store {
  readonly name: string
  readonly database: Database
  /** Of a ledger: brings its tables up to date, with those of control in their place. */
  readonly mount?: () => Promise<Migrations>
}

/** Control first. */
type Stores = readonly [Store, ...Store[]]

export async function upgradeStore(
  config: Config,
  { plan }: { plan: boolean },
  say: Say,
  stop: AbortSignal,
): Promise<void> {
  await withStores(config, stop, async (stores) => {
    for (const { name, database, mount } of stores) {
      const where = stores.length > 1 ? `${name}: ` : ''
      for (const line of await planMigrations(database)) say(`${where}${line}`)
      if (plan) continue
      const { applied } = await (mount?.() ?? migrate(database))
      say(`${where}The database is at migration ${applied}.`)
    }
  })
}

/**
 * Uses the configured servers, the embedded database of a running gateway, or the embedded database started just for
 * this command. Nothing begins before all of them answer.
 */
export async function withStores(
  config: Config,
  stop: AbortSignal,
  run: (stores: Stores) => Promise<void>,
): Promise<void> {
  const running = config.DATABASE_URL ? undefined : await runningStore(config.dataDirectory)
  const own =
    config.DATABASE_URL || running
      ? undefined
      : await startEmbedded({ dataDirectory: config.dataDirectory, log: () => undefined, stop })
  const connection: pg.PoolConfig = config.DATABASE_URL
    ? { connectionString: config.DATABASE_URL, password: config.environment('PGPASSWORD') }
    : { ...(running ?? own!.connection) }
  const database = openDatabase({ connection, connectionsMax: 4 })
  const stores: [Store, ...Store[]] = [{ name: 'control', database }]
  try {
    for (const [name, { url }] of await readLedgers(database, config.TOLLGATE_SECRET ?? '', config.TOLLGATE_LEDGERS)) {
      const there = { connectionString: url }
      stores.push({
        name,
        database: openDatabase({ connection: there, connectionsMax: 4, schemas: LEDGER_SCHEMAS }),
        mount: async () =>
          prepareLedger(there, { connection, ledger: name, installation: await installationOf(database) }),
      })
    }
    for (const one of stores)
      await one.database.query({ text: 'select 1' }).catch((error: Error) => {
        const said = (error.cause as Error | undefined)?.message ?? error.message // What the driver threw.
        throw stores.length === 1
          ? error
          : new Error(`The database of ${one.name} does not answer (${said}). Nothing was done in any of them.`)
      })
    await run(stores)
  } finally {
    await Promise.all(stores.map((one) => one.database.close()))
    await own?.stop()
  }
}
