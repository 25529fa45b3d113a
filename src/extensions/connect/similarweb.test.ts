// Site analytics from Similarweb's official API: one credential connects it, a bridge in the catalog maps it, and
// callers see the contract.
import type { ServerResponse } from 'node:http'
import { commandLineOf } from '../../../test/command-line.ts'
import { casesOf } from '../../../test/field-cases.ts'
import { assert, BY, isOff, pluck, started, test, testGateway, textOf } from '../../../test/gateway.ts'
import { SIMILARWEB_KEY, startSimilarweb } from '../../../test/similarweb-server.ts'
import { ANALYTICS } from '../../catalog/analytics.ts'
import { bridgeOf, vendorBridge } from '../../catalog/bridge.ts'
import { checkDocument } from '../../catalog/document.ts'
import type { DataEndpointSpec } from '../../catalog/endpoint.ts'
import { checkValue } from '../../catalog/json-schema.ts'
import { Fault } from '../../kernel/fault.ts'
import { bridgedAddress, bridgedAnswer } from '../../protocols/data/bridge.ts'
import { readDataRequest } from '../../protocols/data/http-api.ts'
import { findPreset } from '../connection/filled-preset.ts'

const NOW_MS = Date.UTC(2026, 10, 15, 12)
const SITE = 'siteanalytics/websites'
const UNSERVED = [
  'siteanalytics/keywords/suggestions',
  `${SITE}/backlinks`,
  'siteanalytics/keywords/websites',
  `${SITE}/branded-keywords`,
  `${SITE}/devices`,
]

const vendor = started(startSimilarweb)
const g = testGateway()
const commandLine = commandLineOf(() => g, {
  secrets: { SIMILARWEB_API_KEY: SIMILARWEB_KEY, WRONG_API_KEY: 'no-such-key-0123456789' },
})

const bridge = vendorBridge.parse((await findPreset('similarweb'))?.vendor.bridge)
const served = ANALYTICS.filter(({ product }) => bridgeOf(bridge, product))

const requiredOf = (spec: DataEndpointSpec, site = 'example.com') =>
  Object.fromEntries(
    Object.entries(spec.params).flatMap(([name, field]) =>
      field.required ? [[name, field.kind === 'domain' ? site : field.example]] : [],
    ),
  )
const pathOf = (spec: DataEndpointSpec, given: Record<string, string> = {}, site?: string) =>
  `${spec.path}?${new URLSearchParams({ ...requiredOf(spec, site), ...given })}`

const json = (body: unknown) => (res: ServerResponse) => {
  res.writeHead(200, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body))
}

type Told = { readonly error: { readonly code: number; readonly message: string } }

test('one command with one credential connects it: tested without buying data, what it serves goes there, and the rest is named', async () => {
  const connect = ['connect', 'similarweb', '--url', vendor.url]
  const wrong = await commandLine.run([...connect, '--key-env', 'WRONG_API_KEY'])
  assert.equal(wrong.code, 1)
  assert.match(wrong.out + wrong.err, /does not accept the credential/)
  const done = await commandLine.run([...connect, '--key-env', 'SIMILARWEB_API_KEY'])
  assert.equal(done.code, 0, done.err + done.out)
  assert.match(done.out, /\/capabilities: 200 in \d+ ms\. It says what the credential may use\. No data were bought\./)
  for (const uid of UNSERVED) assert.match(done.out, new RegExp(`Not served by similarweb.*50001:.*${uid}`))
  assert.match(done.out, /websites\/social-traffic: Only visits from desktops/)
  assert.equal(vendor.billed(), 0)
  assert.equal(served.length, 22)
  const { endpoints } = g.gateway.catalog.current.document
  for (const { product } of ANALYTICS)
    assert.deepEqual(
      endpoints[product]?.routes.map((route) => [route.vendor, route.enabled]),
      [UNSERVED.includes(product) ? ['analytics', false] : ['similarweb', true]],
      product,
    )
  const before = g.gateway.catalog.current.version
  const again = await commandLine.run([...connect, '--key-env', 'SIMILARWEB_API_KEY'])
  assert.equal(again.code, 0, again.err)
  assert.equal(g.gateway.catalog.current.version, before, 'the second time changes nothing')
  if (isOff('probes')) return
  const health = await commandLine.run(['vendors', 'test', 'similarweb'])
  assert.equal(health.code, 0, health.err + health.out)
})

test('every endpoint that it serves answers in the contract’s shape, at its price, with data, without data, and with half of them', async () => {
  const { id, key } = await g.account()
  for (const spec of served)
    for (const site of ['example.com', 'Example.COM', 'empty.example', 'partial.example']) {
      const price = g.gateway.catalog.current.document.endpoints[spec.product]?.pricing.tiers[0]?.call ?? 0n
      const before = (await g.balance(id)).posted
      const given = 'from' in spec.params && spec.params.from?.required ? { from: '2026-08-01', to: '2026-10-31' } : {}
      const answer = await textOf(g.call(pathOf(spec, given, site), key))
      assert.equal(checkValue(spec.answer ?? {}, JSON.parse(answer)), undefined, `${spec.product} ${answer}`)
      if (/^example/i.test(site)) assert.match(answer, /[1-9]/, `${spec.product} has figures: ${answer}`)
      await g.settled()
      assert.equal(before - (await g.balance(id)).posted, price, spec.product)
    }
})

test('the figures are the vendor’s, in the members that the contract names', async () => {
  const { key } = await g.account()
  const ask = async (path: string, query: string) => {
    const response = await g.call(`/v1/siteanalytics/websites/${path}?${query}`, key)
    const answer = (await response.json()) as unknown
    assert.equal(response.status, 200, JSON.stringify(answer))
    return answer
  }
  const months = 'keys=Shop.Example&from=2026-09-01&to=2026-10-31'
  assert.deepEqual(await ask('visits', months), {
    Data: {
      'Shop.Example': {
        TotalVisits: 2001,
        Change: null,
        ShareOfVisits: null,
        Trend: [
          { Key: '2026-09-01', Value: 1000 },
          { Key: '2026-10-01', Value: 1001 },
        ],
      },
    },
  })
  const { query } = vendor.asked.at(-1) ?? {}
  assert.deepEqual(query, {
    domain: 'shop.example',
    country: 'ww',
    granularity: 'monthly',
    start_date: '2026-09',
    end_date: '2026-10',
    web_source: 'total',
    format: 'json',
    metrics: 'visits',
  })
  assert.deepEqual(await ask('engagement', `${months}&country=276&webSource=MobileWeb&includeSubDomains=false`), {
    Data: [
      {
        Domain: 'Shop.Example',
        AvgMonthVisits: 1000.5,
        UniqueUsers: 600.5,
        VisitsPerUser: null,
        BounceRate: (0.4 * 1000 + 1.4 * 1001) / 2001,
        PagesPerVisit: (3 * 1000 + 4 * 1001) / 2001,
        AvgVisitDuration: (120.5 * 1000 + 121.5 * 1001) / 2001,
        TotalPagesViews: 6001,
      },
    ],
  })
  const sent = vendor.asked.at(-1)?.query
  assert.deepEqual([sent?.country, sent?.web_source, sent?.main_domain_only], ['de', 'mobile_web', 'true'])
  assert.deepEqual(await ask('ranks', `${months}&country=840`), {
    Data: {
      'Shop.Example': {
        GlobalRank: { Value: null, Trend: [] },
        CountryRank: {
          Value: 11,
          Trend: [
            { Key: '2026-09-01', Value: 10 },
            { Key: '2026-10-01', Value: 11 },
          ],
        },
        CategoryRank: {
          Value: 5,
          Category: 'Computers/Programming',
          Trend: [
            { Key: '2026-09-01', Value: 5 },
            { Key: '2026-10-01', Value: 5 },
          ],
        },
      },
    },
  })
  assert.deepEqual(await ask('channels', months), {
    Data: { Total: { 'Shop.Example': { Direct: 200, 'Organic Search': 400, 'Gen AI': 600 } } },
  })
  const { Data: places } = (await ask('geography', `${months}&pageSize=6`)) as { Data: { Country: number | null }[] }
  assert.deepEqual(pluck(places, 'Country'), [840, 276, 392, 250, null, 826])
  assert.deepEqual(await ask('incoming-referrals', 'key=shop.example&from=2026-09-05&to=2026-10-20&page=2'), {
    TotalCount: 7,
    TotalVisits: 5000,
    Records: Array.from({ length: 7 }, (_, at) => ({
      Domain: `site-${at + 1}.example`,
      Share: 0.1 / (at + 1),
      TotalShare: 0.1 / (at + 1),
      Change: at === 0 ? null : 0.02,
    })),
  })
  const page = vendor.asked.at(-1)?.query
  assert.deepEqual([page?.offset, page?.start_date, page?.end_date], ['100', '2026-09', '2026-09'], 'complete months')
  assert.deepEqual(await ask('visits/trend', 'keys=shop.example&from=2026-10-01&to=2026-10-02&timeGranularity=Daily'), {
    Data: {
      'shop.example': {
        Total: [
          [
            { Key: '2026-10-01', Value: 1000 },
            { Key: '2026-10-02', Value: 1001 },
          ],
        ],
      },
    },
  })
  assert.deepEqual(await ask('similar-sites/suggestions', 'key=shop.example&limit=1'), [
    { Domain: 'site-1.example', DomainWithoutSub: 'site-1.example', Rank: null, Favicon: null },
  ])
})

test('every good value of every parameter is carried over or named in a rejection, and every bad one is rejected as ever', () => {
  let [carried, named] = [0, 0]
  for (const spec of served) {
    const made = bridgeOf(bridge, spec.product)
    assert.ok(made)
    const bridges = new Map([['similarweb', made]])
    for (const [name, field] of Object.entries(spec.params)) {
      const { good, bad } = casesOf(field)
      const read = (value: string, by = bridges) => {
        const dates = /^(compareF|f)rom$|^(compareT|t)o$/.test(name) ? {} : undefined
        const partner = name === 'from' ? { to: '2026-10-31' } : name === 'to' ? { from: '2026-05-01' } : {}
        const other =
          name === 'compareFrom'
            ? { compareTo: '2026-10-31' }
            : name === 'compareTo'
              ? { compareFrom: '2026-01-01' }
              : {}
        const required = dates || !spec.params.from?.required ? {} : { from: '2026-05-01', to: '2026-10-31' }
        const query = new URLSearchParams({ ...requiredOf(spec), ...required, ...partner, ...other, [name]: value })
        return readDataRequest(spec, { query: query.toString() }, { nowMs: NOW_MS, bridges: by })
      }
      const refusal = (run: () => unknown): string | undefined => {
        try {
          run()
        } catch (error) {
          assert.ok(error instanceof Fault && error.status === 400, String(error))
          return error.message
        }
        return undefined
      }
      for (const [value] of good) {
        const request = (() => {
          try {
            return read(value)
          } catch {
            return undefined // A day that does not go with its partner, or a part of a month in a history.
          }
        })()
        const refused = request?.refusal?.('site-analytics', 'similarweb')
        if (refused)
          assert.match(
            refused.message,
            new RegExp(`\\b${name}\\b|\\bfrom\\b|compareFrom`),
            `${spec.product} ${name}=${value}`,
          )
        refused ? named++ : carried++
        if (request && !refused)
          assert.match(bridgedAddress(made, spec, request.query), /^\/v[45]\/website-analysis\/[\w/?=&.%-]+$/)
      }
      for (const value of bad)
        assert.equal(
          refusal(() => read(value)),
          refusal(() => read(value, new Map())),
        )
    }
  }
  assert.ok(carried > 500 && named > 20, `${carried} ${named}`)
})

test('what it cannot answer is said before money moves: an endpoint, a parameter, a country', async () => {
  const { id, key } = await g.account()
  const asked = vendor.asked.length
  for (const uid of UNSERVED) {
    const spec = ANALYTICS.find(({ product }) => product === uid)
    assert.ok(spec)
    const response = await g.call(pathOf(spec), key)
    const { error } = (await response.json()) as Told
    assert.deepEqual([response.status, error.code], [503, 50001], uid)
    assert.match(error.message, /No vendor serves this endpoint here\. You were not charged\./)
  }
  for (const [path, words] of [
    ['visits?keys=a.com&compareFrom=2026-01-01&compareTo=2026-01-31', /compareFrom=2026\|01\|01 cannot be answered/],
    ['visits?keys=a.com&ShouldGetVerifiedData=true', /ShouldGetVerifiedData=true cannot be answered/],
    ['geography?keys=a.com&country=840', /country=840 cannot be answered/],
    ['visits?keys=a.com&country=0', /country=0 is not supported/],
    ['visits?keys=a.com&country=123456', /country=123456 is not supported/],
    ['traffic-sources?keys=a.com&sourceType=Mail', /sourceType must be one of Referral/],
  ] as const) {
    const response = await g.call(`/v1/siteanalytics/websites/${path}`, key)
    const { error } = (await response.json()) as Told
    assert.deepEqual([response.status, error.code], [400, 10000], path)
    assert.match(error.message, words)
  }
  await g.settled()
  assert.equal(vendor.asked.length, asked, 'it was not called')
  assert.equal((await g.balance(id)).posted, 1_000_000_000n)
})

test('its errors become ours, cost nothing and name neither it nor its key', async () => {
  const { id, key } = await g.account()
  const [visits] = served.filter(({ product }) => product === `${SITE}/visits`)
  assert.ok(visits)
  for (const [plan, site, status, code, words] of [
    [undefined, 'nodata.example', 404, 30000, /has no data for this/],
    [undefined, 'busy.example', 429, 40001, /./],
    ['<html>', 'example.com', 502, 50000, /./],
    ['"text"', 'example.com', 502, 50000, /./],
    ['{"meta":{"status":"Error","error_message":"Similarweb is not well"}}', 'example.com', 502, 50000, /./],
    ['{"meta":{"status":"Error","error_message":"Data not found"}}', 'example.com', 404, 30000, /has no data for this/],
    ['{"data":', 'example.com', 502, 50000, /./],
  ] as const) {
    if (plan !== undefined) vendor.next(json(plan))
    const response = await g.call(pathOf(visits, {}, site), key)
    const { error } = (await response.json()) as Told
    assert.deepEqual([response.status, error.code], [status, code], `${plan} ${site}`)
    assert.match(error.message, words)
    assert.doesNotMatch(JSON.stringify(error), /similarweb|sw-0123/i)
  }
  // A route that is alone is tried twice.
  for (const _ of [1, 2])
    vendor.next((res) => void res.writeHead(401, { 'content-type': 'text/plain' }).end('invalid API key'))
  const refused = await g.call(pathOf(visits), key)
  assert.deepEqual(
    [refused.status, ((await refused.json()) as Told).error.code],
    [502, 50000],
    'its credential is ours to mend',
  )
  await g.settled()
  assert.equal((await g.balance(id)).posted, 1_000_000_000n)
})

test('by data credits: a call is charged what the vendor bills for it, within what was held', async () => {
  const document = structuredClone(g.gateway.catalog.current.input)
  const METERED = { unit: 'credits' as const, tiers: [{ call: '0', metered: '0.01' }] }
  for (const { product } of served) document.endpoints[product]!.pricing = METERED // Those that are served have one.
  await g.gateway.catalog.apply(document, BY, 'by data credits')
  const { id, key } = await g.account()
  vendor.billed()
  for (const spec of served) {
    const given = spec.params.from?.required ? { from: '2026-08-01', to: '2026-10-31' } : {}
    const response = await g.call(pathOf(spec, given), key)
    await response.text()
    const billed = vendor.billed()
    assert.ok(billed > 0)
    assert.equal(response.headers.get('x-tollgate-charge'), String(billed / 100), spec.product)
  }
  await g.settled()
  const held = async (credits: bigint, query: string) => {
    const poor = await g.account({ credits })
    const response = await g.call(`/v1/siteanalytics/websites/engagement?keys=example.com&${query}`, poor.key)
    await response.text()
    return response.status
  }
  // Six figures for each of 28 days.
  assert.equal(await held(1_680_000n, ''), 200)
  assert.equal(await held(1_679_999n, ''), 402)
  assert.equal(await held(120_000n, 'from=2026-09-01&to=2026-10-31'), 200)
  // More rows than there are days are not believed; without rows the least is charged, and marked.
  vendor.next(json({ data: Array.from({ length: 500 }, () => ({ date: '2026-10-01', visits: 1 })) }))
  vendor.next(json({ meta: {} }))
  const charges: (string | null)[] = []
  for (let at = 0; at < 2; at++) {
    const response = await g.call(
      '/v1/siteanalytics/websites/visits?keys=example.com&from=2026-09-01&to=2026-10-31',
      key,
    )
    assert.equal(response.status, 200)
    await response.text()
    charges.push(response.headers.get('x-tollgate-charge'))
  }
  assert.deepEqual(charges, ['0.02', '0.01'])
  await g.settled()
  const [marked] = await g.sql<{ calls: bigint }>(
    'select count(*) as calls from usage where account_id = $1 and estimated',
    [id],
  )
  assert.equal(Number(marked?.calls), 1)
  const unserved = structuredClone(document)
  unserved.endpoints[`${SITE}/visits`]!.routes = [{ vendor: 'analytics', protocol: 'site-analytics' }]
  const checked = checkDocument(unserved)
  assert.match(
    checked.ok ? '' : checked.problems.join(),
    /visits\.routes\.0\.vendor: the price is by the unit.*"analytics"/,
  )
})

test('test keys get the simulated source in the native shape, and the vendor is not called', async () => {
  const { id } = await g.account()
  const made = await g.operator<{ key: string }>('POST', `/accounts/${id}/keys`, { name: 'try', test: true })
  assert.equal(made.status, 200, JSON.stringify(made.data))
  const asked = vendor.asked.length
  assert.match(await textOf(g.call('/v1/siteanalytics/websites/visits?keys=example.com', made.data.key)), /TotalVisits/)
  assert.equal(vendor.asked.length, asked)
})

test('an answer of any size or shape is mapped in bounded time, and its names stay data', () => {
  const spec = served.find(({ product }) => product === `${SITE}/channels`)
  const made = spec && bridgeOf(bridge, spec.product)
  assert.ok(spec && made)
  const { query } = readDataRequest(spec, { query: 'keys=example.com' }, { nowMs: NOW_MS })
  const rows = [
    { source_type: '__proto__', visits: 1 },
    { source_type: 'constructor', visits: 2 },
    null,
    7,
    { visits: {} },
  ]
  assert.equal(
    JSON.stringify(bridgedAnswer(made, query, { data: rows })),
    '{"Data":{"Total":{"example.com":{"__proto__":1,"constructor":2}}}}',
  )
  const many = Array.from({ length: 600_000 }, (_, at) => ({ source_type: `c${at}`, visits: 1 }))
  assert.throws(() => bridgedAnswer(made, query, { data: many }), /./)
  for (const data of [undefined, null, 'x', 5, {}, [[[]]]])
    assert.equal(checkValue(spec.answer ?? {}, bridgedAnswer(made, query, { data })), undefined)
})

test('a bridge that is wrong is no part of a catalog, and the place is said', () => {
  const document = structuredClone(g.gateway.catalog.current.input)
  const entry = (change: object) => {
    const copy = structuredClone(document)
    const { bridge: given } = copy.vendors.similarweb ?? {}
    assert.ok(given)
    given.endpoints[`${SITE}/visits`] = { request: 'engagement', answer: {}, ...change }
    const checked = checkDocument(copy)
    return checked.ok ? '' : checked.problems.join('\n')
  }
  for (const [change, words] of [
    [{ request: 'nothing' }, /visits\.request: there is no request "nothing"/],
    [{ answer: { Data: '{nobody}' } }, /names "nobody", which is not a parameter/],
    [{ query: { x: '{siteId}' } }, /names "siteId"/],
    [{ answer: { $eval: '1' } }, /has "\$eval"; there are/],
    [{ answer: '$..data' }, /is not a path/],
    [{ answer: { $sum: '$.a', as: 1 } }, /has "\$sum" with as/],
    [{ metered: 'size(answer.data)' }, /visits\.metered: has no upper bound/],
    [{ answer: JSON.parse('[[[[[[[[[[[[[[1]]]]]]]]]]]]]]') }, /nested too deep/],
  ] as const)
    assert.match(entry(change), words)
  assert.match(
    (() => {
      const copy = structuredClone(document)
      copy.endpoints[`${SITE}/devices`]!.routes = [{ vendor: 'similarweb', protocol: 'site-analytics' }]
      const checked = checkDocument(copy)
      return checked.ok ? '' : checked.problems.join()
    })(),
    /the bridge of "similarweb" has no "siteanalytics\/websites\/devices"/,
  )
})
