// POST /v1/realtime/client_secrets: what a browser opens a Realtime session with, made by a server that has the key.
import type { HandlersOf } from '../../../api/api.ts'
import { jsonBody } from '../../../api/server/body.ts'
import { invalid } from '../../../kernel/fault.ts'
import { isObject, objectOf, readJson, text } from '../../../kernel/json.ts'
import { newId } from '../../../kernel/world.ts'
import { type ArriveDeps, readFor } from '../../../pipeline/arrive.ts'
import { broughtBy } from '../../../pipeline/read.ts'
import type { CLIENT_SECRETS } from '../endpoints.ts'
import type { ClientSecrets } from './client-secrets.ts'
import { realtimeEndpoint } from './reader.ts'
import { isTranscribed } from './response.ts'
import { RealtimeSession } from './session.ts'

interface ClientSecretDeps extends ArriveDeps {
  readonly clientSecrets: ClientSecrets
}

const SECONDS_MIN = 10
const SECONDS_MAX = 60
const SESSION_CHARS_MAX = 8_000
const ORIGINS_MAX = 10
const ORIGIN = /^https?:\/\/[a-z0-9.-]{1,253}(?::\d{1,5})?$/

export function clientSecretHandlers(deps: ClientSecretDeps): HandlersOf<keyof typeof CLIENT_SECRETS> {
  return {
    async 'realtime/client_secrets'(request, out) {
      const { value } = readJson(jsonBody(request))
      const session = objectOf(value.session)
      const model = text(session.model) ?? ''
      const { principal, headers } = request
      const { user, safety_identifier } = value
      const body = { json: readJson(Buffer.from(JSON.stringify({ model, user, safety_identifier }))) }
      const spec = realtimeEndpoint()
      // What the session would be refused for is said now.
      const brought = await broughtBy(principal, deps.read)
      const asked = { spec, principal, brought, params: {}, query: '', body, headers }
      const { labels } = readFor(asked, deps).asked
      const { models } = deps.catalog.current.document
      const state = new RealtimeSession(model, isTranscribed(models[model]))
      state.told(readJson(Buffer.from(JSON.stringify({ type: 'session.update', session }))))
      if (JSON.stringify(session).length > SESSION_CHARS_MAX)
        throw invalid(
          `"session" may have at most ${SESSION_CHARS_MAX} characters; send the rest with session.update.`,
          'session',
        )
      if (principal.addresses)
        throw invalid('This key is bound to network addresses, so it cannot create client secrets for browsers.')
      const { world } = deps.path
      const expiresAt = Math.floor(world.nowMs() / 1000) + secondsOf(value.expires_after)
      const { keyId, accountId: account } = principal
      const origins = originsOf(value.origins)
      const secret = deps.clientSecrets.make({ keyId, account, model, origins, session, labels, expiresAt })
      const shown = { id: `sess_${newId(world)}`, object: 'realtime.session', type: 'realtime', ...session }
      out.send(
        200,
        {
          'content-type': 'application/json; charset=utf-8',
          'cache-control': 'no-store',
          ...(state.leftOut.size > 0 ? { 'x-tollgate-left-out': [...state.leftOut].join(', ') } : {}),
        },
        JSON.stringify({ value: secret, expires_at: expiresAt, session: shown }),
      )
    },
  }
}

/** A longer life than the longest is shortened to it: the answer says when it ends. */
function secondsOf(given: unknown): number {
  if (given !== undefined && given !== null && !isObject(given))
    throw invalid('"expires_after" must be an object.', 'expires_after')
  const { seconds } = objectOf(given)
  if (seconds === undefined || seconds === null) return SECONDS_MAX
  if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < SECONDS_MIN)
    throw invalid(`"expires_after.seconds" must be an integer from ${SECONDS_MIN} to ${SECONDS_MAX}.`, 'expires_after')
  return Math.min(seconds, SECONDS_MAX)
}

function originsOf(given: unknown): string[] | undefined {
  if (given === undefined || given === null) return undefined
  const isList = Array.isArray(given) && given.length > 0 && given.length <= ORIGINS_MAX
  if (isList && given.every((one) => typeof one === 'string' && ORIGIN.test(one))) return given
  throw invalid(`"origins" must be 1 to ${ORIGINS_MAX} sites such as "https://app.example".`, 'origins')
}
