// Values for rows from before a migration. `NNNN_name.backfill.sql` beside the migrations is one statement, `update
// table set … where …`. Maintenance runs it along the table's primary key, some rows at a time, and stores how far it
// has come, so that any process goes on after another. Rows that are written meanwhile must have the value already, by
// a default or by a function.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '../kernel/log.ts'
import { sleep } from '../kernel/timers.ts'
import { realWorld } from '../kernel/world.ts'
import { type Database, type Queryable, sql } from './database.ts'

const ROWS = 2_000
const BATCHES = 20

const NAME = /^\d{4}_[a-z_]+\.backfill\.sql$/
const UPDATE = /^update (\w+) set ([\s\S]+?) where ([\s\S]+?);?$/

interface Progress {
  readonly name: string
  readonly rows: number
  /** As far as the server knows. */
  readonly of: number
  readonly done: boolean
}

interface Backfill {
  readonly name: string
  readonly table: string
  readonly set: string
  readonly where: string
}

const FOLDER = join(import.meta.dirname, 'migrations')
const STATE = sql('backfill_state')`select name, rows, ended_at is not null as done from backfill`
const MAKE = sql('backfill_make')`insert into backfill (name) values ($1) on conflict do nothing`
const TAKE = sql('backfill_take')`
  select last_key, ended_at is not null as done from backfill where name = $1 for update skip locked`
const MOVE = sql('backfill_move')`
  update backfill set last_key = coalesce($2::text[], last_key), rows = rows + $3, ended_at = case when $4 then now() end where name = $1`
const KEY = sql('backfill_key')`select a.attname as name, format_type(a.atttypid, a.atttypmod) as type from pg_index i
   cross join lateral unnest(i.indkey) with ordinality k(number, place) join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.number
   where i.indrelid = to_regclass($1) and i.indisprimary order by k.place`

export async function listBackfills(folder = FOLDER): Promise<Backfill[]> {
  const names = (await readdir(folder)).filter((name) => NAME.test(name)).sort()
  return Promise.all(
    names.map(async (name) => {
      const sql = (await readFile(join(folder, name), 'utf8')).replaceAll(/^--.*$/gm, '').trim()
      const [, table, set, where] = UPDATE.exec(sql) ?? []
      if (!table || !set || !where) throw new Error(`${name} must be one statement: update table set … where …`)
      return { name: name.replace('.backfill.sql', ''), table, set, where }
    }),
  )
}

export type Backfills = ReturnType<typeof createBackfills>

export function createBackfills(
  database: Database,
  { log, folder }: { readonly log?: Log; readonly folder?: string } = {},
) {
  let open: Backfill[] | undefined
  return {
    /** Runs some batches. Returns whether anything is left. */
    async tick(): Promise<boolean> {
      open ??= await listBackfills(folder)
      for (const one of open) {
        for (let left = BATCHES; left > 0; left--) {
          const startedMs = realWorld.elapsedMs()
          const state = await database.transaction((tx) => fillSome(tx, one))
          // Half of the time the database is there for calls alone, however busy it is.
          await sleep(realWorld, realWorld.elapsedMs() - startedMs)
          if (state === 'done') log?.info({ backfill: one.name }, 'a backfill has come to its end')
          if (state !== 'more') open = state === 'done' ? open.filter((other) => other !== one) : open
          if (state !== 'more') break
        }
      }
      return open.length > 0
    },
    async progress(): Promise<Progress[]> {
      const known = await database.query<{ name: string; rows: bigint; done: boolean }>(STATE)
      return Promise.all(
        (await listBackfills(folder)).map(async ({ name, table }) => {
          const { rows = 0n, done = false } = known.find((one) => one.name === name) ?? {}
          return { name, rows: Number(rows), of: Math.max(Number(rows), await rowsOf(database, table)), done }
        }),
      )
    },
  }
}

/** `taken`: another process is at it. */
async function fillSome(tx: Queryable, { name, table, set, where }: Backfill): Promise<'more' | 'done' | 'taken'> {
  await tx.query(MAKE, [name])
  const [state] = await tx.query<{ last_key: string[] | null; done: boolean }>(TAKE, [name])
  if (!state) return 'taken'
  if (state.done) return 'done'
  const key = await tx.query<{ name: string; type: string }>(KEY, [table])
  const columns = key.map((column) => column.name).join(', ')
  const given = (from: number) => key.map(({ type }, at) => `$${from + at}::${type}`).join(', ')
  const after = state.last_key ? `(${columns}) > (${given(1)})` : 'true'
  const start = state.last_key ?? []
  const [end] = await tx.query<{ key: string[]; rows: number }>(
    {
      text: `with page as (select ${columns} from ${table} where ${after} order by ${columns} limit ${ROWS})
        select array[${key.map((column) => `${column.name}::text`).join(', ')}] as key, (select count(*)::int from page) as rows from page
        order by ${key.map((column) => `${column.name} desc`).join(', ')} limit 1`,
    },
    start,
  )
  if (end)
    await tx.query(
      {
        text: `update ${table} set ${set} where ${after} and (${columns}) <= (${given(start.length + 1)}) and (${where})`,
      },
      [...start, ...end.key],
    )
  const done = !end || end.rows < ROWS
  await tx.query(MOVE, [name, end?.key ?? null, end?.rows ?? 0, done])
  return done ? 'done' : 'more'
}

/** As many as the server believes there are, in all partitions. */
export async function rowsOf(on: Queryable, table: string): Promise<number> {
  const [row] = await on.query<{ rows: number }>(
    {
      text: `select coalesce(sum(case when c.reltuples > 0 then c.reltuples else s.n_live_tup end), 0)::float8 as rows from pg_partition_tree(to_regclass($1)) t
        join pg_class c on c.oid = t.relid left join pg_stat_user_tables s on s.relid = t.relid where t.isleaf`,
    },
    [table],
  )
  return Math.round(row?.rows ?? 0)
}
