// What this process knows of the credentials of vendors that have several: one that is refused or limited is put aside by
// itself, for as long as the vendor asks or for longer each time, while the others go on.
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { CredentialFault } from '../protocols/vendor-fault.ts'
import type { Candidate, HeldCredential } from './route.ts'

export interface CredentialHealth {
  readonly asideUntilMs: number | null
  readonly why: CredentialFault | null
  /** The vendor's answer when it was last put aside. */
  readonly status: number | null
  readonly lastSuccessMs: number | null
}

interface Aside {
  readonly why: CredentialFault
  readonly status: number
  /** As the vendor asks for it. */
  readonly seconds?: number | undefined
}

export interface CredentialStates {
  /** The candidate with the first of its credentials that may be used now, or why there is none. */
  choose(candidate: Candidate): Candidate | Fault
  putAside(candidate: Candidate, aside: Aside): void
  succeeded(candidate: Candidate): void
  health(vendor: string, name: string): CredentialHealth
}

const LIMITED_SECONDS = 10
const REFUSED_SECONDS = 60
const REFUSED_SECONDS_MAX = 3600

interface State {
  /** A credential that was replaced begins anew. */
  readonly secret: string | undefined
  why: CredentialFault | null
  status: number | null
  /** On the clock for durations. */
  untilMs: number
  /** Refusals in a row. */
  refusals: number
  lastSuccessMs: number | null
}

export function createCredentialStates(world: World): CredentialStates {
  const states = new Map<string, State>()

  function stateOf(vendor: string, { name, secret }: HeldCredential): State {
    const place = `${vendor} ${name}`
    let state = states.get(place)
    if (!state || state.secret !== secret) {
      state = { secret, why: null, status: null, untilMs: 0, refusals: 0, lastSuccessMs: null }
      states.set(place, state)
    }
    return state
  }

  const heldBy = ({ credential = '', target }: Candidate): HeldCredential => ({
    name: credential,
    secret: target.secret,
  })

  return {
    choose(candidate) {
      const { vendorName, credentials = [] } = candidate
      const nowMs = world.elapsedMs()
      const aside: State[] = []
      for (const one of credentials) {
        const state = stateOf(vendorName, one)
        if (state.untilMs <= nowMs) return withCredential(candidate, one)
        aside.push(state)
      }
      return noneLeft(vendorName, aside, nowMs)
    },
    putAside(candidate, { why, status, seconds }) {
      const state = stateOf(candidate.vendorName, heldBy(candidate))
      const limited = why === 'limited'
      state.refusals = limited ? 0 : state.refusals + 1
      const ownSeconds = Math.min(REFUSED_SECONDS * 2 ** (state.refusals - 1), REFUSED_SECONDS_MAX)
      const forSeconds = limited ? (seconds ?? LIMITED_SECONDS) : ownSeconds
      state.why = why
      state.status = status
      // What was under way before may ask for less than what came since.
      state.untilMs = Math.max(state.untilMs, world.elapsedMs() + forSeconds * 1000)
    },
    succeeded(candidate) {
      const state = stateOf(candidate.vendorName, heldBy(candidate))
      state.refusals = 0
      state.lastSuccessMs = world.nowMs()
    },
    health(vendor, name) {
      const state = states.get(`${vendor} ${name}`)
      const leftMs = state ? state.untilMs - world.elapsedMs() : 0
      const isAside = state !== undefined && leftMs > 0
      return {
        asideUntilMs: isAside ? Math.round(world.nowMs() + leftMs) : null,
        why: isAside ? state.why : null,
        status: isAside ? state.status : null,
        lastSuccessMs: state?.lastSuccessMs ?? null,
      }
    },
  }
}

export function withCredential(candidate: Candidate, { name, secret }: HeldCredential): Candidate {
  return { ...candidate, credential: name, target: { ...candidate.target, secret } }
}

function noneLeft(vendor: string, aside: readonly State[], nowMs: number): Fault {
  if (aside.length === 0)
    return new Fault('upstream_unavailable', { internal: { vendor, why: 'none of its credentials is there' } })
  const limited = aside.some(({ why }) => why === 'limited')
  const retryAfterSeconds = Math.max(1, Math.ceil((Math.min(...aside.map(({ untilMs }) => untilMs)) - nowMs) / 1000))
  const why = 'all of its credentials are put aside'
  return new Fault(limited ? 'upstream_rate_limited' : 'upstream_unavailable', {
    retryAfterSeconds,
    internal: { vendor, why },
  })
}
