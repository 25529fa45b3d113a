// What happens right now and what just happened: the live list, the counters, and one log line per call.
import { type Credits, formatCredits } from '../kernel/credits.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import type { Usage } from '../meter/usage.ts'
import type { Tried } from '../routing/attempt.ts'
import type { TracedStage, Tracer } from './trace.ts'

export interface Seen {
  /** An attempt at a vendor has ended. */
  readonly tried: (attempt: Tried) => void
  /** A stage of the path has ended now; stages follow one another. */
  stage(name: Stage): void
  end(ending: { status: number; outcome: string; charged: Credits; usage?: Usage }): void
}

type Stage = 'admit' | 'vendor' | 'relay'

export interface LiveCall {
  readonly id: string
  readonly atMs: number
  readonly account: string
  readonly product: string
  readonly endpoint: string
  readonly stream: boolean
  running: boolean
  status: number | null
  outcome: string | null
  charged: Credits
  durationMs: number
}

export interface Meters {
  call(call: LiveCall, usage: Usage | undefined): void
  stage(name: Stage, seconds: number): void
  impossible(product: string): void
}

export interface Monitor {
  begin(call: {
    readonly requestId: string
    readonly principal: { readonly accountId: string; readonly keyId: string }
    readonly ask: { readonly product: string; readonly stream: boolean }
    readonly endpoint: string
    readonly startedMs: number
    readonly callerHeaders: Readonly<Record<string, string>>
  }): Seen
  /** A vendor reported usage that a call of this product cannot have had. */
  impossible(product: string): void
  live(): LiveCall[]
  readonly running: number
}

const KEPT = 200

export function createMonitor(options: { world: World; log: Log; meters?: Meters; tracer?: Tracer }): Monitor {
  const { world, log, meters, tracer } = options
  const ring: LiveCall[] = []
  let next = 0
  let running = 0
  return {
    begin({ requestId, principal, ask, endpoint, startedMs, callerHeaders }) {
      const call: LiveCall = {
        id: requestId,
        atMs: world.nowMs(),
        account: principal.accountId,
        product: ask.product,
        endpoint,
        stream: ask.stream,
        running: true,
        status: null,
        outcome: null,
        charged: 0n,
        durationMs: 0,
      }
      ring[next] = call
      next = (next + 1) % KEPT
      running += 1
      let stageMs = startedMs
      const stages: TracedStage[] = []
      const sinceStartMs = (ms: number) => call.atMs + (ms - startedMs)
      return {
        tried({ vendor, startMs, endMs, status, fault }) {
          if (!tracer) return
          const attributes = {
            'tollgate.vendor': vendor,
            ...(status === undefined ? {} : { 'http.response.status_code': status }),
            ...(fault === undefined ? {} : { 'error.type': fault }),
          }
          const span = { name: `attempt ${vendor}`, startMs: sinceStartMs(startMs), endMs: sinceStartMs(endMs) }
          stages.push({ ...span, attempt: { failed: fault !== undefined, attributes } })
        },
        stage(name) {
          const nowMs = world.elapsedMs()
          meters?.stage(name, (nowMs - stageMs) / 1000)
          if (tracer) stages.push({ name, startMs: sinceStartMs(stageMs), endMs: sinceStartMs(nowMs) })
          stageMs = nowMs
        },
        end({ status, outcome, charged, usage }) {
          if (!call.running) return
          running -= 1
          call.running = false
          call.status = status
          call.outcome = outcome
          call.charged = charged
          call.durationMs = Math.round(world.elapsedMs() - startedMs)
          meters?.call(call, usage)
          tracer?.record({
            name: endpoint,
            traceparent: callerHeaders.traceparent,
            startMs: call.atMs,
            endMs: call.atMs + call.durationMs,
            status,
            attributes: {
              'tollgate.request_id': requestId,
              'tollgate.product': call.product,
              'tollgate.outcome': outcome,
            },
            stages,
          })
          log.info(
            {
              requestId,
              account: call.account,
              key: principal.keyId,
              product: call.product,
              endpoint,
              stream: call.stream,
              status,
              outcome,
              charged: formatCredits(charged),
              ms: call.durationMs,
            },
            'call',
          )
        },
      }
    },
    impossible: (product) => meters?.impossible(product),
    live: () => [...ring.slice(next), ...ring.slice(0, next)].filter(Boolean).reverse(),
    get running() {
      return running
    },
  }
}
