// The checks of a call by others: an operator's hook, or a moderation model. Requests are asked about when they are
// counted and held, whole answers before they are sent, and streams window by window, so that what was not asked about
// does not leave.

import { admittedFor, estimate, rateHeaders } from '../../admission/admit.ts'
import type { Credits } from '../../kernel/credits.ts'
import { Fault } from '../../kernel/fault.ts'
import { isObject, objectOf, objects, readJson } from '../../kernel/json.ts'
import type { GuardrailReport } from '../../ledger/views.ts'
import { chargeOf } from '../../meter/charge.ts'
import type { Answered, Arrived, Held, PathDeps } from '../../pipeline/call.ts'
import type { Forward, Gate, Guard, Phase } from '../../pipeline/hooks.ts'
import type { Answer } from '../../protocols/protocol.ts'
import { attempt } from '../../routing/attempt.ts'
import { routeRequest, routesFor } from '../../routing/route.ts'
import { readModerationsRequest } from '../embeddings/rerank-and-moderation.ts'
import type { Hooks } from './hook.ts'
import type { GuardrailRule } from './rules.ts'

/** A rule that asks somebody else. */
export interface Check {
  readonly name: string
  readonly rule: GuardrailRule
}

/** The rules of one call, as their checks see them. */
export interface Checking extends Pick<Guard, 'redact' | 'asks'> {
  readonly hooks: Hooks
  /** The rules that ask somebody else, in the order of the catalog. */
  checks(phase: Phase): readonly Check[]
  /** What was said in a request or an answer. */
  readonly textsOf: (json: string) => string[]
  /** The same request or answer with other texts in their places. */
  readonly withTexts: (json: string, texts: readonly string[]) => string
  /** What a stream has said since this was asked last. */
  takeSaid(): string
  /** Nothing of an answer has to be looked at. */
  readonly isIdle: boolean
  answer(body: string): string
  note(rule: string, on: Phase, did: GuardrailReport['did']): void
}

interface Asked {
  readonly by: Checking
  readonly check: Check
  readonly on: Phase
  readonly texts: readonly string[]
}

/** What a check says of some texts. */
export type Verdict =
  | { readonly action: 'allow' }
  | { readonly action: 'block'; readonly reason: string }
  | { readonly action: 'replace'; readonly texts: readonly string[] }

/** What a hook learns about the call. */
export interface CheckedCall extends Pick<Arrived, 'requestId' | 'principal' | 'endpoint' | 'labels'> {
  readonly product: string
  readonly signal: AbortSignal
}

/** How many more input tokens, which is as many bytes, a hook's replacement may have than the original request. */
const ROOM_TOKENS = 4_000

export function replacementReserve(by: Checking, arrived: Arrived): Credits {
  const { paidRequest } = arrived
  const { input } = paidRequest.worst
  if (input === undefined || !by.checks('request').some(({ rule }) => rule.hook)) return 0n
  const longer = { ...paidRequest, worst: { ...paidRequest.worst, input: input + ROOM_TOKENS } }
  return estimate({ ...arrived, paidRequest: longer }).floor - estimate(arrived).floor
}

export async function checkRequest<Call extends Held>(by: Checking, held: Call, deps: PathDeps): Promise<Call> {
  const { guard } = held
  if (!guard) return held
  let json = guard.json
  let last: Check | undefined
  for (const check of by.checks('request')) {
    const texts = by.textsOf(json.text)
    const put = texts.length === 0 ? undefined : await askAbout({ by, check, on: 'request', texts }, held, deps)
    if (!put) continue
    last = check
    // Texts that a hook inserts are redacted too.
    json = by.redact(readJson(Buffer.from(by.withTexts(json.text, put))))
  }
  if (!last) return held
  const { paidRequest, routes, guard: again, fallbacks, shadow } = guard.reread(json)
  // Its prices stay, because those of a batch differ. An answer to replaced texts does not belong to the original
  // request, so it is not cached.
  const others = fallbacks?.map((one, at) => ({ ...one, product: held.fallbacks?.[at]?.product ?? one.product }))
  const replaced = { ...held, paidRequest, routes, guard: again, fallbacks: others, shadow, cache: undefined }
  if (estimate(replaced).floor > held.admitted.held)
    throw blocked(
      { by, check: last, on: 'request' },
      'Its replacement of the request would cost more than is held for the call.',
      held,
    )
  return { ...replaced, admitted: admittedFor(replaced, held.admitted) }
}

const JSON_TYPE = /^application\/(?:[\w.-]{1,80}\+)?json/i
/** The whole body is one text. */
const TEXT_TYPE = /^(?:text\/|application\/(?:csv|xml|x-ndjson|[\w.-]{1,80}\+xml))/i
const isRead = (type: string) => JSON_TYPE.test(type) || TEXT_TYPE.test(type)

export function isChecked(by: Checking, { attempted }: Answered): boolean {
  return !by.isIdle && isRead(attempted.reply.headers['content-type'] ?? '')
}

export async function checkAnswer(by: Checking, answered: Answered, answer: Answer, deps: PathDeps): Promise<Answer> {
  if (by.isIdle || !isRead(answer.contentType)) return answer
  const isText = !JSON_TYPE.test(answer.contentType)
  let body = isText ? JSON.stringify({ whole: String(answer.body) }) : String(answer.body)
  for (const check of by.checks('answer')) {
    const texts = by.textsOf(body)
    const put = texts.length === 0 ? undefined : await askAbout({ by, check, on: 'answer', texts }, answered, deps)
    if (put) body = by.withTexts(body, put)
  }
  const left = by.answer(body)
  return { ...answer, body: isText ? String(objectOf(JSON.parse(left)).whole) : left }
}

// Streams.

/** A check gets a window of this much text, or what arrived within this time. */
const WINDOW_CHARS = 400
const WINDOW_MS = 1_000
/** How much of the earlier text a check gets as context for the next window. */
const CONTEXT_CHARS = 200
/** The end of a window waits for the next one, so that a word that was cut in two is checked as a whole. */
const TAIL_CHARS = 60
/** It is sent if nothing more arrives for this time. */
const QUIET_MS = 3_000

/** Holds back text that has not been checked yet. Undefined: no check applies. */
export function gateOf(by: Checking, answered: Answered, forward: Forward, deps: PathDeps): Gate | undefined {
  return by.asks('answer') ? new StreamGate(by, answered, forward, deps) : undefined
}

class StreamGate implements Gate {
  readonly #guard: Checking
  readonly #answered: Answered
  readonly #send: Forward
  readonly #deps: PathDeps
  /** Each event with the amount of text that preceded it. */
  readonly #held: { readonly piece: string | Buffer; readonly chars: number }[] = []
  #chars = 0
  /** When the vendor last sent something. */
  #saidMs = 0
  #isOver = false
  /** The end of what was asked about, and what was not. */
  #context = ''
  #said = ''
  #asking: Promise<void> | undefined
  #failure: { readonly error: unknown } | undefined
  #timer: (() => void) | undefined
  #stopped = false

  constructor(guard: Checking, answered: Answered, send: Forward, deps: PathDeps) {
    this.#guard = guard
    this.#answered = answered
    this.#send = send
    this.#deps = deps
  }

  readonly forward: Forward = (piece) => {
    this.#listen()
    if (piece !== undefined && piece.length > 0) this.#held.push({ piece, chars: this.#chars })
    if (this.#asking) return this.#asking.then(() => this.#look())
    return this.#look()
  }

  async end(): Promise<void> {
    this.#listen()
    this.#isOver = true
    while (this.#asking) await this.#next()
    await this.#next()
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.()
  }

  #listen(): void {
    const said = this.#guard.takeSaid()
    if (said !== '') this.#saidMs = this.#deps.world.elapsedMs()
    this.#said += said
    this.#chars += said.length
  }

  #look(): Promise<void> | undefined {
    if (this.#failure) throw this.#failure.error
    if (this.#stopped) return undefined
    if (this.#said.length >= WINDOW_CHARS) return this.#next()
    if (this.#held.length > 0)
      this.#timer ??= this.#deps.world.after(WINDOW_MS, () => void this.#next().catch(() => {}))
    return undefined
  }

  async #next(): Promise<void> {
    this.#timer?.()
    this.#timer = undefined
    if (this.#failure) throw this.#failure.error
    this.#asking ??= this.#ask().catch((error: unknown) => {
      this.#failure = { error }
    })
    const asking = this.#asking
    await asking
    // Another waiter for the same check may have started the next one.
    if (this.#asking === asking) this.#asking = undefined
    await this.#look()
  }

  async #ask(): Promise<void> {
    if (this.#stopped) return
    const isNew = this.#said !== ''
    const isQuiet = this.#isOver || this.#deps.world.elapsedMs() - this.#saidMs >= QUIET_MS
    const text = this.#context + this.#said
    this.#said = ''
    const checked = isQuiet ? this.#chars : Math.max(0, this.#chars - TAIL_CHARS)
    this.#context = text.slice(-CONTEXT_CHARS)
    if (isNew)
      for (const check of this.#guard.checks('answer')) {
        const put = await askAbout({ by: this.#guard, check, on: 'answer', texts: [text] }, this.#answered, this.#deps)
        // Text in events that are already encoded cannot be replaced.
        if (put && put[0] !== text) throw blocked({ by: this.#guard, check, on: 'answer' }, '', this.#answered)
      }
    while (this.#held[0] && this.#held[0].chars <= checked && !this.#stopped)
      await this.#send(this.#held.shift()?.piece)
  }
}

// One check.

/** Undefined: the texts stay. Throws if the check blocks them, or cannot be made and may not be left out. */
async function askAbout(
  { by, check, on, texts }: Asked,
  call: Held,
  deps: PathDeps,
): Promise<readonly string[] | undefined> {
  const { out, paidRequest } = call
  const { requestId, principal, endpoint, labels } = call
  const about = { requestId, principal, endpoint, labels, product: paidRequest.product, signal: out.signal }
  const { name, rule } = check
  let verdict: Verdict
  try {
    verdict = rule.hook
      ? await by.hooks.ask(name, rule.hook, { on, texts, about })
      : await moderate(check, texts, call, deps)
  } catch (error) {
    if (out.signal.aborted) throw out.signal.reason
    const { onFailure } = rule.hook ?? rule.moderate ?? {}
    const why = error instanceof Fault ? { fault: error.kind, ...error.details.internal } : { error }
    deps.log.warn({ requestId, rule: name, on, ...why }, 'a guardrail check failed')
    by.note(name, on, 'unchecked')
    if (onFailure === 'allow') return undefined
    const isPaid = on === 'answer' && 'stream' in paidRequest && paidRequest.stream
    throw new Fault('unavailable', {
      message: `The guardrail "${name}" is not available, so this ${on} was not checked. ${isPaid ? 'What the vendor had reported by then is charged.' : COUNTED} Try again shortly.`,
      retryAfterSeconds: 2,
      cause: error,
    })
  }
  if (verdict.action === 'block') throw blocked({ by, check, on }, verdict.reason, call)
  if (verdict.action === 'allow') return undefined
  by.note(name, on, 'replaced')
  return verdict.texts
}

const COUNTED = 'You were not charged; the call counts as one request.'

function blocked(
  { by, check: { name }, on }: Omit<Asked, 'texts'>,
  reason: string,
  { admitted: { rate } }: Held,
): Fault {
  by.note(name, on, 'blocked')
  const because = reason === '' ? '' : ` ${reason}`
  const costs = on === 'answer' ? 'The vendor has answered already, so the call is charged.' : COUNTED
  return new Fault('guardrail_blocked', {
    message: `The guardrail "${name}" blocked this ${on}.${because} ${costs}`,
    vendorCode: 'content_filter',
    internal: { on },
    headers: { 'x-tollgate-guardrail': name, ...(rate ? rateHeaders(rate) : {}) },
  })
}

// Moderation: the model's own route, on the operator's bill.

const TEXTS_AT_ONCE = 500
const REPORT_BYTES_MAX = 8 * 1024 * 1024

async function moderate(
  { rule }: Check,
  texts: readonly string[],
  call: Pick<Arrived, 'catalog' | 'requestId' | 'principal' | 'out'>,
  deps: PathDeps,
): Promise<Verdict> {
  const { model: uid, categories, deadlineMs } = rule.moderate! // A check without a hook is one.
  const late = new AbortController()
  const cancel = deps.world.after(deadlineMs, () => late.abort(new Fault('upstream_timeout')))
  const signal = AbortSignal.any([call.out.signal, late.signal])
  try {
    for (let at = 0; at < texts.length; at += TEXTS_AT_ONCE) {
      const found = await flagged(texts.slice(at, at + TEXTS_AT_ONCE), uid, { ...call, signal }, deps)
      const named = found?.filter((one) => categories?.includes(one) ?? true) ?? []
      if (found && (categories === undefined || named.length > 0))
        return { action: 'block', reason: named.length > 0 ? `It was flagged as ${named.join(', ')}.` : '' }
    }
    return { action: 'allow' }
  } finally {
    cancel()
  }
}

/** The categories by which any of the texts is flagged; undefined: none is. */
async function flagged(
  input: readonly string[],
  uid: string,
  {
    catalog,
    requestId,
    principal,
    signal,
  }: Pick<Arrived, 'catalog' | 'requestId' | 'principal'> & { signal: AbortSignal },
  deps: PathDeps,
): Promise<readonly string[] | undefined> {
  const model = catalog.document.models[uid]! // The check of the catalog has seen that there is one.
  const ask = readModerationsRequest(readJson(Buffer.from(JSON.stringify({ model: uid, input }))), uid)
  const pool = routesFor(ask, model, catalog.document)
  const candidates = routeRequest(ask, { ...model, pool }, catalog.document, deps.routes)
  const createdSeconds = Math.floor(deps.world.nowMs() / 1000)
  const account = principal.accountId
  const recorder = { all: false, add() {}, decided() {} }
  const opening = { requestId, account, recorder, isRepeatable: false, createdSeconds, signal }
  const attempted = await attempt(ask, candidates, opening, deps)
  try {
    const { exchange, reply, candidate } = attempted
    const { body, usage = {} } = await exchange.answer(await reply.read(REPORT_BYTES_MAX), reply.headers)
    const { vendorName: vendor, target, credential, cost: rates } = candidate
    const cost = rates && chargeOf(rates, usage, ask.price).amount
    const paid = { vendor, product: uid, model: target.model, credential, usage, cost }
    deps.unbilled.count({ kind: 'guardrail', account, ...paid })
    const report: unknown = JSON.parse(String(body))
    const results = objects(isObject(report) ? report.results : undefined).filter((one) => one.flagged === true)
    const named = results.flatMap(({ categories }) => Object.entries(isObject(categories) ? categories : {}))
    const names = named.flatMap(([name, is]) => (is === true ? [name] : []))
    return results.length === 0 ? undefined : [...new Set(names)]
  } finally {
    attempted.leave()
  }
}
