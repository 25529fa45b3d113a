// What every paid call has in common, whatever it buys: it is counted, quoted and told its route alike.
import type { IncomingHttpHeaders } from 'node:http'
import { MEDIA } from './formats.ts'
import { assert, listen, offers, started, startGateway, test, textOf, until } from './gateway.ts'
import { memoryLog } from './operator-server.ts'

const RANKS = 'siteanalytics/websites/ranks'
const g = started(() =>
  startGateway({
    catalog: (document) => {
      document.endpoints[RANKS].cache = { ttlSeconds: 60, pricing: { unit: 'credits', tiers: [{ call: '0.1' }] } }
    },
  }),
)

/** What the process has counted, in credits by kind. */
async function counted(): Promise<Record<string, number>> {
  const text = await (await fetch(`${g.url}/metrics`)).text()
  const found = text.matchAll(/^tollgate_credits_total\{kind="(\w+)"\} (\S+)$/gm)
  return Object.fromEntries([...found].map(([, kind, value]) => [kind!, Number(value)]))
}

test('the credits of text, kept data, failed calls and video are all counted where they move', async () => {
  const { id, key } = await g.account()
  const before = await counted()
  const chat = (content: string) =>
    g.call('/v1/chat-completions', key, { model: 'gamma-v4-pro', messages: [{ role: 'user', content }] })
  assert.equal((await chat('Hello')).status, 200)
  assert.notEqual((await chat('[[500]]')).status, 200)
  for (let i = 0; i < 2; i++) assert.equal((await g.call(`/v1/${RANKS}?keys=counted.example`, key)).status, 200)
  const video = await g.call('/v1/video/seedance', key, { model: 'videogen-2.0', prompt: 'a boat' })
  const { data } = (await video.json()) as { data: { jobId: string } }
  await until(async () => {
    const job = (await (await g.call(`/v1/jobs/${data.jobId}`, key)).json()) as { data: { status: string } }
    return job.data.status === 'COMPLETED'
  })
  const spent = (await g.calls(id)).reduce((sum, { charged }) => sum + charged, 0n)
  // The figures are made once a second at most.
  const released = await until(async () => {
    const seen = await counted()
    const moved = (kind: string) => (seen[kind] ?? 0) - (before[kind] ?? 0)
    const isAll = Math.abs(moved('settled') - Number(spent) / 1_000_000) < 1e-6
    const isEven = Math.abs(moved('held') - moved('settled') - moved('released')) < 1e-6
    return isAll && isEven ? moved('released') : undefined
  })
  assert.ok(released > 0)
})

test('a cached response tells the route that gave it', async () => {
  const { key } = await g.account()
  const first = await g.call(`/v1/${RANKS}?keys=route.example`, key)
  const second = await g.call(`/v1/${RANKS}?keys=route.example`, key)
  assert.deepEqual(
    [first, second].map(({ headers }) => [headers.get('x-cache'), headers.get('x-tollgate-route')]),
    [
      ['miss', '1'],
      ['hit', '1'],
    ],
  )
})

test('every kind of paid request can be quoted, and is read as its endpoint reads it', async () => {
  const { key } = await g.account()
  const quote = async (body: object, endpoint?: string) => {
    const answer = await g.call(`/v1/quote${endpoint ? `?endpoint=${encodeURIComponent(endpoint)}` : ''}`, key, body)
    return { status: answer.status, body: (await answer.json()) as { data?: { endpoint: string; costAtMost: string } } }
  }
  const hello = [{ role: 'user', content: 'Hello' }]
  const { 'openai-audio': _, ...written } = MEDIA
  const cases: Array<[body: object, endpoint: string, named?: boolean]> = [
    [{ model: 'alpha-5.4', messages: hello }, 'chat'],
    [{ model: 'alpha-5.4', input: 'Hello' }, 'responses'],
    [{ model: 'beta-sonnet-5', max_tokens: 10, system: 'Be kind.', messages: hello }, 'messages'],
    [{ model: 'beta-sonnet-5', max_tokens: 10, messages: hello }, 'chat', true],
    ...Object.values(written).map(({ model, body, endpoint }): [object, string] => [
      { model, ...body('a boat') },
      endpoint,
    ]),
    [{ model: 'alpha-transcribe-1', seconds: 12.5 }, 'transcriptions'],
    [{ model: 'alpha-transcribe-1', seconds: 12.5 }, 'translations', true],
    [{ keys: 'example.com' }, RANKS, true],
    [{ username: 'jack' }, 'social/users', true],
    [{ id: '12', max_results: 5 }, 'social/users/{id}/tweets', true],
  ]
  for (const [body, endpoint, named] of cases.filter(([, endpoint]) => offers(endpoint))) {
    const { status, body: got } = await quote(body, named ? endpoint : undefined)
    assert.equal(status, 200, JSON.stringify(got))
    assert.equal(got.data!.endpoint, endpoint)
    assert.ok(Number(got.data!.costAtMost) > 0)
  }
  assert.equal((await quote({ keys: 'not a domain' }, RANKS)).status, 400)
  assert.equal((await quote({ model: 'alpha-5.4', messages: hello }, 'nothing')).status, 400)
  assert.equal((await quote({ model: 'alpha-5.4' })).status, 400)
})

test('a vendor that wants its key in a header or a parameter of its own is a matter of the catalog', async (t) => {
  const seen: Array<{ url: string | undefined; headers: IncomingHttpHeaders }> = []
  const vendor = await listen((request, response) => {
    seen.push({ url: request.url, headers: request.headers })
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ Data: [], next: `http://vendor.example${request.url}` }))
  })
  const ways = { header: { header: 'api-key' }, query: { query: 'subscription' } } as const
  for (const [way, auth] of Object.entries(ways)) {
    const own = await startGateway({
      env: { ANALYTICS_API_KEY: 'a-vendor-key' },
      catalog: (document) => Object.assign(document.vendors.analytics, { baseUrl: vendor.url, auth }),
    })
    t.after(() => own.close())
    const { key } = await own.account()
    assert.doesNotMatch(
      await textOf(own.call(`/v1/${RANKS}?keys=${way}.example`, key)),
      /a-vendor-key/,
      'a vendor repeats the address that it was asked at',
    )
  }
  t.after(() => vendor.close())
  assert.equal(seen[0]!.headers['api-key'], 'a-vendor-key')
  assert.match(seen[1]!.url!, /[?&]subscription=a-vendor-key$/)
  for (const { headers } of seen) assert.equal(headers.authorization, undefined)
})

test('an error of our own is a plain 500 for the caller, and has its cause in the log', async (t) => {
  const { log, logged } = memoryLog()
  const own = await startGateway({ log })
  t.after(() => own.close())
  const { key } = await own.account()
  own.gateway.ledger.reserve = () => Promise.reject(new TypeError('a planted mistake'))
  assert.doesNotMatch(
    await textOf(
      own.call('/v1/chat-completions', key, { model: 'alpha-5.4', messages: [{ role: 'user', content: 'Hello' }] }),
      500,
    ),
    /planted|TypeError|\.ts/,
  )
  assert.match(logged(), /a planted mistake/)
})
