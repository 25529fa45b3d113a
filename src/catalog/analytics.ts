// The 27 site-analytics endpoints. An entry is the whole endpoint: nothing else in the code knows one by name.
import { words } from '../kernel/words.ts'
import {
  type DataEndpointSpec,
  type JsonSchema,
  list,
  loose,
  type Mode,
  mapOf,
  nullable,
  number,
  type Pair,
  string,
  type Window,
  integer as wholeNumber,
} from './endpoint.ts'
import { choice, type Field, integer, text } from './field.ts'

// The parameters that many endpoints share, and the standard set.

const date = (description: string, example: string) => ({ kind: 'date', description, example }) as const
const flag = (description: string, fallback?: 'true' | 'false', allowed: readonly string[] = ['true', 'false']) =>
  ({ kind: 'boolean', allowed, description, example: fallback ?? 'true', default: fallback }) as const

const site = { kind: 'domain', required: true, description: 'The website to look up.', example: 'example.com' } as const
const country = { ...integer('Numeric country code; 999 is worldwide.', 0, undefined, '999'), example: '840' }
const from = date('First day, inclusive. Goes with `to`, and not with `latest`.', '2026-10-01')
const to = date('Last day, inclusive. Goes with `from`, and not with `latest`.', '2026-10-31')
const comparison = {
  compareFrom: date('First day of the period to compare with. Goes with `compareTo`.', '2026-09-01'),
  compareTo: date('Last day of the period to compare with. Goes with `compareFrom`.', '2026-09-30'),
}
const onlyFalse = flag('Only false: this endpoint knows complete months, not rolling windows.', 'false', ['false'])

/** `daysMax` 0 takes only months. */
const latest = (daysMax: number, months: readonly number[]) =>
  ({
    kind: 'latest',
    daysMax,
    months,
    example: daysMax > 0 ? '28d' : '3m',
    description: 'The newest days or complete months instead of explicit dates.',
  }) as const

const page = (fallback?: string) => integer('The page, counted from 1.', 1, 1000, fallback)
const pageSize = (fallback?: string) => integer('Rows on a page.', 1, 1000, fallback)
const webSource = choice('Which visits count.', ['Total', 'Desktop', 'MobileWeb'], 'Total')
const granularity = (...allowed: [string, ...string[]]) => choice('The step of a series.', allowed)
const isWindow = flag(
  'Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.',
)
const subdomains = flag('Whether subdomains count.')
const asc = (fallback?: 'true' | 'false') => flag('Ascending order.', fallback)
const sort = (example: string, fallback?: string) => text('The column to sort by.', example, fallback)
const orderBy = (fallback: string) => text('Column and direction to sort by.', fallback, fallback)
const iso = text('Country as an ISO code, where the source takes one.', 'US')
const isDaily = (fallback?: 'false') => flag('Whether rows are given per day.', fallback)
const verified = flag('Whether owner-verified figures replace estimates.', 'false')
const ignoreFilters = (fallback?: 'false') => flag('Whether filters that contradict each other pass.', fallback)

const ROLLING_DAYS = latest(366, [])
const ROLLING_OR_MONTHS = latest(366, [1, 2, 3, 6])
const HISTORY_MONTHS = latest(0, [1, 2, 3, 4, 5, 6])

/** The standard set of the contract (4.2) with an endpoint's own parameters, which may replace standard ones. */
function standard(own: Readonly<Record<string, Field>> = {}): Record<string, Field> {
  return {
    keys: site,
    country,
    from,
    to,
    latest: ROLLING_DAYS,
    includeSubDomains: subdomains,
    isWindow,
    webSource,
    timeGranularity: granularity('Daily', 'Monthly'),
    ...own,
  }
}

/** Without parameters that an endpoint does not take. */
function without(params: Readonly<Record<string, Field>>, ...names: string[]): Record<string, Field> {
  return Object.fromEntries(Object.entries(params).filter(([name]) => !names.includes(name)))
}

// Entries of the analytics table, and their conversion to endpoints.

interface AnalyticsEntry {
  readonly title: string
  readonly description: string
  readonly returns: string
  readonly answer: JsonSchema
  readonly params: Readonly<Record<string, Field>>
  readonly window?: Window
  readonly pairs?: readonly Pair[]
  readonly modes?: readonly Mode[]
  readonly rowsMax?: number
  /** When an agent should choose it rather than a similar one. */
  readonly advice?: string
}

const DATES: Pair = { from: 'from', to: 'to', together: true }

/** An entry of the table as a whole endpoint. */
export function analyticsEndpoint(path: string, entry: AnalyticsEntry): DataEndpointSpec {
  const { pairs = [], modes = [], rowsMax = 100, advice, ...rest } = entry
  const id = `siteanalytics/${path}`
  return {
    ...rest,
    id,
    method: 'GET',
    path: `/v1/${id}`,
    aliases: [],
    tag: 'Site analytics',
    surface: 'native',
    sells: 'data',
    product: id,
    restriction: 'siteanalytics',
    protocol: 'site-analytics',
    vendorPath: path,
    pairs: 'from' in entry.params ? [DATES, ...pairs] : pairs,
    modes,
    rowsMax,
    ...(advice === undefined ? {} : { tool: { advice } }),
  }
}

// Shared parts of analytics endpoints: days, and entries that differ in one word.

const ROLLING: Window = { unit: 'days', count: 28 }
const ONE_MONTH: Window = { unit: 'months', count: 1 }
const THREE_MONTHS: Window = { unit: 'months', count: 3 }
const SIX_MONTHS: Window = { unit: 'months', count: 6, monthsBackMax: 6 }

const COMPARISON: Pair = { from: 'compareFrom', to: 'compareTo', together: true }

/** `field,min,max`, where a bound may be left out. */
const RANGE = '[A-Za-z][\\w.]*,(-?\\d+(\\.\\d+)?)?,(-?\\d+(\\.\\d+)?)?'

const monthly = { latest: ROLLING_OR_MONTHS, timeGranularity: granularity('Monthly') }
const history = {
  country: choice('Only 999, worldwide.', ['999'], '999'),
  latest: HISTORY_MONTHS,
  isWindow: onlyFalse,
  timeGranularity: granularity('Monthly'),
}

const historyOf = (what: string, unit: string): AnalyticsEntry => ({
  title: `History of ${what}`,
  description: `The history of ${what}, month by month, for up to six complete months.`,
  returns: `\`Data.<domain>.<source>\` as Key/Value points, in ${unit}. Source names are kept as given.`,
  answer: bySource(list(points)),
  window: SIX_MONTHS,
  params: standard(history),
})

const rankTable = (which: string): AnalyticsEntry => ({
  title: `${which} rank, as a table`,
  description: `The ${which.toLowerCase()} rank of a website.`,
  returns: 'Rows in `Data` with Domain and Rank. `TotalCount` can be 0 while `Data` has rows: test the array itself.',
  answer: rows('Data', fields('Rank Change', 'Domain Category Favicon')),
  window: ROLLING,
  params: standard(monthly),
})

// The native answers of the data source. Any listed field may be absent or null, and there may be others.

const figure = nullable(number)

/** Fields by their names: those that hold numbers, and those that hold text. */
function fields(numbers: string, texts = ''): Record<string, JsonSchema> {
  return {
    ...Object.fromEntries(words(texts).map((name) => [name, nullable(string)])),
    ...Object.fromEntries(words(numbers).map((name) => [name, figure])),
  }
}

/** A table: rows under a name, and how many there are under another. */
function rows(at: string, row: Readonly<Record<string, JsonSchema>>, total = 'TotalCount'): JsonSchema {
  return loose({ [at]: list(loose(row)), [total]: wholeNumber })
}

/** One answer for each requested domain. */
const byDomain = (figures: JsonSchema): JsonSchema => loose({ Data: mapOf(figures) })

const points = list(loose({ Key: nullable(string), Value: figure }))
const bySource = (series: JsonSchema): JsonSchema => byDomain(mapOf(series))
const figures = mapOf(figure)

// The analytics endpoints about search: keywords, who ranks for them, and links.

const SEARCH: Readonly<Record<string, AnalyticsEntry>> = {
  'keywords/suggestions': {
    title: 'Keyword suggestions',
    description: 'Search keywords related to a keyword, with their volumes.',
    returns: 'Rows in `records` with keyword, windowVolume, cpc, difficulty and more; `totalRecords` counts them all.',
    answer: rows(
      'records',
      fields(
        'windowVolume averageVolume monthlyVolume clicks cpc difficulty score',
        'keyword leadingSite primaryIntent',
      ),
      'totalRecords',
    ),
    window: ROLLING,
    params: {
      keyword: { kind: 'text', required: true, description: 'The keyword to start from.', example: 'running shoes' },
      country,
      from,
      to,
      latest: ROLLING_DAYS,
      sort: sort('windowVolume', 'windowVolume'),
      asc: asc('false'),
      page: page(),
      rowsPerPage: pageSize('100'),
      type: choice('How suggestions match.', ['Broad', 'Phrase', 'Exact', 'Related'], 'Broad'),
      websource: webSource,
      isWindow,
      rangeFilter: {
        kind: 'text',
        pattern: `^${RANGE}(\\|${RANGE})*$`,
        form: 'filters of the form field,min,max with numbers as bounds, joined with | between filters',
        description: 'Bounds of columns.',
        example: 'windowVolume,100,5000|cpc,0.5,3',
      },
    },
  },
  'websites/backlinks': {
    title: 'Backlinks',
    description: 'Pages that link to a website. The website is `Key`, with a capital K.',
    returns: 'Rows in `Records`; `TotalRecords` counts them all.',
    answer: rows(
      'Records',
      fields('DomainScore', 'SourceUrl SourceDomain TargetUrl AnchorText Status FollowType'),
      'TotalRecords',
    ),
    pairs: [{ from: 'DomainScoreFrom', to: 'DomainScoreTo', together: false }],
    params: {
      Key: site,
      Page: page('1'),
      PageSize: pageSize('100'),
      Status: choice('Which links by age.', ['All', 'Active', 'New', 'Lost'], 'All'),
      FollowType: choice('Which links by rel.', ['All', 'DoFollowOnly', 'NoFollowOnly', 'DoFollow', 'NoFollow'], 'All'),
      DomainScoreFrom: integer('Least score of the linking domain.', 0, 100),
      DomainScoreTo: integer('Greatest score of the linking domain.', 0, 100),
      sort: sort('DomainScore', 'DomainScore'),
      asc: asc('false'),
    },
  },
  'websites/keywords': {
    title: 'Keywords of a website',
    description:
      'Search keywords that bring visits. `latest=1m` is a one-month overview of 5 rows. For non-branded views use sourceType organic or paid with IncludeNoneBranded=true and IncludeBranded=false.',
    advice: 'For the keywords of one website; search-performance gives only its top terms.',
    returns: '`Data.Records` with Keyword, Clicks, Share, KwVolume, Cpc and more; `TotalCount` counts them all.',
    answer: loose({
      TotalCount: { type: 'integer' },
      Data: rows(
        'Records',
        fields('Clicks Share Difficulty KwVolume KwVolumeAverage Cpc', 'Keyword PrimaryIntent TopUrl'),
        'KeywordsCount',
      ),
    }),
    window: { ...ROLLING, monthsMayRoll: true },
    modes: [{ param: 'latest', value: '1m', defaults: { pageSize: '5' } }],
    params: standard({
      latest: latest(366, [1]),
      sort: sort('Clicks'),
      asc: asc(),
      iso,
      isDaily: isDaily(),
      IncludeBranded: flag('Whether branded keywords are included.', 'false'),
      IncludeNoneBranded: flag('Whether non-branded keywords are included.', 'false'),
      page: page('1'),
      pageSize: pageSize('100'),
      sourceType: text('Kind of search: all, organic or paid.', 'organic', 'all'),
      pageFilterJson: {
        kind: 'json-array',
        description: 'A JSON array of page filters. Without it the query is about the whole domain.',
        example: '[{"url":"example.com/blog","searchType":"prefix"}]',
      },
    }),
  },
  'keywords/websites': {
    title: 'Websites that rank for a keyword',
    description: 'Websites that get visits from a search keyword. Here `keys` is a keyword, not a website.',
    returns: 'Rows in `Data` with Domain; `TotalCount` counts them all.',
    answer: rows('Data', fields('Share Position', 'Domain Url Favicon')),
    window: ROLLING,
    params: standard({
      keys: { kind: 'text', required: true, description: 'The search keyword.', example: 'running shoes' },
      sort: sort('Share'),
      asc: asc(),
      iso,
      isDaily: isDaily(),
      tab: { kind: 'integer', min: 0, description: 'Tab of the native view.', example: '0' },
      mtd: flag('Whether the present month counts so far.'),
      selectedPageTab: choice('Organic or paid results.', ['Organic', 'Paid'], 'Organic'),
      graphDuration: text('Days of the trend.', '28d', '28d'),
      graphType: integer('Kind of trend.', 1, 1000),
      isDurationChanged: flag('Whether the days differ from the native default.'),
      ignoreFilterConsistency: ignoreFilters(),
      Device: text('Which visits count.', 'Total', 'Total'),
      sourceType: text('Kind of search.', 'organic', 'organic'),
      page: page(),
      pageSize: pageSize(),
    }),
  },
}

const rank = loose({ ...fields('Value Country', 'Category'), Trend: points })

const TABLE: Readonly<Record<string, AnalyticsEntry>> = {
  ...SEARCH,
  'websites/traffic-sources': {
    title: 'Traffic sources',
    description: 'Sources of visits by type. Another table than incoming-referrals.',
    advice: 'For types; website_incoming_referrals names the websites, website_channels the shares by channel.',
    returns: 'Rows in `Data`.',
    answer: rows('Data', fields('Share Visits Rank', 'Domain SourceType Favicon')),
    window: ROLLING,
    params: standard({
      sourceType: text('Type of source.', 'Referral', 'Referral'),
      ignoreFilterConsistency: ignoreFilters(),
      page: page('1'),
      orderBy: orderBy('Share desc'),
    }),
  },
  'websites/outgoing-traffic': {
    title: 'Outgoing traffic',
    description:
      'Where visitors go next. `orderby` and `orderBy` are two parameters, forwarded independently: keep them the same.',
    returns: 'Rows in `Records`; `TotalCount` is the total at the source, not the length of the page.',
    answer: rows('Records', fields('Share Change Rank', 'Domain Favicon')),
    params: {
      key: site,
      country,
      from: { ...from, required: true, description: 'First day, inclusive.' },
      to: { ...to, required: true, description: 'Last day, inclusive.' },
      isWWW: flag('Whether only the www host counts.', 'false'),
      isWindow: flag('Whether the days are a rolling window.', 'false'),
      webSource,
      orderby: orderBy('Share desc'),
      orderBy: orderBy('Share desc'),
      sort: sort('Share', 'Share'),
      asc: asc('false'),
      page: page('1'),
    },
  },
  'websites/incoming-referrals': {
    title: 'Incoming referrals',
    description: 'Websites that send visitors.',
    advice: 'For the websites that send visits; website_outgoing_traffic is the other direction.',
    returns: 'Rows in `Records`, 100 a page; native fields may include SiteOrigins and TotalShare.',
    answer: rows('Records', fields('Share TotalShare TotalVisits Change Rank', 'Domain Category Favicon')),
    window: ROLLING,
    params: {
      key: site,
      country,
      from,
      to,
      isWWW: flag('Whether only the www host counts.', 'false'),
      iso,
      isWindow,
      isDaily: isDaily('false'),
      latest: ROLLING_DAYS,
      webSource,
      selectedTab: choice('Tab of the native view.', ['incomingTraffic'], 'incomingTraffic'),
      orderBy: orderBy('TotalShare desc'),
      ignoreFilterConsistency: ignoreFilters('false'),
      page: page('1'),
    },
  },
  'websites/branded-keywords': {
    title: 'Branded and other keywords',
    description: 'How much search traffic comes from keywords with the brand in them.',
    returns: '`Data.<domain>` with Branded and NoneBranded.',
    answer: byDomain(loose(fields('Branded NoneBranded'))),
    window: ONE_MONTH,
    params: standard({ latest: ROLLING_OR_MONTHS, duration: choice('Only one month.', ['1m']) }),
  },
  'websites/geography': {
    title: 'Geography',
    description: 'Visits by country.',
    returns: 'Rows in `Data` with Country, Share, Rank and engagement by country.',
    answer: rows('Data', fields('Country Share UsersShare Rank Change AvgVisitDuration PagePerVisit BounceRate')),
    window: THREE_MONTHS,
    params: standard({ latest: ROLLING_OR_MONTHS, pageSize: pageSize('5'), orderBy: orderBy('TotalShare desc') }),
  },
  'websites/devices': {
    title: 'Devices',
    description: 'Visits by desktop and mobile web.',
    returns: '`Data.<domain>` with a number by device.',
    answer: byDomain(figures),
    window: THREE_MONTHS,
    params: standard({ latest: ROLLING_OR_MONTHS, ShouldGetVerifiedData: verified }),
  },
  'websites/search-performance': {
    title: 'Search performance',
    description: 'Top search terms. Paid keywords use `SourceType=Paid`; the spelling `sourceType` is not taken.',
    advice: 'For a quick look at the top terms; website_keywords lists them all.',
    returns: 'Rows in `Data` with SearchTerm, TotalShare and TotalVisits.',
    answer: rows('Data', fields('TotalShare TotalVisits', 'SearchTerm')),
    window: ONE_MONTH,
    params: standard({
      latest: ROLLING_OR_MONTHS,
      pageSize: pageSize('5'),
      duration: choice('Only one month.', ['1m'], '1m'),
      SourceType: choice('Organic or paid search.', ['Organic', 'Paid'], 'Organic'),
    }),
  },
  'websites/social-traffic': {
    title: 'Social traffic',
    description: 'Visits by social network.',
    returns: '`Data.<domain>.<network>` with Share.',
    answer: byDomain(mapOf(loose(fields('Share')))),
    window: THREE_MONTHS,
    params: without(standard({ latest: ROLLING_OR_MONTHS }), 'webSource'),
  },
  'websites/engagement': {
    title: 'Engagement',
    description: 'Visits, bounce rate, pages per visit and visit duration.',
    advice: 'For all engagement figures of one period; website_history_* give one figure month by month.',
    returns: 'Rows in `Data`; they may contain AvgMonthVisits, BounceRate, PagesPerVisit, AvgVisitDuration.',
    answer: rows(
      'Data',
      fields(
        'AvgMonthVisits UniqueUsers BounceRate PagesPerVisit AvgVisitDuration VisitsPerUser TotalPagesViews',
        'Domain',
      ),
    ),
    window: ROLLING,
    params: standard({
      latest: ROLLING_OR_MONTHS,
      ShouldGetVerifiedData: verified,
      includeLeaders: flag('Whether category leaders are included.', 'true'),
      unBounced: flag('Whether bounced visits are left out.', 'false'),
      beta: flag('Whether figures of the new method are used.'),
    }),
  },
  'websites/visits': {
    title: 'Visits',
    description: 'Total visits, with a comparison. A rolling total need not equal a complete-month total.',
    advice: 'For one total; website_visits_trend gives a series, website_history_visits six months.',
    returns: '`Data.<domain>`; it may contain TotalVisits, Change, ShareOfVisits.',
    answer: byDomain(loose({ ...fields('TotalVisits Change ShareOfVisits'), Trend: points })),
    window: ROLLING,
    pairs: [COMPARISON],
    params: standard({ ...monthly, ...comparison, ShouldGetVerifiedData: verified }),
  },
  'websites/visits/table': {
    title: 'Visits, as a table',
    description: 'Total visits in rows.',
    returns: 'Rows in `Data` with Domain and TotalVisits. `TotalCount` can be 0 while `Data` has rows: test the array.',
    answer: rows('Data', fields('TotalVisits', 'Domain Favicon')),
    window: ROLLING,
    pairs: [COMPARISON],
    params: standard({ ...monthly, ...comparison, ShouldGetVerifiedData: verified }),
  },
  'websites/visits/trend': {
    title: 'Visits over time',
    description: 'A series of visits.',
    returns: '`Data.<domain>.<source>`: an array of series, each of Key/Value points.',
    answer: bySource(list(points)),
    window: ROLLING,
    params: standard({
      latest: ROLLING_OR_MONTHS,
      timeGranularity: granularity('Daily', 'Weekly', 'Monthly'),
      ShouldGetVerifiedData: verified,
    }),
  },
  'websites/ranks': {
    title: 'Ranks',
    description: 'Global, country and category rank in one answer.',
    advice: 'The first choice for ranks: website_ranks_country, _global and _category give one each, as a row.',
    returns: '`Data.<domain>` with separate GlobalRank, CountryRank and CategoryRank objects.',
    answer: byDomain(loose({ GlobalRank: rank, CountryRank: rank, CategoryRank: rank })),
    window: ROLLING,
    params: standard(monthly),
  },
  'websites/ranks/country': rankTable('Country'),
  'websites/ranks/global': rankTable('Global'),
  'websites/ranks/category': rankTable('Category'),
  'websites/channels': {
    title: 'Marketing channels',
    description: 'Visits by channel. A share can be computed only when the sum is positive.',
    advice: 'For direct, search, social, mail and paid side by side.',
    returns: '`Data.Total.<domain>` (with webSource=Total) with visit counts by channel name.',
    answer: loose({ Data: mapOf(mapOf(figures)) }),
    window: ROLLING,
    params: standard({ latest: ROLLING_OR_MONTHS }),
  },
  'websites/similar-sites': {
    title: 'Similar websites',
    description: 'Websites with a similar audience, by affinity.',
    advice: 'For the audience; website_similar_sites_suggestions is quicker and gives only candidates.',
    returns: 'Rows in `Data` with Domain and Affinity.',
    answer: rows('Data', fields('Affinity Rank', 'Domain Category Favicon')),
    window: THREE_MONTHS,
    params: {
      ...without(standard({ isWindow: onlyFalse, timeGranularity: granularity('Monthly') }), 'latest', 'webSource'),
      orderBy: choice('Only by affinity.', ['Affinity desc'], 'Affinity desc'),
    },
  },
  'websites/similar-sites/suggestions': {
    title: 'Suggestions of similar websites',
    description: 'Candidates for a comparison.',
    returns: 'A bare array of Domain, DomainWithoutSub, Rank (number) and Favicon. An empty array: no suggestions.',
    answer: list(loose(fields('Rank', 'Domain DomainWithoutSub Favicon'))),
    rowsMax: 20,
    params: { key: site, limit: integer('Most candidates.', 1, 20, '20'), country, webSource },
  },
  'websites/history/visits': historyOf('visits', 'visits'),
  'websites/history/bounce-rate': historyOf('the bounce rate', 'a ratio'),
  'websites/history/visit-duration': historyOf('the visit duration', 'seconds per visit'),
  'websites/history/pages-per-visit': historyOf('pages per visit', 'pages per visit'),
}

export const ANALYTICS: readonly DataEndpointSpec[] = Object.entries(TABLE).map(([path, entry]) =>
  analyticsEndpoint(path, entry),
)
