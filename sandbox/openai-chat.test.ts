import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import OpenAI from 'openai'
import { realWorld } from '../src/kernel/world.ts'
import { pluck } from '../test/lists.ts'
import { started } from '../test/started.ts'
import { startSandbox } from './server.ts'

let client: OpenAI

const sandbox = started(() => startSandbox({ world: realWorld }))
before(async () => {
  client = new OpenAI({ apiKey: 'sk-any', baseURL: `${sandbox.url}/openai`, maxRetries: 0 })
})

const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    description: 'The weather in a city',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, unit: { type: 'string', enum: ['celsius', 'fahrenheit'] } },
      required: ['city', 'unit'],
      additionalProperties: false,
    },
  },
} as const

function ask(content: string) {
  return [{ role: 'user' as const, content }]
}

test('an answer says that it is simulated, and by which model', async () => {
  const { data, response } = await client.chat.completions
    .create({ model: 'alpha-5.4', messages: ask('What is a toll gate?') })
    .withResponse()
  assert.equal(response.headers.get('x-simulated'), 'tollgate-sandbox')
  assert.match(data.choices[0]?.message.content ?? '', /What is a toll gate\?/)
  assert.match(data.choices[0]?.message.content ?? '', /simulate.*alpha-5\.4|alpha-5\.4.*simulate/is)
  assert.equal(data.choices[0]?.finish_reason, 'stop')
  const { usage } = data
  assert.ok(usage && usage.prompt_tokens > 5 && usage.completion_tokens > 50)
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
  assert.ok((usage.completion_tokens_details?.reasoning_tokens ?? 0) > 0)
})

test('the same question gets the same answer', async () => {
  const texts = await Promise.all(
    [1, 2].map(() => client.chat.completions.create({ model: 'alpha-5.4', messages: ask('Tell me about rivers.') })),
  )
  assert.equal(texts[0]?.choices[0]?.message.content, texts[1]?.choices[0]?.message.content)
})

test('the official SDK assembles a stream to the same text as the whole answer, with usage on request', async () => {
  const request = { model: 'alpha-5.4', messages: ask('Tell me about bridges.') }
  const whole = await client.chat.completions.create(request)
  const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } })
  const final = await stream.finalChatCompletion()
  assert.equal(final.choices[0]?.message.content, whole.choices[0]?.message.content)
  assert.deepEqual(final.usage, whole.usage)
})

test('a stream carries no usage chunk unless it was asked for', async () => {
  const stream = await client.chat.completions.create({ model: 'alpha-5.4', messages: ask('Hello'), stream: true })
  for await (const chunk of stream) assert.equal(chunk.choices.length, 1)
})

test('a prompt that concerns a tool calls it, once for each place that it names, and then uses the results', async () => {
  const model = 'gamma-v4-pro'
  const question = ask('What is the weather in Oslo and in Bergen, in celsius?')
  const first = await client.chat.completions.create({ model, messages: question, tools: [weather] })
  const message = first.choices[0]?.message
  assert.ok(message?.tool_calls)
  assert.equal(first.choices[0]?.finish_reason, 'tool_calls')
  const calls = message.tool_calls.map((call) => call.type === 'function' && JSON.parse(call.function.arguments))
  assert.deepEqual(calls, [
    { city: 'Oslo', unit: 'celsius' },
    { city: 'Bergen', unit: 'celsius' },
  ])
  const second = await client.chat.completions.create({
    model,
    messages: [
      ...question,
      message,
      ...message.tool_calls.map((call) => ({
        role: 'tool' as const,
        tool_call_id: call.id,
        content: '{"temperature":12}',
      })),
    ],
    tools: [weather],
  })
  assert.match(second.choices[0]?.message.content ?? '', /get_weather reports temperature 12/)
})

test('a streamed tool call arrives in fragments that the SDK can put together', async () => {
  const stream = client.chat.completions.stream({
    model: 'zeta-m3',
    messages: ask('Weather in Oslo?'),
    tools: [weather],
    tool_choice: 'required',
  })
  const final = await stream.finalChatCompletion()
  const [call] = final.choices[0]?.message.tool_calls ?? []
  assert.ok(call?.type === 'function')
  assert.equal(JSON.parse(call.function.arguments).city, 'Oslo')
})

test('structured output is an instance of the schema', async () => {
  const schema = {
    type: 'object',
    properties: {
      name: { type: 'string' },
      age: { type: 'integer', minimum: 18, maximum: 99 },
      tags: { type: 'array', items: { type: 'string' }, minItems: 2 },
      address: { $ref: '#/$defs/address' },
      mood: { enum: ['calm', 'glad'] },
    },
    required: ['name', 'age', 'tags', 'address', 'mood'],
    $defs: { address: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
  }
  const reply = await client.chat.completions.create({
    model: 'alpha-5.5',
    messages: ask('Extract: Ada is 36 and glad.'),
    response_format: { type: 'json_schema', json_schema: { name: 'person', schema, strict: true } },
  })
  const made = JSON.parse(reply.choices[0]?.message.content ?? '')
  assert.equal(made.name, 'Ada')
  assert.equal(made.age, 36)
  assert.equal(made.mood, 'glad')
  assert.equal(made.tags.length, 2)
  assert.equal(typeof made.address.city, 'string')
})

test('limits are kept: n, stop and the most tokens', async () => {
  const many = await client.chat.completions.create({ model: 'gamma-v4-flash', messages: ask('Hello'), n: 3 })
  assert.deepEqual(pluck(many.choices, 'index'), [0, 1, 2])
  const stopped = await client.chat.completions.create({
    model: 'gamma-v4-flash',
    messages: ask('Say one two three'),
    stop: ['two'],
  })
  assert.equal(stopped.choices[0]?.message.content, 'One ')
  const short = await client.chat.completions.create({
    model: 'gamma-v4-flash',
    messages: ask('Hello'),
    max_tokens: 20,
  })
  assert.equal(short.choices[0]?.finish_reason, 'length')
  assert.ok((short.usage?.completion_tokens ?? 99) <= 20)
})

test('a long prompt is reported as cached when it comes again', async () => {
  const messages = ask(`Please read this: ${'lorem ipsum dolor '.repeat(200)}`)
  const first = await client.chat.completions.create({ model: 'alpha-5.4', messages })
  const second = await client.chat.completions.create({ model: 'alpha-5.4', messages })
  assert.equal(first.usage?.prompt_tokens_details?.cached_tokens, 0)
  const cached = second.usage?.prompt_tokens_details?.cached_tokens ?? 0
  assert.ok(cached >= 256 && cached <= (second.usage?.prompt_tokens ?? 0), String(cached))
})

interface Delta {
  content?: string | null
  reasoning_content?: string
  reasoning_details?: { text: string }[]
  tool_calls?: { index?: number; extra_content?: { google?: { thought_signature?: string } } }[]
}

async function deltasOf(body: Record<string, unknown>): Promise<{ deltas: Delta[]; text: string }> {
  const response = await fetch(`${sandbox.url}/openai/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ stream: true, ...body }),
  })
  const text = await response.text()
  const events = text.split('\n\n').filter((block) => block.startsWith('data: {'))
  return { deltas: events.map((event) => JSON.parse(event.slice(6)).choices[0]?.delta ?? {}), text }
}

test('each family keeps its way of reasoning', async () => {
  const messages = ask('Hello')
  const gamma = await deltasOf({ model: 'gamma-v4-pro', messages })
  const firstThought = gamma.deltas.findIndex((delta) => delta.reasoning_content)
  const firstWord = gamma.deltas.findIndex((delta) => delta.content)
  assert.ok(firstThought > 0 && firstThought < firstWord)
  assert.match(gamma.text, /"finish_reason":"stop"\}\],"usage":\{/, 'usage comes in the finish chunk')

  const quiet = await deltasOf({ model: 'gamma-v4-pro', messages, thinking: { type: 'disabled' } })
  assert.ok(!quiet.text.includes('reasoning_content'))

  const zeta = await deltasOf({ model: 'zeta-m3', messages })
  assert.match(zeta.deltas.map((delta) => delta.content ?? '').join(''), /^<think>\n.+\n<\/think>\n\n/s)

  const split = await deltasOf({ model: 'zeta-m3', messages, reasoning_split: true })
  const snapshots = split.deltas.flatMap((delta) => delta.reasoning_details?.map((detail) => detail.text) ?? [])
  assert.ok(snapshots.length > 2 && snapshots.every((text, i) => i === 0 || text.startsWith(snapshots[i - 1] ?? '?')))

  const delta = await deltasOf({ model: 'delta-3.6-flash', messages: ask('Weather in Oslo?'), tools: [weather] })
  const [call] = delta.deltas.flatMap((part) => part.tool_calls ?? [])
  assert.equal(call?.index, undefined)
  assert.ok(call?.extra_content?.google?.thought_signature)
})

test('reasoning and signatures must come back with the tool calls they belong to', async () => {
  for (const [model, kept] of [
    ['gamma-v4-pro', { reasoning_content: '' }],
    ['epsilon-k3', { reasoning_content: 'thoughts' }],
    ['delta-3.6-flash', { extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } }],
  ] as const) {
    const call = { id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{}' } }
    const send = (turn: Record<string, unknown>) =>
      fetch(`${sandbox.url}/openai/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({
          model,
          messages: [...ask('Weather?'), turn, { role: 'tool', tool_call_id: 'call_1', content: '12' }],
        }),
      }).then((response) => response.status)
    const turn = { role: 'assistant', content: null, tool_calls: [call] }
    assert.equal(await send(turn), 400, model)
    const whole = 'extra_content' in kept ? { ...turn, tool_calls: [{ ...call, ...kept }] } : { ...turn, ...kept }
    assert.equal(await send(whole), 200, model)
  }
})
