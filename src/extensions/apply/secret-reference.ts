// References to secrets: a file in a repository names the place of a secret, never the secret. `env:NAME`,
// `file:/path`, and the secret managers of Vault (KV v2), AWS and Google Cloud by their HTTP APIs, configured by the
// environment variables of their own tools.
import { open, readFile } from 'node:fs/promises'
import { CliError } from '../../cli/command.ts'
import { sha256, signAwsCall } from '../../kernel/aws-signature.ts'
import { Fault } from '../../kernel/fault.ts'
import { NEVER } from '../../kernel/timers.ts'
import type { World } from '../../kernel/world.ts'
import { bearer, type HttpCall, type Upstream } from '../../upstream/call.ts'
import { createUpstream } from '../../upstream/exchange.ts'
import { loginProblem } from '../../upstream/login.ts'
import { createLogins } from '../logins/login.ts'
import { createTokenCache } from '../logins/token-cache.ts'

interface SecretPlace {
  readonly kind: Kind
  /** The part between the colon and "#". */
  readonly name: string
  /** For a secret that is a JSON object: the member. */
  readonly field: string | undefined
}

type Kind = 'env' | 'file' | 'vault' | 'aws' | 'gcp'

const SHAPES: Readonly<Record<Kind, RegExp>> = {
  env: /^[A-Za-z_][A-Za-z0-9_]{0,200}$/,
  file: /^[^\0]{1,4000}$/,
  vault: /^[\w.-]+(?:\/[\w.@ -]+)+$/,
  aws: /^(?:arn:aws[\w-]*:secretsmanager:[\w-]+:\d{12}:secret:)?[\w/+=.@-]{1,512}$/,
  gcp: /^projects\/[\w.:-]+\/secrets\/[\w-]+(?:\/versions\/(?:\d+|latest))?$/,
}
const EXAMPLES =
  'env:NAME, file:/path, vault:mount/path#field, aws:secret-id[#field] or gcp:projects/P/secrets/S[#field]'

/** What is wrong with a reference; undefined: nothing. The message does not repeat the text, which may be a secret. */
export function referenceProblem(given: string): string | undefined {
  const place = placeIn(given)
  if (!place) return `must say where the secret is, and never be the secret: ${EXAMPLES}`
  if (!SHAPES[place.kind].test(place.name)) return `is no reference of the kind "${place.kind}:"; such are ${EXAMPLES}`
  if (place.kind === 'vault' && place.field === undefined) return 'needs the field behind a "#": vault:mount/path#field'
  return undefined
}

function placeIn(given: string): SecretPlace | undefined {
  const [, kind, rest = ''] = /^([a-z]+):(.*)$/s.exec(given) ?? []
  const known = (Object.keys(SHAPES) as Kind[]).find((one) => one === kind) // its own names
  if (known === undefined) return undefined
  const [name = '', field] = known === 'env' || known === 'file' ? [rest] : rest.split('#', 2)
  return { kind: known, name, field }
}

interface Deps {
  readonly world: World
  /** Of the person or the program that runs the command. */
  readonly environment: (name: string) => string | undefined
}

const DEADLINES = { connectMs: 5_000, firstByteMs: 20_000, idleMs: 20_000, totalMs: 30_000 }
const ANSWER_BYTES_MAX = 1_048_576
const FILE_BYTES_MAX = 65_536

export type SecretReferences = ReturnType<typeof openSecretReferences>

export function openSecretReferences({ world, environment }: Deps) {
  let upstream: Upstream | undefined
  let gcpToken: Promise<string> | undefined

  /** Without other credentials, the machine's identity is used: the person who runs the command decides that. */
  function client(): Upstream {
    upstream ??= createUpstream({ world, metadata: true })
    return upstream
  }

  async function send(what: string, call: HttpCall): Promise<{ status: number; answer: unknown }> {
    try {
      const reply = await client().send(call, { deadlines: DEADLINES, signal: NEVER })
      const text = (await reply.read(ANSWER_BYTES_MAX)).toString()
      return { status: reply.status, answer: text === '' ? {} : JSON.parse(text) }
    } catch (error) {
      const why =
        error instanceof Fault && error.kind === 'upstream_timeout' ? 'did not answer in time' : 'cannot be asked'
      throw new CliError(
        `${what} at ${new URL(call.url).host} ${error instanceof SyntaxError ? 'did not answer with JSON' : why}.`,
      )
    }
  }

  function needed(name: string, why: string): string {
    const value = environment(name)
    if (value === undefined || value === '') throw new CliError(`${name} is not set: ${why}`)
    return value
  }

  // HashiCorp Vault, KV version 2.

  async function askVault(method: 'GET' | 'POST' | 'PATCH', { name }: SecretPlace, data?: object) {
    const base = needed('VAULT_ADDR', 'the address of Vault.').replace(/(?<!\/)\/+$/, '')
    const namespace = environment('VAULT_NAMESPACE')
    const [mount = '', ...path] = name.split('/')
    return send('Vault', {
      method,
      url: `${base}/v1/${encodeURIComponent(mount)}/data/${path.map(encodeURIComponent).join('/')}`,
      headers: {
        'x-vault-token': needed('VAULT_TOKEN', 'the token for Vault.'),
        ...(namespace ? { 'x-vault-namespace': namespace } : {}),
        ...(data ? { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' } : {}),
      },
      ...(data ? { body: JSON.stringify({ data }) } : {}),
    })
  }

  async function readVault(place: SecretPlace): Promise<unknown> {
    const { status, answer } = await askVault('GET', place)
    if (status !== 200) throw refused('Vault', status, undefined)
    return memberOf(memberOf(answer, 'data'), 'data')
  }

  async function writeVault(place: SecretPlace, value: string): Promise<void> {
    const data = { [place.field ?? 'value']: value }
    // A patch keeps the other fields of the secret. A secret that does not exist is created.
    let { status } = await askVault('PATCH', place, data)
    if (status === 404) status = (await askVault('POST', place, data)).status
    if (status >= 300) throw refused('Vault', status, undefined)
  }

  // AWS Secrets Manager.

  async function askAws(action: string, place: SecretPlace, body: object): Promise<unknown> {
    const ofArn = /^arn:aws[\w-]*:secretsmanager:([\w-]+):/.exec(place.name)?.[1]
    const region =
      ofArn ?? environment('AWS_REGION') ?? needed('AWS_DEFAULT_REGION', 'set AWS_REGION, or give the whole ARN.')
    const base = environment('AWS_ENDPOINT_URL_SECRETS_MANAGER') ?? environment('AWS_ENDPOINT_URL')
    const url = new URL(base ?? `https://secretsmanager.${region}.amazonaws.com/`)
    const text = JSON.stringify(body)
    const credentials = {
      accessKeyId: needed('AWS_ACCESS_KEY_ID', 'the credentials for AWS.'),
      secretAccessKey: needed('AWS_SECRET_ACCESS_KEY', 'the credentials for AWS.'),
      sessionToken: environment('AWS_SESSION_TOKEN') || undefined,
      region,
    }
    const headers = { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `secretsmanager.${action}` }
    const call = { method: 'POST', url, headers, bodySha256: sha256(text), service: 'secretsmanager' } as const
    const signed = signAwsCall(call, credentials, world.nowMs())
    const { status, answer } = await send('AWS', { method: 'POST', url: url.href, headers: signed, body: text })
    if (status !== 200) throw refused('AWS Secrets Manager', status, nameOfFault(memberOf(answer, '__type')))
    return answer
  }

  async function readAws(place: SecretPlace): Promise<unknown> {
    const answer = await askAws('GetSecretValue', place, { SecretId: place.name })
    const binary = memberOf(answer, 'SecretBinary')
    return typeof binary === 'string' ? Buffer.from(binary, 'base64').toString() : memberOf(answer, 'SecretString')
  }

  async function writeAws(place: SecretPlace, value: string): Promise<void> {
    try {
      await askAws('PutSecretValue', place, { SecretId: place.name, SecretString: value })
    } catch (error) {
      if (!(error instanceof CliError) || !error.message.includes('ResourceNotFoundException')) throw error
      await askAws('CreateSecret', place, { Name: place.name, SecretString: value })
    }
  }

  // Google Cloud Secret Manager.

  async function askGcp(method: 'GET' | 'POST', path: string, body?: object): Promise<unknown> {
    const base = environment('CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER') ?? 'https://secretmanager.googleapis.com/'
    gcpToken ??= readGcpToken(base)
    const headers = { authorization: bearer(await gcpToken), ...(body ? { 'content-type': 'application/json' } : {}) }
    const url = `${base.replace(/(?<!\/)\/+$/, '')}/v1/${path}`
    const sent = { method, url, headers, ...(body ? { body: JSON.stringify(body) } : {}) }
    const { status, answer } = await send('Google Cloud', sent)
    if (status !== 200)
      throw refused('Google Secret Manager', status, nameOfFault(memberOf(memberOf(answer, 'error'), 'status')))
    return answer
  }

  /**
   * By the same login as vendors of Google Cloud: a service account, an external account, or the machine's own
   * identity.
   */
  async function readGcpToken(base: string): Promise<string> {
    const workload = environment('GOOGLE_APPLICATION_CREDENTIALS') ? 'file' : 'metadata'
    const hosts = new Set([URL.parse(base)?.host ?? ''])
    const allows = new Set(['google', 'google-metadata'])
    const logins = createLogins({
      world,
      upstream: client(),
      tokens: createTokenCache({ world }),
      workload: { allows, hosts, environment, metadata: client() },
    })
    try {
      const given = await logins.open({ google: { workload } }, { secret: undefined, baseUrl: base })
      return 'token' in given ? given.token : ''
    } catch (error) {
      throw new CliError((error instanceof Fault && loginProblem(error)) || 'Google Cloud gave no token.')
    }
  }

  async function readGcp({ name }: SecretPlace): Promise<unknown> {
    const version = name.includes('/versions/') ? name : `${name}/versions/latest`
    const data = memberOf(memberOf(await askGcp('GET', `${version}:access`), 'payload'), 'data')
    return typeof data === 'string' ? Buffer.from(data, 'base64').toString() : undefined
  }

  const READERS: Readonly<Record<Kind, (place: SecretPlace) => Promise<unknown>>> = {
    env: async ({ name }) => needed(name, 'it is referred to as a secret.'),
    file: ({ name }) => readSmall(name),
    vault: readVault,
    aws: readAws,
    gcp: readGcp,
  }

  const WRITERS: Readonly<Record<Kind, (place: SecretPlace, value: string) => Promise<unknown>>> = {
    env: async () => {
      throw new CliError('nothing can be written to a variable of the environment; give file:, vault:, aws: or gcp:.')
    },
    file: ({ name }, value) => writeNew(name, value),
    vault: writeVault,
    aws: writeAws,
    gcp: ({ name }, value) =>
      askGcp('POST', `${name}:addVersion`, { payload: { data: Buffer.from(value).toString('base64') } }),
  }

  return {
    /** Returns the secret. Errors contain the reference, never the secret. */
    async read(reference: string): Promise<string> {
      const place = placeIn(reference)
      const problem = referenceProblem(reference)
      if (!place || problem !== undefined) throw new CliError(`The reference ${problem}.`)
      const found = await READERS[place.kind](place).catch((error: unknown) => told(reference, error))
      const whole = place.field === undefined ? found : memberOf(asJson(found), place.field)
      if (typeof whole !== 'string') throw new CliError(`${reference}: there is no such secret, or it is not text.`)
      // Removes the line break that editors and shells add at the end.
      return whole.replace(/\r?\n$/, '')
    },
    /** Stores a new secret. Never overwrites an existing file. */
    async write(reference: string, value: string): Promise<void> {
      const place = placeIn(reference)
      if (!place) throw new CliError(`The reference ${referenceProblem(reference)}.`)
      await WRITERS[place.kind](place, value).catch((error: unknown) => told(reference, error))
    },
    close: async (): Promise<void> => upstream?.close(),
  }
}

function told(reference: string, error: unknown): never {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined
  const why =
    error instanceof CliError
      ? error.message
      : code === 'ENOENT'
        ? 'there is no such file.'
        : `it failed (${code ?? 'unknown'}).`
  throw new CliError(`${reference}: ${why}`)
}

function refused(who: string, status: number, fault: string | undefined): CliError {
  return new CliError(`${who} answered with status ${status}${fault === undefined ? '' : ` (${fault})`}.`)
}

/** Only the error code, such as `ResourceNotFoundException`: the rest of an answer could contain a secret. */
function nameOfFault(given: unknown): string | undefined {
  return typeof given === 'string' ? /(\w{1,80})$/.exec(given)?.[1] : undefined
}

function memberOf(value: unknown, name: string): unknown {
  // Any object has members by name; others have none.
  const tree = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  return Object.hasOwn(tree, name) ? tree[name] : undefined
}

function asJson(found: unknown): unknown {
  if (typeof found !== 'string') return found
  try {
    return JSON.parse(found)
  } catch {
    return undefined
  }
}

async function readSmall(path: string): Promise<string> {
  const text = await readFile(path, 'utf8')
  if (text.length > FILE_BYTES_MAX)
    throw new CliError(`it has more than ${FILE_BYTES_MAX} bytes, so it cannot be a secret.`)
  return text
}

/** For its owner only. */
async function writeNew(path: string, value: string): Promise<void> {
  const file = await open(path, 'wx', 0o600).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST')
      throw new CliError('there is a file already, and it is not replaced.')
    throw error
  })
  try {
    await file.writeFile(`${value}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
}
