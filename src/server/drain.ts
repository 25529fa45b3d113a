// Leaving without breaking anything: no new connections, every answer says that it is the connection's last, and only then
// are the connections that nobody uses closed.
import type { FastifyInstance } from 'fastify'
import { sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { stopAccepting } from '../upstream/internals.ts'

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
