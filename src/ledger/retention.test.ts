import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type FreshDatabase, freshDatabase } from '../../test/database.ts'
import { type Database, openDatabase } from '../database/database.ts'
import { idAtTime, realWorld } from '../kernel/world.ts'
import { maintainUsage } from './retention.ts'

let fresh: FreshDatabase
let database: Database
before(async () => {
  fresh = await freshDatabase()
  database = openDatabase({ connection: { ...fresh.connection }, connectionsMax: 2 })
})
after(async () => {
  await database.close()
  await fresh.drop()
})

const KEPT_MONTHS = 3
const monthsAgo = (months: number) => {
  const now = new Date(realWorld.nowMs())
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 15)
}

async function makeJob(id: string, atMs: number, row: { status: string; open: boolean; endedMs?: number }) {
  await database.query(
    {
      text: `insert into job (id, account_id, key_id, hold_id, product, catalog_version, input, request, status, verdict, open, created_at, completed_at)
        values ($1, 'acc_1', 'key_1', $2, 'vidu', 1, '{}', '{}', $3, $4, $5, $6, $7)`,
    },
    [
      ...[id, `${idAtTime(atMs)}${id}`, row.status, row.endedMs ? row.status : null, row.open, new Date(atMs)],
      row.endedMs ? new Date(row.endedMs) : null,
    ] as string[],
  )
}

test('jobs that ended before the months that are kept are dropped, and no other', async () => {
  const old = monthsAgo(KEPT_MONTHS + 1)
  await makeJob('1', old, { status: 'COMPLETED', open: false, endedMs: old })
  await makeJob('2', old, { status: 'FAILED', open: false, endedMs: old })
  await makeJob('3', old, { status: 'COMPLETED', open: true, endedMs: old })
  await makeJob('4', old, { status: 'PROCESSING', open: true })
  await makeJob('5', old, { status: 'CANCELLED', open: false, endedMs: monthsAgo(1) })
  await makeJob('6', monthsAgo(1), { status: 'COMPLETED', open: false, endedMs: monthsAgo(1) })
  assert.equal((await maintainUsage(database, realWorld, KEPT_MONTHS)).jobs, 2)
  const left = await database.query<{ id: string }>({ text: 'select id from job order by id' })
  assert.deepEqual(
    left.map(({ id }) => id),
    ['3', '4', '5', '6'],
  )
  assert.equal((await maintainUsage(database, realWorld, KEPT_MONTHS)).jobs, 0)
})
