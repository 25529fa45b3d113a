// The OpenAPI 3.1 document: every endpoint, parameter, body and error, derived from the catalogue's list and the table of
// faults. Nothing here is written twice.

import type { Surface } from '../catalog/endpoint.ts'
import { type EndpointSpec, type JsonSchema, TAGS } from '../catalog/endpoint.ts'
import { allowedText, type Field } from '../catalog/field.ts'
import { COMPONENTS, object } from '../catalog/generation-answers.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import { FAULTS } from '../kernel/fault.ts'
import { OPERATOR_SECURITY, OPERATOR_TAG, operatorPaths } from './operator-openapi.ts'
import type { Resource } from './resource.ts'

const integer = { type: 'integer' } as const
const string = { type: 'string' } as const

const nestedError = object({ message: string, type: string, param: { type: ['string', 'null'] }, code: string }, [
  'message',
  'type',
])

/** The error body of each surface. */
const ERROR_SCHEMAS: Record<Surface, JsonSchema> = {
  native: object({ success: { const: false }, error: object({ code: integer, message: string }), requestId: string }),
  chat: object(
    { code: integer, message: string, type: { const: 'api_error' }, requestId: string, error: nestedError },
    ['code', 'message', 'type'],
  ),
  images: object({ code: integer, message: string, type: { const: 'api_error' }, error: nestedError }, [
    'code',
    'message',
    'type',
  ]),
  responses: object(
    { code: integer, message: string, type: { const: 'api_error' }, requestId: string, error: nestedError },
    ['code', 'message', 'error'],
  ),
  messages: object(
    {
      type: { const: 'error' },
      error: object({ type: string, message: string, details: object({ error_code: string }) }, ['type', 'message']),
      request_id: string,
      code: integer,
      message: string,
    },
    ['type', 'error'],
  ),
}

const SCHEMAS: Record<string, JsonSchema> = {
  ...COMPONENTS,
  ...Object.fromEntries(
    Object.entries(ERROR_SCHEMAS).map(([surface, schema]) => [errorName(surface as Surface), schema]),
  ),
}

function errorName(surface: Surface): string {
  return `${surface[0]!.toUpperCase()}${surface.slice(1)}Error`
}

/** The faults that an endpoint can answer with, by status. */
function faultsOf(spec: EndpointSpec): Map<number, string[]> {
  const byStatus = new Map<number, string[]>()
  const free = spec.sells === undefined
  for (const fault of Object.values(FAULTS)) {
    if (fault.status === 405) continue
    if (free && (fault.blame === 'upstream' || [402, 422].includes(fault.status))) continue
    if (spec.method === 'GET' && fault.status === 413) continue
    const line = `\`${fault.code}\` ${fault.text}`
    byStatus.set(fault.status, [...(byStatus.get(fault.status) ?? []), line])
  }
  return byStatus
}

function parameterSchema(field: Field): JsonSchema {
  const preset = field.default === undefined ? {} : { default: field.default }
  switch (field.kind) {
    case 'boolean':
    case 'choice':
      return { type: 'string', enum: field.allowed, ...preset }
    case 'integer':
      return {
        type: 'integer',
        minimum: field.min,
        ...(field.max === undefined ? {} : { maximum: field.max }),
        ...(field.default === undefined ? {} : { default: Number(field.default) }),
      }
    case 'date':
      return { type: 'string', pattern: '^\\d{4}[-|]\\d{2}[-|]\\d{2}$', ...preset }
    case 'text':
      return {
        type: 'string',
        minLength: 1,
        maxLength: 2048,
        ...(field.pattern ? { pattern: field.pattern } : {}),
        ...preset,
      }
    default:
      return { type: 'string', ...preset }
  }
}

function parametersOf(spec: EndpointSpec): unknown[] {
  return Object.entries(spec.params ?? {}).map(([name, field]) => ({
    name,
    in: field.in ?? 'query',
    required: field.required === true || field.in === 'path',
    description: `${field.description} Allowed: ${allowedText(field)}.`,
    schema: parameterSchema(field),
    ...(field.example ? { example: field.example } : {}),
  }))
}

const PATH_PARAMETER = /\{(\w+)\}/g

function operationOf(spec: EndpointSpec): unknown {
  const declared = parametersOf(spec)
  const named = new Set(Object.keys(spec.params ?? {}))
  const inPath = [...spec.path.matchAll(PATH_PARAMETER)]
    .filter(([, name]) => !named.has(name!))
    .map(([, name]) => ({ name, in: 'path', required: true, schema: string }))
  return {
    operationId: spec.id.replaceAll(/[^a-zA-Z0-9]+/g, '_').replaceAll(/^_|_$/g, ''),
    tags: [spec.tag],
    summary: spec.title,
    description: [
      spec.description,
      spec.aliases.length > 0 ? `Also at ${spec.aliases.map((path) => `\`${path}\``).join(', ')}.` : '',
    ]
      .filter(Boolean)
      .join('\n\n'),
    parameters: [
      ...inPath,
      ...declared,
      ...(spec.sells && spec.method === 'POST'
        ? [
            {
              name: 'Idempotency-Key',
              in: 'header',
              required: false,
              description: 'The same key and body within 24 hours replay the stored answer.',
              schema: { type: 'string', maxLength: 255 },
            },
          ]
        : []),
    ],
    ...(spec.body ? { requestBody: { required: true, content: { 'application/json': { schema: spec.body } } } } : {}),
    responses: {
      200: {
        description: spec.returns ?? 'The answer.',
        headers: { 'x-request-id': { schema: string } },
        content: {
          'application/json': { schema: spec.answer ?? {} },
          ...(spec.streams ? { 'text/event-stream': { schema: string } } : {}),
        },
      },
      ...Object.fromEntries(
        [...faultsOf(spec)].map(([status, lines]) => [
          status,
          {
            description: lines.join('\n\n'),
            content: { 'application/json': { schema: { $ref: `#/components/schemas/${errorName(spec.surface)}` } } },
          },
        ]),
      ),
    },
  }
}

export function openapiDocument(options: {
  version: string
  serverUrl: string
  operator?: { prefix: string; resources: readonly Resource[] }
}): JsonSchema {
  const { operator } = options
  const paths: Record<string, Record<string, unknown>> = {}
  for (const spec of ENDPOINTS) {
    const entry = paths[spec.path] ?? {}
    entry[spec.method.toLowerCase()] = operationOf(spec)
    paths[spec.path] = entry
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate',
      version: options.version,
      description:
        'One key and one balance of credits in front of text, image and video models, social data and site analytics.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: options.serverUrl }],
    security: [{ bearer: [] }, { apiKey: [] }],
    tags: [...TAGS, ...(operator ? [OPERATOR_TAG] : [])].map((name) => ({ name })),
    paths: { ...paths, ...(operator ? operatorPaths(operator.resources, operator.prefix) : {}) },
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key: `tg_live_…`.' },
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'x-api-key',
          description: 'The same key, for SDKs that send it so.',
        },
        ...(operator ? OPERATOR_SECURITY : {}),
      },
      schemas: SCHEMAS,
    },
  }
}
