// The circuit breaker of one vendor. An account whose calls fail is stopped by its own failures; all are stopped only when
// several accounts have failed and nobody has succeeded since. So nobody can close a vendor to others with requests that it
// cannot digest, and a vendor that is down is left alone all the same.

export type Phase = 'closed' | 'open' | 'half-open'

const FAILURES_TO_OPEN = 5
const ACCOUNTS_TO_OPEN = 3
/** Accounts whose probes must fail before the pause of all begins anew: one of them may fail by itself. */
const PROBES_TO_REOPEN = 2
const PROBES_MAX = 10
const OPEN_MS = 5_000
const OPEN_MS_MAX = 60_000

class Gate {
  failures = 0
  #openedMs = 0
  #openForMs = 0

  phase(nowMs: number): Phase {
    if (this.#openForMs === 0) return 'closed'
    return nowMs - this.#openedMs < this.#openForMs ? 'open' : 'half-open'
  }

  /** Each time for twice as long. What fails while it is open was under way before, and says nothing new. */
  open(nowMs: number): void {
    if (this.phase(nowMs) === 'open') return
    this.#openedMs = nowMs
    this.#openForMs = Math.min(this.#openForMs === 0 ? OPEN_MS : this.#openForMs * 2, OPEN_MS_MAX)
  }
}

export class Breaker {
  /** Who has failed since anybody succeeded last. */
  readonly #accounts = new Map<string, Gate>()
  readonly #probing = new Set<string>()
  readonly #failedProbes = new Set<string>()
  #all = new Gate()

  /** Whether a call of this account may go there now. While it is half-open, one call of each account is a probe. */
  admits(account: string, nowMs: number): boolean {
    if (this.#accounts.size === 0) return true
    const own = this.#accounts.get(account)?.phase(nowMs) ?? 'closed'
    const all = this.#all.phase(nowMs)
    if (own === 'open' || all === 'open') return false
    if (own === 'closed' && all === 'closed') return true
    if (this.#probing.has(account) || this.#probing.size >= PROBES_MAX) return false
    this.#probing.add(account)
    return true
  }

  succeeded(account: string): void {
    this.#probing.delete(account)
    if (this.#accounts.size === 0) return
    this.#accounts.clear()
    this.#failedProbes.clear()
    this.#all = new Gate()
  }

  failed(account: string, nowMs: number): void {
    const wasProbe = this.#probing.delete(account)
    const own = this.#accounts.get(account) ?? new Gate()
    this.#accounts.set(account, own)
    own.failures += 1
    if (wasProbe || own.failures >= FAILURES_TO_OPEN) own.open(nowMs)
    const all = this.#all
    all.failures += 1
    if (all.phase(nowMs) === 'closed') {
      if (all.failures >= FAILURES_TO_OPEN && this.#accounts.size >= ACCOUNTS_TO_OPEN) all.open(nowMs)
    } else if (wasProbe && this.#failedProbes.add(account).size >= PROBES_TO_REOPEN) {
      this.#failedProbes.clear()
      all.open(nowMs)
    }
  }

  /** The call ended without telling anything about the vendor; if it was a probe, the next call may be one. */
  undecided(account: string): void {
    this.#probing.delete(account)
  }

  /** For operators: closed to all, or to those who tried it since it last answered. */
  phase(nowMs: number): Phase {
    const all = this.#all.phase(nowMs)
    if (all !== 'closed') return all
    const own = [...this.#accounts.values()].map((gate) => gate.phase(nowMs))
    return own.includes('open') ? 'open' : own.includes('half-open') ? 'half-open' : 'closed'
  }
}
