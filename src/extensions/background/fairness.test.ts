// Whoever has many batches and responses in the background holds up nobody else.

import { completed, sendBatch } from '../../../test/batches.ts'
import { assert, atOnce, jsonOf, startGateway, test, until } from '../../../test/gateway.ts'

/** Longer than any test takes: who waits for a vendor that is silent waits for as long as it likes. */
const SILENT_MS = 300_000

test('batches and background responses of one account, whose vendor is silent, do not hold up another’s', async () => {
  const g = await startGateway({
    catalog(document) {
      for (const vendor of Object.values<{ timeouts?: object }>(document.vendors))
        vendor.timeouts = { firstByteMs: SILENT_MS, idleMs: SILENT_MS, totalMs: SILENT_MS }
    },
  })
  try {
    const [many, one] = [(await g.account()).key, (await g.account()).key]
    const open = (key: string, content: string) =>
      sendBatch(g, key, [{ model: 'alpha-5.4', max_tokens: 20, messages: [{ role: 'user', content }] }])
    const at = (id = '') => `/v1/responses${id && `/${id}`}`
    const ask = async (key: string, input: string) =>
      (await jsonOf<{ id: string }>(g.call(at(), key, { model: 'alpha-5.4', input, background: true }))).id
    for (let made = 0; made < 5; made++) await open(many, 'Batch. [[stall]]')
    await atOnce(70, () => ask(many, 'Later. [[stall]]'))
    const leased = async (TABLE: string) => {
      const text = `select count(*)::int as count from ${TABLE} where lease_until > now()`
      return (await g.sql<{ count: number }>(text))[0]?.count
    }
    await until(async () => (await leased('batch')) === 3 && (await leased('background')) === 32)
    const [batch, response] = [await open(one, 'Mine.'), await ask(one, 'Mine.')]
    await completed(g, one, batch)
    await until(async () => (await jsonOf<{ status: string }>(g.call(at(response), one))).status, 'completed')
    assert.deepEqual([await leased('batch'), await leased('background')], [3, 32])
  } finally {
    await g.sandbox.close()
    await g.close()
  }
})
