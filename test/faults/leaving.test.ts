// F1, F2, F3: callers who leave. Each call is settled once, by the table of endings, and its vendor is let go within 1
// s.
import { once } from 'node:events'
import { connect } from 'node:net'
import { silentLog } from '../../src/kernel/log.ts'
import { above, afterEach, assert, FULL, not, runs, started, type TestGateway, test, until } from '../gateway.ts'
import {
  chatBody,
  chunk,
  DONE,
  STREAM_HEADERS,
  startFaultGateway,
  startVendor,
  usage,
  usageChunk,
  wholeAnswer,
} from './chat-vendor.ts'
import { count, each, post } from './raw-client.ts'

const CHUNKS = 200
/** After each of them, or of as many as `npm test` has time for. */
const STRIDE = runs(5, 1)
const LEAVES_AFTER = [...count(CHUNKS)].filter((k) => k < 3 || k % STRIDE === 0)
/** 1 s on a machine of its own. */
const UPSTREAM_CLOSE_MS = FULL ? 1_000 : 180_000

const errors: object[] = []
const vendor = started(startVendor)
const log = { ...silentLog, error: (fields: object) => void errors.push(fields) }
const g = started(() => startFaultGateway({ vendors: { mock: { baseUrl: vendor.url, onAbort: 'cancel' } }, log }))
afterEach(() => g.settled())

type UsageRow = { id: string; outcome: string; status: number; charged: bigint; held: bigint; estimated: boolean }

/** Waits until this many calls of an account have been resolved. */
async function resolved(account: string, calls: number): Promise<UsageRow[]> {
  const text = 'select id, outcome, status, charged, held, estimated from usage where account_id = $1'
  const rows = await until(
    () => g.sql<UsageRow>(text, [account]),
    ({ length }) => length >= calls,
  )
  assert.equal(rows.length, calls, 'more resolutions than calls')
  return rows
}

/** How many of the vendor's answers have begun to reach the gateway. */
function answered(gateway: TestGateway): number {
  return gateway.gateway.vendors.health().find(({ name }) => name === 'mock')?.requests ?? 0
}

function connections({ gateway }: TestGateway): Promise<number> {
  return new Promise((resolve) => gateway.app.server.getConnections((_, open) => resolve(open)))
}

test('a caller who leaves after any chunk of 200 pays for what was delivered, once, and frees the vendor within 1 s', async () => {
  vendor.answer = async ({ response, prompt }) => {
    response.writeHead(200, STREAM_HEADERS)
    response.flushHeaders()
    for (let i = 0; i < Number(prompt); i++) response.write(chunk(`word${i} `))
  }
  const charges: bigint[] = []
  let slowestMs = 0
  await each(LEAVES_AFTER, 20, async (k) => {
    const { id, key } = await g.account()
    const calls = vendor.calls.length
    const call = post(g.url, { key, body: chatBody(String(k), { stream: true }) })
    if (k > 0) await call.until((text) => text.includes(`word${k - 1} `))
    const seen = () => vendor.calls.slice(calls).find(({ prompt }) => prompt === String(k))
    await until(() => seen(), not(undefined))
    const leftMs = performance.now()
    call.leave()
    slowestMs = Math.max(slowestMs, (await seen()!.closed) - leftMs)
    const [row] = await resolved(id, 1)
    assert.equal(row!.status, 499)
    assert.ok(row!.charged <= row!.held)
    charges[k] = row!.charged
    assert.equal((await g.balance(id)).posted, 1_000_000_000n - row!.charged)
  })
  assert.equal(charges[0], 0n)
  for (const [at, k] of LEAVES_AFTER.entries()) {
    if (k === 0) continue
    assert.ok(charges[k]! > 0n, `free after chunk ${k}`)
    assert.ok(charges[k]! >= charges[LEAVES_AFTER[at - 1]!]!, `chunk ${k} costs less than the one before`)
  }
  assert.ok(slowestMs <= UPSTREAM_CLOSE_MS, `a vendor was let go after ${slowestMs} ms`)
})

test('a caller who leaves after the vendor has reported its usage pays what was reported', async () => {
  vendor.answer = ({ response }) => {
    response.writeHead(200, STREAM_HEADERS)
    response.write(chunk('first') + chunk('second', null, { usage: usage(70, 30) }))
  }
  const { id, key } = await g.account()
  const call = post(g.url, { key, body: chatBody('hello', { stream: true }) })
  await call.until((text) => text.includes('second'))
  call.leave()
  const [row] = await resolved(id, 1)
  assert.deepEqual([row!.charged, row!.estimated, row!.status], [130n, false, 499])
})

test('a caller who leaves a whole answer pays nothing before the vendor answers, and the prompt afterwards', async () => {
  vendor.answer = async ({ response, prompt }) => {
    if (prompt.startsWith('before')) return
    response.writeHead(200, { 'content-type': 'application/json' })
    response.write(wholeAnswer('half of it', usage(5, 5)).slice(0, Number(prompt.split(' ')[1]) * 20 + 1))
  }
  for (const point of count(10)) {
    const { id, key } = await g.account()
    const before = answered(g)
    const prompt = `${point < 5 ? 'before' : 'after'} ${point}`
    const calls = vendor.calls.length
    const call = post(g.url, { key, body: chatBody(prompt) })
    const seen = () => vendor.calls.slice(calls).find((entry) => entry.prompt === prompt)
    await until(() => seen(), not(undefined))
    if (point >= 5) await until(() => answered(g), above(before))
    const leftMs = performance.now()
    call.leave()
    assert.ok((await seen()!.closed) - leftMs <= UPSTREAM_CLOSE_MS)
    const [row] = await resolved(id, 1)
    assert.equal(row!.status, 499)
    if (point < 5) assert.equal(row!.charged, 0n)
    else assert.ok(row!.charged > 0n && row!.estimated)
  }
})

test('a caller who resets the connection around the last byte is settled once', async () => {
  const calls = runs(150, 1_000)
  const { id, key } = await g.account()
  let reset: (after: number) => void = () => {}
  vendor.answer = async ({ response, prompt }) => {
    response.writeHead(200, STREAM_HEADERS)
    response.write(chunk(`answer ${prompt}`) + chunk('', 'stop') + usageChunk(usage(10, 20)))
    const delayMs = Number(prompt) % 11
    reset(Number(prompt))
    setTimeout(() => response.end(DONE), delayMs)
  }
  const waiting = new Map<number, () => void>()
  reset = (n) => void setTimeout(() => waiting.get(n)?.(), 5)
  await each(count(calls), 25, async (n) => {
    const call = post(g.url, { key, body: chatBody(String(n), { stream: true }) })
    waiting.set(n, () => call.reset())
    await call.until((text) => text.includes(`answer ${n}`)).catch(() => undefined)
    await call.text().catch(() => undefined)
  })
  const rows = await resolved(id, calls)
  assert.equal(new Set(rows.map((row) => row.id)).size, calls)
  for (const row of rows) assert.ok(row.charged > 0n && row.outcome === 'settled', JSON.stringify(row, replacer))
  const [pairs] = await g.sql<{ transfers: bigint; sum: bigint }>(
    `select count(*) as transfers, sum(amount)::bigint as sum from transfer where account_id = $1 and kind = 'settled'`,
    [id],
  )
  assert.equal(pairs!.transfers, BigInt(calls))
  assert.equal(
    pairs!.sum,
    rows.reduce((sum, row) => sum + row.charged, 0n),
  )
})

const replacer = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)

test('a vendor that bills the whole answer anyway is heard to the end, and the caller who left pays what it reports', async () => {
  await using draining = await startFaultGateway({ vendors: { mock: { baseUrl: vendor.url, onAbort: 'drain' } } })
  for (const stream of [true, false]) {
    const gone = Promise.withResolvers<void>()
    vendor.answer = async ({ response }) => {
      response.writeHead(200, stream ? STREAM_HEADERS : { 'content-type': 'application/json' })
      if (stream) response.write(chunk('first'))
      else response.write(' ')
      await gone.promise
      response.end(
        stream ? chunk('rest', 'stop') + usageChunk(usage(40, 60)) + DONE : wholeAnswer('rest', usage(40, 60)),
      )
    }
    const { id, key } = await draining.account()
    const before = answered(draining)
    const call = post(draining.url, { key, body: chatBody('hello', { stream }) })
    if (stream) await call.until((text) => text.includes('first'))
    await until(() => answered(draining), above(before))
    call.leave()
    await until(() => connections(draining), 0)
    gone.resolve()
    await draining.settled()
    assert.equal((await draining.balance(id)).posted, 1_000_000_000n - 160n, stream ? 'stream' : 'whole')
  }
})

test('whoever hangs up in the middle of a request leaves no error in the log', async () => {
  errors.length = 0
  const { key } = await g.account()
  for (const [method, path] of [
    ['POST', '/v1/chat-completions'],
    ['POST', '/alpha/v1/images/generations'],
    ['POST', '/v1/video/seedance'],
    ['DELETE', '/v1/jobs/1'],
    ['POST', '/nothing'],
  ]) {
    const before = await connections(g)
    const socket = connect(Number(new URL(g.url).port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write(
      `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n{"model`,
    )
    // The head has been read.
    await once(socket, 'data')
    socket.destroy()
    await until(
      () => connections(g),
      (seen) => seen <= before,
    )
  }
  assert.deepEqual(errors, [])
})
