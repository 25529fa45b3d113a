// The canonical form between two text formats: a caller's request and a vendor's answer. Only conversions use it;
// between equal formats nothing is converted.

import { type Fault, invalid } from '../../kernel/fault.ts'
import { isObject, type Json, jsonIn, objectOf, text } from '../../kernel/json.ts'
import { wrong } from '../check.ts'
import type { TokenCounts } from './tokens.ts'

/** Base64 data, an address, or a vendor's own id. */
export type Media =
  | { readonly base64: string; readonly type: string }
  | { readonly url: string }
  | { readonly fileId: string }

/** The proof that a vendor requires back with a thought, to recognise it as its own. */
export interface Proof {
  /** The signature of a thinking block (Messages). */
  readonly signature?: string
  /** An encrypted thought of the Messages format. */
  readonly redacted?: string
  /** An encrypted thought of the Responses format. */
  readonly encrypted?: { readonly id: string; readonly data: string }
  /** The signature of a text or a thought (Google). */
  readonly google?: string
}

export interface TextPart {
  readonly kind: 'text'
  readonly text: string
  /** A cache marker of the Messages format. */
  readonly cache?: unknown
}
export interface ImagePart {
  readonly kind: 'image'
  /** The caller's field, for error messages. */
  readonly at: string
  readonly media: Media
  readonly detail?: string
  readonly cache?: unknown
}
export interface FilePart {
  readonly kind: 'file'
  /** The caller's field, for error messages. */
  readonly at: string
  readonly media: Media
  readonly name?: string
  readonly cache?: unknown
}
interface AudioPart {
  readonly kind: 'audio'
  /** The caller's field, for error messages. */
  readonly at: string
  readonly base64: string
  readonly format: string
}
export interface ThoughtPart {
  readonly kind: 'thought'
  readonly text: string
  readonly proof: Proof
}
export interface CallPart {
  readonly kind: 'call'
  readonly id: string
  readonly name: string
  /** JSON text for functions, any text for custom tools. */
  readonly input: string
  readonly custom?: boolean
  /** Data that a chat vendor attached to the call and requires back, such as a thought signature. */
  readonly extra?: unknown
}
export interface ResultPart {
  readonly kind: 'result'
  readonly id: string
  readonly parts: readonly Exclude<InputPart, AudioPart>[]
  readonly failed?: boolean
}

export type InputPart = TextPart | ImagePart | FilePart | AudioPart
export type OutputPart = ThoughtPart | TextPart | { readonly kind: 'refusal'; readonly text: string } | CallPart

export type Turn =
  | { readonly role: 'system' | 'developer'; readonly parts: readonly TextPart[] }
  | { readonly role: 'user'; readonly parts: readonly InputPart[]; readonly name?: string }
  | { readonly role: 'assistant'; readonly parts: readonly OutputPart[] }
  /** Results of tool calls; always directly after the turn with the calls. */
  | { readonly role: 'tool'; readonly parts: readonly ResultPart[] }

export type Tool =
  | {
      readonly kind: 'function'
      readonly name: string
      readonly description?: string
      readonly schema?: Json
      readonly strict?: boolean
      readonly cache?: unknown
    }
  | { readonly kind: 'custom'; readonly name: string; readonly description?: string; readonly format?: unknown }

export type ToolChoice =
  | 'auto'
  | 'none'
  | 'required'
  | { readonly name: string; readonly custom?: boolean }
  | { readonly allowed: readonly string[]; readonly mode: 'auto' | 'required' }

export type AnswerFormat =
  | { readonly kind: 'object' }
  | {
      readonly kind: 'schema'
      readonly name?: string
      readonly schema: Json
      readonly strict?: boolean
      readonly description?: string
    }

/** Only members that the caller sent are present; there are no defaults. */
export interface Conversation {
  readonly turns: readonly Turn[]
  readonly stream: boolean
  readonly tools?: readonly Tool[]
  readonly toolChoice?: ToolChoice
  readonly parallelTools?: boolean
  readonly tokensMax?: number
  readonly temperature?: number
  readonly topP?: number
  readonly stop?: readonly string[]
  readonly format?: AnswerFormat
  readonly effort?: string
  readonly summary?: string
  readonly thinking?: Json
  readonly verbosity?: string
  readonly user?: string
  readonly metadata?: Json
  readonly serviceTier?: string
  readonly store?: boolean
  readonly cacheKey?: string
  readonly safetyId?: string
}

export type Finish = 'stop' | 'length' | 'calls' | 'filter'

/** A vendor's whole answer. */
export interface Reply {
  readonly parts: readonly OutputPart[]
  readonly finish: Finish
  readonly stopSequence?: string
  readonly tokens: TokenCounts | undefined
}

/** A vendor's streamed answer, piece by piece. Calls are identified by `key`, in the order of their start. */
export type ReplyEvent =
  | { readonly type: 'start'; readonly tokens?: TokenCounts }
  | { readonly type: 'text' | 'refusal' | 'thought'; readonly text: string }
  /** Ends the last streamed thought, with the proof that its vendor requires back. */
  | { readonly type: 'proof'; readonly proof: Proof }
  /** The text begins, and its proof may follow later: for formats in which a proof comes before the text. */
  | { readonly type: 'proof-pending' }
  | {
      readonly type: 'call'
      readonly key: number
      readonly id: string
      readonly name: string
      readonly custom?: boolean
      readonly extra?: unknown
    }
  | { readonly type: 'input'; readonly key: number; readonly text: string }
  | { readonly type: 'end'; readonly finish: Finish; readonly stopSequence?: string }
  | { readonly type: 'ping' }

/** Facts for an answer that the gateway writes, besides the vendor's content. */
export interface AnswerFacts {
  readonly uid: string
  readonly requestId: string
  readonly createdSeconds: number
  readonly nowSeconds: () => number
  /** The estimated prompt size, for frames that must state one before the vendor has counted. */
  readonly inputTokens: number
  readonly includeUsage: boolean
  /** The caller's request, for formats that echo it. */
  readonly request: Json
}

/** An id with the format's prefix; the same for every frame of one answer. */
export function answerId(prefix: string, facts: AnswerFacts): string {
  return `${prefix}${facts.requestId.replace(/^req_/, '')}`
}

/** Asks for JSON without a schema, for vendors whose format has no parameter for it. */
export const JSON_INSTRUCTION = 'Answer with one JSON object and nothing else: no prose, no code fence.'

/** The fault for a caller's field that has no counterpart in the vendor's format. */
export function cannotConvert(param: string, what: string): Fault {
  return invalid(`"${param}": ${what} cannot be used with this model.`, param)
}

/** The fault for a conversation without messages: formats with a separate field for instructions reject it. */
export function nothingSaid(): Fault {
  return invalid('The conversation holds nothing but instructions or empty messages; say something.', 'messages')
}

/** The input of a call as vendors write it: JSON, or with some of them the object itself. */
export function inputText(input: unknown): string | undefined {
  return isObject(input) ? JSON.stringify(input) : text(input)
}

/**
 * Tool input as an object. Anything else is wrapped in one, so that nothing is lost; Groq's models call without
 * arguments by `null`.
 */
export function inputObject(input: string): Json {
  const value = input.trim() === '' ? null : jsonIn(input)
  if (value === null) return {}
  if (value === undefined) return { input }
  return isObject(value) ? value : { value }
}

/** The tools that a choice leaves, for formats that cannot name several. */
export function toolsAllowed({ tools = [], toolChoice }: Conversation): readonly Tool[] {
  if (typeof toolChoice !== 'object' || !('allowed' in toolChoice)) return tools
  return tools.filter((tool) => toolChoice.allowed.includes(tool.name))
}

export function textOf(parts: readonly { readonly kind: string; readonly text?: string }[], kind: string): string {
  let joined = ''
  for (const part of parts) if (part.kind === kind) joined += part.text ?? ''
  return joined
}

// Images and documents in requests: parses data URIs and normalizes their types to those that vendors accept.

const ALIASES: Readonly<Record<string, string>> = {
  'image/jpg': 'image/jpeg',
  'image/pjpeg': 'image/jpeg',
  'image/x-png': 'image/png',
}

/** Types by the first characters of the base64: the actual bytes take precedence over the declared type. */
const MAGIC: readonly (readonly [string, string])[] = [
  ['/9j/', 'image/jpeg'],
  ['iVBORw0KGgo', 'image/png'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
  ['JVBERi0', 'application/pdf'],
]

/** Reads an address or a data URI. `param` is the field for error messages. */
export function readMedia(url: string, param: string): Media {
  if (!/^data:/i.test(url)) {
    if (/^https?:\/\//i.test(url)) return { url }
    throw wrong(param, 'must be an http(s) address or a base64 data URI.')
  }
  const comma = url.indexOf(',')
  const head = comma < 0 ? '' : url.slice(5, comma)
  if (!/;\s*base64\s*$/i.test(head)) throw wrong(param, 'must be a base64 data URI: "data:<type>;base64,<data>".')
  return fromBase64(url.slice(comma + 1), head.slice(0, head.indexOf(';')).trim())
}

export function fromBase64(data: string, declared: string): Media {
  const base64 = /\s/.test(data) ? data.replace(/\s+/g, '') : data
  const type = declared.toLowerCase()
  const sniffed = MAGIC.find(([start]) => base64.startsWith(start))?.[1]
  return { base64, type: sniffed ?? ALIASES[type] ?? type }
}

export function toDataUri(media: { readonly base64: string; readonly type: string }): string {
  return `data:${media.type};base64,${media.base64}`
}

// Carries one vendor's proof through an opaque field of another format: the caller returns it unread with the next
// request.

/** The prefix of everything packed here, so that it is never mistaken for a vendor's own value or sent to one. */
export const PACKED = 'tollgate.'

/**
 * For the `signature` or `encrypted_content` of a format that did not produce the proof. A thought without proof gets a
 * mark too: clients do not send back thoughts without one, and some vendors require them.
 */
export function packProof(proof: Proof): string {
  if (proof.signature !== undefined) return `${PACKED}signature:${proof.signature}`
  if (proof.redacted !== undefined) return `${PACKED}redacted:${proof.redacted}`
  if (proof.encrypted !== undefined) return `${PACKED}encrypted:${proof.encrypted.id}:${proof.encrypted.data}`
  if (proof.google !== undefined) return `${PACKED}google:${proof.google}`
  return `${PACKED}plain:`
}

/** Undefined if the text was not packed here, i.e. is the format's own. */
export function unpackProof(packed: string): Proof | undefined {
  if (!packed.startsWith(PACKED)) return undefined
  const [kind, rest] = cut(packed.slice(PACKED.length))
  if (kind === 'signature') return { signature: rest }
  if (kind === 'redacted') return { redacted: rest }
  if (kind === 'google') return { google: rest }
  if (kind !== 'encrypted') return {}
  const [id, data] = cut(rest)
  // An id without data is dropped: it could name another account's thought at the vendor.
  return data === '' ? {} : { encrypted: { id, data } }
}

/** Packs the data that a chat vendor attached to a call. */
export function packExtra(callId: string, extra: unknown): string {
  return `${PACKED}extra:${Buffer.from(JSON.stringify({ callId, extra })).toString('base64url')}`
}

export function unpackExtra(packed: string): { callId: string; extra: unknown } | undefined {
  if (!packed.startsWith(`${PACKED}extra:`)) return undefined
  const value = jsonIn(Buffer.from(packed.slice(PACKED.length + 6), 'base64url').toString('utf8'))
  const { callId, extra } = objectOf(value)
  // If the caller changed it, the vendor will report what is missing.
  return typeof callId === 'string' ? { callId, extra } : undefined
}

function cut(packed: string): [string, string] {
  const colon = packed.indexOf(':')
  return colon < 0 ? [packed, ''] : [packed.slice(0, colon), packed.slice(colon + 1)]
}
