// Merges the metrics of several processes. Counters never decrease: for a process that has exited or does not answer in time, its last known
// counters are used, because a falling sum looks like a restart of everything.
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client'

/** The metrics of one process with their values. */
export type Figures = MetricObjectWithValues<MetricValue<string>>[]

interface GroupMetrics {
  /** Stores the latest metrics of one process. */
  hear(member: number, figures: Figures): void
  /** The process has exited: its counters and histograms stay, its gauges go. */
  leave(member: number): void
  /** The Prometheus text. Processes not in `answered` contribute only counters and histograms; `silent` is the number that did not answer. */
  text(answered: ReadonlySet<number>, silent: number): Promise<string>
}

export function createGroupMetrics(): GroupMetrics {
  const latest = new Map<number, Figures>()
  let past: Figures = []
  return {
    hear: (member, figures) => void latest.set(member, figures),
    leave(member) {
      past = sum([past, countsOf(latest.get(member) ?? [])]).getMetricsAsArray() as unknown as Figures
      latest.delete(member)
    },
    text(answered, silent) {
      const parts = [...latest].map(([member, figures]) => (answered.has(member) ? figures : countsOf(figures)))
      return sum([...parts, past, [processesFigure({ silent })]]).metrics()
    },
  }
}

/** Merges by each metric's own aggregator, mostly by adding; see metrics.ts. */
function sum(parts: readonly Figures[]): Registry {
  return AggregatorRegistry.aggregate([...parts])
}

function countsOf(figures: Figures): Figures {
  return figures.filter(({ type }) => String(type) === 'counter' || String(type) === 'histogram')
}

/** Each process reports itself as answering; the parent adds the silent ones. */
export const PROCESSES = {
  name: 'tollgate_processes',
  help: 'Processes behind this answer, by whether they answered in time; the parent of several is one of them.',
  labelNames: ['state'],
}

function processesFigure(states: Readonly<Record<string, number>>): Figures[number] {
  const values = Object.entries(states).map(([state, value]) => ({ labels: { state }, value }))
  return { ...PROCESSES, type: 'gauge', aggregator: 'sum', values } as unknown as Figures[number]
}
