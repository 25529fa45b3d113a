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

// The export of the audit log and its progress.

/** Of a webhook only its host, because the rest of the address may be enough to post to it. Secrets are never shown. */
export const auditExportView = z.object({
  /** Null: the audit log is not exported. */
  target: z
    .union([
      z.object({ kind: z.literal('webhook'), host: z.string() }),
      z.object({
        kind: z.literal('s3'),
        endpoint: z.string(),
        bucket: z.string(),
        region: z.string(),
        prefix: z.string(),
        accessKeyId: z.string(),
        virtualHost: z.boolean(),
      }),
    ])
    .nullable(),
  /** How long rows are collected before they are sent together. */
  waitSeconds: count,
  /** Rows that were accepted, and rows that wait. */
  sent: count,
  waiting: count,
  /** The time of the last row that was accepted. */
  sentUntil: time.nullable(),
  lastSentAt: time.nullable(),
  /** Failed attempts in a row, and the error of the last one. */
  failures: count,
  error: z.string().nullable(),
  nextAttemptAt: time.nullable(),
  /** The secret with which the receiver verifies the webhook. */
  secret: z.string().nullable(),
})
export type AuditExportView = z.infer<typeof auditExportView>

const wait = z
  .number()
  .int()
  .min(0)
  .max(86_400)
  .meta({
    description: 'How long a row may wait for others to be sent with it: 0 for a webhook, 3600 for S3 by default',
    ...{ option: 'wait', value: 'seconds' },
  })
const from = z
  .enum(['start', 'now'])
  .optional()
  .describe(
    '`start` sends the whole log, `now` only new rows. Absent: an existing export continues, a new one sends the whole log.',
  )
const line = (charsMax: number) => z.string().min(1).max(charsMax)

export const auditExportInput = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('webhook'),
    url: z.url({ protocol: /^https?$/ }).max(2_000),
    waitSeconds: wait.default(0),
    from,
  }),
  z.strictObject({
    kind: z.literal('s3'),
    endpoint: z.url({ protocol: /^https?$/ }).max(500),
    bucket: z.string().regex(/^[a-z0-9][a-z0-9.-]{1,62}$/, 'must be the name of a bucket'),
    region: line(50).default('us-east-1').describe('us-east-1 by default'),
    prefix: z
      .string()
      .regex(/^[\w./-]{1,200}$/, 'must have letters, digits and . _ - / only')
      .default('audit')
      .describe('The prefix of object names; audit by default'),
    accessKeyId: line(200).meta({ option: 'access-key', value: 'id' }),
    secretAccessKey: line(400)
      .optional()
      .meta({ description: 'The secret access key. Absent: as it is stored', read: 'sealed', option: 'secret-env' }),
    virtualHost: z.boolean().default(false).describe('Puts the bucket into the host name instead of the path'),
    waitSeconds: wait.default(3_600),
    from,
  }),
])
export type AuditExportInput = z.output<typeof auditExportInput>

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
