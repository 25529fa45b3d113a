// A process that is stopped and goes on: its timers are due before it has read what came meanwhile.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { Fault } from '../kernel/fault.ts'
import { realWorld } from '../kernel/world.ts'
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
