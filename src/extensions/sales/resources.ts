// Purchases, saved card and automatic top-up of an account; for operators all payments, reconciliation and payment
// settings.
import * as z from 'zod'
import { Fault } from '../../kernel/fault.ts'
import {
  amount,
  buyerOf,
  id,
  moment,
  paging,
  type Resource,
  range,
  requireCredits,
  resource,
  text,
} from '../../operator/resource.ts'
import { reconciliationPage, reconciliationView } from '../billing/payments/views.ts'
import type { Codes } from './codes.ts'
import type { Selling } from './open.ts'
import * as views from './views.ts'

const money = text(20).meta({ value: 'amount' })
const state = z
  .enum(views.PAYMENT_STATES)
  .optional()
  .describe(`One of ${views.PAYMENT_STATES.join(', ')}`)

const account = id.optional().meta({ description: 'Of one account', value: 'account', refersTo: 'account' })
const part = money.optional().describe('A part, such as 5.00; without it, all that is left')

export function paymentResources({ sales, publicUrl }: { sales: Selling; publicUrl: () => string }): Resource[] {
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
      title: 'Show what an account can buy',
      answer: views.salesView,
      run: ({ params }) => sales.offers(params.id),
    }),
    resource('POST /accounts/{id}/purchases', 'purchases:write', {
      title: 'Buy credits or a plan',
      body: z.strictObject({ pack: text(40).optional(), amount: money.optional(), saveCard: z.boolean().optional() }),
      answer: views.checkoutView,
      run: ({ params, body, actor }) =>
        payments.buy(params.id, { ...body, returnUrl: page(params.id, 'buy') }, buyerOf(actor)),
    }),
    resource('GET /accounts/{id}/payments', 'purchases:read', {
      title: 'List the payments of an account',
      query: z.strictObject({ ...paging, state }),
      answer: views.paymentPage,
      run: ({ params, query }) => payments.list({ ...query, account: params.id }),
    }),
    resource('POST /accounts/{id}/payments/{payment}/check', 'purchases:read', {
      title: 'Check a payment with its provider',
      answer: views.paymentView,
      run: ({ params }) => payments.check(params.id, params.payment),
    }),
    resource('POST /accounts/{id}/card', 'purchases:write', {
      title: 'Save a card',
      answer: views.checkoutView,
      async run({ params, actor }) {
        const at = await remote()
        const { id: customer } = await payments.customer(params.id, buyerOf(actor).email)
        return { payment: null, url: await at.saveCard(customer, page(params.id, 'billing')) }
      },
    }),
    resource('POST /accounts/{id}/portal', 'purchases:write', {
      title: 'Open the payment provider’s portal',
      answer: views.checkoutView,
      async run({ params, actor }) {
        const at = await remote()
        const { id: customer } = await payments.customer(params.id, buyerOf(actor).email)
        return { payment: null, url: await at.portal(customer, page(params.id, 'billing')) }
      },
    }),
    resource('PUT /accounts/{id}/top-up', 'purchases:write', {
      title: 'Set automatic top-up',
      body: z.strictObject({ below: amount, amount: money, ceiling: money }),
      answer: views.salesView,
      async run({ params, body, by }) {
        await topUps.change(params.id, body, by)
        return sales.offers(params.id)
      },
    }),
    resource('DELETE /accounts/{id}/top-up', 'purchases:write', {
      title: 'Turn automatic top-up off',
      answer: views.salesView,
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
      title: 'List all payments',
      query: z.strictObject({ ...paging, state, account }),
      answer: views.paymentPage,
      run: ({ query }) => payments.list(query),
    }),
    resource('GET /payments/{payment}', 'payments:read', {
      title: 'Show a payment',
      answer: views.paymentView,
      run: ({ params }) => payments.get(params.payment),
    }),
    resource('POST /payments/{payment}/refund', 'payments:write', {
      title: 'Refund a payment',
      body: z.strictObject({ amount: part }),
      answer: views.paymentView,
      run: ({ params, body, by }) => payments.refund(params.payment, body.amount, by),
    }),
    resource('POST /payments/{payment}/accept', 'payments:write', {
      title: 'Accept a quarantined payment',
      body: z.strictObject({ account: id, credits: amount.refine((value) => value > 0n, 'must be above 0') }),
      answer: views.paymentView,
      run({ params, body, actor, by }) {
        requireCredits(actor)
        return payments.accept(params.payment, body, by)
      },
    }),
    resource('POST /payments/{payment}/dismiss', 'payments:write', {
      title: 'Dismiss a quarantined payment',
      answer: views.paymentView,
      run: ({ params, by }) => payments.dismiss(params.payment, by),
    }),
    resource('GET /reconciliations', 'payments:read', {
      title: 'List reconciliations with the payment provider',
      query: z.strictObject(paging),
      answer: reconciliationPage,
      run: ({ query }) => reconciliations.list('', query),
    }),
    resource('POST /reconciliations', 'payments:write', {
      title: 'Reconcile payments with the provider now',
      body: z.strictObject(range),
      answer: reconciliationView,
      run: ({ body }) => reconciliations.run('', { fromMs: body.from, untilMs: body.to }),
    }),
    resource('GET /payment-settings', 'payment-settings:read', {
      title: 'Show the payment settings',
      answer: views.paymentSettingsView,
      run: () => payments.settings.view(publicUrl()),
    }),
    resource('PATCH /payment-settings', 'payment-settings:write', {
      title: 'Change the payment settings',
      body: views.paymentSettingsInput,
      answer: views.paymentSettingsView,
      async run({ body, actor, by }) {
        // Whoever has the secrets can say that something was paid.
        requireCredits(actor)
        await payments.settings.change(body, by)
        return payments.settings.view(publicUrl())
      },
    }),
  ]
}

// Plans and codes: an account's plan and its redeemed codes, and the operator's offers.

interface PlanDeps {
  readonly sales: Selling
  readonly codes: Codes
  readonly publicUrl: () => string
}

const CODES_MAX = 10_000
const codeFields = {
  codes: z.int().min(1).max(CODES_MAX).default(1).describe('How many codes; 1 by default'),
  usesMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(1)
    .meta({ description: 'How often each can be redeemed, by as many accounts; 1 by default', option: 'uses' }),
  endsAt: moment.optional().meta({ description: 'Codes cannot be redeemed after this', option: 'ends' }),
  creditDays: z
    .int()
    .min(1)
    .max(3650)
    .optional()
    .meta({ description: 'The credits end so many days after they were granted', option: 'days' }),
  products: z
    .array(text(100))
    .min(1)
    .max(200)
    .optional()
    .describe('Models and data endpoints that the credits are for'),
  priority: z.int().min(0).max(1000).optional().describe('Lower numbers are spent first; 50 by default'),
}

export function planResources({ sales: { plans }, codes, publicUrl }: PlanDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/plan', 'plan:read', {
      title: 'Show the plan of an account',
      answer: views.accountPlanView,
      run: ({ params }) => plans.view(params.id),
    }),
    resource('PUT /accounts/{id}/plan', 'plan:write', {
      title: 'Change the plan of an account',
      body: z.strictObject({
        /** The id of a plan in the catalog; null: the plan ends with its period. */
        plan: text(40).nullable(),
        checkout: z.boolean().optional().describe('Does not charge the saved card; prints the page to pay at instead'),
      }),
      answer: views.chosenPlanView,
      run({ params, body, by, actor }) {
        const returnUrl = `${publicUrl()}/console/a/${params.id}/billing`
        return plans.choose(params.id, body, { by, buyer: buyerOf(actor), returnUrl })
      },
    }),
    resource('POST /accounts/{id}/codes', 'plan:write', {
      title: 'Redeem a code',
      body: z.strictObject({ code: text(100) }),
      answer: views.redeemedView,
      run: ({ params, body, by }) => codes.redeem(params.id, body.code, by),
    }),
    resource('GET /plans', 'plans:read', {
      title: 'List plans and packs',
      answer: views.planOffers,
      run: async () => ({ plans: await plans.list() }),
    }),
    resource('GET /code-batches', 'plans:read', {
      title: 'List batches of codes',
      query: z.strictObject(paging),
      answer: views.codeBatchPage,
      run: ({ query }) => codes.list(query),
    }),
    resource('POST /code-batches', 'plans:write', {
      title: 'Create a batch of codes',
      body: z.strictObject({
        name: text(100),
        /** What each code grants. */
        credits: amount.refine((value) => value > 0n, 'must be above 0'),
        ...codeFields,
      }),
      answer: views.newCodeBatch,
      run({ body: { endsAt, ...body }, actor, by }) {
        requireCredits(actor)
        return codes.create({ ...body, endsAtMs: endsAt }, by)
      },
    }),
    resource('POST /code-batches/{batch}/end', 'plans:write', {
      title: 'End a batch of codes',
      answer: views.codeBatchView,
      run: ({ params, by }) => codes.end(params.batch, by),
    }),
  ]
}
