// Kept answers under way: many who ask the same at once, leaders who fail or leave, streams in every format, and what
// each pays.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { CatalogInput } from '../src/catalog/document.ts'
import { realWorld, type World } from '../src/kernel/world.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
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
import { CLIENT_FORMATS, FORMATS, requestTo } from './formats.ts'
import { assert, beforeEach, type Call, started, startGateway, test, until } from './gateway.ts'

const FULL = 50n
const HIT = 300n
const OTHERS = 8
const GRANTED = 1_000_000_000n
/** Those who wait for another's answer ask the clock for the time that they may. */
const WAIT_MS = 10_000
let waiting = 0
const world: World = {
  ...realWorld,
  after(delayMs, run) {
    if (delayMs !== WAIT_MS) return realWorld.after(delayMs, run)
    waiting++
    // On a busy machine too.
    return realWorld.after(60 * WAIT_MS, run)
  },
}

const vendor = started(startVendor)
const g = started(() =>
  startGateway({
    world,
    catalog(document: CatalogInput) {
      document.vendors.mock = { baseUrl: vendor.url, onAbort: 'cancel' }
      document.vendors.heard = { baseUrl: vendor.url }
      document.vendors.google = { baseUrl: 'sandbox/google' }
      const pricing = { unit: 'credits' as const, tiers: [{ call: '0.0003' }] }
      const base = faultModel(['mock'])
      document.models.keeps = { ...base, cache: { ttlSeconds: 60, pricing } }
      document.models.heard = { ...faultModel(['heard']), cache: { ttlSeconds: 60, pricing } }
      const searches = { unit: 'credits' as const, tiers: [{ input: '1', output: '2', webSearch: '1' }] }
      document.models.searches = { ...base, pricing: searches, cache: { ttlSeconds: 60 } }
      const vendors: Record<ClientFormatName, string> = {
        'openai-chat': 'alpha',
        'openai-responses': 'alpha',
        'anthropic-messages': 'beta',
        gemini: 'google',
      }
      for (const protocol of CLIENT_FORMATS)
        document.models[`kept-${protocol}`] = {
          ...base,
          clientFormats: [...CLIENT_FORMATS],
          routes: [{ vendor: vendors[protocol], protocol }],
          cache: { ttlSeconds: 60 },
        }
    },
  }),
)
let question = 0
beforeEach(() => {
  question++
  vendor.calls.length = 0
  vendor.answer = () => undefined
})

const ask = (key: string, more: object = {}, signal?: AbortSignal) =>
  g.call(
    CHAT_PATH,
    key,
    { model: 'keeps', messages: [{ role: 'user', content: `Question ${question}` }], temperature: 0, ...more },
    signal ? { signal } : {},
  )

/** The vendor's `index`-th call is answered, as it asks. */
function answer(index: number): void {
  const { response, body } = vendor.calls[index] ?? assert.fail(`call ${index}`)
  const streams = (JSON.parse(body) as { stream?: boolean }).stream
  if (response.headersSent) response.end(wholeStream(['end'], 10, 20))
  else if (streams) response.writeHead(200, STREAM_HEADERS).end(wholeStream(['hello ', String(index)], 10, 20))
  else response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('yes', usage(10, 20)))
}

/** One whose question is with the vendor, and others who wait for the answer to the same. */
async function takeOff(key: string, more: object = {}) {
  const from = waiting
  const leaving = new AbortController()
  const leader = ask(key, more, leaving.signal)
  leader.catch(() => undefined)
  await until(() => vendor.calls.length, 1)
  const others = Array.from({ length: OTHERS }, () => ask(key, more))
  await until(() => waiting - from, OTHERS)
  return { leader, others, leave: () => leaving.abort() }
}

const byCharge = (one: Call, other: Call) => one.status - other.status || Number(one.charged - other.charged)
const rows = async (account: string) => (await g.calls(account)).sort(byCharge)

/** Without comments, of which one says the charge, and the second in which it was whole. */
const plain = (stream: string) => stream.replace(/^:.*\n+/gm, '').replace(/"completed_at":\d+/, '')
const sums = (all: readonly Call[]) => all.map(({ status, charged }) => [status, charged])
const hits = (count: number) => Array.from({ length: count }, () => [200, HIT])

async function verified(): Promise<void> {
  assert.deepEqual(await g.problems(), [])
}

for (const stream of [false, true])
  test(`one call of the vendor’s answers all who ask the same at once, and each pays its part: ${stream ? 'stream' : 'whole'}`, async () => {
    const { id, key } = await g.account()
    const { leader, others } = await takeOff(key, { stream })
    assert.equal(vendor.calls.length, 1)
    // Who waits holds nothing.
    assert.equal((await g.sql('select 1 from hold where account_id = $1', [id])).length, 1)
    answer(0)
    const bodies = await Promise.all([leader, ...others].map(async (one) => plain(await (await one).text())))
    assert.equal(new Set(bodies).size, 1)
    assert.equal(vendor.calls.length, 1)
    const all = await rows(id)
    assert.deepEqual(sums(all), [[200, FULL], ...hits(OTHERS)])
    for (const { charged, held, cost, outcome } of all.slice(1))
      assert.deepEqual([held, cost, outcome], [charged, 0n, 'settled'], 'a hit holds its price, and no vendor is paid')
    assert.equal((await g.balance(id)).posted, GRANTED - FULL - BigInt(OTHERS) * HIT)
    await verified()
  })

test('a leader that fails fails alone: the next one asks, and the rest have its answer', async () => {
  const { id, key } = await g.account()
  const { leader, others } = await takeOff(key)
  vendor.calls[0]?.response.writeHead(400).end('{"error":{"message":"no"}}')
  assert.equal((await leader).status, 400)
  await until(() => vendor.calls.length, 2)
  answer(1)
  for (const one of others) assert.equal((await one).status, 200)
  assert.equal(vendor.calls.length, 2)
  assert.deepEqual(sums(await rows(id)), [[200, FULL], ...hits(OTHERS - 1), [400, 0n]])
  await verified()
})

test('a leader that leaves before an answer strands nobody, and pays nothing', async () => {
  const { id, key } = await g.account()
  const { leader, others, leave } = await takeOff(key)
  leave()
  await assert.rejects(leader)
  await until(() => vendor.calls.length, 2)
  answer(1)
  for (const one of others) assert.equal((await one).status, 200)
  assert.equal(vendor.calls.length, 2)
  assert.deepEqual(sums(await rows(id)), [[200, FULL], ...hits(OTHERS - 1), [499, 0n]])
})

test('a leader that leaves in the middle of a stream pays for what it had, and half an answer is nobody’s', async () => {
  const { id, key } = await g.account()
  const { leader, others, leave } = await takeOff(key, { stream: true })
  vendor.calls[0]?.response.writeHead(200, STREAM_HEADERS).write(chunk('half of it, '.repeat(20)))
  await (await leader).body?.getReader().read()
  leave()
  await until(() => vendor.calls.length, 2)
  answer(1)
  for (const one of others) assert.doesNotMatch(await (await one).text(), /half of it/)
  assert.equal(vendor.calls.length, 2)
  const all = await rows(id)
  assert.deepEqual(sums(all.slice(0, -1)), [[200, FULL], ...hits(OTHERS - 1)])
  const left = all.at(-1) ?? assert.fail()
  assert.ok(left.status === 499 && left.charged > 0n && left.charged <= left.held)
  await verified()
})

test('a leader that leaves a vendor which is heard to its end leaves the whole answer to those who wait, and the vendor is asked once', async () => {
  const { id, key } = await g.account()
  // Its own socket, and not how many there are: fetch opens another for each that it cuts.
  const arrived = once(g.gateway.app.server, 'request') as Promise<[IncomingMessage]>
  const { leader, others, leave } = await takeOff(key, { model: 'heard', stream: true })
  const [{ socket }] = await arrived
  vendor.calls[0]?.response.writeHead(200, STREAM_HEADERS).write(chunk('the first half, '))
  await (await leader).body?.getReader().read()
  leave()
  await until(() => socket.destroyed)
  // Nobody asks again while the leader's answer is still coming.
  assert.equal(vendor.calls.length, 1)
  answer(0)
  const texts = await Promise.all(others.map(async (one) => (await one).text()))
  for (const text of texts) assert.match(text, /the first half, [\s\S]*end[\s\S]*\[DONE\]/)
  assert.equal(new Set(texts.map(plain)).size, 1)
  assert.equal(vendor.calls.length, 1)
  // The leader pays what the vendor reports, the others a hit each.
  assert.deepEqual(sums(await rows(id)), [...hits(OTHERS), [499, FULL]])
  await verified()
})

test('whose leaders fail twice asks alone, at the price of a call of its own', async () => {
  const { id, key } = await g.account()
  const { leader, others } = await takeOff(key)
  vendor.calls[0]?.response.writeHead(400).end('{"error":{"message":"no"}}')
  assert.equal((await leader).status, 400)
  await until(() => vendor.calls.length, 2)
  vendor.calls[1]?.response.writeHead(400).end('{"error":{"message":"no"}}')
  // One of them is a leader again, whose answer comes too late for the rest.
  await until(() => vendor.calls.length, 2 + OTHERS - 1)
  for (let index = 2; index < vendor.calls.length; index++) answer(index)
  const statuses = await Promise.all(others.map(async (one) => (await one).status))
  assert.deepEqual(statuses.sort(), [...Array.from({ length: OTHERS - 1 }, () => 200), 400])
  const all = await rows(id)
  assert.deepEqual(
    sums(all.filter(({ status }) => status === 200)),
    Array.from({ length: OTHERS - 1 }, () => [200, FULL]),
  )
})

const COUNT = 'Count to three.'
const KEPT: Record<ClientFormatName, object> = {
  'openai-chat': { temperature: 0 },
  'openai-responses': { temperature: 0, store: false },
  'anthropic-messages': { temperature: 0 },
  gemini: { generationConfig: { temperature: 0 } },
}

test('a stream comes again as a stream, byte by byte, in every format and from every vendor’s', async () => {
  const { id, key } = await g.account()
  let pairs = 0
  // Google's format has two streams: events, and the elements of an array.
  for (const door of CLIENT_FORMATS)
    for (const protocol of CLIENT_FORMATS)
      for (const end of door === 'gemini' ? ['', '?alt=sse'] : ['']) {
        const { path, body } = requestTo(
          door,
          `kept-${protocol}`,
          { ...FORMATS[door].body(COUNT), ...KEPT[door] },
          true,
        )
        const at = path.replace('?alt=sse', '') + end
        const [first, second] = [await g.call(at, key, body), await g.call(at, key, body)]
        const states = [first, second].map(({ headers }) => headers.get('x-cache'))
        assert.deepEqual(states, ['miss', 'hit'], `${door} from ${protocol}`)
        assert.equal(second.headers.get('content-type'), first.headers.get('content-type'))
        const [whole, again] = [plain(await first.text()), plain(await second.text())]
        assert.equal(again, whole, `${door} from ${protocol}`)
        assert.ok(again.length > 100)
        pairs++
      }
  assert.equal(pairs, 20)
  const all = await rows(id)
  assert.equal(all.length, 40)
  const paid = all.map(({ charged }) => charged)
  assert.equal(
    new Set(paid).size <= 20,
    true,
    'each charge is there twice: a hit without a price of its own costs as much',
  )
  await verified()
})

test('what goes with every answer is held for and charged with a hit as with the call', async () => {
  const { id, key } = await g.account()
  const searching = { model: 'searches', web_search_options: {} }
  for (const index of [0, 1]) {
    const call = ask(key, searching)
    if (index === 0) {
      await until(() => vendor.calls.length, 1)
      answer(0)
    }
    assert.equal((await call).headers.get('x-cache'), index === 0 ? 'miss' : 'hit')
  }
  const all = await rows(id)
  assert.deepEqual(sums(all), [
    [200, 1_000_050n],
    [200, 1_000_050n],
  ])
  assert.ok(all.every(({ charged, held }) => charged <= held))
  await verified()
})
