// Tollgate in full: a `serve` process on the embedded Postgres (fsync on), with accounts and keys made for the bench.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { digestOf, makeKey } from '../src/admission/api-key.ts'
import { type Database, openDatabase } from '../src/database/database.ts'
import { LEDGER_SCHEMAS } from '../src/database/tables.ts'
import { type Embedded, startEmbedded } from '../src/extensions/postgres/embedded.ts'
import { createSecrets } from '../src/kernel/secret.ts'
import { newId, realWorld as world } from '../src/kernel/world.ts'
import { LIMIT_NAMES, LIMITS, type LimitsView } from '../src/meter/limits.ts'
import { benchCatalog } from './catalog.ts'
import { freePort, start } from './process.ts'
import type { Target, TargetOptions } from './target.ts'

const SECRET = 'a secret for the bench, of more than thirty-two bytes'
const MANY_CREDITS = 1_000_000_000_000_000n
const ROOT = join(import.meta.dirname, '..')

export interface Account {
  readonly id: string
  readonly keyId: string
  readonly key: string
}

export interface Tollgate extends Target {
  readonly database: Database
  /** Where its accounts are: several databases, or that one. */
  readonly ledgers: readonly Database[]
  readonly databaseName: string
  /** From its start until it says that it is ready. */
  readonly readyMs: number
  /** New accounts, each with credits and a key, and the limits of `limits`. */
  accounts(count: number, options?: { credits?: bigint; limits?: LimitsView }): Promise<Account[]>
  /**
   * A new account with three budgets that no run can spend: of the key, a default of each user, and of each value of
   * the tag `feature`.
   */
  budgeted(): Promise<Account>
  headersOf(key: string): Record<string, string>
  /** What calls have waited for their holds so far, from the gateway's own figures. */
  holds(): Promise<{ readonly seconds: number; readonly count: number }>
}

/** The store that the gateways under test share; each has a database of its own in it. */
export function startStore(directory: string): Promise<Embedded> {
  return startEmbedded({ dataDirectory: join(directory, 'store'), log: () => undefined })
}

export async function startTollgate(
  options: TargetOptions & {
    store: Embedded
    name?: string
    workers?: number
    modelsMore?: number
    nodeOptions?: readonly string[]
    /** Another checkout than this one. */
    root?: string
    /** Of an earlier one, which is then started again. */
    databaseName?: string | undefined
    /** The balance of the account whose key its `headers` have. */
    credits?: bigint | undefined
    /** So many ledgers beside it, each a database of its own; absent: it is the only one. */
    ledgers?: number
  },
): Promise<Tollgate> {
  const name = options.name ?? 'Tollgate'
  const home = join(options.directory, name.toLowerCase().replaceAll(/\W+/g, '-'))
  mkdirSync(home, { recursive: true })
  const catalogFile = join(home, 'catalog.json')
  writeFileSync(catalogFile, JSON.stringify(benchCatalog(options, options.modelsMore)))
  const databaseName = options.databaseName ?? `bench_${newId(world)}`
  const ledgerNames = Array.from({ length: options.ledgers ?? 0 }, (_, n) => `${databaseName}_${n + 1}`)
  if (options.databaseName === undefined) {
    const admin = openDatabase({ connection: { ...options.store.connection }, connectionsMax: 1 })
    for (const made of [databaseName, ...ledgerNames]) await admin.query({ text: `create database ${made}` })
    await admin.close()
  }
  const { host, user, port: storePort, password } = options.store.connection
  const login = password === undefined ? user : `${user}:${encodeURIComponent(password)}`
  const addressOf = (database: string) => `postgres://${login}@${encodeURIComponent(host)}:${storePort}/${database}`
  const port = await freePort()
  const beganMs = world.elapsedMs()
  const started = await start(
    process.execPath,
    [...(options.nodeOptions ?? []), join(options.root ?? ROOT, 'src', 'main.ts'), 'serve'],
    {
      cores: options.cores,
      port,
      cwd: home,
      logFile: join(home, 'output.log'),
      env: {
        NODE_ENV: 'production',
        PORT: String(port),
        TOLLGATE_DATA: join(home, 'data'),
        // As `npm start`, the container and the service have it.
        NODE_COMPILE_CACHE: join(home, 'data', 'compile-cache'),
        TOLLGATE_SECRET: SECRET,
        TOLLGATE_CATALOG: catalogFile,
        TOLLGATE_WORKERS: String(options.workers ?? 1),
        ...(options.tls ? { NODE_EXTRA_CA_CERTS: options.tls.certificate } : {}),
        DATABASE_URL: addressOf(databaseName),
        TOLLGATE_LEDGERS: ledgerNames.map((ledger, n) => `l${n + 1}=${addressOf(ledger)}`).join(' '),
      },
    },
  )
  while (!(await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok)
    await new Promise((resolve) => setTimeout(resolve, 20))
  const readyMs = world.elapsedMs() - beganMs
  const open = (database: string, schemas?: string) =>
    openDatabase({
      // Filling a large store takes its time.
      connection: { ...options.store.connection, database, query_timeout: 0 },
      connectionsMax: 2,
      schemas,
    })
  const database = open(databaseName)
  const ledgers = ledgerNames.length > 0 ? ledgerNames.map((ledger) => open(ledger, LEDGER_SCHEMAS)) : [database]
  const pepper = createSecrets(SECRET).key('api-key')
  const headersOf = (key: string) => ({ Authorization: `Bearer ${key}` })

  async function accounts(
    count: number,
    { credits = MANY_CREDITS, limits = {} }: { credits?: bigint; limits?: LimitsView } = {},
  ): Promise<Account[]> {
    const made: Account[] = []
    const counted = LIMIT_NAMES.flatMap((name) => {
      const max = limits[name]
      return max === undefined ? [] : [{ name, unit: LIMITS[name].unit, span: LIMITS[name].span, max }]
    })
    for (let i = 0; i < count; i++)
      made.push({ id: `acc_${newId(world)}`, keyId: `key_${newId(world)}`, key: makeKey(world) })
    const share = Math.ceil(count / ledgers.length)
    for (let at = 0; at < count; at += Math.min(10_000, share)) {
      const some = made.slice(at, at + Math.min(10_000, share))
      const ids = some.map((account) => account.id)
      const database = ledgers[Math.floor(at / share)]! // Each has a share.
      await database.query(
        {
          text: `with made as (insert into account (id, name, posted) select x, 'bench', $2 from unnest($1::text[]) x)
            insert into transfer (id, account_id, kind, amount) select 'grant_' || x, x, 'grant', $2 from unnest($1::text[]) x`,
        },
        [ids, credits],
      )
      await database.query(
        {
          text: `insert into api_key (id, account_id, name, digest, prefix, last4)
            select k, a, 'bench', d, 'bench', 'last' from unnest($1::text[], $2::text[], $3::bytea[]) as x(k, a, d)`,
        },
        [some.map((account) => account.keyId), ids, some.map((account) => digestOf(pepper, account.key)) as object],
      )
      if (counted.length > 0)
        await database.query(
          {
            text: `insert into counter (account_id, scope, name, unit, span, max)
              select x, 'account', l.name, l.unit, l.span, l.max from unnest($1::text[]) x, jsonb_to_recordset($2::jsonb) as l(name text, unit text, span text, max bigint)`,
          },
          [ids, JSON.stringify(counted)],
        )
    }
    return made
  }

  const [first] = await accounts(1, options.credits === undefined ? {} : { credits: options.credits })
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
  return {
    ...started,
    readyMs,
    databaseName,
    name,
    version,
    port,
    headers: headersOf(first!.key),
    database,
    ledgers,
    accounts,
    async budgeted() {
      const [account] = await accounts(1)
      await database.query(
        {
          text: `with made as (insert into budget (account_id, id, name, scope, value, unit, span, max, hard)
              values ($1, 'bgt_1', 'Key', 'key', $2, 'credits', 'month', $3, true), ($1, 'bgt_2', 'Users', 'user', null, 'credits', 'day', $3, true),
                ($1, 'bgt_3', 'Features', 'tag:feature', null, 'requests', 'week', $3, true))
            update account set budgets = budgets + 1 where id = $1`,
        },
        [account!.id, account!.keyId, MANY_CREDITS],
      )
      return account!
    },
    headersOf,
    async holds() {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      const figure = (name: string) =>
        Number(new RegExp(`^tollgate_stage_seconds_${name}\\{stage="admit"\\} (.+)$`, 'm').exec(text)?.[1] ?? 0)
      return { seconds: figure('sum'), count: figure('count') }
    },
    async stop() {
      for (const one of new Set([database, ...ledgers])) await one.close()
      await started.stop()
    },
  }
}
