// One schema over the environment. Every problem is reported at once; what comes out is frozen.
import { resolve } from 'node:path'
import * as z from 'zod'

const flag = z
  .enum(['0', '1', 'true', 'false', ''])
  .default('0')
  .transform((value) => value === '1' || value === 'true')

const schema = z
  .object({
    PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
    HOST: z.string().min(1).default('127.0.0.1'),
    PUBLIC_URL: z.url({ protocol: /^https?$/ }).optional(),
    TOLLGATE_DATA: z.string().min(1).default('./data'),
    DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }).optional(),
    TOLLGATE_DATABASE_CONNECTIONS: z.coerce.number().int().min(2).max(500).default(16),
    TOLLGATE_DATABASE_PREPARE: flag.default(true),
    TOLLGATE_ALLOW_UNSAFE_STORE: flag,
    TOLLGATE_OPERATOR_TOKEN: z.string().min(24, 'must have at least 24 characters').optional(),
    TOLLGATE_SECRET: z
      .string()
      .refine(
        (value) => Buffer.byteLength(value) >= 32,
        'must have at least 32 bytes; make one with: openssl rand -base64 48',
      )
      .optional(),
    TOLLGATE_CATALOG: z.string().min(1).optional(),
    TOLLGATE_WORKERS: z.coerce.number().int().min(1).max(256).default(1),
    TOLLGATE_URL: z.url({ protocol: /^https?$/ }).optional(),
    TOLLGATE_LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('info'),
    TOLLGATE_LOG_FORMAT: z.enum(['json', 'text']).optional(),
    TOLLGATE_STRICT_ERRORS: flag,
    TOLLGATE_DEFAULT_MODEL: flag,
    TOLLGATE_DRAIN_SECONDS: z.coerce.number().int().min(0).max(3600).default(30),
    TOLLGATE_SANDBOX_SPEED: z.coerce.number().positive().max(1000).default(1),
    TOLLGATE_ASSET_DAYS: z.coerce.number().positive().max(3650).default(7),
    TOLLGATE_S3_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
    TOLLGATE_S3_BUCKET: z.string().min(1).optional(),
    TOLLGATE_S3_REGION: z.string().min(1).default('us-east-1'),
    TOLLGATE_S3_ACCESS_KEY_ID: z.string().min(1).optional(),
    TOLLGATE_S3_SECRET_ACCESS_KEY: z.string().min(1).optional(),
    TOLLGATE_OUTBOUND_ALLOW: z.string().default(''),
    TOLLGATE_BYTES_IN_FLIGHT_MAX: z.coerce.number().int().min(1_000_000).default(1_500_000_000),
    TOLLGATE_USAGE_MONTHS: z.coerce.number().int().min(1).max(1200).default(24),
    OTEL_EXPORTER_OTLP_ENDPOINT: z.url({ protocol: /^https?$/ }).optional(),
    OTEL_SERVICE_NAME: z.string().min(1).default('tollgate'),
  })
  .refine((env) => !env.DATABASE_URL || env.TOLLGATE_SECRET, {
    path: ['TOLLGATE_SECRET'],
    message: 'must be given together with DATABASE_URL, the same for every process: keys are checked with it',
  })
  .refine(
    (env) =>
      !env.TOLLGATE_S3_BUCKET ||
      (env.TOLLGATE_S3_ENDPOINT && env.TOLLGATE_S3_ACCESS_KEY_ID && env.TOLLGATE_S3_SECRET_ACCESS_KEY),
    {
      path: ['TOLLGATE_S3_BUCKET'],
      message: 'needs TOLLGATE_S3_ENDPOINT, TOLLGATE_S3_ACCESS_KEY_ID and TOLLGATE_S3_SECRET_ACCESS_KEY as well',
    },
  )

export type Config = Readonly<z.output<typeof schema>> & {
  readonly dataDirectory: string
  /** Variables that the catalogue names for vendors' credentials are read by name, from here. */
  readonly credential: (name: string) => string | undefined
}

export type Environment = Readonly<Record<string, string | undefined>>

export class ConfigError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(
      `The configuration has ${problems.length === 1 ? 'a problem' : `${problems.length} problems`}:\n${problems.map((line) => `  ${line}`).join('\n')}`,
    )
    this.problems = problems
  }
}

export function readConfig(environment: Environment = process.env): Config {
  // An empty variable is one that is not set: compose files and CI systems make such.
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  )
  const result = schema.safeParse(given)
  const problems = result.success ? [] : result.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`)
  for (const name of Object.keys(given))
    if (name.startsWith('TOLLGATE_') && !(name in schema.shape) && !name.startsWith('TOLLGATE_TEST_'))
      problems.push(`${name}: there is no such setting; see the README for the list`)
  if (!result.success || problems.length > 0) throw new ConfigError(problems)
  return Object.freeze({
    ...result.data,
    dataDirectory: resolve(result.data.TOLLGATE_DATA),
    credential: (name: string) => environment[name] || undefined,
  })
}
