// The only place that constructs things and hands them to each other.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { createAccounts } from './admission/accounts.ts'
import { createCreditCheck } from './admission/admit.ts'
import { createApiKeys } from './admission/api-key.ts'
import { createClientSecrets } from './admission/client-secrets.ts'
import { createKeys } from './admission/keys.ts'
import { createLabelNames } from './admission/labels.ts'
import { createAlerts } from './alerts/alerts.ts'
import { mountAssets } from './api/assets.ts'
import { listJobs } from './api/jobs.ts'
import { openApi } from './api/open.ts'
import { openAssets } from './assets/open.ts'
import type { AssetHost } from './assets/store.ts'
import { openBackground } from './background/open.ts'
import { type Branding, openBranding } from './branding/branding.ts'
import { openCatalog } from './catalog/store.ts'
import type { Config } from './config.ts'
import { type ByokKeys, openByokKeys } from './credentials/byok-keys.ts'
import { openCredentials } from './credentials/credentials.ts'
import { openToolConnections } from './credentials/tool-connections.ts'
import { createAudit } from './database/audit.ts'
import { createChanges } from './database/changes.ts'
import { type Database, openDatabase, statement } from './database/database.ts'
import { checkDurability, migrate } from './database/migrate.ts'
import { mountDocs } from './docs/routes.ts'
import { createExports } from './exports/exports.ts'
import { createVendorReports } from './exports/reconcile.ts'
import { createGuardrails, type Guardrails } from './guardrails/chain.ts'
import type { Cost } from './identity/password.ts'
import { createInvoices } from './invoices/invoices.ts'
import { createAuditExport } from './jobs/audit-export.ts'
import { createMailer, type Mailer } from './jobs/delivery.ts'
import { type JobEngine, startJobs } from './jobs/engine.ts'
import type { JobTiming } from './jobs/job.ts'
import { createResultStore } from './jobs/result.ts'
import { webhookSecret } from './jobs/webhook.ts'
import type { Log } from './kernel/log.ts'
import { createContentSealer, createSecrets, type Secrets } from './kernel/secret.ts'
import { VERSION } from './kernel/version.ts'
import { newId, type World } from './kernel/world.ts'
import { createLedger, type Ledger } from './ledger/ledger.ts'
import { maintainUsage } from './ledger/retention.ts'
import { openTools } from './mcp/open.ts'
import { openOperatorApi } from './operator/operator.ts'
import type { PathDeps } from './pipeline/call.ts'
import { createHooks } from './pipeline/guard-hook.ts'
import type { ReadDeps } from './pipeline/read.ts'
import { createResponseCache } from './pipeline/response-cache.ts'
import { createShadows } from './pipeline/shadow.ts'
import { startMaintenance } from './process/maintenance.ts'
import { boundTokens } from './protocols/data/http-api.ts'
import { createRecordingPolicies, createRecordings } from './recordings/recordings.ts'
import { createBilling } from './reports/billing.ts'
import { createMargins } from './reports/margins.ts'
import { createStatements } from './reports/statement.ts'
import { createUnbilled } from './reports/unbilled.ts'
import { createProber, type Prober } from './routing/probe.ts'
import { openToolServers, type ToolServers } from './routing/tool-servers.ts'
import { createVendors } from './routing/vendor.ts'
import { createVendorHours } from './routing/vendor-hours.ts'
import { testVendor } from './routing/vendor-test.ts'
import { publicUrlOf } from './server/address.ts'
import { sdkBody } from './server/envelope.ts'
import { openServer } from './server/open.ts'
import { createMetrics, type Metrics } from './telemetry/metrics.ts'
import { createMonitor, createStreamWatch, type Monitor } from './telemetry/monitor.ts'
import { createOverload, type Overload } from './telemetry/overload.ts'
import { createRefusals } from './telemetry/refusals.ts'
import { createReports } from './telemetry/reports.ts'
import { createTracer } from './telemetry/trace.ts'
import { createByteBudget } from './upstream/budget.ts'
import type { Upstream } from './upstream/call.ts'
import { createUpstream } from './upstream/exchange.ts'
import { createOutboundGuard, type GuardedFetch } from './upstream/guard.ts'
import { createLogins } from './upstream/login.ts'
import { createTokenCache, createTokenStore } from './upstream/token-cache.ts'
import { createVerifier } from './verify/runs.ts'

export interface GatewayOptions {
  readonly config: Config
  readonly world: World
  readonly log: Log
  readonly connection: pg.PoolConfig
  readonly secret: string
  readonly operatorToken: string
  /** Where the simulated vendors listen. */
  readonly sandboxUrl: () => string | undefined
  /** What /metrics answers when this process is one of several; without it, this process' own figures. */
  readonly groupMetrics?: () => Promise<string>
  /** The pace of jobs, for tests. */
  readonly jobs?: Partial<JobTiming>
  /** What a password's hash costs, for tests. */
  readonly passwordCost?: Cost
}

/** How long a leaving process waits for a database that is away; what is not durable by then, the others' sweep ends. */
const LAST_WORDS_MS = 30_000
const BODIES_WAITING_MAX = 200
/** Of the conversations on WebSockets. */
const REMEMBERED_BYTES_MAX = 64 * 1024 * 1024
const HOLDS = statement('holds', 'select count(*) as count from hold')

export type Gateway = Awaited<ReturnType<typeof createGateway>>

export async function readDefaultCatalog(): Promise<unknown> {
  return JSON.parse(await readFile(join(import.meta.dirname, 'catalog', 'default.json'), 'utf8'))
}

export async function createGateway(options: GatewayOptions) {
  const { config, world, log } = options
  const store = await openStore(options, () => publicUrlOf(app, config))
  const { database, secrets, changes, audit, catalog, apiKeys, credentials, byokKeys, storeVersion, branding } = store
  const { guard, toolServers, toolConnections } = store
  const load = createLoad(options, store, () => jobs.facts())
  const { vendors, watch, metrics, upstream, logins, tracer, monitor, ledger, overload, refusals, contents } = load
  const accounts = createAccounts({ database, world, ledger, audit, changes })
  const keys = createKeys({ ...store, world, accounts, ledger, pepper: secrets.key('api-key') })
  // A start does not wait for those who read usage: the next time is soon.
  const maintained = maintainUsage(database, world, { usageMonths: config.TOLLGATE_RETENTION_USAGE_MONTHS, tries: 1 })
  await Promise.all([ledger.sweep(), maintained])
  let leaving = false
  const { app, drain, sockets } = openServer({ ...options, ...store, ...load, leaving: () => leaving })
  const publicUrl = () => publicUrlOf(app, config)
  const routes = { world, sandboxUrl: options.sandboxUrl, credential: credentials.get, vendors }
  const { files, signer, assets } = await openAssets({ config, world, secrets, upstream, logins, publicUrl })
  mountAssets(app, { store: files, signer, world })
  const mailer = openMailer(options, branding)
  const mails = mailer !== undefined
  const jobs: JobEngine = startJobs({
    ...{ database, ledger, catalog, upstream, logins, vendors, routes, byokKeys },
    ...{ guard, secrets, world, log, timing: options.jobs ?? {}, mailer, audit, meter: metrics.delivery },
    results: createResultStore({ assets, signer, world }),
  })
  const shadows = createShadows({ ...load, routes, world, log, meter: metrics.shadow })
  const path: PathDeps = {
    ...{ ...load, database, routes, world, log, jobs, sealer: store.sealer, cache: createResponseCache(world) },
    ...{ labelNames: createLabelNames(store), hooks: createHooks({ guard, secrets, world }), shadows },
  }
  const read = readerOf(options, { ...store, guard, assets })
  const bodies = { world, bytesPerSecondMin: config.TOLLGATE_BODY_BYTES_PER_SECOND_MIN }
  const background = openBackground({ ...store, ...load, jobs, path, read, files, faultBody: sdkBody })
  const api = openApi(app, {
    ...{ ...store, ...load, ...background, path, read, bodies, sockets, engine: jobs, log, world },
    strictErrors: config.TOLLGATE_STRICT_ERRORS,
  })
  const oauth = openTools(app, api, { ...store, ...load, path, read, jobs, keys, guard, world, log, publicUrl })
  const alerts = createAlerts({
    ...{ database, secrets, guard, world, log, branding, publicUrl, mails, deliveries: jobs.deliveries },
    ...{ failingVendors: () => failingVendors(load), overruns: monitor.overruns },
  })
  const sent = openExports({ ...store, guard, world, log, work: jobs.work, timing: jobs.timing })
  const office = openOperatorApi(app, {
    ...{ config, database, ledger, changes, catalog, audit, world, accounts, keys, credentials, byokKeys },
    ...{ secrets, branding, mails, log, guard, sandboxUrl: options.sandboxUrl, verifier: load.verifier },
    ...{ statements: createStatements(database), alerts, contents, traceUrl: config.TOLLGATE_TRACE_URL },
    contentRules: createRecordingPolicies({ database, changes, audit }),
    listJobs: (account, filter) => listJobs(jobs, account, filter),
    ...{ connections: oauth.connections, batches: background.batches, invoices: store.invoices },
    ...{ billing: store.billing, ...sent, vendorReports: createVendorReports({ ...store, guard, world }) },
    webhookSecret: (account) => webhookSecret(secrets, account),
    ...{ reports: load.reports, prober: load.prober, vendorHealth: vendors.health, deliveries: jobs.deliveries },
    ...{ credentialHealth: vendors.credentials.health, openJobs: jobs.jobs.openAt, toolServers, toolConnections },
    test: (target, call, isForeign = false) => testVendor(target, call, { upstream, logins, world, isForeign }),
    ...{ system: systemOf(options, store, jobs), passwordCost: options.passwordCost },
  })
  await office.tokens.adopt(options.operatorToken)
  mountDocs(app, { ...docsOf(options), operator: office.routes, catalog, brand: branding.get })
  const { people, sales } = office
  const timers = startMaintenance(options, { ...store, ...load, files, people, sales, deliveries: jobs.deliveries })
  return {
    ...{ app, database, ledger, catalog, sales, accounts, keys, byokKeys, jobs, guard, office, monitor },
    ...{ vendors, refusals, contents, alerts, storeVersion, migrations: store.migrations, hourly: load.hourly },
    prober: load.prober,
    /** This process' part of what a group of processes answers at /metrics. */
    figures: () => metrics.registry.getMetricsAsJSON(),
    /** Stops taking calls, lets the running ones end, and makes everything durable that was promised. */
    async close(): Promise<void> {
      leaving = true
      shadows.close()
      const forMs = config.TOLLGATE_DRAIN_SECONDS * 1000
      const handedOver = Promise.all([alerts.stop(), jobs.stop(forMs)])
      await drain.close({ running: () => monitor.running, forMs })
      await handedOver
      await office.signUp.idle()
      for (const stop of timers) stop()
      await Promise.all([load.prober.idle(), load.verifier.stop()])
      changes.stop()
      watch.stop()
      overload.stop()
      await ledger.idle(LAST_WORDS_MS)
      const told = [refusals.close(), contents.close(), load.leave()]
      await Promise.allSettled([...told, apiKeys.flushLastUsed(), tracer?.flush()])
      await Promise.all([upstream.close(), load.metadata.close()])
      await database.close()
    },
  }
}

/** What is sent outside by itself: usage, and the audit log. */
function openExports(deps: Parameters<typeof createExports>[0] & Parameters<typeof createAuditExport>[0]) {
  return { exports: createExports(deps), auditExport: createAuditExport(deps) }
}

/** What is kept in the database, and what is read from it at the start. */
async function openStore(options: GatewayOptions, publicUrl: () => string) {
  const { config, world, log } = options
  const database = openDatabase({
    connection: options.connection,
    connectionsMax: config.TOLLGATE_DATABASE_CONNECTIONS,
    prepare: config.TOLLGATE_DATABASE_PREPARE,
  })
  const storeVersion = await checkDurability(database, config.TOLLGATE_ALLOW_UNSAFE_STORE)
  const migrations = await migrate(database)
  const secrets = createSecrets(options.secret)
  const sealer = createContentSealer(secrets, world)
  const guardrails = createGuardrails({ secrets })
  const changes = createChanges(database, world)
  const audit = createAudit({ database, world })
  const catalog = await openCatalog({ database, changes, audit, initial: await readDefaultCatalog() })
  const apiKeys = createApiKeys({
    ...{ database, changes, world, pepper: secrets.key('api-key') },
    unknownPerMinute: config.TOLLGATE_UNKNOWN_KEYS_PER_MINUTE,
  })
  const credentials = await openCredentials({
    database,
    changes,
    world,
    audit,
    secrets,
    environment: config.vendorKeys,
  })
  const byokKeys = await openByokKeys({ database, changes, world, audit, secrets })
  const branding = await openBranding({ database, changes, audit })
  const upstream = createUpstream({ world })
  const sources = { sandboxUrl: options.sandboxUrl, credential: credentials.get }
  const { logins, metadata } = openLogins(config, { world, upstream, database, secrets })
  const guard = createOutboundGuard(world, config)
  const toolConnections = await openToolConnections({ database, changes, audit, secrets, world, guard })
  const toolServers = await openToolServers({
    ...{ database, changes, audit, catalog, upstream, logins, world, log, sources, publicUrl },
    connections: toolConnections,
  })
  await changes.start()
  const invoices = createInvoices({ database, world, audit, branding })
  const billing = createBilling({ database, audit, world })
  const kept = { upstream, logins, metadata, toolServers, apiKeys, credentials, byokKeys, invoices, branding, billing }
  const people = { guard, toolConnections }
  const clientSecrets = createClientSecrets(secrets.key('client-secret'), world)
  return {
    database,
    storeVersion,
    migrations,
    secrets,
    sealer,
    guardrails,
    changes,
    audit,
    catalog,
    clientSecrets,
    ...kept,
    ...people,
  }
}

/** The clouds' own logins. Their tokens are shared by all processes. */
function openLogins(
  config: GatewayOptions['config'],
  { world, upstream, database, secrets }: { world: World; upstream: Upstream; database: Database; secrets: Secrets },
) {
  const metadata = createUpstream({ world, metadata: true })
  const tokens = createTokenCache({ world, store: createTokenStore({ database, world, secrets }) })
  const workload = {
    allows: new Set(config.TOLLGATE_WORKLOAD_IDENTITY),
    hosts: new Set(config.TOLLGATE_WORKLOAD_IDENTITY_HOSTS),
    ...{ environment: config.workload, metadata },
  }
  return { logins: createLogins({ world, upstream, tokens, workload }), metadata }
}

/** What carries the calls, and what counts and bounds them. */
function createLoad(
  { config, world, log, sandboxUrl }: GatewayOptions,
  store: Awaited<ReturnType<typeof openStore>>,
  queue: JobEngine['facts'],
) {
  const { database, changes, audit, sealer, credentials, catalog, byokKeys, upstream, logins, metadata } = store
  const vendorHours = createVendorHours(database, world)
  const vendors = createVendors(world, vendorHours.count)
  const watch = createStreamWatch(world)
  const metrics: Metrics = createMetrics({
    genAi: config.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined,
    vendors: () => vendors.health(),
    probes: () => prober.found(),
    running: () => monitor.running,
    ledgerPending: () => ledger.pending,
    ledgerIsolated: () => ledger.isolated,
    databaseWaiting: () => database.waiting(),
    loopLagMs: () => overload.lagMs,
    shed: () => overload.shed + budget.refused,
    refusalsDropped: () => refusals.dropped,
    contentsDropped: () => contents.dropped,
    openStreams: () => watch.open,
    queue,
    holds: async () => Number((await database.query<{ count: bigint }>(HOLDS))[0]?.count ?? 0n),
    verified: () => verifier.state(),
  })
  const verifier = createVerifier({
    ...{ database, audit, world, log, usageMonths: config.TOLLGATE_RETENTION_USAGE_MONTHS },
    nightlyAt: config.TOLLGATE_VERIFY_AT,
  })
  const refusals = createRefusals({ database, world, log })
  const contents = createRecordings({
    database,
    world,
    log,
    audit,
    sealer,
    catalog,
    credentials,
    guardrails: store.guardrails,
  })
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: serviceName } = config
  const tracer = endpoint ? createTracer({ world, upstream, endpoint, serviceName, log }) : undefined
  const monitor: Monitor = createMonitor({ world, log, meters: metrics, ...(tracer ? { tracer } : {}) })
  const processId = newId(world)
  const [margins, unbilled] = [createMargins(database, world), createUnbilled(database, world)]
  const meters = { batch: metrics.batch, moved: metrics.moved, earned: margins.count }
  const ledger: Ledger = createLedger({ database, world, processId, meters, log })
  const own = () => ({ calls: monitor.live(), running: monitor.running, vendors: vendors.health() })
  const reports = createReports({ database, changes, world, processId, own })
  // A key may have other limits now than those under which its credits were leased.
  changes.watch('keys', () => ledger.recall())
  const overload: Overload = createOverload({
    ...{ world, lagMsMax: config.TOLLGATE_OVERLOAD_LAG_MS, running: () => monitor.running },
    waiting: () => ledger.pending + database.waiting(),
  })
  const hourly = [vendorHours, margins, unbilled]
  const sources = { sandboxUrl, credential: credentials.get }
  const prober: Prober = createProber({ ...store, world, log, vendors, sources, meter: metrics.probe })
  const bytesMax = config.TOLLGATE_BYTES_IN_FLIGHT_MAX
  const mayHold = createCreditCheck(database, byokKeys)
  const budget = createByteBudget({ world, bytesMax, queueMax: BODIES_WAITING_MAX, mayHold })
  return {
    ...{ vendors, watch, metrics, upstream, logins, metadata, tracer, monitor, ledger, overload, budget, verifier },
    ...{ refusals, contents, reports, hourly, prober, unbilled },
    // What does not fit at once is not remembered.
    remembered: createByteBudget({ world, bytesMax: REMEMBERED_BYTES_MAX, queueMax: 0 }),
    leave: () => Promise.all([reports.leave(), ...hourly.map((one) => one.flush())]),
  }
}

/** Those whose breaker is open in this process, and those that reject their credential. */
function failingVendors({ vendors, prober }: Pick<ReturnType<typeof createLoad>, 'vendors' | 'prober'>) {
  return vendors.health().flatMap(({ name, breaker, reason }) => {
    const probe = prober.view(name)
    if (probe?.state === 'rejected') return [{ name, isRejected: true, reason: probe.message }]
    return breaker === 'open' ? [{ name, isRejected: false, reason }] : []
  })
}

/** What reading a request needs besides its bytes. */
function readerOf(
  { config, world }: GatewayOptions,
  {
    guard,
    assets,
    byokKeys,
    secrets,
    toolServers,
    guardrails,
  }: {
    guard: GuardedFetch
    assets: AssetHost
    byokKeys: ByokKeys
    secrets: Secrets
    toolServers: ToolServers
    guardrails: Guardrails
  },
): ReadDeps {
  return {
    ...{ world, byokKeys, toolServers, guardrails },
    presets: config.TOLLGATE_FILL_DEFAULT_MODEL,
    pictures: (account) => ({
      fetchImage: (url, about) => guard.fetchImage(url, { account, ...about }),
      store: assets.store,
    }),
    pageTokens: (account, endpoint) => boundTokens(secrets.key('page-token'), account, endpoint),
  }
}

function systemOf({ config }: GatewayOptions, store: Awaited<ReturnType<typeof openStore>>, jobs: JobEngine) {
  const { storeVersion, migrations } = store
  const storeKind = config.DATABASE_URL ? 'server' : 'embedded'
  return { storeKind, version: VERSION, storeVersion, migrations, queue: () => jobs.facts() }
}

const docsOf = ({ config }: GatewayOptions) => ({ version: VERSION, serverUrl: config.PUBLIC_URL ?? '/' })

function openMailer({ config, world }: GatewayOptions, branding: Branding): Mailer | undefined {
  const { TOLLGATE_SMTP_URL: url, TOLLGATE_MAIL_FROM: from } = config
  return url && from ? createMailer(url, from, world, branding) : undefined
}
