// What a vendor gets with every call, whatever the format: its credential, in the place where it looks for it, and the extra
// headers that the catalogue gives it. Adapters know nothing of either.
import type { Auth } from '../catalog/document.ts'
import type { ProtocolName } from '../catalog/kind.ts'
import { bearer, type HttpCall } from '../upstream/call.ts'
import type { Target } from './protocol.ts'

/** Where the format's usual vendors look; all others take a bearer token. */
const USUAL: Partial<Record<ProtocolName, Auth>> = {
  'anthropic-messages': { header: 'x-api-key' },
  gemini: { header: 'x-goog-api-key' },
}

export function vendorCall(call: HttpCall, { protocol, secret, auth, headers }: Target): HttpCall {
  const where = auth ?? USUAL[protocol] ?? 'bearer'
  if (secret === undefined) return { ...call, headers: { ...call.headers, ...headers } }
  if (where === 'bearer') return { ...call, headers: { authorization: bearer(secret), ...call.headers, ...headers } }
  if ('header' in where) return { ...call, headers: { [where.header]: secret, ...call.headers, ...headers } }
  const mark = call.url.includes('?') ? '&' : '?'
  const url = `${call.url}${mark}${encodeURIComponent(where.query)}=${encodeURIComponent(secret)}`
  return { ...call, url, headers: { ...call.headers, ...headers } }
}
