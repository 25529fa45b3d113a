// The short form of `npm run simulate`: a hundred stories of crashes, lost answers and bad vendors.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openDatabase } from '../src/database/database.ts'
import { freshDatabase } from './database.ts'
import { runSeeds } from './simulate/seeds.ts'

test('a hundred seeds of crashes, lost answers and bad vendors leave the books right', async () => {
  const fresh = await freshDatabase()
  const connection = { ...fresh.connection, options: '-c synchronous_commit=off' }
  const database = openDatabase({ connection, connectionsMax: 8 })
  try {
    const { done, failures } = await runSeeds(database, { from: 1, count: 100, atOnce: 8 })
    for (const { seed, error } of failures)
      console.error(
        `seed ${seed}: ${error instanceof Error ? error.stack : error}\n  again: npm run simulate -- --seeds 1 --from ${seed}`,
      )
    assert.deepEqual([done, failures.length], [100, 0])
  } finally {
    await database.close()
    await fresh.drop()
  }
})
