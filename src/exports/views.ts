// Where usage goes, as operators set it up and see it.
import * as z from 'zod'
import { count, page, time } from '../kernel/view.ts'

const address = z
  .string()
  .max(500)
  .refine((value) => ['http:', 'https:'].includes(URL.parse(value)?.protocol ?? ''), 'must be an http or https address')
  .refine((value) => !/[?#]|\/\/[^/]*@/.test(value), 'must have no user, query or fragment')
/** Named as every other credential. */
const credential = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]{0,99}$/, 'must be the name of a credential: upper-case letters, digits and "_"')
const word = (charsMax: number) =>
  z
    .string()
    .min(1)
    .max(charsMax)
    .regex(/^[\x21-\x7e]+$/, 'must be visible ASCII characters without spaces')
/** The `source` of every event; receivers tell several gateways apart by it. */
const source = word(200).default('tollgate')

/** What a meter adds up. Whole numbers all: a millionth of a credit is the smallest amount there is. */
const METER_VALUES = ['microcredits', 'tokens', 'inputTokens', 'outputTokens', 'calls'] as const

/** What each kind of destination needs. Secrets are named here and stored as credentials. */
export const SETTINGS = {
  webhook: z.strictObject({
    url: address,
    source,
    /** Events in a request: one as `application/cloudevents+json`, several as a batch. */
    batch: z.number().int().min(1).max(1_000).default(100),
  }),
  openmeter: z.strictObject({ url: address, credential: credential.optional(), source }),
  lago: z.strictObject({
    url: address,
    credential,
    /** The code of the billable metric. */
    code: word(100),
  }),
  stripe: z.strictObject({
    credential,
    /** The event name of the meter. */
    event: word(100),
    value: z.enum(METER_VALUES),
    /** Stripe itself, unless something stands between. */
    url: address.default('https://api.stripe.com'),
  }),
  s3: z.strictObject({
    url: address,
    bucket: z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be the name of a bucket'),
    region: word(50).default('us-east-1'),
    /** The credential is "access key id:secret access key". */
    credential,
    prefix: z
      .string()
      .regex(/^[\w.=-]+(\/[\w.=-]+)*$/, 'must be a path such as usage/live')
      .max(200)
      .default('usage'),
    /** Calls as Parquet by the hour, or FOCUS by the day. */
    format: z.enum(['parquet', 'focus-csv', 'focus-parquet']).default('parquet'),
    /** Puts the bucket into the host name instead of the path. */
    virtualHost: z.boolean().default(false),
  }),
} as const
export type ExportKind = keyof typeof SETTINGS
export const EXPORT_KINDS = Object.keys(SETTINGS) as [ExportKind, ...ExportKind[]] // its own names
export type ExportSettings<K extends ExportKind = ExportKind> = z.output<(typeof SETTINGS)[K]>

const name = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,49}$/, 'must have lower-case letters, digits and "-" only, at most 50')
const given = z.record(z.string().max(50), z.unknown())

/** `settings` is checked by the kind. */
export const exportInput = z.strictObject({ name, kind: z.enum(EXPORT_KINDS), settings: given })
export const exportPatch = z.strictObject({ name: name.optional(), settings: given.optional() })

const exportBackfill = z.object({
  from: time,
  to: time,
  sent: count,
  /** The call up to which it has come; null: not begun. */
  at: z.string().nullable(),
})

export const exportView = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.enum(EXPORT_KINDS),
  settings: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
  /** `paused` by an operator, or because the receiver rejected what was sent: then `error` says why. */
  state: z.enum(['running', 'retrying', 'paused']),
  /** Events that were accepted, and calls of accounts that the destination does not know. */
  sent: count,
  skipped: count,
  /** Calls that wait to be sent; counted up to 10,000. */
  waiting: count,
  /** Attempts in a row that were not accepted. */
  failures: count,
  status: count.nullable(),
  error: z.string().nullable(),
  nextAttemptAt: time.nullable(),
  sentAt: time.nullable(),
  pausedAt: time.nullable(),
  createdAt: time,
  backfill: exportBackfill.nullable(),
  /** Whether the named credential is there; null where none is needed. */
  credentialPresent: z.boolean().nullable(),
})
export type ExportView = z.infer<typeof exportView>
export const exportPage = page(exportView)

export const exportCustomer = z.object({ account: z.string(), customer: z.string() })
export type ExportCustomer = z.infer<typeof exportCustomer>
export const customerName = word(200)

export const namedCredential = z.object({ name: z.string(), present: z.boolean() })
export type NamedCredential = z.infer<typeof namedCredential>

/** The file itself is the same resource as CSV. */
export const focusSummary = z.object({
  from: time,
  to: time,
  /** Null: nobody has said what a credit is worth, and there is no file. */
  currency: z.string().nullable(),
})
