// One schema over the environment. Every problem is reported at once; what comes out is frozen.
import { isIP } from 'node:net'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import * as z from 'zod'
import { addressProblem, splitAddress } from './database/address.ts'
import { nearest } from './kernel/nearest.ts'

const flag = z
  .enum(['0', '1', 'true', 'false', ''])
  .default('0')
  .transform((value) => value === '1' || value === 'true')

/**
 * What the examples say where a secret belongs, also as the password of an address; test/settings.test.ts compares
 * them.
 */
const SAMPLE = 'replace-me'
/** Variables that the guides tell callers to export, and settings of our own tests: known, and not for the gateway. */
const FOR_OTHERS = /^TOLLGATE_(KEY$|TEST_)/

function isSample(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    (value.startsWith(SAMPLE) || splitAddress(value).some((one) => URL.parse(one)?.password.startsWith(SAMPLE)))
  )
}

/** As the web server reads them. */
function isRange(text: string): boolean {
  if (['loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', bits = '0', more] = text.split('/', 3)
  const bitsMax = { 0: -1, 4: 32, 6: 128 }[isIP(address)]!
  return more === undefined && /^\d{1,3}$/.test(bits) && Number(bits) <= bitsMax
}

const words = z
  .string()
  .default('')
  .transform((value) => value.split(/[\s,]+/).filter(Boolean))

/** Reads `name=url` or `name@region=url`. */
export function readLedger(text: string) {
  const [, name = '', region, url = ''] = /^([a-z][a-z0-9-]{0,29})(?:@([a-z][a-z0-9-]{0,29}))?=(.+)$/s.exec(text) ?? []
  const problem =
    name === '' || name === 'control'
      ? 'must be names with addresses, such as eu=postgres://…; the name control is taken'
      : addressProblem(url)
  return { name, region, url, problem }
}

const ledgers = z
  .string()
  .default('')
  .transform((value, context) => {
    const found = new Map<string, Pick<ReturnType<typeof readLedger>, 'url' | 'region'>>()
    for (const one of value.split(/\s+/).filter(Boolean)) {
      const { name, url, region, problem } = readLedger(one)
      if (problem) context.addIssue(problem)
      else if (found.has(name)) context.addIssue(`must not use the name ${name} twice`)
      found.set(name, { url, region })
    }
    return found
  })

const WORKLOADS = ['aws', 'azure', 'google', 'google-metadata']
/** By these the clouds tell a program who it is. */
const WORKLOAD_VARIABLES: ReadonlySet<string> = new Set([
  'AWS_ROLE_ARN',
  'AWS_WEB_IDENTITY_TOKEN_FILE',
  'AWS_ENDPOINT_URL_STS',
  'AZURE_TENANT_ID',
  'AZURE_CLIENT_ID',
  'AZURE_FEDERATED_TOKEN_FILE',
  'AZURE_AUTHORITY_HOST',
  'GOOGLE_APPLICATION_CREDENTIALS',
  'GCE_METADATA_HOST',
])

/** Rules over several settings are checked even if one of them has a problem of its own. */
const ALWAYS = () => true

const schema = z
  .object({
    PORT: z.coerce
      .number()
      .int()
      .min(0)
      .max(65_535)
      .default(8080)
      .describe('The port to listen on; 0 chooses a free one.'),
    HOST: z
      .string()
      .min(1)
      .default('127.0.0.1')
      .describe('The address to listen on. Anything but loopback belongs behind TLS.'),
    PUBLIC_URL: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe(
        'The address that callers use, if it differs from the one listened on. Used in links, signed file addresses and the console.',
      ),
    TOLLGATE_DATA: z
      .string()
      .min(1)
      .default('./data')
      .describe('The data directory: the built-in Postgres, files, the secret and the operator token.'),
    DATABASE_URL: z
      .string()
      .superRefine((url, context) => {
        const message = addressProblem(url)
        if (message) context.addIssue({ code: 'custom', message })
      })
      .optional()
      .describe(
        'A Postgres server, 15 or newer; several hosts, separated by commas, are tried for the one that takes writes. Without it Tollgate runs its own Postgres in the data directory.',
      ),
    TOLLGATE_DATABASE_CONNECTIONS: z.coerce
      .number()
      .int()
      .min(2)
      .max(500)
      .default(16)
      .describe('Maximum number of connections to Postgres per process.'),
    TOLLGATE_DATABASE_PREPARE: flag
      .default(true)
      .describe('Named prepared statements. Set to 0 behind a pooler that does not support them.'),
    TOLLGATE_ALLOW_UNSAFE_STORE: flag.describe(
      'Start even if the server has fsync or synchronous_commit off. Only for tests: charges can be lost.',
    ),
    TOLLGATE_OPERATOR_TOKEN: z
      .string()
      .min(24, 'must have at least 24 characters')
      .optional()
      .describe(
        'The token of the operator API, at least 24 characters. Without it the first start creates one in the data directory.',
      ),
    TOLLGATE_SECRET: z
      .string()
      .refine(
        (value) => Buffer.byteLength(value) >= 32,
        'must have at least 32 bytes; make one with: openssl rand -base64 48',
      )
      .optional()
      .describe(
        'The root of all derived secrets, at least 32 bytes, the same for every process. Required with DATABASE_URL; otherwise the first start creates one in the data directory.',
      ),
    TOLLGATE_CATALOG: z
      .string()
      .min(1)
      .optional()
      .describe('A catalog document (JSON) that is applied at start if it differs from the current one.'),
    TOLLGATE_WORKERS: z.coerce.number().int().min(1).max(256).default(1).describe('Number of processes on this port.'),
    TOLLGATE_URL: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('The address of the gateway for the command line, if it does not run on this machine.'),
    TOLLGATE_KEY: z.string().min(1).optional().describe('The API key that `tollgate call` uses.'),
    TOLLGATE_LOG_LEVEL: z
      .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
      .default('info')
      .describe('The log level.'),
    TOLLGATE_LOG_FORMAT: z.enum(['json', 'text']).optional().describe('json for programs, or text for people.'),
    TOLLGATE_TRUST_PROXY: z
      .string()
      .refine(
        (value) =>
          value
            .split(/[\s,]+/)
            .filter(Boolean)
            .every(isRange),
        'must be addresses or ranges such as 10.0.0.0/8, separated by commas',
      )
      .default('')
      .describe('Addresses or ranges of proxies whose X-Forwarded-For is trusted, separated by commas.'),
    TOLLGATE_CONNECTIONS_PER_ADDRESS: z.coerce
      .number()
      .int()
      .min(1)
      .default(1_000)
      .describe(
        'Maximum number of connections from one address (IPv6: one /64) to one process; more are closed. Trusted proxies and this machine are not limited.',
      ),
    TOLLGATE_SOCKETS_MAX: z.coerce
      .number()
      .int()
      .min(0)
      .default(5_000)
      .describe(
        'Maximum number of WebSockets open at one process. An account may use at most half of those that other accounts leave free. 0: WebSockets are off.',
      ),
    TOLLGATE_UNKNOWN_KEYS_PER_MINUTE: z.coerce
      .number()
      .int()
      .min(1)
      .default(60)
      .describe(
        'How many unknown API keys one address (IPv6: one /64) may try at one process in a minute; more are rejected with 429, without a database lookup. Valid keys keep working from that address.',
      ),
    TOLLGATE_METRICS_TOKEN: z
      .string()
      .min(16, 'must have at least 16 characters')
      .optional()
      .describe(
        'The token that a scrape of /metrics must send as "Authorization: Bearer <token>". Without it /metrics is open.',
      ),
    TOLLGATE_EXTENSIONS_OFF: words.describe(
      'Extensions that this gateway does without, separated by commas, such as finance, or all. Their addresses answer 404, and what they stored stays.',
    ),
    TOLLGATE_STRICT_ERRORS: flag.describe(
      'Error bodies exactly as in the contract, also for SDKs, which then show less detail.',
    ),
    TOLLGATE_FILL_DEFAULT_MODEL: flag.describe(
      'Chat requests without a model use alpha-5.4 and image requests alpha-image-2, instead of being rejected.',
    ),
    TOLLGATE_OVERLOAD_LAG_MS: z.coerce
      .number()
      .int()
      .min(10)
      .max(600_000)
      .default(250)
      .describe('New calls are rejected with 503 while the event loop lags by more than this many milliseconds.'),
    TOLLGATE_CREDIT_WAIT_SECONDS: z.coerce
      .number()
      .min(0)
      .max(600)
      .default(10)
      .describe('How long a call waits for credits that running calls of its account hold, before 429. 0: not at all.'),
    TOLLGATE_DRAIN_SECONDS: z.coerce
      .number()
      .int()
      .min(0)
      .max(3600)
      .default(30)
      .describe('How long running calls may continue after SIGTERM.'),
    TOLLGATE_SANDBOX_SPEED: z.coerce
      .number()
      .positive()
      .max(1000)
      .default(1)
      .describe('Speed factor of the simulated vendors.'),
    TOLLGATE_RETENTION_ASSET_DAYS: z.coerce
      .number()
      .positive()
      .max(3650)
      .default(7)
      .describe('How many days images and videos are stored and their addresses work.'),
    TOLLGATE_S3_ENDPOINT: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('An S3-compatible store for results. Without it they are files in the data directory.'),
    TOLLGATE_S3_BUCKET: z.string().min(1).optional().describe('Its bucket.'),
    TOLLGATE_S3_REGION: z.string().min(1).default('us-east-1').describe('Its region.'),
    TOLLGATE_S3_ACCESS_KEY_ID: z.string().min(1).optional().describe('Its access key.'),
    TOLLGATE_S3_SECRET_ACCESS_KEY: z.string().min(1).optional().describe('Its secret key.'),
    TOLLGATE_S3_SESSION_TOKEN: z.string().min(1).optional().describe('The session token of temporary keys.'),
    TOLLGATE_S3_ROLE: z
      .string()
      .regex(/^arn:aws[\w-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/, 'must be the ARN of a role')
      .optional()
      .describe(
        "A role of AWS that is assumed for the store, with the keys or the machine's own identity. Its temporary keys are renewed before they expire.",
      ),
    TOLLGATE_WORKLOAD_IDENTITY: words
      .refine(
        (all) => all.every((one) => WORKLOADS.includes(one)),
        `must be of ${WORKLOADS.join(', ')}, separated by commas`,
      )
      .describe(
        "The machine's own identities that calls to vendors may use: aws, azure, google (their files), google-metadata (the metadata server). None by default.",
      ),
    TOLLGATE_WORKLOAD_IDENTITY_HOSTS: words.describe(
      "Hosts that get the machine's own tokens besides those of the clouds themselves, separated by commas, such as a proxy in front of them.",
    ),
    TOLLGATE_OUTBOUND_ALLOW: z
      .string()
      .default('')
      .describe(
        "Pairs of host:port, separated by commas, that callers' URLs may point to although they are not public.",
      ),
    TOLLGATE_DNS_SERVERS: z
      .string()
      .default('')
      .describe(
        'Name servers, separated by commas, that are asked for the records that prove mail domains; by default those of the machine.',
      ),
    TOLLGATE_FETCHES_PER_MINUTE: z.coerce
      .number()
      .int()
      .min(1)
      .default(300)
      .describe(
        'Pictures that one process fetches for one account in a minute, from addresses that callers give; more are rejected with 429.',
      ),
    TOLLGATE_FETCH_BYTES_PER_MINUTE: z.coerce
      .number()
      .int()
      .min(20_971_520, 'must be at least 20971520, the largest picture')
      .default(536_870_912)
      .describe('Their bytes. The largest image request has 268435456.'),
    TOLLGATE_WEBHOOKS_PER_MINUTE: z.coerce
      .number()
      .int()
      .min(1)
      .default(60)
      .describe('Webhooks that one process sends for one account in a minute, including retries; more are sent later.'),
    TOLLGATE_BYTES_IN_FLIGHT_MAX: z.coerce
      .number()
      .int()
      .min(1_000_000)
      .default(1_500_000_000)
      .describe(
        'Maximum bytes of large bodies in one process at a time, counted as they arrive; more wait for up to 10 s and are then rejected with 503. One account may use at most half of what other accounts leave free.',
      ),
    TOLLGATE_BODY_BYTES_PER_SECOND_MIN: z.coerce
      .number()
      .int()
      .min(1)
      .default(4_096)
      .describe('Request bodies that arrive more slowly than this are cut off with 408, after a grace period of 15 s.'),
    TOLLGATE_STRIPE_URL: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('For tests: the address of a simulated Stripe, instead of the real one.'),
    TOLLGATE_SMTP_URL: z
      .url({ protocol: /^smtps?$/ })
      .optional()
      .describe(
        'The mail server for alerts and for mails to people, such as `smtps://user:password@mail.example.com`.',
      ),
    TOLLGATE_MAIL_FROM: z
      .string()
      .min(3)
      .max(300)
      .optional()
      .describe('The sender address of mails, required with `TOLLGATE_SMTP_URL`.'),
    TOLLGATE_RETENTION_REJECTED_DAYS: z.coerce
      .number()
      .int()
      .min(1)
      .max(90)
      .default(7)
      .describe('How many days rejected calls stay in the usage list.'),
    TOLLGATE_RETENTION_USAGE_MONTHS: z.coerce
      .number()
      .int()
      .min(1)
      .max(1200)
      .default(24)
      .describe('How many months usage rows and ended jobs are stored.'),
    TOLLGATE_LEDGERS: ledgers.describe(
      'Further Postgres servers for accounts, beside that of `DATABASE_URL` and those of `tollgate ledgers add`, such as `east=postgres://user:password@east-db:5432/tollgate west=postgres://…`, or `frankfurt@eu=postgres://…` for one in the region `eu`, in which accounts that demand it stay. What belongs to no account stays in `DATABASE_URL`, which the servers of the ledgers must reach.',
    ),
    TOLLGATE_ANALYTICS_URL: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe(
        'A ClickHouse server that gets every call, for reports on more than a day, such as `http://user:password@clickhouse:8123/database`.',
      ),
    TOLLGATE_RETENTION_CALL_DAYS: z.coerce
      .number()
      .int()
      .min(1)
      .max(36_500)
      .default(35)
      .describe(
        'With `TOLLGATE_ANALYTICS_URL`: how many days single calls stay in the database. A month goes when all of it is older and is in ClickHouse to the last credit.',
      ),
    TOLLGATE_RETENTION_LEDGER_MONTHS: z.coerce
      .number()
      .int()
      .min(1)
      .max(1200)
      .default(24)
      .describe(
        'How many months the transfers of calls stay in the database, at least as long as usage. Then they are in the archive, and a signed checkpoint for each account is here.',
      ),
    TOLLGATE_LEDGER_ARCHIVE: z
      .string()
      .min(1)
      .optional()
      .describe(
        'A directory for the archive of the ledger, the same for every process. Without it: the S3 bucket, or the data directory if the bundled database is there too, or no archive.',
      ),
    TOLLGATE_VERIFY_AT: z
      .string()
      .regex(/^(off|([01]\d|2[0-3]):[0-5]\d)$/, 'must be a time such as 03:00, or off')
      .default('03:00')
      .describe('When the ledger is verified every night, in UTC, such as 03:00; off for never.'),
    OTEL_EXPORTER_OTLP_ENDPOINT: z
      .url({ protocol: /^https?$/ })
      .optional()
      .describe('Where traces are sent (OTLP over HTTP, JSON). Without it there are none.'),
    OTEL_SERVICE_NAME: z.string().min(1).default('tollgate').describe('The service name in traces.'),
    TOLLGATE_TRACE_URL: z
      .url({ protocol: /^https?$/ })
      .refine((url) => url.includes('{request_id}'), 'must contain {request_id}')
      .optional()
      .describe(
        'The address at which your tracing tool shows a call, found by the attribute `tollgate.request_id`, with {request_id} as placeholder. Operators see it as a link on the page of a call.',
      ),
  })
  .refine((env) => env.DATABASE_URL || env.TOLLGATE_LEDGERS.size === 0, {
    path: ['TOLLGATE_LEDGERS'],
    message: 'needs DATABASE_URL: the servers of the ledgers cannot reach the built-in database',
    when: ALWAYS,
  })
  .refine((env) => !env.DATABASE_URL || env.TOLLGATE_SECRET, {
    path: ['TOLLGATE_SECRET'],
    message: 'must be given together with DATABASE_URL, the same for every process: keys are checked with it',
    when: ALWAYS,
  })
  .refine(
    (env) =>
      !env.TOLLGATE_S3_BUCKET ||
      (env.TOLLGATE_S3_ENDPOINT &&
        ((env.TOLLGATE_S3_ACCESS_KEY_ID && env.TOLLGATE_S3_SECRET_ACCESS_KEY) ||
          env.TOLLGATE_WORKLOAD_IDENTITY.includes('aws'))),
    {
      path: ['TOLLGATE_S3_BUCKET'],
      message:
        'needs TOLLGATE_S3_ENDPOINT, and TOLLGATE_S3_ACCESS_KEY_ID with TOLLGATE_S3_SECRET_ACCESS_KEY or aws in TOLLGATE_WORKLOAD_IDENTITY, as well',
      when: ALWAYS,
    },
  )

/** Every setting with its description; the reference page and the README's table are made from this. */
export const SETTINGS: Readonly<Record<string, z.ZodType>> = schema.shape

export type Config = Readonly<z.output<typeof schema>> & {
  readonly dataDirectory: string
  /** The variables that a catalog may name as a vendor's credential, with their values. */
  readonly vendorKeys: ReadonlyMap<string, string>
  /** The variables by which clouds tell a program who it is. */
  readonly workload: (name: string) => string | undefined
  /**
   * Any variable: for the command line, whose user named it. The gateway itself reads only its settings and
   * credentials.
   */
  readonly environment: (name: string) => string | undefined
  /** Where Codex has its configuration, for the command that sets it up. */
  readonly codexHome: string
  /** Where the command line keeps sign-ins. */
  readonly loginFile: string
  /** What was given and means nothing: most often a misspelt name. */
  readonly warnings: readonly string[]
}

type Environment = Readonly<Record<string, string | undefined>>

export class ConfigError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(
      `The configuration has ${problems.length === 1 ? 'a problem' : `${problems.length} problems`}:\n${problems.map((line) => `  ${line}`).join('\n')}`,
    )
    this.problems = problems
  }
}

export function readConfig(environment: Environment = { ...process.env }): Config {
  // An empty variable is one that is not set: compose files and CI systems make such.
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  )
  const result = schema.safeParse(given)
  const problems = result.success
    ? []
    : result.error.issues.map(({ path, message }) => {
        const name = path.join('.')
        return `${name}: ${message.endsWith('received NaN') ? `must be a number, not "${given[name]}"` : message}`
      })
  for (const [name, value] of Object.entries(given))
    if (name in schema.shape && isSample(value))
      problems.push(`${name}: is the sample of secret.example.yaml, which everybody knows; put your own there`)
  if (!result.success || problems.length > 0) throw new ConfigError(problems)
  const strangers = Object.keys(given).filter(
    (name) => name.startsWith('TOLLGATE_') && !(name in schema.shape) && !FOR_OTHERS.test(name),
  )
  return Object.freeze({
    ...result.data,
    dataDirectory: resolve(result.data.TOLLGATE_DATA),
    codexHome: environment.CODEX_HOME || join(homedir(), '.codex'),
    loginFile: join(environment.XDG_CONFIG_HOME || join(homedir(), '.config'), 'tollgate', 'login.json'),
    vendorKeys: new Map(Object.entries(given).filter(isVendorKey)),
    workload: (name: string) => (WORKLOAD_VARIABLES.has(name) ? environment[name] || undefined : undefined),
    environment: (name: string) => environment[name] || undefined,
    warnings: strangers.map((name) => `${name} is no setting and is ignored; ${hintAt(name)}`),
  })
}

const VENDOR_KEY = /(?:^|_)(?:KEY|TOKEN)(?:_|$)/
const OTHERS = /^(?:TOLLGATE_|PG|POSTGRES|AWS_(?!BEARER_TOKEN)|SSH_)|(?:^|_)(?:SECRET|PASSWORD|PRIVATE)(?:_|$)/

/**
 * What a vendor may be sent of the environment, whatever a catalog or an operator names: nothing that the gateway, its
 * database or the system is set up by.
 */
function isVendorKey(variable: [string, string | undefined]): variable is [string, string] {
  const [name, value] = variable
  return VENDOR_KEY.test(name) && !OTHERS.test(name) && !(name in schema.shape) && !isSample(value)
}

function hintAt(stranger: string): string {
  const bare = (name: string) => name.replace('TOLLGATE_', '')
  const settings = Object.keys(schema.shape)
  const near = nearest(bare(stranger), settings.map(bare))
  const meant = settings.find((name) => near !== undefined && bare(name) === near)
  return meant === undefined ? 'docs/reference/configuration.md lists the settings' : `did you mean ${meant}?`
}
