import * as z from 'zod'
import { count, time } from '../../../kernel/view.ts'

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
    option: 'wait',
    value: 'seconds',
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
    accessKeyId: line(200).meta({ description: 'The id of the access key', option: 'access-key', value: 'id' }),
    secretAccessKey: line(400)
      .optional()
      .meta({ description: 'The secret access key. Absent: as it is stored', read: 'sealed', option: 'secret-env' }),
    virtualHost: z.boolean().default(false).describe('Puts the bucket into the host name instead of the path'),
    waitSeconds: wait.default(3_600),
    from,
  }),
])
export type AuditExportInput = z.output<typeof auditExportInput>
