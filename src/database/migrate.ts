// Forward-only numbered migrations, applied under an advisory lock, so that any number of processes may start at once.

import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '../kernel/fault.ts'
import { isNewer, VERSION } from '../kernel/version.ts'
import type { Database, Queryable } from './database.ts'
import { CHANGE_MS_MAX, changeTables } from './prune.ts'

const FOLDER = join(import.meta.dirname, 'migrations')
const LOCK = 7_046_029_254n
/** Kept short, because other processes serve calls meanwhile and their statements queue behind a migration that waits for a lock. */
const LOCKS_MS = 1_000
const TRIES = 20

export interface Migrations {
  readonly applied: number
  readonly latest: number
}

export async function listMigrations(): Promise<Array<{ number: number; name: string }>> {
  const names = (await readdir(FOLDER)).filter((name) => /^\d{4}_[a-z_]+\.sql$/.test(name)).sort()
  return names.map((name) => ({ number: Number(name.slice(0, 4)), name }))
}

export async function migrate(database: Database): Promise<Migrations> {
  const files = await listMigrations()
  const latest = files.at(-1)?.number ?? 0
  return changeTables(database, { lock: LOCK, locksMs: LOCKS_MS, tries: TRIES }, async (tx) => {
    await tx.query({
      text: 'create table if not exists migration (number integer primary key, name text not null, at timestamptz not null default now())',
    })
    const [row] = await tx.query<{ last: number | null }>({ text: 'select max(number) as last from migration' })
    const last = row?.last ?? 0
    if (last > latest)
      throw new Error(
        `The database is at migration ${last}, but this version of Tollgate knows only ${latest}. Start the newer version, or restore a backup made before the upgrade.`,
      )
    for (const { number, name } of files.filter((file) => file.number > last)) {
      try {
        await tx.query({ text: await readFile(join(FOLDER, name), 'utf8'), withinMs: CHANGE_MS_MAX })
      } catch (cause) {
        if (cause instanceof Fault) throw cause
        throw new Error(`Migration ${name} failed and nothing was changed: ${(cause as Error).message}`, { cause })
      }
      await tx.query({ text: 'insert into migration (number, name) values ($1, $2)' }, [number, name])
    }
    await applyFunctions(tx)
    await raiseOffset(tx)
    return { applied: latest, latest }
  })
}

/**
 * Numbers of transactions begin anew in a database that was restored from a backup. What is posted from now on must sort after what is stored, or
 * exports would never send it (migrations/0026_exports.sql).
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

// The functions and triggers in the database, in files of their own. They are applied again whenever their text has changed. An older version
// never overwrites those of a newer one, e.g. when an old process restarts during a rolling upgrade.

const FUNCTIONS = join(import.meta.dirname, 'functions')
/** The digest is stored in the migration table, as number 0, because it belongs to the schema and not to the data. */
const NUMBER = 0

/** Runs in the transaction of the migrations, after them. */
export async function applyFunctions(tx: Queryable, version = VERSION): Promise<void> {
  const names = (await readdir(FUNCTIONS)).filter((name) => name.endsWith('.sql')).sort()
  const texts = await Promise.all(
    names.map(async (name) => ({ name, text: await readFile(join(FUNCTIONS, name), 'utf8') })),
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
        {
          cause,
        },
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
