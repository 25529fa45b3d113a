// Periodic work beside the calls: heartbeats, pruning, verification.
import type { ApiKeys } from '../admission/api-key.ts'
import { pruneReplays } from '../admission/idempotency.ts'
import { pruneVendorObjects } from '../admission/vendor-objects.ts'
import type { AssetStore } from '../assets/store.ts'
import { pruneBatches } from '../background/batch-table.ts'
import { pruneFiles } from '../background/files.ts'
import { pruneBackground } from '../background/responses.ts'
import type { Config } from '../config.ts'
import type { Audit } from '../database/audit.ts'
import type { Database } from '../database/database.ts'
import type { People } from '../identity/people.ts'
import type { Invoices } from '../invoices/invoices.ts'
import { invoiceMonths } from '../invoices/monthly.ts'
import type { Deliveries } from '../jobs/deliveries.ts'
import type { Log } from '../kernel/log.ts'
import { every } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { pruneBudgets } from '../ledger/budgets.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { maintainUsage } from '../ledger/retention.ts'
import { storeUsageMonths } from '../ledger/usage-months.ts'
import { pruneTokens } from '../oauth/open.ts'
import type { Recordings } from '../recordings/recordings.ts'
import { createBilling } from '../reports/billing.ts'
import type { Prober } from '../routing/probe.ts'
import type { ToolServers } from '../routing/tool-servers.ts'
import type { VendorHours } from '../routing/vendor-hours.ts'
import type { Selling } from '../sales/open.ts'
import type { Refusals } from '../telemetry/refusals.ts'
import type { Tracer } from '../telemetry/trace.ts'
import type { Verifier } from '../verify/runs.ts'

interface Maintained {
  readonly database: Database
  readonly audit: Audit
  readonly apiKeys: ApiKeys
  readonly ledger: Ledger
  readonly tracer: Tracer | undefined
  readonly verifier: Verifier
  readonly refusals: Refusals
  readonly contents: Pick<Recordings, 'prune'>
  /** Counters in memory that are added to rows of an hour or a day. Rows that margins need for ever are not pruned. */
  readonly hourly: readonly (Pick<VendorHours, 'flush'> & Partial<Pick<VendorHours, 'prune'>>)[]
  readonly files: AssetStore
  readonly people: People
  readonly invoices: Invoices
  readonly deliveries: Pick<Deliveries, 'prune'>
  readonly sales: Selling
  readonly toolServers: Pick<ToolServers, 'lookAround'>
  readonly prober: Pick<Prober, 'tick' | 'stop'>
}

/** Each sweep is also the heartbeat: a process without one for `SILENT_SECONDS` (ledger/liveness.ts) counts as dead. */
const SWEEP_EVERY_MS = 2_500
/** How often to look which probes are due, and what others found. */
const PROBES_EVERY_MS = 2_000
const TRACE_EVERY_MS = 2_000
const HOURLY_EVERY_MS = 20_000
/** How soon a card is charged when an account with automatic top-up is low. */
const TOP_UP_EVERY_MS = 5_000
const TIDY_EVERY_MS = 60_000
/** How often to check whether the nightly verification is due. */
const VERIFY_EVERY_MS = 300_000
const ASSETS_EVERY_MS = 600_000
const MAINTAIN_EVERY_MS = 3_600_000

/** Starts all periodic work. Each returned function stops one part. */
export function startMaintenance(
  { config, world, log }: { config: Config; world: World; log: Log },
  {
    database,
    audit,
    apiKeys,
    ledger,
    tracer,
    verifier,
    refusals,
    contents,
    hourly,
    files,
    people,
    invoices,
    deliveries,
    sales,
    toolServers,
    prober,
  }: Maintained,
): Array<() => void> {
  // Detects changes of the audit trail by someone with write access to the database.
  void audit.verify().then(
    ({ ok, problems }) => ok || log.error({ problems, alert: true }, 'the audit trail has been tampered with'),
    (error: unknown) => log.warn({ error }, 'the audit trail could not be verified'),
  )

  const PRUNE = [pruneReplays, pruneVendorObjects, pruneTokens, pruneFiles, pruneBatches, pruneBackground]
  const answers = () => PRUNE.map((forget) => forget(database))
  const tidy = () => Promise.all([...answers(), apiKeys.flushLastUsed(), people.prune()])
  const maintain = async () => {
    // The rest does not wait for it: usage of months that are not stored is kept.
    await storeUsageMonths(database, world).catch((error: unknown) =>
      log.warn({ error }, 'months of usage could not be stored; it will be tried again'),
    )
    const { left } = await maintainUsage(database, world, {
      usageMonths: config.TOLLGATE_RETENTION_USAGE_MONTHS,
      tries: 5,
    })
    await invoiceMonths({ database, world, log, invoices, billing: createBilling({ database, audit, world }) })
    await invoices.makeFiles()
    await refusals.prune(config.TOLLGATE_RETENTION_REJECTED_DAYS)
    await contents.prune()
    await pruneBudgets(database)
    await deliveries.prune()
    await sales.payments.prune()
    for (const one of hourly) await one.prune?.()
    if (left.length > 0)
      log.warn({ left }, 'partitions of usage wait to be created or dropped, because usage is being read')
  }
  return [
    ...(tracer ? [every(world, TRACE_EVERY_MS, () => tracer.flush(), log)] : []),
    every(world, SWEEP_EVERY_MS, () => ledger.sweep(), log),
    ...hourly.map((one) => every(world, HOURLY_EVERY_MS, () => one.flush(), log)),
    every(world, ASSETS_EVERY_MS, () => files.sweep(), log),
    every(world, MAINTAIN_EVERY_MS, maintain, log),
    every(world, TIDY_EVERY_MS, tidy, log),
    every(world, TOP_UP_EVERY_MS, () => sales.topUps.look(), log),
    every(world, VERIFY_EVERY_MS, () => sales.reconciliations.tick(), log),
    every(world, TIDY_EVERY_MS, () => sales.plans.renew(), log),
    every(world, TIDY_EVERY_MS, () => toolServers.lookAround(), log),
    every(world, PROBES_EVERY_MS, () => prober.tick(), log),
    prober.stop,
    every(world, VERIFY_EVERY_MS, () => verifier.tick(), log),
  ]
}
