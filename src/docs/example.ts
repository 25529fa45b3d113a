// Examples of an operation: a request that can be run as it stands, and an answer made of its schema.
import type { JsonSchema } from '../catalog/endpoint.ts'

const DEPTH_MAX = 7

export interface Operation {
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  readonly operationId: string
  readonly parameters: ReadonlyArray<{
    name: string
    in: string
    required: boolean
    description?: string
    schema: JsonSchema
    example?: unknown
  }>
  readonly requestBody?: {
    content: { 'application/json'?: { schema: JsonSchema }; 'multipart/form-data'?: { schema: JsonSchema } }
  }
  readonly responses: Readonly<
    Record<string, { description: string; content?: Record<string, { schema: JsonSchema }> }>
  >
}

/** What a reference leads to. */
export function resolved(schema: JsonSchema, document: JsonSchema): JsonSchema {
  const name = /^#\/components\/schemas\/(\w+)$/.exec(String(schema.$ref ?? ''))?.[1]
  // The document is our own: its components are schemas by their names.
  const { schemas } = document.components as { schemas: Record<string, JsonSchema> }
  return (name === undefined ? undefined : schemas[name]) ?? schema
}

// What stands inside a schema of ours is a schema.
const schemaIn = (value: unknown) => value as JsonSchema

/** A value that the schema allows: its own example where it has one, else made of its parts. */
export function exampleOf(given: JsonSchema, document: JsonSchema, depth = 0): unknown {
  const schema = resolved(given, document)
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0]
  for (const name of ['example', 'default', 'const'] as const) if (schema[name] !== undefined) return schema[name]
  if (Array.isArray(schema.enum)) return schema.enum[0]
  const choices = schema.oneOf ?? schema.anyOf ?? schema.allOf
  if (Array.isArray(choices) && choices.length > 0) return exampleOf(schemaIn(choices[0]), document, depth + 1)
  const type = Array.isArray(schema.type) ? schema.type[0] : (schema.type ?? (schema.properties ? 'object' : 'null'))
  if (depth > DEPTH_MAX) return type === 'array' ? [] : type === 'object' ? {} : null
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schemaIn(schema.properties ?? {})).map(([name, field]) => [
          name,
          exampleOf(schemaIn(field), document, depth + 1),
        ]),
      )
    case 'array':
      return schema.items ? [exampleOf(schemaIn(schema.items), document, depth + 1)] : []
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return true
    case 'string':
      return textOf(schema)
    default:
      return null
  }
}

function textOf({ format }: JsonSchema): string {
  if (format === 'date-time') return '2026-11-15T12:00:00.000Z'
  if (format === 'date') return '2026-11-15'
  return format === 'uri' ? 'https://example.com' : '…'
}

/** As it is typed into a terminal. */
export function curlOf(
  at: { path: string; method: string; origin: string; operation: Operation },
  document: JsonSchema,
): string {
  const { parameters, requestBody } = at.operation
  let path = at.path
  const query = new URLSearchParams()
  for (const { name, in: place, required, schema, example } of parameters) {
    if (!required || (place !== 'path' && place !== 'query')) continue
    const value = String(example ?? exampleOf(schema, document))
    if (place === 'path')
      path = path.replace(`{${name}}`, encodeURIComponent(value).replaceAll('%E2%80%A6', `<${name}>`))
    else query.append(name, value)
  }
  const search = query.size > 0 ? `?${query}` : ''
  const key = at.path.startsWith('/admin/') ? 'TOLLGATE_OPERATOR_TOKEN' : 'TOLLGATE_KEY'
  const lines = [
    `curl ${at.method === 'GET' ? '' : `-X ${at.method} `}'${at.origin}${path}${search}'`,
    `  -H "Authorization: Bearer $${key}"`,
  ]
  const form = requestBody?.content['multipart/form-data']?.schema
  if (form)
    // What our own entries give as an example is an object.
    for (const [name, value] of Object.entries(exampleOf(form, document) as JsonSchema))
      lines.push(`  -F '${name}=${value}'`)
  const body = requestBody?.content['application/json']?.schema
  if (body) {
    const text = JSON.stringify(exampleOf(body, document), null, 2).replaceAll("'", "'\\''").replaceAll('\n', '\n  ')
    lines.push(`  -H 'Content-Type: application/json'`, `  -d '${text}'`)
  }
  return lines.join(' \\\n')
}

/** What a success answers, where it answers with JSON. */
export function answerOf({ responses }: Operation, document: JsonSchema): string | undefined {
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'))?.[1]
  const schema = success?.content?.['application/json']?.schema
  return schema && JSON.stringify(exampleOf(schema, document), null, 2)
}
