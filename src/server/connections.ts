// Connections: how many one address may hold, and how all of them end.

import type { Server, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Log } from '../kernel/log.ts'
import { sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { networkOf, plainAddress } from '../upstream/address.ts'
import { stopAccepting } from '../upstream/internals.ts'
import { isTrusted } from './address.ts'

// How many connections one address may hold, so that a flood from one place leaves room for everybody else. What comes
// through a proxy comes from few addresses: the proxies that are trusted have no such bound, nor has this machine.

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

// Leaving without breaking anything: no new connections, every answer says that it is the connection's last, and only then
// are the connections that nobody uses closed.

interface Drain {
  /** Resolves when everything has ended, or the time is up. */
  close(options: { running: () => number; forMs: number }): Promise<void>
}

/**
 * How long an idle connection may still bring a last request, instead of being closed under its feet. It counts from the end
 * of the last call: one that began before the drain has promised its caller that the connection stays.
 */
const IDLE_MS = 1_500
const SETTLE_MS = 10_000
const LOOK_MS = 20

export function createDrain(app: FastifyInstance, world: World): Drain {
  const pause = () => sleep(world, LOOK_MS)
  return {
    async close({ running, forMs }) {
      const { server } = app
      // Before whatever answers: the connection ends with the answer.
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
        // Whoever was cut off still has a charge to settle.
        const cutMs = world.elapsedMs()
        while (running() > 0 && world.elapsedMs() - cutMs < SETTLE_MS) await pause()
      }
      await app.close()
    },
  }
}
