// Products: APIs that are defined in the catalog, not in code. An operation has the form of a data endpoint's entry,
// and becomes an endpoint like them; its price, routes and cache are under its id in `endpoints`, like those of every
// data endpoint.
import * as z from 'zod'
import type { CountedUnit, DataEndpointSpec, OperationFacts } from '../../catalog/endpoint.ts'
import { boundOf, type Known, readExpression, requestSchema } from '../../catalog/expression.ts'
import { ENDPOINTS } from '../../catalog/index.ts'
import { sampleOf } from '../../catalog/json-schema.ts'
import { isQuickPattern } from '../../catalog/pattern.ts'
import type { CatalogSection, Problem } from '../../catalog/section.ts'
import { ALL_ENDPOINTS } from '../../entries.ts'
import type { DataProtocolName } from '../../meter/kind.ts'
import type { Pricing } from '../../meter/price.ts'
import { isJsonType } from '../../protocols/data/http-api.ts'
import { reviewProducts } from './review.ts'

declare module '../../catalog/section.ts' {
  interface Sections {
    products: Products
  }
  interface SectionInputs {
    products?: z.input<typeof products> | undefined
  }
}

const sentence = z.string().max(4_000)
/** One line without markup, because it is used in headings. */
const short = z
  .string()
  .min(1)
  .max(200)
  // Control characters by their numbers: the OpenAPI document has this pattern, and not every reader knows \p{Cc}.
  .regex(/^[^<>\u0000-\u001f\u007f-\u009f]+$/, 'must be one line without < and >')
const count = z.number().int().positive()
const words = z.array(z.string().min(1).max(200)).min(1).max(500)

/** Patterns from the code, which test/patterns.test.ts checks. */
const OWN_PATTERNS: ReadonlySet<unknown> = new Set(
  ENDPOINTS.flatMap((spec) => ('params' in spec ? Object.values(spec.params) : [])).map((one) =>
    'pattern' in one ? one.pattern : undefined,
  ),
)

const described = {
  description: sentence.default(''),
  example: z.string().max(2_048),
  required: z.literal(true).optional(),
  default: z.string().max(2_048).optional(),
  in: z.enum(['path', 'header']).optional(),
  repeat: z.literal(true).optional(),
}

const field = z.discriminatedUnion('kind', [
  z.strictObject({
    ...described,
    kind: z.literal('text'),
    pattern: z
      .string()
      .max(300)
      .refine(
        (one) => OWN_PATTERNS.has(one) || isQuickPattern(one),
        'is no regular expression, or one that could take long: begin it with ^, and repeat once at most',
      )
      .optional(),
    form: short.optional(),
  }),
  z.strictObject({ ...described, kind: z.literal('domain') }),
  z.strictObject({ ...described, kind: z.literal('boolean'), allowed: words }),
  z.strictObject({ ...described, kind: z.literal('integer'), min: z.number().int(), max: z.number().int().optional() }),
  z.strictObject({ ...described, kind: z.literal('choice'), allowed: words }),
  z.strictObject({ ...described, kind: z.literal('list'), allowed: words }),
  z.strictObject({ ...described, kind: z.literal('date') }),
  z.strictObject({
    ...described,
    kind: z.literal('latest'),
    daysMax: z.number().int().min(0).max(999),
    months: z.array(count.max(99)).max(99),
  }),
  z.strictObject({ ...described, kind: z.literal('json-array') }),
  z.strictObject({ ...described, kind: z.literal('number'), min: z.number().optional(), max: z.number().optional() }),
  z.strictObject({ ...described, kind: z.literal('values'), itemsMax: count.max(1_000).default(100) }),
])

/** Headers that the gateway sets itself, or that identify the caller. */
const RESERVED_HEADERS =
  /^(?:authorization|cookie|host|connection|content-.*|accept|accept-encoding|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|x-forwarded-.*|forwarded|x-real-ip|x-api-key|x-tollgate-.*|idempotency-key|traceparent)$/

const PART = /^(?:[A-Za-z0-9._~:@!$'()*,;=+-]+|\{[A-Za-z_]\w{0,63}\}(?::[a-z]\w{0,30})?)$/
const isPath = (path: string) =>
  path.length <= 500 && path.split('/').every((part) => PART.test(part) && part !== '.' && part !== '..')
/** The vendor's path may have a name inside a segment: `{id}.json`. */
const isVendorPath = (path: string) =>
  path === '' || isPath(path.replaceAll(/\{\w{1,64}\}/g, 'x').replace(/(?<!\/)\/$/, ''))

const SCHEMA_CHARS_MAX = 200_000
const EXAMPLE_CHARS_MAX = 100_000
const REFS = /"\$ref":"(?!#\/\$defs\/)/

const schema = z
  .record(z.string(), z.unknown())
  .refine((value) => JSON.stringify(value).length <= SCHEMA_CHARS_MAX, `is larger than ${SCHEMA_CHARS_MAX} characters`)
  .refine((value) => !REFS.test(JSON.stringify(value)), 'has a $ref that leads elsewhere than to its own $defs')

const counted = z.strictObject({
  /** In CEL, over `request` and `answer`. */
  expression: z.string().min(1),
  /** The count if the answer does not contain what is counted; the charge is then marked as estimated. */
  least: z.number().int().min(0).default(1),
})

const window = z.strictObject({
  unit: z.enum(['days', 'months']),
  count: count.max(999),
  monthsBackMax: count.max(999).optional(),
  monthsMayRoll: z.literal(true).optional(),
})

const protocol = z.enum(['http-api', 'site-analytics', 'social-v2'] as const satisfies readonly DataProtocolName[])

const operation = z.strictObject({
  title: short,
  /** The vendors' format, if it is one of ours. */
  protocol: protocol.default('http-api'),
  description: sentence.default(''),
  returns: sentence.optional(),
  /** `GET /places/{id}`: below `/v1/<product>`. */
  route: z
    .string()
    .regex(/^(?:GET|POST|PUT|PATCH|DELETE) \/[^\s?#]*$/, 'must be a method and a path, such as "GET /search"')
    .refine(
      (value) => value.endsWith(' /') || isPath(value.replace(/^\w+ \//, '')),
      'has a part that is no plain text and no {name}',
    ),
  /** Below the vendor's address, with the same {names}. */
  vendorPath: z
    .string()
    .transform((value) => value.replace(/^\//, ''))
    .refine(isVendorPath, 'has a part that is no plain text and no {name}'),
  params: z.record(z.string().regex(/^[A-Za-z_$][\w.$[\]-]{0,63}$/, 'is no name of a parameter'), field).default({}),
  pairs: z
    .array(z.strictObject({ from: short, to: short, together: z.boolean() }))
    .max(20)
    .default([]),
  modes: z
    .array(z.strictObject({ param: short, value: z.string(), defaults: z.record(z.string(), z.string()) }))
    .max(20)
    .default([]),
  window: window.optional(),
  rowsMax: count.default(1),
  /**
   * It changes nothing at the vendor. Absent: only GET does not. Another operation is charged also if its caller
   * leaves.
   */
  readOnly: z.boolean().optional(),
  body: schema.optional(),
  bodyAs: z.enum(['json', 'form', 'list']).default('json'),
  answer: schema.optional(),
  answers: z
    .array(z.string().regex(/^[a-z]+\/(?:\*|[\w.+-]+)$/, 'must be a media type'))
    .min(1)
    .max(20)
    .default(['application/json']),
  example: z
    .unknown()
    .refine((value) => (JSON.stringify(value) ?? '').length <= EXAMPLE_CHARS_MAX, 'is too large')
    .optional(),
  counts: z.strictObject({ row: counted.optional(), metered: counted.optional() }).default({}),
  bytesMax: count.max(64 * 1024 * 1024).optional(),
  /** Replaces the vendor's timeouts for the first byte and the whole answer. */
  timeoutSeconds: count.max(3_600).optional(),
  pageToken: z.strictObject({ param: short, path: short }).optional(),
  tool: z
    .strictObject({
      name: z
        .string()
        .regex(/^[a-z][a-z0-9_]{0,63}$/)
        .optional(),
      advice: sentence.optional(),
    })
    .optional(),
})

const product = z.strictObject({
  title: short,
  description: sentence.default(''),
  /** Where it comes from, such as a preset or a document's title. */
  source: short.optional(),
  operations: z.record(
    z
      .string()
      .regex(/^[a-z0-9][a-z0-9_-]*(?:\/[a-z0-9_{}-]+)*$/, 'must be lower-case letters, digits, "_", "-" and "/"')
      .max(60),
    operation,
  ),
})

/** Every process reads the whole catalog, so its size is bounded. */
const PRODUCT_CHARS_MAX = 2_000_000

const products = z.record(
  z
    .string()
    .regex(/^[a-z][a-z0-9-]{1,38}$/, 'must be 2 to 39 lower-case letters, digits and "-", beginning with a letter'),
  product.refine(
    (one) => JSON.stringify(one).length <= PRODUCT_CHARS_MAX,
    `is larger than ${PRODUCT_CHARS_MAX / 1_000_000} MB: choose fewer operations`,
  ),
)

type Products = z.output<typeof products>
type Operation = z.output<typeof operation>

interface Priced {
  readonly routes: readonly { readonly protocol: string }[]
  readonly pricing: Pricing
  readonly cache?: unknown
}

/** Reserved ids: paths of built-in endpoints below `/v1`, and names for all data of a kind. */
const TAKEN: ReadonlySet<string> = new Set([
  ...ALL_ENDPOINTS.flatMap(({ path, aliases }) => [path, ...aliases].map((one) => one.split('/')[2] ?? '')),
  'socialapi',
  'siteanalytics',
  'mcp',
  'products',
])

/** Problems of products that their schemas do not find. */
function productsProblems(given: Products, endpoints: Readonly<Record<string, Priced>>): Problem[] {
  return Object.entries(given).flatMap(([id, { operations }]) => {
    const problems: Problem[] = []
    if (TAKEN.has(id)) problems.push({ path: ['products', id], message: `"${id}" is a name of the gateway itself` })
    const routes = new Set<string>()
    for (const [name, one] of Object.entries(operations)) {
      const uid = `${id}/${name}`
      const place = ['products', id, 'operations', name]
      const add = (message: string, ...path: string[]) => problems.push({ path: [...place, ...path], message })
      const priced = Object.hasOwn(endpoints, uid) ? endpoints[uid] : undefined
      if (!priced) add(`has no price: "endpoints" has no "${uid}"`)
      else if (priced.routes.some((route) => route.protocol !== one.protocol))
        problems.push({
          path: ['endpoints', uid, 'routes'],
          message: `must have the protocol "${one.protocol}" of its operation`,
        })
      const shape = one.route.replaceAll(/\{\w+\}/g, '{}')
      if (routes.has(shape)) add(`another operation has the same address`, 'route')
      routes.add(shape)
      for (const problem of operationProblems(one)) add(problem.message, ...problem.path.map(String))
      if (priced) for (const problem of priceProblems(one, priced)) add(problem.message, ...problem.path.map(String))
    }
    return problems
  })
}

const namesIn = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)

function operationProblems({ route, vendorPath, params, body, pageToken }: Operation): Problem[] {
  const problems: Problem[] = []
  const inPath = namesIn(route)
  if (new Set(inPath).size !== inPath.length) problems.push({ path: ['route'], message: 'has a name twice' })
  for (const name of inPath)
    if (params[name]?.in !== 'path')
      problems.push({ path: ['params'], message: `must describe {${name}}, with "in": "path"` })
  for (const name of namesIn(vendorPath))
    if (!Object.hasOwn(params, name))
      problems.push({ path: ['vendorPath'], message: `has {${name}}, which is not a parameter` })
  for (const [name, one] of Object.entries(params)) {
    const add = (message: string) => problems.push({ path: ['params', name], message })
    if (one.in === 'path' && !inPath.includes(name)) add('is in the path, but the route does not have it')
    if (one.in === 'header' && (RESERVED_HEADERS.test(name.toLowerCase()) || !/^[\w-]+$/.test(name)))
      add('is a header that callers cannot set')
  }
  if (body && /^(?:GET|DELETE) /.test(route)) problems.push({ path: ['body'], message: 'does not go with this method' })
  if (pageToken && params[pageToken.param]?.kind !== 'text')
    problems.push({ path: ['pageToken', 'param'], message: 'must be a parameter of the kind "text"' })
  return problems
}

const COUNTED = ['row', 'metered'] as const satisfies readonly CountedUnit[]

/** For each counted unit: the maximum count of any answer, or why no maximum can be proved. */
function boundsOf(one: Operation): Partial<Record<CountedUnit, number | string>> {
  return Object.fromEntries(
    COUNTED.flatMap((unit) => {
      const rule = one.counts[unit]
      if (!rule) return []
      const read = readExpression(rule.expression)
      return [[unit, typeof read === 'string' ? read : boundOf(read, scopeOf(one))]]
    }),
  )
}

/** The proved maximums by operation; none for an invalid product. */
export function countBounds({ operations }: { operations: Readonly<Record<string, unknown>> }) {
  const bounds: Record<string, Record<string, number>> = {}
  for (const [name, given] of Object.entries(operations)) {
    const read = operation.safeParse(given)
    const proved = Object.entries(read.success ? boundsOf(read.data) : {}).filter(([, one]) => typeof one === 'number')
    bounds[name] = Object.fromEntries(proved) as Record<string, number> // Only numbers are left.
  }
  return bounds
}

/** Units for which the answer must be parsed: an answer that is passed through cannot be counted. */
function priceProblems(one: Operation, { pricing, cache }: Priced): Problem[] {
  const problems: Problem[] = []
  const isPriced = (unit: 'row' | 'metered' | 'byte') => pricing.tiers.some((tier) => tier[unit] !== undefined)
  const isJson = one.answers.every(isJsonType)
  const bounds = boundsOf(one)
  for (const unit of COUNTED) {
    const bound = bounds[unit]
    if (bound === undefined) {
      if (isPriced(unit) && one.protocol === 'http-api')
        problems.push({
          path: ['counts', unit],
          message: `is missing: the price is by the ${unit === 'row' ? 'row' : 'unit'}`,
        })
      continue
    }
    if (typeof bound === 'string') problems.push({ path: ['counts', unit, 'expression'], message: bound })
    if (!isJson) problems.push({ path: ['counts', unit], message: 'needs answers in JSON' })
  }
  if (isPriced('byte') && one.bytesMax === undefined)
    problems.push({ path: ['bytesMax'], message: 'is missing: the price is by the byte, and so many are held for' })
  if (one.pageToken && cache !== undefined)
    problems.push({ path: ['pageToken'], message: 'does not go with a cache, which all accounts share' })
  if (one.pageToken && !isJson) problems.push({ path: ['pageToken'], message: 'needs answers in JSON' })
  return problems
}

/** The scope of an expression before there is a request: only schemas. */
function scopeOf({
  params,
  body,
  answer,
}: Pick<Operation, 'params' | 'body' | 'answer'>): Record<'request' | 'answer', Known> {
  return { request: requestSchema(params, body), answer: { schema: answer ?? {}, root: answer } }
}

function specsOf(given: Products): DataEndpointSpec[] {
  return Object.entries(given).flatMap(([id, { operations }]) =>
    Object.entries(operations).map(([name, one]): DataEndpointSpec => {
      const [method, path] = one.route.split(' ') as [DataEndpointSpec['method'], string] // As the check has seen.
      const {
        title,
        description,
        returns,
        params,
        vendorPath,
        window: days,
        pairs,
        modes,
        rowsMax,
        body,
        answer,
        tool,
      } = one
      const uid = `${id}/${name}`
      return {
        id: uid,
        product: uid,
        restriction: id,
        protocol: one.protocol,
        sells: 'data',
        tag: 'Products',
        surface: 'native',
        method,
        path: `/v1/${id}${path === '/' ? '' : path}`,
        aliases: [],
        title,
        vendorPath,
        pairs,
        modes,
        rowsMax,
        params,
        description: description === '' ? title : description,
        returns: returns ?? 'What the source answers, as it is.',
        ...(days ? { window: withoutUndefined(days) } : {}),
        ...(body ? { body: { ...body, examples: body.examples ?? [sampleOf(body)] } } : {}),
        ...(answer ? { answer } : {}),
        ...(one.answers.every(isJsonType) ? {} : { gives: one.answers.find((type) => !isJsonType(type)) ?? '' }),
        tool: {
          name: tool?.name ?? uid.replaceAll(/[^a-z0-9]+/g, '_'),
          ...(tool?.advice ? { advice: tool.advice } : {}),
        },
        ...(one.protocol === 'http-api' ? { operation: factsOf(one, method) } : {}),
      }
    }),
  )
}

const withoutUndefined = <T extends object>(given: T) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>
  } // Members that are not there are left out.

function factsOf(operation: Operation, method: string): OperationFacts {
  const { counts, bytesMax, answers, example, bodyAs, pageToken, timeoutSeconds } = operation
  const { readOnly = method === 'GET' } = operation
  const rules = COUNTED.flatMap((unit) => {
    const rule = counts[unit]
    const expression = rule && readExpression(rule.expression)
    // The check has read it.
    return rule && typeof expression === 'object' ? [[unit, { expression, least: rule.least }] as const] : []
  })
  return { counts: Object.fromEntries(rules), bytesMax, answers, example, bodyAs, pageToken, timeoutSeconds, readOnly }
}

export const productSection: CatalogSection = {
  name: 'products',
  schema: products.default({}),
  check: ({ products: all, endpoints }) => productsProblems(all, endpoints),
  parts: ['*'],
  review: reviewProducts,
  endpoints: ({ products: all = {} }) => specsOf(all),
}
