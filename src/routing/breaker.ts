// The circuit breaker of one vendor. An account's own failures open the breaker for that account only. It opens for all
// accounts only when several have failed and no call has succeeded since. So one account cannot close a vendor to
// others with requests that always fail, and a vendor that is down is still left alone. Probes that fail make calls
// give way too; a success, of a call or of a probe, brings the vendor back.

export type Phase = 'closed' | 'open' | 'half-open'

const FAILURES_TO_OPEN = 5
const ACCOUNTS_TO_OPEN = 3
/**
 * Accounts whose trials must fail before the breaker opens for all again: a single one may fail for its own reasons.
 */
const TRIALS_TO_REOPEN = 2
const TRIALS_MAX = 10
const OPEN_MS = 5_000
const OPEN_MS_MAX = 60_000
/** Where calls have already opened the breaker, one is enough. */
const PROBES_TO_OPEN = 3

/** What the last probes of the vendor found, by whichever process. */
export interface Probed {
  /** In a row. */
  readonly failures: number
  /** What the last one found. */
  readonly message: string
  /** Since when it is so, on the clock of the world. */
  readonly sinceMs: number
  /** On the clock for durations: until when this counts, if no other probe follows. */
  readonly untilMs: number
}

class Gate {
  failures = 0
  /** When it opened first. */
  sinceMs: number | undefined
  #openedMs = 0
  #openForMs = 0

  phase(nowMs: number): Phase {
    if (this.#openForMs === 0) return 'closed'
    return nowMs - this.#openedMs < this.#openForMs ? 'open' : 'half-open'
  }

  /**
   * Opens for twice as long each time. A failure while it is open comes from a call that was in flight, and is ignored.
   */
  open(nowMs: number): void {
    if (this.phase(nowMs) === 'open') return
    this.sinceMs ??= nowMs
    this.#openedMs = nowMs
    this.#openForMs = Math.min(this.#openForMs === 0 ? OPEN_MS : this.#openForMs * 2, OPEN_MS_MAX)
  }
}

export class Breaker {
  /** Nothing is held against the vendor: all calls are admitted, and a success changes nothing. */
  isQuiet = true
  /** The accounts that have failed since the last success of any account. */
  readonly #accounts = new Map<string, Gate>()
  readonly #trying = new Set<string>()
  readonly #failedTrials = new Set<string>()
  #all = new Gate()
  #probed: Probed | undefined
  /** The failed probes that a call has disproved since. */
  #disproved = 0
  /** False: a probe has closed the breaker, and no call has succeeded since. Probes may succeed while calls fail. */
  #isBelieved = true
  #failedMs = 0

  /**
   * Whether this account may call the vendor now. While the breaker is half-open, one call of each account is a trial.
   */
  admits(account: string, nowMs: number): boolean {
    if (this.#accounts.size === 0) return true
    const own = this.#accounts.get(account)?.phase(nowMs) ?? 'closed'
    const all = this.#all.phase(nowMs)
    if (own === 'open' || all === 'open') return false
    if (own === 'closed' && all === 'closed') return true
    if (this.#trying.has(account) || this.#trying.size >= TRIALS_MAX) return false
    this.#trying.add(account)
    return true
  }

  /** Set if probes fail, so that this account's calls should go elsewhere if they can. */
  givesWay(account: string, nowMs: number): Probed | undefined {
    if (this.#probed === undefined) return undefined // The usual case.
    const own = this.#accounts.get(account)?.phase(nowMs) ?? 'closed'
    return this.#failing(own !== 'closed' || this.#all.phase(nowMs) !== 'closed', nowMs)
  }

  #failing(isOpen: boolean, nowMs: number): Probed | undefined {
    const { failures, untilMs } = this.#probed ?? { failures: 0, untilMs: 0 }
    return nowMs <= untilMs && failures - this.#disproved >= (isOpen ? 1 : PROBES_TO_OPEN) ? this.#probed : undefined
  }

  succeeded(account: string): void {
    this.#trying.delete(account)
    this.#isBelieved = true
    this.#disproved = this.#probed?.failures ?? 0
    if (this.#accounts.size > 0) this.#close()
    this.#look()
  }

  #look(): void {
    this.isQuiet =
      this.#isBelieved &&
      this.#accounts.size + this.#trying.size + this.#disproved + (this.#probed?.failures ?? 0) === 0
  }

  #close(): void {
    this.#accounts.clear()
    this.#failedTrials.clear()
    this.#all = new Gate()
  }

  failed(account: string, nowMs: number): void {
    const wasTrial = this.#trying.delete(account)
    this.isQuiet = false
    this.#failedMs = nowMs
    const own = this.#accounts.get(account) ?? new Gate()
    this.#accounts.set(account, own)
    own.failures += 1
    if (wasTrial || own.failures >= FAILURES_TO_OPEN) own.open(nowMs)
    const all = this.#all
    all.failures += 1
    if (all.phase(nowMs) === 'closed') {
      if (all.failures >= FAILURES_TO_OPEN && this.#accounts.size >= ACCOUNTS_TO_OPEN) all.open(nowMs)
    } else if (wasTrial && this.#failedTrials.add(account).size >= TRIALS_TO_REOPEN) {
      this.#failedTrials.clear()
      all.open(nowMs)
    }
  }

  /** The call said nothing about the vendor. If it was a trial, the next call may be the trial. */
  undecided(account: string): void {
    this.#trying.delete(account)
  }

  /** Undefined: it is not probed any more. */
  probed(found: Probed | undefined): void {
    this.#probed = found
    if (!found || found.failures < this.#disproved) this.#disproved = 0
    this.#look()
  }

  /**
   * A probe that started at this time has succeeded. It closes a breaker that calls opened before, but only once until
   * a call succeeds.
   */
  probeSucceeded(atMs: number): void {
    if (!this.#isBelieved || this.#accounts.size === 0 || atMs <= this.#failedMs) return
    this.#isBelieved = false
    this.#close()
  }

  /** A probe that detects a failure also detects its end. */
  probeFailed(): void {
    this.#isBelieved = true
  }

  /** Whether a probe that succeeds would end what calls or probes have found. */
  awaitsProbe(nowMs: number): boolean {
    return this.#isBelieved && this.state(nowMs).phase !== 'closed'
  }

  /**
   * For operators: the state for all accounts, or else the worst state of the accounts that failed since the last
   * success.
   */
  state(nowMs: number): { phase: Phase; sinceMs: number | undefined; probed: Probed | undefined } {
    const gates = this.#all.phase(nowMs) === 'closed' ? [...this.#accounts.values()] : [this.#all]
    const worst =
      gates.find((gate) => gate.phase(nowMs) === 'open') ?? gates.find((gate) => gate.phase(nowMs) === 'half-open')
    const probed = this.#failing(worst !== undefined, nowMs)
    return { phase: probed ? 'open' : (worst?.phase(nowMs) ?? 'closed'), sinceMs: worst?.sinceMs, probed }
  }
}
