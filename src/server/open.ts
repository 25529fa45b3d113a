// Assembles the server: the listener, connection limits, health probes and metrics, and the drain.
import { type Database, SHORT_MS } from '../database/database.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { ByteBudget } from '../upstream/budget.ts'
import { boundConnections, createDrain } from './connections.ts'
import { mountProbes } from './probes.ts'
import { createServer } from './server.ts'
import { createSockets } from './sockets.ts'

interface ServerParts {
  readonly config: {
    readonly TOLLGATE_STRICT_ERRORS: boolean
    readonly TOLLGATE_TRUST_PROXY: string
    readonly TOLLGATE_BODY_BYTES_PER_SECOND_MIN: number
    readonly TOLLGATE_CONNECTIONS_PER_ADDRESS: number
    readonly TOLLGATE_SOCKETS_MAX: number
    readonly TOLLGATE_METRICS_TOKEN?: string | undefined
  }
  readonly world: World
  readonly log: Log
  readonly database: Database
  readonly metrics: Metrics
  readonly budget: ByteBudget
  /** The body of /metrics when this process is one of several. */
  readonly groupMetrics?: (() => Promise<string>) | undefined
  readonly leaving: () => boolean
}

export function openServer({ config, world, log, database, metrics, groupMetrics, budget, leaving }: ServerParts) {
  const trustedProxies = config.TOLLGATE_TRUST_PROXY.split(/[\s,]+/).filter(Boolean)
  const app = createServer({
    ...{ world, log, trustedProxies, strictErrors: config.TOLLGATE_STRICT_ERRORS },
    bodyBytesPerSecondMin: config.TOLLGATE_BODY_BYTES_PER_SECOND_MIN,
  })
  boundConnections(
    app.server,
    { perAddressMax: config.TOLLGATE_CONNECTIONS_PER_ADDRESS, exempt: ['loopback', ...trustedProxies] },
    { log, world },
  )
  const sockets = createSockets({ world, budget, socketsMax: config.TOLLGATE_SOCKETS_MAX })
  const drain = createDrain(app, world, sockets)
  mountProbes(app, {
    world,
    leaving,
    databaseAnswers: () =>
      database.query({ text: 'select 1', withinMs: SHORT_MS }).then(
        () => true,
        () => false,
      ),
    figures: {
      contentType: metrics.registry.contentType,
      read: groupMetrics ?? (() => metrics.registry.metrics()),
    },
    metricsToken: config.TOLLGATE_METRICS_TOKEN,
  })
  return { app, drain, sockets }
}
