// Whether a charge is what its arithmetic says, at rates that the catalogue version it names really has.
import { type Catalog, findProduct, type Product } from '../catalog/store.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { type ChargeLine, chargeOf, sumOf } from '../meter/charge.ts'
import { feePricing } from '../meter/own-key-fee.ts'
import { type Pricing, scaled } from '../meter/price.ts'
import { UNITS } from '../meter/usage.ts'
import { OWN_KEY } from './operation.ts'

interface ChargedCall {
  readonly product: string
  readonly catalog_version: number
  readonly lines: readonly ChargeLine[]
  readonly charge: Credits
  readonly held: Credits
  readonly estimated: boolean
  /** Which of the vendor's credentials it used, if there were several; or the account's own. */
  readonly credential: string | null
}

export interface RateCheck {
  /** What is wrong, in a sentence; undefined when nothing is. */
  check(call: ChargedCall): string | undefined | Promise<string | undefined>
  /** Of a call that was not charged, and of what is still held. */
  knows(version: number, product: string): string | undefined | Promise<string | undefined>
}

type Rates = ReadonlyMap<string, string>
/** The tiers that could have applied, or what is wrong. */
type Found = readonly Rates[] | string

export function createRateCheck(catalogs: { at(version: number): Promise<Catalog> }): RateCheck {
  /** By version and product. */
  const known = new Map<string, Found>()

  /** At once for what is known: millions of calls share a few prices. */
  function ratesOf(version: number, product: string, isOwn = false): Found | Promise<Found> {
    const name = `${version} ${product}${isOwn ? ' own' : ''}`
    return (
      known.get(name) ??
      readRates(version, product, isOwn).then((rates) => {
        known.set(name, rates)
        return rates
      })
    )
  }

  async function readRates(version: number, product: string, isOwn: boolean): Promise<Found> {
    try {
      const catalog = await catalogs.at(version)
      const found = findProduct(catalog, product)
      return found
        ? (isOwn ? feesOf(found, catalog) : pricingsOf(found)).flatMap(tiersOf)
        : `catalogue version ${version} has no product "${product}", by which it was priced.`
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
      const rates = ratesOf(catalog_version, product, call.credential === OWN_KEY)
      return rates instanceof Promise ? rates.then((found) => compare(call, found)) : compare(call, rates)
    },
    knows(version, product) {
      const rates = ratesOf(version, product)
      return rates instanceof Promise ? rates.then(wrongOf) : wrongOf(rates)
    },
  }
}

function wrongOf(rates: Found): string | undefined {
  return typeof rates === 'string' ? rates : undefined
}

function compare({ product, catalog_version, lines }: ChargedCall, rates: Found): string | undefined {
  if (typeof rates === 'string') return rates
  if (lines.length === 0 || rates.some((tier) => lines.every(([unit, , rate]) => tier.get(unit) === rate)))
    return undefined
  const named = lines.map(([unit, , rate]) => `${unit} ${rate}`).join(', ')
  return `no price of "${product}" in catalogue version ${catalog_version} has the rates ${named}.`
}

function pricingsOf(product: Product): Pricing[] {
  const { pricing, cache } = product
  const batchFactor = 'batchFactor' in product ? product.batchFactor : undefined
  return [pricing, ...(cache?.pricing ? [cache.pricing] : []), ...(batchFactor ? [scaled(pricing, batchFactor)] : [])]
}

/** What a call by an own key can have cost, at any of the product's vendors. */
function feesOf({ routes, ownKeyFee, pricing }: Product, { document }: Catalog): Pricing[] {
  const fees = ownKeyFee ? [ownKeyFee] : routes.flatMap(({ vendor }) => document.vendors[vendor]?.ownKeyFee ?? [])
  return fees.map((fee) => feePricing(pricing, fee))
}

/** Which tier held depended on the call; the row keeps only the rates, so any tier may have been it. */
function tiersOf(pricing: Pricing): Rates[] {
  const oneOfEach = Object.fromEntries(UNITS.map((unit) => [unit, 1]))
  return pricing.tiers.flatMap(({ upTo: _, when: __, ...rates }) =>
    attributesOf(pricing).map((attributes) => {
      const { lines } = chargeOf({ ...pricing, tiers: [rates] }, oneOfEach, attributes)
      return new Map(lines.map(([unit, , rate]) => [unit, rate]))
    }),
  )
}

/** Every choice of values that have a multiplier, none among them. */
function attributesOf({ multipliers = {} }: Pricing): Record<string, string>[] {
  return Object.entries(multipliers).reduce<Record<string, string>[]>(
    (made, [name, values]) =>
      made.flatMap((one) => [one, ...Object.keys(values).map((value) => ({ ...one, [name]: value }))]),
    [{}],
  )
}
