// Registers OAuth. Its library is loaded at the first request only, because most gateways never use it. OAuth is available only over https or
// on the local machine: a code sent in clear text could be stolen.

import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyInstance } from 'fastify'
import type Provider from 'oidc-provider'
import type { Keys } from '../admission/keys.ts'
import type { Changes } from '../database/changes.ts'
import { type Database, statement } from '../database/database.ts'
import { pruneAll } from '../database/prune.ts'
import type { Log } from '../kernel/log.ts'
import type { Secrets } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'
import type { Connections } from '../operator/resources/session.ts'
import { createMinuteBudget } from '../upstream/budget.ts'
import type { GuardedFetch } from '../upstream/guard.ts'
import { createConnections, SCOPE } from './connections.ts'
import { challengeOf, mountOauth } from './routes.ts'

export interface OauthDeps {
  readonly publicUrl: () => string
  readonly database: Database
  readonly changes: Pick<Changes, 'bump' | 'notice'>
  readonly keys: Pick<Keys, 'create' | 'revokeGrant'>
  readonly secrets: Secrets
  readonly guard: Pick<GuardedFetch, 'download'>
  readonly world: World
  readonly log: Log
}

/** The authorization server and its public name. */
export interface Authority {
  readonly issuer: () => string
  readonly load: () => Promise<Provider>
}

/** Limits on this process's fetches of metadata documents: per caller address, per caller address and host, and per host. */
const DOCUMENTS_PER_MINUTE = { address: 20, addressAndHost: 5, host: 60 }
const BY = { actor: 'oauth', ip: null, requestId: null }

export function openOauth(
  app: FastifyInstance,
  deps: OauthDeps,
  /** The paths that tokens give access to. */
  resources: readonly [string, ...string[]],
): { challenge: () => string; connections: Connections } {
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
  async function forget(): Promise<void> {
    await database.transaction((tx) => deps.changes.bump(tx, 'keys'))
    await deps.changes.notice('keys')
  }
  let loading: Promise<Provider> | undefined

  async function make(): Promise<Provider> {
    const { createAuthority } = await import('./authority.ts')
    return createAuthority(issuer(), { ...deps, revoked, forget, mayFetch, origin, resources })
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
  mountOauth(app, routes)
  return { challenge: challengeOf(routes), connections: createConnections({ issuer, load }, deps) }
}

function isTrustworthy({ protocol, hostname, pathname }: URL): boolean {
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d+){3}$/.test(hostname)
  return pathname === '/' && (protocol === 'https:' || isLoopback)
}

// Limits on the size of the OAuth table: strangers may register programs, and most rows expire within minutes.

/** For all processes together. A program registers once for each of its installations. */
const CLIENTS_PER_HOUR = 2_000
/** One address may use a hundredth of the registrations that are left, so hundreds of addresses together still leave room for the next. */
const ADDRESS_PART = 100

const REGISTERED = statement(
  'oauth_registered',
  `select count(*)::int as count, (count(*) filter (where origin = $1))::int as own
   from oauth_object where model = 'Client' and created_at > now() - interval '1 hour'`,
)
const PRUNE = statement(
  'oauth_prune',
  `with gone as (
     delete from oauth_object where ctid = any(array(select ctid from oauth_object where expires_at < now() limit 5000)) returning 1
   ) select count(*)::int as count from gone`,
)

/** Whether another program may register from this address. */
async function mayRegister(database: Database, address: string): Promise<boolean> {
  const [row] = await database.query<{ count: number; own: number }>(REGISTERED, [address])
  const left = CLIENTS_PER_HOUR - (row?.count ?? 0)
  return left > 0 && (row?.own ?? 0) < Math.max(1, left / ADDRESS_PART)
}

export async function pruneTokens(database: Database): Promise<void> {
  await pruneAll(database, PRUNE)
}
