// Debian's ClickHouse, unchanged: every report comes to the same there and in Postgres, to the millionth of a credit.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { VerificationState } from '../../src/extensions/verify/views.ts'
import { type ClickHouse, literal, openClickHouse } from '../../src/extensions/warehouse/clickhouse.ts'
import { TABLE } from '../../src/extensions/warehouse/table.ts'
import { createWarehouse } from '../../src/extensions/warehouse/warehouse.ts'
import { dayOfMs, formatDay, monthStart } from '../../src/kernel/calendar.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { idAtTime, realWorld } from '../../src/kernel/world.ts'
import { CALLS_ARRIVED, maintainUsage, partitionOf } from '../../src/ledger/retention.ts'
import { sumUsage } from '../../src/ledger/usage-sums.ts'
import type { ReportSources } from '../../src/reports/dialect.ts'
import { readLabelSums, readLatency, readSums, type SumsFilter } from '../../src/reports/sums.ts'
import type { LabelSums, UsageLatency, UsageSums } from '../../src/reports/views.ts'
import { createUpstream } from '../../src/upstream/exchange.ts'
import { clickHouseServer } from '../clickhouse-server.ts'
import { after, assert, before, startGateway, test, until } from '../gateway.ts'
import { account, database, fresh, rows } from '../ledger-part.ts'

const DAY_MS = 86_400_000
const TODAY = dayOfMs(realWorld.nowMs())
/** From the month before the last to the last. */
const FROM_MS = (monthStart(TODAY, -2) + 19) * DAY_MS
const TO_MS = (monthStart(TODAY, -1) + 19) * DAY_MS
const FROM_DAY = formatDay(FROM_MS / DAY_MS)
const CALLS = 6_000
/** What ends a text, begins another, or is no text, in one of both databases. */
const HOSTILE = [
  `it's`,
  `"quoted"`,
  'back\\slash',
  `\\'; drop table tollgate_usage; --`,
  'line\nbreak\r\ttab',
  '😀 é ß İ',
  '\u0001\u001f\u007f',
  '%_\\%',
  '{x:String} $y $1 ?',
  'a,b=c',
  ' ',
  `'`,
  '\\',
  '\u2028\ufeff',
  'NULL',
  '\\N',
  '\\0',
]
const LABELS = ['user', 'session', 'a.b:c/d-e', ':team']

const server = await clickHouseServer()
const skip = 'missing' in server ? server.missing : false
if ('missing' in server) console.log(`ClickHouse was not tested: ${server.missing}`)
const urlOf = (found: typeof server) => ('missing' in found ? '' : found.url)
const upstream = createUpstream({ world: realWorld })
let clickhouse: ClickHouse
let warehouse: ReturnType<typeof createWarehouse>
let accounts: string[] = []
let there: ReportSources
const here = {
  get database() {
    return database
  },
}

/** A number that follows from two others. */
const drawn = (n: number, salt: number) =>
  Number((BigInt(n + 1) * 6364136223846793005n + BigInt(salt) * 1442695040888963407n) % 1_000_003n)

async function call(account: string, n: number): Promise<void> {
  const of = <T>(list: readonly T[], salt: number) => list[Math.abs(drawn(n, salt)) % list.length]!
  const ms = FROM_MS - 2 * DAY_MS + (Math.abs(drawn(n, 1)) / 1_000_003) * (TO_MS - FROM_MS + 4 * DAY_MS)
  const labels =
    n % 5 === 0
      ? null
      : Object.fromEntries(LABELS.filter((_, at) => (n + at) % 2 === 0).map((name, at) => [name, of(HOSTILE, at + 7)]))
  const fault =
    n % 7 === 0
      ? { fault: { name: of(['vendor_error', 'timeout'], 3), message: `Vendor said ${of(HOSTILE, 4)}` } }
      : null
  await rows(
    `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, loss, held, catalog_version, lines, estimated, stream, route,
       duration_ms, first_byte_ms, attempt_log, cost, client, at, vendor, labels, cost_basis)
     values ($1, $2, $3, $4, 'chat', $5, $6, $7, $8, 0, 1, $9, false, true, 1, $10, 3, $11::jsonb, $12, $13, $14::timestamptz, $15, $16::jsonb, $17::jsonb)`,
    [
      account,
      `${idAtTime(Math.floor(ms))}${String(n).padStart(16, '0')}`,
      of(['k1', 'k2'], 5),
      of(['alpha-5.4', 'alpha-image-2', 'x"y'], 6),
      fault ? 'released' : 'settled',
      fault ? of(['502', '429'], 8) : '200',
      String(drawn(n, 9) ** 2 + 1),
      String(n % 3),
      `[["input", ${n}, "1"], ["output", ${n * 2}, "3"]]`,
      String(Math.abs(drawn(n, 10)) % 30_000),
      fault && JSON.stringify(fault),
      n % 4 === 0 ? null : String(drawn(n, 11)),
      of(['', 'codex', ...HOSTILE], 12),
      new Date(ms).toISOString(),
      n % 6 === 0 ? null : of(['textworks', 'imageworks', `v'\\`], 13),
      labels && JSON.stringify(labels),
      n % 9 === 0 ? '{"units": {"output": 5}}' : null,
    ] as string[],
  )
}

before(async () => {
  if ('missing' in server) return
  for (const months of [-2, -1]) {
    const { name, from, to } = partitionOf('usage', TODAY, months)
    await rows(`create table if not exists ${name} partition of usage for values from ('${from}') to ('${to}')`)
  }
  clickhouse = openClickHouse(server.url, upstream)
  warehouse = createWarehouse({ database, clickhouse, world: realWorld, log: silentLog, rowsMax: 700 })
  there = { database, callStore: warehouse.store }
  const own = [await account(0n), await account(0n)]
  await rows(`insert into account (id, name) values ($1, 'its tests')`, [`${own[0]}_test`])
  accounts = [...own, `${own[0]}_test`]
  for (let n = 0; n < CALLS; n++) await call(accounts[n % 3]!, n)
  for (let n = 0; n < 50; n++)
    await rows(
      `insert into refusal (account_id, id, key_id, product, endpoint, status, fault, message, count) values ($1, $2, 'k', 'p', 'chat', 429, 'rate_limited', 'Too many.', 2)`,
      [own[0]!, idAtTime(FROM_MS + (n * DAY_MS) / 3) + String(n).padStart(16, '0')],
    )
  await warehouse.run()
})
after(async () => {
  await upstream.close()
  if (!('missing' in server)) await server.close()
})

const FILTERS: ReadonlyArray<Partial<SumsFilter>> = [
  {},
  { test: true },
  { vendor: 'textworks' },
  { vendor: `v'\\` },
  { product: 'x"y', key: 'k1' },
  { outcome: 'failed' },
  { outcome: 'succeeded' },
  { outcome: 'settled', client: 'codex' },
  { status: '5xx' },
  { status: '429' },
  { fault: 'vendor_error' },
  { durationMsMin: 20_000, chargedMin: 1_000_000n },
  { q: 'VENDOR SAID' },
  { q: 'vendor_error' },
  { endpoint: 'chat', labels: { user: `it's` } },
  { fromMs: FROM_MS + 1, toMs: TO_MS - 12_345_678 },
]
const HOSTILE_FILTERS = HOSTILE.flatMap((text) => [{ q: text }, { labels: { session: text } }, { client: text }])

const sorted = <T>(list: readonly T[]) => [...list].map((one) => JSON.stringify(one)).sort()

/** What depends on the place, and the order of what is equal, are left out. */
function comparable({ source: _, ...answer }: Record<string, unknown> & { readonly source?: string }): object {
  return Object.fromEntries(
    Object.entries(answer).map(([name, value]) => [name, Array.isArray(value) ? sorted(value) : value]),
  )
}

type Said = { readonly source?: 'database' | 'analytics'; readonly totals?: { readonly requests: number } }

/** What a report says in ClickHouse, which is what it says in Postgres. */
async function inBoth(what: object, read: (from: ReportSources) => Promise<object>): Promise<Said> {
  const told = JSON.stringify(what, (_, value) => (typeof value === 'bigint' ? String(value) : value))
  const [ours, theirs]: Said[] = [await read(here), await read(there)]
  assert.equal(theirs?.source, 'analytics', told)
  assert.deepEqual(comparable({ ...theirs }), comparable({ ...ours }), told)
  return theirs ?? {}
}

const BY = ['vendor', 'status', 'client', 'endpoint', 'label:user', 'label:a.b:c/d-e', 'label:none'] as const
const filterOf = (given: Partial<SumsFilter>, account: string | undefined) => {
  return { fromMs: FROM_MS, toMs: TO_MS, account, ...given }
}
/** Those of whole days would be read from the sums by the day. */
const singly = (filter: SumsFilter) => ({ ...filter, durationMsMin: filter.durationMsMin ?? 1 })

test('every report with every filter says the same, to the millionth', { skip, timeout: 600_000 }, async () => {
  let [asked, calls] = [0, 0]
  const ask = async (filter: SumsFilter, read: (from: ReportSources) => Promise<object>) => {
    const { totals } = await inBoth(filter, read)
    asked += 1
    calls += totals?.requests ?? 0
  }
  for (const given of FILTERS)
    for (const account of [undefined, accounts[0]]) {
      const filter = filterOf(given, account)
      for (const by of BY)
        await ask(filter, (from) => readSums(from, filter, { by, per: 'day', zone: 'Europe/Berlin', compare: true }))
      for (const by of ['product', 'label:session'] as const)
        await ask(filter, (from) => readLatency(from, filter, { by, per: 'day', zone: 'America/New_York' }))
      for (const sort of ['charged', 'calls', 'last'] as const)
        await ask(filter, (from) => readLabelSums(from, singly(filter), { label: 'user', sort, offset: 0, limit: 4 }))
    }
  for (const given of HOSTILE_FILTERS) {
    const filter = filterOf(given, undefined)
    const order = { by: 'label:user', per: 'day', zone: 'UTC' } as const
    await ask(filter, (from) => readSums(from, filter, order))
    await ask(filter, (from) => readLatency(from, filter, order))
    await ask(filter, (from) =>
      readLabelSums(from, singly(filter), { label: 'user', sort: 'charged', offset: 1, limit: 2 }),
    )
  }
  const hours = { ...filterOf({ labels: { user: 'NULL' } }, undefined), toMs: FROM_MS + 30 * 3_600_000 }
  await ask(hours, (from) => readSums(from, hours, { by: 'vendor', per: 'hour', zone: 'Asia/Kathmandu' }))
  assert.ok(calls > 10 * CALLS)
  console.log(`${asked} reports on ${CALLS} calls; ${calls} calls were summed up.`)
})

/** Writes a row of the account once more, with changes. */
async function plant(changes: Readonly<Record<string, string>>): Promise<void> {
  const found = await clickhouse.read<{ name: string }>(
    `select name from system.columns where table = '${TABLE}' and database = currentDatabase()`,
  )
  const columns = found.map(({ name }) => changes[name] ?? name).join(', ')
  const of = `account_id = ${literal(accounts[1] ?? '')} and day < toDate('${FROM_DAY}') + 8 and length(label_names) > 1`
  await clickhouse.run(`insert into ${TABLE} select ${columns} from ${TABLE} final where ${of} order by id limit 1`)
}

async function remove(where: string): Promise<void> {
  await clickhouse.run(`alter table ${TABLE} delete where ${where}`)
  const left = () => clickhouse.read<{ n: bigint }>(`select count(*) as n from ${TABLE} where ${where}`)
  await until(async () => (await left())[0]?.n === 0n)
}

const verify = () => warehouse.verify({ whole: true })

test('a changed, a missing and a foreign row are found, and a doubled one counts once', { skip }, async () => {
  assert.deepEqual(await verify(), [])
  await plant({})
  assert.deepEqual(await verify(), [], 'a doubled row counts once')
  const changed: Readonly<Record<string, string>> = {
    charged: 'charged + 1',
    message: `concat(message, ' ')`,
    label_values: `arrayReverse(label_values)`,
    duration_ms: 'duration_ms + 1',
    cost: 'coalesce(cost, 0) + 1',
  }
  for (const [name, expression] of Object.entries(changed)) {
    await plant({ [name]: expression })
    const [problem = '', ...others] = await verify()
    assert.match(
      problem,
      name === 'charged' ? /charged [\d.]+\. The calls/ : /; other columns differ\. The calls/,
      name,
    )
    assert.ok(problem.includes(accounts[1] ?? ''))
    assert.match(problem, /now both are equal/)
    assert.deepEqual(others, [])
    assert.deepEqual(await verify(), [])
  }
  await remove(`account_id = ${literal(accounts[1] ?? '')} and day = toDate('${FROM_DAY}') and status = 502`)
  assert.match(
    (await verify()).join(),
    new RegExp(`on ${FROM_DAY} the analytics store has \\d+ calls.*now both are equal`),
  )
  assert.deepEqual(await verify(), [])
  await plant({ id: `concat(id, 'x')` })
  assert.match((await verify()).join(), /Sending the calls again did not help/)
  await remove(`endsWith(id, 'x')`)
  assert.deepEqual(await verify(), [])
})

const whole = (from: ReportSources) =>
  readSums(from, filterOf({}, undefined), { by: 'vendor', per: 'day', zone: 'UTC' })

test('a report counts a row once that lies there twice', { skip }, async () => {
  await clickhouse.run(`system stop merges ${TABLE}`)
  await plant({})
  const [row] = await clickhouse.read<{ more: bigint }>(
    `select count(*) - (select count(*) from ${TABLE} final) as more from ${TABLE}`,
  )
  assert.ok(Number(row?.more) >= 1)
  // The row that is doubled is the first of all, before the time of other reports.
  const filter = filterOf({ fromMs: FROM_MS - 3 * DAY_MS }, accounts[1])
  const order = { by: 'vendor', per: 'day', zone: 'UTC' } as const
  const largest = { label: 'user', sort: 'charged', offset: 0, limit: 5 } as const
  await inBoth({ doubled: 'sums' }, (from) => readSums(from, filter, order))
  await inBoth({ doubled: 'latency' }, (from) => readLatency(from, filter, order))
  await inBoth({ doubled: 'labels' }, (from) => readLabelSums(from, singly(filter), largest))
  await clickhouse.run(`system start merges ${TABLE}`)
})

test('processes that are killed while they send leave each call there once', { skip }, async () => {
  await clickhouse.run(`drop table ${TABLE}`)
  await database.query({ text: `delete from setting where name = 'analytics-store'` })
  const sent = async () => (await warehouse.state()).sent
  let killed = 0
  for (let before = 0; before < CALLS - 1_000; before = await sent()) {
    const options = JSON.stringify({ connection: fresh.connection, url: urlOf(server), rowsMax: 37 })
    const file = join(import.meta.dirname, '..', 'warehouse-process.ts')
    const child = spawn(process.execPath, [file, options], { stdio: 'inherit' })
    const ended = once(child, 'exit')
    await until(sent, (now) => now > before + 200)
    child.kill('SIGKILL')
    await ended
    killed += 1
  }
  await until(async () => {
    await warehouse.run()
    return (await warehouse.state()).waiting === 0
  })
  await inBoth({ killed }, whole)
  assert.deepEqual(await verify(), [])
  console.log(`${killed} processes were killed while they sent ${CALLS} calls.`)
})

test('calls that came with an account are sent, and until then reports come from the database', { skip }, async () => {
  const [of = ''] = accounts
  await rows(
    `update usage set posting = null, id = overlay(id placing 'X' from 20) where account_id = $1 and status = 429`,
    [of],
  )
  await rows(`insert into setting (name, value) values ('${CALLS_ARRIVED}', 'one')`)
  await remove(`account_id = ${literal(of)} and status = 429`)
  assert.equal((await whole(there)).source, 'database')
  await warehouse.run()
  await inBoth({ arrived: of }, whole)
  assert.deepEqual(await verify(), [])
})

test('the table of a cluster has each call once, on one of its shards', { skip }, async () => {
  const text = readFileSync(join(import.meta.dirname, '../../deploy/clickhouse/cluster.sql'), 'utf8')
  // There is one server, whose shards are databases, and no ZooKeeper.
  const [table = '', distributed = ''] = text
    .replaceAll(/^--.*$/gm, '')
    .replaceAll(` on cluster '{cluster}'`, '')
    .replace(/Replicated(ReplacingMergeTree)\(.*\)/, '$1()')
    .replace(`'{cluster}', currentDatabase()`, `tollgate, ''`)
    .split(';')
  for (const name of ['shard1', 'shard2', 'cluster']) {
    await clickhouse.run(`create database ${name}`)
    await openClickHouse(urlOf(server).replace(/default$/, name), upstream).run(table)
  }
  const cluster = openClickHouse(urlOf(server).replace(/default$/, 'cluster'), upstream)
  await cluster.run(distributed)
  const own = createWarehouse({ database, clickhouse: cluster, world: realWorld, log: silentLog, rowsMax: 1_000 })
  await own.run()
  assert.deepEqual(await own.verify({ whole: true }), [])
  const twice = { database, callStore: own.store }
  const order = { label: 'user', sort: 'charged', offset: 0, limit: 5 } as const
  const labels = (from: ReportSources): Promise<object> => readLabelSums(from, singly(filterOf({}, undefined)), order)
  for (const read of [whole, labels]) {
    const found: Said = await read(twice)
    assert.equal(found.source, 'analytics')
    assert.deepEqual(comparable({ ...found }), comparable({ ...(await read(here)) }))
  }
  for (const name of ['shard1', 'shard2']) {
    const [row] = await cluster.read<{ n: bigint }>(`select count(*) as n from ${name}.${TABLE}_local final`)
    assert.ok((row?.n ?? 0n) > CALLS / 3, `${row?.n} of ${CALLS}`)
  }
  await rows(`delete from setting where name = 'analytics-store'`)
  await warehouse.run()
})

test('with the store a report on single calls may be of a year', { skip }, async () => {
  const year = { ...filterOf({ vendor: 'textworks' }, undefined), fromMs: TO_MS - 300 * DAY_MS }
  const order = { by: 'vendor', per: 'day', zone: 'UTC' } as const
  const { source, totals } = await readSums(there, year, order)
  assert.deepEqual([source, totals], ['analytics', (await readSums(here, year, order)).totals])
  const away = { database, callStore: { ...warehouse.store, hasAll: async () => false } }
  await assert.rejects(readSums(away, year, order), { kind: 'request_invalid' })
})

test('while the server is away reports come from the database and say so, and nothing is lost', { skip }, async () => {
  if ('missing' in server) return
  await server.kill()
  await call(accounts[0] ?? '', CALLS)
  await warehouse.run()
  const { failures, error, waiting } = await warehouse.state()
  assert.deepEqual({ failures, error, waiting }, { failures: 1, error: 'The connection failed.', waiting: 1 })
  const { source, ...away } = await whole(there)
  assert.equal(source, 'database')
  assert.deepEqual(away, await whole(here))
  assert.deepEqual(await verify(), [])
  await server.start()
  await until(async () => {
    await warehouse.run()
    return (await warehouse.state()).waiting === 0
  })
  await inBoth({ is: 'back' }, whole)
})

test('a month leaves the database when all of it is there, and its calls are still in reports', { skip }, async () => {
  if ('missing' in server) return
  const before = await whole(there)
  const maintain = () =>
    maintainUsage(database, realWorld, { usageMonths: 24, tries: 3, offloaded: { ...warehouse.store, callDays: 28 } })
  await sumUsage(database)
  await plant({ id: `concat(id, 'x')` })
  assert.deepEqual((await maintain()).dropped, [], 'both differ')
  await remove(`endsWith(id, 'x')`)
  assert.deepEqual((await maintain()).dropped, [partitionOf('usage', TODAY, -2).name])
  assert.deepEqual(await whole(there), before)
  assert.notDeepEqual((await whole(here)).totals, before.totals)
  assert.deepEqual(await verify(), [], 'what has left is not missed')
  const old = { ...filterOf({ vendor: 'textworks' }, undefined), toMs: FROM_MS + DAY_MS }
  const order = { by: 'vendor', per: 'hour', zone: 'UTC' } as const
  assert.equal((await readSums(there, old, order)).source, 'analytics', 'a short time of which nothing is here')
  await server.kill()
  await assert.rejects(whole(there), { kind: 'unavailable' })
  await server.start()
  assert.deepEqual(await whole(there), before)
})

test('a gateway says where its reports were read, and its verification finds a changed call', { skip }, async () => {
  if ('missing' in server) return
  await clickhouse.run('create database gateway')
  const url = server.url.replace(/default$/, 'gateway')
  await using g = await startGateway({ env: { TOLLGATE_ANALYTICS_URL: url } })
  const { id, key } = await g.account()
  const body = { model: 'alpha-5.4', user: `O'Neil \\`, messages: [{ role: 'user', content: 'Hello!' }] }
  for (let n = 0; n < 3; n++) assert.equal((await g.call('/v1/chat/completions', key, body)).status, 200)
  await g.settled()
  const back = `update usage set id = $1 || substr(id, 11), at = now() - interval '2 days'`
  await g.sql(back, [idAtTime(realWorld.nowMs() - 2 * DAY_MS)])
  await until(async () => (await g.ask<{ sent: number }>('GET', '/warehouse')).sent, 3)
  const path = `/accounts/${id}/usage`
  const days = `from=${formatDay(TODAY - 9)}T00:00:00Z&to=${formatDay(TODAY + 1)}T00:00:00Z`
  const labels = await g.ask<LabelSums>('GET', `${path}/labels?${days}`)
  assert.deepEqual([labels.source, labels.items[0]?.value, labels.items[0]?.calls], ['analytics', body.user, 3])
  const latency = await g.ask<UsageLatency>('GET', `${path}/latency?${days}&by=vendor`)
  assert.deepEqual([latency.source, latency.overall?.calls], ['analytics', 3])
  const sums = await g.ask<UsageSums>('GET', `${path}/sums?${days}&by=label:user`)
  assert.deepEqual([sums.source, sums.totals.charged], ['analytics', labels.totals.charged])
  const today = `from=${formatDay(TODAY)}T00:00:00Z&to=${formatDay(TODAY + 1)}T00:00:00Z`
  assert.equal((await g.ask<UsageSums>('GET', `${path}/sums?${today}&by=vendor`)).source, 'database')
  assert.ok(!('source' in (await g.ask<UsageSums>('GET', `${path}/sums?${days}&by=product`))), 'sums by the hour')
  const own = openClickHouse(url, upstream)
  const found = await own.read<{ name: string }>(
    `select name from system.columns where table = '${TABLE}' and database = 'gateway'`,
  )
  const columns = found.map(({ name }) => (name === 'charged' ? 'charged + 1' : name)).join(', ')
  await own.run(`insert into ${TABLE} select ${columns} from ${TABLE} final limit 1`)
  const verify = async () => {
    await g.ask('POST', '/ledger/verify', { full: true })
    const state = () => g.ask<VerificationState>('GET', '/ledger/verify')
    return until(async () => (({ running, last }) => running === null && last?.problems)(await state()))
  }
  const problems = await verify()
  assert.match(
    problems.join(),
    new RegExp(`Of account ${id} on .* the analytics store has 3 calls.* now both are equal`),
  )
})
