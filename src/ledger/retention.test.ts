import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type FreshDatabase, freshDatabase } from '../../test/database.ts'
import { type Database, openDatabase, PATIENT } from '../database/database.ts'
import { idAtTime, newId, realWorld, type World } from '../kernel/world.ts'
import { createLedger } from './ledger.ts'
import { maintainUsage } from './retention.ts'
import { storeUsageMonths } from './usage-months.ts'

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

const FACTS = {
  endpoint: 'chat',
  status: 200,
  estimated: false,
  stream: false,
  route: 1,
  durationMs: 1,
  firstByteMs: 1,
}
const SETTLED = { ...FACTS, kind: 'settled', charge: 7n, lines: [], inputTokens: 1, outputTokens: 1 } as const
const KEPT_MONTHS = 3
const KEEPING = { usageMonths: KEPT_MONTHS, tries: 1 }
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
  // What is not summed up yet stays.
  assert.equal((await maintainUsage(database, realWorld, KEEPING)).jobs, 0)
  await storeUsageMonths(database, realWorld)
  assert.equal((await maintainUsage(database, realWorld, KEEPING)).jobs, 2)
  const left = await database.query<{ id: string }>({ text: 'select id from job order by id' })
  assert.deepEqual(
    left.map(({ id }) => id),
    ['3', '4', '5', '6'],
  )
  assert.equal((await maintainUsage(database, realWorld, KEEPING)).jobs, 0)
})

/** As it was told before it was set to another time. */
function at(ms: number): World {
  return { ...realWorld, nowMs: () => ms }
}

test('a long reader of usage and a change of month stop no call, and what had to wait is done afterwards', async (t) => {
  const reader = openDatabase({ connection: { ...fresh.connection }, connectionsMax: 1 })
  const ledger = createLedger({ database, world: realWorld, processId: 'p1' })
  await ledger.sweep()
  await database.query({ text: `insert into account (id, name, posted) values ('acc', 'acc', 1000000)` })
  const longAgo = at(monthsAgo(40))
  await maintainUsage(database, longAgo, KEEPING)
  await maintainUsage(database, realWorld, { usageMonths: 100, tries: 1 })
  const partitions = async () => {
    const rows = await database.query<{ name: string }>({
      text: `select relname as name from pg_class where relname ~ '^usage_[0-9]{4}_[0-9]{2}$' and relkind = 'r' order by 1`,
    })
    return rows.map(({ name }) => name)
  }
  assert.equal((await partitions()).length, 6)

  const nextYear = at(monthsAgo(-12))
  // As if every month until then were stored.
  const stored = new Date(monthsAgo(-11)).toISOString().slice(0, 7)
  await database.query({ text: `update setting set value = $1 where name = 'usage-months'` }, [stored])
  const waitsMs: number[] = []
  let over = false
  const calls = async () => {
    while (!over) {
      const fromMs = performance.now()
      const shared = { id: newId(realWorld), account: 'acc', key: 'k', product: 'p', catalogVersion: 1 }
      await ledger.reserve({ ...shared, want: 10n, floor: 10n, tokens: 1 })
      await ledger.resolve({ ...shared, ...SETTLED })
      waitsMs.push(performance.now() - fromMs)
    }
  }
  await reader.transaction(async (tx) => {
    await tx.query({ text: 'select count(*) from usage' })
    const calling = calls()
    const { made, dropped, left } = await maintainUsage(database, nextYear, KEEPING)
    over = true
    await calling
    assert.deepEqual([made, dropped], [[], []])
    assert.equal(left.length, 9)
  }, PATIENT)
  await reader.close()
  await ledger.idle()
  assert.ok(Math.max(...waitsMs) < 30_000, `${Math.max(...waitsMs)} ms`)
  t.diagnostic(`${waitsMs.length} calls, the slowest ${Math.round(Math.max(...waitsMs))} ms`)

  const { made, dropped, left } = await maintainUsage(database, nextYear, KEEPING)
  assert.deepEqual([made.length, dropped.length, left.length], [3, 6, 0])
  assert.deepEqual(await partitions(), made)
  await maintainUsage(database, realWorld, KEEPING)
})

test('a partition has every key and index of the whole', async () => {
  const rows = await database.query<{ table: string; definitions: string }>({
    text: `select t.relname as table, string_agg(pg_get_indexdef(i.indexrelid), ';' order by pg_get_indexdef(i.indexrelid)) as definitions
      from pg_class t join pg_index i on i.indrelid = t.oid where t.relname ~ '^usage(_[0-9]{4}_[0-9]{2})?$' group by t.relname order by 1`,
  })
  // In the order of what they index: their names differ.
  const shapes = rows.map(({ definitions }) =>
    definitions
      .replaceAll(/ (?:INDEX \w+ ON|ON) (?:ONLY )?\S+/g, '')
      .split(';')
      .sort()
      .join(';'),
  )
  assert.ok(rows.length > 1)
  assert.deepEqual(new Set(shapes).size, 1, shapes.join('\n'))
  assert.deepEqual(
    await database.query({
      text: `select c.relname from pg_class c join pg_index i on i.indexrelid = c.oid join pg_class t on t.oid = i.indrelid
        where t.relname ~ '^usage_[0-9]{4}' and not c.relispartition`,
    }),
    [],
    'an index of a partition that is not part of the whole',
  )
})

test('rows of processes that have gone are removed, and those of living ones stay', async () => {
  await database.query({
    text: `insert into gateway_instance (id, heartbeat_at) values ('gone', now() - interval '2 days'), ('here', now())`,
  })
  await maintainUsage(database, realWorld, KEEPING)
  const rows = await database.query({ text: `select id from gateway_instance where id in ('gone', 'here')` })
  assert.deepEqual(rows, [{ id: 'here' }])
})
