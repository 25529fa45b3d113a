// Prices in words. What a call would cost is asked of the gateway: see playground/cost.tsx.
import { formatCredits, parseCredits } from './credits.ts'
import type { ModelType, PriceTier, PriceUnit, Pricing } from './wire.ts'

export const UNIT_NAMES: Record<PriceUnit, { one: string; many: string; price: string }> = {
  input: { one: 'input token', many: 'input tokens', price: 'Input, per million tokens' },
  cachedInput: { one: 'cached input token', many: 'cached input tokens', price: 'Cached input, per million tokens' },
  cacheWrite: { one: 'cache write token', many: 'cache write tokens', price: 'Cache write, per million tokens' },
  cacheWriteHour: {
    one: 'cache write token (an hour)',
    many: 'cache write tokens (an hour)',
    price: 'Cache write for an hour, per million tokens',
  },
  inputAudio: { one: 'audio input token', many: 'audio input tokens', price: 'Audio input, per million tokens' },
  inputImage: { one: 'image input token', many: 'image input tokens', price: 'Image input, per million tokens' },
  output: { one: 'output token', many: 'output tokens', price: 'Output, per million tokens' },
  outputAudio: { one: 'audio output token', many: 'audio output tokens', price: 'Audio output, per million tokens' },
  outputImage: { one: 'image output token', many: 'image output tokens', price: 'Image output, per million tokens' },
  image: { one: 'image', many: 'images', price: 'Per image' },
  second: { one: 'second', many: 'seconds', price: 'Per second' },
  character: { one: 'character', many: 'characters', price: 'Per million characters' },
  webSearch: { one: 'web search', many: 'web searches', price: 'Per web search' },
  fileSearch: { one: 'file search', many: 'file searches', price: 'Per file search' },
  codeRun: { one: 'run of code', many: 'runs of code', price: 'Per run of code' },
  call: { one: 'call', many: 'calls', price: 'Per call' },
  row: { one: 'row', many: 'rows', price: 'Per row returned' },
}

export const PRICE_UNITS = Object.keys(UNIT_NAMES) as PriceUnit[]

/** What is not part of every call: offered where it has a price. */
export const EXTRA_UNITS: readonly PriceUnit[] = [
  'webSearch',
  'fileSearch',
  'codeRun',
  'image',
  'cacheWriteHour',
  'inputAudio',
  'outputAudio',
  'inputImage',
  'outputImage',
]

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
  const input = least('input')
  const output = least('output')
  if (input !== undefined && output !== undefined)
    return { amount: `${from}${formatCredits(input)} in · ${formatCredits(output)} out`, per: 'per million tokens' }
  for (const unit of ['image', 'second', 'call', 'row'] as const) {
    const rate = least(unit)
    if (rate !== undefined) return { amount: `${from}${formatCredits(rate)}`, per: `per ${unit}${more(unit)}` }
  }
  const character = least('character')
  if (character !== undefined) return { amount: `${from}${formatCredits(character)}`, per: 'per million characters' }
  const [rate = 0n, side] = output === undefined ? [input, 'input'] : [output, 'output']
  return { amount: `${from}${formatCredits(rate)}`, per: `per million ${side} tokens` }

  function more(unit: PriceUnit): string {
    const row = unit === 'call' ? least('row') : undefined
    return row === undefined ? '' : `, ${formatCredits(row)} per row`
  }
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

/** What an ordinary call uses, for comparing price and cost. */
const TYPICAL: Partial<Record<PriceUnit, bigint>> = {
  input: 1000n,
  output: 300n,
  image: 1n,
  second: 5n,
  character: 500n,
  call: 1n,
  row: 10n,
}
const MILLION = 1_000_000n

/** Of a typical call, by the tier that holds for most. */
export function typicalAmount(type: ModelType, pricing: Pricing): bigint {
  const size = TYPICAL.input ?? 0n
  const tier =
    pricing.tiers.find((one) => !one.when && (one.upTo === undefined || one.upTo >= size)) ?? pricing.tiers.at(-1)
  const tokens = type === 'text' || type === 'embedding'
  return PRICE_UNITS.reduce((sum, unit) => {
    const rate = tier?.[unit] === undefined ? 0n : (parseCredits(tier[unit]) ?? 0n)
    const used = (TYPICAL[unit] ?? 0n) * rate
    return sum + (tokens || unit === 'input' || unit === 'output' || unit === 'character' ? used / MILLION : used)
  }, 0n)
}
