// F76, F77, F79: no call costs more than was held for it, and what was held is what the vendor was told.

import { json } from 'node:stream/consumers'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import type { CatalogInput } from '../src/catalog/document.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import { openedAlerts } from './alerts.ts'
import { CLIENT_FORMATS, FORMATS, formatOf, requestTo } from './formats.ts'
import { assert, listen, runs, started, startGateway, test, WITH_EXTENSIONS } from './gateway.ts'

type Body = Record<string, any>
/** What the vendor reports: tokens read and written, and how it served. */
interface Report {
  readonly input?: number
  readonly output?: number
  readonly write5m?: number
  readonly write1h?: number
  readonly tier?: string
  readonly speed?: string
  readonly geo?: string
  readonly searches?: number
}

let report: Report | (() => Report) = {}
/** The last request that the vendor got. */
let told: Body = {}

const searchesOf = ({ searches = 0 }: Report) =>
  Array.from({ length: searches }, (_, i) => ({
    type: 'web_search_call',
    id: `ws_${i}`,
    status: 'completed',
    action: { type: 'search', query: 'gate' },
  }))
const WRITERS: Record<ClientFormatName, (report: Report, usage: Body) => Body> = {
  'openai-chat': ({ tier }, usage) => ({
    ...FORMATS['openai-chat'].answer(usage),
    ...(tier ? { service_tier: tier } : {}),
  }),
  'openai-responses': (report, usage) => ({
    ...FORMATS['openai-responses'].answer(usage, 'Yes.', searchesOf(report)),
    ...(report.tier ? { service_tier: report.tier } : {}),
  }),
  'anthropic-messages': ({ write5m = 0, write1h = 0, searches, tier, speed, geo }, usage) =>
    FORMATS['anthropic-messages'].answer({
      ...usage,
      input_tokens: usage.input_tokens - write5m - write1h,
      cache_creation_input_tokens: write5m + write1h,
      cache_creation: { ephemeral_5m_input_tokens: write5m, ephemeral_1h_input_tokens: write1h },
      ...(searches ? { server_tool_use: { web_search_requests: searches } } : {}),
      ...(tier ? { service_tier: tier } : {}),
      ...(speed ? { speed } : {}),
      ...(geo ? { inference_geo: geo } : {}),
    }),
  gemini: ({ tier }, usage) => FORMATS.gemini.answer({ ...usage, ...(tier ? { serviceTier: tier } : {}) }),
}

/** A vendor of all four formats, which reports what it likes. Callers who stream get its whole answer in pieces. */
const vendor = started(() =>
  listen(async (request, response) => {
    told = (await json(request)) as Body
    const path = request.url ?? ''
    const format = formatOf(path)
    const reported = typeof report === 'function' ? report() : report
    const usage = FORMATS[format].usage(reported.input ?? 1, reported.output ?? 1)
    const answer = JSON.stringify(WRITERS[format](reported, usage))
    const isStream = path.includes('streamGenerateContent')
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
    response.end(isStream ? `data: ${answer}\n\n` : answer)
  }),
)

const LIMITS = { contextTokens: 200_000, outputTokensMax: 4_000 }
const PRICE = { input: '100', output: '1000', cacheWrite: '125', cacheWriteHour: '200' }
const MULTIPLIERS = { service_tier: { priority: '2', flex: '0.5' }, speed: { fast: '6' }, inference_geo: { us: '1.1' } }

const g = started(() =>
  startGateway({
    catalog(document: CatalogInput) {
      document.vendors.any = { baseUrl: vendor.url }
      for (const protocol of CLIENT_FORMATS) {
        const model = (more: object) => ({
          name: 'Any',
          type: 'text' as const,
          family: 'any',
          clientFormats: [...CLIENT_FORMATS],
          limits: LIMITS,
          routes: [{ vendor: 'any', protocol, model: 'm' }],
          pricing: { unit: 'credits' as const, tiers: [PRICE] },
          ...more,
        })
        document.models[`at-${protocol}`] = model({})
        document.models[`tiered-${protocol}`] = model({
          pricing: { unit: 'credits', tiers: [PRICE], multipliers: MULTIPLIERS },
        })
      }
      for (const protocol of CLIENT_FORMATS)
        document.models[`counted-${protocol}`] = {
          ...document.models[`at-${protocol}`]!,
          traits: { tokenizer: 'o200k' },
        }
      const chat = document.models['at-openai-chat']!
      document.vendors.dead = { baseUrl: 'http://127.0.0.1:9' }
      document.models.dead = { ...chat, routes: [{ vendor: 'dead', protocol: 'openai-chat', model: 'm' }] }
      document.models.drawing = {
        ...document.models['at-openai-responses']!,
        pricing: {
          unit: 'credits',
          tiers: [
            { when: { image_quality: 'high' }, ...PRICE, image: '4', codeRun: '1' },
            { ...PRICE, image: '1', codeRun: '1' },
          ],
        },
      }
      for (const protocol of CLIENT_FORMATS)
        document.models[`searching-${protocol}`] = {
          ...document.models[`at-${protocol}`]!,
          pricing: { unit: 'credits', tiers: [{ ...PRICE, webSearch: '1' }] },
        }
      document.models.falling = {
        ...chat,
        pricing: {
          unit: 'credits',
          tiers: [
            { upTo: 1_000, input: '1000', output: '1000' },
            { input: '1', output: '1' },
          ],
        },
      }
    },
  }),
)

const said = (text: unknown) => [{ role: 'user', content: text }]
function bodyOf(format: ClientFormatName, prompt: string, most?: number): Body {
  return { ...FORMATS[format].body(prompt, most), ...(format === 'openai-responses' ? { store: false } : {}) }
}

async function send(key: string, format: ClientFormatName, model: string, asked: Body, stream = false) {
  const { path, body } = requestTo(format, model, asked, stream)
  const answer = await g.call(path, key, body)
  const text = await answer.text()
  return { status: answer.status, text }
}

const DENSE = '1 2 3 4 5 6 7 8 9 0 '

test('a prompt of one token a byte is held for in every format, and the key’s limit is not passed', async () => {
  const prompt = DENSE.repeat(4_000)
  for (const format of CLIENT_FORMATS) {
    const { id, key, keyId } = await g.account({ credits: 31_000_000n })
    report = { input: prompt.length, output: 20 }
    const body = bodyOf(format, prompt, 20)
    const model = `at-${format}`
    const endpoint = {
      'openai-chat': 'chat',
      'openai-responses': 'responses',
      'anthropic-messages': 'messages',
      gemini: 'gemini',
    }
    const quote = await g.call(`/v1/quote?endpoint=${endpoint[format]}`, key, { model, ...body })
    const quoted = (await quote.json()) as { data?: { costAtMost: string; hold: string } }
    assert.equal((await send(key, format, model, body)).status, 200)
    const { charged, held } = await g.lastCall(id)
    assert.ok(charged >= 8_000_000n && charged <= held, `${format}: ${charged} of ${held}`)
    if (quoted.data) assert.equal(Math.round(Number(quoted.data.hold) * 1e6), Number(held), 'a quote is the hold')
    await g.operator('PATCH', `/keys/${keyId}`, { limits: { spendTotal: '15' } })
    assert.equal((await send(key, format, model, body)).status, 429, 'two of them are more than 15')
  }
})

test('where the bound does not fit, the text of a model with a tokenizer is counted', async () => {
  const prompt = 'The quick brown fox jumps over the lazy dog. '.repeat(2_000)
  report = { input: 20_010, output: 20 }
  const body = bodyOf('openai-chat', prompt, 20)
  // 90,000 bytes would hold 11 credits, at the rate of a write to the cache; 20,001 tokens hold 2.5.
  const { id, key } = await g.account({ credits: 3_000_000n })
  assert.equal((await send(key, 'openai-chat', 'at-openai-chat', body)).status, 402)
  assert.equal((await send(key, 'openai-chat', 'counted-openai-chat', body)).status, 200)
  const { charged, held } = await g.lastCall(id)
  assert.ok(charged <= held && held < 2_600_000n, `${charged} of ${held}`)
  const dense = await g.account({ credits: 3_000_000n })
  assert.equal(
    (await send(dense.key, 'openai-chat', 'counted-openai-chat', bodyOf('openai-chat', DENSE.repeat(4_000), 20)))
      .status,
    402,
  )
  // A limit of tokens counts in the same way.
  const limited = await g.account()
  await g.operator('PATCH', `/keys/${limited.keyId}`, { limits: { tokensPerMinute: 30_000 } })
  assert.equal((await send(limited.key, 'openai-chat', 'at-openai-chat', body)).status, 429)
  assert.equal((await send(limited.key, 'openai-chat', 'counted-openai-chat', body)).status, 200)
})

const capOf = (body: Body): number =>
  body.max_tokens ?? body.max_completion_tokens ?? body.max_output_tokens ?? body.generationConfig?.maxOutputTokens

test('the vendor is told no more output than is held, in every format and conversion', async () => {
  for (const format of CLIENT_FORMATS)
    for (const protocol of CLIENT_FORMATS)
      for (const most of [3_999, 4_001, 1e9, 1e15]) {
        const { id, key } = await g.account()
        const cap = Math.min(most, 4_000)
        report = { input: 10, output: cap }
        const { status, text } = await send(key, format, `at-${protocol}`, bodyOf(format, 'Write.', most))
        assert.equal(status, 200, `${format} → ${protocol}: ${text}`)
        assert.equal(capOf(told), cap, `${format} → ${protocol}: ${most}`)
        const { charged, held, loss } = await g.lastCall(id)
        assert.ok(charged <= held && loss === 0n, `${charged} of ${held}`)
      }
  const { id, key } = await g.account()
  report = { input: 10, output: 12_000 }
  assert.equal(
    (await send(key, 'openai-chat', 'at-openai-chat', { ...bodyOf('openai-chat', 'Hi', 1e15), n: 3 })).status,
    200,
  )
  const { charged, held } = await g.lastCall(id)
  assert.ok(charged <= held && told.max_tokens === 4_000, `${charged} of ${held}`)
})

test('a write to a cache is held for at its own rate, however the request spells it and whoever converts it', async () => {
  const prompt = DENSE.repeat(1_000)
  const marked = (ttl?: string) => [
    { type: 'text', text: prompt, cache_control: { type: 'ephemeral', ...(ttl ? { ttl } : {}) } },
  ]
  const messages = (ttl?: string) => ({ messages: said(marked(ttl)), max_tokens: 10 })
  const size = prompt.length
  const cases: Array<[format: ClientFormatName, body: Body | string, report: Report]> = [
    ['anthropic-messages', messages(), { write5m: size }],
    ['anthropic-messages', messages('5m'), { write5m: size }],
    ['anthropic-messages', messages('1h'), { write1h: size }],
    ['anthropic-messages', messages('2d'), { write1h: size }],
    [
      'anthropic-messages',
      { ...bodyOf('anthropic-messages', prompt), cache_control: { type: 'ephemeral', ttl: '1h' } },
      { write1h: size },
    ],
    ['anthropic-messages', JSON.stringify(messages('1h')).replace('"1h"', '"\\u0031h"'), { write1h: size }],
    ['openai-chat', messages('1h'), { write1h: size }],
  ]
  for (const [format, body, writes] of cases) {
    const { id, key } = await g.account()
    report = { input: size, output: 10, ...writes }
    const named =
      typeof body === 'string'
        ? body.replace('{', '{"model":"at-anthropic-messages",')
        : JSON.stringify({ model: 'at-anthropic-messages', ...body })
    const answer = await g.call(FORMATS[format].path(''), key, named)
    assert.equal(answer.status, 200, await answer.text())
    const { charged, held } = await g.lastCall(id)
    assert.ok(charged <= held, `${JSON.stringify(body).slice(-80)}: ${charged} of ${held}`)
  }
})

test('a price that falls with the size of the prompt is held for at its dearest', async () => {
  const { id, key } = await g.account()
  report = { input: 900, output: 10 }
  assert.equal((await send(key, 'openai-chat', 'falling', bodyOf('openai-chat', 'word '.repeat(800), 10))).status, 200)
  const { charged, held } = await g.lastCall(id)
  assert.equal(charged, 910_000n)
  assert.ok(charged <= held, `${charged} of ${held}`)
})

test('the price follows the tier, speed and region that the answer reports, within the hold, whole and streamed', async () => {
  const plain = 10n * 100n + 10n * 1_000n
  for (const format of CLIENT_FORMATS)
    for (const protocol of CLIENT_FORMATS)
      for (const stream of [false, true])
        for (const [asked, tier, tenths] of [
          [undefined, undefined, 10n],
          [undefined, 'priority', 20n],
          [undefined, 'default', 10n],
          ['priority', 'default', 10n],
          ['priority', 'priority', 20n],
          ['flex', 'default', 10n],
          ['flex', 'flex', 5n],
        ] as const) {
          const field = format === 'gemini' ? 'serviceTier' : 'service_tier'
          const { id, key } = await g.account()
          report = { input: 10, output: 10, ...(tier ? { tier } : {}) }
          const body = { ...bodyOf(format, 'Hi', 10), ...(asked ? { [field]: asked } : {}) }
          const { status, text } = await send(key, format, `tiered-${protocol}`, body, stream)
          assert.equal(status, 200, `${format} → ${protocol}: ${text}`)
          const { charged, held } = await g.lastCall(id)
          const words = `${format} → ${protocol} ${stream}: asked ${asked}, got ${tier}: ${text}`
          assert.equal(charged, (plain * tenths) / 10n, words)
          assert.ok(charged <= held, words)
        }
  for (const [asked, answered, tenths] of [
    [{ speed: 'fast' }, { speed: 'standard' }, 10n],
    [{ speed: 'fast' }, { speed: 'fast' }, 60n],
    [{}, { geo: 'us' }, 11n],
  ] as const) {
    const { id, key } = await g.account()
    report = { input: 10, output: 10, ...answered }
    const body = { ...bodyOf('anthropic-messages', 'Hi', 10), ...asked }
    assert.equal((await send(key, 'anthropic-messages', 'tiered-anthropic-messages', body)).status, 200)
    const { charged, held } = await g.lastCall(id)
    assert.deepEqual([charged, charged <= held], [(plain * tenths) / 10n, true])
  }
})

test('options of tools that a vendor bills differently have a price or are rejected by name', async () => {
  const { id, key } = await g.account()
  const ask = (tool: object) =>
    send(key, 'openai-responses', 'drawing', { ...bodyOf('openai-responses', 'Draw', 10), tools: [tool] })
  for (const [tool, name] of [
    [{ type: 'code_interpreter', container: { type: 'auto', memory_limit: '64g' } }, 'memory_limit'],
    [{ type: 'image_generation', size: '1536x1024' }, 'size'],
    [{ type: 'image_generation', model: 'other' }, 'model'],
    [{ type: 'image_generation', input_fidelity: 'high' }, 'input_fidelity'],
    [{ type: 'image_generation', partial_images: 3 }, 'partial_images'],
    [{ type: 'image_generation', quality: 'medium' }, 'quality'],
  ] as const) {
    const { status, text } = await ask(tool)
    assert.deepEqual([status, text.includes(`tools[0].${name}`)], [400, true], text)
  }
  report = { input: 10, output: 10 }
  assert.equal((await ask({ type: 'image_generation', quality: 'low' })).status, 200)
  const plain = await g.lastCall(id)
  assert.equal((await ask({ type: 'image_generation', quality: 'high' })).status, 200)
  const { held } = await g.lastCall(id)
  assert.ok(held > 3n * 10n * 1_000_000n && held > plain.held, `${held} of ${plain.held}`)
})

test('several turns of a search at Google are charged as reported', WITH_EXTENSIONS, async () => {
  const { id, key } = await g.account()
  g.mayExceedHold(id)
  report = { input: 900_000, output: 10 }
  const body = { ...bodyOf('gemini', 'Hi', 10), tools: [{ googleSearch: {} }] }
  assert.equal((await send(key, 'gemini', 'searching-gemini', body)).status, 200)
  assert.equal((await g.lastCall(id)).charged, 90_010_000n)
})

const SEARCHES = {
  'openai-responses': (most?: number) => ({ tools: [{ type: 'web_search' }], max_tool_calls: most }),
  'anthropic-messages': (most?: number) => ({
    tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: most }],
  }),
}

test('a vendor that searches as often as it was told, and reads a full context after each, costs no more than was held', async () => {
  // A context costs 25 at the rate of a write to the cache.
  for (const format of ['openai-responses', 'anthropic-messages'] as const)
    for (const [credits, asked, most] of [
      [1_000, undefined, 10],
      [1_000, 3, 3],
      [10_000, 1_000_000, 63],
      [150, undefined, 2],
      // The request's own cap is lowered to what the credits cover.
      [150, 8, 2],
      [30, undefined, 1],
    ] as const) {
      const { id, key } = await g.account({ credits: BigInt(credits) * 1_000_000n })
      let cap = -1
      report = () => {
        cap = told.max_tool_calls ?? told.tools[0].max_uses
        return {
          input: 100 + cap * LIMITS.contextTokens,
          write5m: cap * LIMITS.contextTokens,
          output: 10,
          searches: cap,
        }
      }
      const body = { ...bodyOf(format, 'Hi', 10), ...SEARCHES[format](asked) }
      const quoted = await g.call('/v1/quote', key, { model: `searching-${format}`, ...body })
      const { data } = (await quoted.json()) as { data: { hold: string } }
      const { status, text } = await send(key, format, `searching-${format}`, body)
      assert.deepEqual([status, cap], [200, most], `${format} ${credits} ${asked} ${text}`)
      const { charged, held, loss } = await g.lastCall(id)
      assert.ok(charged <= held && loss === 0n, `${format} ${credits}: ${charged} of ${held}`)
      assert.equal(Math.round(Number(data.hold) * 1e6), Number(held), 'a quote is the hold')
    }
  const { key } = await g.account({ credits: 10_000_000n })
  const body = { ...bodyOf('openai-responses', 'Hi', 10), ...SEARCHES['openai-responses']() }
  assert.equal((await send(key, 'openai-responses', 'searching-openai-responses', body)).status, 402)
})

test('a quote without an endpoint reads the body as the endpoint that knows its members', async () => {
  const { key } = await g.account()
  const body = { model: 'at-openai-chat', ...bodyOf('openai-chat', 'Hi', 1_000), n: 8 }
  const quote = async (query: string) =>
    (
      (await (await g.call(`/v1/quote${query}`, key, body)).json()) as {
        data: { endpoint: string; costAtMost: string }
      }
    ).data
  const guessed = await quote('')
  assert.deepEqual(guessed, await quote(`?endpoint=${guessed.endpoint}`))
  assert.ok(Number(guessed.costAtMost) >= 8, guessed.costAtMost)
})

test('a charge above its hold is charged, and its reason is in the call, the metrics and an alert', async () => {
  const { id, key } = await g.account()
  g.mayExceedHold(id)
  report = { input: 10, output: 3_000 }
  assert.equal((await send(key, 'openai-chat', 'at-openai-chat', bodyOf('openai-chat', 'Hi', 10))).status, 200)
  const { charged, held, log } = await g.lastCall(id)
  assert.equal(charged, 3_001_000n)
  assert.ok(charged > held)
  assert.equal(log?.aboveHold, 'the vendor reports 3000 output tokens for at most 10.')
  const metrics = JSON.stringify(await g.gateway.figures())
  assert.match(metrics, /tollgate_charges_above_hold_total.*?"vendor":"any"/)
  if (WITH_EXTENSIONS.skip) return
  await openedAlerts(g).look()
  const { items } = await openedAlerts(g).list('', { limit: 10 })
  assert.ok(items.some(({ title }) => title === 'Calls of any use more than was held'))
})

const ALPHABETS: ReadonlyArray<(random: () => number) => string> = [
  () => 'The quick brown fox jumps over the lazy dog. ',
  (random) => `${Math.floor(random() * 10)} `,
  (random) => `${String.fromCharCode(97 + Math.floor(random() * 26))}\n`,
  (random) => String.fromCodePoint(0x20000 + Math.floor(random() * 40_000)),
  (random) => Buffer.from([random() * 256, random() * 256, random() * 256]).toString('base64'),
  (random) => Math.floor(random() * 256).toString(16),
  () => '你好，世界。',
  (random) => String.fromCharCode(33 + Math.floor(random() * 94)),
]

/** The same numbers for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32
    return state / 2 ** 32
  }
}

/**
 * What a call may have besides its text: how it is written in each format, and how many tokens a vendor may read of it
 * at most.
 */
const TOOLS_TOKENS = 1_024
const PICTURE_TOKENS = 5_000
const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
function toolsOf(format: ClientFormatName, description: string): object[] {
  const parameters = { type: 'object', properties: { digits: { enum: [1, 2, 3] } } }
  const plain = { name: 'f', description, parameters }
  if (format === 'openai-chat') return [{ type: 'function', function: plain }]
  if (format === 'openai-responses') return [{ type: 'function', ...plain }]
  if (format === 'gemini') return [{ functionDeclarations: [{ name: 'f', description }] }]
  return [{ name: 'f', description, input_schema: parameters }]
}
/** Beside the text, in the formats that are alike in it. */
const PICTURES: Partial<Record<ClientFormatName, (text: string) => Body>> = {
  'openai-chat': (text) => ({
    messages: said([
      { type: 'text', text },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PICTURE}` } },
    ]),
  }),
  gemini: (text) => ({
    contents: [{ role: 'user', parts: [{ text }, { inlineData: { mimeType: 'image/png', data: PICTURE } }] }],
  }),
}

test('of random calls, none costs more than was held for it, and nothing is lost', async (t) => {
  const seed = Number(process.env.TOLLGATE_TEST_SEED ?? 7)
  const random = randomOf(seed)
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!
  const below = (most: number) => Math.floor(random() * most)
  const accounts = {
    poor: await g.account({ credits: 40_000_000n }),
    rich: await g.account({ credits: 100_000_000_000n }),
    // Its credits are a lot with an end.
    lot: await g.account({ credits: 0n }),
  }
  const grant = (account: string, credits: bigint, lot?: Parameters<typeof g.gateway.ledger.grant>[0]['lot']) =>
    g.gateway.ledger.grant({ account, amount: credits * 1_000_000n, note: '', actor: 'test', lot })
  await grant(accounts.lot.id, 10_000n, { source: 'given', endsAt: new Date(Date.now() + 86_400_000) })
  const counts: Record<string, number> = {}
  const count = (name: string, by = 1) => {
    counts[name] = (counts[name] ?? 0) + by
  }
  for (let at = 0; (counts.served ?? 0) < runs(300, 10_000); at++) {
    const kind = pick(['plain', 'plain', 'tiered', 'tiered', 'counted', 'searching', 'fallback'] as const)
    const [format, other] = [pick(CLIENT_FORMATS), pick(CLIENT_FORMATS)]
    // Searches are of formats whose vendor is told how often.
    const isSearch = kind === 'searching' && Object.hasOwn(SEARCHES, format)
    const protocol = isSearch || kind === 'counted' ? format : other
    const letter = pick(ALPHABETS)
    const length = below(2) ? Math.floor(random() ** 3 * 20_000) : below(2_000)
    let prompt = 'x'
    while (prompt.length < length) prompt += letter(random)
    const most = pick([undefined, 1, 100, 4_000, 4_001, 1e6, 1e15])
    const pictured = kind === 'plain' && random() < 0.4 ? PICTURES[format]?.(prompt) : undefined
    const body = { ...bodyOf(format, prompt, most), ...pictured }
    // What the vendor reads at most: a token a byte, or what its tokenizer makes of it, and what it adds.
    let reads = (kind === 'counted' ? countTokens(prompt) : Buffer.byteLength(prompt)) + 60
    if (pictured) reads += PICTURE_TOKENS
    if (!isSearch && random() < 0.2) {
      body.tools = toolsOf(format, prompt.slice(0, 2_000))
      reads += Buffer.byteLength(JSON.stringify(body.tools)) + TOOLS_TOKENS
      count('with tools')
    }
    if (isSearch) Object.assign(body, SEARCHES[format as keyof typeof SEARCHES](pick([undefined, 1, 3, 1e6])))
    const tier = pick([undefined, 'flex', ...(kind === 'tiered' ? ['priority', 'default'] : [])])
    if (tier) body[format === 'gemini' ? 'serviceTier' : 'service_tier'] = tier
    const ttl = format === 'anthropic-messages' && random() < 0.5 ? pick(['5m', '1h']) : undefined
    if (ttl) body.cache_control = { type: 'ephemeral', ttl }
    const choices = format === 'openai-chat' && protocol === format ? pick([1, 2, 5]) : 1
    if (choices > 1) body.n = choices
    // What was predicted and not written is billed beside the output, where a vendor knows predictions.
    const predicted = format === 'openai-chat' && protocol === format && below(2) ? below(1_000) : 0
    if (predicted) body.prediction = { type: 'content', content: '1'.repeat(predicted) }
    if (kind === 'fallback' && format === 'openai-chat') body.models = [`tiered-${protocol}`]
    const answered =
      tier && tier !== 'default' ? [tier, 'default'] : tier ? ['default'] : ['priority', 'flex', 'default']
    const wrote = random() < 0.3 ? 1 : random()
    report = () => {
      const searches = isSearch ? below((told.max_tool_calls ?? told.tools[0].max_uses) + 1) : 0
      count('searches', searches)
      const input = 1 + below(reads + searches * LIMITS.contextTokens)
      return {
        input,
        output: Math.floor((wrote * (capOf(told) ?? 0) + predicted) * choices),
        searches,
        ...(ttl ? { [ttl === '1h' ? 'write1h' : 'write5m']: below(input) } : {}),
        ...(random() < 0.5 ? { tier: pick(answered) } : {}),
      }
    }
    const account = pick([accounts.poor, accounts.rich, accounts.rich, accounts.lot])
    const models = { plain: 'at', tiered: 'tiered', counted: 'counted', searching: isSearch ? 'searching' : 'at' }
    const model = kind === 'fallback' ? (body.models ? 'dead' : `at-${protocol}`) : `${models[kind]}-${protocol}`
    const stream = random() < 0.5
    const { status, text } = await send(account.key, format, model, body, stream)
    assert.ok([200, 402].includes(status), `seed ${seed}, call ${at}, ${model}: ${status} ${text.slice(0, 300)}`)
    if (status === 402) await grant(account.id, BigInt(10 + below(100)))
    if (status !== 200) continue
    for (const name of ['served', kind, stream ? 'streamed' : 'whole']) count(name)
    if (predicted) count('with a prediction')
    if (pictured) count('with a picture')
    assert.ok(capOf(told) <= 4_000, `${format} → ${protocol} was told ${capOf(told)}`)
  }
  t.diagnostic(JSON.stringify(counts))
  await g.settled()
  const ids = Object.values(accounts).map(({ id }) => id)
  const dear = `select product, endpoint, charged, loss, held, lines, attempt_log from usage
    where account_id = any($1) and outcome = 'settled' and (charged > held or loss > 0) limit 5`
  const above = await g.sql(dear, [ids])
  assert.deepEqual(above, [])
  const text = `select count(*) from usage where account_id = any($1) and outcome = 'settled'`
  const [calls] = await g.sql<{ count: bigint }>(text, [ids])
  assert.equal(Number(calls!.count), counts.served)
  const looked = ['searches', 'counted', 'fallback', 'with tools', 'with a picture', 'with a prediction']
  for (const name of looked) assert.ok(counts[name], `no call: ${name}`)
  for (const id of ids) assert.ok((await g.balance(id)).posted >= 0n)
})
