// The clouds' own logins: a service account, a role, an application or the machine's own identity is exchanged for a
// token, which the cache keeps. By hand, because each is one request: https://docs.aws.amazon.com/STS, RFC 7523 and RFC
// 8693 as Google uses them, RFC 6749 (client credentials) as Entra uses it.
import { createHash, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Login } from '../../catalog/document.ts'
import type { CoreParts } from '../../extension.ts'
import { type AwsCredentials, sha256, signAwsCall } from '../../kernel/aws-signature.ts'
import { isObject, type Json, jsonIn, objectOf } from '../../kernel/json.ts'
import { redact, withoutCredentials } from '../../kernel/redact.ts'
import { NEVER } from '../../kernel/timers.ts'
import { bearer, type HttpCall, type Upstream } from '../../upstream/call.ts'
import { type LoginAbout, type Logins, loginFault, type Workload } from '../../upstream/login.ts'
import type { Token, TokenCache } from './token-cache.ts'

interface LoginDeps extends Pick<CoreParts, 'world' | 'upstream'> {
  readonly tokens: TokenCache
  readonly workload: Workload
}

const DEADLINES = { connectMs: 5_000, firstByteMs: 10_000, idleMs: 10_000, totalMs: 15_000 }
const ANSWER_BYTES_MAX = 262_144
const FILE_BYTES_MAX = 65_536
const WORDS_MAX = 300
const LIFE_SECONDS_DEFAULT = 3600
const LIFE_SECONDS_MAX = 86_400
const GOOGLE_SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const GOOGLE_TOKENS = 'https://oauth2.googleapis.com/token'
const FORM = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }

/** The machine's tokens are sent to these hosts only: a person who may edit the catalog may not control the machine. */
const CLOUD_HOSTS: Readonly<Record<string, RegExp>> = {
  google: /(?:^|\.)googleapis\.com$/,
  azure: /(?:^|\.)(?:azure\.(?:com|us|cn)|windows\.net|microsoft\.com)$/,
}

export function createLogins({ world, upstream, tokens, workload }: LoginDeps): Logins {
  const { environment } = workload

  /** `id` names everything that the token depends on. */
  function cached(id: readonly unknown[], fetch: () => Promise<Token>): string | Promise<string> {
    return tokens.get(createHash('sha256').update(JSON.stringify(id)).digest('hex'), fetch)
  }

  async function ask(call: HttpCall, secrets: readonly string[], client = upstream): Promise<Json> {
    const answer = jsonOf(await askText(call, secrets, client))
    if (!answer) throw loginFault(`${URL.parse(call.url)?.host} did not answer with JSON.`)
    return answer
  }

  async function askText(call: HttpCall, secrets: readonly string[], client = upstream): Promise<string> {
    const host = URL.parse(call.url)?.host ?? 'the address'
    let status: number
    let text: string
    try {
      const reply = await client.send(call, { deadlines: DEADLINES, signal: NEVER })
      status = reply.status
      text = (await reply.read(ANSWER_BYTES_MAX)).toString()
    } catch (cause) {
      throw loginFault(`${host} cannot be asked for a token. Is the address right, and may this machine reach it?`, {
        cause,
      })
    }
    if (status >= 200 && status < 300) return text
    const answer = jsonOf(text)
    const said = answer ? wordsOf(answer) : ['Code', 'Message'].map((tag) => tagIn(text, tag) ?? '').join(' ')
    const words = withoutCredentials(redact(said, secrets)).replaceAll(/\s+/g, ' ').trim().slice(0, WORDS_MAX)
    const refused = status === 400 || status === 401 || status === 403
    throw loginFault(`${host} gave no token (${status})${words === '' ? '.' : `: ${words}`}`, { refused })
  }

  function tokenIn(answer: Json): Token {
    const value = text(answer.access_token) ?? text(answer.accessToken)
    if (value === undefined) throw loginFault('The answer of the token endpoint has no access token.')
    const at = Date.parse(text(answer.expireTime) ?? '')
    const seconds = Math.min(
      Number(answer.expires_in ?? LIFE_SECONDS_DEFAULT) || LIFE_SECONDS_DEFAULT,
      LIFE_SECONDS_MAX,
    )
    return { value, expiresMs: Number.isNaN(at) ? world.nowMs() + seconds * 1000 : at }
  }

  // OAuth client credentials, also of Microsoft Entra.

  async function clientCredentials(url: string, form: Record<string, string | undefined>): Promise<Token> {
    const given = Object.entries({ grant_type: 'client_credentials', ...form }).filter((one) => one[1] !== undefined)
    const body = new URLSearchParams(given as [string, string][]).toString() // Those without a value are gone.
    const secrets = [form.client_secret, form.client_assertion].filter((one) => one !== undefined)
    return tokenIn(await ask({ method: 'POST', url, headers: FORM, body }, secrets))
  }

  function oauth({ tokenUrl, scope, audience }: OAuth, secret: string): string | Promise<string> {
    const [id, value] = pairOf(secret, 'client_id:client_secret')
    return cached(['oauth', tokenUrl, scope, audience, secret], () =>
      clientCredentials(tokenUrl, { client_id: id, client_secret: value, scope, audience }),
    )
  }

  function azure(scope: string): string | Promise<string> {
    const [tenant, client, file] = ['AZURE_TENANT_ID', 'AZURE_CLIENT_ID', 'AZURE_FEDERATED_TOKEN_FILE'].map(needed)
    const host = environment('AZURE_AUTHORITY_HOST') ?? 'https://login.microsoftonline.com/'
    const url = `${host.replace(/(?<!\/)\/+$/, '')}/${encodeURIComponent(tenant ?? '')}/oauth2/v2.0/token`
    return cached(['azure', url, client, scope], async () =>
      clientCredentials(url, {
        client_id: client,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: await fileText(file ?? ''),
        scope,
      }),
    )
  }

  // Google Cloud.

  function serviceAccount(account: Json, isForeign = false): { id: readonly unknown[]; fetch: () => Promise<Token> } {
    const { client_email: email, private_key: key, token_uri: uri, private_key_id: kid } = account
    if (typeof email !== 'string' || typeof key !== 'string')
      throw loginFault(
        'The credential must be the JSON of a service account, with client_email and private_key.',
        REFUSED,
      )
    const url = typeof uri === 'string' && !isForeign ? uri : GOOGLE_TOKENS
    const fetch = async () => {
      const iat = Math.floor(world.nowMs() / 1000)
      const claims = { iss: email, scope: GOOGLE_SCOPE, aud: url, iat, exp: iat + 3600 }
      const assertion = signedJwt({ alg: 'RS256', typ: 'JWT', ...(text(kid) ? { kid } : {}) }, claims, key)
      const body = new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion })
      return tokenIn(await ask({ method: 'POST', url, headers: FORM, body: body.toString() }, [assertion, key]))
    }
    return { id: ['google', url, email, key], fetch }
  }

  /** Workload identity federation: a token of elsewhere, exchanged for one of Google's. */
  async function external(config: Json): Promise<Token> {
    const url = text(config.token_url)
    if (url === undefined) throw loginFault('The file of an external account has no token_url.')
    const subject = await subjectToken(config.credential_source)
    const form = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      audience: text(config.audience) ?? '',
      scope: GOOGLE_SCOPE,
      subject_token: subject,
      subject_token_type: text(config.subject_token_type) ?? 'urn:ietf:params:oauth:token-type:jwt',
    }
    const body = new URLSearchParams(form).toString()
    const token = tokenIn(await ask({ method: 'POST', url, headers: FORM, body }, [subject]))
    const other = text(config.service_account_impersonation_url)
    if (other === undefined) return token
    const wanted = { scope: [GOOGLE_SCOPE], lifetime: '3600s' }
    const headers = { authorization: bearer(token.value), 'content-type': 'application/json' }
    return tokenIn(await ask({ method: 'POST', url: other, headers, body: JSON.stringify(wanted) }, [token.value]))
  }

  async function subjectToken(source: unknown): Promise<string> {
    const { file, url, headers, format } = objectOf(source)
    const field = objectOf(format).type === 'json' ? (text(objectOf(format).subject_token_field_name) ?? '') : undefined
    if (typeof file !== 'string' && typeof url !== 'string')
      throw loginFault('Of external accounts those with a "file" or a "url" in credential_source are known.')
    // The file is the administrator's, so the address in it may be that of the machine's metadata.
    const found =
      typeof file === 'string'
        ? await fileText(file)
        : await addressText(String(url), textsOf(headers), workload.metadata, field !== undefined)
    return field === undefined ? found : (text(jsonOf(found)?.[field]) ?? '')
  }

  async function addressText(url: string, headers: Record<string, string>, client: Upstream, json: boolean) {
    if (json) return JSON.stringify(await ask({ method: 'GET', url, headers }, [], client))
    const reply = await client.send({ method: 'GET', url, headers }, { deadlines: DEADLINES, signal: NEVER })
    const found = (await reply.read(FILE_BYTES_MAX)).toString().trim()
    if (reply.status !== 200) throw loginFault(`${URL.parse(url)?.host} gave no token (${reply.status}).`)
    return found
  }

  function google(kind: 'file' | 'metadata'): string | Promise<string> {
    if (kind === 'metadata') {
      const host = environment('GCE_METADATA_HOST') ?? 'metadata.google.internal'
      const url = `http://${host}/computeMetadata/v1/instance/service-accounts/default/token`
      return cached(['google-metadata', host], async () =>
        tokenIn(await ask({ method: 'GET', url, headers: { 'metadata-flavor': 'Google' } }, [], workload.metadata)),
      )
    }
    const path = needed('GOOGLE_APPLICATION_CREDENTIALS')
    return cached(['google-file', path], async () => {
      const config = jsonOf(await fileText(path))
      if (config?.type === 'external_account') return external(config)
      if (config?.type !== 'service_account')
        throw loginFault(`${path} is neither the JSON of a service account nor that of an external account.`)
      return serviceAccount(config).fetch()
    })
  }

  // AWS.

  async function sts(region: string, form: Record<string, string>, keys?: AwsCredentials): Promise<Token> {
    const tail = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
    const url = new URL(environment('AWS_ENDPOINT_URL_STS') ?? `https://sts.${region}.${tail}/`)
    const body = new URLSearchParams({ Version: '2011-06-15', RoleSessionName: 'tollgate', ...form }).toString()
    const call = {
      method: 'POST',
      url,
      headers: { 'content-type': FORM['content-type'] },
      bodySha256: sha256(body),
      service: 'sts',
    }
    const headers = keys ? signAwsCall(call, keys, world.nowMs()) : call.headers
    const secrets = keys ? [keys.secretAccessKey] : [form.WebIdentityToken ?? '']
    const xml = await askText({ method: 'POST', url: url.href, headers, body }, secrets)
    const names = ['AccessKeyId', 'SecretAccessKey', 'SessionToken', 'Expiration']
    const [accessKeyId, secretAccessKey, sessionToken, end = ''] = names.map((tag) => tagIn(xml, tag))
    if (accessKeyId === undefined || secretAccessKey === undefined || sessionToken === undefined)
      throw loginFault(`${url.host} gave no credentials for the role.`)
    const value = JSON.stringify({ region, accessKeyId, secretAccessKey, sessionToken })
    return { value, expiresMs: Date.parse(end) || world.nowMs() + LIFE_SECONDS_DEFAULT * 1000 }
  }

  function assumed(login: SigV4, id: unknown, keys: () => Promise<AwsCredentials>): string | Promise<string> {
    const { region, role = '', externalId } = login
    const form = {
      Action: 'AssumeRole',
      RoleArn: role,
      ...(externalId === undefined ? {} : { ExternalId: externalId }),
    }
    return cached(['sts', region, form, id], async () => sts(region, form, await keys()))
  }

  function webIdentity(region: string): string | Promise<string> {
    const [role, file] = ['AWS_ROLE_ARN', 'AWS_WEB_IDENTITY_TOKEN_FILE'].map(needed)
    return cached(['sts-web', region, role, file], async () =>
      sts(region, {
        Action: 'AssumeRoleWithWebIdentity',
        RoleArn: role ?? '',
        WebIdentityToken: await fileText(file ?? ''),
      }),
    )
  }

  function aws(login: SigV4, secret: string | undefined): AwsCredentials | Promise<AwsCredentials> {
    const { region, role } = login
    if (!login.workload || secret !== undefined) {
      const keys = awsKeys(secret, region)
      return role === undefined
        ? keys
        : then(
            assumed(login, secret, async () => keys),
            awsIn,
          )
    }
    requireWorkload('aws')
    if (role === undefined || role === environment('AWS_ROLE_ARN')) return then(webIdentity(region), awsIn)
    return then(
      assumed(login, 'workload', async () => awsIn(await webIdentity(region))),
      awsIn,
    )
  }

  function needed(name: string): string {
    const value = environment(name)
    if (value === undefined)
      throw loginFault(`${name} is not set in the gateway's environment, as the cloud does for a workload.`)
    return value
  }

  function requireWorkload(kind: string, baseUrl?: string): void {
    if (!workload.allows.has(kind))
      throw loginFault(
        `The machine's own identity may not be used: its administrator adds "${kind}" to TOLLGATE_WORKLOAD_IDENTITY.`,
      )
    const url = baseUrl === undefined ? undefined : URL.parse(baseUrl)
    const pattern = CLOUD_HOSTS[kind.replace('-metadata', '')]
    if (url && pattern && !pattern.test(url.hostname) && !workload.hosts.has(url.host))
      throw loginFault(
        `The machine's own token is not sent to ${url.host}: its administrator adds it to TOLLGATE_WORKLOAD_IDENTITY_HOSTS.`,
      )
  }

  function tokenOf(login: Exclude<Login, { sigv4: unknown }>, about: LoginAbout): string | Promise<string> {
    const { secret, baseUrl, isForeign = false } = about
    if ('oauth' in login) return oauth(login.oauth, requiredSecret(secret))
    if ('google' in login) {
      const { workload: kind } = login.google
      if (kind === undefined || secret !== undefined) {
        const { id, fetch } = serviceAccount(jsonOf(requiredSecret(secret)) ?? {}, isForeign)
        return cached(id, fetch)
      }
      requireWorkload(kind === 'file' ? 'google' : 'google-metadata', baseUrl)
      return google(kind)
    }
    requireWorkload('azure', baseUrl)
    return azure(login.azure.scope)
  }

  return {
    open(login, about) {
      if ('sigv4' in login) {
        const { service } = login.sigv4
        return then(aws(login.sigv4, about.secret), (keys) => ({ aws: keys, service }))
      }
      return then(tokenOf(login, about), (token) => ({ token, drop: () => tokens.drop(token) }))
    },
  }
}

type OAuth = Extract<Login, { oauth: unknown }>['oauth']
type SigV4 = Extract<Login, { sigv4: unknown }>['sigv4']

/** The credential itself is wrong, not the network or the vendor. */
const REFUSED = { refused: true }

function requiredSecret(secret: string | undefined): string {
  if (secret === undefined) throw loginFault('There is no credential to log in with.', REFUSED)
  return secret
}

function pairOf(secret: string, shape: string): [string, string] {
  const at = secret.indexOf(':')
  if (at <= 0 || at === secret.length - 1) throw loginFault(`The credential must be ${shape}.`, REFUSED)
  return [secret.slice(0, at), secret.slice(at + 1)]
}

/** Keys of AWS as one credential. A session token has no colon. */
function awsKeys(secret: string | undefined, region: string): AwsCredentials {
  const [, accessKeyId, secretAccessKey, sessionToken] =
    /^([\w-]{4,128}):([^:\s]+)(?::([^:\s]+))?$/.exec(secret ?? '') ?? []
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw loginFault(
      'The credential must be access_key_id:secret_access_key, with :session_token if it is temporary.',
      REFUSED,
    )
  return { region, accessKeyId, secretAccessKey, sessionToken }
}

function awsIn(value: string): AwsCredentials {
  return JSON.parse(value) as AwsCredentials // as `sts` wrote it
}

function then<T, R>(value: T | Promise<T>, next: (value: T) => R): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

function signedJwt(header: object, claims: object, key: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part(header)}.${part(claims)}`
  try {
    return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`
  } catch {
    throw loginFault('The private key of the service account cannot be read.', REFUSED)
  }
}

async function fileText(path: string): Promise<string> {
  const found = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw loginFault(`${path} cannot be read (${error.code}).`)
  })
  if (found.length > FILE_BYTES_MAX) throw loginFault(`${path} is too long to be a token.`)
  return found.trim()
}

/** OAuth says `error` and `error_description`; Google's APIs have an object. */
function wordsOf({ error, error_description: words }: Json): string {
  const { message, status } = objectOf(error)
  return [error, words, status, message].flatMap((one) => text(one) ?? []).join(' ')
}

/** AWS answers in XML, whose values here need no escapes. */
function tagIn(xml: string, tag: string): string | undefined {
  const [, rest] = xml.split(`<${tag}>`, 2)
  return text(rest?.split('<', 1)[0])
}

function jsonOf(text: string): Json | undefined {
  const value = jsonIn(text)
  return isObject(value) ? value : undefined
}

function textsOf(value: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(objectOf(value)).map(([name, one]) => [name.toLowerCase(), String(one)]))
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
