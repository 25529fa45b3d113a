// The metrics of this process in Prometheus' format. For several processes on one port, group-metrics.ts merges them by
// adding, unless a metric's `aggregator` says otherwise.
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client'
import type { StoreHealth, StoreWatch } from '../database/health.ts'
import type { Credits } from '../kernel/credits.ts'
import type { Ledger, LedgerMeters } from '../ledger/ledger.ts'
import type { Unit } from '../meter/kind.ts'
import type { LiveCall, Meters } from './monitor.ts'
import { CounterTally, HistogramTally } from './tally.ts'

export interface Metrics extends Meters, LedgerMeters {
  readonly registry: Registry
  readonly delivery: (kind: string, outcome: string) => void
  /** A statement to the database has ended. */
  readonly statement: (kind: string, seconds: number) => void
  /** A vendor has answered, or failed to. */
  readonly vendorAttempt: (attempt: VendorAttempt) => void
  /** A probe of a vendor has ended. */
  readonly probe: (vendor: string, state: string) => void
  /** A copy of a call; `cost` if one is known. */
  readonly shadow: (product: string, outcome: ShadowOutcome, cost?: Credits) => void
}

interface VendorAttempt {
  readonly vendor: string
  readonly failed: boolean
  /** To the first byte; undefined if none came. */
  readonly latencyMs?: number | undefined
}

/** `answered`: to its end. `dropped`: not sent, because there was no room or the other model cannot take it. */
type ShadowOutcome = 'answered' | 'failed' | 'dropped'

interface MetricSources {
  readonly vendors: () => ReadonlyArray<{ name: string; breaker: string; inFlight: number }>
  readonly probes: () => ReadonlyArray<{ vendor: string; state: string }>
  readonly running: () => number
  readonly ledgerPending: () => number
  readonly ledgerIsolated: () => number
  readonly databaseWaiting: () => number
  readonly databaseUp: () => Promise<boolean>
  readonly store: Pick<StoreWatch, 'read'>
  readonly ledger: Pick<Ledger, 'trouble' | 'waiting'>
  readonly loopLagMs: () => number
  readonly shed: () => number
  readonly refusalsDropped: () => number
  readonly contentsDropped: () => number
  readonly openStreams: () => number
  readonly changeFailures: () => ReadonlyMap<string, number>
  readonly queue: () => Promise<{ active: number; created: number; failed: number }>
  readonly holds: () => Promise<number>
}

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const BREAKERS: Record<string, number> = { closed: 0, 'half-open': 1, open: 2 }
const PROBE_VALUES: Record<string, number> = { answering: 0, failing: 1, rejected: 2 }
const MICRO = 1_000_000
/** The library's default of 10 ms wakes an idle process a hundred times a second, which was most of its CPU time. */
const LAG_EVERY_MS = 500
const NO_LABELS = () => ({})

export function createMetrics(sources: MetricSources): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LAG_EVERY_MS })
  const calls = new CounterTally({
    name: 'tollgate_calls_total',
    help: 'Calls on the paid path, by endpoint, status class and outcome.',
    labelNames: ['endpoint', 'status', 'outcome'],
    registry,
  })
  const duration = new HistogramTally({
    name: 'tollgate_call_seconds',
    help: 'From arrival to the last byte.',
    labelNames: ['endpoint', 'stream'],
    bounds: SECONDS,
    registry,
  })
  const stages = new HistogramTally({
    name: 'tollgate_stage_seconds',
    help: 'Time spent in a stage of the path.',
    labelNames: ['stage'],
    bounds: SECONDS,
    registry,
  })
  const units = new CounterTally({
    name: 'tollgate_units_total',
    help: 'Metered quantities, by unit.',
    labelNames: ['unit'],
    registry,
  })
  const credits = new CounterTally({
    name: 'tollgate_credits_total',
    help: 'Credits held, and of these settled, released (given back) and expired (given back after a crash).',
    labelNames: ['kind'],
    registry,
  })
  const impossible = new CounterTally({
    name: 'tollgate_usage_impossible_total',
    help: 'Impossible reports of usage, charged up to the hold, by product.',
    labelNames: ['product'],
    registry,
  })
  const overruns = new CounterTally({
    name: 'tollgate_charges_above_hold_total',
    help: 'Calls that cost more than was held for them, by vendor.',
    labelNames: ['vendor'],
    registry,
  })
  const batches = new HistogramTally({
    name: 'tollgate_ledger_batch_size',
    help: 'Operations per flush of the ledger.',
    labelNames: [],
    bounds: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    registry,
  })
  registerReadings(registry, sources)
  registerStoreReadings(registry, sources)
  const endpoints = new Map<string, EndpointFigures>()

  return {
    registry,
    batch: (size) => batches.observe('', NO_LABELS, size),
    moved: (kind, amount) => credits.add(kind, kindLabel, Number(amount) / MICRO),
    overrun: (vendor) => overruns.add(vendor, vendorLabel, 1),
    ...createMeters(registry, sources),
    impossible: (product) => impossible.add(product, productLabel, 1),
    stage: (name, seconds) => stages.observe(name, stageLabel, seconds),
    call(call, { usage }) {
      const { endpoint } = call
      let own = endpoints.get(endpoint)
      if (!own) {
        own = new EndpointFigures(endpoint, calls, duration)
        endpoints.set(endpoint, own)
      }
      own.add(call)
      for (const unit in usage) {
        const quantity = usage[unit as Unit] // A usage is by unit.
        if (quantity) units.add(unit, unitLabel, quantity)
      }
    },
  }
}

function createDeliveryMeter(registry: Registry): Metrics['delivery'] {
  const deliveries = new CounterTally({
    name: 'tollgate_deliveries_total',
    help: 'Attempts to deliver webhooks, messages and mails, by kind and by outcome: delivered, failed (another attempt follows), given_up.',
    labelNames: ['kind', 'outcome'],
    registry,
  })
  return (kind, outcome) => deliveries.add(`${kind} ${outcome}`, () => ({ kind, outcome }), 1)
}

function createMeters(registry: Registry, sources: MetricSources) {
  return {
    delivery: createDeliveryMeter(registry),
    statement: createStatementMeter(registry),
    shadow: createShadowMeter(registry),
    vendorAttempt: createVendorMeter(registry),
    probe: createProbeMeter(registry, sources),
  }
}

function createStatementMeter(registry: Registry): Metrics['statement'] {
  const statements = new HistogramTally({
    name: 'tollgate_database_statement_seconds',
    help: 'Time of statements to the database with their way there and back: those of the ledger each by its name, and others.',
    labelNames: ['kind'],
    bounds: SECONDS,
    registry,
  })
  return (kind, seconds) => statements.observe(kind, kindLabel, seconds)
}

function createVendorMeter(registry: Registry): Metrics['vendorAttempt'] {
  const attempts = new CounterTally({
    name: 'tollgate_vendor_attempts_total',
    help: 'Attempts at vendors, by vendor and outcome: answered, or failed (by the vendor’s fault).',
    labelNames: ['vendor', 'outcome'],
    registry,
  })
  const firstByte = new HistogramTally({
    name: 'tollgate_vendor_first_byte_seconds',
    help: 'From sending a request to a vendor to the first byte of its answer.',
    labelNames: ['vendor'],
    bounds: SECONDS,
    registry,
  })
  return ({ vendor, failed, latencyMs }) => {
    const outcome = failed ? 'failed' : 'answered'
    attempts.add(`${vendor} ${outcome}`, () => ({ vendor, outcome }), 1)
    if (latencyMs !== undefined) firstByte.observe(vendor, () => ({ vendor }), latencyMs / 1000)
  }
}

function createProbeMeter(registry: Registry, { probes: read }: MetricSources): Metrics['probe'] {
  new Gauge({
    name: 'tollgate_vendor_probe',
    help: 'Result of the probes of a vendor: 0 it answers, 1 it fails, 2 it rejects the credential. Absent: it is not probed.',
    labelNames: ['vendor'],
    registers: [registry],
    aggregator: 'max',
    collect() {
      this.reset()
      for (const { vendor, state } of read()) {
        const value = PROBE_VALUES[state]
        if (value !== undefined) this.set({ vendor }, value)
      }
    },
  })
  const probes = new CounterTally({
    name: 'tollgate_vendor_probes_total',
    help: 'Free probes of vendors by this process, by vendor and what they found: answering, failing, rejected (the credential), unsupported.',
    labelNames: ['vendor', 'state'],
    registry,
  })
  return (vendor, state) => probes.add(`${vendor} ${state}`, () => ({ vendor, state }), 1)
}

function createShadowMeter(registry: Registry): Metrics['shadow'] {
  const copies = new CounterTally({
    name: 'tollgate_shadow_calls_total',
    help: 'Shadow copies of calls, by model and outcome: answered, failed, dropped (not sent).',
    labelNames: ['product', 'outcome'],
    registry,
  })
  const costs = new CounterTally({
    name: 'tollgate_shadow_cost_credits_total',
    help: 'Cost of shadow copies for the operator, at the cost of their routes.',
    labelNames: ['product'],
    registry,
  })
  return (product, outcome, cost) => {
    copies.add(`${product} ${outcome}`, () => ({ product, outcome }), 1)
    if (cost !== undefined) costs.add(product, productLabel, Number(cost) / MICRO)
  }
}

const vendorLabel = (vendor: string) => ({ vendor })
const kindLabel = (kind: string) => ({ kind })
const productLabel = (product: string) => ({ product })
const stageLabel = (stage: string) => ({ stage })
const unitLabel = (unit: string) => ({ unit })

/** The series of one endpoint, found without building their labels for every call. */
class EndpointFigures {
  readonly #endpoint: string
  readonly #calls: CounterTally
  readonly #duration: HistogramTally
  /** By outcome, then by the first digit of the status. */
  readonly #counted = new Map<string, ReturnType<CounterTally['series']>[]>()
  readonly #timed = new Map<boolean, ReturnType<HistogramTally['series']>>()

  constructor(endpoint: string, calls: CounterTally, duration: HistogramTally) {
    this.#endpoint = endpoint
    this.#calls = calls
    this.#duration = duration
  }

  add({ status, outcome: ending, stream, durationMs }: LiveCall): void {
    const [digit, outcome] = [Math.floor((status ?? 0) / 100), ending ?? '']
    let byDigit = this.#counted.get(outcome)
    if (!byDigit) {
      byDigit = []
      this.#counted.set(outcome, byDigit)
    }
    byDigit[digit] ??= this.#calls.series({ endpoint: this.#endpoint, status: `${digit}xx`, outcome })
    byDigit[digit].value += 1
    let timed = this.#timed.get(stream)
    if (!timed) {
      timed = this.#duration.series({ endpoint: this.#endpoint, stream: String(stream) })
      this.#timed.set(stream, timed)
    }
    timed.observe(durationMs / 1000)
  }
}

/** Gauges that are read at each scrape. */
function registerReadings(registry: Registry, sources: MetricSources): void {
  const registers = [registry]
  const gauge = (name: string, help: string, read: () => number, aggregator: 'sum' | 'max' = 'sum') =>
    new Gauge({
      name,
      help,
      registers,
      aggregator,
      collect() {
        this.set(read())
      },
    })
  gauge('tollgate_calls_running', 'Calls on the path now.', sources.running)
  gauge('tollgate_streams_open', 'Streams to callers now.', sources.openStreams)
  gauge(
    'tollgate_ledger_pending',
    'Ledger operations that are not decided, without those of locked accounts.',
    sources.ledgerPending,
  )
  gauge(
    'tollgate_ledger_isolated',
    'Ledger operations of accounts that another transaction has locked.',
    sources.ledgerIsolated,
  )
  gauge('tollgate_database_waiting', 'Queries that wait for a connection.', sources.databaseWaiting)
  gauge('tollgate_settlements_waiting', 'Settlements that are decided and not posted yet.', () => {
    return sources.ledger.waiting.settlements
  })
  gauge(
    'tollgate_settlement_oldest_seconds',
    'How long the oldest of them has waited; with several processes, the largest value.',
    () => sources.ledger.waiting.oldestMs / 1000,
    'max',
  )
  gauge(
    'tollgate_ledger_failing_seconds',
    'For how long the database has accepted no write of the ledger; 0 if the last one succeeded. With several processes, the largest value.',
    () => (sources.ledger.trouble()?.forMs ?? 0) / 1000,
    'max',
  )
  gauge(
    'tollgate_event_loop_lag_seconds',
    'How late timers run; with several processes, the largest value.',
    () => sources.loopLagMs() / 1000,
    'max',
  )
  const counter = (name: string, help: string, read: () => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  counter('tollgate_shed_total', 'Calls rejected because of overload.', sources.shed)
  const dropped =
    'Rejected calls that are missing in the usage list, because the database was not available or too many came at once.'
  counter('tollgate_refusals_dropped_total', dropped, sources.refusalsDropped)
  const unkept = 'Calls whose content was not logged although content logging is on, because the buffer was full.'
  counter('tollgate_contents_dropped_total', unkept, sources.contentsDropped)
  new Counter({
    name: 'tollgate_changes_failed_total',
    help: 'Attempts to read a change of another process that failed, by what changed. After a minute the process is not ready.',
    labelNames: ['topic'],
    registers,
    collect() {
      this.reset()
      for (const [topic, count] of sources.changeFailures()) this.inc({ topic }, count)
    },
  })
  new Gauge({
    ...PROCESSES,
    registers,
    collect() {
      this.set({ state: 'heard' }, 1)
      this.set({ state: 'silent' }, 0)
    },
  })
  new Gauge({
    name: 'tollgate_vendor_breaker',
    help: '0 closed, 1 half-open, 2 open; with several processes, the highest value.',
    labelNames: ['vendor'],
    registers,
    aggregator: 'max',
    collect() {
      for (const { name, breaker } of sources.vendors()) this.set({ vendor: name }, BREAKERS[breaker] ?? 0)
    },
  })
  new Gauge({
    name: 'tollgate_vendor_in_flight',
    help: 'Calls at a vendor now.',
    labelNames: ['vendor'],
    registers,
    collect() {
      for (const { name, inFlight } of sources.vendors()) this.set({ vendor: name }, inFlight)
    },
  })
}

const STORE_GAUGES: ReadonlyArray<readonly [name: string, help: string, value: (of: StoreHealth) => number | null]> = [
  ['tollgate_database_size_bytes', 'The size of the database.', (of) => of.bytes],
  ['tollgate_database_standbys', 'Standbys that follow the primary.', (of) => of.standbys],
  [
    'tollgate_database_standby_missing',
    '1 if commits wait for a synchronous standby that is not there.',
    ({ isStandbyMissing }) => (isStandbyMissing === null ? null : Number(isStandbyMissing)),
  ],
  [
    'tollgate_database_standby_lag_bytes',
    'How much of what was written the slowest standby has not applied.',
    (of) => of.standbyLagBytes,
  ],
  [
    'tollgate_usage_unpartitioned_rows',
    'Calls in no partition of a month, counted up to a thousand.',
    (of) => of.unpartitionedRows,
  ],
  [
    'tollgate_export_lag_seconds',
    'For how long an export that fails has sent nothing; the slowest. 0: none fails.',
    (of) => of.exportLagSeconds ?? 0,
  ],
  ['tollgate_backup_age_seconds', 'Time since the last `tollgate backup`.', (of) => of.backupAgeSeconds],
  [
    'tollgate_ledger_archive_failing',
    '1 if a month of the ledger cannot be archived, or its archive is not what was written.',
    (of) => (of.archiveFault === null ? 0 : 1),
  ],
]

/** Gauges read from the database. They are the same in every process, so they are not added up. */
function registerStoreReadings(registry: Registry, sources: MetricSources): void {
  const registers = [registry]
  new Gauge({
    name: 'tollgate_database_up',
    help: '1 if the database answers a query within three seconds, else 0; with several processes, the lowest value.',
    registers,
    aggregator: 'min',
    async collect() {
      this.set(Number(await sources.databaseUp()))
    },
  })
  for (const [name, help, value] of STORE_GAUGES)
    new Gauge({
      name,
      help,
      registers,
      aggregator: 'first' as const,
      async collect() {
        const health = await sources.store.read()
        this.set((health && value(health)) ?? Number.NaN)
      },
    })
  new Gauge({
    name: 'tollgate_holds_pending',
    help: 'Holds that have not resolved, over all processes.',
    registers,
    aggregator: 'first',
    async collect() {
      this.set(await sources.holds().catch(() => Number.NaN))
    },
  })
  new Gauge({
    name: 'tollgate_queue_jobs',
    help: 'Steps of jobs in the queue, by state, over all processes.',
    labelNames: ['state'],
    registers,
    aggregator: 'first',
    async collect() {
      const counts = await sources.queue().catch(() => undefined)
      for (const state of ['active', 'created', 'failed'] as const) if (counts) this.set({ state }, counts[state])
    },
  })
}

// Merges the metrics of several processes. Counters never decrease: for a process that has exited or does not answer in
// time, its last known counters are used, because a falling sum looks like a restart of everything.

/** The metrics of one process with their values. */
export type Figures = MetricObjectWithValues<MetricValue<string>>[]

export function createGroupMetrics() {
  const latest = new Map<number, Figures>()
  let past: Figures = []
  return {
    /** Stores the latest metrics of one process. */
    hear: (member: number, figures: Figures): void => void latest.set(member, figures),
    /** The process has exited: its counters and histograms stay, its gauges go. */
    leave(member: number): void {
      past = sum([past, countsOf(latest.get(member) ?? [])]).getMetricsAsArray() as unknown as Figures
      latest.delete(member)
    },
    /**
     * The Prometheus text. Processes not in `answered` contribute only counters and histograms; `silent` is the number
     * that did not answer.
     */
    text(answered: ReadonlySet<number>, silent: number): Promise<string> {
      const parts = [...latest].map(([member, figures]) => (answered.has(member) ? figures : countsOf(figures)))
      return sum([...parts, past, [processesFigure({ silent })]]).metrics()
    },
  }
}

/** Those of a process that has several gateways. */
export async function withBeside(own: Registry, beside: readonly { figures(): Promise<Figures> }[]): Promise<Registry> {
  if (beside.length === 0) return own
  const others = await Promise.all(beside.map((one) => one.figures()))
  const parts = others.map((figures) => figures.filter(({ name }) => name !== PROCESSES.name))
  return sum([await own.getMetricsAsJSON(), ...parts])
}

/** Merges by each metric's own aggregator, mostly by adding; see metrics.ts. */
function sum(parts: readonly Figures[]): Registry {
  return AggregatorRegistry.aggregate([...parts])
}

function countsOf(figures: Figures): Figures {
  return figures.filter(({ type }) => String(type) === 'counter' || String(type) === 'histogram')
}

/** Each process reports itself as answering; the parent adds the silent ones. */
const PROCESSES = {
  name: 'tollgate_processes',
  help: 'Processes behind this answer, by whether they answered in time; the parent of several is one of them.',
  labelNames: ['state'],
}

function processesFigure(states: Readonly<Record<string, number>>): Figures[number] {
  const values = Object.entries(states).map(([state, value]) => ({ labels: { state }, value }))
  return { ...PROCESSES, type: 'gauge', aggregator: 'sum', values } as unknown as Figures[number]
}
