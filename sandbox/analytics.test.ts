import assert from 'node:assert/strict'
import { test } from 'node:test'
import { realWorld } from '../src/kernel/world.ts'
import { started } from '../test/started.ts'
import { startSandbox } from './server.ts'

const sandbox = started(() => startSandbox({ world: { ...realWorld, nowMs: () => Date.UTC(2026, 10, 15) } }))

/** A native answer, of whose shape a test knows only what it reads. */
class Native {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }

  at(...keys: (string | number)[]): Native {
    let value = this.value
    for (const key of keys) value = (value as Record<string | number, unknown>)[key]
    return new Native(value)
  }

  number(...keys: (string | number)[]): number {
    const { value } = this.at(...keys)
    assert.equal(typeof value, 'number', keys.join('.'))
    return value as number
  }

  rows(...keys: (string | number)[]): Native[] {
    const { value } = this.at(...keys)
    assert.ok(Array.isArray(value), keys.join('.'))
    return value.map((row) => new Native(row))
  }

  /** One column of the rows there. */
  column(name: string, ...keys: (string | number)[]): number[] {
    return this.rows(...keys).map((row) => row.number(name))
  }
}

async function get(path: string, query: string): Promise<Native> {
  const response = await fetch(`${sandbox.url}/analytics/${path}?${query.replaceAll('|', '%7C')}`)
  assert.equal(response.status, 200, path)
  assert.equal(response.headers.get('x-simulated'), 'tollgate-sandbox')
  return new Native(await response.json())
}

const SITES = ['example.com', 'shop.example', 'news.example.org', 'a-very-small-blog.example']
const OCTOBER = 'from=2026|10|01&to=2026|10|31'
const QUARTER = 'from=2026|08|01&to=2026|10|31'
const sum = (values: number[]) => values.reduce((a, b) => a + b, 0)
const isOne = (total: number, what: string) => assert.ok(Math.abs(total - 1) < 1e-9, `${what}: ${total}`)

test('visits, their table, trend, channels, history and engagement tell one story', async () => {
  for (const site of SITES) {
    const total = (await get('websites/visits', `keys=${site}&${OCTOBER}`)).number('Data', site, 'TotalVisits')
    assert.ok(total > 0)
    const table = await get('websites/visits/table', `keys=${site}&${OCTOBER}`)
    assert.equal(table.number('Data', 0, 'TotalVisits'), total)
    for (const step of ['Daily', 'Weekly', 'Monthly']) {
      const trend = await get('websites/visits/trend', `keys=${site}&${OCTOBER}&timeGranularity=${step}`)
      assert.equal(sum(trend.column('Value', 'Data', site, 'Total', 0)), total, `${site} ${step}`)
    }
    const channels = (await get('websites/channels', `keys=${site}&${OCTOBER}`)).at('Data', 'Total', site)
    assert.equal(sum(Object.values(channels.value as Record<string, number>)), total)
    const history = (await get('websites/history/visits', `keys=${site}&${QUARTER}`)).at('Data', site)
    const [whole = [], desktop = [], mobile = []] = ['Total', 'Desktop', 'Mobile Web'].map((name) =>
      history.column('Value', name, 0),
    )
    assert.equal(whole.at(-1), total)
    assert.deepEqual(
      whole,
      desktop.map((visits, index) => visits + (mobile[index] ?? 0)),
    )
    const engagement = (await get('websites/engagement', `keys=${site}&${OCTOBER}`)).at('Data', 0)
    assert.equal(engagement.number('AvgMonthVisits'), total)
    for (const [path, column] of [
      ['bounce-rate', 'BounceRate'],
      ['visit-duration', 'AvgVisitDuration'],
      ['pages-per-visit', 'PagesPerVisit'],
    ] as const) {
      const series = await get(`websites/history/${path}`, `keys=${site}&${OCTOBER}`)
      assert.equal(series.number('Data', site, 'Total', 0, 0, 'Value'), engagement.number(column))
    }
    const searched = channels.number('Organic Search') + channels.number('Paid Search')
    const keywords = await get('websites/keywords', `keys=${site}&${OCTOBER}&pageSize=1000`)
    assert.equal(sum(keywords.column('Clicks', 'Data', 'Records')), searched)
    assert.equal(keywords.number('Data', 'OverallClicks'), searched)
    const branded = (await get('websites/branded-keywords', `keys=${site}&${OCTOBER}`)).at('Data', site)
    assert.equal(branded.number('Branded') + branded.number('NoneBranded'), searched)
    const referrals = await get('websites/incoming-referrals', `key=${site}&${OCTOBER}`)
    assert.equal(referrals.number('TotalVisits'), channels.number('Referrals'))
  }
})

test('a quarter is the sum of its months, of its devices and of its countries', async () => {
  for (const site of SITES) {
    const total = async (days: string, rest = '') =>
      (await get('websites/visits', `keys=${site}&${days}${rest}`)).number('Data', site, 'TotalVisits')
    const months = ['from=2026|08|01&to=2026|08|31', 'from=2026|09|01&to=2026|09|30', OCTOBER]
    const quarter = await total(QUARTER)
    assert.equal(sum(await Promise.all(months.map((days) => total(days)))), quarter)
    const devices = ['Desktop', 'MobileWeb'].map((device) => total(QUARTER, `&webSource=${device}`))
    assert.equal(sum(await Promise.all(devices)), quarter)
    const geography = await get('websites/geography', `keys=${site}&${QUARTER}&pageSize=1000`)
    const countries = geography.column('Country', 'Data').map((code) => total(QUARTER, `&country=${code}`))
    assert.equal(sum(await Promise.all(countries)), quarter)
  }
})

test('shares add up to one', async () => {
  for (const site of SITES) {
    const geography = await get('websites/geography', `keys=${site}&${QUARTER}&pageSize=1000`)
    isOne(sum(geography.column('Share', 'Data')), 'countries')
    assert.equal((await get('websites/geography', `keys=${site}&${QUARTER}&pageSize=5`)).rows('Data').length, 5)
    const devices = (await get('websites/devices', `keys=${site}&${QUARTER}`)).at('Data', site)
    isOne(devices.number('Desktop') + devices.number('Mobile Web'), 'devices')
    const networks = (await get('websites/social-traffic', `keys=${site}&${QUARTER}`)).at('Data', site)
    isOne(sum(Object.keys(networks.value as object).map((name) => networks.number(name, 'Share'))), 'networks')
    for (const [path, column] of [
      ['websites/incoming-referrals', 'TotalShare'],
      ['websites/outgoing-traffic', 'Share'],
    ] as const) {
      const rows: Native[] = []
      for (let page = 1; ; page++) {
        const answer = await get(path, `key=${site}&${OCTOBER}&page=${page}`)
        rows.push(...answer.rows('Records'))
        assert.ok(answer.rows('Records').length <= 100)
        if (rows.length === answer.number('TotalCount')) break
      }
      isOne(sum(rows.map((row) => row.number(column))), path)
      assert.equal(new Set(rows.map((row) => row.at('Domain').value)).size, rows.length)
    }
  }
})

test('ranks are the same in every report', async () => {
  for (const site of SITES) {
    const ranks = (await get('websites/ranks', `keys=${site}&${QUARTER}`)).at('Data', site)
    for (const [path, name] of [
      ['global', 'GlobalRank'],
      ['country', 'CountryRank'],
      ['category', 'CategoryRank'],
    ] as const) {
      const table = await get(`websites/ranks/${path}`, `keys=${site}&${QUARTER}`)
      assert.equal(table.number('Data', 0, 'Rank'), ranks.number(name, 'Value'))
      assert.equal(ranks.column('Value', name, 'Trend').at(-1), ranks.number(name, 'Value'))
      assert.equal(table.number('TotalCount'), 0, 'as the real one does')
    }
    const similar = await get('websites/similar-sites', `keys=${site}&${QUARTER}`)
    const candidates = await get('websites/similar-sites/suggestions', `key=${site}&limit=5`)
    const named = (rows: Native[]) => rows.map((row) => [row.at('Domain').value, row.number('Rank')])
    assert.deepEqual(named(candidates.rows()), named(similar.rows('Data').slice(0, 5)))
  }
})

test('tables sort, filter and page', async () => {
  const links = (query: string) => get('websites/backlinks', `Key=example.com&${query}`)
  const all = await links('PageSize=1000')
  const scores = all.column('DomainScore', 'Records')
  assert.deepEqual(
    scores,
    scores.toSorted((a, b) => b - a),
  )
  assert.equal(all.number('TotalRecords'), scores.length)
  const some = await links('PageSize=1000&DomainScoreFrom=40&DomainScoreTo=60&Status=Lost&FollowType=NoFollowOnly')
  for (const row of some.rows('Records')) {
    assert.ok(row.number('DomainScore') >= 40 && row.number('DomainScore') <= 60)
    assert.deepEqual([row.at('Status').value, row.at('FollowType').value], ['Lost', 'NoFollow'])
  }
  assert.deepEqual((await links('Page=2&PageSize=10')).rows('Records'), all.rows('Records').slice(10, 20))
  const range = 'rangeFilter=windowVolume,1000,20000|cpc,1,&rowsPerPage=1000'
  for (const row of (await get('keywords/suggestions', `keyword=tea&${OCTOBER}&${range}`)).rows('records')) {
    assert.ok(row.number('windowVolume') >= 1000 && row.number('windowVolume') <= 20_000)
    assert.ok(row.number('cpc') >= 1)
  }
  const exact = await get('keywords/suggestions', `keyword=tea&${OCTOBER}&type=Exact`)
  assert.equal(exact.number('totalRecords'), 1)
})

test('the same question has the same answer, and a site too small to measure has none', async () => {
  const twice = await Promise.all([1, 2].map(() => get('websites/keywords', `keys=example.com&${OCTOBER}`)))
  assert.deepEqual(twice[0], twice[1])
  assert.deepEqual((await get('websites/similar-sites/suggestions', 'key=unknown.example')).value, [])
  assert.deepEqual((await get('websites/visits', `keys=unknown.example&${OCTOBER}`)).at('Data').value, {})
  assert.deepEqual((await get('websites/engagement', `keys=unknown.example&${OCTOBER}`)).at('Data').value, [])
})
