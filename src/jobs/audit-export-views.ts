// Where the audit log is exported to, and how far that has come.
import * as z from 'zod'
import { count, time } from '../kernel/view.ts'

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
  /** How long a row may wait for others to be sent with it. */
  waitSeconds: count,
  /** Rows that were accepted, and those that wait. */
  sent: count,
  waiting: count,
  /** The time of the last row that was accepted. */
  sentUntil: time.nullable(),
  lastSentAt: time.nullable(),
  /** Attempts that failed since one succeeded, and why the last one did. */
  failures: count,
  error: z.string().nullable(),
  nextAttemptAt: time.nullable(),
  /** With which a receiver of the webhook checks that it is ours. */
  secret: z.string().nullable(),
})
export type AuditExportView = z.infer<typeof auditExportView>

const wait = z.number().int().min(0).max(86_400)
const from = z
  .enum(['start', 'now'])
  .optional()
  .describe(
    '`start` sends the whole log, `now` only what comes. Absent: an export that is there goes on, a new one starts.',
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
    region: line(50).default('us-east-1'),
    prefix: z
      .string()
      .regex(/^[\w./-]{1,200}$/, 'must have letters, digits and . _ - / only')
      .default('audit'),
    accessKeyId: line(200),
    /** Absent: as it is stored. */
    secretAccessKey: line(400).optional(),
    virtualHost: z.boolean().default(false),
    waitSeconds: wait.default(3_600),
    from,
  }),
])
export type AuditExportInput = z.output<typeof auditExportInput>
