// Changes, renames or removes a vendor's entry and its routes: pure functions from the current to the new document.

import { Fault, invalid } from '../kernel/fault.ts'
import { isObject } from '../kernel/json.ts'
import { TEXT_PROTOCOLS, type TextProtocolName } from '../meter/kind.ts'
import { type CatalogInput, credentialsOf } from './document.ts'
import type { Preset } from './preset.ts'
import { isSandbox } from './simulated.ts'

// Changes the credentials of a vendor's entry: one is a single field, several are a list.

type VendorInput = CatalogInput['vendors'][string]
type Named = { readonly name: string; readonly weight?: number | undefined }

/** The credentials of an entry, whether it names one or several. */
export function namedBy({ credential, credentials }: VendorInput): readonly Named[] {
  return credentialsOf({ credential, credentials: credentials?.map(({ name, weight = 1 }) => ({ name, weight })) })
}

function withNames({ credential: _, credentials: __, ...vendor }: VendorInput, all: readonly Named[]): VendorInput {
  const [only] = all
  if (only && all.length === 1) return { ...vendor, credential: only.name }
  return all.length === 0 ? vendor : { ...vendor, credentials: all.map(({ name, weight }) => ({ name, weight })) }
}

/** Adds a credential or changes its weight; without a weight it stays unchanged. */
export function withCredentialNamed(vendor: VendorInput, { name, weight }: Named): VendorInput {
  const all = namedBy(vendor)
  const known = all.find((one) => one.name === name)
  if (known && (weight === undefined || weight === known.weight)) return vendor
  if (!known) return withNames(vendor, [...all, { name, weight: weight ?? 1 }])
  return withNames(
    vendor,
    all.map((one) => (one === known ? { name, weight: weight ?? one.weight } : one)),
  )
}

export function withoutCredentialNamed(vendor: VendorInput, name: string): VendorInput {
  return withNames(
    vendor,
    namedBy(vendor).filter((one) => one.name !== name),
  )
}

// A credential belongs to the origins at which the catalog or a preset uses it. To send it to another origin, its value
// must be given.

/** A login sends the credential to the token endpoint too. */
export function addressesOf({ baseUrl, auth }: Pick<VendorInput, 'baseUrl' | 'auth'>): readonly string[] {
  // The address is not checked yet: that happens later, with the document.
  const tokenUrl = typeof auth === 'object' && 'oauth' in auth ? auth.oauth?.tokenUrl : undefined
  return tokenUrl === undefined ? [baseUrl] : [baseUrl, tokenUrl]
}

/** The distinct origins of a vendor's addresses. */
export function originsOf(vendor: Pick<VendorInput, 'baseUrl' | 'auth'>): string {
  return [...new Set(addressesOf(vendor).map((address) => originOf(address) ?? ''))].join(' ')
}

export function belongsTo(
  name: string,
  address: string,
  { vendors }: CatalogInput,
  presets: readonly Preset[],
): boolean {
  const origin = originOf(address)
  if (origin === undefined) return false
  const isNamed = (vendor: CatalogInput['vendors'][string]) => namedBy(vendor).some((one) => one.name === name)
  return (
    Object.values(vendors).some(
      (vendor) => isNamed(vendor) && addressesOf(vendor).some((one) => originOf(one) === origin),
    ) || presets.some((one) => addressesWith(name, one).some((address) => originPattern(address)?.test(origin)))
  )
}

/** The addresses to which a preset sends a credential of this name, with any of its logins. */
function addressesWith(name: string, { vendor, logins }: Preset): readonly string[] {
  return [vendor, ...Object.values(logins)]
    .filter(({ credential }) => credential === name)
    .flatMap(({ auth }) => addressesOf({ baseUrl: vendor.baseUrl, auth: auth as VendorInput['auth'] })) // The tests read it by its schema.
}

/** The origin of an address; for simulated vendors their name. */
export function originOf(address: string): string | undefined {
  return isSandbox(address) ? address : URL.parse(address)?.origin
}

/** A variable in a preset's address matches one part of a host name; undefined if the variable is the whole address. */
function originPattern(address: string): RegExp | undefined {
  const [origin] = /^https?:\/\/[^/]+/.exec(address) ?? []
  if (origin === undefined) return undefined
  const parts = origin.split(/\{\w+\}/).map((part) => part.replaceAll(/[^\w/:-]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('[a-z0-9-]{1,63}')}$`)
}

type Product = Pick<CatalogInput['models'][string], 'routes'>
type Route = Product['routes'][number]

interface VendorPatch {
  /** The new name. */
  readonly name?: string | undefined
  /** The vendor format of its text models. */
  readonly format?: TextProtocolName | undefined
  /** Members of its entry; null removes one. They are checked with the whole document. */
  readonly entry?: Readonly<Record<string, unknown>> | undefined
}

/** Credentials have resources of their own, which store the value as well. */
const ELSEWHERE = ['credential', 'credentials']

export function withVendorChanged(current: CatalogInput, name: string, patch: VendorPatch): CatalogInput {
  const { name: next = name, format, entry = {} } = patch
  const foreign = ELSEWHERE.find((field) => Object.hasOwn(entry, field))
  if (foreign !== undefined)
    throw invalid(`"${foreign}" is changed by PUT /vendors/{name}/credentials/{credential}.`, 'entry')
  const known = vendorIn(current, name)
  if (next !== name && Object.hasOwn(current.vendors, next))
    throw new Fault('conflict', { message: `The catalog has a vendor "${next}" already.` })
  // The members are checked with the document.
  const vendor = merged(known, entry) as typeof known
  const vendors = Object.entries(current.vendors).map(([one, its]) => (one === name ? [next, vendor] : [one, its]))
  return withRoutes({ ...current, vendors: Object.fromEntries(vendors) }, (routes) => {
    const own = format === undefined ? routes : inFormat(routes, name, format)
    return own.map((route) => (route.vendor === name ? { ...route, vendor: next } : route))
  }).document
}

/** JSON Merge Patch (RFC 7396): objects are merged recursively, and null removes a member. */
function merged(known: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const before = isObject(known) ? known : {}
  const names = [...new Set([...Object.keys(before), ...Object.keys(patch)])]
  return Object.fromEntries(
    names.flatMap((name) => {
      if (!Object.hasOwn(patch, name)) return [[name, before[name]]]
      return patch[name] === null ? [] : [[name, merged(before[name], patch[name])]]
    }),
  )
}

interface Removal {
  readonly document: CatalogInput
  /** Models and data endpoints that no other vendor serves: they are removed too. */
  readonly unservedProducts: readonly string[]
}

export function withoutVendor(current: CatalogInput, name: string): Removal {
  vendorIn(current, name)
  const { [name]: _, ...vendors } = current.vendors
  return withRoutes({ ...current, vendors }, (routes) => routes.filter(({ vendor }) => vendor !== name))
}

function vendorIn({ vendors }: CatalogInput, name: string): CatalogInput['vendors'][string] {
  const vendor = Object.hasOwn(vendors, name) ? vendors[name] : undefined
  if (!vendor) throw new Fault('not_found', { message: `The catalog has no vendor "${name}".` })
  return vendor
}

/** Changes the format of a model's text routes to the vendor. If there are several, only the first stays. */
function inFormat(routes: readonly Route[], name: string, format: TextProtocolName): readonly Route[] {
  const isText = ({ protocol, vendor }: Route) => vendor === name && TEXT_PROTOCOLS.some((one) => one === protocol)
  const first = routes.find(isText)
  return routes.flatMap((route) => {
    if (!isText(route)) return [route]
    const { serves: _, ...rest } = route
    return route === first ? [{ ...rest, protocol: format }] : []
  })
}

function withRoutes(document: CatalogInput, change: (routes: readonly Route[]) => readonly Route[]): Removal {
  const unservedProducts: string[] = []
  const shelf = <P extends Product>(products: Record<string, P>): Record<string, P> =>
    Object.fromEntries(
      Object.entries(products).flatMap(([uid, product]) => {
        const routes = change(product.routes)
        if (routes.length === 0) unservedProducts.push(uid)
        const isSame = routes.length === product.routes.length && routes.every((one, at) => one === product.routes[at])
        return routes.length === 0 ? [] : [[uid, isSame ? product : { ...product, routes: [...routes] }]]
      }),
    )
  const changed = { ...document, models: shelf(document.models), endpoints: shelf(document.endpoints) }
  return { document: changed, unservedProducts }
}
