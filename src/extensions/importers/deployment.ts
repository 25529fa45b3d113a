// Adds one deployment of a model at one vendor, read from another gateway, to a catalog, beside the model's existing
// routes.

import type { CatalogInput } from '../../catalog/document.ts'
import type { Preset } from '../../catalog/preset.ts'
import type { KindName } from '../../meter/kind.ts'
import { type ChosenModel, suggestedUid, withConnection } from '../connection/connection.ts'
import type { Say } from './report.ts'

export interface ImportOptions {
  readonly presets: readonly Preset[]
  readonly markup: string
  readonly creditsPerDollar: string
  /**
   * True: existing models get the imported routes and price. False: an imported model whose name is taken gets another
   * name.
   */
  readonly replace: boolean
}

export interface Deployment {
  /** The model name that callers use. */
  readonly group: string
  /** The model's name at the vendor. */
  readonly model: string
  readonly type: KindName
  readonly vendorName: string
  readonly vendor: CatalogInput['vendors'][string]
  readonly preset: Preset | undefined
  readonly weight: number | undefined
  readonly order?: number | undefined
  readonly cost: ChosenModel['cost']
  /** Absent: the preset's formats. */
  readonly formats?: Preset['formats'] | undefined
  /** Absent: cost × markup. */
  readonly pricing?: ChosenModel['pricing']
}

type RouteInput = CatalogInput['models'][string]['routes'][number]

/** Whether two routes of the model `uid` lead to the same vendor model in the same format. */
export function isSameRoute(one: RouteInput, other: RouteInput, uid: string): boolean {
  return (
    one.vendor === other.vendor &&
    one.protocol === other.protocol &&
    (one.model ?? uid) === (other.model ?? uid) &&
    (one.serves ?? []).join() === (other.serves ?? []).join()
  )
}

/** The uid under which a model of this name is offered here. */
export function uidOf(name: string): string {
  return suggestedUid(name)
}

type VendorInput = CatalogInput['vendors'][string]

/**
 * Chooses names for imported entries so that existing ones stay untouched: if a different vendor or model already has
 * the name, the imported one gets a new name. An existing vendor's address never changes, since its stored credential
 * would be sent to the new address.
 */
export class Placement {
  readonly #current: CatalogInput
  readonly #vendors: Map<string, VendorInput>
  readonly #from: string
  readonly #options: ImportOptions
  readonly #placed = new Map<string, string>()

  constructor(current: CatalogInput, from: string, options: ImportOptions) {
    this.#current = current
    this.#vendors = new Map(Object.entries(current.vendors))
    this.#from = from
    this.#options = options
  }

  vendor(wanted: string, entry: VendorInput, at: string, say: Say): { name: string; entry: VendorInput } {
    for (const name of this.#names(wanted)) {
      const known = this.#vendors.get(name)
      if (known && !isSameVendor(known, entry)) continue
      if (!known && name !== wanted)
        say(at, 'changed', `${wanted} is another vendor here and stays as it is; the imported one is ${name}.`)
      this.#vendors.set(name, known ?? entry)
      return { name, entry: known ?? entry }
    }
    throw new Error('Names do not end.')
  }

  /**
   * The uid under which a model of that name was imported, now or earlier. Imported keys are restricted to this model
   * and not to another one of the same name.
   */
  uidOf(name: string): string {
    const uid = uidOf(name)
    const renamed = `${uid}-${this.#from}`
    return this.#placed.get(uid) ?? (Object.hasOwn(this.#current.models, renamed) ? renamed : uid)
  }

  /**
   * The uid under which these routes are offered. `kept`: the model already exists and only gets its missing routes.
   */
  model(
    wanted: string,
    routes: readonly Pick<Deployment, 'vendorName' | 'model'>[],
    at: string,
    say: Say,
  ): { uid: string; kept: boolean } {
    const place = this.#place(wanted, routes, at, say)
    this.#placed.set(wanted, place.uid)
    return place
  }

  #place(wanted: string, routes: readonly Pick<Deployment, 'vendorName' | 'model'>[], at: string, say: Say) {
    const { models } = this.#current
    for (const uid of this.#names(wanted)) {
      const known = Object.hasOwn(models, uid) ? models[uid] : undefined
      const isOurs = known !== undefined && isImported(known, uid, routes)
      if (known && this.#options.replace) {
        if (!isOurs) say(at, 'changed', `${uid} is here already: --replace gives it the imported routes and price.`)
        return { uid, kept: false }
      }
      if (known && !isOurs) continue
      if (uid !== wanted && !known)
        say(at, 'changed', `${wanted} is another model here and stays as it is; the imported one is ${uid}.`)
      return { uid, kept: known !== undefined }
    }
    throw new Error('Names do not end.')
  }

  /** Whether router settings may change this model: it is new, or --replace is set. */
  isChangeable(uid: string): boolean {
    return this.#options.replace || !Object.hasOwn(this.#current.models, uid)
  }

  *#names(wanted: string): Generator<string> {
    yield wanted
    yield `${wanted}-${this.#from}`
    for (let n = 2; ; n++) yield `${wanted}-${this.#from}-${n}`
  }

  /**
   * The variable whose value is sent to this address. A variable is sent only to the vendor after which it is named, or
   * where this catalog already sends it. Otherwise a generated name is used, which no existing variable has by chance.
   */
  credential(vendorName: string, address: string, named: string | undefined, preset: Preset | undefined): string {
    const usual = preset?.vendor.credential
    const isHome = preset !== undefined && isAddressOf(preset, address)
    const wanted = named ?? (isHome ? usual : undefined)
    if (wanted !== undefined && isHome && usual !== undefined) {
      const isNamedAfter = wanted.startsWith(`${preset.name.toUpperCase()}_`) && /KEY|TOKEN/.test(wanted)
      if (wanted === usual || isNamedAfter) return wanted
    }
    const origin = originOf(address)
    const isSentThere = Object.values(this.#current.vendors).some(
      (vendor) => originOf(vendor.baseUrl) === origin && wanted !== undefined && namesOf(vendor).includes(wanted),
    )
    if (wanted !== undefined && isSentThere) return wanted
    return `IMPORTED_${vendorName.toUpperCase().replaceAll(/[^A-Z0-9]+/g, '_')}_KEY`.slice(0, 64)
  }
}

/**
 * Whether the model came from an import: it has all of these routes, or all its routes before the fallbacks are among
 * them.
 */
function isImported(
  { routes: there }: CatalogInput['models'][string],
  uid: string,
  routes: readonly Pick<Deployment, 'vendorName' | 'model'>[],
): boolean {
  const first = Math.min(...there.map(({ order = 0 }) => order))
  const same = (route: RouteInput, one: (typeof routes)[number]) =>
    route.vendor === one.vendorName && (route.model ?? uid) === one.model
  return (
    routes.every((one) => there.some((route) => same(route, one))) ||
    there.every((route) => (route.order ?? 0) > first || routes.some((one) => same(route, one)))
  )
}

const originOf = (address: string) => URL.parse(address)?.origin ?? address

const namesOf = ({ credential, credentials }: VendorInput): string[] => [
  ...(credential === undefined ? [] : [credential]),
  ...(credentials ?? []).map(({ name }) => name),
]

/** The vendor has the same name and the same address, so its existing credential is already sent there. */
const isSameVendor = (known: VendorInput, entry: VendorInput) => known.baseUrl === entry.baseUrl

/** Whether the address is the preset's, with any values in its placeholders. */
function isAddressOf({ vendor }: Preset, address: string): boolean {
  const [scheme = '', , host = ''] = vendor.baseUrl.split('/')
  const own = `${scheme}//${host}`.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&').replaceAll(/\{\w+\}/g, '[a-z0-9-]+')
  return new RegExp(`^${own}$`).test(originOf(address))
}

/** Adds the deployment as a route; existing routes of the model keep their order. */
export function withDeployment(
  document: CatalogInput,
  read: Deployment,
  { uid, kept: isKept }: { readonly uid: string; readonly kept: boolean },
  { markup, creditsPerDollar }: ImportOptions,
) {
  const before = document.models[uid]?.routes ?? []
  const { model, type, cost, pricing, preset, vendorName, vendor, weight, order } = read
  const made = withConnection(document, {
    vendorName,
    vendor,
    preset,
    formats: read.formats ?? preset?.formats ?? [{ protocol: 'openai-chat' as const }],
    markup,
    creditsPerDollar,
    models: [{ model, uid, type, ...(cost ? { cost } : {}), ...(pricing ? { pricing } : {}) }],
  })
  const after = made.document.models[uid]
  if (!after || made.problems.length > 0) return made
  const known = document.models[uid]
  if (isKept && known) {
    const missing = after.routes.filter(
      (route) => route.vendor === vendorName && !known.routes.some((one) => isSameRoute(one, route, uid)),
    )
    const model = missing.length === 0 ? known : { ...known, routes: [...known.routes, ...missing] }
    return { ...made, document: { ...made.document, models: { ...document.models, [uid]: model } } }
  }
  const own = after.routes
    .filter((route) => route.vendor === vendorName && (route.model ?? uid) === model)
    .map(({ order: _, ...route }) => ({
      ...route,
      ...(weight === undefined ? {} : { weight }),
      ...(order ? { order } : {}),
    }))
  // Keeps other routes of the same vendor; an identical route is replaced by the imported one.
  const kept = before.filter(
    (route) =>
      (after.routes.includes(route) || route.vendor === vendorName) && !own.some((one) => isSameRoute(one, route, uid)),
  )
  const models = { ...made.document.models, [uid]: { ...after, routes: [...kept, ...own] } }
  return { ...made, document: { ...made.document, models } }
}
