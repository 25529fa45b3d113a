// What extensions may do on the path of a call: check and change what is said, and record it.
import type { Principal } from '../admission/api-key.ts'
import type { RecordingPolicy } from '../admission/views.ts'
import type { CatalogDocument } from '../catalog/document.ts'
import type { RequestHeaders } from '../catalog/query.ts'
import type { Credits } from '../kernel/credits.ts'
import { Fault } from '../kernel/fault.ts'
import type { JsonText } from '../kernel/json.ts'
import type { GuardrailReport } from '../ledger/views.ts'
import type { Answer, StreamRelay } from '../protocols/protocol.ts'
import type { Answered, Arrived, Held, PathDeps } from './call.ts'
import type { PaidSpec } from './read.ts'
import type { ResponseSink } from './response-sink.ts'

export type Phase = 'request' | 'answer'

/** What decides which rules are for a call. */
export interface GuardedCall {
  readonly account: string
  /** The key's id, and that of the key which it replaced first. */
  readonly keys: readonly (string | undefined)[]
  readonly products: readonly string[]
  /** Data endpoints and tools are meant only by rules that name them. */
  readonly isModel: boolean
  readonly labels: Readonly<Record<string, string>> | undefined
}

/** What extensions may do on the path of a call. What is absent costs nothing. */
export interface PathHooks {
  readonly guardrails?: Guardrails
  readonly contents?: Recorder
  readonly shadows?: Shadows
  /** Asked for when there are calls, because it makes calls of its own. */
  readonly background?: () => Background
}

/** Responses that are accepted at once and run when there is capacity. */
export interface Background {
  /**
   * Answers with the queued response, or the earlier one of the same idempotency key, or with its events. Throws if the
   * request is invalid.
   */
  accept(
    asked: {
      readonly principal: Principal
      readonly spec: PaidSpec
      readonly json: JsonText
      readonly headers: RequestHeaders
      readonly idempotencyKey: string | undefined
    },
    out: ResponseSink,
  ): Promise<void>
  /** The request with `previous_response_id` replaced by the vendor's own id of that response. */
  goingOn(json: JsonText, account: string): Promise<JsonText>
}

/** Copies of calls. */
export interface Shadows {
  /** Sends a copy of the call if it is one of those that are copied. Returns at once. */
  copy(held: Held): void
  /** Sends no more, and ends those that are on their way. */
  close(): void
}

export interface Guardrails {
  /** Undefined: no rule is for this call, and it meets none again. */
  find(document: CatalogDocument, call: GuardedCall): Guard | undefined
}

/** The rules of one call: as it arrives, before a vendor is asked, and with its answer. */
export interface Guard {
  /** The names of its rules. */
  readonly rules: ReadonlySet<string>
  /** The request as a vendor may see it. */
  redact(json: JsonText): JsonText
  /** What distinguishes answers that may be given again: the rules, and what was taken out of the request. */
  readonly cacheKey: string
  /** Whether rules ask somebody else. */
  asks(phase: Phase): boolean
  /** Held in addition, because a rule may make the request longer. */
  reserve(arrived: Arrived): Credits
  /** The request as the rules leave it. Throws for one that is blocked: it was counted, and its hold is released. */
  checkRequest<Call extends Held>(held: Call, deps: PathDeps): Promise<Call>
  /** An answer that rules have to see cannot go out unread. */
  isChecked(answered: Answered): boolean
  /** A whole answer as its caller may see it. */
  checkAnswer(answered: Answered, answer: Answer, deps: PathDeps): Promise<Answer>
  /** Holds back what was not checked yet. Undefined: nothing is checked. */
  gate(answered: Answered, forward: Forward, deps: PathDeps): Gate | undefined
  relay(inner: StreamRelay): StreamRelay
  readonly report: readonly GuardrailReport[]
}

export type Forward = (piece: string | Buffer | undefined) => Promise<void> | undefined

export interface Gate {
  readonly forward: Forward
  /** Everything that arrived was checked and sent. */
  end(): Promise<void>
  /** Nothing is sent any more. */
  stop(): void
}

export function isBlocked(error: unknown, on?: Phase): error is Fault {
  if (!(error instanceof Fault) || error.kind !== 'guardrail_blocked') return false
  return on === undefined || error.details.internal?.on === on
}

/** A call whose content is recorded. */
export interface RecordedCall {
  /** `req_<id>`. */
  readonly requestId: string
  readonly account: string
  readonly key: string
  readonly rule: RecordingPolicy
  readonly method: string
  readonly path: string
}

/** The recording of one call. */
export interface Recording {
  readonly call: RecordedCall
  asked(body: string | Buffer): void
  answers(status: number, contentType: string): void
  sent(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): void
  end(): void
}

export interface Recorder {
  /** Undefined: nothing is recorded, because the memory limit is reached. */
  begin(call: RecordedCall): Recording | undefined
  /** Calls that should have been recorded and were not. */
  readonly dropped: number
  has(account: string, requestId: string): Promise<boolean>
  /** The policy for calls of the account that are made without a key. */
  ofAccount(account: string): Promise<RecordingPolicy | undefined>
}
