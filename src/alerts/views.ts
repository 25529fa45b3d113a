// Alerts: what fires them, who is told, and what was told.
import * as z from 'zod'
import { DELIVERY_KINDS, deliveryView } from '../jobs/delivery-views.ts'
import { parseCredits } from '../kernel/credits.ts'
import { count, credits, page, time } from '../kernel/view.ts'

/** Null or false switches a rule off. */
export const alertRules = z.strictObject({
  /** What is available falls below so many credits. */
  balanceBelow: credits
    .refine((text) => (parseCredits(text) ?? -1n) >= 0n, 'must be an amount such as "12.5", with at most six decimals')
    .nullable()
    .default(null),
  /** At the pace of the last seven days the balance ends within so many days. */
  balanceDays: z.number().min(0.1).max(365).nullable().default(3),
  /** Parts of a limit on spending that are used, in percent. */
  limitShares: z.array(z.number().int().min(1).max(100)).max(10).default([50, 80, 100]),
  /** So many percent of the calls of this hour and the last failed, of at least `failureCalls`. */
  failurePercent: z.number().min(1).max(100).nullable().default(50),
  failureCalls: z.number().int().min(1).max(1_000_000).default(20),
  /** A key ends within so many days. */
  keyDays: z.number().min(0.1).max(365).nullable().default(7),
  jobFailed: z.boolean().default(true),
  /** For operators: a circuit breaker is open; the ledger or the audit trail is not as it should be. */
  vendorOpen: z.boolean().default(true),
  /** For operators: a vendor bills more output than the limit that it was told. */
  vendorOverrun: z.boolean().default(true),
  verification: z.boolean().default(true),
})
export type AlertRules = z.infer<typeof alertRules>

const receiver = z.strictObject({
  kind: z.enum(DELIVERY_KINDS),
  /** An address on the web, or of a mailbox. */
  to: z.string().min(3).max(500),
})
export type Receiver = z.infer<typeof receiver>

export const alertSettings = z.strictObject({ rules: alertRules, receivers: z.array(receiver).max(10) })
export type AlertSettings = z.infer<typeof alertSettings>

export const alertSettingsInput = z.strictObject({
  rules: alertRules.default(alertRules.parse({})),
  receivers: z.array(receiver).max(10).default([]),
})

export const alertView = z.object({
  id: z.string(),
  at: time,
  /** Null: it concerns the gateway. */
  account: z.string().nullable(),
  rule: z.enum(['balance', 'limit', 'failures', 'key', 'job', 'vendor', 'verification', 'test']),
  /** What it is about: an account, a limit, a key, a job, a vendor, a run. */
  subject: z.string(),
  level: z.string(),
  title: z.string(),
  message: z.string(),
  read: z.boolean(),
  deliveries: z.array(deliveryView),
})
export type AlertView = z.infer<typeof alertView>

/** What has not been seen is counted up to here: whoever has more does not need to know how many. */
export const UNREAD_MAX = 100

export const alertPage = page(alertView).extend({ unread: count.max(UNREAD_MAX) })
export type AlertPage = z.infer<typeof alertPage>
