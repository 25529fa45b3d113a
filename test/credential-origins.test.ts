// Credentials and variables of the environment go to no address that somebody typed: not in a test, not by a
// connection, not after a vendor moved.
import { readPresets } from '../src/catalog/preset.ts'
import type { Page } from '../src/kernel/view.ts'
import type { ByokKeyView } from '../src/operator/views.ts'
import { lookUpVendor } from '../src/upstream/exchange.ts'
import { assert, BY, listen, started, test, testGateway } from './gateway.ts'
import { METADATA_HOSTS } from './metadata-hosts.ts'

const presetNames = [...new Set((await readPresets()).flatMap(({ vendor }) => vendor.credential ?? []))]
const UNUSED = 'UNUSED_API_KEY'
const SYSTEM = ['HOME', 'PATH', 'POSTGRES_PASSWORD', 'AWS_SECRET_ACCESS_KEY', 'SOMETHING_ELSE']
const canaryOf = (name: string) => `canary-${name.toLowerCase()}-0123456789`
const environment = Object.fromEntries([...presetNames, ...SYSTEM, UNUSED].map((name) => [name, canaryOf(name)]))
const STORED = 'STORED_KEY'

/** A stranger's server that writes down what it is sent. */
async function stranger() {
  const heard: string[] = []
  const { url, close } = await listen((req, res) => {
    heard.push(`${req.url} ${JSON.stringify(req.headers)}`)
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi.' }, finish_reason: 'stop' }]
    const answer = { id: 'c', object: 'chat.completion', created: 1, model: 'm', data: [{ id: 'm' }], choices, usage }
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  return { url: `${url}/v1`, heard, close }
}

const [foreign, home] = [started(stranger), started(stranger)]
const g = testGateway({ env: environment }, async () => {
  const document = structuredClone(g.gateway.catalog.current.input)
  const vendor = { baseUrl: home.url, credential: STORED, byokFee: { call: '0.01' } }
  document.vendors.mine = vendor
  const alpha = document.models['alpha-5.4']!
  document.models.mine = {
    ...alpha,
    clientFormats: ['openai-chat'],
    routes: [{ vendor: 'mine', protocol: 'openai-chat' }],
  }
  await g.gateway.catalog.apply(document, BY, '')
  const path = `/vendors/mine/credentials/${STORED}`
  assert.equal((await g.operator('PUT', path, { value: canaryOf(STORED) })).status, 200)
})

test('no stored credential and no variable goes to a foreign address, by a test or a connection, with a preset or without', async () => {
  const catalogNames = Object.values(g.gateway.catalog.current.document.vendors).flatMap(
    ({ credential }) => credential ?? [],
  )
  const names = [...new Set([...presetNames, ...SYSTEM, ...catalogNames, STORED])]
  const presets = (await readPresets()).filter(({ vendor }) => vendor.credential !== undefined)
  const wrong: string[] = []
  for (const name of names) {
    const own = { vendor: 'foreign', formats: ['openai-chat'], baseUrl: foreign.url }
    const bodies: object[] = [{ ...own, credential: { name } }]
    for (const preset of presets)
      if (preset.vendor.credential === name)
        bodies.push({ preset: preset.name, baseUrl: foreign.url, vendor: 'foreign' })
    for (const body of bodies) {
      const tested = await g.operator<{ message?: string }>('POST', '/connect/test', { ...body, model: 'm' })
      if (tested.status !== 400) wrong.push(`test ${JSON.stringify(body)}: ${tested.status}`)
      // Of a name without a value nothing can be sent.
      if (name !== STORED && (!(name in environment) || SYSTEM.includes(name))) continue
      const made = await g.operator('POST', '/connect', { ...body, models: [] })
      if (made.status !== 400) wrong.push(`connect ${JSON.stringify(body)}: ${made.status}`)
    }
    if (name in environment && !SYSTEM.includes(name)) {
      const given = { ...own, models: [], credential: { name, value: 'another value' } }
      if ((await g.operator('POST', '/connect', given)).status !== 400) wrong.push(`${name}: the environment would win`)
    }
  }
  assert.deepEqual(wrong, [])
  assert.deepEqual(foreign.heard, [])
})

test('a credential goes to its own origin without being said again, and elsewhere when it is', async () => {
  const place = { vendor: 'mine', formats: ['openai-chat'], baseUrl: home.url, model: 'm' }
  home.heard.length = 0
  assert.equal((await g.operator('POST', '/connect/test', { ...place, credential: { name: STORED } })).status, 200)
  assert.ok(home.heard.some((line) => line.includes(canaryOf(STORED))))
  const given = { ...place, baseUrl: foreign.url, credential: { name: 'NEW_KEY', value: 'said-by-the-operator' } }
  assert.equal((await g.operator('POST', '/connect/test', given)).status, 200)
  assert.ok(foreign.heard.some((line) => line.includes('said-by-the-operator')))
})

test('what is laid over a vendor that is there takes none of its credentials elsewhere: a product, a connection, a token address', async () => {
  const before = structuredClone(g.gateway.catalog.current.input.vendors.mine)
  const oauth = (url: string) => ({ oauth: { tokenUrl: `${url}/token` } })
  const find = { title: 'Find', route: 'GET /find', vendorPath: 'find', params: {} }
  const product = (id: string, vendor: object, query = '') =>
    g.operator<{ message?: string }>('POST', `/products${query}`, {
      id,
      entries: { find },
      vendor,
      price: { rates: { call: '1' } },
    })
  assert.equal((await product('mine', { baseUrl: foreign.url })).status, 409, 'it has the name by chance')
  const refused: [string, Promise<{ status: number }>][] = [
    ['a product', product('finds', { name: 'mine', baseUrl: foreign.url })],
    ['a product that is only tried', product('finds', { name: 'mine', baseUrl: foreign.url }, '?dryRun=true')],
    ['its login', product('finds', { name: 'mine', baseUrl: home.url, auth: oauth(foreign.url) })],
    ['a token address', g.operator('PATCH', '/vendors/mine', { entry: { auth: oauth(foreign.url) } })],
    ['a mistyped login', g.operator('PATCH', '/vendors/mine', { entry: { auth: { oauth: 'x' } } })],
    [
      'a connection',
      g.operator('POST', '/connect', { vendor: 'mine', formats: ['openai-chat'], baseUrl: foreign.url, models: [] }),
    ],
  ]
  for (const [what, asked] of refused) assert.equal((await asked).status, 400, what)
  assert.deepEqual(g.gateway.catalog.current.input.vendors.mine, before)
  assert.equal((await product('finds', { name: 'mine', baseUrl: home.url })).status, 200, 'where it is at home')
  // Its own vendor may move as long as nothing secret goes along.
  assert.equal((await product('free', { baseUrl: home.url })).status, 200)
  assert.equal((await product('free', { baseUrl: foreign.url })).status, 200)
})

test('a whole catalog, new or old, moves a credential only with its value, and only for whoever manages credentials', async () => {
  const { data } = await g.operator<{ token: string }>('POST', '/tokens', {
    name: 'editor',
    scopes: ['catalog:write', 'vendors:write'],
  })
  const asEditor = async (method: string, path: string, body: object) => {
    const answer = await g.call(`/admin/v1${path}`, data.token, body, { method })
    return [answer.status, await answer.text()] as const
  }
  const here = structuredClone(g.gateway.catalog.current.input)
  const { version } = g.gateway.catalog.current
  const at = (change: object) => ({ ...here, vendors: { ...here.vendors, ...change } })
  const mine = here.vendors.mine!
  const [openai] = Object.keys(here.vendors).filter((name) => here.vendors[name]?.credential === 'OPENAI_API_KEY')
  const moved = [
    at({ mine: { ...mine, baseUrl: foreign.url } }),
    at({ mine: { ...mine, auth: { oauth: { tokenUrl: `${foreign.url}/token` } } } }),
    at({ thief: { baseUrl: foreign.url, credential: STORED } }),
    at({ thief: { baseUrl: foreign.url, credentials: [{ name: 'OPENAI_API_KEY' }, { name: STORED }] } }),
    ...(openai ? [at({ [openai]: { ...here.vendors[openai], baseUrl: foreign.url } })] : []),
  ]
  for (const document of moved)
    for (const query of ['', '?dryRun=true']) {
      const [status, said] = await asEditor('PUT', `/catalog${query}`, { document })
      assert.deepEqual([status, /scope vendor-credentials:write/.test(said)], [403, true], said)
    }
  assert.equal(g.gateway.catalog.current.version, version)
  const timeouts = { connectMs: 2_345 }
  assert.equal((await asEditor('PUT', '/catalog', { document: at({ mine: { ...mine, timeouts } }) }))[0], 200)
  // Whoever manages credentials may, with the value: the right to store one is no right to read it.
  for (const document of moved)
    for (const query of ['', '?dryRun=true']) {
      const { status, data: said } = await g.operator('PUT', `/catalog${query}`, { document })
      assert.deepEqual([status, /give its value again/.test(JSON.stringify(said))], [400, true], JSON.stringify(said))
    }
  const given = { value: 'v' }
  // A variable that nothing has used yet is not moved by being named.
  const fresh = at({ fresh: { baseUrl: foreign.url, credential: UNUSED } })
  assert.equal((await asEditor('PUT', '/catalog?dryRun=true', { document: fresh }))[0], 403)
  assert.equal((await g.operator('PUT', '/catalog?dryRun=true', { document: fresh })).status, 200)
  // One that an earlier catalog used is in use, also after it is named nowhere.
  const used = at({ fresh: { baseUrl: home.url, credential: UNUSED } })
  for (const document of [used, here]) assert.equal((await g.operator('PUT', '/catalog', { document })).status, 200)
  assert.equal((await g.operator('PUT', '/catalog?dryRun=true', { document: fresh })).status, 400)
  const values = { [STORED]: canaryOf(STORED) }
  assert.equal((await g.operator('PUT', '/catalog', { document: moved[0], credentials: values })).status, 200)
  // The way back is asked about like the way there.
  const away = g.gateway.catalog.current.version
  assert.equal((await g.operator('PUT', '/catalog', { document: here, credentials: values })).status, 200)
  for (const query of ['?dryRun=true', ''])
    for (const credentials of [undefined, values]) {
      const body = { version: away, credentials }
      assert.equal((await asEditor('POST', `/catalog/rollback${query}`, body))[0], 403)
      const { status, data: said } = await g.operator('POST', `/catalog/rollback${query}`, body)
      assert.equal(status, credentials ? 200 : 400, JSON.stringify(said))
      if (!credentials) assert.match(JSON.stringify(said), /give its value again/)
    }
  assert.equal((await g.operator('PUT', '/catalog', { document: here, credentials: values })).status, 200)
  assert.equal((await asEditor('POST', '/catalog/rollback', { version }))[0], 200)
  const connection = { vendor: 'mine', formats: ['openai-chat'], baseUrl: home.url, models: [], credential: given }
  assert.equal((await asEditor('POST', '/connect', connection))[0], 403)
  assert.equal(
    (await asEditor('PATCH', '/vendors/mine', { entry: { baseUrl: foreign.url }, credential: given }))[0],
    403,
  )
  assert.deepEqual(g.gateway.catalog.current.input.vendors.mine, mine)
})

test('a tool server that moves takes none of several credentials along, and a value for one says nothing of the others', async () => {
  const at = (url: string) => `${url}/mcp`
  assert.equal((await g.operator('PUT', '/tool-servers/several', { url: at(home.url) })).status, 200)
  for (const name of ['SEVERAL_A', 'SEVERAL_B'])
    assert.equal(
      (await g.operator('PUT', `/vendors/several/credentials/${name}`, { value: canaryOf(name) })).status,
      200,
    )
  foreign.heard.length = 0
  const oauth = { oauth: { tokenUrl: `${foreign.url}/token` } }
  for (const body of [
    { url: at(foreign.url) },
    { url: at(foreign.url), credential: { name: 'SEVERAL_A', value: 'said again' } },
    { auth: oauth },
  ])
    assert.equal((await g.operator('PUT', '/tool-servers/several', body)).status, 400, JSON.stringify(body))
  assert.deepEqual(foreign.heard, [])
  const { data } = await g.operator<{ token: string }>('POST', '/tokens', { name: 't', scopes: ['vendors:write'] })
  const body = { credential: { value: 'v' } }
  const asked = await g.call('/admin/v1/tool-servers/several', data.token, body, { method: 'PUT' })
  assert.equal(asked.status, 403)
})

test('a credential is named at another vendor only with its value, and a variable that has an owner not even then', async () => {
  assert.equal((await g.operator('PUT', '/tool-servers/evil', { url: `${foreign.url}/mcp` })).status, 200)
  const [preset = ''] = presetNames
  for (const [name, body] of [
    [STORED, {}],
    [preset, {}],
    [preset, { value: 'anything', shared: true }],
  ] as const) {
    const { status, data } = await g.operator('PUT', `/vendors/evil/credentials/${name}`, body)
    assert.equal(status, 400, `${name} ${JSON.stringify(body)}`)
    assert.match(JSON.stringify(data), /give its value again/)
  }
  const named = JSON.stringify(g.gateway.catalog.current.input.vendors.evil)
  assert.ok(!named.includes(STORED) && !named.includes(preset), named)
  const own = await g.operator('PUT', '/vendors/evil/credentials/EVIL_KEY', { value: 'evil-own-key' })
  assert.equal(own.status, 200)
})

test('no address at which clouds tell a machine its credentials is asked, however it is spelt', async () => {
  for (const host of METADATA_HOSTS) {
    const body = {
      vendor: 'x',
      formats: ['openai-chat'],
      baseUrl: `http://${host}/latest`,
      model: 'm',
      credential: { name: 'NEW_KEY', value: 'v' },
    }
    const { status, data } = await g.operator<{ message: string }>('POST', '/connect/test', body)
    assert.equal(status, 400, host)
    assert.match(data.message, /metadata/, host)
  }
})

test('an account’s own key stays with the address that it was stored for: when the vendor moves it is asked for again', async () => {
  const { id, key } = await g.account()
  const value = 'own-key-of-the-account-01'
  const stored = await g.operator('PUT', `/accounts/${id}/byok-keys/mine`, { value })
  assert.equal(stored.status, 200, JSON.stringify(stored.data))
  const chat = () =>
    g.call('/v1/chat/completions', key, { model: 'mine', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 })
  assert.equal((await chat()).status, 200)
  foreign.heard.length = 0
  const document = structuredClone(g.gateway.catalog.current.input)
  document.vendors.mine = { ...document.vendors.mine, baseUrl: foreign.url }
  await g.gateway.catalog.apply(document, BY, '')
  const refused = await chat()
  assert.ok(refused.status >= 400 && refused.status < 500, String(refused.status))
  assert.match(await refused.text(), /stored for another address/)
  assert.ok(!foreign.heard.some((line) => line.includes(value)))
  const listed = async () =>
    (await g.operator<Page<ByokKeyView>>('GET', `/accounts/${id}/byok-keys`)).data.items.find(
      ({ vendor }) => vendor === 'mine',
    )
  assert.equal((await listed())?.addressChanged, true)
  assert.equal((await g.operator('PUT', `/accounts/${id}/byok-keys/mine`, { value })).status, 200)
  assert.equal((await listed())?.addressChanged, false)
  assert.equal((await chat()).status, 200)
  // A login would send it to the token endpoint.
  const login = { oauth: { tokenUrl: `${home.url}/token` } }
  document.vendors.mine = { ...document.vendors.mine, baseUrl: foreign.url, auth: login }
  await g.gateway.catalog.apply(document, BY, '')
  home.heard.length = 0
  assert.match(await (await chat()).text(), /stored for another address/)
  assert.equal((await listed())?.addressChanged, true)
  assert.deepEqual(home.heard, [])
})

test('a name that leads to a metadata address leads nowhere, whoever typed it: the connection is refused where names are looked up', async () => {
  const lookUp = (name: string) =>
    new Promise((resolve) => lookUpVendor(name, {}, (error, address) => resolve(error?.message ?? address)))
  // The system's resolver reads these as addresses, as it would read what a name server answers.
  assert.equal(await lookUp('2852039166'), 'a metadata address')
  assert.equal(await lookUp('0xa9fea9fe'), 'a metadata address')
  assert.equal(await lookUp('2130706433'), '127.0.0.1')
})
