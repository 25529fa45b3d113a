// Metrics that are counted with every call: plain numbers by label, formatted for Prometheus only at a scrape. The
// client library's own counting cost more than the routing of a call.
import { Counter, type Histogram, type Registry } from 'prom-client'

type Labels = Readonly<Record<string, string>>

interface TallyOptions {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
  readonly registry: Registry
}

interface Counted {
  readonly labels: Labels
  value: number
}

/** A counter of several series, each named by its labels. */
export class CounterTally {
  readonly #series = new Map<string, Counted>()

  constructor({ name, help, labelNames, registry }: TallyOptions) {
    const series = this.#series
    new Counter({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset()
        for (const { labels, value } of series.values()) this.inc(labels, value)
      },
    })
  }

  /** `key` identifies the labels, which are built only once. */
  add(key: string, labels: (key: string) => Labels, value: number): void {
    const found = this.#series.get(key)
    if (found) found.value += value
    else this.#series.set(key, { labels: labels(key), value })
  }

  /** One series, for callers that keep it instead of looking it up each time. */
  series(labels: Labels): Counted {
    const made = { labels, value: 0 }
    this.#series.set(Object.values(labels).join(' '), made)
    return made
  }
}

class Distribution {
  readonly labels: Labels
  readonly counts: number[]
  readonly #bounds: readonly number[]
  sum = 0

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels
    this.#bounds = bounds
    this.counts = new Array<number>(bounds.length + 1).fill(0)
  }

  observe(value: number): void {
    const bounds = this.#bounds
    let at = 0
    while (at < bounds.length && value > bounds[at]!) at++
    this.counts[at]! += 1
    this.sum += value
  }
}

/** A histogram of several series, each named by its labels. */
export class HistogramTally {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
  readonly type = 'histogram'
  readonly aggregator = 'sum'
  readonly #bounds: readonly number[]
  readonly #series = new Map<string, Distribution>()

  constructor({ name, help, labelNames, registry, bounds }: TallyOptions & { readonly bounds: readonly number[] }) {
    this.name = name
    this.help = help
    this.labelNames = labelNames
    this.#bounds = bounds
    // The registry only reads values from its metrics, which this class provides.
    registry.registerMetric(this as unknown as Histogram)
  }

  observe(key: string, labels: (key: string) => Labels, value: number): void {
    const found = this.#series.get(key) ?? this.#open(key, labels(key))
    found.observe(value)
  }

  /** One series, for callers that keep it instead of looking it up each time. */
  series(labels: Labels): Distribution {
    return this.#open(Object.values(labels).join(' '), labels)
  }

  #open(key: string, labels: Labels): Distribution {
    const made = new Distribution(labels, this.#bounds)
    this.#series.set(key, made)
    return made
  }

  async get() {
    const values: { metricName: string; labels: Record<string, string | number>; value: number }[] = []
    for (const { labels, counts, sum } of this.#series.values()) {
      let count = 0
      counts.forEach((inside, at) => {
        count += inside
        const le = this.#bounds[at] ?? '+Inf'
        values.push({ metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count })
      })
      values.push({ metricName: `${this.name}_sum`, labels, value: sum })
      values.push({ metricName: `${this.name}_count`, labels, value: count })
    }
    return { name: this.name, help: this.help, type: this.type, values, aggregator: this.aggregator }
  }
}
