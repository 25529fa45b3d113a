// Session tokens: what an app or a page calls with in the name of one purse, made by its account's server. They are encrypted and not stored, so they are
// short-lived: a purse that is frozen ends all of its own at once.
import type { Principal } from '../../admission/api-key.ts'
import type { CallerRules, RequestContext } from '../../api/api.ts'
import { accessNameOf, checkAccessNames } from '../../catalog/endpoint-access.ts'
import { endpointsOf } from '../../catalog/index.ts'
import { type Catalog, catalogFor } from '../../catalog/store.ts'
import { checkModelNames } from '../../catalog/unknown-model.ts'
import type { Credits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { type Secrets, seal, unseal } from '../../kernel/secret.ts'
import type { World } from '../../kernel/world.ts'
import { PURSE } from './calls.ts'

interface SessionInput {
  readonly seconds: number
  readonly models: readonly string[] | null
  readonly endpoints: readonly string[] | null
  readonly origins: readonly string[] | null
  readonly callMax: Credits | null
}

interface SessionToken extends Omit<SessionInput, 'seconds' | 'callMax' | 'endpoints'> {
  readonly endpoints: readonly string[]
  readonly account: string
  readonly purse: string
  readonly callMax: string | null
  readonly expiresAtMs: number
}

export interface PurseSessions {
  make(account: string, purse: string, input: SessionInput): { token: string; expiresAt: string }
  readonly open: CallerRules['session']
}

const PREFIX = 'tgs_'
const PLACE = 'purse-session|1'
const BEARER = /^bearer +(\S+) *$/i
const TOKENS_MAX = 20_000

/** Where a session may read what is its own, besides paid endpoints. */
export const OWN_PURSE_PATH = '/v1/purse'
export const PURSE_QUOTE_PATH = '/v1/purse/quote'
const OWN_PATHS: readonly string[] = [OWN_PURSE_PATH, PURSE_QUOTE_PATH]

interface SessionDeps {
  readonly secrets: Secrets
  readonly world: World
  readonly catalog: { readonly current: Catalog }
}

export function createPurseSessions({ secrets, world, catalog }: SessionDeps): PurseSessions {
  // They are for browsers, like those of Realtime; another place, so that neither opens as the other.
  const key = secrets.key('client-secret')
  const known = new Map<string, { readonly token: SessionToken; readonly principal: Principal }>()

  function read(value: string) {
    const text = unseal(key, PLACE, Buffer.from(value.slice(PREFIX.length), 'base64url'))
    if (text === undefined) throw new Fault('key_unknown')
    const token = JSON.parse(text) as SessionToken // Sealed by us.
    if (known.size >= TOKENS_MAX) known.clear()
    const made = { token, principal: principalOf(token) }
    known.set(value, made)
    return made
  }

  return {
    make(account, purse, { seconds, callMax, models, endpoints, origins }) {
      const current = catalogFor(account, catalog.current)
      checkModelNames(models ?? [], current.document)
      const specs = endpointsOf(current)
      checkAccessNames(endpoints ?? [], specs)
      // Never unrestricted: what a key without a restriction may read is its whole account's.
      const paid = specs.flatMap((spec) => (spec.sells === undefined ? [] : (accessNameOf(spec) ?? [])))
      const expiresAtMs = world.nowMs() + seconds * 1000
      const token: SessionToken = {
        ...{ account, purse, models, origins, expiresAtMs, endpoints: endpoints ?? [...new Set(paid)] },
        callMax: callMax === null ? null : String(callMax),
      }
      return {
        token: PREFIX + seal(key, PLACE, JSON.stringify(token), world).toString('base64url'),
        expiresAt: new Date(expiresAtMs).toISOString(),
      }
    },
    open(request) {
      const value = valueIn(request)
      if (value === undefined) return undefined
      const { token, principal } = known.get(value) ?? read(value)
      if (token.expiresAtMs <= world.nowMs())
        throw new Fault('key_unknown', {
          message: 'This session token has expired. Ask your own server for a new one.',
        })
      checkOrigin(token, request.headers.origin)
      // Lists of what an account has are not a customer's.
      if (request.route.endpoint === undefined && !OWN_PATHS.includes(request.raw.url?.split('?', 1)[0] ?? ''))
        throw new Fault('access_denied', { message: 'A session token may only make calls, and read its own purse.' })
      return principal
    },
  }
}

function valueIn({ headers }: RequestContext): string | undefined {
  const { authorization, 'x-api-key': xApiKey } = headers
  const value = authorization === undefined ? xApiKey : BEARER.exec(authorization)?.[1]
  return value?.startsWith(PREFIX) ? value : undefined
}

/** Every browser names the site; programs do not. */
function checkOrigin({ origins }: SessionToken, origin: string | undefined): void {
  if (origins === null ? origin === undefined : origin !== undefined && origins.includes(origin)) return
  throw new Fault('access_denied', {
    message:
      origins === null
        ? 'This session token is not for pages: "origins" names no site.'
        : 'This session token may not be used here: "origins" names the only sites that may.',
  })
}

function principalOf({ account, purse, models, endpoints, callMax, expiresAtMs }: SessionToken): Principal {
  return {
    // What a customer stores (files, responses) is seen by the same customer alone.
    keyId: `purse:${purse}`,
    accountId: account,
    models: models && new Set(models),
    callMax: callMax === null ? undefined : BigInt(callMax),
    endpoints: new Set(endpoints),
    place: { [PURSE]: purse },
    expiresAtMs,
    addresses: null,
  }
}
