// A model that there is not: every format says which name was asked for, and which one the key may use instead.
import { GoogleGenAI } from '@google/genai'
import type { EndpointSpec } from '../src/catalog/endpoint.ts'
import {
  assert,
  OFFERED,
  OPERATOR_TOKEN,
  startGateway,
  test,
  testGateway,
  WITH_EXTENSIONS,
  whereOffered,
} from './gateway.ts'

const g = testGateway({ isShared: true })
const messages = [{ role: 'user', content: 'Hello' }]

const REQUESTS: readonly [path: string, body: (model: string) => object, asked: string, meant: string][] = [
  ['/v1/chat/completions', (model) => ({ model, messages }), 'alpha-54', 'alpha-5.4'],
  ['/v1/responses', (model) => ({ model, input: 'Hello' }), 'Alpha 5.5', 'alpha-5.5'],
  ['/beta/v1/messages', (model) => ({ model, max_tokens: 9, messages }), 'beta-haiku-4.5', 'beta-haiku-4-5'],
  ['/v1/embeddings', (model) => ({ model, input: 'Hello' }), 'alpha-embed-small', 'alpha-embed-3-small'],
  ['/alpha/v1/images/generations', (model) => ({ model, prompt: 'A cat' }), 'alpha-image-3', 'alpha-image-2'],
  ['/v1/video/seedance', (model) => ({ model, prompt: 'A cat' }), 'videogen-2', 'videogen-2.0'],
]

for (const [path, body, asked, meant] of REQUESTS)
  test(
    `${path} offers ${meant} to whoever asks for ${asked}`,
    whereOffered(path.endsWith('/embeddings') ? 'embeddings' : 'chat'),
    async () => {
      const { key } = await g.account()
      const answer = await g.call(path, key, body(asked))
      const said = JSON.stringify(await answer.json())
      assert.equal(answer.status, 404)
      assert.ok(said.includes(`The model \\"${asked}\\" does not exist`), said)
      assert.ok(said.includes(`Did you mean \\"${meant}\\"?`), said)
    },
  )

test('a model that is asked for by its name at the vendor is told the name under which it is offered', async () => {
  const vendor = await startGateway({
    catalog(document) {
      document.models['alpha-5.4'].routes[0].model = 'maker/gpt-5.4'
    },
  })
  const { key } = await vendor.account()
  for (const asked of ['gpt-5.4', 'maker/gpt-5.4']) {
    const said = await (await vendor.call('/v1/chat/completions', key, { model: asked, messages })).text()
    assert.match(said, /It is offered here as ..alpha-5.4../)
  }
  const { key: other } = await vendor.key((await vendor.account()).id, { models: ['beta-haiku-4-5'] })
  assert.doesNotMatch(
    await (await vendor.call('/v1/chat/completions', other, { model: 'gpt-5.4', messages })).text(),
    /alpha-5.4/,
  )
  await vendor.close()
})

test('the Gemini format says it in the address’s own words', WITH_EXTENSIONS, async () => {
  const { key } = await g.account()
  const google = new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: `${g.url}/gemini` } })
  const asked = google.models.generateContent({ model: 'no-such-model', contents: 'Hello' })
  await assert.rejects(asked, /The model .*no-such-model.* does not exist/)
})

test('only a model that the key may use is offered, and none where nothing is near', async () => {
  const { id } = await g.account()
  const { key } = await g.key(id, { models: ['beta-haiku-4-5'] })
  const ask = async (model: string) => (await g.call('/v1/chat/completions', key, { model, messages })).text()
  assert.doesNotMatch(await ask('alpha-5.44'), /Did you mean/)
  assert.match(await ask('beta-haiku'), /Did you mean ..beta-haiku-4-5/)
})

test('the name is kept to its first 100 characters in one line, without a key that somebody put there', async () => {
  const { id, key } = await g.account()
  const long = `x\n\u0000${'y'.repeat(300)}`
  for (const model of [long, key]) {
    const said = await (await g.call('/v1/chat/completions', key, { model, messages })).text()
    assert.ok(!said.includes('y'.repeat(98)) && !said.includes(key), said)
  }
  await g.gateway.refusals.flush()
  const listed = await (await g.call(`/admin/v1/accounts/${id}/usage?outcome=rejected`, OPERATOR_TOKEN)).json()
  const told = (listed as { data: { items: { message: string }[] } }).data.items.map(({ message }) => message)
  assert.deepEqual(
    told.map((one) => one.slice(0, 21)).sort(),
    ['The model "[secret]" d', 'The model "x\\n\\u0000y'].map((one) => one.slice(0, 21)).sort(),
  )
})

test('a key that is made for a model which there is not is refused with the nearest one', async () => {
  const { id } = await g.account()
  const answer = await g.call(`/admin/v1/accounts/${id}/keys`, OPERATOR_TOKEN, { name: 'x', models: ['alpha-5.44'] })
  assert.match(await answer.text(), /there is no model ..alpha-5\.44...? Did you mean ..alpha-5\.4/)
})

/** Free endpoints that are asked about a model, whose address or body names it. */
const ASKED_ABOUT = OFFERED.filter(
  ({ path, method, body, sells }) =>
    sells === undefined &&
    (path.includes('{model}') || (method === 'POST' && Object.hasOwn((body?.properties ?? {}) as object, 'model'))),
)
const ASKED: Readonly<Record<string, object>> = {
  count_tokens: { messages },
  messages: { max_tokens: 9, messages },
  'responses/input_tokens': { input: 'Hello' },
  responses: { input: 'Hello' },
  'conversations/create': {},
  'gemini/count_tokens': { contents: [{ parts: [{ text: 'Hello' }] }] },
  gemini: { contents: [{ parts: [{ text: 'Hello' }] }] },
}

test('every free endpoint that is asked about a model names the paid one whose models it knows', () => {
  const without = ASKED_ABOUT.filter(({ modelOf }) => !OFFERED.some(({ id, sells }) => id === modelOf && sells))
  assert.deepEqual(without, [])
  assert.ok(ASKED_ABOUT.length >= (WITH_EXTENSIONS.skip ? 2 : 4))
  assert.deepEqual(
    ASKED_ABOUT.map(({ id }) => id).filter((id) => !(id in ASKED)),
    [],
  )
})

for (const spec of ASKED_ABOUT)
  test(`${spec.path} refuses the models that ${spec.modelOf} refuses, in its words, by every address`, async () => {
    const paid = OFFERED.find(({ id }) => id === spec.modelOf)!
    const { id, key } = await g.account()
    const { key: restricted } = await g.key(id, { models: ['alpha-5.4-mini'] })
    const asked = async (endpoint: EndpointSpec, path: string, [model, as]: readonly [string, string]) => {
      const answer = await g.call(path.replace('{model}', model), as, { model, ...ASKED[endpoint.id] })
      const { error } = (await answer.json()) as { error?: { message: string } }
      return [answer.status, error?.message]
    }
    for (const path of [spec.path, ...spec.aliases])
      for (const whose of [
        ['no-such-model', key],
        ['alpha-image-2', key],
        ['alpha-5.4', restricted],
        ['beta-haiku-4-5', restricted],
        // Each of these is not offered in some of the formats.
        ['alpha-5.4', key],
        ['beta-haiku-4-5', key],
        ['delta-3.8-flash', key],
      ] as const) {
        const wanted = await asked(paid, paid.path, whose)
        assert.deepEqual(await asked(spec, path, whose), wanted, `${path} ${whose[0]}`)
      }
  })

test('a quote is refused like the call that it is about', async () => {
  const { id, key } = await g.account()
  const { key: restricted } = await g.key(id, { models: ['alpha-5.4-mini'] })
  for (const [model, as] of [
    ['no-such-model', key],
    ['alpha-image-2', key],
    ['alpha-5.4', restricted],
  ] as const) {
    const [call, quote] = await Promise.all(
      ['/v1/chat-completions', '/v1/quote?endpoint=chat'].map((path) => g.call(path, as, { model, messages })),
    )
    assert.ok(call!.status >= 400)
    assert.equal(quote!.status, call!.status)
    assert.equal(((await quote!.json()) as any).error.message, ((await call!.json()) as any).message)
  }
})
