// Registers OAuth. Its library is loaded at the first request only, because most gateways never use it. OAuth is
// available only over https or on the local machine: a code sent in clear text could be stolen.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type Provider from 'oidc-provider'
import type { Keys } from '../../../admission/keys.ts'
import { Caller, CORS } from '../../../api/server/caller.ts'
import { logFault } from '../../../api/server/envelope.ts'
import type { WebServer } from '../../../api/server/server.ts'
import { json, redirect, type WebRequest } from '../../../api/server/web.ts'
import type { Changes } from '../../../database/changes.ts'
import { type Database, sql } from '../../../database/database.ts'
import { pruneAll } from '../../../database/prune.ts'
import type { CoreParts } from '../../../extension.ts'
import { Fault } from '../../../kernel/fault.ts'
import { networkOf } from '../../../upstream/address.ts'
import { createMinuteBudget } from '../../../upstream/budget.ts'
import type { GuardedFetch } from '../../../upstream/guard.ts'
import { createConnections, SCOPE } from './connections.ts'
import { createDeviceSignIns, type DeviceDeps } from './device.ts'

export interface OauthDeps extends Pick<CoreParts, 'publicUrl' | 'world' | 'log'>, DeviceDeps {
  readonly changes: Pick<Changes, 'bump' | 'notice'>
  readonly keys: Pick<Keys, 'create' | 'revokeGrant' | 'grantLives'>
  readonly guard: Pick<GuardedFetch, 'download'>
}

/** The authorization server and its public name. */
export interface Authority {
  readonly issuer: () => string
  readonly load: () => Promise<Provider>
}

/**
 * Limits on this process's fetches of metadata documents: per caller address, per caller address and host, and per
 * host.
 */
const DOCUMENTS_PER_MINUTE = { address: 20, addressAndHost: 5, host: 60 }
const BY = { actor: 'oauth', ip: null, requestId: null }

/** `resources`: the paths that tokens give access to. */
export function createOauth(deps: OauthDeps, resources: readonly [string, ...string[]]) {
  const { publicUrl: issuer, database, keys, world } = deps
  /** The caller's network address, for callbacks of the library. */
  const asker = new AsyncLocalStorage<string>()
  const origin = () => asker.getStore()
  const byAddress = createMinuteBudget(world, DOCUMENTS_PER_MINUTE.address)
  const byBoth = createMinuteBudget(world, DOCUMENTS_PER_MINUTE.addressAndHost)
  const byHost = createMinuteBudget(world, DOCUMENTS_PER_MINUTE.host)
  function mayFetch(url: string): boolean {
    const { host } = new URL(url)
    const address = origin()
    if (address !== undefined && byBoth.spend(`${address} ${host}`, 1) !== undefined) return false
    if (address !== undefined && byAddress.spend(address, 1) !== undefined) return false
    return byHost.spend(host, 1) === undefined
  }
  const revoked = (grant: string) => keys.revokeGrant(grant, BY)
  const lives = (grant: string) => keys.grantLives(grant)
  async function forget(): Promise<void> {
    await database.transaction((tx) => deps.changes.bump(tx, 'keys'))
    await deps.changes.notice('keys')
  }
  let loading: Promise<Provider> | undefined

  async function make(): Promise<Provider> {
    const { createAuthority } = await import('./authority.ts')
    return createAuthority(issuer(), { ...deps, revoked, lives, forget, mayFetch, origin, resources })
  }
  function load(): Promise<Provider> {
    // A failed load is retried by the next call.
    loading ??= make().catch((error: unknown) => {
      loading = undefined
      throw error
    })
    return loading
  }

  const routes = {
    ...deps,
    resources,
    scope: SCOPE,
    enabled: () => isTrustworthy(new URL(issuer())),
    mayRegister: (address: string) => mayRegister(database, address),
    async answer(address: string, ...[request, response]: Parameters<ReturnType<Provider['callback']>>) {
      const { protocol, host } = new URL(issuer())
      request.headers['x-forwarded-proto'] = protocol.slice(0, -1)
      request.headers['x-forwarded-host'] = host
      const callback = (await load()).callback()
      await asker.run(address, () => callback(request, response))
    },
  }
  return {
    /** What a 401 says about how to come in. */
    challenge: challengeOf(routes),
    connections: createConnections({ issuer, load }, deps),
    device: createDeviceSignIns({ issuer, load }, deps),
    mount: (app: WebServer): void => mountOauth(app, routes),
  }
}

function isTrustworthy({ protocol, hostname, pathname }: URL): boolean {
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname)
  return pathname === '/' && (protocol === 'https:' || isLoopback)
}

// Limits on the size of the OAuth table: strangers may register programs, and most rows expire within minutes.

/** For all processes together. A program registers once for each of its installations. */
const CLIENTS_PER_HOUR = 2_000
/**
 * One address may use a hundredth of the registrations that are left, so hundreds of addresses together still leave
 * room for the next.
 */
const ADDRESS_PART = 100

const REGISTERED = sql('oauth_registered')`
  select count(*)::int as count, (count(*) filter (where origin = $1))::int as own
   from oauth_object where model = 'Client' and created_at > now() - interval '1 hour'`
const PRUNE = sql('oauth_prune')`with gone as (
     delete from oauth_object where ctid = any(array(select ctid from oauth_object where expires_at < now() limit 5000)) returning 1
   ) select count(*)::int as count from gone`

/** Whether another program may register from this address. */
async function mayRegister(database: Database, address: string): Promise<boolean> {
  const [row] = await database.query<{ count: number; own: number }>(REGISTERED, [address])
  const left = CLIENTS_PER_HOUR - (row?.count ?? 0)
  return left > 0 && (row?.own ?? 0) < Math.max(1, left / ADDRESS_PART)
}

export async function pruneTokens(database: Database): Promise<void> {
  await pruneAll(database, PRUNE)
}

// The OAuth routes: its metadata, and the routes that the library answers. They are open to strangers, so each network
// address has a limit of requests per minute.

interface OauthRoutes extends Pick<CoreParts, 'publicUrl' | 'world' | 'log'> {
  readonly enabled: () => boolean
  /** Lets the library answer a request from this network address. */
  readonly answer: (address: string, request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** Whether another program may register from this network address. */
  readonly mayRegister: (address: string) => Promise<boolean>
  /** The paths that tokens give access to; the first one is the resource's name. */
  readonly resources: readonly [string, ...string[]]
  readonly scope: string
}

/** The routes that the library answers, by their public paths. */
const ANSWERED = [
  ['GET', '/.well-known/oauth-authorization-server'],
  ['GET', '/.well-known/openid-configuration'],
  ['GET', '/oauth/jwks'],
  ['GET', '/oauth/authorize'],
  ['GET', '/oauth/authorize/{uid}'],
  ['POST', '/oauth/token'],
  ['POST', '/oauth/revoke'],
  ['POST', '/oauth/register'],
  ['POST', '/oauth/device'],
] as const
const HEADERS = new Headers({
  'cache-control': 'no-store',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
})
const METADATA = '/.well-known/oauth-protected-resource'
const BODY_BYTES_MAX = 65_536
/** Registrations are stored, so they must be small and announce their length. */
const REGISTRATION_BYTES_MAX = 8_192
const REQUESTS_PER_MINUTE = 120
const REGISTRATIONS_PER_MINUTE = 20

/** The WWW-Authenticate header of a 401, from which programs learn how to connect. */
function challengeOf({ enabled, publicUrl, resources, scope }: OauthRoutes): () => string {
  return () =>
    enabled() ? `Bearer resource_metadata="${publicUrl()}${METADATA}${resources[0]}", scope="${scope}"` : 'Bearer'
}

function mountOauth(app: WebServer, options: OauthRoutes): void {
  const { enabled, publicUrl, resources, scope, world } = options
  const requests = createMinuteBudget(world, REQUESTS_PER_MINUTE)
  const registrations = createMinuteBudget(world, REGISTRATIONS_PER_MINUTE)

  async function admit(request: WebRequest, url: string): Promise<void> {
    if (!enabled())
      throw new Fault('not_found', {
        message: 'Connecting by OAuth needs PUBLIC_URL to be an https address, without a path.',
      })
    const isRegistration = url === '/oauth/register'
    const address = networkOf(request.ip)
    const wait = (isRegistration ? registrations : requests).spend(address, 1)
    if (wait !== undefined) throw tooMany(wait)
    const length = request.headers['content-length']
    if (isRegistration && length === undefined)
      throw new Fault('request_invalid', { message: 'A registration needs a Content-Length.' })
    if (Number(length ?? 0) > (isRegistration ? REGISTRATION_BYTES_MAX : BODY_BYTES_MAX))
      throw new Fault('request_too_large')
    if (isRegistration && !(await options.mayRegister(address))) throw tooMany(600)
  }

  for (const [method, url] of ANSWERED) {
    // The library reads the body itself.
    app.add(method, url, async (request) => {
      const { id, raw, response } = request
      if (url !== '/oauth/authorize') response.setHeaders(new Headers(CORS))
      await admit(request, url)
      app.bodyDeadline(response)
      // The library has its own.
      if (url !== '/oauth/register') for (const name in CORS) response.removeHeader(name)
      response.setHeaders(HEADERS).setHeader('x-request-id', id)
      // Cookies of an earlier consent are dropped: the person who consents is the one now signed in to the console.
      if (url === '/oauth/authorize') delete raw.headers.cookie
      // After the consent, its own cookies are needed. The library's session cookie is dropped, because it may belong
      // to an earlier user of this browser.
      if (url === '/oauth/authorize/{uid}') raw.headers.cookie = withoutSession(raw.headers.cookie)
      await options.answer(networkOf(request.ip), raw, response).catch((error: unknown) => {
        logFault(new Fault('internal', { cause: error }), id, options.log)
        new Caller(response, id).send(500, {}, '')
      })
      return undefined
    })
    app.crossSite(url)
  }
  for (const path of ['', ...resources]) {
    const url = METADATA + path
    app.get(url, async (request) => {
      await admit(request, url)
      const metadata = {
        resource: publicUrl() + resources[0],
        authorization_servers: [publicUrl()],
        scopes_supported: [scope],
        bearer_methods_supported: ['header'],
        resource_name: 'Tollgate',
        resource_documentation: `${publicUrl()}/docs/guides/18-agents`,
      }
      return json(metadata, { ...CORS, 'cache-control': 'public, max-age=300' })
    })
    app.crossSite(url)
  }
  // The consent cookie is bound to this path, so the console's page makes its requests below it.
  app.get('/console/api/connect/{uid}', ({ params: { uid = '' } }) =>
    redirect(`/console/connect?consent=${encodeURIComponent(uid)}`, 303),
  )
}

function tooMany(retryAfterSeconds: number): Fault {
  return new Fault('rate_limited', {
    message: `Too many programs connect from this network address. Try again in ${retryAfterSeconds} s.`,
    retryAfterSeconds,
  })
}

/** Removes the library's session cookies and their signatures. */
function withoutSession(cookies = ''): string {
  const kept = cookies.split(';').filter((cookie) => !cookie.trimStart().startsWith('tg_oauth_session'))
  return kept.join(';')
}
