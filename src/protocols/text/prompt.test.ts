// What a hold covers is what the vendor gets: no place of a request carries text past the measure.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTextTraits } from '../../catalog/traits.ts'
import { Fault } from '../../kernel/fault.ts'
import { readJson } from '../../kernel/json.ts'
import type { ClientFormatName } from '../../meter/kind.ts'
import { rollUpChat } from './openai-chat/pass.ts'
import { readTextRequest } from './text.ts'

const LONG = 'word '.repeat(40_000)
const facts = {
  uid: 'public',
  traits: readTextTraits({}),
  limits: { outputTokensReserve: 4096, outputTokensFloor: 64, contextTokens: 10_000_000 },
}
const ask = (clientFormat: ClientFormatName, body: object) =>
  readTextRequest(
    clientFormat,
    readJson(Buffer.from(JSON.stringify({ model: 'public', max_tokens: 9, ...body }))),
    facts,
  )

function isCovered(clientFormat: ClientFormatName, body: object): void {
  const held = ask(clientFormat, body).worst.input ?? 0
  assert.ok(held >= LONG.length, `${clientFormat} holds ${held} for ${JSON.stringify(body).slice(0, 160)}`)
}

const said = (part: object, role = 'user') => ({ contents: [{ role, parts: [part] }] })
const hi = { contents: [{ parts: [{ text: 'Hi' }] }] }

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
    isCovered('gemini', body)
  const small =
    ask('gemini', said({ inlineData: { mimeType: 'image/png', data: 'A'.repeat(400_000) } })).worst.input ?? 0
  assert.ok(small < 6_000, `a picture is not its base64: ${small}`)
})

test('the Gemini format refuses a part of two kinds, and a name in both spellings', () => {
  const refused = (body: object) => {
    try {
      ask('gemini', body)
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

test('a type where a format has none, or another than the reader looks at, hides no text', () => {
  const hello = { role: 'user', content: 'Hi' }
  const chat = (...messages: object[]) => isCovered('openai-chat', { messages: [hello, ...messages] })
  for (const type of ['image', 'image_url', 'file', 'document', 'input_audio']) {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: LONG } }
    chat({ role: 'user', type, content: LONG })
    chat({ role: 'user', type, content: [{ type: 'text', text: LONG }] })
    chat({ role: 'user', type, content: `data:image/png;base64,${LONG}` })
    chat({ role: 'user', type, source: { type: 'content', content: 'a' }, content: LONG })
    chat({ role: 'assistant', tool_calls: [{ ...call, type }] })
    chat({ role: 'assistant', tool_calls: [{ ...call, function: { ...call.function, type } }] })
    const described = { name: 'f', type, description: LONG }
    const kept = { name: 'f', type, parameters: { data: LONG } }
    for (const named of [described, kept]) {
      isCovered('openai-chat', { messages: [hello], tools: [{ type: 'function', function: named }] })
      isCovered('openai-chat', { messages: [hello], functions: [named] })
    }
    const format = { type: 'json_schema', json_schema: { ...described, schema: {} } }
    isCovered('openai-chat', { messages: [hello], response_format: format })
    isCovered('anthropic-messages', { messages: [{ ...hello, type, content: LONG }] })
    isCovered('anthropic-messages', { messages: [hello], system: [{ type, text: LONG }] })
    const found = { type: 'search_result', title: 't', source: 's', content: [{ type, text: LONG }] }
    isCovered('anthropic-messages', { messages: [{ role: 'user', content: [found] }] })
    const output = { type: 'json_schema', schema: { description: LONG } }
    isCovered('anthropic-messages', { messages: [hello], output_config: { type, format: output } })
    const file = { type: 'input_file', file_data: 'A'.repeat(40_000), source: { type: 'text' } }
    isCovered('openai-responses', { input: [{ role: 'user', content: [file] }] })
    isCovered('openai-responses', { input: 'Hi', text: { type, format: { ...output, name: 'f' } } })
    isCovered('openai-responses', { input: [hello, { role: 'assistant', content: [{ type, text: LONG }] }] })
    isCovered('openai-responses', {
      input: [hello, { type: 'reasoning', encrypted_content: 'a', summary: [{ type, text: LONG }] }],
    })
  }
})

test('a caller’s own JSON is covered with its names and numbers, wherever a format takes it', () => {
  const hello = { role: 'user', content: 'Hi' }
  const own = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`n${i}`, i]))
  const env = Object.fromEntries(Object.keys(own).map((name) => [name, '1']))
  const run = { type: 'exec', command: ['ls'], env }
  const shell = { type: 'local_shell_call', id: 'x', call_id: 'c', status: 'completed', action: run }
  const lines = Array.from({ length: 2_000 }, () => ({
    stdout: '',
    stderr: '',
    outcome: { type: 'exit', exit_code: 0 },
  }))
  const tool = { name: 'f', input_schema: { type: 'object' }, input_examples: [own] }
  for (const [format, body, tokens] of [
    ['openai-chat', { messages: [hello], documents: [own] }, JSON.stringify(own).length],
    ['openai-chat', { messages: [hello], chat_template_kwargs: own }, JSON.stringify(own).length],
    ['openai-responses', { input: [hello, shell] }, JSON.stringify(env).length],
    // A quarter of its JSON, if a vendor writes it as that.
    ['openai-responses', { input: [hello, { type: 'shell_call_output', call_id: 'c', output: lines }] }, 2_000 * 25],
    ['anthropic-messages', { messages: [hello], tools: [tool] }, JSON.stringify(own).length],
  ] as const) {
    const held = ask(format, body).worst.input ?? 0
    assert.ok(held >= tokens, `${format} holds ${held} of ${tokens} for ${JSON.stringify(body).slice(0, 160)}`)
  }
})

test('fewer candidates than asked for are a whole answer, and what follows the end is not kept without bound', () => {
  const event = (value: object) => Buffer.from(`data: ${JSON.stringify(value)}\n\n`)
  const target = { protocol: 'gemini' as const, baseUrl: 'http://vendor.test', secret: 's', headers: {}, model: 'm' }
  const options = { requestId: 'req_1', createdSeconds: 1, signal: new AbortController().signal }
  const open = (n: number) => {
    const body = { ...hi, stream: true, alt: 'sse', generationConfig: { candidateCount: n } }
    const exchange = ask('gemini', body).open(target, options)
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

test('a long stream with logprobs and details is put together in linear time', () => {
  const pieces = 30_000
  const delta = { reasoning_details: [{ text: 'a' }] }
  const data = JSON.stringify({ choices: [{ index: 0, delta, logprobs: { content: [{ token: 'a', logprob: 0 }] } }] })
  const events = Array.from({ length: pieces }, () => ({ event: undefined, id: undefined, data }))
  const before = process.cpuUsage()
  const whole = rollUpChat([...events, { event: undefined, id: undefined, data: '[DONE]' }], facts.traits)
  const { user, system } = process.cpuUsage(before)
  const [choice] = whole.choices as [{ logprobs: { content: unknown[] }; message: { reasoning_details: unknown[] } }]
  assert.deepEqual([choice.logprobs.content.length, choice.message.reasoning_details.length], [pieces, pieces])
  // Processor time: a busy machine does not lengthen it as it does the clock's.
  assert.ok(user + system < 2_000_000, `${(user + system) / 1000} ms`)
})
