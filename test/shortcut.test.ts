// Two ways lead to a paid endpoint: past the framework, and through it. A caller must not be able to tell which it took.
import assert from 'node:assert/strict'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { ENDPOINTS } from '../src/catalog/index.ts'
import { testGateway } from './gateway.ts'

let taken = 0
const g = testGateway({}, async () => {
  const { app } = g.gateway
  const way = app.shortcut!
  app.shortcut = (request, response) => {
    const took = way(request, response)
    if (took) taken += 1
    return took
  }
})

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
  const before = taken
  const past = await post(path, headers, body)
  assert.equal(taken, before + 1, `${what}: this is a call for the short way`)
  const through = await post(`${path}?way=framework`, headers, body)
  assert.equal(taken, before + 1, `${what}: a query is the framework's`)
  assert.deepEqual(past, through, what)
  return past
}

test('what is refused, and what is answered, is the same whichever way it came', async () => {
  const { key } = await g.account()
  const restricted = await g.account({ models: ['beta-opus-5'] })
  const poor = await g.account({ credits: 0n })
  const paths = ENDPOINTS.filter(({ sells, method, largeBody }) => sells && method === 'POST' && !largeBody)
  for (const one of [key, restricted.key, poor.key]) await g.call('/v1/models', one)
  for (const { path, aliases } of paths)
    for (const at of [path, ...aliases]) {
      if (at.includes('{')) continue
      for (const [what, headers, body] of at === '/v1/chat-completions' ? CASES : CASES.slice(2, 8))
        await alike(`${at}, ${what}`, at, { authorization: `Bearer ${key}`, ...headers }, body)
    }
  const bear = (one: string) => ({ authorization: `Bearer ${one}`, ...json })
  const { status: forbidden } = await alike(
    'restricted',
    '/v1/chat-completions',
    bear(restricted.key),
    JSON.stringify(HELLO),
  )
  const { status: short } = await alike('poor', '/v1/chat-completions', bear(poor.key), JSON.stringify(HELLO))
  assert.deepEqual([forbidden, short], [403, 402])
  await alike('x-api-key', '/v1/chat-completions', { 'x-api-key': key, ...json }, JSON.stringify(HELLO))
})

test('what needs judgement at the door is left to the framework', async () => {
  const { key } = await g.account()
  const known = { authorization: `Bearer ${key}` }
  await g.call('/v1/models', key)
  const before = taken
  const statuses: Record<string, number | undefined> = {}
  for (const [what, path, headers, body] of [
    ['a stranger', '/v1/chat-completions', { ...json, authorization: 'Bearer tg_live_x' }, JSON.stringify(HELLO)],
    ['no key', '/v1/chat-completions', json, JSON.stringify(HELLO)],
    ['another type', '/v1/chat-completions', { ...known, 'content-type': 'text/plain' }, JSON.stringify(HELLO)],
    ['no body', '/v1/chat-completions', { ...known, ...json }, ''],
    ['in pieces', '/v1/chat-completions', { ...known, ...json, 'transfer-encoding': 'chunked' }, JSON.stringify(HELLO)],
    [
      'a long body',
      '/v1/chat-completions',
      { ...known, ...json },
      JSON.stringify({ ...HELLO, user: 'x'.repeat(70_000) }),
    ],
    ['another spelling', '/v1//chat-completions/', { ...known, ...json }, JSON.stringify(HELLO)],
  ] as const)
    statuses[what] = (await post(path, headers, body)).status
  assert.deepEqual(statuses, {
    'a stranger': 401,
    'no key': 401,
    'another type': 400,
    'no body': 400,
    'in pieces': 200,
    'a long body': 200,
    'another spelling': 200,
  })
  assert.equal(taken, before)
})

test('a body that comes byte by byte is read whole, and one that breaks off leaves nothing behind', async () => {
  const { id, key } = await g.account()
  await g.call('/v1/models', key)
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
  const before = taken
  const broken = connect({ host: hostname, port: Number(port), noDelay: true })
  broken.write(head + body.slice(0, -1))
  while (taken === before) await new Promise((resolve) => setImmediate(resolve))
  broken.destroy()
  await g.call('/v1/models', key)
  await g.settled()
  assert.deepEqual(await g.balance(id), spent)
})
