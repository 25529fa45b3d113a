// Keys as their owners see them.
import * as z from 'zod'
import { time } from '../kernel/view.ts'
import { limitsView } from '../ledger/views.ts'

export const keyView = z.object({
  id: z.string(),
  name: z.string(),
  /** Of the account's test account: reaches simulated vendors only, and costs nothing. */
  test: z.boolean(),
  prefix: z.string(),
  last4: z.string(),
  models: z.array(z.string()).nullable(),
  expiresAt: time.nullable(),
  limits: limitsView,
  ipRanges: z.array(z.string()).nullable(),
  /** In the future while a replaced key still works. */
  revokedAt: time.nullable(),
  lastUsedAt: time.nullable(),
  createdAt: time,
  replacedBy: z.string().nullable(),
  /** Of a connection that a person allowed a program by OAuth: the program's name. */
  client: z.string().nullable(),
})
export type KeyView = z.infer<typeof keyView>

/** With the full value: shown once. */
export const newKey = keyView.extend({ key: z.string() })
export type NewKey = z.infer<typeof newKey>
