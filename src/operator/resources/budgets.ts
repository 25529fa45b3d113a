// Budgets of an account: what its users, tags, sessions, keys, members, teams and projects may use.
import * as z from 'zod'
import type { Budgets } from '../../admission/budgets.ts'
import { page } from '../../kernel/view.ts'
import { budgetValueView, budgetView } from '../../ledger/views.ts'
import { BUDGET_SPANS, BUDGET_UNITS, budgetAlertPercent, budgetScope, budgetWindow } from '../../meter/limits.ts'
import { type Resource, resource, text } from '../resource.ts'

const name = text(100).describe('Its name; the scope by default')
const value = text(64).describe('Only for this value; without it each value has its own')
const max = z.union([z.string().max(40), z.number()]).describe('How much may be used')
const hard = z
  .boolean()
  .meta({ description: 'Reject calls beyond it', off: 'soft|Only count and alert; reject nothing' })
const alertPercent = budgetAlertPercent.meta({
  description: 'Alert when so much of it is used, in percent',
  option: 'alert',
  value: 'percent',
})

const creation = z
  .strictObject({
    name: name.optional(),
    scope: budgetScope,
    value: value.nullable().default(null),
    unit: z.enum(BUDGET_UNITS).default('credits').describe('credits, requests or tokens; credits by default'),
    span: z.enum(BUDGET_SPANS).optional().describe('The period; rolling with a window, otherwise month by default'),
    windowSeconds: budgetWindow
      .meta({ description: 'The length of a rolling window', option: 'window', value: 'seconds' })
      .nullable()
      .default(null),
    max,
    hard: hard.default(true),
    alertPercent: alertPercent.default(null),
  })
  .transform((given) => ({
    ...given,
    name: given.name ?? given.scope,
    span: given.span ?? (given.windowSeconds === null ? ('month' as const) : ('rolling' as const)),
  }))
  .refine((given) => (given.span === 'rolling') === (given.windowSeconds !== null), {
    path: ['windowSeconds'],
    error: 'must be given with the span rolling, and with no other',
  })

export function budgetResources({ budgets }: { budgets: Budgets }): Resource[] {
  return [
    resource('GET /accounts/{id}/budgets', 'budgets:read', {
      title: 'List the budgets of an account',
      answer: page(budgetView),
      run: async ({ params }) => ({ items: await budgets.list(params.id), next: null }),
    }),
    resource('POST /accounts/{id}/budgets', 'budgets:write', {
      title: 'Create a budget',
      body: creation,
      answer: budgetView,
      run: ({ params, body, by }) => budgets.create(params.id, body, by),
    }),
    resource('PATCH /accounts/{id}/budgets/{budgetId}', 'budgets:write', {
      title: 'Change a budget',
      body: z.strictObject({
        name: name.describe('A new name').optional(),
        max: max.optional(),
        hard: hard.optional(),
        alertPercent: alertPercent.optional(),
      }),
      answer: budgetView,
      run: ({ params, body, by }) => budgets.change(params.id, params.budgetId, body, by),
    }),
    resource('DELETE /accounts/{id}/budgets/{budgetId}', 'budgets:write', {
      title: 'Remove a budget',
      answer: budgetView,
      run: ({ params, by }) => budgets.end(params.id, params.budgetId, by),
    }),
    resource('GET /accounts/{id}/budgets/{budgetId}/values', 'budgets:read', {
      title: 'List what each value of a budget has used',
      query: z.strictObject({
        limit: z.coerce.number().int().min(1).max(1_000).default(50).describe('How many; 50 by default'),
        value: value.describe('Only this value').optional(),
        overridden: z.enum(['true', 'false']).optional().describe('Only values with a maximum of their own'),
      }),
      answer: page(budgetValueView),
      run: async ({ params, query }) => ({
        items: await budgets.values(params.id, params.budgetId, { ...query, overridden: query.overridden === 'true' }),
        next: null,
      }),
    }),
    resource('PUT /accounts/{id}/budgets/{budgetId}/values', 'budgets:write', {
      title: 'Set the limit of one value of a budget',
      body: z.strictObject({ value, max: max.meta({ none: 'default' }).nullable() }),
      answer: budgetValueView,
      run: ({ params, body, by }) => budgets.setValue(params.id, params.budgetId, body, by),
    }),
  ]
}
