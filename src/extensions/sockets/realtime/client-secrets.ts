// Client secrets: a browser can open Realtime sessions with one for a minute, in the name of a key that it never sees.
// They are encrypted tokens that every process can read, and are not stored. So nothing records that one was used.

import type { Labels } from '../../../admission/labels.ts'
import type { RequestHeaders } from '../../../catalog/query.ts'
import { Fault } from '../../../kernel/fault.ts'
import { seal, unseal } from '../../../kernel/secret.ts'
import type { World } from '../../../kernel/world.ts'

export interface ClientSecret {
  readonly keyId: string
  readonly account: string
  readonly model: string
  /** The sites whose pages may use it; absent: no page, only programs outside of browsers. */
  readonly origins?: readonly string[] | undefined
  /** The session that it opens. */
  readonly session: Readonly<Record<string, unknown>>
  /** Those of the request that made it: its sessions have them, and no others. */
  readonly labels?: Labels | undefined
  /** Unix seconds. */
  readonly expiresAt: number
}

const PREFIX = 'ek_'
const PLACE = 'client-secret|1'
const isClientSecret = (value: string) => value.startsWith(PREFIX)
const KEY_PROTOCOL = 'openai-insecure-api-key.'

/** Browsers cannot send headers with a handshake, but a subprotocol. Only secrets that end soon may come so. */
export function secretIn(headers: RequestHeaders): string | undefined {
  const offered = String(headers['sec-websocket-protocol'] ?? '')
    .split(',')
    .map((one) => one.trim())
  const given = offered.find((one) => one.startsWith(KEY_PROTOCOL))?.slice(KEY_PROTOCOL.length)
  const bearer = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? ''
  const value = given ?? (isClientSecret(bearer) ? bearer : undefined)
  if (value === undefined || isClientSecret(value)) return value
  throw noSecret()
}

export const noSecret = () =>
  new Fault('key_unknown', {
    message:
      'A subprotocol takes client secrets (ek_…) only. Send an API key in the Authorization header, never from a browser.',
  })

export type ClientSecrets = ReturnType<typeof createClientSecrets>

export function createClientSecrets(key: Buffer, world: World) {
  function read(value: string): ClientSecret | undefined {
    const text = unseal(key, PLACE, Buffer.from(value.slice(PREFIX.length), 'base64url'))
    return text === undefined ? undefined : (JSON.parse(text) as ClientSecret) // Sealed by us.
  }
  return {
    make: (secret: ClientSecret) => PREFIX + seal(key, PLACE, JSON.stringify(secret), world).toString('base64url'),
    accountIn: (value: string) => (isClientSecret(value) ? read(value)?.account : undefined),
    /** Throws key_unknown for an invalid or expired secret. */
    open(value: string, origin: string | undefined): ClientSecret {
      const secret = read(value)
      if (!secret) throw new Fault('key_unknown')
      if (secret.expiresAt * 1000 <= world.nowMs())
        throw new Fault('key_unknown', {
          message: 'This client secret has expired: client secrets are valid for a minute.',
        })
      // Every browser names the site; programs do not.
      if (origin === undefined ? secret.origins : !secret.origins?.includes(origin))
        throw new Fault('access_denied', {
          message: 'This client secret may not be used by pages of this site: "origins" does not name it.',
        })
      return secret
    },
  }
}
