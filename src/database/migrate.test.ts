import assert from 'node:assert/strict'
import { test } from 'node:test'
import { emptyDatabase, freshDatabase } from '../../test/database.ts'
import { FLUSH_PARAMETERS } from '../ledger/flush.ts'
import { type Database, openDatabase } from './database.ts'
import { applyFunctions } from './functions.ts'
import { migrate } from './migrate.ts'

async function open(t: { after(run: () => Promise<void>): void }, fresh = freshDatabase()): Promise<Database> {
  const { connection, drop } = await fresh
  const database = openDatabase({ connection })
  t.after(async () => {
    await database.close()
    await drop()
  })
  return database
}

async function flushFunctions(database: Database): Promise<Array<{ id: number; parameters: string[] }>> {
  return database.query({
    text: `select p.oid::int as id, p.proargnames[1:p.pronargs] as parameters from pg_proc p where p.proname = 'ledger_flush'`,
  })
}

test('several processes that start at once on an empty database make its tables and functions once', async (t) => {
  const database = await open(t, emptyDatabase())
  await Promise.all([migrate(database), migrate(database), migrate(database)])
  assert.equal((await flushFunctions(database)).length, 1)
})

test('functions are made anew when their text or the columns of usage have changed, and only then', async (t) => {
  const database = await open(t)
  const [before] = await flushFunctions(database)
  await migrate(database)
  assert.deepEqual(await flushFunctions(database), [before])
  await database.query({ text: 'alter table usage add column region text' })
  await migrate(database)
  const [after, ...others] = await flushFunctions(database)
  assert.deepEqual(others, [], 'the one before is gone')
  assert.deepEqual(
    after!.parameters.filter((name) => !before!.parameters.includes(name)),
    ['s_region'],
  )
})

test('the ledger sends every column that a flush takes', async (t) => {
  const database = await open(t)
  const [flush] = await flushFunctions(database)
  assert.deepEqual([...flush!.parameters].sort(), [...FLUSH_PARAMETERS].sort())
})

test('an older version that starts again leaves the functions of a newer one alone', async (t) => {
  const database = await open(t)
  const broken = `create or replace function job_rank(status text) returns integer language sql immutable as 'select 7'`
  const rank = async () => {
    const [row] = await database.query<{ rank: number }>({ text: `select job_rank('PENDING') as rank` })
    return row!.rank
  }
  await database.transaction((tx) => applyFunctions(tx, '0.10.0'))
  await database.query({ text: broken })
  await database.query({ text: `update migration set name = '0.10.0 other' where number = 0` })
  await database.transaction((tx) => applyFunctions(tx, '0.9.9'))
  assert.equal(await rank(), 7)
  await database.transaction((tx) => applyFunctions(tx, '0.10.0'))
  assert.equal(await rank(), 0)
})
