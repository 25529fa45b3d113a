// How many connections one address may hold, so that a flood from one place leaves room for everybody else. What comes
// through a proxy comes from few addresses: the proxies that are trusted have no such bound, nor has this machine.
import type { Server, Socket } from 'node:net'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import { networkOf, plainAddress } from '../upstream/address.ts'
import { isTrusted } from './address.ts'

interface ConnectionRules {
  readonly perAddressMax: number
  /** Addresses, ranges, or the names that the web framework knows. */
  readonly exempt: readonly string[]
}

const SAY_EVERY_MS = 60_000

export function boundConnections(
  server: Server,
  rules: ConnectionRules,
  { log, world }: { log: Log; world: World },
): void {
  const isExempt = isTrusted(rules.exempt)
  const held = new Map<string, number>()
  let saidMs = Number.NEGATIVE_INFINITY
  server.prependListener('connection', (socket: Socket) => {
    const address = plainAddress(socket.remoteAddress ?? '')
    if (isExempt(address)) return
    const network = networkOf(address)
    const count = held.get(network) ?? 0
    if (count >= rules.perAddressMax) {
      socket.destroy()
      if (world.elapsedMs() - saidMs < SAY_EVERY_MS) return
      saidMs = world.elapsedMs()
      log.warn(
        { address, connections: count },
        'an address holds as many connections as it may (TOLLGATE_CONNECTIONS_PER_ADDRESS), and more are refused; if it is a proxy of yours, name it in TOLLGATE_TRUST_PROXY',
      )
      return
    }
    held.set(network, count + 1)
    socket.once('close', () => {
      const left = held.get(network)! - 1
      if (left > 0) held.set(network, left)
      else held.delete(network)
    })
  })
}
