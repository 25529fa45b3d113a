// What a vendor's error is called, at every door: SDKs choose their classes by the status, frameworks by the code.
import type { CatalogInput } from '../../src/catalog/document.ts'
import type { Log } from '../../src/kernel/log.ts'
import { assert, before, started, test, testGateway } from '../gateway.ts'
import { chunk, event, STREAM_HEADERS, startVendor, usage, wholeAnswer } from './chat-vendor.ts'

let key: string
const logged: Array<Record<string, unknown>> = []
const vendor = started(startVendor)
const write = (fields: object, message: string) => void logged.push({ ...fields, message })
const log: Log = { debug: write, info: write, warn: write, error: write }
const g = testGateway(() => ({
  log,
  catalog(document: CatalogInput) {
    for (const name of ['alpha', 'beta']) Object.assign(document.vendors[name]!, { baseUrl: vendor.url })
    document.models['beta-opus-5']!.routes[0]!.model = 'vendor-opus'
  },
}))
before(async () => {
  key = (await g.account()).key
})

interface Told {
  readonly status: number
  readonly body: {
    code?: number
    type?: string
    message?: string
    error?: {
      code?: unknown
      type?: string
      param?: string | null
      message?: string
      details?: { error_code?: string }
    }
  }
}

const DOORS = {
  chat: ['/v1/chat-completions', { model: 'alpha-5.4' }],
  'chat by messages': ['/v1/chat-completions', { model: 'beta-opus-5' }],
  responses: ['/alpha/responses', { model: 'alpha-5.4', input: 'hello' }],
  messages: ['/beta/v1/messages', { model: 'beta-opus-5', max_tokens: 9 }],
  images: ['/alpha/v1/images/generations', { model: 'alpha-image-2', prompt: 'a cat' }],
} as const

async function ask(door: keyof typeof DOORS, more: object = {}): Promise<Response> {
  const [path, body] = DOORS[door]
  const messages = 'input' in body || 'prompt' in body ? {} : { messages: [{ role: 'user', content: 'hello' }] }
  return g.call(path, key, { ...body, ...messages, ...more }, { headers: { 'x-stainless-lang': 'js' } })
}

async function refused(door: keyof typeof DOORS, status: number, error: object, more?: object): Promise<Told> {
  vendor.answer = ({ response }) => response.writeHead(status).end(JSON.stringify({ type: 'error', error }))
  vendor.calls.length = 0
  const answer = await ask(door, more)
  assert.ok(vendor.calls.length > 0, 'the vendor was not asked')
  return { status: answer.status, body: (await answer.json()) as Told['body'] }
}

/** A success at both vendors: their failures count no more. */
async function recover(): Promise<void> {
  vendor.answer = ({ response }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('fine', usage(1, 1)))
  assert.equal((await ask('chat')).status, 200)
  vendor.answer = ({ response }) =>
    response.end(JSON.stringify({ id: 'msg_1', type: 'message', content: [], usage: { input_tokens: 1 } }))
  assert.equal((await ask('messages')).status, 200)
}

const LONG = { message: 'prompt is too long: 210000 tokens > 200000 maximum', type: 'invalid_request_error' }

test('a code that frameworks know arrives under its name at every door, whatever format the vendor speaks', async () => {
  const openai = (code: string) => ({ message: 'no', type: 'invalid_request_error', param: 'model', code })
  const cases: Array<[keyof typeof DOORS, object, string]> = [
    ['chat', openai('context_length_exceeded'), 'context_length_exceeded'],
    ['chat', openai('content_filter'), 'content_filter'],
    ['chat', openai('unsupported_parameter'), 'unsupported_parameter'],
    ['chat', { message: "This model's maximum context length is 8192 tokens" }, 'context_length_exceeded'],
    ['chat', { message: 'Content Exists Risk' }, 'content_policy_violation'],
    ['chat by messages', LONG, 'context_length_exceeded'],
    ['chat by messages', { ...LONG, message: 'Could not process image' }, 'invalid_image'],
    ['responses', openai('invalid_prompt'), 'invalid_prompt'],
    ['responses', openai('previous_response_not_found'), 'previous_response_not_found'],
    ['images', openai('moderation_blocked'), 'moderation_blocked'],
    // What nobody knows may be anything.
    ['chat', openai('internal_tenant_17'), 'invalid_request'],
  ]
  for (const [door, error, code] of cases) {
    const { status, body } = await refused(door, 400, error)
    assert.equal(status, 400, JSON.stringify(body))
    assert.deepEqual([body.code, body.type, body.error?.code], [10000, 'api_error', code], door)
    assert.equal(body.error?.type, 'invalid_request_error')
  }
  const { body } = await refused('messages', 400, {
    ...LONG,
    message: 'threads are not supported with this tool',
    details: { error_code: 'thread_unsupported_request' },
  })
  assert.equal(body.error?.details?.error_code, 'thread_unsupported_request')
  assert.equal(body.type, 'error')
  assert.match((await refused('messages', 400, LONG)).body.error?.message ?? '', /^prompt is too long: 210000/)
})

test('the field at fault is named where the caller has such a field, and in nobody else’s words', async () => {
  const error = { message: 'no', type: 'invalid_request_error', code: 'invalid_value', param: 'messages[0].content' }
  assert.equal((await refused('chat', 400, error)).body.error?.param, 'messages[0].content')
  assert.equal((await refused('responses', 400, { ...error, param: 'input[0]' })).body.error?.param, 'input[0]')
  assert.equal((await refused('chat', 400, { ...error, param: 'http://10.0.0.1/x' })).body.error?.param, null)
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
  // By way of Responses: there the conversation is called input, here it is not.
  assert.equal((await refused('chat', 400, { ...error, param: 'input[0]' }, { tools })).body.error?.param, null)
  assert.equal(
    (await refused('chat', 400, { ...error, param: 'tools[0].name' }, { tools })).body.error?.param,
    'tools[0].name',
  )
})

test('a code inside a stream arrives too, also in response.failed', async () => {
  const error = { message: 'Your input exceeds the context window', code: 'context_length_exceeded' }
  const response = { id: 'resp_1', object: 'response', model: 'm', status: 'in_progress', output: [] }
  const named = (type: string, data: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
  const streamed = async (door: keyof typeof DOORS, text: string, more: object = {}) => {
    vendor.answer = (call) => call.response.writeHead(200, STREAM_HEADERS).end(text)
    return (await ask(door, { stream: true, ...more })).text()
  }
  const created = named('response.created', { response, sequence_number: 0 })
  const failed = created + named('response.failed', { response: { ...response, status: 'failed', error } })
  const begun = named('message_start', { message: { id: 'msg_1', model: 'm', usage: { input_tokens: 1 } } })
  const long = begun + named('error', { error: LONG })
  const code = /"code":"context_length_exceeded"/
  assert.match(await streamed('chat', chunk('one ') + event({ error })), code)
  assert.match(await streamed('responses', failed), /response\.failed[\s\S]*"error":\{"code":"context_length_exceeded"/)
  assert.match(await streamed('responses', named('error', { ...error, sequence_number: 0 })), code)
  assert.match(await streamed('chat by messages', long), code)
  assert.match(await streamed('messages', long), /event: error\n.*"details":\{"error_code":"context_length_exceeded"\}/)
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
  assert.match(await streamed('chat', failed, { tools }), code)
})

test('an empty account of ours is a 503, a body too large for the vendor a 413', async () => {
  for (const [status, error] of [
    [429, { code: 'insufficient_quota', message: 'You exceeded your current quota' }],
    [402, { message: 'pay' }],
    [400, { type: 'invalid_request_error', message: 'Your credit balance is too low to access the API' }],
  ] as const)
    for (const door of ['chat', 'chat by messages', 'responses', 'messages', 'images'] as const) {
      const told = await refused(door, status, error)
      assert.equal(told.status, 503, `${door} ${status}: ${JSON.stringify(told.body)}`)
      assert.equal(told.body.code, 50001)
      assert.doesNotMatch(JSON.stringify(told.body), /quota|balance|pay/)
      // The breaker counts these, as it should.
      await recover()
    }
  const large = await refused('messages', 413, { type: 'request_too_large', message: 'Request exceeds 32 MB' })
  assert.deepEqual([large.status, large.body.code, large.body.error?.type], [413, 10000, 'request_too_large'])
  assert.equal((await refused('chat', 413, { message: 'too large' })).status, 413)
})

const CLOUD_PATH = 'projects/our-own-project/locations/us-central1/publishers/google/models'

test('a cloud’s words do not show whose project it is', async () => {
  const told = await refused('messages', 400, { message: `Bad field for ${CLOUD_PATH}/vendor-opus, project our-own.` })
  assert.equal(told.status, 400)
  assert.doesNotMatch(JSON.stringify(told.body), /our-own-project/)
})

test('what a model tried to say before its call was rejected reaches the caller', async () => {
  const generation = '<function=look>{"a": 1</function>'
  const error = { message: 'Failed to call a function.', type: 'invalid_request_error', code: 'tool_use_failed' }
  const told = await refused('chat', 400, { ...error, failed_generation: generation })
  assert.deepEqual([told.status, told.body.error?.code], [400, 'tool_use_failed'])
  assert.equal((told.body.error as { failed_generation?: string }).failed_generation, generation)
})

test('a model that the vendor does not know is our mistake: callers are not blamed, and the operator is told', async () => {
  for (const [door, status, error] of [
    ['chat', 404, { code: 'model_not_found', message: 'The model `gpt-7` does not exist or you do not have access' }],
    ['chat', 400, { code: 'invalid_request_error', message: 'Model Not Exist' }],
    ['responses', 400, { message: "The requested model 'alpha-5.4' does not exist.", code: 'model_not_found' }],
    ['messages', 404, { type: 'not_found_error', message: 'model: vendor-opus' }],
    ['chat by messages', 404, { type: 'not_found_error', message: 'model: vendor-opus' }],
    // Azure, Groq, Bedrock, Cohere, Google and its cloud.
    ['chat', 404, { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' }],
    ['chat', 400, { code: 'model_decommissioned', message: 'The model `x` has been decommissioned.' }],
    ['messages', 400, { message: 'The provided model identifier is invalid.' }],
    ['messages', 404, { message: 'This model version has reached the end of its life.' }],
    ['messages', 404, { message: "model 'vendor-opus' was removed on September 15, 2025." }],
    ['messages', 404, { status: 'NOT_FOUND', message: 'models/vendor-opus is not found for API version v1beta' }],
    ['messages', 404, { status: 'NOT_FOUND', message: 'This model models/vendor-opus is no longer available.' }],
    [
      'messages',
      404,
      {
        status: 'NOT_FOUND',
        message: `Publisher Model \`${CLOUD_PATH}/vendor-opus\` was not found or your project does not have access to it.`,
      },
    ],
  ] as const) {
    logged.length = 0
    const told = await refused(door, status, error)
    assert.equal(told.status, 502, JSON.stringify(told.body))
    assert.doesNotMatch(JSON.stringify(told.body), /not exist|vendor-opus|gpt/i)
    const alert = logged.find((line) => line.alert === true)
    assert.match(String(alert?.why), /does not know the model/)
    assert.ok(alert?.vendor && alert.model)
  }
})
