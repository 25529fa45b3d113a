// Conversions, one promise at a time: mostly mistakes that other gateways have made.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTextTraits, type TextTraitsGiven } from '../../catalog/traits.ts'
import { Fault } from '../../kernel/fault.ts'
import { readJson } from '../../kernel/json.ts'
import type { ClientFormatName } from '../../meter/kind.ts'
import { bytesOf } from '../../upstream/sse.ts'
import type { Exchange } from '../protocol.ts'
import { readTextRequest } from './text.ts'

type Json = Record<string, unknown>
const CHAT = 'openai-chat'
const RESPONSES = 'openai-responses'
const MESSAGES = 'anthropic-messages'

function open(front: ClientFormatName, back: ClientFormatName, body: object, traits: TextTraitsGiven = {}): Exchange {
  const limits = { outputTokensReserve: 4096, outputTokensFloor: 64 }
  const ask = readTextRequest(front, readJson(Buffer.from(JSON.stringify(body))), {
    uid: 'public',
    traits: readTextTraits(traits),
    limits,
  })
  const target = { protocol: back, baseUrl: 'http://v', secret: undefined, headers: {}, model: 'vendor' }
  return ask.open(target, { requestId: 'req_1', createdSeconds: 5, signal: new AbortController().signal }) as Exchange
}
const sentTo = (front: ClientFormatName, back: ClientFormatName, body: object, traits: TextTraitsGiven = {}) =>
  JSON.parse(String(open(front, back, body, traits).call.body)) as Json
async function answered(exchange: Exchange, answer: object): Promise<Json> {
  return JSON.parse(String((await exchange.answer(Buffer.from(JSON.stringify(answer)), {})).body)) as Json
}
function streamed(exchange: Exchange, text: string): string {
  const relay = exchange.stream!({})
  const pieces = [relay.push(Buffer.from(text)), relay.end()]
  const sent = pieces.map((piece) => bytesOf(piece ?? '', relay.encoding)).join('')
  assert.ok(relay.state.terminal && !relay.state.fault, 'the stream was whole')
  return sent + relay.finish('')
}
const paramOf = (run: () => unknown): string | undefined => {
  try {
    run()
  } catch (error) {
    return error instanceof Fault ? error.details.param : String(error)
  }
  return undefined
}

const hi = [{ role: 'user', content: 'Hi' }]
const chat = (over: object = {}) => ({ model: 'public', messages: hi, ...over })
const responses = (over: object = {}) => ({ model: 'public', input: 'Hi', ...over })
const messages = (over: object = {}) => ({ model: 'public', max_tokens: 1000, messages: hi, ...over })
const chatTo = (back: ClientFormatName, over: object, traits?: TextTraitsGiven) =>
  sentTo(CHAT, back, chat(over), traits)
const responsesTo = (back: ClientFormatName, over: object) => sentTo(RESPONSES, back, responses(over))
const messagesTo = (back: ClientFormatName, over: object, traits?: TextTraitsGiven) =>
  sentTo(MESSAGES, back, messages(over), traits)
const completion = (message: object, finish = 'stop') => ({
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
  usage: { prompt_tokens: 5, completion_tokens: 2 },
})
const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', model: 'v', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const DONE = 'data: [DONE]\n\n'
const named = (event: Json) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
const call = (id: string, name: string, input: string) => ({
  id,
  type: 'function',
  function: { name, arguments: input },
})

test('an empty list of tool calls beside text is text', async () => {
  const whole = await answered(open(MESSAGES, CHAT, messages()), completion({ content: 'Hello', tool_calls: [] }))
  assert.deepEqual(whole.content, [{ type: 'text', text: 'Hello' }])
  assert.equal(whole.stop_reason, 'end_turn')
  const text = streamed(
    open(MESSAGES, CHAT, messages({ stream: true })),
    chunk({ role: 'assistant', content: 'Hello', tool_calls: [] }) + chunk({}, 'stop') + DONE,
  )
  assert.ok(text.includes('"text":"Hello"') && !text.includes('tool_use'))
})

test('a vendor that called tools and says "stop" has called tools', async () => {
  const calls = [call('c1', 'f', '{"a":1}')]
  const whole = await answered(open(MESSAGES, CHAT, messages()), completion({ content: null, tool_calls: calls }))
  assert.equal(whole.stop_reason, 'tool_use')
  const text = streamed(
    open(MESSAGES, CHAT, messages({ stream: true })),
    chunk({ tool_calls: [{ index: 0, ...calls[0] }] }) + chunk({}, 'stop') + DONE,
  )
  assert.match(text, /"stop_reason":"tool_use"/)
})

test('inputs of parallel calls that come interleaved stay with their calls', () => {
  const start = (index: number) => ({
    tool_calls: [{ index, id: `c${index}`, type: 'function', function: { name: `f${index}`, arguments: '' } }],
  })
  const input = (index: number, text: string) => ({ tool_calls: [{ index, function: { arguments: text } }] })
  const text =
    [start(0), input(0, '{"a":'), start(1), input(1, '{"b":'), input(0, '1}'), input(1, '2}')]
      .map((delta) => chunk(delta))
      .join('') +
    chunk({}, 'tool_calls') +
    DONE
  const toMessages = streamed(open(MESSAGES, CHAT, messages({ stream: true })), text)
  const inputs = ['', '']
  for (const [, index, json] of toMessages.matchAll(
    /"index":(\d),"delta":\{"type":"input_json_delta","partial_json":("(?:[^"\\]|\\.)*")/g,
  ))
    inputs[Number(index)] += JSON.parse(json!)
  assert.deepEqual(inputs, ['{"a":1}', '{"b":2}'])
  const toResponses = streamed(open(RESPONSES, CHAT, responses({ stream: true })), text)
  assert.ok(
    toResponses.includes('"arguments":"{\\"a\\":1}","status":"completed"') &&
      toResponses.includes('"arguments":"{\\"b\\":2}","status":"completed"'),
  )
})

test('later counts of a Messages stream replace the earlier ones and are not added', () => {
  const usage = (output: number) => ({ input_tokens: 10, cache_read_input_tokens: 3, output_tokens: output })
  const text =
    named({ type: 'message_start', message: { usage: usage(1) } }) +
    [5, 9]
      .map((n) => named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: n } }))
      .join('') +
    named({ type: 'message_stop' })
  for (const front of [CHAT, MESSAGES] as const) {
    const relay = open(front, MESSAGES, front === CHAT ? chat({ stream: true }) : messages({ stream: true })).stream!(
      {},
    )
    relay.push(Buffer.from(text))
    assert.deepEqual(relay.state.usage, { input: 10, cachedInput: 3, output: 9 })
  }
})

test('the counts at the start of a Messages stream are not taken for the final ones', () => {
  const relay = open(MESSAGES, MESSAGES, messages({ stream: true })).stream!({})
  relay.push(
    Buffer.from(
      named({ type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 1 } } }) +
        named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'word '.repeat(20) } }),
    ),
  )
  assert.equal(relay.state.usage, undefined)
  assert.ok(relay.state.outputTokensSeen >= 20)
})

test('empty texts are left out for a Messages vendor, and nothing is put in their place', () => {
  const body = chat({
    messages: [
      { role: 'system', content: '  ' },
      {
        role: 'user',
        content: [
          { type: 'text', text: '' },
          { type: 'text', text: 'Hi' },
        ],
      },
      { role: 'assistant', content: '' },
      { role: 'user', content: '   ' },
      { role: 'user', content: 'Go' },
    ],
    stop: ['', ' ', 'END'],
  })
  const sent = sentTo(CHAT, MESSAGES, body)
  assert.equal(sent.system, undefined)
  assert.deepEqual(sent.stop_sequences, ['END'])
  assert.deepEqual(sent.messages, [
    { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
    { role: 'user', content: [{ type: 'text', text: 'Go' }] },
  ])
  assert.equal(
    paramOf(() => chatTo(MESSAGES, { messages: [{ role: 'system', content: 'x' }] })),
    'messages',
  )
})

test('signed thoughts go out with a chat answer and come back to the vendor as they were', async () => {
  const content = [
    { type: 'thinking', thinking: 'Let me 考える', signature: 'sig==' },
    { type: 'redacted_thinking', data: 'xyz' },
    { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } },
  ]
  const reply = { content, stop_reason: 'tool_use', usage: { input_tokens: 1, output_tokens: 1 } }
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const thinking = { type: 'enabled', budget_tokens: 2000 }
  const back = [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' }]

  const answer = await answered(open(CHAT, MESSAGES, chat({ tools, thinking })), reply)
  const message = (answer.choices as { message: Json }[])[0]!.message
  assert.equal(message.reasoning_content, 'Let me 考える')
  const sent = chatTo(MESSAGES, {
    tools,
    thinking,
    messages: [...hi, message, { role: 'tool', tool_call_id: 'toolu_1', content: 'ok' }],
  })
  assert.deepEqual((sent.messages as Json[]).slice(1), [
    { role: 'assistant', content },
    { role: 'user', content: back },
  ])
  assert.deepEqual(sent.thinking, thinking)

  const response = await answered(open(RESPONSES, MESSAGES, responses()), reply)
  const output = response.output as Json[]
  const again = responsesTo(MESSAGES, {
    input: [
      { role: 'user', content: 'Hi' },
      ...output,
      { type: 'function_call_output', call_id: 'toolu_1', output: 'ok' },
    ],
  })
  assert.deepEqual((again.messages as Json[]).slice(1), [
    { role: 'assistant', content },
    { role: 'user', content: back },
  ])
})

test('encrypted thoughts of a Responses vendor come back through the other two doors', async () => {
  const output = [
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm' }], encrypted_content: 'enc' },
    { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{}' },
  ]
  const reply = { status: 'completed', output, usage: { input_tokens: 1, output_tokens: 1 } }
  const expected = [
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'enc' },
    { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_1', output: 'ok' },
  ]
  const traits = { encryptedReasoning: true }
  const answer = await answered(open(CHAT, RESPONSES, chat(), traits), reply)
  const { message } = (answer.choices as { message: Json }[])[0]!
  const sent = chatTo(
    RESPONSES,
    { messages: [...hi, message, { role: 'tool', tool_call_id: 'call_1', content: 'ok' }] },
    traits,
  )
  assert.deepEqual((sent.input as Json[]).slice(1), expected)
  assert.deepEqual(sent.include, ['reasoning.encrypted_content'])

  const { content } = await answered(open(MESSAGES, RESPONSES, messages()), reply)
  const turns = [
    ...hi,
    { role: 'assistant', content },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'ok' }] },
  ]
  assert.deepEqual((messagesTo(RESPONSES, { messages: turns }).input as Json[]).slice(1), expected)
})

test('a thought is not replayed to a Responses vendor without what followed it', () => {
  const input = [
    { role: 'user', content: 'Hi' },
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'own' },
  ]
  const details = [{ type: 'reasoning.encrypted', id: 'rs_1', data: 'own' }]
  const sent = chatTo(RESPONSES, {
    messages: [...hi, { role: 'assistant', content: '', reasoning_details: details }, ...hi],
  })
  assert.ok((sent.input as Json[]).every((item) => item.type === 'message'))
  assert.deepEqual((responsesTo(RESPONSES, { input }) as Json).input, input)
})

test('the signature that a chat vendor attached to a call comes back through the other two doors', async () => {
  const extra = { google: { thought_signature: 'c2ln' } }
  const reply = completion(
    { content: null, tool_calls: [{ ...call('call_1', 'f', '{}'), extra_content: extra }] },
    'tool_calls',
  )
  const { content } = await answered(open(MESSAGES, CHAT, messages()), reply)
  const turns = [
    ...hi,
    { role: 'assistant', content },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'ok' }] },
  ]
  const sent = messagesTo(CHAT, { messages: turns }).messages as Json[]
  assert.deepEqual(sent[1], {
    role: 'assistant',
    content: null,
    tool_calls: [{ ...call('call_1', 'f', '{}'), extra_content: extra }],
  })
  const { output } = await answered(open(RESPONSES, CHAT, responses()), reply)
  const input = [
    { role: 'user', content: 'Hi' },
    ...(output as Json[]),
    { type: 'function_call_output', call_id: 'call_1', output: 'ok' },
  ]
  assert.deepEqual((responsesTo(CHAT, { input }).messages as Json[])[1], sent[1])
})

test('reasoning goes back to families that insist on it, and to no others', () => {
  const turns = [
    ...hi,
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm', signature: 'tollgate.plain:' },
        { type: 'tool_use', id: 'c', name: 'f', input: {} },
      ],
    },
  ]
  const assistant = (traits: TextTraitsGiven) => (messagesTo(CHAT, { messages: turns }, traits).messages as Json[])[1]!
  assert.equal(assistant({ reasoningReplay: true }).reasoning_content, 'Hm')
  assert.equal(assistant({}).reasoning_content, undefined)
})

test('thoughts of another family are not sent to a vendor that would refuse them', () => {
  const foreign = { type: 'thinking', thinking: 'Hm', signature: 'tollgate.plain:' }
  const own = { type: 'thinking', thinking: 'Ah', signature: 'sig' }
  const text = { type: 'text', text: 'x' }
  const sent = messagesTo(MESSAGES, { messages: [...hi, { role: 'assistant', content: [foreign, own, text] }] })
  assert.deepEqual((sent.messages as Json[])[1], { role: 'assistant', content: [own, text] })
  const items = [
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'tollgate.signature:x' },
    { role: 'user', content: 'Hi' },
  ]
  assert.deepEqual(responsesTo(RESPONSES, { input: items }).input, [items[1]])
})

test('thinking is not switched on where the vendor would refuse it', () => {
  const thinking = { type: 'adaptive' }
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const sent = (over: object, traits: TextTraitsGiven = {}) => chatTo(MESSAGES, over, traits).thinking
  assert.deepEqual(sent({ thinking }), thinking)
  assert.equal(sent({ thinking, tools, tool_choice: 'required' }), undefined)
  assert.equal(sent({ thinking, tools, tool_choice: { type: 'function', function: { name: 'f' } } }), undefined)
  const unsigned = [
    ...hi,
    { role: 'assistant', content: null, reasoning_content: 'Hm', tool_calls: [call('c', 'f', '{}')] },
    { role: 'tool', tool_call_id: 'c', content: 'x' },
  ]
  assert.equal(sent({ thinking, tools, messages: unsigned }), undefined)
  assert.deepEqual(sent({ thinking: { type: 'disabled' } }), { type: 'disabled' })
  assert.equal(sent({ thinking: { type: 'disabled' } }, { thinkingOptional: false }), undefined)
  assert.deepEqual(sent({ reasoning_effort: 'none' }), { type: 'disabled' })
  assert.deepEqual(sent({ reasoning_effort: 'high' }, { effort: 'budget' }), { type: 'enabled', budget_tokens: 16_384 })
  assert.equal(sent({ reasoning_effort: 'high', temperature: 0 }, { effort: 'budget' }), undefined)
  assert.equal(sent({ reasoning_effort: 'high', max_tokens: 100 }, { effort: 'budget' }), undefined)
  assert.deepEqual(chatTo(MESSAGES, { reasoning_effort: 'minimal' }).output_config, { effort: 'low' })
})

test('a tool by its name is said with a word where the vendor takes no names, whoever asks', () => {
  const traits = { namedToolChoice: false }
  const name = (tool: string) => ({ name: tool, input_schema: { type: 'object' } })
  const sent = sentTo(
    MESSAGES,
    CHAT,
    {
      model: 'm',
      max_tokens: 10,
      messages: hi,
      tools: [name('f'), name('g')],
      tool_choice: { type: 'tool', name: 'g' },
    },
    traits,
  )
  assert.equal(sent.tool_choice, 'required')
  assert.deepEqual(
    (sent.tools as Array<{ function: { name: string } }>).map((tool) => tool.function.name),
    ['g'],
  )
  const absent = { type: 'function', function: { name: 'none' } }
  const tools = [{ type: 'function', function: { name: 'f' } }]
  assert.deepEqual(chatTo(CHAT, { tools, tool_choice: absent }, traits).tool_choice, absent)
  assert.equal(chatTo(CHAT, { tools, tool_choice: 'auto' }, traits).tool_choice, 'auto')
})

test('a chat request for a Responses vendor keeps top_p, drops stop, and is not stored unless asked', () => {
  const sent = chatTo(RESPONSES, {
    top_p: 0.5,
    stop: 'x',
    seed: 1,
    logit_bias: {},
    frequency_penalty: 1,
    max_tokens: 20,
  })
  assert.deepEqual(Object.keys(sent).sort(), ['input', 'max_output_tokens', 'model', 'store', 'top_p'])
  assert.equal(sent.store, false)
  assert.equal(chatTo(RESPONSES, { store: true }).store, true)
})

test('what another format has no words for is refused, and the field is named', () => {
  const image = { role: 'user', content: [{ type: 'image_url', image_url: { url: 'ftp://x' } }] }
  const cases: [ClientFormatName, ClientFormatName, object, string][] = [
    [CHAT, MESSAGES, chat({ n: 2 }), 'n'],
    [CHAT, MESSAGES, chat({ messages: [image] }), 'messages[0].content[0].image_url.url'],
    [
      CHAT,
      MESSAGES,
      chat({ messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] }),
      'messages[0].content[0]',
    ],
    [
      CHAT,
      MESSAGES,
      chat({ messages: [{ role: 'user', content: [{ type: 'video_url', video_url: {} }] }] }),
      'messages[0].content[0].type',
    ],
    [CHAT, MESSAGES, chat({ tools: [{ type: 'custom', custom: { name: 'x' } }] }), 'tools[0].type'],
    [RESPONSES, CHAT, responses({ previous_response_id: 'r' }), 'previous_response_id'],
    [RESPONSES, CHAT, responses({ conversation: 'c' }), 'conversation'],
    [RESPONSES, MESSAGES, responses({ tools: [{ type: 'file_search' }] }), 'tools[0].type'],
    [RESPONSES, MESSAGES, responses({ input: [{ type: 'item_reference', id: 'msg_1' }] }), 'input[0]'],
    [RESPONSES, MESSAGES, responses({ input: [{ type: 'web_search_call', id: 'ws_1' }] }), 'input[0].type'],
    [MESSAGES, CHAT, messages({ tools: [{ type: 'code_execution_20250825', name: 'x' }] }), 'tools[0].type'],
    [
      MESSAGES,
      CHAT,
      messages({ messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file', file_id: 'f' } }] }] }),
      'messages[0].content[0]',
    ],
    [MESSAGES, RESPONSES, messages({ mcp_servers: [{ url: 'x' }] }), 'mcp_servers'],
    [MESSAGES, RESPONSES, messages({ thread: { type: 'create' } }), 'thread'],
  ]
  for (const [front, back, body, field] of cases)
    assert.equal(
      paramOf(() => open(front, back, body)),
      field,
      `${front} to ${back} ${field}`,
    )
})

test('an error that comes with status 200 is an error', async () => {
  const error = { error: { message: 'Overloaded at https://api.vendor.com', type: 'overloaded_error' } }
  for (const front of [CHAT, RESPONSES, MESSAGES] as const)
    for (const back of [CHAT, RESPONSES, MESSAGES] as const) {
      const body = { [CHAT]: chat(), [RESPONSES]: responses(), [MESSAGES]: messages() }[front]
      await assert.rejects(
        async () => answered(open(front, back, body), { ...error, choices: [] }),
        (thrown) => thrown instanceof Fault && thrown.kind === 'upstream_unavailable',
      )
    }
  const relay = open(CHAT, CHAT, chat({ stream: true })).stream!({})
  assert.equal(relay.push(Buffer.from(`data: ${JSON.stringify({ ...error, choices: [] })}\n\n`)), undefined)
  assert.equal(relay.state.fault?.kind, 'upstream_unavailable')
  for (const garbage of ['<html>', '[]', '{}', '{"choices":{}}'])
    assert.throws(
      () => open(CHAT, CHAT, chat()).answer(Buffer.from(garbage), {}),
      (thrown) => thrown instanceof Fault && thrown.kind === 'upstream_garbled',
    )
})

test('keep-alives cannot be taken for events', () => {
  const keepAlive = (front: ClientFormatName, body: object) => open(front, front, body).stream!({}).keepAlive
  assert.equal(keepAlive(CHAT, chat({ stream: true })), ': ping\n')
  assert.equal(keepAlive(RESPONSES, responses({ stream: true })), ': ping\n')
  assert.match(keepAlive(MESSAGES, messages({ stream: true })), /^event: ping\ndata: .*\n\n$/)
})

test('vendors that leave out the event line are understood, and callers get it', () => {
  const bare = (events: Json[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  const text = streamed(
    open(MESSAGES, MESSAGES, messages({ stream: true })),
    bare([
      { type: 'message_start', message: { model: 'v', usage: { input_tokens: 1, output_tokens: 1 } } },
      { type: 'message_delta', delta: {}, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ]),
  )
  assert.match(text, /event: message_start\n[\s\S]*"model":"public"[\s\S]*event: message_stop\n/)
  const other = streamed(
    open(RESPONSES, RESPONSES, responses({ stream: true })),
    bare([
      { type: 'response.created', response: { model: 'v' } },
      { type: 'response.completed', response: { model: 'v', output: [] } },
    ]),
  )
  assert.match(other, /event: response.created\n[\s\S]*event: response.completed\n/)
})

test('callers of the deprecated functions get function calls', async () => {
  const body = chat({ functions: [{ name: 'f', parameters: { type: 'object' } }] })
  const reply = {
    content: [{ type: 'tool_use', id: 't', name: 'f', input: { a: 1 } }],
    stop_reason: 'tool_use',
    usage: { input_tokens: 1, output_tokens: 1 },
  }
  const [choice] = (await answered(open(CHAT, MESSAGES, body), reply)).choices as Json[]
  assert.equal(choice!.finish_reason, 'function_call')
  assert.deepEqual((choice!.message as Json).function_call, { name: 'f', arguments: '{"a":1}' })
})

test('custom tools travel between chat and Responses', async () => {
  const sent = chatTo(RESPONSES, {
    tools: [{ type: 'custom', custom: { name: 'sql', description: 'd' } }],
    tool_choice: { type: 'custom', custom: { name: 'sql' } },
  })
  assert.deepEqual(sent.tools, [{ type: 'custom', name: 'sql', description: 'd' }])
  assert.deepEqual(sent.tool_choice, { type: 'custom', name: 'sql' })
  const output = [{ type: 'custom_tool_call', id: 'ctc_1', call_id: 'c1', name: 'sql', input: 'select 1' }]
  const [choice] = (await answered(open(CHAT, RESPONSES, chat()), { status: 'completed', output })).choices as Json[]
  const { message } = choice as { message: Json }
  assert.deepEqual(message.tool_calls, [{ id: 'c1', type: 'custom', custom: { name: 'sql', input: 'select 1' } }])
  const again = chatTo(RESPONSES, { messages: [...hi, message, { role: 'tool', tool_call_id: 'c1', content: '1' }] })
  assert.deepEqual((again.input as Json[]).slice(1), [
    { type: 'custom_tool_call', call_id: 'c1', name: 'sql', input: 'select 1' },
    { type: 'custom_tool_call_output', call_id: 'c1', output: '1' },
  ])
})
