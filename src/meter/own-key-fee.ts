// What a call costs that goes by the account's own key at a vendor: so much for the call, and a share of the price.
import * as z from 'zod'
import { decimal, type Pricing, scaled } from './price.ts'

const ONE = 1_000_000n

export const ownKeyFee = z
  .strictObject({
    /** Credits for each call. */
    call: decimal.optional(),
    /** Of the price: 0.05 is a twentieth. */
    share: decimal.refine((value) => value <= ONE, 'must be 0 to 1').optional(),
  })
  .refine(({ call, share }) => call !== undefined || share !== undefined, 'must name "call", "share" or both')

export type OwnKeyFee = z.output<typeof ownKeyFee>

/** The fee as a price: every rate by the share, rounded up to what a rate can say, and so much more for the call. */
export function feePricing(pricing: Pricing, { call = 0n, share = 0n }: OwnKeyFee): Pricing {
  const shared = scaled(pricing, share)
  return { ...shared, tiers: shared.tiers.map((tier) => ({ ...tier, call: (tier.call ?? 0n) + call })) }
}
