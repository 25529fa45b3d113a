import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { assert, test } from '../../../test/kit.ts'
import { asFault } from '../../kernel/fault.ts'
import { silentLog } from '../../kernel/log.ts'
import { realWorld } from '../../kernel/world.ts'
import { takeWhole } from './body.ts'
import { createServer as createWebServer } from './server.ts'
import { json } from './web.ts'

test('a small body that comes more slowly than it may is cut off, and one that keeps its pace is waited for', async () => {
  let nowMs = 0
  const due: Array<{ atMs: number; run: () => void }> = []
  const world = {
    ...realWorld,
    elapsedMs: () => nowMs,
    after(delayMs: number, run: () => void) {
      const timer = { atMs: nowMs + delayMs, run }
      due.push(timer)
      return () => void due.splice(due.indexOf(timer), 1)
    },
  }
  const pass = (ms: number) => {
    nowMs += ms
    for (const timer of due.filter(({ atMs }) => atMs <= nowMs)) {
      due.splice(due.indexOf(timer), 1)
      timer.run()
    }
  }
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const arrived = new Promise<IncomingMessage>((resolve) => server.once('request', resolve))
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n${'x'.repeat(50)}`)
  const request = await arrived
  const endings: string[] = []
  takeWhole(request, { world, bytesPerSecondMin: 10, bytesMax: 1_000 }, null, {
    whole: () => endings.push('whole'),
    failed: (error) => endings.push(asFault(error).kind),
  })
  // The first piece is here when this listener, added after the reader's own, hears of it.
  await new Promise((resolve) => request.once('data', resolve))
  // 15 s, and five more for 50 bytes at ten a second.
  pass(15_000)
  assert.deepEqual(endings, [])
  pass(4_999)
  assert.deepEqual(endings, [])
  pass(2)
  assert.deepEqual(endings, ['body_too_slow'])
  assert.deepEqual(due, [])
  socket.destroy()
  server.close()
})

test("an endpoint's own limit counts for small bodies too, announced or in pieces", async () => {
  const app = createWebServer({ world: realWorld, log: silentLog, strictErrors: false })
  app.add('POST', '/', async (request) => json((await request.body(10)).length))
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const send = async (body: string | ReadableStream) =>
    (await fetch(url, { method: 'POST', body, ...(typeof body !== 'string' && { duplex: 'half' }) })).status
  assert.equal(await send('x'.repeat(10)), 200)
  assert.equal(await send('x'.repeat(11)), 413)
  assert.equal(await send(new Blob(['x'.repeat(10)]).stream()), 200)
  assert.equal(await send(new Blob(['x'.repeat(11)]).stream()), 413)
  await app.close()
})
