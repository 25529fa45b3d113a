// The generated part of the client for TypeScript: types of requests, parameters and answers, and a method for each
// analytics endpoint, with what an editor shows.

import type { JsonSchema } from '../../src/catalog/endpoint.ts'
import type { Field, LatestField } from '../../src/catalog/field.ts'
import { camel, pascal } from '../../src/extensions/docs/reference.ts'
import {
  COUNTRIES,
  describe,
  explain,
  GROUPS,
  isCountry,
  METHODS,
  type Method,
  NAMED,
  NOTICE,
  PAID_IDS,
  PARAMS,
  PATHS,
  SCHEMAS,
} from './surface.ts'

const quoted = (value: unknown) => (typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : String(value))
const union = (values: readonly unknown[]) => values.map(quoted).join(' | ')
const member = (name: string) => (/^[A-Za-z_]\w*$/.test(name) ? name : quoted(name))

/** A comment for an editor, indented as deep as what follows. */
function comment(text: string, indent: string): string {
  const lines = text.trim().replaceAll('*/', '* /').split('\n')
  return lines.length === 1
    ? `${indent}/** ${lines[0]} */\n`
    : `${indent}/**\n${lines.map((line) => `${indent} * ${line}`).join('\n')}\n${indent} */\n`
}

/** A schema as a type. Requests need no null: what is absent is left out. */
function typeOf(schema: JsonSchema, isRequest: boolean, indent = ''): string {
  if (typeof schema.$ref === 'string') return schema.$ref.split('/').at(-1) ?? 'unknown'
  if (schema.const !== undefined) return quoted(schema.const)
  if (Array.isArray(schema.enum)) return union(schema.enum.filter((value) => !(isRequest && value === null)))
  const choices = (schema.oneOf ?? schema.anyOf) as JsonSchema[] | undefined
  if (choices) return [...new Set(choices.map((one) => typeOf(one, isRequest, indent)))].join(' | ')
  const types = [schema.type].flat().filter((type) => !(isRequest && type === 'null'))
  if (types.length === 0 || types[0] === undefined) return 'unknown'
  return types.map((type) => plain(String(type), schema, isRequest, indent)).join(' | ')
}

function plain(type: string, schema: JsonSchema, isRequest: boolean, indent: string): string {
  switch (type) {
    case 'integer':
      return 'number'
    case 'array': {
      const items = typeOf((schema.items ?? {}) as JsonSchema, isRequest, indent)
      return /[|{ ]/.test(items) && !items.startsWith('{') ? `(${items})[]` : `${items}[]`
    }
    case 'object':
      return objectOf(schema, isRequest, indent)
    default:
      return type
  }
}

function objectOf(schema: JsonSchema, isRequest: boolean, indent: string): string {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)
  const required = (schema.required ?? []) as string[]
  const others = schema.additionalProperties
  if (properties.length === 0)
    return `Record<string, ${typeof others === 'object' && others !== null ? typeOf(others as JsonSchema, isRequest, indent) : 'unknown'}>`
  const inner = `${indent}  `
  const lines = properties.map(([name, one]) => {
    const text = typeof one.description === 'string' ? comment(one.description, inner) : ''
    return `${text}${inner}${member(name)}${required.includes(name) ? '' : '?'}: ${typeOf(one, isRequest, inner)}\n`
  })
  const open = others === true ? `${inner}[member: string]: unknown\n` : ''
  return `{\n${lines.join('')}${open}${indent}}`
}

/** Pictures and videos refuse what they do not know only by silence; the compiler does it aloud. */
const CLOSED = ['ImagesRequest', 'VideoRequest', 'EmbeddingsRequest']

function named(name: string): string {
  const schema = SCHEMAS[name]
  if (!schema) throw new Error(`There is no schema ${name}.`)
  const closed = CLOSED.includes(name) ? { ...schema, additionalProperties: false } : schema
  return `export type ${name} = ${typeOf(closed, name.endsWith('Request'))}\n`
}

function latestType({ daysMax, months }: LatestField): string {
  return [...(daysMax > 0 ? ['`$' + '{number}d`'] : []), ...months.map((count) => `'${count}m'`)].join(' | ')
}

function fieldType(name: string, field: Field): string {
  if (isCountry(name, field)) return 'Country'
  switch (field.kind) {
    case 'integer':
      return 'number'
    case 'boolean':
      return field.allowed.length === 1 ? String(field.allowed[0]) : 'boolean'
    case 'choice':
      return union(field.allowed.flatMap((value) => (/^\d+$/.test(value) ? [value, Number(value)] : [value])))
    case 'list':
      return `readonly (${union(field.allowed)})[]`
    case 'date':
      return 'string | Date'
    case 'latest':
      return latestType(field)
    case 'json-array':
      return 'readonly unknown[] | string'
    default:
      return name.endsWith('_time') ? 'string | Date' : 'string'
  }
}

function params(name: string, fields: Readonly<Record<string, Field>>): string {
  const lines = Object.entries(fields).map(
    ([one, field]) =>
      `${comment(describe(field), '  ')}  ${member(one)}${field.required ? '' : '?'}: ${fieldType(one, field)}\n`,
  )
  return `export interface ${name} {\n${lines.join('')}}\n`
}

function method(one: Method): string {
  const { spec, rest, answer } = one
  return [
    comment(explain(one), '    '),
    `    ${camel(rest)}: (params: ${pascal(spec.vendorPath)}Params, options?: CallOptions) =>\n`,
    `      get<${answer}>('${spec.vendorPath}', params, options),\n`,
  ].join('')
}

const group = (name: string) =>
  `  ${name}: {\n${METHODS.filter((one) => one.group === name)
    .map(method)
    .join('')}  },\n`

export function typescriptClient(): string {
  const countries = Object.entries(COUNTRIES)
  return [
    `// ${NOTICE}\nimport type { Answer, CallOptions } from './transport.ts'\n`,
    `export const PATHS = {\n${Object.entries(PATHS)
      .map(([name, path]) => `  ${name}: '${path}',\n`)
      .join('')}} as const\n`,
    comment('Ids of the endpoints that are paid for.', '') +
      `export type PaidEndpoint =\n  | ${PAID_IDS.map(quoted).join('\n  | ')}\n`,
    comment('Two letters (ISO 3166), the number of the country, or the world.', '') +
      `export type Country =\n  | number\n  | 'world'\n  | ${countries.map(([code]) => quoted(code)).join('\n  | ')}\n`,
    comment('Two letters and three digits each.', '') +
      `export const COUNTRIES =\n  '${countries.map(([code, number]) => code + String(number).padStart(3, '0')).join('')}'\n`,
    ...NAMED.map(named),
    ...PARAMS.map(([name, fields]) => params(name, fields)),
    'type Get = <T>(path: string, params: object, options?: CallOptions) => Promise<Answer<T>>\n',
    `export const analyticsOf = (get: Get) => ({\n${GROUPS.map(group).join('')}})\n`,
  ].join('\n')
}
