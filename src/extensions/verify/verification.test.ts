// The verification of the ledger as an operator meets it: begun through the API, seen there and in the metrics.

import { assert, test, testGateway, until } from '../../../test/gateway.ts'
import { verified } from '../../../test/operator-server.ts'
import type { VerificationState } from './views.ts'

const g = testGateway()

async function figure(name: string): Promise<number> {
  const text = await (await fetch(`${g.url}/metrics`)).text()
  return Number(new RegExp(`^tollgate_ledger_verified_${name} (.*)$`, 'm').exec(text)?.[1])
}

/** What is answered to a scrape may be a second old. */
const becomes = (name: string, value: number) => until(() => figure(name), value)

test('what the last verification found is in the API and in the metrics', async () => {
  const { key, id } = await g.account()
  const body = JSON.stringify({ model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello!' }] })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  assert.equal((await fetch(`${g.url}/v1/chat/completions`, { method: 'POST', headers, body })).status, 200)
  assert.equal(await figure('problems'), Number.NaN)
  const first = await verified(g, { full: false })
  assert.deepEqual([first.ok, first.full, first.problems], [true, false, []])
  assert.deepEqual([first.checked.usage, first.checked.charges], [1, 1])
  assert.equal(first.durationMs, Date.parse(first.endedAt ?? '') - Date.parse(first.startedAt))
  await becomes('problems', 0)
  assert.equal(await figure('timestamp_seconds'), Date.parse(first.endedAt ?? '') / 1000)
  assert.ok((await figure('seconds')) >= 0)
  await g.sql('update account set posted = posted + 1 where id = $1', [id])
  const second = await verified(g)
  assert.deepEqual([second.ok, second.full, second.problems.length], [false, true, 2])
  // It is neither the sum of its entries nor what its last movement left.
  await becomes('problems', 2)
  await g.sql('update account set posted = posted - 1 where id = $1', [id])
  const { nextAt } = await g.ask<VerificationState>('GET', '/ledger/verify')
  assert.match(nextAt ?? '', /T03:00:00/)
})
