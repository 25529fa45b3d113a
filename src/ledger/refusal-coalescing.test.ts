// Keys that are refused again and again: few statements, since those that wait go together, and every answer as exact
// as one that was asked for alone.
import { assert, test } from '../../test/kit.ts'
import { account, behind, database, lease, processOf, reserve, rows, settle } from '../../test/ledger-part.ts'
import type { Ledger } from './ledger.ts'
import { type Limits, storeLimits } from './limits.ts'
import type { Reservation, Reserved } from './operation.ts'

type Counted = Ledger & { readonly ops: () => number }

/** A process that counts the statements of its ledger: for calls and for leases. */
async function counting(): Promise<Counted> {
  let ops = 0
  const counted = behind((run, name) => {
    if (name.startsWith('ledger_')) ops += 1
    return run()
  })
  const ledger = await processOf({ database: counted })
  return Object.assign(ledger, { ops: () => ops })
}

/** Enough refusals for a flood. */
async function floodOf(ledger: Ledger, acc: string, want: bigint, more: Partial<Reservation> = {}): Promise<void> {
  for (let i = 0; i < 30; i++) assert.notEqual((await reserve(ledger, acc, want, more)).outcome, 'held')
}

const atOnce = (times: number, run: (at: number) => Promise<Reserved>) =>
  Promise.all(Array.from({ length: times }, (_, at) => run(at)))
const limit = (acc: string, limits: Limits) =>
  database.transaction((tx) => storeLimits(tx, { kind: 'account', account: acc }, limits))

test('two thousand refusals of an empty account are a few statements, and each is told what it asked for', async () => {
  const ledger = await counting()
  const acc = await account(5n)
  await floodOf(ledger, acc, 10n)
  const before = ledger.ops()
  const all = await atOnce(2_000, (at) => reserve(ledger, acc, 10n + BigInt(at % 7)))
  assert.ok(ledger.ops() - before < 20, `${ledger.ops() - before} statements`)
  all.forEach((one, at) => {
    assert.deepEqual({ ...one, id: '' }, { outcome: 'short', required: 10n + BigInt(at % 7), available: 5n, id: '' })
  })
  assert.deepEqual(await rows('select posted, held from account where id = $1', [acc]), [{ posted: 5n, held: 0n }])
})

test('in the middle of a flood a grant, of this process or of another, counts for the very next call', async () => {
  const [ledger, other] = [await processOf(), await processOf()]
  const acc = await account(0n)
  await floodOf(ledger, acc, 1_000n)
  const end = { is: false }
  const flood = Array.from({ length: 20 }, async () => {
    while (!end.is) assert.equal((await reserve(ledger, acc, 1_000n)).outcome, 'short')
  })
  try {
    for (let round = 0; round < 20; round++) {
      const giver = round % 2 === 0 ? ledger : other
      await giver.grant({ account: acc, amount: 10n, note: '', actor: 'test' })
      const reserved = await reserve(ledger, acc, 10n)
      assert.equal(reserved.outcome, 'held', `round ${round}`)
      assert.equal((await reserve(ledger, acc, 10n)).outcome, 'short')
      // And so does what a call gives back.
      if (round % 4 < 2) await settle(ledger, acc, reserved.id, 10n)
      else {
        await settle(other, acc, reserved.id, 4n)
        const rest = await reserve(ledger, acc, 6n)
        assert.equal(rest.outcome, 'held', `the rest of round ${round}`)
        await settle(ledger, acc, rest.id, 6n)
      }
    }
  } finally {
    end.is = true
    await Promise.all(flood)
  }
})

test('of a thousand calls in a flood as many are admitted as there are credits for', async () => {
  const ledger = await counting()
  const acc = await account(0n)
  await floodOf(ledger, acc, 10n)
  await ledger.grant({ account: acc, amount: 1_000n, note: '', actor: 'test' })
  const all = await atOnce(1_000, () => reserve(ledger, acc, 10n))
  assert.equal(all.filter(({ outcome }) => outcome === 'held').length, 100)
  assert.deepEqual(await rows('select posted, held from account where id = $1', [acc]), [
    { posted: 1_000n, held: 1_000n },
  ])
})

test('in a flood, what another process has only leased is asked back, and a frozen account says so', async () => {
  const [ledger, other] = [await processOf(), await processOf()]
  const acc = await account(1_000n)
  for (const one of await atOnce(300, () => reserve(ledger, acc, 5_000n))) assert.equal(one.outcome, 'short')
  await lease(other, acc)
  const [row] = await rows<{ posted: bigint }>('select posted from account where id = $1', [acc])
  const all = await reserve(ledger, acc, row!.posted)
  assert.equal(all.outcome, 'held', 'all that there is, leased or not')
  for (const one of await atOnce(300, () => reserve(ledger, acc, 10n))) assert.equal(one.outcome, 'short')
  await rows(`update account set frozen_until = now() + interval '1 minute' where id = $1`, [acc])
  for (const one of await atOnce(20, () => reserve(ledger, acc, 10n))) assert.equal(one.outcome, 'frozen')
  await rows('update account set frozen_until = null where id = $1', [acc])
  await settle(ledger, acc, all.id, 0n)
})

test('a flood beyond a limit is told that limit, and neither other keys nor who cannot pay are', async () => {
  const ledger = await counting()
  const acc = await account(1_000n)
  await database.transaction((tx) =>
    storeLimits(tx, { kind: 'key', account: acc, key: 'k1', earlier: [] }, { requestsPerMinute: 2 }),
  )
  for (let i = 0; i < 2; i++) assert.equal((await reserve(ledger, acc, 10n)).outcome, 'held')
  await floodOf(ledger, acc, 10n)
  const before = ledger.ops()
  const all = await atOnce(1_000, (at) => reserve(ledger, acc, at === 500 ? 5_000n : 10n))
  assert.ok(ledger.ops() - before < 20, `${ledger.ops() - before} statements`)
  const [poor] = all.splice(500, 1)
  assert.deepEqual({ ...poor, id: '' }, { outcome: 'short', required: 5_000n, available: 980n, id: '' })
  for (const one of all) {
    assert.ok(one.outcome === 'limited' && one.limit === 'requestsPerMinute' && one.max === '2')
    assert.ok(one.waitSeconds > 50 && one.waitSeconds <= 61, String(one.waitSeconds))
  }
  assert.equal((await reserve(ledger, acc, 10n, { key: 'k2' })).outcome, 'held')
})

test('how long to wait for tokens is told to each for its own', async () => {
  const ledger = await counting()
  const acc = await account(1_000n)
  await limit(acc, { tokensPerMinute: 100 })
  assert.equal((await reserve(ledger, acc, 1n, { tokens: 50 })).outcome, 'held')
  await rows(
    `update counter set seconds[1 + ((floor(extract(epoch from now()))::bigint - 30) % 83)] = 40, used = used + 40 where account_id = $1`,
    [acc],
  )
  await floodOf(ledger, acc, 1n, { tokens: 20 })
  const all = await atOnce(300, (at) => reserve(ledger, acc, 1n, { tokens: at % 3 === 0 ? 80 : 20 }))
  all.forEach((one, at) => {
    assert.ok(one.outcome === 'limited' && one.limit === 'tokensPerMinute')
    if (at % 3 === 0) assert.ok(one.waitSeconds > 50, `${one.waitSeconds} s for many`)
    else assert.ok(one.waitSeconds <= 31, `${one.waitSeconds} s for few`)
  })
})

test('what was asked with an idempotency key in a flood is told what that was used for', async () => {
  const ledger = await processOf()
  const acc = await account(100n)
  const idempotency = { key: 'once', requestHash: 'h' }
  assert.equal((await reserve(ledger, acc, 100n, { idempotency })).outcome, 'held')
  await floodOf(ledger, acc, 10n)
  const other = { idempotency: { key: 'once', requestHash: 'other' } }
  const all = await atOnce(50, (at) => reserve(ledger, acc, 10n, at === 25 ? other : {}))
  const told = Map.groupBy(all, ({ outcome }) => outcome)
  assert.deepEqual([told.get('short')?.length, told.get('idem_conflict')?.length], [49, 1])
})

test('a flood while the database is away is told so, and goes on when it is back', async () => {
  let away = false
  const gone = behind((run) => (away ? Promise.reject(new Error('away')) : run()))
  const ledger = await processOf({ database: gone, reserveForMs: 100, leases: false })
  const acc = await account(0n)
  await floodOf(ledger, acc, 10n)
  away = true
  const all = await Promise.allSettled(Array.from({ length: 50 }, () => reserve(ledger, acc, 10n)))
  for (const one of all) assert.equal(one.status === 'rejected' && one.reason.kind, 'unavailable')
  away = false
  assert.equal((await reserve(ledger, acc, 10n)).outcome, 'short')
  await ledger.idle(5_000)
})
