// Budgets in the ledger: exact over all processes, whichever way a call is covered, from the first call of a value on.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { account, database, processOf, reserve, rows, settle } from '../../test/ledger-part.ts'
import { createAudit } from '../database/audit.ts'
import { realWorld } from '../kernel/world.ts'
import { type BudgetInput, createBudgets } from './budgets.ts'

const budgets = () => createBudgets({ database, world: realWorld, audit: createAudit({ database, world: realWorld }) })
const BY = { actor: 'test', ip: null, requestId: null }
const make = (acc: string, more: Partial<BudgetInput>) =>
  budgets().create(
    acc,
    {
      ...{ name: 'Trial', scope: 'user', value: null, unit: 'credits', span: 'month', windowSeconds: null },
      ...{ max: '0.000005', hard: true, alertPercent: null, ...more },
    },
    BY,
  )
const by = (user: string) => ({ labels: { user } })

test('each new user gets the default budget by its first call, and no process admits one call beyond it', async () => {
  const acc = await account(1_000_000n)
  const processes = [await processOf(), await processOf()]
  await make(acc, {})
  const asked = Array.from({ length: 40 }, (_, n) => ({ user: `u${n % 4}`, ledger: processes[n % 2]! }))
  const done = await Promise.all(
    asked.map(async ({ user, ledger }) => {
      const reserved = await reserve(ledger, acc, 1n, by(user))
      if (reserved.outcome === 'held') await settle(ledger, acc, reserved.id, 1n)
      return { user, reserved }
    }),
  )
  for (const user of ['u0', 'u1', 'u2', 'u3']) {
    const mine = done.filter((one) => one.user === user)
    assert.equal(mine.filter(({ reserved }) => reserved.outcome === 'held').length, 5, user)
    for (const { reserved } of mine)
      if (reserved.outcome === 'limited') {
        assert.equal(reserved.budget?.name, 'Trial')
        assert.equal(reserved.budget?.value, user)
      }
  }
  await Promise.all(processes.map((one) => one.posted()))
  const [used] = await rows<{ used: bigint; n: bigint }>(
    `select sum(used)::bigint as used, count(*) as n from counter where account_id = $1`,
    [acc],
  )
  assert.deepEqual(used, { used: 20n, n: 4n })
  assert.equal((await reserve(processes[0]!, acc, 1n)).outcome, 'held')
})
