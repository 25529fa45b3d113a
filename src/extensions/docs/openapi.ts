// The OpenAPI 3.1 document: every endpoint, parameter, body and error, derived from the catalog's list and the table of
// faults. Nothing here is written twice.

import type * as z from 'zod'
import { ownAccount, quoteView } from '../../api/views.ts'
import {
  component,
  type EndpointSpec,
  having,
  integer,
  isDataEndpoint,
  type JsonSchema,
  object,
  rulesOf,
  type Surface,
  string,
  TAGS,
} from '../../catalog/endpoint.ts'
import {
  allowedText,
  DOMAIN_CHARS_MAX,
  type Field,
  type LatestField,
  PATH_PART_CHARS_MAX,
  TEXT_BYTES_MAX,
} from '../../catalog/field.ts'
import type { FREE } from '../../catalog/generation.ts'
import { COMPONENTS, envelope } from '../../catalog/generation-answers.ts'
import { SOCIAL_COMPONENTS } from '../../catalog/social.ts'
import { rolesWith } from '../../identity/roles.ts'
import { FAULTS } from '../../kernel/fault.ts'
import { viewSchema } from '../../operator/forms.ts'
import type { Resource } from '../../operator/resource.ts'
import { SURFACES } from '../../protocols/text/formats.ts'

/** Answers whose schemas are the views of the folders that make them. */
const VIEWS: { readonly [id in keyof typeof FREE]?: z.ZodType } = { account: ownAccount, quote: quoteView }

function answerOf(spec: EndpointSpec): JsonSchema | undefined {
  const view = Object.entries(VIEWS).find(([id]) => id === spec.id)?.[1]
  return view ? envelope(viewSchema(view)) : spec.answer
}

const operationId = (spec: EndpointSpec) => spec.id.replaceAll(/[^a-zA-Z0-9]+/g, '_').replaceAll(/^_|_$/g, '')

/**
 * `siteanalytics_websites_visits` names its answer SiteanalyticsWebsitesVisitsAnswer: what generators make a type of.
 */
const named = (spec: EndpointSpec, what: 'Request' | 'Answer') =>
  `${operationId(spec).replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}${what}`

function schemas(endpoints: readonly EndpointSpec[]): Record<string, JsonSchema> {
  const made: Record<string, JsonSchema> = { ...COMPONENTS, ...SOCIAL_COMPONENTS, ...errorSchemas() }
  for (const spec of endpoints) {
    const answer = answerOf(spec)
    if (spec.body) addSchema(made, named(spec, 'Request'), spec.body)
    if (answer) addSchema(made, named(spec, 'Answer'), answer)
  }
  return made
}

/**
 * What a product's schema has under `$defs` becomes components of their own: elsewhere its references would lead
 * nowhere.
 */
function addSchema(made: Record<string, JsonSchema>, name: string, { $defs, ...schema }: JsonSchema): void {
  if ($defs === undefined) {
    made[name] = schema
    return
  }
  const defs = Object.entries($defs as Record<string, JsonSchema>) // Checked with the catalog.
  const renamed = new Map(defs.map(([one]) => [`#/$defs/${one}`, `${name}_${one.replaceAll(/\W/g, '_')}`]))
  const hoisted = (one: unknown): JsonSchema =>
    JSON.parse(JSON.stringify(one), (key, value) =>
      key === '$ref' && renamed.has(value) ? `#/components/schemas/${renamed.get(value)}` : value,
    )
  made[name] = hoisted(schema)
  for (const [one, def] of defs) made[renamed.get(`#/$defs/${one}`) ?? one] = hoisted(def)
}

const MISSING = {
  type: 'array',
  items: { type: 'string' },
  description: 'The ledgers that did not answer: what their accounts have is not in `data`. Absent if all answered.',
}

const requestIdHeader = { 'x-request-id': { description: 'To be named in questions.', schema: string } }
const moneyHeaders = {
  'x-tollgate-charge': { description: 'What this call cost, in credits. Not of a stream.', schema: string },
  'x-tollgate-run-cost': {
    description:
      'What the run of this call has cost so far, with this call. Only of calls with a session; not of a stream.',
    schema: string,
  },
  'x-tollgate-model': { description: 'The model that answered, where the request named several.', schema: string },
  'x-tollgate-route': { description: 'Which of the model’s routes answered.', schema: string },
}

function operationOf(spec: EndpointSpec, isSocket: boolean): unknown {
  return {
    operationId: operationId(spec),
    tags: [spec.tag],
    summary: spec.title,
    description: [
      spec.description,
      ...(isDataEndpoint(spec) ? rulesOf(spec) : []),
      spec.aliases.length > 0 ? `Also at ${spec.aliases.map((path) => `\`${path}\``).join(', ')}.` : '',
    ]
      .filter(Boolean)
      .join('\n\n'),
    parameters: [
      ...parametersOf(spec),
      ...(spec.sells && spec.method !== 'GET'
        ? [idempotencyKey('The same key and body within 24 hours replay the stored answer.')]
        : []),
      ...(spec.sells ? LABEL_HEADERS : []),
      ...(spec.sells === 'text' ? TEXT_HEADERS : []),
      ...(spec.sells ? ROUTING_HEADERS : []),
    ],
    ...(spec.body
      ? {
          requestBody: {
            required: true,
            content: {
              [spec.form ? 'multipart/form-data' : 'application/json']: { schema: component(named(spec, 'Request')) },
            },
          },
        }
      : {}),
    responses: {
      ...(isSocket ? { 101: { description: spec.returns ?? 'The WebSocket.', content: {} } } : { 200: answered(spec) }),
      ...refusals(spec, spec.surface),
    },
  }
}

function answered(spec: EndpointSpec) {
  return {
    description: spec.returns ?? 'The answer.',
    headers: { ...requestIdHeader, ...(spec.sells ? moneyHeaders : {}) },
    content: {
      ...(answerOf(spec) ? { 'application/json': { schema: component(named(spec, 'Answer')) } } : {}),
      ...(spec.gives ? { [spec.gives]: { schema: { ...string, contentMediaType: spec.gives } } } : {}),
      ...(spec.streams ? { 'text/event-stream': { schema: string } } : {}),
    },
  }
}

export function openapiDocument(options: {
  version: string
  serverUrl: string
  endpoints: readonly EndpointSpec[]
  /** Addresses that take WebSockets. */
  sockets?: readonly EndpointSpec[]
  operator?: { prefix: string; resources: readonly Resource[] }
}): JsonSchema {
  const { operator, endpoints, sockets = [] } = options
  const paths: Record<string, Record<string, unknown>> = {}
  const tags = new Set<string>(endpoints.map(({ tag }) => tag))
  for (const spec of [...endpoints, ...sockets]) {
    const entry = paths[spec.path] ?? {}
    entry[spec.method.toLowerCase()] = operationOf(spec, sockets.includes(spec))
    paths[spec.path] = entry
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tollgate',
      version: options.version,
      description:
        'One key and one balance of credits in front of text, image and video models, social data and site analytics.\n\nIn bodies, null counts as absent. Blanks around a text in the query are ignored. Streams are server-sent events.',
      contact: { name: 'The operator of this gateway' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: options.serverUrl }],
    security: [{ bearer: [] }, { apiKey: [] }],
    tags: [
      ...Object.entries(TAGS).flatMap(([name, description]) => (tags.has(name) ? [{ name, description }] : [])),
      ...(operator ? [OPERATOR_TAG] : []),
    ],
    paths: { ...paths, ...(operator ? operatorPaths(operator.resources, operator.prefix) : {}) },
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key: `tg_live_…`, or `tg_test_…` for simulated vendors.',
        },
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'x-api-key',
          description: 'The same key, for SDKs that send it so.',
        },
        ...(operator ? OPERATOR_SECURITY : {}),
      },
      schemas: schemas(endpoints),
    },
  }
}

// The parameters of an endpoint in OpenAPI. A value that the document forbids is rejected by the endpoint.

const idempotencyKey = (description: string) => ({
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description,
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~](?:[ -~]*[!-~])?$' },
})

const header = (name: string, description: string, maxLength: number) => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string', minLength: 1, maxLength },
})

const LABEL_HEADERS = [
  header(
    'x-tollgate-tags',
    'Labels of the call, such as `team=a,feature=chat`: at most 8, of at most 64 characters each.',
    1_100,
  ),
  header('x-tollgate-session', 'The session that the call belongs to; reports add up the cost of each.', 64),
]
const TEXT_HEADERS = [
  header('x-tollgate-fallback', 'Up to three other models, separated by commas, to ask in turn when one fails.', 800),
  {
    ...header('x-tollgate-json', 'What is done to a whole answer in JSON; see the guide on structured output.', 40),
    schema: { type: 'string', enum: ['repair', 'check', 'repair, check'] },
  },
]

const ROUTING_HEADERS = [
  header('x-tollgate-vendors', 'Only these vendors, separated by commas, by their names in the catalog.', 5_000),
  header('x-tollgate-regions', 'Only vendors in these regions, separated by commas, such as `eu,us-east-1`.', 2_000),
  header(
    'x-tollgate-max-price',
    'The highest price in credits by unit, such as `input=300,output=1500`: for a million tokens, or one of anything else.',
    400,
  ),
]

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
    case 'number':
      return {
        type: 'number',
        ...(field.min === undefined ? {} : { minimum: field.min }),
        ...(field.max === undefined ? {} : { maximum: field.max }),
      }
    case 'values':
      return { type: 'string', minLength: 1, maxLength: TEXT_BYTES_MAX }
    case 'text':
      return {
        type: 'string',
        minLength: 1,
        maxLength: field.in === 'path' ? PATH_PART_CHARS_MAX : TEXT_BYTES_MAX,
        ...(field.pattern ? { pattern: field.pattern } : {}),
      }
  }
}

/** A value in its JSON type; in the catalog all values are text, as in a URL. */
function jsonValue(field: Field, value: string): unknown {
  switch (field.kind) {
    case 'boolean':
      return value === 'true'
    case 'integer':
    case 'number':
      return Number(value)
    default:
      return value
  }
}

/** All examples of an endpoint together are one valid request: days come from `latest` where there is such a thing. */
function hasExample(spec: EndpointSpec, name: string): boolean {
  return !(isDataEndpoint(spec) && spec.window && (name === 'from' || name === 'to'))
}

function parametersOf(spec: EndpointSpec): unknown[] {
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

// The refusals in the OpenAPI document: the bodies of each surface, and the faults that an endpoint can answer with.

const nestedError = having('message type', {
  message: string,
  type: string,
  param: { type: ['string', 'null'] },
  code: string,
})

/** The error body of each surface. */
const BODIES: Readonly<Partial<Record<Surface, JsonSchema>>> = {
  native: object({ success: { const: false }, error: object({ code: integer, message: string }), requestId: string }),
  chat: having('code message type', {
    code: integer,
    message: string,
    type: { const: 'api_error' },
    requestId: string,
    error: nestedError,
  }),
  images: having('code message type', {
    code: integer,
    message: string,
    type: { const: 'api_error' },
    error: nestedError,
  }),
  responses: having('code message error', {
    code: integer,
    message: string,
    type: { const: 'api_error' },
    requestId: string,
    error: nestedError,
  }),
  messages: having('type error', {
    type: { const: 'error' },
    error: having('type message', { type: string, message: string, details: object({ error_code: string }) }),
    request_id: string,
    code: integer,
    message: string,
  }),
}

function errorName(surface: string): string {
  return `${surface.charAt(0).toUpperCase()}${surface.slice(1)}Error`
}

/** Also those of formats that extensions bring. */
function errorSchemas(): Record<string, JsonSchema> {
  const added = Object.values(SURFACES).flatMap(({ name, errorSchema: schema }) =>
    schema ? [[name, schema] as const] : [],
  )
  return Object.fromEntries([...Object.entries(BODIES), ...added].map(([name, schema]) => [errorName(name), schema]))
}

/** What asks: the faults that can befall it follow. */
interface Asked {
  readonly method: string
  /** Absent: it is free of charge, and no vendor hears of it. */
  readonly sells?: string
}

/** The faults that an endpoint can answer with, by status. */
function faultsOf(asked: Asked): Map<number, string[]> {
  const byStatus = new Map<number, string[]>()
  const free = asked.sells === undefined
  for (const fault of Object.values(FAULTS)) {
    if (fault.status === 405) continue
    if (free && (fault.blame === 'vendor' || [402, 422].includes(fault.status))) continue
    if (asked.method === 'GET' && fault.status === 413) continue
    const line = `\`${fault.code}\` ${fault.text}`
    byStatus.set(fault.status, [...(byStatus.get(fault.status) ?? []), line])
  }
  return byStatus
}

const retryAfter = { 'retry-after': { description: 'Seconds until trying again makes sense.', schema: integer } }
const REFUSAL_HEADERS: Readonly<Record<number, object>> = {
  400: {
    'x-tollgate-guardrail': { description: 'The guardrail that blocked the request or its answer.', schema: string },
  },
  429: {
    ...retryAfter,
    'x-tollgate-limit': { description: 'The limit or budget that was reached.', schema: string },
    'x-tollgate-left': { description: 'What a budget has left, in its unit.', schema: string },
  },
  503: retryAfter,
}

/** One answer for each status, with the lines of those faults that have it. */
function refusals(asked: Asked, surface: Surface): Record<string, unknown> {
  return Object.fromEntries(
    [...faultsOf(asked)].map(([status, lines]) => [
      status,
      {
        description: lines.join('\n\n'),
        ...(REFUSAL_HEADERS[status] && { headers: REFUSAL_HEADERS[status] }),
        content: { 'application/json': { schema: component(errorName(surface)) } },
      },
    ]),
  )
}

// The operator API in the OpenAPI document, from the table of resources and its schemas.

const OPERATOR_TAG = { name: 'Operator API', description: 'Accounts, keys, people, the catalog and the ledger.' }

const OPERATOR_SECURITY = {
  operatorToken: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A token of the operator API: `tg_op_…` of the gateway (the first start prints one), `tg_acc_…` of an account. Its scopes name the rights that it has.',
  },
} as const

/** Who may, by the table of roles. */
function rightOf({ access, account, own, isSensitive }: Resource): string {
  if (access === 'self' || access === 'visitor') return ''
  const roles = rolesWith(access, account !== undefined || own === true)
  return `Needs the right \`${access}\`. In the console: ${roles.join(', ')}.${isSensitive ? ' It is sensitive.' : ''}`
}

type Fields = { properties?: Record<string, JsonSchema>; required?: string[] }

function operatorPaths(resources: readonly Resource[], prefix: string): Record<string, Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const entry of resources) {
    const methods = paths[prefix + entry.path] ?? {}
    methods[entry.method.toLowerCase()] = operatorOperationOf(entry)
    paths[prefix + entry.path] = methods
  }
  return paths
}

function operatorOperationOf(entry: Resource): unknown {
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
    summary: entry.title,
    description: `${rightOf(entry)}${entry.csv ? ' Answers CSV for `accept: text/csv`.' : ''}${filesOf(entry)}`,
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
              properties: {
                success: { const: true },
                data: viewSchema(entry.answer),
                requestId: { type: 'string' },
                missing: MISSING,
              },
              required: ['success', 'data', 'requestId'],
            },
          },
          ...(entry.csv ? { 'text/csv': { schema: { type: 'string' } } } : {}),
          ...Object.fromEntries(
            Object.keys(entry.files ?? {}).map((type) => [type, { schema: { type: 'string', format: 'binary' } }]),
          ),
        },
      },
      ...refusals({ method: entry.method }, 'native'),
    },
  }
}

function filesOf({ files = {} }: Resource): string {
  const types = Object.keys(files).map((type) => `\`accept: ${type}\``)
  return types.length === 0 ? '' : ` Answers a file for ${types.join(' or ')}.`
}
