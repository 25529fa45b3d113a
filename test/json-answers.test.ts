// `x-tollgate-json`: answers that are repaired, and answers that are checked, in the four formats; charged as the
// vendor billed them.
import type { CatalogInput } from '../src/catalog/document.ts'
import type { ClientFormatName } from '../src/meter/kind.ts'
import { MODEL, startVendor, usage, wholeAnswer } from './faults/chat-vendor.ts'
import { CLIENT_FORMATS, FORMATS, requestTo } from './formats.ts'
import { assert, started, startGateway, test } from './gateway.ts'

let text = ''
const vendor = started(() =>
  startVendor(({ response }) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer(text, usage(10, 20))),
  ),
)
const g = started(() =>
  startGateway({
    catalog(document: CatalogInput) {
      document.vendors.mock = { baseUrl: vendor.url }
      document.models[MODEL] = {
        name: 'Writer',
        type: 'text',
        family: 'fault',
        clientFormats: [...CLIENT_FORMATS],
        pricing: { unit: 'credits', tiers: [{ input: '100000', output: '100000' }] },
        routes: [{ vendor: 'mock', protocol: 'openai-chat', model: 'writer' }],
        cache: { ttlSeconds: 60 },
      }
    },
  }),
)

const SCHEMA = { type: 'object', required: ['name'], properties: { name: { type: 'string' } } }
const json_schema = { name: 'who', schema: SCHEMA }
const WISHES: Record<ClientFormatName, object> = {
  'openai-chat': { response_format: { type: 'json_schema', json_schema } },
  'openai-responses': { text: { format: { type: 'json_schema', ...json_schema } } },
  'anthropic-messages': { output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
  gemini: { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: SCHEMA } },
}

async function ask(key: string, format: ClientFormatName, wish: string, more: object = {}, headers = {}) {
  const asked = { ...FORMATS[format].body('Who? As JSON.'), ...WISHES[format], ...more }
  const { path, body } = requestTo(format, MODEL, asked)
  const response = await g.call(path, key, body, {
    headers: { ...(wish ? { 'x-tollgate-json': wish } : {}), ...headers },
  })
  const answer = (await response.json()) as any
  return { status: response.status, state: response.headers.get('x-tollgate-json'), answer }
}

const BILLED = 3_000_000n

for (const format of CLIENT_FORMATS)
  test(`${format}: what a model writes beside JSON is repaired, and what does not fit is said`, async () => {
    const { id, key } = await g.account()
    let paid = 0n
    const cases: Array<[said: string, wish: string, status: number, state: string | null, read?: unknown]> = [
      ['{"name":"Ada"}', 'repair', 200, 'valid', { name: 'Ada' }],
      ['Sure!\n```json\n{name: "Ada",}\n```', 'repair', 200, 'repaired', { name: 'Ada' }],
      ['{"nam": "Ada"', 'repair', 200, 'invalid', { nam: 'Ada' }],
      ['I cannot.', 'repair', 200, 'invalid'],
      ['{"name":"Ada"}', 'check', 200, 'valid', { name: 'Ada' }],
      ['{"name": "Ada"', 'check', 422, null],
      ['{"name":7}', 'check', 422, null],
      ['{"name": "Ada"', 'repair, check', 200, 'repaired', { name: 'Ada' }],
      ['{"name": 7', 'check,repair', 422, null],
      ['I cannot.', '', 200, null],
    ]
    for (const [said, wish, status, state, read] of cases) {
      text = said
      const got = await ask(key, format, wish)
      assert.deepEqual([got.status, got.state], [status, state], `${said} ${wish} ${JSON.stringify(got.answer)}`)
      if (read !== undefined) assert.deepEqual(JSON.parse(FORMATS[format].textOf(got.answer)), read)
      if (status === 200 && read === undefined) assert.equal(FORMATS[format].textOf(got.answer), said)
      if (status === 422) assert.match(JSON.stringify(got.answer), /is not JSON|must be (?:a text|there)/)
      paid += BILLED
      await g.settled()
      assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n - paid, held: 0n }, `${said} ${wish}`)
    }
  })

test('an answer that does not fit is charged once under one idempotency key: its repetition hears the same', async () => {
  const { id, key } = await g.account()
  text = '{"name":7}'
  const count = vendor.calls.length
  const first = await ask(key, 'anthropic-messages', 'check', {}, { 'idempotency-key': 'unfit' })
  await g.settled()
  const again = await ask(key, 'anthropic-messages', 'check', {}, { 'idempotency-key': 'unfit' })
  assert.deepEqual([first.status, again.status, vendor.calls.length - count], [422, 422, 1])
  assert.deepEqual(again.answer.error, first.answer.error)
  assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n - BILLED, held: 0n })
})

test('a stream and a word that nobody knows are rejected by the header, and nothing is held', async () => {
  const { id, key } = await g.account()
  for (const [wish, more] of [
    ['repair', { stream: true }],
    ['mend', {}],
  ] as const) {
    const { status, answer } = await ask(key, 'openai-chat', wish, more)
    assert.equal(status, 400)
    assert.match(JSON.stringify(answer), /x-tollgate-json/)
  }
  assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n, held: 0n })
  // Who sends it with every request is not stopped where no JSON was asked for.
  text = 'Just words.'
  const plain = await ask(key, 'openai-chat', 'check', { response_format: { type: 'text' } })
  assert.deepEqual([plain.status, plain.state], [200, null])
  const none = await ask(key, 'openai-chat', 'check', { response_format: { type: 'json_object' } })
  assert.equal(none.status, 422)
})

test("OpenRouter's plugin repairs too, whatever the stream, and other plugins stay rejected", async () => {
  const { key } = await g.account()
  text = '{"name": "Ada",}'
  const plugins = [{ id: 'response-healing' }]
  const healed = await ask(key, 'openai-chat', '', { plugins })
  assert.deepEqual([healed.status, healed.state], [200, 'repaired'])
  assert.ok(!vendor.calls.at(-1)!.body.includes('plugins":[{'))
  const off = await ask(key, 'openai-chat', '', { plugins: [{ id: 'response-healing', enabled: false }] })
  assert.deepEqual([off.status, off.state], [200, null])
  const other = await ask(key, 'openai-chat', '', { plugins: [...plugins, { id: 'web' }] })
  assert.equal(other.status, 400)
  assert.match(JSON.stringify(other.answer), /plugins/)
})

test('a schema that cannot be read is not checked, and one that is large costs no time', async () => {
  const { key } = await g.account({ credits: 1_000_000_000_000n })
  text = '{"name":"Ada"}'
  const many = Array.from({ length: 20_000 }, (_, index) => ({ name: `a${index}` }))
  for (const schema of [
    { $ref: '#/$defs/%zz' },
    { type: 'object', properties: { name: null } },
    { properties: { name: { type: 'string', pattern: '(' } } },
    { anyOf: [{ enum: many }, {}] },
  ]) {
    const json_schema = { name: 'who', schema }
    const got = await ask(key, 'openai-chat', 'check', { response_format: { type: 'json_schema', json_schema } })
    assert.deepEqual([got.status, got.state], [200, 'valid'], JSON.stringify(schema).slice(0, 60))
  }
})

test('answers that failed a check are not cached, and a key that is used again is bound to the header', async () => {
  const { key } = await g.account()
  const cached = { temperature: 0 }
  text = '{"nam": 1}'
  assert.equal((await ask(key, 'openai-chat', 'check', cached)).status, 422)
  text = '{"name": "B"'
  assert.equal((await ask(key, 'openai-chat', 'repair,check', cached)).status, 200)
  text = '{"name": "C"}'
  assert.equal((await ask(key, 'openai-chat', 'check', cached)).status, 200)
  const once = { 'idempotency-key': 'one' }
  assert.equal((await ask(key, 'openai-chat', 'repair', {}, once)).status, 200)
  assert.equal((await ask(key, 'openai-chat', 'check', {}, once)).status, 409)
})
