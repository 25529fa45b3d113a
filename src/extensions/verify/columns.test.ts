// Every column of the schema is corrupted by a test of verification, or excused by name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CORRUPTIONS, type Corruption, NO_MONEY, NO_REASON } from '../../../test/corruptions.ts'
import { freshDatabase } from '../../../test/database.ts'
import { openDatabase } from '../../database/database.ts'

/**
 * Statements by hand: which columns of which tables they change. A row that is put there or taken away is one of its
 * table.
 */
function touchedBy(corruptions: readonly Corruption[]): Map<string, Set<string>> {
  const touched = new Map<string, Set<string>>()
  const columnsOf = (table: string) => {
    const known = touched.get(table) ?? new Set()
    touched.set(table, known)
    return known
  }
  for (const [what] of corruptions)
    for (const one of what.split(';')) {
      const table = /(?:update|delete from|insert into) (\w+)/.exec(one)?.[1]
      if (!table) continue
      const columns = columnsOf(table)
      const set = / set (.*?)(?: from | where |$)/s.exec(one)?.[1] ?? ''
      for (const [, column] of set.matchAll(/(?:^|, )(\w+) = /g)) columns.add(column!)
    }
  return touched
}

test('every column of every table that has money or its reasons is corrupted, or it is said why not', async () => {
  const { connection, drop } = await freshDatabase()
  const database = openDatabase({ connection, connectionsMax: 1 })
  const rows = await database.query<{ table: string; columns: string[] }>({
    text: `select c.relname as table, array_agg(a.attname::text order by a.attnum) as columns from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and a.attnum > 0 and not a.attisdropped group by c.relname order by 1`,
  })
  await database.close()
  await drop()
  const touched = touchedBy(CORRUPTIONS)
  const missing = rows.flatMap(({ table, columns }) => {
    const changed = touched.get(table)
    if (!changed) return NO_MONEY.includes(table) ? [] : [table]
    return columns
      .filter((column) => !changed.has(column) && !NO_REASON[table]?.includes(column))
      .map((column) => `${table}.${column}`)
  })
  assert.deepEqual(missing, [])
})
