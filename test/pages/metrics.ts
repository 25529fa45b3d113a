// The figures of /metrics, from the registry that makes them.
import { registerVerification } from '../../src/extensions/verify/figures.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { code, page, table } from './markdown.ts'

export interface MetricFact {
  readonly name: string
  readonly type: string
  readonly labels: readonly string[]
  readonly help: string
}

/** Of our own; those of the runtime depend on the platform. */
export async function listMetrics(): Promise<MetricFact[]> {
  const zero = () => 0
  const { registry } = createMetrics({
    vendors: () => [],
    probes: () => [],
    running: zero,
    ledgerPending: zero,
    ledgerIsolated: zero,
    store: { read: async () => undefined },
    databaseWaiting: zero,
    databaseUp: async () => true,
    ledger: { trouble: () => undefined, waiting: { settlements: 0, oldestMs: 0 } },
    loopLagMs: zero,
    shed: zero,
    refusalsDropped: zero,
    contentsDropped: zero,
    openStreams: zero,
    changeFailures: () => new Map(),
    queue: async () => ({ active: 0, created: 0, failed: 0 }),
    holds: async () => 0,
  })
  registerVerification(registry, async () => ({ running: null, last: null, nextAt: null }))
  const facts = await registry.getMetricsAsJSON()
  return facts
    .filter(({ name }) => name.startsWith('tollgate_'))
    .map(({ name, type, help }) => {
      const metric = registry.getSingleMetric(name) as unknown as { labelNames?: string[] }
      return { name, type: String(type), help, labels: metric.labelNames ?? [] }
    })
}

/** Every series name that a query may use: a histogram has three. */
export async function seriesNames(): Promise<Set<string>> {
  const names = (await listMetrics()).flatMap(({ name, type }) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  )
  return new Set(names)
}

export async function metricsPage(): Promise<string> {
  const rows = (await listMetrics()).map(({ name, type, labels, help }) => [
    code(name),
    type,
    labels.map(code).join(', '),
    help,
  ])
  return page(
    'Metrics',
    '`GET /metrics` answers in the format of Prometheus. With `TOLLGATE_WORKERS` above 1 any worker answers for all workers and their parent. Figures are summed, except where the meaning says otherwise. Counters never fall, because the counts of ended processes are kept. A process that does not answer within two seconds is left out, except for its counters, which keep their last values; it shows as `silent` in `tollgate_processes`. With several gateways (containers, machines), scrape each and sum the figures, except figures "over all processes", which come from the database. The figures are gathered at most once a second. The endpoint needs no key: keep it off the public network, or set `TOLLGATE_METRICS_TOKEN` and configure the scraper to send it as `Authorization: Bearer <token>`.',
    table(['Metric', 'Type', 'Labels', 'Meaning'], rows),
    'Besides these there are the usual `process_` and `nodejs_` figures of the runtime; with several workers they are sums, the lags of the event loop are means (or what their names say), and the time of the start is not there. A dashboard and alert rules that use these names are in `deploy/`.',
  )
}
