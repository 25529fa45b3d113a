// What `npm run fuzz` does, in a tenth of the requests.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fuzz } from './fuzz/run.ts'

const REQUESTS = 100_000

test('a hundred thousand requests from the contract’s grammar, right and wrong, meet no 5xx, no hang, no internal text and no wrong shape', async (t) => {
  const { sent, byStatus, slowestMs, findings } = await fuzz({
    runs: REQUESTS,
    seed: 20_261_115,
    atOnce: 16,
    slowMsMax: 2_000,
  })
  t.diagnostic(`${JSON.stringify(byStatus)}, slowest ${Math.round(slowestMs)} ms`)
  assert.deepEqual(findings, [])
  assert.equal(sent, REQUESTS)
})
