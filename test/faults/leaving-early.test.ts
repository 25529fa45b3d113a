// F71: leaving early is not cheaper than the work. Where the vendor tells only at the end what it bills, it is heard
// after its caller has left.
import type { ClientFormatName } from '../../src/meter/kind.ts'
import { CLIENT_FORMATS, chatChunk, event, FORMATS, parted, requestTo } from '../formats.ts'
import { above, assert, started, startGateway, test, until } from '../gateway.ts'
import { STREAM_HEADERS, startVendor } from './chat-vendor.ts'
import { post } from './raw-client.ts'

const VISIBLE = 'visible '
const OUTPUT = 20_270
const PROMPT = 300

/** What is asked for besides the least. */
const MORE: Partial<Record<ClientFormatName, object>> = {
  'anthropic-messages': { max_tokens: 30_000, thinking: { type: 'enabled', budget_tokens: 25_000 } },
}
const THOUGHT = { promptTokenCount: PROMPT, candidatesTokenCount: 270, thoughtsTokenCount: 20_000 }
/** What a vendor says before its caller leaves, and what it says afterwards, in each format. */
function wayOf(format: ClientFormatName) {
  const way = parted(format, [VISIBLE, '.'], [PROMPT, OUTPUT])
  return format === 'gemini' ? { ...way, end: event(FORMATS.gemini.answer(THOUGHT, '.')) } : way
}
const requestOf = (format: ClientFormatName, more = MORE[format]) =>
  requestTo(format, format, { ...FORMATS[format].body('Think.'), ...more }, true)

const vendor = started(startVendor)
const g = started(() =>
  startGateway({
    catalog(document: any) {
      document.vendors.mock = { baseUrl: vendor.url }
      for (const protocol of CLIENT_FORMATS)
        document.models[protocol] = {
          name: protocol,
          type: 'text',
          family: 'fault',
          clientFormats: [protocol],
          limits: { contextTokens: 200_000, outputTokensMax: 64_000 },
          pricing: { unit: 'credits', tiers: [{ input: '1', output: '2' }] },
          routes: [{ vendor: 'mock', protocol, model: 'm' }],
        }
    },
  }),
)

interface Said {
  readonly more?: object | undefined
  readonly begin?: string
  readonly end?: string
  readonly seen?: string
}

/** Calls, leaves when the visible text has come, and lets the vendor end afterwards. What it cost. */
async function leave(format: ClientFormatName, said: Said = {}): Promise<bigint> {
  const { more, begin, end, seen = VISIBLE } = { ...wayOf(format), ...said }
  const { id, key } = await g.account()
  const gone = Promise.withResolvers<void>()
  vendor.answer = async ({ response }) => {
    response.writeHead(200, STREAM_HEADERS)
    response.write(begin)
    await gone.promise
    response.end(end)
  }
  const { path, body } = requestOf(format, more)
  const call = post(g.url, { key, path, body: JSON.stringify(body) })
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

for (const format of CLIENT_FORMATS)
  test(`${format}: whoever leaves before the usage is reported pays for what was hidden as well`, async () => {
    assert.equal(await leave(format), BigInt(PROMPT + 2 * OUTPUT))
  })

const UNASKED = { max_tokens: 30_000 }
test('a vendor of Messages that thinks unasked, and reports at the end, is paid in full by whoever leaves', async () => {
  assert.equal(await leave('anthropic-messages', { more: UNASKED }), BigInt(PROMPT + 2 * OUTPUT))
})

test('a prompt that was counted when the answer began is paid for, though nothing followed', async () => {
  const start = { id: 'm', usage: { input_tokens: 50_000, output_tokens: 1 } }
  const begin = event({ message: start }, 'message_start')
  assert.equal(await leave('anthropic-messages', { more: UNASKED, begin, end: '', seen: 'message_start' }), 50_002n)
})

test('deltas are counted as they are read: escaped quotes, and text beside a role', async () => {
  const quoted = `"${'word '.repeat(1_600)}`
  const begin =
    event({ response: { id: 'resp_1', object: 'response' } }, 'response.created') +
    FORMATS['openai-responses'].delta(quoted)
  // The vendor never reports, so that what was delivered counts.
  const cost = await leave('openai-responses', { begin, end: '', seen: 'word' })
  assert.ok(cost > 2n * 1_900n, `${cost} for 8 KB`)
  const delta = { role: 'assistant', reasoning_content: quoted }
  const beside = chatChunk({ choices: [{ index: 0, delta, finish_reason: null }] })
  const other = await leave('openai-chat', { begin: beside, end: '', seen: 'word' })
  assert.ok(other > 2n * 1_900n, `${other} for 8 KB beside a role`)
})

for (const format of CLIENT_FORMATS)
  test(`${format}: a stream with an Idempotency-Key that its caller left is completed and kept; the repeat replays it whole, for nothing more`, async () => {
    const { id, key } = await g.account()
    const gone = Promise.withResolvers<void>()
    const way = wayOf(format)
    vendor.answer = async ({ response }) => {
      response.writeHead(200, STREAM_HEADERS)
      response.write(way.begin)
      await gone.promise
      response.end(way.end)
    }
    const before = vendor.calls.length
    // Only in chat is the count shown to those who ask for it.
    const shown = format === 'openai-chat' ? { stream_options: { include_usage: true } } : {}
    const { path, body } = requestOf(format)
    const headers = { 'idempotency-key': `left-${format}` }
    const request = { key, path, body: JSON.stringify({ ...body, ...shown }), headers }
    const call = post(g.url, request)
    await call.until((text) => text.includes(VISIBLE))
    call.leave()
    await until(() => connections(), 0)
    gone.resolve()
    await g.settled()
    const { posted } = await g.balance(id)
    assert.equal(1_000_000_000n - posted, BigInt(PROMPT + 2 * OUTPUT), 'charged as if it had been read')
    const again = post(g.url, request)
    const replayed = await again.text()
    const { statusCode, headers: told } = await again.response
    assert.deepEqual([statusCode, told['idempotent-replayed']], [200, 'true'])
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
