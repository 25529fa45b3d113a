import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { freshDatabase } from '../../test/database.ts'
import { SMALL_CATALOG } from '../../test/small-catalog.ts'
import { type CatalogStore, openCatalog } from '../catalog/store.ts'
import { createAudit } from '../database/audit.ts'
import { createChanges } from '../database/changes.ts'
import { type Database, openDatabase } from '../database/database.ts'
import { newId, realWorld, timeOfId } from '../kernel/world.ts'
import { chargeOf } from '../meter/charge.ts'
import type { Usage } from '../meter/usage.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { keepLimits } from './limits.ts'
import { verifyLedger } from './verify.ts'

let database: Database
let drop: () => Promise<void>
let ledger: Ledger
let catalog: CatalogStore
let account: string

before(async () => {
  const fresh = await freshDatabase()
  drop = fresh.drop
  database = openDatabase({ connection: fresh.connection })
  ledger = createLedger({ database, world: realWorld, processId: 'p1', graceMs: 0 })
  catalog = await openCatalog({
    database,
    changes: createChanges(database, realWorld),
    audit: createAudit({ database, world: realWorld }),
    initial: SMALL_CATALOG,
  })
  account = `acc_${newId(realWorld)}`
  await database.query({ text: 'insert into account (id, name) values ($1, $1)' }, [account])
  await ledger.grant({ account, amount: 100_000_000n, note: 'start', actor: 'test' })
  await ledger.grant({ account, amount: -5_000_000n, note: 'too much', actor: 'test' })
  await database.transaction((tx) => keepLimits(tx, { kind: 'account', account }, { concurrency: 100 }))
})
after(async () => {
  await ledger.idle()
  await database.close()
  await drop()
})

const sql = (text: string) => database.query({ text })

async function call(usage: Usage | undefined, options: { estimated?: boolean; want?: bigint } = {}): Promise<string> {
  const { estimated = false, want = 1_000_000n } = options
  const id = newId(realWorld)
  const common = { id, account, key: 'key_1', product: 'alpha-5.4', catalogVersion: catalog.current.version }
  await ledger.reserve({ ...common, want, floor: want, tokens: 1 })
  const pricing = catalog.current.document.models['alpha-5.4']!.pricing
  const charge = usage ? chargeOf(pricing, usage) : { amount: 0n, lines: [] }
  await ledger.resolve({
    ...common,
    kind: usage ? 'settled' : 'released',
    charge: estimated && charge.amount > want ? want : charge.amount,
    lines: charge.lines,
    endpoint: 'chat',
    status: usage ? 200 : 502,
    estimated,
    stream: false,
    route: 1,
    durationMs: 12,
    firstByteMs: 3,
    inputTokens: usage?.input ?? 0,
    outputTokens: usage?.output ?? 0,
  })
  return id
}

async function problems(): Promise<string[]> {
  const result = await verifyLedger(database, catalog)
  assert.equal(result.ok, result.problems.length === 0)
  return result.problems
}

test('a ledger in use verifies: grants, settlements of every tier, estimates, releases, expiries, open holds', async () => {
  await call({ input: 100, output: 50 })
  await call({ input: 1200, cachedInput: 400, output: 70 })
  await call({ input: 900_000, output: 70_000 }, { estimated: true })
  await call({})
  await call(undefined)
  const expired = newId(realWorld)
  const open = newId(realWorld)
  const dead = createLedger({ database, world: realWorld, processId: 'dead' })
  const common = { account, key: 'key_1', product: 'alpha-5.4', catalogVersion: 1, floor: 1n, tokens: 1 }
  await dead.reserve({ ...common, id: expired, want: 7n })
  await ledger.sweep()
  await ledger.reserve({ ...common, id: open, want: 9n })
  const late = await dead.resolve({
    ...{
      id: expired,
      account,
      key: 'key_1',
      product: 'alpha-5.4',
      catalogVersion: 1,
      kind: 'settled',
      endpoint: 'chat',
    },
    ...chargeAs({ input: 10, output: 1 }),
    ...{ status: 200, estimated: false, stream: false, route: 1, durationMs: 1, firstByteMs: 1 },
    ...{ inputTokens: 10, outputTokens: 1 },
  })
  assert.equal(late.outcome, 'late')
  // An estimate is cut to what was held, also when that hold has expired in the meantime.
  const expiredEstimate = newId(realWorld)
  await dead.reserve({ ...common, id: expiredEstimate, want: 7n })
  await ledger.sweep()
  const lateEstimate = await dead.resolve({
    ...{ id: expiredEstimate, account, key: 'key_1', product: 'alpha-5.4', catalogVersion: 1, kind: 'settled' },
    ...{ ...chargeAs({ input: 1_000, output: 100 }), charge: 7n, endpoint: 'chat' },
    ...{ status: 200, estimated: true, stream: false, route: 1, durationMs: 1, firstByteMs: 1 },
    ...{ inputTokens: 1_000, outputTokens: 100 },
  })
  assert.equal(lateEstimate.outcome, 'late')
  const result = await verifyLedger(database, catalog)
  assert.deepEqual(result, {
    ok: true,
    checked: { accounts: 1, transfers: 11, holds: 1, usage: 9 },
    problems: [],
  })
})

function chargeAs(usage: Usage) {
  const { amount, lines } = chargeOf(catalog.current.document.models['alpha-5.4']!.pricing, usage)
  return { charge: amount, lines }
}

test('whatever row is tampered with, the verification says so, and is content when it is undone', async () => {
  const id = await call({ input: 100, output: 50 })
  const rows = [
    // what is done, how it is undone, what is reported
    [
      `update account set posted = posted + 1 where id = $1`,
      `update account set posted = posted - 1 where id = $1`,
      /balance is/,
    ],
    [`update account set held = held + 1 where id = $1`, `update account set held = held - 1 where id = $1`, /held/],
    [
      `update transfer set amount = amount + 1 where id = $2`,
      `update transfer set amount = amount - 1 where id = $2`,
      /charge of call/,
    ],
    [
      `update transfer set loss = loss + 1 where id = $2`,
      `update transfer set loss = loss - 1 where id = $2`,
      /loss of call/,
    ],
    [
      `update transfer set kind = 'released' where id = $2`,
      `update transfer set kind = 'settled' where id = $2`,
      /is released, but/,
    ],
    [
      `update transfer set account_id = 'acc_x' where id = $2`,
      `update transfer set account_id = $1 where id = $2`,
      /acc_x, which does not exist/,
    ],
    [
      `update usage set charged = charged - 1 where id = $2`,
      `update usage set charged = charged + 1 where id = $2`,
      /its arithmetic gives/,
    ],
    [
      `update usage set lines = '[["input", 1, "2000000"]]' where id = $2`,
      `update usage set lines = '[["input", 100, "2000000"], ["output", 50, "8000000"]]' where id = $2`,
      /its arithmetic gives/,
    ],
    [
      `update usage set lines = '[["input", 100, "6000000"]]' where id = $2`,
      `update usage set lines = '[["input", 100, "2000000"], ["output", 50, "8000000"]]' where id = $2`,
      /has the rates/,
    ],
    [
      `update usage set lines = '[["input", "many", "x"]]' where id = $2`,
      `update usage set lines = '[["input", 100, "2000000"], ["output", 50, "8000000"]]' where id = $2`,
      /cannot be read/,
    ],
    [
      `update usage set catalog_version = 77 where id = $2`,
      `update usage set catalog_version = 1 where id = $2`,
      /no catalogue version 77/,
    ],
    [
      `update usage set product = 'omega' where id = $2`,
      `update usage set product = 'alpha-5.4' where id = $2`,
      /no product "omega"/,
    ],
    [`update usage_hour set charged = charged + 5`, `update usage_hour set charged = charged - 5`, /hourly sum/],
    [`update hold set amount = amount + 1`, `update hold set amount = amount - 1`, /its holds sum to/],
    [`update limited set held = held + 1`, `update limited set held = held - 1`, /limits of account:/],
  ] as const
  for (const [tamper, undo, report] of rows) {
    await sql(named(tamper, id))
    assert.match((await problems()).join('\n'), report, tamper)
    await sql(named(undo, id))
    assert.deepEqual(await problems(), [], undo)
  }
})

const named = (text: string, id: string) => text.replaceAll('$1', `'${account}'`).replaceAll('$2', `'${id}'`)

test('a removed row is missed: transfer, usage, hold, and one that was added is an orphan', async () => {
  const id = await call({ input: 100, output: 50 })
  const moves = [
    [`delete from usage where id = '${id}'`, /has no usage row/, 'usage'],
    [`delete from transfer where id = '${id}'`, /has no transfer/, 'transfer'],
    [`delete from hold`, /held amount is/, 'hold'],
  ] as const
  for (const [tamper, report, table] of moves) {
    await sql(`create table kept as select * from ${table}`)
    await sql(tamper)
    assert.match((await problems()).join('\n'), report, tamper)
    await sql(`delete from ${table}`)
    await sql(`insert into ${table} select * from kept`)
    await sql('drop table kept')
    assert.deepEqual(await problems(), [])
  }
  await sql(`delete from usage where id = '${id}'`)
  const nextHourMs = Math.ceil((timeOfId(id) + 1) / 3_600_000) * 3_600_000
  assert.equal((await verifyLedger(database, catalog, { usageSinceMs: nextHourMs })).ok, true, 'trimmed by age')
  assert.equal((await verifyLedger(database, catalog)).ok, false)
})
