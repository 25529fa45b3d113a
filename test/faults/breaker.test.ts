// F60: one tenant makes a vendor fail, and the others do not notice. And what a trace tells of the attempts.
import { realWorld } from '../../src/kernel/world.ts'
import { startReceiver } from '../job-engine.ts'
import { after, assert, started, test, until } from '../kit.ts'
import {
  CHAT_PATH,
  type ChatVendor,
  chatBody,
  startFaultGateway,
  startVendor,
  usage,
  wholeAnswer,
} from './chat-vendor.ts'
import { count } from './raw-client.ts'

/** Moved by the tests: breakers are open for seconds. */
let aheadMs = 0
const vendor = started(startVendor)
const collector = started(() => startReceiver(() => 200))
const g = started(() =>
  startFaultGateway({
    vendors: { mock: { baseUrl: vendor.url } },
    world: { ...realWorld, elapsedMs: () => realWorld.elapsedMs() + aheadMs },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${collector.host}` },
  }),
)
after(() => g.settled())

const fine: ChatVendor['answer'] = ({ response }) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(wholeAnswer('fine', usage(1, 1)))
const dead: ChatVendor['answer'] = ({ response }) => response.writeHead(500).end()
/** A vendor that cannot digest one kind of request. */
const delicate: ChatVendor['answer'] = (call) => (call.prompt === 'poison' ? dead(call) : fine(call))

const status = async (key: string, prompt = 'hello') => {
  const answer = await g.call(CHAT_PATH, key, chatBody(prompt))
  await answer.text()
  return answer.status
}

test('a tenant whose requests make a vendor fail closes it to nobody else, and does not take the probe', async () => {
  vendor.answer = delicate
  const [bad, good] = [await g.account(), await g.account()]
  for (const _ of count(8)) {
    await Promise.all([...count(6)].map(() => status(bad.key, 'poison')))
    // Alone at first: nobody has shown since that the vendor is well.
    assert.equal(await status(good.key), 200)
    const mixed = [...count(20)].map((index) => (index % 2 ? status(good.key) : status(bad.key, 'poison')))
    const answers = await Promise.all(mixed)
    for (const index of count(20)) if (index % 2) assert.equal(answers[index], 200)
    // The pause is over: whoever comes first probes.
    aheadMs += 61_000
    assert.equal(await status(bad.key, 'poison'), 502)
    assert.equal(await status(good.key), 200)
  }
  aheadMs += 61_000
  assert.equal(await status(bad.key), 200, 'and the tenant is served as soon as its requests are good')
})

test('a vendor that fails for everybody is left alone, and serves everybody after one success', async () => {
  vendor.answer = dead
  const accounts = await Promise.all([...count(4)].map(() => g.account()))
  const [first, second, third, fresh] = accounts.map(({ key }) => key) as [string, string, string, string]
  for (const key of [first, second, third]) await status(key)
  vendor.calls.length = 0
  for (const { key } of accounts) assert.equal(await status(key), 503)
  assert.equal(vendor.calls.length, 0, 'it was asked all the same')
  aheadMs += 5_100
  // One probe that fails shuts out its own account, and the next may try.
  assert.equal(await status(first), 502)
  assert.equal(await status(first), 503)
  vendor.answer = fine
  assert.equal(await status(fresh), 200)
  for (const { key } of accounts) assert.equal(await status(key), 200)
})

test('an account that is alone finds a dead vendor closed, as before', async () => {
  vendor.answer = dead
  const { key } = await g.account()
  for (const _ of count(3)) await status(key)
  vendor.calls.length = 0
  assert.equal(await status(key), 503)
  assert.equal(vendor.calls.length, 0)
  assert.equal(g.gateway.vendors.health().find(({ name }) => name === 'mock')?.breaker, 'open')
  vendor.answer = fine
  assert.equal(await status((await g.account()).key), 200)
  assert.equal(g.gateway.vendors.health().find(({ name }) => name === 'mock')?.breaker, 'closed')
  assert.equal(await status(key), 200)
})

interface Span {
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly status?: { readonly code?: number }
  readonly attributes?: ReadonlyArray<{ readonly key: string; readonly value: Record<string, string> }>
}

test('a trace has a span for every attempt, also the failed ones, with the vendor’s name', async () => {
  let calls = 0
  vendor.answer = (call) => (++calls === 1 ? dead(call) : fine(call))
  const { key } = await g.account()
  const traceId = 'c0ffee'.padEnd(32, '0')
  const headers = { traceparent: `00-${traceId}-00000000000000aa-01` }
  assert.equal((await g.call(CHAT_PATH, key, chatBody('hello'), { headers })).status, 200)
  const traces = () =>
    collector.got
      .flatMap(({ body }) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans as Span[])
      .filter((span) => span.traceId === traceId)
  const CLIENT = 3
  const attempts = () => traces().filter(({ kind }) => kind === CLIENT)
  await until(() => attempts().length, 2)
  const facts = attempts().map(({ status: { code } = {}, attributes = [] }) => ({
    failed: code === 2,
    ...Object.fromEntries(attributes.map((entry) => [entry.key, Object.values(entry.value)[0]])),
  }))
  assert.deepEqual(facts, [
    { failed: true, 'tollgate.vendor': 'mock', 'http.response.status_code': '500', 'error.type': 'upstream_failed' },
    { failed: false, 'tollgate.vendor': 'mock', 'http.response.status_code': '200' },
  ])
  const server = traces().find((span) => span.kind === 2)!
  for (const { parentSpanId, name } of attempts()) {
    assert.equal(parentSpanId, server.spanId)
    assert.match(name, /mock/)
  }
})
