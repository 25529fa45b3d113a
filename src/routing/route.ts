// Which routes a request may take, and in which order.

import { createHash } from 'node:crypto'
import type { CatalogDocument, Route, Routing, Vendor } from '../catalog/document.ts'
import { isSandbox } from '../catalog/simulated.ts'
import { isObject } from '../kernel/json.ts'
import type { World } from '../kernel/world.ts'
import { BYOK } from '../ledger/operation.ts'
import type { ProtocolName } from '../meter/kind.ts'
import type { Pricing } from '../meter/price.ts'
import type { PaidRequest, Target } from '../protocols/protocol.ts'
import type { OwnUse } from '../upstream/credentials/byok-keys.ts'
import { type Preference, preferredRank } from './preference.ts'
import type { Vendors } from './vendor.ts'

export interface Candidate {
  /** The route's position in the catalog, from 1. The caller sees it in `x-tollgate-route`. */
  readonly number: number
  readonly vendorName: string
  readonly vendor: Vendor
  readonly target: Target
  /** The name of the target's credential, if the vendor has several. */
  readonly credential?: string
  /** The credentials of a vendor that has several, in the order to try them. */
  readonly credentials?: readonly HeldCredential[]
  /** The vendor's own price, if known. */
  readonly cost?: Pricing | undefined
  /** How long the first token of a stream may take; absent: as long as its headers and its next piece. */
  readonly firstTokenMs?: number | undefined
  /** For a call with the account's own key: the fee that replaces the price. */
  readonly pricing?: Pricing
}

export interface HeldCredential {
  readonly name: string
  readonly secret: string | undefined
}

export interface RouteSources {
  readonly world: World
  /** Where the simulated vendors listen; undefined when they do not run. */
  readonly sandboxUrl: () => string | undefined
  readonly credential: (name: string) => string | undefined
  /** What this process measured of vendors lately. */
  readonly vendors?: Pick<Vendors, 'latencyMs' | 'tokensPerSecond' | 'inFlight'>
}

/** Refuses every connection. Used while the simulated vendors do not run. */
const NOWHERE = 'http://127.0.0.1:9'

export function targetOf(
  route: Route,
  vendor: Vendor,
  uid: string,
  sources: Pick<RouteSources, 'sandboxUrl' | 'credential'>,
): Target {
  const found = vendor.credential === undefined ? undefined : sources.credential(vendor.credential)
  const { baseUrl } = vendor
  const sandbox = isSandbox(baseUrl)
  return {
    protocol: route.protocol,
    baseUrl: sandbox ? baseUrl.replace('sandbox', sources.sandboxUrl() ?? NOWHERE) : baseUrl,
    secret: found ?? (sandbox && vendor.credential !== undefined ? 'sandbox' : undefined),
    simulated: sandbox,
    auth: vendor.auth,
    cloud: vendor.cloud,
    headers: vendor.headers,
    model: route.model ?? uid,
    passesUnknown: vendor.passesUnknown,
    bridge: sandbox ? undefined : vendor.bridge,
  }
}

/**
 * A request with a need takes the routes that serve it, if there are any; a route that serves only certain needs is
 * left to such requests. Routes whose format cannot carry the request are dropped first, so that our own rejection
 * never replaces the fault of a vendor tried earlier.
 */
export function routesFor(
  paidRequest: Pick<PaidRequest, 'clientFormat' | 'needs' | 'offer'> & { refusal?: PaidRequest['refusal'] },
  { routes: all }: { readonly routes: readonly Route[] },
  document: CatalogDocument,
): readonly Route[] {
  const able = carriers(paidRequest, all)
  return paidRequest.offer === undefined ? able : able.filter((route) => offers(route, paidRequest, document))
}

function carriers(
  paidRequest: Pick<PaidRequest, 'clientFormat' | 'needs'> & { refusal?: PaidRequest['refusal'] },
  all: readonly Route[],
): readonly Route[] {
  const routes = all.every((route) => route.enabled) ? all : all.filter((route) => route.enabled)
  if (
    paidRequest.needs === undefined &&
    routes.every((route) => !route.serves && !paidRequest.refusal?.(route.protocol, route.vendor))
  )
    return routes // The usual case.
  const needs = paidRequest.needs ?? []
  const forNeed = routes.filter((route) => needs.some((need) => route.serves?.includes(need)))
  const forAll = routes.filter((route) => !route.serves || route.protocol === paidRequest.clientFormat)
  const pool = forNeed.length > 0 ? forNeed : forAll.length > 0 ? forAll : routes
  const able = pool.filter((route) => paidRequest.refusal?.(route.protocol, route.vendor) === undefined)
  const refused = able.length === 0 && pool[0] && paidRequest.refusal?.(pool[0].protocol, pool[0].vendor)
  if (refused) throw refused
  return able
}

/** Whether the route's vendor has the optional feature that the request needs. */
export function offers(
  route: Pick<Route, 'vendor'>,
  { offer }: Pick<PaidRequest, 'offer'>,
  { vendors }: CatalogDocument,
): boolean {
  return offer === undefined || vendors[route.vendor]?.offers?.includes(offer) === true
}

/**
 * The routes of the `pool`, lower orders first. Within an order, routes in the caller's format come first, then the
 * product's routing decides.
 */
export function routeRequest(
  paidRequest: Pick<PaidRequest, 'product' | 'clientFormat' | 'sent' | 'timeoutMs'>,
  {
    routes,
    routing,
    pool,
    preference,
    session,
    decided,
  }: {
    readonly routes: readonly Route[]
    readonly routing: Routing
    readonly pool: readonly Route[]
    readonly preference?: Preference | undefined
    /** What the caller calls the session, by which a conversation is known. */
    readonly session?: string | undefined
    /** Gets an explanation of the order of routes, if a preference decided it. */
    readonly decided?: ((words: string) => void) | undefined
  },
  document: CatalogDocument,
  sources: RouteSources,
): Candidate[] {
  const ordered =
    pool.length === 1
      ? pool
      : inOrder(
          pool,
          paidRequest.clientFormat,
          rankOf(turnOf(paidRequest, { routing, pool, session }, document), routing, sources),
        )
  const lot = preference && pool.length > 1 ? byPreference(ordered, { routes, preference, decided }, sources) : ordered
  const candidates: Candidate[] = []
  for (const route of lot) {
    const candidate = candidateAt(route, { routes, routing, document, product: paidRequest.product }, sources)
    const { timeoutMs } = paidRequest
    const vendor = timeoutMs === undefined ? candidate.vendor : withDeadline(candidate.vendor, timeoutMs)
    if (vendor === candidate.vendor && !vendor.credentials)
      candidates.push(candidate) // The usual case.
    else {
      const turn = vendor.credentials && turnOf(paidRequest, { routing, pool, session }, document)
      const credentials = turn && heldCredentials(vendor, lotOf(turn, sources), sources)
      candidates.push({ ...candidate, vendor, ...(credentials ? { credentials } : {}) })
    }
  }
  return candidates
}

/** What a candidate follows from besides its route. */
interface Offering {
  readonly routes: readonly Route[]
  readonly routing: Routing
  readonly document: CatalogDocument
  readonly product: string
}

interface Made extends Offering {
  readonly sandboxUrl: string | undefined
  readonly secret: string | undefined
  readonly candidate: Candidate
}

/**
 * Made once for each route of a catalog, and again when its credential or the address of the simulated vendors has
 * changed.
 */
const made = new WeakMap<Route, Made>()

function candidateAt(route: Route, offering: Offering, sources: RouteSources): Candidate {
  const { routes, routing, document, product } = offering
  const vendor = document.vendors[route.vendor]! // The catalog was checked.
  const secret = vendor.credential === undefined ? undefined : sources.credential(vendor.credential)
  const known = made.get(route)
  const isCurrent = known?.document === document && known.routing === routing && known.product === product
  const isSimulated = isCurrent ? known.candidate.target.simulated : isSandbox(vendor.baseUrl)
  const sandboxUrl = isSimulated ? sources.sandboxUrl() : undefined
  if (isCurrent && known.secret === secret && known.sandboxUrl === sandboxUrl) return known.candidate
  const candidate = {
    number: routes.indexOf(route) + 1,
    vendorName: route.vendor,
    vendor,
    target: targetOf(route, vendor, product, sources),
    cost: route.cost,
    firstTokenMs: route.firstTokenMs ?? routing.firstTokenMs ?? vendor.timeouts.firstTokenMs,
  }
  made.set(route, { ...offering, secret, sandboxUrl, candidate })
  return candidate
}

function withDeadline(vendor: Vendor, timeoutMs: number): Vendor {
  return { ...vendor, timeouts: { ...vendor.timeouts, firstByteMs: timeoutMs, totalMs: timeoutMs } }
}

/**
 * The credentials that have a value, in a random order by weight. A conversation that sticks to its route also sticks
 * to its credential.
 */
function heldCredentials(
  { baseUrl, credentials = [] }: Vendor,
  lot: Lot,
  { credential }: Pick<RouteSources, 'credential'>,
): HeldCredential[] {
  return credentials
    .map(({ name, weight }) => ({
      name,
      secret: credential(name) ?? (isSandbox(baseUrl) ? 'sandbox' : undefined),
      drawn: lot(weight, [name]),
    }))
    .filter(({ secret }) => secret !== undefined)
    .sort((a, b) => a.drawn - b.drawn)
    .map(({ name, secret }) => ({ name, secret }))
}

/** The account's own keys first, then the gateway's credentials if the account allows the fallback. */
export function byByokKey(candidates: readonly Candidate[], { vendors, fallback }: OwnUse): Candidate[] {
  const own = candidates.flatMap(({ credentials: _, cost: __, ...candidate }) => {
    const found = vendors.get(candidate.vendorName)
    if (!found) return []
    // The catalog's extra headers may identify the gateway's vendor account, so they are not sent.
    const target = { ...candidate.target, secret: found.secret, headers: {} }
    return [{ ...candidate, target, credential: BYOK, pricing: found.pricing }]
  })
  return fallback ? [...own, ...candidates] : own
}

/** Routes with a smaller rank come first. */
type Rank = (route: Route) => number

function inOrder(routes: readonly Route[], clientFormat: ProtocolName | undefined, rank: Rank): Route[] {
  return routes
    .map((route) => ({ route, foreign: route.protocol === clientFormat ? 0 : 1, drawn: rank(route) }))
    .sort((a, b) => a.route.order - b.route.order || a.foreign - b.foreign || a.drawn - b.drawn)
    .map(({ route }) => route)
}

/** What the caller prefers first, and otherwise in the order that they have. */
function byPreference(
  ordered: readonly Route[],
  {
    routes,
    preference,
    decided,
  }: { routes: readonly Route[]; preference: Preference; decided?: ((words: string) => void) | undefined },
  sources: RouteSources,
): readonly Route[] {
  const { isAlone } = preference
  const rank = preferredRank(preference, sources.vendors, costRank)
  const ranked = ordered.map((route) => ({ route, ...(rank?.(route) ?? { ranks: [], why: [] }) }))
  ranked.sort((a, b) => {
    const at = a.ranks.findIndex((one, place) => one !== b.ranks[place])
    return at < 0 ? 0 : (a.ranks[at] ?? 0) - (b.ranks[at] ?? 0)
  })
  if (decided && (rank || isAlone)) {
    const said = ranked.map(({ route, why }) => {
      const number = routes.indexOf(route) + 1
      return why.length > 0 ? `route ${number} (${why.join('; ')})` : `route ${number}`
    })
    decided(`In this order: ${said.join(', ')}.`)
    if (isAlone) decided('"provider.allow_fallbacks" allows only the first of them.')
  }
  return (isAlone ? ranked.slice(0, 1) : ranked).map(({ route }) => route)
}

/** The share of calls that ignore latency and follow the weights, so that the other routes' latencies stay current. */
const LOOK_AROUND = 1 / 20
const SPAN = 2 ** 32

/** Whether staying on one of these routes is worthwhile (prompt caches). */
function isCaching(pool: readonly Route[], { vendors }: CatalogDocument): boolean {
  return pool.some(({ vendor }) => vendors[vendor]?.promptCache === true)
}

/** What identifies a conversation. */
interface Turn {
  readonly sent: string | undefined
  readonly session: string | undefined
  readonly isSticky: boolean
}

function turnOf(
  { sent }: Pick<PaidRequest, 'sent'>,
  { routing, pool, session }: { routing: Routing; pool: readonly Route[]; session: string | undefined },
  document: CatalogDocument,
): Turn {
  return { sent, session, isSticky: routing.sticky ?? isCaching(pool, document) }
}

function rankOf(turn: Turn, { policy }: Routing, sources: RouteSources): Rank {
  const { world, vendors } = sources
  if (policy === 'cheapest-first') return costRank
  if (policy === 'least-busy') return ({ vendor }) => (vendors?.inFlight(vendor) ?? 0) + chance(world)
  if (policy === 'least-latency' && chance(world) > LOOK_AROUND)
    // A vendor without a measurement comes first, so that it gets measured.
    return (route) => vendors?.latencyMs(route.vendor) ?? 0
  const lot = lotOf(turn, sources)
  return ({ weight, vendor, model, protocol }) => lot(weight, [vendor, model, protocol])
}

/** An exponential draw with rate = weight. The smallest draw wins with a probability proportional to its weight. */
type Lot = (weight: number, who: readonly unknown[]) => number

/** Random draws, or for a sticky conversation the same draws each time. */
function lotOf({ sent, session, isSticky }: Turn, { world }: Pick<RouteSources, 'world'>): Lot {
  const conversation = isSticky ? (session ?? conversationOf(sent)) : undefined
  if (conversation === undefined) return (weight) => -Math.log(chance(world)) / weight
  return (weight, who) => {
    const digest = createHash('sha256')
      .update(JSON.stringify([conversation, ...who]))
      .digest()
    return -Math.log((digest.readUInt32BE() + 1) / SPAN) / weight
  }
}

function chance(world: World): number {
  return (world.bytes(4).readUInt32BE() + 1) / SPAN
}

/** The cost of a typical call. Routes without a known cost come last. */
function costRank({ cost }: Route): number {
  const tier = cost?.tiers.find(({ when }) => when === undefined)
  if (!tier) return Number.POSITIVE_INFINITY
  const rates = [tier.input, tier.output, tier.image, tier.second, tier.call]
  return rates.reduce<number>((sum, rate) => sum + Number(rate ?? 0n), 0)
}

// Identifies the conversation of a request by the parts of its body that stay the same from turn to turn.

/** Undefined when the body does not identify one. */
function conversationOf(sent: string | undefined): string | undefined {
  if (sent === undefined) return undefined
  const body: unknown = JSON.parse(sent)
  if (!isObject(body)) return undefined
  // The caller's own identifier, if given.
  if (typeof body.prompt_cache_key === 'string') return body.prompt_cache_key
  const turns: unknown = body.messages ?? body.input
  // Every turn repeats the messages up to the first question unchanged.
  const first = Array.isArray(turns) ? turns.findIndex((turn) => isObject(turn) && turn.role === 'user') : -1
  const begin = Array.isArray(turns) ? turns.slice(0, first + 1) : turns
  if (begin === undefined || (Array.isArray(begin) && begin.length === 0)) return undefined
  const said = JSON.stringify([body.system, body.instructions, begin])
  return createHash('sha256').update(said).digest('base64')
}
