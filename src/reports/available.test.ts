// Nobody sees a lease: what processes hold in advance counts as available to whoever looks, and no call is refused for
// the lack of it.
import { assert, test } from '../../test/kit.ts'
import {
  account,
  count,
  database,
  eventually,
  hasHold,
  lease,
  processOf,
  reserve,
  rows,
  settle,
} from '../../test/ledger-part.ts'
import { Fault } from '../kernel/fault.ts'
import { storeLimits } from '../ledger/limits.ts'
import { createStatements } from './statement.ts'

const statements = () => createStatements(database)
const shown = async (id: string) => {
  const { balance, held, available } = (await statements().account(id))!
  return { balance, held, available }
}
const credits = (amount: bigint) => String(Number(amount) / 1_000_000)

test('with nothing running, all of the balance is available, whatever is leased by two processes', async () => {
  const [one, two] = [await processOf(), await processOf()]
  const acc = await account(10_000_000n)
  await lease(one, acc, 10_000n)
  await lease(two, acc, 10_000n)
  await Promise.all([one.posted(), two.posted()])
  assert.equal(await count('lease where account_id = $1 and amount > 0', acc), 2)
  const [row] = await rows<{ posted: bigint }>('select posted from account where id = $1', [acc])
  assert.deepEqual(await shown(acc), { balance: credits(row!.posted), held: '0', available: credits(row!.posted) })
})

test('what a running call holds of a lease is held for whoever looks, from a moment after it began until it has ended', async () => {
  const ledger = await processOf()
  const acc = await account(10_000_000n)
  await lease(ledger, acc, 10_000n)
  const running = await reserve(ledger, acc, 10_000n)
  assert.deepEqual([running.outcome, await hasHold(running.id)], ['held', false])
  await eventually('what it holds is not seen', async () => (await shown(acc)).held === credits(10_000n))
  await settle(ledger, acc, running.id, 4_000n)
  await ledger.posted()
  await eventually('it has ended, and holds something', async () => (await shown(acc)).held === '0')
})

test('what a process that was killed has leased or held is no reason for a 402: the answer is 503 until it comes back', async () => {
  // It says nothing any more, but nobody can know that yet.
  const [dead, living] = [await processOf(), await processOf()]
  const acc = await account(1_000n)
  await lease(dead, acc)
  const begun = await reserve(dead, acc, 300n, { idempotency: { key: 'its own hold', requestHash: 'x' } })
  assert.equal(begun.outcome, 'held')
  await dead.posted()
  await rows(`update gateway_instance set heartbeat_at = now() - interval '5 seconds' where id = $1`, [dead.id])
  // It does not hear that it is asked for them.
  const [row] = await rows<{ posted: bigint }>('select posted from account where id = $1', [acc])
  await rows(`update lease set recalled_at = now() - interval '10 seconds' where account_id = $1`, [acc])
  const refused = await reserve(living, acc, row!.posted).then(
    (reserved) => reserved.outcome,
    (error: unknown) => error,
  )
  assert.ok(refused instanceof Fault && refused.status === 503, String(refused))
  assert.match(refused.message, /are released within 20 seconds/)
  await rows(`update gateway_instance set heartbeat_at = now() - interval '25 seconds' where id = $1`, [dead.id])
  await living.sweep()
  const served = await reserve(living, acc, row!.posted)
  assert.equal(served.outcome, 'held')
  // Whoever asks for more than there is hears that at once.
  assert.equal((await reserve(living, acc, 1n)).outcome, 'short')
  await settle(living, acc, served.id, 1n)
})

test('a limit on requests refuses nobody while places lie unused in the lease of another process', async () => {
  const [one, two] = [await processOf(), await processOf()]
  const acc = await account(1_000_000n)
  await database.transaction((tx) => storeLimits(tx, { kind: 'account', account: acc }, { requestsPerMinute: 60 }))
  await lease(one, acc)
  await lease(two, acc)
  let made = await count('transfer where account_id = $1 and kind = $2', acc, 'settled')
  // From here on only one of them is called.
  for (; made < 60; made += 1) {
    const reserved = await reserve(two, acc, 10n)
    assert.equal(reserved.outcome, 'held', `call ${made + 1} of 60`)
    await settle(two, acc, reserved.id, 10n)
  }
  assert.equal((await reserve(two, acc, 10n)).outcome, 'limited')
})
