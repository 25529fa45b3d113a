// Google's official package, unchanged, at the door that operators may open, in front of every family and of a vendor
// that speaks its format.
import { ApiError, FunctionCallingConfigMode, GoogleGenAI, Type } from '@google/genai'
import { assert, describe, pluck, test, testGateway } from '../../../test/gateway.ts'
import { FAMILIES, GEMINI_MODEL, openAllDoors } from '../../../test/sdk/families.ts'
import type { CatalogInput } from '../../catalog/document.ts'
import { silentLog } from '../../kernel/log.ts'

const OWN = 'delta-native'
/** Its doors are those of the contract. */
const CLOSED = 'alpha-5.4-closed'
/** As gateways that offer models of many makers name them. */
const SLASHED = 'google/delta-3.8/flash'
const logged: string[] = []
const write = (fields: object, message: string) => void logged.push(JSON.stringify(fields), message)
let key: string
let account: string
const g = testGateway(
  {
    log: { ...silentLog, info: write, warn: write, error: write },
    catalog(document: CatalogInput) {
      const { 'alpha-5.4': alpha, 'delta-3.8-flash': delta } = document.models
      document.models[CLOSED] = structuredClone(alpha!)
      openAllDoors(document as Parameters<typeof openAllDoors>[0])
      document.models[CLOSED]!.clientFormats = ['openai-chat']
      document.vendors.google = { baseUrl: 'sandbox/google', credential: 'DELTA_API_KEY' }
      document.models[OWN] = {
        ...delta!,
        routes: [{ vendor: 'google', protocol: 'gemini' }],
        pricing: { unit: 'credits', tiers: [{ input: '1', cachedInput: '0.5', output: '2' }] },
      }
      document.models[SLASHED] = structuredClone(document.models[OWN])
    },
  },
  async () => {
    ;({ key, id: account } = await g.account())
  },
)

const client = (apiKey = key) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: `${g.url}/gemini` } })
const weather = {
  name: 'get_weather',
  description: 'The current weather in a city.',
  parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ['city'] },
}
const QUESTION = 'What is the weather in Oslo?'

for (const model of [...FAMILIES.filter((model) => model !== GEMINI_MODEL), OWN])
  describe(model, () => {
    test('an answer with usage, and the same as a stream', async () => {
      const { models } = client()
      const config = { systemInstruction: 'Be brief.', maxOutputTokens: 2000 }
      const whole = await models.generateContent({ model, contents: 'Hello 你好', config })
      assert.equal(whole.modelVersion, model)
      assert.equal(whole.candidates?.[0]?.finishReason, 'STOP')
      assert.ok(whole.text && !whole.text.includes('<think>'))
      const { promptTokenCount = 0, candidatesTokenCount = 0 } = whole.usageMetadata ?? {}
      assert.ok(promptTokenCount > 0 && candidatesTokenCount > 0)

      let text = ''
      let last: typeof whole | undefined
      for await (const chunk of await models.generateContentStream({ model, contents: 'Hello 你好', config })) {
        assert.equal(chunk.modelVersion, model)
        text += chunk.text ?? ''
        last = chunk
      }
      assert.ok(text.length > 0)
      assert.equal(last?.candidates?.[0]?.finishReason, 'STOP')
      assert.ok((last?.usageMetadata?.candidatesTokenCount ?? 0) > 0)
    })

    test('a chat that calls a function, streamed, and takes its result back', async () => {
      const chat = client().chats.create({ model, config: { tools: [{ functionDeclarations: [weather] }] } })
      const calls = []
      for await (const chunk of await chat.sendMessageStream({ message: QUESTION }))
        calls.push(...(chunk.functionCalls ?? []))
      assert.deepEqual(pluck(calls, 'name', 'args'), [['get_weather', { city: 'Oslo' }]])
      const [{ id, name } = {}] = calls
      const functionResponse = { name: name ?? '', response: { output: '12 degrees' }, ...(id ? { id } : {}) }
      const answer = await chat.sendMessage({ message: [{ functionResponse }] })
      assert.match(answer.text ?? '', /12 degrees/)
    })

    test('an answer in the shape that was given', async () => {
      const schema = { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ['city'] }
      const config = { responseMimeType: 'application/json', responseSchema: schema, maxOutputTokens: 2000 }
      const { text = '' } = await client().models.generateContent({ model, contents: 'Extract: Oslo', config })
      assert.equal(typeof (JSON.parse(text) as { city: string }).city, 'string')
    })
  })

test('models are listed and found, and tokens are counted', async () => {
  const { models } = client()
  const names: string[] = []
  for await (const { name = '' } of await models.list()) names.push(name)
  assert.ok(names.includes(`models/${OWN}`) && !names.includes(`models/${CLOSED}`))
  assert.equal((await models.get({ model: OWN })).name, `models/${OWN}`)
  const { totalTokens = 0 } = await models.countTokens({ model: OWN, contents: 'word '.repeat(100) })
  assert.ok(totalTokens >= 100 && totalTokens < 200, String(totalTokens))
})

test('a model whose id has slashes is found by it, as it is and encoded', async () => {
  const { models } = client()
  const whole = await models.generateContent({ model: SLASHED, contents: 'Hello' })
  assert.equal(whole.modelVersion, SLASHED)
  for await (const chunk of await models.generateContentStream({ model: `models/${SLASHED}`, contents: 'Hello' }))
    assert.equal(chunk.modelVersion, SLASHED)
  assert.ok(((await models.countTokens({ model: SLASHED, contents: 'Hello' })).totalTokens ?? 0) > 0)
  assert.equal((await models.get({ model: SLASHED })).name, `models/${SLASHED}`)

  const body = { contents: [{ parts: [{ text: 'Hi' }] }] }
  const spelt = [SLASHED, encodeURIComponent(SLASHED), SLASHED.replaceAll('/', '%2f'), `google//delta-3.8/flash`]
  for (const id of spelt) {
    const base = `/gemini/v1beta/models/${id}`
    assert.equal((await g.call(`${base}:generateContent?key=${key}`, undefined, body)).status, 200, id)
    assert.equal((await g.call(`${base}:streamGenerateContent?alt=sse`, key, body)).status, 200, id)
    for (const place of ['/v1/models', '/alpha/v1/models', '/gemini/v1beta/models'])
      assert.equal((await g.call(`${place}/${id}`, key)).status, 200, `${place}/${id}`)
  }
  // Another action, another method and another model are still told apart.
  for (const [path, status] of [
    [`/gemini/v1beta/models/${SLASHED}:predict`, 404],
    [`/gemini/v1beta/models/google/none:generateContent`, 404],
    ['/gemini/v1beta/models/', 405],
  ] as const)
    assert.equal((await g.call(path, key, body)).status, status, path)
})

test('a call is charged as its vendor reports, with thoughts and what was cached', async () => {
  const before = (await g.balance(account)).posted
  const contents = `${'A long beginning that is cached. '.repeat(400)}Hello`
  const config = { thinkingConfig: { includeThoughts: true } }
  await client().models.generateContent({ model: OWN, contents, config })
  const second = await client().models.generateContent({ model: OWN, contents, config })
  const used = second.usageMetadata ?? {}
  assert.ok((used.cachedContentTokenCount ?? 0) > 0 && (used.thoughtsTokenCount ?? 0) > 0)
  assert.ok(second.candidates?.[0]?.content?.parts?.some(({ thought }) => thought === true))
  const row = await g.lastCall(account)
  const cached = used.cachedContentTokenCount ?? 0
  const output = (used.candidatesTokenCount ?? 0) + (used.thoughtsTokenCount ?? 0)
  const micro = ((used.promptTokenCount ?? 0) - cached) * 2 + cached + output * 4
  assert.equal(row.charged, BigInt(Math.ceil(micro / 2)))
  assert.equal(row.endpoint, 'gemini')
  assert.ok((await g.balance(account)).posted < before)
})

test('safety stops, blocked prompts and lengths are told as such', async () => {
  const { models } = client()
  const reason = async (contents: string, config = {}) => {
    const answer = await models.generateContent({ model: OWN, contents, config })
    return answer.candidates?.[0]?.finishReason ?? answer.promptFeedback?.blockReason
  }
  assert.equal(await reason('[[safety]] x'), 'SAFETY')
  assert.equal(await reason('[[blocked]] x'), 'PROHIBITED_CONTENT')
  assert.equal(await reason('Tell me a long story.', { maxOutputTokens: 5 }), 'MAX_TOKENS')
  const chat = await g.call('/v1/chat/completions', key, {
    model: OWN,
    messages: [{ role: 'user', content: '[[safety]] x' }],
  })
  assert.match(await chat.text(), /"finish_reason":"content_filter"/)
})

test('a function that must be called is called', async () => {
  const config = {
    tools: [{ functionDeclarations: [weather] }],
    toolConfig: {
      functionCallingConfig: { mode: FunctionCallingConfigMode.ANY, allowedFunctionNames: ['get_weather'] },
    },
  }
  for (const model of [OWN, 'alpha-5.4', 'beta-opus-4-5']) {
    const { functionCalls } = await client().models.generateContent({ model, contents: 'In Oslo', config })
    assert.equal(functionCalls?.[0]?.name, 'get_weather')
  }
})

async function refusal(run: () => Promise<unknown>): Promise<{ status: number; said: string }> {
  try {
    await run()
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error))
    return { status: error.status, said: error.message }
  }
  assert.fail('it was not refused')
}

test('refusals have the shape of the format: before a call, of a vendor, in a stream, and where there is nothing', async () => {
  const { models } = client()
  const ask = (model: string, contents: string, config = {}) => models.generateContent({ model, contents, config })
  const cases: Array<[status: number, word: string, run: () => Promise<unknown>]> = [
    [401, 'UNAUTHENTICATED', () => client('tg_live_nobody').models.generateContent({ model: OWN, contents: 'Hi' })],
    [404, 'NOT_FOUND', () => ask('no-such-model', 'Hi')],
    [400, 'INVALID_ARGUMENT', () => ask(CLOSED, 'Hi')],
    [400, 'INVALID_ARGUMENT', () => ask(OWN, 'Hi', { maxOutputTokens: 0.5 })],
    [400, 'googleMaps', () => ask(OWN, 'Hi', { tools: [{ googleMaps: {} }] })],
    [400, 'cachedContent', () => ask(OWN, 'Hi', { cachedContent: 'cachedContents/1' })],
    [400, 'responseModalities', () => ask(OWN, 'Hi', { responseModalities: ['IMAGE'] })],
    [429, 'RESOURCE_EXHAUSTED', () => ask(OWN, '[[429 retry-after=3]]')],
    [502, 'INTERNAL', () => ask(OWN, '[[500]]')],
  ]
  for (const [status, word, run] of cases) {
    const told = await refusal(run)
    assert.equal(told.status, status, told.said)
    assert.ok(told.said.includes(word), told.said)
  }
  const streamed = await refusal(async () => {
    for await (const _ of await models.generateContentStream({ model: OWN, contents: '[[error-in-stream=2]] Hi' }));
  })
  assert.equal(streamed.status, 503)
  const nowhere = await g.call('/gemini/v1beta/models/x:predict', key, {})
  assert.equal(((await nowhere.json()) as { error: { code: number; status: string } }).error.status, 'NOT_FOUND')
})

test('a key may stand in the address, and no log ever holds one', async () => {
  const body = { contents: [{ parts: [{ text: 'Hi' }] }] }
  const path = `/gemini/v1beta/models/${OWN}:generateContent`
  assert.equal((await g.call(`${path}?key=${key}`, undefined, body)).status, 200)
  assert.equal((await g.call(`${path}?key=tg_live_wrong`, undefined, body)).status, 401)
  assert.equal(
    (await g.call(`${path}?key=${key}`, undefined, { contents: [{ parts: [{ text: '[[500]]' }] }] })).status,
    502,
  )
  // Elsewhere an address is no place for a key.
  assert.equal((await g.call(`/v1/models?key=${key}`, undefined)).status, 401)
  assert.ok(!logged.some((line) => line.includes(key)))
})

test('without alt=sse a stream is one JSON array, whole, broken and from every family', async () => {
  for (const model of [OWN, 'alpha-5.4']) {
    const path = `/gemini/v1beta/models/${model}:streamGenerateContent`
    const answer = await g.call(path, key, { contents: [{ parts: [{ text: 'Count to five.' }] }] })
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
    const pieces = (await answer.json()) as Array<{ candidates: Array<{ finishReason?: string }> }>
    assert.ok(pieces.length > 1)
    assert.equal(pieces.at(-1)?.candidates[0]?.finishReason, 'STOP')
    const broken = await g.call(path, key, { contents: [{ parts: [{ text: '[[error-in-stream=2]] Hi' }] }] })
    const told = (await broken.json()) as Array<{ error?: { code: number } }>
    assert.ok([502, 503].includes(told.at(-1)?.error?.code ?? 0))
  }
})

test('a quote reads the format, and an idempotency key belongs to one model', async () => {
  const contents = [{ parts: [{ text: 'Hello' }] }]
  const quote = await g.call('/v1/quote', key, { model: OWN, contents })
  const { data } = (await quote.json()) as { data: { endpoint: string; worstCase: { output: number } } }
  assert.deepEqual([data.endpoint, data.worstCase.output], ['gemini', 65_536])
  const send = (model: string) =>
    g.call(
      `/gemini/v1beta/models/${model}:generateContent`,
      key,
      { contents },
      { headers: { 'idempotency-key': 'g-1' } },
    )
  assert.equal((await send(OWN)).status, 200)
  assert.equal((await send(OWN)).status, 200)
  assert.equal((await send('alpha-5.4')).status, 409)
})

test('in Vertex mode the SDK works with an express key, and with a project whose token is the key', async () => {
  const baseUrl = `${g.url}/gemini`
  const express = new GoogleGenAI({ vertexai: true, apiKey: key, httpOptions: { baseUrl } })
  const headers = { authorization: `Bearer ${key}` }
  const project = new GoogleGenAI({
    vertexai: true,
    project: 'some-project',
    location: 'europe-west4',
    // Instead of a login at Google.
    googleAuthOptions: { authClient: { getRequestHeaders: async () => new Headers(headers) } as never },
    httpOptions: { baseUrl },
  })
  for (const { models } of [express, project]) {
    const whole = await models.generateContent({ model: OWN, contents: 'Hello' })
    assert.ok(whole.text)
    let text = ''
    for await (const chunk of await models.generateContentStream({ model: OWN, contents: 'Hello' }))
      text += chunk.text ?? ''
    assert.ok(text.length > 0)
    assert.ok(((await models.countTokens({ model: OWN, contents: 'Hello' })).totalTokens ?? 0) > 0)
  }
  const nobody = new GoogleGenAI({ vertexai: true, apiKey: 'tg_live_nobody', httpOptions: { baseUrl } })
  assert.equal((await refusal(() => nobody.models.generateContent({ model: OWN, contents: 'Hi' }))).status, 401)
})
