// Shapes of real vendors' answers that once broke something, written by hand: small, and read in every format.
import catalog from '../src/catalog/default.json' with { type: 'json' }
import { checkDocument } from '../src/catalog/document.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import { fixtureOf } from './fixture.ts'
import { CLIENT_FORMATS, FORMATS } from './formats.ts'
import { assert, test } from './kit.ts'
import { eventsOf, saidBy } from './long/said.ts'
import { openPair, replay, UID } from './text-replay.ts'

const sse = (...events: object[]) =>
  Buffer.from(`${events.map((data) => `data: ${JSON.stringify(data)}\n\n`).join('')}data: [DONE]\n\n`)
const named = (...events: { type: string; [name: string]: unknown }[]) =>
  Buffer.from(events.map((data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`).join(''))

/** What callers of each format are told. */
async function heard(back: ClientFormatName, bytes: Buffer, stream: boolean) {
  const all: Partial<Record<ClientFormatName, ReturnType<typeof saidBy>>> = {}
  for (const front of CLIENT_FORMATS) {
    const exchange = await openPair({ front, back, stream, request: { tools: FORMATS[front].tools } })
    if (stream) {
      const { sent, last, terminal } = replay(exchange, [bytes])
      assert.ok(terminal, `${front} from ${back}`)
      all[front] = saidBy(front, Buffer.from(sent + last), true)
    } else {
      const { body } = await exchange.answer!(bytes, {})
      all[front] = saidBy(front, Buffer.isBuffer(body) ? body : Buffer.from(body), false)
    }
  }
  return Object.entries(all)
}

/** Of a vendor of chat, whole and streamed. */
async function heardBoth(whole: object, stream: Buffer) {
  const all = await heard('openai-chat', Buffer.from(JSON.stringify(whole)), false)
  return [
    ...all,
    ...(await heard('openai-chat', stream, true)).map(([front, said]) => [`${front}, streamed`, said] as const),
  ]
}

test('a tool call that the token limit cut says so in every format', async () => {
  const call = {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_1',
    name: 'f',
    arguments: '{"a":',
    status: 'incomplete',
  }
  const response = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'm',
    status: 'incomplete',
    output: [call],
    incomplete_details: { reason: 'max_output_tokens' },
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  }
  for (const [front, said] of await heard('openai-responses', Buffer.from(JSON.stringify(response)), false))
    assert.equal(said?.end, 'length', front)
  const begun = { ...response, status: 'in_progress', output: [], incomplete_details: null, usage: null }
  const stream = named(
    { type: 'response.created', response: begun },
    { type: 'response.output_item.added', output_index: 0, item: { ...call, arguments: '' } },
    { type: 'response.function_call_arguments.delta', output_index: 0, item_id: 'fc_1', delta: '{"a":' } as {
      type: string
    },
    { type: 'response.output_item.done', output_index: 0, item: call },
    { type: 'response.incomplete', response },
  )
  for (const [front, said] of await heard('openai-responses', stream, true)) assert.equal(said?.end, 'length', front)
})

test('content that comes as parts keeps its text and its thoughts, whole and streamed', async () => {
  const thinking = [{ type: 'thinking', thinking: [{ type: 'text', text: '12 times 12' }] }]
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  const whole = {
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    usage,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: [...thinking, { type: 'text', text: '144' }] },
        finish_reason: 'stop',
      },
    ],
  }
  const chunk = (content: unknown, finish: string | null = null) => ({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: finish }],
  })
  const stream = sse(
    chunk(''),
    chunk([{ type: 'thinking', thinking: [{ type: 'text', text: '12 ' }] }]),
    chunk([{ type: 'thinking', thinking: [{ type: 'text', text: 'times 12' }] }]),
    chunk([{ type: 'text', text: '1' }]),
    chunk('44'),
    { ...chunk('', 'stop'), usage },
  )
  for (const [front, said] of await heardBoth(whole, stream))
    assert.deepEqual([said?.text, said?.thoughts], ['144', '12 times 12'], front)
})

test('a filtered choice without a message is an answer with a filter finish, in every format', async () => {
  const filtered = {
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, finish_reason: 'content_filter', content_filter_results: { hate: { filtered: true } } }],
    usage: { prompt_tokens: 3, completion_tokens: 0, total_tokens: 3 },
  }
  for (const [front, said] of await heard('openai-chat', Buffer.from(JSON.stringify(filtered)), false))
    assert.deepEqual([said?.text, said?.end], ['', 'filter'], front)
})

test('a call without a name, which a vendor writes for none, is no call', async () => {
  const none = { function_call: { arguments: '', name: '' }, tool_calls: null, refusal: '' }
  const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
  const head = { id: 'c1', object: 'chat.completion', created: 1, model: 'm', usage }
  const choice = { index: 0, finish_reason: 'stop' }
  const whole = { ...head, choices: [{ ...choice, message: { role: 'assistant', content: '4', ...none } }] }
  const stream = sse({ ...head, choices: [{ ...choice, delta: { role: 'assistant', content: '4', ...none } }] })
  for (const [front, said] of await heardBoth(whole, stream))
    assert.deepEqual([said?.text, said?.calls, said?.end], ['4', [], 'stop'], front)
})

test('an empty finish reason in every chunk is no finish, nor is one in a member of the vendor’s own', async () => {
  const chunk = (content: string) => ({
    id: 'c1',
    object: 'chat.completion.chunk',
    created: 1,
    model: UID,
    x_own: { finish_reason: 'stop' },
    choices: [{ index: 0, delta: { content }, finish_reason: '' }],
  })
  const cut = Buffer.from(sse(chunk('a'), chunk('b')).toString('utf8').replace('data: [DONE]\n\n', ''))
  for (const front of CLIENT_FORMATS)
    assert.equal(replay(await openPair({ front, back: 'openai-chat' }), [cut]).terminal, false, front)
})

test('a response object of a compatible vendor gets no members that it did not send, but those that SDKs need', async () => {
  const vendors = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'completed', output: [] }
  const exchange = await openPair({ front: 'openai-responses', back: 'openai-responses', stream: false })
  const { body } = await exchange.answer!(Buffer.from(JSON.stringify(vendors)), {})
  const needed = { parallel_tool_calls: true, tool_choice: 'auto', tools: [] }
  assert.deepEqual(JSON.parse(String(body)), { ...vendors, model: UID, ...needed })
})

test('the structured output of Messages, in its older and its newer place, is asked of other vendors too', async () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const format = { type: 'json_schema', schema }
  for (const request of [{ output_format: format }, { output_config: { format } }]) {
    const { call } = await openPair({ front: 'anthropic-messages', back: 'openai-chat', stream: false, request })
    const { response_format: asked } = JSON.parse(String(call.body))
    assert.deepEqual(asked?.json_schema?.schema, schema)
  }
})

const ACCEPTED = fixtureOf<[what: string, ClientFormatName, request: object, sent: object][]>('loose-requests.yaml')

for (const [what, format, request, wanted] of ACCEPTED)
  test(`${what} reaches a vendor of ${format}`, async () => {
    const { call } = await openPair({ front: format, back: format, stream: false, request })
    const sent = JSON.parse(String(call.body))
    for (const [name, value] of Object.entries(wanted)) assert.deepEqual(sent[name], value)
  })

test('Groq’s usual tier is the usual one at vendors of other formats', async () => {
  const request = { service_tier: 'on_demand' }
  const { call } = await openPair({ front: 'openai-chat', back: 'openai-responses', stream: false, request })
  assert.equal(JSON.parse(String(call.body)).service_tier, 'default')
})

test('a Responses request may have a prompt of the vendor and no input, but not neither', async () => {
  const request = { input: undefined, prompt: { id: 'pmpt_1' } }
  const pair = { front: 'openai-responses', back: 'openai-responses', stream: false } as const
  const { call } = await openPair({ ...pair, request, traits: { sharedIds: ['pmpt_1'] } })
  assert.deepEqual(JSON.parse(String(call.body)).prompt, { id: 'pmpt_1' })
  await assert.rejects(openPair({ ...pair, request: { input: undefined } }), /"input" is required/)
})

test('a loose form hides no tool that runs at the vendor, and converts like the documented one', async () => {
  const pair = { front: 'gemini', back: 'gemini', stream: false } as const
  await assert.rejects(openPair({ ...pair, request: { tools: { fileSearch: {} } } }), (error: Error) => {
    // No price of a Gemini model would help.
    return /"tools\[0\]\.fileSearch": it reads stores of the operator's account/.test(error.message)
  })
  const request = { tools: { functionDeclarations: [{ name: 'f' }] } }
  const { call } = await openPair({ ...pair, back: 'openai-chat', request })
  assert.equal(JSON.parse(String(call.body)).tools[0].function.name, 'f')
})

test('a chat for a Messages vendor keeps top_p where the model takes it, but not beside a temperature', async () => {
  const checked = checkDocument(catalog)
  assert.ok('document' in checked)
  for (const [uid, model] of Object.entries(checked.document.models)) {
    if (model.type !== 'text' || model.family !== 'beta' || model.traits.dropParams.length > 0) continue
    const pair = { front: 'openai-chat', back: 'anthropic-messages', stream: false, traits: model.traits } as const
    const sent = async (request: object) => JSON.parse(String((await openPair({ ...pair, request })).call.body))
    assert.equal((await sent({ top_p: 0.5 })).top_p, 0.5, uid)
    const { temperature, top_p } = await sent({ temperature: 0.3, top_p: 0.5 })
    // The vendor rejects both together.
    assert.deepEqual([temperature, top_p], [0.3, undefined], uid)
  }
})

for (const [given, input] of [
  ['null', {}],
  [{ a: [1] }, { a: [1] }],
] as const)
  test(`a tool call with ${JSON.stringify(given)} for arguments has the same in every format, whole and streamed`, async () => {
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: given } }
    const head = {
      id: 'c_1',
      created: 1,
      model: 'm',
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    }
    const said = { role: 'assistant', tool_calls: [call] }
    const choice = { index: 0, finish_reason: 'tool_calls' }
    const whole = { ...head, object: 'chat.completion', choices: [{ ...choice, message: said }] }
    const stream = sse({ ...head, object: 'chat.completion.chunk', choices: [{ ...choice, delta: said }] })
    for (const [front, said] of await heardBoth(whole, stream))
      if (!front.startsWith('openai-chat')) assert.deepEqual(said?.calls, [{ name: 'f', input }], front)
  })

test('a chat stream of Groq, which reports usage in a member of its own, has a usage for those who ask', async () => {
  const chunk = { id: 'c_1', object: 'chat.completion.chunk', created: 1, model: 'vendor-model' }
  const said = (content: string, finish: string | null) => [{ index: 0, delta: { content }, finish_reason: finish }]
  const counted = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
  const bytes = sse(
    { ...chunk, choices: said('Hello', null), x_groq: { id: 'req_1' } },
    { ...chunk, choices: said(' there', 'stop'), x_groq: { id: 'req_1', usage: counted } },
  )
  for (const asks of [true, false]) {
    const request = { stream_options: asks ? { include_usage: true } : undefined }
    const exchange = await openPair({ front: 'openai-chat', back: 'openai-chat', request })
    const { sent, last, usage } = replay(exchange, [bytes])
    const events = eventsOf(Buffer.from(sent + last))
    assert.equal(events.at(-1).usage?.total_tokens, asks ? 5 : undefined)
    assert.equal(events.filter((event) => 'usage' in event && event.usage !== null).length, asks ? 1 : 0)
    assert.partialDeepStrictEqual(usage, { input: 3, output: 2 })
  }
})
