// F4, F5, F6: vendors that fall silent. The deadlines of the catalog hold within 500 ms, and silence costs nothing.
import { startProxy } from '../chaos/proxy.ts'
import { afterEach, assert, FULL, started, test, until } from '../kit.ts'
import {
  chatBody,
  chunk,
  fastWorld,
  STREAM_HEADERS,
  startFaultGateway,
  startVendor,
  usage,
  wholeStream,
} from './chat-vendor.ts'
import { post } from './raw-client.ts'

const LIMIT_MS = 1_500
/** 500 ms on a machine of its own. */
const SLACK_MS = FULL ? 500 : 180_000

const vendor = started(startVendor)
const proxy = started(() => startProxy({ host: '127.0.0.1', port: Number(new URL(vendor.url).port) }))
const timeouts = { connectMs: LIMIT_MS, firstByteMs: LIMIT_MS, idleMs: LIMIT_MS, totalMs: 600_000 }
const g = started(() =>
  startFaultGateway({ vendors: { mock: { baseUrl: `http://127.0.0.1:${proxy.port}`, timeouts } } }),
)
const fast = started(() => startFaultGateway({ vendors: { mock: { baseUrl: vendor.url } }, world: fastWorld }))
afterEach(() => g.settled())

function inFlight(): number {
  return g.gateway.vendors.health().reduce((sum, entry) => sum + entry.inFlight, 0)
}

function assertInTime(ms: number): void {
  assert.ok(ms >= LIMIT_MS - 60 && ms <= LIMIT_MS + SLACK_MS, `${Math.round(ms)} ms instead of ${LIMIT_MS}`)
}

test('a vendor that says nothing is given up at its limit: 504 with code 50002, no charge', async () => {
  vendor.answer = () => {}
  const { id, key } = await g.account()
  for (const stream of [false, true]) {
    const startedMs = performance.now()
    const call = post(g.url, { key, body: chatBody('hello', { stream }) })
    const answer = await call.response
    assertInTime(performance.now() - startedMs)
    assert.equal(answer.statusCode, 504)
    const body = JSON.parse(await call.text()) as { code: number; message: string }
    assert.equal(body.code, 50002)
    assert.doesNotMatch(body.message, /mock|127\.0\.0\.1/)
  }
  assert.equal((await g.balance(id)).posted, 1_000_000_000n)
  assert.equal(inFlight(), 0)
})

test('a vendor that stops between two chunks is cut at its limit, and the caller sees an error, not an end', async () => {
  for (const reported of [false, true]) {
    let lastMs = 0
    vendor.answer = ({ response }) => {
      response.writeHead(200, STREAM_HEADERS)
      for (let i = 0; i < 10; i++)
        response.write(chunk(`word${i} `, null, reported && i === 9 ? { usage: usage(30, 10) } : {}))
      lastMs = performance.now()
    }
    const { id, key } = await g.account()
    const call = post(g.url, { key, body: chatBody('hello', { stream: true }) })
    const text = await call.text()
    assert.equal((await call.response).headers['cache-control'], 'no-cache, no-store, no-transform')
    assertInTime(performance.now() - lastMs)
    assert.match(text, /word9 /)
    assert.match(text, /"error":\{/)
    assert.match(text, /"code":50002/)
    await vendor.calls.at(-1)!.closed
    await g.settled()
    assert.equal((await g.balance(id)).posted, 1_000_000_000n - (reported ? 50n : 0n))
  }
  assert.equal(inFlight(), 0)
})

test('a connection that died without a word is given up at the limit, and its place is free again', async () => {
  vendor.answer = async ({ response, prompt }) => {
    response.writeHead(200, STREAM_HEADERS)
    response.write(chunk('first'))
    if (prompt === 'fine') response.end(chunk('', 'stop'))
  }
  const { id, key } = await g.account()
  const call = post(g.url, { key, body: chatBody('half-open', { stream: true }) })
  await call.until((text) => text.includes('first'))
  const startedMs = performance.now()
  proxy.stall()
  const text = await call.text()
  assert.ok(performance.now() - startedMs <= LIMIT_MS + SLACK_MS)
  assert.match(text, /"code":50002/)
  assert.equal(inFlight(), 0)
  assert.equal((await g.balance(id)).posted, 1_000_000_000n)
  proxy.heal()
  await until(() => vendor.openSockets, 0)
  const fine = post(g.url, { key, body: chatBody('fine', { stream: true }) })
  assert.match(await fine.text(), /\[DONE\]/)
})

test('a vendor that cannot be connected to within its limit is given up: 504, no charge', async () => {
  const { id, key } = await g.account()
  // The proxy takes connections and forwards nothing, not even the first byte.
  proxy.stall()
  try {
    const startedMs = performance.now()
    const call = post(g.url, { key, body: chatBody('hello') })
    assert.equal((await call.response).statusCode, 504)
    assertInTime(performance.now() - startedMs)
  } finally {
    proxy.heal()
  }
  assert.equal((await g.balance(id)).posted, 1_000_000_000n)
})

test('a caller who waits for the next chunk hears that the stream lives, and gets the rest', async () => {
  const heard = Promise.withResolvers<void>()
  vendor.answer = async ({ response }) => {
    response.writeHead(200, STREAM_HEADERS).write(chunk('first '))
    await heard.promise
    response.end(wholeStream(['last'], 3, 5))
  }
  const { key } = await fast.account()
  const call = post(fast.url, { key, body: chatBody('hello', { stream: true }) })
  await call.until((text) => /first (?:.|\n)*^: /m.test(text))
  heard.resolve()
  assert.match(await call.text(), /last/)
  await fast.settled()
})
