// F71: leaving early is not cheaper than the work. Where the vendor tells only at the end what it bills, it is heard after its caller has left.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startGateway } from '../gateway.ts'
import { started } from '../started.ts'
import { above, until } from '../until.ts'
import { chunk, DONE, event, STREAM_HEADERS, startVendor, usage, usageChunk } from './chat-vendor.ts'
import { post } from './raw-client.ts'

const VISIBLE = 'visible '
const OUTPUT = 20_270
const PROMPT = 300

const named = (data: { type: string; [member: string]: unknown }) => `event: ${data.type}\n${event(data)}`

interface Way {
  readonly path: string
  readonly body: object
  readonly begin: string
  readonly end: string
}

/** What a vendor says before its caller leaves, and what it says afterwards, in each format. */
const WAYS: Record<string, Way> = {
  'openai-chat': {
    path: '/v1/chat-completions',
    body: { messages: [{ role: 'user', content: 'Think.' }] },
    begin: chunk(VISIBLE),
    end: chunk('', 'stop') + usageChunk(usage(PROMPT, OUTPUT)) + DONE,
  },
  'openai-responses': {
    path: '/v1/responses',
    body: { input: 'Think.' },
    begin:
      named({ type: 'response.created', response: { id: 'resp_1', object: 'response', status: 'in_progress' } }) +
      named({ type: 'response.output_text.delta', item_id: 'm', output_index: 0, content_index: 0, delta: VISIBLE }),
    end: named({
      type: 'response.completed',
      response: {
        ...{ id: 'resp_1', object: 'response', status: 'completed', output: [] },
        usage: { input_tokens: PROMPT, output_tokens: OUTPUT, total_tokens: PROMPT + OUTPUT },
      },
    }),
  },
  'anthropic-messages': {
    path: '/v1/messages',
    body: {
      max_tokens: 30_000,
      thinking: { type: 'enabled', budget_tokens: 25_000 },
      messages: [{ role: 'user', content: 'Think.' }],
    },
    begin:
      named({ type: 'message_start', message: { id: 'm', usage: { input_tokens: PROMPT, output_tokens: 1 } } }) +
      named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: VISIBLE } }),
    end:
      named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: OUTPUT } }) +
      named({ type: 'message_stop' }),
  },
  gemini: {
    path: '/gemini/v1beta/models/gemini:streamGenerateContent?alt=sse',
    body: { contents: [{ role: 'user', parts: [{ text: 'Think.' }] }] },
    begin: event({ candidates: [{ index: 0, content: { role: 'model', parts: [{ text: VISIBLE }] } }] }),
    end: event({
      candidates: [{ index: 0, content: { parts: [{ text: '.' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: PROMPT, candidatesTokenCount: 270, thoughtsTokenCount: 20_000 },
    }),
  },
}

const vendor = started(startVendor)
const g = started(() =>
  startGateway({
    catalog(document: any) {
      document.vendors.mock = { baseUrl: vendor.url }
      for (const protocol of Object.keys(WAYS))
        document.models[protocol] = {
          ...{ name: protocol, type: 'text', family: 'fault', clientFormats: [protocol] },
          limits: { contextTokens: 200_000, outputTokensMax: 64_000 },
          pricing: { unit: 'credits', tiers: [{ input: '1', output: '2' }] },
          routes: [{ vendor: 'mock', protocol, model: 'm' }],
        }
    },
  }),
)

/** Calls, leaves when the visible text has come, and lets the vendor end afterwards. What it cost. */
async function leave(model: string, { path, body, begin, end }: Way, seen = VISIBLE): Promise<bigint> {
  const { id, key } = await g.account()
  const gone = Promise.withResolvers<void>()
  vendor.answer = async ({ response }) => {
    response.writeHead(200, STREAM_HEADERS)
    response.write(begin)
    await gone.promise
    response.end(end)
  }
  const call = post(g.url, {
    key,
    path: path.replace('/models/gemini:', `/models/${model}:`),
    body: JSON.stringify({ model, stream: true, ...body }),
  })
  await call.until((text) => text.includes(seen))
  call.leave()
  await until(() => connections(), 0)
  gone.resolve()
  await g.settled()
  return 1_000_000_000n - (await g.balance(id)).posted
}

function connections(): Promise<number> {
  return new Promise((resolve) => g.gateway.app.server.getConnections((_, open) => resolve(open)))
}

for (const [format, way] of Object.entries(WAYS))
  test(`${format}: whoever leaves before the usage is reported pays for what was hidden as well`, async () => {
    assert.equal(await leave(format, way), BigInt(PROMPT + 2 * OUTPUT))
  })

test('a vendor of Messages that thinks unasked, and reports at the end, is paid in full by whoever leaves', async () => {
  const way = WAYS['anthropic-messages']!
  const { thinking: _, ...body } = way.body as { thinking: unknown }
  assert.equal(await leave('anthropic-messages', { ...way, body }), BigInt(PROMPT + 2 * OUTPUT))
})

test('a prompt that was counted when the answer began is paid for, though nothing followed', async () => {
  const start = { id: 'm', usage: { input_tokens: 50_000, output_tokens: 1 } }
  const way = WAYS['anthropic-messages']!
  const { thinking: _, ...body } = way.body as { thinking: unknown }
  const begin = named({ type: 'message_start', message: start })
  assert.equal(await leave('anthropic-messages', { ...way, body, begin, end: '' }, 'message_start'), 50_002n)
})

test('deltas are counted as they are read: escaped quotes, and text beside a role', async () => {
  const quoted = `"${'word '.repeat(1_600)}`
  const said = { type: 'response.output_text.delta', item_id: 'm', output_index: 0, content_index: 0, delta: quoted }
  const created = named({ type: 'response.created', response: { id: 'resp_1', object: 'response' } })
  // The vendor never reports, so that what was delivered counts.
  const cost = await leave(
    'openai-responses',
    { ...WAYS['openai-responses']!, begin: created + named(said), end: '' },
    'word',
  )
  assert.ok(cost > 2n * 1_900n, `${cost} for 8 KB`)
  const beside = event({
    ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' },
    choices: [{ index: 0, delta: { role: 'assistant', reasoning_content: quoted }, finish_reason: null }],
  })
  const other = await leave('openai-chat', { ...WAYS['openai-chat']!, begin: beside, end: '' }, 'word')
  assert.ok(other > 2n * 1_900n, `${other} for 8 KB beside a role`)
})

for (const [format, way] of Object.entries(WAYS))
  test(`${format}: a stream with an Idempotency-Key that its caller left is completed and kept; the repeat replays it whole, for nothing more`, async () => {
    const { id, key } = await g.account()
    const gone = Promise.withResolvers<void>()
    vendor.answer = async ({ response }) => {
      response.writeHead(200, STREAM_HEADERS)
      response.write(way.begin)
      await gone.promise
      response.end(way.end)
    }
    const before = vendor.calls.length
    const request = {
      key,
      path: way.path,
      body: JSON.stringify({
        ...{ model: format, stream: true, ...way.body },
        // Only here is the count shown to those who ask for it.
        ...(format === 'openai-chat' ? { stream_options: { include_usage: true } } : {}),
      }),
      headers: { 'idempotency-key': `left-${format}` },
    }
    const path = way.path.replace('/models/gemini:', `/models/${format}:`)
    const call = post(g.url, { ...request, path })
    await call.until((text) => text.includes(VISIBLE))
    call.leave()
    await until(() => connections(), 0)
    gone.resolve()
    await g.settled()
    const { posted } = await g.balance(id)
    assert.equal(1_000_000_000n - posted, BigInt(PROMPT + 2 * OUTPUT), 'charged as if it had been read')
    const again = post(g.url, { ...request, path })
    const replayed = await again.text()
    const { statusCode, headers } = await again.response
    assert.deepEqual([statusCode, headers['idempotent-replayed']], [200, 'true'])
    // What its caller has seen of it, and then the end, with the count that only the end has.
    assert.ok(replayed.includes(VISIBLE) && /20[_,]?270|20000/.test(replayed), replayed)
    await g.settled()
    assert.equal(vendor.calls.length - before, 1, 'the vendor is asked once')
    assert.equal((await g.balance(id)).posted, posted, 'and paid once')
  })

test('whoever hangs up while a picture is drawn pays for it', async () => {
  const { id, key } = await g.account()
  const call = post(g.url, {
    key,
    path: '/alpha/v1/images/generations',
    body: JSON.stringify({ model: 'alpha-image-2', prompt: 'A gate.', quality: 'low' }),
  })
  await until(() => g.gateway.monitor.running, above(0))
  await until(async () => (await g.balance(id)).held > 0n || (await g.balance(id)).posted < 1_000_000_000n)
  call.leave()
  const { charged, outcome } = await g.lastCall(id)
  assert.ok(charged > 0n, outcome)
})
