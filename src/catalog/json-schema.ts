// A value compared with a JSON Schema that a stranger wrote: types, members, lists, choices and local references. Patterns and formats are not
// looked at, because they could be made to take forever; neither is more than a bounded number of steps.
import type { JsonSchema } from './endpoint.ts'

const STEPS_MAX = 20_000
const DEPTH_MAX = 64

interface Walk {
  readonly root: JsonSchema
  steps: number
  depth: number
}

/** What is wrong with the value, in words that begin with its place; undefined: nothing that was looked at. */
export function schemaProblem(schema: JsonSchema, value: unknown): string | undefined {
  return problemAt(schema, value, '', { root: schema, steps: 0, depth: 0 })
}

function problemAt(given: unknown, value: unknown, at: string, walk: Walk): string | undefined {
  if (given === false) return `${at || 'it'} is not allowed`
  if (++walk.steps > STEPS_MAX || walk.depth > DEPTH_MAX || !isObject(given)) return undefined
  const schema = typeof given.$ref === 'string' ? resolved(given.$ref, walk.root) : given
  if (!schema) return undefined
  const below = (one: unknown, its: unknown, name: string) => {
    walk.depth += 1
    const problem = problemAt(one, its, name, walk)
    walk.depth -= 1
    return problem
  }
  const types = [schema.type].flat().filter((type) => typeof type === 'string')
  if (types.length > 0 && !types.some((type) => isOf(type, value))) return `${at || 'it'} must be ${types.join(' or ')}`
  const choices = Array.isArray(schema.enum) ? schema.enum : 'const' in schema ? [schema.const] : undefined
  if (choices && !choices.some((one) => JSON.stringify(one) === JSON.stringify(value)))
    return `${at || 'it'} must be one of ${JSON.stringify(choices).slice(0, 200)}`
  for (const part of listOf(schema.allOf)) {
    const problem = below(part, value, at)
    if (problem !== undefined) return problem
  }
  for (const parts of [listOf(schema.anyOf), listOf(schema.oneOf)]) {
    const problems = parts.map((part) => below(part, value, at))
    if (parts.length > 0 && problems.every((problem) => problem !== undefined)) return problems[0]
  }
  if (Array.isArray(value)) return itemsProblem(schema, value, at, below)
  if (isObject(value)) return membersProblem(schema, value, at, below)
  return typeof value === 'number' ? rangeProblem(schema, value, at) : undefined
}

type Below = (schema: unknown, value: unknown, at: string) => string | undefined

function itemsProblem(schema: JsonSchema, value: readonly unknown[], at: string, below: Below): string | undefined {
  const { minItems, maxItems } = schema
  if (typeof minItems === 'number' && value.length < minItems) return `${at || 'it'} must have at least ${minItems}`
  if (typeof maxItems === 'number' && value.length > maxItems) return `${at || 'it'} must have at most ${maxItems}`
  if (schema.items === undefined) return undefined
  for (const [index, item] of value.entries()) {
    const problem = below(schema.items, item, `${at}[${index}]`)
    if (problem !== undefined) return problem
  }
  return undefined
}

function membersProblem(schema: JsonSchema, value: JsonSchema, at: string, below: Below): string | undefined {
  const name = (member: string) => (at === '' ? member : `${at}.${member}`)
  const missing = listOf(schema.required).find((one) => typeof one === 'string' && !Object.hasOwn(value, one))
  if (missing !== undefined) return `${name(String(missing))} is missing`
  const properties = isObject(schema.properties) ? schema.properties : {}
  for (const [member, its] of Object.entries(value)) {
    const known = Object.hasOwn(properties, member)
    if (!known && isObject(schema.patternProperties)) continue
    const problem = below(known ? properties[member] : schema.additionalProperties, its, name(member))
    if (problem !== undefined) return known ? problem : problem.replace(/ is not allowed$/, ' is not known')
  }
  return undefined
}

function rangeProblem({ minimum, maximum }: JsonSchema, value: number, at: string): string | undefined {
  if (typeof minimum === 'number' && value < minimum) return `${at || 'it'} must be at least ${minimum}`
  return typeof maximum === 'number' && value > maximum ? `${at || 'it'} must be at most ${maximum}` : undefined
}

function isOf(type: string, value: unknown): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  if (type === 'integer') return Number.isInteger(value)
  return typeof value === type
}

/** `#/$defs/name`, step by step; undefined for addresses elsewhere. */
function resolved(reference: string, root: JsonSchema): JsonSchema | undefined {
  if (!reference.startsWith('#/')) return reference === '#' ? root : undefined
  let at: unknown = root
  for (const step of reference.slice(2).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
  }
  return isObject(at) ? at : undefined
}

/** The smallest value that fits, for simulated results. */
export function schemaExample(schema: JsonSchema): unknown {
  return exampleAt(schema, { root: schema, steps: 0, depth: 0 }, 0)
}

function exampleAt(given: unknown, walk: Walk, depth: number): unknown {
  const schema = isObject(given) && typeof given.$ref === 'string' ? resolved(given.$ref, walk.root) : given
  if (!isObject(schema) || ++walk.steps > STEPS_MAX || depth > DEPTH_MAX) return null
  const [chosen] = [...listOf(schema.examples), ...listOf(schema.enum)]
  if (chosen !== undefined) return chosen
  if ('const' in schema || 'default' in schema) return schema.const ?? schema.default
  const [part] = [...listOf(schema.anyOf), ...listOf(schema.oneOf)]
  if (part !== undefined) return exampleAt(part, walk, depth + 1)
  const [type] = [schema.type].flat()
  if (type === 'array') {
    const count = typeof schema.minItems === 'number' ? Math.min(schema.minItems, 100) : 0
    return Array.from({ length: count }, () => exampleAt(schema.items, walk, depth + 1))
  }
  if (type === 'string') return 'simulated'
  if (type === 'boolean') return false
  if (type === 'number' || type === 'integer') return typeof schema.minimum === 'number' ? Math.ceil(schema.minimum) : 0
  if (type === 'null') return null
  const properties = isObject(schema.properties) ? schema.properties : {}
  return Object.fromEntries(
    listOf(schema.required).map((name) => [name, exampleAt(properties[String(name)], walk, depth + 1)]),
  )
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
