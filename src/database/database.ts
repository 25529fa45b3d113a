// The one way to Postgres: a pool, prepared statements and transactions. Int8 becomes bigint here and
// nowhere else. What fails because the server is away or busy becomes the fault `unavailable`, never another.
import pg from 'pg'
import { Fault } from '../kernel/fault.ts'

const INT8 = 20
const POOL_WAITING_MAX = 1_000
const QUERY_MS_MAX = 30_000

type Row = Record<string, unknown>
export type Value =
  | string
  | number
  | bigint
  | boolean
  | Date
  | Buffer
  | null
  | readonly string[]
  | readonly bigint[]
  | object

export interface Queryable {
  /** `name` makes it a prepared statement; the text must then always be the same. */
  query<R = Row>(statement: Statement, values?: readonly Value[]): Promise<R[]>
}

export interface Statement {
  readonly name?: string
  readonly text: string
}

export interface Database extends Queryable {
  transaction<T>(run: (tx: Queryable) => Promise<T>): Promise<T>
  /** Calls that wait for a connection. */
  waiting(): number
  close(): Promise<void>
}

interface DatabaseOptions {
  readonly connection: pg.PoolConfig
  readonly connectionsMax?: number
  /** Off behind a pooler that cannot keep prepared statements. */
  readonly prepare?: boolean
}

pg.types.setTypeParser(INT8, (text) => BigInt(text))

export function statement(name: string, text: string): Statement {
  return { name, text }
}

export function openDatabase(options: DatabaseOptions): Database {
  const pool = new pg.Pool({
    max: options.connectionsMax ?? 16,
    connectionTimeoutMillis: 5_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    query_timeout: QUERY_MS_MAX,
    application_name: 'tollgate',
    ...options.connection,
  })
  // Without a listener an idle connection that the server closes would end the process.
  pool.on('error', () => {})
  const prepare = options.prepare ?? true
  const run =
    (client: pg.Pool | pg.PoolClient) =>
    async (what: Statement, values: readonly Value[] = []) => {
      try {
        const query = prepare && what.name ? { name: what.name, text: what.text } : { text: what.text }
        const result = await client.query({ ...query, values: values as unknown[] })
        return result.rows
      } catch (error) {
        throw asDatabaseFault(error)
      }
    }
  const query = run(pool)
  return {
    query: ((what, values) => {
      if (pool.waitingCount > POOL_WAITING_MAX)
        throw new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'pool is full' } })
      return query(what, values)
    }) as Database['query'],
    async transaction(work) {
      const client = await pool.connect().catch((error: unknown) => {
        throw asDatabaseFault(error)
      })
      const tx = { query: run(client) as Queryable['query'] }
      // The pool listens to idle connections only: one that is cut between two statements would end the process.
      client.on('error', ignore)
      try {
        await tx.query({ text: 'begin' })
        const result = await work(tx)
        await tx.query({ text: 'commit' })
        client.off('error', ignore)
        client.release()
        return result
      } catch (error) {
        const broken = await client.query('rollback').then(
          () => undefined,
          (failure: Error) => failure,
        )
        client.off('error', ignore)
        client.release(broken ?? false)
        throw error
      }
    },
    waiting: () => pool.waitingCount,
    close: () => pool.end(),
  }
}

/** The next statement on the connection fails, and that is where it is told. */
function ignore(): void {}

/** Server away, out of connections, shutting down, out of disk, read-only, timed out: the caller may try again later. */
const AWAY = /^(08|53|57|58|XX|25006|40)/

function asDatabaseFault(error: unknown): unknown {
  const code = (error as { code?: unknown }).code
  const isSqlState =
    typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && (error as { severity?: unknown }).severity !== undefined
  if (isSqlState && !AWAY.test(code)) return error
  if (error instanceof Fault) return error
  return new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'database', code }, cause: error })
}
