// Sign-in of a program on a machine without a browser (device authorization, RFC 8628): the program shows a code, and a
// person types it into the console, sees who asks, and consents. As with other connections, no value of a key exists
// that anybody could copy: tokens stand for the connection, and it ends with the person's membership.
import type { Keys } from '../../../admission/keys.ts'
import { sql } from '../../../database/database.ts'
import type { CoreParts } from '../../../extension.ts'
import type { Attempts } from '../../../identity/attempts.ts'
import { Fault } from '../../../kernel/fault.ts'
import { sign } from '../../../kernel/secret.ts'
import { networkOf } from '../../../upstream/address.ts'
import type { DeviceView } from '../views.ts'
import { apiOf, type Consent, nameOf, resourceOf, SCOPE } from './connections.ts'
import type { Authority } from './open.ts'

export type DeviceSignIns = ReturnType<typeof createDeviceSignIns>

/** Whose guesses of codes are counted. */
interface Asker {
  readonly person: string
  readonly ip: string
}

/** Models and every other endpoint for API keys. */
export const API_SCOPE = 'api'

/** A code is one of 25 thousand million and lives ten minutes. These hold for all processes together. */
const TRIES = { person: 20, address: 60, perSeconds: 60 }

/**
 * What is stored of the code that a person types. Keyed, because all codes together are few enough to try; looked up by
 * index, so time tells nothing.
 */
export function createUserCodes(key: Buffer): (code: string) => string {
  return (code) => sign(key, `user code ${code.toUpperCase().replaceAll(/[^A-Z]/g, '')}`).toString('base64url')
}

const WAITS = `model = 'DeviceCode' and payload ->> 'userCode' = $1 and expires_at > now() and consumed_at is null
   and not payload ?| array['accountId', 'error', 'inFlight']`
const FIND = sql('device_find')`
  select payload ->> 'clientId' as client, payload #>> '{params,scope}' as scope, origin, created_at as at from oauth_object where ${WAITS}`
// Of two people, or two answers of one, only one finds it waiting.
const CLAIM = sql('device_claim')`
  update oauth_object set payload = payload || '{"inFlight": true}' where ${WAITS} returning 1`
const FINISH = sql('device_finish')`
  update oauth_object set payload = (payload - 'inFlight') || $2::jsonb, grant_id = $3 where model = 'DeviceCode' and payload ->> 'userCode' = $1
   and consumed_at is null returning 1`

interface Waiting {
  client: string
  scope: string | null
  origin: string | null
  at: Date
}

export interface DeviceDeps extends Pick<CoreParts, 'database' | 'secrets'> {
  readonly attempts: Attempts
  readonly keys: Pick<Keys, 'create'>
}

export function createDeviceSignIns({ issuer, load }: Authority, { database, attempts, keys, secrets }: DeviceDeps) {
  const digest = createUserCodes(secrets.key('oauth'))

  async function find(who: Asker, code: string) {
    const { person: max, address, perSeconds } = TRIES
    const from = { subject: `device code ${networkOf(who.ip)}`, max: address, perSeconds }
    await attempts.brake([{ subject: `device code ${who.person}`, max, perSeconds }, from])
    const [row] = await database.query<Waiting>(FIND, [digest(code)])
    const provider = await load()
    const client = row && (await provider.Client.find(row.client))
    if (!client) throw gone()
    const scopes = row.scope?.split(' ').filter((scope) => scope === API_SCOPE || scope === SCOPE)
    return { provider, client, row, scopes: scopes?.length ? scopes : [API_SCOPE, SCOPE] }
  }

  async function claim(code: string): Promise<void> {
    const [mine] = await database.query(CLAIM, [digest(code)])
    if (!mine) throw gone()
  }
  async function finish(code: string, result: object, grant: string | null = null): Promise<boolean> {
    const [done] = await database.query(FINISH, [digest(code), JSON.stringify(result), grant])
    return done !== undefined
  }

  async function grantTo(found: Awaited<ReturnType<typeof find>>, consent: Consent) {
    const { provider, client, scopes } = found
    const resource = scopes.includes(API_SCOPE) ? apiOf(issuer()) : resourceOf(issuer())
    const scope = scopes.join(' ')
    const { person: accountId, place, account, models, limits, by } = consent
    const grant = new provider.Grant({ accountId, clientId: client.clientId })
    grant.addOIDCScope(`${scope} offline_access`)
    grant.addResourceScope(resource, scope)
    const grantId = await grant.save()
    const name = nameOf(client)
    const { memberId, teamId, projectId } = place
    const belongs = { memberId, teamId: projectId ?? teamId }
    await keys.create(account, { name, models, limits, ...belongs, grant: { id: grantId, client: name } }, by)
    return { accountId, grantId, scope, resource }
  }

  return {
    async look(who: Asker, code: string): Promise<DeviceView> {
      const { client, row, scopes } = await find(who, code)
      return { client: nameOf(client), askedFrom: row.origin, askedAt: row.at.toISOString(), scopes }
    },
    async allow(who: Asker, code: string, consent: Consent): Promise<void> {
      const found = await find(who, code)
      await claim(code)
      try {
        const granted = await grantTo(found, consent)
        await finish(code, granted, granted.grantId)
      } catch (error) {
        // What the person chose was rejected: they may choose again.
        await finish(code, {})
        throw error
      }
    },
    async refuse(who: Asker, code: string): Promise<void> {
      await find(who, code)
      await claim(code)
      await finish(code, { error: 'access_denied', errorDescription: 'The person did not agree.' })
    },
  }
}

/** The same for codes that never were, have expired, or were answered: a stranger learns nothing from it. */
const gone = () =>
  new Fault('not_found', {
    message: 'No program waits with this code: it may be mistyped, expired or answered. Start again on your machine.',
  })
