// Plans and codes: what an account has chosen and redeems, and what the operator offers.
import * as z from 'zod'
import type { Codes } from '../../sales/codes.ts'
import type { Selling } from '../../sales/open.ts'
import {
  accountPlanView,
  chosenPlanView,
  codeBatchPage,
  codeBatchView,
  newCodeBatch,
  planOffers,
  redeemedView,
} from '../../sales/plan-views.ts'
import { amount, buyerOf, moment, paging, type Resource, resource, text } from '../resource.ts'

export interface PlanDeps {
  readonly sales: Selling
  readonly codes: Codes
  readonly publicUrl: () => string
}

const CODES_MAX = 10_000

export function planResources({ sales: { plans }, codes, publicUrl }: PlanDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/plan', 'plan:read', {
      answer: accountPlanView,
      run: ({ params }) => plans.view(params.id),
    }),
    resource('PUT /accounts/{id}/plan', 'plan:write', {
      body: z.strictObject({
        /** The id of a plan in the catalog; null: the plan ends with its period. */
        plan: text(40).nullable(),
        /** Pays on the provider's page, also where there is a saved card. */
        checkout: z.boolean().optional(),
      }),
      answer: chosenPlanView,
      run({ params, body, by, actor }) {
        const returnUrl = `${publicUrl()}/console/a/${params.id}/billing`
        return plans.choose(params.id, body, { by, buyer: buyerOf(actor), returnUrl })
      },
    }),
    resource('POST /accounts/{id}/codes', 'plan:write', {
      body: z.strictObject({ code: text(100) }),
      answer: redeemedView,
      run: ({ params, body, by }) => codes.redeem(params.id, body.code, by),
    }),
    resource('GET /plans', 'plans:read', {
      answer: planOffers,
      run: async () => ({ plans: await plans.list() }),
    }),
    resource('GET /code-batches', 'plans:read', {
      query: z.strictObject(paging),
      answer: codeBatchPage,
      run: ({ query }) => codes.list(query),
    }),
    resource('POST /code-batches', 'plans:write', {
      body: z.strictObject({
        name: text(100),
        /** What each code grants. */
        credits: amount.refine((value) => value > 0n, 'must be above 0'),
        codes: z.int().min(1).max(CODES_MAX).default(1),
        /** How often each code can be redeemed, by as many accounts. */
        usesMax: z.int().min(1).max(1_000_000).default(1),
        /** Codes cannot be redeemed after this. */
        endsAt: moment.optional(),
        /** The credits end so many days after they were granted. */
        creditDays: z.int().min(1).max(3650).optional(),
        products: z.array(text(100)).min(1).max(200).optional(),
        priority: z.int().min(0).max(1000).optional(),
      }),
      answer: newCodeBatch,
      run: ({ body: { endsAt, ...body }, by }) => codes.create({ ...body, endsAtMs: endsAt }, by),
    }),
    resource('POST /code-batches/{batch}/end', 'plans:write', {
      answer: codeBatchView,
      run: ({ params, by }) => codes.end(params.batch, by),
    }),
  ]
}
