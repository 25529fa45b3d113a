// An endpoint is found however its path is spelt, and a caller cannot tell by its answer how it was.
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { assert, jsonOf, OFFERED, test, testGateway } from './gateway.ts'

const g = testGateway({ plain: true })

const agent = new Agent({ keepAlive: true, maxSockets: 1 })
const HELLO = { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello!' }], max_tokens: 20 }

interface Seen {
  readonly status: number | undefined
  /** As they were written, in their order, without what differs from call to call. */
  readonly headers: string[]
  readonly body: string
}

function post(path: string, headers: Record<string, string>, body: string): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(g.url + path, { agent, method: 'POST', headers })
    sent.on('error', reject)
    sent.on('response', (answer: IncomingMessage) => {
      let text = ''
      answer.setEncoding('latin1').on('data', (piece: string) => {
        text += piece
      })
      answer.on('end', () =>
        resolve({ status: answer.statusCode, headers: namesAndValues(answer.rawHeaders), body: plain(text) }),
      )
    })
    sent.end(body)
  })
}

const ONCE = new Set(['date', 'x-request-id', 'request-id', 'content-length'])

function namesAndValues(raw: readonly string[]): string[] {
  const lines: string[] = []
  for (let at = 0; at < raw.length; at += 2)
    lines.push(ONCE.has(raw[at]!.toLowerCase()) ? raw[at]! : `${raw[at]}: ${raw[at + 1]}`)
  return lines
}

/** Ids and times are of one call. */
function plain(text: string): string {
  return text
    .replaceAll(/(req|chatcmpl|resp|msg|rs|fc|call)_?-?[0-9a-z]{12,}/gi, '<id>')
    .replaceAll(/"(created|created_at|completed_at)": ?\d+/g, '"$1":0')
}

const json = { 'content-type': 'application/json' }
const CASES: ReadonlyArray<readonly [what: string, headers: Record<string, string>, body: string]> = [
  ['an answer', json, JSON.stringify(HELLO)],
  ['a stream', json, JSON.stringify({ ...HELLO, stream: true })],
  ['no JSON', json, '{"model": "alpha-5.4", '],
  ['JSON that is no object', json, '[]'],
  ['a repeated member', json, '{"model": "a", "model": "b"}'],
  ['bytes that are no UTF-8', json, '{"model": "\xff"}'],
  ['no model', json, JSON.stringify({ ...HELLO, model: undefined })],
  ['an unknown model', json, JSON.stringify({ ...HELLO, model: 'nobody' })],
  ['a model of another kind', json, JSON.stringify({ ...HELLO, model: 'alpha-image-2' })],
  ['no messages', json, JSON.stringify({ ...HELLO, messages: [] })],
  ['a bad field', json, JSON.stringify({ ...HELLO, temperature: 'hot' })],
  ['a bad idempotency key', { ...json, 'idempotency-key': 'x'.repeat(300) }, JSON.stringify(HELLO)],
  ['the mark of an SDK', { ...json, 'x-stainless-lang': 'js' }, JSON.stringify({ ...HELLO, model: 'nobody' })],
  ['a media type with a character set', { 'content-type': 'application/json; charset=utf-8' }, JSON.stringify(HELLO)],
]

async function alike(what: string, path: string, headers: Record<string, string>, body: string): Promise<Seen> {
  const plain = await post(path, headers, body)
  const [, first = '', ...rest] = path.split('/')
  const escaped = `%${first.charCodeAt(0).toString(16)}${first.slice(1)}`
  for (const other of [`${path}?with=query`, `//${first}/${rest.join('//')}/`, `/${[escaped, ...rest].join('/')}`])
    assert.deepEqual(await post(other, headers, body), plain, `${what} at ${other}`)
  return plain
}

test('what is refused, and what is answered, is the same however the path is spelt', async () => {
  const { key } = await g.account()
  const restricted = await g.account({ models: ['beta-opus-5'] })
  const poor = await g.account({ credits: 0n })
  const paths = OFFERED.filter(({ sells, method, largeBody }) => sells && method === 'POST' && !largeBody)
  for (const { path, aliases } of paths)
    for (const at of [path, ...aliases]) {
      if (at.includes('{')) continue
      for (const [what, headers, body] of at === '/v1/chat-completions' ? CASES : CASES.slice(2, 8))
        await alike(`${at}, ${what}`, at, { authorization: `Bearer ${key}`, ...headers }, body)
    }
  const bear = (one: string) => ({ authorization: `Bearer ${one}`, ...json })
  const chat = '/v1/chat-completions'
  const { status: forbidden } = await alike('restricted', chat, bear(restricted.key), JSON.stringify(HELLO))
  const { status: short } = await alike('poor', chat, bear(poor.key), JSON.stringify(HELLO))
  assert.deepEqual([forbidden, short], [403, 402])
  await alike('x-api-key', chat, { 'x-api-key': key, ...json }, JSON.stringify(HELLO))
})

test('who is let in, and which bodies are taken, is the same for keys that are known and those that are not', async () => {
  const { key } = await g.account()
  const chat = '/v1/chat-completions'
  const hello = JSON.stringify(HELLO)
  const long = JSON.stringify({ ...HELLO, user: 'x'.repeat(70_000) })
  for (const round of ['unknown', 'known']) {
    const known = { authorization: `Bearer ${key}` }
    const statuses: Record<string, number | undefined> = {}
    for (const [what, headers, body] of [
      ['a stranger', { ...json, authorization: 'Bearer tg_live_x' }, hello],
      ['no key', json, hello],
      ['another type', { ...known, 'content-type': 'text/plain' }, hello],
      ['no body', { ...known, ...json }, ''],
      ['in pieces', { ...known, ...json, 'transfer-encoding': 'chunked' }, hello],
      ['a long body', { ...known, ...json }, long],
    ] as const)
      statuses[what] = (await post(chat, headers, body)).status
    assert.deepEqual(
      statuses,
      { 'a stranger': 401, 'no key': 401, 'another type': 400, 'no body': 400, 'in pieces': 200, 'a long body': 200 },
      round,
    )
  }
})

test('a body that comes byte by byte is read whole, and one that breaks off leaves nothing behind', async () => {
  const { id, key } = await g.account()
  const body = JSON.stringify(HELLO)
  const head = `POST /v1/chat-completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  const { hostname, port } = new URL(g.url)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  socket.write(head)
  for (const char of body) await new Promise<void>((resolve) => socket.write(char, () => setImmediate(resolve)))
  const [answer] = await Promise.all([
    new Promise<string>((resolve) => socket.once('data', (bytes) => resolve(String(bytes)))),
  ])
  assert.match(answer, /^HTTP\/1\.1 200 /)
  socket.destroy()
  const spent = await g.balance(id)
  const seen = new Promise((resolve) => g.gateway.app.server.once('request', resolve))
  const broken = connect({ host: hostname, port: Number(port), noDelay: true })
  broken.write(head + body.slice(0, -1))
  await seen
  broken.destroy()
  await g.call('/v1/models', key)
  await g.settled()
  assert.deepEqual(await g.balance(id), spent)
})

test('addresses of vendors that are not offered say what to use, in the shape of their SDK', async () => {
  const { key } = await g.account()
  const cases: [method: string, path: string, words: RegExp][] = [
    ['POST', '/v1/vector_stores', /POST \/v1\/embeddings/],
    ['GET', '/v1/assistants?limit=1', /POST \/v1\/responses/],
    ['POST', '/alpha/v1/threads/t_1/runs', /POST \/v1\/responses/],
    ['POST', '/v1/fine_tuning/jobs', /Fine-tuning is not offered/],
    ['POST', '/v1/uploads', /POST \/v1\/files/],
    ['POST', '/v1/realtime/sessions', /client_secrets/],
    ['POST', '/v1beta/cachedContents', /Send the content itself/],
  ]
  for (const [method, path, words] of cases) {
    const body = await jsonOf<any>(fetch(g.url + path, { method, headers: { authorization: `Bearer ${key}` } }), 404)
    assert.match(body.error.message, words, path)
  }
  const plain = (await (await fetch(`${g.url}/v1/nothing_of_the_sort`)).json()) as any
  assert.doesNotMatch(plain.error.message, /not offered/)
})
