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
  name: 'get_weather',
  description: 'The weather in a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
} as const

test('a response has a reasoning item, a message and consistent usage', async () => {
  const response = await client.responses.create({
    model: 'alpha-5.4',
    input: 'Hello',
    reasoning: { effort: 'low', summary: 'auto' },
  })
  assert.deepEqual(pluck(response.output, 'type'), ['reasoning', 'message'])
  assert.match(response.output_text, /sandbox/)
  assert.equal(response.status, 'completed')
  const { usage } = response
  assert.ok(usage && usage.total_tokens === usage.input_tokens + usage.output_tokens)
  assert.ok(usage.output_tokens_details.reasoning_tokens > 0)
})

test('the events of a stream are numbered, complete and assembled by the SDK', async () => {
  const stream = await client.responses.create({ model: 'alpha-5.4', input: 'Tell me about canals.', stream: true })
  const types: string[] = []
  let text = ''
  let next = 0
  let finalText = ''
  for await (const event of stream) {
    assert.equal(event.sequence_number, next++)
    if (types.at(-1) !== event.type) types.push(event.type)
    if (event.type === 'response.output_text.delta') text += event.delta
    if (event.type === 'response.completed') {
      const message = event.response.output.find((item) => item.type === 'message')
      finalText = message?.content[0]?.type === 'output_text' ? message.content[0].text : ''
      assert.ok(event.response.usage)
    }
  }
  assert.equal(text, finalText)
  assert.deepEqual(types, [
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.output_item.done',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
})

test('function calls go round: called, answered, used; in a stream too', async () => {
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: 'What is the weather in Oslo and Bergen?' }]
  const first = await client.responses.stream({ model: 'alpha-6-astra', input, tools: [weather] }).finalResponse()
  const calls = first.output.filter((item) => item.type === 'function_call')
  assert.deepEqual(
    calls.map((call) => JSON.parse(call.arguments)),
    [{ city: 'Oslo' }, { city: 'Bergen' }],
  )
  const answers = calls.map((call) => ({
    type: 'function_call_output' as const,
    call_id: call.call_id,
    output: '{"sky":"clear"}',
  }))
  const second = await client.responses.create({
    model: 'alpha-6-astra',
    input: [...input, ...(first.output as OpenAI.Responses.ResponseInputItem[]), ...answers],
    tools: [weather],
  })
  assert.match(second.output_text, /get_weather reports sky clear/)
})

test('a conversation can be taken up again by its id, and only a known one', async () => {
  const first = await client.responses.create({ model: 'alpha-5.4', input: 'Hello' })
  const second = await client.responses.create({
    model: 'alpha-5.4',
    input: 'And now?',
    previous_response_id: first.id,
  })
  assert.ok((second.usage?.input_tokens ?? 0) > (first.usage?.input_tokens ?? 0) + 20)
  await assert.rejects(
    client.responses.create({ model: 'alpha-5.4', input: 'x', previous_response_id: 'resp_other' }),
    /not found/,
  )
})

test('structured output follows text.format, and a limit leaves the response incomplete', async () => {
  const schema = {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  }
  const made = await client.responses.create({
    model: 'alpha-5.4',
    input: 'Where is the harbour of Hamburg?',
    text: { format: { type: 'json_schema', name: 'place', schema, strict: true } },
  })
  assert.deepEqual(JSON.parse(made.output_text), { city: 'Hamburg' })
  const short = await client.responses.create({ model: 'alpha-5.4', input: 'Hello', max_output_tokens: 20 })
  assert.equal(short.status, 'incomplete')
  assert.equal(short.incomplete_details?.reason, 'max_output_tokens')
})

type Asked = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'>

test('a triggered tool is called until its result is there, also one of a namespace, and a custom one with text', async () => {
  const group = { type: 'namespace', name: 'mcp__weather', description: 'A server', tools: [weather] }
  const custom = { type: 'custom', name: 'shell', description: 'Runs a line' }
  const ask = async (input: unknown, stream = false) => {
    // Namespaces are newer than the types of this client.
    const body = { model: 'alpha-5.4', input, tools: [group, custom] } as unknown as Asked
    return stream ? client.responses.stream(body).finalResponse() : client.responses.create(body)
  }
  const user = (content: string) => ({ role: 'user', content })
  for (const stream of [false, true]) {
    const called = (await ask([user('[[tool=get_weather]] Oslo?')], stream)).output.at(-1) as unknown as Record<
      string,
      string
    >
    assert.deepEqual([called.type, called.namespace, called.name], ['function_call', 'mcp__weather', 'get_weather'])
    const result = { type: 'function_call_output', call_id: called.call_id, output: 'rain' }
    const ended = await ask([user('[[tool=get_weather]] Oslo?'), called, result], stream)
    assert.equal(ended.output.at(-1)?.type, 'message')
    const again = await ask([user('[[tool=get_weather always]] Oslo?'), called, result], stream)
    assert.equal(again.output.at(-1)?.type, 'function_call')
    const line = (await ask([user('[[tool=shell]] ls -l')], stream)).output.at(-1) as unknown as Record<string, string>
    assert.deepEqual([line.type, line.name, line.input?.trim()], ['custom_tool_call', 'shell', 'ls -l'])
    const done = { type: 'custom_tool_call_output', call_id: line.call_id, output: 'files' }
    assert.equal((await ask([user('[[tool=shell]] ls -l'), line, done], stream)).output.at(-1)?.type, 'message')
  }
})
