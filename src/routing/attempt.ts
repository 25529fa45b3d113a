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
  readonly tried?: ((attempt: Tried) => void) | undefined
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
  const { vendors, world } = deps
  let last: Fault | undefined
  let attempts = 0
  // A single route gets a second try of its own; otherwise each candidate one.
  const isAlone = candidates.length === 1
  const tries = isAlone ? 2 : Math.min(candidates.length, ATTEMPTS_MAX)
  for (let turn = 0; turn < tries; turn++) {
    const candidate = candidates[isAlone ? 0 : turn]
    if (!candidate) break
    const { vendorName: name, vendor, target } = candidate
    if (!vendors.available(name, open.account)) {
      last ??= brokenFault(name)
      continue
    }
    if (attempts > 0 && isAlone) await sleep(world, RETRY_SAME_MS)
    const entered = enter(candidate, open, vendors)
    const leave = entered instanceof Promise ? await entered : entered
    if (leave instanceof Fault) {
      // Too many wait for this one; the next may have room.
      last = leave
      continue
    }
    attempts += 1
    const startMs = world.elapsedMs()
    const caller = vendor.onAbort === 'drain' ? followCaller(open.signal) : undefined
    try {
      const opening = ask.open(target, open)
      const exchange = opening instanceof Promise ? await opening : opening
      const sending = { deadlines: vendor.timeouts, signal: caller?.signal ?? open.signal }
      const reply = await deps.upstream.send(vendorCall(exchange.call, target), sending)
      const { status } = reply
      if (status >= 200 && status < 300) {
        caller?.letGo()
        const endMs = world.elapsedMs()
        const firstByteMs = endMs - startMs
        vendors.answered(name, open.account, { status, latencyMs: firstByteMs })
        open.tried?.({ vendor: name, startMs, endMs, status })
        return { candidate, exchange, reply, attempts, firstByteMs, leave }
      }
      const verdict = await judge(reply, exchange, { ask, target })
      const endMs = world.elapsedMs()
      vendors.answered(name, open.account, { status, latencyMs: endMs - startMs, refusal: verdict })
      open.tried?.({ vendor: name, startMs, endMs, status, fault: verdict.fault.kind })
      logRefusal(verdict, candidate, { ...about(open, name, attempts), status }, deps.log)
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
      last = error
      vendors.failed(name, open.account, error.kind)
      open.tried?.({ vendor: name, startMs, endMs: world.elapsedMs(), fault: error.kind })
      logFailure(error, about(open, name, attempts), deps.log)
      // Whoever was too slow once has used up the caller's patience.
      if (error.kind === 'upstream_timeout' && error.details.internal?.phase !== 'connect') throw error
    }
  }
  throw last ?? new Fault('upstream_unavailable', { internal: { why: 'the product has no route' } })
}

function about({ requestId }: AttemptOptions, vendor: string, attempt: number): object {
  return { requestId, vendor, attempt }
}

function brokenFault(vendor: string): Fault {
  return new Fault('upstream_unavailable', { retryAfterSeconds: 5, internal: { vendor, why: 'its breaker is open' } })
}

function logFailure({ kind, details }: Fault, about: object, log: Log): void {
  log.warn({ ...about, fault: kind, ...details.internal }, 'vendor failed')
}

function logRefusal({ fault, ours }: Verdict, { target }: Candidate, about: object, log: Log): void {
  const facts = { ...about, code: fault.details.vendorCode }
  if (ours) log.error({ ...facts, model: target.model, why: ours, alert: true }, 'vendor refused')
  else log.warn(facts, 'vendor refused')
}

/** What gives the vendor's place back; or the vendor's fault that there is none. */
function enter({ vendorName: name, vendor }: Candidate, { account, signal }: AttemptOptions, vendors: Vendors) {
  const noPlace = (error: unknown): Fault => {
    vendors.undecided(name, account)
    if (!(error instanceof Fault) || error.blame !== 'upstream') throw error
    return error
  }
  try {
    const entered = vendors.enter(name, vendor, signal)
    return entered instanceof Promise ? entered.catch(noPlace) : entered
  } catch (error) {
    return noPlace(error)
  }
}

/**
 * The caller's leaving cuts the vendor's call. A vendor that bills the whole answer anyway is not cut once it answers:
 * whoever relays the answer then decides how long it is listened to.
 */
function followCaller(signal: AbortSignal): { signal: AbortSignal; letGo(): void } {
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
