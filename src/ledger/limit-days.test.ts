// A limit on requests by the day: exact whoever has leases, and anew at midnight.
import { assert, test } from '../../test/kit.ts'
import { account, call, database, lease, processOf, reserve, rows } from '../../test/ledger-part.ts'
import { storeLimits } from './limits.ts'

const limit = (account: string, requestsPerDay: number) =>
  database.transaction((tx) => storeLimits(tx, { kind: 'account', account }, { requestsPerDay }))

test('a limit on requests per day refuses the next one until midnight, and the next day is anew', async () => {
  const ledger = await processOf({ leases: false })
  const acc = await account(1_000_000n)
  await limit(acc, 2)
  await call(ledger, acc, 10n)
  await call(ledger, acc, 10n)
  const refused = await reserve(ledger, acc, 10n)
  assert.ok(refused.outcome === 'limited' && refused.limit === 'requestsPerDay' && refused.max === '2')
  const [left] = await rows<{ seconds: number }>(
    `select extract(epoch from date_trunc('day', now(), 'UTC') + interval '1 day' - now())::float8 as seconds`,
  )
  assert.ok(Math.abs(refused.waitSeconds - (left?.seconds ?? 0)) < 60, `${refused.waitSeconds}`)
  await rows('update counter set second = second - 86400 where account_id = $1', [acc])
  assert.equal((await call(ledger, acc, 10n)).outcome, 'held')
})

test('processes with leases admit together no more requests than the day has', async () => {
  const acc = await account(1_000_000n)
  const ledgers = [await processOf(), await processOf()] as const
  await limit(acc, 40)
  for (const ledger of ledgers) await lease(ledger, acc)
  const before = await rows('select 1 from transfer where account_id = $1 and kind <> $2', [acc, 'grant'])
  let held = before.length
  for (let i = 0; i < 60; i++)
    for (const ledger of ledgers) if ((await call(ledger, acc, 10n)).outcome === 'held') held += 1
  assert.ok(held <= 40, `${held} of 40`)
  assert.ok(held >= 30, `${held} of 40`)
})

test('what comes back of yesterday is not taken off today', async () => {
  const [row] = await rows<{ used: bigint }>(
    `select (counter_add(row('a', 'account', 'requestsPerDay', 'requests', 'day', 9, 5, 1000, '{}', now(), 1, false, false)::counter, '{999,1000,1001}', '{-3,-1,2}')).used as used`,
  )
  assert.equal(row?.used, 6n)
})
