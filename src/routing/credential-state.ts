// What this process knows of the credentials of vendors that have several: one that is refused or limited is put aside by
// itself, for as long as the vendor asks or for longer each time, while the others go on. It is put aside for the account whose call met that, and for
// all only when several accounts have met it and nobody has succeeded since: as with breakers, nobody closes it to others by what they ask for.
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
  /** The candidate with the first of its credentials that may be used now by this account, or why there is none. */
  choose(candidate: Candidate, account: string): Candidate | Fault
  putAside(candidate: Candidate, account: string, aside: Aside): void
  succeeded(candidate: Candidate, account: string): void
  health(vendor: string, name: string): CredentialHealth
}

const LIMITED_SECONDS = 10
const REFUSED_SECONDS = 60
const REFUSED_SECONDS_MAX = 3600
/** So many accounts must have met it before it is put aside for all, and so many before it is again. */
const ACCOUNTS_TO_PUT_ASIDE = 3
const ACCOUNTS_AGAIN = 2
/** Whoever is forgotten meets it once more. */
const ACCOUNTS_MAX = 1_000

interface Pause {
  /** On the clock for durations. */
  untilMs: number
  /** Refusals in a row. */
  refusals: number
}

interface State {
  /** A credential that was replaced begins anew. */
  readonly secret: string | undefined
  why: CredentialFault | null
  status: number | null
  readonly byAccount: Map<string, Pause>
  all: Pause
  /** Who has met it since anybody succeeded, or since it was put aside for all. */
  readonly met: Set<string>
  lastSuccessMs: number | null
}

export function createCredentialStates(world: World): CredentialStates {
  const states = new Map<string, State>()

  function stateOf(vendor: string, { name, secret }: HeldCredential): State {
    const place = `${vendor} ${name}`
    let state = states.get(place)
    if (!state || state.secret !== secret) {
      const blank = { why: null, status: null, all: { untilMs: 0, refusals: 0 }, lastSuccessMs: null }
      state = { secret, byAccount: new Map(), met: new Set(), ...blank }
      states.set(place, state)
    }
    return state
  }

  const heldBy = ({ credential = '', target }: Candidate): HeldCredential => ({
    name: credential,
    secret: target.secret,
  })

  return {
    choose(candidate, account) {
      const { vendorName, credentials = [] } = candidate
      const nowMs = world.elapsedMs()
      const aside: Left[] = []
      for (const one of credentials) {
        const { all, byAccount, why } = stateOf(vendorName, one)
        const untilMs = Math.max(all.untilMs, byAccount.get(account)?.untilMs ?? 0)
        if (untilMs <= nowMs) return withCredential(candidate, one)
        aside.push({ untilMs, why })
      }
      return noneLeft(vendorName, aside, nowMs)
    },
    putAside(candidate, account, aside) {
      const state = stateOf(candidate.vendorName, heldBy(candidate))
      const { byAccount, met, all } = state
      const nowMs = world.elapsedMs()
      state.why = aside.why
      state.status = aside.status
      const own = byAccount.get(account) ?? { untilMs: 0, refusals: 0 }
      pause(own, aside, nowMs)
      // The newest last, so that the one that was not met for longest is forgotten.
      byAccount.delete(account)
      byAccount.set(account, own)
      for (const oldest of byAccount.size > ACCOUNTS_MAX ? byAccount.keys().take(1) : []) byAccount.delete(oldest)
      if (met.add(account).size < (all.untilMs === 0 ? ACCOUNTS_TO_PUT_ASIDE : ACCOUNTS_AGAIN)) return
      met.clear()
      pause(all, aside, nowMs)
    },
    succeeded(candidate, account) {
      const state = stateOf(candidate.vendorName, heldBy(candidate))
      state.byAccount.delete(account)
      state.met.clear()
      if (state.all.untilMs <= world.elapsedMs()) state.all = { untilMs: 0, refusals: 0 }
      state.lastSuccessMs = world.nowMs()
    },
    health(vendor, name) {
      const state = states.get(`${vendor} ${name}`)
      const untilMs = state ? Math.max(state.all.untilMs, ...state.byAccount.values().map((one) => one.untilMs)) : 0
      const leftMs = untilMs - world.elapsedMs()
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

type Left = Pick<Pause, 'untilMs'> & Pick<State, 'why'>

function pause(one: Pause, { why, seconds }: Aside, nowMs: number): void {
  const limited = why === 'limited'
  // Calls that were under way when it was put aside say nothing new, and are no reason for a longer pause.
  if (!limited && one.untilMs > nowMs) return
  one.refusals = limited ? 0 : one.refusals + 1
  const ownSeconds = Math.min(REFUSED_SECONDS * 2 ** (one.refusals - 1), REFUSED_SECONDS_MAX)
  const forSeconds = limited ? (seconds ?? LIMITED_SECONDS) : ownSeconds
  // What was under way before may ask for less than what came since.
  one.untilMs = Math.max(one.untilMs, nowMs + forSeconds * 1000)
}

function noneLeft(vendor: string, aside: readonly Left[], nowMs: number): Fault {
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
