// A call on its way along the path: each stage knows more than the one before.
import type { Admitted, Application, Offered } from '../admission/admit.ts'
import type { LabelNames, Labels } from '../admission/labels.ts'
import type { UsualOutput } from '../admission/usual-output.ts'
import type { ObjectOwner } from '../admission/vendor-objects.ts'
import type { Route } from '../catalog/document.ts'
import type { Database } from '../database/database.ts'
import type { JobEngine } from '../jobs/engine.ts'
import type { Log } from '../kernel/log.ts'
import type { ContentSealer } from '../kernel/secret.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { JobRequest, PaidRequest } from '../protocols/protocol.ts'
import type { Unbilled } from '../reports/unbilled.ts'
import type { Attempted } from '../routing/attempt.ts'
import type { Preference } from '../routing/preference.ts'
import type { RouteSources } from '../routing/route.ts'
import type { Vendors } from '../routing/vendor.ts'
import type { Monitor, Seen, StreamWatch } from '../telemetry/monitor.ts'
import type { Refusals } from '../telemetry/refusals.ts'
import type { Upstream } from '../upstream/call.ts'
import type { Logins } from '../upstream/login.ts'
import type { Shadows } from './hooks.ts'
import type { GuardedRead } from './read.ts'
import type { CacheRule, ResponseCache, SingleFlight } from './response-cache.ts'
import type { ResponseSink } from './response-sink.ts'
import type { ShadowRead } from './shadow-read.ts'

export interface PathDeps {
  readonly database: Database
  readonly sealer: ContentSealer
  readonly ledger: Ledger
  readonly usualOutput: UsualOutput
  readonly labelNames: LabelNames
  readonly upstream: Upstream
  readonly logins: Logins
  readonly vendors: Vendors
  readonly routes: RouteSources
  readonly world: World
  readonly log: Log
  readonly monitor: Monitor
  readonly watch: StreamWatch
  readonly cache: ResponseCache
  readonly jobs: Pick<JobEngine, 'open'>
  readonly refusals: Pick<Refusals, 'note'>
  readonly shadows: Pick<Shadows, 'copy'> | undefined
  readonly unbilled: Pick<Unbilled, 'count'>
}

/** The same request to another model. */
export interface Fallback extends Offered {
  readonly paidRequest: PaidRequest
  readonly routes: readonly Route[]
}

/** A validated call of a known caller, before any money is touched. */
export interface Arrived extends Application {
  readonly paidRequest: PaidRequest | JobRequest
  /** Those of the product that can carry it. */
  readonly routes: readonly Route[]
  readonly fallbacks?: readonly Fallback[] | undefined
  /** The routing preference of the call, and what it decided. */
  readonly preference?: Preference | undefined
  readonly decided?: readonly string[] | undefined
  readonly endpoint: string
  /** Which agent calls, if one does. */
  readonly client?: string | undefined
  readonly labels?: Labels | undefined
  readonly startedMs: number
  readonly out: ResponseSink
  readonly callerHeaders: Readonly<Record<string, string>>
  /** The only vendor that may answer, because it stores the object that the request refers to. */
  readonly objectOwner?: ObjectOwner | undefined
  /** Its answer may be cached and returned to other calls. */
  readonly cache?: CacheRule | undefined
  readonly guard?: GuardedRead | undefined
  readonly shadow?: ShadowRead | undefined
}

/** A call that holds its credits. */
export interface Held extends Arrived {
  readonly admitted: Admitted
  readonly seen: Seen
  /** Identical calls wait for its answer and share it. */
  readonly flight?: SingleFlight
}

/** A call that a vendor has begun to answer. */
export interface Answered extends Held {
  readonly paidRequest: PaidRequest
  readonly attempted: Attempted
}
