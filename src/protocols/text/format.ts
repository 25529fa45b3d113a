// The interfaces of a text format, on the client's and on the vendor's side. A format that is both has a folder of its
// own, and there is no code for pairs of formats. A format that only vendors speak needs the vendor's side alone.

import type { Auth, Model } from '../../catalog/document.ts'
import type { JsonSchema, Surface } from '../../catalog/endpoint.ts'
import type { RequestHeaders } from '../../catalog/query.ts'
import type { TextBody } from '../../catalog/text-bodies.ts'
import type { TextTraits } from '../../catalog/traits.ts'
import type { Fault } from '../../kernel/fault.ts'
import { type Json, type JsonText, objects } from '../../kernel/json.ts'
import type { ClientFormatName, TextProtocolName, UseUnit } from '../../meter/kind.ts'
import type { Usage } from '../../meter/usage.ts'
import type { HttpCall } from '../../upstream/call.ts'
import type { SseEvent } from '../../upstream/sse.ts'
import type { Answer, Continued, OpenOptions, StreamRelay, Target } from '../protocol.ts'
import type { AnswerFacts, AnswerFormat, Conversation, Reply } from './canonical.ts'
import type { CountedTool } from './extras.ts'
import type { StreamReader, StreamWriter } from './reader.ts'
import type { Observer } from './relay.ts'
import type { Members } from './request-members.ts'

/** The facts of a validated request that the path needs. */
export interface CheckedRequest {
  readonly stream: boolean
  /** Whether the caller wants the usage in a stream. */
  readonly includeUsage: boolean
  readonly n: number
  /** The caller's name of the field; `n` by default. */
  readonly nField?: string
  readonly tokensMax: number | undefined
  /** The caller's limit was higher, so the vendor gets this one instead. */
  readonly isLowered?: true
  readonly hasTools: boolean
  /** Whether the vendor is asked to store its answer, in a format whose answers do not say whether it does. */
  readonly keeps?: boolean
  readonly continues?: readonly Continued[] | undefined
}

export interface PassOptions {
  /** The model's name at the vendor. */
  readonly model: string
  readonly traits: TextTraits
  /** The output limit of each choice, if the caller gave none or one that was lowered. */
  readonly outputTokensCap: number | undefined
}

/** What its requests may ask for besides tokens; each of it needs a price. */
export interface FormatExtras {
  /** The tools whose uses it counts. */
  readonly tools: readonly CountedTool[]
  /** Which of them a tool is, where that is not its type. */
  readonly toolOf?: (tool: Json) => CountedTool | undefined
  /** A member that asks for a search, beside the tools. */
  readonly search?: string
  /** The uses that it does not count, which are charged with any answer. */
  readonly uncounted?: (units: readonly UseUnit[], n: number) => Usage | undefined
  /** The member that limits uses: of all tools together, or of each that has one of these units. */
  readonly cap?: { readonly member: string; readonly of: 'request' | readonly UseUnit[] }
  /** Pictures and sound in answers: how they are asked for, and the request with an output limit if it has none. */
  readonly media?: {
    readonly member: string
    wanted(value: Json): { readonly modalities?: unknown; readonly audio?: unknown }
    bound(json: JsonText, tokensMost: number): JsonText
  }
}

/** What a format's own SDKs read besides answers, at all addresses of its surface. */
export interface FormatSurface {
  readonly name: Surface
  /** The first part of these addresses. */
  readonly below: string
  /** An error as its SDKs read it, and what OpenAPI says of it. */
  errorBody(fault: Fault, requestId: string): object
  readonly errorSchema?: JsonSchema
  /** Where a key may be besides the usual headers. */
  keyOf?(headers: RequestHeaders, query: string): string | undefined
  /** What to use instead of an address of the vendor; `parts`: its path, without the first part. */
  insteadOf?(parts: readonly string[]): string | undefined
  /** Its list of models: which it offers, what it says of one, and the list of these entries. */
  readonly models: {
    offers(model: Model): boolean
    entry(uid: string, model: Model, createdSeconds: number): object
    list(entries: readonly string[], page: string): string
  }
}

/** What callers speak. */
export interface ClientFormat {
  readonly name: ClientFormatName
  /** What a request is. */
  readonly body: TextBody
  /** Which of its members go to vendors. */
  readonly members: Members
  readonly extras: FormatExtras
  /** Absent: as the contract has it. */
  readonly surface?: FormatSurface
  /** Where the settings of a request are, if not in itself. */
  settings?(value: Json): unknown
  /** What the path needs of a request that is as described; throws for what its description does not tell. */
  check(value: Json, traits: TextTraits): CheckedRequest
  /**
   * Members in a form that vendors take besides the documented one, rewritten, so that everything else reads one form.
   */
  lenient?(json: JsonText): ReadonlyArray<readonly [name: string, value: unknown]>
  /** The members of the smallest request, with which vendors are tested. */
  smallest(question: string, tokens: number): object
  /** The parts of a request that become the prompt. */
  prompt(value: Json): readonly unknown[]
  /** Whether a tool runs at the vendor, where that differs from the other formats. */
  runsElsewhere?(value: Json): boolean
  /** The JSON that the answer should be. */
  wanted(value: Json): AnswerFormat | undefined
  /** The texts of each choice of an answer. */
  texts(answer: Json): Place[][]
  readConversation(value: Json): Conversation
  writeReply(reply: Reply, facts: AnswerFacts): Json
  writer(facts: AnswerFacts): StreamWriter
  /** If a caller may want another stream framing than server-sent events. */
  framed?(relay: StreamRelay, request: Json): StreamRelay
}

/** What vendors speak. */
export interface VendorFormat {
  readonly name: TextProtocolName
  /** The endpoint's address. */
  address(target: Target, stream: boolean): string
  /** The path of the model list below a vendor's address; `/models` by default. */
  readonly models?: string
  /** Where its usual vendors expect the credential; a bearer token by default. */
  readonly auth?: Auth
  /** Headers besides the credential. */
  headers?(options: OpenOptions): Record<string, string>
  /** The call as a cloud wants it, if the target is one. */
  inCloud?(call: HttpCall, target: Target, stream: boolean): HttpCall
  writeRequest(conversation: Conversation, model: string, traits: TextTraits): Json
  readReply(value: Json, traits: TextTraits): Reply
  reader(traits: TextTraits): StreamReader
  /** What a failed answer reports all the same. */
  usageOfFailed?(body: Buffer): Pick<Answer, 'usage' | 'price'> | undefined
  /**
   * If a vendor streams when it should not or the reverse: turns a whole answer into a stream, and a stream into a
   * whole answer.
   */
  unroll(value: Json): string
  rollUp(events: readonly SseEvent[], traits: TextTraits): Json
}

/**
 * What both speak: between a caller and a vendor of the same format the caller's text passes with the necessary edits.
 */
export interface TextFormat extends ClientFormat, VendorFormat {
  readonly name: ClientFormatName
  pass(json: JsonText, paidRequest: CheckedRequest, options: PassOptions): string
  passAnswer(body: Buffer, uid: string, traits: TextTraits, paidRequest: CheckedRequest): Answer
  observe(uid: string, paidRequest: CheckedRequest, traits: TextTraits): Observer
}

/** A member of the answer that has text, in the order of reading. */
export type Place = readonly [holder: Record<string, unknown>, member: string]

/** The texts of the parts of one type. */
export function typed(content: unknown, type: string): Place[] {
  return objects(content).flatMap((part): Place[] => (part.type === type ? [[part, 'text']] : []))
}
