// The list of endpoints, for the reference.
import type { EndpointSpec, JsonSchema } from '../../src/catalog/endpoint.ts'
import { allowedText } from '../../src/catalog/field.ts'
import { ALL_ENDPOINTS } from '../../src/entries.ts'
import { openapiDocument } from '../../src/extensions/docs/openapi.ts'
import { code, page, table } from './markdown.ts'

/** The groups of the OpenAPI document, in its order. */
function groups(): Array<{ name: string; specs: EndpointSpec[] }> {
  const document = openapiDocument({ version: '0', serverUrl: 'http://127.0.0.1', endpoints: ALL_ENDPOINTS })
  const paths = document.paths as Record<string, Record<string, { tags: string[] }>>
  const tagOf = (spec: EndpointSpec) => paths[spec.path]?.[spec.method.toLowerCase()]?.tags[0]
  return (document.tags as Array<{ name: string }>).map(({ name }) => ({
    name,
    specs: ALL_ENDPOINTS.filter((spec) => tagOf(spec) === name),
  }))
}

const address = ({ method, path }: EndpointSpec) => code(`${method} ${path}`)

/** Every endpoint on one line; the analytics ones share a prefix, which is said once. */
function endpointTable(): string {
  const rows = groups().flatMap(({ name, specs }) =>
    specs.map((spec, index) => [index === 0 ? `**${name}**` : '', address(spec), spec.title]),
  )
  return table(['', 'Endpoint', 'What it does'], rows)
}

function bodyTable(body: JsonSchema): string {
  const properties = (body.properties ?? {}) as Record<string, JsonSchema>
  const required = new Set((body.required ?? []) as string[])
  return table(
    ['Field', 'Required', 'Type', 'Meaning'],
    Object.entries(properties).map(([name, field]) => [
      code(name),
      required.has(name) ? 'yes' : '',
      typeText(field),
      [field.description, field.default === undefined ? '' : `Default ${code(String(field.default))}.`]
        .filter(Boolean)
        .join(' '),
    ]),
  )
}

function paramTable(params: NonNullable<EndpointSpec['params']>): string {
  return table(
    ['Parameter', 'In', 'Default', 'Takes', 'Meaning'],
    Object.entries(params).map(([name, field]) => [
      code(name),
      field.in ?? 'query',
      field.default === undefined ? '' : code(field.default),
      allowedText(field),
      field.description,
    ]),
  )
}

function typeText(field: JsonSchema): string {
  if (field.const !== undefined) return `only ${code(String(field.const))}`
  if (Array.isArray(field.enum)) return field.enum.map((value) => code(String(value))).join(', ')
  if (Array.isArray(field.anyOf)) return [...new Set(field.anyOf.map(typeText))].join(' or ')
  const types = (Array.isArray(field.type) ? field.type : [field.type ?? 'any']).filter((type) => type !== 'null')
  return types.join(' or ')
}

function section(spec: EndpointSpec): string {
  const isData = spec.path.startsWith('/v1/siteanalytics/') || spec.path.startsWith('/v1/social/')
  const parts = [`### ${spec.title}`, address(spec), spec.description]
  if (spec.aliases.length > 0) parts.push(`Also at ${spec.aliases.map(code).join(', ')}.`)
  if (spec.params && !isData) parts.push(paramTable(spec.params))
  if (spec.body?.properties && spec.id !== 'quote') parts.push(bodyTable(spec.body))
  else if (spec.body?.description) parts.push(`Body: ${spec.body.description}`)
  if (spec.returns && !isData) parts.push(`Answer: ${spec.returns}`)
  return parts.join('\n\n')
}

export function endpointsPage(): string {
  const own = groups().filter(({ name }) => name !== 'Site analytics' && name !== 'Social data')
  return page(
    'Endpoints',
    'Every request carries `Authorization: Bearer <key>` (or `x-api-key: <key>`), and every POST `Content-Type: application/json`. The machine-readable form of this page is `/openapi.json`.',
    endpointTable(),
    ...own.map(({ name, specs }) => [`## ${name}`, ...specs.map(section)].join('\n\n')),
    '## Site analytics and social data',
    'Each has a page of its own with every parameter: [site analytics](analytics.md), [social data](social.md).',
  )
}
