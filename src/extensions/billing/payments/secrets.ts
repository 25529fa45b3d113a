// The secrets of a Stripe account, as people give them.
import * as z from 'zod'

/** Null removes one. */
export const STRIPE_SECRETS = {
  stripe: z
    .string()
    .regex(/^(?:sk|rk)_(?:live|test)_\w{10,250}$/, 'must be a secret or restricted key of Stripe')
    .nullable()
    .optional()
    .meta({ description: 'The secret "stripe"', read: 'sealed' }),
  'stripe-webhook': z
    .string()
    .regex(/^whsec_[\w+/=]{10,250}$/, 'must be a webhook secret of Stripe, which begins with whsec_')
    .nullable()
    .optional()
    .meta({ description: 'The secret "stripe-webhook"', read: 'sealed' }),
}

export const modeOf = (key: string) => (key.includes('_live_') ? ('live' as const) : ('test' as const))
