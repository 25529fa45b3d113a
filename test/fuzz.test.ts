// The short form of `npm run fuzz`.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fuzz } from './fuzz/run.ts'
import { startGateway } from './gateway.ts'

test('thousands of requests from the contract’s grammar, right and wrong, meet no 5xx, no hang and no internal text', async (t) => {
  const g = await startGateway()
  try {
    const { sent, byStatus, slowestMs, findings } = await fuzz(g, {
      runs: 2_000,
      seed: 20_261_115,
      atOnce: 8,
      slowMsMax: 30_000,
    })
    assert.deepEqual(findings, [])
    assert.equal(sent, 2_000)
    t.diagnostic(`${JSON.stringify(byStatus)}, slowest ${Math.round(slowestMs)} ms`)
    await g.settled()
  } finally {
    await g.close()
  }
})
