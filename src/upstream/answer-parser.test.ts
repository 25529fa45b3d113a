// What a vendor may answer, cut anywhere, and what is no answer: read as Node's own parser reads it, or more strictly.

import net from 'node:net'
import fc from 'fast-check'
import { assert, runs, test } from '../../test/kit.ts'
import { AnswerParser } from './answer-parser.ts'

interface Read {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body: string
  readonly ended: boolean
  readonly keepsAlive: boolean
  readonly error?: string
}

/** Reads the parts as reads of a socket that all come in the same memory, and then its end. */
function readAll(parts: readonly string[], { method = 'GET', closed = false } = {}): Read {
  const parser = new AnswerParser()
  parser.begin(method)
  const room = Buffer.alloc(65_536)
  const seen: { status?: number; headers?: Record<string, string> } = {}
  const pieces: Buffer[] = []
  let ends = 0
  const receiver = {
    onHead(status: number, headers: Readonly<Record<string, string>>) {
      assert.equal(seen.status, undefined, 'one head')
      Object.assign(seen, { status, headers: { ...headers } })
    },
    onPiece: (piece: Buffer) => void pieces.push(piece),
    onEnd: () => void ends++,
  }
  let error: string | undefined
  try {
    for (const part of parts) {
      if (parser.isIdle) {
        error = 'HPE_INVALID'
        break
      }
      const count = room.write(part, 'latin1')
      parser.take(room.subarray(0, count), receiver)
      room.fill('#')
    }
    if (closed) parser.close(receiver)
  } catch (caught) {
    assert.ok(caught instanceof Error && 'code' in caught, String(caught))
    error = String(caught.code)
  }
  assert.ok(ends <= 1)
  const body = Buffer.concat(pieces).toString('latin1')
  return { ...seen, body, ended: ends === 1, keepsAlive: parser.keepsAlive, ...(error === undefined ? {} : { error }) }
}

const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const LONG = 'x'.repeat(20_000)
const OK = { ended: true, keepsAlive: true } as const

const answers: readonly (readonly [what: string, bytes: string, wanted: Partial<Read>, method?: string])[] = [
  [
    'a length',
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a:\t2 \r\n\r\nhello',
    { ...OK, body: 'hello', headers: { 'content-length': '5', 'x-a': '1, 2' } },
  ],
  ['no reason', 'HTTP/1.1 404\r\ncontent-length: 0\r\n\r\n', { ...OK, status: 404, body: '' }],
  ['no headers', 'HTTP/1.1 204 No Content\r\n\r\n', { ...OK, status: 204 }],
  [
    'chunks',
    `${CHUNKED}3\r\nabc\r\n1A;name="v"\r\n${'d'.repeat(26)}\r\n0\r\n\r\n`,
    { ...OK, body: `abc${'d'.repeat(26)}` },
  ],
  ['chunks with trailers', `${CHUNKED}1\r\na\r\n000\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n`, { ...OK, body: 'a' }],
  [
    'interim answers',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na',
    { ...OK, status: 200, body: 'a' },
  ],
  [
    'HEAD',
    'HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n',
    { ...OK, body: '', headers: { 'content-length': '50' } },
    'HEAD',
  ],
  ['nothing changed', 'HTTP/1.1 304 Not Modified\r\netag: "a"\r\n\r\n', { ...OK, body: '' }],
  [
    'a body announced where none may be',
    'HTTP/1.1 204 OK\r\ncontent-length: 3\r\n\r\n',
    { ended: true, keepsAlive: false },
  ],
  [
    'close',
    'HTTP/1.1 200 OK\r\nConnection: x, Close\r\ncontent-length: 1\r\n\r\na',
    { ended: true, keepsAlive: false, body: 'a' },
  ],
  ['HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na', { ended: true, keepsAlive: false, body: 'a' }],
  [
    'HTTP/1.0 that stays',
    'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na',
    { ...OK, body: 'a' },
  ],
  ['a header of any name', 'HTTP/1.1 200 OK\r\n__proto__: a\r\nconstructor: b\r\ncontent-length: 0\r\n\r\n', OK],
  [
    'bytes behind the answer',
    'HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nab',
    { ended: true, keepsAlive: false, body: 'a', error: 'HPE_INVALID' },
  ],
  [
    'a second answer',
    'HTTP/1.1 204 OK\r\n\r\nHTTP/1.1 200 OK\r\n',
    { ended: true, keepsAlive: false, error: 'HPE_INVALID' },
  ],
]

for (const [what, bytes, wanted, method] of answers)
  test(`an answer with ${what} is read, wherever its bytes are cut`, () => {
    const whole = readAll([bytes], { method })
    assert.deepEqual({ ...whole, ...wanted }, whole)
    const { keepsAlive: _, error: __, ...read } = whole
    for (let at = 1; at < bytes.length; at++) {
      const { keepsAlive, error, ...cut } = readAll([bytes.slice(0, at), bytes.slice(at)], { method })
      assert.deepEqual(cut, read)
      assert.equal(keepsAlive && error === undefined, whole.keepsAlive)
    }
    const crumbs = readAll([...bytes], { method })
    assert.deepEqual([crumbs.body, crumbs.ended, crumbs.headers], [whole.body, whole.ended, whole.headers])
  })

test('an answer without a length ends with its connection, and no other does', () => {
  const bytes = 'HTTP/1.1 200 OK\r\n\r\nabc'
  assert.equal(readAll([bytes]).ended, false)
  assert.deepEqual(readAll([bytes], { closed: true }), {
    status: 200,
    headers: {},
    body: 'abc',
    ended: true,
    keepsAlive: false,
  })
  for (const cut of [
    'HTTP/1.1 200',
    'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc',
    `${CHUNKED}3\r\nabc\r\n0\r\n`,
    `${CHUNKED}3\r\nabc\r\n`,
  ])
    assert.equal(readAll([cut], { closed: true }).ended, false, cut)
})

const garbled: readonly string[] = [
  'HTTP/2 200 OK\r\n\r\n',
  'HTTP/1.2 200 OK\r\n\r\n',
  'http/1.1 200 OK\r\n\r\n',
  'HTTP/1.1 2000 OK\r\n\r\n',
  'HTTP/1.1 20 OK\r\n\r\n',
  'HTTP/1.1 099 OK\r\n\r\n',
  'HTTP/1.1  200 OK\r\n\r\n',
  '\r\nHTTP/1.1 200 OK\r\n\r\n',
  'SSH-2.0-OpenSSH\r\n\r\n',
  '\x15\x03\x01\x00\x02\x02\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
  'HTTP/1.1 200 OK\r\na\r\n\r\n',
  'HTTP/1.1 200 OK\r\n: a\r\n\r\n',
  'HTTP/1.1 200 OK\r\na b: c\r\n\r\n',
  'HTTP/1.1 200 OK\r\na : c\r\n\r\n',
  'HTTP/1.1 200 OK\r\na: b\r\n c: d\r\n\r\n',
  'HTTP/1.1 200 OK\r\na: b\nc: d\r\n\r\n',
  'HTTP/1.1 200 OK\r\na: b\rc: d\r\n\r\n',
  'HTTP/1.1 200 OK\r\na: \0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nä: b\r\n\r\n',
  'HTTP/1.1 200 O\x7fK\r\n\r\n',
  'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\na',
  'HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\na',
  'HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\na',
  'HTTP/1.1 200 OK\r\ncontent-length: 0x1\r\n\r\na',
  'HTTP/1.1 200 OK\r\ncontent-length: 1e1\r\n\r\na',
  'HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\na',
  'HTTP/1.1 200 OK\r\ncontent-length: 9999999999999999\r\n\r\na',
  'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\n',
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n',
  'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  `${CHUNKED}\r\n`,
  `${CHUNKED}1 \r\na\r\n`,
  `${CHUNKED}g\r\n`,
  `${CHUNKED}-1\r\n`,
  `${CHUNKED}0x1\r\n`,
  `${CHUNKED}1\na\r\n`,
  `${CHUNKED}1\r\nab\r\n`,
  `${CHUNKED}1\r\na\n`,
  `${CHUNKED}1\r\na\r\r`,
  `${CHUNKED}1;\0\r\n`,
  `${CHUNKED}1;a\nb\r\n`,
  `${CHUNKED}1000000000000\r\n`,
  `${CHUNKED}1;${LONG}\r\n`,
  `${CHUNKED}0\r\na\nb\r\n`,
  `${CHUNKED}0\r\na: ${LONG}\r\n\r\n`,
  `${CHUNKED}0\r\n\r\r`,
  `HTTP/1.1 200 OK\r\na: ${LONG}\r\n\r\n`,
  `HTTP/1.1 200 OK\r\n${LONG}`,
]

test('what is no answer is an error, wherever it is cut, and ends nothing', () => {
  for (const bytes of garbled)
    for (const parts of [
      [bytes],
      [bytes.slice(0, 20), bytes.slice(20)],
      bytes.length > 1_000 ? bytes.match(/.{1,700}/gs)! : [...bytes],
    ]) {
      const { error, ended, keepsAlive } = readAll(parts)
      assert.match(error ?? 'none', /^HPE_/, bytes.slice(0, 80))
      assert.deepEqual([ended, keepsAlive && error === undefined], [false, false], bytes.slice(0, 80))
    }
})

/** What Node's own client makes of the same bytes. */
function readByNode(bytes: string): Promise<{ status: number; body: string } | 'refused'> {
  return new Promise((resolve) => {
    const server = net.createServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.end(bytes, 'latin1'))
    })
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as net.AddressInfo // It listens on a port.
      fetchWithNode(port)
        .then(resolve, () => resolve('refused'))
        .finally(() => server.close())
    })
  })
}

async function fetchWithNode(port: number): Promise<{ status: number; body: string }> {
  const { request } = await import('node:http')
  return new Promise((resolve, reject) => {
    const asking = request({ port, host: '127.0.0.1', agent: false }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece) => pieces.push(piece)).on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString('latin1') }),
      )
    })
    asking.on('error', reject).end()
  })
}

const token = fc
  .stringMatching(/^[a-z][a-z-]{0,9}$/)
  .filter((name) => !/^(connection|content|transfer|upgrade|keep)/.test(name))
const text = fc.stringMatching(/^[ -~]{0,40}$/)
const chunk = fc.tuple(fc.stringMatching(/^[\x00-\xff]{1,60}$/), fc.constantFrom('', ';a=b', ';q'))
const framed = fc.oneof(
  text.map((body) => [`content-length: ${body.length}\r\n\r\n${body}`] as const),
  fc
    .array(chunk, { maxLength: 6 })
    .map(
      (chunks) =>
        [
          `transfer-encoding: chunked\r\n\r\n${chunks.map(([data, extension]) => `${data.length.toString(16)}${extension}\r\n${data}\r\n`).join('')}0\r\n\r\n`,
        ] as const,
    ),
)
const answer = fc
  .tuple(
    fc.integer({ min: 200, max: 599 }).filter((status) => status !== 204 && status !== 304),
    fc.array(fc.tuple(token, text), { maxLength: 5 }),
    framed,
  )
  .map(
    ([status, headers, [rest]]) =>
      `HTTP/1.1 ${status} Said\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join('')}${rest}`,
  )

test('any answer is read as Node reads it, whole and cut at random; with one byte changed, never more leniently', async () => {
  await fc.assert(
    fc.asyncProperty(
      answer,
      fc.array(fc.nat(600), { maxLength: 8 }),
      fc.nat(),
      fc.integer({ min: 0, max: 255 }),
      async (bytes, cuts, place, code) => {
        const at = cuts.map((cut) => cut % bytes.length).sort((a, b) => a - b)
        const parts = [...at, bytes.length].map((end, i) => bytes.slice(at[i - 1] ?? 0, end)).filter(Boolean)
        const { status, body, ended } = readAll(parts)
        assert.deepEqual({ status, body, ended }, { ...((await readByNode(bytes)) as object), ended: true })
        const spot = place % bytes.length
        const changed = bytes.slice(0, spot) + String.fromCharCode(code) + bytes.slice(spot + 1)
        const ours = readAll([changed], { closed: true })
        // What an extension says is passed over.
        if (changed.includes(';') || !ours.ended || ours.error !== undefined || (ours.status ?? 0) < 200) return
        assert.deepEqual({ status: ours.status, body: ours.body }, await readByNode(changed))
      },
    ),
    { numRuns: runs(150, 3_000) },
  )
})
