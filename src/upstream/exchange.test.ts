import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { Worker } from 'node:worker_threads'
import { after, assert, listen, pause, test } from '../../test/kit.ts'
import { METADATA_HOSTS } from '../../test/metadata-hosts.ts'
import { Fault, type FaultName } from '../kernel/fault.ts'
import { realWorld } from '../kernel/world.ts'
import type { Deadlines } from './call.ts'
import { createUpstream } from './exchange.ts'

const PATIENT: Deadlines = { connectMs: 20_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 60_000 }
const upstream = createUpstream({ world: realWorld })
const never = new AbortController().signal

const closers: Array<() => unknown> = []
after(async () => {
  await upstream.close()
  for (const close of closers) await close()
})

/** A vendor made of a raw socket, so that it can misbehave below HTTP. */
async function rawVendor(onSocket: (socket: net.Socket) => void): Promise<string> {
  const sockets = new Set<net.Socket>()
  const server = net.createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
    onSocket(socket)
  })
  const { url, close } = await listen(server)
  closers.push(() => {
    for (const socket of sockets) socket.destroy()
    return close()
  })
  return url
}

async function vendor(listener: http.RequestListener | http.Server): Promise<string> {
  const { url, close } = await listen(listener)
  closers.push(close)
  return url
}

function get(url: string, deadlines: Partial<Deadlines> = {}, signal: AbortSignal = never) {
  return upstream.send({ method: 'GET', url, headers: {} }, { deadlines: { ...PATIENT, ...deadlines }, signal })
}

async function faultOf(promise: Promise<unknown>): Promise<{ kind: FaultName; internal: Record<string, unknown> }> {
  try {
    await promise
  } catch (error) {
    assert.ok(error instanceof Fault, String(error))
    return { kind: error.kind, internal: error.details.internal ?? {} }
  }
  throw new assert.AssertionError({ message: 'expected a fault' })
}

test('a call carries method, path, headers and body, and asks for no encoding', async () => {
  const url = await vendor(async (request, response) => {
    response.setHeader('x-seen', ['a', 'b'])
    response.end(
      JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body: await text(request) }),
    )
  })
  const reply = await upstream.send(
    { method: 'POST', url: `${url}/v1/x?y=1`, headers: { 'x-mine': '1', 'accept-encoding': 'gzip' }, body: 'grüße' },
    { deadlines: PATIENT, signal: never },
  )
  assert.equal(reply.status, 200)
  assert.equal(reply.headers['x-seen'], 'a, b')
  const seen = JSON.parse(String(await reply.read(10_000)))
  assert.equal(seen.method, 'POST')
  assert.equal(seen.url, '/v1/x?y=1')
  assert.equal(seen.headers['x-mine'], '1')
  assert.equal(seen.headers['accept-encoding'], 'identity')
  assert.equal(seen.headers['content-length'], String(Buffer.byteLength('grüße')))
  assert.equal(seen.body, 'grüße')
})

test('a body of several pieces arrives whole, with its length announced', async () => {
  const url = await vendor(async (request, response) => {
    const body = await buffer(request)
    response.end(`${request.headers['content-length']} ${body.length} ${body.subarray(0, 3)} ${body.subarray(-3)}`)
  })
  const reply = await upstream.send(
    { method: 'POST', url, headers: {}, body: ['äb', Buffer.alloc(3_000_000, 'x'), 'end'] },
    { deadlines: PATIENT, signal: never },
  )
  assert.equal(String(await reply.read(1_000)), '3000006 3000006 äb end')
})

test('a vendor that trickles for ever is a timeout at the total limit', async () => {
  const url = await vendor((request, response) => {
    const timer = setInterval(() => response.write('x'), 20)
    request.on('close', () => clearInterval(timer))
  })
  const reply = await get(url, { totalMs: 400 })
  const { kind, internal } = await faultOf(reply.read(1_000_000))
  assert.equal(kind, 'upstream_timeout')
  assert.equal(internal.phase, 'total')
})

/** An address that never completes a handshake: a listener that accepts nothing, with its backlog filled. */
async function blackHole(): Promise<string> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads')
     const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port)
       setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000))
     })`,
    { eval: true },
  )
  const [port] = await once(worker, 'message')
  const fillers = Array.from({ length: 4 }, () => net.connect(port, '127.0.0.1').on('error', () => {}))
  await Promise.all(fillers.slice(0, 2).map((socket) => once(socket, 'connect')))
  closers.push(() => {
    for (const socket of fillers) socket.destroy()
    worker.terminate()
  })
  return `http://127.0.0.1:${port}`
}

test('a connection that is never made is a timeout at the connect limit', async () => {
  const { kind, internal } = await faultOf(get(await blackHole(), { connectMs: 200 }))
  assert.deepEqual({ kind, internal }, { kind: 'upstream_timeout', internal: { phase: 'connect', sent: false } })
})

test('a refused connection and an unknown name are failures before anything was sent', async () => {
  const url = await vendor(() => {})
  closers.pop()!()
  const refused = await faultOf(get(url))
  assert.equal(refused.kind, 'upstream_failed')
  assert.equal(refused.internal.sent, false)
  assert.equal(refused.internal.phase, 'connect')
  const unknown = await faultOf(get('http://no-such-name.invalid/'))
  assert.equal(unknown.kind, 'upstream_failed')
  assert.equal(unknown.internal.sent, false)
})

test('a reset before the answer says that the request may have arrived', async () => {
  const url = await rawVendor((socket) => socket.once('data', () => socket.resetAndDestroy()))
  const { kind, internal } = await faultOf(get(url))
  assert.equal(kind, 'upstream_failed')
  assert.equal(internal.phase, 'first-byte')
  assert.equal(internal.sent, true)
})

const cuts = {
  'a body shorter than its length': 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc',
  'a chunked body without its end': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n',
}
for (const [name, answer] of Object.entries(cuts)) {
  for (const how of ['end', 'reset'] as const) {
    test(`${name} (${how}) is a failure after its pieces were handed over`, async () => {
      const sockets: net.Socket[] = []
      const url = await rawVendor((socket) => {
        sockets.push(socket)
        socket.once('data', () => socket.write(answer))
      })
      const reply = await get(url)
      let text = ''
      const { kind, internal } = await faultOf(
        reply.pipe((chunk) => {
          text += chunk
          if (how === 'end') sockets[0]?.end()
          else sockets[0]?.resetAndDestroy()
          return undefined
        }),
      )
      assert.equal(kind, 'upstream_failed')
      assert.equal(internal.phase, 'body')
      assert.equal(text, 'abc')
    })
  }
}

test('an abort by signal rejects with its reason and closes the vendor connection', async () => {
  for (const moment of ['before the headers', 'in the body'] as const) {
    const closed = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const url = await rawVendor((socket) => {
      socket.on('close', () => closed.resolve())
      socket.once('data', () => {
        if (moment === 'in the body') socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc')
        asked.resolve()
      })
    })
    const controller = new AbortController()
    const reason = new Error('the caller left')
    const sending = get(url, {}, controller.signal)
    await asked.promise
    const running = moment === 'in the body' ? (await sending).read(100) : sending
    const refused = assert.rejects(running, (error) => error === reason)
    controller.abort(reason)
    await refused
    await closed.promise
  }
})

test('a signal that fires while connecting rejects at once, and one that has fired sends nothing', async () => {
  const controller = new AbortController()
  const sending = get(await blackHole(), {}, controller.signal)
  controller.abort('gone')
  await assert.rejects(sending, (error) => error === 'gone')
  await assert.rejects(get('http://127.0.0.1:1/', {}, controller.signal), (error) => error === 'gone')
})

test('abort() can be called at any time and any number of times', async () => {
  const url = await vendor((_request, response) => response.write('abc'))
  const reply = await get(url)
  const running = faultOf(reply.read(100))
  reply.abort()
  reply.abort()
  assert.equal((await running).kind, 'upstream_failed')
  const whole = await get(await vendor((_request, response) => response.end('abc')))
  assert.equal(String(await whole.read(100)), 'abc')
  whole.abort()
})

test('more than the asked-for bytes are refused, announced or not, and cut off', async () => {
  for (const announced of [true, false]) {
    const closed = Promise.withResolvers<void>()
    const url = await vendor((request, response) => {
      request.socket.on('close', () => closed.resolve())
      if (announced) response.setHeader('content-length', 64_000_000)
      const piece = Buffer.alloc(65_536)
      const write = () => {
        while (!response.destroyed && response.write(piece));
      }
      response.on('drain', write)
      write()
    })
    const reply = await get(url)
    assert.equal((await faultOf(reply.read(1_000_000))).kind, 'upstream_garbled')
    await closed.promise
  }
})

test('an answer that is encoded although none was asked for is refused', async () => {
  const url = await vendor((_request, response) => {
    response.setHeader('content-encoding', 'gzip')
    response.end('x')
  })
  assert.equal((await faultOf(get(url))).kind, 'upstream_garbled')
})

test('a redirect is an answer like any other and is never followed', async () => {
  let followed = 0
  const canary = await vendor((_request, response) => {
    followed++
    response.end()
  })
  const url = await vendor((_request, response) => response.writeHead(302, { location: canary }).end())
  const reply = await get(url)
  assert.equal(reply.status, 302)
  await reply.read(100)
  assert.equal(followed, 0)
})

test('a header that cannot be sent is our own mistake, not the vendor’s', async () => {
  const sending = upstream.send(
    { method: 'GET', url: 'http://127.0.0.1:1/', headers: { 'x-bad': 'a\r\nb' } },
    { deadlines: PATIENT, signal: never },
  )
  assert.equal((await faultOf(sending)).kind, 'internal')
})

test('a thousand calls one after the other use one connection, or two', async () => {
  let connections = 0
  const server = http.createServer((_request, response) => response.end('{"ok":true}'))
  server.on('connection', () => connections++)
  const url = `${await vendor(server)}/`
  for (let i = 0; i < 1_000; i++) assert.equal(String(await (await get(url)).read(100)), '{"ok":true}')
  // Two: a connection rests for one turn of the event loop after its answer, and the next call may come within it.
  assert.ok(connections <= 2, `${connections} connections`)
})

test('a slow reader holds back the vendor: 20 MB are not gathered in memory, and it is not timed out', async () => {
  const total = 20 * 1_048_576
  let written = 0
  const url = await vendor((_request, response) => {
    const piece = Buffer.alloc(65_536, 'x')
    const write = () => {
      while (written < total) {
        written += piece.length
        if (!response.write(piece)) return
      }
      response.end()
    }
    response.on('drain', write)
    write()
  })
  const reply = await get(url, { idleMs: 200 })
  let received = 0
  let gate = Promise.withResolvers<void>()
  const first = Promise.withResolvers<void>()
  const done = reply.pipe((chunk) => {
    received += chunk.length
    first.resolve()
    return gate.promise
  })
  await first.promise
  // The idle limit passes several times while the reader holds the first piece.
  await pause(700, 'nothing may be read meanwhile')
  const ahead = written - received
  assert.ok(ahead < 12 * 1_048_576, `${ahead} bytes left the vendor while nobody read`)
  assert.ok(received <= 65_536 * 2, `${received} bytes were handed over`)
  const release = gate
  gate = { promise: Promise.resolve(), resolve: () => {}, reject: () => {} }
  release.resolve()
  await done
  assert.equal(received, total)
})

test('what arrives before anyone reads is kept in order', async () => {
  const url = await vendor((_request, response) => {
    for (let i = 0; i < 50; i++) response.write(Buffer.alloc(4_000, String(i % 10)))
    response.end()
  })
  const reply = await get(url)
  await new Promise((resolve) => setImmediate(resolve))
  const body = await reply.read(1_000_000)
  for (let i = 0; i < 50; i++) assert.equal(String(body.subarray(i * 4_000, i * 4_000 + 1)), String(i % 10))
})

test('an error of whoever reads cuts the vendor off and comes back unchanged', async () => {
  const url = await vendor((_request, response) => response.write('abc'))
  const mine = new Error('disk full')
  await assert.rejects(
    (await get(url)).pipe(() => Promise.reject(mine)),
    (error) => error === mine,
  )
  await assert.rejects(
    (await get(url)).pipe(() => {
      throw mine
    }),
    (error) => error === mine,
  )
})

for (const host of METADATA_HOSTS)
  test(`no vendor is at ${host}, where clouds tell a machine its credentials`, async () => {
    const fault = await faultOf((async () => get(`http://${host}/latest`))())
    assert.match(String(fault.internal.why), /metadata/)
  })
