// F62: callers who read so slowly that a deadline passes, or that the vendor loses patience. It is they who end the
// call: what they were given is paid for.
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { CatalogInput } from '../../src/catalog/document.ts'
import { realWorld, type World } from '../../src/kernel/world.ts'
import { CLIENT_FORMATS, FORMATS } from '../formats.ts'
import { assert, type Call, pause, runs, started, startGateway, type TestGateway, test, until } from '../gateway.ts'
import {
  type ChatVendor,
  chunk,
  fastWorld,
  faultModel,
  MODEL,
  STREAM_HEADERS,
  startVendor,
  type VendorCall,
} from './chat-vendor.ts'

/** Instead of the 60 s and 600 s that vendors are usually given. */
const TOTAL_MS = runs(8_000, 60_000)
/** More than the buffers of all sockets hold. */
const STREAM_BYTES = 60_000_000
const ANALYTICS = 'siteanalytics/websites/ranks'
const ANALYTICS_PATH = `/v1/${ANALYTICS}?keys=example.com`
const ANALYTICS_BYTES = 30_000_000

const DOORS = CLIENT_FORMATS.filter((format) => format !== 'gemini').map(
  (format) => [FORMATS[format].oldPath(MODEL), FORMATS[format].body('Hi')] as const,
)

function start(totalMs: number, world: World, cached = false): Promise<TestGateway> {
  return startGateway({
    world,
    catalog(document: CatalogInput) {
      const timeouts = { connectMs: 3_000_000, firstByteMs: 3_000_000, idleMs: 3_000_000, totalMs }
      document.vendors.mock = { baseUrl: vendor.url, timeouts }
      document.models[MODEL] = { ...faultModel(['mock']), clientFormats: [...CLIENT_FORMATS] }
      const endpoint = document.endpoints![ANALYTICS]!
      endpoint.routes = [{ vendor: 'mock', protocol: 'site-analytics' }]
      if (cached) endpoint.cache = { ttlSeconds: 60 }
    },
  })
}

/** With real clocks and a short time for the vendor. */
/** With hurried clocks and all the time in the world. */
const vendor = started(startVendor)
const hasty = started(() => start(TOTAL_MS, realWorld))
const patient = started(() => start(3_600_000, fastWorld))

/** What the vendor waits in all before it hangs up. */
let patienceMs = Number.POSITIVE_INFINITY

/** Sends frames as fast as they are taken, until there were enough or nobody listens. Answers whether it ended. */
async function pour(response: ServerResponse, frame: string, bytes: number): Promise<boolean> {
  let waitedMs = 0
  for (let sent = 0; sent < bytes; sent += frame.length) {
    if (waitedMs > patienceMs) response.destroy()
    if (response.destroyed) return false
    if (response.write(frame)) continue
    const fromMs = performance.now()
    await drained(response)
    waitedMs += performance.now() - fromMs
  }
  return true
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const on = () => {
      response.off('drain', on).off('close', on)
      resolve()
    }
    response.on('drain', on).on('close', on)
  })
}

interface Asked {
  readonly path: string
  readonly body?: object
  /** Takes a little now and then; else nothing is ever read. */
  readonly slowly: boolean
}

type Paid = Pick<Call, 'status' | 'estimated' | 'charged'>
/** The bytes that were read until the gateway cut the caller off or the answer ended, and what was posted. */
async function read(g: TestGateway, { path, body, slowly }: Asked): Promise<{ bytes: number; row: Paid }> {
  const { id, key } = await g.account()
  const sent = request(g.url + path, {
    method: body ? 'POST' : 'GET',
    agent: false,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  })
  sent.on('error', () => {})
  sent.end(body && JSON.stringify(body))
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  assert.equal(answer.statusCode, 200)
  let bytes = 0
  const reading = async () => {
    for await (const piece of answer) {
      bytes += (piece as Buffer).length
      await pause(20, 'a vendor that is slow')
    }
  }
  if (slowly) await reading().catch(() => {})
  await until(() => g.gateway.monitor.running, 0)
  sent.destroy()
  const [call, ...others] = await g.calls(id)
  assert.ok(call && others.length === 0)
  const { status, estimated, charged } = call
  return { bytes, row: { status, estimated, charged } }
}

function streamEndlessly({ response }: VendorCall): Promise<boolean> {
  response.writeHead(200, STREAM_HEADERS)
  return pour(response, chunk('x'.repeat(16_000)), STREAM_BYTES)
}

function answerOf(bytes: number): ChatVendor['answer'] {
  return async ({ response }) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': String(bytes) })
    if (await pour(response, ' '.repeat(10_000), bytes - 10_000)) response.end(`${' '.repeat(9_998)}[]`)
  }
}

function analyticsPrice(g: TestGateway): bigint {
  return g.gateway.catalog.current.document.endpoints[ANALYTICS]!.pricing.tiers[0]!.call!
}

test('at every door, a caller who reads slowly until the vendor’s time is over pays for what was delivered', async () => {
  vendor.answer = streamEndlessly
  const reads = DOORS.map(async ([path, body]) => {
    const { bytes, row } = await read(hasty, { path, body: { model: MODEL, stream: true, ...body }, slowly: true })
    assert.ok(bytes > 0 && bytes < STREAM_BYTES, path)
    assert.deepEqual([row.status, row.estimated], [499, true], path)
    assert.ok(row.charged > 0n, path)
  })
  await Promise.all(reads)
})

test('a caller who reads an analytics answer slowly until the vendor’s time is over pays its price', async () => {
  vendor.answer = answerOf(ANALYTICS_BYTES)
  const { bytes, row } = await read(hasty, { path: ANALYTICS_PATH, slowly: true })
  assert.ok(bytes > 0 && bytes < ANALYTICS_BYTES)
  assert.deepEqual(row, { status: 499, estimated: false, charged: analyticsPrice(hasty) })
})

test('a caller who reads so slowly that the vendor hangs up pays for what was delivered', async (t) => {
  patienceMs = 4_000
  t.after(() => {
    patienceMs = Number.POSITIVE_INFINITY
  })
  const [path, body] = DOORS[0]!
  vendor.answer = streamEndlessly
  const chat = await read(patient, { path, body: { model: MODEL, stream: true, ...body }, slowly: true })
  assert.deepEqual([chat.row.status, chat.row.estimated], [499, true])
  assert.ok(chat.row.charged > 0n)
  vendor.answer = answerOf(ANALYTICS_BYTES)
  const { row } = await read(patient, { path: ANALYTICS_PATH, slowly: true })
  assert.deepEqual(row, { status: 499, estimated: false, charged: analyticsPrice(patient) })
})

test('a caller who does not read an analytics answer at all is cut off after 30 s, and pays its price', async () => {
  vendor.answer = answerOf(ANALYTICS_BYTES)
  const { row } = await read(patient, { path: ANALYTICS_PATH, slowly: false })
  assert.deepEqual(row, { status: 499, estimated: false, charged: analyticsPrice(patient) })
})

test('a caller who does not read a cached response holds up nobody who asks the same', async () => {
  await using g = await start(600_000, realWorld, true)
  // The first size is kept and given to all; the second is too large for that.
  for (const [bytes, asked, cache] of [
    [3_000_000, 1, 'hit'],
    [ANALYTICS_BYTES, 2, 'miss'],
  ] as const) {
    vendor.answer = answerOf(bytes)
    vendor.calls.length = 0
    const { key } = await g.account()
    const path = `/v1/${ANALYTICS}?keys=of-${bytes}.example`
    const first = request(g.url + path, { agent: false, headers: { authorization: `Bearer ${key}` } }).end()
    const [unread] = (await once(first, 'response')) as [IncomingMessage]
    const second = await g.call(path, key)
    assert.equal((await second.arrayBuffer()).byteLength, bytes)
    assert.equal(second.headers.get('x-cache'), cache)
    assert.equal(unread.headers['x-cache'], 'miss')
    assert.equal(vendor.calls.length, asked)
    assert.equal(first.destroyed, false)
    first.on('error', () => {}).destroy()
  }
  await g.settled()
})
