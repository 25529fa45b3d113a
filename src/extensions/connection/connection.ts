// Adds a vendor's entry and its models to a catalog document: a pure function from the current to the new document.

import type { CatalogInput } from '../../catalog/document.ts'
import type { Preset, PresetFormat, PresetModel } from '../../catalog/preset.ts'
import { isSandbox } from '../../catalog/simulated.ts'
import { withCredentialNamed } from '../../catalog/vendor-edit.ts'
import { formatCredits, parseCredits } from '../../kernel/credits.ts'
import { CLIENT_FORMATS, type KindName, type ProtocolName, protocolsOf, UNIT_NAMES } from '../../meter/kind.ts'
import type { PriceTier } from '../../meter/price.ts'

type ModelInput = CatalogInput['models'][string]
type RouteInput = ModelInput['routes'][number]
export type PricingInput = ModelInput['pricing']

export interface ChosenModel {
  /** Its name at the vendor. */
  readonly model: string
  /** The id under which it is offered. Absent: the vendor's own. */
  readonly uid?: string | undefined
  readonly type?: KindName | undefined
  /** In credits. Absent: the preset's list price. */
  readonly cost?: PricingInput | undefined
  /** Absent: cost × markup. */
  readonly pricing?: PricingInput | undefined
  /** If it cannot be offered it is left out, without a problem. */
  readonly optional?: boolean
}

export interface Connection {
  readonly vendorName: string
  readonly vendor: CatalogInput['vendors'][string]
  readonly preset?: Preset | undefined
  readonly formats: readonly PresetFormat[]
  readonly models: readonly ChosenModel[]
  /** Price = cost × this. Absent: existing prices stay, and new models are sold at cost. */
  readonly markup?: string | undefined
  readonly creditsPerDollar: string
}

interface Connected {
  readonly document: CatalogInput
  /** Notes for the operator before it is applied. */
  readonly notes: readonly string[]
  readonly problems: readonly string[]
}

export function withConnection(current: CatalogInput, connection: Connection): Connected {
  const { vendorName, vendor, preset } = connection
  const notes: string[] = []
  const problems: string[] = []
  const document: CatalogInput = {
    ...current,
    vendors: { ...current.vendors, [vendorName]: connected(ownMember(current.vendors, vendorName), vendor) },
    families: { ...current.families },
    models: { ...current.models },
    endpoints: { ...current.endpoints },
  }
  for (const chosen of connection.models) {
    const made = offered(document, chosen, connection)
    if ('problem' in made) (chosen.optional ? notes : problems).push(made.problem)
    else {
      document.models[made.uid] = made.model
      notes.push(...made.notes)
    }
  }
  const { bridge } = vendor
  if (preset?.replacesVendor !== undefined && bridge)
    notes.push(...takeSome(document, preset.replacesVendor, vendorName, bridge.endpoints))
  else if (preset?.replacesVendor !== undefined) takeOver(document, preset.replacesVendor, vendorName)
  return { document, notes, problems }
}

/** Reads own members only, because a name may be that of an inherited property. */
function ownMember<T>(members: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined
}

const factsOf = (preset: Preset | undefined, model: string) => preset && ownMember(preset.models, model)

/** If the vendor has several credentials, this one is added. */
function connected(known: Connection['vendor'] | undefined, { credential, ...vendor }: Connection['vendor']) {
  const entry = { ...known, ...vendor }
  if (credential === undefined) return entry
  return known?.credentials ? withCredentialNamed(entry, { name: credential }) : { ...entry, credential }
}

type Offered = { uid: string; model: ModelInput; notes: string[] } | { problem: string }

function offered(document: CatalogInput, chosen: ChosenModel, connection: Connection): Offered {
  const { preset, markup } = connection
  const facts = factsOf(preset, chosen.model)
  const uid = chosen.uid ?? suggestedUid(chosen.model)
  const existing = Object.hasOwn(document.models, uid) ? document.models[uid] : undefined
  const type = chosen.type ?? facts?.type ?? existing?.type ?? 'text'
  if (existing && existing.type !== type)
    return {
      problem: `"${uid}" is of type ${existing.type}, and "${chosen.model}" of type ${type}: give it another uid.`,
    }
  const cost = chosen.cost ?? listPrice(facts, connection.creditsPerDollar)
  const routes = routesOf(uid, type, chosen, { ...connection, cost })
  const ownPrice =
    chosen.pricing ?? (cost && (markup !== undefined || !existing) ? scaled(cost, markup ?? '1') : undefined)
  const pricing = ownPrice ?? existing?.pricing ?? sameProduct(document, facts)?.pricing
  if (!pricing)
    return { problem: `"${chosen.model}" has no list price noted: say what it costs and what it is sold for.` }
  const notes =
    cost || chosen.pricing
      ? []
      : [`${uid}: no list price noted; its price ${existing ? 'stays as it is' : `is that of ${facts?.product}`}.`]
  if (existing) {
    const kept = routesOfOthers(document, existing.routes, connection.vendorName)
    const order = kept.length === 0 ? 0 : Math.max(...kept.map((route) => route.order ?? 0)) + 1
    if (kept.length > 0) notes.push(`${uid}: other vendors serve it already, so this one is asked when they fail.`)
    const added = order === 0 ? routes : routes.map((route) => ({ ...route, order }))
    // Another vendor's model may count otherwise.
    const traits = kept.length === 0 && facts ? { traits: { ...facts.traits, ...existing.traits } } : {}
    return { uid, model: { ...existing, ...traits, routes: [...kept, ...added], pricing }, notes }
  }
  return { uid, model: { ...newModel(document, chosen.model, type, connection), routes, pricing }, notes }
}

/** Routes to other vendors that are not simulated. */
function routesOfOthers({ vendors }: CatalogInput, routes: readonly RouteInput[], vendorName: string): RouteInput[] {
  return routes.filter(({ vendor }) => vendor !== vendorName && !isSandbox(vendors[vendor]?.baseUrl ?? ''))
}

/** The same product of the shipped catalog, if it is still there: its name may be offered too. */
export const sameProduct = ({ models }: CatalogInput, facts: PresetModel | undefined) =>
  facts?.product === undefined ? undefined : ownMember(models, facts.product)

/** What the vendor calls it, as an id. */
export function suggestedUid(model: string): string {
  const name = model.toLowerCase().replaceAll(/[^a-z0-9._/-]+/g, '-')
  return name.replace(/^[^a-z0-9]+/, '').slice(0, 100)
}

function routesOf(
  uid: string,
  type: KindName,
  { model }: ChosenModel,
  { vendorName, formats, cost }: Pick<Connection, 'vendorName' | 'formats'> & { cost: PricingInput | undefined },
): RouteInput[] {
  const protocols: readonly ProtocolName[] = protocolsOf(type)
  const own = formats.filter(({ protocol }) => protocols.includes(protocol))
  const spoken: readonly PresetFormat[] = own.length > 0 ? own : [{ protocol: protocolsOf(type)[0] }]
  return spoken.map(({ protocol, serves }) => ({
    vendor: vendorName,
    protocol,
    ...(model === uid ? {} : { model }),
    ...(serves ? { serves: [...serves] } : {}),
    ...(cost ? { cost } : {}),
  }))
}

const FAMILY_CHARS_MAX = 40

/** Adds the model's family to the document if it is missing. */
function newModel(
  document: CatalogInput,
  model: string,
  type: KindName,
  { preset, vendorName }: Connection,
): Omit<ModelInput, 'routes' | 'pricing'> {
  const facts = factsOf(preset, model)
  const family = (preset?.family ?? vendorName).slice(0, FAMILY_CHARS_MAX)
  const families = document.families ?? {}
  if (type === 'text' && preset && !Object.hasOwn(families, family))
    document.families = { ...families, [family]: { traits: preset.traits } }
  return {
    name: model.split('/').at(-1) ?? model,
    type,
    family,
    ...(type === 'text' ? { clientFormats: [...CLIENT_FORMATS] } : {}),
    capabilities: [...(facts?.capabilities ?? [])],
    ...(facts && Object.keys(facts.limits).length > 0 ? { limits: facts.limits } : {}),
    ...(facts && Object.keys(facts.traits).length > 0 ? { traits: { ...facts.traits } } : {}),
  }
}

/** Moves all routes of one vendor to another. */
function takeOver(document: CatalogInput, from: string, to: string): void {
  const moved = <T extends { routes: RouteInput[] }>(products: Record<string, T>): Record<string, T> =>
    Object.fromEntries(
      Object.entries(products).map(([uid, product]) => [
        uid,
        product.routes.some(({ vendor }) => vendor === from)
          ? {
              ...product,
              routes: product.routes.map((one) => (one.vendor === from ? { ...one, vendor: to, enabled: true } : one)),
            }
          : product,
      ]),
    )
  document.models = moved(document.models)
  document.endpoints = moved(document.endpoints)
}

/**
 * Routes the endpoints of a bridge to this vendor, as a fallback if other vendors serve them. Endpoints that only the
 * replaced vendor served are disabled, because no real vendor serves them.
 */
function takeSome(
  document: CatalogInput,
  from: string,
  to: string,
  served: Readonly<Record<string, { note?: string | undefined }>>,
): string[] {
  const unserved: string[] = []
  for (const [uid, product] of Object.entries(document.endpoints)) {
    const others = routesOfOthers(document, product.routes, to)
    if (Object.hasOwn(served, uid)) {
      const order = others.length === 0 ? {} : { order: Math.max(...others.map((one) => one.order ?? 0)) + 1 }
      const route: RouteInput = { vendor: to, protocol: 'site-analytics', ...order }
      const before = product.routes.find(({ vendor }) => vendor === to)
      document.endpoints[uid] = { ...product, routes: [...others, { ...before, ...route }] }
    } else if (others.length === 0 && product.routes.some(({ vendor }) => vendor === from)) {
      unserved.push(uid)
      document.endpoints[uid] = { ...product, routes: product.routes.map((one) => ({ ...one, enabled: false })) }
    }
  }
  const differing = Object.entries(served).flatMap(([uid, { note }]) => (note === undefined ? [] : [`${uid}: ${note}`]))
  return unserved.length === 0
    ? differing
    : [`Not served by ${to}, so that calls get the error 50001: ${unserved.join(', ')}.`, ...differing]
}

/** The vendor's list price in credits; undefined if none is known. */
export function listPrice(
  facts: Pick<PresetModel, 'usd'> | undefined,
  creditsPerDollar: string,
): PricingInput | undefined {
  return facts?.usd && scaled({ unit: 'credits', tiers: facts.usd.map(inDecimals) }, creditsPerDollar)
}

function inDecimals(tier: PriceTier): PricingInput['tiers'][number] {
  const rates = UNIT_NAMES.flatMap((unit) => (tier[unit] === undefined ? [] : [[unit, formatCredits(tier[unit])]]))
  return {
    ...(tier.upTo === undefined ? {} : { upTo: tier.upTo }),
    ...(tier.when === undefined ? {} : { when: tier.when }),
    ...Object.fromEntries(rates),
  }
}

const ONE = 1_000_000n

/** Multiplies every rate by a factor, rounded up to the precision of prices. */
export function scaled(price: PricingInput, factor: string): PricingInput {
  const by = parseCredits(factor) ?? ONE
  const rate = (value: string | number) => formatCredits(((parseCredits(value) ?? 0n) * by + ONE - 1n) / ONE)
  return {
    ...price,
    tiers: price.tiers.map((tier) => ({
      ...tier,
      ...Object.fromEntries(UNIT_NAMES.flatMap((unit) => (tier[unit] === undefined ? [] : [[unit, rate(tier[unit])]]))),
    })),
  }
}
