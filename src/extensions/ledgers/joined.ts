// How the answers of several ledgers become one, by the schema of the answer: amounts and counts add up, averages are
// weighted, and rows about the same thing are one row.
import * as z from 'zod'
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import { isCredits } from '../../kernel/view.ts'

type Row = Readonly<Record<string, unknown>>

/** What a row is about: rows in which these are equal are one. */
const ABOUT =
  'id requestId kind account vendor product route model credential fault status phase cause month day at group value name'.split(
    ' ',
  )
/**
 * By which counts these are weighted. Percentiles cannot be computed from percentiles: theirs lie between the smallest
 * and the largest of the ledgers.
 */
const WEIGHTS = new Map([
  ['latencyMsAvg', 'requests'],
  ['latencyMsP50', 'requests'],
  ['latencyMsP95', 'requests'],
  ['p50Ms', 'calls'],
  ['p95Ms', 'calls'],
  ['p99Ms', 'calls'],
  ['firstByteMsP50', 'answered'],
  ['chargedAvg', 'answered'],
  ['costAvg', 'answered'],
])
/** Not known of all where one does not know it. */
const WHOLE = new Set(['inputTokens', 'outputTokens'])
/** True only where it is true of all. */
const EVERY = new Set(['done', 'ok', 'full'])

export function joined(type: z.core.$ZodType, values: readonly unknown[]): unknown {
  const known = values.filter((value) => value !== null && value !== undefined)
  if (known.length < 2) return known[0] ?? values[0]
  const [first] = known
  if (isCredits(type)) return formatCredits(known.reduce<bigint>((sum, value) => sum + (parseCredits(value) ?? 0n), 0n))
  const plain = plainOf(type)
  if (plain instanceof z.ZodNumber) return known.reduce<number>((sum, value) => sum + Number(value), 0)
  if (plain instanceof z.ZodBoolean) return known.some(Boolean)
  if (plain instanceof z.ZodObject) return oneObject(plain, known.map(asRow))
  if (plain instanceof z.ZodRecord) return oneRecord(plain, known.map(asRow))
  if (!(plain instanceof z.ZodArray)) return first
  const all = known.flatMap((value) => (Array.isArray(value) ? value : []))
  const { element } = plain
  if (!(element instanceof z.ZodObject)) return [...new Set(all)]
  const about = ABOUT.filter((name) => Object.hasOwn(element.shape, name))
  if (about.length === 0) return all
  const rows = Map.groupBy(all.map(asRow), (row) => JSON.stringify(about.map((name) => row[name] ?? null)))
  return Array.from(rows.values(), (same) => joined(element, same))
}

/** Of several objects. */
function oneObject({ shape }: z.ZodObject, parts: readonly Row[]): Row {
  const members = Object.entries(shape).flatMap(([name, type]) => {
    const value = member(name, type, parts)
    return value === undefined ? [] : [[name, value]]
  })
  return Object.fromEntries(members)
}

function member(name: string, type: z.core.$ZodType, parts: readonly Row[]): unknown {
  const values = parts.map((part) => part[name])
  const weight = WEIGHTS.get(name)
  if (weight !== undefined) return averageOf(parts.map((part) => [part[name], Number(part[weight])]))
  if (WHOLE.has(name) && values.includes(null)) return null
  if (EVERY.has(name)) return values.includes(false) ? false : values.includes(null) ? null : values[0]
  // Of calls: the analytics store had all of them only if it had those of each.
  if (name === 'source' && values.includes('database')) return 'database'
  return ABOUT.includes(name) ? (values.find((value) => value !== null) ?? values[0]) : joined(type, values)
}

function oneRecord({ valueType }: z.ZodRecord, parts: readonly Row[]): Row {
  const names = new Set(parts.flatMap((part) => Object.keys(part)))
  return Object.fromEntries(
    Array.from(names, (name) => [
      name,
      joined(
        valueType,
        parts.map((part) => part[name]),
      ),
    ]),
  )
}

/** Of counts, and of credits. */
function averageOf(weighted: readonly (readonly [value: unknown, weight: number])[]): unknown {
  const known = weighted.filter(([value, weight]) => value !== null && value !== undefined && weight > 0)
  if (known.length < 2) return known.length === 1 ? known[0]?.[0] : (weighted[0]?.[0] ?? null)
  const isText = typeof known[0]?.[0] === 'string'
  const [sum, weights] = known.reduce<[number, number]>(
    ([sum, all], [value, weight]) => [
      sum + (isText ? Number(parseCredits(value)) : Number(value)) * weight,
      all + weight,
    ],
    [0, 0],
  )
  const average = Math.round(sum / weights)
  return isText ? formatCredits(BigInt(average)) : average
}

function plainOf(type: z.core.$ZodType): z.core.$ZodType {
  return type instanceof z.ZodNullable || type instanceof z.ZodOptional || type instanceof z.ZodExactOptional
    ? plainOf(type.unwrap())
    : type
}

const asRow = (value: unknown): Row => Object(value)
