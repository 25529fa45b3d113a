// Added to every upstream call, whatever the format: the credential, where the vendor expects it, and the catalog's
// extra headers. Adapters handle neither.
import type { Login } from '../catalog/document.ts'
import { sha256, signAwsCall } from '../kernel/aws-signature.ts'
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { bearer, type HttpCall } from '../upstream/call.ts'
import type { LoggedIn, Logins } from '../upstream/login.ts'
import type { Target } from './protocol.ts'
import { VENDOR_FORMATS } from './text/formats.ts'

export function vendorCall(call: HttpCall, target: Target): HttpCall {
  const known = lately.get(target)
  if (known?.asked === call.headers && known.url === call.url) return { ...call, headers: known.headers }
  const made = addressed(call, target)
  if (made.url === call.url && !target.signs)
    lately.set(target, { url: call.url, asked: call.headers, headers: made.headers })
  return made
}

/**
 * How the last call to a target was sent, where its signature does not decide it: the next one often has the same
 * address and the same headers.
 */
const lately = new WeakMap<Target, { readonly url: string } & Record<'asked' | 'headers', HttpCall['headers']>>()

function addressed(call: HttpCall, target: Target): HttpCall {
  if (climbs(call.url)) throw new Fault('request_invalid', { message: 'A part of the address is not a valid id.' })
  const { protocol, secret, auth, signs, headers } = target
  if (signs) return { ...call, headers: signedHeaders(call, headers, signs) }
  if (secret === undefined) return { ...call, headers: { ...call.headers, ...headers } }
  const where = auth ?? VENDOR_FORMATS[protocol]?.auth ?? 'bearer'
  if (where === 'bearer') return { ...call, headers: { authorization: bearer(secret), ...call.headers, ...headers } }
  if (where === 'basic') return { ...call, headers: { authorization: basic(secret), ...call.headers, ...headers } }
  if ('header' in where) return { ...call, headers: { [where.header]: secret, ...call.headers, ...headers } }
  if (!('query' in where)) throw new Fault('internal', { internal: { why: 'the login was not opened' } })
  const mark = call.url.includes('?') ? '&' : '?'
  const url = `${call.url}${mark}${encodeURIComponent(where.query)}=${encodeURIComponent(secret)}`
  return { ...call, url, headers: { ...call.headers, ...headers } }
}

const basic = (pair: string) => `Basic ${Buffer.from(pair).toString('base64')}`

function signedHeaders(
  { method, url, headers, body = '' }: HttpCall,
  more: Readonly<Record<string, string>>,
  { aws, service, nowMs }: NonNullable<Target['signs']>,
) {
  const pieces = typeof body === 'string' || Buffer.isBuffer(body) ? [body] : body
  const signed = { headers: { ...headers, ...more }, bodySha256: sha256(...pieces), service }
  return signAwsCall({ method, url: new URL(url), ...signed }, aws, nowMs)
}

/** The login that a vendor wants before it is called. */
function loginOf({ auth }: Pick<Target, 'auth'>): Login | undefined {
  return typeof auth === 'object' && !('header' in auth) && !('query' in auth) ? auth : undefined
}

/**
 * The target with what its login gave instead of the credential. At once if it has no login, or while its token is
 * fresh.
 */
export function loggedIn(
  target: Target,
  { logins, world, isForeign }: { logins: Logins; world: Pick<World, 'nowMs'>; isForeign?: boolean },
): Target | Promise<Target> {
  const login = loginOf(target)
  if (!login) return target // The usual case.
  const use = (given: LoggedIn): Target =>
    'token' in given
      ? { ...target, secret: given.token, auth: 'bearer', dropToken: given.drop }
      : { ...target, secret: given.aws.secretAccessKey, signs: { ...given, nowMs: world.nowMs() } }
  const { secret, baseUrl } = target
  const given = logins.open(login, { secret, baseUrl, ...(isForeign ? { isForeign } : {}) })
  return given instanceof Promise ? given.then(use) : use(given)
}

/** How often a chain of proxies may decode an address before the vendor reads it. */
const DECODED_TIMES = 4
const HIDDEN: Readonly<Record<string, string>> = { '%2e': '.', '%2f': '/', '%5c': '\\', '%3b': ';', '%25': '%' }

/**
 * Whether a proxy or the vendor could decode a dot segment in the path, and so call another endpoint with our
 * credential.
 */
function climbs(url: string): boolean {
  const end = url.indexOf('?')
  let path = end < 0 ? url : url.slice(0, end)
  for (let times = 0; times < DECODED_TIMES && path.includes('%'); times++)
    path = path.replaceAll(/%(?:2e|2f|5c|3b|25)/gi, (code) => HIDDEN[code.toLowerCase()] ?? code)
  return /[/\\]\.{1,2}(?:[/\\;]|$)/.test(path)
}
