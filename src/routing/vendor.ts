// What this process knows of each vendor: how many calls are open, whether it is failing, how long it takes.
import type { Vendor } from '../catalog/document.ts'
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import { Breaker, type Phase } from './breaker.ts'

export interface VendorHealth {
  readonly name: string
  readonly breaker: Phase
  readonly inFlight: number
  readonly pending: number
  readonly requests: number
  readonly errors: number
  readonly latencyMsP50: number | null
  readonly latencyMsP95: number | null
  readonly lastError: string | null
  readonly lastAtMs: number | null
}

export interface Vendors {
  /** Whether a call of this account may go there now; false while the breaker is open. */
  available(name: string, account: string): boolean
  /** Takes one of the vendor's places, waiting for one if it must; the answer gives it back. */
  enter(
    name: string,
    limits: Pick<Vendor, 'concurrencyMax' | 'pendingMax'>,
    signal: AbortSignal,
  ): Promise<() => void> | (() => void)
  succeeded(name: string, account: string, latencyMs: number): void
  /** Only what is the vendor's fault: a caller's mistake or an empty balance never counts. */
  failed(name: string, account: string, reason: string): void
  /** The call ended without telling anything about the vendor. */
  undecided(name: string, account: string): void
  health(): VendorHealth[]
}

const LATENCIES_KEPT = 200

interface State {
  inFlight: number
  waiting: Array<() => void>
  readonly breaker: Breaker
  requests: number
  errors: number
  latencies: number[]
  lastError: string | null
  lastAtMs: number | null
}

export function createVendors(world: World): Vendors {
  const states = new Map<string, State>()

  function stateOf(name: string): State {
    let state = states.get(name)
    if (!state) {
      state = {
        inFlight: 0,
        waiting: [],
        breaker: new Breaker(),
        requests: 0,
        errors: 0,
        latencies: [],
        lastError: null,
        lastAtMs: null,
      }
      states.set(name, state)
    }
    return state
  }

  function leave(state: State): void {
    const next = state.waiting.shift()
    if (next) next()
    else state.inFlight -= 1
  }

  return {
    available: (name, account) => stateOf(name).breaker.admits(account, world.elapsedMs()),
    enter(name, limits, signal) {
      const state = stateOf(name)
      const release = () => leave(state)
      if (state.inFlight < limits.concurrencyMax) {
        state.inFlight += 1
        return release
      }
      if (state.waiting.length >= limits.pendingMax)
        throw new Fault('upstream_unavailable', {
          retryAfterSeconds: 1,
          internal: { vendor: name, why: 'too many calls are waiting for it' },
        })
      return new Promise((resolve, reject) => {
        const enter = () => {
          signal.removeEventListener('abort', give)
          resolve(release)
        }
        const give = () => {
          state.waiting = state.waiting.filter((entry) => entry !== enter)
          reject(signal.reason)
        }
        state.waiting.push(enter)
        signal.addEventListener('abort', give, { once: true })
      })
    },
    succeeded(name, account, latencyMs) {
      const state = stateOf(name)
      state.breaker.succeeded(account)
      state.requests += 1
      state.lastAtMs = world.nowMs()
      if (state.latencies.length < LATENCIES_KEPT) state.latencies.push(latencyMs)
      else state.latencies[state.requests % LATENCIES_KEPT] = latencyMs
    },
    failed(name, account, reason) {
      const state = stateOf(name)
      state.breaker.failed(account, world.elapsedMs())
      state.requests += 1
      state.errors += 1
      state.lastError = reason
      state.lastAtMs = world.nowMs()
    },
    undecided: (name, account) => stateOf(name).breaker.undecided(account),
    health() {
      return [...states].map(([name, state]) => {
        const sorted = [...state.latencies].sort((a, b) => a - b)
        const at = (share: number) =>
          sorted.length === 0 ? null : Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
        return {
          name,
          breaker: state.breaker.phase(world.elapsedMs()),
          inFlight: state.inFlight,
          pending: state.waiting.length,
          requests: state.requests,
          errors: state.errors,
          latencyMsP50: at(0.5),
          latencyMsP95: at(0.95),
          lastError: state.lastError,
          lastAtMs: state.lastAtMs,
        }
      })
    },
  }
}
