// The official openai package, unchanged, at the chat and Responses doors.
import OpenAI from 'openai'
import { assert, describe, test, testGateway } from '../gateway.ts'
import { everyKind, FAMILIES, OUTCOME, WEATHER, WEATHER_QUESTION } from './families.ts'

let key: string
let account: string
const g = testGateway({ catalog: everyKind, isShared: true }, async () => {
  ;({ key, id: account } = await g.account())
})

const client = (path: string, options = {}) => new OpenAI({ apiKey: key, baseURL: `${g.url}${path}`, ...options })
const user = (content: string) => [{ role: 'user' as const, content }]

for (const model of FAMILIES)
  describe(model, () => {
    test('chat: an answer with usage', async () => {
      const answer = await client('/v1').chat.completions.create({ model, messages: user('Say hello. 你好') })
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

    test('chat: tools, there and back again, whole and streamed', async () => {
      const { completions } = client('/v1').chat
      const tools = [{ type: 'function' as const, function: WEATHER }]
      const messages: OpenAI.ChatCompletionMessageParam[] = [
        { role: 'developer', content: 'Be brief.' },
        ...user(WEATHER_QUESTION),
      ]
      for (const answered of [
        await completions.create({ model, messages, tools }),
        await completions.stream({ model, messages, tools }).finalChatCompletion(),
      ]) {
        const [{ finish_reason, message } = assert.fail()] = answered.choices
        assert.equal(finish_reason, 'tool_calls', JSON.stringify(answered))
        const [call] = message.tool_calls ?? []
        assert.ok(call?.type === 'function' && call.function.name === 'get_weather')
        assert.deepEqual(JSON.parse(call.function.arguments), { city: 'Oslo' })
        const result = { role: 'tool' as const, tool_call_id: call.id, content: '12 degrees' }
        const again = { model, messages: [...messages, message, result], tools }
        const second = await completions.create(again)
        assert.equal(second.choices[0]?.finish_reason, 'stop')
        assert.ok(second.choices[0].message.content)
        assert.match((await completions.stream(again).finalContent()) ?? '', /12 degrees/)
      }
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

    test('Responses: a tool call and its result, whole and streamed', async () => {
      const { responses } = client('/v1')
      const tools = [{ type: 'function' as const, ...WEATHER, strict: false }]
      const input: OpenAI.Responses.ResponseInput = user(WEATHER_QUESTION)
      const asked = { model, tools, instructions: 'Be brief.' }
      // What is not kept has to be sent back with its thoughts.
      const unkept = { store: false, include: ['reasoning.encrypted_content' as const] }
      const stream = responses.stream({ ...asked, ...unkept, input })
      const names = new Set<string>()
      for await (const { type } of stream) names.add(type)
      assert.ok(names.has('response.function_call_arguments.done') && names.has('response.completed'))
      for (const [first, more] of [
        [await responses.create({ ...asked, input }), {}],
        [await stream.finalResponse(), unkept],
      ] as [OpenAI.Responses.Response, object][]) {
        const call = first.output.find((item) => item.type === 'function_call')
        assert.ok(call && first.model === model && (first.usage?.output_tokens ?? 0) > 0, JSON.stringify(first))
        assert.deepEqual(JSON.parse(call.arguments), { city: 'Oslo' })
        const result = { type: 'function_call_output' as const, call_id: call.call_id, output: '12 degrees' }
        const said = first.output as OpenAI.Responses.ResponseInputItem[] // What was answered can be sent back.
        const second = responses.stream({ ...asked, ...more, input: [...input, ...said, result] })
        for await (const _ of second);
        assert.match((await second.finalResponse()).output_text, /12 degrees/)
      }
    })

    test('structured output comes back as the schema says, in chat and in Responses', async () => {
      const { chat, responses } = client('/v1')
      const response_format = { type: 'json_schema' as const, json_schema: OUTCOME }
      const said = await chat.completions.create({ model, messages: user('Extract: Oslo'), response_format })
      const format = { type: 'json_schema' as const, ...OUTCOME }
      const { output_text } = await responses.create({ model, input: 'Extract: Oslo', text: { format } })
      for (const text of [said.choices[0]?.message.content, output_text])
        assert.equal(typeof JSON.parse(text ?? '').city, 'string', text ?? '')
    })

    test('a fault inside a stream is thrown, with words that a person can read, and is never a clean end', async () => {
      const readable = (error: unknown) => error instanceof OpenAI.APIError && /vendor/i.test(error.message)
      for (const trigger of ['[[cut=3]] [[chunks=20]]', '[[error-in-stream=3]]']) {
        const prompt = `${trigger} Tell me a long story`
        await assert.rejects(async () => {
          const stream = await client('/v1').chat.completions.create({ model, messages: user(prompt), stream: true })
          for await (const { choices } of stream) assert.ok(choices)
        }, readable)
        const stream = await client('/v1').responses.create({ model, input: prompt, stream: true })
        let said: string | undefined
        for await (const event of stream) if (event.type === 'response.failed') said = event.response.error?.message
        assert.match(said ?? '', /vendor/i)
      }
    })
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
