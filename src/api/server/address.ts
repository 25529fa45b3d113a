// The gateway's own public address, as configured or as it listens, and the addresses of its callers.
import type { IncomingMessage } from 'node:http'
import { isIP, type Server } from 'node:net'
import { readIpRanges } from '../../admission/api-key.ts'
import { plainAddress } from '../../upstream/address.ts'

export function publicUrlOf(
  { server }: { readonly server: Server },
  config: { PUBLIC_URL?: string | undefined; HOST: string; PORT: number },
): string {
  if (config.PUBLIC_URL) return config.PUBLIC_URL.replace(/(?<!\/)\/+$/, '')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : config.PORT
  const everywhere = config.HOST === '0.0.0.0' || config.HOST === '::'
  const host = everywhere ? 'localhost' : config.HOST
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/**
 * The placeholder in documentation pages. When a page is sent, it is replaced by the address at which the reader
 * reached it.
 */
export const ORIGIN = 'http://127.0.0.1:8080'

const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** `ranges`: addresses, CIDR ranges, or the names of well-known ranges. */
export function isTrusted(ranges: readonly string[]): (address: string) => boolean {
  const list = readIpRanges(ranges.flatMap((range) => NAMED[range] ?? [range]))
  return (given) => {
    const address = plainAddress(given)
    return isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
}

/** The caller's address: the last hop that is not a trusted proxy. Earlier entries of X-Forwarded-For may be forged. */
export function addressReader(trustedProxies: readonly string[]): (request: IncomingMessage) => string {
  const trusted = isTrusted(trustedProxies)
  return ({ socket, headers }) => {
    let address = socket.remoteAddress ?? ''
    if (trustedProxies.length === 0) return address
    const forwarded = String(headers['x-forwarded-for'] ?? '').split(',')
    for (const before of forwarded
      .map((one) => one.trim())
      .filter(Boolean)
      .reverse()) {
      if (!trusted(address)) break
      address = before
    }
    return address
  }
}

/** Whether the caller used https, as a trusted proxy says. */
export function httpsReader(trustedProxies: readonly string[]): (request: IncomingMessage) => boolean {
  const trusted = isTrusted(trustedProxies)
  return ({ socket, headers }) =>
    trusted(socket.remoteAddress ?? '') && /(?:^|,)\s*https$/.test(String(headers['x-forwarded-proto'] ?? ''))
}
