// Extras that have a price: tools at the vendor by the use, tiers by a multiplier, caches for an hour. Held for at
// their worst, a line of arithmetic each, and verified.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { CatalogInput } from '../src/catalog/document.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import { CLIENT_FORMATS, FORMATS, requestTo } from './formats.ts'
import { afterEach, assert, type Call, listen, started, test, testGateway, textOf } from './gateway.ts'

const PRICE = { input: '100', output: '200', webSearch: '1', fileSearch: '2', codeRun: '3' }
const MULTIPLIERS = { service_tier: { priority: '2', flex: '0.5' }, speed: { fast: '6' } }

/** A vendor that searches once, and then says nothing more. */
const searching = started(() => listen(search))
function search(incoming: IncomingMessage, response: ServerResponse) {
  const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`
  const isMessages = incoming.url?.endsWith('/messages')
  const message = { id: 'msg_1', type: 'message', role: 'assistant', usage: { input_tokens: 5, output_tokens: 1 } }
  const begun = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }
  const events = isMessages
    ? event('message_start', { message }) + event('content_block_start', { index: 0, content_block: begun })
    : event('response.output_item.done', { item: { type: 'web_search_call', id: 'ws_1' }, output_index: 0 })
  incoming.resume()
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(events)
}

const g = testGateway(() => ({
  catalog(document: CatalogInput) {
    // It never ends its answer.
    document.vendors.searching = { baseUrl: searching.url, onAbort: 'cancel' }
    document.vendors.google = { baseUrl: 'sandbox/google' }
    const base = document.models['beta-haiku-4-5']!
    const vendors: Record<ClientFormatName, string> = {
      'openai-chat': 'alpha',
      'openai-responses': 'alpha',
      'anthropic-messages': 'beta',
      gemini: 'google',
    }
    for (const door of CLIENT_FORMATS) {
      const model = (more: object) => ({
        ...base,
        family: 'none',
        clientFormats: [door],
        routes: [{ vendor: vendors[door], protocol: door }],
        pricing: { unit: 'credits' as const, tiers: [PRICE], multipliers: MULTIPLIERS },
        ...more,
      })
      document.models[`rich-${door}`] = model({})
      document.models[`searching-${door}`] = model({ routes: [{ vendor: 'searching', protocol: door }] })
      const plain = { unit: 'credits' as const, tiers: [{ input: '100', output: '200' }] }
      document.models[`plain-${door}`] = model({ pricing: plain })
      document.models[`strict-${door}`] = model({ pricing: plain, traits: { webSearch: 'refuse' } })
    }
    document.models.drawing = {
      ...document.models['rich-openai-responses']!,
      pricing: { unit: 'credits', tiers: [{ ...PRICE, image: '4' }], multipliers: MULTIPLIERS },
    }
    document.models['rich-both'] = {
      ...document.models['rich-anthropic-messages']!,
      clientFormats: ['openai-responses'],
    }
  },
}))
afterEach(() => g.settled())

const bodyOf = (door: ClientFormatName, prompt: string) => FORMATS[door].body(prompt, 50)
const SEARCH = {
  'openai-chat': { web_search_options: {} },
  'openai-responses': { tools: [{ type: 'web_search' }] },
  'anthropic-messages': { tools: [{ type: 'web_search_20260318', name: 'web_search' }] },
  gemini: { tools: [{ googleSearch: {} }] },
} satisfies Record<ClientFormatName, object>

function call(key: string, door: ClientFormatName, asked: object, { model = `rich-${door}`, stream = false } = {}) {
  const { path, body } = requestTo(door, model, asked, stream)
  return g.call(path, key, body)
}

async function paid(account: string): Promise<Call> {
  const call = await g.lastCall(account)
  assert.equal(call.loss, 0n, 'the account covers it')
  return call
}

const quantity = ({ lines }: Call, sought: string) => lines.find(([unit]) => unit === sought)?.[1] ?? 0

test('web search is counted by the vendor’s report in every format, whole and streamed', async () => {
  const { id, key } = await g.account({ credits: 10_000_000_000n })
  // A vendor that searches more often than it was told.
  g.mayExceedHold(id)
  for (const door of CLIENT_FORMATS)
    for (const stream of [false, true])
      for (const [asked, charged] of [
        [0, 0],
        [3, 3],
        [99, 99],
      ] as const) {
        const prompt = asked === 0 ? 'Hello' : `Hello [[searches=${asked}]]`
        const answer = await call(key, door, { ...bodyOf(door, prompt), ...SEARCH[door] }, { stream })
        assert.equal(answer.status, 200, `${door}: ${await answer.clone().text()}`)
        await answer.text()
        // Chat does not count them: one with every answer.
        const due = door === 'openai-chat' ? 1 : charged
        const row = await paid(id)
        assert.equal(quantity(row, 'webSearch'), due, `${door} ${stream} ${asked}`)
        if (due > 0) assert.deepEqual(row.lines.find(([unit]) => unit === 'webSearch')?.[2], '1000000000000')
      }
})

test('the bound of the request is held for, or ten uses, of which the vendor is told', async () => {
  const { id, key } = await g.account({ credits: 10_000_000_000n })
  const heldFor = async (door: ClientFormatName, extra: object) => {
    await textOf(call(key, door, { ...bodyOf(door, 'Hello'), ...extra }))
    return Number((await paid(id)).held) / 1e6
  }
  const sent = () => JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '{}')
  const tool = { type: 'web_search_20260318', name: 'web_search' }
  const free = await heldFor('anthropic-messages', {})
  const ten = await heldFor('anthropic-messages', { tools: [tool] })
  assert.equal(sent().tools[0].max_uses, 10)
  const two = await heldFor('anthropic-messages', { tools: [{ ...tool, max_uses: 2 }] })
  assert.equal(sent().tools[0].max_uses, 2)
  assert.ok(free < 3 && two > 2 && ten > 10, `${free} ${two} ${ten}`)
  const many = { tools: [{ type: 'web_search' }, { type: 'code_interpreter', container: { type: 'auto' } }] }
  await heldFor('openai-responses', { ...many, max_tool_calls: 3 })
  const answer = await call(key, 'openai-responses', {
    ...bodyOf('openai-responses', 'Hello [[searches=1]] [[code-runs=2]] [[file-searches=4]]'),
    ...many,
  })
  await answer.text()
  assert.equal(sent().max_tool_calls, 10)
  const row = await paid(id)
  // A vendor's report is charged, whatever the request let us expect.
  assert.deepEqual(
    ['webSearch', 'codeRun', 'fileSearch'].map((unit) => quantity(row, unit)),
    [1, 2, 4],
  )
  const quoted = await g.call('/v1/quote', key, { model: 'rich-openai-responses', input: 'Hello', ...many })
  const { data } = (await quoted.json()) as { data: { worstCase: Record<string, number> } }
  assert.deepEqual([data.worstCase.webSearch, data.worstCase.codeRun], [10, 10])
})

const CODE = { type: 'code_execution_20250825', name: 'code_execution' }

test('a request that offers Anthropic’s code execution is charged one run, whole and streamed, beside what is counted', async () => {
  const { id, key } = await g.account({ credits: 10_000_000_000n })
  const door = 'anthropic-messages'
  for (const stream of [false, true]) {
    const body = { ...bodyOf(door, 'Hello [[searches=2]]'), tools: [CODE, ...SEARCH[door].tools] }
    await textOf(call(key, door, body, { stream }))
    const row = await paid(id)
    assert.deepEqual([quantity(row, 'codeRun'), quantity(row, 'webSearch')], [1, 2])
    assert.ok(row.held > 13_000_000n, String(row.held))
    const [code, search] = JSON.parse(g.sandbox.seen.calls.at(-1)?.body ?? '{}').tools
    assert.deepEqual([code, search.max_uses], [CODE, 10])
  }
  const alone = await call(key, door, { ...bodyOf(door, 'Hello'), tools: [CODE] })
  await alone.text()
  assert.equal(quantity(await paid(id), 'codeRun'), 1)
})

test('pictures that a text model makes are charged by the picture where they have a price, as the vendor reports them, whole and streamed', async () => {
  const { id, key } = await g.account({ credits: 10_000_000_000n })
  g.mayExceedHold(id)
  const tools = [{ type: 'image_generation' }]
  for (const stream of [false, true])
    for (const [made, charged, bound] of [
      [0, 0, {}],
      [2, 2, {}],
      [2, 2, { max_tool_calls: 2 }],
      [99, 99, {}],
      [99, 99, { max_tool_calls: 3 }],
    ] as const) {
      const body = { ...bodyOf('openai-responses', `Draw [[pictures=${made}]]`), tools, ...bound }
      await textOf(call(key, 'openai-responses', body, { model: 'drawing', stream }))
      const row = await paid(id)
      assert.equal(quantity(row, 'image'), charged, `${stream} ${made}`)
      if (charged > 0) assert.equal(row.lines.find(([unit]) => unit === 'image')?.[2], '4000000000000')
    }
  const quoted = await g.call('/v1/quote', key, { model: 'drawing', input: 'Draw', tools })
  assert.equal(((await quoted.json()) as { data: { worstCase: { image: number } } }).data.worstCase.image, 10)
  assert.deepEqual(await g.problems(), [])
})

test('whoever leaves after a search pays for it', async () => {
  for (const door of ['openai-responses', 'anthropic-messages'] as const) {
    const { id, key } = await g.account()
    const leaving = new AbortController()
    const answer = await fetch(g.url + FORMATS[door].path('', true), {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: `searching-${door}`, stream: true, ...bodyOf(door, 'Hello'), ...SEARCH[door] }),
      signal: leaving.signal,
    })
    assert.equal(answer.status, 200)
    await answer.body?.getReader().read()
    leaving.abort()
    assert.equal(quantity(await paid(id), 'webSearch'), 1, door)
  }
})

test('a tier costs the multiple that its price says, in the hold, in the lines and in the quote; others are refused by name', async () => {
  const { id, key } = await g.account()
  // Long enough that what vendors put in front of a prompt does not matter.
  const prompt = 'The gate is open. '.repeat(20)
  const rate = async (door: ClientFormatName, extra: object) => {
    await textOf(call(key, door, { ...bodyOf(door, prompt), ...extra }))
    const { lines } = await paid(id)
    return lines.find(([unit]) => unit === 'output')?.[2]
  }
  for (const door of ['openai-chat', 'openai-responses', 'anthropic-messages'] as const) {
    assert.equal(await rate(door, {}), '200000000')
    assert.equal(await rate(door, { service_tier: 'priority' }), '400000000')
  }
  assert.equal(await rate('openai-chat', { service_tier: 'flex' }), '100000000')
  assert.equal(await rate('anthropic-messages', { speed: 'fast', service_tier: 'priority' }), '2400000000')
  const body = { model: 'rich-openai-chat', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1000 }
  const costOf = async (extra: object) => {
    const quoted = await g.call('/v1/quote', key, { ...body, ...extra })
    return Number(((await quoted.json()) as { data: { costAtMost: string } }).data.costAtMost)
  }
  assert.equal(await costOf({ service_tier: 'priority' }), 2 * (await costOf({ service_tier: 'default' })))
  // The vendor decides where nothing is asked for.
  assert.equal(await costOf({}), await costOf({ service_tier: 'priority' }))
  const refused: Array<[door: ClientFormatName, body: object, model: string, said: RegExp]> = [
    ['openai-chat', { service_tier: 'priority' }, 'plain-openai-chat', /"multipliers" of the model's price/],
    ['openai-chat', { service_tier: 'ultrafast' }, 'rich-openai-chat', /service_tier/],
    ['anthropic-messages', { speed: 'fast' }, 'plain-anthropic-messages', /"speed"/],
    ['gemini', { serviceTier: 'priority' }, 'plain-gemini', /"serviceTier"/],
    ['openai-chat', { web_search_options: {} }, 'plain-openai-chat', /"webSearch" of the model's price/],
    ['gemini', { tools: [{ googleSearch: {} }] }, 'strict-gemini', /"webSearch" of the model's price/],
    ['openai-responses', { tools: [{ type: 'file_search' }] }, 'plain-openai-responses', /"fileSearch"/],
    ['openai-responses', { tools: [{ type: 'code_interpreter' }] }, 'plain-openai-responses', /"codeRun"/],
    ['openai-responses', { tools: [{ type: 'image_generation' }] }, 'rich-openai-responses', /"image"/],
    ['anthropic-messages', { tools: [CODE] }, 'plain-anthropic-messages', /"codeRun"/],
    ['gemini', { tools: [{ fileSearch: { fileSearchStoreNames: ['x'] } }] }, 'rich-gemini', /send the documents/],
    ['openai-responses', { tools: [{ type: 'web_search' }] }, 'strict-openai-responses', /"webSearch"/],
    ['anthropic-messages', SEARCH['anthropic-messages'], 'strict-anthropic-messages', /"webSearch"/],
    // Its route speaks another format, whose tools are others.
    ['openai-responses', { tools: [{ type: 'web_search' }] }, 'rich-both', /cannot be used with this model/],
  ]
  for (const [door, extra, model, words] of refused) {
    if (!CLIENT_FORMATS.includes(door)) continue
    const answer = await call(key, door, { ...bodyOf(door, 'Hello'), ...extra }, { model })
    const { message, error } = (await answer.json()) as { message?: string; error?: { message: string } }
    assert.equal(answer.status, 400, `${model} ${JSON.stringify(extra)}`)
    assert.match(error?.message ?? message ?? '', words)
  }
})

test('what coding agents offer in every request is left out where it has no price, and they are told', async () => {
  const { key } = await g.account()
  for (const door of CLIENT_FORMATS.filter((one) => one !== 'openai-chat')) {
    const answer = await call(key, door, { ...bodyOf(door, 'Hello'), ...SEARCH[door] }, { model: `plain-${door}` })
    assert.equal(answer.status, 200, await answer.clone().text())
    assert.equal(answer.headers.get('x-tollgate-left-out'), 'web_search')
    await answer.text()
  }
})

test('what is cached for an hour costs twice the input, and is held for as that', async () => {
  const { id, key } = await g.account()
  const long = 'The toll of the gate is paid at dawn. '.repeat(800)
  const body = (ttl: object) => ({
    max_tokens: 20,
    messages: [{ role: 'user', content: [{ type: 'text', text: long, cache_control: { type: 'ephemeral', ...ttl } }] }],
  })
  const rowOf = async (ttl: object, prefix: string) => {
    await textOf(call(key, 'anthropic-messages', { system: prefix, ...body(ttl) }))
    return paid(id)
  }
  const hour = await rowOf({ ttl: '1h' }, 'one')
  const [, tokens, rate] = hour.lines.find(([unit]) => unit === 'cacheWriteHour') ?? []
  assert.ok((tokens ?? 0) > 1000 && rate === '200000000', JSON.stringify(hour.lines))
  const short = await rowOf({}, 'two')
  assert.equal(quantity(short, 'cacheWriteHour'), 0)
  assert.ok(hour.held > short.held)
})

test('all of it is verified: sums, holds and rates', async () => {
  assert.deepEqual(await g.problems(), [])
})
