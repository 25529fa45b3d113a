// The parameters of an endpoint as OpenAPI tells them: what is forbidden here is refused there.
import { type EndpointSpec, isDataEndpoint, type JsonSchema } from '../catalog/endpoint.ts'
import {
  allowedText,
  DOMAIN_CHARS_MAX,
  type Field,
  type LatestField,
  PATH_PART_CHARS_MAX,
  TEXT_BYTES_MAX,
} from '../catalog/field.ts'

export const idempotencyKey = (description: string) => ({
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description,
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~](?:[ -~]*[!-~])?$' },
})

const INTEGER_MAX = 999_999_999_999_999
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?'
const DOMAIN = `^(?:${LABEL}\\.)+[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])$`

function latestPattern({ daysMax, months }: LatestField): string {
  const days = daysMax > 0 ? ['[1-9][0-9]{0,2}d'] : []
  return `^(?:${[...days, ...(months.length > 0 ? [`[${months.join('')}]m`] : [])].join('|')})$`
}

/** Not an array: some generators would repeat the name for each item, which is refused. */
function listPattern(allowed: readonly string[]): string {
  const item = `(?:${allowed.join('|').replaceAll('.', '\\.')})`
  return `^ *${item}(?: *, *${item})* *$`
}

function schemaOf(field: Field): JsonSchema {
  switch (field.kind) {
    case 'boolean':
      return field.allowed.length === 1 ? { type: 'boolean', const: field.allowed[0] === 'true' } : { type: 'boolean' }
    case 'choice':
      return { type: 'string', enum: field.allowed }
    case 'integer':
      return { type: 'integer', minimum: field.min, maximum: field.max ?? INTEGER_MAX }
    case 'list':
      return { type: 'string', maxLength: TEXT_BYTES_MAX, pattern: listPattern(field.allowed) }
    case 'date':
      return { type: 'string', pattern: '^[0-9]{4}([-|])(?:0[1-9]|1[0-2])\\1(?:0[1-9]|[12][0-9]|3[01])$' }
    case 'domain':
      return { type: 'string', maxLength: DOMAIN_CHARS_MAX, pattern: DOMAIN }
    case 'latest':
      return { type: 'string', pattern: latestPattern(field) }
    case 'json-array':
      return { type: 'string', maxLength: TEXT_BYTES_MAX, contentMediaType: 'application/json' }
    case 'text':
      return {
        type: 'string',
        minLength: 1,
        maxLength: field.in === 'path' ? PATH_PART_CHARS_MAX : TEXT_BYTES_MAX,
        ...(field.pattern ? { pattern: field.pattern } : {}),
      }
  }
}

/** A value as JSON has it; in the catalog all are text, as they stand in an address. */
function jsonValue(field: Field, value: string): unknown {
  switch (field.kind) {
    case 'boolean':
      return value === 'true'
    case 'integer':
      return Number(value)
    default:
      return value
  }
}

/** All examples of an endpoint together are one valid request: days come from `latest` where there is such a thing. */
function hasExample(spec: EndpointSpec, name: string): boolean {
  return !(isDataEndpoint(spec) && spec.window && (name === 'from' || name === 'to'))
}

export function parametersOf(spec: EndpointSpec): unknown[] {
  return Object.entries(spec.params ?? {}).map(([name, field]) => ({
    name,
    in: field.in ?? 'query',
    required: field.required === true || field.in === 'path',
    description: `${field.description} Allowed: ${allowedText(field)}.`,
    schema: {
      ...schemaOf(field),
      ...(field.default === undefined ? {} : { default: jsonValue(field, field.default) }),
    },
    ...(hasExample(spec, name) ? { example: jsonValue(field, field.example) } : {}),
  }))
}
