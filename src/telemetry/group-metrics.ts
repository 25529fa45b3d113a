// The figures of several processes as one answer. Counts never go back: those of a process that has left, or that does not
// answer in time, are counted as it last told them, because a sum that falls reads like a restart of everything.
import { AggregatorRegistry, type MetricObjectWithValues, type MetricValue, type Registry } from 'prom-client'

/** What one process has to say: its metrics with their values. */
export type Figures = MetricObjectWithValues<MetricValue<string>>[]

interface GroupMetrics {
  /** The latest figures of one process. */
  hear(member: number, figures: Figures): void
  /** It has ended: its counts stay, the rest goes with it. */
  leave(member: number): void
  /** In Prometheus' format. Whoever has not `answered` is there with its counts only; `silent` were asked in vain. */
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

/** By each metric's own rule: most are added up; see metrics.ts. */
function sum(parts: readonly Figures[]): Registry {
  return AggregatorRegistry.aggregate([...parts])
}

function countsOf(figures: Figures): Figures {
  return figures.filter(({ type }) => String(type) === 'counter' || String(type) === 'histogram')
}

/** Each process adds itself as heard; whoever asked them adds those that were silent. */
export const PROCESSES = {
  name: 'tollgate_processes',
  help: 'Processes behind this answer, by whether they answered in time; the parent of several is one of them.',
  labelNames: ['state'],
}

function processesFigure(states: Readonly<Record<string, number>>): Figures[number] {
  const values = Object.entries(states).map(([state, value]) => ({ labels: { state }, value }))
  return { ...PROCESSES, type: 'gauge', aggregator: 'sum', values } as unknown as Figures[number]
}
