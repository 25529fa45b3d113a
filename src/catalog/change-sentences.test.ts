import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeChanges } from './change-sentences.ts'

const price = (input: string, output: string) => ({ unit: 'credits', tiers: [{ input, output }] })
const route = (vendor: string, over: object = {}) => ({ vendor, protocol: 'openai-chat', ...over })
const base = {
  vendors: { acme: { baseUrl: 'https://acme.example/v1', credential: 'ACME_KEY' } },
  models: {
    large: {
      name: 'Large',
      type: 'text',
      family: 'a',
      routes: [route('acme', { cost: price('60', '240') })],
      pricing: price('75', '300'),
    },
    small: { name: 'Small', type: 'text', family: 'a', routes: [route('acme')], pricing: price('10', '20') },
  },
  endpoints: {},
}
// biome-ignore lint/suspicious/noExplicitAny: each case changes another corner of the document
type Draft = any
const changed = (change: (draft: Draft) => void) => {
  const draft: Draft = structuredClone(base)
  change(draft)
  return draft
}

const CASES: readonly [promise: string, change: (draft: Draft) => void, sentences: string[]][] = [
  ['the same', () => {}, []],
  [
    'a new model says its price, cost and margin',
    (draft) => {
      draft.models['acme-large-1'] = draft.models.large
    },
    [
      'acme-large-1: 75 credits per million input tokens, cost 60, margin 20 %; 300 credits per million output tokens, cost 240, margin 20 %. It is new, served by acme.',
    ],
  ],
  [
    'a price says what it was, and only what has changed',
    (draft) => {
      draft.models.large.pricing.tiers[0].input = '1200'
    },
    ['large: 1,200 credits per million input tokens instead of 75, cost 60, margin 95 %.'],
  ],
  [
    'a margin is rounded',
    (draft) => {
      draft.models.large.pricing.tiers[0].input = '72'
      draft.models.large.routes[0].cost.tiers[0].input = '60'
    },
    ['large: 72 credits per million input tokens instead of 75, cost 60, margin 16.7 %.'],
  ],
  [
    'a cost says what becomes of the margin',
    (draft) => {
      draft.models.large.routes[0].cost.tiers[0].output = 330
    },
    ['large: 300 credits per million output tokens, cost 330 instead of 240, margin -10 %.'],
  ],
  [
    'tiers say when they hold',
    (draft) => {
      draft.models.small.pricing.tiers = [
        { upTo: 200000, input: '10', output: '20' },
        { input: '20', output: '40' },
      ]
    },
    [
      'small: up to 200,000 input tokens: 10 credits per million input tokens; 20 credits per million output tokens; else: 20 credits per million input tokens; 40 credits per million output tokens (until now 10 credits per million input tokens; 20 credits per million output tokens).',
    ],
  ],
  [
    'a vendor that goes takes routes and models along',
    (draft) => {
      delete draft.vendors.acme
      delete draft.models.small
      draft.models.large.routes = [route('other', { model: 'big', order: 1 })]
    },
    [
      'Vendor acme is removed.',
      'large: 75 credits per million input tokens; 300 credits per million output tokens.',
      'large: other (openai-chat, as big) serves it when others fail.',
      'large: acme (openai-chat) no longer serves it.',
      'small is no longer offered.',
    ],
  ],
  [
    'a vendor under another name is the same one',
    (draft) => {
      draft.vendors = { apex: draft.vendors.acme }
      for (const uid of ['large', 'small']) draft.models[uid].routes[0].vendor = 'apex'
    },
    ['Vendor acme is renamed apex.'],
  ],
  [
    'fields that have no sentence of their own say what they were',
    (draft) => {
      draft.vendors.acme.baseUrl = 'https://acme.example/v2'
      draft.vendors.acme.timeouts = { connectMs: 100 }
      delete draft.vendors.acme.credential
      draft.models.large.enabled = false
      draft.models.large.routes[0].weight = 3
      draft.models.small.name = 'Tiny'
      draft.allClientFormats = true
      draft.families = { a: { traits: { tokenField: 'max_tokens' } } }
    },
    [
      'Vendor acme: base URL changes from "https://acme.example/v1" to "https://acme.example/v2".',
      'Vendor acme: credential "ACME_KEY" is taken out.',
      'Vendor acme: connect timeout (ms) becomes 100.',
      'large is switched off.',
      'large at acme: weight becomes 3.',
      'small: name changes from "Small" to "Tiny".',
      'Every text model is offered in every client format.',
      'Catalog: families.a.traits.tokenField becomes "max_tokens".',
    ],
  ],
  [
    'a rate that is written as a number is the same rate, and the document another one',
    (draft) => {
      draft.models.large.pricing.tiers[0].input = 75
    },
    ['The document is written in another way and says the same.'],
  ],
]

for (const [promise, change, sentences] of CASES)
  test(`changes in sentences: ${promise}`, () => {
    assert.deepEqual(describeChanges(base, changed(change)), sentences)
  })

test('the order of members says nothing, and what is no document is said to be another', () => {
  const { vendors, models, endpoints } = base
  assert.deepEqual(describeChanges(base, { endpoints, models, vendors }), [])
  for (const other of [null, [], 'x', 1]) assert.equal(describeChanges(base, other).length, 1)
  assert.equal(describeChanges(undefined, base).length, 1)
  for (const odd of [
    { vendors: [] },
    { models: { a: 1 } },
    { models: { a: { routes: 'x', pricing: { tiers: 'y' } } } },
  ])
    assert.notEqual(describeChanges(base, odd).length, 0)
})

test('a cost that the sentence of the price does not say has a sentence of its own', () => {
  const product = (pricing: object, ...costs: [cost: object | undefined, order?: number][]) => {
    const routes = costs.map(([cost, order], at) => route(`v${at}`, { ...(cost && { cost }), ...(order && { order }) }))
    return { models: { large: { routes, pricing } } }
  }
  const of = (before: object, after: object) => describeChanges(before, after)
  const dearer = 'large: 80 credits per million input tokens instead of 75, cost 64 instead of 60, margin 20 %.'
  assert.deepEqual(
    of(
      product(price('75', '300'), [price('60', '240')], [price('50', '260'), 1]),
      product(price('80', '300'), [price('64', '240')], [price('50', '270'), 1]),
    ),
    [dearer, 'large at v1, cost: 270 credits per million output tokens instead of 260.'],
    'of a route that is asked when others fail',
  )
  assert.deepEqual(
    of(
      product(price('75', '300'), [price('60', '240')], [price('50', '200')]),
      product(price('80', '300'), [price('64', '240')], [price('55', '200')]),
    ),
    [
      dearer,
      'large at v0, cost: 64 credits per million input tokens instead of 60.',
      'large at v1, cost: 55 credits per million input tokens instead of 50.',
    ],
    'of several that are asked first the price says the most alone',
  )
  assert.deepEqual(
    of(product(price('75', '300'), [undefined]), product(price('75', '300'), [price('60', '240')])),
    [
      'large: 75 credits per million input tokens, cost 60, margin 20 %; 300 credits per million output tokens, cost 240, margin 20 %.',
    ],
    'one that is new is said with the price',
  )
  const cached = (rate: string) => ({ unit: 'credits', tiers: [{ input: '60', cachedInput: rate, output: '240' }] })
  assert.deepEqual(
    of(product(price('75', '300'), [cached('6')]), product(price('80', '300'), [cached('7')])),
    [
      'large: 80 credits per million input tokens instead of 75, cost 60, margin 25 %.',
      'large at v0, cost: 7 credits per million cached input tokens instead of 6.',
    ],
    'one for which there is no price',
  )
})

test('a list that is cut says how many sentences it leaves out', () => {
  const many = (count: number) => ({
    vendors: Object.fromEntries(Array.from({ length: count }, (_, at) => [`v${at}`, { baseUrl: 'https://a.example' }])),
  })
  assert.equal(describeChanges({ vendors: {} }, many(500)).length, 500)
  const cut = describeChanges({ vendors: {} }, many(517))
  assert.deepEqual([cut.length, cut.at(-1)], [501, '… and 17 more'])
})
