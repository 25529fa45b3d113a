// Products of the catalog: APIs that the code does not know, sold like the gateway's own endpoints.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { fixtureOf } from '../../../test/fixture.ts'
import { after, assert, isOff, listen, needs, test, testGateway, until } from '../../../test/gateway.ts'

interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** What the vendor was asked, and what it says next: by path. */
const seen: Seen[] = []
const answers = new Map<string, (res: ServerResponse) => void>()
const json = (value: unknown) => (res: ServerResponse) => {
  res
    .writeHead(200, { 'content-type': 'application/json' })
    .end(typeof value === 'string' ? value : JSON.stringify(value))
}
const vendor = await listen(async (req, res) => {
  const { method = '', url = '', headers } = req
  seen.push({ method, url, headers, body: await text(req) })
  const answer = answers.get((req.url ?? '').split('?')[0] ?? '')
  if (answer) answer(res)
  else res.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"no such path"}')
})
const vendorUrl = `${vendor.url}/api`
after(() => vendor.close())

const priced = (tier: Record<string, string>) => ({
  routes: [{ vendor: 'maps', protocol: 'http-api' }],
  pricing: { unit: 'credits', tiers: [tier] },
})

const MAPS = fixtureOf<any>('maps-product.yaml')

const PRICES = {
  'maps/search': priced({ call: '0.1', row: '0.01' }),
  'maps/place': { ...priced({ call: '2' }), cache: { ttlSeconds: 60 } },
  'maps/route': priced({ call: '0', metered: '0.5' }),
  'maps/order': priced({ call: '3' }),
  'maps/find': priced({ call: '3' }),
  'maps/tile': priced({ call: '1' }),
  'maps/feed': priced({ call: '1' }),
  'maps/slow': priced({ call: '1' }),
  'maps/patient': { ...priced({ call: '1' }), routes: [{ vendor: 'hasty', protocol: 'http-api' }] },
  'maps/dump': priced({ call: '0', byte: '1000' }),
  'maps/list': priced({ call: '1' }),
}

const g = testGateway({
  env: { MAPS_KEY: 'maps-secret' },
  catalog(document) {
    document.vendors.maps = {
      baseUrl: vendorUrl,
      credential: 'MAPS_KEY',
      auth: { header: 'x-maps-key' },
      headers: { 'x-app': 'tollgate' },
    }
    document.vendors.hasty = { baseUrl: vendorUrl, timeouts: { firstByteMs: 1, totalMs: 2 } }
    document.vendors.keyed = { baseUrl: vendorUrl, credential: 'MAPS_KEY', auth: { query: 'key' } }
    document.vendors.unset = { baseUrl: 'https://unset.example', credential: 'UNSET_KEY' }
    document.products = {
      maps: MAPS,
      keyed: { title: 'Keyed', operations: { tile: { ...MAPS.operations.tile, answers: ['image/*'] } } },
      demo: { title: 'Demo', operations: { hello: { ...MAPS.operations.search, route: 'GET /' } } },
    }
    Object.assign(document.endpoints, PRICES, {
      'keyed/tile': { ...priced({ call: '1' }), routes: [{ vendor: 'keyed', protocol: 'http-api' }] },
      'demo/hello': {
        ...priced({ call: '0.1', row: '0.01' }),
        cache: { ttlSeconds: 60 },
        routes: [{ vendor: 'unset', protocol: 'http-api' }],
      },
    })
  },
})

const spentBy = async (id: string, run: () => Promise<void>) => {
  const before = (await g.balance(id)).posted
  await run()
  await g.settled()
  return before - (await g.balance(id)).posted
}

test('an operation is an endpoint: what it names reaches the vendor, and nothing else does', async () => {
  const { id, key } = await g.account()
  answers.set('/api/v2/search', json({ results: [{ name: 'a' }, { name: 'b' }] }))
  seen.length = 0
  const spent = await spentBy(id, async () => {
    const answer = await g.call('/v1/maps/search?q=caf%C3%A9&limit=5&tags=a,b', key, undefined, {
      headers: { 'x-lang': 'de', 'x-other': 'no', cookie: 'a=b' },
    })
    assert.equal(answer.status, 200)
    assert.deepEqual(await answer.json(), { results: [{ name: 'a' }, { name: 'b' }] })
    assert.equal(answer.headers.get('x-tollgate-charge'), '0.12')
  })
  assert.equal(spent, 120_000n)
  const [asked] = seen
  assert.equal(asked?.url, '/api/v2/search?q=caf%C3%A9&limit=5&tags=a&tags=b')
  assert.equal(asked.headers['x-lang'], 'de')
  assert.equal(asked.headers['x-maps-key'], 'maps-secret')
  assert.equal(asked.headers['x-app'], 'tollgate')
  for (const name of ['x-other', 'cookie', 'authorization']) assert.equal(asked.headers[name], undefined, name)
  for (const [path, status, words] of [
    ['/v1/maps/search?limit=5', 400, /q is required/],
    ['/v1/maps/search?q=a&limit=51', 400, /limit must be an integer from 1 to 50/],
    ['/v1/maps/search?q=a&key=x', 400, /"key" is not a parameter/],
    ['/v1/maps/places/..%2Fadmin', 400, /id must be/],
    ['/v1/maps/nothing', 404, /./],
    ['/v1/nothing/search', 404, /./],
  ] as const) {
    const refused = await g.call(path, key)
    assert.equal(refused.status, status, path)
    assert.match(((await refused.json()) as { error: { message: string } }).error.message, words)
  }
  assert.equal((await g.call('/v1/maps/search?q=a', key, {})).status, 405)
  assert.equal(seen.length, 1)
})

test('the body is checked before money moves, and an expression over the answer is what is charged', async () => {
  const { id, key } = await g.account()
  seen.length = 0
  for (const [body, words] of [
    [{ from: 'a' }, /"to" must be there/],
    [{ from: 'a', to: 'b', steps: 21 }, /"steps" must be at most 20/],
    [{ from: 'a', to: 'b', via: 'c' }, /"via" must be left out/],
    [{ from: 1, to: 'b' }, /"from" must be a text/],
  ] as const) {
    const refused = await g.call('/v1/maps/routes', key, body)
    assert.equal(refused.status, 400)
    assert.match(((await refused.json()) as { error: { message: string } }).error.message, words)
  }
  assert.equal(seen.length, 0)
  const ask = async (answer: unknown) => {
    answers.set('/api/v2/routes', json(answer))
    const response = await g.call('/v1/maps/routes', key, { from: 'a', to: 'b', steps: 3 })
    assert.equal(response.status, 200)
    await response.text()
    return response.headers.get('x-tollgate-charge')
  }
  assert.equal(await ask({ cost: 0.25 }), '3', 'ceil(2.5 + 3) units at 0.5')
  assert.equal(await ask({ cost: 1e9 }), '26.5', 'no more than the bound, which is what was held')
  assert.equal(await ask({ price: 1 }), '1', 'what is counted is not there: the least')
  assert.equal(await ask({ cost: '7' }), '1')
  const rows = await g.calls(id)
  assert.deepEqual(
    rows.sort((one, other) => Number(one.charged - other.charged)).map(({ estimated }) => estimated),
    [true, true, false, false],
    'the least is marked',
  )
  assert.equal(seen.at(-1)?.body, '{"from":"a","to":"b","steps":3}')
})

test('files, streams and bytes are relayed as they are; what is too large or of another type is an error that costs nothing', async () => {
  const { id, key } = await g.account()
  const png = Buffer.from([0x89, 0x50, 0, 255, 254])
  answers.set('/api/v2/tile', (res) => res.writeHead(200, { 'content-type': 'image/png' }).end(png))
  answers.set('/api/v2/feed', (res) =>
    res.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: 1\n\ndata: 2\n\n'),
  )
  answers.set('/api/v2/dump', (res) =>
    res.writeHead(200, { 'content-type': 'application/json' }).end(`"${'x'.repeat(498)}"`),
  )
  const spent = await spentBy(id, async () => {
    const tile = await g.call('/v1/maps/tile', key)
    assert.equal(tile.headers.get('content-type'), 'image/png')
    assert.deepEqual(Buffer.from(await tile.arrayBuffer()), png)
    const feed = await g.call('/v1/maps/feed', key)
    assert.equal(feed.headers.get('content-type'), 'text/event-stream')
    assert.equal(await feed.text(), 'data: 1\n\ndata: 2\n\n')
    const dump = await g.call('/v1/maps/dump', key)
    assert.equal(dump.headers.get('x-tollgate-charge'), '0.5')
    await dump.text()
  })
  assert.equal(spent, 2_500_000n)
  const nothing = await spentBy(id, async () => {
    answers.set('/api/v2/dump', (res) =>
      res.writeHead(200, { 'content-type': 'application/json' }).end(`"${'x'.repeat(1001)}"`),
    )
    answers.set('/api/v2/tile', (res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<html>'))
    for (const path of ['/v1/maps/dump', '/v1/maps/tile']) assert.equal((await g.call(path, key)).status, 502)
  })
  assert.equal(nothing, 0n)
})

test('an operation has a timeout of its own, shorter or longer than its vendor’s: what is too slow costs nothing and is not repeated', async () => {
  const { id, key } = await g.account()
  const spent = await spentBy(id, async () => {
    for (const begin of [
      () => {}, // Nothing at all.
      (res: ServerResponse) => res.writeHead(200, { 'content-type': 'application/json' }).write('{'), // No end.
    ]) {
      answers.set('/api/v2/slow', begin)
      seen.length = 0
      const answer = await g.call('/v1/maps/slow', key)
      const { error } = (await answer.json()) as { error: { code: number } }
      assert.deepEqual([answer.status, error.code], [504, 50002])
      assert.equal(seen.length, 1)
    }
  })
  assert.equal(spent, 0n)
  // Its vendor would have been given a millisecond.
  answers.set('/api/v2/slow', (res) => setTimeout(() => json({ ok: true })(res), 100))
  const late = await g.call('/v1/maps/patient', key)
  assert.equal(late.status, 200, await late.clone().text())
  assert.deepEqual(await late.json(), { ok: true })
})

test('a credential in the address is in no answer, whatever the type of the answer is', async () => {
  const { key } = await g.account()
  const say = (type: string, body: Buffer) =>
    answers.set('/api/v2/tile', (res) => res.writeHead(200, { 'content-type': type }).end(body))
  say('image/svg+xml', Buffer.from('<svg href="?key=maps-secret"/>'))
  assert.equal(await (await g.call('/v1/keyed/tile', key)).text(), '<svg href="?key=[key]"/>')
  for (const encoding of ['latin1', 'utf16le'] as const) {
    say('image/png', Buffer.concat([Buffer.from([0x89, 255]), Buffer.from('maps-secret', encoding)]))
    const answer = await g.call('/v1/keyed/tile', key)
    assert.equal(answer.status, 502)
    assert.equal(Buffer.from(await answer.arrayBuffer()).includes('maps-secret'), false)
  }
})

test('a token for the next page is of use only to the account that got it', async () => {
  const [one, other] = [await g.account(), await g.account()]
  answers.set('/api/v2/list', json('{"meta":{"next":"vendor-token"},"big":12345678901234567890}'))
  const first = await (await g.call('/v1/maps/list', one.key)).text()
  assert.match(first, /"big":12345678901234567890/)
  const { next } = (JSON.parse(first) as { meta: { next: string } }).meta
  assert.notEqual(next, 'vendor-token')
  seen.length = 0
  assert.equal((await g.call(`/v1/maps/list?cursor=${next}`, one.key)).status, 200)
  assert.equal(seen[0]?.url, '/api/v2/list?cursor=vendor-token')
  for (const [key, token] of [
    [other.key, next],
    [one.key, 'vendor-token'],
    [one.key, `${next}x`],
  ] as const)
    assert.equal((await g.call(`/v1/maps/list?cursor=${token}`, key)).status, 400)
  assert.equal(seen.length, 1)
})

test(
  'cache, key permissions, idempotency keys, quotes, limits and the reference are those of every endpoint',
  needs('docs'),
  async () => {
    const { id, key } = await g.account()
    answers.set('/api/v2/place/p1', json({ id: 'p1' }))
    seen.length = 0
    assert.equal((await g.call('/v1/maps/places/p1', key)).headers.get('x-cache'), 'miss')
    assert.equal((await g.call('/v1/maps/places/p1', key)).headers.get('x-cache'), 'hit')
    assert.equal(seen.length, 1)
    const limited = await g.key(id, { models: ['maps'] })
    const without = await g.key(id, { models: ['socialapi'] })
    assert.equal((await g.call('/v1/maps/places/p1', limited.key)).status, 200)
    assert.equal((await g.call('/v1/maps/places/p1', without.key)).status, 403)
    const made = await g.operator<{ key: string }>('POST', `/accounts/${id}/keys`, {
      name: 'k',
      endpoints: ['maps/place'],
      models: ['maps'],
    })
    assert.equal(made.status, 200, JSON.stringify(made.data))
    assert.equal((await g.call('/v1/maps/places/p1', made.data.key)).status, 200)
    assert.equal((await g.call('/v1/maps/tile', made.data.key)).status, 403)
    answers.set('/api/v2/routes', json({ cost: 1 }))
    const spent = await spentBy(id, async () => {
      for (const _ of [1, 2]) {
        const body = { from: 'a', to: 'b', steps: 1 }
        const answer = await g.call('/v1/maps/routes', key, body, { headers: { 'idempotency-key': 'once' } })
        assert.deepEqual(await answer.json(), { cost: 1 })
      }
    })
    assert.equal(spent, 5_500_000n)
    const quote = await g.call('/v1/quote?endpoint=maps/route', key, { body: { from: 'a', to: 'b' } })
    assert.match(await quote.text(), /"35"/, 'min(cost, 5) * 10 and at most 20 steps, at 0.5')
    const poor = await g.account({ credits: 100_000n })
    seen.length = 0
    assert.equal((await g.call('/v1/maps/search?q=a', poor.key)).status, 402)
    assert.equal(seen.length, 0)
    const document = (await (await g.call('/openapi.json', undefined)).json()) as {
      paths: Record<string, unknown>
      components: { schemas: Record<string, unknown> }
    }
    assert.ok(document.paths['/v1/maps/places/{id}'])
    assert.ok(!JSON.stringify(document.components.schemas).includes('#/$defs/'), 'references lead to components')
    assert.match(
      await (await g.call('/docs/api/maps-search.md', undefined)).text(),
      /Search places[\s\S]*0\.1 credits per call, 0\.01 per row/,
    )
  },
)

test('an agent finds and calls it as a tool, and pays the same', needs('agents'), async () => {
  const { id, key } = await g.account()
  answers.set('/api/v2/routes', json({ cost: 1 }))
  const rpc = async (method: string, params: object) => {
    const response = await g.call(
      '/mcp',
      key,
      { jsonrpc: '2.0', id: 1, method, params },
      { headers: { accept: 'application/json, text/event-stream' } },
    )
    const text = await response.text()
    return JSON.parse(text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? '{}')).result
  }
  const { tools } = await rpc('tools/list', {})
  const named = (wanted: string) => tools.filter(({ name }: { name: string }) => name === wanted)
  assert.match(named('get_balance')[0].description, /credits that are left/, 'a name of ours stays ours')
  assert.equal(named('get_balance').length, 1)
  assert.equal(named('maps_get_balance')[0].title, 'A list')
  const tool = tools.find(({ name }: { name: string }) => name === 'maps_route')
  assert.match(tool.description, /0\.5 credits a unit/)
  assert.ok(tool.inputSchema.properties.body)
  assert.ok(
    !tools.some(({ name }: { name: string }) => name === 'maps_tile'),
    'a picture is nothing for a reader of JSON',
  )
  const spent = await spentBy(id, async () => {
    const result = await rpc('tools/call', {
      name: 'maps_route',
      arguments: { body: { from: 'a', to: 'b', steps: 1 } },
    })
    assert.deepEqual(result.structuredContent, { cost: 1 })
  })
  assert.equal(spent, 5_500_000n)
})

test('without a stored credential only test keys get the example; others an error that costs nothing', async () => {
  const { id, key } = await g.account()
  seen.length = 0
  const spent = await spentBy(id, async () => {
    for (let turn = 0; turn < 2; turn++) {
      const answer = await g.call('/v1/demo?q=x', key)
      assert.equal(answer.status, 503)
      assert.equal(answer.headers.get('x-tollgate-charge') ?? '0', '0')
      assert.doesNotMatch(await answer.text(), /UNSET_KEY|unset\.example/)
    }
  })
  assert.equal(spent, 0n)
  if (!isOff('probes')) {
    const tested = await g.operator<{ message: string }>('POST', '/vendors/unset/test')
    assert.equal(tested.status, 409)
    assert.match(tested.data.message, /UNSET_KEY is neither stored nor/)
  }
  const made = await g.operator<{ key: string }>('POST', `/accounts/${id}/keys`, { name: 'k', test: true })
  assert.match(made.data.key, /^tg_test_/)
  for (const path of ['/v1/demo?q=x', '/v1/maps/search?q=x'])
    assert.deepEqual(await (await g.call(path, made.data.key)).json(), { results: [{ name: 'Example' }] })
  assert.equal(seen.length, 0)
})

test('a catalog whose product has no price, no bound or a name of ours is refused with the place', async () => {
  const { data } = await g.operator<{ document: any }>('GET', '/catalog')
  const check = async (change: (document: any) => void) => {
    const document = structuredClone(data.document)
    change(document)
    const answer = await g.operator<{ problems: string[] }>('PUT', '/catalog?dryRun=true', { document })
    return answer.data.problems?.join('; ') ?? JSON.stringify(answer.data)
  }
  const op = (document: any) => document.products.maps.operations
  assert.match(
    await check((one) => delete one.endpoints['maps/tile']),
    /products\.maps\.operations\.tile: has no price/,
  )
  assert.match(
    await check((one) => {
      op(one).route.counts.metered.expression = 'answer.cost * 2'
    }),
    /counts\.metered\.expression: has no upper bound: "answer\.cost" \(character 1\)/,
  )
  assert.match(
    await check((one) => {
      op(one).route.counts.metered.expression = '[1,2].map(x, x)'
    }),
    /expression: (?:cannot be read|may not have)/,
  )
  assert.match(
    await check((one) => {
      op(one).search.counts.row.expression = 'min(size(answer.results)'
    }),
    /cannot be read/,
  )
  assert.match(
    await check((one) => {
      one.products.chat = one.products.demo
    }),
    /"chat" is a name of the gateway itself/,
  )
  assert.match(
    await check((one) => (op(one).search.params.Cookie = { kind: 'text', in: 'header', example: 'a' })),
    /params\.Cookie: is a header that callers cannot set/,
  )
  assert.match(
    await check((one) => {
      op(one).place.vendorPath = 'v2/../{id}'
    }),
    /vendorPath/,
  )
  assert.match(await check((one) => delete op(one).dump.bytesMax), /bytesMax: is missing/)
  assert.match(
    await check(
      (one) => (op(one).search.body = { type: 'object', properties: { a: { $ref: 'https://x.example/a.json' } } }),
    ),
    /\$ref that leads elsewhere/,
  )
})

test('an order is charged when its caller leaves before the answer; what only reads is not', async () => {
  for (const [path, cost] of [
    ['orders', 3_000_000n],
    ['find', 0n],
  ] as const) {
    const { id, key } = await g.account()
    const { promise, resolve } = Promise.withResolvers<void>()
    answers.set('/api/v2/orders', (res) => void promise.then(() => json({ ordered: true })(res)))
    const before = seen.length
    const spent = await spentBy(id, async () => {
      const leaving = new AbortController()
      const headers = { authorization: `Bearer ${key}` }
      const call = fetch(`${g.url}/v1/maps/${path}`, { method: 'POST', headers, signal: leaving.signal })
      await until(() => seen.length > before)
      leaving.abort()
      await assert.rejects(call)
      if (cost === 0n) await until(() => g.gateway.monitor.running === 0)
      resolve()
      await until(() => g.gateway.monitor.running === 0)
    })
    assert.equal(spent, cost, path)
  }
})
