// The mapper of bridges: from a checked query to the vendor's request, and from the vendor's answer to the shape that
// the endpoint promises. Pure, with a bound on its steps. A missing member becomes null, a missing table becomes empty.

import { type Bridge, NAME, operatorOf, PATH, type Template, type VendorBridge } from '../../catalog/bridge.ts'
import type { DataEndpointSpec } from '../../catalog/endpoint.ts'
import type { NormalisedQuery } from '../../catalog/query.ts'
import { DAY_MS, formatDay, monthStart, parseDay } from '../../kernel/calendar.ts'
import { invalid } from '../../kernel/fault.ts'
import { isObject } from '../../kernel/json.ts'
import { garbled } from '../protocol.ts'

type Names = ReadonlyMap<string, string>

/**
 * The path and query below the vendor's address. Throws a fault that says what the caller must change, if the vendor
 * cannot answer the query.
 */
export function bridgedAddress(
  { path, query, carries }: Bridge,
  spec: DataEndpointSpec,
  asked: NormalisedQuery,
): string {
  for (const [name, value] of asked)
    if (!carries.has(name) && value !== spec.params[name]?.default)
      throw invalid(`${name}=${value} cannot be answered by the source of this endpoint; leave ${name} out.`, name)
  // Host names are case-insensitive, but not every vendor treats them so. The answer has the name as the caller wrote
  // it.
  const names = namesOf(
    asked.map(([name, value]) => [name, spec.params[name]?.kind === 'domain' ? value.toLowerCase() : value]),
  )
  const filled = path.replace(NAME, (_, name: string) => encodeURIComponent(names.get(name) ?? ''))
  const pairs = Object.entries(query).flatMap(([name, template]) => {
    const value = filledIn(template, names)
    return value === undefined ? [] : [`${encodeURIComponent(name)}=${encodeURIComponent(value)}`]
  })
  return `/${filled}${pairs.length > 0 ? '?' : ''}${pairs.join('&')}`
}

/** Undefined: the vendor's parameter is left out. */
function filledIn(template: Template, names: Names): string | undefined {
  if (template === null) return undefined
  if (typeof template !== 'object') return textOf(String(template), names)
  if (Array.isArray(template)) return undefined
  if (typeof template.$offset === 'string') {
    const [page, size] = [names.get(template.$offset), filledIn(template.by ?? null, names)]
    return page === undefined || size === undefined ? undefined : String((Number(page) - 1) * Number(size))
  }
  const chosen = choiceOf(template, names)
  if (chosen !== undefined) return filledIn(chosen, names)
  const name = String(template.$of)
  if (!names.has(name)) return undefined
  const others = Object.keys(template.is ?? {}).join(', ')
  throw invalid(`${name} must be one of ${others} for the source of this endpoint.`, name)
}

/** Undefined: there is no branch for this value. */
function choiceOf({ $of: of, is }: { [name: string]: Template }, names: Names): Template | undefined {
  const value = names.get(String(of))
  if (value === undefined || !isObject(is)) return undefined
  const branches = is as { [value: string]: Template } // Part of a template.
  return Object.hasOwn(branches, value) ? branches[value] : branches['*']
}

function textOf(text: string, names: Names): string | undefined {
  const missing = [...text.matchAll(NAME)].some(([, name = '']) => !names.has(name))
  return missing ? undefined : text.replace(NAME, (_, name: string) => names.get(name) ?? '')
}

// The names for templates: the parameters, and values derived from them.

function namesOf(asked: NormalisedQuery): Names {
  const names = new Map(asked)
  for (const [name, value] of Object.entries(periodOf(asked)?.names ?? {})) names.set(name, value)
  const country = names.get('country')
  if (country !== undefined && country !== '999') {
    const code = codeOf(country)
    if (code === undefined)
      throw invalid(`country=${country} is not supported by the source of this endpoint.`, 'country')
    names.set('countryCode', code.toLowerCase())
  }
  return names
}

interface Period {
  readonly names: Readonly<Record<string, string>>
  readonly days: number
  readonly months: number
}

/**
 * The requested days, and the complete months that contain them; if none is complete, the last complete month before.
 */
export function periodOf(asked: NormalisedQuery): Period | undefined {
  const [from, to] = ['from', 'to'].map((name) => parseDay(asked.find(([one]) => one === name)?.[1] ?? ''))
  if (from === undefined || to === undefined) return undefined
  const days = to - from + 1
  const isWhole = monthStart(to, 1) === to + 1
  const last = monthStart(to, isWhole ? 0 : -1)
  const first = Math.min(monthStart(from), last)
  const month = (day: number) => formatDay(day).slice(0, 7)
  const names = { firstDay: formatDay(from), lastDay: formatDay(to), firstMonth: month(first), lastMonth: month(last) }
  const [a, b] = [first, last].map((day) => new Date(day * DAY_MS))
  const months = a && b ? (b.getUTCFullYear() - a.getUTCFullYear()) * 12 + b.getUTCMonth() - a.getUTCMonth() + 1 : 1
  return { names, days, months }
}

/** The two letters of a country's number. */
function codeOf(number: string): string | undefined {
  const { region } = new Intl.Locale(`und-${number.padStart(3, '0').slice(-3)}`)
  return number.length <= 3 && region !== undefined && /^[A-Z]{2}$/.test(region) && region !== 'ZZ' ? region : undefined
}

/** Numbers that a country no longer has. */
const FORMER = new Set([172, 200, 230, 249, 278, 280, 530, 532, 536, 582, 720, 736, 810, 830, 886, 890, 891])
let numbers: ReadonlyMap<string, number> | undefined

function numberOf(code: unknown): number | null {
  if (typeof code === 'number') return code
  numbers ??= new Map(
    Array.from({ length: 900 }, (_, at) => at).flatMap((at) => {
      const found = FORMER.has(at) ? undefined : codeOf(String(at))
      return found === undefined ? [] : [[found, at] as const]
    }),
  )
  return typeof code === 'string' ? (numbers.get(code.toUpperCase()) ?? null) : null
}

// The answer.

const STEPS_MAX = 500_000

interface Walk {
  readonly answer: unknown
  readonly names: Names
  steps: number
}

export function bridgedAnswer({ answer: template }: Bridge, asked: NormalisedQuery, answer: unknown): unknown {
  if (!isObject(answer) && !Array.isArray(answer)) throw garbled('the answer is neither an object nor a list')
  return filled(template, { answer, names: namesOf(asked), steps: 0 }, undefined)
}

/** The error that a vendor reports in a body with status 200; undefined for a real answer. */
export function errorIn({ error }: VendorBridge, answer: unknown): string | undefined {
  const said = error === undefined ? undefined : found(error, { answer, names: new Map(), steps: 0 }, undefined)
  return typeof said === 'string' && said !== '' ? said : undefined
}

function filled(template: Template, walk: Walk, row: unknown): unknown {
  if (++walk.steps > STEPS_MAX) throw garbled('the answer is too large to be read')
  if (typeof template === 'string')
    return PATH.test(template) ? (found(template, walk, row) ?? null) : (textOf(template, walk.names) ?? null)
  if (typeof template !== 'object' || template === null) return template
  if (Array.isArray(template)) return template.map((one) => filled(one, walk, row))
  const operator = operatorOf(template)
  if (operator !== undefined) return OPERATORS[operator]?.(template, walk, row) ?? null
  return Object.fromEntries(
    Object.entries(template).map(([name, one]) => [textOf(name, walk.names) ?? name, filled(one, walk, row)]),
  )
}

/** The value at a path. A list in the path means each of its items. */
function found(path: string, walk: Walk, row: unknown): unknown {
  let at = path.startsWith('$') ? walk.answer : row
  for (const name of path.split('.').slice(1)) {
    if (Array.isArray(at)) {
      walk.steps += at.length
      at = at.map((item: unknown) => memberOf(item, name))
    } else at = memberOf(at, name)
  }
  return at
}

const memberOf = (value: unknown, name: string) =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined

type Operator = (template: { [name: string]: Template }, walk: Walk, row: unknown) => unknown

const listOf = (template: Template | undefined, walk: Walk, row: unknown): unknown[] => {
  const value = filled(template ?? null, walk, row)
  return Array.isArray(value) ? value : value === null ? [] : [value]
}
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
const sumOf = (values: readonly unknown[]) => {
  const all = values.filter(isNumber)
  return all.length === 0 ? null : all.reduce((sum, one) => sum + one, 0)
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  $of: (template, walk, row) => filled(choiceOf(template, walk.names) ?? null, walk, row),
  $each: ({ $each: source, as = null }, walk, row) => listOf(source, walk, row).map((item) => filled(as, walk, item)),
  $group({ $group: source, key = null, as = null }, walk, row) {
    const groups = new Map<string, unknown[]>()
    for (const item of listOf(source, walk, row)) {
      const name = filled(key, walk, item)
      if (typeof name !== 'string') continue
      const group = groups.get(name)
      if (group) group.push(item)
      else groups.set(name, [item])
    }
    return Object.fromEntries([...groups].map(([name, items]) => [name, filled(as, walk, items)]))
  },
  $sum: ({ $sum: of }, walk, row) => sumOf(listOf(of, walk, row)),
  $mean({ $mean: of, by }, walk, row) {
    const values = listOf(of, walk, row)
    const weights = by === undefined ? values.map(() => 1) : listOf(by, walk, row)
    const pairs = values.flatMap((value, at) => {
      const weight = weights[at]
      return isNumber(value) && isNumber(weight) ? [{ value, weight }] : []
    })
    const whole = sumOf(pairs.map(({ weight }) => weight))
    return whole ? pairs.reduce((sum, { value, weight }) => sum + value * weight, 0) / whole : null
  },
  $last: ({ $last: of }, walk, row) => listOf(of, walk, row).findLast((one) => one !== null && one !== undefined),
  $count: ({ $count: of }, walk, row) => listOf(of, walk, row).length,
  $first: ({ $first: of }, walk, row) => listOf(of, walk, row).find((one) => one !== null && one !== undefined),
  $country: ({ $country: of }, walk, row) => numberOf(filled(of ?? null, walk, row)),
}
