// Addresses given by callers: which of them are public and may be connected to.
import { lookup, Resolver } from 'node:dns/promises'
import { isIP, isIPv4, isIPv6 } from 'node:net'

// A caller may name only global unicast addresses.

type Prefix = readonly [bytes: readonly number[], bits: number]

const DENIED_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10', // Carrier NAT; also one cloud's metadata at 100.100.100.200.
  '127.0.0.0/8',
  '168.63.129.16/32', // A public address at which one cloud runs its host agent.
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
].map(prefixOf)

/** Exceptions inside 2000::/3, the only part of IPv6 that is global unicast. */
const DENIED_V6 = [
  '2001::/23', // Protocol assignments, among them Teredo, which can embed any IPv4 address.
  '2001:db8::/32',
  '2002::/16', // 6to4 also embeds an IPv4 address, and its relays are gone.
  '3fff::/20',
].map(prefixOf)

const GLOBAL_V6 = prefixOf('2000::/3')
/** IPv4 addresses embedded in IPv6, which the network or the kernel unwraps. */
const WRAPPED_V4 = ['::ffff:0:0/96', '64:ff9b::/96'].map(prefixOf)

/** False for any address that is not known to be public, and for text that is no address. */
export function isPublicAddress(text: string): boolean {
  const bytes = bytesOf(text)
  if (!bytes) return false
  if (bytes.length === 4) return !DENIED_V4.some((prefix) => matches(bytes, prefix))
  if (WRAPPED_V4.some((prefix) => matches(bytes, prefix))) {
    const inner = bytes.slice(12)
    return !DENIED_V4.some((prefix) => matches(inner, prefix))
  }
  return matches(bytes, GLOBAL_V6) && !DENIED_V6.some((prefix) => matches(bytes, prefix))
}

/** Cloud metadata services, which hand out a machine's credentials. No vendor or caller address may lead there. */
const METADATA = [
  '169.254.0.0/16',
  '100.100.100.200/32',
  '168.63.129.16/32',
  'fd00:ec2::254/128',
  'fd20:ce::254/128',
].map(prefixOf)
const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
  'metadata.tencentyun.com',
  'metadata.azure.com',
  'metadata.azure.internal',
])

export function isMetadataAddress(text: string): boolean {
  const bytes = bytesOf(text)
  if (!bytes) return false
  const plain = bytes.length === 16 && WRAPPED_V4.some((prefix) => matches(bytes, prefix)) ? bytes.slice(12) : bytes
  return METADATA.some((prefix) => matches(plain, prefix))
}

/** `host` must come from the URL parser, which normalizes every spelling of an address. */
export function isMetadataHost(host: string): boolean {
  const plain = host.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  return isMetadataAddress(plain) || METADATA_NAMES.has(plain)
}

/** Whether two texts name the same address, `::ffff:1.2.3.4` and `1.2.3.4` included. */
export function sameAddress(left: string, right: string): boolean {
  const a = unwrapped(left)
  return a !== undefined && a === unwrapped(right)
}

/** The network of one customer: the whole IPv4 address, or the first 64 bits of an IPv6 address. */
export function networkOf(text: string): string {
  const bytes = bytesOf(text)
  return bytes?.length === 16 ? bytes.slice(0, 8).join() : text
}

function unwrapped(text: string): string | undefined {
  const bytes = bytesOf(text)
  return bytes && (matches(bytes, WRAPPED_V4[0]!) ? bytes.slice(12) : bytes).join()
}

function bytesOf(text: string): number[] | undefined {
  if (isIPv4(text)) return text.split('.').map(Number)
  // A zone id names one of our own interfaces.
  if (!isIPv6(text) || text.includes('%')) return undefined
  const [head = '', tail] = text.split('::')
  const left = groups(head)
  const right = tail === undefined ? [] : groups(tail)
  return [...left, ...new Array<number>(16 - left.length - right.length).fill(0), ...right]
}

function groups(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 255]
  })
}

function prefixOf(text: string): Prefix {
  const [address = '', bits] = text.split('/')
  return [bytesOf(address) ?? [], Number(bits)]
}

function matches(bytes: readonly number[], [prefix, bits]: Prefix): boolean {
  if (bytes.length !== prefix.length) return false
  for (let at = 0, left = bits; left > 0; at++, left -= 8) {
    const mask = left >= 8 ? 0xff : (0xff << (8 - left)) & 0xff
    if ((bytes[at]! & mask) !== (prefix[at]! & mask)) return false
  }
  return true
}

/** Turns `::ffff:10.0.0.1` into 10.0.0.1, so that it matches an IPv4 range. */
export function plainAddress(ip: string): string {
  return ip.startsWith('::ffff:') && isIP(ip.slice(7)) === 4 ? ip.slice(7) : ip
}

// Turns a caller's URL into a destination that may be connected to, or refuses it. The destination holds the checked IP
// addresses. The client connects to those and never asks the DNS again, so DNS rebinding between the check and the
// connection has no effect.

export interface Destination {
  readonly protocol: 'http:' | 'https:'
  /** Lower case, without a final dot, without brackets. */
  readonly host: string
  readonly port: number
  /** With the query, without the fragment. */
  readonly path: string
  /** The base for a relative redirect. */
  readonly url: URL
  /** The checked IP addresses, IPv4 first. */
  readonly addresses: readonly string[]
  /** The operator allowed this host and port, so its addresses are not checked. */
  readonly trusted: boolean
}

export interface DestinationRules {
  readonly ports: ReadonlySet<number>
  /** `host:port` pairs that the operator allows although they are not public. */
  readonly allow: ReadonlySet<string>
  /** Every IPv4 and IPv6 address of a name. */
  readonly resolve: (host: string, signal: AbortSignal) => Promise<readonly string[]>
}

/** Why an address was refused. Only for the log: it would tell the caller about our network. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
}

const URL_CHARS_MAX = 8_192
const HOST_CHARS_MAX = 253
const PRIVATE_SUFFIXES = ['local', 'internal', 'localhost', 'arpa', 'onion']

/** Checks a URL. `base` is the URL that redirected to it. */
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
  // One private address is enough to refuse the name, because the connection might use it.
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
  // The URL parser silently drops tabs and line ends and trims spaces, so a text with any of them is refused.
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

/** Whether an address names a place within a network by itself, before any name is looked up. */
export function isInternalUrl(text: string): boolean {
  try {
    const host = parse(text)
      .hostname.replace(/^\[|\]$/g, '')
      .replace(/\.$/, '')
    if (isIP(host) !== 0) return !isPublicAddress(host)
    judgeName(host)
    return false
  } catch (error) {
    if (error instanceof Refusal) return true
    throw error
  }
}

/** A name that the operator allows may be in the hosts file, like localhost. */
async function resolveAnyName(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/**
 * Asks the name servers directly: unlike getaddrinfo, slow ones cannot occupy the threads that files and vendors need.
 */
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
