// What a call costs that goes by the account's own key at a vendor: so much for the call, and a share of the price.
import * as z from 'zod'
import { decimal, type PriceTier, type Pricing } from './price.ts'
import { UNITS } from './usage.ts'

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
export function feePricing({ tiers, ...pricing }: Pricing, { call = 0n, share = 0n }: OwnKeyFee): Pricing {
  const shared = (rate: bigint) => (rate * share + ONE - 1n) / ONE
  const feeTier = ({ upTo, when, ...rates }: PriceTier): PriceTier => ({
    ...(upTo === undefined ? {} : { upTo }),
    ...(when === undefined ? {} : { when }),
    ...Object.fromEntries(UNITS.flatMap((unit) => (rates[unit] === undefined ? [] : [[unit, shared(rates[unit])]]))),
    call: shared(rates.call ?? 0n) + call,
  })
  return { ...pricing, tiers: tiers.map(feeTier) }
}
