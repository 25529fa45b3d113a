// Embeddings: the official openai package and the AI SDK, unchanged, and what a call is held for and costs.
import { readFileSync } from 'node:fs'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { embed, embedMany } from 'ai'
import OpenAI from 'openai'
import { embeddingGateway } from '../../../test/embedding-vendor.ts'
import { assert, before, pluck, test, words } from '../../../test/gateway.ts'
import { checkDocument } from '../../catalog/document.ts'
import { readDefaultCatalog } from '../../compose.ts'
import { readJson } from '../../kernel/json.ts'
import { admitMembers } from '../../protocols/text/request-members.ts'
import { EMBEDDINGS_MEMBERS } from './body.ts'

const PATH = '/v1/embeddings'
const SMALL = 'alpha-embed-3-small'
const LARGE = 'alpha-embed-3-large'

let key: string
const { g, other } = embeddingGateway()
before(async () => {
  key = (await g.account()).key
})

const client = (path = '/v1', apiKey = key) => new OpenAI({ apiKey, baseURL: g.url + path, maxRetries: 0 })
const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0)
const isUnit = (vector: readonly number[]) => Math.abs(dot(vector, vector) - 1) < 1e-5

/** What was asked of whom, and what the caller got. */
async function post(body: object, as = key, headers: Record<string, string> = {}) {
  const response = await g.call(PATH, as, body, { headers })
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}

test('the openai package gets vectors of unit length, by every path, with the usage and the model’s public name', async () => {
  for (const path of ['/v1', '/alpha', '/alpha/v1']) {
    const got = await client(path).embeddings.create({ model: SMALL, input: 'The gate is open.' })
    assert.equal(got.object, 'list')
    assert.equal(got.model, SMALL)
    assert.equal(got.data.length, 1)
    assert.equal(got.data[0]!.embedding.length, 1536)
    assert.ok(isUnit(got.data[0]!.embedding))
    assert.ok(got.usage.prompt_tokens > 0 && got.usage.total_tokens === got.usage.prompt_tokens)
  }
  const large = await client().embeddings.create({ model: LARGE, input: 'The gate is open.', user: 'u-1' })
  assert.equal(large.data[0]!.embedding.length, 3072)
})

test('numbers and base64, which the openai package asks for by itself, are the same vector', async () => {
  const ask = { model: SMALL, input: 'Pay here.' }
  const byItself = await client().embeddings.create(ask)
  assert.equal(JSON.parse(g.sandbox.seen.calls.at(-1)!.body!).encoding_format, 'base64')
  const floats = await client().embeddings.create({ ...ask, encoding_format: 'float' })
  const raw = await client().embeddings.create({ ...ask, encoding_format: 'base64' })
  const text = raw.data[0]!.embedding as unknown as string
  const bytes = Buffer.from(text, 'base64')
  assert.equal(bytes.length, 1536 * 4)
  floats.data[0]!.embedding.forEach((value, i) => {
    assert.ok(Math.abs(value - byItself.data[0]!.embedding[i]!) < 1e-8)
    assert.ok(Math.abs(value - bytes.readFloatLE(i * 4)) < 1e-8)
  })
})

test('a batch is answered in its order, as texts or as tokens, up to 2048 of them', async () => {
  const texts = Array.from({ length: 2048 }, (_, i) => `text ${i}`)
  const many = await client().embeddings.create({ model: SMALL, input: texts, dimensions: 8 })
  assert.deepEqual(
    pluck(many.data, 'index'),
    texts.map((_, i) => i),
  )
  const one = await client().embeddings.create({ model: SMALL, input: 'text 2047', dimensions: 8 })
  assert.deepEqual(many.data[2047]!.embedding, one.data[0]!.embedding)
  const tokens = await client().embeddings.create({ model: SMALL, input: [1, 2, 3] })
  assert.equal(tokens.data.length, 1)
  assert.equal(tokens.usage.prompt_tokens, 3)
  const lists = await client().embeddings.create({ model: SMALL, input: [[1, 2, 3], [4]] })
  assert.equal(lists.data.length, 2)
  assert.equal(lists.usage.prompt_tokens, 4)
  assert.deepEqual(lists.data[0]!.embedding, tokens.data[0]!.embedding)
})

test('`dimensions` shortens a vector, which still has unit length', async () => {
  const got = await client().embeddings.create({ model: LARGE, input: 'A toll.', dimensions: 256 })
  assert.equal(got.data[0]!.embedding.length, 256)
  assert.ok(isUnit(got.data[0]!.embedding))
  await assert.rejects(
    client().embeddings.create({ model: LARGE, input: 'A toll.', dimensions: 4000 }),
    (error: any) => error.status === 400 && error.param === 'dimensions' && /between 1 and 3072/.test(error.message),
  )
})

test('in the sandbox the nearer text is nearer', async () => {
  const [gate, gates, soup] = (
    await client().embeddings.create({
      model: SMALL,
      input: ['The toll gate opens at dawn', 'Toll gates open at dawn', 'A recipe for onion soup'],
    })
  ).data.map(({ embedding }) => embedding)
  assert.ok(dot(gate!, gates!) > 0.5)
  assert.ok(dot(gate!, soup!) < 0.3)
})

test('the AI SDK embeds one text and many', async () => {
  const models = [
    createOpenAI({ apiKey: key, baseURL: `${g.url}/v1` }).embedding(SMALL),
    createOpenAICompatible({ name: 'tollgate', apiKey: key, baseURL: `${g.url}/v1` }).embeddingModel(SMALL),
  ]
  for (const model of models) {
    const { embedding, usage } = await embed({ model, value: 'One text.' })
    assert.ok(isUnit(embedding))
    assert.ok(usage.tokens > 0)
    const { embeddings } = await embedMany({ model, values: ['One text.', 'Another.'] })
    assert.deepEqual(embeddings[0], embedding)
    assert.equal(embeddings.length, 2)
  }
})

test('what is wrong with a request is said by the field, before any vendor hears of it', async () => {
  const cases: Array<[body: object, status: number, message: RegExp, param?: string]> = [
    [{ input: 'x' }, 400, /"model" is required/, 'model'],
    [{ model: SMALL }, 400, /"input" is required/, 'input'],
    [{ model: SMALL, input: '' }, 400, /must not be empty/, 'input'],
    [{ model: SMALL, input: {} }, 400, /an object/, 'input'],
    [{ model: SMALL, input: [] }, 400, /1 to 2048 inputs, not 0/, 'input'],
    [{ model: SMALL, input: Array(2049).fill('x') }, 400, /1 to 2048 inputs, not 2049/, 'input'],
    [{ model: SMALL, input: ['x', ''] }, 400, /input\[1\].*must not be empty/, 'input[1]'],
    [{ model: SMALL, input: ['x', 1] }, 400, /input\[1\].*not 1/, 'input[1]'],
    [{ model: SMALL, input: [1, 'x'] }, 400, /input\[1\].*"x"/, 'input'],
    [{ model: SMALL, input: [-1] }, 400, /input\[0\].*-1/, 'input'],
    [{ model: SMALL, input: [[]] }, 400, /input\[0\].*empty/, 'input[0]'],
    [{ model: SMALL, input: [[1], [1.5]] }, 400, /input\[1\]\[0\].*1\.5/, 'input[1]'],
    [{ model: SMALL, input: [null] }, 400, /input\[0\].*null/, 'input[0]'],
    [{ model: SMALL, input: 'x', dimensions: 0 }, 400, /"dimensions".*at least 1/, 'dimensions'],
    [{ model: SMALL, input: 'x', encoding_format: 'hex' }, 400, /float or base64/, 'encoding_format'],
    [{ model: SMALL, input: 'x', user: 7 }, 400, /"user" must be a string/, 'user'],
    [{ model: 'alpha-5.4', input: 'x' }, 400, /is not a model of the type embedding/, 'model'],
    [{ model: 'nothing', input: 'x' }, 404, /model/],
  ]
  g.sandbox.seen.clear()
  for (const [body, status, message, param] of cases) {
    const got = await post(body)
    assert.equal(got.status, status, JSON.stringify(body).slice(0, 200))
    assert.match(got.body.error.message, message)
    assert.equal(got.body.message, got.body.error.message)
    if (param) assert.equal(got.body.error.param, param)
  }
  assert.equal((await g.call('/v1/chat-completions', key, { model: SMALL, messages: [] })).status, 400)
  assert.equal(g.sandbox.seen.requests, 0)
})

test('a failure of the vendor’s is an error of the openai package, and costs nothing', async () => {
  const { id, key: own } = await g.account()
  const before = await g.balance(id)
  const cases: Array<[input: string, status: number, of: new (...args: any[]) => Error]> = [
    ['[[429]]', 429, OpenAI.RateLimitError],
    ['[[500]]', 502, OpenAI.InternalServerError],
    ['[[garbage]]', 502, OpenAI.InternalServerError],
    ['[[cut]]', 502, OpenAI.InternalServerError],
    ['[[truncate=200]]', 502, OpenAI.InternalServerError],
    ['[[empty]]', 502, OpenAI.InternalServerError],
    ['[[400 too odd]]', 400, OpenAI.BadRequestError],
  ]
  for (const [input, status, of] of cases)
    await assert.rejects(
      client('/v1', own).embeddings.create({ model: SMALL, input }),
      (error: { status?: number }) => {
        assert.ok(error instanceof of, `${input}: ${error}`)
        assert.equal(error.status, status, input)
        return true
      },
    )
  const long = 'word '.repeat(9000)
  await assert.rejects(client('/v1', own).embeddings.create({ model: SMALL, input: long }), /maximum context length/)
  await g.settled()
  assert.deepEqual(await g.balance(id), before)
})

test('a call costs the price of the tokens that the vendor counted, and its quote is never below that', async () => {
  const input = ['A text of some length, for counting.', '漢字かな交じり文', '🎉🎉🎉']
  const got = await post({ model: LARGE, input })
  assert.equal(got.status, 200)
  const tokens = got.body.usage.prompt_tokens
  assert.equal(Number(got.headers.get('x-tollgate-charge')), (tokens * 13) / 1_000_000)
  const quoted = (await (await g.call('/v1/quote', key, { model: LARGE, input })).json()) as any
  assert.equal(quoted.data.endpoint, 'embeddings')
  const bytes = input.reduce((sum, text) => sum + Buffer.byteLength(text) + 2, 0)
  assert.equal(Number(quoted.data.costAtMost), (bytes * 13) / 1_000_000)
})

test('the hold covers a token for every byte, but of one input no more than the model takes', async () => {
  const held = async (input: unknown) => {
    const quoted = (await (await g.call('/v1/quote', key, { model: 'other-embed', input })).json()) as any
    return Number(quoted.data.costAtMost)
  }
  assert.equal(await held('ab'), 4)
  assert.equal(await held(['ab', 'c']), 7)
  assert.equal(await held([1, 2, 3]), 5)
  assert.equal(await held([[1, 2, 3], [4]]), 8)
  assert.equal(await held('x'.repeat(20_000)), 8192)
  assert.equal(await held(['x'.repeat(20_000), 'x']), 8195)

  const { id, key: poor } = await g.account({ credits: 3_000_000n })
  const got = await post({ model: 'other-embed', input: 'ab' }, poor)
  assert.equal(got.status, 402)
  assert.match(got.body.error.message, /needs 4 credits, 3 are available/)
  assert.deepEqual(await g.balance(id), { posted: 3_000_000n, held: 0n })
})

test('a report is charged as it is, one that the model cannot have read as far as the hold covers it, and none is estimated', async () => {
  const vectors = '[ {"object":"embedding","index":0,"embedding":[0.6,0.8]} ]'
  const cases: Array<[usage: string, charge: string]> = [
    ['"usage":{"prompt_tokens":3,"total_tokens":3}', '3'],
    ['"usage":{"total_tokens":2}', '2'],
    ['"usage":{"prompt_tokens":10,"total_tokens":10}', '10'],
    ['"usage":{"prompt_tokens":11,"total_tokens":11}', '11'],
    ['"usage":{"prompt_tokens":900000000}', '10'],
    ['"usage":{"prompt_tokens":-1}', '2'],
    ['"usage":null', '2'],
  ]
  for (const [usage, charge] of cases) {
    const { id, key: own } = await g.account({ credits: 100_000_000n })
    g.mayExceedHold(id)
    other.answer = `{"object":"list","data":${vectors},"model":"their-embed",${usage}}`
    const got = await g.call(PATH, own, { model: 'other-embed', input: '12345678' })
    assert.equal(got.headers.get('x-tollgate-charge'), charge, usage)
    // Not a byte is changed but the name.
    assert.equal(await got.text(), other.answer.replace('their-embed', 'other-embed'))
    await g.settled()
    assert.deepEqual(await g.balance(id), { posted: 100_000_000n - BigInt(charge) * 1_000_000n, held: 0n })
  }
  for (const bad of words('{} [] {"data":null} {"data":[]} {"data":[1]} {"data":[{}] {"error":{"message":"no"}}')) {
    other.answer = bad
    const { id, key: own } = await g.account({ credits: 100_000_000n })
    const got = await post({ model: 'other-embed', input: 'x' }, own)
    assert.equal(got.status, 502, bad)
    await g.settled()
    assert.deepEqual(await g.balance(id), { posted: 100_000_000n, held: 0n })
  }
})

test('a key that is restricted to other models may not embed, and one for this model may do nothing else', async () => {
  const { key: other } = await g.account({ models: ['alpha-5.4'] })
  assert.equal((await post({ model: SMALL, input: 'x' }, other)).status, 403)
  const { key: only } = await g.account({ models: [SMALL] })
  assert.equal((await post({ model: SMALL, input: 'x' }, only)).status, 200)
  assert.equal((await post({ model: LARGE, input: 'x' }, only)).status, 403)
})

test('the same idempotency key gives the same answer again, and is charged once', async () => {
  const { id, key: own } = await g.account()
  const before = await g.balance(id)
  const body = { model: SMALL, input: 'once', dimensions: 4 }
  g.sandbox.seen.clear()
  const first = await post(body, own, { 'idempotency-key': 'embed-1' })
  const second = await post(body, own, { 'idempotency-key': 'embed-1' })
  assert.deepEqual(second.body, first.body)
  assert.equal(second.headers.get('idempotent-replayed'), 'true')
  assert.equal(g.sandbox.seen.requests, 1)
  await g.settled()
  const charged = Number(first.headers.get('x-tollgate-charge')) * 1_000_000
  assert.equal((await g.balance(id)).posted, before.posted - BigInt(Math.round(charged)))
  assert.equal((await post({ ...body, input: 'twice' }, own, { 'idempotency-key': 'embed-1' })).status, 409)
})

test('an embedding model without a price for input, or with a route of another kind, is refused by the catalog’s check', async () => {
  const problemsOf = async (change: (model: any) => void) => {
    const document: any = await readDefaultCatalog()
    change(document.models[SMALL])
    const checked = checkDocument(document)
    return checked.ok ? [] : checked.problems
  }
  assert.deepEqual(await problemsOf(() => {}), [])
  assert.deepEqual(await problemsOf((model) => (model.pricing.tiers = [{ output: '1' }])), [
    `models.${SMALL}.pricing: tier 0 has no price for "input"`,
  ])
  assert.deepEqual(await problemsOf((model) => (model.routes[0].protocol = 'openai-chat')), [
    `models.${SMALL}.routes.0.protocol: "openai-chat" does not serve embedding; that takes openai-embeddings`,
  ])
})

test('every member that the SDK can send has a rule, and what makes it another request is refused', () => {
  const types = readFileSync('node_modules/openai/resources/embeddings.d.ts', 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')
  const [, body = ''] = /export interface EmbeddingCreateParams \{([\s\S]*?)\n\}/.exec(types) ?? []
  const members = [...body.matchAll(/^ {4}(\w+)\??:/gm)].map(([, member = '']) => member)
  assert.ok(members.length > 1)
  const admitted = (value: object) => admitMembers(EMBEDDINGS_MEMBERS, readJson(Buffer.from(JSON.stringify(value))))
  assert.deepEqual(admitted(Object.fromEntries(members.map((member) => [member, null]))).unknown, [])
  assert.throws(() => admitted({ input: 'x', messages: [{}] }), /"messages"/)
})
