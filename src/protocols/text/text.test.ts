import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fixtureOf } from '../../../test/fixture.ts'
import { CLIENT_FORMATS } from '../../../test/formats.ts'
import { words } from '../../../test/lists.ts'
import { runs } from '../../../test/runs.ts'
import type { Route } from '../../catalog/document.ts'
import { readTextTraits, type TextTraitsGiven } from '../../catalog/traits.ts'
import { Fault } from '../../kernel/fault.ts'
import { readJson } from '../../kernel/json.ts'
import type { ClientFormatName } from '../../meter/kind.ts'
import { routesFor } from '../../routing/route.ts'
import type { OpenOptions, PaidRequest, Target } from '../protocol.ts'
import { vendorCall } from '../vendor-call.ts'
import { countTokens, type ModelFacts, readModelName, readTextRequest } from './text.ts'

const LIMITS = { outputTokensReserve: 4096, outputTokensFloor: 64 }
const model = (traits: TextTraitsGiven = {}, limits: Partial<ModelFacts['limits']> = {}): ModelFacts => ({
  uid: 'public',
  traits: readTextTraits(traits),
  limits: { ...LIMITS, ...limits },
})
const json = (value: unknown) => readJson(Buffer.from(JSON.stringify(value)))
const options: OpenOptions = { requestId: 'req_1', createdSeconds: 1, signal: new AbortController().signal }
const target = (protocol: ClientFormatName): Target => ({
  protocol,
  baseUrl: 'http://vendor.test/v1',
  passesUnknown: true,
  secret: 'sk-secret',
  headers: { 'x-catalogue': 'yes' },
  model: 'vendor-name',
})

const hello = [{ role: 'user', content: 'Hi' }]
const BODIES: Record<ClientFormatName, Record<string, unknown>> = {
  'openai-chat': { model: 'public', messages: hello },
  'openai-responses': { model: 'public', input: 'Hi' },
  'anthropic-messages': { model: 'public', messages: hello, max_tokens: 10 },
  gemini: { model: 'public', contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
}

/** The field that a refusal names. */
function refused(clientFormat: ClientFormatName, raw: string, facts = model()): string | undefined {
  try {
    readTextRequest(clientFormat, readJson(Buffer.from(raw)), facts)
  } catch (error) {
    assert.ok(error instanceof Fault, String(error))
    assert.equal(error.kind, 'request_invalid')
    assert.ok(error.message.includes(error.details.param ?? ''), error.message)
    return error.details.param ?? 'body'
  }
  return undefined
}
const with_ = (clientFormat: ClientFormatName, over: object) => JSON.stringify({ ...BODIES[clientFormat], ...over })

test('what a turn refers to is found beside its text, in a request that is plain else', () => {
  const referredTo = (turn: object) => {
    const messages = [{ role: 'assistant', content: 'Hm.', ...turn }, ...hello]
    return readTextRequest('openai-chat', json({ model: 'public', messages, max_tokens: 9 }), model()).continues
  }
  assert.deepEqual(
    referredTo({ audio: { id: 'audio_1' } })?.map(({ id }) => id),
    ['audio_1'],
  )
  assert.equal(referredTo({}), undefined)
})

test('a missing or wrong model is refused by name', () => {
  for (const body of [{}, { model: null }, { model: 5 }, { model: '' }, { model: ['a'] }])
    assert.throws(
      () => readModelName(json(body)),
      (error) => error instanceof Fault && error.details.param === 'model',
    )
  assert.equal(readModelName(json({ model: 'alpha-5.4' })), 'alpha-5.4')
})

test('what decides a price may be written in one way only, because some vendors do not tell capitals apart', () => {
  for (const name of ['Model', 'MODEL', 'N', 'Max_Tokens', 'ſtream', 'max_to\u212aens', 'Service_Tier', 'Input'])
    assert.throws(
      () => readModelName(json({ model: 'alpha-5.4', [name]: 1 })),
      (error) => error instanceof Fault && error.details.param === name,
      name,
    )
  assert.equal(readModelName(json({ model: 'alpha-5.4', Odd: 1, topK: 2 })), 'alpha-5.4')
})

test('the chat, Responses and Messages endpoints refuse what the contract and their formats refuse, and name the field', () => {
  type Case = readonly [over: object | string, field?: string]
  const cases = fixtureOf<Record<ClientFormatName, Case[]>>('refused-fields.yaml')
  for (const [clientFormat, all] of Object.entries(cases) as [ClientFormatName, Case[]][])
    for (const [over, field] of all) {
      const body = with_(clientFormat, typeof over === 'string' ? { [over]: undefined } : over)
      assert.equal(refused(clientFormat, body), field, `${clientFormat} ${JSON.stringify(over)}`)
    }
  assert.equal(refused('openai-chat', with_('openai-chat', { n: 2 }), model({ nMax: 1 })), 'n')
  assert.equal(refused('openai-chat', with_('openai-chat', { n: 1.0 }), model({ nMax: 1 })), undefined)
})

test('numbers that a computer cannot hold as written are refused in every numeric field', () => {
  const fields: Record<ClientFormatName, string[]> = {
    'openai-chat': words(`
      temperature top_p frequency_penalty presence_penalty n max_tokens max_completion_tokens seed top_logprobs
    `),
    'openai-responses': ['temperature', 'top_p', 'max_output_tokens', 'top_logprobs', 'max_tool_calls'],
    'anthropic-messages': ['temperature', 'top_p', 'top_k', 'max_tokens'],
    gemini: [],
  }
  const numbers = words('NaN Infinity 1e309 -1e309 -0 -0.0 1e-400 "1" 9007199254740993 1e400 true [1] {}')
  for (const [clientFormat, names] of Object.entries(fields) as [ClientFormatName, string[]][])
    for (const name of names)
      for (const number of numbers) {
        const body = { ...BODIES[clientFormat] }
        delete body[name]
        const raw = `${JSON.stringify(body).slice(0, -1)},"${name}":${number}}`
        assert.ok(refused(clientFormat, raw), `${clientFormat} ${name} ${number}`)
      }
  for (const number of ['0', '0.0', '0e5', '1', '1.0', '2e0']) {
    const raw = `${with_('openai-chat', {}).slice(0, -1)},"temperature":${number}}`
    assert.equal(refused('openai-chat', raw), undefined, number)
  }
})

test('an ask knows which formats cannot carry it, and why', () => {
  const refusal = (clientFormat: ClientFormatName, over: object) =>
    CLIENT_FORMATS.map(
      (back) =>
        readTextRequest(clientFormat, json({ ...BODIES[clientFormat], ...over }), model()).refusal?.(back, 'any')
          ?.details.param,
    )
  for (const [field, value] of Object.entries({ previous_response_id: 'x', prompt: { id: 'p' }, conversation: 'x' }))
    assert.deepEqual(refusal('openai-responses', { [field]: value }), [field, undefined, field, field])
  const file = [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }]
  const at = 'input[0].content[0]'
  assert.deepEqual(refusal('openai-responses', { input: file }), [at, undefined, at, at])
  assert.deepEqual(refusal('openai-chat', { n: 2 }), [undefined, 'n', 'n', 'n'])
  const several = 'candidateCount'
  assert.deepEqual(refusal('gemini', { generationConfig: { [several]: 2 } }), [several, several, several, undefined])
  for (const clientFormat of CLIENT_FORMATS)
    assert.deepEqual(refusal(clientFormat, {}), [undefined, undefined, undefined, undefined])
})

test('tools go to the routes that serve them, where the family says so', () => {
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const alpha = model({ toolsNeed: 'tools' })
  const plain = { vendor: 'one', order: 0, weight: 1, enabled: true }
  const routes: Route[] = [
    { ...plain, protocol: 'openai-chat' },
    { ...plain, protocol: 'openai-responses', serves: ['tools'] },
  ]
  const routed = (asked: PaidRequest) =>
    routesFor(asked, { routes }, { vendors: {}, models: {}, endpoints: {} } as never)
  const ask = (over: object) => readTextRequest('openai-chat', json({ ...BODIES['openai-chat'], ...over }), alpha)
  assert.deepEqual(ask({ tools }).needs, ['tools'])
  assert.equal(ask({ tools: [] }).needs, undefined)
  assert.deepEqual(routed(ask({ n: 2 })), [routes[0]])
  assert.deepEqual(routed(ask({ tools })), [routes[1]])
  assert.throws(
    () => routed(ask({ n: 2, tools })),
    (error) => error instanceof Fault && error.details.param === 'n',
  )
})

test('tools that the vendor runs are refused unless the catalog lets them through, and kept answers where it says so', () => {
  const cases: Array<[ClientFormatName, object, string]> = [
    ['openai-responses', { tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } }, 'tools[0].type'],
    [
      'openai-responses',
      {
        tools: [
          { type: 'function', name: 'f' },
          { type: 'code_interpreter', container: {} },
        ],
      },
      'tools[1].type',
    ],
    [
      'anthropic-messages',
      { tools: [{ type: 'web_search_20260318', name: 'web_search' }], tool_choice: { type: 'any' } },
      'tools[0].type',
    ],
    ['anthropic-messages', { thread: { type: 'create' } }, 'thread'],
    ['openai-chat', { web_search_options: {} }, 'web_search_options'],
    ['openai-responses', { previous_response_id: 'resp_of_somebody' }, 'previous_response_id'],
    ['openai-responses', { input: [{ type: 'item_reference', id: 'x' }] }, 'input[0]'],
  ]
  for (const [clientFormat, over, param] of cases) {
    assert.equal(refused(clientFormat, with_(clientFormat, over), model({ vendorState: false })), param)
    const open = model({ hostedTools: ['web_search', 'code_interpreter'] })
    assert.equal(refused(clientFormat, with_(clientFormat, over), open), undefined, param)
  }
})

test('no spelling or place brings in a tier or a search that is not paid for', () => {
  const shell = { type: 'shell', environment: { type: 'container_auto' } }
  const cases: Array<[ClientFormatName, object, string]> = [
    // Two spellings of one tier, of which one is looked at here and the other there.
    ['openai-chat', { service_tier: 'priority', serviceTier: 'default' }, 'service_tier'],
    ['anthropic-messages', { service_tier: 'priority', serviceTier: 'flex' }, 'service_tier'],
    ['openai-chat', { service_tier: 'flex', serviceTier: 'priority' }, 'serviceTier'],
    // What other vendors of these formats call a search.
    ['openai-chat', { search_parameters: { mode: 'on' } }, 'search_parameters'],
    ['openai-chat', { plugins: [{ id: 'web' }] }, 'plugins'],
    ['openai-chat', { enable_search: true }, 'enable_search'],
    ['openai-chat', { web_search_options: [] }, 'web_search_options'],
    ['openai-chat', { tools: [{ type: 'builtin_function', function: { name: '$web_search' } }] }, 'tools[0].type'],
    ['openai-responses', { tools: [{ type: 'x_search' }] }, 'tools[0].type'],
    ['openai-responses', { tools: [shell] }, 'tools[0].type'],
    [
      'openai-responses',
      { tools: [{ type: 'namespace', name: 'all', tools: [{ type: 'web_search' }] }] },
      'tools[0].tools[0].type',
    ],
  ]
  for (const [clientFormat, over, param] of cases)
    assert.equal(refused(clientFormat, with_(clientFormat, over)), param, JSON.stringify(over))
  const harmless = { search_parameters: { mode: 'off' }, plugins: [], enable_search: false, service_tier: 'flex' }
  assert.equal(refused('openai-chat', with_('openai-chat', harmless)), undefined)
  const local = { tools: [{ type: 'shell', environment: { type: 'local' } }] }
  assert.equal(refused('openai-responses', with_('openai-responses', local)), undefined)
  // With a price each way to ask for a search is paid for, and bounded.
  const tiers = [{ input: 1n, output: 1n, webSearch: 1n }]
  const multipliers = { service_tier: { priority: 2_000_000n, flex: 500_000n } }
  const priced: ModelFacts = { ...model(), pricing: { unit: 'credits', tiers, multipliers } }
  const ask = (clientFormat: ClientFormatName, over: object) =>
    readTextRequest(clientFormat, json({ ...BODIES[clientFormat], ...over }), priced)
  assert.equal(ask('openai-chat', { tools: [{ type: 'web_search' }] }).uses?.webSearch, 1)
  assert.equal(ask('openai-chat', { web_search_options: {}, n: 2 }).uses?.webSearch, 2)
  const unbound = ask('openai-responses', { tools: [{ type: 'web_search' }], max_tool_calls: null })
  assert.deepEqual([unbound.worst.webSearch, unbound.usesOpen?.most, unbound.usesOpen?.each.webSearch], [1, 10, 1])
  const both = with_('openai-chat', { service_tier: 'priority', serviceTier: 'flex' })
  assert.equal(refused('openai-chat', both, priced), 'serviceTier')
})

test('a request with plain members alone is held and priced like one that also has an empty list of tools', () => {
  const tiers = [
    { upTo: 20, input: 1n, output: 1n, inputImage: 2n },
    { input: 2n, output: 2n, inputImage: 3n, webSearch: 1n },
  ]
  const multipliers = { service_tier: { priority: 2_000_000n, flex: 500_000n }, speed: { fast: 3_000_000n } }
  const priced: ModelFacts = { ...model(), pricing: { unit: 'credits', tiers, multipliers } }
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
  const cached = { type: 'text', text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } }
  const overs: object[] = [
    {},
    { n: 3 },
    { max_tokens: 5 },
    { temperature: 0, top_p: 1, stop: ['a'], user: 'ann', stream: true },
    ...[[image], [cached]].map((content) => ({ messages: [{ role: 'user', content }] })),
  ]
  for (const facts of [model(), model({ hostedTools: ['web_search'], vendorState: true }), priced])
    for (const over of overs) {
      const [plain, other] = [over, { ...over, tools: [] }].map((body) => {
        const asked = readTextRequest('openai-chat', json({ ...BODIES['openai-chat'], ...body }), facts)
        const { sent: _, refusal: __, open: ___, exact: ____, ...rest } = asked
        return { ...rest, refused: asked.refusal?.('openai-chat', 'any') }
      })
      assert.deepEqual(plain, other, JSON.stringify(over))
    }
})

test('the worst case covers the prompt and every choice, and base64 is not taken for text', () => {
  const worst = (over: object, limits = {}) =>
    readTextRequest('openai-chat', json({ ...BODIES['openai-chat'], ...over }), model({}, limits))
  const text = 'word '.repeat(1000)
  const long = worst({ messages: [{ role: 'user', content: text }] })
  assert.ok(long.worst.input! >= text.length && long.worst.input! < text.length + 100)
  assert.equal(long.worst.output, 4096)
  assert.deepEqual(long.outputOpen, { floorTokens: 64, mostTokens: 4096, reserveTokens: 4096 })
  const cjk = '你好'.repeat(1000)
  assert.ok(worst({ messages: [{ role: 'user', content: cjk }] }).worst.input! >= 2000)
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(1_000_000)}` } }
  const seen = worst({ messages: [{ role: 'user', content: [image, image] }] }).worst.input!
  assert.ok(seen > 10_000 && seen < 10_200, String(seen))
  const limited = worst({ max_tokens: 100, n: 3 })
  assert.equal(limited.worst.output, 300)
  assert.equal(limited.outputOpen, undefined)
  assert.equal(worst({ max_tokens: 100, max_completion_tokens: 50 }).worst.output, 50)
  assert.equal(worst({ max_tokens: 1_000_000 }, { outputTokensMax: 8000 }).worst.output, 8000)
  assert.equal(worst({ messages: [{ role: 'user', content: text }] }, { contextTokens: 500 }).worst.input, 500)
  const stored = { ...BODIES['openai-responses'], previous_response_id: 'resp_1' }
  assert.equal(
    readTextRequest('openai-responses', json(stored), model({}, { contextTokens: 128_000 })).worst.input,
    128_000,
  )
  const counted = countTokens(json({ model: 'm', system: text, messages: hello }))
  assert.ok(counted >= text.length / 4 && counted < text.length / 4 + 50)
  assert.throws(() => countTokens(json({ model: 'm' })), Fault)
})

test('a chat body passes untouched but for the model, the usage opt-in, the cap and what the family needs', async () => {
  const forwarded = async (over: object, traits: TextTraitsGiven = {}, cap?: number) => {
    const ask = readTextRequest('openai-chat', json({ ...BODIES['openai-chat'], ...over }), model(traits))
    const { call } = await ask.open(target('openai-chat'), { ...options, ...(cap ? { outputTokensCap: cap } : {}) })
    return JSON.parse(String(call.body)) as Record<string, unknown>
  }
  const base = { model: 'vendor-name', messages: hello }
  assert.deepEqual(await forwarded({ top_p: 1, stop: ['a'], odd: { x: null } }), {
    ...base,
    top_p: 1,
    stop: ['a'],
    odd: { x: null },
  })
  assert.deepEqual(await forwarded({ stream: true }), {
    ...base,
    stream: true,
    stream_options: { include_usage: true },
  })
  assert.deepEqual(
    await forwarded({ stream: true, stream_options: { include_obfuscation: false, include_usage: false } }),
    { ...base, stream: true, stream_options: { include_obfuscation: false, include_usage: true } },
  )
  const completion: TextTraitsGiven = { tokensField: 'max_completion_tokens' }
  assert.deepEqual(await forwarded({ max_tokens: 5 }, completion), { ...base, max_completion_tokens: 5 })
  assert.deepEqual(await forwarded({ max_tokens: 5, max_completion_tokens: 7 }, completion), {
    ...base,
    max_completion_tokens: 7,
  })
  // One limit under one name, of which the contract says which counts.
  assert.deepEqual(await forwarded({ max_tokens: 5, max_completion_tokens: 7 }), { ...base, max_tokens: 7 })
  assert.deepEqual(await forwarded({ max_completion_tokens: 7 }, { tokensField: 'max_tokens' }), {
    ...base,
    max_tokens: 7,
  })
  assert.deepEqual(await forwarded({}, {}, 100), { ...base, max_tokens: 100 })
  assert.deepEqual(await forwarded({ n: 3 }, completion, 100), { ...base, n: 3, max_completion_tokens: 100 })
  assert.deepEqual(await forwarded({ max_tokens: 50 }, {}, 100), { ...base, max_tokens: 50 })
  assert.deepEqual(await forwarded({ max_tokens: null }, completion, 100), { ...base, max_completion_tokens: 100 })
  assert.deepEqual(await forwarded({ thinking: { type: 'disabled' } }, { dropParams: ['thinking'] }), base)
  assert.deepEqual(await forwarded({ thinking: { type: 'disabled' } }), { ...base, thinking: { type: 'disabled' } })
  assert.deepEqual(await forwarded({}, { addParams: ['reasoning_split=true'] }), { ...base, reasoning_split: true })

  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content: { google: 1 } }
  const history = [
    { role: 'developer', content: [{ type: 'text', text: 'x', cache_control: {} }] },
    { role: 'assistant', content: null, reasoning_content: 'r', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', content: 'y' },
  ]
  assert.deepEqual((await forwarded({ messages: history })).messages, history)
  const stripped = await forwarded(
    { messages: history },
    { developerRole: false, stripKeys: ['cache_control', 'reasoning_content', 'extra_content'] },
  )
  assert.deepEqual(stripped.messages, [
    { role: 'system', content: [{ type: 'text', text: 'x' }] },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c', content: 'y' },
  ])
  const bare = [{ role: 'assistant', content: null, tool_calls: [{ ...call, extra_content: undefined }] }]
  const mended = await forwarded({ messages: bare }, { reasoningReplay: true, callExtra: '{"google":{"s":1}}' })
  assert.deepEqual(mended.messages, [
    {
      role: 'assistant',
      content: null,
      reasoning_content: '',
      tool_calls: [
        { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content: { google: { s: 1 } } },
      ],
    },
  ])
})

test('each format authenticates its own way, and forwards what a Messages caller says of versions', async () => {
  const headers = async (clientFormat: ClientFormatName, callerHeaders = {}) =>
    vendorCall(
      (
        await readTextRequest(clientFormat, json(BODIES[clientFormat]), model()).open(target(clientFormat), {
          ...options,
          callerHeaders,
        })
      ).call,
      target(clientFormat),
    ).headers
  assert.equal((await headers('openai-chat')).authorization, 'Bearer sk-secret')
  assert.equal((await headers('openai-responses')).authorization, 'Bearer sk-secret')
  const plain = await headers('anthropic-messages')
  assert.equal(plain['x-api-key'], 'sk-secret')
  assert.equal(plain.authorization, undefined)
  assert.equal(plain['anthropic-version'], '2023-06-01')
  assert.equal(plain['x-catalogue'], 'yes')
  const said = await headers('anthropic-messages', { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'a,b' })
  assert.equal(said['anthropic-version'], '2026-10-21')
  assert.equal(said['anthropic-beta'], 'a,b')
})

test('for any body that is accepted, the vendor gets what was checked, but for the documented edits', () => {
  const anything = fc.jsonValue({ maxDepth: 2 })
  const name = fc.oneof(
    fc.constantFrom('temperature', 'stop', 'constructor', 'stream_options', 'metadata', 'user', 'x'),
    fc.string({ maxLength: 6 }),
  )
  const body = fc.record({
    extra: fc.dictionary(name, anything, { maxKeys: 3 }),
    stream: fc.boolean(),
    content: fc.string({ maxLength: 10 }),
    order: fc.boolean(),
  })
  let accepted = 0
  fc.assert(
    fc.property(body, ({ extra, stream, content, order }) => {
      const own = { model: 'public', messages: [{ role: 'user', content }], stream }
      const sent = order ? { ...extra, ...own } : { ...own, ...extra, ...own }
      let ask: ReturnType<typeof readTextRequest>
      let read: ReturnType<typeof readJson>
      try {
        read = json(sent)
        ask = readTextRequest('openai-chat', read, model())
      } catch (error) {
        assert.ok(error instanceof Fault)
        return
      }
      accepted++
      const { call } = ask.open(target('openai-chat'), options) as { call: { body: string } }
      const got = readJson(Buffer.from(call.body)).value
      const options_ = read.value.stream_options
      const expected: Record<string, unknown> = { ...read.value, model: 'vendor-name' }
      if (stream) expected.stream_options = { ...(options_ as object), include_usage: true }
      assert.deepEqual(got, expected)
    }),
    { numRuns: runs(3_000, 50_000) },
  )
  assert.ok(accepted > runs(600, 10_000), `${accepted} bodies were accepted`)
})
