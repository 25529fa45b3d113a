// The contracts between the one path and the wire formats. An `Ask` is a caller's validated request: what it will cost at
// worst, and how it opens an exchange with a vendor. The path knows nothing of any format; formats know nothing of
// sockets, clocks or money.
import type { Auth, Offer } from '../catalog/document.ts'
import { Fault } from '../kernel/fault.ts'
import { type JsonText, splice } from '../kernel/json.ts'
import type { ProtocolName } from '../meter/kind.ts'
import type { Usage } from '../meter/usage.ts'
import { bearer, type HttpCall } from '../upstream/call.ts'
import type { VideoRequest } from './media/video-task/request.ts'
import type { VendorError } from './vendor-words.ts'

/** Where one attempt goes. */
export interface Target {
  readonly protocol: ProtocolName
  /** Without a trailing slash. */
  readonly baseUrl: string
  /** The vendor's credential; undefined where it needs none. */
  readonly secret: string | undefined
  /** Where the vendor looks for it, when that is not where the format's usual vendors do. */
  readonly auth?: Auth | undefined
  /** Extra headers that the catalog gives for this vendor. */
  readonly headers: Readonly<Record<string, string>>
  /** The model's name at the vendor. */
  readonly model: string
  /** It made its format: members of a request that nobody here knows may mean something to it. */
  readonly passesUnknown?: boolean
}

/** What decides the price tier besides token counts. */
export type PriceAttributes = Readonly<Record<string, string>>

/** What a vendor keeps, and a request refers to; and what to say to those who do not own it. */
export interface Continued {
  readonly id: string
  readonly unknown: Fault
  /** Only a vendor of the caller's own format would look it up; for others it is left out or refused. */
  readonly native?: true
}

/** What the money needs to know of a call. */
export interface PaidRequestFacts {
  /** The model's uid or the data endpoint's id: what the price and the usage row name. */
  readonly product: string
  /** The format that the caller speaks: a route in the same format is taken before its equals. */
  readonly clientFormat?: ProtocolName
  /** What the caller sent, as JSON: its own names and ids are not taken for a vendor's. */
  readonly sent?: string
  readonly stream: boolean
  readonly price: PriceAttributes
  /** The most that this call can consume, as far as anyone can know beforehand: what the hold covers. */
  readonly worst: Usage
  /**
   * Set when the caller gave no output limit. The hold then covers a share of what the account has: at most `mostTokens` of
   * output, the model's own maximum; `worst` while that much is there; at least `floorTokens`. The vendor is told what the hold covers.
   */
  readonly outputOpen?: { readonly floorTokens: number; readonly mostTokens: number } | undefined
  /** Uses of tools at the vendor that go with any answer, because the format does not count them. */
  readonly uses?: Usage | undefined
  /** What it probably is, for endings without a report, where tokens do not tell. */
  likely?(outputTokens: number): Usage
  /** What the prompt probably is, for endings without a report; absent: half of the worst case. */
  readonly inputTokensLikely?: number
  /** The model can read no more than this; a report beyond it is nonsense, and charged as far as the hold covers it. */
  readonly inputTokensMost?: number
  /** The model can write no more than this, over all choices; a report beyond it is nonsense, and charged as far as the hold covers it. */
  readonly outputTokensMost?: number
  /** How many answers were asked for; an output cap holds for each. */
  readonly choices?: number
  /** Set by formats that need a certain kind of route: `tools` on the alpha family go to Responses. */
  readonly needs?: readonly string[] | undefined
  /** A tool that the caller offered and the vendor is not told of, for the caller to know. */
  readonly leftOut?: string | undefined
  readonly continues?: readonly Continued[] | undefined
  /** Only vendors that offer this can answer. */
  readonly offer?: Offer
}

/** A call that a vendor answers while the caller waits. */
export interface PaidRequest extends PaidRequestFacts {
  /** Why a route of this format cannot carry the ask; undefined when it can. */
  refusal?(protocol: ProtocolName): Fault | undefined
  /** Fetches what the caller only pointed at. Once, before a vendor's place is taken: it is not the vendor's time. */
  gather?(signal: AbortSignal): Promise<void>
  open(target: Target, options: OpenOptions): Exchange | Promise<Exchange>
}

/** A call that becomes a job. */
export interface JobRequest extends PaidRequestFacts {
  readonly order: VideoRequest
}

export interface OpenOptions {
  readonly requestId: string
  /** Unix seconds, for the `created` of answers that the vendor gives none. */
  readonly createdSeconds: number
  /** For the time at which an answer was complete; absent: when it was begun. */
  readonly nowSeconds?: () => number
  /** The most that each choice may write, which the vendor is told. Undefined: the caller gave a limit, or nothing is written. */
  readonly outputTokensCap?: number | undefined
  readonly signal: AbortSignal
  /** The caller's headers that some formats forward, such as anthropic-version. */
  readonly callerHeaders?: Readonly<Record<string, string>>
}

export interface Exchange {
  readonly call: HttpCall
  /**
   * What happens when the caller leaves, unless the catalog says otherwise. `answer`: the vendor tells only at the end what it bills, so that its answer is
   * heard for a while. `call`: it bills the whole call once it is asked, so that it is heard to the end. Absent: it is stopped.
   */
  readonly drains?: 'answer' | 'call' | undefined
  /** The vendor's 2xx answer, whole. Throws upstream_garbled when it cannot be read, or the fault that it carries. */
  answer(body: Buffer, headers: Readonly<Record<string, string>>): Answer | Promise<Answer>
  /** Present when the ask streams and the vendor's 2xx answer is a stream. */
  readonly stream?: ((headers: Readonly<Record<string, string>>) => StreamRelay) | undefined
  /**
   * Present when the vendor's 2xx bytes are the caller's bytes: the answer may then be relayed as it comes, unread. Looks
   * at the headers only, and throws upstream_garbled when they promise something else.
   */
  pass?(headers: Readonly<Record<string, string>>): Passed
  /** It is relayed so however short it is: the caller listens while it comes. */
  readonly passesAsItComes?: true
  /** What the vendor says in a non-2xx body, as it says it; undefined when that is nothing. */
  vendorError?(body: Buffer): VendorError | undefined
  /** Undoes what the exchange left behind (a stored file) when the call fails after all. */
  discard?(): Promise<void>
  /** When a 429 may be tried again, where the vendor says it in headers of its own. */
  retryAfterSeconds?(headers: Readonly<Record<string, string>>): number | undefined
}

/** What is known of an answer that is relayed unread. */
interface Passed {
  readonly contentType: string
  readonly usage: Usage
}

export interface Answer {
  readonly status?: number
  readonly body: string | Buffer
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  /** Undefined: the vendor reported none; the path then estimates from `outputChars`, and marks it. */
  readonly usage: Usage | undefined
  /** How much text came out, for the estimate. */
  readonly outputChars?: number
  /** The vendor's ids of the answer and its parts, where it keeps them for the caller. */
  readonly storedAs?: readonly string[] | undefined
  /** Known only after the answer, e.g. the resolution that was delivered; merged over the ask's attributes. */
  readonly price?: PriceAttributes | undefined
}

/**
 * One streamed answer, from the vendor's bytes to the caller's. Same format at both clientFormats: bytes pass through and are
 * observed. Different formats: events are read, and written anew. Nothing that ends the answer for the caller (`[DONE]`,
 * response.completed, message_stop) leaves before `finish`, because the settlement must be durable by then.
 */
export interface StreamRelay {
  /** What to send to the caller now, if anything. Throws upstream_garbled for what cannot be read. */
  push(chunk: Buffer): Buffer | string | undefined
  /** What strings of `push` and `end` are: bytes, one character each, or text. */
  readonly encoding: 'latin1' | 'utf8'
  /** The vendor's clean end of stream. */
  end(): Buffer | string | undefined
  /** Present when something must be durable before the answer may end (a stored file): settle after it resolves. */
  ready?(): Promise<void>
  readonly state: StreamState
  /** The held-back last frames. `comment` is an SSE comment line that carries the charge, or empty. */
  finish(comment: string): string
  /** The frames that tell the caller of a fault inside the stream; never a clean end. */
  fail(fault: Fault, requestId: string): string
  /** A keep-alive that the format's SDKs ignore. */
  readonly keepAlive: string
  /** Where it is no stream of server-sent events. */
  readonly contentType?: string
}

export interface StreamState {
  /** A terminal event was seen: `[DONE]`, or a finish reason and a clean end. */
  readonly terminal: boolean
  /** The fault that the vendor reported inside the stream. */
  readonly fault: Fault | undefined
  readonly usage: Usage | undefined
  /** What the vendor counted of the prompt when its answer began, for endings without usage. */
  readonly promptUsage?: Usage | undefined
  /** The vendor's ids of the answer and its parts, where it keeps them for the caller. */
  readonly storedAs?: readonly string[] | undefined
  /** Known only from the answer, e.g. the quality that was drawn; merged over the ask's attributes. */
  readonly price?: PriceAttributes | undefined
  /** Uses of tools at the vendor that were seen so far, for endings without usage. */
  readonly uses?: Usage | undefined
  /** Output tokens delivered so far, counted roughly without parsing, for endings without usage. */
  readonly outputTokensSeen: number
}

/** What a vendor sent cannot be read. */
export const garbled = (why: string, cause?: unknown) => new Fault('upstream_garbled', { internal: { why }, cause })

/** The caller's JSON, with the vendor's name of the model. */
export function jsonCall(path: string, json: JsonText, target: Target, accept = 'application/json'): HttpCall {
  const headers = { 'content-type': 'application/json', accept }
  const body = splice(json, { replace: { model: JSON.stringify(target.model) } })
  return { method: 'POST', url: target.baseUrl + path, headers, body }
}

// What a vendor gets with every call, whatever the format: its credential, in the place where it looks for it, and the extra
// headers that the catalog gives it. Adapters know nothing of either.

/** Where the format's usual vendors look; all others take a bearer token. */
const USUAL: Partial<Record<ProtocolName, Auth>> = {
  'anthropic-messages': { header: 'x-api-key' },
  gemini: { header: 'x-goog-api-key' },
}

export function vendorCall(call: HttpCall, { protocol, secret, auth, headers }: Target): HttpCall {
  if (climbs(call.url)) throw new Fault('request_invalid', { message: 'A part of the address is no id.' })
  const where = auth ?? USUAL[protocol] ?? 'bearer'
  if (secret === undefined) return { ...call, headers: { ...call.headers, ...headers } }
  if (where === 'bearer') return { ...call, headers: { authorization: bearer(secret), ...call.headers, ...headers } }
  if ('header' in where) return { ...call, headers: { [where.header]: secret, ...call.headers, ...headers } }
  const mark = call.url.includes('?') ? '&' : '?'
  const url = `${call.url}${mark}${encodeURIComponent(where.query)}=${encodeURIComponent(secret)}`
  return { ...call, url, headers: { ...call.headers, ...headers } }
}

/** How often a chain of proxies may decode an address before the vendor reads it. */
const DECODED_TIMES = 4
const HIDDEN: Readonly<Record<string, string>> = { '%2e': '.', '%2f': '/', '%5c': '\\', '%25': '%' }

/** Whether somebody on the way could read a dot segment out of the path, and with the credential call another one. */
function climbs(url: string): boolean {
  const end = url.indexOf('?')
  let path = end < 0 ? url : url.slice(0, end)
  for (let times = 0; times < DECODED_TIMES && path.includes('%'); times++)
    path = path.replaceAll(/%(?:2e|2f|5c|25)/gi, (code) => HIDDEN[code.toLowerCase()] ?? code)
  return /[/\\]\.{1,2}(?:[/\\;]|$)/.test(path)
}
