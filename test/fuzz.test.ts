// `npm run fuzz` with a hundred thousand requests.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENDPOINTS } from '../src/catalog/index.ts'
import { fuzz } from './fuzz/run.ts'

const REQUESTS = 100_000

test('a hundred thousand requests from the contract’s grammar, right and wrong, meet no 5xx, no hang, no internal text and no wrong shape', async (t) => {
  const { sent, byStatus, taken, slowestMs, slow, findings } = await fuzz({
    runs: REQUESTS,
    seed: 20_261_115,
    atOnce: 32,
    slowMsMax: 2_000,
  })
  t.diagnostic(
    `${JSON.stringify({ ...byStatus, ...taken })}, slowest ${Math.round(slowestMs)} ms, slow only once ${slow}`,
  )
  assert.deepEqual(findings, [])
  assert.equal(sent, REQUESTS)
  // Ids of jobs and of a vendor's users are known to nobody who was not told them.
  const untaken = ENDPOINTS.map(({ id }) => id).filter((id) => !taken[id] && !/^(jobs|social\/users)\/\{id\}/.test(id))
  assert.deepEqual(untaken, [])
})
