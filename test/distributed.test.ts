// The ledger on a real Citus cluster: TOLLGATE_TEST_CITUS names the coordinator of one with workers, as a superuser.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { type Database, openDatabase } from '../src/database/database.ts'
import { isDistributed } from '../src/database/functions.ts'
import { migrate } from '../src/database/migrate.ts'
import { newId, realWorld } from '../src/kernel/world.ts'
import { createLedger, type Ledger } from '../src/ledger/ledger.ts'
import { keepLimits } from '../src/ledger/limits.ts'
import type { Reservation, Resolution } from '../src/ledger/operation.ts'

const COORDINATOR = process.env.TOLLGATE_TEST_CITUS
const skip = COORDINATOR === undefined ? 'TOLLGATE_TEST_CITUS names no coordinator of a Citus cluster' : false
const NAME = `test_${newId(realWorld)}`
const SCRIPT = join(import.meta.dirname, '..', 'deploy', 'citus', 'distribute.sql')

let database: Database
let ledger: Ledger
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
  await migrate(database)
  assert.equal(await isDistributed(database), false)
  await run(url, await readFile(SCRIPT, 'utf8'))
  await migrate(database)
  assert.equal(await isDistributed(database), true)
  ledger = createLedger({ database, world: realWorld, processId: 'p1', graceMs: 0, distributed: true })
  await ledger.sweep()
})
after(async () => {
  if (COORDINATOR === undefined) return
  await ledger.idle()
  await database.close()
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
const reserve = (of: Call, more: Partial<Reservation> = {}) =>
  ledger.reserve({ ...of, want: 10n, floor: 10n, tokens: 5, ...more })
const FACTS = {
  endpoint: 'chat',
  status: 200,
  estimated: false,
  stream: false,
  route: 1,
  durationMs: 5,
  firstByteMs: 2,
}
const settle = (of: Call, charge: bigint, more: Partial<Resolution> = {}) =>
  ledger.resolve({
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
  const [sums] = await database.query<{ transfers: bigint; usage: bigint; hours: bigint }>({
    text: `select (select count(*) from transfer where kind = 'settled') as transfers, (select count(*) from usage) as usage,
      (select sum(requests)::bigint from usage_hour) as hours`,
  })
  assert.deepEqual(sums, { transfers: 240n, usage: 240n, hours: 240n })
})

test('one Idempotency-Key is one call, and a job is made with its hold', { skip }, async () => {
  const id = await account(1_000n)
  const idempotency = { key: 'one', requestHash: 'hash' }
  const of = call(id)
  assert.equal((await reserve(of, { idempotency })).outcome, 'held')
  assert.equal((await reserve(call(id), { idempotency })).outcome, 'idem_running')
  await settle(of, 4n, { idempotent: true, keep: { status: 200, contentType: 'text/plain', body: Buffer.from('x') } })
  assert.equal((await reserve(call(id), { idempotency })).outcome, 'idem_replay')
  const job = call(id)
  const order = { id: `job_${job.id}`, input: '{}', request: '{}', answer: '{}' }
  const held = await reserve(job, { job: order, idempotency: { key: 'two', requestHash: 'hash' } })
  assert.equal(held.outcome, 'held')
  await settle(job, 6n)
  assert.deepEqual(await balance(id), [990n, 0n])
})

test('limits of an account and of the system hold, and the dead give back what they held', { skip }, async () => {
  const id = await account(1_000n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'account', account: id }, { concurrency: 2 }))
  const open = [call(id), call(id)]
  for (const of of open) assert.equal((await reserve(of)).outcome, 'held')
  assert.equal((await reserve(call(id))).outcome, 'limited')
  for (const of of open) await settle(of, 1n)
  await database.transaction((tx) => keepLimits(tx, { kind: 'system' }, { spendPerDay: '1000000' }))
  const of = call(id)
  assert.equal((await reserve(of)).outcome, 'held')
  await settle(of, 1n)

  const dying = createLedger({ database, world: realWorld, processId: 'dead', distributed: true, leases: false })
  await dying.reserve({ ...call(id), want: 7n, floor: 7n, tokens: 1 })
  assert.deepEqual(await balance(id), [997n, 7n])
  assert.equal(await ledger.sweep(), 1)
  assert.deepEqual(await balance(id), [997n, 0n])
})
