// What a credit is worth.
import * as z from 'zod'
import type { Billing } from '../../reports/billing.ts'
import { billingView } from '../../reports/views.ts'
import { type Resource, resource, text } from '../resource.ts'

export interface BillingDeps {
  readonly billing: Billing
}

export function billingResources({ billing }: BillingDeps): Resource[] {
  return [
    resource('GET /billing', 'billing:read', {
      title: 'Show what a credit is worth',
      answer: billingView,
      run: () => billing.get(),
    }),
    resource('PATCH /billing', 'billing:write', {
      title: 'Set what a credit is worth',
      body: z.strictObject({
        worth: z
          .strictObject({
            currency: text(3).meta({ description: 'ISO code such as EUR', value: 'code' }),
            rate: text(20).meta({ description: 'What one credit is worth, such as 0.01', value: 'amount' }),
          })
          .nullable()
          .optional(),
        contact: text(100)
          .nullable()
          .optional()
          .describe('On statements and in the answer to calls of suspended accounts'),
      }),
      answer: billingView,
      run: ({ body, by }) => billing.change(body, by),
    }),
  ]
}
