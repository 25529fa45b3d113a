// Assembles the server: the listener, connection limits, health probes and metrics, and the drain.

import { Fault } from '../../kernel/fault.ts'
import type { Log } from '../../kernel/log.ts'
import { bearerCheck } from '../../kernel/secret.ts'
import type { World } from '../../kernel/world.ts'
import type { Incident } from '../../telemetry/incidents.ts'
import type { Metrics } from '../../telemetry/metrics.ts'
import { boundConnections, createDrain } from './connections.ts'
import { createServer, type WebServer } from './server.ts'
import { json } from './web.ts'

export function openServer(parts: {
  readonly config: {
    readonly TOLLGATE_STRICT_ERRORS: boolean
    readonly TOLLGATE_TRUST_PROXY: string
    readonly TOLLGATE_BODY_BYTES_PER_SECOND_MIN: number
    readonly TOLLGATE_CONNECTIONS_PER_ADDRESS: number
    readonly TOLLGATE_METRICS_TOKEN?: string | undefined
  }
  readonly world: World
  readonly log: Log
  readonly incidents: () => readonly Incident[]
  readonly metrics: Metrics
  /** The body of /metrics when this process is one of several. */
  readonly groupMetrics?: (() => Promise<string>) | undefined
  /** Whether what calls need answers: the database, or a ledger. */
  readonly answers: () => Promise<boolean>
  readonly leaving: () => boolean
}) {
  const { config, world, log, answers, incidents, metrics, groupMetrics, leaving } = parts
  const trustedProxies = config.TOLLGATE_TRUST_PROXY.split(/[\s,]+/).filter(Boolean)
  const app = createServer({
    world,
    log,
    trustedProxies,
    strictErrors: config.TOLLGATE_STRICT_ERRORS,
    bodyBytesPerSecondMin: config.TOLLGATE_BODY_BYTES_PER_SECOND_MIN,
  })
  boundConnections(
    app.server,
    { perAddressMax: config.TOLLGATE_CONNECTIONS_PER_ADDRESS, exempt: ['loopback', ...trustedProxies] },
    { log, world },
  )
  const drain = createDrain(app, world)
  mountProbes(app, {
    world,
    leaving,
    incidents,
    databaseAnswers: answers,
    figures: { contentType: metrics.registry.contentType, read: groupMetrics ?? (() => metrics.registry.metrics()) },
    metricsToken: config.TOLLGATE_METRICS_TOKEN,
  })
  return { app, drain }
}

// Health probes and metrics for machines: liveness, readiness, /metrics. They are open to anyone, so the database is
// queried at most once a second, however many requests come.

const FRESH_MS = 1_000
/** Base URLs that clients are configured with. */
const CLIENT_BASES = ['/v1', '/alpha', '/alpha/v1', '/beta', '/beta/v1']

function mountProbes(
  app: WebServer,
  deps: {
    readonly world: World
    /** A process that is shutting down is not ready, whatever the database says. */
    readonly leaving: () => boolean
    /** So is one that cannot do its work. */
    readonly incidents: () => readonly Incident[]
    readonly databaseAnswers: () => Promise<boolean>
    readonly figures: { readonly contentType: string; read(): Promise<string> }
    /** Undefined: /metrics is open to anyone who can reach it. */
    readonly metricsToken: string | undefined
  },
): void {
  const databaseAnswers = oncePerSecond(deps.world, deps.databaseAnswers)
  const figures = oncePerSecond(deps.world, deps.figures.read)
  const isScraper = deps.metricsToken === undefined ? () => true : bearerCheck(deps.metricsToken)

  app.get('/healthz', () => json({ ok: true }))
  // Coding agents probe their base URL before the first call.
  for (const base of CLIENT_BASES) app.get(base, () => json({ ok: true, docs: '/docs' }))
  app.get('/readyz', async () => {
    const incidents = deps.incidents().flatMap(({ serves, title }) => (serves ? [] : [title]))
    const reasons = deps.leaving() ? ['The process is shutting down'] : incidents
    if (reasons.length === 0 && !(await databaseAnswers())) reasons.push('The database does not answer')
    const ready = reasons.length === 0
    return { ...json(ready ? { ready } : { ready, reasons }), status: ready ? 200 : 503 }
  })
  app.get('/metrics', async ({ headers: { authorization } }) => {
    if (!isScraper(authorization))
      throw new Fault(authorization === undefined ? 'key_missing' : 'key_unknown', {
        message: 'Send the value of TOLLGATE_METRICS_TOKEN as "Authorization: Bearer <token>".',
      })
    return { headers: { 'content-type': deps.figures.contentType }, body: await figures() }
  })
}

/** Requests within a second of the last check, or while it runs, get its result. A failure is not reused. */
function oncePerSecond<T>(world: World, read: () => Promise<T>): () => Promise<T> {
  let last: { readonly answer: Promise<T>; readonly fromMs: number; done: boolean } | undefined
  return () => {
    if (last && (!last.done || world.elapsedMs() - last.fromMs < FRESH_MS)) return last.answer
    const asked = { answer: read(), fromMs: world.elapsedMs(), done: false }
    last = asked
    asked.answer.then(
      () => {
        asked.done = true
      },
      () => {
        last = undefined
      },
    )
    return asked.answer
  }
}
