// What a text format can do at its two client formats. Four formats are four rooms; nobody writes a pair.

import type { TextTraits } from '../../catalog/traits.ts'
import type { JsonText } from '../../kernel/json.ts'
import type { TextProtocolName } from '../../meter/kind.ts'
import type { SseEvent } from '../../upstream/sse.ts'
import type { Fields, Json } from '../check.ts'
import type { Answer, Continued, OpenOptions, StreamRelay, Target } from '../protocol.ts'
import type { AnswerFacts, Conversation, Reply } from './canonical.ts'
import type { StreamReader, StreamWriter } from './reader.ts'
import type { Observer } from './relay.ts'

/** What the path needs to know of a checked request. */
export interface CheckedRequest {
  readonly stream: boolean
  /** The caller wants to see the usage of a stream. */
  readonly includeUsage: boolean
  readonly n: number
  /** What the caller calls it; `n` unless given. */
  readonly nField?: string
  readonly tokensMax: number | undefined
  readonly hasTools: boolean
  /** The vendor is asked to keep its answer, in a format whose answers do not say whether it does. */
  readonly keeps?: boolean
  readonly continues?: readonly Continued[] | undefined
}

export interface PassOptions {
  /** The model's name at the vendor. */
  readonly model: string
  readonly traits: TextTraits
  /** The most output tokens of each choice, where the caller gave no limit. */
  readonly outputTokensCap: number | undefined
}

export interface TextFormat {
  readonly name: TextProtocolName
  /** At the front: what may not pass. */
  check(fields: Fields, traits: TextTraits): CheckedRequest
  /** The parts of a request that become the prompt. */
  prompt(value: Json): readonly unknown[]
  /** At both client formats at once: the request's own text with what must differ, and a look at what comes back. */
  pass(json: JsonText, paidRequest: CheckedRequest, options: PassOptions): string
  passAnswer(body: Buffer, uid: string, traits: TextTraits, paidRequest: CheckedRequest): Answer
  observe(uid: string, paidRequest: CheckedRequest, traits: TextTraits): Observer
  /** At the front of a conversion. */
  readConversation(value: Json): Conversation
  writeReply(reply: Reply, facts: AnswerFacts): Json
  writer(facts: AnswerFacts): StreamWriter
  /** At the front: where a caller may want its stream in another frame than server-sent events. */
  framed?(relay: StreamRelay, request: Json): StreamRelay
  /** At the back of a conversion. */
  writeRequest(conversation: Conversation, model: string, traits: TextTraits): Json
  readReply(value: Json, traits: TextTraits): Reply
  reader(traits: TextTraits): StreamReader
  /** At the back, where a vendor answers otherwise than it was asked: a whole answer as its stream, and a stream as its whole. */
  unroll(value: Json): string
  rollUp(events: readonly SseEvent[], traits: TextTraits): Json
  /** At the back: whether the vendor tells only at the end what it bills. */
  reportsAtEnd(request: Json, traits: TextTraits): boolean
  /** At the back, always: where the vendor listens, and what it wants to see. */
  address(target: Target, stream: boolean): string
  /** Where the list of models lies below a vendor's address; `/models` unless given. */
  readonly models?: string
  /** Besides the credential. */
  headers?(options: OpenOptions): Record<string, string>
}
