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

/** What the receiver says about a request that leaves no trace in its meters. */
export const exportTest = z.object({ ok: z.boolean(), status: count.nullable(), error: z.string().nullable() })
export type ExportTest = z.infer<typeof exportTest>

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

// Vendors' reports, compared with what was recorded.

/** Where each vendor's report is, and the name of the credential that may read it. */
export const REPORT_SOURCES = {
  openai: { url: 'https://api.openai.com', credential: 'OPENAI_ADMIN_KEY' },
  anthropic: { url: 'https://api.anthropic.com', credential: 'ANTHROPIC_ADMIN_KEY' },
  openrouter: { url: 'https://openrouter.ai/api/v1', credential: 'OPENROUTER_MANAGEMENT_KEY' },
} as const
const SOURCES = ['openai', 'anthropic', 'openrouter', 'csv'] as const
export type ReportSource = (typeof SOURCES)[number]
const decimals = z.string().regex(/^\d{1,9}(\.\d{1,9})?$/, 'must be a number such as "100"')
const CSV_CHARS_MAX = 8_000_000

export const reportInput = z.strictObject({
  /** As the catalog names it. */
  vendor: z.string().min(1).max(100),
  source: z.enum(SOURCES),
  /** The first and the last day (UTC). */
  from: z.string().max(10),
  to: z.string().max(10),
  /** Of a report that is uploaded. */
  csv: z.string().max(CSV_CHARS_MAX).optional(),
  url: address.optional(),
  credential: credential.optional(),
  /** Our credential by the vendor's id of the key, or by its hash at OpenRouter. */
  keys: z.record(z.string().max(200), z.string().max(100)).optional(),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, 'must be an ISO code such as USD')
    .optional(),
  creditsPerUnit: decimals.optional(),
})
export type ReportInput = z.output<typeof reportInput>
export const REPORT_BYTES_MAX = CSV_CHARS_MAX + 65_536

export const reportCredentialInput = z.strictObject({
  source: z.enum(['openai', 'anthropic', 'openrouter']),
  name: credential.optional(),
  url: address.optional(),
  value: z.string().regex(/^[\x21-\x7e]{1,4096}$/),
})

export const reportView = z.object({
  id: z.string(),
  vendor: z.string(),
  source: z.enum(SOURCES),
  from: z.string(),
  to: z.string(),
  currency: z.string(),
  creditsPerUnit: z.string(),
  lines: count,
  createdAt: time,
})
export type ReportView = z.infer<typeof reportView>

export const VERDICTS = ['matched', 'differs', 'only_theirs', 'only_ours'] as const
export type Verdict = (typeof VERDICTS)[number]

/** What one side says; null: it does not tell. Costs are credits. */
const figures = z.object({
  calls: count.nullable(),
  inputTokens: count.nullable(),
  outputTokens: count.nullable(),
  cost: z.string().nullable(),
})

const comparedLine = z.object({
  day: z.string(),
  model: z.string(),
  /** Null: all credentials together. */
  credential: z.string().nullable(),
  verdict: z.enum(VERDICTS),
  /** Which figures are others. */
  differing: z.array(z.enum(['calls', 'input', 'output', 'cost'])),
  theirs: figures.nullable(),
  ours: figures.nullable(),
  /** Theirs less ours, in credits; null where no cost is told. */
  difference: z.string().nullable(),
})
export type ComparedLine = z.infer<typeof comparedLine>

export const comparedPage = page(comparedLine).extend({
  counts: z.object({ matched: count, differs: count, only_theirs: count, only_ours: count }),
})
export type ComparedPage = z.infer<typeof comparedPage>

export const comparedCall = z.object({
  id: z.string(),
  at: time,
  account: z.string(),
  product: z.string(),
  credential: z.string().nullable(),
  inputTokens: count,
  outputTokens: count,
  cost: z.string().nullable(),
})
export type ComparedCall = z.infer<typeof comparedCall>
