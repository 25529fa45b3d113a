// Checks a value against its field: returns the normalized text to forward, or an error that says what is allowed.

import { formatDay, monthStart, parseDay } from '../kernel/calendar.ts'
import { invalid } from '../kernel/fault.ts'
import { jsonIn } from '../kernel/json.ts'
import { allowedText, DOMAIN_CHARS_MAX, type Field, TEXT_BYTES_MAX } from './field.ts'

/** `place`: where the vendor gets it, if not in the query. */
export function readValue(name: string, field: Field, value: string, place?: string): string {
  const read = normalise(field, value)
  if (read === undefined) throw invalid(`${name} must be ${allowedText(field)}.`, name)
  if (place === 'address' && !isOnePart(field, read))
    throw invalid(`${name} must not contain /, \\, ..; or control characters, encoded or not.`, name)
  // HTTP knows no others.
  if (place === 'header' && !/^[\t\x20-\x7e\x80-\xff]*$/.test(read))
    throw invalid(`${name} must be a header: printable characters of Latin-1.`, name)
  return read
}

/**
 * Whether no proxy or vendor reads more than one part of a path, however often it decodes it; a pattern or list may
 * allow more.
 */
function isOnePart(field: Field, value: string): boolean {
  let text = value
  for (let before = ''; before !== text; ) {
    before = text
    text = text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString())
  }
  // U+FFFD: bytes that are no UTF-8, among them long forms of the same characters.
  if (/[\p{Cc}\uFFFD]/u.test(text)) return false
  if (!/[/\\]|\.\.;/.test(text) || 'allowed' in field) return true
  return field.kind === 'text' && field.pattern !== undefined && normalise(field, text) === text
}

function normalise(field: Field, value: string): string | undefined {
  switch (field.kind) {
    case 'text': {
      const text = readText(value)
      return text !== undefined && (field.pattern === undefined || new RegExp(field.pattern).test(text))
        ? text
        : undefined
    }
    case 'domain':
      return isDomain(value) ? value : undefined
    case 'boolean':
    case 'choice':
      return field.allowed.includes(value) ? value : undefined
    case 'integer':
      return isInteger(value, field.min, field.max) ? value : undefined
    case 'list':
      return readList(value, field.allowed)
    case 'date':
      return parseDay(value) === undefined ? undefined : value.replaceAll('-', '|')
    case 'latest': {
      const selector = parseLatest(value)
      if (!selector) return undefined
      const { unit, count } = selector
      return (unit === 'days' ? count <= field.daysMax : field.months.includes(count)) ? value : undefined
    }
    case 'json-array':
      return readJsonArray(value)
    case 'number':
      return isNumber(value, field) ? value : undefined
    case 'values': {
      const items = value.split(',').map((item) => item.trim())
      const isGood =
        items.length <= field.itemsMax && items.every((item) => item !== '') && readText(value) !== undefined
      return isGood ? items.join(',') : undefined
    }
  }
}

export interface Selector {
  readonly unit: 'days' | 'months'
  readonly count: number
}

/** `28d` or `3m`. */
export function parseLatest(value: string): Selector | undefined {
  const match = /^([1-9]\d{0,2})([dm])$/.exec(value)
  return match ? { unit: match[2] === 'd' ? 'days' : 'months', count: Number(match[1]) } : undefined
}

function readText(value: string): string | undefined {
  const text = value.trim()
  return text !== '' && Buffer.byteLength(text) <= TEXT_BYTES_MAX ? text : undefined
}

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i
/** A last label that starts with a digit would be an address, not a domain. */
const LAST_LABEL = /^[a-z][a-z0-9-]*[a-z0-9]$/i

function isDomain(value: string): boolean {
  if (value.length > DOMAIN_CHARS_MAX) return false
  const labels = value.split('.')
  return labels.length >= 2 && labels.every((label) => LABEL.test(label)) && LAST_LABEL.test(labels.at(-1) ?? '')
}

function isInteger(value: string, min: number, max: number | undefined): boolean {
  if (!/^(0|[1-9]\d{0,14})$/.test(value)) return false
  return Number(value) >= min && (max === undefined || Number(value) <= max)
}

function isNumber(
  value: string,
  { min = -Infinity, max = Infinity }: { min?: number | undefined; max?: number | undefined },
) {
  return /^-?\d{1,15}(?:\.\d{1,15})?$/.test(value) && Number(value) >= min && Number(value) <= max
}

/** Each value once, in the order given. */
function readList(value: string, allowed: readonly string[]): string | undefined {
  if (Buffer.byteLength(value) > TEXT_BYTES_MAX) return undefined
  const items = value.split(',').map((item) => item.trim())
  return items.every((item) => allowed.includes(item)) ? [...new Set(items)].join(',') : undefined
}

/** Some clients percent-encode the array before they build the query, so one more level of encoding is accepted. */
function readJsonArray(value: string): string | undefined {
  const text = readText(value)
  if (text === undefined) return undefined
  if (isJsonArray(text)) return text
  try {
    const decoded = decodeURIComponent(text)
    return isJsonArray(decoded) && !BREAKS.test(decoded) ? decoded : undefined
  } catch {
    return undefined
  }
}

const isJsonArray = (text: string) => Array.isArray(jsonIn(text))

// The days of a query, in UTC.

/** The data source is complete up to three days ago. */
const DAYS_BEHIND = 3

/** Days as numbers, both inclusive. */
interface Days {
  readonly from: number
  readonly to: number
}

export function daysOf({ unit, count }: Selector, today: number): Days {
  if (unit === 'months') return { from: monthStart(today, -count), to: monthStart(today) - 1 }
  const to = today - DAYS_BEHIND
  return { from: to - (count - 1), to }
}

/** Rejects days that are not complete months within the last `monthsBackMax` complete months. */
export function checkCompleteMonths(from: string, to: string, monthsBackMax: number, today: number): void {
  const range = daysOf({ unit: 'months', count: monthsBackMax }, today)
  const first = parseDay(from) ?? Number.NaN
  const last = parseDay(to) ?? Number.NaN
  const inside = `complete months inside ${formatDay(range.from)} to ${formatDay(range.to)}`
  if (first !== monthStart(first) || !(first >= range.from))
    throw invalid(`from must be the first day of a month: explicit dates are ${inside}.`, 'from')
  if (last + 1 !== monthStart(last + 1) || !(last <= range.to))
    throw invalid(`to must be the last day of a month: explicit dates are ${inside}.`, 'to')
}

// The raw query. Frameworks merge names, change their case, make arrays and repair bad encodings; the contract wants
// such queries rejected, so the raw text is parsed here.

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** What follows the `?`, as names and values in their order. */
export function parseRawQuery(raw: string): Map<string, string> {
  const values = new Map<string, string>()
  for (const piece of raw.split('&')) {
    if (piece === '') continue
    const equals = piece.indexOf('=')
    const name = decodePart(equals < 0 ? piece : piece.slice(0, equals))
    if (name === undefined) throw invalid('A query name is not valid percent-encoded UTF-8.')
    if (BREAKS.test(name)) throw invalid(`The query name ${quoteText(name)} holds CR, LF or NUL.`)
    const value = equals < 0 ? '' : decodePart(piece.slice(equals + 1))
    if (value === undefined) throw invalid(`${quoteText(name)} is not valid percent-encoded UTF-8.`, bounded(name))
    if (BREAKS.test(value)) throw invalid(`${quoteText(name)} holds CR, LF or NUL.`, bounded(name))
    if (values.has(name)) throw invalid(`${quoteText(name)} is given more than once.`, bounded(name))
    values.set(name, value)
  }
  return values
}

const BREAKS = /[\r\n\0]/

/** Undefined for a stray percent sign, invalid UTF-8, and characters that must be percent-encoded. */
function decodePart(part: string): string | undefined {
  if (!/^([\x00-\x24\x26-\x7f]|%[0-9A-Fa-f]{2})*$/.test(part)) return undefined
  const spaced = part.replaceAll('+', ' ')
  if (!spaced.includes('%')) return spaced
  const bytes = spaced.replace(/%(..)/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
  try {
    return utf8.decode(Buffer.from(bytes, 'latin1'))
  } catch {
    return undefined
  }
}

/** A caller's text in a message: shortened, quoted, with control characters escaped and without lone surrogates. */
export function quoteText(text: string): string {
  return JSON.stringify(bounded(text))
}

function bounded(text: string): string {
  return text.length <= 64 ? text : `${text.slice(0, 64).toWellFormed()}…`
}
