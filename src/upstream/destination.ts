// Turns an address that a stranger gave us into one that may be connected to, or refuses it. The answer holds the very IP
// addresses that were judged: whoever connects uses those and never asks the DNS again, so a name that changes its mind
// between the check and the connection gains nothing.
import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isMetadataHost, isPublicAddress } from './address.ts'

export interface Destination {
  readonly protocol: 'http:' | 'https:'
  /** Lower case, without a final dot, without brackets. */
  readonly host: string
  readonly port: number
  /** With the query, without the fragment. */
  readonly path: string
  /** For the next hop's relative address. */
  readonly url: URL
  /** The judged addresses, IPv4 first. */
  readonly addresses: readonly string[]
  /** An operator named this host and port: its addresses are not judged. */
  readonly trusted: boolean
}

export interface DestinationRules {
  readonly ports: ReadonlySet<number>
  /** `host:port` pairs that an operator trusts although they are not public. */
  readonly allow: ReadonlySet<string>
  /** Every IPv4 and IPv6 address of a name. */
  readonly resolve: (host: string, signal: AbortSignal) => Promise<readonly string[]>
}

/** Why an address was refused: for the log, never for the caller, who would learn about our network from it. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
}

const URL_CHARS_MAX = 8_192
const HOST_CHARS_MAX = 253
const PRIVATE_SUFFIXES = ['local', 'internal', 'localhost', 'arpa', 'onion']

/** Judges an address. `base` is the address that redirected to it. */
export async function judge(
  text: string,
  rules: DestinationRules,
  signal: AbortSignal,
  base?: URL,
): Promise<Destination> {
  const url = parse(text, base)
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const trusted = rules.allow.has(`${host}:${port}`)
  if (!trusted) {
    if (!rules.ports.has(port)) throw new Refusal(`port ${port}`)
    if (isIP(host) === 0) judgeName(host)
  }
  const addresses = isIP(host) !== 0 ? [host] : await (trusted ? resolveAnyName(host) : rules.resolve(host, signal))
  if (addresses.length === 0) throw new Refusal('the name has no address')
  // One private address among many is enough: which of them a connection would take is not ours to guess.
  const inner = trusted ? undefined : addresses.find((address) => !isPublicAddress(address))
  if (inner !== undefined) throw new Refusal(`address ${inner}`)
  return {
    protocol: url.protocol as Destination['protocol'],
    host,
    port,
    path: url.pathname + url.search,
    url,
    addresses: [...addresses].sort((a, b) => isIP(a) - isIP(b)),
    trusted,
  }
}

function parse(text: string, base?: URL): URL {
  if (text.length > URL_CHARS_MAX) throw new Refusal('the address is too long')
  // The URL parser drops tabs and line ends silently, and trims blanks: what it sees must be what was sent.
  if (/[\u0000-\u0020\u007f]/.test(text)) throw new Refusal('blanks or control characters')
  const url = URL.parse(text, base?.href)
  if (!url) throw new Refusal('not an address')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new Refusal(`scheme ${url.protocol}`)
  if (url.username || url.password) throw new Refusal('a user name in the address')
  if (url.hostname === '' || url.hostname.length > HOST_CHARS_MAX) throw new Refusal('the length of the host')
  return url
}

function judgeName(host: string): void {
  const labels = host.split('.')
  if (labels.length < 2 || labels.includes('')) throw new Refusal('not a full host name')
  if (PRIVATE_SUFFIXES.includes(labels.at(-1)!) || isMetadataHost(host)) throw new Refusal(`host ${host}`)
}

/** A name that the operator trusts may stand in the hosts file, like localhost. */
async function resolveAnyName(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** Asks the name servers directly: unlike getaddrinfo, slow ones cannot occupy the threads that files and vendors need. */
export async function resolvePublicName(host: string, signal: AbortSignal): Promise<readonly string[]> {
  const resolver = new Resolver({ timeout: 1_500, tries: 2 })
  const cancel = () => resolver.cancel()
  signal.addEventListener('abort', cancel)
  try {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
    return [v4, v6].flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}
