// The most that a call can cost, before its answer is known: the hold covers it.
import { type Attributes, type Charge, chargeAt, factorOf, MILLION, rateAt } from './charge.ts'
import type { Unit } from './kind.ts'
import type { PriceTier, Pricing } from './price.ts'
import { inputTokensOf, type Usage } from './usage.ts'

/** What of a request decides its price. */
export interface Bound {
  /** The most of each unit. */
  readonly worst: Usage
  readonly price: Attributes
  /** All attributes that the answer may have, if the vendor decides some of them; absent: those of `price`. */
  readonly prices?: readonly Attributes[] | undefined
  /** Other units as which the vendor may count the `input`. */
  readonly inputUnits?: readonly Unit[] | undefined
}

const NOTHING: Charge = { amount: 0n, lines: [] }

/** The most that the quantities in `worst` can cost, at any rate that may apply to them or to less of them. */
export function mostOf(pricing: Pricing, bound: Bound): Charge {
  let most: Charge = NOTHING
  const [tier, ...others] = pricing.tiers
  if (tier && others.length === 0 && !tier.when && !pricing.multipliers) {
    // The usual price: one, whatever the attributes.
    const charge = chargeAt(tier, MILLION, readAt(tier, bound))
    return charge.amount > 0n ? charge : most
  }
  for (const attributes of bound.prices ?? [bound.price]) {
    const factor = pricing.multipliers ? factorOf(pricing, attributes) : MILLION
    for (const tier of reachable(pricing, bound.worst, attributes)) {
      const charge = chargeAt(tier, factor, readAt(tier, bound))
      if (charge.amount > most.amount) most = charge
    }
  }
  return most
}

/** The highest rate of a unit for such a call, in micro-credits per million. */
export function rateMost(unit: Unit, pricing: Pricing, { worst, price, prices = [price] }: Bound): bigint | undefined {
  let most: bigint | undefined
  for (const attributes of prices) {
    const factor = factorOf(pricing, attributes)
    for (const tier of reachable(pricing, worst, attributes)) {
      const rate = rateAt(tier, unit, factor)
      if (rate !== undefined && (most === undefined || rate > most)) most = rate
    }
  }
  return most
}

/** The tiers of prompts up to this size: a smaller one may have a higher rate. */
function reachable({ tiers }: Pricing, worst: Usage, attributes: Attributes): readonly PriceTier[] {
  const first = tiers[0]
  // The usual price.
  if (tiers.length === 1 && first && !first.when) return tiers
  const found: PriceTier[] = []
  const input = inputTokensOf(worst)
  for (const tier of tiers) {
    if (tier.when && !Object.entries(tier.when).every(([name, value]) => attributes[name] === value)) continue
    found.push(tier)
    if (tier.upTo === undefined || tier.upTo >= input) break
  }
  return found
}

/** Of input, worked out once for each tier. */
const dearest = new WeakMap<readonly Unit[], WeakMap<PriceTier, Unit>>()

function dearestOf(inputUnits: readonly Unit[], tier: PriceTier): Unit {
  let byTier = dearest.get(inputUnits)
  if (!byTier) {
    byTier = new WeakMap()
    dearest.set(inputUnits, byTier)
  }
  let unit = byTier.get(tier)
  if (unit) return unit
  unit = 'input'
  for (const one of inputUnits) if ((rateAt(tier, one) ?? 0n) > (rateAt(tier, unit) ?? 0n)) unit = one
  byTier.set(tier, unit)
  return unit
}

/**
 * The quantities as this tier charges them at most: input as its dearest unit, and no more of it than the tier allows.
 */
function readAt(tier: PriceTier, { worst, inputUnits }: Bound): Usage {
  const { input = 0, ...rest } = worst
  const fits = tier.upTo === undefined ? input : Math.min(input, Math.max(0, tier.upTo - inputTokensOf(rest)))
  const unit = inputUnits ? dearestOf(inputUnits, tier) : 'input'
  if (unit === 'input') return fits === input ? worst : { ...rest, input: fits }
  return { ...rest, [unit]: (rest[unit] ?? 0) + fits }
}
