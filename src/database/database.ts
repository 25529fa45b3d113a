// The one way to Postgres: a pool, prepared statements and transactions. Int8 becomes bigint here and nowhere else. An
// error because the server is away or busy becomes the fault `unavailable`, and no other.
import pg from 'pg'
import { Fault } from '../kernel/fault.ts'
import { realWorld } from '../kernel/world.ts'
import { openPool, type TimedQuery } from './pool.ts'

const INT8 = 20
/**
 * Timeout for repeatable statements that calls wait for: a server that vanished silently delays a call by no more than
 * this.
 */
export const SHORT_MS = 3_000

type DatabaseRow = Record<string, unknown>
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
  /** With a `name` it is a prepared statement; its text must then always be the same. */
  query<R = DatabaseRow>(statement: Statement, values?: readonly Value[]): Promise<R[]>
}

export interface Statement {
  readonly name?: string
  readonly text: string
  /** Timeout of the statement; 30 s by default. */
  readonly withinMs?: number
}

/** Limits of a transaction: how long it may wait for locks, and how long it may be idle while it holds its own. */
interface Patience {
  readonly locksMs: number
  readonly idleMs: number
}
/**
 * For transactions that callers wait for and whose locks others wait for. The idle limit ends transactions of a process
 * that stopped in the middle.
 */
const HASTY: Patience = { locksMs: 3_000, idleMs: 5_000 }
/** No limits: for read-only work, or work that has the database for itself. */
export const PATIENT: Patience = { locksMs: 0, idleMs: 0 }

export interface Database extends Queryable {
  transaction<T>(run: (tx: Queryable) => Promise<T>, patience?: Patience): Promise<T>
  /**
   * For a statement that no transaction may contain and that waits for others as long as it takes. Its connection is
   * not used again.
   */
  outside(text: string): Promise<void>
  /** The number of queries that wait for a connection. */
  waiting(): number
  /** Has every statement timed from now on, by kind: those of the ledger each by its name, the others together. */
  measure(observe: (kind: string, seconds: number) => void): void
  close(): Promise<void>
}

const LAST = new WeakMap<Queryable, Array<() => Promise<void>>>()

/**
 * Puts something off to the end of the transaction that `tx` is of: what waits for a lock that all share. Taken last by
 * everybody, it cannot be part of a deadlock, and is held for no longer than the commit takes.
 */
export function beforeCommit(tx: Queryable, run: () => Promise<void>): void {
  const last = LAST.get(tx)
  if (!last) throw new Error('There is no transaction whose end could be waited for.')
  last.push(run)
}

/** The work of a transaction, and then what it put off. */
export async function withLast<T>(tx: Queryable, work: (tx: Queryable) => Promise<T>): Promise<T> {
  const last: Array<() => Promise<void>> = []
  LAST.set(tx, last)
  const result = await work(tx)
  LAST.delete(tx)
  for (const run of last) await run()
  return result
}

interface DatabaseOptions {
  readonly connection: pg.PoolConfig
  readonly connectionsMax?: number
  /** False behind a pooler that does not support prepared statements. */
  readonly prepare?: boolean
  /** How many times as long as usual it waits for the server: for a machine that is busy with tests. */
  readonly waitFactor?: number
  /** Where names of tables are looked up; without it, as the server says. */
  readonly schemas?: string | undefined
}

pg.types.setTypeParser(INT8, (text) => BigInt(text))

export function statement(name: string, text: string, withinMs?: number): Statement {
  return withinMs === undefined ? { name, text } : { name, text, withinMs }
}

/** A statement as it is written. Only constants are put into it. */
export const sql =
  (name: string, withinMs?: number) =>
  (texts: TemplateStringsArray, ...parts: readonly (string | number)[]): Statement =>
    statement(name, String.raw({ raw: texts }, ...parts).trim(), withinMs)

export function openDatabase(options: DatabaseOptions): Database {
  const { connection, connectionsMax = 16, waitFactor = 1, schemas } = options
  const pool = openPool({ connection, connectionsMax, waitFactor, schemas })
  const prepare = options.prepare ?? true
  let observe: Parameters<Database['measure']>[0] | undefined
  const run =
    (send: (query: pg.QueryConfig, withinMs?: number) => Promise<pg.QueryResult>) =>
    async ({ name, text, withinMs }: Statement, values: readonly Value[] = []) => {
      const query: pg.QueryConfig = { text, values: values as unknown[] }
      if (prepare && name) query.name = name
      const startedMs = realWorld.elapsedMs()
      try {
        return (await send(query, withinMs === undefined ? undefined : waitFactor * withinMs)).rows
      } catch (error) {
        throw asDatabaseFault(error)
      } finally {
        observe?.(name?.startsWith('ledger_') ? name : 'other', (realWorld.elapsedMs() - startedMs) / 1000)
      }
    }
  return {
    query: run(pool.query) as Database['query'],
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
      // The pool listens for errors of idle connections only. Without this listener, a connection cut between two
      // statements would crash the process.
      client.on('error', ignore)
      try {
        // Sent in one message and with `set local`, so that it works behind every pooler.
        await tx.query({ text: beginWith(patience) })
        const result = await withLast(tx, work)
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
    async outside(text) {
      const client = await pool.take().catch((error: unknown) => {
        throw asDatabaseFault(error)
      })
      client.on('error', ignore)
      const query: TimedQuery = { text, query_timeout: 0 }
      try {
        await client.query('set lock_timeout = 0')
        await client.query(query)
      } catch (error) {
        throw asDatabaseFault(error)
      } finally {
        client.release(true)
      }
    },
    waiting: pool.waiting,
    measure(by) {
      observe = by
    },
    close: pool.close,
  }
}

function beginWith({ locksMs, idleMs }: Patience): string {
  return `begin; set local lock_timeout = ${locksMs}; set local idle_in_transaction_session_timeout = ${idleMs}`
}

/** Returns the error if the rollback failed. */
function rollBack(client: pg.PoolClient): Promise<Error | undefined> {
  const query: TimedQuery = { text: 'rollback', query_timeout: SHORT_MS }
  return client.query(query).then(
    () => undefined,
    (failure: Error) => failure,
  )
}

/** The error can be ignored here: the next statement on the connection fails and reports it. */
function ignore(): void {}

/**
 * SQL states of temporary failures, after which the caller may retry: server away, out of connections, shutting down,
 * out of disk, read-only, timed out, locked; a password or permission that is being changed, a pooler that lost a
 * prepared statement.
 */
const AWAY = /^(08|26|28|3D|40|53|55P03|57|58|XX|25006|25P03|42501|42P05)/
/** SQL states caused by the statement's own values. */
const REFUSED = /^(22|23|P000[12])/

function asDatabaseFault(error: unknown): unknown {
  const code = sqlStateOf(error)
  if (code !== undefined && !AWAY.test(code)) return error
  if (error instanceof Fault) return error
  return new Fault('unavailable', {
    retryAfterSeconds: 1,
    internal: { why: 'database', ...serverErrorOf(error) },
    cause: error,
  })
}

/**
 * The SQL state and the server's message, for the log. Messages of temporary failures name files, roles and limits;
 * those about data may repeat a value, so of these only the state is told.
 */
export function serverErrorOf(error: unknown): { readonly code: string; readonly message: string } {
  const state = sqlStateOf(error)
  const cause = (error instanceof Fault ? error.cause : error) as { code?: unknown; message?: unknown } | undefined
  const isAboutData = state !== undefined && !AWAY.test(state)
  return {
    code: state ?? (typeof cause?.code === 'string' ? cause.code : 'none'),
    message: isAboutData ? '' : String(cause?.message ?? error),
  }
}

function sqlStateOf(error: unknown): string | undefined {
  const { code, severity } = (error instanceof Fault ? (error.cause ?? {}) : error) as {
    code?: unknown
    severity?: unknown
  }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && severity !== undefined ? code : undefined
}

/** Whether it answers a query soon. */
export function databaseAnswers(database: Queryable): Promise<boolean> {
  return database.query({ text: 'select 1', withinMs: SHORT_MS }).then(
    () => true,
    () => false,
  )
}

/** Whether a unique index has the value already: two came at once. */
export function isTaken(error: unknown): boolean {
  return sqlStateOf(error) === '23505'
}

/** Whether the server does not know the address's user, password or database. */
export function isUnknownThere(error: unknown): boolean {
  return /^(28|3D)/.test(sqlStateOf(error) ?? '')
}

/** Whether a pooler gave the statement to a connection that does not know it. */
export function isUnprepared(error: unknown): boolean {
  return /^(26000|42P05)$/.test(sqlStateOf(error) ?? '')
}

/** Whether the same values would be rejected again. */
export function isRefused(error: unknown): boolean {
  return REFUSED.test(sqlStateOf(error) ?? '')
}

/** Whether the account is not here: it has moved to another database. */
export function hasMoved(error: unknown): boolean {
  return sqlStateOf(error) === 'P0002'
}

/** Whether the statement timed out waiting for a lock. */
export function isLockWait(error: unknown): boolean {
  return sqlStateOf(error) === '55P03'
}

/**
 * Whether a single row of a batch may have caused the error, rather than the connection or the server. The other rows
 * may then succeed.
 */
export function isOfAPart(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state !== undefined && (state.startsWith('XX') || !AWAY.test(state))
}

/**
 * An array as one Postgres literal, for ids, numbers and booleans, which need no quotes. The driver's own conversion is
 * slower for many values.
 */
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
