// Settings: what is stored once for the whole gateway, by name. What an operator decides is a `Setting`: read by its
// schema, and changed by one process at a time, with a row of the audit log.
import type * as z from 'zod'
import type { Audit, By, ChangeAction } from './audit.ts'
import type { Changes, Topic } from './changes.ts'
import { type Database, type Queryable, sql } from './database.ts'

const READ = sql('setting_read')`select value from setting where name = $1`
const LIST = sql('setting_list')`select name, value from setting where starts_with(name, $1)`
const REMOVE = sql('setting_remove')`delete from setting where name = $1`
const PUT = sql('setting_put')`
  insert into setting (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value`
const LOCK = sql('setting_lock')`select pg_advisory_xact_lock(70461, hashtext($1))`

export async function readSetting(on: Queryable, name: string): Promise<string | undefined> {
  const [row] = await on.query<{ value: string }>(READ, [name])
  return row?.value
}

/** Without the beginning of the names. */
export async function listSettings(on: Queryable, beginning: string): Promise<Map<string, string>> {
  const rows = await on.query<{ name: string; value: string }>(LIST, [beginning])
  return new Map(rows.map(({ name, value }) => [name.slice(beginning.length), value]))
}

/** Null removes it. */
export async function putSetting(on: Queryable, name: string, value: string | null): Promise<void> {
  await (value === null ? on.query(REMOVE, [name]) : on.query(PUT, [name, value]))
}

interface SettingRow<T> {
  readonly name: string
  readonly schema: z.ZodType<T>
  /** Of members that are not stored. */
  readonly defaults: T
  /** Of its rows in the audit log. */
  readonly action: ChangeAction
  readonly object: string
  /** What the audit log may have of it; by default all. */
  readonly noted?: (value: T) => object
  /** Of a setting that processes keep in memory. */
  readonly topic?: Topic
}

interface Setting<T> {
  read(on: Queryable): Promise<T>
  /** Whatever `next` throws keeps it as it is. */
  change(parts: SettingParts, by: By, next: (before: T, tx: Queryable) => T | Promise<T>): Promise<T>
  /** Keeps what is made of it in memory, and reads it again when a process changes it. */
  keep<V>(parts: KeptParts, view: (value: T) => V): Promise<() => V>
}

interface SettingParts {
  readonly database: Database
  readonly audit: Audit
  /** Of a setting with a topic. */
  readonly changes?: Pick<Changes, 'bump' | 'notice'>
}

export interface KeptParts extends SettingParts {
  readonly changes: Pick<Changes, 'watch' | 'bump' | 'notice'>
}

export function defineSetting<T extends object>(row: SettingRow<T>): Setting<T> {
  const { name, schema, defaults, action, object, noted = (value) => value, topic } = row
  const read = async (on: Queryable) =>
    schema.parse({ ...defaults, ...JSON.parse((await readSetting(on, name)) ?? '{}') })
  return {
    read,
    async change({ database, audit, changes }, by, next) {
      const changed = await database.transaction(async (tx) => {
        await tx.query(LOCK, [name])
        const before = await read(tx)
        const after = await next(before, tx)
        await putSetting(tx, name, JSON.stringify(after))
        if (topic) await changes?.bump(tx, topic)
        await audit.write(tx, by, { action, object, before: { ...noted(before) }, after: { ...noted(after) } })
        return after
      })
      if (topic) await changes?.notice(topic)
      return changed
    },
    async keep({ database, changes }, view) {
      let kept = view(await read(database))
      const load = async () => {
        kept = view(await read(database))
      }
      if (topic) changes.watch(topic, load)
      return () => kept
    },
  }
}
