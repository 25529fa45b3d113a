// F4, F5, F6: vendors that fall silent. The deadlines of the catalog hold within 500 ms, and silence costs nothing.
import assert from 'node:assert/strict'
import { after, afterEach, before, test } from 'node:test'
import { type ChaosProxy, startProxy } from '../chaos/proxy.ts'
import type { TestGateway } from '../gateway.ts'
import { FULL } from '../runs.ts'
import { until } from '../until.ts'
import {
  type ChatVendor,
  chatBody,
  chunk,
  STREAM_HEADERS,
  startFaultGateway,
  startVendor,
  usage,
} from './chat-vendor.ts'
import { post } from './raw-client.ts'

const LIMIT_MS = 1_500
/** 500 ms on a machine of its own. */
const SLACK_MS = FULL ? 500 : 180_000

let vendor: ChatVendor
let proxy: ChaosProxy
let g: TestGateway
before(async () => {
  vendor = await startVendor()
  proxy = await startProxy({ host: '127.0.0.1', port: Number(new URL(vendor.url).port) })
  const timeouts = { connectMs: LIMIT_MS, firstByteMs: LIMIT_MS, idleMs: LIMIT_MS, totalMs: 600_000 }
  g = await startFaultGateway({ vendors: { mock: { baseUrl: `http://127.0.0.1:${proxy.port}`, timeouts } } })
})
after(async () => {
  await g.close()
  await proxy.close()
  await vendor.close()
})
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
  await until(() => vendor.openSockets === 0)
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
