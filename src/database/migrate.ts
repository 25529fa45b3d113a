// Forward-only numbered migrations, applied under an advisory lock, so that any number of processes may start at once.

import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { Fault } from '../kernel/fault.ts'
import { isNewer, VERSION } from '../kernel/version.ts'
import { listBackfills, rowsOf } from './backfill.ts'
import type { Database, Queryable } from './database.ts'
import { type Index, type Step, stepsOf } from './migration-plan.ts'
import { CHANGE_MS_MAX, changeTables } from './prune.ts'

const FOLDER = join(import.meta.dirname, 'migrations')
const SOURCE = join(import.meta.dirname, '..')
const EXTENSIONS = join(SOURCE, 'extensions')
const LOCK = 7_046_029_254n
const INDEX_LOCK = 7_046_029_260n
/**
 * Kept short, because other processes serve calls meanwhile and their statements queue behind a migration that waits
 * for a lock. But longer than the server's `deadlock_timeout`, after which an autovacuum of the table gives way: with
 * as much or less, calls would be stopped by every try and none succeed.
 */
const LOCKS_MS = 1_200
const TRIES = 20

const UNRELEASED =
  'This database was made by a version of Tollgate before the first release, which this one cannot read: start that version again, write its accounts, limits, vendors and catalog to a file with `tollgate apply --export tollgate.yaml`, and apply that to an empty database with this version.'

const MIGRATION_TABLE =
  'create table if not exists migration (number integer primary key, name text not null, at timestamptz not null default now())'

interface Migration {
  readonly number: number
  readonly name: string
  readonly sql: string
}

export interface Migrations {
  readonly applied: number
  readonly latest: number
}

export async function listMigrations(folder = FOLDER): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_[a-z_]+\.sql$/.test(name)).sort()
  return Promise.all(
    names.map(async (name) => ({ number: Number(name.slice(0, 4)), name, sql: await sqlOf(folder, name) })),
  )
}

/** With the tables of extensions, in files of the same name in their folders; also of those that are switched off. */
async function sqlOf(folder: string, name: string): Promise<string> {
  const paths = [join(folder, name), ...(await inExtensions(name))]
  return (await Promise.all(paths.map((path) => readFile(path, 'utf8')))).join('\n')
}

const inExtensions = async (name: string) =>
  (await readdir(EXTENSIONS)).map((one) => join(EXTENSIONS, one, name)).filter((path) => existsSync(path))

/**
 * Each migration in a transaction of its own, so that no lock is held longer than its own change takes; indexes that
 * are built concurrently in none.
 */
export async function migrate(database: Database, folder = FOLDER): Promise<Migrations> {
  const done = await migrateTo(database, { folder, until: Number.POSITIVE_INFINITY })
  await change(database, async (tx) => {
    await applyFunctions(tx)
    await raiseOffset(tx)
  })
  return done
}

const change = <T>(database: Database, run: (tx: Queryable) => Promise<T>) =>
  changeTables(database, { lock: LOCK, locksMs: LOCKS_MS, tries: TRIES }, run)

/** Tables only, up to a migration: for the rows of a backup of that time. */
export async function migrateTo(
  database: Database,
  { folder = FOLDER, until }: { readonly folder?: string; readonly until: number },
): Promise<Migrations> {
  const files = (await listMigrations(folder)).filter(({ number }) => number <= until)
  const latest = files.at(-1)?.number ?? 0
  const pending = await change(database, async (tx) => {
    await tx.query({ text: MIGRATION_TABLE })
    return pendingOf(tx, files)
  })
  for (const file of pending) {
    const { number, name, sql } = file
    const indexes = stepsOf(sql).flatMap(({ index }) => index ?? [])
    await change(database, async (tx) => {
      // Another process may have been faster.
      if (!(await pendingOf(tx, files)).includes(file)) return
      try {
        if (indexes.length === 0) await tx.query({ text: sql, withinMs: CHANGE_MS_MAX })
        for (const index of indexes) await buildIndex(database, index)
      } catch (cause) {
        if (cause instanceof Fault) throw cause
        throw new Error(`Migration ${name} failed and nothing was changed by it: ${(cause as Error).message}`, {
          cause,
        })
      }
      await tx.query({ text: 'insert into migration (number, name) values ($1, $2)' }, [number, name])
    })
  }
  return { applied: latest, latest }
}

/** What is not applied yet. Throws if the database is of another line of versions, or newer. */
async function pendingOf(on: Queryable, files: readonly Migration[]): Promise<Migration[]> {
  const stored = await on.query<{ number: number; name: string }>({
    text: 'select number, name from migration where number > 0 order by number',
  })
  const [last, latest] = [stored.at(-1)?.number ?? 0, files.at(-1)?.number ?? 0]
  // Only released migrations keep their names.
  if (stored[0] && stored[0].name !== files[0]?.name) throw new Error(UNRELEASED)
  if (last > latest)
    throw new Error(
      `The database is at migration ${last}, but this version of Tollgate knows only ${latest}. Start the newer version, or restore a backup made before the upgrade.`,
    )
  return files.filter(({ number }) => number > last)
}

// An index of a partitioned table cannot be built concurrently as a whole. The parent's is made first and is
// incomplete, so that a partition that is attached from now on brings its own; then each partition's is built beside
// calls, and attached. Each step can be repeated.

const INDEX = { text: 'select indisvalid as valid from pg_index where indexrelid = to_regclass($1)' }
const PARTITIONS = {
  text: `select relid::regclass::text as name, exists (select 1 from pg_index i join pg_inherits h on h.inhrelid = i.indexrelid
      where i.indrelid = relid and h.inhparent = to_regclass($2)) as has
    from pg_partition_tree(to_regclass($1)) where isleaf and parentrelid is not null`,
}

async function buildIndex(database: Database, { name, unique, table, rest }: Index): Promise<void> {
  const create = (NAME: string, ON: string, HOW: string) =>
    `create ${unique ? 'unique ' : ''}index ${HOW} ${NAME} on ${ON} ${rest}`
  const build = async (NAME: string, TABLE: string) => {
    const [found] = await database.query<{ valid: boolean }>(INDEX, [NAME])
    if (found?.valid) return
    if (found) await database.outside(`drop index concurrently ${NAME}`)
    await database.outside(create(NAME, TABLE, 'concurrently'))
  }
  const attach = (text: string) =>
    changeTables(database, { lock: INDEX_LOCK, locksMs: LOCKS_MS, tries: TRIES }, (tx) => tx.query({ text }))
  const partitions = () => database.query<{ name: string; has: boolean }>(PARTITIONS, [table, name])
  if ((await partitions()).length === 0) return build(name, table)
  await attach(create(name, `only ${table}`, 'if not exists'))
  for (const partition of (await partitions()).filter(({ has }) => !has)) {
    const own = `${partition.name}_${name}`.slice(0, 63)
    await build(own, partition.name)
    await attach(`alter index ${name} attach partition ${own}`)
  }
}

/** What `migrate` would do, in sentences. */
export async function planMigrations(database: Database, folder = FOLDER): Promise<string[]> {
  const files = await listMigrations(folder)
  const [is] = await database.query<{ made: boolean }>({ text: `select to_regclass('migration') is not null as made` })
  const pending = is?.made ? await pendingOf(database, files) : files
  if (pending.length === 0)
    return [`The database is at migration ${files.length} of ${files.length}: there is nothing to do.`]
  const lines: string[] = []
  for (const { name, sql } of pending)
    for (const step of stepsOf(sql))
      if (step.table !== '')
        lines.push(`${name}, line ${step.line}: ${sentenceOf(step, await rowsOf(database, step.table))}`)
  for (const { name, table } of await listBackfills(folder))
    lines.push(`${name}: maintenance fills in ${table} while calls go on (${inRows(await rowsOf(database, table))}).`)
  return [
    `${pending.length === 1 ? '1 migration is' : `${pending.length} migrations are`} to be applied: ${pending.map(({ name }) => name).join(', ')}.`,
    ...lines,
  ]
}

function sentenceOf({ table, hold, everyRow, index }: Step, rows: number): string {
  if (index) return `the index ${index.name} of ${table} is built beside calls (${inRows(rows)}); nothing waits.`
  if (hold === 'none')
    return `${table} is read or written beside calls (${everyRow ? inRows(rows) : 'no rows'}); nothing waits.`
  return hold === 'moment'
    ? `${table} is locked for a moment, for at most ${LOCKS_MS / 1000} s at a time; none of its ${inRows(rows)} is read.`
    : `${table} is locked while ${inRows(rows)} are read or written.`
}

const inRows = (rows: number) => `about ${rows.toLocaleString('en-US')} row${rows === 1 ? '' : 's'}`

/**
 * Numbers of transactions begin anew in a database that was restored from a backup. What is posted from now on must
 * sort after what is stored, or exports would never send it (`usage_posting` in migrations/0001_schema.sql).
 */
async function raiseOffset(tx: Queryable): Promise<void> {
  const [row] = await tx.query<{ missing: bigint; offset: bigint }>({
    text: `select usage_offset() as "offset", greatest((select max(posting) from usage), (select max(cursor_posting) from export)) + 1
      - (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + usage_offset()) as missing`,
  })
  if (!row?.missing || row.missing <= 0n) return
  // A number that we computed, and no input: a function's body takes no parameters.
  await tx.query({
    text: `create or replace function usage_offset() returns bigint language sql immutable as 'select ${row.offset + row.missing}::bigint'`,
  })
}

/** Rejects servers that may lose acknowledged commits, because they hold money. */
export async function checkDurability(database: Database, allowUnsafe: boolean): Promise<string> {
  const [row] = await database.query<{ version: string; number: string; fsync: string; commit: string }>({
    text: `select current_setting('server_version') as version, current_setting('server_version_num') as number,
      current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit`,
  })
  if (!row) throw new Error('The database did not answer a question about its settings.')
  if (Number(row.number) < 150_000) throw new Error(`Postgres ${row.version} is too old: Tollgate needs 15 or newer.`)
  if (!allowUnsafe && (row.fsync === 'off' || row.commit === 'off'))
    throw new Error(
      'The database runs with fsync or synchronous_commit off, so it may lose charges that it has acknowledged. Turn both on, or set TOLLGATE_ALLOW_UNSAFE_STORE=1.',
    )
  return row.version
}

// The functions and triggers in the database, in files of their own. They are applied again whenever their text has
// changed. An older version never overwrites those of a newer one, e.g. when an old process restarts during a rolling
// upgrade.

const FUNCTIONS = join(import.meta.dirname, 'functions')
/** The digest is stored in the migration table, as number 0, because it belongs to the schema and not to the data. */
const NUMBER = 0

/** Runs after the migrations. */
export async function applyFunctions(tx: Queryable, version = VERSION): Promise<void> {
  const names = (await readdir(FUNCTIONS)).filter((name) => name.endsWith('.sql')).sort()
  const paths = [...names.map((name) => join(FUNCTIONS, name)), ...(await inExtensions('functions.sql'))]
  const texts = await Promise.all(
    paths.map(async (path) => ({ name: relative(SOURCE, path), text: await readFile(path, 'utf8') })),
  )
  const digest = createHash('sha256').update(JSON.stringify(texts)).digest('hex')
  const [row] = await tx.query<{ name: string }>({ text: 'select name from migration where number = $1' }, [NUMBER])
  const [made = '0', of] = row?.name.split(' ') ?? []
  if (of === digest || isNewer(made, version)) return
  for (const { name, text } of texts) {
    try {
      await tx.query({ text })
    } catch (cause) {
      if (cause instanceof Fault) throw cause
      throw new Error(
        `The functions of ${name} could not be made, and nothing was changed: ${(cause as Error).message}`,
        { cause },
      )
    }
  }
  await tx.query(
    {
      text: 'insert into migration (number, name) values ($1, $2) on conflict (number) do update set name = excluded.name, at = now()',
    },
    [NUMBER, `${version} ${digest}`],
  )
}
