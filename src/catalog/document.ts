// The catalogue document: vendors, models and data endpoints with their routes and prices, validated as a whole.
import * as z from 'zod'
import { type Pricing, pricing } from '../meter/price.ts'

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._/-]{0,99}$/, 'must be lower-case letters, digits, ".", "_", "/" or "-"')
const count = z.number().int().positive()
const milliseconds = z.number().int().min(1).max(3_600_000)

const httpUrl = z.string().refine((value) => {
  if (value === 'sandbox') return true
  const url = URL.parse(value)
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.search && !url.hash
}, 'must be an http(s) address without query, or the word "sandbox"')

const vendor = z.strictObject({
  /** `sandbox` is the simulated vendor that the gateway itself starts. */
  baseUrl: httpUrl.transform((value) => value.replace(/\/+$/, '')),
  /** The environment variable, or the stored credential, that holds the vendor's key. Absent: none is sent. */
  credential: z
    .string()
    .regex(/^[A-Z][A-Z0-9_]{0,63}$/)
    .optional(),
  headers: z.record(z.string().regex(/^[a-z0-9-]+$/), z.string().max(1000)).default({}),
  timeouts: z
    .strictObject({
      connectMs: milliseconds.default(5_000),
      firstByteMs: milliseconds.default(120_000),
      idleMs: milliseconds.default(60_000),
      totalMs: milliseconds.default(600_000),
    })
    .prefault({}),
  concurrencyMax: count.default(2_000),
  pendingMax: count.default(500),
  /** `drain`: the vendor bills the whole answer anyway, so a caller's leaving does not stop it. */
  onAbort: z.enum(['cancel', 'drain']).default('cancel'),
})

const route = z.strictObject({
  vendor: name,
  protocol: z.enum([
    'openai-chat',
    'openai-responses',
    'anthropic-messages',
    'openai-images',
    'video-task',
    'social-v2',
    'site-analytics',
  ]),
  /** The model's name at the vendor; absent: the uid. */
  model: z.string().min(1).max(200).optional(),
  /** Routes of equal `order` share the load by weight; a higher order is tried only when the lower ones fail. */
  order: z.number().int().min(0).default(0),
  weight: z.number().int().min(1).max(1000).default(1),
  /** Only for asks that need this, e.g. `tools`; an ask with a need prefers such routes. */
  serves: z.array(z.string()).optional(),
})

/** For text models whose entry names none: as large as the large ones, so that nothing is charged for less than it is. */
export const CONTEXT_TOKENS_DEFAULT = 1_000_000

const limits = z.strictObject({
  /** Input and output together. Held for when input is not in the request; no call is charged for more. */
  contextTokens: count.optional(),
  outputTokensMax: count.optional(),
  /** What a hold covers when the caller names no output limit. */
  outputTokensReserve: count.default(4096),
  /** The least output for which a smaller hold is worth making. */
  outputTokensFloor: count.default(64),
})

/** What distinguishes a family of models from the format it speaks; the names are in protocols/traits.ts. */
const traits = z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]))

const model = z.strictObject({
  name: z.string().min(1).max(100),
  version: z.string().nullable().default(null),
  type: z.enum(['text', 'image', 'video', 'data']),
  family: z.string().min(1).max(40),
  enabled: z.boolean().default(true),
  /** For text models: the endpoints that offer it. */
  doors: z.array(z.enum(['openai-chat', 'openai-responses', 'anthropic-messages'])).default([]),
  capabilities: z.array(z.string()).default([]),
  limits: limits.prefault({}),
  /** Laid over those of its family. */
  traits: traits.default({}),
  routes: z.array(route).min(1),
  pricing,
})

const dataEndpoint = z.strictObject({
  enabled: z.boolean().default(true),
  routes: z.array(route).min(1),
  pricing,
  /** Shared across callers; off unless given. */
  cache: z.strictObject({ ttlSeconds: count.max(86_400), pricing: pricing.optional() }).optional(),
})

const document = z
  .strictObject({
    vendors: z.record(name, vendor),
    families: z.record(z.string().min(1).max(40), z.strictObject({ traits: traits.default({}) })).default({}),
    models: z.record(name, model),
    /** By endpoint id, e.g. `siteanalytics/websites/visits` or `social/users`. */
    endpoints: z.record(name, dataEndpoint),
  })
  .superRefine((doc, context) => {
    const products = [...Object.entries(doc.models), ...Object.entries(doc.endpoints)]
    for (const [uid, product] of products) {
      const at = uid in doc.models ? ['models', uid] : ['endpoints', uid]
      product.routes.forEach((entry, index) => {
        if (!(entry.vendor in doc.vendors))
          context.addIssue({
            code: 'custom',
            path: [...at, 'routes', index, 'vendor'],
            message: `there is no vendor "${entry.vendor}"`,
          })
      })
      for (const problem of pricingProblems('type' in product ? product.type : 'data', product.pricing))
        context.addIssue({ code: 'custom', path: [...at, 'pricing'], message: problem })
    }
    for (const [uid, entry] of Object.entries(doc.models))
      if (entry.type === 'text' && entry.doors.length === 0)
        context.addIssue({
          code: 'custom',
          path: ['models', uid, 'doors'],
          message: 'a text model needs at least one door',
        })
  })

export type CatalogDocument = z.output<typeof document>
export type CatalogInput = z.input<typeof document>
export type Vendor = z.output<typeof vendor>
export type Model = z.output<typeof model>
export type DataEndpoint = z.output<typeof dataEndpoint>
export type Route = z.output<typeof route>

/** Unpriced is never free: each type of product needs the rates that its usage will name. */
function pricingProblems(type: Model['type'], price: Pricing): string[] {
  const needed = { text: ['input', 'output'], image: [], video: [], data: ['call'] } as const
  const problems: string[] = []
  for (const [index, entry] of price.tiers.entries()) {
    for (const unit of needed[type])
      if (entry[unit] === undefined) problems.push(`tier ${index} has no price for "${unit}"`)
    if (type === 'image' && entry.image === undefined && entry.output === undefined)
      problems.push(`tier ${index} needs a price per "image" or per million "output" tokens`)
    if (type === 'video' && entry.second === undefined && entry.output === undefined)
      problems.push(`tier ${index} needs a price per "second" or per million "output" tokens`)
  }
  const last = price.tiers.at(-1)
  if (last?.upTo !== undefined || last?.when !== undefined)
    problems.push('the last tier must hold for everything (no "upTo", no "when"), or some calls would have no price')
  return problems
}

export type CheckedDocument = { ok: true; document: CatalogDocument } | { ok: false; problems: string[] }

export function checkDocument(input: unknown): CheckedDocument {
  const result = document.safeParse(input)
  if (result.success) {
    const { families, models } = result.data
    for (const entry of Object.values(models)) entry.traits = { ...families[entry.family]?.traits, ...entry.traits }
    return { ok: true, document: result.data }
  }
  return {
    ok: false,
    problems: result.error.issues.map((issue) => `${issue.path.join('.') || 'document'}: ${issue.message}`),
  }
}
