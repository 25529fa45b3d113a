// What both clients are generated from: the table of endpoints and the schemas of the OpenAPI document.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import * as z from 'zod'
import { ANALYTICS } from '../../src/catalog/analytics.ts'
import { type DataEndpointSpec, type JsonSchema, rulesOf } from '../../src/catalog/endpoint.ts'
import { allowedText, type Field } from '../../src/catalog/field.ts'
import { FREE, PAID } from '../../src/catalog/generation.ts'
import { SOCIAL } from '../../src/catalog/social.ts'
import { ALL_ENDPOINTS } from '../../src/entries.ts'
import { billingDetails, invoiceView } from '../../src/extensions/billing/invoices/views.ts'
import { openapiDocument } from '../../src/extensions/docs/openapi.ts'
import { pascal } from '../../src/extensions/docs/reference.ts'
import { EMBEDDINGS } from '../../src/extensions/embeddings/endpoints.ts'
import {
  newSessionView,
  pageLinkView,
  purseMovement,
  purseStatement,
  purseView,
  sessionView,
  topUpCheckout,
  topUpView,
} from '../../src/extensions/purses/views.ts'

export const NOTICE =
  'Generated from the catalog and the OpenAPI document by `npm run generate`. Do not change it by hand.'

const { components } = openapiDocument({ version: '0', serverUrl: '/', endpoints: ALL_ENDPOINTS }) as {
  components: { schemas: Record<string, JsonSchema> }
}
const viewOf = (view: z.ZodType) => z.toJSONSchema(view) as JsonSchema
export const SCHEMAS: Readonly<Record<string, JsonSchema>> = {
  ...components.schemas,
  Purse: viewOf(purseView),
  PurseStatement: viewOf(purseStatement),
  PurseSession: viewOf(newSessionView),
  PurseMovement: viewOf(purseMovement),
  PurseTopUp: viewOf(topUpCheckout),
  PursePageLink: viewOf(pageLinkView),
  PurseTopUpState: viewOf(topUpView),
  PurseSessionState: viewOf(sessionView),
  PurseInvoice: viewOf(invoiceView),
  PurseBillingDetails: viewOf(billingDetails),
}

/** Addresses of the endpoints that are called by hand-written code. */
export const PATHS = {
  analytics: '/v1/siteanalytics',
  social: SOCIAL[0]?.path ?? '',
  chat: PAID.chat.path,
  responses: PAID.responses.path,
  messages: PAID.messages.path,
  countTokens: FREE.count_tokens.path,
  embeddings: EMBEDDINGS.embeddings.path,
  images: PAID.images.path,
  video: PAID.video.path,
  jobs: FREE.jobs.path,
  models: FREE.models.path,
  account: FREE.account.path,
  quote: FREE.quote.path,
  purses: '/v1/purses',
}

export const PAID_IDS = ALL_ENDPOINTS.filter(({ sells }) => sells !== undefined).map(({ id }) => id)

/** One method of a client: `websites.historyVisits`. */
export interface Method {
  readonly group: string
  /** Below the group, as it stands in the path. */
  readonly rest: string
  readonly spec: DataEndpointSpec
  /** The schema of its answer, by name. */
  readonly answer: string
}

export const METHODS: readonly Method[] = ANALYTICS.map((spec) => {
  const [group = '', ...rest] = spec.vendorPath.split('/')
  return { group, rest: rest.join('/'), spec, answer: `${pascal(spec.id)}Answer` }
})
export const GROUPS = [...new Set(METHODS.map(({ group }) => group))]

/** Names of schemas that hand-written code speaks of; what they refer to comes along. */
export const NAMED = [
  'Model',
  'JobStatus',
  'Job',
  'Purse',
  'PurseMovement',
  'PursePageLink',
  'PurseSession',
  'PurseStatement',
  'PurseTopUp',
  'PurseBillingDetails',
  'PurseInvoice',
  'PurseSessionState',
  'PurseTopUpState',
  'SocialUser',
  'Tweet',
  'SocialIncludes',
  ...['Chat', 'Responses', 'Messages', 'Embeddings', 'Images', 'Video'].map((name) => `${name}Request`),
  'CountTokensRequest',
  ...['Chat', 'Responses', 'Messages', 'Embeddings', 'Images', 'Account', 'Quote'].map((name) => `${name}Answer`),
  'SocialUsersAnswer',
  'SocialUsersIdTweetsAnswer',
  ...METHODS.map(({ answer }) => answer),
]

/** Parameters that get a type of their own, with the fields in it. */
export const PARAMS: ReadonlyArray<readonly [name: string, fields: Readonly<Record<string, Field>>]> = [
  ...METHODS.map(({ spec }) => [`${pascal(spec.vendorPath)}Params`, spec.params] as const),
  ...SOCIAL.map((spec) => [`${pascal(spec.id)}Params`, inQuery(spec.params)] as const),
  ['JobsListParams', FREE.jobs.params ?? {}],
]

function inQuery(params: Readonly<Record<string, Field>>): Record<string, Field> {
  return Object.fromEntries(Object.entries(params).filter(([, field]) => field.in !== 'path'))
}

export function describe(field: Field): string {
  const preset = field.default === undefined ? '' : ` Default: ${field.default}.`
  const allowed =
    field.kind === 'choice' || field.kind === 'boolean' || field.kind === 'list' ? '' : ` Takes ${allowedText(field)}.`
  return `${field.description}${allowed}${preset}`
}

export const explain = ({ spec }: Method): string =>
  [`${spec.title}. ${spec.description}`, ...rulesOf(spec), `Answer: ${spec.returns}`].join('\n')

export const isCountry = (name: string, field: Field) => name === 'country' && field.kind === 'integer'

export const COUNTRIES = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', '..', 'clients', 'countries.json'), 'utf8'),
) as Readonly<Record<string, number>>
