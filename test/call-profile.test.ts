// What a gateway has worked out about a key and a model is never older than what the operator has changed: each change
// is felt by the next call.
import { after, assert, BY, listen, test, testGateway, WITH_EXTENSIONS } from './gateway.ts'

const MODEL = 'followed'
/** What the vendor was asked last: its model, the temperature, the text, and the credential that came along. */
let asked = ''
const vendors = await Promise.all(
  ['one', 'two'].map((name) =>
    listen((request, response) => {
      let text = ''
      request.on('data', (piece) => {
        text += piece
      })
      request.on('end', () => {
        const { model, temperature, messages } = JSON.parse(text)
        asked = `${name} ${model} ${temperature} ${messages[0].content} ${request.headers.authorization ?? ''}`
        const message = { role: 'assistant', content: 'Yes.' }
        const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 }
        const answer = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message }] }
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ ...answer, usage }))
      })
    }),
  ),
)
after(() => Promise.all(vendors.map((one) => one.close())))
const [one, two] = vendors as [(typeof vendors)[0], (typeof vendors)[0]] // There are two of them.

const g = testGateway(() => ({
  catalog(document) {
    document.vendors.followed = { baseUrl: one.url, credential: 'FOLLOWED_KEY' }
    document.vendors.other = { baseUrl: two.url }
    document.models[MODEL] = {
      ...document.models['alpha-5.4'],
      routes: [{ vendor: 'followed', protocol: 'openai-chat', model: 'inner' }],
      limits: { contextTokens: 10_000, outputTokensMax: 1_000 },
    }
  },
}))

type Caller = { readonly id: string; readonly key: string; readonly keyId: string }

const ask = (key: string, body: object = {}) =>
  g.call('/v1/chat/completions', key, {
    model: MODEL,
    messages: [{ role: 'user', content: 'May I?' }],
    max_tokens: 20,
    temperature: 0,
    ...body,
  })
const model = (fields: object) => g.gateway.catalog.change(MODEL, { ...fields }, BY)
const amend = (edit: (document: any) => void) =>
  g.gateway.catalog.amend(
    (current) => {
      const document = structuredClone(current)
      edit(document)
      return document
    },
    BY,
    'test',
  )
const setKey = ({ keyId }: Caller, fields: object) => g.operator('PATCH', `/keys/${keyId}`, fields)
const route = { vendor: 'followed', protocol: 'openai-chat', model: 'inner' }
const pricing = (output: string) => ({ unit: 'credits', tiers: [{ input: '250', output }] })
const setSecret = (value: string) => g.operator('PUT', '/vendors/followed/credentials/FOLLOWED_KEY', { value })

/** A change of one input of the profile, what the next call meets by it, and the way back. */
const CHANGES: Record<string, [change: (who: Caller) => unknown, met: RegExp, back: (who: Caller) => unknown]> = {
  'the models of the key': [
    (who) => setKey(who, { models: ['beta-haiku-4-5'] }),
    /^403/,
    (who) => setKey(who, { models: null }),
  ],
  'the endpoints of the key': [
    (who) => setKey(who, { endpoints: ['embeddings'] }),
    /^403/,
    (who) => setKey(who, { endpoints: null }),
  ],
  'labels that the key must carry': [
    (who) => setKey(who, { requiredLabels: ['user'] }),
    /^400/,
    (who) => setKey(who, { requiredLabels: null }),
  ],
  'the vendors of the key': [
    (who) => setKey(who, { routing: { vendors: ['other'] } }),
    /^403/,
    (who) => setKey(who, { routing: null }),
  ],
  'the cache of the key': [
    (who) => setKey(who, { responseCache: true }),
    /^200 .* miss/,
    (who) => setKey(who, { responseCache: null }),
  ],
  'a limit of the key': [
    (who) => setKey(who, { limits: { spendTotal: '0.001' } }),
    /^429/,
    (who) => setKey(who, { limits: { spendTotal: null } }),
  ],
  'a limit of the account': [
    ({ id }) => g.operator('PATCH', `/accounts/${id}`, { limits: { spendTotal: '0.001' } }),
    /^429/,
    ({ id }) => g.operator('PATCH', `/accounts/${id}`, { limits: { spendTotal: null } }),
  ],
  'a model that is switched off': [() => model({ enabled: false }), /^404/, () => model({ enabled: true })],
  'the formats of the model': [
    () => model({ clientFormats: ['openai-responses'] }),
    /^400/,
    () => model({ clientFormats: ['openai-chat', 'openai-responses'] }),
  ],
  'the price of the model': [
    () => model({ pricing: pricing('150000') }),
    /^200 1\.5025 /,
    () => model({ pricing: pricing('1500') }),
  ],
  'the traits of the model': [
    () => model({ traits: { dropParams: ['temperature'] } }),
    / inner undefined /,
    () => model({ traits: {} }),
  ],
  'a route that is switched off': [
    () => model({ routes: [{ ...route, enabled: false }] }),
    /^400|^404|^503/,
    () => model({ routes: [route] }),
  ],
  'the model’s name at the vendor': [
    () => model({ routes: [{ ...route, model: 'renamed' }] }),
    / renamed /,
    () => model({ routes: [route] }),
  ],
  'the address of the vendor': [
    () => amend(({ vendors }) => Object.assign(vendors.followed, { baseUrl: two.url })),
    / two inner /,
    () => amend(({ vendors }) => Object.assign(vendors.followed, { baseUrl: one.url })),
  ],
  'the credential of the vendor': [() => setSecret('second'), /Bearer second/, () => setSecret('first')],
  'a rule of the catalog': [
    () =>
      amend((document) =>
        Object.assign(document, { routing: { rules: [{ name: 'r', when: {}, regions: ['nowhere'] }] } }),
      ),
    /^403/,
    () => amend((document) => delete document.routing),
  ],
}

/** What a call meets: status, charge, cache, and what its vendor was asked. */
async function meets(key: string): Promise<string> {
  asked = ''
  const answer = await ask(key)
  await answer.arrayBuffer()
  const { headers } = answer
  return `${answer.status} ${headers.get('x-tollgate-charge')} ${headers.get('x-cache') ?? 'none'} ${asked}`
}

for (const [what, [change, met, back]] of Object.entries(CHANGES))
  test(`${what} changes what the next call meets, and back`, async () => {
    const who = await g.account()
    await setSecret('first')
    // Warm: the profile is worked out, and a lease covers the key's calls.
    for (let i = 0; i < 5; i++) assert.match(await meets(who.key), /^200 .* none one inner 0 May I\? Bearer first$/)
    await change(who)
    assert.match(await meets(who.key), met)
    await back(who)
    assert.match(await meets(who.key), /^200 .* none one inner 0 May I\? Bearer first$/)
  })

test('a key that is revoked, and an account that is closed, are refused at once', async () => {
  const [revoked, closed] = [await g.account(), await g.account()]
  for (const { key } of [revoked, closed]) for (let i = 0; i < 5; i++) assert.match(await meets(key), /^200/)
  await g.operator('DELETE', `/keys/${revoked.keyId}`)
  assert.match(await meets(revoked.key), /^401/)
  await g.operator('POST', `/accounts/${closed.id}/suspend`, { reason: 'A test.' })
  assert.match(await meets(closed.key), /^403/)
})

test('a guardrail of the catalog is for the next call', WITH_EXTENSIONS, async () => {
  const { key } = await g.account()
  for (let i = 0; i < 3; i++) assert.match(await meets(key), /^200/)
  await amend((document) => Object.assign(document, { guardrails: { hide: { redact: { patterns: ['email'] } } } }))
  await (await ask(key, { messages: [{ role: 'user', content: 'Write to ann@example.com.' }] })).arrayBuffer()
  assert.doesNotMatch(asked, /ann@example/)
  await amend((document) => delete document.guardrails)
  assert.match(await meets(key), /^200/)
})
