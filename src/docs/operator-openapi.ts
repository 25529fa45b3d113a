// The operator API in the OpenAPI document, from the table of resources and its schemas.
import * as z from 'zod'
import type { JsonSchema } from '../catalog/endpoint.ts'
import type { Resource } from '../operator/resource.ts'
import { idempotencyKey } from './openapi-parameters.ts'
import { refusals } from './openapi-refusals.ts'

export const OPERATOR_TAG = {
  name: 'Operator API',
  description: 'Accounts, keys, people, the catalog and the books.',
}

export const OPERATOR_SECURITY = {
  operatorToken: {
    type: 'http',
    scheme: 'bearer',
    description: 'The operator token that the first start prints: `tg_op_…`.',
  },
} as const

const IN_CONSOLE: Record<Resource['access'], string> = {
  operator: 'In the console: operators.',
  owner: 'In the console also: owners of the account.',
  member: 'In the console also: members of the account.',
}

type Fields = { properties?: Record<string, JsonSchema>; required?: string[] }

export function operatorPaths(resources: readonly Resource[], prefix: string): Record<string, Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const entry of resources) {
    const methods = paths[prefix + entry.path] ?? {}
    methods[entry.method.toLowerCase()] = operationOf(entry)
    paths[prefix + entry.path] = methods
  }
  return paths
}

/** What a caller may send, or gets: schemas that also transform are shown by what goes into them. */
export function viewSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override({ jsonSchema }) {
      // The format says it in one word, and every integer is a safe one.
      if (jsonSchema.format) delete jsonSchema.pattern
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
    },
  })
  return rest
}

function operationOf(entry: Resource): unknown {
  const inPath = [...entry.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const { properties = {}, required = [] } = (entry.query ? viewSchema(entry.query) : {}) as Fields
  const inQuery = Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }))
  const inHeader = entry.repeatable
    ? [idempotencyKey('Sent again with the same body: the same answer, and no second effect. With another body: 409.')]
    : []
  return {
    operationId: `operator_${entry.method.toLowerCase()}${entry.path.replaceAll(/[^a-zA-Z0-9]+/g, '_').replace(/_$/, '')}`,
    tags: [OPERATOR_TAG.name],
    summary: summaryOf(entry),
    description: `${IN_CONSOLE[entry.access]}${entry.csv ? ' Answers CSV for `accept: text/csv`.' : ''}`,
    security: [{ operatorToken: [] }],
    parameters: [...inPath, ...inQuery, ...inHeader],
    ...(entry.body ? { requestBody: { content: { 'application/json': { schema: viewSchema(entry.body) } } } } : {}),
    responses: {
      200: {
        description: 'The native envelope; lists have `items` and `next`.',
        content: {
          'application/json': {
            schema: {
              type: 'object',
              properties: { success: { const: true }, data: viewSchema(entry.answer), requestId: { type: 'string' } },
              required: ['success', 'data', 'requestId'],
            },
          },
          ...(entry.csv ? { 'text/csv': { schema: { type: 'string' } } } : {}),
        },
      },
      ...refusals({ method: entry.method }, 'native'),
    },
  }
}

const VERBS: Record<Resource['method'], string> = {
  GET: 'Read',
  POST: 'Add to',
  PUT: 'Replace',
  PATCH: 'Change',
  DELETE: 'End',
}

/** `GET /accounts/{id}/keys` reads "Read accounts keys": the path says the rest. */
function summaryOf({ method, path }: Resource): string {
  const nouns = path.split('/').filter((part) => part !== '' && !part.startsWith('{'))
  return `${VERBS[method]} ${nouns.join(' ').replaceAll('-', ' ')}`
}
