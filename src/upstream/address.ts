// Which addresses on the internet a caller may point us at: global unicast, and nothing else.
import { isIP, isIPv4, isIPv6 } from 'node:net'

type Prefix = readonly [bytes: readonly number[], bits: number]

const DENIED_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10', // Carrier NAT; also one cloud's metadata at 100.100.100.200.
  '127.0.0.0/8',
  '168.63.129.16/32', // A public address that one cloud answers with its host agent.
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

/** Inside 2000::/3, the only part of IPv6 that is global unicast at all. */
const DENIED_V6 = [
  '2001::/23', // Protocol assignments, among them Teredo, which carries an IPv4 address of anyone's choice.
  '2001:db8::/32',
  '2002::/16', // 6to4 carries an IPv4 address as well, and its relays are gone.
  '3fff::/20',
].map(prefixOf)

const GLOBAL_V6 = prefixOf('2000::/3')
/** An IPv4 address in IPv6 clothes, which the network or the kernel takes off again. */
const WRAPPED_V4 = ['::ffff:0:0/96', '64:ff9b::/96'].map(prefixOf)

/** False for everything that is not known to be public, and for what is no address. */
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

/** Where clouds tell a machine its own credentials: neither a vendor's nor a caller's address is ever there. */
const METADATA = [
  '169.254.0.0/16',
  '100.100.100.200/32',
  '168.63.129.16/32',
  'fd00:ec2::254/128',
  'fd20:ce::254/128',
].map(prefixOf)
const METADATA_NAMES = new Set([
  ...['metadata', 'metadata.google.internal', 'metadata.goog', 'instance-data', 'instance-data.ec2.internal'],
  ...['metadata.tencentyun.com', 'metadata.azure.com', 'metadata.azure.internal'],
])

export function isMetadataAddress(text: string): boolean {
  const bytes = bytesOf(text)
  if (!bytes) return false
  const plain = bytes.length === 16 && WRAPPED_V4.some((prefix) => matches(bytes, prefix)) ? bytes.slice(12) : bytes
  return METADATA.some((prefix) => matches(plain, prefix))
}

/** A host as the URL parser writes it, which knows an address in every spelling. */
export function isMetadataHost(host: string): boolean {
  const plain = host.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  return isMetadataAddress(plain) || METADATA_NAMES.has(plain)
}

/** Whether two texts name the same address, `::ffff:1.2.3.4` and `1.2.3.4` included. */
export function sameAddress(left: string, right: string): boolean {
  const a = unwrapped(left)
  return a !== undefined && a === unwrapped(right)
}

/** Who holds an address: all of an IPv4 address, and of an IPv6 address the part that one customer gets. */
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
  // A zone names one of our own interfaces.
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

/** `::ffff:10.0.0.1` is 10.0.0.1 to whoever wrote the range. */
export function plainAddress(ip: string): string {
  return ip.startsWith('::ffff:') && isIP(ip.slice(7)) === 4 ? ip.slice(7) : ip
}
