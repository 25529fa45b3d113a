// What the API says of reconciliations with a payment provider.
import * as z from 'zod'
import { count, page, time } from '../../../kernel/view.ts'

export const PROVIDER_NAMES = ['stripe', 'webhook', 'simulated'] as const

const difference = z.object({
  providerId: z.string(),
  payment: z.string().nullable(),
  account: z.string().nullable(),
  /** What differed, and what was done about it. */
  problem: z.string(),
  corrected: z.boolean(),
})
export type Difference = z.infer<typeof difference>

export const reconciliationView = z.object({
  id: z.string(),
  provider: z.enum(PROVIDER_NAMES),
  from: time,
  until: time,
  startedAt: time,
  endedAt: time.nullable(),
  checked: count,
  differences: z.array(difference),
  failure: z.string().nullable(),
})
export type ReconciliationView = z.infer<typeof reconciliationView>
export const reconciliationPage = page(reconciliationView)
