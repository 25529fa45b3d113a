// Changes, renames or removes a vendor's entry and its routes: pure functions from the current to the new document.

import type { CatalogInput } from '../../catalog/document.ts'
import { Fault, invalid } from '../../kernel/fault.ts'
import { isObject } from '../../kernel/json.ts'
import { TEXT_PROTOCOLS, type TextProtocolName } from '../../meter/kind.ts'

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
