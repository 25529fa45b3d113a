// F63: input that is not in the body. What a vendor keeps, fetches or runs is held for beforehand and charged as
// reported, up to the model's context; a report beyond that is charged as far as the hold covers it, marked, and never
// silent.
import fc from 'fast-check'
import { recordVendorObjects } from '../../src/admission/vendor-objects.ts'
import type { CatalogInput } from '../../src/catalog/document.ts'
import { type Log, silentLog } from '../../src/kernel/log.ts'
import type { ClientFormatName } from '../../src/meter/kind.ts'
import { CLIENT_FORMATS, FORMATS, formatOf } from '../formats.ts'
import { afterEach, assert, type Call, started, startGateway, test, textOf } from '../gateway.ts'
import { faultModel, MODEL, STREAM_HEADERS, startVendor } from './chat-vendor.ts'
import { each, post } from './raw-client.ts'

const CONTEXT = 1_000_000
const HOSTED = ['web_search', 'file_search', 'code_interpreter', 'code_execution', 'image_generation']
/** What the catalog lets every account refer to. */
const SHARED = 'gs://b/v file-1 f audio_1 cachedContents/1 pmpt_1 c fs_1 conv_1 msg_1'.split(' ')

/** The prompt tokens that the vendor reports next. */
let reported = 500_000
const anomalies: Array<Record<string, unknown>> = []

const vendor = started(() =>
  startVendor(({ request, response }) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(answerOf(request.url ?? ''))
  }),
)
const log: Log = {
  ...silentLog,
  warn(fields) {
    if ('anomaly' in fields) anomalies.push(fields as Record<string, unknown>)
  },
}
const g = started(() =>
  startGateway({
    log,
    catalog(document: CatalogInput) {
      document.vendors.mock = { baseUrl: vendor.url }
      document.models[MODEL] = {
        ...faultModel(['mock'], { contextTokens: CONTEXT }),
        clientFormats: [...CLIENT_FORMATS],
        traits: { hostedTools: HOSTED, sharedIds: SHARED },
        routes: CLIENT_FORMATS.map((protocol) => ({ vendor: 'mock', protocol, model: 'vendor-model' })),
      }
    },
  }),
)
afterEach(() => g.settled())

function answerOf(path: string): string {
  const format = formatOf(path)
  const thought = { promptTokenCount: reported, thoughtsTokenCount: 20 }
  return JSON.stringify(FORMATS[format].answer(format === 'gemini' ? thought : FORMATS[format].usage(reported, 20)))
}

/** An account for which the vendor keeps what the requests go on from. */
async function keepingAccount() {
  const account = await g.account()
  const whose = { accountId: account.id, keyId: account.keyId }
  await recordVendorObjects(g.gateway.database, whose, ['resp_0', 'msg_0'], { vendor: 'mock', product: MODEL })
  return account
}

async function charge(door: ClientFormatName, body: object): Promise<Call> {
  const { id, key } = await keepingAccount()
  // The content of several turns at a vendor may be more than the one context that is held for it.
  if (reported > CONTEXT) g.mayExceedHold(id)
  await textOf(g.call(FORMATS[door].oldPath(MODEL), key, { model: MODEL, ...bodyOf(door), ...body }))
  return g.lastCall(id)
}

const bodyOf = (door: ClientFormatName) => FORMATS[door].body('Go on.', 50)

const user = (...content: object[]) => ({ messages: [{ role: 'user', content }] })
const part = (one: object) => ({ contents: [{ parts: [one] }] })
const item = (...content: object[]) => ({ input: [{ role: 'user', content }] })
const pdf = (bytes: number) => Buffer.alloc(bytes, 7).toString('base64')

type Way = [name: string, door: ClientFormatName, body: object]

/** Nothing in the body says how much there is: held for the whole context. */
const ELSEWHERE: Way[] = [
  ['a file at the vendor', 'gemini', part({ fileData: { fileUri: 'gs://b/v', mimeType: 'video/mp4' } })],
  ['a search at the vendor', 'gemini', { tools: [{ googleSearch: {} }] }],
  ['a file by its id', 'openai-chat', user({ type: 'file', file: { file_id: 'file-1' } })],
  ['a video by its address', 'openai-chat', user({ type: 'video_url', video_url: { url: 'https://x.test/v.mp4' } })],
  [
    'what the model said, by its id',
    'openai-chat',
    {
      messages: [
        { role: 'assistant', audio: { id: 'audio_1' } },
        { role: 'user', content: 'And?' },
      ],
    },
  ],
  ['web search', 'openai-chat', { web_search_options: {} }],
  ['a tool of the vendor’s', 'openai-chat', { tools: [{ type: 'browse', browse: {} }] }],
  ['a cached prompt by name', 'openai-chat', { cached_content: 'cachedContents/1' }],
  ['an earlier response', 'openai-responses', { previous_response_id: 'resp_0' }],
  ['a conversation', 'openai-responses', { conversation: 'conv_1' }],
  ['a prompt template', 'openai-responses', { prompt: { id: 'pmpt_1' } }],
  ['a reference', 'openai-responses', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
  ['a file by its id', 'openai-responses', item({ type: 'input_file', file_id: 'file-1' })],
  ['a file by its address', 'openai-responses', item({ type: 'input_file', file_url: 'https://x.test/a.pdf' })],
  [
    'a file in a tool’s answer',
    'openai-responses',
    {
      input: [
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file', file_id: 'file-1' }] },
      ],
    },
  ],
  ['an earlier search', 'openai-responses', { input: [{ type: 'file_search_call', id: 'fs_1', queries: ['a'] }] }],
  ...['mcp', 'web_search', 'file_search', 'code_interpreter', 'image_generation', 'shell', 'something_new'].map(
    (type): Way => [`the tool ${type}`, 'openai-responses', { tools: [{ type }] }],
  ),
  [
    'a remote server inside a namespace',
    'openai-responses',
    { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'mcp' }] }] },
  ],
  ['a thread', 'anthropic-messages', { thread: { type: 'continue', previous_message_id: 'msg_0' } }],
  ['remote tool servers', 'anthropic-messages', { mcp_servers: [{ type: 'url', url: 'https://x.test', name: 'x' }] }],
  ['a container with skills', 'anthropic-messages', { container: { id: 'c', skills: [{ skill_id: 'pdf' }] } }],
  ['a document by its address', 'anthropic-messages', user({ type: 'document', source: { type: 'url', url: 'u' } })],
  ['a document by its id', 'anthropic-messages', user({ type: 'document', source: { type: 'file', file_id: 'f' } })],
  ['a file for the container', 'anthropic-messages', user({ type: 'container_upload', file_id: 'f' })],
  [
    'a document in a tool’s answer',
    'anthropic-messages',
    user({
      type: 'tool_result',
      tool_use_id: 't',
      content: [{ type: 'document', source: { type: 'file', file_id: 'f' } }],
    }),
  ],
  ...['web_fetch_20260209', 'web_search_20260318', 'code_execution_20250825', 'mcp_toolset', 'something_new'].map(
    (type): Way => [`the tool ${type}`, 'anthropic-messages', { tools: [{ type, name: 'x' }] }],
  ),
]

/** In the body, but packed so that its bytes bound it only roughly. */
const PACKED: Way[] = [
  ['a PDF', 'openai-chat', user({ type: 'file', file: { file_data: `data:application/pdf;base64,${pdf(1e6)}` } })],
  ['a PDF', 'openai-responses', item({ type: 'input_file', file_data: `data:application/pdf;base64,${pdf(1e6)}` })],
  [
    'a PDF',
    'anthropic-messages',
    user({ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf(1e6) } }),
  ],
  [
    'a PDF called a picture',
    'openai-chat',
    user({ type: 'image_url', image_url: { url: `data:application/pdf;base64,${pdf(1e6)}` } }),
  ],
  [
    'encrypted search results',
    'anthropic-messages',
    user({
      type: 'web_search_tool_result',
      tool_use_id: 's',
      content: [{ type: 'web_search_result', url: 'u', title: 't', encrypted_content: pdf(1e6) }],
    }),
  ],
]

test('input that lives elsewhere or is packed is held for and charged as the vendor reports it, in every format', async () => {
  anomalies.length = 0
  reported = 500_000
  await each([...ELSEWHERE, ...PACKED].values(), 8, async ([name, door, body]) => {
    const row = await charge(door, body)
    assert.equal(row.charged, 500_040n, `${name} (${door}): charged ${row.charged}, held ${row.held}`)
    assert.ok(row.held >= row.charged, `${name} (${door}): the hold of ${row.held} does not cover it`)
    assert.ok(row.held <= BigInt(CONTEXT + 100), `${name} (${door}): held ${row.held}, more than the context`)
    assert.equal(row.estimated, false, `${name} (${door}) is not an estimate`)
  })
  assert.deepEqual(anomalies, [])
})

test('a report that cannot be is charged as far as the hold covers it, marked and told', async () => {
  // Beyond the context in every turn that a vendor may take.
  reported = CONTEXT * 64 + 1
  for (const [name, door, body] of ELSEWHERE) {
    anomalies.length = 0
    const row = await charge(door, body)
    assert.equal(row.charged, BigInt(CONTEXT + 40), `${name} (${door})`)
    assert.ok(row.charged <= row.held && row.estimated, `${name} (${door}): ${row.charged} of ${row.held}`)
    assert.equal(anomalies.length, 1)
  }
  // Of a plain body, which is read once, beyond the context.
  reported = CONTEXT + 1
  for (const door of CLIENT_FORMATS) {
    anomalies.length = 0
    const row = await charge(door, {})
    const input = row.lines.find(([unit]) => unit === 'input')?.[1] ?? 0
    assert.equal(row.held, BigInt(input + 100), 'the input that the hold covered is charged, not half of it')
    assert.ok(row.estimated)
    assert.equal(anomalies[0]?.usage && (anomalies[0].usage as { input: number }).input, CONTEXT + 1)
  }
  const { key } = await g.account()
  const metrics = await (await g.call('/metrics', key)).text()
  const counted = /^tollgate_usage_impossible_total\{product="fault-1"\} (\d+)$/m.exec(metrics)
  assert.equal(Number(counted?.[1]), ELSEWHERE.length + CLIENT_FORMATS.length, 'an alert can be made of it')
})

test('tools that the caller runs, pictures and text hold no more than they can be', async () => {
  reported = 60
  const local = ['local_shell', 'apply_patch', 'computer', 'custom', 'tool_search']
  const cases: Way[] = [
    ['local tools', 'openai-responses', { tools: local.map((type) => ({ type, name: 'x' })) }],
    ['a local shell', 'openai-responses', { tools: [{ type: 'shell', environment: { type: 'local' } }] }],
    [
      'client tools',
      'anthropic-messages',
      { tools: ['bash_20250124', 'text_editor_20250728', 'memory_20250818'].map((type) => ({ type, name: 'x' })) },
    ],
    [
      'a picture by its address',
      'openai-chat',
      user({ type: 'image_url', image_url: { url: 'https://x.test/a.png' } }),
    ],
    ['a new thread', 'anthropic-messages', { thread: { type: 'create' }, mcp_servers: [] }],
    [
      'ids in what a tool was given and in citations',
      'anthropic-messages',
      {
        messages: [
          { role: 'user', content: 'Go' },
          {
            role: 'assistant',
            content: [
              { type: 'text', text: 'a', citations: [{ type: 'page_location', file_id: 'f' }] },
              { type: 'tool_use', id: 't', name: 'f', input: { file_id: 'f', type: 'document' } },
            ],
          },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'b' }] },
        ],
      },
    ],
  ]
  for (const [name, door, body] of cases) {
    const row = await charge(door, body)
    assert.equal(row.charged, 100n)
    assert.ok(row.held < 20_000n, `${name}: held ${row.held}`)
  }
})

test('whatever is reported for whatever way, it is charged, or marked and charged as far as the hold covers it', async () => {
  const ways = fc.constantFrom(...ELSEWHERE, ...PACKED)
  const reports = fc.oneof(fc.nat({ max: 2 * CONTEXT }), fc.constantFrom(0, 1, CONTEXT, CONTEXT + 1, 1e15))
  const cases = fc.sample(fc.tuple(ways, reports), { numRuns: 100, seed: 14 })
  for (const [[name, door, body], tokens] of cases) {
    reported = tokens
    const row = await charge(door, body)
    const what = `${name} (${door}), ${tokens} reported: ${row.charged} of ${row.held}, ${row.estimated}`
    assert.equal(row.loss, 0n, what)
    if (row.estimated) assert.ok(tokens > CONTEXT && row.charged <= row.held, what)
    else assert.equal(row.charged, BigInt(tokens + 40), what)
  }
})

test('whoever leaves a continued thread pays for the prompt that the vendor counted when it began', async () => {
  const { id, key } = await keepingAccount()
  const usual = vendor.answer
  vendor.answer = ({ response }) => {
    response.writeHead(200, STREAM_HEADERS)
    const start = { id: 'm', type: 'message', role: 'assistant', content: [], model: 'v' }
    const usage = { input_tokens: 300_000, cache_read_input_tokens: 100_000, output_tokens: 1 }
    for (const data of [
      { type: 'message_start', message: { ...start, usage } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hello there' } },
    ])
      response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`)
  }
  const thread = { type: 'continue', previous_message_id: 'msg_0' }
  const body = { model: MODEL, ...bodyOf('anthropic-messages'), thread, stream: true }
  const call = post(g.url, { key, path: FORMATS['anthropic-messages'].oldPath(MODEL), body: JSON.stringify(body) })
  await call.until((text) => text.includes('hello there'))
  call.leave()
  const row = await g.lastCall(id)
  vendor.answer = usual
  assert.ok(row.estimated)
  assert.deepEqual(
    row.lines.slice(0, 2).map(([unit, count]) => [unit, count]),
    [
      ['input', 300_000],
      ['cachedInput', 100_000],
    ],
  )
})
