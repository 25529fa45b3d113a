// The command `migrate`, and the database of commands that need no gateway.
import type pg from 'pg'
import type { Config } from '../config.ts'
import { type Database, openDatabase } from '../database/database.ts'
import { migrate, planMigrations } from '../database/migrate.ts'
import { runningStore } from '../database/server/cluster.ts'
import { startEmbedded } from '../database/server/embedded.ts'

export type Say = (line: string) => void

export async function upgradeStore(
  config: Config,
  { plan }: { plan: boolean },
  say: Say,
  stop: AbortSignal,
): Promise<void> {
  await withStore(config, stop, async (database) => {
    for (const line of await planMigrations(database)) say(line)
    if (plan) return
    const { applied } = await migrate(database)
    say(`The database is at migration ${applied}.`)
  })
}

/**
 * Uses the configured server, the embedded database of a running gateway, or the embedded database started just for
 * this command.
 */
export async function withStore(
  config: Config,
  stop: AbortSignal,
  run: (database: Database) => Promise<void>,
): Promise<void> {
  const running = config.DATABASE_URL ? undefined : await runningStore(config.dataDirectory)
  const own =
    config.DATABASE_URL || running
      ? undefined
      : await startEmbedded({ dataDirectory: config.dataDirectory, log: () => undefined, stop })
  const connection: pg.PoolConfig = config.DATABASE_URL
    ? { connectionString: config.DATABASE_URL }
    : { ...(running ?? own!.connection) }
  const database = openDatabase({ connection, connectionsMax: 4 })
  try {
    await run(database)
  } finally {
    await database.close()
    await own?.stop()
  }
}
