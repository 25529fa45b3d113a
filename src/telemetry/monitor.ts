// Calls in flight and recent calls: the live list, the counters, and one log line per call.

import { settingsOf } from '../catalog/described.ts'
import { type Credits, formatCredits } from '../kernel/credits.ts'
import type { Fault, FaultName } from '../kernel/fault.ts'
import { isObject } from '../kernel/json.ts'
import type { Log } from '../kernel/log.ts'
import { withoutContent } from '../kernel/redact.ts'
import { SlotSet } from '../kernel/slot-set.ts'
import type { World } from '../kernel/world.ts'
import type { Resolution } from '../ledger/operation.ts'
import type { AttemptLog, AttemptView, GuardrailReport } from '../ledger/views.ts'
import type { Usage } from '../meter/usage.ts'
import type { PaidRequestFacts } from '../protocols/protocol.ts'
import { CALLERS_FORMATS, FORMATS } from '../protocols/text/formats.ts'
import type { AttemptRecorder, VendorAttempt } from '../routing/attempt.ts'
import type { RefusedCall } from './refusals.ts'

export interface Seen {
  /** The call's hold was made. */
  readonly held: boolean
  readonly recorder: AttemptRecorder
  /** The attempt log for the usage row; undefined: there is nothing to record. */
  attemptLog(fault?: Fault): AttemptLog | undefined
  /** The answer ended at this many output tokens per choice, because the remaining credits covered no more. */
  cutAt(tokens: number): void
  /** Why the charge is above its hold. */
  aboveHold(why: string): void
  /** What was decided about where the call goes, for its attempt log. */
  decided(words: string): void
  /** Of several models that were named, this one answers. */
  answeredBy(product: string): void
  /** A stage of the path has ended now. Each stage begins where the previous one ended. */
  stage(name: Stage): void
  end(ending: CallFacts & { status: number; outcome: string; fault?: Fault }): void
}

type Stage = 'admit' | 'vendor' | 'relay'

/** What a call came to, as far as it is known when it ends. */
export interface CallFacts {
  readonly usage?: Usage | undefined
  readonly charged: Credits
  readonly vendor?: string | undefined
  /** The model's name at the vendor. */
  readonly model?: string | undefined
  readonly cost?: Credits | undefined
}

/** Follows every call. Of an extension. */
export interface Tracer {
  begin(call: LiveCall, beginning: Beginning): CallTrace
  flush(): Promise<void>
}

/** Of one call. Times are those of `world.elapsedMs`. */
interface CallTrace {
  stage(name: Stage, startMs: number, endMs: number): void
  attempt(attempt: VendorAttempt): void
  end(facts: CallFacts): void
}

export interface LiveCall {
  readonly id: string
  atMs: number
  readonly account: string
  readonly key: string
  product: string
  readonly endpoint: string
  readonly stream: boolean
  running: boolean
  status: number | null
  outcome: string | null
  /** Why the call failed or was rejected. */
  fault: FaultName | null
  charged: Credits
  durationMs: number
  /** The number of calls that this entry stands for: equal rejections are merged into the first. */
  calls: number
}

export interface Meters {
  call(call: LiveCall, facts: CallFacts): void
  stage(name: Stage, seconds: number): void
  impossible(product: string): void
  overrun(vendor: string): void
}

interface Overrun {
  readonly vendor: string
  calls: number
  loss: Credits
  atMs: number
}

type OverrunCall = Pick<Resolution, 'id' | 'product' | 'vendor' | 'charge' | 'attemptLog'>

export interface Monitor {
  begin(call: {
    readonly requestId: string
    readonly principal: { readonly accountId: string; readonly keyId: string }
    readonly paidRequest: { readonly product: string; readonly stream: boolean; readonly sent?: string } & Pick<
      PaidRequestFacts,
      'clientFormat'
    >
    readonly endpoint: string
    readonly startedMs: number
    readonly callerHeaders: Readonly<Record<string, string>>
    readonly labels?: Readonly<Record<string, string>> | undefined
    readonly guard?: { readonly guard: { readonly report: readonly GuardrailReport[] } } | undefined
    readonly decided?: readonly string[] | undefined
  }): Seen
  /** The call was rejected before it began. */
  refused(fault: Fault, call: RefusedCall): void
  /** A vendor reported usage that is impossible for a call of this product. */
  impossible(product: string, vendor: string): void
  /** A call cost more than was held for it; `loss` is the part that the account could not pay. */
  aboveHold(call: OverrunCall, resolved: { readonly hold: Credits; readonly loss: Credits }): void
  /** The calls of the last hour that cost more than was held, by vendor. */
  overruns(): Overrun[]
  live(): LiveCall[]
  readonly running: number
}

const KEPT = 200
const OVERRUNS_FOR_MS = 3_600_000

type Beginning = Parameters<Monitor['begin']>[0]

interface MonitorOptions {
  readonly world: World
  readonly log: Log
  readonly meters?: Meters
  readonly tracer?: Tracer | undefined
}

export function createMonitor(options: MonitorOptions): Monitor {
  const ring: (LiveCall | undefined)[] = []
  let last = KEPT - 1
  /** Free slots of the ring that rejected calls left. */
  const free: number[] = []
  const refused = new RefusedCalls(options.world)
  const overruns = new Map<string, Overrun>()
  const load: Load = {
    running: 0,
    rejected(call) {
      refused.note(call)
      const place = ring.indexOf(call)
      if (place < 0) return
      ring[place] = undefined
      if (free.length < KEPT) free.push(place)
    },
  }
  function note(vendor: string, loss: Credits): void {
    const atMs = options.world.elapsedMs()
    const known = recentOverruns(overruns, atMs).find((one) => one.vendor === vendor)
    if (known) Object.assign(known, { calls: known.calls + 1, loss: known.loss + loss, atMs })
    else overruns.set(vendor, { vendor, calls: 1, loss, atMs })
  }
  return Object.assign(load, {
    begin(beginning: Beginning) {
      const seen = new SeenCall(beginning, options, load)
      const place = free.pop()
      const isFree = place !== undefined && ring[place] === undefined
      if (!isFree) last = (last + 1) % KEPT
      ring[isFree ? place : last] = seen.call
      return seen
    },
    refused({ kind: fault, status }: Fault, { requestId: id, ...call }: RefusedCall) {
      const ending = { stream: false, running: false, status, outcome: 'rejected', fault, charged: 0n, durationMs: 0 }
      refused.note({ id, atMs: options.world.nowMs(), ...call, ...ending, calls: 1 })
    },
    impossible(product: string, vendor: string) {
      options.meters?.impossible(product)
      note(vendor, 0n)
    },
    aboveHold(...[call, { hold, loss }]: Parameters<Monitor['aboveHold']>) {
      const { id, product, vendor = '', charge, attemptLog } = call
      const amounts = { charge: formatCredits(charge), hold: formatCredits(hold), loss: formatCredits(loss) }
      const why = attemptLog?.aboveHold
      options.log.warn(
        { requestId: `req_${id}`, product, vendor, ...amounts, why, anomaly: true },
        'charge above its hold',
      )
      options.meters?.overrun(vendor)
      note(vendor, loss)
    },
    overruns: () => recentOverruns(overruns, options.world.elapsedMs()),
    live: () =>
      [...ring, ...refused.list()].filter((call) => call !== undefined).sort((one, other) => other.atMs - one.atMs),
  })
}

function recentOverruns(overruns: Map<string, Overrun>, nowMs: number): Overrun[] {
  for (const { vendor, atMs } of overruns.values()) if (nowMs - atMs > OVERRUNS_FOR_MS) overruns.delete(vendor)
  return [...overruns.values()]
}

/** What a call reports to the monitor. */
interface Load {
  running: number
  rejected(call: LiveCall): void
}

class SeenCall implements Seen, AttemptRecorder {
  readonly call: LiveCall
  readonly all: boolean
  held = false
  readonly recorder = this
  readonly #beginning: Beginning
  readonly #options: MonitorOptions
  readonly #load: Load
  readonly #trace: CallTrace | undefined
  #stageMs: number
  #heldMs: number | undefined
  #tried: VendorAttempt[] | undefined
  #cutAtTokens: number | undefined
  #aboveHold: string | undefined
  #decided: readonly string[] | undefined

  constructor(beginning: Beginning, options: MonitorOptions, load: Load) {
    const { requestId, principal, paidRequest, endpoint, startedMs } = beginning
    this.call = {
      id: requestId,
      atMs: options.world.nowMs(),
      account: principal.accountId,
      key: principal.keyId,
      product: paidRequest.product,
      endpoint,
      stream: paidRequest.stream,
      running: true,
      status: null,
      outcome: null,
      fault: null,
      charged: 0n,
      durationMs: 0,
      calls: 1,
    }
    this.#beginning = beginning
    this.#options = options
    this.#load = load
    this.#stageMs = startedMs
    this.#trace = options.tracer?.begin(this.call, beginning)
    this.all = this.#trace !== undefined
    load.running += 1
  }

  add(attempt: VendorAttempt): void {
    // The trace already has the attempt of an answer that broke off.
    if (attempt.stop !== 'interrupted') this.#trace?.attempt(attempt)
    // A first attempt that succeeds is not recorded.
    if (this.#tried === undefined && attempt.fault === undefined) return
    this.#tried ??= []
    // An answer that broke off replaces the record of its own attempt.
    if (this.#tried.at(-1)?.startMs === attempt.startMs && !this.#tried.at(-1)?.skipped) this.#tried.pop()
    this.#tried.push(attempt)
  }

  decided(words: string): void {
    this.#decided = [...(this.#decided ?? this.#beginning.decided ?? []), words]
  }

  cutAt(tokens: number): void {
    this.#cutAtTokens = tokens
  }

  aboveHold(why: string): void {
    this.#aboveHold = why
  }

  answeredBy(product: string): void {
    this.call.product = product
  }

  attemptLog(fault?: Fault): AttemptLog | undefined {
    const tried = this.#tried ?? []
    const cutAtTokens = this.#cutAtTokens
    const aboveHold = this.#aboveHold
    const { startedMs, paidRequest, guard } = this.#beginning
    const guardrails = guard && guard.guard.report.length > 0 ? [...guard.guard.report] : undefined
    const decided = this.#decided ?? this.#beginning.decided
    const told = cutAtTokens !== undefined || aboveHold !== undefined || guardrails || decided?.length
    if (tried.length === 0 && fault === undefined && !told) return undefined
    const parameters = parametersOf(paidRequest)
    return {
      heldMs: this.#heldMs === undefined ? null : Math.round(this.#heldMs),
      attempts: tried.map((one, at) => attemptView(one, startedMs, at + 1 < tried.length)),
      ...(parameters ? { parameters } : {}),
      ...(cutAtTokens === undefined ? {} : { cutAtTokens }),
      ...(aboveHold === undefined ? {} : { aboveHold }),
      ...(guardrails ? { guardrails } : {}),
      ...(decided?.length ? { decided: [...decided] } : {}),
      fault: fault ? faultView(fault, paidRequest.sent) : null,
    }
  }

  stage(name: Stage): void {
    const nowMs = this.#options.world.elapsedMs()
    this.#options.meters?.stage(name, (nowMs - this.#stageMs) / 1000)
    this.#trace?.stage(name, this.#stageMs, nowMs)
    this.#stageMs = nowMs
    if (name !== 'admit') return
    this.held = true
    this.#heldMs = nowMs - this.#beginning.startedMs
  }

  end(ending: Parameters<Seen['end']>[0]): void {
    const { status, outcome, charged, fault } = ending
    const { call } = this
    if (!call.running) return
    const { world, meters, log } = this.#options
    const { requestId, principal, startedMs } = this.#beginning
    this.#load.running -= 1
    call.running = false
    call.status = status
    call.outcome = outcome
    call.fault = fault?.kind ?? null
    call.charged = charged
    call.durationMs = Math.round(world.elapsedMs() - startedMs)
    if (fault !== undefined && outcome === 'rejected') this.#load.rejected(call)
    meters?.call(call, ending)
    this.#trace?.end(ending)
    log.info(
      {
        requestId,
        account: call.account,
        key: principal.keyId,
        product: call.product,
        endpoint: call.endpoint,
        stream: call.stream,
        status,
        outcome,
        ...(fault === undefined ? {} : { fault: fault.kind }),
        charged: formatCredits(charged),
        ms: call.durationMs,
      },
      'call',
    )
  }
}

/** Text that the message quotes from the request is removed. */
function faultView(
  { kind: name, code, status, blame, message }: Fault,
  sent?: string,
): NonNullable<AttemptLog['fault']> {
  return { name, code, status, blame, message: withoutContent(message, sent) }
}

/** Limits the length of a vendor's text. */
const WORD_CHARS_MAX = 200

function attemptView(attempt: VendorAttempt, callStartedMs: number, retried: boolean): AttemptView {
  const { vendor, product, route, credential, startMs, endMs, queuedMs } = attempt
  const { skipped, status, fault, deadlineMs, vendorError, fix } = attempt
  const { phase, code, why } = fault?.details.internal ?? {}
  const word = (value: unknown) => (value === undefined ? null : String(value).slice(0, WORD_CHARS_MAX))
  return {
    vendor,
    ...(product === undefined ? {} : { product }),
    route,
    ...(credential === undefined ? {} : { credential }),
    startMs: Math.round(startMs - callStartedMs),
    ms: Math.round(endMs - startMs),
    ...(queuedMs === undefined ? {} : { queuedMs: Math.round(queuedMs) }),
    ...(skipped === undefined ? {} : { skipped }),
    status: status ?? null,
    fault: fault?.kind ?? null,
    phase: word(phase),
    cause: word(code ?? why),
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
    retried,
    stopped:
      attempt.stop === 'hedge_lost'
        ? 'hedge_lost'
        : fault === undefined || retried
          ? null
          : (attempt.stop ?? 'exhausted'),
    ...(vendorError === undefined ? {} : { vendorError }),
    ...(fix === undefined ? {} : { fix }),
    ...(attempt.cost === undefined ? {} : { cost: formatCredits(attempt.cost) }),
  }
}

// The parameters of a failed request for its attempt log: settings under the names of the formats, and the sizes of the
// rest. It contains no content, and nothing under a name that the caller chose.

/** Settings whose values are numbers, booleans or short words: those of the text formats, and of other endpoints. */
let settings: ReadonlySet<string> | undefined
const settingNames = () => [
  ...Object.values(FORMATS).flatMap(({ body }) => settingsOf(body.members)),
  'dimensions',
  'encoding_format',
  'top_n',
  'voice',
  'speed',
  'response_format',
  'language',
]
/** Lists of which only the length is recorded. */
const COUNTED = ['messages', 'contents', 'tools', 'documents']
const TOLD_CHARS_MAX = 40
/** Parsing a longer request again would cost more than the log is worth. */
const SENT_CHARS_MAX = 65_536

type Sent = Record<string, string | number | boolean>

function parametersOf({ sent, clientFormat }: Pick<PaidRequestFacts, 'sent' | 'clientFormat'>): Sent | undefined {
  if (sent === undefined || sent.length > SENT_CHARS_MAX) return undefined
  const body = membersOf(sent)
  const found: Sent = {}
  settings ??= new Set(settingNames())
  for (const members of [body, clientFormat && CALLERS_FORMATS[clientFormat]?.settings?.(body)]) {
    if (!isObject(members)) continue
    for (const name of settings) if (isSetting(members[name])) found[name] = members[name]
  }
  for (const name of COUNTED) {
    const list = body[name]
    if (Array.isArray(list) && list.length > 0) found[name] = list.length
  }
  return Object.keys(found).length > 0 ? found : undefined
}

function isSetting(value: unknown): value is string | number | boolean {
  return typeof value === 'number' || typeof value === 'boolean' || isWord(value)
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value.length <= TOLD_CHARS_MAX
}

function membersOf(sent: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(sent)
    return isObject(value) ? value : {}
  } catch {
    // A form is not JSON.
    return {}
  }
}

// Rejected calls in the live list. Calls of one kind (key, fault, product, endpoint) in the same minute share one entry
// with a count, and the number of entries is limited: a client that is rejected thousands of times a second does not
// push other calls out of the list.

export const REFUSED_KEPT = 50
/** The same interval as in refusals.ts, where the first call of a kind has a row. The entry links to that row. */
const MINUTE_MS = 60_000

class RefusedCalls {
  readonly #world: Pick<World, 'elapsedMs'>
  readonly #kinds = new Map<string, LiveCall>()

  constructor(world: Pick<World, 'elapsedMs'>) {
    this.#world = world
  }

  note(call: LiveCall): void {
    const minute = Math.floor(this.#world.elapsedMs() / MINUTE_MS)
    const kind = `${minute} ${call.key} ${call.fault} ${call.product} ${call.endpoint}`
    const first = this.#kinds.get(kind) ?? call
    if (first !== call) {
      first.calls += 1
      first.atMs = call.atMs
      first.durationMs = call.durationMs
    }
    // The most recently rejected kind stays longest.
    this.#kinds.delete(kind)
    this.#kinds.set(kind, first)
    if (this.#kinds.size <= REFUSED_KEPT) return
    for (const oldest of this.#kinds.keys()) {
      this.#kinds.delete(oldest)
      break
    }
  }

  list(): LiveCall[] {
    return [...this.#kinds.values()]
  }
}

// One slow timer for all open streams: it sends keep-alives on quiet ones and ends streams whose callers do not read.

interface Watched {
  /**
   * Checks since the last write to the caller. The writer resets it to 0, which is cheaper than reading the clock for
   * every piece.
   */
  quietLooks: number
  /** Since when the caller's socket has been full; 0 while it is not. */
  fullMs: number
  quiet(): void
  stuck(): void
}

export type StreamWatch = ReturnType<typeof createStreamWatch>

const LOOK_EVERY_MS = 2_000
const LATE_MS = 1_000
const QUIET_LOOKS = 6
const STUCK_MS = 30_000

export function createStreamWatch(world: World) {
  const streams = new SlotSet<Watched>()
  let cancel: (() => void) | undefined

  let lookedMs = 0

  function look(): void {
    const nowMs = world.elapsedMs()
    // Time in which this process was suspended must not count against its callers.
    const lateMs = nowMs - lookedMs - LOOK_EVERY_MS
    lookedMs = nowMs
    for (const stream of streams) {
      if (lateMs > LATE_MS && stream.fullMs > 0) stream.fullMs += lateMs
      if (stream.fullMs > 0 && nowMs - stream.fullMs > STUCK_MS) stream.stuck()
      else if (stream.fullMs === 0 && ++stream.quietLooks >= QUIET_LOOKS) {
        stream.quietLooks = 1
        stream.quiet()
      }
    }
    cancel = streams.size > 0 ? world.after(LOOK_EVERY_MS, look) : undefined
  }

  return {
    add(stream: Watched): () => void {
      const place = streams.add(stream)
      if (!cancel) {
        lookedMs = world.elapsedMs()
        cancel = world.after(LOOK_EVERY_MS, look)
      }
      return () => {
        streams.remove(place, stream)
      }
    },
    get open() {
      return streams.size
    },
    stop(): void {
      cancel?.()
    },
  }
}
