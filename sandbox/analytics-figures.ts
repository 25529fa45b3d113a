// The reports that are figures of one site: visits, ranks, channels, devices, countries, and their history.
import { civilDate, formatDay, monthStart } from '../src/kernel/calendar.ts'
import { favicon, searchVisits } from './analytics-derived.ts'
import { shares } from './apportion.ts'
import { dice, hash } from './seed.ts'
import {
  byDevice,
  COUNTRIES,
  channelsOf,
  type Device,
  type Metric,
  meanOf,
  type Site,
  visitsOf,
  visitsOn,
} from './site.ts'
import type { Report, SiteAsk } from './site-ask.ts'

export const FIGURES: Readonly<Record<string, Report>> = {
  'websites/visits': (ask) =>
    byDomain(ask, (site) => {
      const total = visits(ask, site)
      const days = ask.to - ask.from + 1
      const before = visitsOf(site, { ...ask, from: ask.from - days, to: ask.from - 1 })
      return {
        TotalVisits: total,
        Change: before === 0 ? 0 : round(total / before - 1),
        ShareOfVisits: 1,
        Trend: monthly(ask, (from, to) => visitsOf(site, { ...ask, from, to })),
      }
    }),
  'websites/visits/table': (ask) =>
    rows(ask, (site) => [{ Domain: ask.name, TotalVisits: visits(ask, site), Favicon: favicon(ask.name) }]),
  'websites/visits/trend': (ask) => ({
    ...byDomain(ask, (site) => ({ [ask.device]: [trend(ask, site)] })),
    KeysDataVerification: { [ask.name]: false },
  }),
  'websites/engagement': (ask) => ({
    TotalCount: ask.site ? 1 : 0,
    KeysDataVerification: { [ask.name]: false },
    Data: ask.site ? [engagement(ask, ask.site)] : [],
  }),
  'websites/channels': (ask) => {
    if (!ask.site) return { Data: {} }
    const site = ask.site
    const split = (device: Device) => ({ [ask.name]: channelsOf(site, visitsOf(site, { ...ask, device })) })
    return { Data: { [ask.device]: split(ask.device) } }
  },
  'websites/devices': (ask) =>
    byDomain(ask, (site) => {
      const of = (device: Device) => visitsOf(site, { ...ask, device })
      const [desktop = 0, mobile = 0] = shares([of('Desktop'), of('MobileWeb')])
      return { Desktop: desktop, 'Mobile Web': mobile }
    }),
  'websites/geography': geography,
  'websites/social-traffic': (ask) =>
    byDomain(ask, (site) => {
      const parts = shares(site.networks.map(({ weight }) => weight))
      return Object.fromEntries(site.networks.map(({ name }, index) => [name, { Share: parts[index] }]))
    }),
  'websites/branded-keywords': (ask) =>
    byDomain(ask, (site) => {
      const search = searchVisits(ask, site)
      const branded = Math.round(search * site.brandedShare)
      return { Branded: branded, NoneBranded: search - branded }
    }),
  'websites/ranks': (ask) =>
    byDomain(ask, (site) => ({
      GlobalRank: ranked(ask, site, 'global'),
      CountryRank: { ...ranked(ask, site, 'country'), Country: Number(homeCountry(site)) },
      CategoryRank: { ...ranked(ask, site, 'category'), Category: site.category },
    })),
  'websites/ranks/global': (ask) => rankTable(ask, 'global'),
  'websites/ranks/country': (ask) => rankTable(ask, 'country'),
  'websites/ranks/category': (ask) => rankTable(ask, 'category'),
  'websites/history/visits': (ask) =>
    history(ask, (site, from, to, device) => visitsOf(site, { ...ask, from, to, device })),
  'websites/history/bounce-rate': (ask) => metricHistory(ask, 'bounceRate'),
  'websites/history/visit-duration': (ask) => metricHistory(ask, 'secondsPerVisit'),
  'websites/history/pages-per-visit': (ask) => metricHistory(ask, 'pagesPerVisit'),
}

const round = (value: number) => Math.round(value * 10_000) / 10_000
const visits = (ask: SiteAsk, site: Site) => visitsOf(site, ask)

function byDomain(ask: SiteAsk, figures: (site: Site) => unknown): { Data: Record<string, unknown> } {
  return { Data: ask.site ? { [ask.name]: figures(ask.site) } : {} }
}

/** Some native tables leave `TotalCount` at 0 although they have rows. */
function rows(ask: SiteAsk, make: (site: Site) => unknown[]) {
  return { TotalCount: 0, Data: ask.site ? make(ask.site) : [] }
}

/** Of the months in the days, each cut to those days. */
function monthly(ask: SiteAsk, value: (from: number, to: number) => number): { Key: string; Value: number }[] {
  const points = []
  for (let start = monthStart(ask.from); start <= ask.to; start = monthStart(start, 1)) {
    const from = Math.max(start, ask.from)
    points.push({ Key: formatDay(start), Value: value(from, Math.min(monthStart(start, 1) - 1, ask.to)) })
  }
  return points
}

function trend(ask: SiteAsk, site: Site): { Key: string; Value: number }[] {
  const step = ask.text('timeGranularity', 'Daily')
  if (step === 'Monthly') return monthly(ask, (from, to) => visitsOf(site, { ...ask, from, to }))
  const days = step === 'Weekly' ? 7 : 1
  const points = []
  for (let day = ask.from; day <= ask.to; day += days) {
    const last = Math.min(day + days - 1, ask.to)
    points.push({ Key: formatDay(day), Value: visitsOf(site, { ...ask, from: day, to: last }) })
  }
  return points
}

function engagement(ask: SiteAsk, site: Site) {
  const total = visits(ask, site)
  const months = Math.max(1, Math.round((ask.to - ask.from + 1) / 30.4))
  const mean = (metric: Metric) => meanOf(site, metric, ask)
  const perUser = 1.2 + (site.rank % 23) / 10
  const users = Math.round(total / months / perUser)
  return {
    Domain: ask.name,
    AvgMonthVisits: Math.round(total / months),
    UniqueUsers: users,
    DedupUniqueUsers: Math.round(users * 0.86),
    VisitsPerUser: users === 0 ? 0 : round(total / months / users),
    AvgVisitDuration: mean('secondsPerVisit'),
    PagesPerVisit: mean('pagesPerVisit'),
    BounceRate: mean('bounceRate'),
    TotalPagesViews: Math.round(total * mean('pagesPerVisit')),
  }
}

function geography(ask: SiteAsk) {
  const { site } = ask
  if (!site) return { TotalCount: 0, Filters: { country: [] }, Data: [] }
  const sums = site.countries.map(({ name }) => ({ name, visits: 0 }))
  for (let day = ask.from; day <= ask.to; day++)
    for (const entry of sums) entry.visits += byDevice(visitsOn(site, day, entry.name), ask.device)
  const parts = shares(sums.map((entry) => entry.visits))
  const mean = (metric: Metric, country: string) => meanOf(site, metric, { ...ask, country })
  const all = sums
    .map((entry, index) => ({ country: entry.name, share: parts[index] ?? 0 }))
    .filter(({ country }) => ask.country === '999' || ask.country === '0' || ask.country === country)
    .sort((a, b) => b.share - a.share)
  return {
    TotalCount: all.length,
    Filters: {
      country: all.map(({ country }) => ({ id: country, text: COUNTRIES[country], icon: `flag-${country}` })),
    },
    Data: all
      .slice(0, ask.number('pageSize', 5))
      .map(({ country, share }) => ({
        Country: Number(country),
        Share: share,
        UsersShare: share,
        Rank: countryRank(site, share),
        Change: round((dice(hash(`${country} ${site.domain}`)).roll(4001) - 2000) / 10_000),
        AvgVisitDuration: mean('secondsPerVisit', country),
        PagePerVisit: mean('pagesPerVisit', country),
        BounceRate: mean('bounceRate', country),
      })),
  }
}

const countryRank = (site: Site, share: number) => Math.max(1, Math.round((site.rank * (1.02 - share)) / 3))

function homeCountry(site: Site): string {
  return site.countries.reduce((best, entry) => (entry.weight > best.weight ? entry : best)).name
}

type RankKind = 'global' | 'country' | 'category'

function rankOf(site: Site, kind: RankKind): number {
  if (kind === 'global') return site.rank
  if (kind === 'category') return Math.max(1, Math.round(site.rank / 24))
  const parts = shares(site.countries.map(({ weight }) => weight))
  return countryRank(site, Math.max(...parts))
}

/** The last month of a rank's trend is the rank itself. */
function ranked(ask: SiteAsk, site: Site, kind: RankKind) {
  const value = rankOf(site, kind)
  const last = monthStart(ask.to)
  const points = monthly(ask, (from) => {
    if (monthStart(from) === last) return value
    const { year, month } = civilDate(from)
    const drift = 0.9 + dice(hash(`${kind} ${site.domain} ${year} ${month}`)).roll(2001) / 10_000
    return Math.max(1, Math.round(value * drift))
  })
  return { Value: value, Trend: points }
}

function rankTable(ask: SiteAsk, kind: RankKind) {
  return rows(ask, (site) => [{ Domain: ask.name, Rank: rankOf(site, kind) }])
}

type Value = (site: Site, from: number, to: number, device: Device) => number

/** The source calls mobile web by two names; the whole has the one, its own series the other. */
function history(ask: SiteAsk, value: Value) {
  const series = (site: Site, device: Device) => [monthly(ask, (from, to) => value(site, from, to, device))]
  return {
    ...byDomain(ask, (site) =>
      ask.device === 'Total'
        ? { Total: series(site, 'Total'), Desktop: series(site, 'Desktop'), 'Mobile Web': series(site, 'MobileWeb') }
        : { [ask.device]: series(site, ask.device) },
    ),
    KeysDataVerification: { [ask.name]: false },
  }
}

function metricHistory(ask: SiteAsk, metric: Metric) {
  return history(ask, (site, from, to, device) => meanOf(site, metric, { ...ask, from, to, device }))
}
