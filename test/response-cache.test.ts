// Answers of text models that are kept where the catalog says so: whose they are, what they cost, and when there is
// none.
import type { KeyView, NewKey } from '../src/admission/views.ts'
import type { CatalogInput } from '../src/catalog/document.ts'
import type { AuditView } from '../src/database/audit.ts'
import {
  CHAT_PATH,
  chunk,
  faultModel,
  STREAM_HEADERS,
  startVendor,
  usage,
  wholeAnswer,
  wholeStream,
} from './faults/chat-vendor.ts'
import { afterEach, assert, atOnce, beforeEach, pluck, started, startGateway, test, until } from './gateway.ts'

const HIT = 300n
const vendor = started(startVendor)
const g = started(() =>
  startGateway({
    catalog(document: CatalogInput) {
      document.vendors.mock = { baseUrl: vendor.url }
      const model = faultModel(['mock'])
      const pricing = { unit: 'credits' as const, tiers: [{ call: '0.0003' }] }
      document.models.keeps = { ...model, cache: { ttlSeconds: 60, pricing } }
      document.models.shares = { ...model, cache: { ttlSeconds: 60, shared: true } }
      document.models.chosen = { ...model, cache: { ttlSeconds: 60, pricing, keysOnly: true } }
      document.models.forgets = model
    },
  }),
)
beforeEach(() => {
  vendor.calls.length = 0
  vendor.answer = ({ response, body }) => {
    if ((JSON.parse(body) as { stream?: boolean }).stream)
      response.writeHead(200, STREAM_HEADERS).end(wholeStream(['grüße, 日本 ', String(vendor.calls.length)], 10, 20))
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
  assert.deepEqual(await g.problems(), [])
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
  assert.ok(again.includes('grüße, 日本 ') && again.endsWith('data: [DONE]\n\n'))
  assert.equal(vendor.calls.length, 1)
})

test('many who ask the same at once are one call of the vendor, and a fault is nobody else’s answer', async () => {
  question++
  const { key } = await g.account()
  const answer = vendor.answer
  vendor.answer = async (call) => {
    await until(() => g.gateway.monitor.running, 6)
    return answer(call)
  }
  const all = await atOnce(6, async () => told(await ask(key)))
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
  assert.notEqual((await ask(key, {}, { 'idempotency-key': 'k1' })).headers.get('x-cache'), 'hit')
})

test('a key may be switched on, for models that say nothing too, or off; the request still has to ask for the same', async () => {
  const { id, key, keyId } = await g.account()
  const other = await g.account()
  const turn = (responseCache: boolean | null) => g.operator<KeyView>('PATCH', `/keys/${keyId}`, { responseCache })
  const twice = async (model: string, more: object = {}, headers: Record<string, string> = {}, by = key) => {
    question++
    const first = (await told(await ask(by, { model, ...more }, headers)))[0]
    return `${first} ${(await told(await ask(by, { model, ...more }, headers)))[0]}`
  }
  const ON = { 'x-tollgate-cache': 'on' }
  // switch, then each model's two answers
  const table = [
    [null, 'keeps', 'miss hit'],
    [null, 'chosen', 'null null'],
    [null, 'forgets', 'null null'],
    [true, 'keeps', 'miss hit'],
    [true, 'chosen', 'miss hit'],
    [true, 'forgets', 'miss hit'],
    [false, 'keeps', 'null null'],
    [false, 'shares', 'null null'],
    [false, 'forgets', 'null null'],
  ] as const
  for (const [state, model, states] of table) {
    assert.equal((await turn(state)).data.responseCache, state)
    assert.equal(await twice(model), states, `${state} ${model}`)
  }
  assert.equal(await twice('keeps', {}, ON), 'null null', 'what its owner has switched off no request switches on')
  await turn(true)
  assert.equal(await twice('forgets', { temperature: 1 }), 'null null')
  assert.equal(await twice('forgets', { temperature: 1 }, ON), 'miss hit')
  assert.equal(await twice('forgets', {}, { 'x-tollgate-cache': 'off' }), 'null null')
  // Nobody else gets what was kept for it, nor is switched on by it.
  await told(await ask(key, { model: 'forgets' }))
  assert.equal((await told(await ask(other.key, { model: 'forgets' })))[0], null)
  assert.equal((await g.operator('PATCH', `/keys/${other.keyId}`, { responseCache: true })).status, 200)
  assert.equal((await told(await ask(other.key, { model: 'forgets' })))[0], 'miss')
  // A key in its place is switched as it was, and what was changed is written down.
  const { data: next } = await g.operator<NewKey>('POST', `/keys/${keyId}/rotate`, {})
  assert.equal(next.responseCache, true)
  assert.equal(await twice('chosen', {}, {}, next.key), 'miss hit')
  const { data: audit } = await g.operator<{ items: AuditView[] }>('GET', `/audit?object=${keyId}`)
  const written = audit.items.filter(({ action }) => action === 'key.change')
  assert.equal(written[0]?.detail.responseCache, true)
  assert.equal((await g.operator('PATCH', `/keys/${next.id}`, { responseCache: 'yes' })).status, 400)
  const charges = (await g.calls(id)).filter(({ product }) => product === 'chosen')
  assert.deepEqual(pluck(charges, 'charged'), [50n, 50n, 50n, HIT, 50n, HIT])
})

test('a hit is held for exactly, and an answer that ended with the credits is not kept', async () => {
  question++
  const [rich, poor] = [await g.account(), await g.account({ credits: 400n })]
  const shared = { model: 'shares' }
  await told(await ask(rich.key, shared))
  const answer = vendor.answer
  // It writes as much as it may.
  vendor.answer = ({ response, body }) => {
    const { max_tokens: cap } = JSON.parse(body) as { max_tokens: number }
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('cut', usage(10, cap)))
  }
  const cut = await ask(poor.key, { ...shared, user: 'poor' })
  assert.equal(cut.headers.get('x-cache'), 'miss')
  await cut.text()
  vendor.answer = answer
  assert.equal((await told(await ask(rich.key, { ...shared, user: 'poor' })))[0], 'miss')
  const [enough, less] = [await g.account({ credits: 50n }), await g.account({ credits: 49n })]
  assert.equal((await told(await ask(enough.key, shared)))[0], 'hit')
  assert.equal((await ask(less.key, shared)).status, 402)
  await g.settled()
  assert.equal((await g.balance(enough.id)).posted, 0n)
})

test('nobody is given a long kept answer for the credits of a short one', async () => {
  question++
  vendor.answer = ({ response }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('long', usage(10, 5_000)))
  const [rich, poor] = [await g.account(), await g.account({ credits: 1_000n })]
  await told(await ask(rich.key, { model: 'shares' }))
  assert.equal((await ask(poor.key, { model: 'shares' })).status, 402)
  await g.settled()
  assert.equal((await g.balance(poor.id)).posted, 1_000n)
})

test('an answer whose usage cannot be is not kept', async () => {
  question++
  vendor.answer = ({ response }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('odd', usage(10, 900_000)))
  const { key } = await g.account()
  assert.equal((await told(await ask(key)))[0], 'miss')
  assert.equal((await told(await ask(key)))[0], 'miss')
})

test('those who ask at once for what will not be kept do not wait for its end', async () => {
  question++
  const { key } = await g.account()
  const open: (() => void)[] = []
  const end = wholeStream(['end'], 10, 20)
  // Beyond what is kept, and then nothing more for as long as the test likes.
  vendor.answer = ({ response }) => {
    response.writeHead(200, STREAM_HEADERS)
    for (let sent = 0; sent <= 8_000_000; sent += 100_000) response.write(chunk('x'.repeat(100_000)))
    open.push(() => response.end(end))
  }
  const both = [ask(key, { stream: true }), ask(key, { stream: true })].map(async (one) => (await one).text())
  await until(() => open.length, 2)
  vendor.answer = ({ response }) => response.writeHead(200, STREAM_HEADERS).end(end)
  for (const finish of open) finish()
  await Promise.all(both)
})
