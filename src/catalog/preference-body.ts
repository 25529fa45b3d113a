// Routing preferences in request bodies: OpenRouter's `provider` object, and `models`. They are for the gateway and are
// not sent to vendors.
import * as z from 'zod'
import type { EndpointSpec, JsonSchema } from './endpoint.ts'

export const QUANTIZATIONS = ['int4', 'int8', 'fp4', 'fp6', 'fp8', 'fp16', 'bf16', 'fp32', 'unknown'] as const
const SORTS = ['price', 'throughput', 'latency'] as const
export type Sort = (typeof SORTS)[number]

/** Regions of vendors and keys. */
export const region = z.string().regex(/^[a-z0-9-]{2,40}$/, 'must be a region such as eu or us-east-1')

const NAMES_MAX = 50
const names = z
  .array(z.string().min(1).max(100))
  .min(1, 'must name at least one.')
  .max(NAMES_MAX, `may name at most ${NAMES_MAX}.`)
/** Dollars, as a number or in digits. */
const dollars = z
  .union([z.number(), z.string()], 'an amount of dollars')
  .refine((value) => /^\d{1,9}(?:\.\d{1,12})?$/.test(String(value)), 'an amount of dollars such as 1.5')

/** Bounds of the vendors' figures. Only the median is measured. */
const bound = z
  .union([z.number().positive(), z.looseObject({ p50: z.number().positive() })], 'a number above 0, or one under "p50"')
  .transform((value) => (typeof value === 'number' ? value : value.p50))

export const providerBody = z.looseObject({
  order: names.nullish().describe('Vendors to try first, in this order.'),
  only: names.nullish().describe('No other vendors.'),
  ignore: names.nullish().describe('Not these vendors.'),
  allow_fallbacks: z
    .boolean()
    .nullish()
    .describe('false: only the vendors of `order`, or without one only the first choice.'),
  regions: names.nullish().describe('Only vendors in these regions. An extension of this gateway.'),
  quantizations: z.array(z.enum(QUANTIZATIONS)).min(1, 'must name at least one.').nullish(),
  data_collection: z
    .enum(['allow', 'deny'])
    .nullish()
    .describe('deny: only vendors that the operator has marked as not collecting data.'),
  zdr: z.boolean().nullish().describe('true: only vendors that the operator has marked as storing nothing.'),
  require_parameters: z
    .boolean()
    .nullish()
    .describe('true: only routes that get every parameter of the request as it was sent.'),
  sort: z
    .union([z.enum(SORTS), z.looseObject({ by: z.enum(SORTS) })], SORTS.join(', '))
    .transform((value) => (typeof value === 'string' ? value : value.by))
    .nullish(),
  max_price: z
    .looseObject({
      prompt: dollars.nullish().describe('Dollars per million input tokens.'),
      completion: dollars.nullish().describe('Dollars per million output tokens.'),
      request: dollars.nullish().describe('Dollars per request.'),
      image: dollars.nullish().describe('Dollars per image.'),
    })
    .nullish(),
  preferred_max_latency: bound.nullish().describe('Seconds. Slower vendors are tried last.'),
  preferred_min_throughput: bound.nullish().describe('Output tokens per second. Slower vendors are tried last.'),
  enforce_distillable_text: z.literal(false, 'cannot be honoured here.').nullish(),
})
export type ProviderBody = z.output<typeof providerBody>

/** The known members, also of nested objects. */
export const PROVIDER_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  provider: Object.keys(providerBody.shape),
  'provider.max_price': ['prompt', 'completion', 'request', 'image'],
  'provider.sort': ['by'],
  'provider.preferred_max_latency': ['p50'],
  'provider.preferred_min_throughput': ['p50'],
}

const { $schema: _, ...schema } = z.toJSONSchema(providerBody, { io: 'input', unrepresentable: 'any' })
const PROVIDER_SCHEMA: JsonSchema = {
  ...schema,
  type: ['object', 'null'],
  description: 'Where the call may go, as OpenRouter has it. Vendors are named as the catalog names them.',
}
const MODELS_SCHEMA: JsonSchema = {
  type: ['array', 'null'],
  items: { type: 'string' },
  minItems: 1,
  maxItems: 4,
  description: 'Models to ask in turn when one fails.',
}

/** Orders of videos and parameters of data products have no members for the gateway. */
const WITHOUT: ReadonlySet<unknown> = new Set(['video', 'data'])

/** Whether requests to this endpoint may have `provider` in their body. */
export const takesProvider = ({ sells, form, body }: Pick<EndpointSpec, 'sells' | 'form' | 'body'>): boolean =>
  sells !== undefined && !WITHOUT.has(sells) && form !== true && body !== undefined

/** Adds the members for the gateway to a body's schema. */
export function withRouting<Entry extends Pick<EndpointSpec, 'sells' | 'form' | 'body'>>(entry: Entry): Entry {
  if (!takesProvider(entry)) return entry
  const more = { ...(entry.sells === 'text' ? { models: MODELS_SCHEMA } : {}), provider: PROVIDER_SCHEMA }
  return { ...entry, body: { ...entry.body, properties: { ...Object(entry.body?.properties), ...more } } }
}
