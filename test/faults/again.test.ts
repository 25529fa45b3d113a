// F36, F37, F46: trying again, asking again, and vendors that send us elsewhere.

import { above, afterEach, assert, beforeEach, listen, runs, started, test, textOf, until } from '../gateway.ts'
import {
  CHAT_PATH,
  type ChatVendor,
  chatBody,
  chunk,
  STREAM_HEADERS,
  startFaultGateway,
  startVendor,
  usage,
  wholeAnswer,
  wholeStream,
} from './chat-vendor.ts'
import { count, post } from './raw-client.ts'

const first = started(startVendor)
const second = started(startVendor)
const g = started(() =>
  startFaultGateway({
    vendors: {
      first: { baseUrl: first.url, credential: 'FIRST_KEY' },
      second: { baseUrl: second.url, credential: 'SECOND_KEY' },
    },
    env: { FIRST_KEY: 'sk-canary-first-0001', SECOND_KEY: 'sk-canary-second-0002' },
  }),
)
beforeEach(() => {
  first.calls.length = 0
  second.calls.length = 0
  second.answer = ({ response, body }) => {
    if ((JSON.parse(body) as { stream?: boolean }).stream)
      response.writeHead(200, STREAM_HEADERS).end(wholeStream(['from ', 'the ', 'second'], 10, 20))
    else
      response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('from the second', usage(10, 20)))
  }
})
afterEach(() => g.settled())

const spent = async (id: string) => 1_000_000_000n - (await g.balance(id)).posted

test('a vendor that fails before its first byte is replaced by the next, within the same hold', async () => {
  const failures: Array<[string, ChatVendor['answer']]> = [
    ['500', ({ response }) => response.writeHead(500).end()],
    ['429', ({ response }) => response.writeHead(429, { 'retry-after': '7' }).end()],
    ['401', ({ response }) => response.writeHead(401).end('{"error":{"message":"bad key sk-canary-first-0001"}}')],
    ['reset', ({ response }) => response.socket?.resetAndDestroy()],
  ]
  for (const [name, answer] of failures)
    for (const stream of [false, true]) {
      first.answer = answer
      const { id, key } = await g.account()
      const before = [first.calls.length, second.calls.length]
      const reply = await g.call(CHAT_PATH, key, chatBody('hello', { stream }))
      const text = await reply.text()
      assert.equal(reply.status, 200, `${name}: ${text}`)
      assert.equal(reply.headers.get('x-tollgate-route'), '2')
      assert.deepEqual([first.calls.length - before[0]!, second.calls.length - before[1]!], [1, 1], name)
      await g.settled()
      assert.equal(await spent(id), 50n)
    }
})

test('a stream that broke after its first byte is never begun again', async () => {
  first.answer = ({ response }) => {
    response.writeHead(200, STREAM_HEADERS)
    response.write(chunk('once '), () => response.socket?.resetAndDestroy())
  }
  const { id, key } = await g.account()
  const call = post(g.url, { key, body: chatBody('hello', { stream: true }) })
  const text = await call.text()
  assert.equal(text.split('once ').length, 2)
  assert.match(text, /"error":\{/)
  assert.equal(second.calls.length, 0)
  assert.equal(await spent(id), 0n)
})

test('what the caller did wrong is not tried elsewhere', async () => {
  first.answer = ({ response }) => response.writeHead(400).end('{"error":{"message":"temperature is too high"}}')
  const { id, key } = await g.account()
  assert.match(await textOf(g.call(CHAT_PATH, key, chatBody('hello')), 400), /temperature is too high/)
  assert.equal(second.calls.length, 0)
  assert.equal(await spent(id), 0n)
})

test('a caller who leaves during the probe of a broken vendor does not keep it out for ever', async () => {
  await using single = await startFaultGateway({ vendors: { first: { baseUrl: first.url } } })
  const { key } = await single.account()
  const breaker = () => single.gateway.vendors.health().find(({ name }) => name === 'first')?.breaker
  first.answer = ({ response }) => response.writeHead(500).end()
  await until(async () => {
    await (await single.call(CHAT_PATH, key, chatBody('fail'))).text()
    return breaker()
  }, 'open')
  first.answer = () => {}
  await until(() => breaker(), 'half-open')
  const calls = first.calls.length
  const probe = post(single.url, { key, body: chatBody('probe') })
  await until(() => first.calls.length, above(calls))
  probe.leave()
  await first.calls.at(-1)!.closed
  first.answer = ({ response }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('back', usage(1, 1)))
  await until(() => single.gateway.monitor.running, 0)
  assert.equal((await single.call(CHAT_PATH, key, chatBody('hello'))).status, 200)
  await single.settled()
})

test('a hundred calls with one Idempotency-Key are one call: one charge, and the rest replays or conflicts', async () => {
  for (const stream of [false, true]) {
    const begun = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    first.answer = async ({ response }) => {
      begun.resolve()
      await go.promise
      if (stream) response.writeHead(200, STREAM_HEADERS).end(wholeStream(['only ', 'once'], 10, 20))
      else response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('only once', usage(10, 20)))
    }
    const calls = first.calls.length
    const { id, key } = await g.account()
    const body = chatBody('the same', { stream })
    const headers = { 'idempotency-key': `order-${stream}` }
    const ask = () => g.call(CHAT_PATH, key, body, { headers })
    const answers = [...count(100)].map(ask)
    await begun.promise
    const conflicts = await Promise.race([
      Promise.all(answers.map((answer) => answer.then((reply) => reply.status))),
      settledCount(answers, 99),
    ])
    go.resolve()
    const replies = await Promise.all(answers)
    const texts = await Promise.all(replies.map((reply) => reply.text()))
    const statuses = replies.map((reply) => reply.status)
    assert.equal(statuses.filter((status) => status === 200).length, 1, `${conflicts}`)
    assert.equal(statuses.filter((status) => status === 409).length, 99)
    for (const reply of replies) if (reply.status === 409) assert.ok(Number(reply.headers.get('retry-after')) >= 1)
    const answer = texts[statuses.indexOf(200)]!
    const again = await Promise.all([...count(20)].map(ask))
    for (const reply of again) {
      assert.equal(reply.status, 200)
      assert.equal(reply.headers.get('idempotent-replayed'), 'true')
      assert.equal(reply.headers.get('content-type')?.includes('event-stream'), stream)
      const receipt = /^: tollgate.*\n/m
      assert.equal(await reply.text(), answer.replace(receipt, ''))
    }
    const other = await g.call(CHAT_PATH, key, chatBody('another', { stream }), { headers })
    assert.equal(other.status, 409)
    assert.equal(first.calls.length - calls, 1)
    await g.settled()
    assert.equal(await spent(id), 50n)
  }
})

/** Resolves when all but one have been answered. */
function settledCount(answers: Promise<Response>[], wanted: number): Promise<number> {
  return new Promise((resolve) => {
    let done = 0
    for (const answer of answers)
      void answer.then(() => {
        if (++done === wanted) resolve(done)
      })
  })
}

test('a failed call gives its Idempotency-Key back', async () => {
  first.answer = ({ response }) => response.writeHead(400).end('{}')
  const { id, key } = await g.account()
  const ask = () => g.call(CHAT_PATH, key, chatBody('retry'), { headers: { 'idempotency-key': 'retry 1' } })
  assert.equal((await ask()).status, 400)
  first.answer = ({ response }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('good', usage(10, 20)))
  assert.equal((await ask()).status, 200)
  assert.equal(await spent(id), 50n)
})

test('an Idempotency-Key that is no key is refused at once, however long it is', async () => {
  const { key } = await g.account()
  for (const bad of ['a'.repeat(256), `${'a'.repeat(200)}\u00e9`, `${'a '.repeat(100)}\u00ff`]) {
    const startedMs = performance.now()
    const reply = await g.call(CHAT_PATH, key, chatBody('hello'), { headers: { 'idempotency-key': bad } })
    assert.equal(reply.status, 400)
    assert.equal(((await reply.json()) as { code: number }).code, 10000)
    assert.ok(performance.now() - startedMs < runs(120_000, 5_000))
  }
})

test('redirects of vendors are not followed, and their cookies, hop headers and keys reach nobody', async () => {
  let visits = 0
  const canary = await listen((_request, response) => {
    visits += 1
    response.end(wholeAnswer('stolen', usage(1, 1)))
  })
  const location = `${canary.url}/chat/completions`
  try {
    const leaky = {
      'set-cookie': 'session=vendor-cookie',
      'x-hop': 'hop',
      connection: 'keep-alive, x-hop',
      server: 'vendor-server',
      'openai-organization': 'org-canary',
      'x-request-id': 'vendor-request',
    }
    // One more failure, and the breakers would answer instead of the vendors.
    for (const status of [301, 302, 307, 308]) {
      const redirect: ChatVendor['answer'] = ({ response }) => response.writeHead(status, { ...leaky, location }).end()
      first.answer = redirect
      second.answer = redirect
      const { id, key } = await g.account()
      const reply = await g.call(CHAT_PATH, key, chatBody('hello'), { redirect: 'manual' })
      assert.equal(reply.status, 502)
      assert.doesNotMatch(await leaks(reply), /canary|vendor-|location|127\.0\.0\.1/)
      assert.equal(await spent(id), 0n)
    }
    first.answer = ({ response }) =>
      response.writeHead(200, { ...leaky, 'content-type': 'application/json' }).end(wholeAnswer('fine', usage(1, 1)))
    const { key } = await g.account()
    const reply = await g.call(CHAT_PATH, key, chatBody('hello'))
    assert.equal(reply.status, 200)
    assert.doesNotMatch(await leaks(reply), /canary|cookie|vendor-/)
    assert.equal(first.calls.at(-1)!.request.headers.authorization, 'Bearer sk-canary-first-0001')
  } finally {
    await canary.close()
  }
  assert.equal(visits, 0)
})

async function leaks(reply: Response): Promise<string> {
  return JSON.stringify([...reply.headers]) + (await reply.text())
}
