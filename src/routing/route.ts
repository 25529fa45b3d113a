// Which routes an ask may take, in which order.
import { createHash } from 'node:crypto'
import { type CatalogDocument, isSandbox, type Route, type Routing, type Vendor } from '../catalog/document.ts'
import type { OwnUse } from '../credentials/byok-keys.ts'
import type { World } from '../kernel/world.ts'
import { BYOK } from '../ledger/operation.ts'
import type { ProtocolName } from '../meter/kind.ts'
import type { Pricing } from '../meter/price.ts'
import { isObject } from '../protocols/check.ts'
import type { PaidRequest, Target } from '../protocols/protocol.ts'

export interface Candidate {
  /** The route's place in the catalog, from 1: what `x-tollgate-route` tells the caller. */
  readonly number: number
  readonly vendorName: string
  readonly vendor: Vendor
  readonly target: Target
  /** Which credential the target has, by its name, where the vendor has several. */
  readonly credential?: string
  /** Those of a vendor that has several, in the order in which they are to be tried. */
  readonly credentials?: readonly HeldCredential[]
  /** What the vendor takes, where that is known. */
  readonly cost?: Pricing | undefined
  /** Of a call by the account's own key: what it costs instead of the price. */
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
  /** What this process has measured of a vendor lately. */
  readonly latencyMs?: (vendor: string) => number | undefined
}

/** Refuses every connection: the simulated vendors do not run. */
const NOWHERE = 'http://127.0.0.1:9'

export function targetOf(
  route: Route,
  vendor: Vendor,
  uid: string,
  sources: Pick<RouteSources, 'sandboxUrl' | 'credential'>,
): Target {
  const sandbox = isSandbox(vendor.baseUrl)
  return {
    protocol: route.protocol,
    baseUrl: sandbox ? vendor.baseUrl.replace('sandbox', sources.sandboxUrl() ?? NOWHERE) : vendor.baseUrl,
    secret:
      vendor.credential === undefined
        ? undefined
        : (sources.credential(vendor.credential) ?? (sandbox ? 'sandbox' : undefined)),
    auth: vendor.auth,
    headers: vendor.headers,
    model: route.model ?? uid,
    passesUnknown: vendor.passesUnknown,
  }
}

/**
 * An ask with a need takes the routes that serve it, if there are any; a route that serves only a need is left to such asks.
 * Of these, those that can carry the ask: a refusal of ours must not replace the fault of a vendor that was asked before.
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
    routes.every((route) => !route.serves && !paidRequest.refusal?.(route.protocol))
  )
    return routes // As nearly always.
  const needs = paidRequest.needs ?? []
  const forNeed = routes.filter((route) => needs.some((need) => route.serves?.includes(need)))
  const forAll = routes.filter((route) => !route.serves || route.protocol === paidRequest.clientFormat)
  const pool = forNeed.length > 0 ? forNeed : forAll.length > 0 ? forAll : routes
  const able = pool.filter((route) => paidRequest.refusal?.(route.protocol) === undefined)
  const refused = able.length === 0 && pool[0] && paidRequest.refusal?.(pool[0].protocol)
  if (refused) throw refused
  return able
}

/** Whether the route's vendor has what only some have. */
export function offers(
  route: Pick<Route, 'vendor'>,
  { offer }: Pick<PaidRequest, 'offer'>,
  { vendors }: CatalogDocument,
): boolean {
  return offer === undefined || vendors[route.vendor]?.offers?.includes(offer) === true
}

/** Of the product's routes those of the `pool`: lower orders first; within an order the caller's own format, then as the product's routing says. */
export function routeRequest(
  paidRequest: Pick<PaidRequest, 'product' | 'clientFormat' | 'sent'>,
  {
    routes,
    routing,
    pool,
  }: { readonly routes: readonly Route[]; readonly routing: Routing; readonly pool: readonly Route[] },
  document: CatalogDocument,
  sources: RouteSources,
): Candidate[] {
  const lot = pool.length === 1 ? pool : inOrder(pool, paidRequest.clientFormat, rankOf(paidRequest, routing, sources))
  return lot.map((route) => {
    const vendor = document.vendors[route.vendor]!
    const candidate = {
      number: routes.indexOf(route) + 1,
      vendorName: route.vendor,
      vendor,
      target: targetOf(route, vendor, paidRequest.product, sources),
      cost: route.cost,
    }
    if (!vendor.credentials) return candidate // As nearly always.
    return { ...candidate, credentials: heldCredentials(vendor, lotOf(paidRequest, routing, sources), sources) }
  })
}

/** Those that have a value, drawn by weight: the turns of a conversation that sticks to its route stick to one of them too. */
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

/** The account's own keys first; the gateway's credentials only where the account allows it. */
export function byByokKey(candidates: readonly Candidate[], { vendors, fallback }: OwnUse): Candidate[] {
  const own = candidates.flatMap(({ credentials: _, cost: __, ...candidate }) => {
    const found = vendors.get(candidate.vendorName)
    if (!found) return []
    // The catalog's extra headers may say who the gateway is there.
    const target = { ...candidate.target, secret: found.secret, headers: {} }
    return [{ ...candidate, target, credential: BYOK, pricing: found.pricing }]
  })
  return fallback ? [...own, ...candidates] : own
}

/** The smaller, the earlier. */
type Rank = (route: Route) => number

function inOrder(routes: readonly Route[], clientFormat: ProtocolName | undefined, rank: Rank): Route[] {
  return routes
    .map((route) => ({ route, foreign: route.protocol === clientFormat ? 0 : 1, drawn: rank(route) }))
    .sort((a, b) => a.route.order - b.route.order || a.foreign - b.foreign || a.drawn - b.drawn)
    .map(({ route }) => route)
}

/** So many calls take whichever route the weights say, so that what is known of the others does not grow old. */
const LOOK_AROUND = 1 / 20
const SPAN = 2 ** 32

function rankOf(paidRequest: Pick<PaidRequest, 'product' | 'sent'>, routing: Routing, sources: RouteSources): Rank {
  const { policy } = routing
  const { world, latencyMs } = sources
  if (policy === 'cheapest-first') return costRank
  if (policy === 'least-latency' && chance(world) > LOOK_AROUND)
    // Whoever was not measured yet is.
    return (route) => latencyMs?.(route.vendor) ?? 0
  const lot = lotOf(paidRequest, routing, sources)
  return ({ weight, vendor, model, protocol }) => lot(weight, [vendor, model, protocol])
}

/** The smallest of exponential draws with rate = weight comes first with a chance in proportion to the weight. */
type Lot = (weight: number, who: readonly unknown[]) => number

/** A lot, or for a conversation that is to stay where it is the same each time. */
function lotOf(
  paidRequest: Pick<PaidRequest, 'sent'>,
  { sticky }: Routing,
  { world }: Pick<RouteSources, 'world'>,
): Lot {
  const conversation = sticky ? conversationOf(paidRequest.sent) : undefined
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

/** What a typical call costs there; whoever names no cost comes last. */
function costRank({ cost }: Route): number {
  const tier = cost?.tiers.find(({ when }) => when === undefined)
  if (!tier) return Number.POSITIVE_INFINITY
  const rates = [tier.input, tier.output, tier.image, tier.second, tier.call]
  return rates.reduce<number>((sum, rate) => sum + Number(rate ?? 0n), 0)
}

// Which conversation a request belongs to, as far as its body tells: what stays the same from turn to turn.

/** Undefined when nothing in it says so. */
function conversationOf(sent: string | undefined): string | undefined {
  if (sent === undefined) return undefined
  const body: unknown = JSON.parse(sent)
  if (!isObject(body)) return undefined
  // The caller's own word for it, where there is one.
  if (typeof body.prompt_cache_key === 'string') return body.prompt_cache_key
  const turns: unknown = body.messages ?? body.input
  // Everything up to the first question comes again with every turn, word for word.
  const first = Array.isArray(turns) ? turns.findIndex((turn) => isObject(turn) && turn.role === 'user') : -1
  const begin = Array.isArray(turns) ? turns.slice(0, first + 1) : turns
  if (begin === undefined || (Array.isArray(begin) && begin.length === 0)) return undefined
  const said = JSON.stringify([body.system, body.instructions, begin])
  return createHash('sha256').update(said).digest('base64')
}
