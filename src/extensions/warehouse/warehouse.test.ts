// Calls reach the analytics store once each, in the order of their postings, whatever the store answers; and nothing
// waits for it. What reports come to is in test/long/clickhouse.long.ts, on a real server.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { clickHouseLike } from '../../../test/clickhouse-like.ts'
import { assert, started, test, testGateway, until } from '../../../test/gateway.ts'
import { account, database, rows } from '../../../test/ledger-part.ts'
import { readConfig } from '../../config.ts'
import { silentLog } from '../../kernel/log.ts'
import { idAtTime, realWorld, type World } from '../../kernel/world.ts'
import { readSums } from '../../reports/sums.ts'
import { createUpstream } from '../../upstream/exchange.ts'
import { type ClickHouse, literal, openClickHouse } from './clickhouse.ts'
import { CREATE } from './table.ts'
import { createWarehouse } from './warehouse.ts'

const g = testGateway()
const simulated = started(clickHouseLike)
const upstream = started(() => createUpstream({ world: realWorld }))

let count = 0
async function calls(account: string, most: number): Promise<void> {
  for (let n = 0; n < most; n++) {
    count += 1
    await rows(
      `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, labels, at)
       values ($1, $2, 'k', 'alpha-5.4', 'chat', 'settled', 200, 9007199254740993, 0, 1, '[["input", 7, "1"]]', $3, now() - interval '1 minute')`,
      [
        account,
        idAtTime(Date.now() - 3_600_000) + String(count).padStart(16, '0'),
        '{"user": "it\'s \\\\ \\u0001 😀"}',
      ],
    )
  }
  // What other tests of this server have begun before could still be posted earlier.
  await until(() => rows('select 1 from usage where posting >= usage_horizon() limit 1'), [])
}

/** Its clock can be set forward. */
function open(rowsMax = 10) {
  let aheadMs = 0
  const world: World = { ...realWorld, nowMs: () => realWorld.nowMs() + aheadMs }
  const clickhouse: ClickHouse = openClickHouse(`http://user:pass%20word@${simulated.host}/calls`, upstream)
  const warehouse = createWarehouse({ database, clickhouse, world, log: silentLog, rowsMax })
  const wait = (ms: number) => {
    aheadMs += ms
  }
  return { warehouse, wait }
}

const report = (callStore: ReturnType<typeof open>['warehouse']['store'], account: string) => {
  const filter = { account, fromMs: Date.now() - 3 * 86_400_000, toMs: Date.now() }
  return readSums({ database, callStore }, filter, { by: 'vendor', per: 'day', zone: 'UTC' })
}

test('every call arrives once, exactly, also after answers that were lost', async () => {
  const id = await account(0n)
  await calls(id, 95)
  const { warehouse, wait } = open()
  simulated.answers.push('take', 'refuse', 'lose', 'take', 'lose', 'break')
  for (let turn = 0; turn < 8; turn++) {
    await warehouse.run()
    wait(120_000)
  }
  assert.equal(simulated.stored().length, 95)
  assert.equal(new Set(simulated.inserted.map(({ id }) => id)).size, 95)
  assert.ok(simulated.inserted.length > 95, 'some were sent again')
  const { waiting, failures, sent } = await warehouse.state()
  assert.deepEqual({ waiting, failures, sent }, { waiting: 0, failures: 0, sent: 95 })
  const [row] = simulated.stored()
  assert.match(row?.line ?? '', /"charged":9007199254740993,/)
  const { label_names, label_values, input_tokens } = JSON.parse(row?.line ?? '')
  assert.deepEqual([label_names, label_values, input_tokens], [['user'], [`it's \\ \u0001 😀`], 7])
  assert.deepEqual(simulated.authorized, ['user', 'pass word', 'calls'])
})

test('two processes at once send each call by one of them', async () => {
  const before = simulated.inserted.length
  await calls(await account(0n), 60)
  const both = [open().warehouse, open().warehouse]
  await Promise.all(both.map((one) => one.run()))
  await Promise.all(both.map((one) => one.run()))
  assert.equal(simulated.inserted.length - before, 60)
})

test('a store that is away is an alert after ten minutes, and reports come from the database and say so', async () => {
  const id = await account(0n)
  await calls(id, 3)
  const { warehouse, wait } = open()
  simulated.answers.push('refuse', 'refuse', 'refuse')
  await warehouse.run()
  assert.equal((await report(warehouse.store, id)).source, 'database')
  assert.deepEqual(warehouse.incidents(), [])
  const { failures, error, waiting } = await warehouse.state()
  assert.deepEqual([failures, waiting], [1, 3])
  assert.match(error ?? '', /^It answered with status 500: Code: 241/)
  await warehouse.run()
  assert.equal((await warehouse.state()).failures, 1, 'it waits before it tries again')
  wait(700_000)
  await warehouse.run()
  const [incident] = warehouse.incidents()
  assert.deepEqual([incident?.name, incident?.serves], ['export', true])
  assert.match(incident?.message ?? '', /For 12 min the analytics store has accepted no calls.*Code: 241/)
  wait(120_000)
  await warehouse.run()
  wait(120_000)
  await warehouse.run()
  assert.deepEqual(warehouse.incidents(), [])
  assert.equal((await warehouse.state()).waiting, 0)
})

test('another store gets all calls from the beginning', async () => {
  const clickhouse = openClickHouse(`http://${simulated.host}/another`, upstream)
  const before = simulated.stored().length
  const warehouse = createWarehouse({ database, clickhouse, world: realWorld, log: silentLog })
  assert.equal(await warehouse.store.hasAll(Date.now()), false)
  await warehouse.run()
  assert.equal((await warehouse.state()).sent, before)
  assert.equal(await warehouse.store.hasAll(Date.now()), true)
})

test('no text ends the literal in which it stands', () => {
  for (const text of [`'`, `\\`, `\\'`, `'; drop table x; --`, '\0', '\\\0', `a'b\\c\nd😀`, '\ud800']) {
    const written = literal(text)
    assert.match(written, /^'(?:[^'\\\0]|\\['\\0])*'$/)
    const read = written.slice(1, -1).replaceAll(/\\(['\\0])/g, (_, char) => (char === '0' ? '\0' : char))
    assert.equal(read, text.toWellFormed())
  }
  assert.equal(literal([1, `it's`]), `[1, 'it\\'s']`)
  assert.equal(literal(-9_223_372_036_854_775_808n), '-9223372036854775808')
  for (const value of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60]) assert.throws(() => literal(value))
})

test('the table and its cluster form are those of deploy/clickhouse', () => {
  const read = (name: string) => readFileSync(join(import.meta.dirname, '../../../deploy/clickhouse', name), 'utf8')
  assert.ok(read('table.sql').endsWith(`\n${CREATE};\n`))
  const columns = /\(\n.*\n\) engine = /s.exec(CREATE)?.[0] ?? ''
  assert.ok(columns.length > 500 && read('cluster.sql').includes(`${columns}Replicated`))
  assert.ok(read('cluster.sql').includes(CREATE.slice(CREATE.indexOf('partition by'))))
  assert.match(read('retention.sql'), /^alter table tollgate_usage modify ttl day \+ interval \d+ month;$/m)
})

test('without its address there is no store, and no report says where it was read', async () => {
  const { id } = await g.account()
  assert.equal(readConfig({}).TOLLGATE_ANALYTICS_URL, undefined)
  const none = { place: null, sent: 0, waiting: 0, sentAt: null, failures: 0, error: null }
  assert.deepEqual(await g.ask('GET', '/warehouse'), none)
  for (const path of ['sums?by=vendor', 'latency', 'labels'])
    assert.ok(!('source' in (await g.ask<object>('GET', `/accounts/${id}/usage/${path}`))))
})
