// Login providers for tests, on real sockets: `oidc-provider`, a certified implementation, and one that follows a
// script and does wrong things.
import { createSign, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import Provider from 'oidc-provider'
import { listen } from './started.ts'

export const CLIENT_ID = 'tollgate'
export const CLIENT_SECRET = 'a-secret-that-only-the-provider-and-the-gateway-know'

export interface Account {
  readonly email?: string
  readonly email_verified?: boolean
  readonly groups?: readonly string[]
}

export interface TestProvider {
  readonly issuer: string
  readonly hostAndPort: string
  /** By their subject; tests change what the provider says of them. */
  readonly people: Map<string, Account>
  /** Signs in without a form whoever comes. Absent: a form asks for the subject. */
  visitor: string | undefined
  /** Once the gateway's address is known. */
  open(gateway: string, id: string): void
  /** As the provider does when somebody signs out there. */
  signOut(subject: string, sid: string): Promise<void>
  close(): Promise<void>
}

export async function startProvider(): Promise<TestProvider> {
  let answer = async (_request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.writeHead(503).end()
  }
  let provider: Provider | undefined
  const { url: issuer, host: hostAndPort, close } = await listen((request, response) => void answer(request, response))
  const people = new Map<string, Account>()

  const made: TestProvider = {
    issuer,
    hostAndPort,
    people,
    visitor: undefined,
    open(gateway, id) {
      const opened = new Provider(issuer, configuration(gateway, id, people))
      provider = opened
      const callback = opened.callback()
      answer = async (request, response) => {
        if (!request.url?.startsWith('/interaction/')) return callback(request, response)
        const subject = made.visitor ?? (await subjectOf(request))
        if (subject === undefined) response.setHeader('content-type', 'text/html').end(FORM)
        else await signIn(opened, subject, request, response)
      }
    },
    async signOut(subject, sid) {
      // The library's own declaration does not name it.
      const client = (await provider!.Client.find(CLIENT_ID)) as unknown as {
        backchannelLogout(subject: string, sid: string): Promise<void>
      }
      await client.backchannelLogout(subject, sid)
    },
    close,
  }
  return made
}

const FORM = `<!doctype html><title>Example Corp</title><main><h1>Example Corp</h1>
<form method="post"><label>Name <input name="subject"></label> <button>Sign in</button></form></main>`

async function subjectOf(request: IncomingMessage): Promise<string | undefined> {
  if (request.method !== 'POST') return undefined
  return new URLSearchParams(await text(request)).get('subject') ?? undefined
}

async function signIn(provider: Provider, subject: string, request: IncomingMessage, response: ServerResponse) {
  const { params } = await provider.interactionDetails(request, response)
  const grant = new provider.Grant({ accountId: subject, clientId: String(params.client_id) })
  grant.addOIDCScope(String(params.scope))
  const result = { login: { accountId: subject, remember: false }, consent: { grantId: await grant.save() } }
  const next = await provider.interactionResult(request, response, result, { mergeWithLastSubmission: false })
  response.writeHead(303, { location: next }).end()
}

function configuration(gateway: string, id: string, people: ReadonlyMap<string, Account>) {
  return {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        redirect_uris: [`${gateway}/console/sso/${id}`],
        backchannel_logout_uri: `${gateway}/sso/${id}/logout`,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    pkce: { required: () => true },
    cookies: { keys: ['for tests'] },
    findAccount: (_context: unknown, subject: string) => ({
      accountId: subject,
      claims: async () => ({ sub: subject, ...people.get(subject) }),
    }),
    // It refuses addresses of this machine unless told otherwise.
    fetch: (url: string, { dispatcher: _, ...options }: RequestInit) => fetch(url, options),
  }
}

export interface ScriptedProvider {
  readonly issuer: string
  readonly hostAndPort: string
  /** What the next ID token says besides the usual. */
  claims: Record<string, unknown>
  /** What the description says besides the usual. */
  readonly metadata: Record<string, unknown>
  /** Signs the next token with a key that is not published. */
  forged: boolean
  /** What the token endpoint was sent. */
  readonly exchanged: URLSearchParams[]
  sign(claims: Record<string, unknown>, header?: Record<string, unknown>): string
  close(): Promise<void>
}

/** Answers every code with a token of its script. */
export async function startScriptedProvider(): Promise<ScriptedProvider> {
  const keys = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const others = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const { url: issuer, host: hostAndPort, close } = await listen((request, response) => void answer(request, response))
  const made: ScriptedProvider = {
    issuer,
    hostAndPort,
    claims: {},
    metadata: {},
    forged: false,
    exchanged: [],
    sign: (claims, header = {}) =>
      jwt(made.forged ? others.privateKey : keys.privateKey, { alg: 'RS256', kid: 'one', ...header }, claims),
    close,
  }
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    const send = (value: unknown) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
    if (request.url === '/.well-known/openid-configuration')
      send({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
        id_token_signing_alg_values_supported: ['RS256'],
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        ...made.metadata,
      })
    else if (request.url === '/keys')
      send({ keys: [{ ...keys.publicKey.export({ format: 'jwk' }), kid: 'one', use: 'sig', alg: 'RS256' }] })
    else if (request.url === '/token') {
      made.exchanged.push(new URLSearchParams(body))
      const now = Math.floor(Date.now() / 1000)
      const usual = { iss: issuer, aud: CLIENT_ID, sub: 'someone', iat: now, exp: now + 300 }
      const token = made.sign({ ...usual, ...made.claims })
      send({ access_token: randomUUID(), token_type: 'Bearer', expires_in: 300, id_token: token })
    } else response.writeHead(404).end()
  }
  return made
}

function jwt(key: KeyObject, header: Record<string, unknown>, claims: Record<string, unknown>): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part(header)}.${part(claims)}`
  return `${signed}.${createSign('RSA-SHA256').update(signed).sign(key, 'base64url')}`
}

/** Goes where a provider's redirects lead, with its cookies, until they leave it; returns the address outside. */
export async function journey(url: string, issuer: string): Promise<URL> {
  const cookies = new Map<string, string>()
  let at = url
  for (let hops = 0; hops < 15; hops++) {
    if (!at.startsWith(issuer)) return new URL(at)
    const response = await fetch(at, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    })
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    if (!location) throw new Error(`${at} answered ${response.status}: ${await response.text()}`)
    at = new URL(location, at).href
  }
  throw new Error('The provider redirects for ever.')
}
