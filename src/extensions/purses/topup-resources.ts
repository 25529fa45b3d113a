// Top-ups for the account's people and programs: the provider and the price, checkouts, what was paid, refunds, and the
// link to the page for a customer.
import * as z from 'zod'
import { Fault } from '../../kernel/fault.ts'
import { paging, type Resource, range, requireRight, resource, salt } from '../../operator/resource.ts'
import type { Reconciliations } from '../billing/payments/reconcile.ts'
import { reconciliationPage, reconciliationView } from '../billing/payments/views.ts'
import { PAYMENTS_BYTES_MAX, PURSE_PAGE, type PursePayments, paymentsInput } from './payments.ts'
import type { Purses } from './purses.ts'
import type { PurseSessions } from './sessions.ts'
import type { TopUps } from './topups.ts'
import { pageLinkView, paymentsView, TOP_UP_STATES, topUpCheckout, topUpPage, topUpView } from './views.ts'

export interface TopUpResourceDeps {
  readonly purses: Pick<Purses, 'find'>
  readonly sessions: Pick<PurseSessions, 'make'>
  readonly payments: PursePayments
  readonly topUps: TopUps
  readonly reconciliations: Reconciliations
  readonly publicUrl: () => string
}

export const checkoutInput = z.strictObject({
  amount: z.string().max(20).describe('How much is paid, such as 20.00'),
  currency: z.string().max(3).optional().describe('Rejected if another one is sold in'),
  returnUrl: z
    .string()
    .max(1_000)
    .refine((value) => /^https?:$/.test(URL.parse(value)?.protocol ?? ''), 'must be an http or https address')
    .optional()
    .describe('Where the customer comes back to; the page for customers by default'),
})

const LINK_SECONDS = { min: 60, max: 86_400, usual: 3_600 }
const states = { state: z.enum(TOP_UP_STATES).optional().describe('Only these, such as quarantined') }

export function topUpResources(deps: TopUpResourceDeps): Resource[] {
  return [...resourcesOfPayments(deps), ...resourcesOfTopUps(deps)]
}

function resourcesOfPayments({ payments, topUps, reconciliations }: TopUpResourceDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/purse-payments', 'purse-payments:read', {
      title: 'Show how customers pay into their purses',
      query: z.strictObject({ salt: salt.optional() }),
      answer: paymentsView,
      async run({ params, query: { salt }, actor }) {
        // A fingerprint tells whether a value is the stored one, so it needs the right to replace it.
        if (salt !== undefined) requireRight(actor, 'purse-payments:write', params.id)
        return payments.view(params.id, salt)
      },
    }),
    resource('PATCH /accounts/{id}/purse-payments', 'purse-payments:write', {
      title: 'Connect a payment provider, and set what a credit costs and how the page for customers looks',
      body: paymentsInput,
      bodyBytesMax: PAYMENTS_BYTES_MAX,
      answer: paymentsView,
      run: ({ params, body, by }) => payments.change(params.id, body, by),
    }),
    resource('GET /accounts/{id}/purse-topups', 'budgets:read', {
      title: 'List what customers paid into purses',
      query: z.strictObject({ ...paging, ...states }),
      answer: topUpPage,
      run: ({ params, query }) => topUps.list(params.id, query),
    }),
    resource('POST /accounts/{id}/purse-topups/{topup}/refund', 'purse-payments:write', {
      title: 'Refund a top-up of a purse, or a part of it, and take its credits back',
      body: z.strictObject({ amount: z.string().max(20).optional().describe('How much; all by default') }),
      answer: topUpView,
      run: ({ params, body, by }) => topUps.refund(params.id, params.topup, body.amount, by),
    }),
    resource('GET /accounts/{id}/purse-reconciliations', 'purse-payments:read', {
      title: 'List comparisons of top-ups with the list of the account’s payment provider',
      query: z.strictObject(paging),
      answer: reconciliationPage,
      run: ({ params, query }) => reconciliations.list(params.id, query),
    }),
    resource('POST /accounts/{id}/purse-reconciliations', 'purse-payments:write', {
      title: 'Compare top-ups with the list of the account’s payment provider now',
      body: z.strictObject(range),
      answer: reconciliationView,
      async run({ params, body }) {
        const { secrets } = await payments.view(params.id)
        if (!secrets.stripe) throw new Fault('conflict', { message: 'Stripe is not connected to this account.' })
        return reconciliations.run(params.id, { fromMs: body.from, untilMs: body.to })
      },
    }),
  ]
}

function resourcesOfTopUps({ purses, sessions, topUps, publicUrl }: TopUpResourceDeps): Resource[] {
  return [
    resource('GET /accounts/{id}/purses/{purse}/topups', 'budgets:read', {
      title: 'List what a customer paid into a purse',
      query: z.strictObject({ ...paging, ...states }),
      answer: topUpPage,
      run: ({ params, query }) => topUps.list(params.id, { ...query, purse: params.purse }),
    }),
    resource('POST /accounts/{id}/purses/{purse}/topups', 'budgets:write', {
      title: 'Begin a top-up of a purse, and get the address where the customer pays',
      body: checkoutInput,
      answer: topUpCheckout,
      run: ({ params, body: { returnUrl = `${publicUrl()}${PURSE_PAGE}`, ...order } }) =>
        topUps.begin(params.id, params.purse, { ...order, returnUrl }),
    }),
    resource('GET /accounts/{id}/purses/{purse}/topups/{topup}', 'budgets:read', {
      title: 'Show a top-up of a purse',
      answer: topUpView,
      run: ({ params }) => topUps.check(params.id, params.topup, params.purse),
    }),
    resource('POST /accounts/{id}/purses/{purse}/page', 'budgets:write', {
      title: 'Create a link to the page on which a customer sees a purse and tops it up',
      body: z.strictObject({
        seconds: z
          .number()
          .int()
          .min(LINK_SECONDS.min)
          .max(LINK_SECONDS.max)
          .default(LINK_SECONDS.usual)
          .describe(`For how long; ${LINK_SECONDS.usual} by default`),
      }),
      answer: pageLinkView,
      async run({ params, body: { seconds } }) {
        const { status } = await purses.find(params.id, params.purse)
        if (status === 'closed') throw new Fault('conflict', { message: 'This purse is closed.' })
        // No endpoint at all: whoever has the link makes no calls.
        const session = { seconds, models: null, endpoints: [], origins: null, callMax: null }
        const { token, expiresAt } = await sessions.make(params.id, params.purse, session)
        return { url: `${publicUrl()}${PURSE_PAGE}#${token}`, expiresAt }
      },
    }),
  ]
}
