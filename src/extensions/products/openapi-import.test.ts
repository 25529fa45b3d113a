// OpenAPI documents become products: by the operator API and the command line; what is wrong with a document is said
// with its line.

import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { fixtureText } from '../../../test/fixture.ts'
import { after, assert, listen, needs, pluck, test, testGateway, words } from '../../../test/gateway.ts'
import { checkValue } from '../../catalog/json-schema.ts'
import { isQuickPattern } from '../../catalog/pattern.ts'
import { importOpenapi } from './openapi-import.ts'

const seen: { url: string; headers: IncomingMessage['headers']; body: string }[] = []
const { url: origin, close } = await listen(async (req, res) => {
  seen.push({ url: `${req.method} ${req.url}`, headers: req.headers, body: await text(req) })
  if (req.url === '/token') {
    res
      .writeHead(200, { 'content-type': 'application/json' })
      .end('{"access_token":"tok-1","expires_in":3600,"token_type":"bearer"}')
    return
  }
  res.writeHead(200, { 'content-type': 'application/json' }).end('{"items":[{"id":1},{"id":2},{"id":3}]}')
})
after(close)

const PETS = fixtureText('openapi/pets.yaml')

const FIND = {
  title: 'Find',
  route: 'GET /find',
  vendorPath: 'find',
  params: { q: { kind: 'text', required: true, example: 'x' } },
}

const g = testGateway()

test('operations of a document are read, and those that cannot be sold say why and where', async () => {
  const { data } = await g.operator<any>('POST', '/products/read', { document: PETS })
  assert.equal(data.title, 'Pets bof/b all kinds')
  assert.deepEqual([data.server, data.serverProblem], ['https://api.example.com/v1', null])
  assert.deepEqual(data.auth, { header: 'x-pets-key' })
  const by = Object.fromEntries(data.operations.map((one: { id: string }) => [one.id, one]))
  assert.deepEqual(Object.keys(by), ['list-pets', 'add-pet', 'get-pet', 'upload', 'remote'])
  const lineOf = (words: string) => PETS.split('\n').findIndex((line) => line.includes(words)) + 1
  assert.equal(
    by.upload.problem,
    `takes a body of multipart/form-data, which is not offered (line ${lineOf('/upload:') + 1})`,
  )
  assert.ok(
    by.remote.problem.startsWith(
      `refers to "https://evil.example/params.yaml#/X", which is not in the document: line ${lineOf('evil')}`,
    ),
  )
  assert.match(by['list-pets'].notes.join(), /"session" is left out: it is a cookie/)
  const read: any = importOpenapi(PETS).operations[0]
  assert.deepEqual(read.operation.params.limit, {
    description: '',
    example: '1',
    kind: 'integer',
    min: 1,
    max: 40,
    default: '20',
  })
})

test('chosen operations are endpoints at once, paid by the row, and applied only as a version whose difference was shown', async () => {
  const body = {
    id: 'pets',
    document: PETS,
    operations: ['list-pets', 'add-pet', 'get-pet'],
    vendor: { baseUrl: origin, credential: { name: 'PETS_KEY', value: 'pets-secret' } },
    price: { rates: { call: '1' } },
    prices: { 'list-pets': { rates: { row: '0.5' }, rows: { path: 'items', most: 'limit' } } },
  }
  const check = await g.operator<{ problems: string[]; changes: string[] }>('POST', '/products?dryRun=true', body)
  assert.deepEqual(check.data.problems, [])
  assert.match(check.data.changes.join('\n'), /Product pets is new, with 3 operations: list-pets, add-pet, get-pet\./)
  const { id, key } = await g.account()
  assert.equal((await g.call('/v1/pets/pets', key)).status, 404)
  const applied = await g.operator<{ version: number }>('POST', '/products', body)
  assert.equal(applied.status, 200, JSON.stringify(applied.data))
  seen.length = 0
  const answer = await g.call('/v1/pets/pets?status=new,sold&limit=2', key)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('x-tollgate-charge'), '1', 'two rows were asked for; the vendor gave three')
  assert.equal(seen[0]?.url, 'GET /pets?limit=2&status=new&status=sold')
  assert.equal(seen[0]?.headers['x-pets-key'], 'pets-secret')
  assert.equal((await g.call('/v1/pets/pets/a%20b', key)).status, 200)
  assert.equal(seen[1]?.url, 'GET /pets/a%20b')
  for (const [pet, status] of [
    [{ name: 'a', parent: { name: 'b', kind: 'cat' } }, 200],
    [{ name: 'a', parent: { kind: 'cat' } }, 400],
    [{ name: 'a', kind: 'bird' }, 400],
    [{ name: 'a', kind: { other: 'x' } }, 200],
    [{ name: 'x'.repeat(51) }, 400],
  ] as const)
    assert.equal((await g.call('/v1/pets/pets', key, pet)).status, status, JSON.stringify(pet))
  assert.equal(seen.length, 4)
  await g.settled()
  assert.ok((await g.balance(id)).posted < 1_000_000_000n)
})

test('one operation without a document, at an API that wants a token of OAuth', needs('logins'), async () => {
  const made = await g.operator<unknown>('POST', '/products', {
    id: 'single',
    entries: { find: FIND },
    vendor: {
      baseUrl: origin,
      auth: { oauth: { tokenUrl: `${origin}/token` } },
      credential: { name: 'OAUTH_KEY', value: 'me:secret' },
    },
    price: { rates: { call: '0.2' } },
  })
  assert.equal(made.status, 200, JSON.stringify(made.data))
  const { key } = await g.account()
  seen.length = 0
  for (const q of ['a', 'b']) assert.equal((await g.call(`/v1/single/find?q=${q}`, key)).status, 200)
  assert.deepEqual(pluck(seen, 'url'), ['POST /token', 'GET /find?q=a', 'GET /find?q=b'], 'one token for both')
  assert.equal(seen[2]?.headers.authorization, 'Bearer tok-1')
})

test('a product that is changed keeps its costs and switches, and leaves with its prices and a vendor that nothing else uses', async () => {
  const put = (more: object) =>
    g.operator<{ message?: string; bounds?: unknown }>('POST', '/products', {
      id: 'kept',
      title: 'Kept',
      description: 'Of ours.',
      entries: { find: FIND },
      vendor: { baseUrl: origin },
      price: { rates: { call: '1' } },
      ...more,
    })
  assert.equal((await put({})).status, 200)
  const { input } = g.gateway.catalog.current
  const cost = { unit: 'credits', tiers: [{ call: '0.4' }] }
  const priced = {
    ...input.endpoints['kept/find'],
    enabled: false,
    routes: [{ vendor: 'kept', protocol: 'http-api', cost }],
  }
  await g.operator('PUT', '/catalog', {
    document: { ...input, endpoints: { ...input.endpoints, 'kept/find': priced } },
  })
  const changed = await put({ price: { rates: { call: '2' }, cacheSeconds: 9 }, description: undefined })
  assert.equal(changed.status, 200, JSON.stringify(changed.data))
  const now = g.gateway.catalog.current.input
  assert.partialDeepStrictEqual(now.endpoints['kept/find'], {
    enabled: false,
    cache: { ttlSeconds: 9 },
    pricing: { tiers: [{ call: '2' }] },
    routes: [{ vendor: 'kept', cost }],
  })
  assert.equal(now.products?.kept?.description, 'Of ours.')
  const shared = {
    routes: [{ vendor: 'kept', protocol: 'http-api' }],
    pricing: { unit: 'credits', tiers: [{ call: '1' }] },
  }
  const other = { products: { ...now.products, other: { title: 'Other', operations: { find: FIND } } } }
  const both = { ...now, ...other, endpoints: { ...now.endpoints, 'other/find': shared } }
  assert.equal((await g.operator('PUT', '/catalog', { document: both })).status, 200)
  assert.equal((await g.operator('DELETE', '/products/kept')).status, 200)
  assert.ok(g.gateway.catalog.current.document.vendors.kept, 'the other product is at it')
  assert.equal((await g.operator('DELETE', '/products/other')).status, 200)
  const { document } = g.gateway.catalog.current
  assert.deepEqual(
    [document.vendors.kept, document.endpoints['kept/find'], document.products.kept],
    [undefined, undefined, undefined],
  )
  assert.equal((await g.operator('DELETE', '/products/kept')).status, 404)
})

test('what an expression counts at most is said with the check, and reading gives chosen operations in the form of the catalog', async () => {
  const check = async (expression: string) =>
    (
      await g.operator<any>('POST', '/products?dryRun=true', {
        id: 'bounded',
        entries: { find: { ...FIND, counts: { metered: { expression } } } },
        vendor: { baseUrl: origin },
        price: { rates: { metered: '1' } },
      })
    ).data
  const good = await check('min(answer.cost, 5) * 10')
  assert.deepEqual([good.problems, good.bounds], [[], { find: { metered: 50 } }])
  const bad = await check('answer.cost * 10')
  assert.deepEqual(bad.bounds, { find: {} })
  assert.match(bad.problems[0], /^products\.bounded\.operations\.find\.counts\.metered\.expression: has no upper bound/)
  const { data } = await g.operator<any>('POST', '/products/read', { document: PETS, operations: ['get-pet'] })
  const entries = data.operations.map((one: any) => one.entry?.route ?? null)
  assert.deepEqual(entries, [null, null, 'GET /pets/{pet_id}', null, null])
  const broken = await g.operator<any>('POST', '/products/read', {
    document: '{\n "openapi": "3.1.0",\n "info": { "a" "b" }\n}',
  })
  assert.match(broken.data.message, /cannot be read: .* at line 3, column/)
})

test('documents of strangers are bounded: circles, size, trees of alternatives, bad servers and internal addresses', async () => {
  const refused = async (document: string, words: RegExp, more: object = {}) => {
    const { status, data } = await g.operator<{ message: string }>('POST', '/products', {
      id: 'bad',
      document,
      price: { rates: { call: '1' } },
      ...more,
    })
    assert.equal(status, 400)
    assert.match(data.message, words)
  }
  const doc = (more: object) =>
    JSON.stringify(
      {
        openapi: '3.1.0',
        info: { title: 'x' },
        servers: [{ url: 'https://a.example.com' }],
        paths: { '/a': { get: { responses: {} } } },
        ...more,
      },
      null,
      1,
    )
  await refused('{"swagger":"2.0"}', /"openapi" is missing/)
  await refused('openapi: [', /cannot be read/)
  await refused(`a: &a [x]\nb: [${'*a, '.repeat(200)}]\nopenapi: 3.1.0`, /cannot be read|no operations/)
  await refused(`{"x":"${'y'.repeat(5 * 1024 * 1024)}"}`, /Too big/)
  for (const url of words(`
    http://127.0.0.1:80/x http://localhost http://10.0.0.8 http://[::1] https://db.internal
    http://169.254.169.254/latest
  `))
    await refused(doc({ servers: [{ url }] }), /not a public address/)
  await refused(doc({ servers: [{ url: '/relative' }] }), /names no server/)
  await refused(doc({}), /Link-local addresses/, { vendor: { baseUrl: 'http://169.254.169.254' } })
  for (const [url, why] of [
    ['http://127.0.0.1:8080', 'is not a public address'],
    ['/relative', 'is not a whole web address'],
  ]) {
    const { data } = await g.operator<any>('POST', '/products/read', { document: doc({ servers: [{ url }] }) })
    assert.deepEqual([data.server, data.serverProblem], [null, `The document names ${url}, which ${why}.`])
  }
  const circle = importOpenapi(
    doc({
      components: {
        parameters: { A: { $ref: '#/components/parameters/B' }, B: { $ref: '#/components/parameters/A' } },
      },
      paths: { '/a': { get: { parameters: [{ $ref: '#/components/parameters/A' }], responses: {} } } },
    }),
  )
  assert.match(circle.operations[0]?.problem ?? '', /in a circle \(line \d+\)/)
  // A large one is read, and an operation of it sold; what is too large in it is left to the vendor.
  const schemas = Object.fromEntries(
    Array.from({ length: 6_000 }, (_, at) => [
      `S${at}`,
      {
        type: 'object',
        description: 'y'.repeat(500),
        properties: { next: { $ref: `#/components/schemas/S${(at + 1) % 6_000}` } },
      },
    ]),
  )
  const large = doc({
    components: { schemas },
    paths: {
      '/a': {
        post: {
          requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/S0' } } } },
          responses: {},
        },
      },
    },
  })
  assert.ok(large.length > 3_500_000)
  assert.match(importOpenapi(large).operations[0]?.notes.join() ?? '', /schema of the body is too large/)
  // A tree that names itself in each alternative: checking stops after its budget of steps.
  const tree = {
    $ref: '#/$defs/T',
    $defs: {
      T: {
        oneOf: ['a', 'b', 'c'].map((name) => ({
          type: 'object',
          required: [name],
          properties: { n: { $ref: '#/$defs/T' }, [name]: { type: 'null' } },
        })),
      },
    },
  }
  let value: unknown = {}
  for (let depth = 0; depth < 60; depth++) value = { n: value, c: null }
  assert.match(checkValue(tree, value)?.must ?? '', /less deeply nested|be there/)
})

test('hundreds of problems in a large document are found in about the time that reading it takes', () => {
  const paths = Object.fromEntries(
    Array.from({ length: 500 }, (_, at) => [
      `/p${at}`,
      { get: { parameters: [{ $ref: `#/no/p${at}` }], responses: {} } },
    ]),
  )
  const text = JSON.stringify({ openapi: '3.1.0', pad: Array(300_000).fill(1), paths }, null, 1)
  // In processor time, of which a busy machine takes no more.
  const took = (run: () => void) => {
    const from = process.threadCpuUsage()
    run()
    return process.threadCpuUsage(from).user / 1000
  }
  const parse = took(() => JSON.parse(text))
  let problem: string | undefined
  const read = took(() => {
    problem = importOpenapi(text).operations[499]?.problem
  })
  const lineOf = (words: string) => text.slice(0, text.indexOf(words)).split('\n').length
  assert.ok(
    problem?.endsWith(`line ${lineOf('#/no/p499')} (line ${lineOf('"/p499"') + 1})`) ?? false,
    problem ?? 'none',
  )
  assert.ok(read < 50 * parse + 1_000, `${read} ms, and ${parse} ms for parsing`)
})

test('a pattern of a document is used only if few ways lead through it, and for short texts', () => {
  for (const slow of [
    '[a-z]{1,64}[a-z]{1,64}[a-z]{1,64}[0-9]',
    '\\w+\\w+@',
    `^${'a?'.repeat(25)}${'a'.repeat(25)}b$`,
    `^${'(a|a)'.repeat(30)}b$`,
    '^(a+)+$',
    '^(a|a){30}b$',
    '^((a|a){9}){9}b$',
    '^(.|\\d)*x$',
    '^a*|a*a*b$',
    '[a-z]+x',
    '^(a)\\1+$',
  ])
    assert.equal(isQuickPattern(slow), false, slow)
  for (const quick of [
    '^\\w+$',
    '^[a-z]{2}-\\d+$',
    '^[^\\]*+]*$',
    '^@?[A-Za-z0-9_]{1,15}$',
    '^(ab)+?$',
    '[a-z]{2}',
    '^\\p{L}{1,64}(?:, \\p{L}{1,64})?$',
  ])
    assert.equal(isQuickPattern(quick), true, quick)
  const schema = { type: 'string', pattern: '^a+$' }
  assert.equal(checkValue(schema, `${'a'.repeat(200)}b`)?.must, 'match ^a+$')
  assert.equal(checkValue(schema, `${'a'.repeat(256)}b`), undefined, 'left to the vendor')
})

test('what a document says under x-tollgate is read only if it is trusted, and never where a call goes', async () => {
  const own = (pattern: string) => ({
    openapi: '3.1.0',
    info: { title: 'x' },
    servers: [{ url: origin }],
    paths: {
      '/a': {
        get: {
          operationId: 'a',
          parameters: [
            {
              name: 'q',
              in: 'query',
              schema: { type: 'string' },
              'x-tollgate': { kind: 'text', pattern, example: 'a' },
            },
          ],
          responses: {},
          'x-tollgate': {
            route: 'DELETE /b',
            vendorPath: 'b',
            method: 'DELETE',
            tool: { name: 'get_balance' },
            rowsMax: 7,
          },
        },
      },
    },
  })
  const read = (isTrusted: boolean): any => importOpenapi(JSON.stringify(own('^a$')), { isTrusted }).operations[0]
  const { operation: plain, notes } = read(false)
  assert.deepEqual([plain.route, plain.vendorPath, plain.tool, plain.rowsMax], ['GET /a', 'a', undefined, undefined])
  assert.equal(plain.params.q.pattern, undefined)
  assert.match(notes.join(), /"x-tollgate" is left out/)
  const { operation: trusted } = read(true)
  assert.deepEqual([trusted.route, trusted.vendorPath, trusted.method, trusted.rowsMax], ['GET /a', 'a', undefined, 7])
  assert.equal(trusted.params.q.pattern, '^a$')
  // By the operator API; there a slow pattern is refused with its place, whoever wrote it.
  const check = async (more: object) => {
    const body = { id: 'mine', document: JSON.stringify(own('^(a+)+$')), price: { rates: { call: '1' } }, ...more }
    const vendor = { baseUrl: origin }
    return (await g.operator<{ problems: string[] }>('POST', '/products?dryRun=true', { ...body, vendor })).data
      .problems
  }
  assert.deepEqual(await check({}), [])
  assert.match(
    (await check({ trusted: true })).join(),
    /products\.mine\.operations\.a\.params\.q\.pattern.*could take long/,
  )
})

test('each preset is a valid product whose answers are simulated; list prices become credits, and what has none needs a price', async () => {
  const { data } = await g.operator<{
    items: { name: string; tested: boolean; operations: { id: string; usd: object | null }[] }[]
  }>('GET', '/products/presets')
  assert.deepEqual(pluck(data.items, 'name'), words('brave-search tavily serper firecrawl dataforseo similarweb x-api'))
  for (const { name: preset, tested, operations } of data.items) {
    assert.equal(tested, false)
    const isListed = operations.every(({ usd }) => usd !== null)
    const ask = (more: object) =>
      g.operator<{ message?: string; problems?: string[] }>('POST', '/products', { id: preset, preset, ...more })
    if (!isListed) assert.match((await ask({})).data.message ?? '', /has no price/)
    const made = await ask(isListed ? {} : { price: { rates: { call: '1' } } })
    assert.equal(made.status, 200, `${preset}: ${JSON.stringify(made.data)}`)
  }
  const { id } = await g.account()
  const made = await g.operator<{ key: string }>('POST', `/accounts/${id}/keys`, { name: 'k', test: true })
  const { key } = made.data
  const search = await g.call('/v1/tavily/search', key, { query: 'x', search_depth: 'advanced' })
  assert.equal(search.status, 200, await search.clone().text())
  assert.equal(search.headers.get('x-tollgate-charge'), '1.6', 'two credits at 0.008 dollars')
  const deep = await g.call('/v1/dataforseo/google/organic', key, {
    keyword: 'x',
    location_code: 2840,
    language_code: 'en',
    depth: 30,
  })
  assert.equal(deep.headers.get('x-tollgate-charge'), '0.5', 'one page and two at three quarters')
  const posts = await g.call('/v1/x-api/posts/search?query=cats', key)
  assert.equal(posts.headers.get('x-tollgate-charge'), '0.5')
  const visits = await g.call('/v1/similarweb/engagement?domain=example.com&start_date=2026-07&end_date=2026-09', key)
  assert.equal(visits.status, 200)
})
