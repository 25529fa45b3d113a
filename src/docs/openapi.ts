// The OpenAPI 3.1 document: every endpoint, parameter, body and error, derived from the catalog's list and the table of
// faults. Nothing here is written twice.

import type * as z from 'zod'
import { ownAccount, quoteView } from '../api/views.ts'
import { type EndpointSpec, isDataEndpoint, type JsonSchema, TAGS } from '../catalog/endpoint.ts'
import type { FREE } from '../catalog/generation.ts'
import { COMPONENTS, envelope } from '../catalog/generation-answers.ts'
import { ENDPOINTS } from '../catalog/index.ts'
import { rulesOf } from '../catalog/reference.ts'
import { component, string } from '../catalog/schema.ts'
import { SOCIAL_COMPONENTS } from '../catalog/social-answers.ts'
import type { Resource } from '../operator/resource.ts'
import { idempotencyKey, parametersOf } from './openapi-parameters.ts'
import { ERROR_SCHEMAS, refusals } from './openapi-refusals.ts'
import { OPERATOR_SECURITY, OPERATOR_TAG, operatorPaths, viewSchema } from './operator-openapi.ts'

/** Answers whose schemas are the views of the folders that make them. */
const VIEWS: { readonly [id in keyof typeof FREE]?: z.ZodType } = { account: ownAccount, quote: quoteView }

function answerOf(spec: EndpointSpec): JsonSchema | undefined {
  const view = Object.entries(VIEWS).find(([id]) => id === spec.id)?.[1]
  return view ? envelope(viewSchema(view)) : spec.answer
}

const operationId = (spec: EndpointSpec) => spec.id.replaceAll(/[^a-zA-Z0-9]+/g, '_').replaceAll(/^_|_$/g, '')

/** `siteanalytics_websites_visits` names its answer SiteanalyticsWebsitesVisitsAnswer: what generators make a type of. */
const named = (spec: EndpointSpec, what: 'Request' | 'Answer') =>
  `${operationId(spec).replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}${what}`

function schemas(): Record<string, JsonSchema> {
  const made: Record<string, JsonSchema> = { ...COMPONENTS, ...SOCIAL_COMPONENTS, ...ERROR_SCHEMAS }
  for (const spec of ENDPOINTS) {
    const answer = answerOf(spec)
    if (spec.body) made[named(spec, 'Request')] = spec.body
    if (answer) made[named(spec, 'Answer')] = answer
  }
  return made
}

const requestIdHeader = { 'x-request-id': { description: 'To be named in questions.', schema: string } }
const moneyHeaders = {
  'x-tollgate-charge': { description: 'What this call cost, in credits. Not of a stream.', schema: string },
}

function operationOf(spec: EndpointSpec): unknown {
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
      ...(spec.sells && spec.method === 'POST'
        ? [idempotencyKey('The same key and body within 24 hours replay the stored answer.')]
        : []),
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
      200: {
        description: spec.returns ?? 'The answer.',
        headers: { ...requestIdHeader, ...(spec.sells ? moneyHeaders : {}) },
        content: {
          ...(answerOf(spec) ? { 'application/json': { schema: component(named(spec, 'Answer')) } } : {}),
          ...(spec.gives ? { [spec.gives]: { schema: { ...string, contentMediaType: spec.gives } } } : {}),
          ...(spec.streams ? { 'text/event-stream': { schema: string } } : {}),
        },
      },
      ...refusals(spec, spec.surface),
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
        'One key and one balance of credits in front of text, image and video models, social data and site analytics.\n\nIn bodies, null counts as absent. Blanks around a text in the query are ignored. Streams are server-sent events.',
      contact: { name: 'Whoever runs this gateway' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: options.serverUrl }],
    security: [{ bearer: [] }, { apiKey: [] }],
    tags: [
      ...Object.entries(TAGS).map(([name, description]) => ({ name, description })),
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
      schemas: schemas(),
    },
  }
}
