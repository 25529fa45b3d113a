// The whole path of a paid call, on one screen, for every paid endpoint: admit → route → attempt → relay → settle. A
// call that becomes a job ends here when it is accepted; the job settles or releases the hold by the same functions of
// the ledger.
import { type Admitted, admit, admittedFor, rateHeaders } from '../admission/admit.ts'
import { replay } from '../admission/idempotency.ts'
import { findObjectOwner, type ObjectOwner } from '../admission/vendor-objects.ts'
import { asFault, CLIENT_CLOSED, Fault } from '../kernel/fault.ts'
import { isTestAccount } from '../kernel/test-account.ts'
import { BYOK } from '../ledger/operation.ts'
import type { Pricing } from '../meter/price.ts'
import type { JobRequest, PaidRequest } from '../protocols/protocol.ts'
import { type Attempted, attempt, type VendorAttempt } from '../routing/attempt.ts'
import { byByokKey, type Candidate, routeRequest } from '../routing/route.ts'
import type { Seen } from '../telemetry/monitor.ts'
import type { RefusedCall } from '../telemetry/refusals.ts'
import type { Answered, Arrived, Fallback, Held, PathDeps } from './call.ts'
import { isBlocked } from './hooks.ts'
import { CLIENT_CLOSED_STATUS, relayAnswer, relayCached, relayStream } from './relay.ts'
import { type CachedResponse, type CacheRule, isCached, type SingleFlight } from './response-cache.ts'
import { release, type Settled } from './settle.ts'

const REPLAYED: Settled = { status: 200, outcome: 'replayed', charged: 0n }
const ACCEPTED: Settled = { status: 200, outcome: 'accepted', charged: 0n }

export async function serve(arrived: Arrived, deps: PathDeps): Promise<void> {
  const seen = deps.monitor.begin(arrived)
  try {
    // Objects stored at a vendor are looked up here, for every client format.
    if (arrived.labels) await deps.labelNames.check(arrived.principal.accountId, arrived.labels)
    const found = arrived.paidRequest.continues ? await withObjectOwner(arrived, deps) : arrived
    seen.end(await begin(found, seen, deps))
  } catch (error) {
    // A model's words in an error have not been checked as an answer is.
    if (arrived.guard && error instanceof Fault) delete error.details.failedGeneration
    const ending = endingOf(error)
    if (ending.fault) deps.refusals.note(ending.fault, seen.held ? undefined : refusedCall(arrived))
    // A request that a guardrail blocked has a hold, but no vendor was called.
    seen.end({ ...ending, outcome: seen.held && !isBlocked(error, 'request') ? 'failed' : 'rejected', charged: 0n })
    throw error
  }
}

function begin(arrived: Arrived, seen: Seen, deps: PathDeps): Promise<Settled> {
  if ('order' in arrived.paidRequest) return accept(arrived as JobCall, seen, deps) // That is what a job has.
  const call = arrived as ExchangeCall // A request that does not become a job is answered by a vendor.
  if (call.guard && isAsked(call))
    return afterChecks(call, (checked) => answerAny(checked, seen, deps), seen, deps).then((done) => done ?? REPLAYED)
  return call.cache ? answerAny(call, seen, deps) : answer(call, seen, deps)
}

const isAsked = ({ guard }: Arrived) => guard?.guard.asks('request') === true

function answerAny(call: ExchangeCall, seen: Seen, deps: PathDeps): Promise<Settled> {
  // A repetition is answered from the idempotency store, with the same bytes.
  return call.cache && !call.idempotency ? answerOrCached(call, call.cache, seen, deps) : answer(call, seen, deps)
}

/**
 * The call is counted and held before hooks check it, so a caller at a limit cannot cause checks. Undefined: it was a
 * repetition.
 */
async function afterChecks<Call extends Arrived, Done>(
  arrived: Call,
  go: (call: Call & Held) => Promise<Done>,
  seen: Seen,
  deps: PathDeps,
): Promise<Done | undefined> {
  const admitted = await admit(
    { ...deps.usualOutput.applied(arrived), room: arrived.guard?.guard.reserve(arrived) ?? 0n },
    deps.ledger,
  )
  if (admitted === 'replay') {
    await replay(arrived, deps)
    return undefined
  }
  seen.stage('admit')
  const held = { ...arrived, admitted, seen }
  try {
    return await go(held.guard ? await held.guard.guard.checkRequest(held, deps) : held)
  } catch (error) {
    // A no-op when the call has already been settled.
    await release(held, endingOf(error), deps)
    throw error
  }
}

/** Answers from a vendor, or from the response cache. */
async function answerOrCached(arrived: ExchangeCall, cache: CacheRule, seen: Seen, deps: PathDeps): Promise<Settled> {
  const found = await deps.cache.enter(cache, arrived.out.signal)
  const kept = found && isCached(found) ? found : undefined
  const flight = found && !isCached(found) ? found : undefined
  if (arrived.out.signal.aborted) {
    flight?.complete()
    throw CLIENT_CLOSED
  }
  if (kept) return answer(hitOf(arrived, kept, cache.pricing), seen, deps, kept)
  try {
    return await answer(flight ? { ...arrived, flight } : arrived, seen, deps)
  } finally {
    flight?.complete()
  }
}

/** The usage of a hit is known, so exactly its price is held. A cache price may include a price per hit. */
function hitOf(arrived: ExchangeCall, { usage }: CachedResponse, pricing: Pricing | undefined): ExchangeCall {
  const { outputOpen: _, usesOpen: __, ...paidRequest } = arrived.paidRequest
  const worst = usage ?? paidRequest.worst
  if (!pricing) return { ...arrived, paidRequest: { ...paidRequest, worst } }
  return {
    ...arrived,
    paidRequest: { ...paidRequest, worst: { call: 1, ...worst } },
    product: { ...arrived.product, pricing },
  }
}

/**
 * Every answer of a vendor takes this path. The stages are called directly, because each extra promise would cost every
 * call.
 */
async function answer(arrived: ExchangeCall, seen: Seen, deps: PathDeps, kept?: CachedResponse): Promise<Settled> {
  const { paidRequest, out } = arrived
  const isOpen = paidRequest.outputOpen !== undefined || arrived.fallbacks !== undefined
  const admitted = arrived.admitted ?? (await admit(isOpen ? deps.usualOutput.applied(arrived) : arrived, deps.ledger))
  if (admitted === 'replay') {
    await replay(arrived, deps)
    return REPLAYED
  }
  if (!seen.held) seen.stage('admit')
  const held: Held & ExchangeCall = { ...arrived, admitted, seen }
  let attempted: Attempted | undefined
  let settled: Settled
  try {
    if (kept) return await relayCached(held, kept, deps)
    if (paidRequest.gather) await paidRequest.gather(out.signal)
    if (out.signal.aborted) throw CLIENT_CLOSED
    if (held.shadow) deps.shadows?.copy(held)
    const answered: Answered = held.fallbacks
      ? await attemptModels(held, held.fallbacks, deps)
      : Object.assign(held, {
          attempted: await attempt(paidRequest, candidatesOf(held, deps), openingOf(held, deps), deps),
        })
    attempted = answered.attempted
    seen.stage('vendor')
    const streams = paidRequest.stream && attempted.exchange.stream
    settled = await (streams ? relayStream(answered, deps) : relayAnswer(answered, deps))
  } catch (error) {
    attempted?.reply.abort()
    attempted?.leave()
    // A no-op when the relay has already resolved the hold.
    await release(held, endingOf(error), deps)
    throw error
  }
  attempted.leave()
  seen.stage('relay')
  return settled
}

/**
 * Tries one model after the other until a vendor answers. The call is charged at the price of the model that answered.
 */
async function attemptModels(
  held: Held & ExchangeCall,
  [next, ...others]: readonly Fallback[],
  deps: PathDeps,
): Promise<Answered> {
  const { product } = held.paidRequest
  try {
    const opening = openingOf(held, deps)
    const { recorder } = opening
    const add = (one: VendorAttempt) => recorder.add({ ...one, product })
    const named = { all: true, add, decided: (words: string) => recorder.decided(words) }
    const attempted = await attempt(held.paidRequest, candidatesOf(held, deps), { ...opening, recorder: named }, deps)
    held.seen.answeredBy(product)
    return { ...held, attempted }
  } catch (error) {
    if (!next || !mayAnotherModelHelp(error, held)) throw error
    const { paidRequest, product: model, routes, own } = next
    const admitted = admittedFor(next, held.admitted)
    return attemptModels({ ...held, paidRequest, product: model, routes, own, admitted }, others, deps)
  }
}

/** Codes by which vendors say that a request is too long for the model. */
const TOO_LONG = /context_(?:length|window)/

function mayAnotherModelHelp(error: unknown, { out }: Held): boolean {
  if (out.signal.aborted || !(error instanceof Fault)) return false
  return error.blame === 'vendor' || TOO_LONG.test(error.details.vendorCode ?? '')
}

async function accept(arrived: JobCall, seen: Seen, deps: PathDeps): Promise<Settled> {
  const order = (call: JobCall) => orderJob(call, seen, deps)
  const ordered = await (isAsked(arrived)
    ? afterChecks({ ...arrived, isApart: true }, order, seen, deps)
    : order(arrived))
  if (!ordered) return REPLAYED
  const { job, rate } = ordered
  job.begin()
  const headers = { 'content-type': 'application/json; charset=utf-8', ...(rate ? rateHeaders(rate) : {}) }
  arrived.out.send(200, headers, job.row.answer)
  return ACCEPTED
}

/** One statement creates the hold and the job's row. After it, the job is processed even if this process dies. */
async function orderJob(arrived: JobCall, seen: Seen, deps: PathDeps) {
  const { product, routes, preference } = arrived
  const allowedRoutes = preference && routes.map((route) => product.routes.indexOf(route) + 1)
  const job = await deps.jobs.open(arrived.paidRequest.order, { ...arrived, allowedRoutes }, arrived.out.signal)
  const admitted = await admit(arrived, deps.ledger, job.row)
    .then((found) => (found === 'replay' ? replay(arrived, deps) : found))
    .catch(async (error: unknown) => {
      await job.drop(error)
      throw error
    })
  if (!admitted) {
    await job.drop()
    return undefined
  }
  if (!seen.held) seen.stage('admit')
  return { job, rate: arrived.admitted?.rate ?? admitted.rate }
}

/** The routes that the call may take, the best first. */
export function candidatesOf(
  call: ExchangeCall & Partial<Pick<Held, 'seen'>>,
  { routes }: Pick<PathDeps, 'routes'>,
): Candidate[] {
  const { paidRequest, product, catalog, own, objectOwner, preference, seen } = call
  // Fail closed: a test account must never reach a real vendor.
  if (isTestAccount(call.principal.accountId) !== catalog.simulated) throw new Fault('internal')
  const { routing } = product
  const routed = routeRequest(
    paidRequest,
    {
      routes: product.routes,
      routing,
      pool: call.routes,
      preference,
      session: call.labels?.session,
      decided: preference && seen && ((words) => seen.decided(words)),
    },
    catalog.document,
    routes,
  )
  const possible = own ? byByokKey(routed, own) : routed
  return objectOwner ? possible.flatMap((one) => atOwner(one, objectOwner, paidRequest)) : possible
}

function openingOf(held: Held, { world }: PathDeps): Parameters<typeof attempt>[2] {
  return {
    requestId: held.requestId,
    account: held.principal.accountId,
    recorder: held.seen.recorder,
    hedgeMs: held.product.routing.hedgeMs,
    // A caller who left may repeat the key, so the call runs to its end. Background work ends early only when it is
    // cancelled.
    isRepeatable: held.idempotency !== undefined && !held.idempotency.keepsAll,
    createdSeconds: Math.floor(world.nowMs() / 1000),
    nowSeconds: () => Math.floor(world.nowMs() / 1000),
    signal: held.out.signal,
    callerHeaders: held.callerHeaders,
    outputTokensCap: held.admitted.outputTokensCap,
    usesCap: held.admitted.usesCap,
    guard: held.guard?.guard,
  }
}

/**
 * The candidate if its vendor stores the object that the request refers to, with the credential that created the
 * object.
 */
function atOwner(candidate: Candidate, objectOwner: ObjectOwner, { clientFormat }: PaidRequest): Candidate[] {
  const { vendorName, target, credentials } = candidate
  if (vendorName !== objectOwner.vendor || target.protocol !== clientFormat) return []
  const made = credentials?.filter(({ name }) => name === objectOwner.credential) ?? []
  return [made.length === 0 ? candidate : { ...candidate, credentials: made }]
}

type ExchangeCall = Arrived & {
  readonly paidRequest: PaidRequest
  readonly flight?: SingleFlight
  /** Held before. */
  readonly admitted?: Admitted
}
type JobCall = Arrived & { readonly paidRequest: JobRequest; readonly admitted?: Admitted }

function refusedCall({ requestId, principal, paidRequest, endpoint }: Arrived): RefusedCall {
  return { requestId, account: principal.accountId, key: principal.keyId, product: paidRequest.product, endpoint }
}

/** Without a fault: the caller has disconnected. */
function endingOf(error: unknown): { status: number; fault?: Fault } {
  if (error === CLIENT_CLOSED) return { status: CLIENT_CLOSED_STATUS }
  const fault = asFault(error)
  return { status: fault.status, fault }
}

// A call that continues an object stored at a vendor: it may use only that vendor, with the credential that created the
// object.

async function withObjectOwner(arrived: Arrived, { database }: Pick<PathDeps, 'database'>): Promise<Arrived> {
  const { paidRequest, product, principal } = arrived
  const objectOwner = await findObjectOwner(
    { ...paidRequest, principal, routes: product.routes, own: arrived.own },
    database,
  )
  // The object is at no vendor, or only the account's BYOK key can find it.
  if (!objectOwner) return arrived
  if (arrived.preference && !arrived.routes.some(({ vendor }) => vendor === objectOwner.vendor))
    throw new Fault('access_denied', {
      message: 'This request continues a response that is stored at a vendor which the call may not use.',
    })
  // An object that a BYOK key created can be read with that key; one that the gateway's credential created, only with
  // that credential.
  const own = objectOwner.credential === BYOK && arrived.own ? { ...arrived.own, fallback: false } : undefined
  return { ...arrived, objectOwner, own }
}
