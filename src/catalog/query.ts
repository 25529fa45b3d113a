// Converts the raw query to the forwarded one: names and values are checked, and defaults are filled in, in the order
// of the endpoint's table, so that equal requests become equal queries.
import { dayOfMs, formatDay } from '../kernel/calendar.ts'
import { invalid } from '../kernel/fault.ts'
import type { DataEndpointSpec, Pair } from './endpoint.ts'
import { allowedText } from './field.ts'
import {
  checkCompleteMonths,
  daysOf,
  parseLatest,
  parseRawQuery,
  quoteText,
  readValue,
  type Selector,
} from './value.ts'

/** Names and values in the order of the table. */
export type NormalisedQuery = ReadonlyArray<readonly [name: string, value: string]>

/** The headers of a request, by lower-case names. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>

/** Values outside the query: the path's parameters, decoded, and the headers. */
interface Beside {
  readonly path?: Readonly<Record<string, string>>
  readonly headers?: RequestHeaders | undefined
}

export function readQuery(
  spec: DataEndpointSpec,
  rawQuery: string,
  nowMs: number,
  beside: Beside = {},
): NormalisedQuery {
  const values = readGiven(spec, parseRawQuery(rawQuery), beside)
  for (const pair of spec.pairs) checkPair(pair, values)
  fillWindow(spec, values, nowMs)
  for (const { param, value, defaults } of spec.modes)
    if (values.get(param) === value)
      for (const [name, fallback] of Object.entries(defaults)) fill(values, name, fallback)
  for (const [name, field] of Object.entries(spec.params))
    if (field.default !== undefined) fill(values, name, field.default)
  return Object.keys(spec.params).flatMap((name) => {
    const value = values.get(name)
    return value === undefined ? [] : [[name, value] as const]
  })
}

/** Equal for requests with the same answer. */
export function cacheKey(spec: DataEndpointSpec, query: NormalisedQuery): string {
  return `${spec.id}?${encodeQuery(query)}`
}

/** The path and query at the vendor: `{name}` in the path is replaced by its value. */
export function vendorAddress(spec: DataEndpointSpec, query: NormalisedQuery): string {
  const inPath = new Set<string>()
  const path = spec.vendorPath.replace(/\{(\w+)\}/g, (_, name: string) => {
    inPath.add(name)
    return encodeURIComponent(query.find((pair) => pair[0] === name)?.[1] ?? '')
  })
  const inQuery = query.filter(([name]) => !inPath.has(name) && spec.params[name]?.in !== 'header')
  const rest = encodeQuery(inQuery.flatMap((pair) => (spec.params[pair[0]]?.repeat ? repeated(pair) : [pair])))
  return rest ? `/${path}?${rest}` : `/${path}`
}

function repeated([name, value]: NormalisedQuery[number]): NormalisedQuery {
  return value.split(',').map((item) => [name, item] as const)
}

function encodeQuery(query: NormalisedQuery): string {
  return query.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&')
}

function readGiven(
  spec: DataEndpointSpec,
  given: ReadonlyMap<string, string>,
  { path = {}, headers }: Beside,
): Map<string, string> {
  const names = Object.keys(spec.params).filter((name) => spec.params[name]?.in === undefined)
  for (const name of given.keys()) if (!names.includes(name)) throw unknownName(name, names)
  const values = new Map<string, string>()
  for (const [name, field] of Object.entries(spec.params)) {
    const value =
      field.in === 'path' ? path[name] : field.in === 'header' ? headers?.[name.toLowerCase()] : given.get(name)
    if (value !== undefined) {
      const isInAddress = field.in === 'path' || spec.vendorPath.includes(`{${name}}`)
      values.set(name, readValue(name, field, value, isInAddress ? 'address' : field.in))
    } else if (field.required) throw invalid(`${name} is required: ${allowedText(field)}.`, name)
  }
  return values
}

function unknownName(name: string, names: readonly string[]) {
  const meant = names.find((candidate) => candidate.toLowerCase() === name.toLowerCase())
  const hint = meant ? ` Names are case-sensitive: did you mean ${meant}?` : ''
  const takes = names.length === 0 ? 'none' : names.join(', ')
  return invalid(`${quoteText(name)} is not a parameter of this endpoint.${hint} It takes ${takes}.`)
}

function checkPair({ from, to, together }: Pair, values: ReadonlyMap<string, string>): void {
  const first = values.get(from)
  const second = values.get(to)
  if (first === undefined || second === undefined) {
    if (together && first !== second) throw invalid(`${from} and ${to} must be given together.`, first ? to : from)
    return
  }
  // Dates are of equal length and compare as text; integers compare by length first.
  if (first.length > second.length || (first.length === second.length && first > second))
    throw invalid(`${from} must not be after ${to}.`, from)
}

/** Dates, `latest`, `isWindow` and `timeGranularity`: they depend on each other. */
function fillWindow(spec: DataEndpointSpec, values: Map<string, string>, nowMs: number): void {
  const { window } = spec
  if (!window) return
  const today = dayOfMs(nowMs)
  const latest = values.get('latest')
  const from = values.get('from')
  const to = values.get('to')
  let selector: Selector | undefined
  if (from !== undefined && to !== undefined) {
    if (latest !== undefined) throw invalid('latest must not be combined with from and to.', 'latest')
    if (window.monthsBackMax !== undefined) checkCompleteMonths(from, to, window.monthsBackMax, today)
  } else {
    selector = (latest === undefined ? undefined : parseLatest(latest)) ?? window
    const days = daysOf(selector, today)
    values.set('from', formatDay(days.from, '|'))
    values.set('to', formatDay(days.to, '|'))
    if (selector.unit === 'days' && 'latest' in spec.params) fill(values, 'latest', `${selector.count}d`)
  }
  if (latest?.endsWith('m') && values.get('isWindow') === 'true' && !window.monthsMayRoll)
    throw invalid(`isWindow must be false with latest=${latest}: complete months are no rolling window.`, 'isWindow')
  if ('isWindow' in spec.params) fill(values, 'isWindow', String(selector?.unit === 'days'))

  // Explicit dates keep the step that goes with the endpoint's own window.
  const step = (selector ?? window).unit === 'days' ? 'Daily' : 'Monthly'
  const granularity = spec.params.timeGranularity
  if (granularity?.kind === 'choice')
    fill(values, 'timeGranularity', granularity.allowed.includes(step) ? step : (granularity.allowed[0] ?? step))
}

function fill(values: Map<string, string>, name: string, value: string): void {
  if (!values.has(name)) values.set(name, value)
}
