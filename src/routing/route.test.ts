import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CatalogDocument, Route, Routing } from '../catalog/document.ts'
import { checkDocument } from '../catalog/document.ts'
import { realWorld } from '../kernel/world.ts'
import { routeRequest, routesFor } from './route.ts'
import { createVendors } from './vendor.ts'

const cost = (output: string) => ({ unit: 'credits', tiers: [{ input: '1', output }] })
const checked = checkDocument({
  vendors: Object.fromEntries(['one', 'two', 'three'].map((name) => [name, { baseUrl: `https://${name}.example` }])),
  models: {
    'alpha-5.4': {
      name: 'Alpha',
      type: 'text',
      family: 'alpha',
      clientFormats: ['openai-chat'],
      pricing: { unit: 'credits', tiers: [{ input: '1', output: '1' }] },
      routes: [
        { vendor: 'one', protocol: 'openai-chat', cost: cost('30') },
        { vendor: 'two', protocol: 'openai-chat', weight: 2 },
        { vendor: 'three', protocol: 'openai-chat', cost: cost('10') },
      ],
    },
  },
  endpoints: {},
})
assert.ok(checked.ok)
const document: CatalogDocument = checked.document
const routes: readonly Route[] = document.models['alpha-5.4']?.routes ?? []

function order(
  routing: Partial<Routing>,
  more: {
    sent?: string
    session?: string
    latencies?: Record<string, number>
    busy?: Record<string, number>
    in?: CatalogDocument
  } = {},
): string[] {
  const sources = {
    world: realWorld,
    sandboxUrl: () => undefined,
    credential: () => undefined,
    vendors: {
      latencyMs: (vendor: string) => more.latencies?.[vendor],
      tokensPerSecond: () => undefined,
      inFlight: (vendor: string) => more.busy?.[vendor] ?? 0,
    },
  }
  const ask = { product: 'alpha-5.4', ...(more.sent === undefined ? {} : { sent: more.sent }) }
  const whole: Routing = { policy: 'weighted', ...routing }
  const { session, in: catalog = document } = more
  return routeRequest(ask, { routes, routing: whole, pool: routes, session }, catalog, sources).map(
    ({ vendorName }) => vendorName,
  )
}

const firsts = (times: number, draw: () => string[]) =>
  Array.from({ length: times }, draw).reduce((counts: Record<string, number>, [first = '']) => {
    counts[first] = (counts[first] ?? 0) + 1
    return counts
  }, {})

test('the route that costs least is first, and one whose cost nobody knows is last', () => {
  assert.deepEqual(order({ policy: 'cheapest-first' }), ['three', 'one', 'two'])
})

test('the fastest route is first nearly always, and the others are tried now and then', () => {
  const latencies = { one: 50, two: 10, three: 90 }
  const counts = firsts(2000, () => order({ policy: 'least-latency' }, { latencies }))
  assert.ok((counts.two ?? 0) > 1850, JSON.stringify(counts))
  assert.ok((counts.one ?? 0) > 0 && (counts.three ?? 0) > 0, JSON.stringify(counts))
})

test('a refusal is no fast answer, and whoever has only refused is not taken for fast', () => {
  const vendors = createVendors(realWorld)
  const refusal = { vendorsFault: false }
  assert.equal(vendors.latencyMs('one'), undefined)
  vendors.answered('one', 'account', { status: 429, latencyMs: 1, refusal })
  assert.equal(vendors.latencyMs('one'), Number.POSITIVE_INFINITY)
  vendors.answered('one', 'account', { status: 200, latencyMs: 500 })
  vendors.answered('one', 'account', { status: 400, latencyMs: 1, refusal })
  assert.equal(vendors.latencyMs('one'), 500)
  assert.equal(vendors.health()[0]?.latencyMsP50, 500)
})

test('the turns of a conversation take one route, and conversations are shared out by weight', () => {
  const turn = (number: number, more: object[] = []) =>
    JSON.stringify({ messages: [{ role: 'user', content: `Question ${number}` }, ...more] })
  for (let number = 0; number < 20; number++) {
    const [first] = order({ sticky: true }, { sent: turn(number) })
    const later = turn(number, [
      { role: 'assistant', content: 'Answer' },
      { role: 'user', content: 'And then?' },
    ])
    assert.equal(order({ sticky: true }, { sent: later })[0], first)
  }
  const counts = firsts(
    2000,
    (() => {
      let number = 0
      return () => order({ sticky: true }, { sent: turn(number++) })
    })(),
  )
  // 1 : 2 : 1, with a wide margin.
  assert.ok((counts.two ?? 0) > 800 && (counts.two ?? 0) < 1200, JSON.stringify(counts))
  const named = (words: string) =>
    order({ sticky: true }, { sent: JSON.stringify({ prompt_cache_key: 'k', input: words }) })
  assert.deepEqual(named('one question'), named('quite another'))
})

test('a route that is switched off is not taken', () => {
  const [first, ...rest] = routes
  assert.ok(first)
  const routing: Routing = { policy: 'weighted', sticky: false }
  const sources = { world: realWorld, sandboxUrl: () => undefined, credential: () => undefined }
  const off = [{ ...first, enabled: false }, ...rest]
  const pool = routesFor({}, { routes: off }, document)
  const taken = routeRequest({ product: 'alpha-5.4' }, { routes: off, routing, pool }, document, sources)
  assert.deepEqual(taken.map(({ number }) => number).sort(), [2, 3])
})

test('sessions and conversations stay with a route by themselves where a vendor caches prompts', () => {
  const caching = structuredClone(document)
  Object.assign(caching.vendors.two ?? {}, { promptCache: true })
  const sent = (words: string) => JSON.stringify({ messages: [{ role: 'user', content: words }] })
  for (let number = 0; number < 20; number++) {
    const of = (words: string) => order({}, { in: caching, session: `s${number}`, sent: sent(words) })
    assert.deepEqual(of('one question'), of('quite another'))
    const plain = () => order({}, { in: caching, sent: sent(`Question ${number}`) })
    assert.deepEqual(plain(), plain())
  }
  const shared = firsts(400, () => order({}, { in: caching, session: String(Math.random()) }))
  assert.equal(Object.keys(shared).length, 3)
  // Switched off, and without such a vendor, calls are shared out.
  assert.ok(Object.keys(firsts(400, () => order({ sticky: false }, { in: caching, session: 's' }))).length === 3)
  assert.ok(Object.keys(firsts(400, () => order({}, { session: 's' }))).length === 3)
})

test('the vendor with the fewest calls is first, and equals take turns', () => {
  const busy = { one: 3, two: 1, three: 2 }
  assert.deepEqual(order({ policy: 'least-busy' }, { busy }), ['two', 'three', 'one'])
  assert.equal(Object.keys(firsts(400, () => order({ policy: 'least-busy' }))).length, 3)
})
