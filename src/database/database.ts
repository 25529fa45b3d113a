// The one way to Postgres: a pool, prepared statements and transactions. Int8 becomes bigint here and
// nowhere else. What fails because the server is away or busy becomes the fault `unavailable`, never another.
import pg from 'pg'
import { Fault } from '../kernel/fault.ts'
import { openPool, type TimedQuery } from './pool.ts'

const INT8 = 20
const POOL_WAITING_MAX = 1_000
/** For statements on which calls wait and which may be repeated: a server that vanished silently costs no more than this. */
export const SHORT_MS = 3_000

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
  /** How long its answer is waited for; 30 s where it says nothing. */
  readonly withinMs?: number
}

/** A transaction holds locks: how long it may wait for others', and how long it may be idle with its own. */
interface Patience {
  readonly locksMs: number
  readonly idleMs: number
}
/** Somebody waits for these, and others for their locks. Ends those of a process that stopped in the middle. */
const HASTY: Patience = { locksMs: 3_000, idleMs: 5_000 }
/** For what only reads, or has the database for itself. */
export const PATIENT: Patience = { locksMs: 0, idleMs: 0 }

export interface Database extends Queryable {
  transaction<T>(run: (tx: Queryable) => Promise<T>, patience?: Patience): Promise<T>
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

export function statement(name: string, text: string, withinMs?: number): Statement {
  return withinMs === undefined ? { name, text } : { name, text, withinMs }
}

export function openDatabase(options: DatabaseOptions): Database {
  const pool = openPool({ connection: options.connection, connectionsMax: options.connectionsMax ?? 16 })
  const prepare = options.prepare ?? true
  const run =
    (send: (query: pg.QueryConfig, withinMs?: number) => Promise<pg.QueryResult>) =>
    async ({ name, text, withinMs }: Statement, values: readonly Value[] = []) => {
      const query: pg.QueryConfig = { text, values: values as unknown[] }
      if (prepare && name) query.name = name
      try {
        return (await send(query, withinMs)).rows
      } catch (error) {
        throw asDatabaseFault(error)
      }
    }
  const query = run(pool.query)
  return {
    query: ((what, values) => {
      if (pool.waiting > POOL_WAITING_MAX)
        throw new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'pool is full' } })
      return query(what, values)
    }) as Database['query'],
    async transaction(work, patience = HASTY) {
      const client = await pool.take().catch((error: unknown) => {
        throw asDatabaseFault(error)
      })
      let lost: Error | undefined
      const send = (query: TimedQuery, withinMs = pool.queryMs) => {
        query.query_timeout = withinMs
        return client.query(query).catch((error: Error) => {
          if (pool.failed(error)) lost = error
          throw error
        })
      }
      const tx = { query: run(send) as Queryable['query'] }
      // The pool listens to idle connections only: one that is cut between two statements would end the process.
      client.on('error', ignore)
      try {
        // In one message, and for this transaction alone, so that it is so behind every pooler.
        await tx.query({ text: beginWith(patience) })
        const result = await work(tx)
        await tx.query({ text: 'commit' })
        client.off('error', ignore)
        client.release()
        return result
      } catch (error) {
        const broken = lost ?? (await rollBack(client))
        client.off('error', ignore)
        client.release(broken ?? false)
        throw error
      }
    },
    waiting: () => pool.waiting,
    close: pool.close,
  }
}

function beginWith({ locksMs, idleMs }: Patience): string {
  return `begin; set local lock_timeout = ${locksMs}; set local idle_in_transaction_session_timeout = ${idleMs}`
}

/** Answers why it could not be done. */
function rollBack(client: pg.PoolClient): Promise<Error | undefined> {
  const query: TimedQuery = { text: 'rollback', query_timeout: SHORT_MS }
  return client.query(query).then(
    () => undefined,
    (failure: Error) => failure,
  )
}

/** The next statement on the connection fails, and that is where it is told. */
function ignore(): void {}

/**
 * Server away, out of connections, shutting down, out of disk, read-only, timed out, locked; a password or a right that is being
 * changed, a pooler that lost a prepared statement: the caller may try again later.
 */
const AWAY = /^(08|26|28|3D|40|53|55P03|57|58|XX|25006|25P03|42501|42P05)/
/** What the statement's own values are to blame for. */
const REFUSED = /^(22|23|P0001)/

function asDatabaseFault(error: unknown): unknown {
  const code = sqlStateOf(error)
  if (code !== undefined && !AWAY.test(code)) return error
  if (error instanceof Fault) return error
  const told = code ?? (error as { code?: unknown }).code
  return new Fault('unavailable', { retryAfterSeconds: 1, internal: { why: 'database', code: told }, cause: error })
}

function sqlStateOf(error: unknown): string | undefined {
  const { code, severity } = (error instanceof Fault ? (error.cause ?? {}) : error) as {
    code?: unknown
    severity?: unknown
  }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && severity !== undefined ? code : undefined
}

/** Whether the address is to blame: a password, a user or a database that the server does not know. */
export function isUnknownThere(error: unknown): boolean {
  return /^(28|3D)/.test(sqlStateOf(error) ?? '')
}

/** Whether the same values would be refused again. */
export function isRefused(error: unknown): boolean {
  return REFUSED.test(sqlStateOf(error) ?? '')
}

/** Whether it waited in vain for a row that somebody else has locked. */
export function isLockWait(error: unknown): boolean {
  return sqlStateOf(error) === '55P03'
}

/** Whether a part of what was asked may be to blame, rather than the connection or the server: the rest might do. */
export function isOfAPart(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state !== undefined && (state.startsWith('XX') || !AWAY.test(state))
}

/** An array as one value, in the database's own words: for ids, numbers and booleans, which need no quotes. The driver's own way costs more for many. */
export function plain(values: ReadonlyArray<string | number | bigint | boolean>): string {
  return `{${values.join(',')}}`
}

export function quoted(values: ReadonlyArray<string | undefined>): string {
  return `{${values.map(quote).join(',')}}`
}

function quote(value: string | undefined): string {
  if (value === undefined) return 'NULL'
  return /["\\]/.test(value) ? `"${value.replaceAll(/["\\]/g, '\\$&')}"` : `"${value}"`
}
