// Prices in words. What a call would cost is asked of the gateway: see playground/cost.tsx.
import { formatCredits, parseCredits } from './credits.ts'
import { kindRow, type ModelType, type PriceTier, type PriceUnit, type Pricing, UNIT_NAMES, unitRow } from './wire.ts'

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

/** The unit that says most of a price first: a piece, the output, the input; then what is not part of every call. */
const IN_ORDER: readonly PriceUnit[] = [
  ...UNIT_NAMES.filter((unit) => unit === 'image' || !(unitRow(unit).side || unitRow(unit).use)),
  ...(['output', 'input'] as const),
  ...UNIT_NAMES,
]

interface PriceWords {
  amount: string
  per: string
}

/** The first tier, in two short pieces: "250 in · 1,500 out" and "per million tokens". */
export function priceWords(pricing: Pricing | null): PriceWords {
  const tier = pricing?.tiers.at(-1)
  if (!pricing || !tier) return { amount: 'No price', per: '' }
  const from = pricing.tiers.length > 1 ? 'from ' : ''
  // Tiers stand in the order in which they are tried, so the cheapest may be anywhere.
  const least = (unit: PriceUnit) => {
    const rates = pricing.tiers.flatMap((one) => (one[unit] === undefined ? [] : [parseCredits(one[unit]) ?? 0n]))
    return rates.sort((one, other) => (one < other ? -1 : 1))[0]
  }
  const rates = IN_ORDER.flatMap((unit) => {
    const rate = least(unit)
    return rate === undefined ? [] : [{ unit, amount: formatCredits(rate) }]
  })
  const of = (unit: PriceUnit) => rates.find((one) => one.unit === unit)?.amount
  const [input, output, row] = [of('input'), of('output'), of('row')]
  if (input !== undefined && output !== undefined)
    return { amount: `${from}${input} in · ${output} out`, per: 'per million tokens' }
  const [first] = rates
  if (!first) return { amount: 'No price', per: '' }
  const { per, one, many } = unitRow(first.unit)
  const more = first.unit === 'call' && row !== undefined ? `, ${row} per row` : ''
  return { amount: `${from}${first.amount}`, per: per === 1 ? `per ${one}${more}` : `per million ${many}` }
}

export function priceSummary(pricing: Pricing | null): string {
  const { amount, per } = priceWords(pricing)
  return `${amount} ${per}`.trim()
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
