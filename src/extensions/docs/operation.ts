// The operations of the OpenAPI document, as the pages of the documentation need them.
import type { EndpointSpec, JsonSchema } from '../../catalog/endpoint.ts'

interface Operation {
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  readonly operationId: string
  readonly parameters: readonly Parameter[]
  readonly requestBody?: {
    content: { 'application/json'?: { schema: JsonSchema }; 'multipart/form-data'?: { schema: JsonSchema } }
  }
  readonly responses: Readonly<
    Record<string, { description: string; content?: Record<string, { schema: JsonSchema }> }>
  >
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description?: string
  readonly schema: JsonSchema
  readonly example?: unknown
}

export interface Listed {
  readonly path: string
  readonly method: string
  readonly operation: Operation
  /** The page of it. */
  readonly href: string
  /** Its entry in the catalog; absent: it is of the operator API. */
  readonly spec: EndpointSpec | undefined
}

export function operationsOf(document: JsonSchema, endpoints: readonly EndpointSpec[]): Listed[] {
  const paths = document.paths as Record<string, Record<string, Operation>> // The document is our own.
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      path,
      method: method.toUpperCase(),
      operation,
      href: `/docs/api/${operation.operationId.replaceAll('_', '-')}`,
      spec: endpoints.find((one) => one.path === path && one.method === method.toUpperCase()),
    })),
  )
}

/** What a reference leads to. */
function resolved(schema: JsonSchema, document: JsonSchema): JsonSchema {
  const name = /^#\/components\/schemas\/(\w+)$/.exec(String(schema.$ref ?? ''))?.[1]
  // The document is our own: its components are schemas by their names.
  const { schemas } = document.components as { schemas: Record<string, JsonSchema> }
  return (name === undefined ? undefined : schemas[name]) ?? schema
}

export function bodyOf({ operation: { requestBody } }: Listed, document: JsonSchema): JsonSchema | undefined {
  const { 'application/json': asJson, 'multipart/form-data': asForm } = requestBody?.content ?? {}
  const schema = (asJson ?? asForm)?.schema
  return schema && resolved(schema, document)
}

// What stands inside a schema of ours is a schema.
export const schemaIn = (value: unknown) => value as JsonSchema

const DEPTH_MAX = 7

/**
 * A value that the schema allows: its own example where it has one, else made of its parts. `name` is of the member
 * that it is.
 */
export function exampleOf(given: JsonSchema, document: JsonSchema, name = '', depth = 0): unknown {
  const schema = resolved(given, document)
  if (Array.isArray(schema.examples) && schema.examples.length > 0) return schema.examples[0]
  for (const word of ['example', 'default', 'const'] as const) if (schema[word] !== undefined) return schema[word]
  if (Array.isArray(schema.enum)) return schema.enum[0]
  const choices = schema.oneOf ?? schema.anyOf ?? schema.allOf
  if (Array.isArray(choices) && choices.length > 0) return exampleOf(schemaIn(choices[0]), document, name, depth + 1)
  const type = Array.isArray(schema.type) ? schema.type[0] : (schema.type ?? (schema.properties ? 'object' : 'null'))
  if (depth > DEPTH_MAX) return type === 'array' ? [] : type === 'object' ? {} : null
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schemaIn(schema.properties ?? {})).map(([member, field]) => [
          member,
          exampleOf(schemaIn(field), document, member, depth + 1),
        ]),
      )
    case 'array':
      return schema.items ? [exampleOf(schemaIn(schema.items), document, name, depth + 1)] : []
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return true
    case 'string':
      return textOf(schema, name)
    default:
      return null
  }
}

/** What texts of the operator API look like, by the name of their member. */
const SAMPLES: readonly (readonly [name: RegExp, sample: string])[] = [
  [/^(?:id|account)$/, 'acc_01kd0c9w7qj8h5m2x4v6t3z1ab'],
  [/^key(?:Id)?$/, 'key_01kd0c9w7qj8h5m2x4v6t3z1ab'],
  [/^user(?:Id)?$/, 'usr_01kd0c9w7qj8h5m2x4v6t3z1ab'],
  [/^request(?:Id)?$/, 'req_01kd0c9w7qj8h5m2x4v6t3z1ab'],
  [/email|^actor$/i, 'ada@example.com'],
  [/url$|^link$|address/i, 'https://example.com'],
  [/(?:^|[a-z])(?:At|Until)$|^at$|^from$|^to$/, '2026-11-15T12:00:00.000Z'],
  [/model|product|uid/i, 'alpha-5.4'],
  [/vendor/i, 'alpha'],
  [/name|title|label/i, 'Team A'],
  [/message|note|text/i, 'Invoice 1042'],
  [/amount|balance|charged|held|credits|cost|loss|spend|available|moved|rate/i, '12.5'],
]

function textOf({ format }: JsonSchema, name: string): string {
  if (format === 'date-time') return '2026-11-15T12:00:00.000Z'
  if (format === 'date') return '2026-11-15'
  if (format === 'uri') return 'https://example.com'
  return SAMPLES.find(([pattern]) => pattern.test(name))?.[1] ?? 'text'
}
