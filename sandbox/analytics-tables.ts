// The reports that are tables: keywords, links, referrers and neighbours, with sorting, filters and pages.
import { favicon, searchVisits } from './analytics-figures.ts'
import { apportion, shares } from './apportion.ts'
import { dice, hash } from './seed.ts'
import { CATEGORIES, channelsOf, findSite, neighbour, type Site, visitsOf } from './site.ts'
import type { Report, SiteAsk } from './site-ask.ts'

export const TABLES: Readonly<Record<string, Report>> = {
  'keywords/suggestions': suggestions,
  'keywords/websites': rankingSites,
  'websites/backlinks': backlinks,
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
  'websites/outgoing-traffic': outgoing,
  'websites/similar-sites': (ask) => {
    const all = ask.site ? similar(ask.site) : []
    return { TotalCount: all.length, Data: all }
  },
  'websites/similar-sites/suggestions': (ask) =>
    (ask.site ? similar(ask.site) : [])
      .slice(0, ask.number('limit', 20))
      .map(({ Domain, Rank, Favicon }) => ({ Domain, DomainWithoutSub: Domain, Rank, Favicon })),
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

const MODIFIERS = [
  'best',
  'cheap',
  'online',
  'near me',
  'review',
  'for women',
  'for men',
  'sale',
  'price',
  'guide',
].concat([
  '2026',
  'used',
  'vs',
  'how to',
  'brands',
  'ideas',
  'free',
  'top 10',
  'store',
  'outlet',
  'kids',
  'pro',
  'light',
])
const INTENTS = ['Informational', 'Navigational', 'Commercial', 'Transactional'] as const

function suggestions(ask: SiteAsk) {
  const type = ask.text('type', 'Broad')
  const phrases = type === 'Exact' ? [ask.name] : [ask.name, ...combined(ask.name, type === 'Related')]
  const days = ask.to - ask.from + 1
  const all = phrases.map((keyword) => {
    const die = dice(hash(`keyword ${keyword} ${ask.country} ${ask.device}`))
    const perDay = 3 + die.roll(9000) / (keyword.split(' ').length * 3)
    const volume = Math.round(perDay * days)
    return {
      keyword,
      windowVolume: volume,
      averageVolume: Math.round(perDay * 30),
      monthlyVolume: Math.round(perDay * 30),
      clicks: Math.round(volume * 0.6),
      cpc: (20 + die.roll(480)) / 100,
      difficulty: die.roll(101),
      leadingSite: `leader${die.roll(40)}.example`,
      primaryIntent: die.pick(INTENTS),
      latestZeroClicks: die.roll(100) / 100,
      volumeTrend: Array.from({ length: 12 }, () => Math.round(perDay * (20 + die.roll(20)))),
      score: die.roll(1000) / 1000,
    }
  })
  const found = sorted(all.filter(inRange(ask.text('rangeFilter', ''))), ask, 'windowVolume')
  return {
    records: paged(found, ask.number('page', 1), ask.number('rowsPerPage', PAGE_ROWS)),
    totalRecords: found.length,
    totalClicks: sum(found.map((row) => row.clicks)),
    totalVolume: sum(found.map((row) => row.windowVolume)),
    maxScore: Math.max(0, ...found.map((row) => row.score)),
  }
}

function combined(phrase: string, related: boolean): string[] {
  const base = related ? phrase.split(' ').toReversed().join(' ') : phrase
  const once = MODIFIERS.map((word) => (related ? `${word} ${base} alternative` : `${base} ${word}`))
  return [...once, ...MODIFIERS.flatMap((word) => once.slice(0, 5).map((longer) => `${word} ${longer}`))]
}

/** `field,min,max|field,min,max`; an empty bound is open. */
function inRange(filter: string): (row: object) => boolean {
  const bounds = filter === '' ? [] : filter.split('|').map((part) => part.split(','))
  return (row) =>
    bounds.every(([field = '', min = '', max = '']) => {
      const value = Number(Reflect.get(row, field))
      return !(min !== '' && value < Number(min)) && !(max !== '' && value > Number(max))
    })
}

/** The keywords of a site; their clicks add up to its visits from that kind of search. */
function keywordsOf(ask: SiteAsk, site: Site, kind: string) {
  const paid = kind.toLowerCase() === 'paid'
  const channels = paid ? ['Paid Search'] : kind.toLowerCase() === 'organic' ? ['Organic Search'] : undefined
  const total = searchVisits(ask, site, channels)
  const brand = site.domain.split('.')[0] ?? site.domain
  const topic = site.category.replaceAll('_', ' ').toLowerCase()
  const words = [brand, ...combined(brand, false).slice(0, 40), ...combined(topic, false).slice(0, 120)]
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

function rankingSites(ask: SiteAsk) {
  const paid = ask.text('selectedPageTab', 'Organic') === 'Paid'
  const count = paid ? 12 : 60
  const parts = shares(Array.from({ length: count }, (_, index) => 1 / (index + 1)))
  const all = parts.map((share, index) => {
    const domain = `${
      ask.name
        .split(' ')[0]
        ?.replace(/[^a-z0-9]/gi, '')
        .toLowerCase() || 'site'
    }${index + 1}.example`
    return { Domain: domain, Share: share, Position: index + 1, Url: `${domain}/`, Favicon: favicon(domain) }
  })
  const found = sorted(all, ask, 'Share')
  return { TotalCount: all.length, Data: paged(found, ask.number('page', 1), ask.number('pageSize', PAGE_ROWS)) }
}

function backlinks(ask: SiteAsk) {
  const { site } = ask
  const count = site ? 40 + (hash(`links ${site.domain}`) % 400) : 0
  const status = ask.text('Status', 'All')
  const follow = ask.text('FollowType', 'All').replace(/Only$/, '')
  const all = Array.from({ length: count }, (_, index) => {
    const die = dice(hash(`backlink ${site?.domain} ${index}`))
    const from = site ? neighbour(site, 'link', index) : ''
    return {
      SourceUrl: `https://${from}/articles/${die.roll(9000)}`,
      SourceDomain: from,
      TargetUrl: `https://${site?.domain}/`,
      AnchorText: die.pick(['here', 'this site', 'read more', 'official page'] as const),
      DomainScore: die.roll(101),
      Status: die.pick(['Active', 'Active', 'Active', 'New', 'Lost'] as const),
      FollowType: die.pick(['DoFollow', 'DoFollow', 'NoFollow'] as const),
      Favicon: favicon(from),
    }
  })
  const found = sorted(
    all.filter(
      (row) =>
        (status === 'All' || row.Status === status) &&
        (follow === 'All' || row.FollowType === follow) &&
        row.DomainScore >= ask.number('DomainScoreFrom', 0) &&
        row.DomainScore <= ask.number('DomainScoreTo', 100),
    ),
    ask,
    'DomainScore',
  )
  const [page, size] = [ask.number('Page', 1), ask.number('PageSize', 100)]
  return { TotalRecords: found.length, Records: paged(found, page, size), Page: page, PageSize: size }
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
    const domain = neighbour(site, 'referrer', index)
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

function outgoing(ask: SiteAsk) {
  const { site } = ask
  const count = site ? 30 + (hash(`outgoing ${site.domain}`) % 150) : 0
  const parts = shares(Array.from({ length: count }, (_, index) => 1 / (index + 1)))
  const all = parts.map((share, index) => {
    const domain = site ? neighbour(site, 'outgoing', index) : ''
    return {
      Domain: domain,
      Share: share,
      Change: 0,
      NewChange: 0,
      Rank: rankOf(domain),
      Favicon: favicon(domain),
    }
  })
  return {
    TotalCount: all.length,
    TotalVisits: site ? Math.round(visitsOf(site, ask) * 0.12) : 0,
    Categories: CATEGORIES,
    Topics: [],
    Records: paged(all, ask.number('page', 1), PAGE_ROWS),
  }
}

function similar(site: Site) {
  return Array.from({ length: 5 + (site.rank % 30) }, (_, index) => {
    const domain = neighbour(site, 'similar', index)
    return {
      Domain: domain,
      Affinity: Math.round(1000 / (1 + index * 0.15)) / 1000,
      Rank: rankOf(domain),
      Category: site.category,
      Favicon: favicon(domain),
    }
  })
}
