// Bridges: how a vendor with an API of its own serves our endpoints. A bridge is part of the vendor's entry. For each
// endpoint it has the request to send and a template for the answer. A parameter that the bridge does not pass on is
// rejected, never silently dropped.
import * as z from 'zod'
import type { Pricing } from '../meter/price.ts'
import { type DataEndpointSpec, isDataEndpoint } from './endpoint.ts'
import { boundOf, type Expression, readExpression, requestSchema } from './expression.ts'
import { ENDPOINTS } from './index.ts'

export type Template = z.core.util.JSONType
/**
 * Any JSON. Not `z.json()`: the OpenAPI document would have a schema that refers to itself, which generators reject.
 */
const json = z.custom<Template>((value) => value !== undefined, 'is missing')

/** `$.data.visits` is below the answer, `@.visits` below the row. */
export const PATH = /^[$@](?:\.\w+)*$/

const path = z
  .string()
  .max(300)
  .regex(
    /^[\w.-]+(?:\/(?:[\w.-]+|\{\w+\}))*$/,
    'must be a path below the address of the vendor, with {names} as whole parts',
  )
  .refine((value) => !value.split('/').includes('..'), 'may not climb')
const query = z.record(z.string().regex(/^[\w.-]{1,64}$/, 'is no name of a parameter'), json).default({})
const names = z.array(z.string().max(64)).max(50).default([])

/** A request that several endpoints may share. */
const request = z.strictObject({ path, query, ignores: names })

const endpoint = z.strictObject({
  /** One of `requests`. */
  request: z.string(),
  /** Overrides those of the request. */
  query,
  /** Parameters that do not change this answer. */
  ignores: names,
  /** The template of the answer to callers. */
  answer: json,
  /** The units that the vendor bills for its answer, in CEL over `request` and `answer`. */
  metered: z.string().min(1).optional(),
  /** How the answer differs from the endpoint's description, for operators. */
  note: z.string().max(300).optional(),
})

export const vendorBridge = z.strictObject({
  /** A free address to test the credential. */
  check: path.optional(),
  /** The path of an error text in an answer with a success status, such as `$.meta.error_message`. */
  error: z.string().regex(PATH, 'must be a path such as $.meta.error_message').optional(),
  /** Errors with one of these texts mean that there are no data. */
  noData: z.array(z.string().min(1).max(100)).max(10).default([]),
  requests: z.record(z.string().max(40), request),
  /** By the id of the endpoint. */
  endpoints: z.record(z.string().max(100), endpoint),
})

export type VendorBridge = z.output<typeof vendorBridge>

/** The resolved bridge of one endpoint. */
export interface Bridge {
  readonly path: string
  readonly query: Readonly<Record<string, Template>>
  readonly answer: Template
  /** The parameters that are passed on or can be ignored. */
  readonly carries: ReadonlySet<string>
  readonly metered?: Expression | undefined
}

const known = new WeakMap<VendorBridge['endpoints'][string], Bridge>()

/** Undefined if the vendor does not serve this endpoint. Computed once per catalog version. */
export function bridgeOf({ requests, endpoints }: VendorBridge, uid: string): Bridge | undefined {
  const entry = Object.hasOwn(endpoints, uid) ? endpoints[uid] : undefined
  const shared = entry && Object.hasOwn(requests, entry.request) ? requests[entry.request] : undefined
  if (!entry || !shared) return undefined
  let made = known.get(entry)
  if (!made) {
    const sent = { ...shared.query, ...entry.query }
    const metered = entry.metered === undefined ? undefined : readExpression(entry.metered)
    made = {
      path: shared.path,
      query: sent,
      answer: entry.answer,
      carries: new Set([...shared.ignores, ...entry.ignores, ...namesIn(shared.path), ...namesIn(sent)]),
      ...(typeof metered === 'object' ? { metered } : {}),
    }
    known.set(entry, made)
  }
  return made
}

// Names in templates.

/** Names besides parameters that templates may use, and the parameters from which they are computed. */
const DERIVED: Readonly<Record<string, readonly string[]>> = {
  firstDay: ['from', 'to'],
  lastDay: ['from', 'to'],
  firstMonth: ['from', 'to'],
  lastMonth: ['from', 'to'],
  countryCode: ['country'],
}

export const NAME = /\{(\w+)\}/g

const OPERATORS: Readonly<Record<string, readonly string[]>> = {
  $of: ['is'],
  $offset: ['by'],
  $each: ['as'],
  $group: ['key', 'as'],
  $sum: [],
  $mean: ['by'],
  $last: [],
  $count: [],
  $first: [],
  $country: [],
}

const isObject = (value: Template): value is { [name: string]: Template } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const operatorOf = (template: { [name: string]: Template }) =>
  Object.keys(template).find((name) => name.startsWith('$'))

/** Every parameter that a template uses. */
function namesIn(template: Template): string[] {
  if (typeof template === 'string')
    return [...template.matchAll(NAME)].flatMap(([, name = '']) => DERIVED[name] ?? [name])
  if (Array.isArray(template)) return template.flatMap(namesIn)
  if (!isObject(template)) return []
  const asked = [template.$of, template.$offset].filter((name) => typeof name === 'string')
  return [...asked, ...Object.keys(template).flatMap(namesIn), ...Object.values(template).flatMap(namesIn)]
}

const DEPTH_MAX = 12
const TEMPLATE_CHARS_MAX = 5_000

/** What is wrong with a template, in a sentence. */
function templateProblem(template: Template, depth = 0): string | undefined {
  if (depth > DEPTH_MAX) return 'is nested too deep'
  if (typeof template === 'string')
    return /^[$@]/.test(template) && !PATH.test(template)
      ? `has "${template}", which is not a path such as $.data.visits`
      : undefined
  if (Array.isArray(template)) return firstOf(template, (one) => templateProblem(one, depth + 1))
  if (!isObject(template)) return undefined
  const operator = operatorOf(template)
  if (operator !== undefined) {
    const others = Object.keys(template).filter((name) => name !== operator)
    const allowed = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined
    if (!allowed) return `has "${operator}"; there are ${Object.keys(OPERATORS).join(', ')}`
    if (others.some((name) => !allowed.includes(name))) return `has "${operator}" with ${others.join(', ')}`
    if (operator === '$of' && !isObject(template.is ?? null)) return 'has "$of" without "is"'
  }
  return firstOf(Object.values(template), (one) => templateProblem(one, depth + 1))
}

function firstOf<T, R>(all: readonly T[], find: (one: T) => R | undefined): R | undefined {
  for (const one of all) {
    const found = find(one)
    if (found !== undefined) return found
  }
  return undefined
}

// The check of the catalog.

const SPECS: ReadonlyMap<string, DataEndpointSpec> = new Map(
  ENDPOINTS.filter(isDataEndpoint).flatMap((spec) =>
    spec.protocol === 'site-analytics' ? [[spec.product, spec]] : [],
  ),
)

interface Problem {
  readonly path: readonly string[]
  readonly message: string
}

export function bridgeProblems(bridge: VendorBridge): Problem[] {
  return Object.entries(bridge.endpoints).flatMap(([uid, entry]) => {
    const at = ['endpoints', uid]
    const spec = SPECS.get(uid)
    const made = bridgeOf(bridge, uid)
    if (!spec) return [{ path: at, message: 'is not an endpoint of site analytics' }]
    if (!made) return [{ path: [...at, 'request'], message: `there is no request "${entry.request}"` }]
    const problems: Problem[] = []
    const unknown = [...made.carries, ...namesIn(entry.answer)].find((name) => !Object.hasOwn(spec.params, name))
    if (unknown !== undefined)
      problems.push({ path: at, message: `names "${unknown}", which is not a parameter of this endpoint` })
    const isLong = JSON.stringify(entry.answer).length > TEMPLATE_CHARS_MAX
    const wrong = isLong ? 'is too long' : templateProblem([entry.answer, made.query])
    if (wrong !== undefined) problems.push({ path: [...at, 'answer'], message: wrong })
    if (entry.metered !== undefined) {
      const read = readExpression(entry.metered)
      const bound =
        typeof read === 'string' ? read : boundOf(read, { request: requestSchema(spec.params, undefined), answer: {} })
      if (typeof bound === 'string') problems.push({ path: [...at, 'metered'], message: bound })
    }
    return problems
  })
}

interface Sold {
  readonly routes: readonly { readonly vendor: string; readonly protocol: string; readonly enabled: boolean }[]
  readonly pricing: Pricing
}

/** For a site-analytics endpoint: each vendor must serve it, and count the units of its price. */
export function routeProblems(
  uid: string,
  { routes, pricing }: Sold,
  vendors: Readonly<Record<string, { readonly bridge?: VendorBridge | undefined }>>,
) {
  const isMetered = pricing.tiers.some((tier) => tier.metered !== undefined)
  return routes.flatMap(({ vendor, protocol, enabled }, at) => {
    if (protocol !== 'site-analytics' || !enabled) return []
    const { bridge } = vendors[vendor] ?? {}
    const made = bridge && bridgeOf(bridge, uid)
    const path = ['routes', at, 'vendor']
    if (bridge && !made) return [{ path, message: `the bridge of "${vendor}" has no "${uid}"` }]
    return isMetered && !made?.metered
      ? [{ path, message: `the price is by the unit ("metered"), and nothing counts what "${vendor}" bills` }]
      : []
  })
}
