// Deliveries as the API shows them: the message, its receiver, each attempt, and the next one.
import * as z from 'zod'
import { count, page, time } from '../kernel/view.ts'

export const DELIVERY_KINDS = ['webhook', 'slack', 'email'] as const
export type DeliveryKind = (typeof DELIVERY_KINDS)[number]

/** `waiting` for its next attempt, being `sending` now, `delivered`, or `given_up` after its last attempt. */
export const DELIVERY_STATUSES = ['waiting', 'sending', 'delivered', 'given_up'] as const

export const deliveryView = z.object({
  /** The same for every attempt and repetition; receivers see it as `webhook-id`. */
  id: z.string(),
  at: time,
  /** Null: a delivery of the gateway itself. */
  account: z.string().nullable(),
  kind: z.enum(DELIVERY_KINDS),
  /** Such as `job.completed` or `alert.balance`. */
  event: z.string(),
  /** The job or the alert that it is about. */
  subject: z.string(),
  /** For a URL only its host, because the rest may contain a secret; for a mail the mailbox. */
  to: z.string(),
  status: z.enum(DELIVERY_STATUSES),
  attempts: count,
  /** The status of the receiver's last answer. */
  statusCode: count.nullable(),
  /** Why the last attempt failed. */
  error: z.string().nullable(),
  lastAttemptAt: time.nullable(),
  nextAttemptAt: time.nullable(),
  deliveredAt: time.nullable(),
  givenUpAt: time.nullable(),
})
export type DeliveryView = z.infer<typeof deliveryView>

const deliveryAttempt = z.object({
  number: count,
  at: time,
  /** Null while the attempt runs, or when its process ended before the answer. */
  durationMs: count.nullable(),
  statusCode: count.nullable(),
  error: z.string().nullable(),
  /** The beginning of the receiver's answer. */
  response: z.string().nullable(),
})

export const deliveryDetail = deliveryView.extend({
  /** The body that is sent, with secrets in URLs removed; null where it was not stored. */
  body: z.string().nullable(),
  /** The length of the whole body, which `body` may show only in part. */
  bodyBytes: count.nullable(),
  /** The last twenty attempts, oldest first. */
  history: z.array(deliveryAttempt),
})
export type DeliveryDetail = z.infer<typeof deliveryDetail>

export const deliveryPage = page(deliveryView)
export type DeliveryPage = z.infer<typeof deliveryPage>
