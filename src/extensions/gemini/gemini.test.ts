// What a request of Google's format holds, and what of it is refused.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import '../../../test/formats.ts'
import { readTextTraits } from '../../catalog/traits.ts'
import { Fault } from '../../kernel/fault.ts'
import { readJson } from '../../kernel/json.ts'
import { admitMembers } from '../../protocols/text/request-members.ts'
import { readTextRequest } from '../../protocols/text/text.ts'
import { geminiFormat } from './format.ts'
import { searchesOf } from './usage.ts'

const LONG = 'word '.repeat(40_000)
const facts = {
  uid: 'public',
  traits: readTextTraits({}),
  limits: { outputTokensReserve: 4096, outputTokensFloor: 64, contextTokens: 10_000_000 },
}
const ask = (body: object) =>
  readTextRequest('gemini', readJson(Buffer.from(JSON.stringify({ model: 'public', max_tokens: 9, ...body }))), facts)

function isCovered(body: object): void {
  const held = ask(body).worst.input ?? 0
  assert.ok(held >= LONG.length, `${held} are held for ${JSON.stringify(body).slice(0, 160)}`)
}

const said = (part: object, role = 'user') => ({ contents: [{ role, parts: [part] }] })
const hi = { contents: [{ parts: [{ text: 'Hi' }] }] }

test('metadata without a search is no search', () => {
  const searches = (groundingMetadata: unknown) => searchesOf([{ groundingMetadata }])
  assert.deepEqual([{}, { webSearchQueries: [] }, { groundingChunks: [] }, undefined].map(searches), [0, 0, 0, 0])
  assert.deepEqual([{ webSearchQueries: ['a', 'b'] }, { groundingChunks: [{ web: {} }] }].map(searches), [2, 1])
})

test('a choice of models by the vendor is refused, where it chooses one', () => {
  const admitted = (generationConfig: object) =>
    admitMembers(geminiFormat.members, readJson(Buffer.from(JSON.stringify({ generationConfig })))).unknown
  assert.throws(() => admitted({ routingConfig: { autoMode: {} } }), /"generationConfig\.routingConfig"/)
  assert.throws(() => admitted({ model_config: { x: 1 } }), /"generationConfig\.model_config"/)
  assert.deepEqual(admitted({ routingConfig: {}, modelConfig: null }), [])
})

test('the Gemini format has no types: whatever a part, a tool or a schema holds is covered', () => {
  const type = 'image'
  const call = (args: object) => said({ functionCall: { name: 'f', args } }, 'model')
  for (const body of [
    said({ text: LONG, type }),
    said({ text: 'a', note: LONG }),
    said({ functionResponse: { name: 'f', response: { type, a: LONG } } }),
    said({ functionResponse: { name: 'f', response: {}, parts: [{ text: LONG, type }] } }),
    said({ inlineData: { mimeType: 'image/png', data: 'AAAA', displayName: LONG } }),
    { ...hi, systemInstruction: { parts: [{ text: LONG, type }] } },
    { ...hi, tools: [{ functionDeclarations: [{ name: 'f', type, description: LONG }] }] },
    { ...hi, generationConfig: { responseSchema: { type, description: LONG } } },
    { ...hi, generationConfig: { response_json_schema: { type, description: LONG } } },
    said({ inlineData: { mimeType: 'application/pdf', data: 'A'.repeat(40_000), source: { type: 'text' } } }),
    call({ role: LONG }),
    call({ type: LONG }),
    call({ thinking: 'a', signature: LONG }),
    call({ [LONG]: 'a' }),
    call({ a: Array.from({ length: 20_000 }, (_, i) => 1_234_567_890_123_456 + i) }),
  ])
    isCovered(body)
  const small = ask(said({ inlineData: { mimeType: 'image/png', data: 'A'.repeat(400_000) } })).worst.input ?? 0
  assert.ok(small < 6_000, `a picture is not its base64: ${small}`)
})

test('the Gemini format refuses a part of two kinds, and a name in both spellings', () => {
  const refused = (body: object) => {
    try {
      ask(body)
    } catch (error) {
      assert.ok(error instanceof Fault && error.kind === 'request_invalid', String(error))
      assert.ok(error.message.includes(error.details.param ?? '?'), error.message)
      return error.details.param
    }
    return undefined
  }
  const part = 'contents[0].parts[0]'
  const data = { mimeType: 'image/png', data: 'AAAA' }
  const declared = { name: 'f', parametersJsonSchema: { properties: { aB: {}, a_b: {} } } }
  for (const [body, param] of [
    [said({ text: 'a', functionCall: { name: 'f' } }), part],
    [said({ text: 'a', function_call: { name: 'f' } }), part],
    [said({ text: 'a', inlineData: data }), part],
    [said({ inlineData: data, fileData: { fileUri: 'https://a.example/b' } }), part],
    [said({ functionCall: { name: 'f' }, functionResponse: { name: 'f' } }), part],
    [said({ inlineData: data, inline_data: data }), `${part}.inline_data`],
    [said({ inlineData: { ...data, mime_type: 'application/pdf' } }), `${part}.inlineData.mime_type`],
    [
      { ...hi, generationConfig: { maxOutputTokens: 1, max_output_tokens: 8000 } },
      'generationConfig.max_output_tokens',
    ],
    [
      { ...hi, generationConfig: { maxOutputTokens: null, max_output_tokens: 8 } },
      'generationConfig.max_output_tokens',
    ],
    [{ ...hi, generationConfig: {}, generation_config: { candidateCount: 8 } }, 'generation_config'],
    [{ ...hi, tools: [{ functionDeclarations: [], function_declarations: [] }] }, 'tools[0].function_declarations'],
    [said({ text: 'a', thought: true, thoughtSignature: 'AAAA' }, 'model'), undefined],
    [said({ functionCall: { name: 'f', args: { aB: 1, a_b: 2 } }, thought_signature: 'AAAA' }, 'model'), undefined],
    [said({ functionResponse: { name: 'f', response: { aB: 1, a_b: 2 } } }), undefined],
    [{ ...hi, tools: [{ functionDeclarations: [declared] }] }, undefined],
    [{ ...hi, generationConfig: { responseSchema: { properties: { aB: {}, a_b: {} } } } }, undefined],
  ] as const)
    assert.equal(refused(body), param, JSON.stringify(body))
})

test('fewer candidates than asked for are a whole answer, and what follows the end is not kept without bound', () => {
  const event = (value: object) => Buffer.from(`data: ${JSON.stringify(value)}\n\n`)
  const target = { protocol: 'gemini' as const, baseUrl: 'http://vendor.test', secret: 's', headers: {}, model: 'm' }
  const options = { requestId: 'req_1', createdSeconds: 1, signal: new AbortController().signal }
  const open = (n: number) => {
    const body = { ...hi, stream: true, alt: 'sse', generationConfig: { candidateCount: n } }
    const exchange = ask(body).open(target, options)
    assert.ok('call' in exchange && exchange.stream)
    return exchange.stream({ 'content-type': 'text/event-stream' })
  }
  const candidate = { index: 0, content: { parts: [{ text: 'Hi' }] } }
  const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 5, totalTokenCount: 8 }
  const last = { candidates: [{ ...candidate, finishReason: 'STOP' }], usageMetadata }
  const fewer = open(3)
  fewer.push(event({ candidates: [candidate] }))
  fewer.push(event(last))
  fewer.end()
  assert.deepEqual([fewer.state.terminal, fewer.state.usage?.output], [true, 5])
  const cut = open(3)
  cut.push(event({ candidates: [candidate], usageMetadata }))
  cut.end()
  assert.deepEqual([cut.state.terminal, cut.state.usage], [false, undefined])

  const flood = open(1)
  let passed = flood.push(event(last))?.length ?? 0
  assert.equal(passed, 0, 'the end waits for its charge')
  for (let i = 0; i < 24; i++)
    passed += flood.push(event({ note: 'x'.repeat(1024 * 1024), usageMetadata }))?.length ?? 0
  flood.end()
  assert.ok(passed > 8 * 1024 * 1024, `${passed} bytes went on`)
  assert.deepEqual([flood.state.terminal, flood.state.usage?.output], [true, 5])
  assert.ok(passed + flood.finish('').length > 24 * 1024 * 1024, 'nothing is lost')
})
