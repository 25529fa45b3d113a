// Every preset must be right as it is: valid in a catalog, and good for a request that its vendor could answer.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluck, words } from '../../test/lists.ts'
import { EXTENSIONS, readDefaultCatalog } from '../compose.ts'
import { type Connection, suggestedUid, withConnection } from '../extensions/connection/connection.ts'
import { filledAddress, filledIn, withLogin } from '../extensions/connection/filled-preset.ts'
import { smallestRequest } from '../extensions/probes/free-check.ts'
import { testedRoute } from '../extensions/probes/vendor-test.ts'
import { realWorld } from '../kernel/world.ts'
import { loggedIn, vendorCall } from '../protocols/vendor-call.ts'
import { targetOf } from '../routing/route.ts'
import { type CatalogInput, checkDocument, type Login } from './document.ts'
import { type Preset, readPresets } from './preset.ts'

const shipped = (await readDefaultCatalog()) as CatalogInput
const presets = await readPresets()
const EMPTY: CatalogInput = { vendors: {}, models: {}, endpoints: {} }

function connectionOf(preset: Preset): Connection {
  const variables = Object.keys(preset.variables).map((name) => [
    name,
    { address: 'http://127.0.0.1:9/v1', role: 'arn:aws:iam::123456789012:role/tollgate' }[name] ?? 'mine-1',
  ])
  const given = Object.fromEntries(variables)
  const baseUrl = filledAddress(preset, given)
  assert.ok(typeof baseUrl === 'string')
  return {
    vendorName: preset.name,
    vendor: { ...(filledIn(preset.vendor, given) as CatalogInput['vendors'][string]), baseUrl },
    preset,
    formats: preset.formats,
    models: Object.keys(preset.models).map((model) => ({ model })),
    creditsPerDollar: '100',
  }
}

test('the vendors that are asked for most are known', () => {
  const names = presets.map(({ name }) => name)
  for (const name of words(`
    openai anthropic deepseek gemini moonshot minimax volcengine byteplus x site-analytics azure bedrock
    bedrock-anthropic vertex openrouter groq together fireworks mistral xai cohere vllm ollama llama.cpp lm-studio
  `))
    assert.ok(names.includes(name), name)
})

const ADDED = EXTENSIONS.flatMap(({ entries }) => [...entries])

for (const preset of presets)
  test(`${preset.name}: is a valid catalog over the shipped one, and opens a request to its own address with its own key`, async () => {
    const { document, problems } = withConnection(shipped, connectionOf(preset))
    assert.deepEqual(problems, [])
    const checked = checkDocument(document)
    assert.deepEqual(checked.ok ? [] : checked.problems, [])
    assert.ok(checked.ok)
    const vendor = checked.document.vendors[preset.name]
    assert.ok(vendor)
    const tested = testedRoute(preset.name, checked.document)
    if (Object.keys(preset.models).length === 0 && preset.replacesVendor === undefined)
      return assert.equal(tested, undefined)
    assert.ok(tested, 'nothing has a route to it')
    const secret = 'sk-of-the-test-0123456789'
    const target = targetOf(tested.route, vendor, tested.uid, { sandboxUrl: () => undefined, credential: () => secret })
    const ask = tested.facts && smallestRequest(target.protocol, tested.facts, ADDED)
    if (!ask) return assert.ok(!['text', 'embedding'].includes(preset.models[target.model]?.type ?? 'data'))
    const exchange = await ask.open(target, { requestId: 'test', createdSeconds: 0, signal: AbortSignal.timeout(1000) })
    const call = vendorCall(exchange.call, await loggedIn(target, { logins: loginsWith(secret), world: realWorld }))
    assert.ok(call.url.startsWith(`${vendor.baseUrl}/`), call.url)
    if (vendor.cloud === undefined) assert.equal(JSON.parse(String(call.body)).model, target.model)
    else assert.ok(call.url.includes(encodeURIComponent(target.model)), call.url)
    const { header } = typeof vendor.auth === 'object' && 'header' in vendor.auth ? vendor.auth : { header: undefined }
    const carried = header ? call.headers[header] : (call.headers.authorization ?? call.headers['x-api-key'])
    assert.match(carried ?? '', vendor.credential === undefined ? /^$/ : /sk-of-the-test/)
    if (preset.name === 'azure') assert.equal(call.headers['api-key'], secret)
    if (preset.name === 'bedrock-anthropic') assert.equal(call.headers.authorization, `Bearer ${secret}`)
  })

/** As if the cloud had accepted the login. */
const loginsWith = (secret: string) => ({
  open: (login: Login) =>
    'sigv4' in login
      ? { aws: { region: 'us-east-1', accessKeyId: secret, secretAccessKey: 'x' }, service: login.sigv4.service }
      : { token: secret },
})

test('every login of a preset is one that a catalog can have, and names what it needs', () => {
  const tried = presets.flatMap((preset) =>
    Object.keys(preset.logins).map((name) => {
      const chosen = withLogin(preset, name)
      assert.ok(chosen)
      const connection = connectionOf(chosen)
      const checked = checkDocument(withConnection(shipped, connection).document)
      assert.deepEqual(checked.ok ? [] : checked.problems, [], `${preset.name} ${name}`)
      assert.doesNotMatch(JSON.stringify(connection.vendor.auth), /[{]\w+[}]/)
      // Without a credential it is the machine's own identity, and nothing else.
      assert.equal(chosen.vendor.credential === undefined, /workload/.test(JSON.stringify(connection.vendor.auth)))
      return name
    }),
  )
  assert.deepEqual(
    new Set(tried),
    new Set(['keys', 'role', 'workload', 'metadata', 'access-token', 'entra', 'api-key']),
  )
})

test('an empty catalog takes every preset whose prices are noted, with all that its models need', () => {
  for (const preset of presets.filter(({ replacesVendor }) => replacesVendor === undefined)) {
    const connection = connectionOf(preset)
    const models = connection.models.filter(({ model }) => preset.models[model]?.usd)
    const { document, problems } = withConnection(EMPTY, { ...connection, models, markup: '1.2' })
    assert.deepEqual(problems, [], preset.name)
    const checked = checkDocument(document)
    assert.deepEqual(checked.ok ? [] : checked.problems, [], preset.name)
    for (const { model } of models) assert.ok(document.models[suggestedUid(model)], model)
  }
})

test('a preset that names list prices says when they were noted and from where; a model without one is not given one', () => {
  for (const { name, prices, models } of presets) {
    const priced = Object.values(models).some(({ usd }) => usd)
    assert.equal(prices !== undefined, priced, name)
  }
  const openai = presets.find(({ name }) => name === 'openai')
  assert.ok(openai)
  const image = { ...connectionOf(openai), models: [{ model: 'gpt-image-2' }] }
  assert.match(withConnection(EMPTY, image).problems[0] ?? '', /no list price noted/)
})

test('every vendor of the shipped catalog has a preset that can take its place', () => {
  const replaced = new Set(presets.flatMap(({ replacesVendor }) => replacesVendor ?? []))
  for (const preset of presets)
    for (const { product } of Object.values(preset.models))
      for (const { vendor } of (product === undefined ? undefined : shipped.models[product]?.routes) ?? [])
        replaced.add(vendor)
  assert.deepEqual([...replaced].sort(), Object.keys(shipped.vendors).sort())
})

test('connecting leaves other vendors and prices as they are, and prices by cost and markup only where that is asked for', () => {
  const openai = presets.find(({ name }) => name === 'openai')
  assert.ok(openai)
  const connection = { ...connectionOf(openai), models: [{ model: 'gpt-5.4', uid: 'alpha-5.4' }] }
  const kept = withConnection(shipped, connection).document
  assert.deepEqual(kept.models['alpha-5.4']?.pricing, shipped.models['alpha-5.4']?.pricing)
  assert.deepEqual(kept.models['alpha-5.5'], shipped.models['alpha-5.5'])
  assert.deepEqual(kept.vendors.alpha, shipped.vendors.alpha)
  assert.deepEqual(pluck(kept.models['alpha-5.4']?.routes, 'vendor', 'model', 'protocol', 'serves'), [
    ['openai', 'gpt-5.4', 'openai-chat', undefined],
    ['openai', 'gpt-5.4', 'openai-responses', ['tools']],
  ])
  const marked = withConnection(shipped, { ...connection, markup: '1.2' }).document
  assert.deepEqual(marked.models['alpha-5.4']?.pricing.tiers[0], {
    upTo: 272_000,
    input: '300',
    cachedInput: '30',
    output: '1800',
  })
  assert.deepEqual(marked.models['alpha-5.4']?.routes[0]?.cost?.tiers[0], {
    upTo: 272_000,
    input: '250',
    cachedInput: '25',
    output: '1500',
  })
})

test('the text of OpenAI’s models is counted by its own tokenizer where the bound does not fit, in a new catalog and in the shipped one', () => {
  for (const name of ['openai', 'azure'])
    for (const before of [EMPTY, shipped]) {
      const preset = presets.find((one) => one.name === name)!
      const { document } = withConnection(before, {
        ...connectionOf(preset),
        models: [{ model: 'gpt-5.4' }],
        markup: '1',
      })
      const checked = checkDocument(document)
      assert.ok(checked.ok)
      assert.deepEqual(checked.document.models['gpt-5.4']?.traits, {
        ...checked.document.models['gpt-5.4']?.traits,
        tokenizer: 'o200k',
      })
    }
  const { document } = withConnection(EMPTY, connectionOf(presets.find(({ name }) => name === 'groq')!))
  for (const { traits } of Object.values(document.models)) assert.equal(traits?.tokenizer, undefined)
})

test('a model is offered by its vendor’s own name, and by the shipped one too where that is asked for', () => {
  const openai = presets.find(({ name }) => name === 'openai')
  assert.ok(openai)
  const own = withConnection(shipped, { ...connectionOf(openai), models: [{ model: 'gpt-5.4' }] }).document
  assert.deepEqual(own.models['alpha-5.4'], shipped.models['alpha-5.4'])
  const { routes, capabilities, limits } = own.models['gpt-5.4'] ?? {}
  assert.deepEqual(pluck(routes, 'vendor', 'model'), [
    ['openai', undefined],
    ['openai', undefined],
  ])
  const { capabilities: shippedCapabilities, limits: shippedLimits } = shipped.models['alpha-5.4'] ?? {}
  assert.deepEqual([capabilities, limits], [shippedCapabilities, shippedLimits])
  const models = [{ model: 'gpt-5.4' }, { model: 'gpt-5.4', uid: 'alpha-5.4' }]
  const both = withConnection(shipped, { ...connectionOf(openai), models }).document
  assert.equal(both.models['alpha-5.4']?.routes[0]?.vendor, 'openai')
  assert.ok(both.models['gpt-5.4'])
  // Without a list price it is sold for what the shipped model is.
  const image = withConnection(shipped, { ...connectionOf(openai), models: [{ model: 'gpt-image-2' }] })
  assert.deepEqual(image.document.models['gpt-image-2']?.pricing, shipped.models['alpha-image-2']?.pricing)
  assert.deepEqual(image.notes, ['gpt-image-2: no list price noted; its price is that of alpha-image-2.'])
})

test('a vendor beside real ones is asked when they fail, and connecting it twice changes nothing', () => {
  const [openai, azure] = ['openai', 'azure'].map((sought) => presets.find(({ name }) => name === sought))
  assert.ok(openai && azure)
  const first = withConnection(shipped, {
    ...connectionOf(openai),
    models: [{ model: 'gpt-5.4', uid: 'alpha-5.4' }],
  }).document
  const connection = { ...connectionOf(azure), models: [{ model: 'gpt-5.4', uid: 'alpha-5.4' }] }
  const second = withConnection(first, connection).document
  assert.deepEqual(
    second.models['alpha-5.4']?.routes.map(({ vendor, order }) => [vendor, order ?? 0]),
    [
      ['openai', 0],
      ['openai', 0],
      ['azure', 1],
      ['azure', 1],
    ],
  )
  assert.deepEqual(withConnection(second, connection).document, second)
})
