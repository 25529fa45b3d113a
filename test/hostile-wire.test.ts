// Bytes that are no honest HTTP: one refusal and a closed connection. F13, F18, F20, F23.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { makeKey } from '../src/admission/api-key.ts'
import { realWorld } from '../src/kernel/world.ts'
import { count } from './faults/raw-client.ts'
import { after, assert, before, runs, test, testGateway, until } from './gateway.ts'

const SLOW_SOCKETS = runs(40, 2_000)
/** The headers' limit, the interval at which it is looked at, and room for a slow machine. */
const SLOW_MS_MAX = 15_000 + runs(165_000, 0)

let port: number
let slow: Array<{ closedMs: Promise<number>; stop(): void }>
/** Those who say nothing more, and do not close: at both ends. */
const staying: Array<{ socket: Socket; peer: Socket }> = []
const g = testGateway()
before(async () => {
  port = Number(new URL(g.url).port)
  for (const bytes of REFUSED) {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    const [peer] = await once(g.gateway.app.server, 'connection')
    socket.resume().write(bytes)
    staying.push({ socket, peer })
  }
  slow = [...count(SLOW_SOCKETS)].map(slowloris)
})
after(async () => {
  for (const { stop } of slow) stop()
  for (const { socket } of staying) socket.destroy()
})

/** A byte of a header every half second, for ever. */
function slowloris(): (typeof slow)[number] {
  const startedMs = performance.now()
  const socket = connect(port, '127.0.0.1')
  socket.write('POST /v1/chat-completions HTTP/1.1\r\nhost: x\r\nx-slow: ')
  const timer = setInterval(() => socket.write('a'), 500)
  socket.on('error', () => {})
  socket.resume()
  const closedMs = new Promise<number>((resolve) => {
    socket.once('close', () => {
      clearInterval(timer)
      resolve(performance.now() - startedMs)
    })
  })
  return { closedMs, stop: () => void socket.destroy() }
}

/** Everything that comes back until the server closes. */
function exchange(bytes: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket: Socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.setEncoding('latin1')
    socket.on('data', (piece) => {
      answer += piece
    })
    socket.on('error', () => {})
    socket.once('close', () => resolve(answer))
    socket.write(bytes)
  })
}

const HEAD = 'POST /v1/chat-completions HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n'
/** What would be read as a request of its own if the two sides disagreed about where the first one ends. */
const SMUGGLED = 'GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\n'

/** Answered, while the caller keeps its side open. */
const REFUSED = [
  'GET /v1/account\r\n\r\n',
  `${HEAD}transfer-encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`,
  'GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
]
const PROBES: Record<string, string | Buffer> = {
  'both lengths': `${HEAD}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  'two lengths': `${HEAD}content-length: 0\r\ncontent-length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
  'a list of lengths': `${HEAD}content-length: 0, 5\r\n\r\nhello${SMUGGLED}`,
  'a negative length': `${HEAD}content-length: -1\r\n\r\n${SMUGGLED}`,
  'a signed length': `${HEAD}content-length: +5\r\n\r\nhello${SMUGGLED}`,
  'a hexadecimal length': `${HEAD}content-length: 0x5\r\n\r\nhello${SMUGGLED}`,
  'an enormous length': `${HEAD}content-length: 99999999999999999999\r\n\r\n${SMUGGLED}`,
  'an unknown encoding': `${HEAD}transfer-encoding: xchunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n${SMUGGLED}`,
  'chunked, and then not': `${HEAD}transfer-encoding: chunked, identity\r\n\r\n5\r\nhello\r\n0\r\n\r\n${SMUGGLED}`,
  'a coding that nobody undoes': `${HEAD}transfer-encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n${SMUGGLED}`,
  'codings in two headers': `${HEAD}transfer-encoding: deflate\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n${SMUGGLED}`,
  'chunked twice': `${HEAD}transfer-encoding: chunked, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n${SMUGGLED}`,
  'a chunk size that is none': `${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n${SMUGGLED}`,
  'a chunk without its end': `${HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhelloX0\r\n\r\n${SMUGGLED}`,
  'a NUL in a header': `${HEAD}x-a: a\u0000b\r\n\r\n`,
  'a folded header': `${HEAD}x-a: a\r\n b: c\r\ncontent-length: 0\r\n\r\n${SMUGGLED}`,
  'a blank before the colon': `${HEAD}content-length : 5\r\n\r\nhello${SMUGGLED}`,
  'a bare CR in a header': `${HEAD}x-a: a\rb\r\n\r\n`,
  'no host': 'GET /v1/account HTTP/1.1\r\n\r\n',
  'two hosts': 'GET /v1/account HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n',
  'no version': 'GET /v1/account\r\n\r\n',
  'an unknown method': 'STEAL /v1/account HTTP/1.1\r\nhost: x\r\n\r\n',
  'a version of the future': 'GET /v1/account HTTP/9.1\r\nhost: x\r\n\r\n',
  'headers without end': `${HEAD}${'x-a: b\r\n'.repeat(10_000)}`,
  TLS: Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
}

test('requests that two readers could read differently get one refusal and a closed connection', async () => {
  for (const [name, bytes] of Object.entries(PROBES)) {
    const answer = await exchange(bytes)
    const statuses = [...answer.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status))
    assert.equal(statuses.length, 1, `${name}: ${statuses}\n${answer}`)
    const isRefused = statuses[0]! >= 400 && (statuses[0]! < 500 || statuses[0] === 501)
    assert.ok(isRefused, `${name}: ${answer}`)
    assert.doesNotMatch(answer, /"ok":true|Parse Error|node:|\.ts:/, name)
  }
})

test('garbage behind a request never gets into its answer', async () => {
  const { key } = await g.account()
  const body = JSON.stringify({
    model: 'alpha-5.4',
    stream: true,
    messages: [{ role: 'user', content: 'hi [[slow=40]]' }],
  })
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('utf8')
  socket.on('data', (piece) => {
    answer += piece
  })
  socket.on('error', () => {})
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(`${HEAD}authorization: Bearer ${key}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  await until(() => answer.includes('data:'))
  socket.write('\u0000\u0001 this is no request\r\n\r\n')
  await closed
  assert.equal(answer.split('HTTP/1.1').length, 2, answer.slice(-500))
  await g.settled()
})

test('absolute targets, odd hosts and doubled headers open no door', async () => {
  const hosts = [
    '',
    'localhost',
    '127.0.0.1',
    'evil.example',
    '[::1]',
    'a:99999',
    '../..',
    '/healthz',
    'x/healthz?',
    'x#',
    '%2f',
    'admin',
    "'",
    'a b',
    'a@b',
    'xn--',
    'healthz',
    '0',
    `${'a'.repeat(2_000)}`,
  ]
  for (const path of ['/v1/account', '/v1/models', '/admin/v1/accounts', '/console/api/accounts'])
    for (const host of hosts) {
      const answer = await exchange(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
      assert.match(answer, /^HTTP\/1\.1 4(00|01|03) /, `${path} ${host}: ${answer.slice(0, 200)}`)
    }
  for (const target of ['http://evil.example/v1/account', 'http://x/healthz/../v1/account', 'https://a@b/v1/models'])
    assert.match(await exchange(`GET ${target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`), /^HTTP\/1\.1 4\d\d /)
  const { key } = await g.account()
  const twice = `GET /v1/account HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer wrong\r\nauthorization: Bearer ${key}\r\n\r\n`
  assert.match(await exchange(twice), /^HTTP\/1\.1 401 /)
  const header =
    'GET /v1/account HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-original-url: /healthz\r\nx-rewrite-url: /healthz\r\nx-http-method-override: GET\r\n\r\n'
  assert.match(await exchange(header), /^HTTP\/1\.1 401 /)
})

test('no spelling of a path reaches what the plain one protects', async () => {
  const targets = ['v1/account', 'v1/models', 'admin/v1/accounts', 'admin/v1/system', 'v1/jobs', 'console/api/accounts']
  const spellings = (path: string): string[] => {
    const [head = '', ...rest] = path.split('/')
    const tail = rest.join('/')
    return [
      `//${path}`,
      `/./${path}`,
      `/x/../${path}`,
      `/${head}//${tail}`,
      `/${head}/./${tail}`,
      `/${head}%2f${tail}`,
      `/${head}%2F${tail}`,
      `/${head}%252f${tail}`,
      `/${head}%5c${tail}`,
      `/${head}\\${tail}`,
      `/${head};a=b/${tail}`,
      `/${path};a`,
      `/${path}.`,
      `/${path}..`,
      `/${path}%20`,
      `/${path}%00`,
      `/${path}%0a`,
      `/${path}%09`,
      `/${path}/`,
      `/${path}//`,
      `/${path}/.`,
      `/${path}/..`,
      `/${path}/%2e`,
      `/${path}%2f`,
      `/${path}?`,
      `/${path}#a`,
      `/${path}?key=x`,
      `/%2e/${path}`,
      `/%2e%2e/${path}`,
      `/healthz/../${path}`,
      `/healthz/..%2f${path}`,
      `/healthz/%2e%2e/${path}`,
      `/healthz%2f..%2f${path}`,
      `/docs/../${path}`,
      `/docs/..%2f${path}`,
      `/docs/guides/..%2f..%2f${path}`,
      `/console/../${path}`,
      `/console/..%2f${path}`,
      `/console/%2e%2e%2f${path}`,
      `/assets/..%2f${path}`,
      `/assets/../${path}`,
      `/openapi.json/../${path}`,
      `/openapi.json/..;/${path}`,
      `/${path.toUpperCase()}`,
      `/${encode(path)}`,
      `/${encode(encode(path))}`,
      `/${path.replace('a', '%61')}`,
      `/${path.replace('a', '%c1%a1')}`,
      `/${path.replace('a', '%u0061')}`,
      `/${path}%ff`,
      `/.${path}`,
      `/%23/${path}`,
      `/${path}%3f`,
      `/${path}\u00ad`,
      `/${path}.json`,
      `/${path}~`,
      `/v1/..;/${path}`,
      `/alpha/../${path}`,
      `/beta/..%5c${path}`,
      `/..././${path}`,
      `/....//${path}`,
      `/%00/${path}`,
      `/ /${path}`,
    ]
  }
  let tried = 0
  for (const target of targets)
    for (const path of spellings(target)) {
      tried += 1
      const answer = await exchange(
        Buffer.from(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`, 'latin1'),
      )
      const status = Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1])
      // A console that nobody has built yet says so.
      const isUnbuilt = status === 503 && path.startsWith('/console')
      assert.ok(status < 500 || isUnbuilt, `${path}: ${answer.slice(0, 200)}`)
      // Whatever lies under /console/ is the console's page, which holds nothing.
      if (status < 400)
        assert.ok(
          /text\/html|^HTTP\/1\.1 30/.test(answer) && !answer.includes('"success":true'),
          `${path}: ${answer.slice(0, 300)}`,
        )
    }
  assert.ok(tried > 350)
})

const encode = (text: string) =>
  [...text]
    .map((char) => (/[a-z]/.test(char) ? `%${char.charCodeAt(0).toString(16)}` : char.replace('%', '%25')))
    .join('')

test('a gigabyte without a key is not read, nor a body that is announced as too large', async () => {
  const served: Socket[] = []
  g.gateway.app.server.on('connection', (socket: Socket) => served.push(socket))
  for (const [key, status] of [
    ['wrong', 401],
    // Well made, so that the store is asked for it.
    [makeKey(realWorld), 401],
    [(await g.account()).key, 413],
  ] as const) {
    served.length = 0
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.setEncoding('latin1')
    socket.on('data', (piece) => {
      answer += piece
    })
    socket.on('error', () => {})
    let open = true
    const closed = new Promise<void>((resolve) => {
      socket.once('close', () => {
        open = false
        resolve()
      })
    })
    socket.write(`${HEAD}authorization: Bearer ${key}\r\ncontent-length: 1000000000\r\n\r\n`)
    const piece = Buffer.alloc(16_384, 0x20)
    for (let sent = 0; open && sent < 1_000_000_000; sent += piece.length)
      if (!socket.write(piece)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
    await closed
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), answer)
    // What had come with the headers, and one more piece.
    assert.ok(served[0]!.bytesRead <= 128 * 1024, `${served[0]!.bytesRead} bytes were read`)
  }
})

test('good calls are served while slow ones hold their connections open', async () => {
  const { key } = await g.account()
  for (const _ of count(50)) assert.equal((await g.call('/v1/models', key)).status, 200)
})

test('connections that never finish their headers are closed', async () => {
  for (const ms of await Promise.all(slow.map(({ closedMs }) => closedMs)))
    assert.ok(ms <= SLOW_MS_MAX, `after ${Math.round(ms)} ms`)
})

test('a caller that keeps its side open after a refusal is cut off', async () => {
  await until(() => staying.map(({ peer }) => peer.destroyed), Array(REFUSED.length).fill(true))
})
