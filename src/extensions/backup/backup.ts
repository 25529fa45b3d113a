// A backup is one file: every row of every table as JSON lines, compressed, taken in one snapshot while the gateway
// runs; with several ledgers of control first, and then of each. Unlike a copy of the data directory, it restores into
// an empty database of any supported Postgres version.
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import pg from 'pg'
import { PATIENT, type Queryable } from '../../database/database.ts'
import { listMigrations, migrate, migrateTo } from '../../database/migrate.ts'
import { CHANGE_MS_MAX } from '../../database/prune.ts'
import { putSetting } from '../../database/setting.ts'
import { TABLES } from '../../database/tables.ts'
import { INSTALLATION, LEDGERS_NAME } from '../postgres/ledgers.ts'
import { BELONGS, MEMBERS_ELSEWHERE } from '../postgres/mount.ts'
import type { Store } from '../postgres/upgrade.ts'

const FORMAT = 2
const ROWS_PER_LINE = 500

interface BackupFacts {
  readonly at: string
  readonly migration: number
  readonly rows: Readonly<Record<string, number>>
}

interface Partition {
  readonly name: string
  readonly parent: string
  readonly bound: string
}

interface Head {
  readonly at: string
  readonly migration: number
  readonly partitions: readonly Partition[]
  /** Control's: those that follow. */
  readonly ledgers?: readonly string[] | undefined
  readonly ledger?: string | undefined
}

/** Those that the schema does not make: of months. */
const PARTITIONS = {
  text: `select c.relname as name, p.relname as parent, pg_get_expr(c.relpartbound, c.oid) as bound from pg_class c
    join pg_inherits i on i.inhrelid = c.oid join pg_class p on p.oid = i.inhparent
    where c.relispartition and c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT' order by 1`,
}

// A partitioned table is read and written through its parent.
const STORED = {
  text: `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind in ('r', 'p') and not c.relispartition order by c.relname`,
}

async function listTables(tx: Queryable): Promise<string[]> {
  const rows = await tx.query<{ name: string }>(STORED)
  return rows.map(({ name }) => name).filter((name) => name !== 'migration' && !TABLES[name]?.notBackedUp)
}

/** The first is control. */
type Backed = readonly Pick<Store, 'name' | 'database'>[]

export async function writeBackup(stores: Backed, out: Writable): Promise<BackupFacts> {
  const facts: BackupFacts[] = []
  const [control, ...ledgers] = stores
  await refuseMoves(control!.database) // There is one at least.
  // Control last: what crosses is written there first, and so looks at worst as after a crash.
  await withSnapshots([...ledgers, control!], async (snapshots) => {
    await refuseMoves(snapshots.at(-1)!) // As above.
    const names = ledgers.map(({ name }) => name)
    const parts = [snapshots.at(-1)!, ...snapshots.slice(0, -1)] // As above.
    await pipeline(
      async function* () {
        for (const [at, tx] of parts.entries())
          yield* partOf(tx, at === 0 ? { ledgers: names } : { ledger: names[at - 1] }, facts)
      },
      createGzip(),
      out,
    )
  })
  return sumOf(facts)
}

function sumOf(parts: readonly BackupFacts[]): BackupFacts {
  const rows: Record<string, number> = {}
  for (const part of parts)
    for (const [table, count] of Object.entries(part.rows)) rows[table] = (rows[table] ?? 0) + count
  return { ...parts[0]!, rows } // There is one at least.
}

/** All at one moment, or nearly. */
function withSnapshots<T>(
  [first, ...rest]: Backed,
  run: (snapshots: readonly Queryable[]) => Promise<T>,
  taken: readonly Queryable[] = [],
): Promise<T> {
  if (!first) return run(taken)
  return first.database.transaction(async (tx) => {
    await tx.query({ text: 'set transaction isolation level repeatable read, read only' })
    // The first that reads takes it.
    await tx.query({ text: 'select 1 from migration limit 1' })
    return withSnapshots(rest, run, [...taken, tx])
  }, PATIENT)
}

/** An account that is in two ledgers would be so after a restore. */
async function refuseMoves(control: Queryable): Promise<void> {
  const [moving] = await control.query<{ id: string }>({ text: 'select id from account where is_moving limit 1' })
  if (moving)
    throw new Error(
      `The account ${moving.id} is being moved to another ledger. Try again when it is there; if the move was interrupted, repeat it, or end it with tollgate ledgers move ${moving.id} --to LEDGER --cancel.`,
    )
}

/** A database's rows between a line that begins it and one that ends it. */
async function* partOf(tx: Queryable, about: object, facts: BackupFacts[]): AsyncGenerator<string> {
  const [now] = await tx.query<{ at: Date; migration: number }>({
    text: 'select now() as at, max(number) as migration from migration',
  })
  const partitions = await tx.query<Partition>(PARTITIONS)
  const head = { tollgate: FORMAT, at: now!.at.toISOString(), migration: now!.migration, partitions }
  yield `${JSON.stringify({ ...head, ...about })}\n`
  const rows: Record<string, number> = {}
  for (const table of await listTables(tx)) {
    rows[table] = 0
    const name = pg.escapeIdentifier(table)
    await tx.query({ text: `declare backup_rows no scroll cursor for select to_jsonb(t)::text as row from ${name} t` })
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
  facts.push({ at: head.at, migration: head.migration, rows })
}

/**
 * An incomplete file, a newer version or a database in use changes nothing; of several databases, those before the one
 * that fails are filled. The rows go into tables of their own time, in the partitions in which they were; then the
 * migrations since then are applied.
 */
export async function readBackup(stores: readonly Store[], source: Readable, folder?: string): Promise<BackupFacts> {
  for (const { database } of stores) await requireEmpty(database)
  const latest = (await listMigrations(folder)).at(-1)?.number ?? 0
  const lines = linesOf(unpacked(source))
  const facts: BackupFacts[] = []
  for (const { name, database, mount } of stores) {
    const first = await lines.next()
    if (first.done) throw incomplete()
    const { partitions, ...head } = readHead(first.value, latest)
    if (facts.length === 0) requireSame(head.ledgers ?? [], stores.slice(1))
    else if (head.ledger !== name)
      throw new Error(`The backup is damaged: ${head.ledger} stands at the place of ${name}.`)
    await migrateTo(database, { until: head.migration, ...(folder === undefined ? {} : { folder }) })
    const rows = await database.transaction(async (tx) => {
      for (const { name, parent, bound } of partitions) await makePartition(tx, { name, parent, bound })
      if (mount) await tx.query({ text: MEMBERS_ELSEWHERE })
      const rows = await withoutReferences(tx, () => readRows(tx, lines))
      // It is another installation, which must not take the ledgers of this one for its own.
      for (const setting of [INSTALLATION, BELONGS, LEDGERS_NAME]) await putSetting(tx, setting, null)
      return rows
    }, PATIENT)
    await (mount?.() ?? migrate(database, folder))
    facts.push({ at: head.at, migration: head.migration, rows })
  }
  return sumOf(facts)
}

const incomplete = () => new Error('The backup is incomplete: its end is missing.')

function requireSame(there: readonly string[], given: readonly { readonly name: string }[]): void {
  const [wanted, found] = [there, given.map(({ name }) => name)].map((names) => names.join(', ') || 'none')
  if (wanted !== found)
    throw new Error(
      `The backup has these ledgers: ${wanted}; and TOLLGATE_LEDGERS names: ${found}. Name an empty database for each, in this order.`,
    )
}

async function requireEmpty(on: Queryable): Promise<void> {
  for (const table of await listTables(on)) {
    const [used] = await on.query<{ some: boolean }>({
      text: `select exists (select 1 from ${pg.escapeIdentifier(table)}) as some`,
    })
    if (used?.some)
      throw new Error(`This database is in use: its table "${table}" has rows. Restore into an empty one.`)
  }
}

/** A row may come before the one that it refers to, so references are checked when all rows are there. */
async function withoutReferences<T>(tx: Queryable, run: () => Promise<T>): Promise<T> {
  const references = await tx.query<{ table: string; name: string; definition: string }>({
    text: `select conrelid::regclass::text as table, quote_ident(conname) as name, pg_get_constraintdef(oid) as definition from pg_constraint
      where contype = 'f' and conparentid = 0 and connamespace = current_schema()::regnamespace`,
  })
  for (const { table, name } of references) await tx.query({ text: `alter table ${table} drop constraint ${name}` })
  const result = await run()
  for (const { table, name, definition } of references)
    await tx.query({ text: `alter table ${table} add constraint ${name} ${definition}`, withinMs: CHANGE_MS_MAX })
  return result
}

async function makePartition(tx: Queryable, { name, parent, bound }: Partition): Promise<void> {
  const bounds = /^FOR VALUES FROM \((?:'[^'\\]*'|M(?:IN|AX)VALUE)\) TO \((?:'[^'\\]*'|M(?:IN|AX)VALUE)\)$/
  if (!/^[a-z0-9_]+$/.test(name + parent) || !bounds.test(bound))
    throw new Error(`The backup is damaged: it has a partition ${name} of ${parent} ${bound}.`)
  await tx.query({ text: `create table if not exists ${name} partition of ${parent} ${bound}` })
}

async function readRows(tx: Queryable, lines: AsyncGenerator<string>): Promise<Record<string, number>> {
  const tables = new Set(await listTables(tx))
  const rows: Record<string, number> = {}
  let end: { rows: Record<string, number> } | undefined
  // A loop over `lines` would end them, and others may follow.
  while (!end) {
    const { value: line, done } = await lines.next()
    if (done) throw incomplete()
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
  for (const [table, count] of Object.entries(end.rows))
    if ((rows[table] ?? 0) !== count)
      throw new Error(`The backup is damaged: ${table} has ${rows[table] ?? 0} rows instead of ${count}.`)
  return end.rows
}

function readHead(line: string, latest: number): Head {
  const head = JSON.parse(line) as Head & { tollgate?: number }
  if (head.tollgate !== FORMAT) throw new Error('This is not a backup of Tollgate, or one of another format.')
  if (head.migration > latest)
    throw new Error(
      `The backup is of migration ${head.migration}, and this version knows only ${latest}. Restore it with the version that wrote it, or a newer one.`,
    )
  return head
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
