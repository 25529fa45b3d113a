// F79: whichever way a call takes, a charge above its hold is seen by the one assertion of the ledger: logged, counted,
// alerted, and told on the call's page.
import OpenAI from 'openai'
import { silentLog } from '../src/kernel/log.ts'
import { openedAlerts } from './alerts.ts'
import { answered, sendBatch } from './batches.ts'
import { assert, BY, type Call, listen, started, test, testGateway, textOf, until } from './gateway.ts'
import { connect } from './mcp/client.ts'
import { scriptedVendor } from './scripted-vendor.ts'
import { openSocket } from './socket-client.ts'

const MODEL = 'writes-on'
const MESSAGES = [{ role: 'user' as const, content: 'Hi' }]
const OWN_KEY = 'sk-own-0000000000bbbb'
const warned: string[] = []
/** Says it wrote 3,000 tokens, whatever it was told. */
const vendor = started(() => scriptedVendor('one'))
/** Its answer says that it cost 99. */
const shop = started(() =>
  listen((_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"cost":99}')),
)

const log = { ...silentLog, warn: (_: object, message: string) => void warned.push(message) }
const g = testGateway(() => ({
  log,
  env: { HOUSE_KEY: 'sk-house' },
  catalog(document) {
    vendor.script = { outputTokens: 3_000 }
    document.vendors.any = { baseUrl: vendor.url }
    document.vendors.dead = { baseUrl: 'http://127.0.0.1:9' }
    document.vendors.keyed = { baseUrl: vendor.url, credential: 'HOUSE_KEY', byokFee: { call: '0.01' } }
    document.vendors.shop = { baseUrl: shop.url }
    const model = (at: string, more: object = {}) => ({
      name: at,
      type: 'text',
      family: 'any',
      clientFormats: ['openai-chat', 'openai-responses'],
      limits: { contextTokens: 100_000, outputTokensMax: 4_000 },
      pricing: { unit: 'credits', tiers: [{ input: '100', output: '1000' }] },
      routes: [{ vendor: at, protocol: 'openai-chat', model: 'm' }],
      ...more,
    })
    document.models[MODEL] = model('any', { batchFactor: '0.5' })
    document.models.dead = model('dead')
    document.models.keyed = model('keyed')
    document.models.kept = model('any', { cache: { ttlSeconds: 60 } })
    document.products = {
      sold: {
        title: 'Sold',
        operations: {
          buy: {
            title: 'Buy',
            route: 'GET /buy',
            vendorPath: 'buy',
            params: {},
            counts: { metered: { expression: 'min(answer.cost, 5)' } },
          },
        },
      },
    }
    document.endpoints['sold/buy'] = {
      routes: [{ vendor: 'shop', protocol: 'http-api' }],
      pricing: { unit: 'credits', tiers: [{ call: '0', metered: '1' }] },
    }
  },
}))

type Account = { readonly id: string; readonly key: string }

async function counted(): Promise<number> {
  const { key } = await g.account()
  const metrics = await (await g.call('/metrics', key)).text()
  const found = [...metrics.matchAll(/^tollgate_charges_above_hold_total(?:\{.*\})? (\d+)$/gm)]
  return found.reduce((sum, [, count]) => sum + Number(count), 0)
}

const clientOf = ({ key }: Account) => new OpenAI({ apiKey: key, baseURL: `${g.url}/v1`, maxRetries: 0 })
async function chat({ key }: Account, model: string, more: object = {}): Promise<string> {
  const text = await textOf(g.call('/v1/chat/completions', key, { model, messages: MESSAGES, max_tokens: 10, ...more }))
  return text
}

/** The ways on which a vendor can report more than it was told. */
const WAYS: Record<string, (account: Account) => Promise<unknown>> = {
  whole: (account) => chat(account, MODEL),
  stream: (account) => chat(account, MODEL, { stream: true }),
  fallback: (account) => chat(account, 'dead', { models: [MODEL] }),
  async 'a socket of Responses'({ key }) {
    const socket = await openSocket(`${g.url}/v1/responses`, { key })
    socket.send({ type: 'response.create', model: MODEL, input: 'Hi', store: false, max_output_tokens: 16 })
    await socket.next('response.completed', 'response.incomplete')
    socket.ws.close()
  },
  async 'a Realtime session'({ key }) {
    const socket = await openSocket(`${g.url}/v1/realtime?model=alpha-realtime-1`, { key })
    await socket.next('session.created')
    const content = [{ type: 'input_text', text: '[[ignore-cap]] [[long=100000]] Go on.' }]
    socket.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
    socket.send({ type: 'response.create', response: { max_output_tokens: 10 } })
    await socket.next('response.done')
    socket.ws.close()
  },
  async background(account) {
    const { responses } = clientOf(account)
    const { id } = await responses.create({ model: MODEL, input: 'Hi', background: true, max_output_tokens: 16 })
    await until(async () => ['completed', 'incomplete'].includes((await responses.retrieve(id)).status ?? ''))
  },
  async batch({ key }) {
    await answered(g, key, await sendBatch(g, key, [{ model: MODEL, max_tokens: 10, messages: MESSAGES }]))
  },
  async tool({ key }) {
    const client = await connect(g.url, key)
    const asked = { model: MODEL, prompt: 'Hi', max_tokens: 10 }
    const result = await client.callTool({ name: 'ask_model', arguments: asked })
    assert.ok(!(result as { isError?: boolean }).isError, JSON.stringify(result))
    await client.close()
  },
}

let seen = 0
for (const [name, call] of Object.entries(WAYS))
  test(`a charge above its hold is seen: ${name}`, async () => {
    const account = await g.account()
    g.mayExceedHold(account.id)
    warned.length = 0
    await call(account)
    const rows = await g.calls(account.id)
    assert.equal(rows.length, 1)
    const [{ charged, held, log: told }] = rows as [Call]
    assert.ok(charged > held, `${charged} of ${held}`)
    assert.match(told?.aboveHold ?? '', /^the vendor reports \d+ output tokens for at most \d+\.$/)
    seen += 1
    await until(counted, seen)
    assert.ok(warned.includes('charge above its hold'), warned.join())
  })

test('the vendors that did it are alerted', async () => {
  await openedAlerts(g).look()
  const { items } = await openedAlerts(g).list('', { limit: 10 })
  assert.ok(items.some(({ title }) => title === 'Calls of any use more than was held'))
})

/** The ways on which nothing can: what is charged is known, or bounded by the price itself. */
const BOUNDED: Record<string, (account: Account) => Promise<unknown>> = {
  async product({ key }) {
    const answer = await g.call('/v1/sold/buy', key)
    assert.equal(answer.status, 200, await answer.text())
  },
  async 'a fee for BYOK keys'(account) {
    const origin = new URL(vendor.url).origin
    await g.gateway.byokKeys.store(account.id, { vendor: 'keyed', value: OWN_KEY, fallback: false, origin }, BY)
    await chat(account, 'keyed')
  },
  async cache(account) {
    g.mayExceedHold(account.id)
    // The first call is the vendor's, and the second a hit, which holds exactly what it costs.
    await chat(account, 'kept', { temperature: 0 })
    await chat(account, 'kept', { temperature: 0 })
  },
}

for (const [name, call] of Object.entries(BOUNDED))
  test(`a charge cannot be above its hold: ${name}`, async () => {
    const account = await g.account()
    await call(account)
    const { charged, held, log: told } = (await g.calls(account.id)).at(-1)!
    assert.ok(charged > 0n && charged === held, `${charged} of ${held}`)
    assert.equal(told?.aboveHold, undefined)
  })
