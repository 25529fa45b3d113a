// Deliveries: what was sent to whom outside, each attempt, and what is still to come.
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
  /** Null: the gateway's own. */
  account: z.string().nullable(),
  kind: z.enum(DELIVERY_KINDS),
  /** Such as `job.completed` or `alert.balance`. */
  event: z.string(),
  /** The job or the alert that it is about. */
  subject: z.string(),
  /** Of an address on the web its host, since the rest may be a secret; of a mail its mailbox. */
  to: z.string(),
  status: z.enum(DELIVERY_STATUSES),
  attempts: count,
  /** What the receiver answered last. */
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
  /** Null while it runs, or when the process ended before it knew. */
  durationMs: count.nullable(),
  statusCode: count.nullable(),
  error: z.string().nullable(),
  /** The beginning of what the receiver answered. */
  response: z.string().nullable(),
})

export const deliveryDetail = deliveryView.extend({
  /** What is sent, without secrets in addresses; null where it was not kept. */
  body: z.string().nullable(),
  /** How long it is in truth. */
  bodyBytes: count.nullable(),
  /** The last twenty, oldest first. */
  history: z.array(deliveryAttempt),
})
export type DeliveryDetail = z.infer<typeof deliveryDetail>

export const deliveryPage = page(deliveryView)
export type DeliveryPage = z.infer<typeof deliveryPage>
