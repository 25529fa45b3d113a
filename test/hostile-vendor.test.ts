// A vendor that an account calls by its own key, and that turns on the gateway: redirects inside, endless and
// compressed bytes, a trickle.
import { createServer, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { assert, BY, listen, OPERATOR_TOKEN, started, test, testGateway, until } from './gateway.ts'

let reached = 0
const canary = started(() =>
  listen((_request, response) => {
    reached += 1
    response.end('{}')
  }),
)
/** Writes what it likes once it has been asked. */
let behave: (socket: Socket) => void = (socket) => socket.end()
const open = new Set<Socket>()
const vendor = started(
  () =>
    listen(
      createServer((socket) => {
        open.add(socket)
        socket.on('error', () => undefined)
        socket.once('close', () => open.delete(socket))
        socket.once('data', () => behave(socket))
      }),
    ),
  ({ close }) => {
    for (const socket of open) socket.destroy()
    return close()
  },
)
let account = { id: '', key: '' }

const g = testGateway(
  { env: { TOLLGATE_OPERATOR_TOKEN: OPERATOR_TOKEN, HOUSE_KEY: 'sk-house-00000000aaaa' } },
  async () => {
    const document = structuredClone(g.gateway.catalog.current.input)
    const { url: baseUrl } = vendor
    const timeouts = { firstByteMs: 2_000, firstTokenMs: 3_000, idleMs: 2_000, totalMs: 10_000 }
    document.vendors.hostile = { baseUrl, credential: 'HOUSE_KEY', timeouts, byokFee: { call: '0.01' } }
    const alpha = document.models['alpha-5.4']
    assert.ok(alpha)
    document.models.hostile = { ...alpha, routes: alpha.routes.map((route) => ({ ...route, vendor: 'hostile' })) }
    await g.gateway.catalog.apply(document, BY, '')
    account = await g.account()
    const own = { vendor: 'hostile', value: 'sk-own-0000000000bbbb', fallback: false, origin: baseUrl }
    await g.gateway.byokKeys.store(account.id, own, BY)
  },
)
const head = (status: string, headers: string) => `HTTP/1.1 ${status}\r\n${headers}\r\n\r\n`
const JSON_TYPE = 'content-type: application/json'
/** Writes for as long as somebody reads. */
function pour(socket: Socket, piece: string | Buffer): void {
  while (!socket.destroyed && socket.write(piece)) {}
  if (!socket.destroyed) socket.once('drain', () => pour(socket, piece))
}
const bomb = gzipSync(Buffer.alloc(200_000_000, ' '), { level: 9 })

const WAYS: Record<string, (socket: Socket) => void> = {
  'a redirect inside': (socket) =>
    socket.end(head('307 Temporary Redirect', `location: http://127.0.0.1:${canary.port}/\r\ncontent-length: 0`)),
  'headers without end': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    pour(socket, `x-a: ${'b'.repeat(8_000)}\r\n`)
  },
  'a body without end': (socket) => {
    socket.write(head('200 OK', JSON_TYPE))
    pour(socket, Buffer.alloc(65_536, ' '))
  },
  'an error without end': (socket) => {
    socket.write(head('400 Bad Request', JSON_TYPE))
    pour(socket, Buffer.alloc(65_536, ' '))
  },
  'compressed blanks': (socket) =>
    socket.end(
      Buffer.concat([
        Buffer.from(head('200 OK', `${JSON_TYPE}\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}`)),
        bomb,
      ]),
    ),
  'a trickle of headers': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nx-slow: ')
    const timer = setInterval(() => socket.write('a'), 100)
    socket.once('close', () => clearInterval(timer))
  },
  'no HTTP at all': (socket) => socket.end('\u0016\u0003\u0001 hello\r\n\r\n'),
  'an event without end': (socket) => {
    socket.write(head('200 OK', 'content-type: text/event-stream'))
    pour(socket, `data: ${'x'.repeat(65_536)}`)
  },
}

for (const [name, way] of Object.entries(WAYS))
  test(`${name} of a hostile vendor is an error, reaches nothing inside, costs nothing and is cut off`, async () => {
    behave = way
    const before = await g.balance(account.id)
    const stream = name === 'an event without end'
    const messages = [{ role: 'user', content: 'Hi' }]
    const answer = await g.call('/v1/chat/completions', account.key, {
      model: 'hostile',
      messages,
      max_tokens: 50,
      stream,
    })
    const text = await answer.text()
    assert.ok(answer.status >= 400 || /"error"/.test(text), `${answer.status} ${text.slice(0, 300)}`)
    assert.ok(text.length < 100_000, `${text.length} characters`)
    assert.doesNotMatch(text, /sk-own|sk-house|127\.0\.0\.1| {4}at /)
    assert.equal(reached, 0)
    await until(() => open.size, 0)
    await g.settled()
    assert.deepEqual(await g.balance(account.id), before)
    assert.deepEqual(await g.problems(), [])
    assert.ok(process.memoryUsage().arrayBuffers < 300_000_000)
  })
