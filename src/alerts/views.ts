// Alerts: their rules, their receivers and their history.
import * as z from 'zod'
import { DELIVERY_KINDS, deliveryView } from '../jobs/views.ts'
import { parseCredits } from '../kernel/credits.ts'
import { LABEL_NAME } from '../kernel/label.ts'
import { count, credits, page, time } from '../kernel/view.ts'

/** Labels whose spending one account watches: each is a sum over a day of calls. */
const LABELS_MAX = 5

/** Null or false switches a rule off. */
export const alertRules = z.strictObject({
  /** The available balance falls below this many credits. */
  balanceBelow: credits
    .refine((text) => (parseCredits(text) ?? -1n) >= 0n, 'must be an amount such as "12.5", with at most six decimals')
    .nullable()
    .default(null),
  /** At the rate of the last seven days, the balance runs out within this many days. */
  balanceDays: z.number().min(0.1).max(365).nullable().default(3),
  /** Used shares of a spending limit at which an alert fires, in percent. */
  limitShares: z.array(z.number().int().min(1).max(100)).max(10).default([50, 80, 100]),
  /** At least this percentage of the calls of the current and the previous hour failed, of at least `failureCalls`. */
  failurePercent: z.number().min(1).max(100).nullable().default(50),
  failureCalls: z.number().int().min(1).max(1_000_000).default(20),
  /** A key expires within this many days. */
  keyDays: z.number().min(0.1).max(365).nullable().default(7),
  /** A value of a label, such as one end user, was charged at least this many credits in 24 hours: `{ "user": "5" }`. Empty: off. */
  labelSpend: z
    .record(z.string().regex(LABEL_NAME, 'must be the name of a label'), credits)
    .refine(
      (amounts) => Object.values(amounts).every((text) => (parseCredits(text) ?? 0n) > 0n),
      'must have an amount such as "5" for each label',
    )
    .refine((amounts) => Object.keys(amounts).length <= LABELS_MAX, `must have at most ${LABELS_MAX} labels`)
    .default({}),
  jobFailed: z.boolean().default(true),
  /** For operators: a vendor's circuit breaker is open. */
  vendorOpen: z.boolean().default(true),
  /** For operators: a vendor bills more output than the limit sent to it. */
  vendorOverrun: z.boolean().default(true),
  /** For operators: verification found a problem in the ledger or the audit trail. */
  verification: z.boolean().default(true),
  /** For operators: a receiver of usage rejected what was sent, and its export is paused. */
  exportPaused: z.boolean().default(true),
  /** For operators: a payment is quarantined, or payments differ from the provider's list. */
  payments: z.boolean().default(true),
})
export type AlertRules = z.infer<typeof alertRules>

const receiver = z.strictObject({
  kind: z.enum(DELIVERY_KINDS),
  /** A web address or an e-mail address. */
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
  /** Null: the alert concerns the gateway. */
  account: z.string().nullable(),
  rule: z.enum([
    ...([
      'balance',
      'limit',
      'label',
      'failures',
      'key',
      'job',
      'vendor',
      'verification',
      'export',
      'payment',
    ] as const),
    'test',
  ]),
  /** The id of the account, limit, key, job, vendor, verification run, export or payment that it is about; or a label and its value. */
  subject: z.string(),
  level: z.string(),
  title: z.string(),
  message: z.string(),
  read: z.boolean(),
  deliveries: z.array(deliveryView),
})
export type AlertView = z.infer<typeof alertView>

/** Unread alerts are counted up to this number; beyond it the exact number does not matter. */
export const UNREAD_MAX = 100

export const alertPage = page(alertView).extend({ unread: count.max(UNREAD_MAX) })
export type AlertPage = z.infer<typeof alertPage>
