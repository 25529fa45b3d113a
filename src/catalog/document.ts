// The catalog document: vendors, models and data endpoints with their routes and prices, validated as a whole.
import { readFile } from 'node:fs/promises'
import * as z from 'zod'
import { isObject, objects } from '../kernel/json.ts'
import { readStored } from '../kernel/stored.ts'
import { CLIENT_FORMATS, KIND_NAMES, type KindName, kindRow, PROTOCOLS } from '../meter/kind.ts'
import { byokFee, factor, type Pricing, positive, pricing } from '../meter/price.ts'
import { bridgeProblems, routeProblems, vendorBridge } from './bridge.ts'
import { QUANTIZATIONS, region } from './preference-body.ts'
import { routingProblems, routingRules } from './routing-rules.ts'
import { allSections, type CatalogSection, type Problem, type SectionInputs, type Sections } from './section.ts'
import { isSandbox } from './simulated.ts'
import { type TraitsOf, textTraits, traitsOf } from './traits.ts'

export const catalogName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._/-]{0,99}$/, 'must be lower-case letters, digits, ".", "_", "/" or "-"')
const count = z.number().int().positive()
const milliseconds = z.number().int().min(1).max(3_600_000)

const httpUrl = z.string().refine((value) => {
  if (isSandbox(value)) return true
  const url = URL.parse(value)
  const isPlain = !/[\p{C}\p{Z}]/u.test(value) // A reader sees what is called.
  return isPlain && url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.search && !url.hash
}, 'must be an http(s) address without query, or the simulated vendors: "sandbox", or one of them such as "sandbox/openai"')

/** Plain http is allowed for tests and private networks; link-local addresses (cloud metadata) are not. */
const tokenUrl = z.string().refine((value) => {
  const url = URL.parse(value)
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.hash
}, 'must be the http(s) address of a token endpoint')

/**
 * Logins: the credential is exchanged for a token that is valid for an hour, or signs each call. `workload`: uses the
 * machine's own identity, which its administrator must allow.
 */
const LOGINS = [
  /** OAuth client credentials; the credential is `client_id:client_secret`. */
  z.strictObject({
    oauth: z.strictObject({
      tokenUrl,
      scope: z.string().min(1).max(1000).optional(),
      audience: z.string().min(1).max(1000).optional(),
    }),
  }),
  /**
   * AWS Signature Version 4; the credential is `access_key_id:secret_access_key`, with `:session_token` if it is
   * temporary. `role` is assumed first.
   */
  z.strictObject({
    sigv4: z.strictObject({
      region: z.string().regex(/^[a-z0-9-]{2,40}$/, 'must be a region such as us-east-1'),
      service: z
        .string()
        .regex(/^[a-z0-9-]{2,40}$/, 'must be the name of a service in its signatures, such as bedrock'),
      role: z
        .string()
        .regex(/^arn:aws[\w-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/, 'must be the ARN of a role')
        .optional(),
      externalId: z.string().min(2).max(1224).optional(),
      workload: z.literal(true).optional(),
    }),
  }),
  /** Google Cloud; the credential is the JSON of a service account. */
  z.strictObject({ google: z.strictObject({ workload: z.enum(['file', 'metadata']).optional() }) }),
  /** Microsoft Entra by the federated token of a workload. */
  z.strictObject({ azure: z.strictObject({ scope: z.string().min(1).max(1000), workload: z.literal(true) }) }),
] as const

export const auth = z.union([
  z.enum(['bearer', 'basic']),
  z.strictObject({ header: z.string().regex(/^[a-z0-9-]{1,64}$/, 'must be the name of a header in lower case') }),
  z.strictObject({ query: z.string().regex(/^[\w.-]{1,64}$/, 'must be the name of a query parameter') }),
  ...LOGINS,
])
const login = z.union(LOGINS)
export type Login = z.output<typeof login>
export type Auth = z.output<typeof auth>

/** Also of an environment variable. */
export const credentialName = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]{0,63}$/, 'must be upper-case letters, digits and "_", beginning with a letter')

const vendorCredential = z.strictObject({ name: credentialName, weight: z.number().int().min(1).max(1000).default(1) })

const VENDOR_CREDENTIALS_MAX = 50

const probe = z.strictObject({ everySeconds: z.number().int().min(10).max(3600) })

const OFFERS = ['conversations', 'compact', 'masks'] as const
export type Offer = (typeof OFFERS)[number]

const vendor = z.strictObject({
  /** `sandbox` is the simulated vendor that the gateway itself starts. */
  baseUrl: httpUrl.transform((value) => value.replace(/(?<!\/)\/+$/, '')),
  /** The environment variable, or the stored credential, that holds the vendor's key. Absent: none is sent. */
  credential: credentialName.optional(),
  /**
   * Several instead of one: calls are shared by weight, and one that the vendor rejects or rate-limits is disabled for
   * a while, alone.
   */
  credentials: z.array(vendorCredential).min(1).max(VENDOR_CREDENTIALS_MAX).optional(),
  /** How the credential is sent; absent: as usual for the format. */
  auth: auth.optional(),
  /** The cloud that offers another company's format: Messages at addresses of the cloud, without a list of models. */
  cloud: z.enum(['bedrock', 'vertex']).optional(),
  headers: z.record(z.string().regex(/^[a-z0-9-]+$/), z.string().max(1000)).default({}),
  timeouts: z
    .strictObject({
      connectMs: milliseconds.default(5_000),
      firstByteMs: milliseconds.default(120_000),
      /** From sending to the first token of a stream; then the next route is tried. Absent: no deadline of its own. */
      firstTokenMs: milliseconds.optional(),
      idleMs: milliseconds.default(60_000),
      totalMs: milliseconds.default(600_000),
      /** How long an answer is read after its caller has disconnected; see `onAbort`. */
      drainMs: milliseconds.default(30_000),
    })
    .prefault({}),
  concurrencyMax: count.default(2_000),
  pendingMax: count.default(500),
  /**
   * If a caller disconnects during an answer: `drain` reads on for `drainMs`, to charge what the vendor reports;
   * `cancel` stops the vendor, and charges what was delivered. Absent: `drain` if the vendor reports usage only at the
   * end, otherwise `cancel`.
   */
  onAbort: z.enum(['cancel', 'drain']).optional(),
  /**
   * The vendor gets request fields that the gateway does not know. For the company that defines the format; for other
   * vendors they are left out.
   */
  passesUnknown: z.boolean().default(false),
  /** Optional features: for the Responses format, conversations and compaction; for images, edits with a mask. */
  offers: z.array(z.enum(OFFERS)).optional(),
  /**
   * How often it is probed by a free request, such as its list of models. false: never. Absent: as in `routing.probe`.
   */
  probe: z.union([z.literal(false), probe]).optional(),
  /** It charges less for a prompt prefix that it has cached, so conversations stay on its route. */
  promptCache: z.boolean().optional(),
  /** Its regions, such as `eu` or `us-east-1`: calls and keys can be restricted to regions. Absent: unknown. */
  region: region.optional(),
  /** Its policy for prompts and answers: it stores nothing, or stores them but does not use them. Absent: unknown. */
  dataPolicy: z.enum(['zero-retention', 'no-collection']).optional(),
  /**
   * The fee of calls with BYOK keys, instead of the price. Absent: BYOK keys are not allowed, except for products with
   * a fee of their own.
   */
  byokFee: byokFee.optional(),
  /** How it serves our endpoints with an API of its own. */
  bridge: vendorBridge.optional(),
})

const route = z.strictObject({
  vendor: catalogName,
  protocol: z.enum(PROTOCOLS),
  /** The model's name at the vendor; absent: the uid. */
  model: z.string().min(1).max(200).optional(),
  /** Routes of equal `order` share the load by weight; a higher order is tried only when the lower ones fail. */
  order: z.number().int().min(0).default(0),
  weight: z.number().int().min(1).max(1000).default(1),
  /** The route is only for requests that need one of these, e.g. `tools`; such requests prefer it. */
  serves: z.array(z.string()).optional(),
  /** How the vendor quantizes the model. Absent: unknown. */
  quantization: z.enum(QUANTIZATIONS).optional(),
  /** In place of the model's and the vendor's. */
  firstTokenMs: milliseconds.optional(),
  /** false: not used for now. */
  enabled: z.boolean().default(true),
  /** The vendor's price, in credits; callers never see it. Absent: unknown. */
  cost: pricing.optional(),
})

const POLICIES = ['weighted', 'least-latency', 'least-busy', 'cheapest-first'] as const

/** How routes of equal order share the calls. */
const routing = z.strictObject({
  /**
   * By their weights; the one that answers fastest first; the one with the fewest calls of this process first; or the
   * one that costs least first.
   */
  policy: z.enum(POLICIES).default('weighted'),
  /**
   * Calls of one conversation or session take the same route while it works. Absent: true if a vendor has
   * `promptCache`.
   */
  sticky: z.boolean().optional(),
  /** In place of the vendors' own. */
  firstTokenMs: milliseconds.optional(),
  /**
   * When a stream has no token after this time, a second route is called too, once; the first token wins, and only that
   * is charged. Absent: never.
   */
  hedgeMs: milliseconds.optional(),
})

/** The default for text models: as large as that of large models, so that real usage is not cut. */
export const CONTEXT_TOKENS_DEFAULT = 1_000_000

const limits = z.strictObject({
  /** Input and output together. The hold covers it if the input is not in the request; no call is charged for more. */
  contextTokens: count.optional(),
  outputTokensMax: count.optional(),
  /** What a hold covers when the caller names no output limit. */
  outputTokensReserve: count.default(4096),
  /** The smallest output for which a hold is made. */
  outputTokensFloor: count.default(64),
  /** For models that read documents: the most pages of one document. */
  pagesMax: count.max(10_000).optional(),
})

/** Traits are parsed by traits.ts when the kind is known. */
const traits = z.record(z.string(), z.unknown()).default({})

const cache = z.strictObject({
  ttlSeconds: count.max(86_400),
  /** The price of a cached response, in which `call` is the hit; absent: the product's price. */
  pricing: pricing.optional(),
})

const modelFields = {
  name: z.string().min(1).max(100),
  version: z.string().nullable().default(null),
  type: z.enum(KIND_NAMES),
  family: z.string().min(1).max(40),
  enabled: z.boolean().default(true),
  /** For text models: the endpoints that offer it. */
  clientFormats: z.array(z.enum(CLIENT_FORMATS)).default([]),
  capabilities: z.array(z.string()).default([]),
  limits: limits.prefault({}),
  /** Traits of a text model override those of its family. */
  traits,
  routes: z.array(route).min(1),
  routing: routing.prefault({}),
  /** The text model that gets requests that are too long for this one. */
  contextFallback: z.string().min(1).max(100).optional(),
  pricing,
  /** In place of the vendors' own. */
  byokFee: byokFee.optional(),
  /** The factor of its prices in batches, such as "0.5". Absent: 1. */
  batchFactor: factor.optional(),
  /**
   * The response cache: answers to identical requests are stored, at temperature 0 or if the caller sends
   * `x-tollgate-cache: on`. They are used within the account, or with `shared` by all; with `keysOnly` only for keys
   * that turn the cache on. Absent: off, except for such keys.
   */
  cache: cache.extend({ shared: z.boolean().default(false), keysOnly: z.boolean().default(false) }).optional(),
}
const model = z.strictObject(modelFields)

const dataEndpoint = z.strictObject({
  enabled: z.boolean().default(true),
  traits,
  routes: z.array(route).min(1),
  routing: routing.prefault({}),
  pricing,
  /** In place of the vendors' own. */
  byokFee: byokFee.optional(),
  /** The response cache, shared by all callers; absent: off. */
  cache: cache.optional(),
})

const gatewayRouting = z.strictObject({
  /** Converts the highest price that callers give in dollars. Absent: they give it in credits. */
  creditsPerDollar: positive.optional(),
  /** False: callers cannot choose vendors or fallback models by body or header. Absent: they can. */
  callerChoice: z.boolean().optional(),
  /** By key, label, header or model; all that match apply. */
  rules: routingRules.optional(),
  /** The default for vendors without a setting of their own. Absent: they are not probed. */
  probe: probe.optional(),
})

/** What every catalog has. */
const core = z.strictObject({
  vendors: z.record(catalogName, vendor),
  families: z
    .record(z.string().min(1).max(40), z.strictObject({ traits: textTraits.partial().prefault({}) }))
    .default({}),
  models: z.record(catalogName, model),
  /** By endpoint id, e.g. `siteanalytics/websites/visits` or `social/users`. */
  endpoints: z.record(catalogName, dataEndpoint),
  /** Every text model is offered in every client format, whatever its `clientFormats` are. */
  allClientFormats: z.boolean().default(false),
  /** Routing settings for all products. */
  routing: gatewayRouting.optional(),
})

const schemas = new Map<string, z.ZodType<CatalogDocument, CatalogInput>>()

/**
 * Of the document with its sections. Those of extensions that are switched off are taken as they are, and left out of
 * what is read.
 */
export function documentSchema(off: readonly string[] = []): z.ZodType<CatalogDocument, CatalogInput> {
  // A section may be added after the first use.
  const name = JSON.stringify([off, allSections().map((one) => one.name)])
  const made = schemas.get(name) ?? makeSchema(off)
  schemas.set(name, made)
  return made
}

const LEFT_OUT = z
  .unknown()
  .transform(() => undefined)
  .optional()

function makeSchema(off: readonly string[]) {
  const sections = allSections()
  const on = sections.filter((one) => !off.includes(one.name))
  const schema = core
    .extend(Object.fromEntries(sections.map((one) => [one.name, on.includes(one) ? one.schema : LEFT_OUT])))
    .transform((doc, context) => {
      // What the schemas of its sections have read.
      for (const { path, message } of problemsOf(doc as CatalogDocument, on))
        context.addIssue({ code: 'custom', path: [...path], message })
      return doc
    })
  return schema as unknown as z.ZodType<CatalogDocument, CatalogInput> // Extensions declare what their sections are.
}

function problemsOf(doc: CatalogDocument, sections: readonly CatalogSection[]): Problem[] {
  if (doc.allClientFormats)
    for (const one of Object.values(doc.models)) if (one.type === 'text') one.clientFormats = [...CLIENT_FORMATS]
  const below = (place: readonly string[], problems: readonly Problem[]) =>
    problems.map(({ path, message }) => ({ path: [...place, ...path], message }))
  return [
    ...Object.entries(doc.vendors).flatMap(([name, one]) =>
      credentialProblems(one).map((message) => ({ path: ['vendors', name, 'credentials'], message })),
    ),
    ...Object.entries(doc.vendors).flatMap(([name, { bridge }]) =>
      bridge ? below(['vendors', name, 'bridge'], bridgeProblems(bridge)) : [],
    ),
    ...Object.entries(doc.endpoints).flatMap(([uid, one]) =>
      below(['endpoints', uid], routeProblems(uid, one, doc.vendors)),
    ),
    ...(['models', 'endpoints'] as const).flatMap((shelf) =>
      Object.entries(doc[shelf]).flatMap(([uid, product]) => below([shelf, uid], productProblems(product, doc))),
    ),
    ...routingProblems(doc),
    ...sections.flatMap((one) => one.check?.(doc) ?? []),
  ]
}

type Product = z.output<typeof model> | z.output<typeof dataEndpoint>
type Plain<T> = { [K in keyof T]: T[K] }
type Whole = Plain<z.output<typeof core> & Sections>

export type CatalogInput = Plain<z.input<typeof core> & SectionInputs>
export type Vendor = z.output<typeof vendor>
type VendorCredential = z.output<typeof vendorCredential>
export type Route = z.output<typeof route>
export type Routing = z.output<typeof routing>
export type ModelOf<K extends KindName> = Omit<z.output<typeof model>, 'type' | 'traits'> & {
  type: K
  traits: TraitsOf<K>
}
export type Model = { [K in KindName]: ModelOf<K> }[KindName]
export type DataEndpoint = Omit<z.output<typeof dataEndpoint>, 'traits'> & { traits: TraitsOf<'data'> }
export type CatalogDocument = Omit<Whole, 'models' | 'endpoints'> & {
  models: Record<string, Model>
  endpoints: Record<string, DataEndpoint>
}

/** The credentials of a vendor, whether its entry names one or several. */
export function credentialsOf({
  credential,
  credentials,
}: Pick<Vendor, 'credential' | 'credentials'>): readonly VendorCredential[] {
  return credentials ?? (credential === undefined ? [] : [{ name: credential, weight: 1 }])
}

function credentialProblems({ credential, credentials }: Vendor): string[] {
  if (!credentials) return []
  const names = credentials.map(({ name }) => name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  return [
    ...(credential === undefined ? [] : ['give either "credential" or "credentials", not both']),
    ...(twice === undefined ? [] : [`names ${twice} twice`]),
  ]
}

/** Problems of a product that its schema does not find. Also parses its traits, merged with those of its family. */
function productProblems(product: Product, doc: Pick<Whole, 'vendors' | 'families'>): Problem[] {
  const kind = 'type' in product ? product.type : 'data'
  const protocols = Object.keys(kindRow(kind).protocols)
  const problems: Problem[] = pricingProblems(kind, product.pricing).map((message) => ({ path: ['pricing'], message }))
  product.routes.forEach(({ vendor, protocol, cost }, index) => {
    if (!Object.hasOwn(doc.vendors, vendor))
      problems.push({ path: ['routes', index, 'vendor'], message: `there is no vendor "${vendor}"` })
    if (cost)
      for (const message of pricingProblems(kind, cost)) problems.push({ path: ['routes', index, 'cost'], message })
    if (!protocols.includes(protocol))
      problems.push({
        path: ['routes', index, 'protocol'],
        message: `"${protocol}" does not serve ${kind}; that takes ${protocols.join(' or ')}`,
      })
  })
  if (product.cache) problems.push(...cacheProblems(kind, product.cache))
  if ('clientFormats' in product && kind === 'text' && product.clientFormats.length === 0)
    problems.push({ path: ['clientFormats'], message: 'a text model needs at least one client format' })
  const shared = 'family' in product && kind === 'text' ? doc.families[product.family]?.traits : {}
  const read = traitsOf(kind).safeParse({ ...shared, ...product.traits })
  if (read.success) product.traits = read.data as Product['traits']
  else
    for (const { path, message } of read.error.issues) problems.push({ path: ['traits', ...path] as string[], message })
  return problems
}

function cacheProblems(kind: KindName, { pricing: price }: z.output<typeof cache>): Problem[] {
  if (kind !== 'text' && kind !== 'data')
    return [{ path: ['cache'], message: 'only text models have a response cache' }]
  if (!price) return []
  const units = ['call' as const, ...kindRow(kind).priced.flat()]
  const unpriced = price.tiers.flatMap((tier, index) =>
    units.some((unit) => tier[unit] !== undefined)
      ? []
      : [`tier ${index} has no price that a cached response could have`],
  )
  return [...unpriced, ...lastTierProblems(price)].map((message) => ({ path: ['cache', 'pricing'], message }))
}

/** A product without a price is not free: each kind needs rates for the units of its usage. */
function pricingProblems(kind: KindName, price: Pricing): string[] {
  const problems: string[] = []
  for (const [index, tier] of price.tiers.entries())
    for (const group of kindRow(kind).priced)
      if (group.every((unit) => tier[unit] === undefined))
        problems.push(`tier ${index} has no price for ${group.map((unit) => `"${unit}"`).join(' or ')}`)
  return [...problems, ...lastTierProblems(price)]
}

function lastTierProblems({ tiers }: Pricing): string[] {
  const last = tiers.at(-1)
  if (last?.upTo === undefined && last?.when === undefined) return []
  return ['the last tier must hold for everything (no "upTo", no "when"), or some calls would have no price']
}

/** `paths`: where in the document each problem is. */
type CheckedDocument =
  | { ok: true; document: CatalogDocument }
  | { ok: false; problems: string[]; paths: readonly (readonly PropertyKey[])[] }

interface Given {
  /** Sections and text formats of extensions that are switched off. */
  readonly off?: readonly string[] | undefined
  /** The document that is stored: what nobody here knows of it may stay. */
  readonly kept?: unknown
}

export function checkDocument(input: unknown, { off, kept }: Given = {}): CheckedDocument {
  const unknown = unknownIn(input).filter((name) => isObject(kept) && isSame(Object(input)[name], kept[name]))
  const result = documentSchema(off).safeParse(without(input, unknown))
  if (result.success) return { ok: true, document: result.data }
  return {
    ok: false,
    problems: result.error.issues.map((issue) => `${issue.path.join('.') || 'document'}: ${inWords(issue)}`),
    paths: result.error.issues.map(({ path }) => path),
  }
}

/** Sections of which this version knows nothing. */
const unknownIn = (input: unknown) =>
  Object.keys(Object(input)).filter(
    (name) => !Object.hasOwn(core.shape, name) && !allSections().some((one) => one.name === name),
  )

const without = (input: unknown, names: readonly string[]) =>
  names.length === 0 || !isObject(input)
    ? input
    : Object.fromEntries(Object.entries(input).filter(([name]) => !names.includes(name)))

const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** A section that checks calls is there, whether its extension is switched on or not. */
export const isGuarded = (input: unknown) =>
  allSections().some((one) => one.guards && Object(input)[one.name] !== undefined)

/**
 * What a stored document may lack. Not routing rules: without one of these, calls would be sent as they must not be. A
 * model of a family that cannot be read would have the wrong traits, and goes with it.
 */
const PARTS = ['vendors.*', 'models.*', 'models.*.routes.*', 'endpoints.*', 'endpoints.*.routes.*']

/**
 * Of a version that another version of Tollgate may have written. Undefined: what is wrong is of no part that may be
 * missing.
 */
export function readDocument(input: unknown, { off = [] }: Given = {}) {
  const strange = unknownIn(input)
  const cleaned = without(input, strange)
  const families = readStored(isObject(cleaned) ? (cleaned.families ?? {}) : {}, {
    schema: core.shape.families,
    parts: ['*'],
    inWords,
  })
  const lost = new Set(families?.setAside.map((text) => text.split(':')[0]))
  const { known, unspoken } = withoutFormats(
    isObject(cleaned) && lost.size > 0 ? withoutFamilies(cleaned, lost) : cleaned,
    off,
  )
  const parts = allSections().flatMap(({ name, parts = [] }) => parts.map((part) => `${name}.${part}`))
  const read = readStored(known, { schema: documentSchema(off), parts: [...PARTS, ...parts], inWords })
  return (
    read && {
      document: read.value,
      setAside: [
        ...strange.map((name) => `${name}: is no section that this version knows`),
        ...(families?.setAside.map((text) => `families.${text}`) ?? []),
        ...unspoken,
        ...read.setAside,
      ],
    }
  )
}

/** Without the routes in formats that are switched off, and the models that have no other. */
function withoutFormats(input: unknown, off: readonly string[]): { known: unknown; unspoken: string[] } {
  const unspoken: string[] = []
  if (!isObject(input) || !isObject(input.models) || off.length === 0) return { known: input, unspoken }
  const models = Object.entries(input.models).flatMap(([uid, model]) => {
    const routes = isObject(model) ? objects(model.routes) : []
    const spoken = routes.filter(({ protocol }) => !off.includes(String(protocol)))
    if (spoken.length === routes.length) return [[uid, model] as const]
    const lost = routes.find((route) => !spoken.includes(route))?.protocol
    const what = spoken.length === 0 ? '' : ' (a route)'
    unspoken.push(`models.${uid}${what}: the extension with the format "${lost}" is switched off`)
    return spoken.length === 0 ? [] : [[uid, { ...Object(model), routes: spoken }] as const]
  })
  return { known: { ...input, models: Object.fromEntries(models) }, unspoken }
}

function withoutFamilies(input: Record<string, unknown>, lost: ReadonlySet<string | undefined>): unknown {
  const keep = (shelf: unknown, isKept: (name: string, entry: unknown) => boolean) =>
    isObject(shelf) ? Object.fromEntries(Object.entries(shelf).filter(([name, entry]) => isKept(name, entry))) : shelf
  return {
    ...input,
    families: keep(input.families, (name) => !lost.has(name)),
    models: keep(input.models, (_, entry) => !(isObject(entry) && lost.has(String(entry.family)))),
  }
}

function inWords(issue: z.core.$ZodIssue): string {
  // The name itself is wrong, and its schema says why.
  const { message } = issue.code === 'invalid_key' ? (issue.issues[0] ?? issue) : issue
  return message.endsWith('received undefined') ? 'is missing' : message.replace(/^Invalid input: /, '')
}

// Reads a catalog document from a file; each problem is a sentence.

export async function readDocumentFile(file: string): Promise<unknown> {
  const content = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${file} cannot be read: ${error.code === 'ENOENT' ? 'there is no such file' : error.message}.`)
  })
  return parseDocument(file, content)
}

export function parseDocument(file: string, content: string): unknown {
  try {
    return JSON.parse(content)
  } catch (error) {
    throw new Error(`${file} is not JSON: ${(error as Error).message}`)
  }
}
