// How many connections vendors see: as few as their calls need, and calls never wait for one another on one.

import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import net, { type Socket } from 'node:net'
import { assert, atOnce, listen, type TestContext, test } from '../../test/kit.ts'
import { realWorld } from '../kernel/world.ts'
import type { HttpCall } from './call.ts'
import { createUpstream } from './exchange.ts'

const DEADLINES = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 }
/** More than are kept once they have ended. */
const MANY = 100

test('calls at the same time have a connection each, later ones use them again, and those that the vendor ended are replaced', async (t) => {
  const sockets = new Set<Socket>()
  let opened = 0
  let waiting: Array<() => void> = []
  const server = createServer((request, response) => {
    const answer = () => response.end(request.url)
    if (request.url === '/together') waiting.push(answer)
    else answer()
    if (waiting.length === MANY) for (const one of waiting.splice(0)) one()
  })
  server.on('connection', (socket: Socket) => {
    opened += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const { url, close } = await listen(server)
  const upstream = createUpstream({ world: realWorld })
  t.after(async () => {
    waiting = []
    await upstream.close()
    await close()
  })
  const get = async (path: string) => {
    const signal = new AbortController().signal
    const reply = await upstream.send(
      { method: 'GET', url: `${url}${path}`, headers: {} },
      { deadlines: DEADLINES, signal },
    )
    assert.equal(String(await reply.read(100)), path)
  }
  const together = () => atOnce(MANY, () => get('/together'))

  for (let i = 0; i < 10; i++) await get('/alone')
  assert.equal(opened, 1, 'one call after another needs one connection')
  await together()
  assert.equal(opened, MANY, 'each of many has its own, the first one among them')
  await together()
  assert.equal(opened, MANY, 'the same many need no new ones')

  for (const socket of sockets) socket.destroy()
  await Promise.all([...sockets].map((socket) => once(socket, 'close')))
  for (let i = 0; i < 3 * MANY; i++) await get('/alone')
  assert.equal(opened, MANY + 1, 'after all were ended, one call after another needs one again')
  await together()
  assert.equal(opened, 2 * MANY, 'and many as many as before')
})

/** A vendor of bytes: answers what it is told to, request for request, and counts its connections. */
async function vendorOf(t: TestContext, answers: readonly string[]) {
  const requests: string[] = []
  let opened = 0
  const server = net.createServer((socket) => {
    opened += 1
    socket
      .on('error', () => socket.destroy())
      .on('data', (bytes) => {
        if (/^[A-Z]+ \//.test(String(bytes))) socket.write(answers[requests.push(String(bytes)) - 1] ?? '')
      })
    t.after(() => socket.destroy())
  })
  const { url, close } = await listen(server as Server)
  const upstream = createUpstream({ world: realWorld })
  t.after(async () => {
    await upstream.close()
    await close()
  })
  const ask = async (call: Partial<HttpCall> = {}) => {
    const { signal } = new AbortController()
    const reply = await upstream.send({ method: 'GET', url, headers: {}, ...call }, { deadlines: DEADLINES, signal })
    return String(await reply.read(100))
  }
  return { ask, requests, opened: () => opened }
}
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n'

test('a connection of which the vendor says that it ends soon, or says more than it was asked, is not used again', async (t) => {
  for (const first of [
    `${OK}connection: close\r\n\r\nab`,
    `${OK}keep-alive: timeout=2, max=9\r\n\r\nab`,
    `${OK}\r\nabHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil`,
  ]) {
    const { ask, opened } = await vendorOf(t, [first, `${OK}\r\ncd`, `${OK}\r\nef`])
    assert.deepEqual([await ask(), await ask(), await ask()], ['ab', 'cd', 'ef'])
    assert.equal(opened(), 2, first)
  }
})

test('an answer that comes before a long request has left is the answer, and its connection is not used again', async (t) => {
  const { ask, opened } = await vendorOf(t, [`${OK}\r\nno`, `${OK}\r\nab`])
  assert.equal(await ask({ method: 'POST', body: Array.from({ length: 40 }, () => Buffer.alloc(1_000_000)) }), 'no')
  assert.equal(await ask(), 'ab')
  assert.equal(opened(), 2)
})

test('what is the connection’s own is said by nobody else, and a request that would become two is not sent', async (t) => {
  const { ask, requests } = await vendorOf(t, [`${OK}\r\nab`, `${OK}\r\nab`])
  const headers = { 'Content-Length': '1', 'transfer-encoding': 'chunked', connection: 'close', 'x-name': 'caf\xe9' }
  await ask({ method: 'POST', headers, body: 'grüße' })
  await ask({ method: 'POST', headers: { host: 'other.example' } })
  const [first = '', second = ''] = requests
  const own = first.split('\r\n').filter((line) => /^(content-length|transfer-encoding|connection)/i.test(line))
  assert.deepEqual(own, ['content-length: 7', 'connection: keep-alive'])
  assert.ok(first.endsWith('\r\n\r\ngrüße'))
  assert.match(second, /^POST \/ HTTP\/1\.1\r\nhost: other\.example\r\ncontent-length: 0\r\n/)
  for (const bad of [
    { headers: { 'x-a\r\nx-b': '1' } },
    { headers: { 'x-a': '1\n' } },
    { headers: { '': '1' } },
  ] as const)
    await assert.rejects(ask(bad), { kind: 'internal' })
  await assert.rejects(ask({ url: 'http://127.0.0.1:1/a b' }), { kind: 'internal' })
  assert.equal(requests.length, 2)
})
