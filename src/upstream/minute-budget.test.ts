import { assert, test } from '../../test/kit.ts'
import { realWorld } from '../kernel/world.ts'
import { createMinuteBudget } from './budget.ts'

test('an account spends its minute, waits for what it needs, and takes nothing from others', () => {
  let nowMs = 0
  const budget = createMinuteBudget({ ...realWorld, elapsedMs: () => nowMs }, 60)
  for (const [atMs, account, amount, answer] of [
    [0, 'a', 50, undefined],
    [0, 'a', 10, undefined],
    [0, 'a', 1, 1],
    [0, 'a', 30, 30],
    [0, 'b', 60, undefined],
    [10_000, 'a', 11, 1],
    [10_000, 'a', 10, undefined],
    [10_000, 'a', 1, 1],
    [70_000, 'a', 60, undefined],
  ] as const) {
    nowMs = atMs
    assert.equal(budget.spend(account, amount), answer, `${account} asks for ${amount} after ${atMs} ms`)
  }
})
