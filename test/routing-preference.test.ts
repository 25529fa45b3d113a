// Where a call may go, as its body, its headers and its key say: which vendor is chosen, what is rejected, and that no
// vendor is told.
import OpenAI from 'openai'
import { after, assert, BY, test, testGateway } from './gateway.ts'
import { type ScriptedVendor, scriptedVendor } from './scripted-vendor.ts'

const NAMES = ['north', 'south', 'west/turbo'] as const
const vendors = Object.fromEntries(
  await Promise.all(NAMES.map(async (name) => [name, await scriptedVendor(name)] as const)),
) as Record<(typeof NAMES)[number], ScriptedVendor> // One for each name.
after(() => {
  for (const vendor of Object.values(vendors)) vendor.close()
})

const price = (input: string, output: string) => ({ unit: 'credits', tiers: [{ input, output }] })

function addModels(document: any): void {
  const facts = {
    north: { region: 'eu-north-1', dataPolicy: 'zero-retention', passesUnknown: true },
    south: { region: 'us-east-1', dataPolicy: 'no-collection' },
    'west/turbo': {},
  }
  for (const name of NAMES) document.vendors[name] = { baseUrl: vendors[name].url, ...facts[name] }
  const base = { ...document.models['alpha-5.4'], family: 'plain', traits: {}, clientFormats: ['openai-chat'] }
  const model = {
    ...base,
    pricing: price('100', '300'),
    routes: [
      { vendor: 'north', protocol: 'openai-chat', model: 'm', order: 0, cost: price('30', '30') },
      { vendor: 'south', protocol: 'openai-chat', model: 'm', order: 1, cost: price('10', '10'), quantization: 'fp8' },
      { vendor: 'west/turbo', protocol: 'openai-chat', model: 'm', order: 2, cost: price('20', '20') },
    ],
  }
  document.models.plain = model
  document.models.dear = { ...model, pricing: price('1000', '3000') }
  document.models.outer = { ...model, traits: { vendorRouting: true }, routes: [{ ...model.routes[1], order: 0 }] }
  document.models.raced = { ...model, routing: { hedgeMs: 50 } }
  const rules = [{ name: 'ruled', when: { headers: { 'x-ruled': 'yes' } }, only: ['north', 'south'] }]
  document.routing = { creditsPerDollar: '100', rules }
}

let key: string
let account: string
const g = testGateway({ catalog: addModels }, async () => {
  ;({ key, id: account } = await g.account())
})

const HELLO = [{ role: 'user' as const, content: 'Say hello.' }]

/** Who answered, or the status and the field that was wrong. */
async function ask(body: object, headers: Record<string, string> = {}, with_ = key): Promise<string> {
  const answer = await g.call(
    '/v1/chat/completions',
    with_,
    { model: 'plain', messages: HELLO, max_tokens: 50, ...body },
    { headers },
  )
  const said = (await answer.json()) as {
    choices?: { message: { content: string } }[]
    error?: { message: string; param?: string }
  }
  if (answer.status === 200) return said.choices?.[0]?.message.content.replace('from ', '') ?? ''
  return `${answer.status} ${said.error?.param ?? ''}`.trim()
}

test('each field of the body chooses, orders or rejects, and no vendor is told', async () => {
  const story: [provider: object, outcome: string][] = [
    [{}, 'north'],
    [{ order: ['south'] }, 'south'],
    [{ order: ['nobody', 'west'] }, 'west/turbo'],
    [{ only: ['west', 'south'] }, 'south'],
    [{ only: ['SOUTH'] }, 'south'],
    [{ only: ['nobody'] }, '400 provider.only'],
    [{ ignore: ['north'] }, 'south'],
    [{ ignore: ['north', 'south', 'west'] }, '400 provider.ignore'],
    [{ regions: ['us'] }, 'south'],
    [{ regions: ['asia'] }, '400 provider.regions'],
    [{ quantizations: ['fp8'] }, 'south'],
    [{ quantizations: ['unknown'] }, 'north'],
    [{ quantizations: ['int4'] }, '400 provider.quantizations'],
    [{ data_collection: 'deny', ignore: ['north'] }, 'south'],
    [{ data_collection: 'deny', only: ['west'] }, '400 provider.data_collection'],
    [{ data_collection: 'allow' }, 'north'],
    [{ zdr: true }, 'north'],
    [{ zdr: true, only: ['south'] }, '400 provider.zdr'],
    [{ zdr: false, only: ['south'] }, 'south'],
    [{ sort: 'price' }, 'south'],
    [{ sort: { by: 'price' } }, 'south'],
    [{ max_price: { prompt: 1, completion: '3' } }, 'north'],
    [{ max_price: { prompt: 0.99 } }, '400 provider.max_price'],
    [{ max_price: { completion: 2.999999 } }, '400 provider.max_price'],
    [{ max_price: { image: 0.01, request: 0 } }, 'north'],
    [{ order: null, sort: null, max_price: null, zdr: null }, 'north'],
    // What is wrong, by its field.
    [{ order: 'south' }, '400 provider.order'],
    [{ order: [] }, '400 provider.order'],
    [{ only: [1] }, '400 provider.only[0]'],
    [{ sort: 'beauty' }, '400 provider.sort'],
    [{ sort: { by: 'price', partition: 'none' } }, '400 provider.sort.partition'],
    [{ max_price: { prompt: 'cheap' } }, '400 provider.max_price.prompt'],
    [{ max_price: { audio: 1 } }, '400 provider.max_price.audio'],
    [{ data_collection: 'maybe' }, '400 provider.data_collection'],
    [{ enforce_distillable_text: true }, '400 provider.enforce_distillable_text'],
    [{ colour: 'blue' }, '400 provider.colour'],
  ]
  for (const [provider, outcome] of story) assert.equal(await ask({ provider }), outcome, JSON.stringify(provider))
  assert.equal(await ask({ provider: 'north' }), '400 provider')
  assert.equal(await ask({ provider: null }), 'north')
  for (const { sent } of Object.values(vendors)) {
    assert.ok(sent.length > 0)
    assert.ok(sent.every((body) => !('provider' in body)))
  }
  await g.settled()
})

test('parameters that only one vendor takes choose that vendor, and without fallbacks no other is tried', async () => {
  const body = { order: ['south'], require_parameters: true }
  assert.equal(await ask({ provider: body }), 'south')
  assert.equal(await ask({ provider: body, brand_new_parameter: 1 }), 'north')
  assert.deepEqual(vendors.north.sent.at(-1)?.brand_new_parameter, 1)
  const before = vendors.south.sent.length
  // An account each, because a vendor that fails is left alone after a while.
  const askNew = async (provider: object) => ask({ provider }, {}, (await g.account()).key)
  vendors.north.script = { status: 500 }
  assert.equal(await askNew({}), 'south')
  assert.equal(await askNew({ allow_fallbacks: false }), '502')
  assert.equal(await askNew({ order: ['north', 'west'], allow_fallbacks: false }), 'west/turbo')
  assert.equal(vendors.south.sent.length, before + 1)
  vendors.north.script = {}
  assert.equal(await ask({}), 'north')
})

test('headers say it for SDKs, in credits and by names, and a repeated call with another header is another call', async () => {
  assert.equal(await ask({}, { 'x-tollgate-vendors': 'west, south' }), 'south')
  assert.equal(await ask({}, { 'x-tollgate-regions': 'us-east-1' }), 'south')
  assert.equal(await ask({}, { 'x-tollgate-regions': 'us-east' }), 'south')
  assert.equal(await ask({}, { 'x-tollgate-max-price': 'input=100, output=300' }), 'north')
  assert.equal(await ask({}, { 'x-tollgate-max-price': 'input=99.999999' }), '400 x-tollgate-max-price')
  assert.equal(await ask({}, { 'x-tollgate-vendors': 'mars' }), '400 x-tollgate-vendors')
  for (const wrong of ['', 'north,,south'])
    assert.equal(await ask({}, { 'x-tollgate-vendors': wrong }), '400 x-tollgate-vendors')
  for (const wrong of ['', 'input', 'input=-1', 'colour=3', 'input=1=2'])
    assert.equal(await ask({}, { 'x-tollgate-max-price': wrong }), '400 x-tollgate-max-price', wrong)
  // Both narrow.
  assert.equal(await ask({ provider: { only: ['north'] } }, { 'x-tollgate-vendors': 'south' }), '400 provider.only')
  const again = (vendor: string) => ask({}, { 'idempotency-key': 'routed-1', 'x-tollgate-vendors': vendor })
  assert.equal(await again('south'), 'south')
  await g.settled()
  assert.equal(await again('south'), 'south')
  assert.equal(await again('north'), '409')
})

test('of several models those that rules leave no vendor are passed over, and OpenRouter’s body works as it is', async () => {
  const openai = new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
  const body = {
    model: 'dear',
    models: ['plain'],
    messages: HELLO,
    max_tokens: 50,
    provider: {
      order: ['south', 'north'],
      allow_fallbacks: true,
      require_parameters: false,
      data_collection: 'deny',
      max_price: { prompt: 1, completion: 3 },
      sort: 'throughput',
    },
  }
  const answer = await openai.chat.completions.create(body)
  assert.deepEqual([answer.model, answer.choices[0]?.message.content], ['plain', 'from south'])
  assert.equal(
    await ask({ model: 'dear', models: ['plain'], provider: { max_price: { prompt: 0.5 } } }),
    '400 provider.max_price',
  )
})

test('what rules leave is in the attempt log in words, without the names of vendors', async () => {
  assert.equal(await ask({ provider: { only: ['west', 'south'] } }), 'south')
  assert.deepEqual(await lastDecided(), ['"provider.only" rules out route 1 and leaves route 2, 3.'])
})

/** As if the vendor had answered and written like this for a while. */
function measured(vendor: string, latencyMs: number, tokensPerSecond: number): void {
  for (let turn = 0; turn < 50; turn++) {
    g.gateway.vendors.answered(vendor, account, { status: 200, latencyMs })
    g.gateway.vendors.wrote(vendor, tokensPerSecond, 1_000)
  }
}

test('vendors are ordered by their latency, throughput and bounds as they are measured, and the attempt log says why', async () => {
  const story: [provider: object, outcome: string, said: RegExp][] = [
    [
      { sort: 'latency' },
      'west/turbo',
      /^In this order: route 3 \(by latency: \d+ ms\), route 2 \(.* ms\), route 1 \(/,
    ],
    [
      { sort: 'throughput' },
      'south',
      /^In this order: route 2 \(by throughput: 400 tokens\/s\), route 1 \(.*200 tokens\/s/,
    ],
    [{ sort: 'price' }, 'south', /^In this order: route 2 \(by price\), route 3 \(by price\), route 1 \(by price\)\.$/],
    [
      { preferred_max_latency: 6 },
      'south',
      /route 2, route 3, route 1 \(slower than "provider.preferred_max_latency"\)/,
    ],
    [{ preferred_max_latency: { p50: 3 } }, 'west/turbo', /route 3, route 1 \(slower .*, route 2 \(slower/],
    [
      { preferred_min_throughput: 300 },
      'south',
      /route 2, route 1 \(slower than "provider.preferred_min_throughput"\)/,
    ],
    [{ preferred_min_throughput: { p50: 150 } }, 'north', /route 1, route 2, route 3 \(slower/],
    [
      { order: ['west'], sort: 'latency' },
      'west/turbo',
      /^In this order: route 3 \(named by "provider.order"; by latency/,
    ],
    [{ order: ['south'], preferred_max_latency: 3 }, 'south', /route 2 \(named by "provider.order"; slower than/],
    [
      { sort: 'latency', ignore: ['west'] },
      'south',
      /"provider.ignore" rules out route 3 and leaves route 1, 2\. In this/,
    ],
    [{ sort: 'latency', allow_fallbacks: false }, 'west/turbo', /"provider.allow_fallbacks" allows only the first/],
  ]
  for (const [provider, outcome, said] of story) {
    // Before each, because the answers of the test are measured too.
    measured('north', 9_000, 200)
    measured('south', 5_000, 400)
    measured('west/turbo', 1_000, 100)
    assert.equal(await ask({ provider }), outcome, JSON.stringify(provider))
    assert.match((await lastDecided()).join(' '), said, JSON.stringify(provider))
  }
})

const lastDecided = async (): Promise<string[]> => (await g.lastCall(account)).log?.decided ?? []

test('callers choose neither vendors nor models where the catalog or their key says so, and are told which', async () => {
  const fixed = await g.operator<{ key: string }>('POST', `/accounts/${account}/keys`, {
    name: 'fixed',
    routing: { callerChoice: false },
  })
  const asked = async (body: object, headers: Record<string, string>, with_: string) => {
    const path = '/v1/chat/completions'
    const answer = await g.call(path, with_, { model: 'plain', messages: HELLO, ...body }, { headers })
    const { error } = (await answer.json()) as { error?: { message: string; param: string } }
    return error ? `${answer.status} ${error.param} ${error.message}` : String(answer.status)
  }
  const choices: [field: string, body: object, headers?: Record<string, string>][] = [
    ['provider', { provider: { order: ['south'] } }],
    ['models', { models: ['dear'] }],
    ...['fallback', 'vendors', 'regions', 'max-price'].map((name): [string, object, Record<string, string>] => [
      ...([`x-tollgate-${name}`, {}] as const),
      { [`x-tollgate-${name}`]: name === 'max-price' ? 'input=1' : 'south' },
    ]),
  ]
  for (const [field, body, headers = {}] of choices) {
    const said = await asked(body, headers, fixed.data.key)
    assert.ok(said.startsWith(`403 ${field} This key may not choose`) && said.includes('"routing.callerChoice"'), said)
  }
  assert.equal(await asked({ provider: null, models: null }, {}, fixed.data.key), '200')
  const before = g.gateway.catalog.current.document.routing
  const set = (callerChoice: boolean) =>
    g.gateway.catalog.amend(
      (document) => ({ ...document, routing: { ...Object(document.routing), callerChoice } }),
      BY,
      'test',
    )
  await set(false)
  for (const [field, body, headers = {}] of choices) {
    const said = await asked(body, headers, key)
    assert.ok(said.startsWith(`403 ${field} This gateway does not let callers choose`), said)
    assert.match(said, /"routing\.callerChoice" in its catalog/)
  }
  assert.equal(await asked({}, {}, key), '200')
  // A key cannot give itself what the catalog does not allow.
  const wrong = await g.operator('POST', `/accounts/${account}/keys`, { name: 'x', routing: { callerChoice: true } })
  assert.equal(wrong.status, 400)
  await set(true)
  assert.equal(await asked({ provider: { order: ['south'] } }, {}, key), '200')
  assert.equal(before?.callerChoice, undefined)
})

test('by every rule the first is chosen; when it fails or is silent the next is asked once, one answer is paid, and none is asked that is ruled out', async () => {
  const keyed = async (routing: object) => {
    const made = await g.operator<{ key: string }>('POST', `/accounts/${account}/keys`, { name: 'ruled', routing })
    return made.data.key
  }
  // Each leaves north and south, in this order.
  const rules: Record<string, { body?: object; headers?: Record<string, string>; key?: string }> = {
    only: { body: { provider: { only: ['north', 'south'] } } },
    order: { body: { provider: { order: ['north', 'south'], allow_fallbacks: false } } },
    ignore: { body: { provider: { ignore: ['west'] } } },
    regions: { body: { provider: { regions: ['eu', 'us'] } } },
    data_collection: { body: { provider: { data_collection: 'deny' } } },
    'x-tollgate-vendors': { headers: { 'x-tollgate-vendors': 'north,south' } },
    'x-tollgate-regions': { headers: { 'x-tollgate-regions': 'eu, us' } },
    'vendors of a key': { key: await keyed({ vendors: ['north', 'south'] }) },
    'regions of a key': { key: await keyed({ regions: ['eu', 'us'] }) },
    'a rule of the catalog': { headers: { 'x-ruled': 'yes' } },
  }
  const both = [vendors.north, vendors.south]
  for (const [name, { body = {}, headers = {}, key: own = key }] of Object.entries(rules))
    for (const fate of ['answers', 'fails', 'is silent']) {
      for (const vendor of Object.values(vendors)) vendor.sent.length = 0
      vendors.north.script =
        fate === 'fails' ? { status: 500 } : fate === 'is silent' ? { tokenAfter: new Promise(() => {}) } : {}
      const model = fate === 'answers' ? 'plain' : 'raced'
      const asked = { model, messages: HELLO, max_tokens: 50, stream: true, ...body }
      const before = await spent()
      const answer = await (await g.call('/v1/chat/completions', own, asked, { headers })).text()
      const about = `${name}: north ${fate}`
      assert.match(answer, fate === 'answers' ? /from north/ : /from south/, about)
      assert.deepEqual(
        [...both, vendors['west/turbo']].map(({ sent }) => sent.length),
        [1, fate === 'answers' ? 0 : 1, 0],
        about,
      )
      // 10 tokens at 100 for a million, and 5 at 300.
      assert.deepEqual(await spent(), { calls: before.calls + 1n, charged: before.charged + 2_500n }, about)
    }
  vendors.north.script = {}
})

async function spent(): Promise<{ calls: bigint; charged: bigint }> {
  await g.settled()
  const text = 'select count(*) as calls, coalesce(sum(charged), 0)::bigint as charged from usage where account_id = $1'
  const [row] = await g.sql<{ calls: bigint; charged: bigint }>(text, [account])
  assert.ok(row)
  return row
}

test('a key is kept to vendors, regions and prices, whatever its calls say', async () => {
  const made = await g.operator<{ key: string; id: string }>('POST', `/accounts/${account}/keys`, {
    name: 'narrow',
    routing: { vendors: ['south', 'west'], maxPrice: { input: '100' } },
  })
  assert.equal(made.status, 200, JSON.stringify(made.data))
  const narrow = made.data.key
  assert.equal(await ask({}, {}, narrow), 'south')
  assert.equal(await ask({ provider: { order: ['north'] } }, {}, narrow), 'south')
  assert.equal(await ask({ provider: { only: ['north'] } }, {}, narrow), '400 provider.only')
  assert.equal(await ask({ model: 'dear' }, {}, narrow), '403')
  const turn = (routing: object | null) => g.operator('PATCH', `/keys/${made.data.id}`, { routing })
  assert.equal((await turn({ regions: ['eu'] })).status, 200)
  assert.equal(await ask({}, {}, narrow), 'north')
  assert.equal((await turn({ regions: ['asia'] })).status, 200)
  assert.equal(await ask({}, {}, narrow), '403')
  assert.equal(await ask({ models: ['dear'] }, {}, narrow), '403')
  for (const wrong of [
    { vendors: ['mars'] },
    { vendors: [] },
    { maxPrice: { colour: 1 } },
    { maxPrice: { input: 'x' } },
    { colour: 1 },
  ])
    assert.equal((await turn(wrong)).status, 400, JSON.stringify(wrong))
  // Data endpoints and videos go to vendors as well.
  assert.equal((await turn({ vendors: ['south'] })).status, 200)
  const data = await g.call('/v1/social/users?username=openai', narrow)
  assert.equal(data.status, 403, await data.text())
  const video = await g.call('/v1/video/seedance', narrow, { model: 'videogen-2.0', prompt: 'A boat' })
  assert.equal(video.status, 403, await video.text())
  const rotated = await g.operator<{ key: string; routing: object }>('POST', `/keys/${made.data.id}/rotate`, {})
  assert.deepEqual(rotated.data.routing, { vendors: ['south'] })
  assert.equal(await ask({}, {}, rotated.data.key), 'south')
  await g.settled()
})

test('a response in the background is told its rules in the body', async () => {
  const answer = await g.call(
    '/v1/responses',
    key,
    { model: 'alpha-5.4', input: 'Hello', background: true },
    { headers: { 'x-tollgate-regions': 'eu' } },
  )
  assert.equal(answer.status, 400, await answer.text())
})

test('a vendor that chooses among others gets the provider of the caller as it is, where the model says so', async () => {
  const provider = { order: ['somebody-else'], quantizations: ['fp8'], allow_fallbacks: false }
  assert.equal(await ask({ model: 'outer', provider }), 'south')
  assert.deepEqual(vendors.south.sent.at(-1)?.provider, provider)
  // Elsewhere it is for this gateway.
  assert.equal(await ask({ provider: { order: ['south'] } }), 'south')
  assert.equal(vendors.south.sent.at(-1)?.provider, undefined)
})
