// What an extension finds out about vendors by asking them. Without it nobody is asked.
import type { CatalogDocument, Route } from '../catalog/document.ts'
import type { CatalogStore } from '../catalog/store.ts'
import type { Changes } from '../database/changes.ts'
import type { Queryable } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import type { Target } from '../protocols/protocol.ts'
import type { ModelFacts } from '../protocols/text/text.ts'
import type { Upstream } from '../upstream/call.ts'
import type { Logins } from '../upstream/login.ts'
import type { RouteSources } from './route.ts'
import type { Vendors } from './vendor.ts'
import type { ProbeState, ProbeView, VendorTest } from './views.ts'

export interface CheckDeps {
  readonly upstream: Upstream
  readonly logins: Logins
  readonly world: World
  /** Where the results of probes are: one place for all ledgers of an installation. */
  readonly database: Queryable
  readonly changes: Pick<Changes, 'watch'>
  readonly catalog: Pick<CatalogStore, 'current'>
  readonly sources: Pick<RouteSources, 'sandboxUrl' | 'credential'>
  readonly vendors: Pick<Vendors, 'probed' | 'probeEnded' | 'awaitsProbe' | 'credentials'>
  readonly log: Log
  readonly meter: (vendor: string, state: ProbeState) => void
}

export interface Prober {
  /** Reads the results of other processes and starts the probes that are due. These continue after it has returned. */
  tick(): Promise<void>
  /** Null: the vendor is not probed. */
  view(vendor: string): ProbeView | null
  /** What probes find of each vendor that was probed. */
  found(): readonly { readonly vendor: string; readonly state: ProbeState }[]
  /** Aborts the running probes and starts no more. */
  stop(): void
  /** Resolves when none is running. */
  idle(): Promise<unknown>
}

interface TestedRoute {
  readonly uid: string
  readonly route: Route
  /** Absent: the model's kind has no small call. */
  readonly facts?: ModelFacts
}

export interface VendorChecks {
  readonly prober: Prober
  /** The cheapest call that shows most about the vendor; undefined when no route uses it. */
  testedRoute(vendor: string, document: CatalogDocument): TestedRoute | undefined
  /** Lists its models and makes the smallest call. `isForeign`: with an account's BYOK key. */
  test(target: Target, call: ModelFacts | undefined, isForeign?: boolean): Promise<VendorTest>
}

const untested = (): never => {
  throw new Fault('not_found', { message: 'This gateway tests no vendors: its extension "probes" is switched off.' })
}

export const NO_CHECKS: VendorChecks = {
  prober: { tick: async () => {}, view: () => null, found: () => [], stop: () => {}, idle: async () => {} },
  testedRoute: untested,
  test: untested,
}
