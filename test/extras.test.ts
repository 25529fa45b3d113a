// What vendors price higher than the catalog does is refused before anything is held, and asking for headers is free.
import { isDataEndpoint } from '../src/catalog/endpoint.ts'
import { ALL_ENDPOINTS } from '../src/entries.ts'
import { afterEach, assert, test, testGateway, textOf } from './gateway.ts'

const g = testGateway()
afterEach(() => g.settled())

const messages = [{ role: 'user', content: 'Hi' }]
const DOORS: Record<string, object> = {
  '/v1/chat-completions': { model: 'alpha-5.4', messages, max_completion_tokens: 50 },
  '/alpha/responses': { model: 'alpha-5.4', input: 'Hi', max_output_tokens: 50 },
  '/beta/v1/messages': { model: 'beta-opus-5', messages, max_tokens: 50 },
}

test('what vendors price higher is refused by name at every door, before anything is held or sent', async () => {
  const { id, key } = await g.account()
  const refused: [name: string, value: unknown][] = [
    ...['priority', 'fast', 'ultrafast', 'something-new'].map((tier): [string, unknown] => ['service_tier', tier]),
    ['speed', 'fast'],
    ['inference_geo', 'us'],
    ['fallbacks', [{ model: 'beta-opus-5-5' }]],
    ['fallbacks', ['beta-opus-5-5']],
  ]
  const seen = g.sandbox.seen.requests
  for (const [path, body] of Object.entries(DOORS))
    for (const [name, value] of refused) {
      const said = await textOf(g.call(path, key, { ...body, [name]: value }), 400)
      assert.match(said, new RegExp(name))
      assert.match(said, /leave it out/i)
    }
  const advisor = { ...DOORS['/beta/v1/messages'], tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'm' }] }
  assert.equal((await g.call('/beta/v1/messages', key, advisor)).status, 400)
  assert.equal(g.sandbox.seen.requests, seen, 'no vendor heard of it')
  assert.equal((await g.calls(id)).length, 0)
})

test('what costs no more than the standard passes, and null means absent', async () => {
  const { key } = await g.account()
  for (const [path, body] of Object.entries(DOORS)) {
    const mine: object[] = [
      { service_tier: null, fallbacks: null, speed: null, models: null, inference_geo: null },
      { fallbacks: [] },
    ]
    if (path === '/beta/v1/messages')
      mine.push(
        { service_tier: 'auto' },
        { service_tier: 'standard_only' },
        { speed: 'standard' },
        { inference_geo: 'global' },
      )
    else for (const tier of ['auto', 'default', 'flex', 'scale', 'standard']) mine.push({ service_tier: tier })
    for (const extra of mine) {
      // The simulated Responses vendor refuses fields that it does not know.
      if (path === '/alpha/responses' && !('service_tier' in extra && Object.keys(extra).length === 1)) continue
      const answer = await g.call(path, key, { ...body, ...extra })
      assert.equal(answer.status, 200, `${path} ${JSON.stringify(extra)}: ${await answer.text()}`)
    }
  }
})

test('a key that may use one model reaches no other by a fallback', async () => {
  const { id } = await g.account()
  const { key } = await g.key(id, { models: ['beta-haiku-4-5'] })
  const body = { model: 'beta-haiku-4-5', messages, max_tokens: 50 }
  assert.equal((await g.call('/beta/v1/messages', key, body)).status, 200)
  const answer = await g.call('/beta/v1/messages', key, { ...body, fallbacks: [{ model: 'beta-opus-5-5' }] })
  assert.equal(answer.status, 400)
})

test('asking for the headers of any door holds nothing, calls no vendor and costs nothing', async () => {
  const { id, key } = await g.account()
  const seen = g.sandbox.seen.requests
  let paid = 0
  for (const spec of ALL_ENDPOINTS)
    for (const path of [spec.path, ...spec.aliases]) {
      const params = Object.entries('params' in spec ? (spec.params ?? {}) : {})
      const query = params
        .filter(([name, field]) => field.required && !path.includes(`{${name}}`))
        .map(([name, field]) => `${name}=${encodeURIComponent(field.example ?? 'example.com')}`)
      const url = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => Object.fromEntries(params)[name]?.example ?? '12')
      const answer = await g.call(`${url}?${query.join('&')}`, key, undefined, { method: 'HEAD' })
      assert.equal(await answer.text(), '')
      if (!isDataEndpoint(spec)) continue
      paid++
      assert.equal(answer.status, 200, url)
      assert.match(answer.headers.get('content-type') ?? '', /json/)
      assert.equal(answer.headers.get('x-tollgate-charge'), null)
      const wrong = await g.call(`${url}?nonsense=1`, key, undefined, { method: 'HEAD' })
      assert.equal(wrong.status, 400, 'what GET refuses is refused')
    }
  assert.ok(paid >= 30)
  assert.equal(
    (await g.call(`${ALL_ENDPOINTS.find(isDataEndpoint)!.path}`, undefined, undefined, { method: 'HEAD' })).status,
    401,
  )
  await g.settled()
  assert.equal(g.sandbox.seen.requests, seen, 'no vendor heard of it')
  assert.equal((await g.calls(id)).length, 0)
  assert.deepEqual(await g.balance(id), { posted: 1_000_000_000n, held: 0n })
})

test('the addresses that clients are given answer their probes, with and without a key', async () => {
  for (const base of ['/v1', '/alpha', '/beta', '/beta/'])
    for (const method of ['HEAD', 'GET']) {
      const answer = await g.call(base, undefined, undefined, { method })
      assert.equal(answer.status, 200, `${method} ${base}`)
      assert.equal(await answer.text(), method === 'HEAD' ? '' : '{"ok":true,"docs":"/docs"}')
    }
  assert.equal((await g.call('/beta/nothing', undefined)).status, 404)
})
