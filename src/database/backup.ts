// A backup is one file: every row of every table as JSON lines, compressed, taken in one snapshot while the gateway runs. Unlike a copy of the
// data directory, it restores into an empty database of any supported Postgres version.
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import pg from 'pg'
import { type Database, PATIENT, type Queryable } from './database.ts'
import { listMigrations, migrate } from './migrate.ts'

const FORMAT = 1
const ROWS_PER_LINE = 500
/**
 * Not backed up: tables that describe this installation at this moment, and recordings of callers' content, which must be gone once they are
 * deleted.
 */
const LEFT_OUT = new Set(['migration', 'gateway_instance', 'recording'])

interface BackupFacts {
  readonly at: string
  readonly migration: number
  readonly rows: Readonly<Record<string, number>>
}

// A partitioned table is read and written through its parent.
const TABLES = {
  text: `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition order by c.relname`,
}

async function listTables(tx: Queryable): Promise<string[]> {
  const rows = await tx.query<{ name: string }>(TABLES)
  return rows.map(({ name }) => name).filter((name) => !LEFT_OUT.has(name))
}

export async function writeBackup(database: Database, out: Writable): Promise<BackupFacts> {
  const facts: { value?: BackupFacts } = {}
  await database.transaction(async (tx) => {
    await tx.query({ text: 'set transaction isolation level repeatable read, read only' })
    await pipeline(
      async function* () {
        const [now] = await tx.query<{ at: Date; migration: number }>({
          text: 'select now() as at, max(number) as migration from migration',
        })
        const head = { tollgate: FORMAT, at: now!.at.toISOString(), migration: now!.migration }
        yield `${JSON.stringify(head)}\n`
        const rows: Record<string, number> = {}
        for (const table of await listTables(tx)) {
          rows[table] = 0
          const name = pg.escapeIdentifier(table)
          await tx.query({
            text: `declare backup_rows no scroll cursor for select to_jsonb(t)::text as row from ${name} t`,
          })
          for (;;) {
            const page = await tx.query<{ row: string }>({ text: `fetch ${ROWS_PER_LINE} from backup_rows` })
            if (page.length === 0) break
            rows[table] += page.length
            yield `{"table":${JSON.stringify(table)},"rows":[${page.map(({ row }) => row).join(',')}]}\n`
          }
          await tx.query({ text: 'close backup_rows' })
        }
        // The last line states the number of rows, so that a truncated file is recognised.
        yield `${JSON.stringify({ end: true, rows })}\n`
        facts.value = { at: head.at, migration: head.migration, rows }
      },
      createGzip(),
      out,
    )
  }, PATIENT)
  return facts.value!
}

/** All or nothing: an incomplete file, another version or a database in use changes nothing. */
export async function readBackup(database: Database, source: Readable): Promise<BackupFacts> {
  await migrate(database)
  const latest = (await listMigrations()).at(-1)?.number ?? 0
  return database.transaction(async (tx) => {
    const tables = new Set(await listTables(tx))
    for (const table of tables) {
      const [used] = await tx.query<{ some: boolean }>({
        text: `select exists (select 1 from ${pg.escapeIdentifier(table)}) as some`,
      })
      if (used?.some)
        throw new Error(`This database is in use: its table "${table}" has rows. Restore into an empty one.`)
    }
    const rows: Record<string, number> = {}
    let head: { at: string; migration: number } | undefined
    let end: { rows: Record<string, number> } | undefined
    for await (const line of linesOf(unpacked(source))) {
      if (!head) {
        head = readHead(line, latest)
        continue
      }
      if (line.startsWith('{"end"')) {
        end = JSON.parse(line) as typeof end
        continue
      }
      const table = /^\{"table":"([a-z_]+)"/.exec(line)?.[1] ?? ''
      if (!tables.has(table)) throw new Error(`The backup has a table "${table}" that this version does not know.`)
      const name = pg.escapeIdentifier(table)
      const columns = await columnsOf(tx, table)
      const put = `insert into ${name} (${columns}) select ${columns} from jsonb_populate_recordset(null::${name}, ($1::jsonb) -> 'rows') returning 1`
      const [written] = await tx.query<{ count: bigint }>(
        { text: `with put as (${put}) select count(*) as count from put` },
        [line],
      )
      rows[table] = (rows[table] ?? 0) + Number(written!.count)
    }
    if (!head || !end) throw new Error('The backup is incomplete: its end is missing.')
    for (const [table, count] of Object.entries(end.rows))
      if ((rows[table] ?? 0) !== count)
        throw new Error(`The backup is damaged: ${table} has ${rows[table] ?? 0} rows instead of ${count}.`)
    return { ...head, rows: end.rows }
  }, PATIENT)
}

function readHead(line: string, latest: number): { at: string; migration: number } {
  const head = JSON.parse(line) as { tollgate?: number; at: string; migration: number }
  if (head.tollgate !== FORMAT) throw new Error('This is not a backup of Tollgate, or one of a newer format.')
  if (head.migration !== latest)
    throw new Error(
      `The backup is of migration ${head.migration}, this version is at ${latest}. Restore with the version that wrote it, then upgrade.`,
    )
  return { at: head.at, migration: head.migration }
}

/** The table's columns, without generated ones. */
async function columnsOf(tx: Queryable, table: string): Promise<string> {
  const rows = await tx.query<{ name: string }>(
    {
      text: `select attname as name from pg_attribute where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    },
    [table],
  )
  return rows.map(({ name }) => pg.escapeIdentifier(name)).join(', ')
}

/** Passes errors of the source or of the decompression to the reader; `pipe` would lose them. */
function unpacked(source: Readable): AsyncIterable<Buffer> {
  const unpack = createGunzip()
  pipeline(source, unpack).catch((error: Error) => unpack.destroy(error))
  return unpack
}

async function* linesOf(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let pending = ''
  for await (const chunk of bytes) {
    pending += decoder.decode(chunk, { stream: true })
    const lines = pending.split('\n')
    pending = lines.pop() ?? ''
    yield* lines
  }
}
