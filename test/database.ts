// A database of its own for each test file, on the server that test/run.ts started: a copy of one that has been
// migrated once, since copying takes a tenth of the time.
import pg from 'pg'
import { type Database, openDatabase } from '../src/database/database.ts'
import { migrate } from '../src/database/migrate.ts'
import type { EmbeddedConnection } from '../src/extensions/postgres/embedded.ts'
import { newId, realWorld } from '../src/kernel/world.ts'
import type { Ledger } from '../src/ledger/ledger.ts'
import { closing } from './started.ts'

/** Carries the server's connection from the runner to the test processes. */
export const SERVER_VARIABLE = 'TOLLGATE_TEST_SERVER'
/** The extensions that gateways of tests are started without. */

const TEMPLATE = 'tollgate_template'
const TEMPLATE_LOCK = 7_046_029_255

/** Of test gateways and ledgers: what is slow only because the machine is busy is waited for. */
export const WAIT_FACTOR = 4

export interface FreshDatabase extends AsyncDisposable {
  readonly connection: EmbeddedConnection
  /** The same as a DATABASE_URL, for processes that a test starts. */
  readonly url: string
  /** With the patience of tests. */
  open(options?: Partial<Parameters<typeof openDatabase>[0]>): Database & AsyncDisposable
  /** Ends whatever sessions are left. */
  drop(): Promise<void>
}

/** A new, migrated, empty database. */
export async function freshDatabase(): Promise<FreshDatabase> {
  return copyOf(await withServer(makeTemplate))
}

/** A new database without any table, for tests of the migrations. */
export async function emptyDatabase(): Promise<FreshDatabase> {
  return copyOf('template1')
}

/** The server of this run, connected to its maintenance database. */
export function testServer(): EmbeddedConnection {
  const text = process.env[SERVER_VARIABLE]
  if (!text) throw new Error('This test needs Postgres. Run it with: npm test -- <part of its path>')
  return { ...(JSON.parse(text) as EmbeddedConnection), database: 'postgres' }
}

async function copyOf(template: string): Promise<FreshDatabase> {
  const name = `test_${newId(realWorld)}`
  // Writing every page to the log as well costs fifteen times as much.
  await withServer((server) => server.query(`create database ${name} template ${template} strategy file_copy`))
  const connection = { ...testServer(), database: name }
  const password = connection.password === undefined ? '' : `:${encodeURIComponent(connection.password)}`
  const drop = async () =>
    void (await withServer((server) => server.query(`drop database if exists ${name} with (force)`)))
  return {
    connection,
    url: `postgres://${connection.user}${password}@${encodeURIComponent(connection.host)}:${connection.port}/${name}`,
    open: (options = {}) => closing(openDatabase({ connection, waitFactor: WAIT_FACTOR, ...options })),
    drop,
    [Symbol.asyncDispose]: drop,
  }
}

/** Several test files may ask at once: the first makes it, and marks it as a template when it is complete. */
async function makeTemplate(server: pg.Client): Promise<string> {
  await server.query('select pg_advisory_lock($1)', [TEMPLATE_LOCK])
  const { rowCount } = await server.query('select 1 from pg_database where datname = $1 and datistemplate', [TEMPLATE])
  if (rowCount) return TEMPLATE
  await server.query(`drop database if exists ${TEMPLATE} with (force)`)
  await server.query(`create database ${TEMPLATE}`)
  const database: Database = openDatabase({ connection: { ...testServer(), database: TEMPLATE }, connectionsMax: 1 })
  await migrate(database).finally(() => database.close())
  await server.query(`alter database ${TEMPLATE} is_template true`)
  return TEMPLATE
}

/** Its session ends with it, and so does any lock that it took. */
async function withServer<T>(run: (server: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(testServer())
  await client.connect()
  try {
    return await run(client)
  } finally {
    await client.end()
  }
}

/** For whoever looks into the tables: finds there what a ledger has answered before. */
export function bookedBefore({ database, ledger }: { database: Database; ledger: Pick<Ledger, 'posted'> }): Database {
  return {
    ...database,
    query: (async (statement, values) => {
      await ledger.posted()
      return database.query(statement, values)
    }) as Database['query'],
  }
}
