// What is shown of plans and codes.
import * as z from 'zod'
import { count, credits, page, time } from '../kernel/view.ts'
import { limitsView } from '../meter/limits.ts'

/** A plan that can be chosen. */
const planOffer = z.object({
  id: z.string(),
  name: z.string(),
  /** For a month, in the catalog's currency; "0" is free. */
  price: z.string(),
  currency: z.string(),
  /** What each month brings. What is left of them ends with the month. */
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
      /** What it becomes then: the id of a plan, the same or another; null: it ends. */
      next: z.string().nullable(),
      /** A month's, as the catalog says now. */
      price: z.string(),
      currency: z.string(),
      /** The month that should have begun is not paid. */
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
/** Where it is paid, if it is not charged to a saved card: the plan begins when it is. */
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
