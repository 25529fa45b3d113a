// What a vendor gets with every call, whatever the format: its credential, in the place where it looks for it, and the extra
// headers that the catalog gives it. Adapters know nothing of either.
import type { Auth } from '../catalog/document.ts'
import type { ProtocolName } from '../catalog/kind.ts'
import { Fault } from '../kernel/fault.ts'
import { bearer, type HttpCall } from '../upstream/call.ts'
import type { Target } from './protocol.ts'

/** Where the format's usual vendors look; all others take a bearer token. */
const USUAL: Partial<Record<ProtocolName, Auth>> = {
  'anthropic-messages': { header: 'x-api-key' },
  gemini: { header: 'x-goog-api-key' },
}

export function vendorCall(call: HttpCall, { protocol, secret, auth, headers }: Target): HttpCall {
  if (climbs(call.url)) throw new Fault('request_invalid', { message: 'A part of the address is no id.' })
  const where = auth ?? USUAL[protocol] ?? 'bearer'
  if (secret === undefined) return { ...call, headers: { ...call.headers, ...headers } }
  if (where === 'bearer') return { ...call, headers: { authorization: bearer(secret), ...call.headers, ...headers } }
  if ('header' in where) return { ...call, headers: { [where.header]: secret, ...call.headers, ...headers } }
  const mark = call.url.includes('?') ? '&' : '?'
  const url = `${call.url}${mark}${encodeURIComponent(where.query)}=${encodeURIComponent(secret)}`
  return { ...call, url, headers: { ...call.headers, ...headers } }
}

/** How often a chain of proxies may decode an address before the vendor reads it. */
const DECODED_TIMES = 4
const HIDDEN: Readonly<Record<string, string>> = { '%2e': '.', '%2f': '/', '%5c': '\\', '%25': '%' }

/** Whether somebody on the way could read a dot segment out of the path, and with the credential call another one. */
function climbs(url: string): boolean {
  const end = url.indexOf('?')
  let path = end < 0 ? url : url.slice(0, end)
  for (let times = 0; times < DECODED_TIMES && path.includes('%'); times++)
    path = path.replaceAll(/%(?:2e|2f|5c|25)/gi, (code) => HIDDEN[code.toLowerCase()] ?? code)
  return /[/\\]\.{1,2}(?:[/\\;]|$)/.test(path)
}
