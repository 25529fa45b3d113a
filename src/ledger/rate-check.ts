// Whether a charge is what its arithmetic says, at rates that the catalogue version it names really has.
import { type Catalog, findProduct, type Product } from '../catalog/store.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import { type ChargeLine, chargeOf, sumOf } from '../meter/charge.ts'
import type { Pricing } from '../meter/price.ts'
import { UNITS } from '../meter/usage.ts'

export interface ChargedCall {
  readonly product: string
  readonly catalog_version: number
  readonly lines: readonly ChargeLine[]
  readonly charge: Credits
  readonly held: Credits
  readonly estimated: boolean
}

export interface RateCheck {
  /** What is wrong, in a sentence; undefined when nothing is. */
  check(call: ChargedCall): Promise<string | undefined>
}

type Rates = ReadonlyMap<string, string>

export function createRateCheck(catalogs: { at(version: number): Promise<Catalog> }): RateCheck {
  /** By version and product: one map of rates for each tier that could have applied. */
  const known = new Map<string, readonly Rates[] | string>()

  async function ratesOf(version: number, product: string): Promise<readonly Rates[] | string> {
    const name = `${version} ${product}`
    let rates = known.get(name)
    if (rates === undefined) {
      rates = await readRates(version, product)
      known.set(name, rates)
    }
    return rates
  }

  async function readRates(version: number, product: string): Promise<readonly Rates[] | string> {
    try {
      const found = findProduct(await catalogs.at(version), product)
      return found
        ? pricingsOf(found).flatMap(tiersOf)
        : `catalogue version ${version} has no product "${product}", by which it was charged.`
    } catch (error) {
      if (error instanceof Fault && error.kind === 'not_found')
        return `there is no catalogue version ${version}, by which it was charged.`
      throw error
    }
  }

  return {
    async check({ product, catalog_version, lines, charge, held, estimated }) {
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
      if (lines.length === 0) return undefined
      const rates = await ratesOf(catalog_version, product)
      if (typeof rates === 'string') return rates
      const fits = rates.some((tier) => lines.every(([unit, , rate]) => tier.get(unit) === rate))
      return fits
        ? undefined
        : `no price of "${product}" in catalogue version ${catalog_version} has the rates ${lines.map(([unit, , rate]) => `${unit} ${rate}`).join(', ')}.`
    },
  }
}

function pricingsOf(product: Product & { cache?: { pricing?: Pricing | undefined } | undefined }): Pricing[] {
  const cached = product.cache?.pricing
  return cached ? [product.pricing, cached] : [product.pricing]
}

/** Which tier held depended on the call; the row keeps only the rates, so any tier may have been it. */
function tiersOf(pricing: Pricing): Rates[] {
  const oneOfEach = Object.fromEntries(UNITS.map((unit) => [unit, 1]))
  return pricing.tiers.map(({ upTo: _, when: __, ...rates }) => {
    const { lines } = chargeOf({ ...pricing, tiers: [rates] }, oneOfEach)
    return new Map(lines.map(([unit, , rate]) => [unit, rate]))
  })
}
