// Budgets of an account: what its users, tags, sessions, keys, members, teams and projects may use.
import * as z from 'zod'
import type { Budgets } from '../../admission/budgets.ts'
import { page } from '../../kernel/view.ts'
import { budgetValueView, budgetView } from '../../ledger/views.ts'
import { BUDGET_SPANS, BUDGET_UNITS, budgetAlertPercent, budgetScope, budgetWindow } from '../../meter/limits.ts'
import { type Resource, resource, text } from '../resource.ts'

const value = text(64)
const max = z.union([z.string().max(40), z.number()])

const creation = z
  .strictObject({
    name: text(100),
    scope: budgetScope,
    value: value.nullable().default(null),
    unit: z.enum(BUDGET_UNITS).default('credits'),
    span: z.enum(BUDGET_SPANS),
    windowSeconds: budgetWindow.nullable().default(null),
    max,
    hard: z.boolean().default(true),
    alertPercent: budgetAlertPercent.default(null),
  })
  .refine((given) => (given.span === 'rolling') === (given.windowSeconds !== null), {
    path: ['windowSeconds'],
    error: 'must be given with the span rolling, and with no other',
  })

export function budgetResources({ budgets }: { budgets: Budgets }): Resource[] {
  return [
    resource('GET /accounts/{id}/budgets', 'budgets:read', {
      answer: page(budgetView),
      run: async ({ params }) => ({ items: await budgets.list(params.id), next: null }),
    }),
    resource('POST /accounts/{id}/budgets', 'budgets:write', {
      body: creation,
      answer: budgetView,
      run: ({ params, body, by }) => budgets.create(params.id, body, by),
    }),
    resource('PATCH /accounts/{id}/budgets/{budgetId}', 'budgets:write', {
      body: z.strictObject({
        name: text(100).optional(),
        max: max.optional(),
        hard: z.boolean().optional(),
        alertPercent: budgetAlertPercent.optional(),
      }),
      answer: budgetView,
      run: ({ params, body, by }) => budgets.change(params.id, params.budgetId, body, by),
    }),
    resource('DELETE /accounts/{id}/budgets/{budgetId}', 'budgets:write', {
      answer: budgetView,
      run: ({ params, by }) => budgets.end(params.id, params.budgetId, by),
    }),
    resource('GET /accounts/{id}/budgets/{budgetId}/values', 'budgets:read', {
      query: z.strictObject({
        limit: z.coerce.number().int().min(1).max(1_000).default(50),
        value: value.optional(),
        overridden: z.enum(['true', 'false']).optional(),
      }),
      answer: page(budgetValueView),
      run: async ({ params, query }) => ({
        items: await budgets.values(params.id, params.budgetId, { ...query, overridden: query.overridden === 'true' }),
        next: null,
      }),
    }),
    resource('PUT /accounts/{id}/budgets/{budgetId}/values', 'budgets:write', {
      body: z.strictObject({ value, max: max.nullable() }),
      answer: budgetValueView,
      run: ({ params, body, by }) => budgets.setValue(params.id, params.budgetId, body, by),
    }),
  ]
}
