// Rules of the catalog: by key, label, header or model a call goes to certain vendors or another model, and what is too
// long goes to a model that reads more.
import { checkDocument } from '../src/catalog/document.ts'
import { after, assert, test, testGateway } from './gateway.ts'
import { scriptedVendor } from './scripted-vendor.ts'

const north = await scriptedVendor('north')
const south = await scriptedVendor('south')
after(() => {
  north.close()
  south.close()
})

const price = (input: string, output: string) => ({ unit: 'credits', tiers: [{ input, output }] })
const RULES = [
  { name: 'gold', when: { labels: { plan: 'gold' } }, prefer: ['south'] },
  { name: 'in house', when: { headers: { 'x-house': 'yes' }, models: ['plain'] }, only: ['south'] },
  { name: 'trial', when: { headers: { 'x-trial': '1' } }, model: 'small' },
  { name: 'nowhere', when: { headers: { 'x-nowhere': '1' } }, ignore: ['north', 'south'] },
]

let keyId: string
let key: string
let account: string
let whole: any
const g = testGateway(
  {
    catalog(document) {
      document.vendors.north = { baseUrl: north.url }
      document.vendors.south = { baseUrl: south.url }
      const routes = ['north', 'south'].map((vendor, order) => ({ vendor, protocol: 'openai-chat', model: 'm', order }))
      const base = {
        ...document.models['alpha-5.4'],
        family: 'plain',
        traits: {},
        clientFormats: ['openai-chat'],
        routes,
      }
      document.models.plain = { ...base, pricing: price('1000000', '1000000') }
      const limits = { contextTokens: 60, outputTokensMax: 50 }
      document.models.small = { ...base, limits, contextFallback: 'plain', pricing: price('100000', '100000') }
      document.routing = { rules: RULES }
      whole = document
    },
  },
  async () => {
    ;({ key, keyId, id: account } = await g.account({ credits: 10_000_000_000n }))
  },
)

const HELLO = [{ role: 'user', content: 'Hi.' }]

async function ask(body: object, headers: Record<string, string> = {}): Promise<string> {
  const answer = await g.call(
    '/v1/chat/completions',
    key,
    { model: 'plain', messages: HELLO, max_tokens: 20, ...body },
    { headers },
  )
  const said = (await answer.json()) as { model?: string; choices?: { message: { content: string } }[] }
  return answer.status === 200 ? `${said.model} ${said.choices?.[0]?.message.content}` : String(answer.status)
}

async function last() {
  const { product, charged, log } = await g.lastCall(account)
  return { product, charged, decided: log?.decided ?? null }
}

test('a rule chooses vendors or the model by label, header and model; the caller’s own order comes before', async () => {
  assert.equal(await ask({}), 'plain from north')
  assert.equal(await ask({}, { 'x-tollgate-tags': 'plan=gold' }), 'plain from south')
  assert.equal(await ask({}, { 'x-tollgate-tags': 'plan=silver' }), 'plain from north')
  assert.equal(await ask({ provider: { order: ['north'] } }, { 'x-tollgate-tags': 'plan=gold' }), 'plain from north')
  assert.equal(await ask({}, { 'x-house': 'yes' }), 'plain from south')
  assert.equal(await ask({ model: 'small' }, { 'x-house': 'yes' }), 'small from north')
  assert.equal(await ask({}, { 'x-nowhere': '1' }), '403')
  assert.equal(await ask({}, { 'x-trial': '1' }), 'small from north')
  assert.deepEqual(await last(), {
    product: 'small',
    charged: 1_500_000n,
    decided: ['The rule "trial" leads to "small".'],
  })
})

test('what is too long for a model goes to the one that reads more, before a vendor is called, at that one’s price', async () => {
  const before = north.sent.length
  const long = [{ role: 'user', content: 'A word. '.repeat(200) }]
  assert.equal(await ask({ model: 'small', messages: long }), 'plain from north')
  assert.equal(north.sent.length, before + 1)
  assert.deepEqual(await last(), {
    product: 'plain',
    charged: 15_000_000n,
    decided: ['The request is too long for "small", which leads to "plain".'],
  })
})

test('a rule for a key holds for the key that replaces it', async () => {
  const document = structuredClone(whole)
  document.routing.rules = [{ name: 'one key', when: { keys: [keyId] }, only: ['south'] }]
  const applied = await g.operator('PUT', '/catalog', { document, note: 'a rule for a key' })
  assert.ok(applied.status < 300, JSON.stringify(applied.data))
  assert.equal(await ask({}), 'plain from south')
  const next = await g.operator<{ key: string }>('POST', `/keys/${keyId}/rotate`, {})
  key = next.data.key
  assert.equal(await ask({}), 'plain from south')
})

test('a rule that names what is not there is not applied', () => {
  const problems = (change: (document: any) => void) => {
    const document = structuredClone(whole)
    change(document)
    const checked = checkDocument(document)
    return checked.ok ? [] : checked.problems
  }
  const rule = (fields: object) => problems((one) => Object.assign(one.routing, { rules: [{ name: 'x', ...fields }] }))
  assert.match(rule({ only: ['mars'] }).join(), /routing\.rules\.0\.only: there is no vendor "mars"/)
  assert.match(rule({ model: 'mars' }).join(), /there is no model "mars"/)
  assert.match(rule({ when: { headers: { authorization: 'x' } } }).join(), /when\.headers\.authorization/)
  assert.match(
    problems((one) => Object.assign(one.models.plain, { contextFallback: 'small' })).join(),
    /more contextTokens/,
  )
  assert.deepEqual(rule({ prefer: ['south'] }), [])
})
