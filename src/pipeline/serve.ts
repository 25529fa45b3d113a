// The whole path of a paid call, on one screen: admit → route → attempt → relay → settle.
import { type Admitted, type Application, admit, rateHeaders } from '../admission/admit.ts'
import { replay } from '../admission/idempotency.ts'
import type { Model } from '../catalog/document.ts'
import type { Database } from '../database/database.ts'
import { asFault, Fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Answer } from '../protocols/protocol.ts'
import { type Attempted, attempt } from '../routing/attempt.ts'
import { type RouteSources, routeAsk } from '../routing/route.ts'
import type { Vendors } from '../routing/vendor.ts'
import type { Upstream } from '../upstream/call.ts'
import type { Monitor } from './monitor.ts'
import type { Out } from './out.ts'
import { LEFT_STATUS, relayAnswer, relayStream } from './relay.ts'
import { release } from './settle.ts'
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
  readonly traits: Model['traits']
  readonly startedMs: number
  readonly out: Out
  readonly callerHeaders: Readonly<Record<string, string>>
  /** Sent with a whole answer. */
  readonly extraHeaders?: Readonly<Record<string, string>>
  /** Sees a whole answer before it is sent. */
  readonly onAnswer?: (answer: Answer) => void
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

export async function serve(arrived: Arrived, deps: PathDeps): Promise<void> {
  const seen = deps.monitor.begin(arrived)
  try {
    const admitted = await admit(arrived, deps.ledger)
    if (admitted === 'replay') {
      await replay(arrived, deps.database)
      seen.end({ status: 200, outcome: 'replayed', charged: 0n })
      return
    }
    const held: Held = { ...arrived, admitted }
    seen.held(admitted.held)
    seen.stage('admit')
    try {
      const answered = await answer(held, deps)
      seen.stage('vendor')
      try {
        const settled =
          held.ask.stream && answered.attempted.exchange.stream
            ? await relayStream(answered, deps)
            : await relayAnswer(answered, deps)
        seen.stage('relay')
        seen.end(settled)
      } catch (error) {
        answered.attempted.reply.abort()
        throw error
      } finally {
        answered.attempted.leave()
      }
    } catch (error) {
      // A no-op when the relay has already resolved the hold.
      await release(held, statusOf(error), deps)
      throw error
    }
  } catch (error) {
    seen.end({ status: statusOf(error), outcome: 'refused', charged: 0n })
    throw error
  }
}

function statusOf(error: unknown): number {
  return error === GONE ? LEFT_STATUS : asFault(error).status
}

async function answer(held: Held, deps: PathDeps): Promise<Answered> {
  const { ask, product, catalog, admitted } = held
  if (held.out.signal.aborted) throw GONE
  const candidates = routeAsk(ask, product.routes, held.traits, catalog.document, deps.routes)
  const attempted = await attempt(
    ask,
    candidates,
    {
      requestId: held.requestId,
      createdSeconds: Math.floor(deps.world.nowMs() / 1000),
      signal: held.out.signal,
      callerHeaders: held.callerHeaders,
      ...(admitted.outputTokensCap === undefined ? {} : { outputTokensCap: admitted.outputTokensCap }),
    },
    deps,
  )
  return { ...held, attempted }
}

/** What every answer of the path tells besides its body. */
export function answerHeaders(answered: Answered): Record<string, string> {
  const headers: Record<string, string> = { 'x-tollgate-route': String(answered.attempted.candidate.number) }
  return answered.admitted.rate ? Object.assign(headers, rateHeaders(answered.admitted.rate)) : headers
}
