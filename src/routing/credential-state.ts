// This process's view of the credentials of vendors that have several. A rejected or rate-limited credential is
// disabled for as long as the vendor asks, or for twice as long each time, while the others stay in use. It is disabled
// for the account whose call failed, and for all
// accounts only when several have failed with it and no call has succeeded since. So, as with breakers, one account
// cannot block it for others.
import { Fault } from '../kernel/fault.ts'
import type { World } from '../kernel/world.ts'
import type { CredentialFault } from '../protocols/vendor-fault.ts'
import type { Candidate, HeldCredential } from './route.ts'

export interface CredentialHealth {
  readonly disabledUntilMs: number | null
  readonly why: CredentialFault | null
  /** The vendor's answer when it was last disabled. */
  readonly status: number | null
  readonly lastSuccessMs: number | null
}

interface Rejection {
  readonly why: CredentialFault
  readonly status: number
  /** The pause that the vendor asked for. */
  readonly seconds?: number | undefined
}

const LIMITED_SECONDS = 10
const REFUSED_SECONDS = 60
const REFUSED_SECONDS_MAX = 3600
/**
 * The number of accounts that must fail before a credential is disabled for all: the first time, and each further time.
 */
const ACCOUNTS_TO_DISABLE = 3
const ACCOUNTS_AGAIN = 2
/** An account beyond this limit is forgotten, so its next call tries the credential once more. */
const ACCOUNTS_MAX = 1_000

interface Pause {
  /** On the clock for durations. */
  untilMs: number
  /** Refusals in a row. */
  refusals: number
}

interface State {
  /** A replaced credential starts with a new state. */
  readonly secret: string | undefined
  why: CredentialFault | null
  status: number | null
  readonly byAccount: Map<string, Pause>
  all: Pause
  /** The accounts that failed since the last success, or since it was disabled for all. */
  readonly met: Set<string>
  lastSuccessMs: number | null
}

export function createCredentialStates(world: World) {
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
    /**
     * The candidate with the first of its credentials that this account may use now, or the fault why there is none.
     */
    choose(candidate: Candidate, account: string): Candidate | Fault {
      const { vendorName, credentials = [] } = candidate
      const nowMs = world.elapsedMs()
      const disabled: Left[] = []
      for (const one of credentials) {
        const { all, byAccount, why } = stateOf(vendorName, one)
        const untilMs = Math.max(all.untilMs, byAccount.get(account)?.untilMs ?? 0)
        if (untilMs <= nowMs) return withCredential(candidate, one)
        disabled.push({ untilMs, why })
      }
      return noneLeft(vendorName, disabled, nowMs)
    },
    disable(candidate: Candidate, account: string, rejection: Rejection): void {
      const state = stateOf(candidate.vendorName, heldBy(candidate))
      const { byAccount, met, all } = state
      const nowMs = world.elapsedMs()
      state.why = rejection.why
      state.status = rejection.status
      const own = byAccount.get(account) ?? { untilMs: 0, refusals: 0 }
      pause(own, rejection, nowMs)
      // The newest goes last, so that the account with the oldest failure is forgotten first.
      byAccount.delete(account)
      byAccount.set(account, own)
      for (const oldest of byAccount.size > ACCOUNTS_MAX ? byAccount.keys().take(1) : []) byAccount.delete(oldest)
      if (met.add(account).size < (all.untilMs === 0 ? ACCOUNTS_TO_DISABLE : ACCOUNTS_AGAIN)) return
      met.clear()
      pause(all, rejection, nowMs)
    },
    succeeded(candidate: Candidate, account: string): void {
      const state = stateOf(candidate.vendorName, heldBy(candidate))
      state.byAccount.delete(account)
      state.met.clear()
      if (state.all.untilMs <= world.elapsedMs()) state.all = { untilMs: 0, refusals: 0 }
      state.lastSuccessMs = world.nowMs()
    },
    health(vendor: string, name: string): CredentialHealth {
      const state = states.get(`${vendor} ${name}`)
      const untilMs = state ? Math.max(state.all.untilMs, ...state.byAccount.values().map((one) => one.untilMs)) : 0
      const leftMs = untilMs - world.elapsedMs()
      const isDisabled = state !== undefined && leftMs > 0
      return {
        disabledUntilMs: isDisabled ? Math.round(world.nowMs() + leftMs) : null,
        why: isDisabled ? state.why : null,
        status: isDisabled ? state.status : null,
        lastSuccessMs: state?.lastSuccessMs ?? null,
      }
    },
  }
}

export function withCredential(candidate: Candidate, { name, secret }: HeldCredential): Candidate {
  return { ...candidate, credential: name, target: { ...candidate.target, secret } }
}

type Left = Pick<Pause, 'untilMs'> & Pick<State, 'why'>

function pause(one: Pause, { why, seconds }: Rejection, nowMs: number): void {
  const limited = why === 'rate_limited'
  // Failures of calls that were in flight when the credential was disabled do not lengthen the pause.
  if (!limited && one.untilMs > nowMs) return
  one.refusals = limited ? 0 : one.refusals + 1
  const ownSeconds = Math.min(REFUSED_SECONDS * 2 ** (one.refusals - 1), REFUSED_SECONDS_MAX)
  const forSeconds = limited ? (seconds ?? LIMITED_SECONDS) : ownSeconds
  // A call that was in flight may ask for a shorter pause than a later one, so the longer pause wins.
  one.untilMs = Math.max(one.untilMs, nowMs + forSeconds * 1000)
}

function noneLeft(vendor: string, disabled: readonly Left[], nowMs: number): Fault {
  if (disabled.length === 0)
    return new Fault('upstream_unavailable', { internal: { vendor, why: 'none of its credentials has a value' } })
  const limited = disabled.some(({ why }) => why === 'rate_limited')
  const retryAfterSeconds = Math.max(1, Math.ceil((Math.min(...disabled.map(({ untilMs }) => untilMs)) - nowMs) / 1000))
  const why = 'all of its credentials are disabled'
  return new Fault(limited ? 'upstream_rate_limited' : 'upstream_unavailable', {
    retryAfterSeconds,
    internal: { vendor, why },
  })
}
