// Whether a charge is what its arithmetic says, at the rates that the catalogue version it names has for such a call.
import { type Catalog, findProduct, type Product } from '../catalog/store.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { type ChargeLine, chargeOf, sumOf } from '../meter/charge.ts'
import { feePricing } from '../meter/own-key-fee.ts'
import { type Pricing, scaled } from '../meter/price.ts'
import { OWN_KEY } from './operation.ts'

interface ChargedCall {
  readonly product: string
  readonly catalog_version: number
  readonly lines: readonly ChargeLine[]
  readonly charge: Credits
  readonly held: Credits
  readonly estimated: boolean
  readonly endpoint: string
  /** Zero: a kept answer. */
  readonly route: number
  /** What of the request and its answer decided the rates. */
  readonly attributes: Readonly<Record<string, string>> | null
  /** Which of the vendor's credentials it used, if there were several; or the account's own. */
  readonly credential: string | null
}

export interface RateCheck {
  /** What is wrong, in a sentence; undefined when nothing is. */
  check(call: ChargedCall): string | undefined | Promise<string | undefined>
  /** Of a call that was not charged, and of what is still held. */
  knows(version: number, product: string): string | undefined | Promise<string | undefined>
}

/** The one price that such a call has, or what is wrong. */
type Found = Pricing | string
/** By what the row says besides its product. */
type Kind = Pick<ChargedCall, 'endpoint' | 'route' | 'credential'>

export function createRateCheck(catalogs: { at(version: number): Promise<Catalog> }): RateCheck {
  /** By version, product and kind of call: millions of calls share a few prices. */
  const known = new Map<string, Found>()

  /** At once for what is known. */
  function priceOf(version: number, product: string, kind?: Kind): Found | Promise<Found> {
    const isBatch = kind?.endpoint.startsWith(BATCH) === true
    const name = `${version} ${product} ${isBatch} ${kind?.route === 0} ${kind?.credential === OWN_KEY ? kind.route : ''}`
    return (
      known.get(name) ??
      readPrice(version, product, kind).then((price) => {
        known.set(name, price)
        return price
      })
    )
  }

  async function readPrice(version: number, product: string, kind?: Kind): Promise<Found> {
    try {
      const catalog = await catalogs.at(version)
      const found = findProduct(catalog, product)
      if (!found) return `catalogue version ${version} has no product "${product}", by which it was priced.`
      return kind ? pricingOf(found, catalog, kind) : found.pricing
    } catch (error) {
      if (error instanceof Fault && error.kind === 'not_found')
        return `there is no catalogue version ${version}, by which it was priced.`
      if (error instanceof Fault) throw error
      return `catalogue version ${version}, by which it was priced, cannot be read.`
    }
  }

  return {
    check(call) {
      const { product, catalog_version, lines, charge, held, estimated } = call
      let sum: Credits
      try {
        sum = sumOf(lines)
      } catch {
        return 'its arithmetic cannot be read.'
      }
      // An estimate is never above the hold.
      const due = estimated && sum > held ? held : sum
      if (charge !== due)
        return `its arithmetic gives ${formatCredits(due)}, but ${formatCredits(charge)} were charged.`
      const rates = priceOf(catalog_version, product, call)
      return rates instanceof Promise ? rates.then((found) => compare(call, found)) : compare(call, rates)
    },
    knows(version, product) {
      const rates = priceOf(version, product)
      return rates instanceof Promise ? rates.then(wrongOf) : wrongOf(rates)
    },
  }
}

function wrongOf(rates: Found): string | undefined {
  return typeof rates === 'string' ? rates : undefined
}

/** Its lines once more, from the price that such a call has: the tier follows from quantities and attributes. */
function compare({ product, catalog_version, lines, attributes }: ChargedCall, price: Found): string | undefined {
  if (typeof price === 'string') return price
  const usage = Object.fromEntries(lines.map(([unit, quantity]) => [unit, quantity]))
  let due: readonly ChargeLine[]
  try {
    due = chargeOf(price, usage, attributes ?? {}).lines
  } catch {
    return `no tier of the price of "${product}" in catalogue version ${catalog_version} is for such a call.`
  }
  const quantities = lines.filter(([, quantity]) => quantity !== 0)
  if (due.length === quantities.length && due.every(([unit, , rate], at) => isLine(quantities[at], unit, rate)))
    return undefined
  const named = (all: readonly ChargeLine[]) => all.map(([unit, , rate]) => `${unit} ${rate}`).join(', ') || 'nothing'
  return `the price of "${product}" in catalogue version ${catalog_version} for such a call has the rates ${named(due)}, but it was charged at ${named(lines)}.`
}

function isLine(line: ChargeLine | undefined, unit: string, rate: string): boolean {
  return line !== undefined && line[0] === unit && line[2] === rate
}

const BATCH = 'batch:'

/** What a call like this costs: in a batch, from a kept answer (which no route gave), by the account's own key. */
function pricingOf({ pricing, cache, ...product }: Product, { document }: Catalog, kind: Kind): Found {
  const { endpoint, route, credential } = kind
  const batchFactor = 'batchFactor' in product ? product.batchFactor : undefined
  const base = batchFactor !== undefined && endpoint.startsWith(BATCH) ? scaled(pricing, batchFactor) : pricing
  if (route === 0) return cache?.pricing ?? base
  if (credential !== OWN_KEY) return base
  const vendor = product.routes[route - 1]?.vendor ?? ''
  const fee = product.ownKeyFee ?? document.vendors[vendor]?.ownKeyFee
  return fee ? feePricing(base, fee) : 'it was charged as one by an own key, for which its vendor takes none.'
}
