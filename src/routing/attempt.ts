// Tries the candidates until a vendor answers 2xx: only before the first byte, and only for faults that another try cures.
import { asFault, Fault, type FaultName } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import type { Ask, Exchange, OpenOptions } from '../protocols/protocol.ts'
import { vendorCall } from '../protocols/vendor-call.ts'
import { type Refusal, refusal, retryAfterSeconds, tell } from '../protocols/vendor-fault.ts'
import type { Hearing } from '../protocols/vendor-words.ts'
import type { Upstream, UpstreamReply } from '../upstream/call.ts'
import type { Candidate } from './route.ts'
import type { Vendors } from './vendor.ts'

export interface Attempted {
  readonly candidate: Candidate
  readonly exchange: Exchange
  readonly reply: UpstreamReply
  readonly attempts: number
  /** From sending to the vendor's headers, of the attempt that succeeded. */
  readonly firstByteMs: number
  /** Gives the vendor's place back. To be called when the exchange is over. */
  leave(): void
}

interface AttemptDeps {
  readonly upstream: Upstream
  readonly vendors: Vendors
  readonly world: World
  readonly log: Log
}

interface AttemptOptions extends OpenOptions {
  /** Whose call it is: a vendor's breaker counts the accounts that it fails. */
  readonly account: string
  /** Hears of every attempt when it has ended. */
  readonly tried?: (attempt: Tried) => void
}

export interface Tried {
  readonly vendor: string
  /** On the clock for durations. */
  readonly startMs: number
  readonly endMs: number
  /** Undefined: there was no answer. */
  readonly status?: number
  /** Undefined: the vendor serves the call. */
  readonly fault?: FaultName
}

const ATTEMPTS_MAX = 3
const RETRY_SAME_MS = 150
const ERROR_BODY_BYTES_MAX = 262_144

interface Verdict extends Refusal {
  /** Another vendor, or another try, may well succeed. */
  readonly curable: boolean
}

export async function attempt(
  ask: Ask,
  candidates: readonly Candidate[],
  open: AttemptOptions,
  deps: AttemptDeps,
): Promise<Attempted> {
  const { vendors, world, log } = deps
  let last: Fault | undefined
  let attempts = 0
  // A single route gets a second try of its own; otherwise each candidate one.
  const order = candidates.length === 1 ? [candidates[0]!, candidates[0]!] : candidates.slice(0, ATTEMPTS_MAX)
  for (const candidate of order) {
    const { vendorName: name, vendor } = candidate
    if (!vendors.available(name, open.account)) {
      last ??= brokenFault(name)
      continue
    }
    if (attempts > 0 && candidates.length === 1) await sleep(world, RETRY_SAME_MS)
    let leave: () => void
    try {
      const entered = vendors.enter(name, vendor, open.signal)
      leave = entered instanceof Promise ? await entered : entered
    } catch (error) {
      vendors.undecided(name, open.account)
      if (!(error instanceof Fault) || error.blame !== 'upstream') throw error
      // Too many wait for this one; the next may have room.
      last = error
      continue
    }
    attempts += 1
    const about = { requestId: open.requestId, vendor: name, attempt: attempts }
    const startMs = world.elapsedMs()
    const tried = (ending: Pick<Tried, 'status' | 'fault'>) =>
      open.tried?.({ vendor: name, startMs, endMs: world.elapsedMs(), ...ending })
    const caller = followCaller(open.signal, vendor.onAbort === 'drain')
    try {
      const exchange = await ask.open(candidate.target, open)
      const sending = { deadlines: vendor.timeouts, signal: caller.signal }
      const reply = await deps.upstream.send(vendorCall(exchange.call, candidate.target), sending)
      if (reply.status >= 200 && reply.status < 300) {
        caller.letGo()
        const firstByteMs = world.elapsedMs() - startMs
        vendors.answered(name, open.account, { status: reply.status, latencyMs: firstByteMs })
        tried({ status: reply.status })
        return { candidate, exchange, reply, attempts, firstByteMs, leave }
      }
      const verdict = await judge(reply, exchange, { ask, target: candidate.target })
      const latencyMs = world.elapsedMs() - startMs
      vendors.answered(name, open.account, { status: reply.status, latencyMs, refusal: verdict })
      tried({ status: reply.status, fault: verdict.fault.kind })
      logRefusal(verdict, candidate, { ...about, status: reply.status }, log)
      last = verdict.fault
      leave()
      if (!verdict.curable) throw verdict.fault
    } catch (error) {
      if (error === last) throw error
      leave()
      if (open.signal.aborted || !(error instanceof Fault) || error.blame !== 'upstream') {
        vendors.undecided(name, open.account)
        throw error
      }
      vendors.failed(name, open.account, error.kind)
      tried({ fault: error.kind })
      log.warn({ ...about, fault: error.kind, ...error.details.internal }, 'vendor failed')
      last = error
      // Whoever was too slow once has used up the caller's patience.
      if (error.kind === 'upstream_timeout' && error.details.internal?.phase !== 'connect') throw error
    }
  }
  throw last ?? new Fault('upstream_unavailable', { internal: { why: 'the product has no route' } })
}

function brokenFault(vendor: string): Fault {
  return new Fault('upstream_unavailable', { retryAfterSeconds: 5, internal: { vendor, why: 'its breaker is open' } })
}

function logRefusal({ fault, ours }: Verdict, { target }: Candidate, about: object, log: Log): void {
  const facts = { ...about, code: fault.details.vendorCode }
  if (ours) log.error({ ...facts, model: target.model, why: ours, alert: true }, 'vendor refused')
  else log.warn(facts, 'vendor refused')
}

/**
 * The caller's leaving cuts the vendor's call. A vendor that bills the whole answer anyway is not cut once it answers:
 * whoever relays the answer then decides how long it is listened to.
 */
function followCaller(signal: AbortSignal, onlyUntilAnswer: boolean): { signal: AbortSignal; letGo(): void } {
  if (!onlyUntilAnswer) return { signal, letGo() {} }
  const own = new AbortController()
  const follow = () => own.abort(signal.reason)
  if (signal.aborted) follow()
  else signal.addEventListener('abort', follow, { once: true })
  return { signal: own.signal, letGo: () => signal.removeEventListener('abort', follow) }
}

async function judge(reply: UpstreamReply, exchange: Exchange, hearing: Hearing): Promise<Verdict> {
  const { status, headers } = reply
  if (status < 400) reply.abort()
  const body = status < 400 ? undefined : await reply.read(ERROR_BODY_BYTES_MAX).catch(() => undefined)
  const wait = retryAfterSeconds(headers) ?? exchange.retryAfterSeconds?.(headers)
  const verdict = refusal(
    status,
    body && exchange.said?.(body),
    hearing.target.model,
    wait === undefined ? {} : { retryAfterSeconds: wait },
  )
  const fault = asFault(tell(verdict.fault, hearing))
  return { ...verdict, fault, curable: fault.blame === 'upstream' }
}
