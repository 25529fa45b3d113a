// A process that is stopped and goes on: its timers are due before it has read what came meanwhile.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { Fault } from '../kernel/fault.ts'
import { realWorld } from '../kernel/world.ts'
import { Patience } from './deadline.ts'
import { createUpstream } from './exchange.ts'

/** In a thread of its own, so that it answers while this one stands still. */
const VENDOR = `
  const { createServer } = require('node:http')
  const { parentPort } = require('node:worker_threads')
  const server = createServer((request, response) => {
    if (request.url === '/silent') return
    setTimeout(() => { response.write('first '); setTimeout(() => response.end('last'), 300) }, 300)
  })
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`

const DEADLINES = { connectMs: 1_000, firstByteMs: 1_000, idleMs: 1_000, totalMs: 2_000 }
const STOPPED_MS = 3_500

function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

test('a process that was stopped reads the answers that came meanwhile, and gives silence its full time again', async (t) => {
  const vendor = new Worker(VENDOR, { eval: true })
  const [port] = (await once(vendor, 'message')) as [number]
  const upstream = createUpstream({ world: realWorld })
  t.after(async () => {
    await upstream.close()
    await vendor.terminate()
  })
  const send = (path: string) =>
    upstream
      .send(
        { method: 'GET', url: `http://127.0.0.1:${port}${path}`, headers: {} },
        { deadlines: DEADLINES, signal: new AbortController().signal },
      )
      .then((reply) => reply.read(1_000))
  const answered = send('/')
  const silent = send('/silent').catch((error: unknown) => error)
  // From within a timer, so that the timers that came due meanwhile run before anything is read.
  await new Promise<void>((resolve) =>
    setTimeout(() => {
      standStill(STOPPED_MS)
      resolve()
    }, 100),
  )
  const wokenMs = performance.now()
  assert.equal(String(await answered), 'first last')
  const fault = await silent
  assert.ok(fault instanceof Fault && fault.kind === 'upstream_timeout', String(fault))
  assert.ok(performance.now() - wokenMs > 500, 'silence was given no time')
})

test('silence counts from the first look after the last sign of life, and only while we read', () => {
  const patience = new Patience({ connectMs: 100, firstByteMs: 200, idleMs: 300, totalMs: 10_000 }, 1_000)
  assert.equal(patience.dueMs, 1_100)
  assert.equal(patience.exceeded(1_099, false), undefined)
  assert.equal(patience.exceeded(1_100, false), 'quiet')
  patience.alive(300)
  assert.equal(patience.exceeded(5_000, false), undefined, 'the first look begins the silence')
  assert.equal(patience.dueMs, 5_300)
  assert.equal(patience.exceeded(5_299, false), undefined)
  assert.equal(patience.exceeded(5_300, true), undefined, 'we are the slow ones')
  assert.equal(patience.exceeded(5_300, false), 'quiet')
})

test('the whole time leaves out how long we kept the vendor waiting, which has an end of its own', () => {
  const patience = new Patience({ connectMs: 5_000, firstByteMs: 5_000, idleMs: 5_000, totalMs: 1_000 }, 0)
  patience.hold(200)
  assert.equal(patience.heldMs(700), 500)
  patience.goOn(700)
  assert.equal(patience.heldMs(5_000), 500)
  assert.equal(patience.exceeded(1_499, false), undefined)
  assert.equal(patience.exceeded(1_500, false), 'total')

  const held = new Patience({ connectMs: 5_000, firstByteMs: 5_000, idleMs: 5_000, totalMs: 1_000 }, 0)
  held.hold(100)
  assert.equal(held.exceeded(1_099, true), undefined)
  assert.equal(held.exceeded(1_100, true), 'held')
})

test("time in which this process slept is nobody's", () => {
  const patience = new Patience({ connectMs: 100, firstByteMs: 100, idleMs: 100, totalMs: 1_000 }, 0)
  patience.slept(5_000)
  assert.equal(patience.exceeded(5_099, false), undefined)
  assert.equal(patience.exceeded(5_100, false), 'quiet')
  patience.alive(100_000)
  assert.equal(patience.exceeded(5_999, false), undefined)
  assert.equal(patience.exceeded(6_000, false), 'total')
})
