// The routing preference of a call: which routes it may take and in which order, from its body, headers, key and rules
// of the catalog. Calls without any of these have none.

import * as z from 'zod'
import type { Principal } from '../admission/api-key.ts'
import type { CatalogDocument, Route, Vendor } from '../catalog/document.ts'
import type { EndpointSpec } from '../catalog/endpoint.ts'
import {
  PROVIDER_MEMBERS,
  type ProviderBody,
  providerBody,
  type Sort,
  takesProvider,
} from '../catalog/preference-body.ts'
import type { RequestHeaders } from '../catalog/query.ts'
import type { RoutingRule } from '../catalog/routing-rules.ts'
import type { Product } from '../catalog/store.ts'
import { formatCredits, parseCredits } from '../kernel/credits.ts'
import { Fault, invalid } from '../kernel/fault.ts'
import { edited, isObject, type JsonText, text } from '../kernel/json.ts'
import { rateFor } from '../meter/charge.ts'
import { UNIT_NAMES, type Unit, unitRow } from '../meter/kind.ts'
import { readBody } from '../protocols/check.ts'
import type { PaidRequestFacts } from '../protocols/protocol.ts'
import type { Vendors } from './vendor.ts'

export interface Preference {
  readonly rules: readonly Rule[]
  /** Vendors that come first, and the source of that rule. */
  readonly order: readonly { readonly vendor: string; readonly by: string }[]
  readonly sort?: Sort | undefined
  /** Vendors beyond these bounds come last. */
  readonly latencyMsMax?: number | undefined
  readonly throughputMin?: number | undefined
  /** No other candidate than the first is tried. */
  readonly isAlone: boolean
  /** Equal for calls with the same preference. */
  readonly text: string
}

interface Rule {
  /** The source of the rule, as the beginning of a sentence. */
  readonly name: string
  /** The field or header. Absent: the key's restriction. */
  readonly param?: string | undefined
  allows(route: Route, about: About): boolean
}

interface About {
  readonly vendor: Vendor
  readonly product: Product
  readonly paidRequest: Pick<PaidRequestFacts, 'clientFormat' | 'worst' | 'price' | 'unknown'>
  readonly json: JsonText
}

/** What a call may say beside its body. */
const ROUTING_HEADERS = ['x-tollgate-vendors', 'x-tollgate-regions', 'x-tollgate-max-price'] as const
/** Other models to ask. */
export const FALLBACK = 'x-tollgate-fallback'
export const CHOICE_HEADERS = [FALLBACK, ...ROUTING_HEADERS]
export const CHOICE_MEMBERS = ['provider', 'models'] as const
const [VENDORS, REGIONS, MAX_PRICE] = ROUTING_HEADERS
const NAMES_MAX = 50

interface Said {
  readonly json: JsonText
  readonly spec: EndpointSpec
  readonly principal: Pick<Principal, 'routing'>
  readonly headers?: RequestHeaders | undefined
  /** Rules of the catalog that match the call. */
  readonly ruled?: readonly RoutingRule[] | undefined
}

/** The headers about models and vendors, which are part of what is asked. */
export function routingHeaders(headers: RequestHeaders): string[] {
  return CHOICE_HEADERS.flatMap((name) => {
    const value = headers[name]
    return value === undefined ? [] : [`${name}: ${value}`]
  })
}

/** Whether a call says something of vendors or other models. Most do not, and are asked no more about it. */
export function saysChoice({ json, headers }: Pick<Said, 'json' | 'headers'>): boolean {
  for (const name of CHOICE_MEMBERS) if (json.member(name)) return true
  if (headers) for (const name of CHOICE_HEADERS) if (headers[name] !== undefined) return true
  return false
}

/** Callers may choose vendors and other models, unless the catalog or the key says that they may not. */
export function requireChoice({ json, spec, principal, headers }: Choosing, { routing }: CatalogDocument): void {
  const byCatalog = routing?.callerChoice === false
  if (!byCatalog && principal.routing?.callerChoice !== false) return // The usual case.
  const fields = [...(takesProvider(spec) ? ['provider'] : []), ...(spec.sells === 'text' ? ['models'] : [])]
  const param =
    fields.find((name) => json.member(name) && json.value[name] !== null) ??
    CHOICE_HEADERS.find((name) => headers?.[name] !== undefined)
  if (param === undefined) return
  const who = byCatalog
    ? 'This gateway does not let callers choose vendors or fallback models ("routing.callerChoice" in its catalog is false)'
    : 'This key may not choose vendors or fallback models ("routing.callerChoice" of the key is false)'
  throw new Fault('access_denied', { message: `${who}. Leave out "${param}".`, param })
}

type Choosing = Pick<Said, 'json' | 'spec' | 'principal' | 'headers'>

/** Undefined, at no cost, if the call has no preference. */
export function readPreference(said: Said, document: CatalogDocument): Preference | undefined {
  const { json, spec, principal, headers, ruled } = said
  const provider = isForUs(json, spec, document) ? json : undefined
  const [vendors, regions, price] = headers ? [headers[VENDORS], headers[REGIONS], headers[MAX_PRICE]] : []
  const own = principal.routing
  if (!provider && vendors === undefined && regions === undefined && price === undefined && !own && !ruled)
    return undefined
  const body = provider ? readProvider(provider) : {}
  const rules = [
    ...(own?.vendors ? [byVendor('The restriction of this key to vendors', own.vendors)] : []),
    ...(own?.regions ? [byRegion('The restriction of this key to regions', own.regions)] : []),
    ...(own?.maxPrice ? [byPrice('The highest price of this key', own.maxPrice)] : []),
    ...(ruled ?? []).flatMap(ofCatalog),
    ...(vendors === undefined ? [] : [byVendor(`"${VENDORS}"`, listIn(VENDORS, vendors), VENDORS)]),
    ...(regions === undefined ? [] : [byRegion(`"${REGIONS}"`, listIn(REGIONS, regions), REGIONS)]),
    ...(price === undefined ? [] : [byPrice(`"${MAX_PRICE}"`, pricesIn(price), MAX_PRICE)]),
    ...rulesOf(body, document),
  ]
  const preferring = ruled?.find(({ prefer }) => prefer)
  const by = (said: string, names: readonly string[] | null = []) =>
    (names ?? []).map((vendor) => ({ vendor, by: said }))
  return {
    rules,
    order: [...by('"provider.order"', body.order), ...by(`the rule "${preferring?.name}"`, preferring?.prefer)],
    sort: body.sort ?? undefined,
    latencyMsMax: body.preferred_max_latency == null ? undefined : body.preferred_max_latency * 1000,
    throughputMin: body.preferred_min_throughput ?? undefined,
    isAlone: body.allow_fallbacks === false && !body.order,
    text: JSON.stringify([own, ruled, vendors, regions, price, body]),
  }
}

/** A route that an operator's rule excludes is denied with 403, like a route that the key may not use. */
function ofCatalog({ name, only, ignore, regions }: RoutingRule): Rule[] {
  const said = `The rule "${name}" of this gateway`
  return [
    ...(only ? [byVendor(said, only)] : []),
    ...(ignore ? [{ name: said, allows: ({ vendor }: Route) => !ignore.some((one) => isNamed(vendor, one)) }] : []),
    ...(regions ? [byRegion(said, regions)] : []),
  ]
}

/** Undefined: none of the rules is for this call. */
export function matchingRules(
  rules: readonly RoutingRule[],
  caller: {
    readonly principal: Pick<Principal, 'keyId' | 'firstKeyId'>
    readonly headers?: RequestHeaders | undefined
    readonly labels: Readonly<Record<string, string>> | undefined
    readonly model: unknown
  },
): readonly RoutingRule[] | undefined {
  const { principal, headers: sent, labels, model } = caller
  const found = rules.filter(
    ({ when: { keys, labels: labelled, headers, models } }) =>
      (!keys || keys.some((key) => key === principal.keyId || key === principal.firstKeyId)) &&
      Object.entries(labelled ?? {}).every(([name, value]) => labels?.[name] === value) &&
      Object.entries(headers ?? {}).every(([name, value]) => sent?.[name] === value) &&
      (!models || models.some((one) => one === model)),
  )
  return found.length === 0 ? undefined : found
}

/** Whether the body has a `provider` that is not for the model's vendor. */
function isForUs(json: JsonText, spec: EndpointSpec, { models }: CatalogDocument): boolean {
  if (!takesProvider(spec) || !json.member('provider')) return false
  const named = text(json.value.model) ?? ''
  const model = Object.hasOwn(models, named) ? models[named] : undefined
  return !(model?.type === 'text' && model.traits.vendorRouting)
}

/** The body as it would be without what is only for the gateway. */
export function withoutProvider(json: JsonText, spec: EndpointSpec, document: CatalogDocument): JsonText {
  if (!isForUs(json, spec, document)) return json
  return edited(json, { remove: ['provider'] })
}

function readProvider(json: JsonText): ProviderBody {
  const { provider } = readBody(WRAPPED, json)
  for (const [path, known] of Object.entries(PROVIDER_MEMBERS)) {
    const inside = path
      .split('.')
      .reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), json.value)
    const unknown = isObject(inside) ? Object.keys(inside).find((name) => !known.includes(name)) : undefined
    if (unknown !== undefined) {
      const at = `${path}.${unknown}`
      throw invalid(`"${at}" is not supported here; "${path}" accepts ${known.join(', ')}.`, at)
    }
  }
  return provider ?? {}
}

const WRAPPED = z.looseObject({ provider: providerBody.nullish() })

function rulesOf(body: ProviderBody, document: CatalogDocument): Rule[] {
  const rules: Rule[] = []
  if (body.only) rules.push(byVendor('"provider.only"', body.only, 'provider.only'))
  if (body.order && body.allow_fallbacks === false)
    rules.push(byVendor('"provider.order"', body.order, 'provider.order'))
  const { ignore } = body
  if (ignore) rules.push(rule('ignore', ({ vendor }) => !ignore.some((name) => isNamed(vendor, name))))
  if (body.regions) rules.push(byRegion('"provider.regions"', body.regions, 'provider.regions'))
  const { quantizations } = body
  if (quantizations)
    rules.push(rule('quantizations', ({ quantization = 'unknown' }) => quantizations.includes(quantization)))
  if (body.data_collection === 'deny')
    rules.push(rule('data_collection', (_, { vendor }) => vendor.dataPolicy !== undefined))
  if (body.zdr) rules.push(rule('zdr', (_, { vendor }) => vendor.dataPolicy === 'zero-retention'))
  if (body.require_parameters) rules.push(rule('require_parameters', takesAll))
  if (body.max_price)
    rules.push(byPrice('"provider.max_price"', inCredits(body.max_price, document), 'provider.max_price'))
  return rules
}

const rule = (field: keyof ProviderBody & string, allows: Rule['allows']): Rule => {
  const param = `provider.${field}`
  return { name: `"${param}"`, param, allows }
}

/**
 * A name stands for all vendors whose names go on with a slash. Those of a test account are named as the ones that they
 * simulate.
 */
export function isNamed(vendor: string, name: string): boolean {
  const plain = vendor.startsWith('test:') ? vendor.slice('test:'.length) : vendor
  const sought = name.toLowerCase()
  return plain === sought || plain.startsWith(`${sought}/`)
}

const byVendor = (name: string, vendors: readonly string[], param?: string): Rule => ({
  name,
  param,
  allows: ({ vendor }) => vendors.some((one) => isNamed(vendor, one)),
})

/** A vendor that names no region is in none. "eu" also stands for "eu-central-1". */
const byRegion = (name: string, regions: readonly string[], param?: string): Rule => ({
  name,
  param,
  allows: (_, { vendor: { region } }) =>
    region !== undefined &&
    regions.some((one) => region === one.toLowerCase() || region.startsWith(`${one.toLowerCase()}-`)),
})

/**
 * Routes in the same format get every field, except fields that only the format's vendor knows and fields that the
 * model rejects.
 */
function takesAll(
  route: Route,
  { vendor, product, paidRequest: { clientFormat, unknown = [] }, json }: About,
): boolean {
  if (clientFormat !== undefined && route.protocol !== clientFormat) return false
  const dropped = 'dropParams' in product.traits ? product.traits.dropParams : []
  return (unknown.length === 0 || vendor.passesUnknown) && !dropped.some((name) => json.member(name))
}

/** Credits by unit, for as many of it as the catalog's prices are for. */
type Ceilings = Readonly<Partial<Record<Unit, string | undefined>>>

const byPrice = (name: string, ceilings: Ceilings, param?: string): Rule => ({
  name,
  param,
  allows: (_, { product: { pricing }, paidRequest: { worst, price } }) =>
    UNIT_NAMES.every((unit) => {
      const most = ceilings[unit] === undefined ? undefined : parseCredits(ceilings[unit])
      if (most === undefined) return true
      return (rateFor(unit, pricing, worst, price) ?? 0n) <= most * BigInt(1_000_000 / unitRow(unit).per)
    }),
})

const DOLLAR_UNITS = { prompt: 'input', completion: 'output', request: 'call', image: 'image' } as const
const DECIMALS = 12

function inCredits(prices: NonNullable<ProviderBody['max_price']>, { routing }: CatalogDocument): Ceilings {
  const perDollar = routing?.creditsPerDollar
  if (perDollar === undefined)
    throw invalid(
      `"provider.max_price" is in dollars, and this gateway has no rate from dollars to credits. Give the price in credits, in the header "${MAX_PRICE}".`,
      'provider.max_price',
    )
  const credits = Object.entries(DOLLAR_UNITS).flatMap(([name, unit]) => {
    const given = prices[name as keyof typeof DOLLAR_UNITS] // Its own names.
    if (given === undefined || given === null) return []
    const [whole = '0', part = ''] = String(given).split('.')
    const micros = (BigInt(whole + part.padEnd(DECIMALS, '0')) * perDollar) / 10n ** BigInt(DECIMALS)
    return [[unit, formatCredits(micros)]]
  })
  return Object.fromEntries(credits)
}

function listIn(header: string, value: string): string[] {
  const names = value.split(',').map((name) => name.trim())
  if (names.length > NAMES_MAX || names.some((name) => name === ''))
    throw invalid(`"${header}" must be up to ${NAMES_MAX} names, separated by commas.`, header)
  return names
}

/** `input=300, output=1500`. */
function pricesIn(value: string): Ceilings {
  const prices = value.split(',').map((one) => one.split('=').map((part) => part.trim()))
  for (const [unit = '', amount] of prices)
    if (!UNIT_NAMES.some((name) => name === unit) || (parseCredits(amount) ?? -1n) < 0n)
      throw invalid(
        `"${MAX_PRICE}" must be credits by unit, such as "input=300, output=1500": for a million tokens, or one of anything else.`,
        MAX_PRICE,
      )
  return Object.fromEntries(prices)
}

/** The routes that pass, and in words what each rule left. Throws when it leaves none. */
export function allowedRoutes(
  pool: readonly Route[],
  { rules }: Pick<Preference, 'rules'>,
  about: Omit<About, 'vendor'> & { readonly name: string },
  { vendors }: CatalogDocument,
): { readonly routes: readonly Route[]; readonly decided: readonly string[] } {
  const decided: string[] = []
  let routes = pool
  for (const { name, param, allows } of rules) {
    // The check of the document has seen that there is one.
    const left = routes.filter((route) => allows(route, { ...about, vendor: vendors[route.vendor]! }))
    if (left.length === 0) throw excluded(`${name} leaves no vendor for "${about.name}".`, param)
    if (left.length < routes.length) {
      const numbers = (some: readonly Route[]) =>
        some.map((route) => about.product.routes.indexOf(route) + 1).join(', ')
      const out = routes.filter((route) => !left.includes(route))
      decided.push(`${name} rules out route ${numbers(out)} and leaves route ${numbers(left)}.`)
    }
    routes = left
  }
  return { routes, decided }
}

const EXCLUDED = 'no vendor is left'

function excluded(message: string, param: string | undefined): Fault {
  const internal = { why: EXCLUDED }
  return param === undefined
    ? new Fault('access_denied', { message, internal })
    : new Fault('request_invalid', { message, param, internal })
}

/** Whether a model was passed over because rules leave it no vendor. */
export const isExcluded = (error: unknown): boolean =>
  error instanceof Fault && error.details.internal?.why === EXCLUDED

type Figures = Pick<Vendors, 'latencyMs' | 'tokensPerSecond'> | undefined

interface Ranked {
  /** A smaller number is better, and the first that differs decides. */
  readonly ranks: readonly number[]
  /** Why it comes where it does, in words for callers too: vendors' prices are not in them. */
  readonly why: readonly string[]
}

/** What comes before the catalog's own order; undefined: the preference says nothing about it. */
export function preferredRank(
  { order, sort, latencyMsMax, throughputMin }: Preference,
  figures: Figures,
  costOf: (route: Route) => number,
): ((route: Route) => Ranked) | undefined {
  if (order.length === 0 && sort === undefined && latencyMsMax === undefined && throughputMin === undefined)
    return undefined
  return (route) => {
    const { vendor } = route
    const place = order.findIndex((one) => isNamed(vendor, one.vendor))
    const named = order[place]
    // A vendor without a measurement comes first, so that it gets measured.
    const [latency, throughput] = [figures?.latencyMs(vendor), figures?.tokensPerSecond(vendor)]
    const isSlow = latencyMsMax !== undefined && (latency ?? 0) > latencyMsMax
    const isScant = throughputMin !== undefined && throughput !== undefined && throughput < throughputMin
    const sorted = {
      price: () => costOf(route),
      latency: () => latency ?? 0,
      throughput: () => -(throughput ?? Number.POSITIVE_INFINITY),
    }
    return {
      ranks: [named ? place : order.length, isSlow || isScant ? 1 : 0, sort ? sorted[sort]() : 0],
      why: [
        ...(named ? [`named by ${named.by}`] : []),
        ...(isSlow ? ['slower than "provider.preferred_max_latency"'] : []),
        ...(isScant ? ['slower than "provider.preferred_min_throughput"'] : []),
        ...(sort ? [SORT_WORDS[sort]({ cost: costOf(route), latency, throughput })] : []),
      ],
    }
  }
}

const SORT_WORDS: Readonly<
  Record<
    Sort,
    (of: {
      readonly cost: number
      readonly latency: number | undefined
      readonly throughput: number | undefined
    }) => string
  >
> = {
  price: ({ cost }) => (cost === Number.POSITIVE_INFINITY ? 'by price: unknown' : 'by price'),
  latency: ({ latency }) => `by latency: ${latency === undefined ? 'not measured yet' : msWords(latency)}`,
  throughput: ({ throughput }) =>
    `by throughput: ${throughput === undefined ? 'not measured yet' : `${Math.round(throughput)} tokens/s`}`,
}

const msWords = (ms: number) => (ms === Number.POSITIVE_INFINITY ? 'it never answered' : `${Math.round(ms)} ms`)
