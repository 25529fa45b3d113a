// Embeddings as Google's clients ask for them: the official package, unchanged, and what a call is held for and costs.
import { GoogleGenAI } from '@google/genai'
import { embeddingGateway } from '../../../test/embedding-vendor.ts'
import { needs, textOf } from '../../../test/gateway.ts'
import { assert, before, pluck, test } from '../../../test/kit.ts'

const SMALL = 'alpha-embed-3-small'
const LARGE = 'alpha-embed-3-large'

let key: string
const { g, other } = embeddingGateway()
before(async () => {
  key = (await g.account()).key
})

const plainly = async (apiKey: string, body: object) => {
  const reply = await g.call('/v1/embeddings', apiKey, body)
  return { charge: reply.headers.get('x-tollgate-charge'), ...((await reply.json()) as any) }
}
const google = (apiKey = key) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: `${g.url}/gemini` } })
const at = (action: string, version = 'v1beta', model = SMALL) => `/gemini/${version}/models/${model}:${action}`
const content = (...texts: string[]) => ({ parts: texts.map((text) => ({ text })) })

test(
  '@google/genai embeds one text and many, with the vectors of /v1/embeddings, and lists the model',
  needs('embeddings'),
  async () => {
    const texts = ['The gate is open.', 'The barrier is up.']
    const plain = await plainly(key, { model: SMALL, input: texts, dimensions: 8 })
    const config = { outputDimensionality: 8, taskType: 'RETRIEVAL_DOCUMENT' }
    const many = await google().models.embedContent({ model: SMALL, contents: texts, config })
    assert.deepEqual(pluck(many.embeddings, 'values'), pluck(plain.data, 'embedding'))
    const one = await google().models.embedContent({ model: SMALL, contents: texts[0]! })
    assert.equal(one.embeddings?.[0]?.values?.length, 1536)
    const entry = await google().models.get({ model: SMALL })
    assert.deepEqual(entry.supportedActions, ['embedContent', 'batchEmbedContents'])
  },
)

test(
  'both addresses of Google’s protocol embed, in either spelling, and cost what /v1/embeddings does',
  needs('embeddings'),
  async () => {
    const { id, key: own } = await g.account()
    const text = '漢字かな交じり文'
    const { data, usage, charge } = await plainly(own, { model: LARGE, input: text, dimensions: 4 })
    const usageMetadata = { promptTokenCount: usage.prompt_tokens }
    const values = data[0].embedding
    const bodies: ReadonlyArray<[action: string, body: object, answer: object]> = [
      ['embedContent', { content: content(text), outputDimensionality: 4 }, { embedding: { values }, usageMetadata }],
      [
        'embedContent',
        { model: 'models/other', content: content(text), output_dimensionality: 4, task_type: 'CLUSTERING' },
        { embedding: { values }, usageMetadata },
      ],
      [
        'batchEmbedContents',
        { requests: [{ model: `models/${LARGE}`, content: content(text), output_dimensionality: 4 }] },
        { embeddings: [{ values }], usageMetadata },
      ],
    ]
    for (const version of ['v1beta', 'v1'])
      for (const [action, body, answer] of bodies) {
        const got = await g.call(at(action, version, LARGE), own, body)
        assert.deepEqual(await got.json(), answer)
        assert.equal(got.headers.get('x-tollgate-charge'), charge)
      }
    await g.settled()
    const rows = await g.sql<{ endpoint: string; product: string; calls: number }>(
      'select endpoint, product, count(*)::int as calls from usage where account_id = $1 group by 1, 2 order by 1',
      [id],
    )
    assert.deepEqual(pluck(rows, 'endpoint', 'product', 'calls'), [
      ['embeddings', LARGE, 1],
      ['gemini/embed', LARGE, 4],
      ['gemini/embed_batch', LARGE, 2],
    ])
  },
)

test('what is wrong with an embedding of Google’s protocol is said in its words, by the field, and no vendor hears of it', async () => {
  const cases: ReadonlyArray<[action: string, body: object, status: number, message: RegExp, model?: string]> = [
    ['embedContent', {}, 400, /"content" is required/],
    ['embedContent', { content: 'x' }, 400, /"content" must be an object/],
    ['embedContent', { content: {} }, 400, /"content.parts" must be an array/],
    ['embedContent', { content: { parts: [] } }, 400, /"content" must have a text/],
    ['embedContent', { content: content('') }, 400, /"content" must have a text/],
    [
      'embedContent',
      { content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'AA==' } }] } },
      400,
      /only texts are embedded/,
    ],
    ['embedContent', { content: content('x'), outputDimensionality: 0 }, 400, /"outputDimensionality"/],
    ['embedContent', { content: content('x'), outputDimensionality: 1, output_dimensionality: 2 }, 400, /spelling/],
    ['embedContent', { content: content('x'), taskType: 7 }, 400, /"taskType" must be a string/],
    ['batchEmbedContents', {}, 400, /"requests" is required/],
    ['batchEmbedContents', { requests: [] }, 400, /1 to 100 requests, not 0/],
    ['batchEmbedContents', { requests: Array(101).fill({ content: content('x') }) }, 400, /1 to 100 requests, not 101/],
    ['batchEmbedContents', { requests: [{ content: content('x') }, {}] }, 400, /"requests\[1\]\.content" is required/],
    ['batchEmbedContents', { requests: [{ model: 'models/other', content: content('x') }] }, 400, /of the address/],
    [
      'batchEmbedContents',
      { requests: [{ content: content('x') }, { content: content('y'), outputDimensionality: 8 }] },
      400,
      /"requests\[1\]\.outputDimensionality" must be the same/,
    ],
    ['embedContent', { content: content('x') }, 400, /is not a model of the type embedding/, 'alpha-5.4'],
    ['embedContent', { content: content('x') }, 404, /"nothing" does not exist/, 'nothing'],
  ]
  g.sandbox.seen.clear()
  for (const [action, body, status, message, model] of cases) {
    const got = await g.call(at(action, 'v1beta', model), key, body)
    const { error } = (await got.json()) as any
    assert.equal(got.status, status, JSON.stringify(body).slice(0, 200))
    assert.match(error.message, message)
    assert.deepEqual([error.code, error.status], [status, status === 404 ? 'NOT_FOUND' : 'INVALID_ARGUMENT'])
  }
  assert.equal(g.sandbox.seen.requests, 0)
  const { key: other } = await g.account({ models: ['alpha-5.4'] })
  await assert.rejects(google(other).models.embedContent({ model: SMALL, contents: 'x' }), /"code":403/)
  await assert.rejects(google().models.embedContent({ model: SMALL, contents: '[[429]]' }), /"code":429/)
})

test('an embedding of Google’s protocol is held for like any, and an answer without a vector for each text costs nothing', async () => {
  const { id, key: poor } = await g.account({ credits: 3_000_000n })
  assert.match(
    await textOf(g.call(at('embedContent', 'v1', 'other-embed'), poor, { content: content('ab') }), 402),
    /needs 4 credits, 3 are available/,
  )
  const requests = ['a', 'b'].map((text) => ({ content: content(text) }))
  const { id: rich, key: own } = await g.account({ credits: 100_000_000n })
  const ask = () => g.call(at('batchEmbedContents', 'v1', 'other-embed'), own, { requests })
  const vector = (index: number, values: unknown) => ({ object: 'embedding', index, embedding: values })
  for (const data of [[], [vector(0, [1])], [vector(0, [1]), vector(1, 'AACAPw==')], [1, 2]]) {
    other.answer = JSON.stringify({ data, usage: { prompt_tokens: 2 } })
    assert.equal((await ask()).status, 502)
  }
  await g.settled()
  assert.deepEqual(await g.balance(rich), { posted: 100_000_000n, held: 0n })
  // The order is that of the texts, whatever the vendor's is.
  other.answer = JSON.stringify({ data: [vector(1, [2]), vector(0, [1])], usage: { prompt_tokens: 2 } })
  const got = await ask()
  assert.deepEqual(await got.json(), {
    embeddings: [{ values: [1] }, { values: [2] }],
    usageMetadata: { promptTokenCount: 2 },
  })
  assert.equal(got.headers.get('x-tollgate-charge'), '2')
  await g.settled()
  assert.deepEqual(await g.balance(rich), { posted: 98_000_000n, held: 0n })
  assert.deepEqual(await g.balance(id), { posted: 3_000_000n, held: 0n })
})
