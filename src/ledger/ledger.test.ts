import { freshDatabase } from '../../test/database.ts'
import { after, assert, atOnce, before, pluck, started, test } from '../../test/kit.ts'
import { settlement } from '../../test/settlement.ts'
import type { Database } from '../database/database.ts'
import { newId, realWorld } from '../kernel/world.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { type Limits, storeLimits } from './limits.ts'
import type { Reservation, Resolution } from './operation.ts'

let ledger: Ledger

const fresh = started(freshDatabase)
const database = started(() => fresh.open())
before(async () => {
  // Thousands wait at once, for as long as a busy machine takes: what is promised to them is not how soon.
  const patience = { reserveForMs: 540_000, reserveWaitMs: 540_000 }
  ledger = createLedger({ database, world: realWorld, processId: 'p1', graceMs: 0, ...patience })
  await ledger.sweep()
})
after(() => ledger.idle())

async function account(credits: bigint): Promise<string> {
  const id = `acc_${newId(realWorld)}`
  await database.query({ text: 'insert into account (id, name) values ($1, $1)' }, [id])
  if (credits > 0n) await ledger.grant({ account: id, amount: credits, note: 'test', actor: 'test' })
  return id
}

const reservation = (id: string, acc: string, want: bigint, more: Partial<Reservation> = {}): Reservation => ({
  id,
  account: acc,
  key: 'k1',
  product: 'alpha-5.4',
  catalogVersion: 1,
  want,
  floor: want,
  tokens: 10,
  ...more,
})
const resolution = (
  id: string,
  acc: string,
  kind: 'settled' | 'released',
  charge: bigint,
  more: Partial<Resolution> = {},
): Resolution => settlement(acc, id, charge, { kind, ...more })

async function state(acc: string): Promise<[bigint, bigint]> {
  const [row] = await database.query<{ posted: bigint; held: bigint }>(
    { text: 'select posted, held from account where id = $1' },
    [acc],
  )
  return [row!.posted, row!.held]
}

test('a hold takes worst-case credits, gives back the rest, and resolves once', async () => {
  const acc = await account(100n)
  const story = [
    // verb, hold, credits, outcome, posted, held
    ['reserve', 'h1', 60n, 'held', 100n, 60n],
    ['reserve', 'h2', 50n, 'short', 100n, 60n],
    ['settle', 'h1', 25n, 'settled', 75n, 0n],
    ['settle', 'h1', 25n, 'already', 75n, 0n],
    ['release', 'h1', 0n, 'already', 75n, 0n],
    ['reserve', 'h3', 75n, 'held', 75n, 75n],
    ['release', 'h3', 0n, 'released', 75n, 0n],
    ['settle', 'h3', 10n, 'already', 75n, 0n],
    ['release', 'h8', 0n, 'released', 75n, 0n],
    ['settle', 'h9', 10n, 'settled', 65n, 0n],
  ] as const
  for (const [verb, hold, credits, outcome, posted, held] of story) {
    const id = `${acc}-${hold}`
    const result =
      verb === 'reserve'
        ? await ledger.reserve(reservation(id, acc, credits))
        : await ledger.resolve(resolution(id, acc, verb === 'settle' ? 'settled' : 'released', credits))
    assert.equal(result.outcome, outcome, `${verb} ${hold}`)
    assert.deepEqual(await state(acc), [posted, held], `${verb} ${hold}`)
  }
})

test('a charge above the hold takes what is available, and the rest is the platform’s loss', async () => {
  const acc = await account(100n)
  await ledger.reserve(reservation(`${acc}-a`, acc, 10n))
  await ledger.reserve(reservation(`${acc}-b`, acc, 50n))
  const settled = await ledger.resolve(resolution(`${acc}-a`, acc, 'settled', 80n))
  assert.equal(settled.paid, 50n)
  assert.equal(settled.loss, 30n)
  assert.deepEqual(await state(acc), [50n, 50n])
})

test('a flush admits in arrival order, exactly as if the calls had come one by one', async () => {
  const acc = await account(100n)
  const outcomes = await Promise.all(
    [60n, 60n, 40n].map((want, i) => ledger.reserve(reservation(`${acc}-${i}`, acc, want))),
  )
  assert.deepEqual(pluck(outcomes, 'outcome'), ['held', 'short', 'held'])
})

test('an open-ended ask holds what is affordable, down to its floor', async () => {
  const acc = await account(100n)
  const first = await ledger.reserve(reservation(`${acc}-1`, acc, 500n, { floor: 20n }))
  assert.ok(first.outcome === 'held' && first.amount === 100n)
  assert.equal((await ledger.reserve(reservation(`${acc}-2`, acc, 500n, { floor: 20n }))).outcome, 'short')
})

test('10,000 reservations at once against credit for 1,000 admit exactly 1,000', async () => {
  const acc = await account(1_000n)
  const results = await atOnce(10_000, (i) => ledger.reserve(reservation(`${acc}-${i}`, acc, 1n)))
  assert.equal(results.filter((r) => r.outcome === 'held').length, 1_000)
  assert.equal(results.filter((r) => r.outcome === 'short').length, 9_000)
  assert.deepEqual(await state(acc), [1_000n, 1_000n])
})

test('what a vendor wrote never stands in the way of a settlement', async () => {
  const acc = await account(1_000n)
  const id = `${acc}-a`
  assert.equal((await ledger.reserve(reservation(id, acc, 10n))).outcome, 'held')
  const message = 'half a \ud83d and a \0'
  const fault = { name: 'upstream_error', code: 1, status: 502, blame: 'vendor', message } as const
  const settled = await ledger.resolve({
    ...resolution(id, acc, 'settled', 10n),
    attemptLog: { heldMs: null, attempts: [], fault },
  })
  assert.equal(settled.outcome, 'settled')
  assert.deepEqual(await state(acc), [990n, 0n])
})

test('limits are exact: requests and tokens per minute, concurrency, spend', async () => {
  const acc = await account(1_000_000n)
  const limit = (limits: Limits) =>
    database.transaction((tx) => storeLimits(tx, { kind: 'account', account: acc }, limits))
  await limit({ concurrency: 3 })
  const at = (name: string) => `${acc}-${name}`
  const first = await Promise.all(['a', 'b', 'c', 'd'].map((name) => ledger.reserve(reservation(at(name), acc, 10n))))
  assert.deepEqual(pluck(first, 'outcome'), ['held', 'held', 'held', 'limited'])
  await ledger.resolve(resolution(at('a'), acc, 'settled', 10n))
  assert.equal((await ledger.reserve(reservation(at('e'), acc, 10n))).outcome, 'held')
  // What nothing limited was not counted.
  await limit({ requestsPerMinute: 2 })
  const more = await Promise.all(['f', 'g', 'h'].map((name) => ledger.reserve(reservation(at(name), acc, 10n))))
  assert.deepEqual(pluck(more, 'outcome'), ['held', 'held', 'limited'])
  const refused = more[2]!
  assert.ok(refused.outcome === 'limited' && refused.limit === 'requestsPerMinute')
  assert.ok(refused.waitSeconds >= 1 && refused.waitSeconds <= 61)
  await limit({ spendPerDay: '70' })
  // 10 are spent and 50 are held.
  assert.equal((await ledger.reserve(reservation(at('i'), acc, 20n))).outcome, 'limited')
  assert.equal((await ledger.reserve(reservation(at('j'), acc, 10n))).outcome, 'held')
  await limit({ tokensPerMinute: 15 })
  assert.equal((await ledger.reserve(reservation(at('k'), acc, 1n))).outcome, 'held')
  assert.equal((await ledger.reserve(reservation(at('l'), acc, 1n))).outcome, 'limited')
  // The worst case was counted; what was used is less.
  await ledger.resolve({ ...resolution(at('k'), acc, 'settled', 1n), inputTokens: 2, outputTokens: 3 })
  assert.equal((await ledger.reserve(reservation(at('m'), acc, 1n))).outcome, 'held')
})

test('whoever cannot pay is told so, whatever the limits say', async () => {
  const acc = await account(15n)
  await database.transaction((tx) => storeLimits(tx, { kind: 'account', account: acc }, { requestsPerMinute: 1 }))
  assert.equal((await ledger.reserve(reservation(`${acc}-a`, acc, 10n))).outcome, 'held')
  assert.equal((await ledger.reserve(reservation(`${acc}-b`, acc, 10n))).outcome, 'short')
  assert.equal((await ledger.reserve(reservation(`${acc}-c`, acc, 5n))).outcome, 'limited')
})

test('the same idempotency key makes one hold; its answer is kept, and a failed call frees it', async () => {
  const acc = await account(1_000n)
  const idempotency = { key: 'same', requestHash: 'x' }
  const results = await atOnce(100, (i) => ledger.reserve(reservation(`${acc}-${i}`, acc, 1n, { idempotency })))
  assert.equal(results.filter((r) => r.outcome === 'held').length, 1)
  assert.equal(results.filter((r) => r.outcome === 'idem_running').length, 99)
  const other = await ledger.reserve(
    reservation(`${acc}-o`, acc, 1n, { idempotency: { key: 'same', requestHash: 'y' } }),
  )
  assert.equal(other.outcome, 'idem_conflict')
  const winner = `${acc}-${results.findIndex((r) => r.outcome === 'held')}`
  await ledger.resolve(resolution(winner, acc, 'released', 0n, { idempotent: true }))
  assert.equal((await ledger.reserve(reservation(`${acc}-p`, acc, 1n, { idempotency }))).outcome, 'held')
  const replay = { status: 200, contentType: 'application/json', sealed: Buffer.from('{"a":1}') }
  await ledger.resolve(resolution(`${acc}-p`, acc, 'settled', 1n, { idempotent: true, replay }))
  assert.equal((await ledger.reserve(reservation(`${acc}-q`, acc, 1n, { idempotency }))).outcome, 'idem_replay')
})

test('the holds of a silent process expire; a settlement that comes late takes its amount anew', async () => {
  const acc = await account(100n)
  const silent = createLedger({ database, world: realWorld, processId: 'silent' })
  await silent.sweep()
  await silent.reserve(reservation(`${acc}-1`, acc, 60n))
  assert.equal(await ledger.sweep(), 0)
  await database.query({
    text: `update gateway_instance set heartbeat_at = now() - interval '1 hour' where id = 'silent'`,
  })
  assert.equal(await ledger.sweep(), 1)
  assert.deepEqual(await state(acc), [100n, 0n])
  await ledger.reserve(reservation(`${acc}-2`, acc, 90n))
  const late = await silent.resolve(resolution(`${acc}-1`, acc, 'settled', 30n))
  assert.equal(late.outcome, 'late')
  assert.equal(late.paid, 10n)
  assert.equal(late.loss, 20n)
  assert.equal((await silent.resolve(resolution(`${acc}-1`, acc, 'settled', 30n))).outcome, 'already')
  assert.deepEqual(await state(acc), [90n, 90n])
})

test('a hold that its process forgot is given back, and its idempotency key with it', async () => {
  const acc = await account(100n)
  const id = newId(realWorld)
  const other = createLedger({ database, world: realWorld, processId: 'p1', leases: false })
  const idempotency = { key: 'forgotten', requestHash: 'h' }
  await other.reserve(reservation(id, acc, 40n, { idempotency }))
  await database.query({ text: `update hold set created_at = now() - interval '2 minutes' where id = $1` }, [id])
  await ledger.sweep()
  await ledger.idle()
  const again = await ledger.reserve(reservation(newId(realWorld), acc, 100n, { idempotency }))
  assert.equal(again.outcome, 'held')
})

test('a reservation repeated with the same id, because its answer was lost, holds once', async () => {
  const acc = await account(100n)
  await ledger.reserve(reservation(`${acc}-1`, acc, 60n))
  assert.equal((await ledger.reserve(reservation(`${acc}-1`, acc, 60n))).outcome, 'held')
  assert.deepEqual(await state(acc), [100n, 60n])
})

test('a reservation that arrives after it was given up holds nothing', async () => {
  const acc = await account(100n)
  const idempotency = { key: 'late', requestHash: 'x' }
  await ledger.resolve(resolution(`${acc}-1`, acc, 'released', 0n))
  await assert.rejects(ledger.reserve(reservation(`${acc}-1`, acc, 60n, { idempotency })))
  await ledger.idle()
  assert.deepEqual(await state(acc), [100n, 0n])
  assert.equal((await ledger.reserve(reservation(`${acc}-2`, acc, 60n, { idempotency }))).outcome, 'held')
  await ledger.resolve(resolution(`${acc}-2`, acc, 'released', 0n, { idempotent: true }))
})

test('a reservation that comes twice at once, after it was given up, holds nothing either time', async () => {
  const acc = await account(100n)
  const id = newId(realWorld)
  await ledger.resolve(resolution(id, acc, 'released', 0n))
  const both = await Promise.allSettled([1, 2].map(() => ledger.reserve(reservation(id, acc, 10n))))
  assert.deepEqual(pluck(both, 'status'), ['rejected', 'rejected'])
  await ledger.idle()
  assert.deepEqual(await state(acc), [100n, 0n])
})

test('words that would end an array or a string in the database are text like any other', async () => {
  const acc = await account(100n)
  const id = newId(realWorld)
  const odd = 'a "quote", a \\ and {braces}; NULL'
  const more = { product: odd, key: odd, endpoint: odd }
  await ledger.reserve(reservation(id, acc, 10n, { product: odd, key: odd }))
  await ledger.resolve(resolution(id, acc, 'settled', 4n, { ...more, lines: [[odd, 1, '4000000']] as never }))
  const [row] = await database.query({ text: 'select product, key_id, endpoint, lines from usage where id = $1' }, [id])
  assert.deepEqual(row, { product: odd, key_id: odd, endpoint: odd, lines: [[odd, 1, '4000000']] })
})

test('a job whose order was given up goes with its hold, unless it has been begun: then both stay', async () => {
  const acc = await account(100n)
  const jobs = () =>
    database.query<{ id: string; held: boolean }>(
      {
        text: 'select j.id, h.id is not null as held from job j left join hold h on h.id = j.hold_id where j.account_id = $1',
      },
      [acc],
    )
  for (const begun of [false, true]) {
    const id = newId(realWorld)
    const job = { id: `job-${id}`, input: '{}', request: '{}', answer: '{}' }
    await ledger.reserve(reservation(id, acc, 10n, { job, idempotency: { key: `key-${begun}`, requestHash: 'x' } }))
    assert.deepEqual(await jobs(), [{ id: job.id, held: true }])
    if (begun) await database.query({ text: 'update job set submit_started_at = now() where id = $1' }, [job.id])
    const given = await ledger.resolve(resolution(id, acc, 'released', 0n, { givenUp: true, idempotent: true }))
    assert.equal(given.outcome, begun ? 'already' : 'released')
    assert.deepEqual(await jobs(), begun ? [{ id: job.id, held: true }] : [])
    assert.deepEqual(await state(acc), [100n, begun ? 10n : 0n])
    const [kept] = await database.query({ text: 'select 1 from idempotency where hold_id = $1' }, [id])
    assert.equal(kept !== undefined, begun)
    if (begun) await ledger.resolve(resolution(id, acc, 'released', 0n))
  }
})

test('a process that was cut off from the database does not take the others’ silence for death', async () => {
  const acc = await account(100n)
  let nowMs = 0
  const world = { ...realWorld, elapsedMs: () => nowMs }
  const silent = createLedger({ database, world: realWorld, processId: 'other' })
  await silent.sweep()
  await silent.reserve(reservation(`${acc}-1`, acc, 60n))
  await database.query({
    text: `update gateway_instance set heartbeat_at = now() - interval '1 hour' where id = 'other'`,
  })
  // The database's clock goes with the judge's.
  const query = (async (what, values) => {
    const rows = await database.query(what, values)
    return what.name === 'heartbeat' ? [{ now_ms: nowMs }] : rows
  }) as Database['query']
  const judge = createLedger({ database: { ...database, query }, world, processId: 'judge' })
  for (const [atMs, gone] of [
    [0, 0],
    [5_000, 0],
    [9_000, 0],
    [40_000, 0],
    [45_000, 0],
    [51_000, 1],
  ] as const) {
    nowMs = atMs
    assert.equal(await judge.sweep(), gone, `after ${atMs} ms`)
  }
})

test('what one account has stored does not travel in the flush of another', async () => {
  const flushes: Array<{ accounts: string; chars: number }> = []
  const watched: Database = {
    ...database,
    query: ((what, values = []) => {
      if (/^ledger_(reserve|resolve)$/.test(what.name ?? ''))
        flushes.push({
          accounts: String(values[0]),
          chars: values.reduce<number>((sum, v) => sum + String(v).length, 0),
        })
      return database.query(what, values)
    }) as Database['query'],
  }
  const shared = createLedger({ database: watched, world: realWorld, processId: 'p1' })
  const [large, small] = [await account(1_000n), await account(1_000n)]
  const around = (one: Promise<unknown>, run: (i: number) => Promise<unknown>) =>
    Promise.all([one, ...Array.from({ length: 20 }, (_, i) => run(i))])

  const id = newId(realWorld)
  const job = { id, input: JSON.stringify({ prompt: 'x'.repeat(200_000) }), request: '{}', answer: '{}' }
  const idempotency = { key: 'once', requestHash: 'h' }
  await around(shared.reserve(reservation(`${large}-job`, large, 10n, { job })), (i) =>
    shared.reserve(reservation(`${small}-${i}`, small, 10n)),
  )
  await shared.reserve(reservation(`${large}-kept`, large, 10n, { idempotency }))
  const replay = { status: 200, contentType: 'text/plain', sealed: Buffer.alloc(1_000_000) }
  await around(shared.resolve(resolution(`${large}-kept`, large, 'settled', 5n, { idempotent: true, replay })), (i) =>
    shared.resolve(resolution(`${small}-${i}`, small, 'settled', 1n)),
  )
  await shared.resolve(resolution(`${large}-job`, large, 'released', 0n))
  await shared.idle()
  assert.deepEqual(
    [await state(large), await state(small)],
    [
      [995n, 0n],
      [980n, 0n],
    ],
  )
  assert.equal(flushes.filter(({ chars }) => chars > 100_000).length, 2, 'each of the two went once')
  for (const { accounts, chars } of flushes)
    if (accounts.includes(small)) assert.ok(chars < 20_000, `${chars} characters went along`)
})

test('credits taken back never exceed what is available', async () => {
  const acc = await account(100n)
  await ledger.reserve(reservation(`${acc}-1`, acc, 60n))
  await ledger.grant({ account: acc, amount: -500n, note: 'back', actor: 'test' })
  assert.deepEqual(await state(acc), [60n, 60n])
})

test('a refund takes back what is left, books the rest as a loss, and a dispute that was won makes up for it', async () => {
  const acc = await account(0n)
  await ledger.grant({ account: acc, amount: 100n, note: 'pay_1', actor: 'stripe', kind: 'purchase' })
  await ledger.grant({ account: acc, amount: -70n, note: 'spent', actor: 'test' })
  const refunded = await ledger.grant({ account: acc, amount: -100n, note: 'pay_1', actor: 'stripe', kind: 'refund' })
  assert.equal(refunded?.posted, 0n)
  const won = { amount: 30n, recovered: 70n, note: 'pay_1', actor: 'stripe', kind: 'purchase' as const }
  assert.equal((await ledger.grant({ account: acc, ...won }))?.posted, 30n)
  const moves = await database.query(
    {
      text: `select kind, amount, loss from transfer where account_id = $1 and kind in ('purchase', 'refund') order by moved_at`,
    },
    [acc],
  )
  assert.deepEqual(moves, [
    { kind: 'purchase', amount: 100n, loss: 0n },
    { kind: 'refund', amount: 30n, loss: 70n },
    { kind: 'purchase', amount: 30n, loss: 70n },
  ])
  const legs = await database.query(
    {
      text: `select account, sum(amount)::bigint as sum from entry where account_id = $1 group by account order by account`,
    },
    [acc],
  )
  assert.deepEqual(legs, [
    { account: `account:${acc}`, sum: 30n },
    { account: 'platform:grants', sum: -30n },
    { account: 'platform:loss', sum: 0n },
  ])
})

test('the ledger sums to zero, and every account equals the sum of its entries', async () => {
  const [sum] = await database.query<{ sum: string }>({
    text: 'select coalesce(sum(amount), 0)::text as sum from entry',
  })
  assert.equal(sum!.sum, '0')
  const wrong = await database.query({
    text: `select a.id from account a left join (select account, sum(amount) as sum from entry group by account) e on e.account = 'account:' || a.id
      where a.posted <> coalesce(e.sum, 0) or a.held <> coalesce((select sum(amount) from held h where h.account_id = a.id), 0)`,
  })
  assert.deepEqual(wrong, [])
})
