// Prices in the catalog's form: tiers of rates. They are read from decimal strings and held as integers.

import * as z from 'zod'
import { type Credits, parseCredits } from '../kernel/credits.ts'
import { UNIT_NAMES, type Unit } from './kind.ts'

const decimal = z
  .union([z.string(), z.number()])
  .refine((value) => (parseCredits(value) ?? -1n) >= 0n, 'must be a decimal amount of credits, at most six decimals')
  .transform((value) => parseCredits(value) as Credits)

const count = z.number().int().positive()

const rate = decimal.optional()
// Exactly the units of the table.
const rates = Object.fromEntries(UNIT_NAMES.map((unit) => [unit, rate])) as Record<Unit, typeof rate>

/**
 * A rate applies to as many units as the table of units says: a million tokens or characters, one of everything else.
 */
export const tier = z.strictObject({
  /** The tier applies to prompts of up to this many input tokens; absent: no upper bound. */
  upTo: count.optional(),
  /** The tier applies if these attributes of the call match, e.g. `{resolution: "2k"}`. */
  when: z.record(z.string(), z.string()).optional(),
  ...rates,
})

export const pricing = z.strictObject({
  unit: z.literal('credits'),
  tokenTierBasis: z.literal('input_tokens').optional(),
  tiers: z.array(tier).min(1),
  /**
   * Factors on all rates, by a request field and its value: `{service_tier: {priority: "2"}}`. A non-standard value
   * without a factor is not offered.
   */
  multipliers: z.record(z.string().max(40), z.record(z.string().max(40), decimal)).optional(),
})

export type Pricing = z.output<typeof pricing>
export type PriceTier = z.output<typeof tier>

/** An amount above 0, held in millionths. */
export const positive = decimal.refine((value) => value > 0n, 'must be above 0')

/** A price factor such as "0.5", held in millionths like amounts. */
export const factor = decimal.refine((value) => value > 0n && value <= 10_000_000n, 'must be above 0, and 10 at most')
const WHOLE = 1_000_000n

/** All rates multiplied by a factor, each rounded up. */
export function scaled(price: Pricing, by: bigint): Pricing {
  const tiers = price.tiers.map(({ upTo, when, ...rates }) => {
    const entries = Object.entries(rates).map(([unit, rate = 0n]) => [unit, (rate * by + WHOLE - 1n) / WHOLE])
    // The same members as the tier's rates.
    return { ...(Object.fromEntries(entries) as typeof rates), ...(upTo ? { upTo } : {}), ...(when ? { when } : {}) }
  })
  return { ...price, tiers }
}

// The fee for a call with the account's own vendor key (BYOK): an amount per call, and a share of the price.

export const byokFee = z
  .strictObject({
    /** Credits for each call. */
    call: decimal.optional(),
    /** The share of the price: 0.05 is a twentieth. */
    share: decimal.refine((value) => value <= WHOLE, 'must be 0 to 1').optional(),
  })
  .refine(({ call, share }) => call !== undefined || share !== undefined, 'must name "call", "share" or both')

export type ByokFee = z.output<typeof byokFee>

/** The fee as a price: every rate times the share, rounded up, plus the amount per call. */
export function feePricing(pricing: Pricing, { call = 0n, share = 0n }: ByokFee): Pricing {
  const shared = scaled(pricing, share)
  return { ...shared, tiers: shared.tiers.map((tier) => ({ ...tier, call: (tier.call ?? 0n) + call })) }
}
