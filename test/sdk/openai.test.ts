// The official openai package, unchanged, at the chat and Responses doors.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import OpenAI from 'openai'
import { testGateway } from '../gateway.ts'
import { FAMILIES, openAllDoors, WEATHER } from './families.ts'

let key: string
let account: string
const g = testGateway({ catalog: openAllDoors, isShared: true }, async () => {
  const made = await g.account()
  key = made.key
  account = made.id
})

const client = (path: string, options = {}) => new OpenAI({ apiKey: key, baseURL: `${g.url}${path}`, ...options })
const user = (content: string) => [{ role: 'user' as const, content }]

for (const { model } of FAMILIES)
  describe(model, () => {
    test('chat: an answer with usage', async () => {
      const answer = await client('/v1').chat.completions.create({ model, messages: user('Say hello.') })
      assert.equal(answer.object, 'chat.completion')
      assert.equal(answer.model, model)
      assert.ok(answer.choices[0]?.message.content)
      assert.doesNotMatch(answer.choices[0].message.content, /<think>/)
      assert.equal(answer.choices[0].finish_reason, 'stop')
      assert.ok(
        answer.usage && answer.usage.total_tokens === answer.usage.prompt_tokens + answer.usage.completion_tokens,
      )
      assert.match(answer._request_id ?? '', /^req_/)
    })

    test('chat: a stream that the SDK’s own reader accepts, with usage when asked', async () => {
      const stream = client('/v1').chat.completions.stream({
        model,
        messages: user('Count to five.'),
        stream_options: { include_usage: true },
      })
      let text = ''
      const ids = new Set<string>()
      for await (const chunk of stream) {
        ids.add(chunk.id)
        assert.equal(chunk.model, model)
        text += chunk.choices[0]?.delta.content ?? ''
      }
      const final = await stream.finalChatCompletion()
      assert.equal(ids.size, 1)
      assert.ok(text.length > 0)
      assert.equal(final.choices[0]?.message.content, text)
      assert.ok((await stream.totalUsage()).total_tokens > 0)
    })

    test('chat: no usage chunk unless asked', async () => {
      const stream = await client('/v1').chat.completions.create({ model, messages: user('Hi.'), stream: true })
      let last = ''
      for await (const chunk of stream) {
        assert.ok(chunk.choices.length > 0)
        last = chunk.choices[0]?.finish_reason ?? last
      }
      assert.equal(last, 'stop')
    })

    test('chat: tools, there and back again', async () => {
      const tools = [{ type: 'function' as const, function: WEATHER }]
      const messages: OpenAI.ChatCompletionMessageParam[] = user('What is the weather in Oslo? Use get_weather.')
      const first = await client('/v1').chat.completions.create({ model, messages, tools })
      const call = first.choices[0]?.message.tool_calls?.[0]
      assert.equal(first.choices[0]?.finish_reason, 'tool_calls', JSON.stringify(first))
      assert.ok(call?.type === 'function' && call.function.name === 'get_weather')
      assert.equal(typeof JSON.parse(call.function.arguments).city, 'string')
      const second = await client('/v1').chat.completions.create({
        model,
        messages: [
          ...messages,
          first.choices[0].message,
          { role: 'tool', tool_call_id: call.id, content: '{"celsius": 4}' },
        ],
        tools,
      })
      assert.equal(second.choices[0]?.finish_reason, 'stop')
      assert.ok(second.choices[0].message.content)
    })

    test('chat: tool calls in a stream are whole and numbered', async () => {
      const stream = client('/v1').chat.completions.stream({
        model,
        messages: user('What is the weather in Oslo and in Rome? Use get_weather for both, in parallel.'),
        tools: [{ type: 'function', function: WEATHER }],
      })
      const final = await stream.finalChatCompletion()
      assert.equal(final.choices[0]?.finish_reason, 'tool_calls')
      const calls = final.choices[0].message.tool_calls ?? []
      assert.ok(calls.length >= 1)
      for (const call of calls) assert.ok(call.type === 'function' && JSON.parse(call.function.arguments).city)
    })

    test('Responses: an answer, and a stream that the SDK’s own reader accepts', async () => {
      const api = client('/alpha')
      const answer = await api.responses.create({ model, input: 'Say hello.' })
      assert.equal(answer.status, 'completed')
      assert.ok(answer.output_text.length > 0)
      assert.ok((answer.usage?.total_tokens ?? 0) > 0)
      const stream = api.responses.stream({ model, input: 'Count to five.' })
      let text = ''
      for await (const event of stream) if (event.type === 'response.output_text.delta') text += event.delta
      const final = await stream.finalResponse()
      assert.equal(final.output_text, text)
      assert.equal(final.status, 'completed')
    })

    test('Responses: a tool call and its result', async () => {
      const api = client('/alpha')
      const tools = [
        {
          type: 'function' as const,
          name: WEATHER.name,
          description: WEATHER.description,
          parameters: WEATHER.parameters,
          strict: false,
        },
      ]
      const input: OpenAI.Responses.ResponseInput = [
        { role: 'user', content: 'What is the weather in Oslo? Use get_weather.' },
      ]
      const first = await api.responses.create({ model, input, tools })
      const call = first.output.find((item) => item.type === 'function_call')
      assert.ok(call, JSON.stringify(first.output))
      const second = await api.responses.create({
        model,
        tools,
        input: [
          ...input,
          ...(first.output as OpenAI.Responses.ResponseInputItem[]),
          { type: 'function_call_output', call_id: call.call_id, output: '{"celsius": 4}' },
        ],
      })
      assert.ok(second.output_text.length > 0)
    })
  })

test('structured output comes back as the schema says', async () => {
  for (const model of ['alpha-5.4', 'beta-opus-5', 'gamma-v4-pro', 'delta-3.8-flash', 'zeta-m3']) {
    const answer = await client('/v1').chat.completions.create({
      model,
      messages: user('Describe a person.'),
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'person',
          strict: true,
          schema: {
            type: 'object',
            properties: { name: { type: 'string' }, age: { type: 'integer' } },
            required: ['name', 'age'],
            additionalProperties: false,
          },
        },
      },
    })
    const person = JSON.parse(answer.choices[0]?.message.content ?? '') as { name: string; age: number }
    assert.equal(typeof person.name, 'string', model)
    assert.equal(typeof person.age, 'number', model)
  }
})

test('errors reach the user as the SDK’s classes, with a readable message, code and request id', async () => {
  const api = client('/v1', { maxRetries: 0 })
  await assert.rejects(api.chat.completions.create({ model: 'nope', messages: user('x') }), (error: unknown) => {
    assert.ok(error instanceof OpenAI.NotFoundError)
    assert.match(error.message, /does not exist/)
    assert.equal(error.code, 'not_found')
    assert.match(error.requestID ?? '', /^req_/)
    return true
  })
  await assert.rejects(
    new OpenAI({ apiKey: 'tg_live_wrong', baseURL: `${g.url}/v1`, maxRetries: 0 }).models.list(),
    OpenAI.AuthenticationError,
  )
  await assert.rejects(api.chat.completions.create({ model: 'alpha-5.4', messages: [] }), OpenAI.BadRequestError)
  await assert.rejects(
    api.chat.completions.create({ model: 'gamma-v4-pro', messages: user('[[429]]') }),
    OpenAI.RateLimitError,
  )
  await assert.rejects(
    api.chat.completions.create({ model: 'gamma-v4-pro', messages: user('[[500]]') }),
    OpenAI.InternalServerError,
  )
})

test('a fault inside a stream is thrown, and is never a clean end', async () => {
  for (const [path, trigger] of [
    ['/v1', '[[cut=3]]'],
    ['/v1', '[[error-in-stream=3]]'],
  ] as const) {
    const stream = await client(path).chat.completions.create({
      model: 'delta-3.8-flash',
      messages: user(`Tell me a story. ${trigger} [[chunks=20]]`),
      stream: true,
    })
    await assert.rejects(async () => {
      for await (const chunk of stream) assert.ok(chunk.choices)
    }, OpenAI.APIError)
  }
})

test('the SDK’s own retry succeeds after a passing failure', async () => {
  const answer = await client('/v1').chat.completions.create({
    model: 'gamma-v4-flash',
    messages: user('[[once=429 sdk-retry]] hello'),
  })
  assert.ok(answer.choices[0]?.message.content)
})

test('models are listed and retrieved', async () => {
  const ids: string[] = []
  for await (const model of client('/v1').models.list()) ids.push(model.id)
  assert.ok(ids.includes('alpha-5.4') && !ids.includes('gamma-v4.1-flash'))
  assert.equal((await client('/v1').models.retrieve('alpha-5.4')).id, 'alpha-5.4')
})

test('every call was paid for, once', async () => {
  await g.settled()
  const [row] = await g.sql<{ charged: bigint }>(
    'select sum(charged)::bigint as charged from usage where account_id = $1',
    [account],
  )
  assert.equal(1_000_000_000n - (await g.balance(account)).posted, row?.charged)
})
