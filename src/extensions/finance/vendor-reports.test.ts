// Vendors' reports against what was recorded: every planted discrepancy is found, by day, model and credential, with
// the calls behind it.

import { assert, listen, started, startGateway, test } from '../../../test/gateway.ts'
import type { Page } from '../../kernel/view.ts'
import { idAtTime } from '../../kernel/world.ts'
import type { ComparedCall, ComparedLine, ReportView } from './views.ts'

const DAY = '2026-02-03'
const NEXT = '2026-02-04'
type Answers = (url: URL, headers: Record<string, unknown>) => unknown
let answers: Answers = () => undefined
const vendor = started(() =>
  listen((request, response) => {
    const said = answers(new URL(request.url ?? '', 'http://x'), request.headers)
    response
      .writeHead(said === undefined ? 401 : 200, { 'content-type': 'application/json' })
      .end(JSON.stringify(said ?? {}))
  }),
)
const host = () => vendor.host
const g = started(() =>
  startGateway({
    env: { TOLLGATE_OUTBOUND_ALLOW: host() },
    catalog(document) {
      const cost = { unit: 'credits', tiers: [{ input: '10', output: '30' }] }
      document.vendors.acme = {
        baseUrl: 'https://acme.example/v1',
        credentials: [{ name: 'ACME_A' }, { name: 'ACME_B' }],
      }
      for (const [uid, model] of [
        ['acme-large', 'large-2'],
        ['acme-small', 'small-1'],
      ] as const)
        document.models[uid] = {
          ...document.models['alpha-5.4'],
          name: uid,
          routes: [{ vendor: 'acme', protocol: 'openai-chat', model, cost }],
        }
    },
  }),
)

function serve(next: Answers): string {
  answers = next
  return `http://${host()}`
}

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const { status, data } = await g.operator<T>(method, path, body)
  assert.equal(status, 200, JSON.stringify(data))
  return data
}

let made = 0
/** Calls of a day: each of a thousand input and a hundred output tokens, which cost 13,000 millionths. */
async function record(account: string, day: string, product: string, credential: string, count: number): Promise<void> {
  const version = g.gateway.catalog.current.version
  await g.sql(
    `insert into usage (account_id, id, key_id, product, endpoint, outcome, status, charged, held, catalog_version, lines, route, vendor, cost, credential)
        select $1, $2 || lpad((n + $3::int)::text, 16, '0'), 'key_1', $4, 'chat', 'settled', 200, 26000, 0, $5, '[["input", 1000, "20000000"], ["output", 100, "60000000"]]', 1,
          'acme', 13000, $6 from generate_series(1, $7::int) n`,
    [account, idAtTime(Date.parse(`${day}T12:00:00Z`)), made, product, version, credential, count],
  )
  made += count
}

const inShort = (lines: readonly ComparedLine[]) =>
  Object.fromEntries(
    lines.map(({ day, model, credential, verdict, differing }) => [
      `${day.slice(-2)} ${model} ${credential ?? '*'}`,
      [verdict, ...differing].join(' '),
    ]),
  )
const linesOf = async (id: string, query = '') =>
  (await ask<Page<ComparedLine>>('GET', `/vendor-reports/${id}/lines?limit=200${query}`)).items

test('OpenAI: tokens by credential and costs by model, page by page; all planted discrepancies are found', async () => {
  const { id: account } = await g.account()
  await record(account, DAY, 'acme-large', 'ACME_A', 10)
  await record(account, DAY, 'acme-large', 'ACME_B', 5)
  await record(account, DAY, 'acme-small', 'ACME_A', 4)
  await record(account, NEXT, 'acme-small', 'ACME_A', 3)
  await record(account, NEXT, 'acme-large', 'own', 7)
  const result = (model: string, key: string, calls: number, more = 0) => ({
    object: 'organization.usage.completions.result',
    model,
    api_key_id: key,
    num_model_requests: calls,
    input_tokens: calls * 1_000 + more,
    output_tokens: calls * 100,
    input_cached_tokens: 0,
  })
  const cost = (line_item: string, value: number) => ({
    object: 'organization.costs.result',
    amount: { value, currency: 'usd' },
    line_item,
  })
  const at = (day: string) => Date.parse(day) / 1000
  const asked: string[] = []
  const url = serve(({ pathname, searchParams }, { authorization }) => {
    if (authorization !== 'Bearer sk-admin-1') return undefined
    asked.push(`${pathname} ${searchParams.getAll('group_by')} ${searchParams.get('page') ?? ''}`)
    const pageTwo = searchParams.get('page') === 'two'
    if (pathname === '/v1/organization/usage/completions')
      return pageTwo
        ? { object: 'page', has_more: false, next_page: null, data: [{ start_time: at(NEXT), results: [] }] }
        : {
            object: 'page',
            has_more: true,
            next_page: 'two',
            data: [
              {
                start_time: at(DAY),
                results: [
                  // Matched by its dated name; two tokens more are within the tolerance.
                  result('large-2-2025-11-01', 'key_a', 10, 2),
                  // 3,000 tokens more than were recorded.
                  result('large-2-2025-11-01', 'key_b', 5, 3_000),
                  // A key that the gateway does not have.
                  result('large-2-2025-11-01', 'key_stolen', 2),
                ],
              },
            ],
          }
    if (pathname === '/v1/organization/costs')
      return {
        object: 'page',
        has_more: false,
        next_page: null,
        data: [
          {
            start_time: at(DAY),
            // A credit is a cent: 15 calls of 0.013 credits cost 0.00195 dollars.
            results: [
              cost('large-2-2025-11-01, input', 0.0015),
              cost('large-2-2025-11-01, output', 0.00045),
              cost('small-1, input', 0.01),
            ],
          },
          { start_time: at(NEXT), results: [cost('small-1, input', 0.00039), cost('web search', 0.5)] },
        ],
      }
    return undefined
  })
  const input = {
    vendor: 'acme',
    source: 'openai',
    from: DAY,
    to: NEXT,
    url,
    creditsPerUnit: '100',
    keys: { key_a: 'ACME_A', key_b: 'ACME_B' },
  }
  assert.equal((await g.operator('POST', '/vendor-reports', input)).status, 409, 'its credential is not stored')
  await ask('PUT', '/vendor-reports/credential', { source: 'openai', url, value: 'sk-admin-1' })
  const report = await ask<ReportView>('POST', '/vendor-reports', input)
  assert.ok(asked.includes('/v1/organization/usage/completions model,api_key_id two'))

  assert.deepEqual(inShort(await linesOf(report.id)), {
    '03 large-2-2025-11-01 ACME_A': 'matched',
    '03 large-2-2025-11-01 ACME_B': 'differs input',
    '03 large-2-2025-11-01 key_stolen': 'only_theirs',
    '03 small-1 ACME_A': 'only_ours',
    '04 small-1 ACME_A': 'only_ours',
    '03 large-2-2025-11-01 *': 'matched',
    '03 small-1 *': 'differs cost',
    '04 small-1 *': 'matched',
    '04 web search *': 'only_theirs',
  })
  assert.equal((await linesOf(report.id, '&verdict=only_theirs')).length, 2)
  assert.equal(inShort(await linesOf(report.id, '&tolerance=0'))['03 large-2-2025-11-01 ACME_A'], 'differs input')

  const path = `/vendor-reports/${report.id}/calls?day=${DAY}&model=large-2-2025-11-01`
  const behind = await ask<Page<ComparedCall>>('GET', `${path}&credential=ACME_B&limit=3`)
  assert.equal(behind.items.length, 3)
  const rest = await ask<Page<ComparedCall>>('GET', `${path}&credential=ACME_B&limit=3&cursor=${behind.next}`)
  assert.equal(rest.items.length, 2)
  assert.equal(rest.next, null)
  assert.equal(new Set([...behind.items, ...rest.items].map(({ id }) => id)).size, 5)
  assert.equal(behind.items[0]?.cost, '0.013')
  await ask('DELETE', `/vendor-reports/${report.id}`)
})

test('what vendors took for what no caller pays is compared with their report too', async () => {
  const { id: account } = await g.account()
  const day = '2026-02-06'
  await record(account, day, 'acme-large', 'ACME_A', 10)
  await g.sql(`insert into unbilled_day (day, kind, vendor, product, model, credential, calls, input_tokens, output_tokens, cost) values
      ('${day}', 'shadow', 'acme', 'acme-large', 'large-2', 'ACME_A', 2, 2000, 200, 26000), ('${day}', 'first_token_timeout', 'acme', 'acme-small', 'small-1', 'ACME_B', 1, 1000, 0, null),
      ('${day}', 'shadow', 'other', 'acme-large', 'large-2', 'ACME_A', 9, 9000, 900, 99000), ('2026-02-07', 'shadow', 'acme', 'acme-large', 'large-2', 'ACME_A', 9, 9000, 900, 99000)`)
  const csv = `day,model,credential,requests,input_tokens,output_tokens,cost
${day},large-2,ACME_A,12,12000,1200,0.156
${day},small-1,ACME_B,1,1000,0,`
  const input = { vendor: 'acme', source: 'csv', from: day, to: day, creditsPerUnit: '1', csv }
  const report = await ask<ReportView>('POST', '/vendor-reports', input)
  assert.deepEqual(inShort(await linesOf(report.id)), {
    '06 large-2 ACME_A': 'matched',
    '06 small-1 ACME_B': 'matched',
  })
  await ask('DELETE', `/vendor-reports/${report.id}`)
})

test('Anthropic: usage with caches, costs in cents', async () => {
  const url = serve(({ pathname, searchParams }, headers) => {
    if (headers['x-api-key'] !== 'sk-ant-admin' || headers['anthropic-version'] !== '2023-06-01') return undefined
    assert.equal(searchParams.get('starting_at'), `${DAY}T00:00:00Z`)
    const bucket = { starting_at: `${DAY}T00:00:00Z`, ending_at: `${NEXT}T00:00:00Z` }
    const page = (results: object[]) => ({ data: [{ ...bucket, results }], has_more: false, next_page: null })
    if (pathname === '/v1/organizations/usage_report/messages')
      return page([
        {
          model: 'large-2-20251101',
          api_key_id: 'apikey_1',
          uncached_input_tokens: 9_000,
          cache_read_input_tokens: 500,
          output_tokens: 1_000,
          cache_creation: { ephemeral_1h_input_tokens: 200, ephemeral_5m_input_tokens: 300 },
        },
      ])
    if (pathname === '/v1/organizations/cost_report')
      return page([
        { currency: 'USD', amount: '0.195', model: 'large-2-20251101', description: 'Large 2 Usage - Input Tokens' },
      ])
    return undefined
  })
  await ask('PUT', '/vendor-reports/credential', { source: 'anthropic', url, value: 'sk-ant-admin' })
  const report = await ask<ReportView>('POST', '/vendor-reports', {
    vendor: 'acme',
    source: 'anthropic',
    from: DAY,
    to: DAY,
    url,
    creditsPerUnit: '100',
    keys: { apikey_1: 'ACME_A' },
  })
  assert.deepEqual(inShort(await linesOf(report.id)), {
    '03 large-2-20251101 ACME_A': 'matched',
    '03 large-2-20251101 *': 'matched',
    '03 large-2 ACME_B': 'only_ours',
    '03 small-1 *': 'only_ours',
    '03 small-1 ACME_A': 'only_ours',
  })
})

test('OpenRouter: activity by the hash of a key', async () => {
  const url = serve(({ pathname, searchParams }, { authorization }) => {
    if (authorization !== 'Bearer sk-or-mgmt' || pathname !== '/api/v1/activity') return undefined
    const calls = searchParams.get('date') === DAY && searchParams.get('api_key_hash') === 'hash-a' ? 10 : 0
    const row = {
      date: DAY,
      model: 'large-2',
      model_permaslug: 'large-2',
      endpoint_id: 'e',
      provider_name: 'p',
      byok_usage_inference: 0,
      reasoning_tokens: 0,
    }
    return {
      data: calls ? [{ ...row, usage: 0.0013, requests: calls, prompt_tokens: 10_000, completion_tokens: 1_000 }] : [],
    }
  })
  const place = `${url}/api/v1`
  await ask('PUT', '/vendor-reports/credential', { source: 'openrouter', url: place, value: 'sk-or-mgmt' })
  const report = await ask<ReportView>('POST', '/vendor-reports', {
    vendor: 'acme',
    source: 'openrouter',
    from: DAY,
    to: DAY,
    url: place,
    creditsPerUnit: '100',
    keys: { 'hash-a': 'ACME_A' },
  })
  assert.equal(inShort(await linesOf(report.id))['03 large-2 ACME_A'], 'matched')
})

test('CSV: an uploaded report is compared by what it says, and refused by its line', async () => {
  const upload = (csv: string) =>
    g.operator<ReportView>('POST', '/vendor-reports', {
      vendor: 'acme',
      source: 'csv',
      from: DAY,
      to: NEXT,
      creditsPerUnit: '100',
      csv,
    })
  const { status, data } = await upload(
    `day,model,requests,cost\n${DAY},large-2,15,0.00195\n${DAY},"small-1",4,0.00052\n${NEXT},small-1,9,\n`,
  )
  assert.equal(status, 200)
  assert.deepEqual(inShort(await linesOf(data.id)), {
    '03 large-2 *': 'matched',
    '03 small-1 *': 'matched',
    '04 small-1 *': 'differs calls',
  })
  for (const [csv, said] of [
    ['model,cost\nx,1\n', /first line must name/],
    [`day,model,cost\n2026-13-01,x,1\n`, /line 2: day/],
    [`day,model,cost\n${DAY},x,a lot\n`, /line 2: cost/],
    [`day,model,cost\n${DAY},x,\n`, /line 2: it has no figure/],
  ] as const) {
    const refused = await upload(csv)
    assert.equal(refused.status, 400)
    assert.match(JSON.stringify(refused.data), said)
  }
})
