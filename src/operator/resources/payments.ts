// Purchases, saved card and automatic top-up of an account; for operators all payments, reconciliation and payment settings.
import * as z from 'zod'
import { Fault } from '../../kernel/fault.ts'
import type { Codes } from '../../sales/codes.ts'
import type { Selling } from '../../sales/open.ts'
import {
  accountPlanView,
  checkoutView,
  chosenPlanView,
  codeBatchPage,
  codeBatchView,
  newCodeBatch,
  PAYMENT_STATES,
  paymentPage,
  paymentSettingsInput,
  paymentSettingsView,
  paymentView,
  planOffers,
  reconciliationPage,
  reconciliationView,
  redeemedView,
  salesView,
} from '../../sales/views.ts'
import { amount, buyerOf, id, moment, paging, type Resource, range, resource, text } from '../resource.ts'

export interface PaymentDeps {
  readonly sales: Selling
  readonly publicUrl: () => string
}

const money = text(20)
const state = z.enum(PAYMENT_STATES).optional()

export function paymentResources({ sales, publicUrl }: PaymentDeps): Resource[] {
  return [...accountPayments(sales, publicUrl), ...operatorPayments(sales, publicUrl)]
}

function accountPayments(sales: Selling, publicUrl: () => string): Resource[] {
  const { payments, topUps } = sales
  const page = (account: string, name: 'buy' | 'billing') => `${publicUrl()}/console/a/${account}/${name}`

  async function remote() {
    const provider = await payments.provider()
    if (!provider?.remote) throw new Fault('conflict', { message: 'Cards cannot be saved with this payment provider.' })
    return provider.remote
  }

  return [
    resource('GET /accounts/{id}/sales', 'purchases:read', {
      answer: salesView,
      run: ({ params }) => sales.offers(params.id),
    }),
    resource('POST /accounts/{id}/purchases', 'purchases:write', {
      body: z.strictObject({ pack: text(40).optional(), amount: money.optional(), saveCard: z.boolean().optional() }),
      answer: checkoutView,
      run: ({ params, body, actor }) =>
        payments.buy(params.id, { ...body, returnUrl: page(params.id, 'buy') }, buyerOf(actor)),
    }),
    resource('GET /accounts/{id}/payments', 'purchases:read', {
      query: z.strictObject({ ...paging, state }),
      answer: paymentPage,
      run: ({ params, query }) => payments.list({ ...query, account: params.id }),
    }),
    resource('POST /accounts/{id}/payments/{payment}/check', 'purchases:read', {
      answer: paymentView,
      run: ({ params }) => payments.check(params.id, params.payment),
    }),
    resource('POST /accounts/{id}/card', 'purchases:write', {
      answer: checkoutView,
      async run({ params, actor }) {
        const at = await remote()
        const { id: customer } = await payments.customer(params.id, buyerOf(actor).email)
        return { payment: null, url: await at.saveCard(customer, page(params.id, 'billing')) }
      },
    }),
    resource('POST /accounts/{id}/portal', 'purchases:write', {
      answer: checkoutView,
      async run({ params, actor }) {
        const at = await remote()
        const { id: customer } = await payments.customer(params.id, buyerOf(actor).email)
        return { payment: null, url: await at.portal(customer, page(params.id, 'billing')) }
      },
    }),
    resource('PUT /accounts/{id}/top-up', 'purchases:write', {
      body: z.strictObject({ below: amount, amount: money, ceiling: money }),
      answer: salesView,
      async run({ params, body, by }) {
        await topUps.change(params.id, body, by)
        return sales.offers(params.id)
      },
    }),
    resource('DELETE /accounts/{id}/top-up', 'purchases:write', {
      answer: salesView,
      async run({ params, by }) {
        await topUps.change(params.id, null, by)
        return sales.offers(params.id)
      },
    }),
  ]
}

function operatorPayments({ payments, reconciliations }: Selling, publicUrl: () => string): Resource[] {
  return [
    resource('GET /payments', 'payments:read', {
      query: z.strictObject({ ...paging, state, account: id.optional() }),
      answer: paymentPage,
      run: ({ query }) => payments.list(query),
    }),
    resource('GET /payments/{payment}', 'payments:read', {
      answer: paymentView,
      run: ({ params }) => payments.get(params.payment),
    }),
    resource('POST /payments/{payment}/refund', 'payments:write', {
      body: z.strictObject({ amount: money.optional() }),
      answer: paymentView,
      run: ({ params, body, by }) => payments.refund(params.payment, body.amount, by),
    }),
    resource('POST /payments/{payment}/accept', 'payments:write', {
      body: z.strictObject({ account: id, credits: amount.refine((value) => value > 0n, 'must be above 0') }),
      answer: paymentView,
      run: ({ params, body, by }) => payments.accept(params.payment, body, by),
    }),
    resource('POST /payments/{payment}/dismiss', 'payments:write', {
      answer: paymentView,
      run: ({ params, by }) => payments.dismiss(params.payment, by),
    }),
    resource('GET /reconciliations', 'payments:read', {
      query: z.strictObject(paging),
      answer: reconciliationPage,
      run: ({ query }) => reconciliations.list(query),
    }),
    resource('POST /reconciliations', 'payments:write', {
      body: z.strictObject(range),
      answer: reconciliationView,
      run: ({ body }) => reconciliations.run({ fromMs: body.from, untilMs: body.to }),
    }),
    resource('GET /payment-settings', 'payment-settings:read', {
      answer: paymentSettingsView,
      run: () => payments.settings.view(publicUrl()),
    }),
    resource('PATCH /payment-settings', 'payment-settings:write', {
      body: paymentSettingsInput,
      answer: paymentSettingsView,
      async run({ body, by }) {
        await payments.settings.change(body, by)
        return payments.settings.view(publicUrl())
      },
    }),
  ]
}

// Plans and codes: an account's plan and its redeemed codes, and the operator's offers.

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
        /** Pay at the provider's checkout, even if there is a saved card. */
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
        /** The credits expire this many days after they were granted. */
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
