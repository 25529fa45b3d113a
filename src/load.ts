// What carries the calls, and what counts and bounds them.
import { createCreditCheck } from './admission/admit.ts'
import { createUsualOutput } from './admission/usual-output.ts'
import type { GatewayOptions, Store } from './compose.ts'
import type { Config } from './config.ts'
import { databaseAnswers, sql } from './database/database.ts'
import { createStoreWatch } from './database/health.ts'
import type { Added } from './extension.ts'
import type { JobEngine } from './jobs/engine.ts'
import { newId, type World } from './kernel/world.ts'
import { createLedger, type Ledger } from './ledger/ledger.ts'
import { createMargins } from './reports/margins.ts'
import { createUnbilled } from './reports/unbilled.ts'
import { type CheckDeps, NO_CHECKS, type VendorChecks } from './routing/checks.ts'
import { createVendors, type Vendors } from './routing/vendor.ts'
import { createVendorHours } from './routing/vendor-hours.ts'
import { findIncidents } from './telemetry/incidents.ts'
import { createMetrics, type Metrics } from './telemetry/metrics.ts'
import { createMonitor, createStreamWatch, type Monitor } from './telemetry/monitor.ts'
import { createOverload } from './telemetry/overload.ts'
import { createRefusals } from './telemetry/refusals.ts'
import { createReports } from './telemetry/reports.ts'
import { createByteBudget } from './upstream/budget.ts'

const BODIES_WAITING_MAX = 200
const HOLDS = sql('holds')`select count(*) as count from hold`

export function createLoad(
  { config, world, log, sandboxUrl, place, waitFactor = 1 }: GatewayOptions,
  store: Store,
  late: { readonly queue: JobEngine['facts']; readonly extensions: () => Pick<Added<unknown>, 'path' | 'calls'> },
) {
  const { database, changes, byokKeys, upstream, logins, metadata } = store
  const vendorHours = createVendorHours(database, world)
  const [watch, storeWatch] = [createStreamWatch(world), createStoreWatch(database, world)]
  const metrics: Metrics = createMetrics({
    vendors: () => vendors.health(),
    probes: () => checks.prober.found(),
    running: () => monitor.running,
    ledgerPending: () => ledger.pending,
    ledgerIsolated: () => ledger.isolated,
    databaseWaiting: () => database.waiting(),
    databaseUp: () => databaseAnswers(database),
    get ledger() {
      return ledger
    },
    loopLagMs: () => overload.lagMs,
    shed: () => overload.shed + budget.refused,
    refusalsDropped: () => refusals.dropped,
    contentsDropped: () => late.extensions().path.contents?.dropped ?? 0,
    openStreams: () => watch.open,
    changeFailures: changes.failures,
    queue: late.queue,
    store: storeWatch,
    holds: async () => Number((await database.query<{ count: bigint }>(HOLDS))[0]?.count ?? 0n),
  })
  const vendors: Vendors = createVendors(world, [vendorHours.count, metrics.vendorAttempt])
  database.measure(metrics.statement)
  const calls = () => late.extensions().calls
  const refusals = createRefusals({ database, world, log })
  const tracer = store.openTracer?.({ config, world, upstream, log, registry: metrics.registry })
  const monitor: Monitor = createMonitor({ world, log, meters: metrics, tracer })
  const processId = newId(world)
  const [margins, unbilled] = [createMargins(database, world), createUnbilled(database, world)]
  const [creditWaitMs, system] = [config.TOLLGATE_CREDIT_WAIT_SECONDS * 1_000, place?.system]
  const meters = { batch: metrics.batch, moved: metrics.moved, earned: margins.count, aboveHold: monitor.aboveHold }
  const ledger: Ledger = createLedger({ database, world, processId, meters, log, waitFactor, creditWaitMs, system })
  const own = () => ({ calls: monitor.live(), running: monitor.running, vendors: vendors.health() })
  const reports = createReports({ database, changes, world, processId, own })
  // A key may have other limits now than those under which its credits were leased.
  changes.watch('keys', () => ledger.recall())
  const { overload, budget } = createBounds(config, { world, monitor, ledger, database, byokKeys })
  const hourly = [vendorHours, margins, unbilled]
  const checks = checksOf(store, { world, log, sandboxUrl, vendors, metrics, database: place?.control ?? database })
  return {
    vendors,
    watch,
    metrics,
    upstream,
    logins,
    metadata,
    tracer,
    monitor,
    ledger,
    overload,
    budget,
    refusals,
    reports,
    hourly,
    checks,
    prober: checks.prober,
    unbilled,
    usualOutput: createUsualOutput(),
    incidents: () => findIncidents({ ledger, changes, store: storeWatch }).concat(calls()?.incidents() ?? []),
    leave: () => Promise.all([reports.leave(), ...hourly.map((one) => one.flush())]),
  }
}

function checksOf(
  store: Store,
  of: Pick<GatewayOptions, 'world' | 'log' | 'sandboxUrl'> &
    Pick<CheckDeps, 'database'> & { readonly vendors: Vendors; readonly metrics: Metrics },
): VendorChecks {
  const sources = { sandboxUrl: of.sandboxUrl, credential: store.credentials.get }
  return store.openChecks?.({ ...store, ...of, sources, meter: of.metrics.probe }) ?? NO_CHECKS
}

/** What a process takes on before it rejects calls, or lets large bodies wait. */
function createBounds(
  config: Config,
  {
    world,
    monitor,
    ledger,
    database,
    byokKeys,
  }: Pick<Store, 'database' | 'byokKeys'> & {
    readonly world: World
    readonly monitor: Monitor
    readonly ledger: Ledger
  },
) {
  const overload = createOverload({ world, lagMsMax: config.TOLLGATE_OVERLOAD_LAG_MS, monitor, ledger, database })
  const [bytesMax, mayHold] = [config.TOLLGATE_BYTES_IN_FLIGHT_MAX, createCreditCheck(database, byokKeys)]
  return { overload, budget: createByteBudget({ world, bytesMax, queueMax: BODIES_WAITING_MAX, mayHold }) }
}
