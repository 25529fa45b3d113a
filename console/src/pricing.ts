// Prices in words. What a call would cost is asked of the gateway: see playground/cost.tsx.
import { parseCredits } from './credits.ts'
import { kindRow, type ModelType, type PriceTier, type Pricing, UNIT_NAMES, unitRow } from './wire.ts'

export { priceSummary, priceWords } from '../../src/meter/price-words.ts'

/** What makes the rates of a model dearer or cheaper, in words: "service_tier priority", "2". */
export function multipliersOf(
  pricing: Pricing,
  batchFactor: string | null,
): readonly { when: string; times: string }[] {
  const tiers = Object.entries(pricing.multipliers ?? {}).flatMap(([field, values]) =>
    Object.entries(values).map(([value, times]) => ({ when: `${field} ${value}`, times: String(times) })),
  )
  return batchFactor === null ? tiers : [...tiers, { when: 'in batches', times: batchFactor }]
}

export function describeTier(tier: PriceTier): string {
  const parts = Object.entries(tier.when ?? {}).map(([name, value]) => `${name} ${value}`)
  if (tier.upTo !== undefined) parts.push(`up to ${tier.upTo.toLocaleString('en')} input tokens`)
  return parts.length ? parts.join(', ') : 'everything else'
}

const MILLION = 1_000_000n

/** Of a typical call, by the tier that holds for most. */
export function typicalAmount(type: ModelType, pricing: Pricing): bigint {
  const { typical } = kindRow(type)
  const size = typical.input ?? 0
  const tier =
    pricing.tiers.find((one) => !one.when && (one.upTo === undefined || one.upTo >= size)) ?? pricing.tiers.at(-1)
  const total = UNIT_NAMES.reduce((sum, unit) => {
    const rate = tier?.[unit] === undefined ? 0n : (parseCredits(tier[unit]) ?? 0n)
    return sum + (BigInt(typical[unit] ?? 0) * rate * MILLION) / BigInt(unitRow(unit).per)
  }, 0n)
  return total / MILLION
}
