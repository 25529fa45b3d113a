// The vendor's answer on its way to the caller. Nothing that ends an answer leaves before its settlement is durable.
import { rateHeaders } from '../admission/admit.ts'
import { faultReplayOf, replayOf, StreamCopy, storeLargeReplay } from '../admission/idempotency.ts'
import { recordVendorObjects } from '../admission/vendor-objects.ts'
import { formatCredits } from '../kernel/credits.ts'
import { asFault, CLIENT_CLOSED, Fault } from '../kernel/fault.ts'
import type { Usage } from '../meter/usage.ts'
import type { Answer, StreamRelay, StreamState } from '../protocols/protocol.ts'
import { cutEvent } from '../protocols/text/openai-responses/pass.ts'
import { describe, vendorWords } from '../protocols/vendor-fault.ts'
import { deadlineOf, recordAbortedCost } from '../routing/attempt.ts'
import { isHeldBack } from '../upstream/call.ts'
import type { Answered, Held, PathDeps } from './call.ts'
import { type Guard, isBlocked } from './hooks.ts'
import type { CachedResponse } from './response-cache.ts'
import type { ResponseSink } from './response-sink.ts'
import { estimatedUsage, possibleUsage, receiptComment, type Settled, settle, wasCut, withUses } from './settle.ts'

const ANSWER_BYTES_MAX = 64 * 1024 * 1024
/** From here on an unread answer is relayed as it comes, instead of being held until it is whole. */
const PASS_BYTES_MIN = 1024 * 1024
/** The status in the usage row of a call whose caller disconnected before the end. */
export const CLIENT_CLOSED_STATUS = 499
const STREAM_TYPE = 'text/event-stream; charset=utf-8'
/** How long to wait for a vendor that sent its last event but does not close the connection. */
const LINGER_MS = 1_000

export async function relayAnswer(answered: Answered, deps: PathDeps): Promise<Settled> {
  const { reply, exchange } = answered.attempted
  const passMin = Math.max(PASS_BYTES_MIN, answered.flight?.bytesMax ?? 0)
  const isLong = Number(reply.headers['content-length'] ?? 0) >= passMin
  const { passesAsItComes: comes } = exchange
  if (
    exchange.pass &&
    !answered.guard?.guard.isChecked(answered) &&
    (isLong || (typeof comes === 'function' ? comes(reply.headers) : comes))
  )
    return relayUnread(answered, deps)
  let settling = false
  let unfit: Fault | undefined
  try {
    const body = await reply.read(ANSWER_BYTES_MAX)
    const reading = exchange.answer(body, reply.headers)
    const read = reading instanceof Promise ? await reading : reading
    const answer = answered.guard ? await guarded(answered.guard.guard, answered, read, deps) : read
    const usage = answer.usage ?? estimatedUsage(answered, Math.ceil((answer.outputChars ?? 0) / 4))
    if (answered.flight) offerToCache(answered, answer.storedAs, answer.fault ? undefined : { ...answer, usage })
    const status = answer.fault?.status ?? answer.status ?? 200
    const replay = answered.idempotency ? await replayFor(answered, answer, deps) : undefined
    settling = true
    const remembered = answer.storedAs?.length ? storeVendorObjects(answered, answer.storedAs, deps) : undefined
    const receipt = await settle(
      answered,
      {
        usage,
        estimated: answer.usage === undefined,
        status: answered.out.signal.aborted ? CLIENT_CLOSED_STATUS : status,
        price: answer.price,
        replay,
        fault: answer.fault,
      },
      deps,
    )
    if (remembered) await remembered
    unfit = answer.fault
    if (!unfit) {
      const headers = { 'content-type': answer.contentType, ...answer.headers }
      const { number } = answered.attempted.candidate
      answered.out.send(status, withAnswerHeaders(headers, answered, number, receipt), answer.body)
      return receipt
    }
  } catch (error) {
    reply.abort()
    await exchange.discard?.()
    // The vendor had started to answer, so it billed the prompt although nothing was delivered.
    if (answered.out.signal.aborted && !settling)
      return settle(
        answered,
        { usage: estimatedUsage(answered, 0), estimated: true, status: CLIENT_CLOSED_STATUS },
        deps,
      )
    throw toCallerFault(error, answered, deps)
  }
  // The answer is charged but not delivered.
  throw unfit
}

/** The vendor made the answer that a guardrail blocked, so it is charged. */
async function guarded(guard: Guard, answered: Answered, answer: Answer, deps: PathDeps): Promise<Answer> {
  try {
    return answer.fault ? answer : await guard.checkAnswer(answered, answer, deps)
  } catch (error) {
    if (isBlocked(error)) return { ...answer, fault: error }
    throw error
  }
}

/** The replay for a repeated idempotency key. */
function replayFor(answered: Answered, { status = 200, contentType, body, fault }: Answer, deps: PathDeps) {
  if (fault) return faultReplayOf(answered, fault, deps.sealer)
  const whole = { status, contentType, body: () => Buffer.from(body) }
  return replayOf(answered, whole, deps.sealer) ?? storeLargeReplay(answered, whole, deps)
}

/** The headers that every answer has, and the receipt of one that is charged before it begins, added to `headers`. */
function withAnswerHeaders(
  headers: Record<string, string>,
  { paidRequest, admitted, cache, fallbacks, decided }: Held,
  route: number,
  receipt?: Settled & { readonly isKept?: true },
): Record<string, string> {
  if (receipt) headers['x-tollgate-charge'] = formatCredits(receipt.charged)
  if (receipt?.runCharged !== undefined) headers['x-tollgate-run-cost'] = formatCredits(receipt.runCharged)
  headers['x-tollgate-route'] = String(route)
  if (paidRequest.leftOut) headers['x-tollgate-left-out'] = paidRequest.leftOut
  if (fallbacks || decided) headers['x-tollgate-model'] = paidRequest.product
  if (cache) headers['x-cache'] = receipt?.isKept ? 'hit' : 'miss'
  return admitted.rate ? Object.assign(headers, rateHeaders(admitted.rate)) : headers
}

/** A cached answer. Its hold covers exactly its usage. */
export async function relayCached(held: Held, kept: CachedResponse, deps: PathDeps): Promise<Settled> {
  const receipt = await settle(held, { usage: held.paidRequest.worst, estimated: false, status: 200 }, deps)
  const headers = { 'content-type': kept.contentType }
  held.out.send(200, withAnswerHeaders(headers, held, kept.route, { ...receipt, isKept: true }), kept.body)
  return receipt
}

/** The last piece waits for the settlement; everything before it goes out as it comes. */
async function relayUnread(answered: Answered, deps: PathDeps): Promise<Settled> {
  const { out, attempted } = answered
  const { contentType, usage } = attempted.exchange.pass!(attempted.reply.headers)
  answered.flight?.complete()
  const kept = answered.idempotency ? new StreamCopy() : undefined
  const caller = watchCaller(out, deps)
  let last: Buffer | undefined
  try {
    await attempted.reply.pipe((chunk) => {
      const piece = last
      last = chunk
      kept?.push(chunk)
      if (!out.started)
        out.startStream(withAnswerHeaders({ 'content-type': contentType }, answered, attempted.candidate.number))
      return piece && caller.write(piece)
    })
  } catch (error) {
    attempted.reply.abort()
    if (hasLeft(out, error)) return settle(answered, { usage, estimated: false, status: CLIENT_CLOSED_STATUS }, deps)
    throw toCallerFault(error, answered, deps)
  } finally {
    caller.unwatch()
  }
  if (last === undefined)
    throw toCallerFault(new Fault('upstream_garbled', { internal: { why: 'the answer is empty' } }), answered, deps)
  const replay = replayOf(answered, { status: 200, contentType, body: () => kept?.whole('') }, deps.sealer)
  const receipt = await settle(answered, { usage, estimated: false, status: statusOf(answered), replay }, deps)
  out.end(last)
  return receipt
}

/** Writes to a caller, and cuts off one who stops reading. */
function watchCaller(out: ResponseSink, { world, watch }: PathDeps, quiet: () => void = () => {}) {
  const watched = { quietLooks: 0, fullMs: 0, quiet, stuck: () => out.destroy() }
  return {
    unwatch: watch.add(watched),
    write(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Promise<void> | undefined {
      watched.quietLooks = 0
      const full = out.write(piece, encoding)
      if (!full) return undefined
      watched.fullMs = world.elapsedMs()
      return full.then(() => {
        watched.fullMs = 0
      })
    },
  }
}

/**
 * A caller who reads so slowly that the vendor's deadline passes, or that the vendor hangs up, is treated as
 * disconnected: the connection is closed.
 */
function hasLeft(out: ResponseSink, error: unknown): boolean {
  if (out.signal.aborted) return true
  if (!isHeldBack(error)) return false
  out.destroy()
  return true
}

export async function relayStream(answered: Answered, deps: PathDeps): Promise<Settled> {
  const { out, attempted, requestId } = answered
  const { reply, candidate } = attempted
  const relay = attempted.exchange.stream!(reply.headers)
  const bytesMax = answered.idempotency?.keepsAll ? ANSWER_BYTES_MAX : undefined
  const kept = answered.idempotency || answered.flight ? new StreamCopy(answered.flight, bytesMax) : undefined
  let settling = false

  const caller = watchCaller(out, deps, () => {
    start()
    void out.write(relay.keepAlive)
  })

  function start(): void {
    if (!out.started)
      out.startStream(
        withAnswerHeaders(
          {
            'content-type': typeOf(relay),
            'cache-control': 'no-cache, no-store, no-transform',
            'x-accel-buffering': 'no',
          },
          answered,
          candidate.number,
        ),
      )
  }

  function forward(piece: string | Buffer | undefined): Promise<void> | undefined {
    if (piece === undefined || piece.length === 0) return undefined
    kept?.push(piece, relay.encoding)
    if (kept?.isOver || relay.state.storedAs?.length) answered.flight?.complete()
    if (out.signal.aborted) return undefined
    start()
    return caller.write(piece, relay.encoding)
  }

  const gate = answered.guard?.guard.gate(answered, forward, deps)
  try {
    await readAll(relay, answered, deps, gate ? gate.forward : forward)
    if (relay.state.fault) throw relay.state.fault
    if (!relay.state.terminal)
      throw new Fault('upstream_garbled', { internal: { why: 'the stream ended without a terminal event' } })
    await relay.ready?.()
    await gate?.end()
    const usage = relay.state.usage ?? seenUsage(answered, relay.state)
    settling = true
    const { storedAs } = relay.state
    const whole = kept?.whole(relay.finish(''))
    offerToCache(answered, storedAs, whole && { body: whole, contentType: typeOf(relay), usage })
    const remembered = storedAs?.length ? storeVendorObjects(answered, storedAs, deps) : undefined
    const receipt = await settle(
      answered,
      {
        usage,
        estimated: relay.state.usage === undefined,
        status: statusOf(answered),
        price: relay.state.price,
        replay: await replayOfStream(answered, typeOf(relay), whole, deps),
      },
      deps,
    )
    await remembered
    start()
    out.end(relay.finish(receiptComment(receipt)))
    return receipt
  } catch (error) {
    reply.abort()
    await attempted.exchange.discard?.()
    if (!settling && hasLeft(out, error)) return await settleLeft(answered, relay, kept, deps)
    const fault = isBlocked(error) ? error : asFault(toCallerFault(error, answered, deps))
    const settled = settling ? undefined : await settleBroken(answered, relay, fault, deps)
    if (!out.started) throw fault
    deps.log.warn(
      { requestId, vendor: candidate.vendorName, fault: fault.kind, ...fault.details.internal },
      'stream broke',
    )
    out.end(relay.fail(fault, requestId))
    if (settled) return settled
    throw fault
  } finally {
    gate?.stop()
    caller.unwatch()
  }
}

/**
 * Reported usage is charged even if the vendor broke off afterwards. Unreported usage is not, unless a guardrail
 * stopped the answer. A repetition of a charged call gets the same fault.
 */
async function settleBroken(
  answered: Answered,
  { state }: StreamRelay,
  fault: Fault,
  deps: PathDeps,
): Promise<Settled | undefined> {
  const usage = state.usage ?? (isBlocked(fault) ? seenUsage(answered, state) : undefined)
  const replay = usage && faultReplayOf(answered, fault, deps.sealer)
  return usage && settle(answered, { usage, estimated: !state.usage, status: fault.status, fault, replay }, deps)
}

/**
 * The caller has disconnected: the reported usage is charged, or else what was delivered. For background work this is a
 * cancellation, and the partial answer is stored with its charge.
 */
async function settleLeft(
  answered: Answered,
  relay: StreamRelay,
  kept: StreamCopy | undefined,
  deps: PathDeps,
): Promise<Settled> {
  const { usage, outputTokensSeen, promptUsage, uses, price } = relay.state
  if (!usage && outputTokensSeen === 0 && !uses && !promptUsage) {
    const { paidRequest, principal, attempted } = answered
    recordAbortedCost('client_closed', attempted.candidate, { paidRequest, account: principal.accountId }, deps)
    throw CLIENT_CLOSED
  }
  const owed = usage ?? seenUsage(answered, relay.state)
  const cut = answered.idempotency?.keepsAll && cutEvent(possibleUsage(answered, withUses(answered, owed)))
  const replay = cut ? await replayOfStream(answered, typeOf(relay), kept?.whole(cut), deps) : undefined
  return settle(
    answered,
    { usage: owed, estimated: usage === undefined, status: CLIENT_CLOSED_STATUS, price, replay },
    deps,
  )
}

/** The replay of a stream. */
function replayOfStream(answered: Answered, contentType: string, body: Buffer | undefined, deps: PathDeps) {
  const whole = { status: 200, contentType, body: () => body }
  return body && (replayOf(answered, whole, deps.sealer) ?? storeLargeReplay(answered, whole, deps))
}

/** As far as the stream came. */
function seenUsage(answered: Answered, { outputTokensSeen, promptUsage, uses }: StreamState): Usage {
  return { ...estimatedUsage(answered, outputTokensSeen, promptUsage), ...uses }
}

/** The vendor's error as this caller may see it. The attempt counts as failed after all. */
function toCallerFault(error: unknown, { paidRequest, attempted, seen }: Answered, { world }: PathDeps): unknown {
  const { candidate, startMs, reply } = attempted
  const { target, vendorName: vendor, number: route } = candidate
  const hearing = { paidRequest, target }
  const told = describe(error, hearing)
  const fault = asFault(told)
  const deadlineMs = deadlineOf(fault, candidate)
  const times = { startMs, endMs: world.elapsedMs(), deadlineMs }
  const about = { fault, said: vendorWords(error, hearing), stop: 'interrupted' as const }
  seen.recorder.add({ vendor, route, ...times, status: reply.status, ...about })
  return told
}

/** Reads to the vendor's terminal event: some never close their connection after it. */
async function readAll(
  relay: StreamRelay,
  answered: Answered,
  deps: PathDeps,
  forward: (piece: string | Buffer | undefined) => Promise<void> | undefined,
): Promise<void> {
  const { reply } = answered.attempted
  let terminal: () => void = () => {}
  const seen = new Promise<void>((resolve) => {
    terminal = resolve
  })
  const ended = reply
    .pipe((chunk) => {
      const wait = forward(relay.push(chunk))
      if (relay.state.terminal || relay.state.fault) terminal()
      return wait
    })
    .then(() => {
      const wait = forward(relay.end())
      return wait
    })
  await Promise.race([ended, seen])
  if (relay.state.terminal) {
    const cut = deps.world.after(LINGER_MS, () => reply.abort())
    ended.catch(() => undefined).finally(cut)
  } else ended.catch(() => undefined)
}

/** The owner must be stored before the caller gets the id: the next request may arrive at once, at another process. */
async function storeVendorObjects(
  answered: Answered,
  ids: readonly string[],
  { database, log }: PathDeps,
): Promise<void> {
  const { principal, paidRequest, attempted, requestId } = answered
  const { vendorName: vendor, credential } = attempted.candidate
  const kept = { vendor, credential, product: paidRequest.product }
  try {
    await recordVendorObjects(database, principal, ids, kept)
  } catch (error) {
    // The answer is delivered and paid for. It only cannot be continued.
    log.error({ requestId, error }, 'the owner of a vendor object could not be stored')
  }
}

function statusOf(answered: Answered): number {
  return answered.out.signal.aborted ? CLIENT_CLOSED_STATUS : 200
}

function typeOf({ contentType }: StreamRelay): string {
  return contentType ?? STREAM_TYPE
}

/**
 * Not cached: answers that a vendor stores for one caller, answers with an impossible usage report, and answers cut by
 * the balance, which are incomplete.
 */
function offerToCache(
  answered: Answered,
  storedAs: readonly string[] | undefined,
  answer: (Answer & { usage: Usage }) | undefined,
): void {
  if (!answered.flight) return
  // The charged usage: a hit holds exactly this, and costs no more than the call did.
  const usage = answer && withUses(answered, answer.usage)
  const isWhole = usage && possibleUsage(answered, usage) === usage && !wasCut(answered, usage)
  const isKept = isWhole && !storedAs?.length
  answered.flight.complete(isKept ? { ...answer, usage, route: answered.attempted.candidate.number } : undefined)
}
