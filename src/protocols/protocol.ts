// The contracts between the request path and the wire formats. A `PaidRequest` is a caller's validated request: what it
// costs at worst, and how to open an exchange with a vendor. The path knows no formats; formats know no sockets, clocks
// or money.
import type { VendorBridge } from '../catalog/bridge.ts'
import type { Auth, Offer } from '../catalog/document.ts'
import { Fault } from '../kernel/fault.ts'
import { type JsonText, splice } from '../kernel/json.ts'
import type { ProtocolName, Unit } from '../meter/kind.ts'
import type { Usage } from '../meter/usage.ts'
import type { HttpCall, Upstream } from '../upstream/call.ts'
import type { LoggedIn } from '../upstream/login.ts'
import type { VideoRequest } from './media/video-task/request.ts'
import type { VendorError } from './vendor-words.ts'

/** The destination of one attempt. */
export interface Target {
  readonly protocol: ProtocolName
  /** Without a trailing slash. */
  readonly baseUrl: string
  /** The vendor's credential; undefined if the vendor needs none. */
  readonly secret: string | undefined
  /** Where the vendor expects the credential, if not in the format's usual place. */
  readonly auth?: Auth | undefined
  /** What the vendor's login gave, if it has one; the calls are signed with it at this time. */
  readonly signs?: (Extract<LoggedIn, { aws: unknown }> & { readonly nowMs: number }) | undefined
  /** Of a login: called when the vendor rejects its token. True: a new token can be fetched. */
  readonly dropToken?: (() => boolean) | undefined
  /** The cloud that offers the format under addresses of its own. */
  readonly cloud?: 'bedrock' | 'vertex' | undefined
  /** Extra headers for this vendor, from the catalog. */
  readonly headers: Readonly<Record<string, string>>
  /** The model's name at the vendor. */
  readonly model: string
  /** The vendor is the format's own maker, so request members that are unknown here may have a meaning to it. */
  readonly passesUnknown?: boolean
  /** A simulated vendor of ours. */
  readonly simulated?: boolean
  /** How a vendor with shapes of its own answers endpoints of ours. */
  readonly bridge?: VendorBridge | undefined
}

/** Attributes that decide the price tier, besides token counts. */
export type PriceAttributes = Readonly<Record<string, string>>

/** A vendor object that a request refers to, and the error for accounts that do not own it. */
export interface Continued {
  readonly id: string
  readonly unknown: Fault
  /** Only a vendor of the caller's own format would look it up; for others it is left out or rejected. */
  readonly native?: true
}

/** The facts of a call that the money path needs. */
export interface PaidRequestFacts {
  /** The model's uid or the data endpoint's id, as in the price and the usage row. */
  readonly product: string
  /** The caller's format: among otherwise equal routes, one in the same format is preferred. */
  readonly clientFormat?: ProtocolName
  /** The caller's JSON. Redaction uses it to keep the caller's own names and ids in vendor messages. */
  readonly sent?: string
  readonly stream: boolean
  readonly price: PriceAttributes
  /** All that the answer may decide instead: the hold covers the dearest. */
  readonly prices?: readonly PriceAttributes[] | undefined
  /** Other units as which the vendor may count the input; the hold covers the dearest. */
  readonly inputUnits?: readonly Unit[] | undefined
  /** The most that this call can consume, as far as that is known before the call; the hold covers it. */
  readonly worst: Usage
  /** A report of more than this is wrong; absent: more than `worst`. */
  readonly most?: Usage
  /**
   * What is less in `worst` with a text of known tokens instead of bytes, where the model's tokenizer is known and the
   * text is not too long for it.
   */
  readonly exact?: (() => Promise<Usage | undefined>) | undefined
  /**
   * Set if the caller gave no output limit. The hold then depends on the account's balance: at most `mostTokens` of
   * output (the model's own maximum), `worst` while the balance allows it, at least `floorTokens`. The vendor's output
   * limit is set to what the hold covers.
   */
  readonly outputOpen?:
    | {
        readonly floorTokens: number
        readonly mostTokens: number
        /**
         * What `worst` reserves of output, without a prediction; absent: the reserve does not follow what earlier calls
         * wrote.
         */
        readonly reserveTokens?: number
        /** The model's own maximum, where `mostTokens` is what earlier calls make likely. */
        readonly modelTokens?: number
        /** The unit of `worst` that it is about; absent: `output`. */
        readonly unit?: 'output' | 'outputAudio'
      }
    | undefined
  /**
   * Set if tools run at the vendor, which is told how often. `worst` covers one use, and each further one, up to
   * `most`, adds `each`: the hold depends on the balance, and the vendor's limit is what it covers.
   */
  readonly usesOpen?: { readonly most: number; readonly each: Usage } | undefined
  /** Vendor tool uses that are charged with any answer, because the format does not count them. */
  readonly uses?: Usage | undefined
  /** The probable usage, for calls that end without a report, where tokens do not show it. */
  likely?(outputTokens: number): Usage
  /** The probable size of the prompt, for calls that end without a report; absent: half of the worst case. */
  readonly inputTokensLikely?: number
  /** The model cannot read more than this; a higher report is implausible and charged only up to the hold. */
  readonly inputTokensMost?: number
  /**
   * The model cannot write more than this, over all choices; a higher report is implausible and charged only up to the
   * hold.
   */
  readonly outputTokensMost?: number
  /** The number of answers requested; the output cap applies to each. */
  readonly choices?: number
  /** Set by formats that need a certain kind of route: `tools` on the alpha family go to Responses. */
  readonly needs?: readonly string[] | undefined
  /** A tool that the caller offered and that is not forwarded; the caller is informed. */
  readonly leftOut?: string | undefined
  readonly continues?: readonly Continued[] | undefined
  /** Members of the body that only the format's own maker gets. */
  readonly unknown?: readonly string[] | undefined
  /** Only vendors with this offer can answer. */
  readonly offer?: Offer
  /** How long a vendor may take for it, in place of the vendor's own deadlines for the first byte and for all. */
  readonly timeoutMs?: number
}

/** A call that a vendor answers while the caller waits. */
export interface PaidRequest extends PaidRequestFacts {
  /** Why a route of this format to this vendor cannot serve the request; undefined if it can. */
  refusal?(protocol: ProtocolName, vendor: string): Fault | undefined
  /**
   * Fetches what the request only refers to. Runs once, before a vendor slot is taken, because it does not use the
   * vendor's time.
   */
  gather?(signal: AbortSignal): Promise<void>
  /** Doing it twice may do harm: once the vendor may have begun, it is not tried again. */
  readonly once?: true
  open(target: Target, options: OpenOptions): Exchange | Promise<Exchange>
}

/** A call that becomes a job. */
export interface JobRequest extends PaidRequestFacts {
  readonly order: VideoRequest
}

export interface OpenOptions {
  readonly requestId: string
  /** Unix seconds, for the `created` of answers where the vendor gives none. */
  readonly createdSeconds: number
  /** The time at which an answer completed; absent: the time at which it began. */
  readonly nowSeconds?: () => number
  /** The vendor's output limit for each choice. Undefined: the caller gave a limit, or the call has no output. */
  readonly outputTokensCap?: number | undefined
  /** The vendor's limit on uses of its tools; absent: one. */
  readonly usesCap?: number | undefined
  readonly signal: AbortSignal
  /** Headers of the caller that some formats forward, such as anthropic-version. */
  readonly callerHeaders?: Readonly<Record<string, string>>
  /** Changes the texts of a streamed answer. */
  readonly guard?: { relay(inner: StreamRelay): StreamRelay } | undefined
}

export interface Exchange {
  readonly call: HttpCall
  /**
   * Present if one HTTP request is not all: sends the call, credential included, and replies when the whole answer is
   * there.
   */
  readonly send?: Upstream['send']
  /**
   * What happens when the caller disconnects, unless the catalog overrides it. `answer`: the vendor reports the usage
   * only at the end, so its answer is read for a while. `call`: it bills the whole call once it is sent, so the answer
   * is read to the end. Absent: the upstream call is aborted.
   */
  readonly drains?: 'answer' | 'call' | undefined
  /**
   * Reads the vendor's whole 2xx answer. Throws upstream_garbled if it cannot be read, or the fault that it carries.
   */
  answer(body: Buffer, headers: Readonly<Record<string, string>>): Answer | Promise<Answer>
  /** Present if the request streams and the vendor's 2xx answer is a stream. */
  readonly stream?: ((headers: Readonly<Record<string, string>>) => StreamRelay) | undefined
  /**
   * Present if the vendor's 2xx bytes are the caller's bytes: the answer may then be relayed unread as it comes. Checks
   * the headers only, and throws upstream_garbled if they do not match.
   */
  pass?(headers: Readonly<Record<string, string>>): { readonly contentType: string; readonly usage: Usage }
  /** Relayed this way even if it is short, because the caller plays it while it comes. */
  readonly passesAsItComes?: true | ((headers: Readonly<Record<string, string>>) => boolean)
  /** Reads the vendor's error from a non-2xx body, unredacted; undefined if there is none. */
  vendorError?(body: Buffer): VendorError | undefined
  /** Undoes what the exchange left behind (a stored file) if the call fails after all. */
  discard?(): Promise<void>
  /** When to retry after a 429, if the vendor says it in headers of its own. */
  retryAfterSeconds?(headers: Readonly<Record<string, string>>): number | undefined
}

export interface Answer {
  readonly status?: number
  readonly body: string | Buffer
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Undefined: the vendor reported none; the path then estimates from `outputChars` and marks the charge as estimated.
   */
  readonly usage: Usage | undefined
  /** The number of output characters, for the estimate. */
  readonly outputChars?: number | undefined
  /** The vendor's ids of the answer and its parts, if it stores them for the caller. */
  readonly storedAs?: readonly string[] | undefined
  /** Known only after the answer, e.g. the delivered resolution; overrides the request's attributes. */
  readonly price?: PriceAttributes | undefined
  /** The caller gets this instead, though the answer is charged. */
  readonly fault?: Fault
}

/**
 * Relays one streamed answer from the vendor to the caller. If both use the same format, bytes pass through and are
 * observed. If not, events are parsed and rewritten. Nothing that ends the answer for the caller (`[DONE]`,
 * response.completed, message_stop) is sent before `finish`, because the settlement must be durable by then.
 */
export interface StreamRelay {
  /** Returns what to send to the caller now, if anything. Throws upstream_garbled for unreadable input. */
  push(chunk: Buffer): Buffer | string | undefined
  /** The encoding of strings from `push` and `end`: bytes with one character each, or text. */
  readonly encoding: 'latin1' | 'utf8'
  /** Called at the vendor's clean end of stream. */
  end(): Buffer | string | undefined
  /** Present if something must be durable before the answer may end (a stored file): settle after it resolves. */
  ready?(): Promise<void>
  readonly state: StreamState
  /** The last frames, which were held back. `comment` is an SSE comment line with the charge, or empty. */
  finish(comment: string): string
  /** The frames that report a fault within the stream; never a clean end. */
  fail(fault: Fault, requestId: string): string
  /** A keep-alive that the format's SDKs ignore. */
  readonly keepAlive: string
  /** Set if it is not a stream of server-sent events. */
  readonly contentType?: string
}

/** A relay around another one, which it asks for what it does not do itself. */
export abstract class OuterRelay implements StreamRelay {
  protected readonly inner: StreamRelay

  constructor(inner: StreamRelay) {
    this.inner = inner
  }

  abstract push(chunk: Buffer): Buffer | string | undefined
  abstract end(): Buffer | string | undefined

  get encoding(): StreamRelay['encoding'] {
    return this.inner.encoding
  }

  get state(): StreamState {
    return this.inner.state
  }

  get keepAlive(): string {
    return this.inner.keepAlive
  }

  finish(comment: string): string {
    return this.inner.finish(comment)
  }

  fail(...given: Parameters<StreamRelay['fail']>): string {
    return this.inner.fail(...given)
  }
}

export interface StreamState {
  /** A terminal event was seen: `[DONE]`, or a finish reason and a clean end. */
  readonly terminal: boolean
  /** The fault that the vendor reported within the stream. */
  readonly fault: Fault | undefined
  readonly usage: Usage | undefined
  /** The vendor's count of the prompt at the start of the answer, for endings without usage. */
  readonly promptUsage?: Usage | undefined
  /** The vendor's ids of the answer and its parts, if it stores them for the caller. */
  readonly storedAs?: readonly string[] | undefined
  /** Known only from the answer, e.g. the quality of an image; overrides the request's attributes. */
  readonly price?: PriceAttributes | undefined
  /** Vendor tool uses seen so far, for endings without usage. */
  readonly uses?: Usage | undefined
  /** Output tokens delivered so far, counted roughly without parsing, for endings without usage. */
  readonly outputTokensSeen: number
}

/** The fault for an unreadable vendor answer. */
export const garbled = (why: string, cause?: unknown) => new Fault('upstream_garbled', { internal: { why }, cause })

/** The caller's JSON with the vendor's name of the model. */
export function jsonCall(path: string, json: JsonText, target: Target, accept = 'application/json'): HttpCall {
  const headers = { 'content-type': 'application/json', accept }
  const body = splice(json, { replace: { model: JSON.stringify(target.model) } })
  return { method: 'POST', url: target.baseUrl + path, headers, body }
}
