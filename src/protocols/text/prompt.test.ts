// What a hold covers is what the vendor gets: no place of a request carries text past the measure.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTextTraits } from '../../catalog/traits.ts'
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
