// The table of endings, for every paid call that a vendor answers at once: however it ends, what it costs, what its row
// says, and that nothing stays held. Recordings have theirs in audio-endings.test.ts, jobs in src/jobs/engine.test.ts.
import type { CatalogInput } from '../src/catalog/document.ts'
import { freshDatabase } from './database.ts'
import { faultModel, startVendor, usage, type VendorCall, wholeAnswer, wholeStream } from './faults/chat-vendor.ts'
import { FORMATS, type MediaName, mediaOf } from './formats.ts'
import { above, assert, isOff, offers, pause, started, startGateway, type TestGateway, test, until } from './gateway.ts'
import { fixture } from './text-replay.ts'

const JSON_TYPE = 'application/json'
const SSE = 'text/event-stream'
const CHAT = FORMATS['openai-chat']
const TOKENS = { input: '1', output: '2' }

interface Kind {
  readonly path: string | ((model: string) => string)
  readonly body: object
  readonly model: object
  /** What its vendor says, and what that costs. */
  readonly answer: readonly [type: string, body: string | Buffer]
  readonly price: bigint
  /** What a caller pays who leaves when the vendor has begun to answer: the prompt, counted roughly. */
  readonly begun: bigint
  /** The caller has bytes before the vendor is done, and pays for those as well. */
  readonly streams?: true
}

/** Everything but the model's kind, routes and price is as with the model of the text faults. */
const GEMINI: Record<string, Kind> = {
  gemini: {
    path: FORMATS.gemini.path,
    body: FORMATS.gemini.body('Hello'),
    model: { clientFormats: ['gemini'], protocol: 'gemini' },
    answer: [JSON_TYPE, fixture('gemini', 'text.json')],
    price: 180n,
    begun: 6n,
  },
  'gemini-stream': {
    path: (model) => FORMATS.gemini.path(model, true),
    body: FORMATS.gemini.body('Hello'),
    model: { clientFormats: ['gemini'], protocol: 'gemini' },
    answer: [SSE, fixture('gemini', 'text.sse')],
    price: 180n,
    begun: 7n,
    streams: true,
  },
}
const KINDS: Record<string, Kind> = {
  chat: {
    path: CHAT.path,
    body: CHAT.body('Hello'),
    model: {},
    answer: [JSON_TYPE, wholeAnswer('yes', usage(10, 20))],
    price: 50n,
    begun: 6n,
  },
  kept: {
    path: CHAT.path,
    body: { ...CHAT.body('Hello'), temperature: 0, stream: true },
    model: { cache: { ttlSeconds: 60 } },
    answer: [SSE, wholeStream(['hello ', 'you'], 10, 20)],
    price: 50n,
    begun: 6n,
    streams: true,
  },
  ...(isOff('gemini') ? {} : GEMINI),
  ...media({
    type: 'embedding',
    format: 'openai-embeddings',
    text: 'Hello there',
    used: { prompt_tokens: 10, total_tokens: 10 },
    price: 10n,
    begun: 3n,
  }),
  ...media({
    type: 'rerank',
    format: 'rerank',
    text: 'Hello',
    used: { usage: { total_tokens: 12 } },
    price: 12n,
    begun: 10n,
  }),
  ...media({
    type: 'moderation',
    format: 'openai-moderations',
    text: 'Hello',
    tier: { call: '0.0001' },
    price: 100n,
    begun: 100n,
  }),
  ...media({
    type: 'speech',
    format: 'openai-speech',
    text: 'Hello',
    tier: { character: '1500' },
    answer: ['audio/mpeg', Buffer.alloc(4_000, 7)],
    price: 7_500n,
    begun: 7_500n,
    streams: true,
  }),
}

interface Media extends Pick<Kind, 'price' | 'begun' | 'streams'> {
  readonly type: string
  readonly format: MediaName
  readonly text: string
  /** What the vendor reports. */
  readonly used?: object
  readonly tier?: object
  readonly answer?: Kind['answer']
}

/** What is no text, as its format's table has it, where an extension offers it. */
function media({ type, format, text, used = {}, tier = TOKENS, ...more }: Media): Record<string, Kind> {
  const { endpoint, path, body, answer } = mediaOf(format)!
  if (!offers(endpoint)) return {}
  const model = { type, clientFormats: [], protocol: format, pricing: { unit: 'credits', tiers: [tier] } }
  return { [type]: { path, body: body(text), model, answer: [JSON_TYPE, JSON.stringify(answer?.(used))], ...more } }
}

/** Half of a good answer, in two pieces because the last that came may be held back; the rest may come or not. */
async function half({ response }: VendorCall, { answer: [type, body] }: Kind): Promise<void> {
  const bytes = Buffer.from(body)
  const third = Math.floor(bytes.length / 3)
  response.writeHead(200, { 'content-type': type, 'content-length': bytes.length })
  response.write(bytes.subarray(0, third))
  await pause(50, 'a vendor that sends its answer in pieces')
  response.write(bytes.subarray(third, Math.floor(bytes.length / 2)))
}

const VENDOR: Record<string, (call: VendorCall, kind: Kind) => unknown> = {
  whole: ({ response }, { answer: [type, body] }) => response.writeHead(200, { 'content-type': type }).end(body),
  refused: ({ response }) =>
    response
      .writeHead(400, { 'content-type': JSON_TYPE })
      .end('{"error":{"message":"no","type":"invalid_request_error"}}'),
  broken: ({ response }) => response.writeHead(500).end('{}'),
  late: () => undefined,
  garbled: ({ response }) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Welcome'),
  async cut(call, kind) {
    await half(call, kind)
    // After what was written.
    call.response.socket?.end()
  },
  silent: () => undefined,
  slow: half,
  stopped: () => undefined,
}
const ENDINGS = Object.keys(VENDOR)

const vendor = started(() =>
  startVendor((call) => {
    const [, ending = '', kind = ''] = (call.request.url ?? '').split('/')
    VENDOR[ending]?.(call, KINDS[kind]!)
  }),
)
const fresh = started(freshDatabase)
const g = started(() =>
  startGateway({
    database: fresh,
    catalog(document: CatalogInput) {
      for (const ending of ENDINGS)
        for (const [kind, { model }] of Object.entries(KINDS)) {
          // One of its own for each, so that no breaker hears of another's ending.
          const name = `${ending}-${kind}`
          const timeouts = ending === 'late' ? { timeouts: { firstByteMs: 300 } } : {}
          document.vendors[name] = { baseUrl: `${vendor.url}/${ending}/${kind}`, ...timeouts }
          const { protocol = 'openai-chat', ...rest } = model as { protocol?: string }
          const routes = [{ vendor: name, protocol, model: 'vendor-model' }]
          document.models[name] = {
            ...faultModel([]),
            pricing: { unit: 'credits', tiers: [TOKENS] },
            ...rest,
            routes,
          } as CatalogInput['models'][string]
        }
    },
  }),
)

type EndedCall = { status: number; outcome: string; charged: bigint; held: bigint; estimated: boolean }

function ask(on: TestGateway, key: string, ending: string, kind: string, signal?: AbortSignal): Promise<Response> {
  const { path, body } = KINDS[kind]!
  const model = `${ending}-${kind}`
  return on.call(typeof path === 'string' ? path : path(model), key, { model, ...body }, signal ? { signal } : {})
}

async function rowOf(account: string): Promise<EndedCall> {
  const text = 'select status, outcome, charged, held, estimated from usage where account_id = $1'
  let rows: EndedCall[] = []
  await until(async () => {
    rows = await g.sql<EndedCall>(text, [account])
    return rows.length > 0
  })
  assert.equal(rows.length, 1)
  return rows[0]!
}

const asked = (ending: string, kind: string) =>
  vendor.calls.filter(({ request }) => request.url?.startsWith(`/${ending}/${kind}/`)).length

/** The answer's status, or what the caller saw instead. */
async function heard(answer: Promise<Response>): Promise<number | 'cut'> {
  try {
    const response = await answer
    const text = await response.text()
    return response.status === 200 && /"error":|"type":"error"/.test(text) ? 'cut' : response.status
  } catch {
    return 'cut'
  }
}

/** Runs one call to its end, and gives what the caller saw. */
async function run(ending: string, kind: string, key: string): Promise<number | 'cut' | 'left'> {
  if (ending !== 'silent' && ending !== 'slow') return heard(ask(g, key, ending, kind))
  const leaving = new AbortController()
  const answer = ask(g, key, ending, kind, leaving.signal)
  answer.catch(() => undefined)
  await until(() => asked(ending, kind), above(0))
  if (ending === 'slow') {
    if (KINDS[kind]?.streams) await (await answer).body?.getReader().read()
    // The vendor's headers and the first half of its answer have come.
    else
      await until(() => g.gateway.vendors.health().find(({ name }) => name === `slow-${kind}`)?.requests ?? 0, above(0))
  }
  leaving.abort()
  return 'left'
}

const FREE = { outcome: 'released', charged: 0n, estimated: false }

/** What the row of a call says, and what its caller saw. */
function expected(ending: string, { price, streams }: Kind): Partial<EndedCall> & { told: unknown } {
  switch (ending) {
    case 'whole':
      return { told: 200, status: 200, outcome: 'settled', charged: price, estimated: false }
    case 'refused':
      return { told: 400, status: 400, ...FREE }
    case 'late':
      return { told: 504, status: 504, ...FREE }
    // Nothing was reported, so that nothing is owed, whatever had gone out.
    case 'cut':
      return { told: streams ? 'cut' : 502, status: 502, ...FREE }
    case 'silent':
      return { told: 'left', status: 499, ...FREE }
    case 'slow':
      return { told: 'left', status: 499, outcome: 'settled' }
    default:
      return { told: 502, status: 502, ...FREE }
  }
}

async function verified(): Promise<void> {
  assert.deepEqual(await g.problems(), [])
}

for (const ending of ENDINGS.filter((one) => one !== 'stopped'))
  test(`whatever is paid for and ends "${ending}" is charged for what it brought, once, and nothing stays held`, async () => {
    const ended = Object.entries(KINDS).map(async ([kind, about]) => {
      const { id, key } = await g.account()
      const told = await run(ending, kind, key)
      const { held, ...row } = await rowOf(id)
      assert.partialDeepStrictEqual({ told, ...row }, expected(ending, about), `${ending} ${kind}`)
      assert.ok(row.charged <= held, `${ending} ${kind}: the hold covers it`)
      // What speech costs is known before it is heard.
      if (ending === 'slow') assert.equal(row.estimated, kind !== 'speech', kind)
      if (ending === 'slow' && about.streams) assert.ok(row.charged >= about.begun, `${kind}: ${row.charged}`)
      else if (ending === 'slow') assert.equal(row.charged, about.begun, kind)
      return { kind, id, key }
    })
    const all = await Promise.all(ended)
    await g.settled()
    for (const { id, kind } of all) assert.equal((await g.balance(id)).held, 0n, kind)
    const kept = all.find(({ kind }) => kind === 'kept') ?? assert.fail()
    if (!['silent', 'slow', 'late'].includes(ending)) {
      // Only a whole answer is kept.
      const before = asked(ending, 'kept')
      await heard(ask(g, kept.key, ending, 'kept'))
      assert.equal(asked(ending, 'kept') > before, ending !== 'whole')
    }
    await verified()
  })

test('calls that are under way when their gateway stops are let go, free of charge, and nothing stays held', async () => {
  const other = await startGateway({ database: fresh, env: { TOLLGATE_DRAIN_SECONDS: '1' } })
  const calls = await Promise.all(
    Object.keys(KINDS).map(async (kind) => {
      const { id, key } = await g.account()
      const told = heard(ask(other, key, 'stopped', kind))
      await until(() => asked('stopped', kind), above(0))
      return { id, kind, told }
    }),
  )
  await other.close()
  for (const { id, kind, told } of calls) {
    assert.equal(await told, 'cut', kind)
    assert.partialDeepStrictEqual(await rowOf(id), { status: 499, ...FREE }, kind)
  }
  await g.settled()
  await verified()
})
