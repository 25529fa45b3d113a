// Addresses: under which callers reach the gateway, as configured or as it listens, and from which they come.
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { readIpRanges } from '../admission/api-key.ts'
import { plainAddress } from '../upstream/address.ts'

export function publicUrlOf(
  app: FastifyInstance,
  config: { PUBLIC_URL?: string | undefined; HOST: string; PORT: number },
): string {
  if (config.PUBLIC_URL) return config.PUBLIC_URL.replace(/(?<!\/)\/+$/, '')
  const address = app.server.address()
  const port = typeof address === 'object' && address ? address.port : config.PORT
  const everywhere = config.HOST === '0.0.0.0' || config.HOST === '::'
  const host = everywhere ? 'localhost' : config.HOST
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Stands in pages of the documentation for the address under which they are read; that is put in when a page is sent. */
export const ORIGIN = 'http://127.0.0.1:8080'

const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}

/** `ranges`: addresses, ranges, or the names of ranges that everybody knows. */
export function isTrusted(ranges: readonly string[]): (address: string) => boolean {
  const list = readIpRanges(ranges.flatMap((range) => NAMED[range] ?? [range]))
  return (given) => {
    const address = plainAddress(given)
    return isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
}

/** The last address on the way to us that no trusted proxy vouches for: what stands before it, anybody may have written. */
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
