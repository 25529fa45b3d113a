// Answers of text models that are kept where the catalogue says so: whose they are, what they cost, and when there is none.
import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, test } from 'node:test'
import type { CatalogInput } from '../src/catalog/document.ts'
import { storedCatalogs } from '../src/catalog/store.ts'
import { verifyLedger } from '../src/ledger/verify.ts'
import {
  CHAT_PATH,
  type ChatVendor,
  faultModel,
  STREAM_HEADERS,
  startVendor,
  usage,
  wholeAnswer,
  wholeStream,
} from './faults/chat-vendor.ts'
import { startGateway, type TestGateway } from './gateway.ts'

const HIT = 300n
let vendor: ChatVendor
let g: TestGateway
before(async () => {
  vendor = await startVendor()
  g = await startGateway({
    catalog(document: CatalogInput) {
      document.vendors.mock = { baseUrl: vendor.url }
      const model = faultModel(['mock'])
      const pricing = { unit: 'credits' as const, tiers: [{ call: '0.0003' }] }
      document.models.keeps = { ...model, cache: { ttlSeconds: 60, pricing } }
      document.models.shares = { ...model, cache: { ttlSeconds: 60, shared: true } }
      document.models.forgets = model
    },
  })
})
after(async () => {
  await g.close()
  await vendor.close()
})
beforeEach(() => {
  vendor.calls.length = 0
  vendor.answer = ({ response, body }) => {
    if ((JSON.parse(body) as { stream?: boolean }).stream)
      response.writeHead(200, STREAM_HEADERS).end(wholeStream(['hello ', String(vendor.calls.length)], 10, 20))
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(wholeAnswer(`answer ${vendor.calls.length}`, usage(10, 20)))
  }
})
afterEach(() => g.settled())

let question = 0
const ask = (key: string, more: object = {}, headers: Record<string, string> = {}) =>
  g.call(
    CHAT_PATH,
    key,
    { model: 'keeps', messages: [{ role: 'user', content: `Question ${question}` }], temperature: 0, ...more },
    { headers },
  )
const told = async (response: Response) => [response.headers.get('x-cache'), await response.text()] as const

test('the very same request at temperature 0 is answered again without its vendor, at the price of a hit', async () => {
  question++
  const { id, key } = await g.account()
  const [first, body] = await told(await ask(key))
  const [second, again] = await told(await ask(key))
  assert.deepEqual([first, second, again], ['miss', 'hit', body])
  assert.equal(vendor.calls.length, 1)
  await g.settled()
  assert.equal((await g.balance(id)).posted, 1_000_000_000n - 50n - HIT)
  assert.equal((await told(await ask(key, { max_tokens: 7 })))[0], 'miss')
  await g.settled()
  const { database } = g.gateway
  const { problems } = await verifyLedger(database, storedCatalogs(database))
  assert.deepEqual(problems, [])
})

test('a stream is given again as a stream, whole', async () => {
  question++
  const { key } = await g.account()
  const [first, body] = await told(await ask(key, { stream: true }))
  const hit = await ask(key, { stream: true })
  assert.match(hit.headers.get('content-type') ?? '', /^text\/event-stream/)
  const [second, again] = await told(hit)
  assert.deepEqual([first, second], ['miss', 'hit'])
  assert.equal(again, body.replace(/^:.*\n/gm, ''))
  assert.ok(again.endsWith('data: [DONE]\n\n'))
  assert.equal(vendor.calls.length, 1)
})

test('many who ask the same at once are one call of the vendor, and a fault is nobody else’s answer', async () => {
  question++
  const { key } = await g.account()
  const answer = vendor.answer
  vendor.answer = (call) => setTimeout(() => answer(call), 100)
  const all = await Promise.all(Array.from({ length: 6 }, async () => told(await ask(key))))
  assert.deepEqual(all.map(([state]) => state).sort(), ['hit', 'hit', 'hit', 'hit', 'hit', 'miss'])
  assert.equal(new Set(all.map(([, body]) => body)).size, 1)
  assert.equal(vendor.calls.length, 1)
  question++
  vendor.answer = ({ response }) => response.writeHead(400).end('{"error":{"message":"no"}}')
  assert.equal((await ask(key)).status, 400)
  vendor.answer = answer
  assert.equal((await told(await ask(key)))[0], 'miss')
})

test('an answer belongs to its account, unless the operator shares it', async () => {
  question++
  const [one, two] = [await g.account(), await g.account()]
  assert.equal((await told(await ask(one.key)))[0], 'miss')
  assert.equal((await told(await ask(two.key)))[0], 'miss')
  const shared = { model: 'shares' }
  const [, body] = await told(await ask(one.key, shared))
  assert.deepEqual(await told(await ask(two.key, shared)), ['hit', body])
  await g.settled()
  // Without a price of its own a hit costs what the call did.
  assert.equal((await g.balance(two.id)).posted, 1_000_000_000n - 50n - 50n)
})

test('callers may ask for it, and against it; nothing is kept of other temperatures, other models or repetitions by key', async () => {
  question++
  const { key } = await g.account()
  const state = async (more: object, headers: Record<string, string> = {}) =>
    (await told(await ask(key, more, headers)))[0]
  const warm = { temperature: 1 }
  assert.deepEqual([await state(warm), await state(warm)], [null, null])
  const on = { 'x-tollgate-cache': 'on' }
  assert.deepEqual([await state(warm, on), await state(warm, on)], ['miss', 'hit'])
  const off = { 'x-tollgate-cache': 'off' }
  assert.deepEqual([await state({}, off), await state({}, off)], [null, null])
  assert.equal((await ask(key, {}, { 'x-tollgate-cache': 'maybe' })).status, 400)
  assert.deepEqual([await state({ model: 'forgets' }), await state({ model: 'forgets' }, on)], [null, null])
  assert.equal(await state({}), 'miss')
  const repeated = await ask(key, {}, { 'idempotency-key': 'k1' })
  assert.notEqual(repeated.headers.get('x-cache'), 'hit')
})

test('a hit is held for like any call, and an answer that ended with the credits is not kept', async () => {
  question++
  const [rich, poor] = [await g.account(), await g.account({ credits: 400n })]
  await told(await ask(rich.key, { model: 'shares' }))
  const { key } = await g.key(poor.id)
  const cut = await ask(key, { model: 'shares', user: 'poor' })
  assert.equal(cut.headers.get('x-cache'), 'miss')
  await cut.text()
  const none = await g.account({ credits: 1n })
  assert.equal((await ask(none.key, { model: 'shares' })).status, 402)
  assert.equal((await told(await ask(rich.key, { model: 'shares', user: 'poor' })))[0], 'miss')
})
