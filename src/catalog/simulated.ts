// The catalog as test accounts have it: the same models, prices and routes, but every vendor is a simulated one. Nothing of the real
// vendor goes along: no credential, no header of its own.
import { isTestAccount } from '../kernel/test-account.ts'
import { KINDS } from '../meter/kind.ts'
import type { CatalogDocument, Route, Vendor } from './document.ts'
import type { Catalog } from './store.ts'

/** By the format that it speaks. */
const VENDORS: Readonly<Record<string, string>> = Object.assign(
  {},
  ...Object.values(KINDS).map((kind) => kind.protocols),
)

const copies = new WeakMap<Catalog, Catalog>()

export function catalogFor(account: string, catalog: Catalog): Catalog {
  if (!isTestAccount(account) || catalog.simulated) return catalog
  let copy = copies.get(catalog)
  if (!copy) {
    copy = { ...catalog, document: simulate(catalog.document), simulated: true }
    copies.set(catalog, copy)
  }
  return copy
}

function simulate(document: CatalogDocument): CatalogDocument {
  const vendors: Record<string, Vendor> = {}

  function simulated<P extends { readonly routes: Route[] }>(products: Record<string, P>): Record<string, P> {
    const entries = Object.entries(products).map(([uid, product]) => [
      uid,
      { ...product, routes: product.routes.map(to) },
    ])
    return Object.fromEntries(entries)
  }

  // The check of the document has seen that there is one.
  const vendorOf = (route: Route): Vendor => document.vendors[route.vendor]!

  function to(route: Route): Route {
    // No vendor of a catalog can have such a name, so that their breakers and figures stay apart.
    const name = `test:${route.vendor}/${VENDORS[route.protocol]}`
    const { credential: _, credentials: __, auth: ___, byokFee: ____, bridge: _____, ...rest } = vendorOf(route)
    vendors[name] ??= { ...rest, baseUrl: `sandbox/${VENDORS[route.protocol]}`, headers: {} }
    return { ...route, vendor: name }
  }

  return { ...document, models: simulated(document.models), endpoints: simulated(document.endpoints), vendors }
}
