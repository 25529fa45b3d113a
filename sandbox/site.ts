// A simulated website: every figure that the analytics room gives comes from this one model, so that all of them agree.
// The atom is the number of visits of one day, device and country; everything larger is a sum of those.
import { civilDate, dayNumber } from '../src/kernel/calendar.ts'
import { apportion } from './apportion.ts'
import { dice, hash } from './seed.ts'

export interface Site {
  readonly domain: string
  /** 1 is the most visited site of the world. */
  readonly rank: number
  readonly category: string
  readonly dailyVisits: number
  readonly growthPerYear: number
  readonly weekendFactor: number
  readonly desktopShare: number
  readonly countries: readonly Weighted[]
  /** Where each country's share lies between 0 and 1. */
  readonly countryBounds: ReadonlyMap<string, readonly [start: number, end: number]>
  readonly channels: readonly Weighted[]
  readonly networks: readonly Weighted[]
  readonly brandedShare: number
  readonly bounceRate: number
  readonly pagesPerVisit: number
  readonly secondsPerVisit: number
}

interface Weighted {
  readonly name: string
  readonly weight: number
}

export type Device = 'Total' | 'Desktop' | 'MobileWeb'

/** Numeric country codes of ISO 3166 with their names. */
export const COUNTRIES: Readonly<Record<string, string>> = {
  840: 'United States',
  356: 'India',
  826: 'United Kingdom',
  276: 'Germany',
  250: 'France',
  76: 'Brazil',
  392: 'Japan',
  124: 'Canada',
  724: 'Spain',
  380: 'Italy',
  484: 'Mexico',
  528: 'Netherlands',
  616: 'Poland',
  36: 'Australia',
  792: 'Turkey',
  360: 'Indonesia',
  410: 'South Korea',
  752: 'Sweden',
  756: 'Switzerland',
  32: 'Argentina',
}

const CHANNELS = ['Direct', 'Organic Search', 'Paid Search', 'Referrals', 'Social', 'Email', 'Display Ads'] as const
const CHANNEL_WEIGHTS = [38, 33, 4, 9, 8, 5, 3]
const NETWORKS = ['Youtube', 'Facebook', 'Reddit', 'X-twitter', 'Linkedin', 'Instagram', 'Pinterest', 'WhatsApp']
const CATEGORIES = [
  'News_and_Media',
  'E_Commerce_and_Shopping',
  'Travel_and_Tourism',
  'Finance',
  'Sports',
  'Health',
  'Arts_and_Entertainment',
  'Computers_Electronics_and_Technology',
] as const

const RANK_MAX = 3_000_000
const TREND_ORIGIN = dayNumber({ year: 2026, month: 1, day: 1 })

/** Undefined for the domains that are too small to be measured. */
export function findSite(name: string): Site | undefined {
  const domain = name.toLowerCase()
  if (/^(unknown|tiny|nodata)\b/.test(domain)) return undefined
  const die = dice(hash(`site ${domain}`))
  const unit = () => die.roll(10_000) / 10_000
  const around = (middle: number, spread: number) => middle * (1 - spread + 2 * spread * unit())
  const rank = Math.max(1, Math.round(Math.exp(unit() * Math.log(RANK_MAX))))
  const home = die.roll(Object.keys(COUNTRIES).length)
  const countries = Object.keys(COUNTRIES).map((name, index) => ({
    name,
    weight: around(index === home ? 120 : 100 / (index + 2) ** 1.3, 0.5),
  }))
  return {
    domain,
    rank,
    category: die.pick(CATEGORIES),
    dailyVisits: Math.round(around(1.9e9 / rank ** 0.93, 0.1)) + 40,
    growthPerYear: unit() * 0.7 - 0.2,
    weekendFactor: 0.7 + unit() * 0.55,
    desktopShare: 0.25 + unit() * 0.5,
    countries,
    countryBounds: boundsOf(countries),
    channels: CHANNELS.map((name, index) => ({ name, weight: around(CHANNEL_WEIGHTS[index] ?? 1, 0.6) })),
    networks: NETWORKS.map((name, index) => ({ name, weight: around(60 / (index + 1), 0.7) })),
    brandedShare: 0.15 + unit() * 0.6,
    bounceRate: 0.28 + unit() * 0.4,
    pagesPerVisit: 1.6 + unit() * 6,
    secondsPerVisit: 60 + unit() * 500,
  }
}

function boundsOf(weighted: readonly Weighted[]): Site['countryBounds'] {
  const whole = weighted.reduce((sum, { weight }) => sum + weight, 0)
  let before = 0
  return new Map(
    weighted.map(({ name, weight }) => {
      const start = before / whole
      before += weight
      return [name, [start, before / whole]]
    }),
  )
}

/** Visits of each device on one day: of one country, or of all. Unknown countries send nobody. */
export function visitsOn(site: Site, day: number, country: string): { desktop: number; mobile: number } {
  const weekday = (((day + 4) % 7) + 7) % 7
  const { month } = civilDate(day)
  const season = 1 + 0.06 * Math.sin(((month - 3) / 12) * 2 * Math.PI)
  const trend = Math.exp((site.growthPerYear * (day - TREND_ORIGIN)) / 365)
  const noise = 0.95 + dice(hash(`${site.domain} ${day}`)).roll(1001) / 10_000
  const rhythm = weekday === 0 || weekday === 6 ? site.weekendFactor : 1
  const total = Math.round(site.dailyVisits * trend * season * noise * rhythm)
  const desktop = Math.round(total * (rhythm === 1 ? site.desktopShare : site.desktopShare * 0.85))
  if (country === '999' || country === '0') return { desktop, mobile: total - desktop }
  const [start, end] = site.countryBounds.get(country) ?? [0, 0]
  // Differences of rounded running sums: countries add up to the whole, and each is found without the others.
  const part = (whole: number) => Math.round(whole * end) - Math.round(whole * start)
  return { desktop: part(desktop), mobile: part(total - desktop) }
}

/** Which visits are meant; days as numbers, both inclusive. */
export interface Span {
  readonly from: number
  readonly to: number
  readonly country: string
  readonly device: Device
}

export function visitsOf(site: Site, { from, to, country, device }: Span): number {
  let sum = 0
  for (let day = from; day <= to; day++) sum += byDevice(visitsOn(site, day, country), device)
  return sum
}

export function byDevice({ desktop, mobile }: { desktop: number; mobile: number }, device: Device): number {
  return device === 'Desktop' ? desktop : device === 'MobileWeb' ? mobile : desktop + mobile
}

/** Visits by channel; the parts add up to the visits. */
export function channelsOf(site: Site, visits: number): Record<string, number> {
  const parts = apportion(
    visits,
    site.channels.map(({ weight }) => weight),
  )
  return Object.fromEntries(site.channels.map(({ name }, index) => [name, parts[index] ?? 0]))
}

export type Metric = 'bounceRate' | 'pagesPerVisit' | 'secondsPerVisit'

/** Mobile visitors stay shorter and leave sooner; months differ a little. */
const MOBILE_FACTOR: Readonly<Record<Metric, number>> = { bounceRate: 1.12, pagesPerVisit: 0.74, secondsPerVisit: 0.68 }

/** The mean over the days, weighted by visits, so that months and their sum agree. */
export function meanOf(site: Site, metric: Metric, { from, to, country, device }: Span): number {
  let visits = 0
  let sum = 0
  for (let day = from; day <= to; day++) {
    const { year, month } = civilDate(day)
    const drift = 0.97 + dice(hash(`${metric} ${site.domain} ${year} ${month}`)).roll(601) / 10_000
    const value = site[metric] * drift
    const { desktop, mobile } = visitsOn(site, day, country)
    if (device !== 'MobileWeb') {
      visits += desktop
      sum += desktop * value
    }
    if (device !== 'Desktop') {
      visits += mobile
      sum += mobile * value * MOBILE_FACTOR[metric]
    }
  }
  return visits === 0 ? 0 : Math.round((sum / visits) * 10_000) / 10_000
}

const FRONTS = 'open daily smart blue north prime urban fresh nova true clear'.split(' ')
const BACKS = 'market press guide hub world works review planet store forum'.split(' ')

/** A made-up neighbour of a site, always the same for the same place in the list. */
export function neighbour(domain: string, kind: string, index: number): string {
  const { roll } = dice(hash(`${kind} ${domain} ${index}`))
  return `${FRONTS[roll(FRONTS.length)]}${BACKS[roll(BACKS.length)]}${index + 1}.example`
}

const MODIFIERS =
  'best,cheap,online,near me,review,for women,for men,sale,price,guide,2026,used,vs,how to,brands,ideas,free,top 10,store,outlet,kids,pro,light'.split(
    ',',
  )

/** What people search for around a phrase, itself first. */
export function phrases(phrase: string, related = false): string[] {
  const base = related ? phrase.split(' ').toReversed().join(' ') : phrase
  const once = MODIFIERS.map((word) => (related ? `${word} ${base} alternative` : `${base} ${word}`))
  return [phrase, ...once, ...MODIFIERS.flatMap((word) => once.slice(0, 5).map((longer) => `${word} ${longer}`))]
}
