// The only place that constructs things and hands them to each other.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { createAccounts } from './admission/accounts.ts'
import { createApiKeys } from './admission/api-key.ts'
import { createKeys } from './admission/keys.ts'
import { createLabelNames } from './admission/labels.ts'
import { createTeams } from './admission/teams.ts'
import { mountAssets } from './api/assets.ts'
import { listJobs } from './api/jobs.ts'
import { openApi } from './api/open.ts'
import { publicUrlOf } from './api/server/address.ts'
import { openServer } from './api/server/open.ts'
import { openAssets } from './assets/open.ts'
import type { AssetHost } from './assets/store.ts'
import { addSections } from './catalog/section.ts'
import { openCatalog } from './catalog/store.ts'
import type { Config } from './config.ts'
import { createAudit } from './database/audit.ts'
import { createBackfills } from './database/backfill.ts'
import { createChanges } from './database/changes.ts'
import { type Database, databaseAnswers, openDatabase } from './database/database.ts'
import { checkDurability, type Migrations, migrate } from './database/migrate.ts'
import type { Added, Extension } from './extension.ts'
import { agents } from './extensions/agents/extension.ts'
import { alerts } from './extensions/alerts/extension.ts'
import { archive } from './extensions/archive/extension.ts'
import { audio } from './extensions/audio/extension.ts'
import { background } from './extensions/background/extension.ts'
import { completions } from './extensions/completions/extension.ts'
import { connect } from './extensions/connect/extension.ts'
import { directory } from './extensions/directory/extension.ts'
import { docs } from './extensions/docs/extension.ts'
import { embeddings } from './extensions/embeddings/extension.ts'
import { finance } from './extensions/finance/extension.ts'
import { gemini } from './extensions/gemini/extension.ts'
import { guardrails } from './extensions/guardrails/extension.ts'
import { logins } from './extensions/logins/extension.ts'
import { ocr } from './extensions/ocr/extension.ts'
import { prices } from './extensions/prices/extension.ts'
import { probes } from './extensions/probes/extension.ts'
import { products } from './extensions/products/extension.ts'
import { purses } from './extensions/purses/extension.ts'
import { openS3 } from './extensions/s3/open.ts'
import { sales } from './extensions/sales/extension.ts'
import { shadow } from './extensions/shadow/extension.ts'
import { sockets } from './extensions/sockets/extension.ts'
import { tracing } from './extensions/tracing/extension.ts'
import { addAccountRules } from './extensions/verify/account.ts'
import { verify } from './extensions/verify/extension.ts'
import { warehouse } from './extensions/warehouse/extension.ts'
import { type Branding, openBranding } from './identity/branding/branding.ts'
import type { LeavingDeps } from './identity/leaving.ts'
import { type Identity, openIdentity } from './identity/open.ts'
import type { Cost } from './identity/password.ts'
import { createMailer, type Mailer } from './jobs/delivery.ts'
import { type JobEngine, startJobs } from './jobs/engine.ts'
import type { JobTiming } from './jobs/job.ts'
import { createPersonMails } from './jobs/person-mails.ts'
import { createResultStore } from './jobs/result.ts'
import { webhookSecret } from './jobs/webhook.ts'
import type { Log } from './kernel/log.ts'
import { createContentSealer, createSecrets } from './kernel/secret.ts'
import { VERSION } from './kernel/version.ts'
import type { World } from './kernel/world.ts'
import type { Ledger } from './ledger/ledger.ts'
import { maintainUsage } from './ledger/retention.ts'
import { createLoad } from './load.ts'
import { openOperatorApi } from './operator/operator.ts'
import type { ArriveDeps } from './pipeline/arrive.ts'
import type { PathDeps } from './pipeline/call.ts'
import type { PathHooks } from './pipeline/hooks.ts'
import type { ReadDeps } from './pipeline/read.ts'
import { createResponseCache } from './pipeline/response-cache.ts'
import { startMaintenance } from './process/maintenance.ts'
import { createSetAside } from './process/set-aside.ts'
import { boundTokens } from './protocols/data/http-api.ts'
import { addFormats } from './protocols/text/formats.ts'
import { createBilling } from './reports/billing.ts'
import { createStatements } from './reports/statement.ts'
import { type Figures, withBeside } from './telemetry/metrics.ts'
import { openByokKeys } from './upstream/credentials/byok-keys.ts'
import { openCredentials } from './upstream/credentials/credentials.ts'
import { createUpstream } from './upstream/exchange.ts'
import { createOutboundGuard } from './upstream/guard.ts'
import { NO_LOGINS, type Workload } from './upstream/login.ts'

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
  /** The first catalog; the shipped one by default. */
  readonly initialCatalog?: unknown
  /** What a password's hash costs, for tests. */
  readonly passwordCost?: Cost
  /** How many times as long as usual it waits for its database, for tests. */
  readonly waitFactor?: number
  /** Its database is one of several, and shares what is not an account's with the others. */
  readonly place?: LedgerPlace
  /** Of all ledgers at this moment. */
  readonly regions?: () => readonly string[]
}

interface LedgerPlace {
  readonly control: Pick<Database, 'query'>
  /** What listens for it. */
  readonly listener: Parameters<typeof publicUrlOf>[0]
  /** The limits of the whole gateway, which all ledgers of a process share. */
  readonly system: Ledger['system']
  /** Brings its tables up to date, with those of the control database in their place. */
  readonly prepare: () => Promise<Migrations>
  /** Where its tables are looked up then. */
  readonly schemas: string
}

/**
 * How long a leaving process waits for a database that is away; what is not durable by then, the others' sweep ends.
 */
const LAST_WORDS_MS = 30_000

/** What a gateway can do without. The core knows of them only by their type. */
export const EXTENSIONS = [
  agents,
  alerts,
  archive,
  audio,
  background,
  completions,
  connect,
  directory,
  docs,
  embeddings,
  finance,
  gemini,
  guardrails,
  logins,
  ocr,
  prices,
  probes,
  products,
  purses,
  sales,
  shadow,
  sockets,
  tracing,
  verify,
  warehouse,
] as const satisfies readonly Extension<never, never>[]
addSections(EXTENSIONS.flatMap(({ catalog }) => catalog ?? []))
addFormats(EXTENSIONS.flatMap((one) => one.formats))
addAccountRules(EXTENSIONS.flatMap((one) => one.verify))

export type Store = Awaited<ReturnType<typeof openStore>>
type Load = ReturnType<typeof createLoad>
export type Gateway = Awaited<ReturnType<typeof createGateway>>

export async function readDefaultCatalog(): Promise<unknown> {
  return JSON.parse(await readFile(join(import.meta.dirname, 'catalog', 'default.json'), 'utf8'))
}

export async function createGateway(options: GatewayOptions) {
  const { config, world, log } = options
  const store = await openStore(options)
  const { database, secrets, changes, audit, credentials, branding } = store
  const load = createLoad(options, store, { queue: () => jobs.facts(), extensions: () => extensions })
  const { vendors, metrics, upstream, logins, ledger } = load
  const accounts = createAccounts({ database, world, ledger, audit, changes })
  const keys = createKeys({ ...store, world, accounts, ledger, pepper: secrets.key('api-key') })
  // A start does not wait for those who read usage: the next time is soon.
  const maintained = maintainUsage(database, world, { usageMonths: config.TOLLGATE_RETENTION_USAGE_MONTHS, tries: 1 })
  await Promise.all([ledger.sweep(), maintained])
  const on = switchedOn(config)
  let leaving = false
  const joined: Joined[] = []
  const group = groupOf(store.database, metrics, joined)
  const { app, drain } = openServer({ ...group, ...options, ...store, ...load, leaving: () => leaving })
  const publicUrl = () => publicUrlOf(options.place?.listener ?? app, config)
  const routes = { world, sandboxUrl: options.sandboxUrl, credential: credentials.get, vendors }
  const { store: elsewhere, send: s3 } = openS3({ config, world, upstream, logins })
  const assets = await openAssets({ config, world, secrets, elsewhere, publicUrl })
  const { files, signer } = assets
  mountAssets(app, { store: files, signer, world })
  const mailer = openMailer(options, branding)
  const jobs: JobEngine = startJobs({
    ...store,
    ...load,
    routes,
    world,
    log,
    timing: options.jobs ?? {},
    mailer,
    meter: metrics.delivery,
    results: createResultStore({ ...assets, world }),
  })
  const mails = mailer && createPersonMails({ deliveries: jobs.deliveries, world })
  const onLeave: LeavingDeps['onLeave'] = (tx, of, by) => extensions.leave(tx, of, by)
  const own = {
    ...openIdentity({ ...store, ...options, keys, mails, publicUrl, onLeave, proofs: on.flatMap((one) => one.proofs) }),
    onLeave,
    accounts,
    keys,
    routes,
    ...options,
    publicUrl,
    mails,
    work: jobs.work,
    timing: jobs.timing,
    localUrl: () => publicUrlOf(options.place?.listener ?? app, { ...config, PUBLIC_URL: undefined }),
  }
  const late = { calls: () => calls, elsewhere: () => extensions.calls }
  const extensions = await openExtensions(on, { ...store, ...load, ...own, ...late, jobs, files, s3 })
  const calls = pathOfCalls(options, { store, load, jobs, routes, assets, extensions })
  openCalls(options, { app, store, load, jobs, calls, extensions, operator: () => office.routes })
  const office = openOffice(app, options, { store, load, jobs, own, extensions })
  await own.tokens.adopt(options.operatorToken)
  const timers = startMaintenance(options, { ...store, ...load, ...jobs, ...own, files, extensions })
  return {
    ...extensions,
    ...store,
    ...load,
    ...own,
    app,
    jobs,
    office,
    figures: group.figures,
    /** Another gateway of this process, which ends when the calls of both have ended. */
    join: (other: Joined) => void joined.push(other),
    /** Stops taking calls, lets the running ones end, and makes everything durable that was promised. */
    async close(): Promise<void> {
      leaving = true
      extensions.path.shadows?.close()
      const ending = { ...store, ...load, extensions, jobs, drain, own, timers, joined }
      await endGateway(ending, config.TOLLGATE_DRAIN_SECONDS * 1000)
    },
  }
}

interface CallParts extends Pick<ReturnType<typeof openServer>, 'app'> {
  readonly store: Store
  readonly load: Load
  readonly jobs: JobEngine
  readonly calls: Calls
  readonly extensions: Extensions
  readonly operator: Place['operator']
}

/** What calls are read and served with. */
type Calls = Pick<ArriveDeps, 'path' | 'read'>

interface PathParts extends Pick<CallParts, 'store' | 'load' | 'jobs' | 'extensions'> {
  readonly routes: PathDeps['routes']
  readonly assets: Awaited<ReturnType<typeof openAssets>>
}

function pathOfCalls(options: GatewayOptions, { store, load, jobs, routes, assets, extensions }: PathParts): Calls {
  const { world, log } = options
  const { database, sealer } = store
  const { shadows, guardrails } = extensions.path
  return {
    read: readerOf(options, { ...store, assets: assets.assets, guardrails }),
    path: {
      ...load,
      database,
      routes,
      world,
      log,
      jobs,
      sealer,
      cache: createResponseCache(world),
      shadows,
      labelNames: createLabelNames(store),
      ledger: extensions.ledger(load.ledger),
    },
  }
}

/** The addresses at which calls begin. */
function openCalls(options: GatewayOptions, { app, store, load, jobs, calls, extensions, operator }: CallParts): void {
  const { config, world, log } = options
  const bodies = { world, bytesPerSecondMin: config.TOLLGATE_BODY_BYTES_PER_SECOND_MIN }
  const api = openApi(app, {
    ...store,
    ...load,
    ...extensions.path,
    ...calls,
    bodies,
    engine: jobs,
    log,
    world,
    callers: extensions.callers,
    strictErrors: config.TOLLGATE_STRICT_ERRORS,
  })
  extensions.mount({ app, api, ...calls, ...extensions.path, bodies, operator })
}

interface OfficeParts {
  readonly store: Store
  readonly load: Load
  readonly jobs: JobEngine
  readonly own: Identity & {
    readonly keys: ReturnType<typeof createKeys>
    readonly accounts: ReturnType<typeof createAccounts>
    readonly publicUrl: () => string
  }
  readonly extensions: Extensions
}

/** The operator's API and the console. */
function openOffice(
  app: ReturnType<typeof openServer>['app'],
  options: GatewayOptions,
  { store, load, jobs, own, extensions }: OfficeParts,
) {
  const { config, world, log } = options
  return openOperatorApi(app, {
    ...store,
    ...load,
    ...own,
    config,
    world,
    log,
    sandboxUrl: options.sandboxUrl,
    contents: extensions.path.contents,
    traceUrl: config.TOLLGATE_TRACE_URL,
    listJobs: (account, filter) => listJobs(jobs, account, filter),
    personal: extensions.personal,
    added: extensions.resources,
    callStore: extensions.calls?.store,
    offered: extensions.offered,
    security: extensions.security,
    webhookSecret: (account) => webhookSecret(store.secrets, account),
    regions: options.regions ?? (() => []),
    vendorHealth: load.vendors.health,
    deliveries: jobs.deliveries,
    credentialHealth: load.vendors.credentials.health,
    openJobs: jobs.jobs.openAt,
    system: systemOf(options, store, jobs),
  })
}

/** What a gateway and those that joined it say together. */
function groupOf(database: Database, { registry }: Load['metrics'], joined: readonly Joined[]) {
  const all = () => withBeside(registry, joined)
  return {
    /** The part of this process in what several answer at /metrics. */
    figures: async (): Promise<Figures> => (await all()).getMetricsAsJSON(),
    groupMetrics: async () => (await all()).metrics(),
    /** Whether any call can be served. */
    answers: async () => (await databaseAnswers(database)) || joined.some((one) => one.answers()),
  }
}

interface Ending extends Store, Load {
  readonly extensions: Pick<Extensions, 'close'>
  readonly jobs: Pick<JobEngine, 'stop'>
  readonly drain: ReturnType<typeof openServer>['drain']
  readonly own: Pick<Identity, 'asked'>
  readonly timers: ReturnType<typeof startMaintenance>
  readonly joined: readonly Joined[]
}

/** Another gateway of the same process, whose calls this one lets in. */
interface Joined {
  running(): number
  figures(): Promise<Figures>
  /** Whether it serves calls without the other's database. */
  answers(): boolean
  close(): Promise<void>
}

async function endGateway(parts: Ending, forMs: number): Promise<void> {
  const { jobs, drain, timers, monitor, prober, changes, watch, overload, joined } = parts
  const handedOver = jobs.stop(forMs)
  const running = () => joined.reduce((sum, one) => sum + one.running(), monitor.running)
  await drain.close({ running, forMs })
  await Promise.all(joined.map((one) => one.close()))
  await handedOver
  await parts.own.asked.idle()
  for (const stop of timers) stop()
  await prober.idle()
  for (const one of [changes, watch, overload]) one.stop()
  await parts.ledger.idle(LAST_WORDS_MS)
  const told = [parts.refusals.close(), parts.extensions.close(), parts.leave()]
  await Promise.allSettled([...told, parts.apiKeys.flushLastUsed(), parts.tracer?.flush()])
  await Promise.all([parts.upstream.close(), parts.metadata.close()])
  await parts.database.close()
}

/** What all extensions together ask for. */
type Core = (typeof EXTENSIONS)[number] extends Extension<infer C, never> ? C : never
type Place = (typeof EXTENSIONS)[number] extends Extension<never, infer P> ? P : never

interface Extensions extends Omit<Added<Place>, 'own'> {
  /** What an extension has constructed. It must be switched on. */
  readonly opened: <Own>(extension: Extension<never, never, Own>) => Own
}

export const isOn = ({ TOLLGATE_EXTENSIONS_OFF: off }: Config, { name }: { readonly name: string }) =>
  !off.includes(name) && !off.includes('all')

function switchedOn(config: Config): readonly Extension<Core, Place>[] {
  const off = config.TOLLGATE_EXTENSIONS_OFF
  const names = EXTENSIONS.map(({ name }) => name)
  const unknown = off.find((name) => name !== 'all' && !names.includes(name))
  if (unknown !== undefined)
    throw new Error(`TOLLGATE_EXTENSIONS_OFF: there is no extension "${unknown}". There are: all, ${names.join(', ')}.`)
  return EXTENSIONS.filter((one) => isOn(config, one))
}

/** What the extensions that are switched on add. */
async function openExtensions(on: readonly Extension<Core, Place>[], core: Core): Promise<Extensions> {
  const all = await Promise.all(on.map((one) => one.open(core)))
  const own = new Map<unknown, object>(on.map((one, at) => [one, all[at]?.own ?? {}]))
  return {
    // Made by this extension.
    opened: <Own>(extension: Extension<never, never, Own>) => own.get(extension) as Own,
    resources: all.flatMap(({ resources }) => resources),
    personal: all.flatMap(({ personal }) => personal),
    work: all.flatMap(({ work }) => work),
    mount: (place) => {
      for (const one of all) one.mount(place)
    },
    offered: async () =>
      Object.assign(
        { extensions: on.map(({ name }) => name) },
        ...(await Promise.all(all.map((one) => one.offered()))),
      ),
    security: async (person) => Object.assign({}, ...(await Promise.all(all.map((one) => one.security(person))))),
    async leave(...of) {
      const ended: Awaited<ReturnType<LeavingDeps['onLeave']>>[] = []
      // One after the other, on one connection.
      for (const one of all) ended.push(await one.leave(...of))
      return () => Promise.allSettled(ended.map((end) => end()))
    },
    path: Object.assign({}, ...all.map(({ path }) => path)),
    callers: all.find(({ callers }) => callers)?.callers,
    calls: all.find(({ calls }) => calls)?.calls,
    accountIn: (token) => all.map((one) => one.accountIn(token)).find((account) => account !== undefined),
    ledger: (plain) => all.reduce((inner, one) => one.ledger(inner), plain),
    close: () => Promise.allSettled(all.map((one) => one.close())),
  }
}

/** What is kept in the database, and what is read from it at the start. */
async function openStore(options: GatewayOptions) {
  const { config, world, log, place } = options
  const on = switchedOn(config)
  const database = openDatabase({
    connection: options.connection,
    connectionsMax: config.TOLLGATE_DATABASE_CONNECTIONS,
    prepare: config.TOLLGATE_DATABASE_PREPARE,
    waitFactor: options.waitFactor ?? 1,
    schemas: place?.schemas,
  })
  const storeVersion = await checkDurability(database, config.TOLLGATE_ALLOW_UNSAFE_STORE)
  const migrations = await (place ? place.prepare() : migrate(database))
  const secrets = createSecrets(options.secret)
  const sealer = createContentSealer(secrets, world)
  const changes = createChanges(database, world, log, place?.control)
  const audit = createAudit({ database, world, key: secrets.key('audit') })
  const catalog = await openCatalog({
    database,
    changes,
    audit,
    initial: options.initialCatalog ?? (await readDefaultCatalog()),
    added: on.flatMap(({ entries }) => entries),
    sockets: on.flatMap((one) => one.sockets),
    off: EXTENSIONS.filter((one) => !isOn(config, one)).flatMap(({ catalog, formats }) =>
      [...formats, ...(catalog ? [catalog] : [])].map(({ name }) => name),
    ),
  })
  const apiKeys = createApiKeys({
    database,
    changes,
    world,
    pepper: secrets.key('api-key'),
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
  const [upstream, metadata] = [createUpstream({ world }), createUpstream({ world, metadata: true })]
  const workload = workloadOf(config, metadata)
  const logins = on.find((one) => one.logins)?.logins?.({ world, upstream, database, secrets, workload }) ?? NO_LOGINS
  const guard = createOutboundGuard(world, config)
  await changes.start()
  const setAside = createSetAside({ database, catalog, log })
  await setAside.look()
  const billing = createBilling({ database, audit, world })
  const kept = { upstream, logins, metadata, apiKeys, credentials, byokKeys, branding, billing }
  return {
    database,
    storeVersion,
    migrations,
    backfills: createBackfills(database, { log }),
    setAside,
    secrets,
    sealer,
    changes,
    audit,
    catalog,
    teams: createTeams({ database, world, audit }),
    statements: createStatements(database),
    ...kept,
    guard,
    openChecks: on.find((one) => one.checks)?.checks,
    openTracer: on.find((one) => one.tracer)?.tracer,
  }
}

/** What logins may use of the machine. */
const workloadOf = (config: Config, metadata: Workload['metadata']): Workload => ({
  allows: new Set(config.TOLLGATE_WORKLOAD_IDENTITY),
  hosts: new Set(config.TOLLGATE_WORKLOAD_IDENTITY_HOSTS),
  environment: config.workload,
  metadata,
})

/** What reading a request needs besides its bytes. */
function readerOf(
  { config, world }: GatewayOptions,
  {
    guard,
    assets,
    byokKeys,
    secrets,
    guardrails,
  }: Pick<Store, 'guard' | 'byokKeys' | 'secrets'> & {
    readonly assets: AssetHost
    readonly guardrails: PathHooks['guardrails']
  },
): ReadDeps {
  return {
    world,
    byokKeys,
    guardrails,
    presets: config.TOLLGATE_FILL_DEFAULT_MODEL,
    pictures: (account) => ({
      fetchImage: (url, about) => guard.fetchImage(url, { account, ...about }),
      store: assets.store,
    }),
    pageTokens: (account, endpoint) => boundTokens(secrets.key('page-token'), account, endpoint),
  }
}

function systemOf({ config }: GatewayOptions, store: Store, jobs: JobEngine) {
  const { storeVersion, migrations, backfills } = store
  const storeKind = config.DATABASE_URL ? 'server' : 'embedded'
  return {
    storeKind,
    version: VERSION,
    storeVersion,
    migrations,
    backfills,
    setAside: store.setAside.list,
    queue: () => jobs.facts(),
  }
}

function openMailer({ config, world }: GatewayOptions, branding: Branding): Mailer | undefined {
  const { TOLLGATE_SMTP_URL: url, TOLLGATE_MAIL_FROM: from } = config
  return url && from ? createMailer(url, from, world, branding) : undefined
}
