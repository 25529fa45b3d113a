// This process's view of each vendor: calls in flight, circuit breaker, latency.
import type { Vendor } from '../catalog/document.ts'
import { Fault } from '../kernel/fault.ts'
import { Semaphore, type SemaphoreRules } from '../kernel/semaphore.ts'
import type { World } from '../kernel/world.ts'
import type { Refusal } from '../protocols/vendor-fault.ts'
import { Breaker, type Phase, type Probed } from './breaker.ts'
import { createCredentialStates } from './credential-state.ts'

export interface VendorHealth {
  readonly name: string
  readonly breaker: Phase
  /** Why the breaker is not closed, in words, and since when. */
  readonly reason: string | null
  readonly sinceMs: number | null
  readonly inFlight: number
  readonly pending: number
  readonly requests: number
  readonly errors: number
  /** The last RECENT_MINUTES only, to judge its current health. */
  readonly recent: { readonly minutes: number; readonly requests: number; readonly errors: number }
  readonly latencyMsP50: number | null
  readonly latencyMsP95: number | null
  /** The samples of both percentiles. */
  readonly latenciesMs: readonly number[]
  readonly lastError: string | null
  readonly lastAtMs: number | null
  readonly lastSuccessMs: number | null
}

interface VendorAnswer {
  readonly status: number
  readonly latencyMs: number
  /** Set unless the status is 2xx. */
  readonly refusal?: Pick<Refusal, 'vendorsFault'> | undefined
  readonly product?: string
}

/** One upstream call, for the counters. */
export interface Asked {
  readonly vendor: string
  readonly product: string
  readonly failed: boolean
  /** Set when the vendor answered. */
  readonly latencyMs?: number | undefined
}

type Places = Pick<Vendor, 'concurrencyMax' | 'pendingMax'>

const placesOf = (vendor: string, { concurrencyMax, pendingMax }: Places): SemaphoreRules => ({
  unitsMax: concurrencyMax,
  waitersMax: pendingMax,
  refusal: () =>
    new Fault('upstream_unavailable', {
      retryAfterSeconds: 1,
      internal: { vendor, why: 'too many calls are waiting for it' },
    }),
})

/** What this process knows of all vendors, and where calls wait for them. */
export type Vendors = ReturnType<typeof createVendors>

const LATENCIES_KEPT = 200
/** The weight of one call in the moving mean. */
const NEWEST = 0.2
/** Shorter answers say little about the speed. */
const TOKENS_TELLING = 20
const RECENT_MINUTES = 10
/** A copy is sent only while less than this part (one in so many) of the vendor's places is taken. */
const COPIES_PART = 2
const MINUTE_MS = 60_000

class State {
  readonly places: Semaphore
  /** The limits from which the rules of `places` were made. */
  limits: Places | undefined
  readonly breaker = new Breaker()
  /** The abort functions of running copies, the oldest first. */
  readonly copies = new Set<() => void>()
  requests = 0
  errors = 0
  /** A ring buffer: each minute overwrites the oldest one. */
  readonly minutes: { minute: number; requests: number; errors: number }[] = []
  latencies: number[] = []
  /** An exponential moving average. */
  latencyMs: number | undefined
  tokensPerSecond: number | undefined
  lastError: string | null = null
  lastAtMs: number | null = null
  lastSuccessMs: number | null = null

  constructor(name: string) {
    this.places = new Semaphore(placesOf(name, { concurrencyMax: 1, pendingMax: 0 }))
  }

  readonly leave = () => this.places.give()
}

export function createVendors(world: World, listeners: readonly ((asked: Asked) => void)[] = []) {
  const states = new Map<string, State>()

  function stateOf(name: string): State {
    let state = states.get(name)
    if (!state) {
      state = new State(name)
      states.set(name, state)
    }
    return state
  }

  function count(state: State, errors: 0 | 1): void {
    state.requests += 1
    state.errors += errors
    const minute = Math.floor(world.elapsedMs() / MINUTE_MS)
    const place = minute % RECENT_MINUTES
    const kept = state.minutes[place]
    if (kept?.minute === minute) {
      kept.requests += 1
      kept.errors += errors
    } else state.minutes[place] = { minute, requests: 1, errors }
  }

  function recentOf({ minutes }: State): VendorHealth['recent'] {
    const since = Math.floor(world.elapsedMs() / MINUTE_MS) - RECENT_MINUTES
    const recent = { minutes: RECENT_MINUTES, requests: 0, errors: 0 }
    for (const one of minutes) {
      // The ring has holes until every slot was used once.
      if (!one || one.minute <= since) continue
      recent.requests += one.requests
      recent.errors += one.errors
    }
    return recent
  }

  /** Records that the vendor did not answer, by its own fault. */
  function failed(name: string, account: string, reason: string, product = ''): void {
    for (const hear of listeners) hear({ vendor: name, product, failed: true })
    const state = stateOf(name)
    state.breaker.failed(account, world.elapsedMs())
    count(state, 1)
    state.lastError = reason
    state.lastAtMs = world.nowMs()
  }

  function breakerView({ breaker, lastError }: State): Pick<VendorHealth, 'breaker' | 'reason' | 'sinceMs'> {
    const nowMs = world.elapsedMs()
    const { phase, sinceMs, probed } = breaker.state(nowMs)
    if (probed) return { breaker: phase, reason: `${probeWords(probed)}: ${probed.message}`, sinceMs: probed.sinceMs }
    if (sinceMs === undefined) return { breaker: phase, reason: null, sinceMs: null }
    const reason = `its calls failed, the last one with ${lastError}`
    return { breaker: phase, reason, sinceMs: Math.round(world.nowMs() - (nowMs - sinceMs)) }
  }

  return {
    /** Whether this account may call the vendor now; false while the breaker is open. */
    available(name: string, account: string): boolean {
      const { breaker } = stateOf(name)
      return breaker.isQuiet || breaker.admits(account, world.elapsedMs())
    },
    /**
     * The reason why calls of this account should avoid the vendor although the breaker admits them: its probes fail.
     */
    givesWay(name: string, account: string): string | undefined {
      const failing = states.get(name)?.breaker.givesWay(account, world.elapsedMs())
      return failing && probeWords(failing)
    },
    /** What the last probes found; undefined: it is not probed any more. */
    probed: (name: string, found: Probed | undefined) => stateOf(name).breaker.probed(found),
    /** A probe has ended that began then, on the clock for durations. */
    probeEnded(name: string, succeeded: boolean, atMs: number): void {
      const { breaker } = stateOf(name)
      if (succeeded) breaker.probeSucceeded(atMs)
      else breaker.probeFailed()
    },
    /** Whether calls or probes find that it fails, and a probe may say when that has ended. */
    awaitsProbe: (name: string) => stateOf(name).breaker.awaitsProbe(world.elapsedMs()),
    /** Takes one of the vendor's slots, waiting if none is free. The returned function frees it. */
    enter(name: string, limits: Places, signal: AbortSignal): Promise<() => void> | (() => void) {
      const state = stateOf(name)
      // The catalog may have changed the limits.
      if (state.limits !== limits) {
        state.limits = limits
        state.places.rules = placesOf(name, limits)
      }
      const { places, leave, copies } = state
      if (copies.size > 0 && places.used + copies.size >= limits.concurrencyMax)
        for (const giveWay of copies.keys().take(1)) giveWay()
      return places.take(1, signal)?.then(() => leave) ?? leave
    },
    /**
     * A slot for a shadow copy, in addition to those of calls. When calls need all slots, the oldest copy is aborted.
     * Undefined: there is no room, or the vendor's breaker is not closed.
     */
    enterCopy(name: string, { concurrencyMax }: Places, giveWay: () => void): (() => void) | undefined {
      const { breaker, copies, places } = stateOf(name)
      const isQuiet = (places.used + copies.size) * COPIES_PART < concurrencyMax
      if (!isQuiet || breaker.state(world.elapsedMs()).phase !== 'closed') return undefined
      const leave = () => void copies.delete(giveAway)
      const giveAway = () => {
        leave()
        giveWay()
      }
      copies.add(giveAway)
      return leave
    },
    /**
     * Records an answer for the breaker and the figures. A refusal counts against the vendor only if it is the vendor's
     * fault.
     */
    answered(name: string, account: string, { status, latencyMs, refusal, product = '' }: VendorAnswer) {
      if (refusal?.vendorsFault) return failed(name, account, `HTTP ${status}`, product)
      const asked = { vendor: name, product, failed: false, latencyMs: refusal ? undefined : latencyMs }
      for (const hear of listeners) hear(asked)
      const state = stateOf(name)
      if (!state.breaker.isQuiet) state.breaker.succeeded(account)
      count(state, 0)
      state.lastAtMs = world.nowMs()
      // A refusal is quick and says nothing about the latency of an answer.
      if (refusal) return
      state.lastSuccessMs = state.lastAtMs
      state.latencyMs = (state.latencyMs ?? latencyMs) * (1 - NEWEST) + latencyMs * NEWEST
      if (state.latencies.length < LATENCIES_KEPT) state.latencies.push(latencyMs)
      else state.latencies[state.requests % LATENCIES_KEPT] = latencyMs
    },
    failed,
    /** The call ended without a result that says something about the vendor. */
    undecided: (name: string, account: string) => stateOf(name).breaker.undecided(account),
    credentials: createCredentialStates(world),
    /** The recent latency; undefined before the first call, infinite when the vendor was called and never answered. */
    latencyMs(name: string): number | undefined {
      const { latencyMs, requests } = states.get(name) ?? { requests: 0 }
      return latencyMs ?? (requests > 0 ? Number.POSITIVE_INFINITY : undefined)
    },
    /** Records how fast the vendor wrote an answer. */
    wrote(name: string, tokens: number, ms: number): void {
      if (tokens < TOKENS_TELLING || ms <= 0) return
      const state = stateOf(name)
      const now = (tokens / ms) * 1000
      state.tokensPerSecond = (state.tokensPerSecond ?? now) * (1 - NEWEST) + now * NEWEST
    },
    /** How many calls of this process it works on. */
    inFlight: (name: string) => states.get(name)?.places.used ?? 0,
    /** How many output tokens it recently wrote in a second; undefined before the first stream. */
    tokensPerSecond: (name: string) => states.get(name)?.tokensPerSecond,
    health: (): VendorHealth[] =>
      [...states].map(([name, state]) => ({
        name,
        ...breakerView(state),
        inFlight: state.places.used,
        pending: state.places.waiting,
        requests: state.requests,
        errors: state.errors,
        recent: recentOf(state),
        ...spreadOf(state.latencies),
        lastError: state.lastError,
        lastAtMs: state.lastAtMs,
        lastSuccessMs: state.lastSuccessMs,
      })),
  }
}

const probeWords = ({ failures }: Probed) =>
  failures === 1 ? 'its last probe failed' : `its last ${failures} probes failed`

function spreadOf(latenciesMs: readonly number[]) {
  const sorted = [...latenciesMs].sort((a, b) => a - b)
  const at = (share: number) =>
    sorted.length === 0 ? null : Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
  return { latencyMsP50: at(0.5), latencyMsP95: at(0.95), latenciesMs }
}

const WORST: readonly Phase[] = ['open', 'half-open', 'closed']

function worseOf(a: VendorHealth, b: VendorHealth): Pick<VendorHealth, 'breaker' | 'reason' | 'sinceMs'> {
  const { breaker, reason, sinceMs } = WORST.indexOf(b.breaker) < WORST.indexOf(a.breaker) ? b : a
  return { breaker, reason, sinceMs }
}

/** Merges the views of several processes: sums, the worst breaker, the latest error. */
export function mergeHealth(parts: readonly (readonly VendorHealth[])[]): VendorHealth[] {
  const byName = new Map<string, VendorHealth>()
  for (const one of parts.flat()) {
    const before = byName.get(one.name)
    byName.set(one.name, before ? both(before, one) : one)
  }
  return [...byName.values()]
}

function both(a: VendorHealth, b: VendorHealth): VendorHealth {
  const later = (b.lastAtMs ?? 0) > (a.lastAtMs ?? 0) ? b : a
  return {
    name: a.name,
    ...worseOf(a, b),
    inFlight: a.inFlight + b.inFlight,
    pending: a.pending + b.pending,
    requests: a.requests + b.requests,
    errors: a.errors + b.errors,
    recent: {
      minutes: Math.max(a.recent.minutes, b.recent.minutes),
      requests: a.recent.requests + b.recent.requests,
      errors: a.recent.errors + b.recent.errors,
    },
    ...spreadOf([...a.latenciesMs, ...b.latenciesMs]),
    lastError: later.lastError ?? a.lastError ?? b.lastError,
    lastAtMs: later.lastAtMs,
    lastSuccessMs: a.lastSuccessMs === null ? b.lastSuccessMs : Math.max(a.lastSuccessMs, b.lastSuccessMs ?? 0),
  }
}
