// Tries the candidates until a vendor answers 2xx: only before the first byte, and only for faults that another try cures.
import { Fault, type FaultDetails } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import type { World } from '../kernel/world.ts'
import type { Ask, Exchange, OpenOptions } from '../protocols/protocol.ts'
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

export interface AttemptDeps {
  readonly upstream: Upstream
  readonly vendors: Vendors
  readonly world: World
  readonly log: Log
}

const ATTEMPTS_MAX = 3
const RETRY_SAME_MS = 150
const ERROR_BODY_BYTES_MAX = 262_144

interface Verdict {
  readonly fault: Fault
  /** Another vendor, or another try, may well succeed. */
  readonly curable: boolean
  readonly vendorsFault: boolean
}

export async function attempt(
  ask: Ask,
  candidates: readonly Candidate[],
  open: OpenOptions,
  deps: AttemptDeps,
): Promise<Attempted> {
  const { vendors, world, log } = deps
  let last: Fault | undefined
  let attempts = 0
  // A single route gets a second try of its own; otherwise each candidate one.
  const order = candidates.length === 1 ? [candidates[0]!, candidates[0]!] : candidates.slice(0, ATTEMPTS_MAX)
  for (const candidate of order) {
    const { vendorName: name, vendor } = candidate
    if (!vendors.available(name)) {
      last ??= new Fault('upstream_unavailable', {
        retryAfterSeconds: 5,
        internal: { vendor: name, why: 'its breaker is open' },
      })
      continue
    }
    if (attempts > 0 && candidates.length === 1)
      await new Promise<void>((resolve) => world.after(RETRY_SAME_MS, resolve))
    let leave: () => void
    try {
      const entered = vendors.enter(name, vendor, open.signal)
      leave = entered instanceof Promise ? await entered : entered
    } catch (error) {
      vendors.undecided(name)
      if (!(error instanceof Fault) || error.blame !== 'upstream') throw error
      // Too many wait for this one; the next may have room.
      last = error
      continue
    }
    attempts += 1
    const startedMs = world.elapsedMs()
    const caller = followCaller(open.signal, vendor.onAbort === 'drain')
    try {
      const exchange = await ask.open(candidate.target, open)
      const reply = await deps.upstream.send(exchange.call, { deadlines: vendor.timeouts, signal: caller.signal })
      if (reply.status >= 200 && reply.status < 300) {
        caller.letGo()
        const firstByteMs = world.elapsedMs() - startedMs
        vendors.succeeded(name, firstByteMs)
        return { candidate, exchange, reply, attempts, firstByteMs, leave }
      }
      const verdict = await judge(reply, exchange, name)
      if (verdict.vendorsFault) vendors.failed(name, `HTTP ${reply.status}`)
      else vendors.succeeded(name, world.elapsedMs() - startedMs)
      log.warn(
        {
          requestId: open.requestId,
          vendor: name,
          status: reply.status,
          attempt: attempts,
          alert: isOurAccount(reply.status) || undefined,
        },
        'vendor refused',
      )
      last = verdict.fault
      leave()
      if (!verdict.curable) throw verdict.fault
    } catch (error) {
      if (error === last) throw error
      leave()
      if (open.signal.aborted || !(error instanceof Fault) || error.blame !== 'upstream') {
        vendors.undecided(name)
        throw error
      }
      vendors.failed(name, error.kind)
      log.warn(
        { requestId: open.requestId, vendor: name, fault: error.kind, attempt: attempts, ...error.details.internal },
        'vendor failed',
      )
      last = error
      // Whoever was too slow once has used up the caller's patience.
      if (error.kind === 'upstream_timeout' && error.details.internal?.phase !== 'connect') throw error
    }
  }
  throw last ?? new Fault('upstream_unavailable', { internal: { why: 'the product has no route' } })
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

const isOurAccount = (status: number) => status === 401 || status === 402 || status === 403

async function judge(reply: UpstreamReply, exchange: Exchange, vendor: string): Promise<Verdict> {
  const { status, headers } = reply
  let text: string | undefined
  let errorDetails: FaultDetails['errorDetails']
  if (status >= 400) {
    const body = await reply.read(ERROR_BODY_BYTES_MAX).catch(() => Buffer.alloc(0))
    text = exchange.errorText?.(body)
    errorDetails = exchange.errorDetails?.(body)
  } else reply.abort()
  const internal = { vendor, status, text }
  const said = { ...(text === undefined ? {} : { message: text }), ...(errorDetails ? { errorDetails } : {}) }
  const wait = retryAfterSeconds(headers) ?? exchange.retryAfterSeconds?.(headers)
  const later = wait === undefined ? {} : { retryAfterSeconds: wait }
  switch (true) {
    // Our credential or our account with the vendor: never the caller's doing.
    case status === 401 || status === 403:
      return { fault: new Fault('upstream_failed', { internal }), curable: true, vendorsFault: true }
    case status === 402:
      return { fault: new Fault('upstream_unavailable', { internal }), curable: true, vendorsFault: true }
    case status === 400 || status === 404 || status === 413:
      return { fault: new Fault('upstream_invalid', { ...said, internal }), curable: false, vendorsFault: false }
    case status === 422:
      return { fault: new Fault('schema_invalid', { ...said, internal }), curable: false, vendorsFault: false }
    case status === 409:
      return { fault: new Fault('conflict', { ...said, internal }), curable: false, vendorsFault: false }
    case status === 429:
      return { fault: new Fault('upstream_rate_limited', { ...later, internal }), curable: true, vendorsFault: false }
    case status === 408 || status === 504:
      return { fault: new Fault('upstream_timeout', { internal }), curable: true, vendorsFault: true }
    case status === 503 || status === 529:
      return { fault: new Fault('upstream_unavailable', { ...later, internal }), curable: true, vendorsFault: true }
    case status >= 400 && status < 500:
      return { fault: new Fault('upstream_invalid', { ...said, internal }), curable: false, vendorsFault: false }
    default:
      return { fault: new Fault('upstream_failed', { internal }), curable: true, vendorsFault: true }
  }
}

function retryAfterSeconds(headers: Readonly<Record<string, string>>): number | undefined {
  const seconds = Number(headers['retry-after'])
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(Math.ceil(seconds), 3600) : undefined
}
