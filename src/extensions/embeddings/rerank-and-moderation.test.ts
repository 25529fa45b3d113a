// Rerank and moderations: the official openai package, unchanged, and what a call is held for and costs.
import OpenAI from 'openai'
import { assert, before, listen, pluck, started, test, testGateway, textOf } from '../../../test/gateway.ts'
import type { CatalogInput } from '../../catalog/document.ts'

/** A vendor whose answer a test says. */
let answer: unknown
const vendor = started(() =>
  listen((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  }),
)
let key: string
const g = testGateway(() => ({
  catalog(document: CatalogInput) {
    document.vendors.other = { baseUrl: vendor.url }
    const rerank = document.models['alpha-rerank-1']!
    const routes = [{ vendor: 'other', protocol: 'rerank' as const, model: 'their-rerank' }]
    const priced = (tier: object) => ({ ...rerank, routes, pricing: { unit: 'credits' as const, tiers: [tier] } })
    document.models['by-token'] = priced({ input: '1000000' })
    document.models['by-search'] = priced({ call: '1' })
  },
}))
before(async () => {
  key = (await g.account()).key
})

const client = (path = '/v1') => new OpenAI({ apiKey: key, baseURL: g.url + path, maxRetries: 0 })
const DOCUMENTS = ['A recipe for onion soup.', 'The gate opens at dawn.', 'The gate is closed.']
const QUERY = 'When does the gate open? The gate opens at'

type Ranked = { model: string; results: { index: number; relevance_score: number; document?: { text: string } }[] }

test('results that a vendor calls data are results, and its tokens are charged', async () => {
  const data = [{ index: 1, relevance_score: 0.9, document: 'Zürich' }]
  answer = { object: 'list', data, model: 'their-rerank', usage: { total_tokens: 26 } }
  const { id, key: own } = await g.account()
  const said = await g.call('/v1/rerank', own, { model: 'by-token', query: QUERY, documents: DOCUMENTS })
  assert.deepEqual(await said.json(), { object: 'list', model: 'by-token', results: data, usage: { total_tokens: 26 } })
  assert.equal((await g.lastCall(id)).charged, 26_000_000n)
})

test('documents come back best first, with the public name of the model, and as many as were asked for', async () => {
  const ask = (more: object) =>
    client().post<Ranked>('/rerank', { body: { model: 'alpha-rerank-1', query: QUERY, documents: DOCUMENTS, ...more } })
  const all = await ask({})
  assert.equal(all.model, 'alpha-rerank-1')
  assert.deepEqual(all.results.map(({ index }) => index).sort(), [0, 1, 2])
  assert.equal(all.results[0]?.index, 1)
  const best = await ask({ top_n: 1, return_documents: true, documents: DOCUMENTS.map((text) => ({ text })) })
  assert.deepEqual(
    best.results.map(({ index, document }) => [index, document?.text]),
    [[1, DOCUMENTS[1]]],
  )
})

test('/v2/rerank answers in the shape of Cohere, whoever the vendor is, at the price of /v1/rerank', async () => {
  const { id, key } = await g.account()
  const body = { model: 'alpha-rerank-1', query: QUERY, documents: DOCUMENTS, top_n: 2 }
  const charges = []
  for (const path of ['/v1/rerank', '/v2/rerank']) {
    const response = await g.call(path, key, body)
    assert.equal(response.status, 200, path)
    charges.push(response.headers.get('x-tollgate-charge'))
    if (path === '/v1/rerank') continue
    const ranked = (await response.json()) as Ranked & { id: string; meta: { billed_units: object } }
    assert.deepEqual(Object.keys(ranked).sort(), ['id', 'meta', 'results'])
    assert.equal(ranked.results.length, 2)
    assert.deepEqual(Object.keys(ranked.results[0]!).sort(), ['index', 'relevance_score'])
    assert.deepEqual(ranked.meta.billed_units, { search_units: 1 })
  }
  assert.ok(charges[0] !== null && charges[0] === charges[1], charges.join(' and '))
  await g.settled()
  assert.equal((await g.lastCall(id)).endpoint, 'rerank/v2')
  answer = { results: [{ index: 0, relevance_score: 0.5, document: { text: 'ä' } }], usage: { total_tokens: 5 } }
  const bare = await g.call('/v2/rerank', key, { model: 'by-search', query: 'q', documents: ['ä'] })
  assert.deepEqual(await bare.json(), {
    results: [{ index: 0, relevance_score: 0.5 }],
    meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
  })
  const refused = await g.call('/v2/rerank', key, { model: 'alpha-rerank-1', query: 'q', documents: [] })
  assert.equal(refused.status, 400)
  assert.match(((await refused.json()) as { message: string }).message, /"documents" must hold 1 to 1000 entries/)
})

test('the openai package moderates one text, many, and parts, by every path', async () => {
  for (const path of ['/v1', '/alpha', '/alpha/v1']) {
    const { moderations } = client(path)
    const model = 'alpha-moderation-1'
    const one = await moderations.create({ model, input: 'A kind word.' })
    assert.deepEqual([one.model, one.results.length, one.results[0]?.flagged], [model, 1, false])
    const many = await moderations.create({ model, input: ['A kind word.', 'violence'] })
    assert.deepEqual(pluck(many.results, 'flagged'), [false, true])
    const parts = await moderations.create({ model, input: [{ type: 'text', text: 'hate' }] })
    assert.equal(parts.results[0]?.categories.hate, true)
  }
})

test('what is wrong with a request is said by the field, before any vendor hears of it', async () => {
  const cases: Array<[path: string, body: object, param: string]> = [
    ['/v1/rerank', { documents: ['a'] }, 'query'],
    ['/v1/rerank', { query: '', documents: ['a'] }, 'query'],
    ['/v1/rerank', { query: 'q' }, 'documents'],
    ['/v1/rerank', { query: 'q', documents: [] }, 'documents'],
    ['/v1/rerank', { query: 'q', documents: Array.from({ length: 1001 }, () => 'a') }, 'documents'],
    ['/v1/rerank', { query: 'q', documents: ['a', ''] }, 'documents[1]'],
    ['/v1/rerank', { query: 'q', documents: [{ title: 'x' }] }, 'documents[0]'],
    ['/v1/rerank', { query: 'q', documents: ['a', { text: 'a', body: 'x'.repeat(100_000) }] }, 'documents[1]'],
    ['/v1/rerank', { query: 'q', documents: [{ text: 'a' }], rank_fields: ['text'] }, 'rank_fields'],
    ['/v1/rerank', { query: 'q', documents: ['a'], top_n: 0 }, 'top_n'],
    ['/v1/moderations', {}, 'input'],
    ['/v1/moderations', { input: '' }, 'input'],
    ['/v1/moderations', { input: [5] }, 'input[0]'],
    ['/v1/moderations', { input: 7 }, 'input'],
  ]
  const requests = g.sandbox.seen.requests
  const { id, key } = await g.account()
  for (const [path, body, param] of cases) {
    const model = path === '/v1/rerank' ? 'alpha-rerank-1' : 'alpha-moderation-1'
    const response = await g.call(path, key, { model, ...body })
    const { error } = (await response.json()) as { error: { param: string } }
    assert.deepEqual([response.status, error.param], [400, param], `${path} ${JSON.stringify(body).slice(0, 80)}`)
  }
  assert.equal(g.sandbox.seen.requests, requests)
  assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n, held: 0n })
})

test('a call costs what its vendor reports, never above its quote; without a report it is estimated; a failure costs nothing', async () => {
  const { id, key } = await g.account({ credits: 1_000_000_000_000n })
  const body = { query: 'q', documents: ['four', 'five5'] }
  const results = [{ index: 0, relevance_score: 0.5 }]
  const charge = async (model: string, said: object) => {
    answer = { results, ...said }
    const response = await g.call('/v1/rerank', key, { model, ...body })
    assert.equal(response.status, 200, await response.text())
    await g.settled()
    return g.lastCall(id)
  }
  const quoted = await g.call('/v1/quote', key, { model: 'by-token', ...body })
  const { data } = (await quoted.json()) as { data: { endpoint: string; costAtMost: string } }
  assert.equal(data.endpoint, 'rerank')
  const most = 4 + 5 + 2 * (1 + 8)
  assert.equal(data.costAtMost, String(most))
  const counted = await charge('by-token', { usage: { total_tokens: 5 } })
  assert.deepEqual([counted.charged, counted.estimated, counted.endpoint], [5_000_000n, false, 'rerank'])
  assert.equal((await charge('by-token', { meta: { billed_units: { input_tokens: 7 } } })).charged, 7_000_000n)
  const none = await charge('by-token', {})
  assert.ok(none.estimated && none.charged > 0n && none.charged <= none.held)
  const nonsense = await charge('by-token', { usage: { total_tokens: 1e12 } })
  assert.ok(nonsense.estimated && nonsense.charged === nonsense.held)
  assert.equal((await charge('by-search', {})).charged, 1_000_000n)
  assert.equal((await charge('by-search', { meta: { billed_units: { search_units: 1 } } })).charged, 1_000_000n)
  // No more than the texts can come to, whatever it says.
  assert.equal((await charge('by-search', { meta: { billed_units: { search_units: 900 } } })).charged, 1_000_000n)
  assert.equal((await charge('by-search', { meta: { billed_units: { search_units: 0 } } })).charged, 0n)
  const before = await g.balance(id)
  answer = { id: 'no results' }
  assert.equal((await g.call('/v1/rerank', key, { model: 'by-token', ...body })).status, 502)
  await g.settled()
  assert.deepEqual(await g.balance(id), before)
})

test('moderations cost by the input, a failure of the vendor nothing, and a key is charged once', async () => {
  const { id, key } = await g.account()
  const ask = (input: unknown, headers = {}) =>
    g.call('/v1/moderations', key, { model: 'alpha-moderation-1', input }, { headers })
  await ask(['a', 'b', 'c'])
  await g.settled()
  assert.equal((await g.lastCall(id)).charged, 300n)
  await ask([
    { type: 'text', text: 'a' },
    { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
  ])
  await g.settled()
  assert.equal((await g.lastCall(id)).charged, 100n)
  const { posted } = await g.balance(id)
  assert.equal((await ask('[[500]]')).status, 502)
  const headers = { 'idempotency-key': 'once' }
  const [first, second] = [await ask('a', headers), await ask('a', headers)]
  assert.equal(await first.text(), await second.text())
  await g.settled()
  assert.equal((await g.balance(id)).posted, posted - 100n)
})

test('a model of one kind is not one of the other', async () => {
  assert.match(
    await textOf(g.call('/v1/rerank', key, { model: 'alpha-moderation-1', query: 'q', documents: ['a'] }), 400),
    /is not a model of the type rerank/,
  )
})
