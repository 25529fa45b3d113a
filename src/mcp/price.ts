// Prices in words, for descriptions.
import { type Catalog, findProduct } from '../catalog/store.ts'
import { formatCredits } from '../kernel/credits.ts'
import type { PriceTier, Pricing } from '../meter/price.ts'
import { UNITS, type Unit } from '../meter/usage.ts'

const PER: Record<Unit, string> = {
  input: 'per million input tokens',
  cachedInput: 'per million cached input tokens',
  cacheWrite: 'per million tokens written to the cache',
  cacheWriteHour: 'per million tokens written to the cache for an hour or longer',
  inputAudio: 'per million audio input tokens',
  inputImage: 'per million image input tokens',
  output: 'per million output tokens',
  outputAudio: 'per million audio output tokens',
  outputImage: 'per million image output tokens',
  image: 'an image',
  second: 'a second',
  character: 'per million characters',
  webSearch: 'a web search',
  fileSearch: 'a file search',
  codeRun: 'a run of code',
  call: 'a call',
  row: 'a row',
}

export function priceText(catalog: Catalog, product: string): string {
  const found = findProduct(catalog, product)
  return found ? `Costs ${pricingText(found.pricing)}.` : ''
}

/** The last tier holds for everything; the others say when they do. */
export function pricingText({ tiers }: Pricing): string {
  const last = tiers.at(-1)
  if (tiers.length === 1 && last) return tierText(last)
  const unit = UNITS.find((name) => last?.[name] !== undefined)
  const rates = tiers.flatMap((tier) => (unit && tier[unit] !== undefined ? [tier[unit]] : []))
  const inOrder = rates.sort((a, b) => (a < b ? -1 : 1))
  return unit === undefined
    ? ''
    : `${formatCredits(inOrder[0] ?? 0n)} to ${formatCredits(inOrder.at(-1) ?? 0n)} credits ${PER[unit]}`
}

function tierText(tier: PriceTier): string {
  const parts = UNITS.flatMap((unit) => {
    const rate = tier[unit]
    return rate === undefined || rate === 0n ? [] : [`${formatCredits(rate)} credits ${PER[unit]}`]
  })
  return parts.join(' and ') || 'nothing'
}
