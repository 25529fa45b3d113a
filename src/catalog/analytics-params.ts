// The parameters that many analytics endpoints share, and the standard set.
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
import type {
  BooleanField,
  ChoiceField,
  DateField,
  DomainField,
  Field,
  IntegerField,
  LatestField,
  TextField,
} from './field.ts'

export const site: DomainField = {
  kind: 'domain',
  required: true,
  description: 'The website to look up.',
  example: 'example.com',
}

export const country: IntegerField = {
  kind: 'integer',
  min: 0,
  default: '999',
  description: 'Numeric country code; 999 is worldwide.',
  example: '840',
}

const onlyWorldwide: ChoiceField = {
  kind: 'choice',
  allowed: ['999'],
  default: '999',
  description: 'Only 999, worldwide.',
  example: '999',
}

export const from: DateField = {
  kind: 'date',
  description: 'First day, inclusive. Goes with `to`, and not with `latest`.',
  example: '2026-10-01',
}

export const to: DateField = {
  kind: 'date',
  description: 'Last day, inclusive. Goes with `from`, and not with `latest`.',
  example: '2026-10-31',
}

export const compareFrom: DateField = {
  kind: 'date',
  description: 'First day of the period to compare with. Goes with `compareTo`.',
  example: '2026-09-01',
}

export const compareTo: DateField = {
  kind: 'date',
  description: 'Last day of the period to compare with. Goes with `compareFrom`.',
  example: '2026-09-30',
}

/** `daysMax` 0 takes only months. */
export function latest(daysMax: number, months: readonly number[]): LatestField {
  return {
    kind: 'latest',
    daysMax,
    months,
    description: 'The newest days or complete months instead of explicit dates.',
    example: daysMax > 0 ? '28d' : '3m',
  }
}

export function flag(description: string, fallback?: 'true' | 'false'): BooleanField {
  const field = { kind: 'boolean', allowed: ['true', 'false'], description, example: fallback ?? 'true' } as const
  return fallback === undefined ? field : { ...field, default: fallback }
}

export const onlyFalse: BooleanField = {
  kind: 'boolean',
  allowed: ['false'],
  default: 'false',
  description: 'Only false: this endpoint knows complete months, not rolling windows.',
  example: 'false',
}

export function text(description: string, example: string, fallback?: string): TextField {
  const field = { kind: 'text', description, example } as const
  return fallback === undefined ? field : { ...field, default: fallback }
}

export function choice(description: string, allowed: readonly [string, ...string[]], fallback?: string): ChoiceField {
  const field = { kind: 'choice', allowed, description, example: fallback ?? allowed[0] } as const
  return fallback === undefined ? field : { ...field, default: fallback }
}

export function integer(description: string, min: number, max: number, fallback?: string): IntegerField {
  const field = { kind: 'integer', min, max, description, example: fallback ?? String(min) } as const
  return fallback === undefined ? field : { ...field, default: fallback }
}

export const page = (fallback?: string) => integer('The page, counted from 1.', 1, 1000, fallback)
export const pageSize = (fallback?: string) => integer('Rows on a page.', 1, 1000, fallback)
export const webSource = choice('Which visits count.', ['Total', 'Desktop', 'MobileWeb'], 'Total')
export const granularity = (...allowed: [string, ...string[]]) => choice('The step of a series.', allowed)
export const isWindow = flag(
  'Whether the days are a rolling window. Without it: true for rolling days, false for months and explicit dates.',
)
const subdomains = flag('Whether subdomains count.')
export const asc = (fallback?: 'true' | 'false') => flag('Ascending order.', fallback)
export const sort = (example: string, fallback?: string) => text('The column to sort by.', example, fallback)
export const orderBy = (fallback: string) => text('Column and direction to sort by.', fallback, fallback)
export const iso = text('Country as an ISO code, where the source takes one.', 'US')
export const isDaily = (fallback?: 'false') => flag('Whether rows are given per day.', fallback)
export const verified = flag('Whether owner-verified figures replace estimates.', 'false')
export const ignoreFilters = (fallback?: 'false') => flag('Whether filters that contradict each other pass.', fallback)

export const ROLLING_DAYS = latest(366, [])
export const ROLLING_OR_MONTHS = latest(366, [1, 2, 3, 6])
const HISTORY_MONTHS = latest(0, [1, 2, 3, 4, 5, 6])

/** The standard set of the contract (4.2) with an endpoint's own parameters, which may replace standard ones. */
export function standard(own: Readonly<Record<string, Field>> = {}): Record<string, Field> {
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
export function without(params: Readonly<Record<string, Field>>, ...names: string[]): Record<string, Field> {
  return Object.fromEntries(Object.entries(params).filter(([name]) => !names.includes(name)))
}

// Entries of the analytics table, and their conversion to endpoints.

export interface AnalyticsEntry {
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

export const ROLLING: Window = { unit: 'days', count: 28 }
export const ONE_MONTH: Window = { unit: 'months', count: 1 }
export const THREE_MONTHS: Window = { unit: 'months', count: 3 }
const SIX_MONTHS: Window = { unit: 'months', count: 6, monthsBackMax: 6 }

export const COMPARISON: Pair = { from: 'compareFrom', to: 'compareTo', together: true }

/** `field,min,max`, where a bound may be left out. */
export const RANGE = '[A-Za-z][\\w.]*,(-?\\d+(\\.\\d+)?)?,(-?\\d+(\\.\\d+)?)?'

export const monthly = { latest: ROLLING_OR_MONTHS, timeGranularity: granularity('Monthly') }
const history = {
  country: onlyWorldwide,
  latest: HISTORY_MONTHS,
  isWindow: onlyFalse,
  timeGranularity: granularity('Monthly'),
}

export const historyOf = (what: string, unit: string): AnalyticsEntry => ({
  title: `History of ${what}`,
  description: `The history of ${what}, month by month, for up to six complete months.`,
  returns: `\`Data.<domain>.<source>\` as Key/Value points, in ${unit}. Source names are kept as given.`,
  answer: bySource(list(points)),
  window: SIX_MONTHS,
  params: standard(history),
})

export const rankTable = (which: string): AnalyticsEntry => ({
  title: `${which} rank, as a table`,
  description: `The ${which.toLowerCase()} rank of a website.`,
  returns: 'Rows in `Data` with Domain and Rank. `TotalCount` can be 0 while `Data` has rows: test the array itself.',
  answer: rows('Data', fields('Rank Change', 'Domain Category Favicon')),
  window: ROLLING,
  params: standard(monthly),
})

// The native answers of the data source. Any listed field may be absent or null, and there may be others.

const figure = nullable(number)
const words = (names: string) => names.split(' ').filter(Boolean)

/** Fields by their names: those that hold numbers, and those that hold text. */
export function fields(numbers: string, texts = ''): Record<string, JsonSchema> {
  return {
    ...Object.fromEntries(words(texts).map((name) => [name, nullable(string)])),
    ...Object.fromEntries(words(numbers).map((name) => [name, figure])),
  }
}

/** A table: rows under a name, and how many there are under another. */
export function rows(at: string, row: Readonly<Record<string, JsonSchema>>, total = 'TotalCount'): JsonSchema {
  return loose({ [at]: list(loose(row)), [total]: wholeNumber })
}

/** One answer for each requested domain. */
export const byDomain = (figures: JsonSchema): JsonSchema => loose({ Data: mapOf(figures) })

export const points = list(loose({ Key: nullable(string), Value: figure }))
export const bySource = (series: JsonSchema): JsonSchema => byDomain(mapOf(series))
export const figures = mapOf(figure)
