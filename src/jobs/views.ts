// A job as callers see it in answers, events and webhooks.
import * as z from 'zod'
import { JOB_STATUSES } from '../catalog/generation-answers.ts'
import { count, credits, page, time } from '../kernel/view.ts'

export const jobView = z.object({
  id: z.string(),
  status: z.enum(JOB_STATUSES),
  inputParams: z.record(z.string(), z.unknown()),
  outputResult: z.array(z.object({ url: z.array(z.string()), lastFrameUrl: z.string().exactOptional() })).nullable(),
  createdAt: time,
  startedAt: time.nullable(),
  completedAt: time.nullable(),
  /** An addition to the contract, only for failed jobs. */
  error: z.object({ code: z.number(), message: z.string(), reason: z.string().exactOptional() }).exactOptional(),
})
export type JobView = z.infer<typeof jobView>

/** A job in the shape of the openai SDK. */
export interface VideoView {
  readonly id: string
  readonly object: 'video'
  /** In seconds, as all its times. */
  readonly created_at: number
  readonly completed_at: number | null
  readonly expires_at: number | null
  readonly status: 'queued' | 'in_progress' | 'completed' | 'failed'
  readonly progress: number
  readonly model: string
  readonly prompt: string | null
  readonly seconds: string
  readonly size: string
  readonly remixed_from_video_id: null
  readonly error: { readonly code: string; readonly message: string } | null
}

/** Also shows the product and the charge to the job's owner. */
export const listedJob = jobView.extend({ product: z.string(), charged: credits.nullable() })
export type ListedJobView = z.infer<typeof listedJob>

/** Open jobs, over all processes. */
export const jobFacts = z.object({
  byStatus: z.record(z.string(), count),
  /** `active`: leased by a worker. `created`: waiting for the next step. `failed`: waiting for a retry. */
  active: count,
  created: count,
  failed: count,
})
export type JobFacts = z.infer<typeof jobFacts>

// Deliveries as the API shows them: the message, its receiver, each attempt, and the next one.

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
