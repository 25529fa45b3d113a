// What only the simulated vendors serve: its answers are made up, and it is offered and charged like everything else
// until an operator switches it off.

/** Addresses of the simulated vendors that the gateway starts. */
export function isSandbox(baseUrl: string): boolean {
  return /^sandbox(?:\/[a-z]{1,20})?$/.test(baseUrl)
}

interface Product {
  readonly enabled?: boolean | undefined
  readonly routes: ReadonlyArray<{ readonly vendor: string; readonly enabled?: boolean | undefined }>
}
type Vendors = Readonly<Record<string, { readonly baseUrl: string }>>

export function isSimulated({ routes }: Product, vendors: Vendors): boolean {
  const used = routes.filter(({ enabled }) => enabled !== false)
  return used.length > 0 && used.every(({ vendor }) => isSandbox(vendors[vendor]?.baseUrl ?? ''))
}

interface Document {
  readonly vendors: Vendors
  readonly models: Readonly<Record<string, Product>>
  readonly endpoints: Readonly<Record<string, Product>>
}

export const hasRealVendor = ({ vendors }: Pick<Document, 'vendors'>): boolean =>
  Object.values(vendors).some(({ baseUrl }) => !isSandbox(baseUrl))

/** Models and data endpoints that are offered. */
export function simulatedOffers({ vendors, models, endpoints }: Document): string[] {
  return Object.entries({ ...models, ...endpoints }).flatMap(([uid, product]) =>
    product.enabled !== false && isSimulated(product, vendors) ? [uid] : [],
  )
}

/** The document with all of them offered, or none. */
export function withSimulated<D extends Document>(document: D, enabled: boolean): D {
  const switched = <P extends Product>(products: Readonly<Record<string, P>>) =>
    Object.fromEntries(
      Object.entries(products).map(([uid, product]) => [
        uid,
        isSimulated(product, document.vendors) ? { ...product, enabled } : product,
      ]),
    )
  return { ...document, models: switched(document.models), endpoints: switched(document.endpoints) }
}
