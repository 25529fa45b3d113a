// Towards agents, in every text format: a simulated model calls a tool when it is asked to, once in a conversation
// unless asked otherwise, and never unasked.

import { startSandbox } from '../sandbox/server.ts'
import { realWorld } from '../src/kernel/world.ts'
import { assert, pluck, started, test, textOf } from './gateway.ts'

const sandbox = started(() => startSandbox({ world: realWorld }))

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const [NAME, ABOUT] = ['get_weather', 'The weather in a city']

interface Format {
  readonly path: string
  readonly body: (turns: any[]) => object
  readonly user: (text: string) => any
  /** What the answer adds to the conversation, and the calls in it. */
  readonly read: (answer: any) => { turns: any[]; calls: { id?: string; name: string }[] }
  readonly result: (call: { id?: string; name: string }) => any
  /** Members that demand a call, and this one. */
  readonly must: readonly object[]
}

const FORMATS: Record<string, Format> = {
  'openai-chat': {
    path: '/openai/chat/completions',
    body: (messages) => ({
      model: 'alpha-5.4',
      messages,
      tools: [{ type: 'function', function: { name: NAME, description: ABOUT, parameters: SCHEMA } }],
    }),
    user: (content) => ({ role: 'user', content }),
    read({ choices: [{ message }] }) {
      const calls = (message.tool_calls ?? []).map((call: any) => ({ id: call.id, name: call.function.name }))
      return { turns: [message], calls }
    },
    result: ({ id }) => ({ role: 'tool', tool_call_id: id, content: 'rain' }),
    must: [{ tool_choice: 'required' }, { tool_choice: { type: 'function', function: { name: NAME } } }],
  },
  'openai-responses': {
    path: '/openai/responses',
    body: (input) => ({
      model: 'alpha-5.4',
      input,
      tools: [{ type: 'function', name: NAME, description: ABOUT, parameters: SCHEMA, strict: false }],
    }),
    user: (content) => ({ role: 'user', content }),
    read({ output }) {
      const calls = output.filter((item: any) => item.type === 'function_call')
      return { turns: output, calls: calls.map((call: any) => ({ id: call.call_id, name: call.name })) }
    },
    result: ({ id }) => ({ type: 'function_call_output', call_id: id, output: 'rain' }),
    must: [{ tool_choice: 'required' }, { tool_choice: { type: 'function', name: NAME } }],
  },
  'anthropic-messages': {
    path: '/anthropic/v1/messages',
    body: (messages) => ({
      model: 'beta-sonnet-5',
      max_tokens: 200,
      messages,
      tools: [{ name: NAME, description: ABOUT, input_schema: SCHEMA }],
    }),
    user: (content) => ({ role: 'user', content }),
    read({ content }) {
      const calls = content.filter((block: any) => block.type === 'tool_use')
      return { turns: [{ role: 'assistant', content }], calls }
    },
    result: ({ id }) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'rain' }] }),
    must: [{ tool_choice: { type: 'any' } }, { tool_choice: { type: 'tool', name: NAME } }],
  },
  gemini: {
    path: '/google/v1beta/models/delta-3-pro:generateContent',
    body: (contents) => ({
      contents,
      tools: [{ functionDeclarations: [{ name: NAME, description: ABOUT, parameters: SCHEMA }] }],
    }),
    user: (text) => ({ role: 'user', parts: [{ text }] }),
    read({ candidates: [{ content }] }) {
      const calls = content.parts.flatMap((part: any) => part.functionCall ?? [])
      return { turns: [content], calls }
    },
    result: ({ name, id }) => ({
      role: 'user',
      parts: [{ functionResponse: { name, ...(id === undefined ? {} : { id }), response: { weather: 'rain' } } }],
    }),
    must: [
      { toolConfig: { functionCallingConfig: { mode: 'ANY' } } },
      { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: [NAME] } } },
    ],
  },
}

for (const [name, format] of Object.entries(FORMATS))
  test(`${name}: a triggered tool is called once in a conversation unless asked otherwise, and no tool unasked`, async () => {
    async function ask(turns: any[], members = {}) {
      const text = await textOf(
        fetch(sandbox.url + format.path, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            authorization: 'Bearer any',
            'anthropic-version': '2023-06-01',
          },
          body: JSON.stringify({ ...format.body(turns), ...members }),
        }),
      )
      return format.read(JSON.parse(text))
    }
    for (const unasked of ['What is a toll gate?', 'Summarise this file and fix the failing test.'])
      assert.deepEqual((await ask([format.user(unasked)])).calls, [], unasked)
    for (const [trigger, again] of [
      ['[[tool=get_weather]]', 0],
      ['[[tool=get_weather always]]', 1],
    ] as const) {
      const turns = [format.user(`${trigger} Oslo?`)]
      const called = await ask(turns)
      assert.deepEqual(pluck(called.calls, 'name'), [NAME])
      const ended = await ask([...turns, ...called.turns, ...called.calls.map(format.result)])
      assert.equal(ended.calls.length, again, trigger)
      for (const must of format.must) {
        const { calls } = await ask([...turns, ...called.turns, ...called.calls.map(format.result)], must)
        assert.equal(calls.length, 1, `${trigger} ${JSON.stringify(must)}`)
      }
    }
    const [first] = (await ask([format.user('[[tool=no_such_tool]] Oslo?')])).calls
    assert.equal(first, undefined, 'what is not offered is not called')
  })

test('legacy functions are called, whole and in a stream, and their result is used', async () => {
  const functions = [{ name: NAME, description: ABOUT, parameters: SCHEMA }]
  const send = async (messages: object[], members: object = {}) => {
    const response = await fetch(`${sandbox.url}/openai/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gamma-v4-pro', messages, functions, ...members }),
    })
    assert.equal(response.status, 200)
    return response.text()
  }
  const user = { role: 'user', content: 'What is the weather in Oslo?' }
  const [choice] = JSON.parse(await send([user])).choices
  assert.equal(choice.finish_reason, 'function_call')
  assert.equal(choice.message.tool_calls, undefined)
  assert.equal(choice.message.function_call.name, NAME)
  assert.match(choice.message.function_call.arguments, /Oslo/)
  const chunks = [...(await send([user], { stream: true })).matchAll(/^data: (\{.*)$/gm)].map(([, data]) =>
    JSON.parse(data!),
  )
  const called = chunks.map(({ choices }) => choices[0]?.delta.function_call ?? {})
  assert.equal(called.map(({ name = '' }) => name).join(''), NAME)
  assert.equal(called.map((one) => one.arguments ?? '').join(''), choice.message.function_call.arguments)
  assert.ok(chunks.some(({ choices }) => choices[0]?.finish_reason === 'function_call'))
  const turns = [
    user,
    { ...choice.message, reasoning_content: '' },
    { role: 'function', name: NAME, content: '{"sky":"rain"}' },
  ]
  assert.match(JSON.parse(await send(turns)).choices[0].message.content, /get_weather reports sky rain/)
  assert.ok(JSON.parse(await send(turns, { function_call: { name: NAME } })).choices[0].message.function_call)
  assert.ok(JSON.parse(await send([user], { function_call: 'none' })).choices[0].message.content)
})

test('a custom tool of a chat gets text, and ends like any other', async () => {
  const user = { role: 'user', content: '[[tool=shell]] ls -l' }
  const tools = [{ type: 'custom', custom: { name: 'shell', description: 'Runs a line' } }]
  const ask = async (messages: object[]) => {
    const response = await fetch(`${sandbox.url}/openai/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'alpha-5.4', messages, tools }),
    })
    const body = (await response.json()) as any
    assert.equal(response.status, 200, JSON.stringify(body))
    return body.choices[0].message
  }
  const called = await ask([user])
  const [call] = called.tool_calls
  assert.deepEqual([call.type, call.custom.name, call.custom.input.trim()], ['custom', 'shell', 'ls -l'])
  const ended = await ask([user, called, { role: 'tool', tool_call_id: call.id, content: 'files' }])
  assert.equal(ended.tool_calls, undefined)
  assert.ok(ended.content)
  const response = await fetch(`${sandbox.url}/openai/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'alpha-5.4', messages: [user], tools, stream: true }),
  })
  const events = (await response.text())
    .split('\n')
    .flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []))
  const deltas = events.flatMap((event: any) => event.choices[0]?.delta.tool_calls ?? [])
  assert.equal(deltas[0].type, 'custom')
  assert.equal(
    deltas
      .map((delta: any) => delta.custom.input)
      .join('')
      .trim(),
    'ls -l',
  )
})
