// The clouds' token endpoints and a vendor behind them, on one port. Each refuses what the real one would: every
// signature and assertion is checked, AWS signatures by an implementation of their own, from the request as it came.
import { createHash, createHmac, generateKeyPairSync, verify } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { listen } from './started.ts'

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

type Answer = readonly [status: number, body: unknown, type?: string]

export const AWS = { id: 'AKIDEXAMPLE00000001', secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
export const ROLE = 'arn:aws:iam::123456789012:role/tollgate'
export const CLIENT = { id: '11111111-2222-3333-4444-555555555555', secret: 'Entra~client.secret_value-1' }
const EMAIL = 'gateway@project.iam.gserviceaccount.com'
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'

export interface Cloud {
  readonly url: string
  readonly host: string
  /** How often each kind of token was given. */
  readonly given: Map<string, number>
  /** Says no to every login while it is set. */
  down: boolean
  /** How long a token lives. */
  lifeSeconds: number
  /** What vendors were asked, after the login was found right. */
  readonly calls: Asked[]
  /** How the vendor answers. */
  answer: (asked: Asked) => Answer
  /** The JSON of the service account. */
  readonly serviceAccount: string
  close(): void
}

export async function startCloud(): Promise<Cloud> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const tokens = new Set<string>()
  const sessions = new Map<string, { secret: string; token: string }>([[AWS.id, { secret: AWS.secret, token: '' }]])
  const cloud = {
    url: '',
    host: '',
    given: new Map<string, number>(),
    down: false,
    lifeSeconds: 3600,
    calls: [] as Asked[],
    answer: (_asked: Asked): Answer => [500, {}],
    serviceAccount: '',
    close: () => void server.close(),
  }

  function give(kind: string): string {
    const count = (cloud.given.get(kind) ?? 0) + 1
    cloud.given.set(kind, count)
    const token = `token-of-${kind}-${count}-0123456789`
    tokens.add(token)
    return token
  }
  const granted = (kind: string): Answer => [
    200,
    { access_token: give(kind), expires_in: cloud.lifeSeconds, token_type: 'Bearer' },
  ]
  const refused = (words: string): Answer => [401, { error: 'invalid_client', error_description: words }]

  function google(form: URLSearchParams, url: string): Answer {
    const [head = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.')
    const said = JSON.parse(Buffer.from(claims, 'base64url').toString()) as Record<string, unknown>
    const isSigned = verify('sha256', Buffer.from(`${head}.${claims}`), publicKey, Buffer.from(signature, 'base64url'))
    const now = Date.now() / 1000
    const isRight = said.iss === EMAIL && said.aud === url && said.scope === SCOPE && Number(said.exp) - now <= 3601
    const isGrant = form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer'
    return isSigned && isRight && isGrant ? granted('google') : [400, { error: 'invalid_grant' }]
  }

  function exchange(form: URLSearchParams): Answer {
    const isRight =
      form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:token-exchange' &&
      form.get('subject_token') === 'subject-token' &&
      form.get('audience') === '//iam.googleapis.com/pool' &&
      form.get('requested_token_type') === 'urn:ietf:params:oauth:token-type:access_token'
    return isRight ? granted('exchange') : refused('not this subject')
  }

  function entra(form: URLSearchParams): Answer {
    const isFederated =
      form.get('client_assertion_type') === 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer' &&
      form.get('client_assertion') === 'federated-token'
    const isClient = form.get('client_id') === CLIENT.id && form.get('grant_type') === 'client_credentials'
    if (!isClient || (form.get('client_secret') !== CLIENT.secret && !isFederated))
      return refused(`AADSTS7000215: Invalid client secret provided: ${form.get('client_secret')}.`)
    return form.get('scope') === 'https://cognitiveservices.azure.com/.default' ? granted('entra') : refused('scope')
  }

  function sts(asked: Asked, form: URLSearchParams): Answer {
    const web = form.get('Action') === 'AssumeRoleWithWebIdentity'
    const isRight = web ? form.get('WebIdentityToken') === 'web-identity' : awsProblem(asked, sessions) === undefined
    if (!isRight || form.get('RoleArn') !== ROLE)
      return [
        403,
        '<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>',
        XML,
      ]
    const count = (cloud.given.get('sts') ?? 0) + 1
    cloud.given.set('sts', count)
    const [id, secret, token] = [
      `ASIASESSION${count}`,
      `session-secret-${count}/+`,
      `session-token-${count}==`,
    ] as const
    sessions.set(id, { secret, token })
    const end = new Date(Date.now() + cloud.lifeSeconds * 1000).toISOString()
    const keys = `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey>`
    const all = `${keys}<SessionToken>${token}</SessionToken><Expiration>${end}</Expiration>`
    const action = web ? 'AssumeRoleWithWebIdentity' : 'AssumeRole'
    return [
      200,
      `<${action}Response><${action}Result><Credentials>${all}</Credentials></${action}Result></${action}Response>`,
      XML,
    ]
  }

  function answerTo(asked: Asked): Answer {
    const form = new URLSearchParams(asked.body)
    const isLogin = /^\/(?:token|exchange|impersonate|entra|sts|computeMetadata|subject)/.test(asked.path)
    if (isLogin && cloud.down) return [503, { error: 'temporarily_unavailable' }]
    if (asked.path === '/token') return google(form, `${cloud.url}/token`)
    if (asked.path === '/exchange') return exchange(form)
    if (asked.path === '/subject') return [200, { value: 'subject-token' }]
    if (asked.path === '/impersonate') {
      const ofSts = asked.headers.authorization?.startsWith('Bearer token-of-exchange-')
      const end = new Date(Date.now() + cloud.lifeSeconds * 1000).toISOString()
      return ofSts ? [200, { accessToken: give('impersonated'), expireTime: end }] : refused('no token')
    }
    if (asked.path.startsWith('/computeMetadata'))
      return asked.headers['metadata-flavor'] === 'Google' ? granted('metadata') : [403, {}]
    if (asked.path.startsWith('/entra/tenant-1/oauth2/v2.0/token')) return entra(form)
    if (asked.path === '/sts') return sts(asked, form)
    const { authorization = '' } = asked.headers
    const problem = authorization.startsWith('AWS4')
      ? awsProblem(asked, sessions)
      : tokens.has(authorization.slice(7))
        ? undefined
        : 'an unknown token'
    if (problem !== undefined) return [403, { error: { message: `${problem}: ${authorization}`, type: 'auth' } }]
    cloud.calls.push(asked)
    return cloud.answer(asked)
  }

  const server = await listen(async (req, res) => {
    const { method = '', url: path = '', headers } = req
    const [status, body, type = 'application/json'] = answerTo({ method, path, headers, body: await text(req) })
    res.writeHead(status, { 'content-type': type })
    res.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body))
  })
  Object.assign(cloud, { host: server.host, url: server.url })
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const account = { type: 'service_account', client_email: EMAIL, private_key: key, private_key_id: 'k1' }
  cloud.serviceAccount = JSON.stringify({ ...account, token_uri: `${cloud.url}/token` })
  return cloud
}

const XML = 'text/xml'

/** Why the signature is not right; undefined: it is. */
function awsProblem(
  { method, path, headers, body }: Asked,
  sessions: ReadonlyMap<string, { secret: string; token: string }>,
): string | undefined {
  const [, id = '', scope = '', names = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8}\/[\w-]+\/[\w-]+\/aws4_request), SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    ) ?? []
  const session = sessions.get(id)
  if (!session) return 'an unknown access key'
  if ((headers['x-amz-security-token'] ?? '') !== session.token) return 'another session token'
  for (const name of ['host', 'x-amz-date', ...(session.token ? ['x-amz-security-token'] : [])])
    if (!names.split(';').includes(name)) return `${name} is not signed`
  const [plain = '', query = ''] = path.split('?')
  const service = scope.split('/')[2]
  const again = (part: string) =>
    encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  const signedPath = service === 's3' ? plain : plain.split('/').map(again).join('/')
  const lines = names.split(';').map((name) => `${name}:${String(headers[name])}`)
  const hash = (text: string) => createHash('sha256').update(text).digest('hex')
  const canonical = [method, signedPath, query.split('&').sort().join('&'), ...lines, '', names, hash(body)].join('\n')
  const text = `AWS4-HMAC-SHA256\n${String(headers['x-amz-date'])}\n${scope}\n${hash(canonical)}`
  const mac = (secret: string | Buffer, part: string) => createHmac('sha256', secret).update(part).digest()
  const key = scope.split('/').reduce<string | Buffer>(mac, `AWS4${session.secret}`)
  return mac(key, text).toString('hex') === signature ? undefined : 'the signature does not match'
}
