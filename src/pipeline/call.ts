// A call on its way along the path: each stage knows more than the one before.
import { type Admitted, type Application, rateHeaders } from '../admission/admit.ts'
import type { Database } from '../database/database.ts'
import { Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Answer } from '../protocols/protocol.ts'
import type { Attempted } from '../routing/attempt.ts'
import type { RouteSources } from '../routing/route.ts'
import type { Vendors } from '../routing/vendor.ts'
import type { Upstream } from '../upstream/call.ts'
import type { Monitor } from './monitor.ts'
import type { Out } from './out.ts'
import type { StreamWatch } from './stream-watch.ts'

export interface PathDeps {
  readonly database: Database
  readonly ledger: Ledger
  readonly upstream: Upstream
  readonly vendors: Vendors
  readonly routes: RouteSources
  readonly world: World
  readonly log: Log
  readonly monitor: Monitor
  readonly watch: StreamWatch
}

/** A validated call of a known caller, before any money is touched. */
export interface Arrived extends Application {
  readonly door: string
  readonly startedMs: number
  readonly out: Out
  readonly callerHeaders: Readonly<Record<string, string>>
  /** The one vendor that may answer, because it keeps what the request is about. */
  readonly keeper?: string | undefined
  /** Sent with a whole answer. */
  readonly extraHeaders?: Readonly<Record<string, string>>
  /** For an answer that others may be given as well. */
  readonly share?: {
    /** What is larger is not kept, and goes out as it comes. */
    readonly bytesMax: number
    /** Sees a whole answer as soon as it is there; undefined for one that goes out as it comes. */
    landed(answer: Answer | undefined): void
  }
}

/** A call that holds its credits. */
export interface Held extends Arrived {
  readonly admitted: Admitted
}

/** A call that a vendor has begun to answer. */
export interface Answered extends Held {
  readonly attempted: Attempted
}

/** The caller has gone: not a fault of anybody's, but the reason why work stops. */
export const GONE = new Fault('request_invalid', { message: 'The caller closed the connection.' })

/** What every answer of the path tells besides its body. */
export function answerHeaders(answered: Answered): Record<string, string> {
  const headers: Record<string, string> = { 'x-tollgate-route': String(answered.attempted.candidate.number) }
  if (answered.ask.leftOut) headers['x-tollgate-left-out'] = answered.ask.leftOut
  return answered.admitted.rate ? Object.assign(headers, rateHeaders(answered.admitted.rate)) : headers
}
