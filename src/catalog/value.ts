// One value against its field: the normalised text to forward, or a refusal that says what is allowed.
import { parseDay } from '../kernel/calendar.ts'
import { invalid } from '../kernel/fault.ts'
import { allowedText, DOMAIN_CHARS_MAX, type Field, TEXT_BYTES_MAX } from './field.ts'
import { BREAKS } from './raw-query.ts'

export function readValue(name: string, field: Field, value: string): string {
  const read = normalise(field, value)
  if (read === undefined) throw invalid(`${name} must be ${allowedText(field)}.`, name)
  return read
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

/** Each value once, in the order given. */
function readList(value: string, allowed: readonly string[]): string | undefined {
  if (Buffer.byteLength(value) > TEXT_BYTES_MAX) return undefined
  const items = value.split(',').map((item) => item.trim())
  return items.every((item) => allowed.includes(item)) ? [...new Set(items)].join(',') : undefined
}

/** Some clients percent-encode the array before they build the query, so one more level of encoding is taken. */
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

function isJsonArray(text: string): boolean {
  try {
    return Array.isArray(JSON.parse(text))
  } catch {
    return false
  }
}
