// The interface of a text format, on the client's and on the vendor's side. There are four formats, each in a folder of its own, and no code
// for pairs of formats.

import type { TextTraits } from '../../catalog/traits.ts'
import type { JsonText } from '../../kernel/json.ts'
import type { TextProtocolName } from '../../meter/kind.ts'
import type { SseEvent } from '../../upstream/sse.ts'
import type { Fields, Json } from '../check.ts'
import type { Answer, Continued, OpenOptions, StreamRelay, Target } from '../protocol.ts'
import type { AnswerFacts, Conversation, Reply } from './canonical.ts'
import type { StreamReader, StreamWriter } from './reader.ts'
import type { Observer } from './relay.ts'

/** The facts of a validated request that the path needs. */
export interface CheckedRequest {
  readonly stream: boolean
  /** Whether the caller wants the usage in a stream. */
  readonly includeUsage: boolean
  readonly n: number
  /** The caller's name of the field; `n` by default. */
  readonly nField?: string
  readonly tokensMax: number | undefined
  readonly hasTools: boolean
  /** Whether the vendor is asked to store its answer, in a format whose answers do not say whether it does. */
  readonly keeps?: boolean
  readonly continues?: readonly Continued[] | undefined
}

export interface PassOptions {
  /** The model's name at the vendor. */
  readonly model: string
  readonly traits: TextTraits
  /** The output limit of each choice, if the caller gave none. */
  readonly outputTokensCap: number | undefined
}

export interface TextFormat {
  readonly name: TextProtocolName
  /** Client side: validates a request. */
  check(fields: Fields, traits: TextTraits): CheckedRequest
  /** The parts of a request that become the prompt. */
  prompt(value: Json): readonly unknown[]
  /** Same format on both sides: the caller's text with the necessary edits, and an observer for the answer. */
  pass(json: JsonText, paidRequest: CheckedRequest, options: PassOptions): string
  passAnswer(body: Buffer, uid: string, traits: TextTraits, paidRequest: CheckedRequest): Answer
  observe(uid: string, paidRequest: CheckedRequest, traits: TextTraits): Observer
  /** Client side of a conversion. */
  readConversation(value: Json): Conversation
  writeReply(reply: Reply, facts: AnswerFacts): Json
  writer(facts: AnswerFacts): StreamWriter
  /** Client side: if a caller may want another stream framing than server-sent events. */
  framed?(relay: StreamRelay, request: Json): StreamRelay
  /** Vendor side of a conversion. */
  writeRequest(conversation: Conversation, model: string, traits: TextTraits): Json
  readReply(value: Json, traits: TextTraits): Reply
  reader(traits: TextTraits): StreamReader
  /** Vendor side, if a vendor streams when it should not or the reverse: turns a whole answer into a stream, and a stream into a whole answer. */
  unroll(value: Json): string
  rollUp(events: readonly SseEvent[], traits: TextTraits): Json
  /** Vendor side: whether the vendor reports the usage only at the end. */
  reportsAtEnd(request: Json, traits: TextTraits): boolean
  /** Vendor side, for all calls: the endpoint's address. */
  address(target: Target, stream: boolean): string
  /** The path of the model list below a vendor's address; `/models` by default. */
  readonly models?: string
  /** Headers besides the credential. */
  headers?(options: OpenOptions): Record<string, string>
}
