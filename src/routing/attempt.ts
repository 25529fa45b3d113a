// Tries the candidates until a vendor answers 2xx. Retries happen only before the first byte, and only after faults
// that a retry may cure.
import type { Credits } from '../kernel/credits.ts'
import { asFault, Fault } from '../kernel/fault.ts'
import { given } from '../kernel/json.ts'
import type { Log } from '../kernel/log.ts'
import { NEVER, sleep } from '../kernel/timers.ts'
import type { World } from '../kernel/world.ts'
import { BYOK } from '../ledger/operation.ts'
import type { Stop } from '../ledger/views.ts'
import { chargeOf } from '../meter/charge.ts'
import type { Exchange, OpenOptions, PaidRequest, Target } from '../protocols/protocol.ts'
import { loggedIn, vendorCall } from '../protocols/vendor-call.ts'
import {
  byokKeyFault,
  describe,
  type Refusal,
  refusal,
  retryAfterSeconds,
  vendorWords,
} from '../protocols/vendor-fault.ts'
import type { RedactionScope } from '../protocols/vendor-words.ts'
import type { Unbilled } from '../reports/unbilled.ts'
import type { UnbilledKind } from '../reports/views.ts'
import type { Deadlines, HttpCall, Upstream, UpstreamReply } from '../upstream/call.ts'
import { isLoginRefused, type Logins } from '../upstream/login.ts'
import { boundDrain } from './drain.ts'
import { firstTokenOf, tokenDeadline } from './first-token.ts'
import { hedged } from './hedge.ts'
import type { Candidate } from './route.ts'
import type { Vendors } from './vendor.ts'

export interface Attempted {
  readonly candidate: Candidate
  readonly exchange: Exchange
  readonly reply: UpstreamReply
  readonly attempts: number
  /** On the clock for durations. */
  readonly startMs: number
  /** From sending to the vendor's headers, of the attempt that succeeded. */
  readonly firstByteMs: number
  /**
   * Frees the vendor's slot, and ends the wait for an answer whose caller has left. Call it when the exchange is over.
   */
  leave(): void
}

interface AttemptDeps {
  readonly upstream: Upstream
  readonly logins: Logins
  readonly vendors: Vendors
  readonly world: World
  readonly log: Log
  readonly unbilled: Pick<Unbilled, 'count'>
}

interface AttemptOptions extends OpenOptions {
  /** The calling account: a vendor's breaker counts the accounts whose calls fail. */
  readonly account: string
  readonly recorder: AttemptRecorder
  /**
   * A repeated request with the same idempotency key gets this answer, so it is read to the end even if the caller
   * disconnects.
   */
  readonly isRepeatable: boolean
  /** Hedging: if no token arrives within this time, another vendor is called too. Absent: no hedging. */
  readonly hedgeMs?: number | undefined
  /** Of a hedged call: aborted when the other call has won. Its stream counts as started only with its first token. */
  readonly lost?: AbortSignal
}

/** Receives each attempt of a call when it has ended. */
export interface AttemptRecorder {
  /** Record every attempt. Otherwise a first attempt that succeeds, the usual case, is not recorded. */
  readonly all: boolean
  add(attempt: VendorAttempt): void
  /** What was decided about where the call goes, in words. */
  decided(words: string): void
}

export interface VendorAttempt {
  readonly vendor: string
  /** The model that was called, if there are fallback models. */
  readonly product?: string
  readonly route: number
  /** The credential's name, if the vendor has several. */
  readonly credential?: string | undefined
  /** On the clock for durations. */
  readonly startMs: number
  readonly endMs: number
  /** How long it waited for one of the vendor's slots before it began. */
  readonly queuedMs?: number | undefined
  /** The vendor was not called. */
  readonly skipped?: boolean
  /** Undefined: the vendor did not answer. */
  readonly status?: number | undefined
  /** Undefined: the vendor serves the call. */
  readonly fault?: Fault
  /** After a timeout: the deadline that was exceeded. */
  readonly deadlineMs?: number | undefined
  /** Of an aborted call: its cost for the operator. */
  readonly cost?: Credits | undefined
  /** Why there is no other attempt; undefined: another may follow. */
  readonly stop?: Stop
  /** The vendor's error message without our secrets, and what the operator must fix. */
  readonly vendorError?: string | undefined
  readonly fix?: string | undefined
}

const ATTEMPTS_MAX = 3
/** Upstream calls in all, including those that only show that a credential cannot be used. */
const ASKS_MAX = 8
const RETRY_SAME_MS = 150
const ERROR_BODY_BYTES_MAX = 262_144

interface Verdict extends Refusal {
  /** Another vendor or a retry may succeed. */
  readonly curable: boolean
  readonly vendorError: string | undefined
}

export function attempt(
  paidRequest: PaidRequest,
  candidates: readonly Candidate[],
  open: AttemptOptions,
  deps: AttemptDeps,
): Promise<Attempted> {
  const turns = new Turns(candidates)
  const { hedgeMs, recorder } = open
  if (hedgeMs === undefined || !mayHedge(paidRequest, candidates)) return run(paidRequest, turns, open, deps)
  const { world } = deps
  return hedged(
    {
      hedgeMs,
      signal: open.signal,
      run: (signal, lost) => run(paidRequest, turns, { ...open, signal, lost }, deps),
      hasNext: () => turns.hasNext,
      lost({ candidate, startMs }, fault) {
        const cost = recordAbortedCost('hedge_lost', candidate, { paidRequest, account: open.account }, deps)
        recorder.add({ ...whereTried(candidate), startMs, endMs: world.elapsedMs(), fault, stop: 'hedge_lost', cost })
      },
      decided: (words) => recorder.decided(words),
    },
    world,
  )
}

/** Not hedged: calls with a BYOK key, because the account would pay twice, and requests that must run only once. */
function mayHedge({ stream, once, clientFormat }: PaidRequest, candidates: readonly Candidate[]): boolean {
  return (
    stream &&
    !once &&
    clientFormat !== undefined &&
    candidates.length > 1 &&
    candidates.every(({ credential }) => credential !== BYOK)
  )
}

/**
 * The cost of the prompt, which a vendor bills although its answer was aborted before a token was used. The operator
 * pays it, except with a BYOK key.
 */
export function recordAbortedCost(
  kind: UnbilledKind,
  { cost: rates, vendorName: vendor, target: { model }, credential }: Candidate,
  { paidRequest, account }: { readonly paidRequest: PaidRequest; readonly account: string },
  { unbilled }: Pick<AttemptDeps, 'unbilled'>,
): Credits | undefined {
  if (credential === BYOK) return undefined
  const { product, inputTokensLikely, price } = paidRequest
  const usage = { input: inputTokensLikely ?? 0 }
  // Of what is not billed by tokens, nobody knows how much was done: the cost is unknown, and not zero.
  const cost = inputTokensLikely === undefined ? undefined : rates && chargeOf(rates, usage, price).amount
  unbilled.count({ kind, account, vendor, product, model, credential, usage, cost })
  return cost
}

/** Hands out each candidate once. A single one is tried twice. */
class Turns {
  readonly isAlone: boolean
  readonly #candidates: readonly Candidate[]
  #triesLeft: number
  #turn = 0
  /** Those whose probes fail. They get their turn after the others. */
  #deferred: Candidate[] | undefined
  #passedOver: Set<Candidate> | undefined

  constructor(candidates: readonly Candidate[]) {
    this.isAlone = candidates.length === 1
    this.#candidates = candidates
    this.#triesLeft = this.isAlone ? 2 : Math.min(candidates.length, ATTEMPTS_MAX)
  }

  get hasNext(): boolean {
    return this.#triesLeft > 0
  }

  /** Whether all others have had their turn before this one. */
  isLast(candidate: Candidate): boolean {
    return this.#passedOver?.has(candidate) === true
  }

  /** Takes nothing from the tries. */
  defer(candidate: Candidate): void {
    this.#triesLeft += 1
    this.#deferred = [...(this.#deferred ?? []), candidate]
    this.#passedOver = new Set(this.#passedOver).add(candidate)
  }

  next(): Candidate | undefined {
    if (this.#triesLeft <= 0) return undefined
    this.#triesLeft -= 1
    return this.#candidates[this.isAlone ? 0 : this.#turn++] ?? this.#deferred?.shift()
  }
}

async function run(
  paidRequest: PaidRequest,
  turns: Turns,
  open: AttemptOptions,
  deps: AttemptDeps,
): Promise<Attempted> {
  const { vendors, world } = deps
  const { recorder } = open
  const { product, once } = paidRequest
  const { isAlone } = turns
  let last: Fault | undefined
  let attempts = 0
  /** The route keeps its turn while another of its credentials may work. */
  let again: Candidate | undefined
  while (attempts < ASKS_MAX) {
    const another = again !== undefined
    const route = again ?? turns.next()
    if (!route) break
    again = undefined
    const candidate = choose(route, turns, open, vendors)
    if (candidate instanceof Fault) {
      last ??= candidate
      recorder.add({ ...whereTried(route), ...instant(world), skipped: true, fault: candidate })
      continue
    }
    if (attempts > 0 && isAlone && !another) await sleep(world, RETRY_SAME_MS)
    const entered = enter(candidate, open, vendors)
    const askedMs = entered instanceof Promise ? world.elapsedMs() : undefined
    const leave = entered instanceof Promise ? await entered : entered
    if (leave instanceof Fault) {
      // This vendor's queue is full; the next candidate may have a free slot.
      last = leave
      recorder.add({ ...whereTried(candidate), ...instant(world), skipped: true, fault: leave })
      continue
    }
    attempts += 1
    const startMs = world.elapsedMs()
    const queuedMs = askedMs === undefined ? undefined : startMs - askedMs
    const facts: Facts = { open, product, paidRequest, startMs, queuedMs, attempts, isFirst: last === undefined }
    const end = () => {
      facts.drained?.()
      leave()
    }
    try {
      const hasLogin = candidate.credential === BYOK || typeof candidate.target.auth === 'object'
      const found = hasLogin ? openLogin(candidate, deps) : candidate.target
      const target = found instanceof Promise ? await found : found
      const opening = paidRequest.open(target, open)
      const exchange = opening instanceof Promise ? await opening : opening
      const drains = drainsOf(exchange, candidate.vendor.onAbort, open.isRepeatable)
      const signal = drains === 'call' && !open.signal.aborted ? (open.lost ?? NEVER) : open.signal
      const call = vendorCall(exchange.call, target)
      const reply = await send({ call, exchange, candidate, signal, drains }, facts, deps)
      if (facts.hasBegun) {
        const firstByteMs = answeredBy(candidate, facts, reply.status, deps)
        return { candidate, exchange, reply, attempts, startMs, firstByteMs, leave: facts.drained ? end : leave }
      }
      const said = await judge(reply, exchange, { paidRequest, target })
      const isStale = reply.status === 401 && target.dropToken?.() === true
      const verdict = candidate.credential === BYOK && !isStale ? byByokKey(said, candidate, isAlone) : said
      const mayWork = refusedBy(candidate, { ...facts, status: reply.status, isStale }, verdict, deps)
      last = verdict.fault
      end()
      if (!isStale && (!verdict.curable || (once && !mayWork))) throw verdict.fault
      if (mayWork) again = route
    } catch (error) {
      if (error === last) throw error
      end()
      last = failedAt(candidate, facts, error, deps)
    }
  }
  throw last ?? new Fault('upstream_unavailable', { internal: { why: 'the product has no route' } })
}

interface Sending {
  readonly call: HttpCall
  readonly exchange: Exchange
  readonly candidate: Candidate
  readonly signal: AbortSignal
  readonly drains: Exchange['drains']
}

/** The vendor's reply: with its headers, or where that matters with the first token of its stream. */
async function send(sending: Sending, facts: Facts, { upstream, world }: AttemptDeps): Promise<UpstreamReply> {
  const { call, exchange, candidate, signal, drains } = sending
  const { lost } = facts.open
  const { stream, clientFormat } = facts.paidRequest
  const { firstTokenMs, vendor } = candidate
  const to = exchange.send ?? upstream.send
  const scouts = stream && clientFormat !== undefined && (lost !== undefined || firstTokenMs !== undefined)
  if (!scouts || !exchange.stream)
    return begin(await to(call, { deadlines: vendor.timeouts, signal }), sending, facts, world) // The usual case.
  const deadline = firstTokenMs === undefined ? undefined : tokenDeadline(firstTokenMs, world)
  const late = AbortSignal.any([lost, deadline?.signal].filter((one) => one !== undefined))
  try {
    const asked = await to(call, { deadlines: vendor.timeouts, signal: AbortSignal.any([signal, late]) })
    const reply = begin(asked, sending, facts, world)
    if (!facts.hasBegun) return reply
    if (drains) late.addEventListener('abort', () => reply.abort())
    return await firstTokenOf(reply, exchange.stream(reply.headers))
  } catch (error) {
    throw late.aborted ? late.reason : error
  } finally {
    deadline?.cancel()
  }
}

/**
 * A vendor that bills the whole answer anyway is not aborted once it answers, but a bounded time after its caller has
 * left.
 */
function begin(reply: UpstreamReply, { candidate, drains }: Sending, facts: Facts, world: World): UpstreamReply {
  facts.hasBegun = reply.status >= 200 && reply.status < 300
  if (!facts.hasBegun || !drains) return reply
  reply.letGo()
  if (reply.isHere) return reply
  const { signal, isRepeatable } = facts.open
  // A repeatable answer is kept for its next caller; the vendor's deadlines bound it.
  if (drains === 'answer' && !isRepeatable)
    facts.drained = boundDrain({ signal, drainMs: candidate.vendor.timeouts.drainMs }, () => reply.abort(), world)
  return reply
}

/** An account whose own credential cannot log in is told so. */
function openLogin(
  { target, credential, vendorName }: Candidate,
  { logins, world }: AttemptDeps,
): Target | Promise<Target> {
  if (credential !== BYOK) return loggedIn(target, { logins, world })
  const openOwn = async () => loggedIn(target, { logins, world, isForeign: true })
  return openOwn().catch((error: unknown) => {
    if (!(error instanceof Fault) || !isLoginRefused(error)) throw error
    const message = `${vendorName} did not accept the key that your account has stored for it. Store another, or remove it.`
    throw new Fault('byok_key_rejected', { message, cause: error })
  })
}

function drainsOf(
  { drains }: Exchange,
  onAbort: 'cancel' | 'drain' | undefined,
  isRepeatable: boolean,
): Exchange['drains'] {
  if (onAbort === 'drain' || isRepeatable) return drains ?? 'answer'
  return onAbort === 'cancel' ? undefined : drains
}

interface Facts {
  readonly open: AttemptOptions
  readonly product: string
  readonly paidRequest: PaidRequest
  readonly startMs: number
  readonly queuedMs: number | undefined
  readonly attempts: number
  /** No candidate was tried or skipped before. */
  readonly isFirst: boolean
  /** The vendor rejected a login token that can be renewed. */
  readonly isStale?: boolean
  readonly status?: number
  /** The vendor answers with 2xx. */
  hasBegun?: boolean
  /** Ends the bound on reading after the caller has left. */
  drained?: () => void
}

/** Records a success. Returns the time to the vendor's headers. */
function answeredBy(
  candidate: Candidate,
  { open, product, startMs, queuedMs, isFirst }: Facts,
  status: number,
  { vendors, world }: AttemptDeps,
): number {
  const endMs = world.elapsedMs()
  const latencyMs = endMs - startMs
  if (candidate.credential !== BYOK)
    vendors.answered(candidate.vendorName, open.account, { status, latencyMs, product })
  if (candidate.credentials) vendors.credentials.succeeded(candidate, open.account)
  if (open.recorder.all || !isFirst) open.recorder.add({ ...whereTried(candidate), startMs, endMs, queuedMs, status })
  return latencyMs
}

/**
 * A login token may be revoked early. A retry with a new token does not count as a failure; the token cache allows only
 * one renewal.
 */
function renewsLogin(
  candidate: Candidate,
  { open, startMs, queuedMs }: Facts,
  fault: Fault,
  { vendors, world }: AttemptDeps,
): true {
  if (candidate.credential !== BYOK) vendors.undecided(candidate.vendorName, open.account)
  open.recorder.add({ ...whereTried(candidate), startMs, endMs: world.elapsedMs(), queuedMs, status: 401, fault })
  return true
}

/** Records an error answer of the vendor. Returns whether another of its credentials may work. */
function refusedBy(candidate: Candidate, facts: Facts, verdict: Verdict, deps: AttemptDeps): boolean {
  if (facts.isStale) return renewsLogin(candidate, facts, verdict.fault, deps)
  const { open, product, startMs, queuedMs, attempts, status = 0 } = facts
  const { vendors, world, log } = deps
  const { vendorName: vendor } = candidate
  const { fault, vendorError, ours: fix, curable } = verdict
  const endMs = world.elapsedMs()
  // A rejection of one of several credentials does not count against the vendor.
  const ofCredential = candidate.credentials !== undefined && verdict.credential !== undefined
  const refusal = ofCredential ? { vendorsFault: false } : verdict
  if (candidate.credential !== BYOK)
    vendors.answered(vendor, open.account, { status, latencyMs: endMs - startMs, refusal, product })
  if (ofCredential) {
    const seconds = fault.details.retryAfterSeconds
    vendors.credentials.disable(candidate, open.account, { why: verdict.credential, status, seconds })
  }
  const stop = curable ? {} : { stop: 'rejected' as const }
  open.recorder.add({ ...whereTried(candidate), startMs, endMs, queuedMs, status, fault, vendorError, fix, ...stop })
  logRefusal(verdict, candidate, { ...about(open, candidate, attempts), status }, log)
  return ofCredential
}

/**
 * Records an attempt without an answer. Throws an error that ends the call; returns a fault that another attempt may
 * cure.
 */
function failedAt(
  candidate: Candidate,
  { open, paidRequest, startMs, queuedMs, attempts, hasBegun }: Facts,
  error: unknown,
  deps: AttemptDeps,
): Fault {
  const { vendors, world, log } = deps
  const fault = asFault(error)
  const { product, once } = paidRequest
  const { vendorName: vendor } = candidate
  const isOwn = candidate.credential === BYOK
  const { phase } = fault.details.internal ?? {}
  const left = hasBegun && open.signal.aborted ? 'client_closed' : undefined
  const kind = open.lost?.aborted ? 'hedge_lost' : phase === 'first-token' ? 'first_token_timeout' : left
  const cost = kind && recordAbortedCost(kind, candidate, { paidRequest, account: open.account }, deps)
  const tried = { ...whereTried(candidate), startMs, endMs: world.elapsedMs(), queuedMs, fault, cost }
  if (open.lost?.aborted) {
    if (!isOwn) vendors.undecided(vendor, open.account)
    open.recorder.add({ ...tried, stop: 'hedge_lost' })
    throw error
  }
  if (open.signal.aborted || !(error instanceof Fault) || fault.blame !== 'vendor') {
    if (!isOwn) vendors.undecided(vendor, open.account)
    open.recorder.add({ ...tried, stop: open.signal.aborted ? 'client_closed' : 'rejected' })
    throw error
  }
  if (!isOwn) vendors.failed(vendor, open.account, fault.kind, product)
  // After a timeout there is no retry: the caller has waited long enough.
  const slow = fault.kind === 'upstream_timeout' && phase !== 'connect' && phase !== 'first-token'
  open.recorder.add({ ...tried, deadlineMs: deadlineOf(fault, candidate), ...(slow ? { stop: 'timeout' } : {}) })
  const attempt = about(open, candidate, attempts)
  log.warn({ ...attempt, fault: fault.kind, ...fault.details.internal }, 'vendor failed')
  if (slow || (once && fault.details.internal?.sent !== false)) throw fault
  return fault
}

function instant(world: World) {
  const nowMs = world.elapsedMs()
  return { startMs: nowMs, endMs: nowMs }
}

const DEADLINES: Readonly<Record<string, keyof Deadlines>> = {
  connect: 'connectMs',
  'first-byte': 'firstByteMs',
  idle: 'idleMs',
  total: 'totalMs',
}

/** The deadline that a timeout exceeded. */
export function deadlineOf({ kind, details }: Fault, candidate: Candidate): number | undefined {
  if (details.internal?.phase === 'first-token') return candidate.firstTokenMs
  const name = kind === 'upstream_timeout' ? DEADLINES[String(details.internal?.phase)] : undefined
  return name && candidate.vendor.timeouts[name]
}

function about({ requestId }: AttemptOptions, candidate: Candidate, attempt: number): object {
  const { vendor, credential } = whereTried(candidate)
  return { requestId, vendor, credential, attempt }
}

/** The vendor, route and credential of an attempt. */
function whereTried({ vendorName: vendor, number: route, credential }: Candidate) {
  return { vendor, route, credential }
}

/** The candidate with the credential to use, or the fault why the vendor cannot be called now. */
function choose(route: Candidate, turns: Turns, { account }: AttemptOptions, vendors: Vendors): Candidate | Fault {
  // The breaker judges only calls with the gateway's credentials. An account's own key must not be able to open or
  // close it.
  if (route.credential === BYOK) return route
  if (route.vendor.credential !== undefined && isUntold(route)) return unavailable(route, 'its credential has no value')
  const failing = turns.isAlone || turns.isLast(route) ? undefined : vendors.givesWay(route.vendorName, account)
  if (failing !== undefined) {
    turns.defer(route)
    return unavailable(route, failing)
  }
  if (!vendors.available(route.vendorName, account)) return unavailable(route, 'its breaker is open', 5)
  if (!route.credentials) return route // The usual case.
  const candidate = vendors.credentials.choose(route, account)
  // The vendor was not called. If this call was the breaker's trial, another call may be the trial.
  if (candidate instanceof Fault) vendors.undecided(route.vendorName, account)
  return candidate
}

/** A product whose credential has no value is not called: callers must not pay for an unauthenticated answer. */
const isUntold = ({ target }: Candidate) =>
  (target.protocol === 'http-api' || target.bridge !== undefined) && target.secret === undefined

const unavailable = ({ vendorName: vendor }: Candidate, why: string, retryAfterSeconds?: number) =>
  new Fault('upstream_unavailable', { ...given({ retryAfterSeconds }), internal: { vendor, why } })

function logRefusal({ fault, ours }: Verdict, { target }: Candidate, about: object, log: Log): void {
  const facts = { ...about, code: fault.details.vendorCode }
  if (ours) log.error({ ...facts, model: target.model, why: ours, alert: true }, 'vendor rejected a call')
  else log.warn(facts, 'vendor rejected a call')
}

/** Takes one of the vendor's slots. Returns the function that frees it, or the fault that there is none. */
function enter(
  { vendorName: name, vendor, credential }: Candidate,
  { account, signal }: AttemptOptions,
  vendors: Vendors,
) {
  const noPlace = (error: unknown): Fault => {
    if (credential !== BYOK) vendors.undecided(name, account)
    if (!(error instanceof Fault) || error.blame !== 'vendor') throw error
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
 * A rejection of the account's BYOK key becomes a fault that tells the account to fix its key. Another candidate may
 * still work.
 */
function byByokKey(verdict: Verdict, { vendorName }: Candidate, isAlone: boolean): Verdict {
  const fault = byokKeyFault(verdict, vendorName)
  const { ours: _, ...rest } = verdict
  return fault ? { ...rest, fault, curable: !isAlone } : rest
}

async function judge(reply: UpstreamReply, exchange: Exchange, hearing: RedactionScope): Promise<Verdict> {
  const { status, headers } = reply
  if (status < 400) reply.abort()
  const body = status < 400 ? undefined : await reply.read(ERROR_BODY_BYTES_MAX).catch(() => undefined)
  const wait = retryAfterSeconds(headers) ?? exchange.retryAfterSeconds?.(headers)
  const verdict = refusal(
    status,
    body && exchange.vendorError?.(body),
    hearing.paidRequest.clientFormat === undefined ? '' : hearing.target.model,
    wait === undefined ? {} : { retryAfterSeconds: wait },
  )
  const fault = asFault(describe(verdict.fault, hearing))
  return { ...verdict, fault, curable: fault.blame === 'vendor', vendorError: vendorWords(verdict.fault, hearing) }
}
