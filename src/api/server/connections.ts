// Limits the connections per address, and drains all connections at shutdown.

import type { Server, Socket } from 'node:net'
import type { Log } from '../../kernel/log.ts'
import { sleep } from '../../kernel/timers.ts'
import type { World } from '../../kernel/world.ts'
import { networkOf, plainAddress } from '../../upstream/address.ts'
import { stopAccepting } from '../../upstream/internals.ts'
import { isTrusted } from './address.ts'
import type { WebServer } from './server.ts'

// The limit of connections per address: a flood from one address leaves room for others. Callers behind a proxy share
// few addresses, so trusted proxies have no limit, and neither has this machine.

const SAY_EVERY_MS = 60_000

export function boundConnections(
  server: Server,
  rules: {
    readonly perAddressMax: number
    /** Addresses, CIDR ranges, or the names of well-known ranges. */
    readonly exempt: readonly string[]
  },
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
        'an address has the maximum of connections (TOLLGATE_CONNECTIONS_PER_ADDRESS), so new ones are closed; if it is your proxy, add it to TOLLGATE_TRUST_PROXY',
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

// Graceful shutdown: no new connections are accepted, every answer announces the end of its connection, and only then
// are idle connections closed.

interface Drain {
  /** Resolves when all connections have ended, or the time is up. */
  close(options: { running: () => number; forMs: number }): Promise<void>
}

/**
 * How long an idle connection may still bring a last request before it is closed. It counts from the end of the last
 * call: the answer of a call that began before the drain has told its caller that the connection stays open.
 */
const IDLE_MS = 1_500
const SETTLE_MS = 10_000
const LOOK_MS = 20

export function createDrain(app: WebServer, world: World): Drain {
  const pause = () => sleep(world, LOOK_MS)
  return {
    async close({ running, forMs }) {
      const { server } = app
      app.upgraded.drain()
      // Runs before the handler: the connection closes with this answer.
      server.prependListener('request', (_request, response) => {
        response.shouldKeepAlive = false
      })
      if (server.listening) {
        stopAccepting(server)
        const startedMs = world.elapsedMs()
        let quietFromMs = startedMs
        const open = () =>
          new Promise<number>((resolve) => server.getConnections((_error, count) => resolve(count ?? 0)))
        for (;;) {
          const nowMs = world.elapsedMs()
          if (running() > 0) quietFromMs = nowMs
          if (nowMs - startedMs > forMs || (await open()) === 0) break
          if (nowMs - quietFromMs > Math.min(IDLE_MS, forMs)) server.closeIdleConnections()
          await pause()
        }
        server.closeAllConnections()
        app.upgraded.destroy()
        // Calls that were cut off still have to be settled.
        const cutMs = world.elapsedMs()
        while (running() > 0 && world.elapsedMs() - cutMs < SETTLE_MS) await pause()
      }
      await app.close()
    },
  }
}
