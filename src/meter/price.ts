// What things cost, as the catalog says it: tiers of rates. Decimal strings in, integers inside.

import * as z from 'zod'
import { type Credits, parseCredits } from '../kernel/credits.ts'
import { UNIT_NAMES, type Unit } from './kind.ts'

const decimal = z
  .union([z.string(), z.number()])
  .refine((value) => (parseCredits(value) ?? -1n) >= 0n, 'must be a decimal amount of credits, at most six decimals')
  .transform((value) => parseCredits(value) as Credits)

const count = z.number().int().positive()

const rate = decimal.optional()
// Each unit of the table, and no other.
const rates = Object.fromEntries(UNIT_NAMES.map((unit) => [unit, rate])) as Record<Unit, typeof rate>

/** A rate is for as many of a unit as the table of units says: a million tokens or characters, one of everything else. */
export const tier = z.strictObject({
  /** The tier holds for prompts of up to this many input tokens; absent: no upper bound. */
  upTo: count.optional(),
  /** The tier holds when these attributes of the call match, e.g. `{resolution: "2k"}`. */
  when: z.record(z.string(), z.string()).optional(),
  ...rates,
})

export const pricing = z.strictObject({
  unit: z.literal('credits'),
  tokenTierBasis: z.literal('input_tokens').optional(),
  tiers: z.array(tier).min(1),
  /**
   * What makes the same units dearer or cheaper, by the request's field and its value: `{service_tier: {priority: "2"}}`. Values that are
   * not standard and have none are not offered.
   */
  multipliers: z.record(z.string().max(40), z.record(z.string().max(40), decimal)).optional(),
})

export type Pricing = z.output<typeof pricing>
export type PriceTier = z.output<typeof tier>

/** By how much something is cheaper or dearer: "0.5". In millionths, as amounts are. */
export const factor = decimal.refine((value) => value > 0n && value <= 10_000_000n, 'must be above 0, and 10 at most')
const WHOLE = 1_000_000n

/** All rates times a factor, each rounded up. */
export function scaled(price: Pricing, by: bigint): Pricing {
  const tiers = price.tiers.map(({ upTo, when, ...rates }) => {
    const entries = Object.entries(rates).map(([unit, rate = 0n]) => [unit, (rate * by + WHOLE - 1n) / WHOLE])
    // The rates are those of a tier, by the same names.
    return { ...(Object.fromEntries(entries) as typeof rates), ...(upTo ? { upTo } : {}), ...(when ? { when } : {}) }
  })
  return { ...price, tiers }
}

// What a call costs that goes by the account's own key at a vendor: so much for the call, and a share of the price.

export const byokFee = z
  .strictObject({
    /** Credits for each call. */
    call: decimal.optional(),
    /** Of the price: 0.05 is a twentieth. */
    share: decimal.refine((value) => value <= WHOLE, 'must be 0 to 1').optional(),
  })
  .refine(({ call, share }) => call !== undefined || share !== undefined, 'must name "call", "share" or both')

export type ByokFee = z.output<typeof byokFee>

/** The fee as a price: every rate by the share, rounded up to what a rate can say, and so much more for the call. */
export function feePricing(pricing: Pricing, { call = 0n, share = 0n }: ByokFee): Pricing {
  const shared = scaled(pricing, share)
  return { ...shared, tiers: shared.tiers.map((tier) => ({ ...tier, call: (tier.call ?? 0n) + call })) }
}
