// A scripted Similarweb: it answers in the shapes of its public documentation, checks what it is asked as strictly, and
// counts the data credits that it bills. Domains that begin with `nodata.`, `busy.`, `partial.` or `empty.` get what
// their name says.
import type { ServerResponse } from 'node:http'
import { listen } from './started.ts'

export const SIMILARWEB_KEY = 'sw-0123456789abcdef0123456789abcdef'

type Asked = { readonly path: string; readonly query: Readonly<Record<string, string>> }

type Members = Record<string, unknown>
type Maker = (
  query: Asked['query'],
  dates: readonly string[],
) => { rows: Members[]; creditsEach: number; meta?: Members }

const W5 = '/v5/website-analysis/websites'
const METRICS: Readonly<Record<string, number>> = {
  visits: 1000,
  unique_visitors: 600,
  page_views: 3000,
  average_visit_duration: 120.5,
  pages_per_visit: 3,
  bounce_rate: 0.4,
}

const sites = (query: Asked['query'], most: number) =>
  Array.from({ length: Math.min(most, Number(query.limit ?? 10)) }, (_, at) => `site-${at + 1}.example`)
const referrals: Maker = (query) => ({
  rows: sites(query, 7).map((domain, at) => ({ domain, share: 0.1 / (at + 1), change: at === 0 ? null : 0.02 })),
  creditsEach: 3,
  meta: { visits: 5000, total_count: 7 },
})

const MAKERS: Readonly<Record<string, Maker>> = {
  [`${W5}/traffic-and-engagement`]: (query, dates) => {
    const metrics = (query.metrics ?? '').split(',')
    const row = (at: number) => Object.fromEntries(metrics.map((one) => [one, (METRICS[one] ?? 0) + at]))
    return { rows: dates.map((date, at) => ({ date, ...row(at) })), creditsEach: metrics.length }
  },
  [`${W5}/website-rank`]: (query, dates) => ({
    rows: dates.map((date, at) => ({
      date,
      country_rank: (query.country === 'ww' ? 100 : 10) + at,
      category: 'Computers/Programming',
      category_rank: 5,
    })),
    creditsEach: 2,
  }),
  [`${W5}/traffic-channels`]: (_, dates) => ({
    rows: dates.flatMap((date) =>
      ['Direct', 'Organic Search', 'Gen AI'].map((source_type, at) => ({ date, source_type, visits: 100 * (at + 1) })),
    ),
    creditsEach: 1,
  }),
  [`${W5}/geography/aggregated`]: (query) => ({
    rows: [840, 'DE', 392, 'fr', 'XX', 826]
      .slice(0, Number(query.limit ?? 10))
      .map((country, at) => ({
        country,
        country_name: `Country ${at}`,
        share: 0.3 / (at + 1),
        visits: 900,
        rank: at + 1,
        average_time: 61.5,
        pages_per_visit: 2.5,
        bounce_rate: 0.5,
      })),
    creditsEach: 3,
    meta: { total_count: 6 },
  }),
  [`${W5}/traffic-referrals/incoming`]: referrals,
  [`${W5}/traffic-referrals/outgoing`]: referrals,
  [`${W5}/referrals/aggregated`]: (query) => ({
    rows: sites(query, 4).map((domain) => ({ domain, share: 0.25, change: 0, visits: 250 })),
    creditsEach: 4,
  }),
  [`${W5}/similar-sites/aggregated`]: (query) => ({
    rows: sites(query, 12).map((domain, at) => ({ domain, affinity: 1 - at / 20 })),
    creditsEach: 5,
  }),
  '/v4/website-analysis/keywords': (query) => ({
    rows: Array.from({ length: Math.min(9, Number(query.limit)) }, (_, at) => ({
      keyword: `keyword ${at + 1}`,
      clicks: 90 - at,
      traffic_share: 0.09,
      difficulty: 30,
      volume: 1000,
      cpc: 1.25,
      primary_intent: 'informational',
      top_url: 'https://example.com/',
      position: null,
    })),
    creditsEach: 1 / 4,
  }),
}

export interface Similarweb {
  readonly url: string
  readonly asked: Asked[]
  /** Billed since the last look. */
  billed(): number
  /** What the next request gets instead. */
  next(answer: (res: ServerResponse) => void): void
  close(): void
}

const say = (res: ServerResponse, status: number, value: unknown) =>
  res.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
const failed = (res: ServerResponse, status: number, code: number, message: string) =>
  say(res, status, { meta: { request: {}, status: 'Error', error_code: code, error_message: message } })

/** The periods from first to last; undefined if they are not written as the granularity wants them. */
function periods({ start_date: first = '', end_date: last = '', granularity = 'monthly' }: Asked['query']) {
  if (first === '' && last === '') return ['2026-10-01']
  const isMonthly = granularity === 'monthly'
  const shape = isMonthly ? /^\d{4}-\d{2}$/ : /^\d{4}-\d{2}-\d{2}$/
  if (!shape.test(first) || !shape.test(last) || first > last) return undefined
  const found: string[] = []
  const [begin, end] = [first, last].map((text) => new Date(isMonthly ? `${text}-01` : text))
  if (!begin || !end) return undefined
  for (const at = begin; at <= end; ) {
    found.push(at.toISOString().slice(0, 10))
    if (isMonthly) at.setUTCMonth(at.getUTCMonth() + 1)
    else at.setUTCDate(at.getUTCDate() + (granularity === 'weekly' ? 7 : 1))
  }
  return found
}

export async function startSimilarweb(): Promise<Similarweb> {
  const asked: Asked[] = []
  let credits = 0
  const planned: ((res: ServerResponse) => void)[] = []
  const server = await listen((req, res) => {
    const url = new URL(req.url ?? '', 'http://similarweb.test')
    if (req.headers['api-key'] !== SIMILARWEB_KEY)
      return res.writeHead(401, { 'content-type': 'text/plain' }).end('invalid API key')
    if (url.pathname === '/capabilities') return say(res, 200, { remaining_hits: 1000, user_remaining: 1000 })
    const query = Object.fromEntries(url.searchParams)
    asked.push({ path: url.pathname, query })
    const plan = planned.shift()
    if (plan) return plan(res)
    const make = MAKERS[url.pathname]
    const domain = query.domain ?? query.URL ?? ''
    if (!make) return failed(res, 404, 404, 'Unknown endpoint')
    if (domain !== domain.toLowerCase() || domain.startsWith('nodata.')) return failed(res, 404, 401, 'Data not found')
    if (domain.startsWith('busy.')) return failed(res, 429, 429, 'Too many requests')
    if (query.country !== undefined && !/^[a-z]{2}$/.test(query.country))
      return failed(res, 400, 103, 'Country not available')
    const dates = periods(query)
    if (!dates) return failed(res, 400, 101, 'Dates not in range')
    const { rows, creditsEach, meta } = make(query, dates)
    const isEmpty = domain.startsWith('empty.')
    const given = isEmpty ? [] : domain.startsWith('partial.') ? rows.map(({ date }) => (date ? { date } : {})) : rows
    credits += Math.ceil(given.length * creditsEach)
    const list = url.pathname.startsWith('/v4/') ? { keywords: given, keywords_count: 900 } : { data: given }
    say(res, 200, { meta: { request: query, status: 'Success', last_updated: '2026-10-31', ...meta }, ...list })
  })
  return {
    ...server,
    asked,
    billed() {
      const sum = credits
      credits = 0
      return sum
    },
    next: (answer) => void planned.push(answer),
  }
}
