// What happens right now and what just happened: the live list, the counters, and one log line per call.
import { type Credits, formatCredits } from '../kernel/credits.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import type { Usage } from '../meter/usage.ts'
import type { Tried } from '../routing/attempt.ts'
import type { TracedStage, Tracer } from './trace.ts'

export interface Seen {
  /** An attempt at a vendor has ended. Undefined while nobody wants to know. */
  readonly tried: ((attempt: Tried) => void) | undefined
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

type Beginning = Parameters<Monitor['begin']>[0]

interface MonitorOptions {
  readonly world: World
  readonly log: Log
  readonly meters?: Meters
  readonly tracer?: Tracer
}

export function createMonitor(options: MonitorOptions): Monitor {
  const ring: LiveCall[] = []
  let next = 0
  const running = { count: 0 }
  return {
    begin(beginning) {
      const seen = new SeenCall(beginning, options, running)
      ring[next] = seen.call
      next = (next + 1) % KEPT
      return seen
    },
    impossible: (product) => options.meters?.impossible(product),
    live: () => [...ring.slice(next), ...ring.slice(0, next)].filter(Boolean).reverse(),
    get running() {
      return running.count
    },
  }
}

class SeenCall implements Seen {
  readonly call: LiveCall
  readonly tried: Seen['tried']
  readonly #beginning: Beginning
  readonly #options: MonitorOptions
  readonly #running: { count: number }
  readonly #stages: TracedStage[] | undefined
  #stageMs: number

  constructor(beginning: Beginning, options: MonitorOptions, running: { count: number }) {
    const { requestId, principal, ask, endpoint, startedMs } = beginning
    this.call = {
      id: requestId,
      atMs: options.world.nowMs(),
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
    this.#beginning = beginning
    this.#options = options
    this.#running = running
    this.#stageMs = startedMs
    this.#stages = options.tracer && []
    this.tried = options.tracer && ((attempt) => this.#trace(attempt))
    running.count += 1
  }

  /** On the wall clock. */
  #atMs(elapsedMs: number): number {
    return this.call.atMs + (elapsedMs - this.#beginning.startedMs)
  }

  #trace({ vendor, startMs, endMs, status, fault }: Tried): void {
    const attributes = {
      'tollgate.vendor': vendor,
      ...(status === undefined ? {} : { 'http.response.status_code': status }),
      ...(fault === undefined ? {} : { 'error.type': fault }),
    }
    const span = { name: `attempt ${vendor}`, startMs: this.#atMs(startMs), endMs: this.#atMs(endMs) }
    this.#stages?.push({ ...span, attempt: { failed: fault !== undefined, attributes } })
  }

  stage(name: Stage): void {
    const nowMs = this.#options.world.elapsedMs()
    this.#options.meters?.stage(name, (nowMs - this.#stageMs) / 1000)
    this.#stages?.push({ name, startMs: this.#atMs(this.#stageMs), endMs: this.#atMs(nowMs) })
    this.#stageMs = nowMs
  }

  end({ status, outcome, charged, usage }: Parameters<Seen['end']>[0]): void {
    const { call } = this
    if (!call.running) return
    const { world, meters, log } = this.#options
    const { requestId, principal, startedMs } = this.#beginning
    this.#running.count -= 1
    call.running = false
    call.status = status
    call.outcome = outcome
    call.charged = charged
    call.durationMs = Math.round(world.elapsedMs() - startedMs)
    meters?.call(call, usage)
    this.#traceCall()
    log.info(
      {
        requestId,
        account: call.account,
        key: principal.keyId,
        product: call.product,
        endpoint: call.endpoint,
        stream: call.stream,
        status,
        outcome,
        charged: formatCredits(charged),
        ms: call.durationMs,
      },
      'call',
    )
  }

  #traceCall(): void {
    const { id, atMs, endpoint, durationMs, status, product, outcome } = this.call
    this.#options.tracer?.record({
      name: endpoint,
      traceparent: this.#beginning.callerHeaders.traceparent,
      startMs: atMs,
      endMs: atMs + durationMs,
      status: status ?? 0,
      attributes: {
        'tollgate.request_id': id,
        'tollgate.product': product,
        'tollgate.outcome': outcome ?? '',
      },
      stages: this.#stages ?? [],
    })
  }
}
