// Guardrails on the path: what they take out no vendor sees, what they put back only its own caller gets, and what they
// block costs nothing.
import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { buffer, json } from 'node:stream/consumers'
import OpenAI from 'openai'
import { needs, testGateway } from '../../../test/gateway.ts'
import { assert, atOnce, listen, pause, pluck, started, test, until } from '../../../test/kit.ts'
import { connect } from '../../../test/mcp/client.ts'
import type { ContentView } from '../../admission/views.ts'
import type { UsageDetail } from '../../ledger/views.ts'
import type { LivePage } from '../../operator/views.ts'
import { guardrails as extension } from './extension.ts'

const MAIL = 'jo.doe+x@mail.example.org'
const CARD = '4111 1111 1111 1111'
const PLACEHOLDER = /\[(?:EMAIL|CARD)_[0-9A-F]{12}\]/

/** A vendor that repeats what it was told, three characters at a time if it streams. */
const seen: string[] = []
let says: ((told: string) => string) | undefined
/** What a stream waits for in its middle. */
let halfway: (() => Promise<unknown>) | undefined
const vendor = started(() =>
  listen(async (request, response) => {
    const body = (await buffer(request)).toString()
    seen.push(body)
    const { messages, stream, input } = JSON.parse(body) as any // Of a test.
    if (input !== undefined) {
      const results = [input]
        .flat()
        .map((text: string) => ({
          flagged: text.includes('poison'),
          categories: { hate: text.includes('poison') },
          category_scores: {},
        }))
      response.setHeader('content-type', 'application/json')
      return response.end(JSON.stringify({ id: 'm', model: 'm', results }))
    }
    const told = messages.at(-1).content as string
    const text = says?.(told) ?? `You said: ${told}!`
    const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }
    if (!stream) {
      response.setHeader('content-type', 'application/json')
      const choices = [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }]
      return response.end(
        JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'v', choices, usage }),
      )
    }
    response.setHeader('content-type', 'text/event-stream')
    const event = (delta: object, finish: string | null = null) =>
      response.write(
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'v', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
      )
    event({ role: 'assistant', content: '' })
    const middle = Math.floor(text.length / 3)
    for (let at = 0; at < middle; at += 3) {
      event({ content: text.slice(at, Math.min(middle, at + 3)) })
      // In two pieces the first does not wait until nothing more comes.
      if (halfway && at === 300) await pause(20, 'a vendor that is slow')
    }
    await halfway?.()
    for (let at = middle; at < text.length; at += 3) event({ content: text.slice(at, at + 3) })
    event({}, 'stop')
    response.write(
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'v', choices: [], usage })}\n\n`,
    )
    return response.end('data: [DONE]\n\n')
  }),
)

const hooks = started(() =>
  listen(async (request, response) => {
    const body = await json(request)
    asked.push({ body, headers: request.headers })
    const said = hook(body, response)
    if (said) response.setHeader('content-type', 'application/json').end(JSON.stringify(said))
  }),
)

const g = testGateway(
  () => ({ env: { TOLLGATE_OUTBOUND_ALLOW: hooks.host } }),
  async () => {
    await rules(undefined)
  },
)

/** The catalog with these rules, and the model that repeats. */
async function rules(guardrails: object | undefined): Promise<void> {
  const { data } = await g.operator<any>('GET', '/catalog')
  const document = data.document
  document.vendors.echo = { baseUrl: vendor.url }
  const routes = [{ vendor: 'echo', protocol: 'openai-chat' }]
  document.models.echo = {
    ...document.models['beta-haiku-4-5'],
    routes,
    clientFormats: ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini'],
    cache: { ttlSeconds: 60, shared: true },
  }
  document.models.judge = {
    ...document.models['alpha-moderation-1'],
    routes: [{ vendor: 'echo', protocol: 'openai-moderations' }],
  }
  if (guardrails) document.guardrails = guardrails
  else delete document.guardrails
  const { status, data: applied } = await g.operator<any>('PUT', '/catalog', { document, note: 'test' })
  assert.equal(status, 200, JSON.stringify(applied))
}

const HIDING = { hide: { redact: { patterns: ['email', 'card'] } } }
const ask = (key: string, content: string, more: object = {}, init?: RequestInit) =>
  g.call(
    '/v1/chat/completions',
    key,
    { model: 'echo', max_tokens: 100, messages: [{ role: 'user', content }], ...more },
    init,
  )
const said = async (answer: Response) => {
  const body = (await answer.json()) as any // Of a test.
  return body.choices?.[0]?.message?.content ?? JSON.stringify(body)
}
async function detail(id: string | null): Promise<UsageDetail> {
  await g.settled()
  return (await g.operator<UsageDetail>('GET', `/usage/${id}`)).data
}

test(
  'a vendor sees placeholders, the caller its own texts, in every format, whole and streamed',
  needs('gemini'),
  async () => {
    await rules(HIDING)
    const { key } = await g.account()
    const text = `Write to ${MAIL}, card ${CARD}.`
    const asks: [string, object, (body: any) => string][] = [
      [
        '/v1/chat/completions',
        { messages: [{ role: 'user', content: text }] },
        (body) => body.choices[0].message.content,
      ],
      ['/v1/responses', { input: text }, (body) => body.output.at(-1).content[0].text],
      ['/v1/messages', { max_tokens: 99, messages: [{ role: 'user', content: text }] }, (body) => body.content[0].text],
      [
        '/gemini/v1beta/models/echo:generateContent',
        { contents: [{ parts: [{ text }] }] },
        (body) => body.candidates[0].content.parts[0].text,
      ],
    ]
    for (const [path, body, read] of asks) {
      const named = path.includes('echo') ? body : { model: 'echo', ...body }
      const whole = await g.call(path, key, named)
      const answer = await whole.json()
      assert.equal(whole.status, 200, JSON.stringify(answer))
      assert.equal(read(answer), `You said: ${text}!`)
      assert.match(seen.at(-1) ?? '', PLACEHOLDER)
      const streaming = path.includes('echo') ? path.replace(':generate', ':streamGenerate') : path
      const streamed = await g.call(streaming, key, path.includes('echo') ? body : { ...named, stream: true })
      const events = await streamed.text()
      assert.ok(events.includes(MAIL) && events.includes(CARD) && !PLACEHOLDER.test(events), events)
    }
    assert.ok(!seen.some((body) => body.includes(MAIL) || body.includes('4111')))
  },
)

test('the call’s record says what was done, and content logging keeps no secret', async () => {
  await rules(HIDING)
  const { id: account, key } = await g.account()
  await g.operator('PUT', `/accounts/${account}/content`, { days: 3 })
  for (const stream of [false, true]) {
    const answer = await ask(key, `{"mail": "${MAIL.replace('@', '\\u0040')}", "n": 12345678901234567890}`, { stream })
    assert.ok((await answer.text()).includes(MAIL))
    const call = await detail(answer.headers.get('x-request-id'))
    assert.deepEqual(call.attemptLog?.guardrails, [{ rule: 'hide', on: 'request', did: 'redacted', times: 1 }])
    await g.gateway.opened(extension).contents.flush()
    const { data } = await g.operator<ContentView>('GET', `/usage/${call.id}/content`)
    assert.match(data.request.body, PLACEHOLDER)
    assert.match(data.answer?.body ?? '', PLACEHOLDER)
    assert.ok(!JSON.stringify(data).includes('jo.doe'))
  }
})

test('what was kept of an answer is given only to who sent the same secret, and not after the rules change', async () => {
  await rules(HIDING)
  const [one, other] = [await g.account(), await g.account()]
  const cached = { temperature: 0 }
  const count = seen.length
  assert.equal(await said(await ask(one.key, `mail ${MAIL}`, cached)), `You said: mail ${MAIL}!`)
  const again = await ask(one.key, `mail ${MAIL}`, cached)
  assert.deepEqual([again.headers.get('x-cache'), await said(again)], ['hit', `You said: mail ${MAIL}!`])
  assert.equal(await said(await ask(one.key, 'mail other@example.org', cached)), 'You said: mail other@example.org!')
  assert.equal(await said(await ask(other.key, 'mail third@example.org', cached)), 'You said: mail third@example.org!')
  assert.equal(seen.length, count + 3)
  await rules({ ...HIDING, leaks: { redact: { patterns: ['iban'], on: ['answer'] } } })
  assert.equal((await ask(one.key, `mail ${MAIL}`, cached)).headers.get('x-cache'), 'miss')
})

test('what an answer must not have is taken out of it for good', async () => {
  await rules({ leaks: { redact: { patterns: ['card'], own: { ticket: 'TCK-[0-9]{4}' }, on: ['answer'] } } })
  const { key } = await g.account()
  for (const stream of [false, true]) {
    const text = await (await ask(key, `card ${CARD} and TCK-1234`, { stream })).text()
    assert.ok(!text.includes('1111 1111') && !text.includes('TCK-1234'), text)
  }
  assert.ok(seen.at(-1)?.includes(CARD), 'requests are not this rule’s')
  const client = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
  const stream = client.chat.completions.stream({ model: 'echo', messages: [{ role: 'user', content: `a ${CARD} b` }] })
  assert.match(
    (await stream.finalChatCompletion()).choices[0]?.message.content ?? '',
    /^You said: a \[CARD_[0-9A-F]{12}\] b!$/,
  )
})

test('a rule is for the accounts, keys, models and labels that it names', async () => {
  const [one, other] = [await g.account(), await g.account()]
  const redact = { patterns: ['email'] }
  const isHidden = async (key: string, more: object = {}) => {
    await (await ask(key, MAIL, more)).text()
    return !seen.at(-1)?.includes(MAIL)
  }
  await rules({ one: { accounts: [one.id], redact } })
  assert.deepEqual([await isHidden(one.key), await isHidden(other.key)], [true, false])
  await rules({ one: { keys: [other.keyId], redact } })
  assert.deepEqual([await isHidden(one.key), await isHidden(other.key)], [false, true])
  await rules({ one: { models: ['ec*'], labels: { team: 'red' }, redact } })
  assert.deepEqual([await isHidden(one.key), await isHidden(one.key, { metadata: { team: 'red' } })], [false, true])
  await rules({ one: { models: ['alpha-*'], redact }, off: { enabled: false, redact } })
  assert.equal(await isHidden(one.key), false)
})

test('a catalog with a rule that cannot work is not applied, and says why', async () => {
  const { data } = await g.operator<any>('GET', '/catalog')
  const problem = async (rule: object) => {
    const document = { ...data.document, guardrails: { bad: rule } }
    const { data: checked } = await g.operator<any>('PUT', '/catalog?dryRun=true', { document })
    return JSON.stringify(checked)
  }
  assert.match(await problem({}), /exactly one of/)
  assert.match(await problem({ redact: {} }), /names no pattern/)
  assert.match(await problem({ redact: { own: { a: '(' } } }), /is no pattern/)
  assert.match(await problem({ redact: { own: { a: 'x*' } } }), /matches the empty text/)
  assert.match(await problem({ redact: { own: { a: '\\pL{0,999}'.repeat(10) } } }), /repeats something more than/)
  assert.match(await problem({ redact: { own: { a: '((a{9}){9}){9}a{9}'.repeat(3) } } }), /is too large/)
  assert.match(await problem({ redact: { patterns: ['card', 'card'] } }), /twice/)
  assert.match(await problem({ moderate: { model: 'echo' } }), /no moderation model/)
  assert.match(await problem({ hook: { url: 'ftp://x' } }), /http/)
})

// Hooks.

type Asked = { readonly body: any; readonly headers: Record<string, string | string[] | undefined> }
const asked: Asked[] = []
/** What the hook answers: an object, or a function that does what it likes with the response. */
let hook: (body: any, response: ServerResponse) => object | undefined = () => ({ action: 'allow' })
const hooked = (over: object = {}) => ({
  gate: { hook: { url: `${hooks.url}/check`, on: ['request', 'answer'], ...over } },
})

test('a hook is asked about the redacted texts of both, signed, and may let them through or replace them', async () => {
  await rules({ ...HIDING, ...hooked() })
  const { id: account, key, keyId } = await g.account()
  asked.length = 0
  hook = ({ on, texts }) =>
    on === 'request'
      ? { action: 'allow' }
      : { action: 'replace', texts: texts.map((text: string) => text.toUpperCase()) }
  assert.equal(await said(await ask(key, `a ${MAIL}`)), `YOU SAID: A ${MAIL}!`)
  const [request, answer] = asked
  assert.deepEqual(
    [request?.body.on, request?.body.account, request?.body.key, request?.body.model, answer?.body.on],
    ['request', account, keyId, 'echo', 'answer'],
  )
  assert.match(request?.body.texts[0], /^a \[EMAIL_/)
  assert.match(answer?.body.texts[0], /^You said: a \[EMAIL_/)
  const { data } = await g.operator<{ secret: string }>('GET', '/webhook-secret')
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature } = request?.headers ?? {}
  const signed = createHmac('sha256', Buffer.from(data.secret.slice('whsec_'.length), 'base64'))
  assert.equal(signature, `v1,${signed.update(`${id}.${at}.${JSON.stringify(request?.body)}`).digest('base64')}`)

  hook = ({ on }) => (on === 'request' ? { action: 'replace', texts: ['b new@example.org'] } : { action: 'allow' })
  assert.equal(await said(await ask(key, 'a')), 'You said: b new@example.org!')
  assert.match(seen.at(-1) ?? '', /b \[EMAIL_/)
})

test('a blocked request names its rule and costs nothing; a blocked answer was made, and is charged', async () => {
  await rules(hooked())
  const { id: account, key } = await g.account()
  hook = ({ on }) => (on === 'request' ? { action: 'block', reason: 'No\nsecrets.' } : { action: 'allow' })
  const before = await g.balance(account)
  const count = seen.length
  const refused = await ask(key, 'x')
  const body = (await refused.json()) as any // Of a test.
  assert.deepEqual([refused.status, refused.headers.get('x-tollgate-guardrail')], [400, 'gate'])
  assert.equal(
    body.error.message,
    'The guardrail "gate" blocked this request. No secrets. You were not charged; the call counts as one request.',
  )
  assert.equal(body.error.code, 'content_filter')
  await g.settled()
  assert.deepEqual([await g.balance(account), seen.length], [before, count])
  const { data: live } = await g.operator<LivePage>('GET', '/requests/live')
  assert.equal(live.items.find(({ id }) => id === refused.headers.get('x-request-id'))?.outcome, 'rejected')

  hook = ({ on }) => (on === 'answer' ? { action: 'block' } : { action: 'allow' })
  const whole = await ask(key, 'x')
  assert.equal(whole.status, 400)
  const made = await detail(whole.headers.get('x-request-id'))
  assert.deepEqual(made.attemptLog?.guardrails, [{ rule: 'gate', on: 'answer', did: 'blocked', times: 1 }])
  assert.ok(BigInt(made.charged.replace('.', '')) > 0n && made.fault === 'guardrail_blocked', JSON.stringify(made))
})

test(
  'a blocked answer in the background is charged once, also when its process died before the end was written',
  needs('background'),
  async () => {
    await rules(hooked())
    const { id: account, key } = await g.account()
    hook = ({ on }) => (on === 'answer' ? { action: 'block' } : { action: 'allow' })
    const made = await g.call('/v1/responses', key, { model: 'echo', input: 'x', background: true })
    const { id } = (await made.json()) as { id: string }
    const ended = () =>
      until(async () => {
        const response = (await (await g.call(`/v1/responses/${id}`, key)).json()) as any // Of a test.
        return response.status === 'failed' && response
      })
    const first = await ended()
    assert.match(first.error.message, /blocked/)
    await g.settled()
    const [paid, asks] = [await g.balance(account), seen.length]
    assert.ok(paid.posted < 1_000_000_000n)
    const { database } = g.gateway
    await database.query(
      {
        text: `update background set status = 'in_progress', open = true, sealed_answer = null, ended_at = null, step_at = '-infinity' where account_id = $1 and id = $2`,
      },
      [account, id],
    )
    assert.deepEqual((await ended()).error, first.error)
    await g.settled()
    assert.deepEqual([await g.balance(account), seen.length], [paid, asks])
  },
)

test('a call is counted before anybody is asked about it: at its limit no hook hears of it', async () => {
  await rules(hooked({ on: ['request'] }))
  const { id: account, keyId, key } = await g.account()
  await g.operator('PATCH', `/keys/${keyId}`, { limits: { requestsPerMinute: 3 } })
  hook = () => ({ action: 'block' })
  asked.length = 0
  const before = await g.balance(account)
  const answers = await atOnce(6, () => ask(key, 'x'))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [400, 400, 400, 429, 429, 429])
  assert.equal(asked.length, 3)
  const refused = answers.filter(({ status }) => status === 400)
  assert.deepEqual(refused.map(({ headers }) => headers.get('x-ratelimit-remaining-requests')).sort(), ['0', '1', '2'])
  const call = await detail(refused[0]?.headers.get('x-request-id') ?? null)
  assert.deepEqual(call.attemptLog?.guardrails, [{ rule: 'gate', on: 'request', did: 'blocked', times: 1 }])
  assert.deepEqual([call.charged, call.status, await g.balance(account)], ['0', 400, before])
})

test('a replacement that is longer is held for, up to a bound', async () => {
  await rules(hooked({ on: ['request'] }))
  const { key } = await g.account()
  hook = () => ({ action: 'replace', texts: ['longer '.repeat(300)] })
  assert.match(await said(await ask(key, 'x')), /^You said: longer longer/)
  hook = () => ({ action: 'replace', texts: ['longer '.repeat(9_000)] })
  const blocked = await ask(key, 'x')
  assert.deepEqual([blocked.status, blocked.headers.get('x-tollgate-guardrail')], [400, 'gate'])
  assert.match(await said(blocked), /would cost more than is held/)
})

test(
  'what is held for a replacement is within the most that the caller lets a tool cost',
  needs('agents'),
  async () => {
    await rules(hooked({ on: ['request'] }))
    const { id: account, key } = await g.account()
    const client = await connect(g.url, key)
    const call = async (most: string) =>
      JSON.stringify(
        await client.callTool({ name: 'ask_model', arguments: { model: 'echo', prompt: 'x', max_cost: most } }),
      )
    hook = () => ({ action: 'allow' })
    const [, want = ''] = /up to ([\d.]+) credits/.exec(await call('0.000001')) ?? []
    assert.match(await call(want), /You said: x/)
    hook = () => ({ action: 'replace', texts: ['longer '.repeat(300)] })
    const longer = await call(want)
    await client.close()
    await g.settled()
    const held = await g.sql<{ held: bigint }>('select held from usage where account_id = $1', [account])
    const most = BigInt(Math.round(Number(want) * 1_000_000))
    assert.deepEqual(pluck(held, 'held'), [most, most], `${want}: ${longer}`)
  },
)

test('a stored answer is given only to whom the hook lets through', async () => {
  await rules(hooked({ on: ['request'] }))
  const { key } = await g.account()
  const hit = async () => {
    const answer = await ask(key, 'the same', { temperature: 0 })
    return [answer.status, answer.headers.get('x-cache')]
  }
  hook = () => ({ action: 'allow' })
  assert.deepEqual(
    [await hit(), await hit()],
    [
      [200, 'miss'],
      [200, 'hit'],
    ],
  )
  hook = () => ({ action: 'block' })
  assert.deepEqual(await hit(), [400, null])
})

test('a video that is blocked makes no job and is counted; one that is let through is made once', async () => {
  await rules(hooked({ on: ['request'] }))
  const { id: account, keyId, key } = await g.account()
  await g.operator('PATCH', `/keys/${keyId}`, { limits: { requestsPerMinute: 2 } })
  const make = (headers: Record<string, string> = {}) =>
    g.call('/v1/video/seedance', key, { model: 'videogen-2.0', prompt: 'A paper boat' }, { headers })
  hook = () => ({ action: 'block' })
  const refused = await make()
  assert.deepEqual([refused.status, refused.headers.get('x-ratelimit-remaining-requests')], [400, '1'])
  hook = ({ texts }) => ({ action: 'replace', texts: texts.map(() => 'A paper bird') })
  const headers = { 'idempotency-key': 'one-video' }
  const made = await make(headers)
  assert.deepEqual([made.status, made.headers.get('x-ratelimit-remaining-requests')], [200, '0'])
  const again = await make(headers)
  assert.deepEqual([again.status, await again.text()], [200, await made.text()])
  assert.equal((await make()).status, 429)
  const { data } = await g.operator<any>('GET', `/accounts/${account}/jobs`)
  assert.equal(data.items.length, 1)
  assert.match(JSON.stringify(data.items), /A paper bird/)
})

for (const stream of [false, true])
  test(`a blocked ${stream ? 'stream' : 'answer'} is charged once under one idempotency key`, async () => {
    await rules(hooked({ on: ['answer'] }))
    const { id: account, key } = await g.account()
    hook = () => ({ action: 'block', reason: 'No.' })
    const headers = { 'idempotency-key': `blocked-${stream}` }
    const count = seen.length
    const first = await (await ask(key, 'x', { stream }, { headers })).text()
    assert.match(first, /blocked this answer. No./)
    await g.settled()
    const paid = await g.balance(account)
    const again = await ask(key, 'x', { stream }, { headers })
    const { error } = (await again.json()) as any // Of a test.
    assert.match(error.message, /blocked this answer. No./)
    assert.deepEqual(
      [again.status, error.code, again.headers.get('idempotent-replayed'), again.headers.get('x-tollgate-guardrail')],
      [400, 'content_filter', 'true', 'gate'],
    )
    await g.settled()
    assert.deepEqual([await g.balance(account), seen.length - count], [paid, 1])
  })

test('a stream is asked about in windows, and ends with the format’s own error where it is blocked', async () => {
  await rules(hooked({ on: ['answer'] }))
  const { key } = await g.account()
  const long = `${'word '.repeat(300)}poison${' word'.repeat(300)}`
  hook = ({ texts }) => (texts[0].includes('poison') ? { action: 'block', reason: 'Poison.' } : { action: 'allow' })
  says = () => long
  let text = ''
  halfway = () => until(() => text.includes('wor'))
  const paths: [string, object, RegExp][] = [
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'x' }] }, /data: \{"error":[^\n]*guardrail/],
    ['/v1/responses', { input: 'x' }, /event: response\.failed/],
    ['/v1/messages', { max_tokens: 99, messages: [{ role: 'user', content: 'x' }] }, /event: error/],
  ]
  try {
    for (const [path, body, ending] of paths) {
      text = ''
      const answer = await g.call(path, key, { model: 'echo', stream: true, ...body })
      for await (const chunk of answer.body!) text += Buffer.from(chunk).toString()
      assert.ok(text.includes('wor') && !text.includes('poi'), text)
      assert.match(text, ending)
      assert.ok(!text.includes('response.completed') && !text.includes('message_stop'))
      const call = await detail(answer.headers.get('x-request-id'))
      assert.ok(BigInt(call.charged.replace('.', '')) > 0n, 'what was made until then is charged')
    }
    halfway = undefined
    hook = () => ({ action: 'allow' })
    const whole = await ask(key, 'x', { stream: true })
    const pieces = (await whole.text()).matchAll(/"content":"([^"]*)"/g)
    assert.equal([...pieces].map(([, piece]) => piece).join(''), long)
    says = () => 'short'
    assert.match(await (await ask(key, 'x', { stream: true })).text(), /hor.*\[DONE\]/s)
  } finally {
    halfway = undefined
    says = undefined
  }
})

test('a hook that is slow, huge, redirects or lies counts as failed: calls are blocked, or go on where the rule says so', async () => {
  const { id: account, key } = await g.account()
  const tricks: [string, typeof hook][] = [
    ['slow', () => undefined],
    ['huge', (_, response) => void response.end('x'.repeat(3_000_000))],
    ['redirects', (_, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end()],
    ['lies', () => ({ action: 'replace', texts: [] })],
    ['babbles', (_, response) => void response.end('no JSON')],
    ['breaks', (_, response) => void response.destroy()],
  ]
  await rules(hooked({ on: ['request'], deadlineMs: 300 }))
  const before = await g.balance(account)
  for (const [name, trick] of tricks) {
    hook = trick
    const answer = await ask(key, name)
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '2'], name)
    assert.match(await answer.text(), /The guardrail \\"gate\\" is not available/)
  }
  await g.settled()
  assert.deepEqual(await g.balance(account), before)
  await rules(hooked({ on: ['request', 'answer'], deadlineMs: 300, onFailure: 'allow' }))
  for (const [name, trick] of tricks) {
    hook = trick
    assert.equal(await said(await ask(key, name)), `You said: ${name}!`)
  }
  await rules({ gate: { hook: { url: 'http://169.254.169.254/latest' } } })
  assert.equal((await ask(key, 'x')).status, 503, 'the address guard holds for hooks')
})

test('a moderation model blocks what it flags, at the operator’s cost', async () => {
  const { id: account, key } = await g.account()
  await rules({ nice: { moderate: { model: 'judge', on: ['request', 'answer'] } } })
  const before = await g.balance(account)
  const refused = await ask(key, 'poison')
  assert.match(await refused.text(), /The guardrail \\"nice\\" blocked this request\. It was flagged as hate\./)
  assert.deepEqual(await g.balance(account), before, 'nobody is charged for being asked about')
  assert.equal(await said(await ask(key, 'honey')), 'You said: honey!')
  says = () => 'some poison'
  assert.match(await (await ask(key, 'honey')).text(), /blocked this answer/)
  assert.match(await (await ask(key, 'honey', { stream: true })).text(), /blocked this answer/)
  says = undefined
  await rules({ nice: { moderate: { model: 'judge', categories: ['violence'] } } })
  assert.equal(await said(await ask(key, 'poison')), 'You said: poison!')
})

test(
  'nothing goes around: conversations and background responses see placeholders too',
  needs('background'),
  async () => {
    await rules({ hide: { redact: { patterns: ['email'], on: ['request', 'answer'] } } })
    const { key } = await g.account()
    const items = [{ type: 'message', role: 'user', content: `mail ${MAIL}` }]
    const made = await g.call('/v1/conversations', key, { items })
    const { id } = (await made.json()) as { id: string }
    assert.equal(made.status, 200)
    await g.call(`/v1/conversations/${id}/items`, key, { items })
    const calls = g.sandbox.seen.calls.filter(({ url }) => url.includes('conversations'))
    assert.ok(calls.length >= 2 && calls.every(({ body = '' }) => !body.includes(MAIL) && /\[EMAIL_/.test(body)))

    const count = seen.length
    const queued = await g.call('/v1/responses', key, { model: 'echo', input: `mail ${MAIL}`, background: true })
    const response = (await queued.json()) as { id: string }
    const ended = await until(async () => {
      const text = await (await g.call(`/v1/responses/${response.id}`, key)).text()
      return text.includes('"status":"completed"') && text
    })
    assert.ok(ended.includes(`You said: mail ${MAIL}!`), ended)
    assert.ok(seen.length > count && seen.slice(count).every((body) => !body.includes(MAIL)))
  },
)

test('a placeholder that a caller sends himself is a text like any other, and tool arguments stay JSON', async () => {
  await rules({ hide: { redact: { patterns: ['email', 'card', 'private_key'] } } })
  const { key } = await g.account()
  const own = 'literally [EMAIL_0123456789AB] [EMAIL_'
  assert.equal(await said(await ask(key, `${own} ${MAIL}`)), `You said: ${own} ${MAIL}!`)
  const pem = '-----BEGIN PRIVATE KEY-----\nMII"x\\y\n-----END PRIVATE KEY-----'
  const args = JSON.stringify({ to: MAIL, [MAIL]: pem, card: 4111111111111111, big: '12345678901234567890' })
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: args } }] },
    { role: 'tool', tool_call_id: 'call_1', content: args },
    { role: 'user', content: 'again' },
  ]
  const answer = await g.call('/v1/chat/completions', key, { model: 'echo', max_tokens: 100, messages })
  assert.equal(answer.status, 200)
  const sent = seen.at(-1) ?? ''
  assert.ok(!sent.includes('jo.doe') && !sent.includes('MII') && !sent.includes('4111111111111111'), sent)
  const told = JSON.parse(sent).messages[1].tool_calls[0].function.arguments as string
  assert.deepEqual(Object.keys(JSON.parse(told)).length, 4)
  assert.ok(told.includes('12345678901234567890'))
})

test('long texts and patterns that match everything are borne', async () => {
  await rules({
    all: { redact: { patterns: ['email', 'card', 'phone', 'iban'], own: { all: '(?s).+' }, on: ['answer'] } },
  })
  const { key } = await g.account()
  const text = await (await ask(key, `${'x y '.repeat(20_000)}${MAIL}`, { stream: true })).text()
  assert.ok(/\[ALL_[0-9A-F]{12}\]/.test(text) && !text.includes('x y '), text.slice(0, 500))
  await rules({ all: { redact: { patterns: ['email', 'card', 'phone', 'iban', 'api_key'] } } })
  const long = `${'1 '.repeat(250_000)}${'a'.repeat(250_000)}@ ${MAIL}`
  assert.equal(await said(await ask(key, long)), `You said: ${long}!`)
})
