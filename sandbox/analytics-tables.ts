// The tables whose figures agree with those of other reports: keywords and referrers.
import { favicon } from './analytics-derived.ts'
import { searchVisits } from './analytics-figures.ts'
import { apportion, shares } from './apportion.ts'
import { dice, hash } from './seed.ts'
import { CATEGORIES, channelsOf, findSite, neighbour, phrases, type Site, visitsOf } from './site.ts'
import type { Report, SiteAsk } from './site-ask.ts'

export const TABLES: Readonly<Record<string, Report>> = {
  'websites/keywords': (ask) => {
    const all = ask.site ? keywordsOf(ask, ask.site, ask.text('sourceType', 'all')) : []
    const records = paged(sorted(all, ask, 'Clicks'), ask.number('page', 1), ask.number('pageSize', 100))
    return {
      SearchEngines: ['Google', 'Bing', 'DuckDuckGo'],
      TotalCount: all.length,
      Header: {},
      Data: { KeywordsCount: all.length, OverallClicks: sum(all.map((row) => row.Clicks)), Records: records },
    }
  },
  'websites/search-performance': (ask) => {
    const all = ask.site ? keywordsOf(ask, ask.site, ask.text('SourceType', 'Organic')) : []
    return {
      FromAlternativeSources: false,
      TotalCount: all.length,
      TotalTopLevelCount: all.length,
      Data: all
        .slice(0, ask.number('pageSize', 5))
        .map((row) => ({ SearchTerm: row.Keyword, TotalShare: row.Share, TotalVisits: row.Clicks })),
    }
  },
  'websites/traffic-sources': (ask) => ({
    Filters: { sourceType: ['Referral', 'Search', 'Social', 'Direct'] },
    Data: ask.site ? sources(ask, ask.site) : [],
  }),
  'websites/incoming-referrals': incoming,
}

const rankOf = (domain: string) => findSite(domain)?.rank ?? 0

/** The native tables without a page size of their own. */
const PAGE_ROWS = 100

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0)

function paged<T>(rows: readonly T[], page: number, size: number): T[] {
  return rows.slice((page - 1) * size, page * size)
}

function sorted<T extends object>(rows: readonly T[], ask: SiteAsk, column: keyof T & string): T[] {
  const by = ask.text('sort', column)
  const sign = ask.text('asc', 'false') === 'true' ? 1 : -1
  const at = (row: T) => Reflect.get(row, by) as number | string | undefined
  return [...rows].sort((a, b) => {
    const [x, y] = [at(a) ?? 0, at(b) ?? 0]
    return x === y ? 0 : x > y ? sign : -sign
  })
}

const INTENTS = ['Informational', 'Navigational', 'Commercial', 'Transactional'] as const

/** The keywords of a site; their clicks add up to its visits from that kind of search. */
function keywordsOf(ask: SiteAsk, site: Site, kind: string) {
  const paid = kind.toLowerCase() === 'paid'
  const channels = paid ? ['Paid Search'] : kind.toLowerCase() === 'organic' ? ['Organic Search'] : undefined
  const total = searchVisits(ask, site, channels)
  const brand = site.domain.split('.')[0] ?? site.domain
  const topic = site.category.replaceAll('_', ' ').toLowerCase()
  const words = [...phrases(brand).slice(0, 41), ...phrases(topic).slice(1, 121)]
  const clicks = apportion(
    total,
    words.map((_, index) => 1 / (index + 1) ** 0.9),
  )
  const parts = shares(clicks)
  return words.map((keyword, index) => {
    const die = dice(hash(`${keyword} ${site.domain}`))
    const volume = (clicks[index] ?? 0) * (2 + die.roll(6))
    return {
      Keyword: keyword,
      Clicks: clicks[index] ?? 0,
      Share: parts[index] ?? 0,
      ChangeState: die.pick(['up', 'down', 'same'] as const),
      ClicksChangePresentation: (die.roll(400) - 200) / 1000,
      Difficulty: die.roll(101),
      PrimaryIntent: die.pick(INTENTS),
      KwVolume: volume,
      KwVolumeAverage: Math.round(volume * 0.95),
      Cpc: (20 + die.roll(480)) / 100,
      ZeroClicksShare: die.roll(100) / 100,
      TopUrl: `${site.domain}/${index === 0 ? '' : keyword.replaceAll(' ', '-')}`,
      SitesData: [{ Site: site.domain, SerpFeatures: die.roll(2) === 0 ? [] : ['sitelinks'] }],
    }
  })
}

/** Referrers of a site; their visits add up to the channel "Referrals". */
function referrers(ask: SiteAsk, site: Site) {
  const visits = channelsOf(site, visitsOf(site, ask)).Referrals ?? 0
  const count = 60 + (hash(`referrers ${site.domain}`) % 200)
  const parts = apportion(
    visits,
    Array.from({ length: count }, (_, index) => 1 / (index + 1)),
  )
  const part = shares(parts)
  return parts.map((total, index) => {
    const domain = neighbour(site.domain, 'referrer', index)
    return { domain, total, share: part[index] ?? 0 }
  })
}

function sources(ask: SiteAsk, site: Site) {
  const page = ask.number('page', 1)
  if (ask.text('sourceType', 'Referral') === 'Referral')
    return paged(referrers(ask, site), page, PAGE_ROWS).map(({ domain, total, share }) => ({
      Domain: domain,
      SourceType: 'Referral',
      Share: share,
      Visits: total,
      Rank: rankOf(domain),
      Favicon: favicon(domain),
    }))
  const channels = Object.entries(channelsOf(site, visitsOf(site, ask)))
  const parts = shares(channels.map(([, visits]) => visits))
  const rows = channels
    .map(([name, visits], index) => ({ Domain: name, SourceType: name, Share: parts[index] ?? 0, Visits: visits }))
    .sort((a, b) => b.Share - a.Share)
  return paged(rows, page, PAGE_ROWS)
}

function incoming(ask: SiteAsk) {
  const all = ask.site ? referrers(ask, ask.site) : []
  return {
    TotalShare: all.length > 0 ? 1 : 0,
    TotalVisits: sum(all.map(({ total }) => total)),
    TopCategories: CATEGORIES.slice(0, 3),
    Categories: CATEGORIES,
    AllCategories: CATEGORIES,
    Topics: [],
    TotalCount: all.length,
    TotalUnGroupedCount: all.length,
    Records: paged(all, ask.number('page', 1), PAGE_ROWS).map(({ domain, total, share }) => ({
      Domain: domain,
      Rank: rankOf(domain),
      Change: 0,
      NewChange: 0,
      Share: share,
      FilteredShare: share,
      TotalVisits: total,
      TotalShare: share,
      TotalSharePerMonth: [],
      SiteOrigins: {},
      Category: findSite(domain)?.category ?? '',
      Favicon: favicon(domain),
    })),
  }
}
