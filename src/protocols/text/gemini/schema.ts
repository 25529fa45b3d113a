// The format's own kind of schema (types in capitals, `nullable`, counts as texts) as JSON Schema.
import { isObject, type Json } from '../../check.ts'
import { inSnakeCase } from './member.ts'

const COUNTS = ['minItems', 'maxItems', 'minLength', 'maxLength', 'minProperties', 'maxProperties']
const NAMES = [...COUNTS, 'anyOf', 'additionalProperties']

export function fromOpenApi(schema: Json): Json {
  const out: Json = {}
  for (const [given, value] of Object.entries(schema)) {
    const name = NAMES.find((one) => given === inSnakeCase(one)) ?? given
    if (value === null || value === undefined || /^(?:nullable|property_?ordering)$/i.test(name)) continue
    if (name === 'type' && typeof value === 'string') out.type = value.toLowerCase()
    else if (name === 'properties' && isObject(value))
      out.properties = Object.fromEntries(
        Object.entries(value).map(([key, one]) => [key, isObject(one) ? fromOpenApi(one) : one]),
      )
    else if (COUNTS.includes(name)) out[name] = Number(value)
    else if (Array.isArray(value) && name === 'anyOf')
      out.anyOf = value.map((one) => (isObject(one) ? fromOpenApi(one) : one))
    else
      out[name] = isObject(value) && (name === 'items' || name === 'additionalProperties') ? fromOpenApi(value) : value
  }
  if (schema.nullable === true && typeof out.type === 'string') out.type = [out.type, 'null']
  return out
}
