// Answers of the API about a key's account, and quotes.
import * as z from 'zod'
import { count, credits, time } from '../kernel/view.ts'
import { accountView } from '../ledger/views.ts'
import { UNIT_NAMES } from '../meter/kind.ts'
import { limitsView } from '../meter/limits.ts'

/** The account as its keys see it. */
export const ownAccount = accountView
  .omit({ createdAt: true, status: true, statusReason: true, statusAt: true })
  .extend({
    /** The key is a test key: vendors are simulated, and nothing costs anything. */
    test: z.boolean(),
    /** The balance in words: "500 credits, of which 120 end on 1 December 2026". */
    summary: z.string(),
    /** The parts of the balance that expire or are for some products only, in the order in which they are spent. */
    lots: z.array(z.object({ remaining: credits, endsAt: time.nullable(), products: z.array(z.string()).nullable() })),
    key: z.object({
      id: z.string(),
      /** null: all of them. */
      models: z.array(z.string()).nullable(),
      /** null: all of them. */
      endpoints: z.array(z.string()).nullable(),
      expiresAt: time.nullable(),
      limits: limitsView,
    }),
  })
export type OwnAccount = z.infer<typeof ownAccount>

export const quoteView = z.object({
  endpoint: z.string(),
  product: z.string(),
  unit: z.literal('credits'),
  hold: credits,
  costAtMost: credits,
  /** What must be available for the call to be accepted; the vendor's output is then capped to what the hold covers. */
  holdAtLeast: credits,
  worstCase: z.partialRecord(z.enum(UNIT_NAMES), count),
  lines: z.array(z.object({ unit: z.enum(UNIT_NAMES), quantity: count, rate: credits, per: z.literal(1_000_000) })),
  available: credits,
  affordable: z.boolean(),
  /**
   * It would use the account's BYOK key, and cost the BYOK fee. If the account allows the gateway's credential as a
   * fallback, the hold covers the price.
   */
  byok: z.boolean(),
  catalogVersion: count,
})
export type QuoteView = z.infer<typeof quoteView>
