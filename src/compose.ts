// The only place that constructs things and hands them to each other.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { createApiKeys } from './admission/api-key.ts'
import { forgetOldAnswers } from './admission/idempotency.ts'
import { openCatalog } from './catalog/store.ts'
import type { Config } from './config.ts'
import { createChanges } from './database/changes.ts'
import { type Database, openDatabase } from './database/database.ts'
import { checkDurability, type Migrations, migrate } from './database/migrate.ts'
import { publicHandlers } from './http/public.ts'
import { mountApi } from './http/routes.ts'
import { createServer } from './http/server.ts'
import type { Log } from './kernel/log.ts'
import { createSecrets } from './kernel/secret.ts'
import { newId, type World } from './kernel/world.ts'
import { createLedger } from './ledger/ledger.ts'
import { createMonitor } from './pipeline/monitor.ts'
import type { PathDeps } from './pipeline/serve.ts'
import { createStreamWatch } from './pipeline/stream-watch.ts'
import { createVendors } from './routing/vendor.ts'
import { createUpstream } from './upstream/exchange.ts'

export interface GatewayOptions {
  readonly config: Config
  readonly world: World
  readonly log: Log
  readonly connection: pg.PoolConfig
  readonly secret: string
  readonly operatorToken: string
  /** Where the simulated vendors listen. */
  readonly sandboxUrl: () => string | undefined
}

const SWEEP_EVERY_MS = 5_000
const TIDY_EVERY_MS = 60_000

export type Gateway = Awaited<ReturnType<typeof createGateway>>

export async function readDefaultCatalog(): Promise<unknown> {
  return JSON.parse(await readFile(join(import.meta.dirname, 'catalog', 'default.json'), 'utf8'))
}

export async function createGateway(options: GatewayOptions) {
  const { config, world, log } = options
  const database = openDatabase({
    connection: options.connection,
    connectionsMax: config.TOLLGATE_DATABASE_CONNECTIONS,
    prepare: config.TOLLGATE_DATABASE_PREPARE,
  })
  const storeVersion = await checkDurability(database, config.TOLLGATE_ALLOW_UNSAFE_STORE)
  const migrations: Migrations = await migrate(database)
  const secrets = createSecrets(options.secret)
  const changes = createChanges(database, world)
  const catalog = await openCatalog({ database, changes, initial: await readDefaultCatalog() })
  const keys = createApiKeys({ database, changes, world, pepper: secrets.key('api-key') })
  await changes.start()

  const ledger = createLedger({ database, world, processId: `${newId(world)}` })
  await ledger.sweep()
  const upstream = createUpstream({ world })
  const vendors = createVendors(world)
  const monitor = createMonitor({ world, log })
  const watch = createStreamWatch(world)
  const path: PathDeps = {
    database,
    ledger,
    upstream,
    vendors,
    routes: { world, sandboxUrl: options.sandboxUrl, credential: config.credential },
    world,
    log,
    monitor,
    watch,
  }

  const app = createServer({ world, log, strictErrors: config.TOLLGATE_STRICT_ERRORS })
  let ready = true
  app.get('/healthz', () => ({ ok: true }))
  app.get('/readyz', async (_request, reply) => {
    const up =
      ready &&
      (await database.query({ text: 'select 1' }).then(
        () => true,
        () => false,
      ))
    return reply.code(up ? 200 : 503).send({ ready: up })
  })
  mountApi(app, {
    keys,
    handlers: publicHandlers({ catalog, path, database, strictErrors: config.TOLLGATE_STRICT_ERRORS }),
    strictErrors: config.TOLLGATE_STRICT_ERRORS,
    shed: () => {},
    unparsed: new Set(['images']),
  })

  const timers = [
    every(world, SWEEP_EVERY_MS, () => ledger.sweep(), log),
    every(world, TIDY_EVERY_MS, () => Promise.all([forgetOldAnswers(database), keys.flushLastUsed()]), log),
  ]

  return {
    app,
    database,
    ledger,
    catalog,
    monitor,
    vendors,
    storeVersion,
    migrations,
    /** Stops taking calls, lets the running ones end, and makes everything durable that was promised. */
    async close(): Promise<void> {
      ready = false
      await drain(app, () => monitor.running, config.TOLLGATE_DRAIN_SECONDS * 1000, world)
      for (const stop of timers) stop()
      changes.stop()
      watch.stop()
      await ledger.idle()
      await keys.flushLastUsed().catch(() => undefined)
      await upstream.close()
      await database.close()
    },
  }
}

async function drain(
  app: { close(): Promise<unknown>; server: import('node:http').Server },
  running: () => number,
  forMs: number,
  world: World,
): Promise<void> {
  const closed = app.close()
  const startedMs = world.elapsedMs()
  while (running() > 0 && world.elapsedMs() - startedMs < forMs)
    await new Promise<void>((resolve) => world.after(50, resolve))
  app.server.closeAllConnections()
  await closed
}

/** Repeats until stopped; a failure is logged and does not end the repetition. */
function every(world: World, intervalMs: number, run: () => Promise<unknown>, log: Log): () => void {
  let cancel: () => void = () => {}
  let stopped = false
  const schedule = () => {
    if (stopped) return
    cancel = world.after(intervalMs, () => {
      run()
        .catch((error: unknown) => log.warn({ error }, 'background work failed; it will be tried again'))
        .finally(schedule)
    })
  }
  schedule()
  return () => {
    stopped = true
    cancel()
  }
}

export type { Database }
