// The contract of the chat, models and account endpoints, to the letter, over the whole gateway.
import { assert, BY, jsonOf, pluck, startGateway, type TestGateway, test, testGateway } from './gateway.ts'

let key: string
let account: string
const g = testGateway({ isShared: true }, async () => {
  ;({ key, id: account } = await g.account())
})

const CHAT = '/v1/chat-completions'
const hello = [{ role: 'user', content: 'Hello' }]

test('4.1: the models are exactly those of the contract, what it does not know aside, without the one that is not enabled', async () => {
  const body = (await (await g.call('/v1/models', key)).json()) as {
    success: boolean
    data: Array<{ uid: string; type: string }>
    requestId: string
  }
  assert.equal(body.success, true)
  assert.match(body.requestId, /^req_/)
  assert.deepEqual(
    body.data
      .flatMap(({ uid, type }) =>
        ['embedding', 'rerank', 'moderation', 'ocr', 'transcription', 'speech', 'realtime'].includes(type)
          ? []
          : `${type} ${uid}`,
      )
      .sort(),
    `text alpha-5.4, text alpha-5.5, text alpha-5.6-sol, text alpha-5.6-terra, text alpha-6-astra, text beta-fable-5, text beta-fable-5-1, text beta-haiku-4-5, text beta-opus-4-5, text beta-opus-4-6, text beta-opus-4-7, text beta-opus-4-8, text beta-opus-5, text beta-opus-5-5, text beta-sonnet-4-5, text beta-sonnet-4-6, text beta-sonnet-5, text gamma-v4-flash, text gamma-v4-pro, text delta-3.6-flash, text delta-3.7-flash, text delta-3.8-flash, text delta-3.5-flash-lite, text epsilon-k3, text zeta-m3, image alpha-image-2, image alpha-image-2.5-flare, image alpha-image-2.5-sunburst, video videogen-2.0, video videogen-2.5, data socialapi`
      .split(', ')
      .sort(),
  )
  for (const entry of body.data as Array<Record<string, unknown>>)
    for (const field of ['uid', 'name', 'version', 'type', 'pricing']) assert.ok(field in entry)
})

test('4.1: a restricted key sees and uses only its models', async () => {
  const { key: narrow } = await g.account({ models: ['gamma-v4-flash'] })
  const body = (await (await g.call('/v1/models', narrow)).json()) as { data: Array<{ uid: string }> }
  assert.deepEqual(pluck(body.data, 'uid'), ['gamma-v4-flash'])
  assert.equal((await g.call(CHAT, narrow, { model: 'gamma-v4-flash', messages: hello })).status, 200)
  const refused = await g.call(CHAT, narrow, { model: 'alpha-5.4', messages: hello })
  assert.equal(refused.status, 403)
  assert.equal(((await refused.json()) as { code: number }).code, 20001)
})

test('4.2, 7.2: what is refused, with which status and code, before any vendor is called', async () => {
  const seen = g.sandbox.seen.requests
  const before = await g.balance(account)
  const cases: Array<[unknown, number, number]> = [
    [{ model: 'alpha-5.4' }, 400, 10000],
    [{ model: 'alpha-5.4', messages: 'hi' }, 400, 10000],
    [{ model: 'alpha-5.4', messages: [] }, 400, 10000],
    [{ model: 'alpha-5.4', messages: [{ role: 'wizard', content: 'x' }] }, 400, 10000],
    [{ model: 'alpha-5.4', messages: [{ content: 'x' }] }, 400, 10000],
    [{ model: 'alpha-5.4', messages: [{ role: 'user' }] }, 400, 10000],
    [{ messages: hello }, 400, 10000],
    [{ model: 7, messages: hello }, 400, 10000],
    [{ model: 'alpha-5.4', messages: hello, n: '1' }, 400, 10000],
    [{ model: 'alpha-5.4', messages: hello, n: 0 }, 400, 10000],
    [{ model: 'epsilon-k3', messages: hello, n: 2 }, 400, 10000],
    [{ model: 'beta-opus-5', messages: hello, n: 2 }, 400, 10000],
    [{ model: 'alpha-5.4', messages: hello, temperature: 'hot' }, 400, 10000],
    [{ model: 'alpha-5.4', messages: hello, max_tokens: 0 }, 400, 10000],
    [{ model: 'alpha-5.4', messages: hello, max_tokens: 1.5 }, 400, 10000],
    [{ model: 'alpha-5.4', messages: hello, stream: 'yes' }, 400, 10000],
    [{ model: 'zeta-m3', messages: hello, thinking: 'off' }, 400, 10000],
    [{ model: 'alpha-image-2', messages: hello }, 400, 10000],
    [{ model: 'videogen-2.0', messages: hello }, 400, 10000],
    [{ model: 'socialapi', messages: hello }, 400, 10000],
    [{ model: 'Alpha 5.4', messages: hello }, 404, 30000],
    [{ model: 'gamma-v4.1-flash', messages: hello }, 404, 30000],
    [{ model: 'nope', messages: 'wrong' }, 400, 10000],
    ['{"model":"alpha-5.4","messages":[', 400, 10000],
    ['[]', 400, 10000],
  ]
  for (const [body, status, code] of cases) {
    const answer = await g.call(CHAT, key, body)
    const fault = (await answer.json()) as Record<string, unknown>
    assert.equal(answer.status, status, `${JSON.stringify(body)} → ${JSON.stringify(fault)}`)
    assert.equal(fault.code, code, JSON.stringify(body))
    assert.deepEqual(Object.keys(fault), ['code', 'message', 'type', 'requestId'])
    assert.equal(fault.type, 'api_error')
    assert.equal(fault.requestId, answer.headers.get('x-request-id'))
  }
  const noKey = await g.call(CHAT, undefined, { model: 'alpha-5.4', messages: hello })
  assert.equal(noKey.status, 401)
  assert.equal(((await noKey.json()) as { code: number }).code, 20000)
  assert.equal(g.sandbox.seen.requests, seen)
  assert.deepEqual(await g.balance(account), before)
})

test('a model at a door that it does not have names the doors that it has', async () => {
  for (const [path, body, words] of [
    ['/alpha/responses', { model: 'beta-opus-5', input: 'x' }, /chat-completions or \/beta\/v1\/messages/],
    [
      '/beta/v1/messages',
      { model: 'alpha-5.4', max_tokens: 5, messages: hello },
      /chat-completions or \/alpha\/responses/,
    ],
    ['/beta/v1/messages', { model: 'gamma-v4-pro', max_tokens: 5, messages: hello }, /chat-completions/],
  ] as const) {
    const fault = await jsonOf<{ code: number; message: string }>(g.call(path, key, body), 400)
    assert.equal(fault.code, 10000)
    assert.match(fault.message, words)
  }
})

test('defaults are never injected: the vendor gets the caller’s bytes, but for the model, the usage opt-in and the cap', async () => {
  const body =
    '{ "model":"alpha-5.4", "messages":[{"role":"user","content":"exact  bytes é"}], "x_unknown": {"a":1.50}, "x_big": 12345678901234567890 }'
  await g.call(CHAT, key, body)
  const cap = /,\s*"max_completion_tokens":\s*\d+/
  const sent = g.sandbox.seen.calls.at(-1)?.body ?? ''
  assert.match(sent, cap)
  assert.equal(sent.replace(cap, ''), body)
  await g.call(CHAT, key, { model: 'gamma-v4-flash', messages: hello, stream: true }).then((answer) => answer.text())
  const { max_tokens: told, ...rest } = JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '')
  assert.equal(typeof told, 'number')
  assert.deepEqual(rest, {
    model: 'gamma-v4-flash',
    messages: hello,
    stream: true,
    stream_options: { include_usage: true },
  })
})

test('an SDK’s mark or an alias path adds the error member that the SDK reads; strict errors take it away', async () => {
  const bad = { model: 'nope', messages: hello }
  assert.equal('error' in ((await (await g.call(CHAT, key, bad)).json()) as object), false)
  assert.equal('error' in ((await (await g.call('/v1/chat/completions', key, bad)).json()) as object), true)
  assert.equal(
    'error' in ((await (await g.call(CHAT, key, bad, { headers: { 'x-stainless-lang': 'js' } })).json()) as object),
    true,
  )
})

test('402 names the credits needed and the credits left, and nothing was called', async () => {
  const { key: poor } = await g.account({ credits: 5n })
  const seen = g.sandbox.seen.requests
  const fault = await jsonOf<{ code: number; message: string }>(
    g.call(CHAT, poor, { model: 'beta-opus-5', messages: hello }),
    402,
  )
  assert.equal(fault.code, 40000)
  assert.match(fault.message, /needs [\d.]+ credits, 0\.000005 are available/)
  assert.equal(g.sandbox.seen.requests, seen)
})

test('without max_tokens a small balance holds what it can afford, and that cap goes upstream', async () => {
  const { id, key: small } = await g.account({ credits: 500_000n })
  const answer = await g.call(CHAT, small, {
    model: 'gamma-v4-pro',
    messages: [{ role: 'user', content: 'A long story [[tokens=3000]]' }],
  })
  assert.equal(answer.status, 200)
  const sent = JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '') as { max_tokens?: number }
  assert.ok(sent.max_tokens !== undefined && sent.max_tokens > 64 && sent.max_tokens < 4096)
  await g.settled()
  const { posted } = await g.balance(id)
  assert.ok(posted >= 0n && posted < 500_000n)
})

test('a quote says what a request would hold and cost, and runs nothing', async () => {
  const seen = g.sandbox.seen.requests
  const answer = await g.call('/v1/quote', key, { model: 'alpha-5.4', messages: hello, max_tokens: 100 })
  const { data } = (await answer.json()) as { data: Record<string, unknown> }
  assert.equal(answer.status, 200)
  assert.equal(data.affordable, true)
  assert.match(String(data.costAtMost), /^0\.1\d+$/)
  assert.equal(g.sandbox.seen.requests, seen)
})

test('a caller sees its own account', async () => {
  const { data } = (await (await g.call('/v1/account', key)).json()) as { data: Record<string, unknown> }
  assert.equal(data.id, account)
  assert.equal(data.available, data.balance)
})

test('request ids are in the body and in both headers, and are ours', async () => {
  const answer = await g.call('/v1/models', key, undefined, { headers: { 'x-request-id': 'mine' } })
  const body = (await answer.json()) as { requestId: string }
  assert.equal(answer.headers.get('x-request-id'), body.requestId)
  assert.equal(answer.headers.get('request-id'), body.requestId)
  assert.notEqual(body.requestId, 'mine')
})

test('a key bound to addresses is judged by the caller’s address, which only a trusted proxy may tell', async () => {
  await using behind = await startGateway({ env: { TOLLGATE_TRUST_PROXY: '127.0.0.1' } })
  const make = async (on: TestGateway) =>
    (await on.gateway.keys.create((await on.account()).id, { name: 'bound', ipRanges: ['203.0.113.0/24'] }, BY)).key
  const ask = async (on: TestGateway, bound: string, from: string) =>
    (await on.call('/v1/models', bound, undefined, { headers: { 'x-forwarded-for': from } })).status
  const trusted = await make(behind)
  assert.equal(await ask(behind, trusted, '203.0.113.7'), 200)
  assert.equal(await ask(behind, trusted, '198.51.100.7'), 403)
  assert.equal(await ask(g, await make(g), '203.0.113.7'), 403)
})
