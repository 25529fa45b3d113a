// The doors, as strangers and hasty clients use them. F58, F59, and connections that go on after a refusal.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Agent, request as httpRequest, type IncomingHttpHeaders, METHODS } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { makeKey } from '../src/admission/api-key.ts'
import { boundConnections } from '../src/api/server/connections.ts'
import { createServer, type WebServer } from '../src/api/server/server.ts'
import { json } from '../src/api/server/web.ts'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import { silentLog } from '../src/kernel/log.ts'
import { realWorld } from '../src/kernel/world.ts'
import { networkOf } from '../src/upstream/address.ts'
import { startProxy } from './chaos/proxy.ts'
import { freshDatabase } from './database.ts'
import { each } from './faults/raw-client.ts'
import { above, assert, closing, FULL, runs, startGateway, test, testGateway, textOf, until, words } from './gateway.ts'

const FLOODED = runs(20, 50)
/** All doors have one limit of a body's size. */
const DOORS_OF_TOO_LARGE = runs(3, Number.POSITIVE_INFINITY)

const g = testGateway()

test('an email address of 250 kB is refused at once, and nobody waits for it', async () => {
  const before = process.cpuUsage()
  for (const email of [`a@${'.'.repeat(250_000)}`, `a@${'a.'.repeat(125_000)}`, 'a'.repeat(250_000)]) {
    const body = JSON.stringify({ email, password: 'seven tired otters juggle' })
    const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
    assert.match(await textOf(fetch(`${g.url}/console/api/login`, { method: 'POST', headers, body }), 400), /254/)
  }
  // Of a processor, which a busy machine gives late.
  assert.ok(process.cpuUsage(before).user < 5_000_000)
})

/** Unlike `once`, it does not mind errors. */
const first = (socket: Socket, event: string) => new Promise((resolve) => socket.once(event, resolve))

/** One request with an agent that keeps its one connection. */
function send(
  agent: Agent,
  path: string,
  init: { method?: string; headers?: Record<string, string>; body?: Buffer | undefined },
) {
  return new Promise<{ status: number; headers: IncomingHttpHeaders; text: string }>((resolve, reject) => {
    const sent = httpRequest(g.url + path, { agent, method: init.method ?? 'POST', headers: init.headers ?? {} })
    sent.on('error', reject)
    sent.setTimeout(180_000, () => sent.destroy(new Error('no answer')))
    sent.on('response', (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (piece) => {
        text += piece
      })
      answer.on('end', () => resolve({ status: answer.statusCode!, headers: answer.headers, text }))
      answer.on('error', reject)
    })
    sent.end(init.body)
  })
}

test('after a picture that is too large the next request on the connection is answered', async () => {
  const { key } = await g.account()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const png = Buffer.alloc(21_500_000)
  Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]).copy(png)
  const body = Buffer.from(
    JSON.stringify({
      model: 'alpha-image-2',
      prompt: 'x',
      image_urls: [`data:image/png;base64,${png.toString('base64')}`],
    }),
  )
  for (let i = 0; i < 3; i++) {
    const refused = await send(agent, '/alpha/v1/images/generations', { headers, body })
    assert.equal(refused.status, 400, refused.text)
    assert.equal((await send(agent, '/v1/models', { method: 'GET', headers })).status, 200)
  }
  agent.destroy()
})

/** Of every kind of door, with what is allowed there. */
const PATHS: Record<string, string> = {
  '/v1/chat-completions': 'POST, OPTIONS',
  '/alpha/v1/images/generations': 'POST, OPTIONS',
  '/v1/models': 'GET, HEAD, OPTIONS',
  '/v1/models/alpha-5.4': 'GET, HEAD, OPTIONS',
  '/v1/jobs/1': 'GET, HEAD, DELETE, OPTIONS',
  '/assets/x': 'GET, HEAD, OPTIONS',
  '/admin/v1/accounts': 'GET, HEAD, POST',
  '/console/api/session': 'GET, HEAD',
  '/console/api/accounts/x/play/v1/models': 'GET, HEAD, POST, DELETE',
  '/console/models': 'GET, HEAD',
  '/healthz': 'GET, HEAD',
  '/metrics': 'GET, HEAD',
  '/docs': 'GET, HEAD',
  '/docs/guides/text?a=b': 'GET, HEAD',
  '/openapi.json': 'GET, HEAD',
  '/': 'GET, HEAD',
  '/v1': 'GET, HEAD',
}
const NO_PATHS = words('/nothing /v2 /v1/nothing /v1/jobs/1/2/3 /admin/v1/nothing /console/api/nothing /docs/x/y')

test('every method is taken, or refused with the methods that the path takes; none is an error of ours', async () => {
  // CONNECT never becomes a request: Node closes the connection.
  for (const method of METHODS.filter((name) => name !== 'CONNECT'))
    for (const body of [undefined, Buffer.from('{}')]) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      const headers = body ? { 'content-type': 'application/json', 'content-length': '2' } : {}
      for (const [path, allow] of Object.entries(PATHS)) {
        const answer = await send(agent, path, { method, headers, body })
        assert.ok(answer.status < 500 || path.startsWith('/console/models'), `${method} ${path}: ${answer.status}`)
        if (allow.split(', ').includes(method)) assert.notEqual(answer.status, 405, `${method} ${path}`)
        else assert.deepEqual([answer.status, answer.headers.allow], [405, allow], `${method} ${path}`)
      }
      for (const path of NO_PATHS)
        assert.equal((await send(agent, path, { method, headers, body })).status, 404, `${method} ${path}`)
      agent.destroy()
    }
})

/** A request whose body stops half-way until the answer has come; then the rest, and a second request behind it. */
async function refuseHalfway(head: string, lengthBytes: number, sentBytes: number, { url } = g): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let answer = ''
  let looked: () => void = () => {}
  socket.setEncoding('latin1')
  socket.on('data', (piece) => {
    answer += piece
    looked()
  })
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const has = (pattern: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${pattern} within 180 s: ${head}${answer}`)), 180_000)
      looked = () => {
        if (!pattern.test(answer)) return
        clearTimeout(timer)
        resolve()
      }
      looked()
      void closed.then(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  const body = Buffer.alloc(lengthBytes, 0x20)
  socket.write(`${head}content-length: ${lengthBytes}\r\n\r\n`)
  socket.write(body.subarray(0, sentBytes))
  await has(/\r\n\r\n/)
  assert.match(answer, /^HTTP\/1\.1 (4\d\d|503) /, head)
  if (/^connection: close/im.test(answer)) await closed
  else {
    socket.write(body.subarray(sentBytes))
    socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
    await has(/"ok":true/)
    assert.match(answer, /"ok":true/, head)
  }
  socket.destroy()
  return answer
}

/** A body's length, and what of it is sent before the answer. */
const SIZES = [
  [1_000, 10],
  [60_000, 30_000],
  [5_000_000, 100_000],
] as const
/** One of them for each address, or all of them. */
const inTurn = <T>(all: readonly T[], place: number): readonly T[] =>
  all.filter((_, at) => FULL || at === place % all.length)

test('whoever is refused before the body has come can send the next request, or is told that the connection ends', async () => {
  const { key } = await g.account()
  const poor = await g.account({ credits: 0n })
  const posts = ALL_ENDPOINTS.filter(({ method }) => method === 'POST').flatMap(({ path, aliases }) => [
    path,
    ...aliases,
  ])
  const heads: Array<[status: number, head: string]> = []
  const add = (status: number, path: string, ...headers: string[]) =>
    heads.push([status, [`${path} HTTP/1.1`, 'host: x', ...headers, ''].join('\r\n')])
  for (const path of posts.map((path) => path.replace('{id}', '1'))) {
    add(401, `POST ${path}`)
    add(401, `POST ${path}`, `authorization: Bearer ${makeKey(realWorld)}`)
    add(405, `PUT ${path}`, `authorization: Bearer ${key}`)
    add(404, `POST ${path}x/y`, `authorization: Bearer ${key}`)
  }
  add(400, 'POST /alpha/v1/images/generations', `authorization: Bearer ${key}`, 'content-type: text/plain')
  add(400, 'POST /alpha/v1/images/generations', `authorization: Bearer ${key}`, `idempotency-key: ${'x'.repeat(300)}`)
  add(404, 'POST /alpha/v1/images/edits', `authorization: Bearer ${key}`)
  add(401, 'POST /admin/v1/accounts')
  add(403, 'POST /console/api/login')
  add(401, 'POST /console/api/logout', 'sec-fetch-site: same-origin')
  add(401, 'POST /console/api/accounts/x/play/v1/chat-completions', 'sec-fetch-site: same-origin')
  add(405, 'POST /healthz')
  add(404, 'POST /nothing')
  await each(heads.entries(), 8, async ([place, [status, head]]) => {
    for (const [lengthBytes, sentBytes] of inTurn(SIZES, place))
      assert.match(await refuseHalfway(head, lengthBytes, sentBytes), new RegExp(`^HTTP/1\\.1 ${status} `), head)
  })
  // Bodies that are read and then refused, by an agent that keeps its one connection.
  const large = 'x'.repeat(3_000_000)
  const bodies = [
    [key, `{"model": "alpha-5.4", "input": "${large}`],
    [key, JSON.stringify({ model: 'no-such-model', prompt: large, input: large, messages: large })],
    [poor.key, JSON.stringify({ model: 'alpha-5.4', max_tokens: 10, messages: [{ role: 'user', content: large }] })],
  ].map(([owner, body]) => ({ owner, body: Buffer.from(body ?? '') }))
  const tooLarge = { owner: key, body: Buffer.alloc(65 * 1024 * 1024, ' ') }
  // An alias is the same door.
  const doors = ALL_ENDPOINTS.filter(({ method, path }) => method === 'POST' && !path.includes('{id}'))
  for (const [index, { path }] of doors.entries()) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (const { owner, body } of [...inTurn(bodies, index), ...(index < DOORS_OF_TOO_LARGE ? [tooLarge] : [])]) {
      const headers = { authorization: `Bearer ${owner}`, 'content-type': 'application/json' }
      const refused = await send(agent, path, { headers, body })
      assert.ok(refused.status < 500, `${path}: ${refused.text}`)
      assert.equal((await send(agent, '/healthz', { method: 'GET' })).status, 200)
    }
    agent.destroy()
  }
})

test('a body for which there is no room is refused before it is whole, and the connection ends', async () => {
  const small = await startGateway({ env: { TOLLGATE_BYTES_IN_FLIGHT_MAX: '1000000' } })
  const taken: Socket[] = []
  small.gateway.app.server.on('connection', (socket) => taken.push(socket))
  const headOf = (key: string) => `POST /v1/chat-completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n`
  const [one, other] = [await small.account(), await small.account()]
  const first = connect(Number(new URL(small.url).port), '127.0.0.1')
  first.on('error', () => {})
  first.write(`${headOf(one.key)}content-length: 990000\r\n\r\n${' '.repeat(980_000)}`)
  await until(() => taken[0]?.bytesRead ?? 0, above(980_000))
  try {
    // It waits for room for ten seconds first.
    const answer = await refuseHalfway(headOf(other.key), 900_000, 100_000, small)
    assert.match(answer, /^HTTP\/1\.1 503 /)
    assert.match(answer, /connection: close/i)
  } finally {
    first.destroy()
    await small.close()
  }
})

/** Another process, so that its buffers are not counted with the gateway's. */
const FLOOD = `
const net = require('node:net')
const [port, connections, bytes, heads] = JSON.parse(process.argv[1])
const piece = Buffer.alloc(1 << 20, 0x20)
let left = connections
for (let i = 0; i < connections; i++) {
  const socket = net.connect(port, '127.0.0.1')
  let sent = 0
  const more = () => { while (sent < bytes && !socket.destroyed) { sent += piece.length; if (!socket.write(piece)) return } }
  socket.on('drain', more).on('error', () => {}).resume()
  socket.on('close', () => { if (--left === 0) process.exit() })
  socket.setTimeout(20_000, () => socket.destroy())
  socket.write(heads[i % heads.length] + 'host: x\\r\\ncontent-type: application/json\\r\\n' + (i % 2 ? 'content-length: ' + bytes + '\\r\\n\\r\\n' : 'transfer-encoding: chunked\\r\\n\\r\\n' + bytes.toString(16) + '\\r\\n'))
  more()
}
`

test('64 MB on each of many connections, to paths and methods that take no body, are not kept', async () => {
  const heads = [
    'POST /nothing',
    'PUT /v1/chat-completions',
    'OPTIONS /v1/chat-completions',
    'QUERY /v1/models',
    'GET /healthz',
    'GET /docs',
    'PROPFIND /',
    'POST /admin/v1/accounts',
    'POST /console/api/nothing',
    'DELETE /v1/jobs/1',
  ].map((head) => `${head} HTTP/1.1\r\n`)
  const served: Socket[] = []
  const note = (socket: Socket) => void served.push(socket)
  g.gateway.app.server.on('connection', note)
  const before = process.memoryUsage.rss()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
  }, 5)
  const flood = spawn(
    process.execPath,
    ['-e', FLOOD, JSON.stringify([Number(new URL(g.url).port), FLOODED, 64 * 1024 * 1024, heads])],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  assert.equal((await once(flood, 'exit'))[0], 0)
  clearInterval(timer)
  g.gateway.app.server.off('connection', note)
  assert.equal(served.length, FLOODED)
  assert.ok(
    Math.max(...served.map(({ bytesRead }) => bytesRead)) <= 256 * 1024,
    'much was read of a body that nobody wants',
  )
  assert.ok(most - before < 20 * 1024 * 1024, `${Math.round((most - before) / 1024 / 1024)} MB more`)
})

test('another site cannot spend credits through a visitor’s session: the playground takes calls of its own pages only', async () => {
  const own = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' }
  const signedIn = await fetch(`${g.url}/console/api/setup`, {
    method: 'POST',
    headers: own,
    body: JSON.stringify({
      token: await g.gateway.people.openSetup(),
      email: 'op@example.com',
      password: 'seven tired otters juggle',
    }),
  })
  assert.equal(signedIn.status, 200, await signedIn.text())
  const cookie = signedIn.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
  const { id } = await g.account()
  const play = (method: string, path: string, headers: Record<string, string>, body?: string) =>
    fetch(`${g.url}/console/api/accounts/${id}/play${path}`, {
      method,
      headers: { cookie, ...headers },
      ...(body ? { body } : {}),
    })
  const data = '/v1/social/users?username=walker137'
  const before = await g.balance(id)
  for (const method of ['GET', 'HEAD', 'POST', 'DELETE'])
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site', origin: g.url },
      {},
    ] as Record<string, string>[])
      assert.equal((await play(method, data, headers)).status, 403, `${method} ${JSON.stringify(headers)}`)
  assert.deepEqual(await g.balance(id), before)
  const chat = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'hi' }] }
  for (const [method, path, body] of [
    ['GET', data],
    ['GET', '/v1/models'],
    ['GET', '/v1/nothing'],
    ['POST', '/v1/chat-completions', JSON.stringify(chat)],
    ['POST', '/v1/chat-completions', JSON.stringify({ ...chat, stream: true })],
    ['POST', '/v1/chat-completions', '{'],
  ] as const) {
    const answer = await play(method, path, own, body)
    await answer.text()
    assert.match(answer.headers.get('cache-control') ?? '', /\bno-store\b/, `${method} ${path} ${answer.status}`)
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff', `${method} ${path} ${answer.status}`)
  }
  assert.ok((await g.balance(id)).posted < before.posted)
})

test('whoever sends a body slowly, and is not known, is cut off after 15 s at every door', async () => {
  const list = await readFile(join(import.meta.dirname, 'routes.txt'), 'utf8')
  const doors = list
    .trim()
    .split('\n')
    .map((line) =>
      line
        .split(/ +/)
        .slice(1)
        .join(' ')
        .replaceAll(/:\w+|\*/g, 'x'),
    )
  const startedMs = performance.now()
  await Promise.all(
    [...doors, 'OPTIONS /v1/models', 'POST /nothing', 'QUERY /'].map(async (door) => {
      const socket = connect(Number(new URL(g.url).port), '127.0.0.1')
      let answer = ''
      socket.on('data', (piece) => {
        answer += piece
      })
      socket.on('error', () => {})
      const closed = first(socket, 'close')
      socket.write(
        `${door} HTTP/1.1\r\nhost: x\r\nsec-fetch-site: same-origin\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n`,
      )
      const timer = setInterval(() => socket.write(' '), 500)
      await closed
      clearInterval(timer)
      const ms = performance.now() - startedMs
      // On a machine so busy that the head is read late, its own limit of 10 s comes first.
      assert.ok(ms > 9_000, `${door}: ${ms} ms: ${answer}`)
      assert.equal(answer.split('HTTP/1.1').length, 2, `${door}: ${answer}`)
      // Until it is built, the console answers 503.
      assert.match(answer, /^HTTP\/1\.1 (?:[234]|503)/, door)
    }),
  )
})

test('however many ask for the figures or for readiness, the database is asked once a second; figures may take a token', async () => {
  await using fresh = await freshDatabase()
  await using proxy = closing(await startProxy({ path: `${fresh.connection.host}/.s.PGSQL.${fresh.connection.port}` }))
  const token = 'a-token-for-scrapes'
  // Its clock moves only when it is told to.
  let ms = 0
  await using counted = await startGateway({
    env: { TOLLGATE_METRICS_TOKEN: token },
    database: fresh,
    world: { ...realWorld, elapsedMs: () => ms },
    through: (connection) => ({ ...connection, host: '127.0.0.1', port: proxy.port }),
  })
  const scrape = (authorization?: string) =>
    fetch(`${counted.url}/metrics`, { headers: authorization ? { authorization } : {} })
  const asked = { 'holds\0': 0, 'select 1\0': 0 }
  proxy.cutAfter = (piece) => {
    for (const what of ['holds\0', 'select 1\0'] as const) if (piece.includes(what)) asked[what] += 1
    return false
  }
  for (const authorization of [undefined, 'Bearer wrong', `Basic ${token}`, `Bearer ${token}x`])
    assert.equal((await scrape(authorization)).status, 401)
  assert.equal(asked['holds\0'], 0)
  for (const second of [1, 2, 3]) {
    ms += 1_000
    await each(Array.from({ length: 130 }), 40, async () => {
      const figures = await scrape(`Bearer ${token}`)
      assert.equal(figures.status, 200)
      assert.match(await figures.text(), /tollgate_holds_pending 0/)
      assert.equal((await fetch(`${counted.url}/readyz`)).status, 200)
    })
    // A connection that has not asked before sends its question in two pieces.
    for (const [what, times] of Object.entries(asked))
      assert.ok(times >= second && times <= 2 * second, `${what}: ${times} times in ${second} s`)
  }
})

/** How many of so many connections are left open when the server has answered a request on one of the others. */
async function openConnections(app: WebServer, wanted: number): Promise<Socket[]> {
  const { port } = app.server.address() as AddressInfo
  const sockets = Array.from({ length: wanted }, () =>
    connect(port, '127.0.0.1')
      .on('error', () => {})
      .resume(),
  )
  // Those that stay get an answer, the others are closed without one.
  await Promise.all(
    sockets.map(async (socket) => {
      socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
      await Promise.race([first(socket, 'data'), first(socket, 'close')])
    }),
  )
  return sockets.filter(({ destroyed }) => !destroyed)
}

test('one address holds only so many connections, a trusted proxy as many as it needs', async () => {
  const warned: object[] = []
  const log = { ...silentLog, warn: (fields: object) => void warned.push(fields) }
  for (const [exempt, expected] of [
    [[], 20],
    [['loopback'], 100],
    [['10.0.0.0/8', '127.0.0.1'], 100],
    [['10.0.0.0/8', '::1'], 20],
  ] as const) {
    const app = createServer({ world: realWorld, log, strictErrors: false })
    app.get('/healthz', () => json({ ok: true }))
    boundConnections(app.server, { perAddressMax: 20, exempt }, { log, world: realWorld })
    await app.listen({ port: 0, host: '127.0.0.1' })
    let held: Socket[] = []
    try {
      held = await openConnections(app, 100)
      assert.equal(held.length, expected, JSON.stringify(exempt))
      // What is given back can be taken again.
      held[0]!.destroy()
      let again: Socket | undefined
      await until(async () => {
        again = (await openConnections(app, 1))[0]
        return again !== undefined
      })
      again!.destroy()
      assert.equal(warned.splice(0).length, expected === 20 ? 1 : 0, 'said once a minute')
    } finally {
      for (const socket of held) socket.destroy()
      await app.close()
    }
  }
  assert.notEqual(networkOf('2001:db8::1'), networkOf('2001:db8:0:1::1'))
  assert.equal(networkOf('2001:db8::1'), networkOf('2001:db8::ffff:1'))
})
