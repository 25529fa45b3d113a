// Reads the database of another gateway, and never writes to it: Postgres by its address, SQLite by its file. Its
// content is untrusted, so the number of rows and bytes is checked before they are read into memory.

import { stat } from 'node:fs/promises'
import { addressProblem, withoutPassword } from '../../database/address.ts'
import { type Database, PATIENT, type Statement } from '../../database/database.ts'
import { isObject } from '../../kernel/json.ts'
import { ImportProblem } from './report.ts'

export type ForeignRow = Readonly<Record<string, unknown>>

export interface ForeignSource {
  /** Undefined if there is no such table. */
  rows(table: ForeignTable): Promise<readonly ForeignRow[] | undefined>
  close(): Promise<void>
}

const ROWS_MAX = 100_000
const ROW_BYTES_MAX = 4 * 1024 * 1024
const TABLE_BYTES_MAX = 256 * 1024 * 1024

/** Every table that may be read, with its name in SQL. */
const TABLES = {
  LiteLLM_VerificationToken: '"LiteLLM_VerificationToken"',
  LiteLLM_TeamTable: '"LiteLLM_TeamTable"',
  LiteLLM_UserTable: '"LiteLLM_UserTable"',
  LiteLLM_BudgetTable: '"LiteLLM_BudgetTable"',
  LiteLLM_ProxyModelTable: '"LiteLLM_ProxyModelTable"',
  LiteLLM_EndUserTable: '"LiteLLM_EndUserTable"',
  channels: '"channels"',
  options: '"options"',
  tokens: '"tokens"',
  users: '"users"',
} as const
type ForeignTable = keyof typeof TABLES

/** Takes `postgres://…` or the path of an SQLite file. */
export async function openSource(where: string): Promise<ForeignSource> {
  if (/^postgres(ql)?:/.test(where)) return openPostgres(where)
  const file = await stat(where).catch(() => undefined)
  if (!file?.isFile())
    throw new ImportProblem(`${withoutRest(where)} is neither a file nor an address such as postgres://…`, {
      isUsage: true,
    })
  return openSqlite(where)
}

/** Hides the rest of an address of an unsupported kind, which may contain a password. */
const withoutRest = (where: string) => (/[:@]/.test(where) ? `${where.slice(0, where.search(/[:@]/))}:…` : where)

async function openPostgres(url: string): Promise<ForeignSource> {
  const problem = addressProblem(url)
  if (problem) throw new ImportProblem(`--database ${problem}.`, { isUsage: true })
  // Loaded only here, so that other commands start faster.
  const { openDatabase } = await import('../../database/database.ts')
  const database = openDatabase({ connection: { connectionString: url }, connectionsMax: 1, prepare: false })
  return {
    rows: (table) =>
      readPostgres(database, table).catch((error: unknown) => {
        if (error instanceof ImportProblem) throw error
        throw new ImportProblem(`${withoutPassword(url).text} cannot be read: ${reasonOf(error)}.`)
      }),
    close: () => database.close(),
  }
}

const THERE: Statement = { text: 'select to_regclass($1) is not null as there' }

async function readPostgres(database: Database, table: ForeignTable): Promise<readonly ForeignRow[] | undefined> {
  const TABLE = TABLES[table]
  return database.transaction(async (tx) => {
    await tx.query({ text: 'set transaction read only' })
    const [{ there } = { there: false }] = await tx.query<{ there: boolean }>(THERE, [TABLE])
    if (!there) return undefined
    const [size] = await tx.query<{ rows: bigint; bytes: bigint; longest: bigint }>({
      text: `select count(*) as rows, coalesce(sum(octet_length(t::text)), 0)::bigint as bytes, coalesce(max(octet_length(t::text)), 0)::bigint as longest
       from (select * from ${TABLE} limit ${ROWS_MAX + 1}) t`,
    })
    if (!size || size.rows > ROWS_MAX || size.bytes > TABLE_BYTES_MAX || size.longest > ROW_BYTES_MAX)
      throw tooLarge(table)
    const found = await tx.query<{ row: unknown }>({
      text: `select to_jsonb(t) as row from ${TABLE} t limit ${ROWS_MAX}`,
    })
    return found.flatMap(({ row }) => (isObject(row) ? [row] : []))
  }, PATIENT)
}

async function openSqlite(path: string): Promise<ForeignSource> {
  const { DatabaseSync } = await import('node:sqlite')
  const attempt = <T>(read: () => T): T => {
    try {
      return read()
    } catch (error) {
      if (error instanceof ImportProblem) throw error
      throw new ImportProblem(`${path} cannot be read: ${reasonOf(error)}.`)
    }
  }
  const database = attempt(() => new DatabaseSync(path, { readOnly: true, limits: { length: ROW_BYTES_MAX } }))
  return {
    rows: async (table) =>
      attempt(() => {
        // Only real tables: a view or a virtual table could run forever.
        const kept = database
          .prepare(`select 1 from sqlite_schema where type = 'table' and name = ? and sql not like 'create virtual%'`)
          .get(table)
        if (!kept) return undefined
        const select = database.prepare(`select * from ${TABLES[table]} limit ${ROWS_MAX + 1}`)
        // Without this, an integer that JavaScript cannot represent would throw an error.
        select.setReadBigInts(true)
        const rows: ForeignRow[] = []
        let bytes = 0
        for (const row of select.iterate()) {
          for (const value of Object.values(row)) bytes += typeof value === 'string' ? value.length : 8
          if (rows.length >= ROWS_MAX || bytes > TABLE_BYTES_MAX) throw tooLarge(table)
          rows.push(Object.fromEntries(Object.entries(row).map(([name, value]) => [name, inJson(value)])))
        }
        return rows
      }),
    close: async () => database.close(),
  }
}

/** Converts a value to the form that Postgres returns. */
function inJson(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : value
}

function tooLarge(table: ForeignTable): ImportProblem {
  return new ImportProblem(`The table ${table} is too large: at most ${ROWS_MAX} rows and 256 MB are read.`)
}

/** The driver's message, which contains no password. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const words = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : ''
  return words.replace(/\.?$/, '') || 'the server does not answer'
}
