// The part of JSON Schema that operations of products use. A value is checked in a bounded number of steps, for any
// schema and value. An example can be made from a schema. References can only point to `$defs` of the same schema.
import { isObject } from '../kernel/json.ts'
import type { JsonSchema } from './endpoint.ts'
import { isQuickPattern, PATTERN_TEXT_MAX } from './pattern.ts'

interface SchemaProblem {
  /** `filters[2].name`; empty: the value itself. */
  readonly at: string
  /** What the value must be. */
  readonly must: string
}

/** Limits the steps: a recursive schema with alternatives would take exponential time in its depth. */
const STEPS_MAX = 100_000

class Budget {
  private steps = STEPS_MAX
  spend(): boolean {
    this.steps -= 1
    return this.steps > 0
  }
}

/** The first problem; undefined: none. */
export function checkValue(schema: JsonSchema, value: unknown): SchemaProblem | undefined {
  return check(schema, value, '', { root: schema, budget: new Budget() })
}

interface Check {
  readonly root: JsonSchema
  readonly budget: Budget
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

const wrong = (at: string, must: string): SchemaProblem => ({ at, must })

function check(given: unknown, value: unknown, at: string, context: Check): SchemaProblem | undefined {
  if (!context.budget.spend()) return wrong(at, 'be less deeply nested: checking it takes too many steps')
  if (given === true || given === undefined) return undefined
  if (given === false) return wrong(at, 'be left out')
  const schema = resolveRef(given as JsonSchema, context.root) // Checked with the catalog.
  return (
    checkKind(schema, value, at) ??
    checkChoices(schema, value, at, context) ??
    (Array.isArray(value)
      ? checkItems(schema, value, at, context)
      : typeof value === 'object' && value !== null
        ? checkMembers(schema, value, at, context)
        : checkPlain(schema, value, at))
  )
}

/** Follows a chain of references; a cycle of references accepts anything. */
function resolveRef(schema: JsonSchema, root: JsonSchema): JsonSchema {
  let found = schema
  for (let hops = 0; typeof found.$ref === 'string' && hops < 20; hops++) {
    const name = decodeURIComponent(found.$ref.replace(/^#\/\$defs\//, ''))
    const defs = (root.$defs ?? {}) as Readonly<Record<string, JsonSchema>> // Checked with the catalog.
    const next = Object.hasOwn(defs, name) ? defs[name] : undefined
    if (!next) return {}
    found = next
  }
  return found.$ref === undefined ? found : {}
}

const TYPES: Readonly<Record<string, readonly [words: string, isOne: (value: unknown) => boolean]>> = {
  string: ['a text', (value) => typeof value === 'string'],
  number: ['a number', (value) => typeof value === 'number'],
  integer: ['a whole number', (value) => Number.isInteger(value)],
  boolean: ['true or false', (value) => typeof value === 'boolean'],
  null: ['null', (value) => value === null],
  array: ['a list', Array.isArray],
  object: ['an object', isObject],
}

function checkKind({ type, enum: values, const: only }: JsonSchema, value: unknown, at: string) {
  const types = type === undefined ? [] : [type].flat().map(String)
  if (types.length > 0 && !types.some((one) => TYPES[one]?.[1](value) ?? true))
    return wrong(at, `be ${types.map((one) => TYPES[one]?.[0] ?? one).join(' or ')}`)
  if (only !== undefined && !isSame(only, value)) return wrong(at, `be ${JSON.stringify(only)}`)
  if (Array.isArray(values) && !values.some((one) => isSame(one, value)))
    return wrong(at, `be one of ${values.slice(0, 30).map(String).join(', ')}`)
  return undefined
}

/** Deep equality. Its cost is bounded by the smaller value. */
function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  const names = Object.keys(a)
  if (Array.isArray(a) !== Array.isArray(b) || names.length !== Object.keys(b).length) return false
  return names.every((name) => Object.hasOwn(b, name) && isSame(Reflect.get(a, name), Reflect.get(b, name)))
}

function checkPlain(schema: JsonSchema, value: unknown, at: string): SchemaProblem | undefined {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength, pattern } = schema
  if (typeof value === 'number') {
    if (typeof minimum === 'number' && value < minimum) return wrong(at, `be at least ${minimum}`)
    if (typeof maximum === 'number' && value > maximum) return wrong(at, `be at most ${maximum}`)
    if (typeof exclusiveMinimum === 'number' && value <= exclusiveMinimum)
      return wrong(at, `be more than ${exclusiveMinimum}`)
    if (typeof exclusiveMaximum === 'number' && value >= exclusiveMaximum)
      return wrong(at, `be less than ${exclusiveMaximum}`)
    if (typeof multipleOf === 'number' && Number.isInteger(multipleOf) && multipleOf > 0 && value % multipleOf !== 0)
      return wrong(at, `be a multiple of ${multipleOf}`)
  }
  if (typeof value === 'string') {
    if (typeof minLength === 'number' && value.length < minLength)
      return wrong(at, `have at least ${minLength} characters`)
    if (typeof maxLength === 'number' && value.length > maxLength)
      return wrong(at, `have at most ${maxLength} characters`)
    if (typeof pattern === 'string' && value.length <= PATTERN_TEXT_MAX && !matches(pattern, value))
      return wrong(at, `match ${pattern}`)
  }
  return undefined
}

const compiled = new Map<string, RegExp | undefined>()

function matches(pattern: string, value: string): boolean {
  if (compiled.size > 1_000) compiled.clear()
  if (!compiled.has(pattern)) compiled.set(pattern, isQuickPattern(pattern) ? new RegExp(pattern, 'u') : undefined)
  return compiled.get(pattern)?.test(value) ?? true
}

function checkItems({ items, minItems, maxItems }: JsonSchema, value: readonly unknown[], at: string, context: Check) {
  if (typeof minItems === 'number' && value.length < minItems) return wrong(at, `hold at least ${minItems} items`)
  if (typeof maxItems === 'number' && value.length > maxItems) return wrong(at, `hold at most ${maxItems} items`)
  if (items === undefined) return undefined
  for (const [index, item] of value.entries()) {
    const problem = check(items, item, `${at}[${index}]`, context)
    if (problem) return problem
  }
  return undefined
}

function checkMembers(
  { properties = {}, required = [], additionalProperties, maxProperties }: JsonSchema,
  value: object,
  at: string,
  context: Check,
): SchemaProblem | undefined {
  const under = (name: string) => (at === '' ? name : `${at}.${name}`).slice(0, 200)
  for (const name of listOf(required).map(String))
    if (!Object.hasOwn(value, name)) return wrong(under(name), 'be there: it is required')
  const names = Object.keys(value)
  if (typeof maxProperties === 'number' && names.length > maxProperties)
    return wrong(at, `have at most ${maxProperties} members`)
  const known = properties as Readonly<Record<string, unknown>> // Checked with the catalog.
  for (const name of names) {
    const isKnown = Object.hasOwn(known, name)
    if (!isKnown && additionalProperties === false)
      return wrong(under(name), `be left out: it is not known here${listed(Object.keys(known))}`)
    const problem = check(isKnown ? known[name] : additionalProperties, Reflect.get(value, name), under(name), context)
    if (problem) return problem
  }
  return undefined
}

const listed = (names: readonly string[]) => (names.length === 0 ? '' : `; there are ${names.slice(0, 30).join(', ')}`)

function checkChoices(schema: JsonSchema, value: unknown, at: string, context: Check): SchemaProblem | undefined {
  for (const part of listOf(schema.allOf)) {
    const problem = check(part, value, at, context)
    if (problem) return problem
  }
  for (const choices of [schema.anyOf, schema.oneOf]) {
    if (!Array.isArray(choices) || choices.length === 0) continue
    // oneOf is treated as anyOf, because many documents have alternatives that overlap.
    const problems: SchemaProblem[] = []
    for (const choice of choices) {
      const problem = check(choice, value, at, context)
      if (!problem) break
      problems.push(problem)
    }
    // Reports the problem of the alternative that matched furthest.
    if (problems.length === choices.length) return problems.sort((a, b) => b.at.length - a.at.length)[0]
  }
  return undefined
}

const SAMPLE_DEPTH_MAX = 6
const SAMPLE_PARTS_MAX = 2_000

/** An example value of the schema; its own example if it has one. */
export function sampleOf(schema: JsonSchema): unknown {
  let parts = 0

  function sample(given: unknown, depth: number): unknown {
    parts += 1
    if (typeof given !== 'object' || given === null) return null
    const { allOf, oneOf, anyOf, ...found } = resolveRef(given as JsonSchema, schema) // An object that is part of a schema.
    if (Array.isArray(found.examples) && found.examples.length > 0) return found.examples[0]
    for (const word of ['example', 'default', 'const'] as const) if (found[word] !== undefined) return found[word]
    if (Array.isArray(found.enum)) return found.enum[0]
    const type = Array.isArray(found.type) ? found.type[0] : (found.type ?? (found.properties ? 'object' : undefined))
    if (depth > SAMPLE_DEPTH_MAX || parts > SAMPLE_PARTS_MAX)
      return type === 'array' ? [] : type === 'object' ? {} : null
    if (Array.isArray(allOf)) return Object.assign({}, ...allOf.map((one) => sample(one, depth + 1)))
    for (const choices of [oneOf, anyOf])
      if (Array.isArray(choices) && choices.length > 0) return sample(choices[0], depth + 1)
    if (type === 'array') return found.items ? [sample(found.items, depth + 1)] : []
    if (type !== 'object') return plainSample(String(type), found)
    const members = Object.entries(found.properties ?? {})
    return Object.fromEntries(members.map(([name, member]) => [name, sample(member, depth + 1)]))
  }

  return sample(schema, 0)
}

const FORMATS: Readonly<Record<string, string>> = {
  'date-time': '2026-01-31T12:00:00Z',
  date: '2026-01-31',
  uri: 'https://example.com/',
  email: 'someone@example.com',
  uuid: '123e4567-e89b-42d3-a456-426614174000',
}

function plainSample(type: string, { minimum, format, minLength }: JsonSchema): unknown {
  if (type === 'integer' || type === 'number') return minimum ?? 1
  if (type === 'boolean') return true
  if (type !== 'string') return null
  return FORMATS[String(format)] ?? 'text'.padEnd(Math.min(Number(minLength ?? 0), 200), 't')
}

export const SHORT_CHARS_MAX = 50_000
const known = new WeakMap<object, boolean>()

/** Whether it is worth showing. Computed once per schema. */
export function isShort(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return String(value).length <= SHORT_CHARS_MAX
  const found = known.get(value) ?? countsFew(value)
  known.set(value, found)
  return found
}

function countsFew(value: object): boolean {
  const waiting: unknown[] = [value]
  let chars = 0
  for (let one = waiting.pop(); chars <= SHORT_CHARS_MAX; one = waiting.pop()) {
    chars += 1 + (typeof one === 'string' ? one.length : 0)
    if (typeof one === 'object' && one !== null)
      for (const [name, item] of Object.entries(one)) {
        chars += name.length
        waiting.push(item)
      }
    if (waiting.length === 0) return chars <= SHORT_CHARS_MAX
  }
  return false
}
