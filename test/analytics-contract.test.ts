// Made from the table of analytics endpoints: every parameter of every endpoint, with every kind of good and bad value.
import { startSandbox } from '../sandbox/server.ts'
import { analyticsEndpoint } from '../src/catalog/analytics.ts'
import type { DataEndpointSpec } from '../src/catalog/endpoint.ts'
import { text } from '../src/catalog/field.ts'
import { Fault } from '../src/kernel/fault.ts'
import { realWorld } from '../src/kernel/world.ts'
import { readDataRequest } from '../src/protocols/data/http-api.ts'
import type { Target } from '../src/protocols/protocol.ts'
import { vendorCall } from '../src/protocols/vendor-call.ts'
import { casesOf } from './field-cases.ts'
import DEFAULTS from './fixtures/site-analytics/defaults.json' with { type: 'json' }
import { assert, listen, runs, started, test } from './kit.ts'
import { EDITIONS } from './product-copy.ts'

const NOW_MS = Date.UTC(2026, 10, 15, 12)
const OPEN = { requestId: 'req_test', createdSeconds: NOW_MS / 1000, signal: new AbortController().signal }

let cases = 0
const sandbox = started(() => startSandbox({ world: { ...realWorld, nowMs: () => NOW_MS } }))

function targetAt(baseUrl: string): Target {
  return {
    protocol: 'site-analytics',
    baseUrl,
    secret: 'vendor-secret',
    headers: { 'x-source': 'tollgate' },
    model: 'any',
  }
}

type Given = Record<string, string>

/** What else a query needs so that one parameter can be looked at alone. */
function around(spec: DataEndpointSpec, name: string, value: string): Given {
  const given: Given = {}
  for (const [other, field] of Object.entries(spec.params)) if (field.required) given[other] = field.example
  for (const { from, to, together } of spec.pairs) {
    const partner = name === from ? to : name === to ? from : undefined
    if (!together || partner === undefined) continue
    // The partner must not be the reason of a refusal; histories take whole months.
    given[partner] = '2026-10-01'
    if (spec.window?.monthsBackMax !== undefined) given[partner] = partner === 'to' ? '2026-10-31' : '2026-05-01'
  }
  return { ...given, [name]: value }
}

const encode = (given: Given) =>
  Object.entries(given)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')

function refusal(spec: DataEndpointSpec, rawQuery: string): Fault {
  cases++
  try {
    readDataRequest(spec, { query: rawQuery }, { nowMs: NOW_MS })
  } catch (error) {
    if (error instanceof Fault && error.kind === 'request_invalid' && error.code === 10000 && error.status === 400)
      return error
    throw error
  }
  assert.fail(`${spec.id} took ${rawQuery.slice(0, 200)}`)
}

/** Asks through the real sandbox, and gives what reached it. */
async function forwarded(spec: DataEndpointSpec, given: Given): Promise<URLSearchParams> {
  cases++
  const ask = readDataRequest(spec, { query: encode(given) }, { nowMs: NOW_MS })
  const target = targetAt(`${sandbox.url}/analytics`)
  const call = vendorCall((await ask.open(target, OPEN)).call, target)
  const response = await fetch(call.url, { headers: call.headers })
  await response.arrayBuffer()
  const seen = sandbox.seen.calls.at(-1)
  assert.equal(seen?.headers.authorization, 'Bearer vendor-secret')
  assert.equal(seen?.headers['x-source'], 'tollgate')
  assert.ok(!/[\r\n\0 ]/.test(seen.url), 'nothing raw reaches the vendor')
  assert.equal(response.status, 200, `${spec.id} ${decodeURIComponent(seen.url)}`)
  const url = new URL(seen.url, sandbox.url)
  assert.equal(url.pathname, `/analytics/${spec.vendorPath}`)
  const reached = [...url.searchParams]
  assert.deepEqual(reached, ask.query, 'what was checked is what was sent')
  return url.searchParams
}

/** A product has the same parameters, many of them in most endpoints: each of its endpoints tries some. */
const STRIDES = [1, runs(9, 1)]

for (const [edition, { analytics }] of EDITIONS.entries())
  for (const [place, spec] of analytics.entries()) {
    const stride = STRIDES[edition] ?? 1
    const params = Object.entries(spec.params).filter((_, at) => (at + place) % stride === 0)
    for (const [name, field] of params)
      test(`${spec.id} takes every good ${name}, forwards it, and refuses every bad one by name`, async () => {
        const { good, bad } = casesOf(field)
        for (const [value, expected] of good) {
          const whole = spec.window?.monthsBackMax !== undefined && name === 'to'
          const given = around(spec, name, whole ? value.replace(/01$/, '31') : value)
          assert.equal((await forwarded(spec, given)).get(name), whole ? expected.replace(/01$/, '31') : expected)
        }
        for (const value of bad) {
          const fault = refusal(spec, encode(around(spec, name, value)))
          assert.match(fault.message, new RegExp(`\\b${name}\\b`), `${JSON.stringify(value)}: ${fault.message}`)
        }
        const fine = encode(around(spec, name, field.example))
        assert.match(refusal(spec, `${fine}&${name}=${encodeURIComponent(field.example)}`).message, /more than once/)
        assert.match(refusal(spec, `${fine}&%${hex(name)}=1`).message, /more than once/)
        assert.match(refusal(spec, `${fine}&${name}[]=1`).message, /is not a parameter/)
        assert.match(refusal(spec, `${fine}&x=%zz`).message, /"x" is not valid percent-encoded/)
        const cut = `${fine}&${name}=%E4%BD`
        assert.match(refusal(spec, cut).message, /percent-encoded UTF-8|more than once/)
        const otherCase = name.toLowerCase() === name ? name.toUpperCase() : name.toLowerCase()
        if (!(otherCase in spec.params)) assert.match(refusal(spec, `${fine}&${otherCase}=1`).message, /case-sensitive/)
        if (field.required) {
          const { [name]: _, ...rest } = around(spec, name, field.example)
          assert.match(refusal(spec, encode(rest)).message, new RegExp(`^${name} (is required|and|must)|together`))
        }
      })
  }

/** The first letter percent-encoded: names are compared after decoding. */
const hex = (name: string) => name.charCodeAt(0).toString(16) + name.slice(1)

for (const { edition, analytics, prefix } of EDITIONS)
  test(`each endpoint, ${edition}, fills in its stated defaults and nothing else`, async () => {
    const stated: Record<string, Given> = DEFAULTS
    assert.deepEqual(analytics.map((spec) => spec.vendorPath).toSorted(), Object.keys(DEFAULTS).toSorted())
    assert.equal(analytics.length, 27)
    for (const { path, vendorPath } of analytics) assert.equal(path, `${prefix}/siteanalytics/${vendorPath}`)
    for (const spec of analytics) {
      const required = Object.entries(spec.params).filter(([, field]) => field.required)
      const reached = await forwarded(spec, Object.fromEntries(required.map(([name, field]) => [name, field.example])))
      for (const [name, value] of Object.entries(stated[spec.vendorPath] ?? {}))
        assert.equal(reached.get(name), value, `${spec.id} ${name}`)
      for (const name of reached.keys()) assert.ok(name in spec.params, `${spec.id} sends ${name}`)
    }
  })

test('a 28th endpoint is one entry of the table', async () => {
  const spec = analyticsEndpoint('websites/weather', {
    title: 'Weather over a website',
    description: 'Whether it rains there.',
    returns: 'Rows in `Data`.',
    answer: {},
    window: { unit: 'months', count: 2 },
    params: {
      keys: { kind: 'domain', required: true, description: 'The website.', example: 'example.com' },
      from: { kind: 'date', description: 'First day.', example: '2026-10-01' },
      to: { kind: 'date', description: 'Last day.', example: '2026-10-31' },
      sky: text('The sky.', 'grey', 'grey'),
    },
  })
  await using server = await listen((req, res) => {
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ Data: [req.url] }))
  })
  const ask = readDataRequest(spec, { query: 'keys=example.com' }, { nowMs: NOW_MS })
  const exchange = await ask.open(targetAt(server.url), OPEN)
  const response = await fetch(exchange.call.url, { headers: exchange.call.headers })
  const body = Buffer.from(await response.arrayBuffer())
  const answer = await exchange.answer(body, Object.fromEntries(response.headers))
  assert.equal(answer.body, body, 'the same bytes')
  assert.deepEqual(JSON.parse(body.toString()), {
    Data: ['/websites/weather?keys=example.com&from=2026%7C09%7C01&to=2026%7C10%7C31&sky=grey'],
  })
  for (const [name, field] of Object.entries(spec.params))
    for (const value of casesOf(field).bad) refusal(spec, encode(around(spec, name, value)))
  assert.equal(spec.path, '/v1/siteanalytics/websites/weather')
})

test('at least 3,000 generated cases were run', (t) => {
  assert.ok(cases >= 3000, `${cases} cases`)
  t.diagnostic(`${cases} generated cases`)
})
