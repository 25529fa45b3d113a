import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { emptyDatabase, freshDatabase } from '../../test/database.ts'
import { assert, pluck, test, until } from '../../test/kit.ts'
import { newId, realWorld } from '../kernel/world.ts'
import { createLedger } from '../ledger/ledger.ts'
import { createBackfills } from './backfill.ts'
import { type Database, openDatabase, PATIENT, type Queryable } from './database.ts'
import { applyFunctions, listMigrations, migrate, planMigrations } from './migrate.ts'
import { objectionTo, stepsOf } from './migration-plan.ts'

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
    pluck(after, 'name'),
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
    // It has come, has let these go first, and has come again. One that did not let them go would let them wait for
    // ever.
    for (let i = 0; waitsMs.filter((ms) => ms > 50).length < 3; i++) {
      const sentMs = performance.now()
      await write(database, `short-${i}`)
      waitsMs.push(performance.now() - sentMs)
    }
    assert.equal(over, false)
  }, PATIENT)
  await migrating
  const [made] = await database.query<{ name: string }>({ text: 'select name from migration where number = 0' })
  assert.doesNotMatch(made!.name, /other/)
})

test('a database of an unreleased version is refused with one sentence that says how to export it', async (t) => {
  const database = await open(t)
  await database.query({ text: `update migration set name = '0001_base.sql' where number = 1` })
  await assert.rejects(migrate(database), /before the first release.*tollgate apply --export/)
})

test('no migration rewrites a table that grows with every call, or locks it while it reads it; the line is named', async () => {
  for (const { name, sql } of await listMigrations()) assert.deepEqual([name, ...objections(sql)], [name])
  for (const bad of [
    'create index usage_x on usage (product)',
    'create unique index x on transfer (id)',
    'alter table usage alter column route type integer',
    'alter table usage_hour add column x bigint not null default random()',
    'alter table usage add column x text generated always as (lower(product)) stored',
    'alter table transfer alter column note set not null',
    'alter table transfer add constraint t check (amount >= 0)',
    `update usage set client = '' where client is null`,
    'delete from usage_2026_01',
    `do $$ begin update usage set client = ''; end $$`,
    'alter table account add column x text; create index concurrently usage_x on usage (product)',
  ])
    assert.match(objections(`-- Why: because.\ncreate table t (id text);\n${bad};`).join(), /(^|,)line 3: /, bad)
  for (const good of [
    'create index concurrently usage_x on usage (product)',
    `alter table usage add column x text, add column y bigint not null default 0, add column z text not null default 'type; of, check'`,
    'alter table usage alter column posting set default usage_posting()',
    'alter table transfer add constraint t check (amount >= 0) not valid',
    'alter table transfer validate constraint t',
    'create table t (id text); create index t_x on t (id)',
    'create index team_x on team (name)',
  ])
    assert.deepEqual(objections(good), [], good)
})

function objections(sql: string): string[] {
  const steps = stepsOf(sql)
  return steps.flatMap((step) => objectionTo(step, steps) ?? [])
}

/** This version, and one after it with these files. */
async function nextVersion(
  t: { after(run: () => Promise<void>): void },
  files: Record<string, string>,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-migrations-'))
  t.after(() => rm(folder, { recursive: true }))
  await cp(join(import.meta.dirname, 'migrations'), folder, { recursive: true })
  for (const [name, sql] of Object.entries(files)) await writeFile(join(folder, name), sql)
  return folder
}

const USAGE = `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines)
  select 'acc' || n % 3, 'u' || n, 'k', 'm', 'chat', 'settled', 200, 0, 0, 1, '[]' from generate_series(1, 5000) n`

test('a column, an index of every partition and a backfill come one after the other, and go on where a process died', async (t) => {
  const database = await open(t)
  const run = (text: string) => database.query<Record<string, unknown>>({ text })
  await run('create table usage_early (like usage including all)')
  await run(`alter table usage attach partition usage_early for values from ('u') to ('u3')`)
  await run(USAGE)
  await run('analyze usage')
  const folder = await nextVersion(t, {
    '0002_region.sql': 'alter table usage add column region text;',
    '0003_region_index.sql':
      'create index concurrently usage_region on usage (account_id, region) where region is not null;',
    '0003_region.backfill.sql': `-- Where it was.\nupdate usage set region = 'eu' where region is null;`,
    '0004_broken.sql': 'alter table usage add column zone text; alter table nothing add column x text;',
  })
  const plan = await planMigrations(database, folder)
  assert.match(plan.join('\n'), /^3 migrations are to be applied/)
  assert.match(plan.join('\n'), /0002_region.sql, line 1: usage is locked for a moment.*none of its about 5,000 rows/)
  assert.match(
    plan.join('\n'),
    /0003_region_index.sql, line 1: the index usage_region of usage is built beside calls \(about 5,000 rows\)/,
  )
  assert.match(plan.join('\n'), /0003_region: maintenance fills in usage while calls go on \(about 5,000 rows\)/)
  // A process that died while it built an index leaves one that is not valid.
  await run('create index usage_early_usage_region on usage_early (account_id)')
  await run(`update pg_index set indisvalid = false where indexrelid = 'usage_early_usage_region'::regclass`)
  await assert.rejects(migrate(database, folder), /Migration 0004_broken.sql failed and nothing was changed by it/)
  const applied = await run('select number from migration where number > 0 order by number')
  assert.deepEqual(pluck(applied, 'number'), [1, 2, 3], 'those before it stay')
  const [index] = await run(
    `select i.indisvalid as valid, (select count(*)::int from pg_inherits where inhparent = i.indexrelid) as parts from pg_index i where indexrelid = 'usage_region'::regclass`,
  )
  assert.deepEqual(index, { valid: true, parts: 2 })
  assert.deepEqual(
    await run(`select 1 from information_schema.columns where table_name = 'usage' and column_name = 'zone'`),
    [],
  )
  const processes = [createBackfills(database, { folder }), createBackfills(database, { folder })]
  await until(async () => (await Promise.all(processes.map((one) => one.tick()))).every((more) => !more))
  assert.deepEqual(await run(`select count(*)::int as rows from usage where region = 'eu'`), [{ rows: 5000 }])
  const [state] = (await processes[0]?.progress()) ?? []
  assert.deepEqual([state?.name, state?.rows, state?.done], ['0003_region', 5000, true])
})

test('processes that start together wait for one that builds an index, and it does not wait for them', async (t) => {
  const database = await open(t)
  await database.query({ text: USAGE })
  const folder = await nextVersion(t, {
    '0002_product.sql': 'create index concurrently usage_product on usage (product);',
  })
  await Promise.all([migrate(database, folder), migrate(database, folder), migrate(database, folder)])
  const rows = await database.query({
    text: `select indisvalid as valid from pg_index where indexrelid = 'usage_product'::regclass`,
  })
  assert.deepEqual(rows, [{ valid: true }])
})
