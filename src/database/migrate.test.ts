import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { emptyDatabase, freshDatabase } from '../../test/database.ts'
import { newId, realWorld } from '../kernel/world.ts'
import { createLedger } from '../ledger/ledger.ts'
import { type Database, openDatabase, PATIENT, type Queryable } from './database.ts'
import { applyFunctions, listMigrations, migrate } from './migrate.ts'

async function open(t: { after(run: () => Promise<void>): void }, fresh = freshDatabase()): Promise<Database> {
  const { connection, drop } = await fresh
  const database = openDatabase({ connection })
  t.after(async () => {
    await database.close()
    await drop()
  })
  return database
}

/** Each with the transaction that made it. */
async function functionsOf(database: Database): Promise<Array<{ name: string; made: string }>> {
  return database.query({
    text: `select p.oid::regprocedure::text as name, p.xmin::text as made from pg_proc p
      where p.pronamespace = current_schema()::regnamespace and p.proname ~ '^(ledger|counter)_' order by 1`,
  })
}

test('several processes that start at once on an empty database make its tables and functions once', async (t) => {
  const database = await open(t, emptyDatabase())
  await Promise.all([migrate(database), migrate(database), migrate(database)])
  const names = (await functionsOf(database)).map(({ name }) => name.replace(/\(.*/, ''))
  assert.ok(names.includes('ledger_post') && names.includes('counter_now'))
  assert.deepEqual(names, [...new Set(names)])
})

test('functions are made anew when their text has changed, and only then', async (t) => {
  const database = await open(t)
  const before = await functionsOf(database)
  await migrate(database)
  assert.deepEqual(await functionsOf(database), before)
  await database.query({ text: `update migration set name = '0.0.0 other' where number = 0` })
  await migrate(database)
  const after = await functionsOf(database)
  assert.deepEqual(
    after.map(({ name }) => name),
    before.map(({ name }) => name),
    'none besides those before',
  )
  assert.ok(after.every(({ made }, at) => made !== before[at]?.made))
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

test('a process of the version before goes on when an upgrade adds a column, with or without a default', async (t) => {
  const database = await open(t)
  const ledger = createLedger({ database, world: realWorld, processId: 'p1' })
  await database.query({ text: `insert into account (id, name, posted) values ('acc', 'acc', 1000)` })
  await database.query({
    text: `alter table usage add column zone text not null default 'here', add column region text`,
  })
  await database.transaction((tx) => applyFunctions(tx, '9.0.0'))
  const shared = { id: newId(realWorld), account: 'acc', key: 'k', product: 'p', catalogVersion: 1 }
  await ledger.reserve({ ...shared, want: 10n, floor: 10n, tokens: 1 })
  const facts = {
    endpoint: 'chat',
    status: 200,
    estimated: false,
    stream: false,
    route: 1,
    durationMs: 1,
    firstByteMs: 1,
  }
  const paid = { kind: 'settled', charge: 7n, lines: [], inputTokens: 1, outputTokens: 1 } as const
  await ledger.resolve({ ...shared, ...facts, ...paid })
  const rows = await database.query({ text: 'select charged, zone, region from usage' })
  assert.deepEqual(rows, [{ charged: 7n, zone: 'here', region: null }])
})

test('a change of tables that finds them in use lets everybody else go first, and comes again', async (t) => {
  const database = await open(t)
  await database.query({ text: `update migration set name = '0.0.0 other' where number = 0` })
  const write = (tx: Queryable, id: string) =>
    tx.query({ text: `insert into audit (id, actor, action, object, hash) values ($1, '', '', '', '')` }, [id])
  const waitsMs: number[] = []
  let migrating: Promise<unknown> = Promise.resolve()
  // Functions come with the audit's trigger, which waits for whoever writes there.
  await database.transaction(async (tx) => {
    await write(tx, 'long')
    let over = false
    migrating = migrate(database).finally(() => {
      over = true
    })
    const fromMs = performance.now()
    for (let i = 0; performance.now() - fromMs < 2_500; i++) {
      const sentMs = performance.now()
      await write(database, `short-${i}`)
      waitsMs.push(performance.now() - sentMs)
    }
    assert.equal(over, false)
  }, PATIENT)
  await migrating
  const [made] = await database.query<{ name: string }>({ text: 'select name from migration where number = 0' })
  assert.doesNotMatch(made!.name, /other/)
  const slowestMs = Math.max(...waitsMs)
  assert.ok(slowestMs > 500 && slowestMs < 30_000, `${slowestMs} ms`)
})

test('calls of before are given the vendor that the price list of their time names, or the last one that was tried', async (t) => {
  const database = await open(t)
  const run = (text: string, values: readonly string[] = []) => database.query<Record<string, string>>({ text }, values)
  await run('alter table usage drop column vendor')
  await run('alter table journal drop column vendor')
  await run('drop index usage_time')
  await run('drop table saved_view')
  const routes = (...vendors: string[]) => ({ routes: vendors.map((vendor) => ({ vendor })) })
  for (const [version, document] of [
    ['1', { models: { m: routes('old', 'second') }, endpoints: { e: routes('data') } }],
    ['2', { models: { m: routes('new', 'old') }, endpoints: {} }],
  ] as const)
    await run('insert into catalog_version (version, document, actor) values ($1, $2, $3)', [
      ...[version, JSON.stringify(document), 'test'],
    ])
  const tried = JSON.stringify({ attempts: [{ vendor: 'first' }, { vendor: 'last' }] })
  for (const [id, product, version, route, log] of [
    ['a', 'm', '1', '1', null],
    ['b', 'm', '2', '1', null],
    ['c', 'm', '1', '2', null],
    ['d', 'e', '1', '1', null],
    ['e', 'm', '2', '0', tried],
    ['f', 'm', '9', '1', null],
    ['g', 'm', '1', '0', null],
  ] as const)
    await database.query(
      {
        text: `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, route, attempt_log)
          values ('acc', $1, 'k', $2, 'chat', 'settled', 200, 0, 0, $3, '[]', $4, $5)`,
      },
      [id, product, version, route, log],
    )
  const { name = '' } = (await listMigrations()).find((one) => /^\d+_calls\.sql$/.test(one.name)) ?? {}
  await run(await readFile(join(import.meta.dirname, 'migrations', name), 'utf8'))
  const rows = await run('select id, vendor from usage order by id')
  assert.deepEqual(
    rows.map(({ id, vendor }) => [id, vendor]),
    [
      ['a', 'old'],
      ['b', 'new'],
      ['c', 'second'],
      ['d', 'data'],
      ['e', 'last'],
      ['f', null],
      ['g', null],
    ],
  )
})

test('stored attempt logs get the words of the API, and what vendors said stays as it was', async (t) => {
  const database = await open(t)
  const run = (text: string) => database.query<{ attempt_log: unknown }>({ text })
  const logOf = (stop: string, blame: string) => ({
    attempts: [{ stop, said: 'they said "stop": "left", and \\"blame\\": \\"us\\"' }],
    fault: { blame },
  })
  await database.query(
    {
      text: `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, attempt_log)
        values ('acc', 'words', 'k', 'm', 'chat', 'released', 502, 0, 0, 1, '[]', $1)`,
    },
    [JSON.stringify(logOf('left', 'us'))],
  )
  const { name = '' } = (await listMigrations()).find((one) => one.name.endsWith('_attempt_log_words.sql')) ?? {}
  await run(await readFile(join(import.meta.dirname, 'migrations', name), 'utf8'))
  const [row] = await run(`select attempt_log from usage where id = 'words'`)
  assert.deepEqual(row?.attempt_log, logOf('client_closed', 'gateway'))
})
