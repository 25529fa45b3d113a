// What is sold, payments, saved cards and reconciliations as people see them.
import * as z from 'zod'
import { count, credits, page, time } from '../../kernel/view.ts'
import { limitsView } from '../../meter/limits.ts'
import { STRIPE_SECRETS } from '../billing/payments/secrets.ts'
import { PROVIDER_NAMES } from '../billing/payments/views.ts'

/** "20.00", with the decimals of its currency. */
const money = z.string().regex(/^-?\d+(\.\d{1,3})?$/)

export const PAYMENT_STATES = ['pending', 'paid', 'refunded', 'disputed', 'quarantined', 'failed'] as const
const provider = z.enum(PROVIDER_NAMES)

export const paymentView = z.object({
  id: z.string(),
  /** Null: the account is unknown. */
  account: z.string().nullable(),
  accountName: z.string().nullable(),
  provider,
  providerId: z.string().nullable(),
  kind: z.enum(['pack', 'amount', 'plan', 'top_up', 'other']),
  offer: z.string().nullable(),
  currency: z.string(),
  /** The amount paid, with tax; for a pending payment the price. */
  amount: money,
  tax: money,
  credits,
  state: z.enum(PAYMENT_STATES),
  /** Why it is quarantined, disputed or failed. */
  reason: z.string().nullable(),
  refunded: money,
  dispute: z.enum(['none', 'open', 'lost', 'won']),
  /** Credits that a refund or dispute took back, and those that were already spent and are a loss. */
  creditsReversed: credits,
  creditsLost: credits,
  createdAt: time,
  paidAt: time.nullable(),
  receiptUrl: z.string().nullable(),
})
export type PaymentView = z.infer<typeof paymentView>
export const paymentPage = page(paymentView)

const cardView = z.object({ brand: z.string(), last4: z.string(), expires: z.string() })

const topUpView = z.object({
  /** Below so many credits, this amount is charged, at most so much in a calendar month (UTC). */
  below: credits,
  amount: money,
  ceiling: money,
  currency: z.string(),
  /** Charged in this month so far. */
  used: money,
  /** Why automatic top-up is paused; null: it is not. */
  problem: z.string().nullable(),
})
export type TopUpView = z.infer<typeof topUpView>

/** What an account can buy, and how it pays. */
export const salesView = z.object({
  /** Null: nothing is sold. */
  currency: z.string().nullable(),
  provider: provider.nullable(),
  amounts: z.object({ pricePerCredit: z.string(), minimum: money, maximum: money }).nullable(),
  packs: z.array(
    z.object({
      id: z.string(),
      name: z.string(),
      price: money,
      credits,
      endsAfterDays: count.nullable(),
      products: z.array(z.string()).nullable(),
    }),
  ),
  card: cardView.nullable(),
  /** Whether cards can be saved and charged, and the provider has a page for the customer. */
  supportsSavedCards: z.boolean(),
  topUp: topUpView.nullable(),
  /** The first field of the billing details that is missing; without it nothing can be bought. */
  missing: z.string().nullable(),
})
export type SalesView = z.infer<typeof salesView>

export const checkoutView = z.object({ payment: z.string().nullable(), url: z.string() })
export type CheckoutView = z.infer<typeof checkoutView>

export const paymentSettingsView = z.object({
  provider: z.enum(['off', ...provider.options]),
  /** Whether test payments can be chosen: every vendor is simulated. */
  canSimulate: z.boolean(),
  tax: z.enum(['off', 'inclusive', 'exclusive']),
  checkoutUrl: z.string().nullable(),
  /** Which secrets are stored; they are never shown. */
  secrets: z.object({ stripe: z.boolean(), 'stripe-webhook': z.boolean(), 'payment-webhook': z.boolean() }),
  /** Of the Stripe key. */
  mode: z.enum(['live', 'test']).nullable(),
  webhookUrls: z.object({ stripe: z.string(), webhook: z.string() }),
})
export type PaymentSettingsView = z.infer<typeof paymentSettingsView>

export const paymentSettingsInput = z.strictObject({
  provider: paymentSettingsView.shape.provider
    .optional()
    .describe('off, stripe, webhook, or simulated for test payments'),
  tax: z
    .enum(['off', 'inclusive', 'exclusive'])
    .optional()
    .describe('Whether Stripe computes the tax, as a part of the price or on top of it'),
  checkoutUrl: z
    .string()
    .max(500)
    .refine((value) => /^https?:$/.test(URL.parse(value)?.protocol ?? ''), 'must be an http(s) address')
    .nullable()
    .optional()
    .meta({
      description: 'Where customers of another payment provider pay, with {payment}, {amount}, …',
      value: 'address',
    }),
  /** Null removes one. */
  secrets: z
    .strictObject({
      ...STRIPE_SECRETS,
      'payment-webhook': z
        .string()
        .regex(/^whsec_[A-Za-z0-9+/=]{32,200}$/, 'must be whsec_ and at least 24 bytes in base64')
        .nullable()
        .optional()
        .meta({ description: 'The secret "payment-webhook"', read: 'sealed' }),
    })
    .optional(),
})
export type PaymentSettingsInput = z.infer<typeof paymentSettingsInput>

// What is shown of plans and codes.

/** A plan that can be chosen. */
const planOffer = z.object({
  id: z.string(),
  name: z.string(),
  /** For a month, in the catalog's currency; "0" is free. */
  price: z.string(),
  currency: z.string(),
  /** The credits of each month. What is left of them expires at the end of the month. */
  credits,
  /** Null: for all products. */
  products: z.array(z.string()).nullable(),
  limits: limitsView,
  trialDays: count.nullable(),
  /** For operators only: how many accounts are on it. */
  accounts: count.exactOptional(),
})
export type PlanOffer = z.infer<typeof planOffer>

export const planOffers = z.object({ plans: z.array(planOffer) })

export const accountPlanView = z.object({
  /** Null: the account has no plan. */
  plan: z
    .object({
      id: z.string(),
      name: z.string(),
      trial: z.boolean(),
      /** When the month, or the trial, is over. */
      endsAt: time,
      /** The id of the plan in the next period; null: the plan ends. */
      next: z.string().nullable(),
      /** A month's, as the catalog says now. */
      price: z.string(),
      currency: z.string(),
      /** The current month is not paid yet. */
      due: z.boolean(),
      /** Why it could not be charged. */
      problem: z.string().nullable(),
      /** When the saved card is charged again. */
      retryAt: time.nullable(),
    })
    .nullable(),
  /** What the account can choose. */
  plans: z.array(planOffer),
})
export type AccountPlanView = z.infer<typeof accountPlanView>
/** `checkout`: where to pay, if no saved card was charged. The plan starts when it is paid. */
export const chosenPlanView = accountPlanView.extend({
  checkout: z.object({ payment: z.string().nullable(), url: z.string() }).nullable(),
})
export type ChosenPlanView = z.infer<typeof chosenPlanView>

export const codeBatchView = z.object({
  id: z.string(),
  name: z.string(),
  credits,
  codes: count,
  /** How often each code can be redeemed. */
  usesMax: count,
  /** How often codes were redeemed. */
  used: count,
  /** Codes cannot be redeemed after this. Null: always. */
  endsAt: time.nullable(),
  /** The credits end so many days after they were granted. Null: they do not. */
  creditDays: count.nullable(),
  products: z.array(z.string()).nullable(),
  createdAt: time,
  createdBy: z.string(),
})
export type CodeBatchView = z.infer<typeof codeBatchView>
export const codeBatchPage = page(codeBatchView)
/** The codes are shown once. */
export const newCodeBatch = codeBatchView.extend({ list: z.array(z.string()) })
export type NewCodeBatch = z.infer<typeof newCodeBatch>

export const redeemedView = z.object({ credits, endsAt: time.nullable() })
export type RedeemedView = z.infer<typeof redeemedView>
