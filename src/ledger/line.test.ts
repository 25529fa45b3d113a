// F78: a call that does not fit only because running calls hold credits waits for them, in the line of its account.
import { assert, pluck, test, until } from '../../test/kit.ts'
import { account, behind, lease, processOf, reserve, rows, settle } from '../../test/ledger-part.ts'
import { CLIENT_CLOSED } from '../kernel/fault.ts'
import { NEVER } from '../kernel/timers.ts'
import type { Ledger } from './ledger.ts'
import type { Reserved } from './operation.ts'

const LONG = { creditWaitMs: 600_000 }
const balanceOf = (acc: string) =>
  rows<{ posted: bigint; held: bigint }>('select posted, held from account where id = $1', [acc])

/** Calls that ask at once; `ended`: the outcomes so far, in their order. */
function asking(ledger: Ledger, acc: string, wants: readonly bigint[]) {
  const ended: Array<Reserved & { at: number; id: string }> = []
  const all = wants.map(async (want, at) => {
    const reserved = { ...(await reserve(ledger, acc, want, {}, NEVER)), at }
    ended.push(reserved)
    return reserved
  })
  return { ended, all: Promise.all(all) }
}

for (const [name, more] of [
  ['with leases', {}],
  ['without leases', { leases: false }],
] as const)
  test(`twenty calls at once on the credits of three are all served, in their order, ${name}`, async () => {
    const ledger = await processOf({ ...LONG, ...more })
    const acc = await account(30n)
    const { ended, all } = asking(ledger, acc, Array(20).fill(10n))
    for (let done = 0; done < 20; done++) {
      await until(() => ended.length > done)
      assert.ok(ended.length <= done + 3)
      const call = ended[done]!
      assert.deepEqual([call.outcome, call.at], ['held', done])
      // Each costs 1 of the 10 that it holds.
      await settle(ledger, acc, call.id, 1n)
    }
    await all
    await ledger.idle()
    assert.deepEqual(await balanceOf(acc), [{ posted: 10n, held: 0n }])
  })

test('a small call does not overtake a large one that came before', async () => {
  const ledger = await processOf({ ...LONG, leases: false })
  const acc = await account(100n)
  const running = await reserve(ledger, acc, 60n)
  const { ended } = asking(ledger, acc, [90n, 10n])
  await ledger.grant({ account: acc, amount: 10n, note: '', actor: 'test' })
  assert.deepEqual(ended, [])
  await settle(ledger, acc, running.id, 0n)
  await until(() => ended.length === 2)
  assert.deepEqual(pluck(ended, 'at', 'outcome'), [
    [0, 'held'],
    [1, 'held'],
  ])
})

test('credits that another process frees, or grants, wake the line', async () => {
  const [ledger, other] = [await processOf({ ...LONG, leases: false }), await processOf({ leases: false })]
  const acc = await account(10n)
  const running = await reserve(other, acc, 10n)
  const { ended } = asking(ledger, acc, [4n, 10n])
  await settle(other, acc, running.id, 0n)
  await until(() => ended.length === 1)
  await other.grant({ account: acc, amount: 9n, note: '', actor: 'test' })
  await until(() => ended.length === 2)
  assert.deepEqual(pluck(ended, 'outcome'), ['held', 'held'])
})

test('the leases of another process come back for a call that waits', async () => {
  const [ledger, other] = [await processOf(LONG), await processOf()]
  const acc = await account(1_000n)
  await lease(other, acc)
  const running = await reserve(ledger, acc, 600n)
  const waiting = asking(ledger, acc, [600n])
  const here = await reserve(other, acc, 10n)
  await settle(ledger, acc, running.id, 0n)
  const [reserved] = await waiting.all
  assert.equal(reserved?.outcome, 'held')
  if (here.outcome === 'held') await settle(other, acc, here.id, 1n)
})

test('after its time a call is told what is held by how many calls; without anything held it cannot pay', async () => {
  const ledger = await processOf({ creditWaitMs: 1, leases: false })
  const acc = await account(10n)
  await reserve(ledger, acc, 4n)
  await reserve(ledger, acc, 5n)
  const { id: _, ...short } = await reserve(ledger, acc, 2n, {}, NEVER)
  assert.deepEqual(short, { outcome: 'short', required: 2n, available: 1n, running: { held: 9n, calls: 2 } })
  const { id: __, ...poor } = await reserve(ledger, acc, 11n, {}, NEVER)
  assert.deepEqual(poor, { outcome: 'short', required: 11n, available: 1n })
})

test('a call without an output limit waits for its reserve, and after its time takes what is there', async () => {
  const ledger = await processOf({ creditWaitMs: 1, leases: false })
  const acc = await account(100n)
  await reserve(ledger, acc, 60n)
  const reserved = await reserve(ledger, acc, 50n, { floor: 10n, most: 80n }, NEVER)
  assert.equal(reserved.outcome === 'held' && reserved.amount, 40n)
})

test('a caller who leaves is out of the line, and who came behind moves up', async () => {
  const ledger = await processOf({ ...LONG, leases: false })
  const acc = await account(100n)
  await reserve(ledger, acc, 60n)
  const leaving = new AbortController()
  const first = reserve(ledger, acc, 90n, {}, leaving.signal)
  const second = reserve(ledger, acc, 30n, {}, NEVER)
  leaving.abort()
  await assert.rejects(first, (error) => error === CLIENT_CLOSED)
  assert.equal((await second).outcome, 'held')
  assert.deepEqual(await balanceOf(acc), [{ posted: 100n, held: 90n }])
})

test('waiting costs no statement for each call, and a line of 256 takes no more', async () => {
  let tries = 0
  const counted = behind((run, name) => {
    if (name === 'ledger_reserve') tries += 1
    return run()
  })
  const ledger = await processOf({ ...LONG, leases: false, database: counted })
  const acc = await account(10n)
  const running = await reserve(ledger, acc, 10n)
  const leaving = new AbortController()
  const first = asking(ledger, acc, [10n])
  const ended: string[] = []
  const waiting = Array.from({ length: 299 }, () =>
    reserve(ledger, acc, 10n, {}, leaving.signal).then(
      ({ outcome }) => ended.push(outcome),
      () => ended.push('left'),
    ),
  )
  await until(() => ended.length === 300 - 256)
  assert.deepEqual(new Set(ended), new Set(['short']))
  assert.ok(tries < 12, `${tries} statements for 300 calls`)
  await settle(ledger, acc, running.id, 0n)
  const [served] = await first.all
  assert.equal(served?.outcome, 'held')
  leaving.abort()
  await Promise.all(waiting)
  assert.equal(ended.filter((one) => one === 'left').length, 255)
  assert.deepEqual(await balanceOf(acc), [{ posted: 10n, held: 10n }])
})
