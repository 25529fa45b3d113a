// The tables, made from what the endpoint's own entry says of its answer and its parameters, so that a new endpoint has
// a simulated answer as soon as it has an entry. Only what rows must add up to, to agree with other reports, is said
// here.
import { ANALYTICS } from '../src/catalog/analytics.ts'
import type { DataEndpointSpec, JsonSchema } from '../src/catalog/endpoint.ts'
import { apportion, shares } from './apportion.ts'
import { isRecord } from './json.ts'
import { type Dice, dice, hash } from './seed.ts'
import { channelsOf, findSite, neighbour, phrases, type Site, visitsOf } from './site.ts'
import type { Report, SiteAsk } from './site-ask.ts'

type DerivedRow = Record<string, string | number>

/** Undefined where no entry has this path. */
export function derivedReport(path: string): Report | undefined {
  const spec = ANALYTICS.find(({ vendorPath }) => vendorPath === path)
  return spec && ((ask) => answerOf(spec.answer ?? {}, spec, ask))
}

/** Native tables without a page size of their own. */
const PAGE_ROWS = 100

const SEARCHES = ['Organic Search', 'Paid Search']

/** Visits from the kinds of search; both unless one is named. */
export function searchVisits(ask: SiteAsk, site: Site, kind = ''): number {
  const channels = channelsOf(site, visitsOf(site, ask))
  const kinds = SEARCHES.filter((name) => name.toLowerCase().startsWith(kind.toLowerCase()))
  return (kinds.length > 0 ? kinds : SEARCHES).reduce((sum, name) => sum + (channels[name] ?? 0), 0)
}

/** What the visits or clicks of all rows add up to. */
const TOTALS: Readonly<Record<string, (ask: SiteAsk, site: Site) => number>> = {
  'websites/keywords': (ask, site) => searchVisits(ask, site, ask.text('sourceType', '')),
  'websites/search-performance': (ask, site) => searchVisits(ask, site, ask.text('SourceType', 'Organic')),
  'websites/incoming-referrals': (ask, site) => channelsOf(site, visitsOf(site, ask)).Referrals ?? 0,
  'websites/traffic-sources': (ask, site) => channelsOf(site, visitsOf(site, ask)).Referrals ?? 0,
}

function answerOf(schema: JsonSchema, spec: DataEndpointSpec, ask: SiteAsk): unknown {
  const row = rowOf(schema)
  if (row) return tableOf(row, spec, ask).page
  if (isRecord(schema.additionalProperties))
    return ask.site ? { [ask.name]: answerOf(schema.additionalProperties, spec, ask) } : {}
  const members = Object.entries(isRecord(schema.properties) ? schema.properties : {})
  const table = members.map(([, member]) => rowOf(member)).find((columns) => columns !== undefined)
  const rows = table && tableOf(table, spec, ask)
  const said = members.map(([name, member]) => {
    if (rows && rowOf(member)) return [name, rows.page]
    if (isRecord(member) && member.properties) return [name, answerOf(member, spec, ask)]
    return [name, rows?.total ?? dice(hash(`${name} ${ask.name}`)).roll(1000)]
  })
  return { ...Object.fromEntries(said), ...rows?.sums }
}

/** The columns of a table, where the schema is one. */
function rowOf(schema: unknown): JsonSchema | undefined {
  const items = isRecord(schema) && isRecord(schema.items) ? schema.items : {}
  return isRecord(items.properties) ? items.properties : undefined
}

interface Rows {
  readonly total: number
  readonly page: readonly DerivedRow[]
  /** Of all rows, as the source gives them beside a page of them. */
  readonly sums: Readonly<Record<string, number>>
}

function tableOf(columns: JsonSchema, spec: DataEndpointSpec, ask: SiteAsk): Rows {
  const given = (name: string) => ask.text(name, spec.params[name]?.default ?? '')
  const all = subjectsOf(spec, ask, columns).map((subject) =>
    Object.fromEntries(
      Object.entries(columns).map(([name, column]) => [name, cellOf(name, JSON.stringify(column), spec, subject)]),
    ),
  )
  const rows = all.filter((row) => Object.keys(row).every((name) => passes(row, name, spec, given)))
  const by = given('sort') || given('orderBy').split(' ')[0] || ''
  const sign = given('asc') === 'true' ? 1 : -1
  if (by in columns) rows.sort((a, b) => sign * (Number(a[by]) - Number(b[by])))
  const size = Number(given('pageSize') || given('PageSize') || given('rowsPerPage') || given('limit') || PAGE_ROWS)
  const first = (Number(given('page') || given('Page') || 1) - 1) * size
  const sums = { Clicks: 'OverallClicks', TotalVisits: 'TotalVisits' }
  return {
    total: rows.length,
    page: rows.slice(first, first + size),
    sums: Object.fromEntries(
      Object.entries(sums)
        .filter(([column]) => column in columns)
        .map(([column, name]) => [name, rows.reduce((sum, row) => sum + Number(row[column]), 0)]),
    ),
  }
}

interface Subject {
  readonly place: number
  readonly domain: string
  readonly phrase: string
  readonly share: number
  readonly visits: number | undefined
  readonly die: Dice
}

/** Who or what the rows are about: neighbours of a site, or phrases around a keyword. */
function subjectsOf({ vendorPath, params }: DataEndpointSpec, ask: SiteAsk, columns: JsonSchema): Subject[] {
  const aboutSite = Object.values(params).some(({ kind, required }) => kind === 'domain' && required)
  // A report and its short form are about the same ones.
  const family = vendorPath.split('/').slice(0, 2).join('/')
  const { site } = ask
  const words = aboutSite
    ? [...phrases(ask.name.split('.')[0] ?? ''), ...phrases(site?.category.replaceAll('_', ' ').toLowerCase() ?? '')]
    : phrases(ask.name, ask.text('type', '') === 'Related')
  const neighbours = aboutSite && !Object.keys(columns).some((name) => PHRASE.test(name))
  const most = neighbours ? 40 + (hash(`${family} ${ask.name}`) % 160) : words.length
  const count = aboutSite && !site ? 0 : ask.text('type', '') === 'Exact' ? 1 : most
  const weights = Array.from({ length: count }, (_, place) => 1 / (place + 1))
  const visits = site && TOTALS[vendorPath] ? apportion(TOTALS[vendorPath](ask, site), weights) : undefined
  const parts = shares(visits ?? weights)
  return parts.map((share, place) => ({
    place,
    domain: neighbour(site?.domain ?? ask.name, family, place),
    phrase: words[place] ?? ask.name,
    share,
    visits: visits?.[place],
    die: dice(hash(`${family} ${ask.name} ${ask.country} ${ask.device} ${place}`)),
  }))
}

const PHRASE = /keyword|term/i

/** By the name of the column; a text that a parameter chooses from is one of its choices. */
function cellOf(name: string, column: string, { params }: DataEndpointSpec, subject: Subject): string | number {
  const { place, domain, phrase, share, visits, die } = subject
  if (column.includes('"string"')) {
    const field = params[name]
    const kinds = field?.kind === 'choice' ? field.allowed.filter((word) => !/^All$|Only$/.test(word)) : []
    if (kinds.length > 0) return kinds[die.roll(kinds.length)] ?? ''
    if (PHRASE.test(name)) return phrase
    if (/favicon/i.test(name)) return favicon(domain)
    if (/url$/i.test(name)) return `https://${domain}/${die.roll(9000)}`
    if (/domain|site$/i.test(name)) return domain
    return findSite(domain)?.category ?? ''
  }
  if (/share$/i.test(name)) return share
  if (visits !== undefined && /visits$|^clicks$/i.test(name)) return visits
  if (name === 'Affinity') return Math.round(1000 / (1 + place * 0.15)) / 1000
  if (name === 'Rank') return findSite(domain)?.rank ?? 0
  if (name === 'Position') return place + 1
  if (/score|difficulty/i.test(name)) return die.roll(101)
  if (/change/i.test(name)) return 0
  return name === 'cpc' ? (20 + die.roll(480)) / 100 : 100 + die.roll(90_000)
}

/** Parameters that are named like a column choose from it or bound it; `rangeFilter` bounds any: `field,min,max|…`. */
function passes(row: DerivedRow, name: string, { params }: DataEndpointSpec, given: (name: string) => string): boolean {
  const value = row[name] ?? ''
  const wanted = params[name]?.kind === 'choice' ? given(name).replace(/Only$/, '') : 'All'
  if (wanted !== 'All' && wanted !== value) return false
  const ranges = given('rangeFilter').split('|')
  const bounds = [[name, given(`${name}From`), given(`${name}To`)], ...ranges.map((range) => range.split(','))]
  return bounds.every(
    ([field, min = '', max = '']) =>
      field !== name || ((min === '' || Number(value) >= Number(min)) && (max === '' || Number(value) <= Number(max))),
  )
}

export const favicon = (domain: string) => `https://favicons.example/${domain}`
