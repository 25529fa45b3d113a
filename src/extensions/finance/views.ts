// Exports of usage, as operators configure and see them.
import * as z from 'zod'
import { count, page, time } from '../../kernel/view.ts'

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
/** The `source` of every event, by which receivers distinguish several gateways. */
const source = word(200).default('tollgate')

/** The values that a meter can add up. All are whole numbers: credits are counted in millionths. */
const METER_VALUES = ['microcredits', 'tokens', 'inputTokens', 'outputTokens', 'calls'] as const

/** The settings of each kind of destination. They contain names of credentials, not secrets. */
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
    /** Another address, for example of a proxy. */
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
const given = z
  .record(z.string().max(50), z.unknown())
  .meta({
    description:
      'Settings of its kind: url, source, batch, credential, code, event, value, bucket, region, prefix, format',
    option: 'set',
  })

/** `settings` is checked by the kind. */
export const exportInput = z.strictObject({ name, kind: z.enum(EXPORT_KINDS), settings: given })
export const exportPatch = z.strictObject({
  name: name.optional().describe('Its new name'),
  settings: given.optional(),
})

const exportBackfill = z.object({
  from: time,
  to: time,
  sent: count,
  /** The last call that was sent; null: it has not started. */
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
  /** Failed attempts in a row. */
  failures: count,
  status: count.nullable(),
  error: z.string().nullable(),
  nextAttemptAt: time.nullable(),
  sentAt: time.nullable(),
  pausedAt: time.nullable(),
  createdAt: time,
  backfill: exportBackfill.nullable(),
  /** Whether the credential has a value; null: it needs none. */
  credentialPresent: z.boolean().nullable(),
})
export type ExportView = z.infer<typeof exportView>
export const exportPage = page(exportView)

/** The receiver's answer to a test request, which changes no meter. */
export const exportTest = z.object({ ok: z.boolean(), status: count.nullable(), error: z.string().nullable() })
export type ExportTest = z.infer<typeof exportTest>

export const exportCustomer = z.object({ account: z.string(), customer: z.string() })
export type ExportCustomer = z.infer<typeof exportCustomer>
export const customerName = word(200)

export const namedCredential = z.object({ name: z.string(), present: z.boolean() })

/** The file itself is the same resource as CSV. */
export const focusSummary = z.object({
  from: time,
  to: time,
  /** Null: the worth of a credit is not set, so there is no file. */
  currency: z.string().nullable(),
})

// Vendors' reports, compared with recorded calls.

/** The address of each vendor's report, and the name of the credential for it. */
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
  from: z.string().max(10).meta({ description: 'The first day (UTC)', value: 'day' }),
  to: z.string().max(10).meta({ description: 'The last day', value: 'day' }),
  csv: z
    .string()
    .max(CSV_CHARS_MAX)
    .optional()
    .meta({
      description: 'A CSV file with day, model, credential, requests, input_tokens, output_tokens, cost',
      option: 'file',
      read: 'file',
    }),
  url: address.optional().describe('Another address than the vendor’s own'),
  credential: credential.optional().describe('Another admin credential than the usual one'),
  keys: z
    .record(z.string().max(200), z.string().max(100))
    .optional()
    .meta({
      description: 'Maps the vendor’s id of a key (OpenRouter: its hash) to the name of our credential',
      value: 'id=NAME,…',
    }),
  currency: z
    .string()
    .regex(/^[A-Z]{3}$/, 'must be an ISO code such as USD')
    .optional()
    .meta({ description: 'Of the report; USD by default', value: 'code' }),
  creditsPerUnit: decimals.optional().meta({ description: 'How many credits one unit of the currency is', value: 'n' }),
})
export type ReportInput = z.output<typeof reportInput>
export const REPORT_BYTES_MAX = CSV_CHARS_MAX + 65_536

export const reportCredentialInput = z.strictObject({
  source: z.enum(['openai', 'anthropic', 'openrouter']),
  name: credential.optional().describe('Another name than the usual one'),
  url: address.optional().describe('The address, if it is not the vendor’s own'),
  value: z
    .string()
    .regex(/^[\x21-\x7e]{1,4096}$/)
    .meta({ description: 'The credential', read: 'sealed', option: 'credential-env' }),
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

/** The figures of one side; null: not reported. Costs are in credits. */
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
  /** The figures that differ. */
  differing: z.array(z.enum(['calls', 'input', 'output', 'cost'])),
  theirs: figures.nullable(),
  ours: figures.nullable(),
  /** Their cost minus ours, in credits; null: a cost is unknown. */
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
