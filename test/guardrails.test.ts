// Guardrails on the path: what they take out no vendor sees, what they put back only its own caller gets, and what they block costs nothing.
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import OpenAI from 'openai'
import type { ContentView } from '../src/admission/views.ts'
import type { UsageDetail } from '../src/ledger/views.ts'
import { testGateway } from './gateway.ts'

const MAIL = 'jo.doe+x@mail.example.org'
const CARD = '4111 1111 1111 1111'
const PLACEHOLDER = /\[(?:EMAIL|CARD)_[0-9A-F]{12}\]/

/** A vendor that repeats what it was told, three characters at a time if it streams. */
const seen: string[] = []
let says: ((told: string) => string) | undefined
let vendor: Server
before(async () => {
  vendor = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      seen.push(body)
      const { messages, stream, input } = JSON.parse(body) as any // Of a test.
      if (input !== undefined) {
        const results = [input].flat().map((text: string) => ({
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
      for (let at = 0; at < text.length; at += 3) event({ content: text.slice(at, at + 3) })
      event({}, 'stop')
      response.write(
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'v', choices: [], usage })}\n\n`,
      )
      return response.end('data: [DONE]\n\n')
    })
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => vendor.on('listening', resolve))
})
after(() => vendor.close())

const g = testGateway({ env: { TOLLGATE_WEBHOOKS_PER_MINUTE: '100000' } }, async () => {
  await rules(undefined)
})

/** The catalog with these rules, and the model that repeats. */
async function rules(guardrails: object | undefined): Promise<void> {
  const { data } = await g.operator<any>('GET', '/catalog')
  const document = data.document
  document.vendors.echo = { baseUrl: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}` }
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

test('a vendor sees placeholders, the caller its own texts, in every format, whole and streamed', async () => {
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
})

test('the call’s record says what was done, and content logging keeps no secret', async () => {
  await rules(HIDING)
  const { id: account, key } = await g.account()
  await g.operator('PUT', `/accounts/${account}/content`, { days: 3 })
  for (const stream of [false, true]) {
    const answer = await ask(key, `{"mail": "${MAIL.replace('@', '\\u0040')}", "n": 12345678901234567890}`, { stream })
    assert.ok((await answer.text()).includes(MAIL))
    const call = await detail(answer.headers.get('x-request-id'))
    assert.deepEqual(call.attemptLog?.guardrails, [{ rule: 'hide', on: 'request', did: 'redacted', times: 1 }])
    await g.gateway.contents.flush()
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
  assert.match(await problem({ moderate: { model: 'echo' } }), /no moderation model/)
  assert.match(await problem({ hook: { url: 'ftp://x' } }), /http/)
})
