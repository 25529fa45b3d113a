// The figures of /metrics, from the registry that makes them.
import { createMetrics } from '../../src/pipeline/metrics.ts'
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
    running: zero,
    ledgerPending: zero,
    databaseWaiting: zero,
    loopLagMs: zero,
    shed: zero,
    openStreams: zero,
    queue: async () => ({ active: 0, created: 0, failed: 0 }),
    holds: async () => 0,
  })
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
    '`GET /metrics` answers in the format of Prometheus, for the process that was asked. With several processes, scrape each and sum, except where the meaning says that a figure is of all processes. The endpoint needs no key: keep it off the public network.',
    table(['Metric', 'Type', 'Labels', 'Meaning'], rows),
    'Besides these there are the usual `process_` and `nodejs_` figures of the runtime. A dashboard and alert rules that use these names are in `deploy/`.',
  )
}
