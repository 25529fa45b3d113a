// The ledger on a real Citus cluster: TOLLGATE_TEST_CITUS names the coordinator of one with workers, as a superuser.
import assert from 'node:assert/strict'
import { readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { storedCatalogs } from '../src/catalog/store.ts'
import { readBackup, writeBackup } from '../src/database/backup.ts'
import { type Database, openDatabase } from '../src/database/database.ts'
import { isDistributed } from '../src/database/functions.ts'
import type { Fault } from '../src/kernel/fault.ts'
import { newId, realWorld } from '../src/kernel/world.ts'
import { createLedger, type Ledger } from '../src/ledger/ledger.ts'
import { keepLimits } from '../src/ledger/limits.ts'
import type { Reservation, Resolution } from '../src/ledger/operation.ts'
import { maintainUsage } from '../src/ledger/retention.ts'
import { verifyLedger } from '../src/ledger/verify.ts'
import { moveAccount } from '../src/process/move.ts'
import { checkBooks, noHolds } from './chaos/books.ts'
import { type GatewayProcess, startProcess } from './chaos/gateway-process.ts'
import { startTraffic } from './chaos/traffic.ts'
import { emptyDatabase, freshDatabase } from './database.ts'
import { until } from './faults/raw-client.ts'
import { OPERATOR_TOKEN, SECRET } from './gateway.ts'

const COORDINATOR = process.env.TOLLGATE_TEST_CITUS
const skip = COORDINATOR === undefined ? 'TOLLGATE_TEST_CITUS names no coordinator of a Citus cluster' : false
const KEY = /tg_live_\w{38}/
const NAME = `test_${newId(realWorld)}`
const SCRIPT = join(import.meta.dirname, '..', 'deploy', 'citus', 'distribute.sql')

let database: Database
let ledger: Ledger
let env: { readonly DATABASE_URL: string }
let gateway: GatewayProcess | undefined
/** Of the first account. */
let key = ''
let nodes: string[] = []

const withDatabase = (address: string, name: string) => Object.assign(new URL(address), { pathname: `/${name}` }).href

async function run(address: string, ...texts: string[]): Promise<void> {
  const client = new pg.Client(address)
  await client.connect()
  try {
    for (const text of texts) await client.query(text)
  } finally {
    await client.end()
  }
}

before(async () => {
  if (COORDINATOR === undefined) return
  const client = new pg.Client(COORDINATOR)
  await client.connect()
  const { rows } = await client.query<{ host: string; port: number }>(
    `select nodename as host, nodeport as port from pg_dist_node where noderole = 'primary' order by groupid`,
  )
  await client.end()
  nodes = rows.map(({ host, port }) => Object.assign(new URL(COORDINATOR), { hostname: host, port: String(port) }).href)
  for (const node of nodes) {
    await run(node, `create database ${NAME}`)
    await run(withDatabase(node, NAME), 'create extension citus')
  }
  const url = withDatabase(COORDINATOR, NAME)
  const [first, ...others] = rows
  await run(
    url,
    `select citus_set_coordinator_host('${first?.host}', ${first?.port})`,
    ...others.map(({ host, port }) => `select citus_add_node('${host}', ${port})`),
  )
  database = openDatabase({ connection: { connectionString: url } })
  env = {
    ...{ DATABASE_URL: url, TOLLGATE_SECRET: SECRET, TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN },
    ...{ TOLLGATE_DATA: join(tmpdir(), NAME), TOLLGATE_SANDBOX_SPEED: '100', TOLLGATE_DATABASE_CONNECTIONS: '8' },
  }
  // As the guide says: the first gateway makes its tables and its queue's, and the next ones find them spread.
  const maker = await startProcess({ env: { ...env } })
  await until(() => KEY.test(maker.output))
  key = KEY.exec(maker.output)?.[0] ?? ''
  assert.equal(await maker.stop(), 0, maker.output)
  assert.equal(await isDistributed(database), false)
  await run(url, await readFile(SCRIPT, 'utf8'))
  gateway = await startProcess({ env: { ...env } })
  assert.equal(await isDistributed(database), true)
  ledger = createLedger({ database, world: realWorld, processId: 'p1', graceMs: 0 })
  await ledger.sweep()
})
after(async () => {
  if (COORDINATOR === undefined) return
  gateway?.kill('SIGKILL')
  await gateway?.exited
  await ledger?.idle()
  await database.close()
  await rm(join(tmpdir(), NAME), { recursive: true, force: true })
  for (const node of nodes.toReversed()) await run(node, `drop database if exists ${NAME} with (force)`)
})

async function account(credits: bigint): Promise<string> {
  const id = `acc_${newId(realWorld)}`
  await database.query({ text: 'insert into account (id, name) values ($1, $1)' }, [id])
  await ledger.grant({ account: id, amount: credits, note: 'test', actor: 'test' })
  return id
}

const call = (account: string) => ({ id: newId(realWorld), account, key: 'k1', product: 'p', catalogVersion: 1 })
type Call = ReturnType<typeof call>
const reserve = (of: Call, more: Partial<Reservation> = {}, by = ledger) =>
  by.reserve({ ...of, want: 10n, floor: 10n, tokens: 5, ...more })
const FACTS = {
  endpoint: 'chat',
  status: 200,
  estimated: false,
  stream: false,
  route: 1,
  durationMs: 5,
  firstByteMs: 2,
}
const settle = (of: Call, charge: bigint, more: Partial<Resolution> = {}, by = ledger) =>
  by.resolve({
    ...{ ...of, ...FACTS, inputTokens: 1, outputTokens: 2, lines: [] },
    ...{ kind: 'settled', charge, ...more },
  })

async function balance(id: string): Promise<readonly [bigint, bigint]> {
  const [row] = await database.query<{ posted: bigint; held: bigint }>(
    { text: 'select posted, held from account where id = $1' },
    [id],
  )
  return [row?.posted ?? -1n, row?.held ?? -1n]
}

const count = async (what: string) =>
  Number((await database.query<{ n: bigint }>({ text: `select count(*) as n from ${what}` }))[0]?.n)

/** Done by hand and undone, and what is said of it. */
const CORRUPTIONS: ReadonlyArray<readonly [string, string, RegExp]> = [
  ['update account set posted = posted + 1', 'update account set posted = posted - 1', /balance is/],
  [`update job set key_id = key_id || 'x'`, 'update job set key_id = left(key_id, -1)', /its hold or charge is one of/],
  [`update account set limits = '{"concurrency": 5}'`, `update account set limits = '{}'`, /nothing counts for them/],
  [
    `insert into limited (account_id, scope, limits) select id, 'account', '{"spendTotal": "5"}' from account`,
    `delete from limited where scope = 'account'`,
    /not those that were set/,
  ],
]

test('a whole gateway works there, is killed and followed by another, and its ledger adds up', {
  skip,
}, async () => {
  const operator = async (path: string, body: object) => {
    const answer = await fetch(`${gateway?.url}/admin/v1${path}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    assert.equal(answer.status, 200, await answer.text())
  }
  const traffic = startTraffic({
    ...{ urls: () => [gateway?.url ?? ''], key, kinds: ['chat', 'stream', 'data', 'leave'] },
    perSecond: 15,
  })
  const paid = (more: number, from = traffic.acknowledged().length) =>
    until(() => traffic.acknowledged().length >= from + more)
  await paid(20)
  // While this process has a share of them, too.
  await operator('/limits', { spendPerDay: '1000000', requestsPerMinute: 100_000 })
  await paid(20)
  await operator('/limits', { spendPerDay: '2000000' })
  await paid(20)
  const film = await fetch(`${gateway?.url}/v1/video/seedance`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'videogen-2.0', prompt: 'a boat', resolution: '480p' }),
  })
  assert.equal(film.status, 200, await film.text())
  gateway?.kill('SIGKILL')
  await gateway?.exited
  gateway = await startProcess({ env: { ...env } })
  await paid(20)
  await operator('/limits', { spendPerDay: null, requestsPerMinute: null })
  await traffic.stop()
  // Both processes worked on it.
  await until(async () => (await count(`job where status = 'COMPLETED' and not open`)) === 1)
  await noHolds(database, 90_000)
  const books = await checkBooks(database, traffic.acknowledged())
  assert.ok(books.acknowledged >= 80 && books.settled > books.acknowledged)
  for (const [change, back, said] of CORRUPTIONS) {
    await run(env.DATABASE_URL, change)
    const { problems } = await verifyLedger(database, storedCatalogs(database))
    await run(env.DATABASE_URL, back)
    assert.match(problems.join('\n'), said)
  }
})

test('calls of many accounts on several servers are admitted and paid exactly', { skip }, async () => {
  const accounts = await Promise.all(Array.from({ length: 12 }, () => account(200n)))
  const outcomes = await Promise.all(
    accounts.flatMap((id) =>
      Array.from({ length: 25 }, async () => {
        const of = call(id)
        const { outcome } = await reserve(of)
        if (outcome === 'held') await settle(of, 10n)
        return outcome
      }),
    ),
  )
  assert.equal(outcomes.filter((outcome) => outcome === 'held').length, 12 * 20)
  await ledger.idle()
  for (const id of accounts) assert.deepEqual(await balance(id), [0n, 0n])
  const [sums] = await database.query<{ transfers: bigint; usage: bigint; hours: bigint }>(
    {
      text: `select (select count(*) from transfer where kind = 'settled' and account_id = any($1)) as transfers,
      (select count(*) from usage where outcome = 'settled' and account_id = any($1)) as usage, (select sum(charged)::bigint / 10 from usage_hour where account_id = any($1)) as hours`,
    },
    [accounts],
  )
  assert.deepEqual(sums, { transfers: 240n, usage: 240n, hours: 240n })
})

test('one Idempotency-Key is one call, and a job is made with its hold', { skip }, async () => {
  const id = await account(1_000n)
  const idempotency = { key: 'one', requestHash: 'hash' }
  const of = call(id)
  assert.equal((await reserve(of, { idempotency })).outcome, 'held')
  assert.equal((await reserve(call(id), { idempotency })).outcome, 'idem_running')
  await settle(of, 4n, { idempotent: true, keep: { status: 200, contentType: 'text/plain', sealed: Buffer.from('x') } })
  assert.equal((await reserve(call(id), { idempotency })).outcome, 'idem_replay')
  const job = call(id)
  const order = { id: `job_${job.id}`, input: '{}', request: '{}', answer: '{}' }
  const held = await reserve(job, { job: order, idempotency: { key: 'two', requestHash: 'hash' } })
  assert.equal(held.outcome, 'held')
  await settle(job, 6n)
  assert.deepEqual(await balance(id), [990n, 0n])
})

test('a call is committed on its server alone, and a job together with its hold', { skip }, async () => {
  const id = await account(1_000n)
  const single = openDatabase({ connection: { connectionString: env.DATABASE_URL }, connectionsMax: 1 })
  const own = createLedger({ database: single, world: realWorld, processId: 'p3', leases: false })
  /** What Citus remembers of this session: what was prepared on a server before it was committed here. */
  const text = `select 1 from pg_dist_transaction where split_part(gid, '_', 3) = pg_backend_pid()::text`
  const [of, job] = [call(id), call(id)]
  const order = { id: `job_${job.id}`, input: '{}', request: '{}', answer: '{}' }
  assert.equal((await reserve(of, {}, own)).outcome, 'held')
  await settle(of, 10n, {}, own)
  assert.equal((await single.query({ text })).length, 0)
  assert.equal((await reserve(job, { job: order }, own)).outcome, 'held')
  assert.equal((await single.query({ text })).length, 1)
  await settle(job, 10n, {}, own)
  await single.close()
})

test('limits of an account and of the system hold, and the dead give back what they held', { skip }, async () => {
  const id = await account(1_000n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'account', account: id }, { concurrency: 2 }))
  const open = [call(id), call(id)]
  for (const of of open) assert.equal((await reserve(of)).outcome, 'held')
  assert.equal((await reserve(call(id))).outcome, 'limited')
  for (const of of open) await settle(of, 1n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'system' }, { spendPerDay: '1000000000000' }))
  const of = call(id)
  assert.equal((await reserve(of)).outcome, 'held')
  await settle(of, 1n)

  const dying = createLedger({ database, world: realWorld, processId: 'dead', leases: false })
  await dying.reserve({ ...call(id), want: 7n, floor: 7n, tokens: 1 })
  assert.deepEqual(await balance(id), [997n, 7n])
  assert.equal(await ledger.sweep(), 1)
  assert.deepEqual(await balance(id), [997n, 0n])
})

test('an account that somebody has locked delays no other', { skip }, async () => {
  const [stuck, free] = [await account(1_000n), await account(1_000n)]
  const other = createLedger({ database, world: realWorld, processId: 'p2', leases: false })
  const hold = async (id: string) => (await reserve(call(id), {}, other)).outcome
  let waiting: Promise<string> | undefined
  await database.transaction(async (tx) => {
    await tx.query({ text: 'select 1 from account where id = $1 for update' }, [stuck])
    waiting = hold(stuck).catch(({ kind }: Fault) => kind)
    for (let i = 0; i < 20; i++) {
      const startedMs = Date.now()
      assert.equal(await hold(free), 'held')
      assert.ok(Date.now() - startedMs < 2_000, `${Date.now() - startedMs} ms of another’s trouble`)
    }
  })
  assert.match((await waiting) ?? '', /held|unavailable/)
  await other.idle()
})

test('a month is made and dropped there while calls go on, and a backup restores into one plain server', {
  skip,
}, async () => {
  const id = await account(1_000n)
  const of = call(id)
  assert.equal((await reserve(of)).outcome, 'held')
  const days = (count: number) => ({ ...realWorld, nowMs: () => realWorld.nowMs() + count * 86_400_000 })
  const next = await maintainUsage(database, days(31), { keepMonths: 100, tries: 3 })
  assert.ok(next.made.length > 0 && next.left.length === 0, JSON.stringify(next))
  await settle(of, 4n)
  const file = new PassThrough()
  const pieces: Buffer[] = []
  file.on('data', (piece: Buffer) => pieces.push(piece))
  await writeBackup(database, file)
  const plain = await emptyDatabase()
  const target = openDatabase({ connection: plain.connection })
  try {
    await readBackup(target, Readable.from(pieces))
    const posted = { text: 'select posted, held from account where id = $1' }
    assert.deepEqual(await target.query(posted, [id]), [{ posted: 996n, held: 0n }])
  } finally {
    await target.close()
    await plain.drop()
  }
  // Months later everything that is older goes.
  const dropped = await maintainUsage(database, days(31 * 6), { keepMonths: 1, tries: 3 })
  assert.ok(dropped.dropped.length > 0 && dropped.left.length === 0, JSON.stringify(dropped))
  assert.equal(await count(`usage where account_id = '${id}'`), 0)
})

test('an account moves from there to one plain server, and back', { skip }, async () => {
  const id = await account(1_000n)
  const of = call(id)
  await reserve(of)
  await settle(of, 4n)
  await ledger.idle()
  const plain = await freshDatabase()
  const other = openDatabase({ connection: plain.connection })
  const move = { account: id, world: realWorld, waitMs: 20_000, say() {} }
  try {
    await moveAccount({ ...move, source: database, target: other, from: 'citus', to: 'plain' })
    const posted = { text: 'select posted, held from account where id = $1' }
    assert.deepEqual(await other.query(posted, [id]), [{ posted: 996n, held: 0n }])
    await moveAccount({ ...move, source: other, target: database, from: 'plain', to: 'citus' })
    assert.deepEqual(await balance(id), [996n, 0n])
    const again = call(id)
    assert.equal((await reserve(again)).outcome, 'held')
    await settle(again, 6n)
    assert.deepEqual(await balance(id), [990n, 0n])
  } finally {
    await other.close()
    await plain.drop()
  }
})
