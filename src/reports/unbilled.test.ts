import { assert, test } from '../../test/kit.ts'
import type { Database } from '../database/database.ts'
import { realWorld } from '../kernel/world.ts'
import { createUnbilled } from './unbilled.ts'

const ONE = { kind: 'shadow', vendor: 'north', product: 'plain', model: 'm', usage: { input: 10, output: 5 } } as const

test('what could not be written is added with the next, once; what was counted for tests is not there', async () => {
  const written: Record<string, unknown>[][] = []
  let isDown = true
  const query = async (_: unknown, [rows]: string[]) => {
    if (isDown) throw new Error('down')
    written.push(JSON.parse(rows ?? ''))
    return []
  }
  const unbilled = createUnbilled({ query } as unknown as Database, realWorld) // Of a database it needs no more.
  unbilled.count({ ...ONE, account: 'acc_1', cost: 20n })
  unbilled.count({ ...ONE, account: 'acc_1_test', cost: 1_000n })
  await assert.rejects(unbilled.flush(), /down/)
  unbilled.count({ ...ONE, account: 'acc_2', cost: undefined })
  isDown = false
  await unbilled.flush()
  await unbilled.flush()
  assert.deepEqual(
    written.map((rows) =>
      rows.map(({ calls, inputTokens, outputTokens, cost }) => [calls, inputTokens, outputTokens, cost]),
    ),
    [[[2, 20, 10, '20']]],
  )
})
