// What clients that nobody here wrote send and expect: Codex, Claude Code, the newest Anthropic SDK.
import { afterEach, assert, jsonOf, listen, startGateway, test, testGateway, textOf } from './gateway.ts'
import { openAllDoors } from './sdk/families.ts'

let key: string
const g = testGateway({ catalog: openAllDoors }, async () => {
  key = (await g.account()).key
})
afterEach(() => g.sandbox.seen.clear())

const SHELL = {
  type: 'function',
  name: 'shell',
  description: 'Runs a command.',
  strict: false,
  parameters: { type: 'object', properties: {} },
}
/** As Codex 0.166 sends it. */
const CODEX = {
  model: 'alpha-5.4',
  instructions: 'You are a coding agent.',
  input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Say hello.' }] }],
  tools: [
    SHELL,
    { type: 'namespace', name: 'files', description: 'Files.', tools: [{ ...SHELL, name: 'read' }] },
    { type: 'web_search', external_web_access: false },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: false,
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: '019d-session',
  client_metadata: { 'x-codex-installation-id': 'a0b1' },
}
/** As the WebSearch tool of Claude Code 2.1 sends it. */
const WEB_SEARCH = {
  model: 'beta-sonnet-4-6',
  max_tokens: 2000,
  stream: true,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Perform a web search for the query: toll gates' }] }],
  tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }],
  tool_choice: { type: 'auto' },
}

const sent = () => JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '{}')

test('web search that a client only offers is left out and named, and its request is answered', async () => {
  const codex = await g.call('/v1/responses', key, CODEX)
  assert.match(await codex.text(), /response\.completed/)
  assert.equal(codex.headers.get('x-tollgate-left-out'), 'web_search')
  assert.deepEqual(sent().tools, CODEX.tools.slice(0, 2))
  assert.deepEqual(sent().client_metadata, CODEX.client_metadata)

  const search = await g.call('/beta/v1/messages', key, WEB_SEARCH)
  assert.match(await search.text(), /message_stop/)
  assert.equal(search.headers.get('x-tollgate-left-out'), 'web_search')
  assert.equal(sent().tools, undefined)
  assert.equal(sent().tool_choice, undefined)

  // Also where the vendor speaks another format.
  const converted = await g.call('/v1/responses', key, {
    ...CODEX,
    model: 'beta-sonnet-4-6',
    tools: [SHELL, CODEX.tools[2]],
    stream: false,
  })
  assert.equal(converted.status, 200, await converted.clone().text())
  assert.equal(converted.headers.get('x-tollgate-left-out'), 'web_search')
  assert.deepEqual(
    sent().tools.map((tool: { name: string }) => tool.name),
    ['shell'],
  )

  const plain = await g.call('/v1/responses', key, { ...CODEX, tools: [SHELL], stream: false })
  assert.equal(plain.headers.get('x-tollgate-left-out'), null)
})

test('a request that cannot do without web search is refused before any vendor hears of it', async () => {
  const web = CODEX.tools[2]!
  for (const [path, body] of [
    ['/v1/responses', { ...CODEX, tool_choice: { type: 'web_search' } }],
    ['/v1/responses', { ...CODEX, tools: [web], tool_choice: 'required' }],
    [
      '/v1/responses',
      { ...CODEX, tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'web_search' }] } },
    ],
    ['/beta/v1/messages', { ...WEB_SEARCH, tool_choice: { type: 'tool', name: 'web_search' } }],
    ['/beta/v1/messages', { ...WEB_SEARCH, tool_choice: { type: 'any' } }],
  ] as const) {
    assert.match(await textOf(g.call(path, key, body), 400), /web_search.* has no price here/)
  }
  assert.equal(g.sandbox.seen.requests, 0)
})

const THREADS = { headers: { 'anthropic-beta': 'message-threads-2026-08-12', 'anthropic-version': '2023-06-01' } }
const WEATHER = {
  name: 'get_weather',
  description: 'Weather.',
  input_schema: { type: 'object', properties: { city: { type: 'string' } } },
}
const threaded = (over: object) => ({ model: 'beta-sonnet-4-6', max_tokens: 1000, ...over })
const create = threaded({
  thread: { type: 'create' },
  tools: [WEATHER],
  messages: [{ role: 'user', content: 'What is the weather in Oslo? Use get_weather.' }],
})

test('a thread goes on in the sandbox with nothing but the tool’s result, once', async () => {
  const first: any = await (await g.call('/beta/v1/messages', key, create, THREADS)).json()
  const call = first.content.find((block: { type: string }) => block.type === 'tool_use')
  const next = threaded({
    thread: { type: 'continue', previous_message_id: first.id },
    messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: '4 degrees' }] }],
  })
  const second: any = await (await g.call('/beta/v1/messages', key, next, THREADS)).json()
  assert.equal(second.stop_reason, 'end_turn', JSON.stringify(second))
  const again = await g.call('/beta/v1/messages', key, next, THREADS)
  assert.equal(again.status, 400)
  assert.equal(((await again.json()) as any).error.details.error_code, 'thread_already_continued')
})

test('where no vendor keeps threads, the error says so in the code that makes the SDK send the conversation whole', async () => {
  const { error } = await jsonOf<any>(
    g.call('/beta/v1/messages', key, { ...create, model: 'gamma-v4-pro' }, THREADS),
    400,
  )
  assert.equal(error.type, 'invalid_request_error')
  assert.equal(error.details.error_code, 'thread_unsupported_request')
})

test('the code in `details` of a vendor’s refusal reaches the caller, and nothing else of it', async () => {
  await using vendor = await listen((_request, response) => {
    const details = {
      error_code: 'thread_unsupported_request',
      unsupported: ['thinking', 'sk-ant-0123 of org-1'],
      org: 'x',
    }
    response.writeHead(400, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: 'No threads.', details } }),
    )
  })
  await using own = await startGateway({
    catalog(document) {
      document.vendors.beta = { baseUrl: vendor.url }
    },
  })
  const { error } = await jsonOf<any>(own.call('/beta/v1/messages', (await own.account()).key, create, THREADS), 400)
  assert.deepEqual(error, {
    type: 'invalid_request_error',
    message: 'No threads.',
    details: { error_code: 'thread_unsupported_request', unsupported: ['thinking'] },
  })
})

test('every error below /beta is one that the Anthropic SDKs can read', async () => {
  for (const [path, init] of [
    ['/beta/v1/models/nope', {}],
    ['/beta/v1/models', { headers: { authorization: 'Bearer tg_live_wrong' } }],
    ['/beta/v1/models', { method: 'DELETE' }],
    ['/beta/v1/files', {}],
    ['/beta', { method: 'POST' }],
    ['/beta/v1/messages', { method: 'PUT' }],
  ] as const) {
    const answer = await g.call(path, key, undefined, init as RequestInit)
    const body = (await answer.json()) as any
    assert.ok(answer.status >= 400 && answer.status < 500, path)
    assert.equal(body.type, 'error', path)
    assert.equal(typeof body.error.type, 'string', path)
    assert.match(body.request_id, /^req_/, path)
  }
})
