// Periodic work beside the calls: heartbeats, pruning.

import type { ApiKeys } from '../admission/api-key.ts'
import { pruneReplays } from '../admission/idempotency.ts'
import { pruneVendorObjects } from '../admission/vendor-objects.ts'
import type { AssetStore } from '../assets/store.ts'
import type { Config } from '../config.ts'
import type { Audit } from '../database/audit.ts'
import type { Backfills } from '../database/backfill.ts'
import type { Database } from '../database/database.ts'
import type { Added } from '../extension.ts'
import type { People } from '../identity/people.ts'
import type { Deliveries } from '../jobs/deliveries.ts'
import type { Log } from '../kernel/log.ts'
import { every } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { pruneBudgets } from '../ledger/budgets.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { maintainUsage } from '../ledger/retention.ts'
import { sumUsage } from '../ledger/usage-sums.ts'
import type { Prober } from '../routing/checks.ts'
import type { VendorHours } from '../routing/vendor-hours.ts'
import type { Tracer } from '../telemetry/monitor.ts'
import type { Refusals } from '../telemetry/refusals.ts'
import type { SetAside } from './set-aside.ts'

interface Maintained {
  readonly database: Database
  readonly backfills: Backfills
  readonly setAside: Pick<SetAside, 'look'>
  readonly audit: Audit
  readonly apiKeys: ApiKeys
  readonly ledger: Ledger
  readonly tracer: Tracer | undefined
  readonly refusals: Refusals
  /** Counters in memory that are added to rows of an hour or a day. Rows that margins need for ever are not pruned. */
  readonly hourly: readonly (Pick<VendorHours, 'flush'> & Partial<Pick<VendorHours, 'prune' | 'everyMs'>>)[]
  readonly files: AssetStore
  readonly people: People
  readonly deliveries: Pick<Deliveries, 'prune'>
  readonly prober: Pick<Prober, 'tick' | 'stop'>
  readonly extensions: Pick<Added<unknown>, 'work' | 'calls'>
}

/** Each sweep is also the heartbeat: a process without one for `SILENT_SECONDS` (ledger/liveness.ts) counts as dead. */
const SWEEP_EVERY_MS = 2_500
/** How often to look which probes are due, and what others found. */
const PROBES_EVERY_MS = 2_000
const BACKFILL_EVERY_MS = 1_000
const TRACE_EVERY_MS = 2_000
const HOURLY_EVERY_MS = 20_000
/** How soon the first use of a key is shown; after that once a minute. */
const FIRST_USE_EVERY_MS = 5_000
const TIDY_EVERY_MS = 60_000
const ASSETS_EVERY_MS = 600_000
const MAINTAIN_EVERY_MS = 3_600_000

/** Starts all periodic work. Each returned function stops one part. */
export function startMaintenance(
  { config, world, log }: { config: Config; world: World; log: Log },
  {
    database,
    backfills,
    setAside,
    audit,
    apiKeys,
    ledger,
    tracer,
    refusals,
    hourly,
    files,
    people,
    deliveries,
    prober,
    extensions: { work, calls },
  }: Maintained,
): Array<() => void> {
  // Detects changes of the audit trail by someone with write access to the database.
  void audit.verifyNew().then(
    ({ ok, problems }) => ok || log.error({ problems, alert: true }, 'the audit trail has been tampered with'),
    (error: unknown) => log.warn({ error }, 'the audit trail could not be verified'),
  )

  const tidy = () =>
    Promise.all([pruneReplays(database), pruneVendorObjects(database), apiKeys.flushLastUsed(), people.prune()])
  const maintain = async () => {
    const { left } = await maintainUsage(database, world, {
      usageMonths: config.TOLLGATE_RETENTION_USAGE_MONTHS,
      offloaded: calls && { ...calls.store, callDays: config.TOLLGATE_RETENTION_CALL_DAYS },
      tries: 5,
    })
    await setAside.look()
    await refusals.prune(config.TOLLGATE_RETENTION_REJECTED_DAYS)
    await pruneBudgets(database)
    await deliveries.prune()
    for (const one of hourly) await one.prune?.()
    if (left.length > 0)
      log.warn({ left }, 'partitions of usage wait to be created or dropped, because usage is being read')
  }
  return [
    ...(tracer ? [every(world, TRACE_EVERY_MS, () => tracer.flush(), log)] : []),
    every(world, SWEEP_EVERY_MS, () => ledger.sweep(), log),
    every(world, BACKFILL_EVERY_MS, () => backfills.tick(), log),
    every(world, HOURLY_EVERY_MS, () => sumUsage(database), log),
    ...hourly.map((one) => every(world, one.everyMs ?? HOURLY_EVERY_MS, () => one.flush(), log)),
    every(world, FIRST_USE_EVERY_MS, () => apiKeys.flushLastUsed({ onlyFirst: true }), log),
    every(world, ASSETS_EVERY_MS, () => files.sweep(), log),
    every(world, MAINTAIN_EVERY_MS, maintain, log),
    every(world, TIDY_EVERY_MS, tidy, log),
    every(world, PROBES_EVERY_MS, () => prober.tick(), log),
    prober.stop,
    ...work.map(({ everyMs, run }) => every(world, everyMs, run, log)),
  ]
}
