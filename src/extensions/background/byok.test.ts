// Batches of an account that brings its own key: every line goes by it, costs its fee, and what is wrong with the key
// is its line's.
import { completed, sendBatch } from '../../../test/batches.ts'
import { after, assert, BY, beforeEach, test, testGateway, textOf } from '../../../test/gateway.ts'
import { type KeyedVendor, startKeyedVendor, WORKS } from '../../../test/keyed-vendor.ts'

const HOUSE = 'sk-house-00000000aaaa'
const OWN = 'sk-own-0000000000bbbb'
const LINES = 3
let text: KeyedVendor
let owner: { id: string; key: string }

const g = testGateway({ env: { HOUSE_KEY: HOUSE } }, async () => {
  text = await startKeyedVendor(() => `${g.sandbox.url}/openai`)
  const document = structuredClone(g.gateway.catalog.current.input)
  document.vendors.text = { baseUrl: text.url, credential: 'HOUSE_KEY', byokFee: { call: '0.01' } }
  const alpha = document.models['alpha-5.4'] ?? assert.fail()
  const routes = alpha.routes.map((route) => ({ ...route, vendor: 'text' }))
  document.models['alpha-5.4'] = { ...alpha, routes, batchFactor: '0.5' }
  await g.gateway.catalog.apply(document, BY, '')
  owner = await g.account()
})
after(() => text.close())
beforeEach(() => {
  text.moods.set(HOUSE, WORKS).set(OWN, WORKS)
  text.asked.length = 0
})

const bring = (fallback: boolean) =>
  g.gateway.byokKeys.store(owner.id, { vendor: 'text', value: OWN, fallback, origin: new URL(text.url).origin }, BY)

type ChargedCall = { charged: bigint; held: bigint; status: number; credential: string | null }

/** Runs a batch, and gives what its lines came to: their statuses, and their rows. */
async function batch(): Promise<{ statuses: number[]; rows: ChargedCall[] }> {
  const body = { model: 'alpha-5.4', max_tokens: 20, messages: [{ role: 'user', content: 'Hi' }] }
  const made = await sendBatch(g, owner.key, Array(LINES).fill(body))
  const { output_file_id, error_file_id } = await completed(g, owner.key, made)
  const texts = [output_file_id, error_file_id].map(async (id) =>
    id ? textOf(g.call(`/v1/files/${id}/content`, owner.key)) : '',
  )
  const told = (await Promise.all(texts)).flatMap((one) => one.split('\n').filter(Boolean))
  await g.settled()
  const rows = await g.sql<ChargedCall>(
    'select charged, held, status, credential from usage where client = $1 order by id',
    [made],
  )
  assert.deepEqual(await g.problems(), [])
  const statuses = told.map((one) => (JSON.parse(one) as { response: { status_code: number } }).response.status_code)
  return { statuses, rows }
}

test('every line of a batch goes by the account’s own key and costs the fee, which is held for it', async () => {
  await bring(false)
  const { statuses, rows } = await batch()
  assert.deepEqual(statuses, [200, 200, 200])
  assert.deepEqual(new Set(text.keysAsked()), new Set([OWN]))
  for (const row of rows) assert.deepEqual(row, { charged: 10_000n, held: 10_000n, status: 200, credential: 'own' })
  assert.equal(rows.length, LINES)
})

test('a key that its vendor refuses ends each line, free of charge; with fallback they go by the gateway’s, at the price of batches', async () => {
  await bring(false)
  text.moods.set(OWN, { status: 401 })
  const refused = await batch()
  assert.deepEqual(refused.statuses, [403, 403, 403])
  assert.ok(!text.keysAsked().includes(HOUSE))
  for (const { charged, status } of refused.rows) assert.deepEqual([charged, status], [0n, 403])

  await bring(true)
  const fallen = await batch()
  assert.deepEqual(fallen.statuses, [200, 200, 200])
  for (const { charged, held, credential } of fallen.rows) {
    assert.equal(credential, null)
    assert.ok(charged > 0n && charged <= held)
  }
})
