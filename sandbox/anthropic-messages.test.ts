import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { realWorld } from '../src/kernel/world.ts'
import { pluck } from '../test/lists.ts'
import { started } from '../test/started.ts'
import { startSandbox } from './server.ts'

let client: Anthropic

const sandbox = started(() => startSandbox({ world: realWorld }))
before(async () => {
  client = new Anthropic({ apiKey: 'sk-any', baseURL: `${sandbox.url}/anthropic`, maxRetries: 0 })
})

function ask(content: string) {
  return [{ role: 'user' as const, content }]
}

const weather = {
  name: 'get_weather',
  description: 'The weather in a city',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
}

test('a message is answered, counted and said to be simulated', async () => {
  const message = await client.messages.create({ model: 'beta-opus-5', max_tokens: 1000, messages: ask('Hello') })
  const [block] = message.content
  assert.ok(block?.type === 'text')
  assert.match(block.text, /sandbox/)
  assert.equal(message.stop_reason, 'end_turn')
  assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 20)
})

test('thinking comes first, is signed, and may be sent back as it was but not changed', async () => {
  const request = {
    model: 'beta-sonnet-4-5',
    max_tokens: 4000,
    thinking: { type: 'enabled' as const, budget_tokens: 2000 },
    tools: [weather],
  }
  const question = ask('What is the weather in Oslo?')
  const first = await client.messages.create({ ...request, messages: question })
  assert.deepEqual(pluck(first.content, 'type'), ['thinking', 'tool_use'])
  const [thinking, use] = first.content
  assert.ok(thinking?.type === 'thinking' && use?.type === 'tool_use')
  assert.deepEqual(use.input, { city: 'Oslo' })
  assert.ok(use.id.startsWith('toolu_'))

  const result = {
    role: 'user' as const,
    content: [{ type: 'tool_result' as const, tool_use_id: use.id, content: '12 degrees' }],
  }
  const turns = (content: Anthropic.ContentBlockParam[]) => [
    ...question,
    { role: 'assistant' as const, content },
    result,
  ]
  const second = await client.messages.create({
    ...request,
    messages: turns(first.content as Anthropic.ContentBlockParam[]),
  })
  assert.match(JSON.stringify(second.content), /get_weather reports “12 degrees”/)

  await assert.rejects(
    client.messages.create({ ...request, messages: turns([{ ...thinking, thinking: 'other thoughts' }, use]) }),
    /signature/,
  )
  await assert.rejects(client.messages.create({ ...request, messages: turns([use]) }), /Expected `thinking`/)
})

test('the official SDK assembles a stream with thinking, text and a tool call', async () => {
  const text = await client.messages
    .stream({
      model: 'beta-opus-4-6',
      max_tokens: 2000,
      thinking: { type: 'adaptive' },
      messages: ask('Tell me about tides.'),
    })
    .finalMessage()
  assert.deepEqual(pluck(text.content, 'type'), ['thinking', 'text'])
  assert.ok(text.content[0]?.type === 'thinking' && text.content[0].signature !== '')
  assert.ok(text.usage.output_tokens > 20)
  const tool = await client.messages
    .stream({ model: 'beta-opus-5', max_tokens: 2000, tools: [weather], messages: ask('Weather in Paris and Rome?') })
    .finalMessage()
  assert.deepEqual(
    tool.content.map((block) => block.type === 'tool_use' && block.input),
    [{ city: 'Paris' }, { city: 'Rome' }],
  )
  assert.equal(tool.stop_reason, 'tool_use')
})

test('marked beginnings are written to the cache once, and read from it after that', async () => {
  const system = [
    { type: 'text' as const, text: 'Be kind. '.repeat(400), cache_control: { type: 'ephemeral' as const } },
  ]
  const request = { model: 'beta-opus-5', max_tokens: 100, system, messages: ask('Hello') }
  const first = await client.messages.create(request)
  const second = await client.messages.create(request)
  const written = first.usage.cache_creation_input_tokens ?? 0
  assert.ok(written > 256)
  assert.equal(first.usage.cache_read_input_tokens, 0)
  assert.equal(second.usage.cache_read_input_tokens, written)
  assert.equal(second.usage.cache_creation_input_tokens, 0)
  assert.equal(first.usage.input_tokens, second.usage.input_tokens)
})

test('tokens are counted as a call would count them', async () => {
  const messages = ask('How many tokens is this?')
  const counted = await client.messages.countTokens({ model: 'beta-opus-5', messages })
  const called = await client.messages.create({ model: 'beta-opus-5', max_tokens: 10, messages })
  assert.equal(counted.input_tokens, called.usage.input_tokens)
  assert.equal(called.stop_reason, 'max_tokens')
})

test('a stop sequence is named', async () => {
  const message = await client.messages.create({
    model: 'beta-opus-5',
    max_tokens: 100,
    stop_sequences: ['two'],
    messages: ask('Say one two three'),
  })
  assert.equal(message.stop_reason, 'stop_sequence')
  assert.equal(message.stop_sequence, 'two')
})

test('the version header is required', async () => {
  const body = JSON.stringify({ model: 'beta-opus-5', max_tokens: 9, messages: ask('Hello') })
  const response = await fetch(`${sandbox.url}/anthropic/v1/messages`, { method: 'POST', body })
  assert.equal(response.status, 400)
})

test('an error inside a stream is an error event that the SDK throws', async () => {
  const stream = client.messages.stream({
    model: 'beta-opus-5',
    max_tokens: 500,
    messages: ask('Hello [[error-in-stream=5]]'),
  })
  await assert.rejects(stream.finalMessage(), /overloaded/i)
})
