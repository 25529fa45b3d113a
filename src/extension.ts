// What a gateway can do without. An extension is a folder in `extensions/` with `extension.ts`, which exports one value
// of this type. The core knows it only by this type; compose.ts has the list. An extension that is switched off leaves
// its tables alone, and its addresses answer 404.
import type { ApiKeys } from './admission/api-key.ts'
import type { CallerRules } from './api/api.ts'
import type { EndpointSpec } from './catalog/endpoint.ts'
import type { CatalogSection } from './catalog/section.ts'
import type { CatalogStore } from './catalog/store.ts'
import type { Config } from './config.ts'
import type { Audit } from './database/audit.ts'
import type { Changes } from './database/changes.ts'
import type { Database, Queryable } from './database/database.ts'
import type { Branding } from './identity/branding/branding.ts'
import type { LeavingDeps } from './identity/leaving.ts'
import type { Proof } from './identity/sessions.ts'
import type { Offered, SecurityView } from './identity/views.ts'
import type { Work } from './jobs/work.ts'
import type { Log } from './kernel/log.ts'
import type { ContentSealer, Secrets } from './kernel/secret.ts'
import type { World } from './kernel/world.ts'
import type { Ledger } from './ledger/ledger.ts'
import type { Resource } from './operator/resource.ts'
import type { PathHooks } from './pipeline/hooks.ts'
import type { PaidEndpoint } from './pipeline/paid-endpoint.ts'
import type { TextFormat } from './protocols/text/format.ts'
import type { Billing } from './reports/billing.ts'
import type { CallStore } from './reports/dialect.ts'
import type { CheckDeps, VendorChecks } from './routing/checks.ts'
import type { Incident } from './telemetry/incidents.ts'
import type { Metrics } from './telemetry/metrics.ts'
import type { Tracer } from './telemetry/monitor.ts'
import type { Upstream } from './upstream/call.ts'
import type { Credentials } from './upstream/credentials/credentials.ts'
import type { Logins, Workload } from './upstream/login.ts'

/** What a gateway has for its parts. Each part asks for what it uses. */
export interface CoreParts extends LoginParts {
  readonly log: Log
  readonly audit: Audit
  readonly changes: Changes
  readonly catalog: CatalogStore
  readonly apiKeys: ApiKeys
  readonly credentials: Credentials
  readonly logins: Logins
  readonly sealer: ContentSealer
  readonly branding: Branding
  readonly billing: Billing
  readonly config: Config
  readonly work: Pick<Work, 'begin'>
  /** The address at which callers reach it, and the one of the simulated vendors. */
  readonly publicUrl: () => string
  readonly sandboxUrl: () => string | undefined
}

/** Something that is done again and again beside the calls. */
interface PeriodicWork {
  readonly everyMs: number
  readonly run: () => Promise<unknown>
}

/** Says what is wrong with an account's rows of an extension, in the snapshot in which its balance is read. */
export type AccountRule = (tx: Queryable, account: string) => Promise<readonly string[]>

/** Another place for all calls: reports on long times are read there, and the database need not keep them for long. */
export interface CallWarehouse {
  readonly store: CallStore
  /** Says what differs from the database, in sentences. */
  readonly verify: (of: { readonly whole: boolean }) => Promise<readonly string[]>
  readonly incidents: () => readonly Incident[]
}

/** A free one has handlers that its extension mounts; one that sells says itself what answers there. */
type Entry = (EndpointSpec & { readonly sells?: undefined }) | PaidEndpoint

interface LoginParts {
  readonly world: World
  readonly upstream: Upstream
  readonly database: Database
  readonly secrets: Secrets
  readonly workload: Workload
}

interface TracerParts {
  readonly config: Config
  readonly world: World
  readonly upstream: Upstream
  readonly log: Log
  readonly registry: Metrics['registry']
}

export interface Extension<Core, Place, Own = object> {
  readonly name: string
  readonly catalog?: CatalogSection | undefined
  readonly proofs: readonly Proof[]
  /** Also when it is switched off: its rows are there. */
  readonly verify: readonly AccountRule[]
  readonly logins: ((of: LoginParts) => Logins) | undefined
  readonly checks: ((of: CheckDeps) => VendorChecks) | undefined
  readonly tracer: ((of: TracerParts) => Tracer | undefined) | undefined
  /** The text formats that it adds. */
  readonly formats: readonly TextFormat[]
  /** The endpoints that it adds to the public API. */
  readonly entries: readonly Entry[]
  /** Addresses that take WebSockets, and nothing else. */
  readonly sockets: readonly EndpointSpec[]
  /** Its resources, for their description only. */
  readonly describe: (nothing: object) => Resources
  /** What it adds to a gateway that starts. */
  readonly open: (core: Core) => Promise<Added<Place, Own>>
}

export interface Added<Place, Own = object> extends Resources {
  /** What it has constructed. */
  readonly own: Own
  readonly work: readonly PeriodicWork[]
  /** Mounts its endpoints. */
  readonly mount: (place: Place) => void
  readonly offered: () => Promise<Partial<Offered>>
  readonly security: (person: string) => Promise<Partial<SecurityView>>
  readonly leave: LeavingDeps['onLeave']
  /** What calls meet. */
  readonly path: PathHooks
  /** Who calls, besides keys. */
  readonly callers: CallerRules | undefined
  readonly calls: CallWarehouse | undefined
  /** The account that a token which it gave out speaks for, without asking a database. */
  readonly accountIn: (token: string) => string | undefined
  /** What calls hold and pay by. */
  readonly ledger: (ledger: Ledger) => Ledger
  /** Makes durable what it has promised, before the database is left. */
  readonly close: () => Promise<unknown>
}

interface Resources {
  /** Of the operator API and the console; OpenAPI and the reference follow. */
  readonly resources: readonly Resource[]
  /** Of the console only: for visitors, and for people about themselves. */
  readonly personal: readonly Resource[]
}

/** What an extension is made of. Every member but the name is optional, and what is absent costs nothing. */
interface Parts<Core, Own, Place> {
  readonly name: string
  /** Its section of the catalog document. */
  readonly catalog?: CatalogSection
  /** Ways that it adds to say who one is: at the sign-in, after the password, or again before a sensitive action. */
  readonly proofs?: readonly Proof[]
  readonly verify?: readonly AccountRule[]
  /** Logins of vendors. */
  readonly logins?: (of: LoginParts) => Logins
  /** What it finds out about vendors. */
  readonly checks?: (of: CheckDeps) => VendorChecks
  /** Follows every call; undefined: it is not configured. */
  readonly tracer?: (of: TracerParts) => Tracer | undefined
  /** Text formats that it adds; their names are in `meter/kind.ts`. */
  readonly formats?: readonly TextFormat[]
  /**
   * Endpoints of the public API, with their ids; `endpoints` mounts the free ones. One with the id of a core's takes
   * its place: it has further addresses.
   */
  readonly entries?: readonly Entry[]
  readonly sockets?: readonly EndpointSpec[]
  /** Constructs what the other members use besides the core. */
  readonly open?: (core: Core) => Own | Promise<Own>
  readonly resources?: (all: Core & Own) => readonly Resource[]
  readonly personal?: (all: Core & Own) => readonly Resource[]
  /** Addresses beside those of resources, mounted where `place` says. */
  readonly endpoints?: (all: Core & Own, place: Place) => void
  readonly work?: (all: Core & Own) => readonly PeriodicWork[]
  readonly offered?: (all: Core & Own) => Promise<Partial<Offered>>
  /** What it knows of a person's ways to sign in. */
  readonly security?: (all: Core & Own, person: string) => Promise<Partial<SecurityView>>
  /** What ends when a person leaves an account. */
  readonly leave?: (all: Core & Own, ...of: Parameters<LeavingDeps['onLeave']>) => ReturnType<LeavingDeps['onLeave']>
  readonly path?: (all: Core & Own) => PathHooks
  readonly callers?: (all: Core & Own) => CallerRules
  readonly ledger?: (all: Core & Own, ledger: Ledger) => Ledger
  readonly calls?: (all: Core & Own) => CallWarehouse | undefined
  readonly accountIn?: (all: Core & Own, token: string) => string | undefined
  readonly close?: (all: Core & Own) => Promise<unknown>
}

export function defineExtension<Core extends object, Own extends object = object, Place = unknown>({
  name,
  catalog,
  proofs = [],
  verify = [],
  logins,
  checks,
  tracer,
  formats = [],
  entries = [],
  sockets = [],
  open,
  resources,
  personal,
  endpoints,
  work,
  offered,
  security,
  leave,
  path,
  callers,
  ledger,
  calls,
  accountIn,
  close,
}: Parts<Core, Own, Place>): Extension<Core, Place, Own> {
  const resourcesOf = (all: Core & Own): Resources => ({
    resources: resources?.(all) ?? [],
    personal: personal?.(all) ?? [],
  })
  return {
    name,
    catalog,
    proofs,
    verify,
    logins,
    checks,
    tracer,
    formats,
    entries,
    sockets,
    // To be described, resources are made of nothing: they use their parts only when they run.
    describe: (nothing) => resourcesOf(nothing as Core & Own),
    async open(core) {
      // Without `open`, nothing is used besides the core.
      const own = (await open?.(core)) ?? ({} as Own)
      const all = { ...core, ...own }
      return {
        ...resourcesOf(all),
        own,
        work: work?.(all) ?? [],
        offered: async () => offered?.(all) ?? {},
        security: async (person) => security?.(all, person) ?? {},
        leave: async (...of) => (await leave?.(all, ...of)) ?? (async () => {}),
        path: path?.(all) ?? {},
        callers: callers?.(all),
        calls: calls?.(all),
        accountIn: (token) => accountIn?.(all, token),
        ledger: (plain) => ledger?.(all, plain) ?? plain,
        close: async () => close?.(all),
        mount: (place) => endpoints?.(all, place),
      }
    },
  }
}
