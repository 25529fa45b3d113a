// One response of a Realtime session as a paid request: what it costs at most, the event that asks the vendor for it
// with a cap that the hold covers, and the reading of its events.
import type { Model, ModelOf } from '../../../catalog/document.ts'
import { Fault } from '../../../kernel/fault.ts'
import { isObject, type Json, type JsonText, objectOf, text } from '../../../kernel/json.ts'
import { countedUnits, rateFor } from '../../../meter/charge.ts'
import type { Usage } from '../../../meter/usage.ts'
import {
  garbled,
  type OpenOptions,
  type PaidRequest,
  type StreamRelay,
  type StreamState,
} from '../../../protocols/protocol.ts'
import { openaiError } from '../../../protocols/vendor-fault.ts'
import { readErrorBody } from '../../../protocols/vendor-words.ts'
import type { Upstream } from '../../../upstream/call.ts'
import type { RealtimeTurn } from './session.ts'
import { usageOf } from './usage.ts'

/** How a response reaches the vendor of its session. */
export interface RealtimeLink {
  readonly turn: RealtimeTurn
  /** The event's id, by which the vendor's error names it. */
  readonly eventId: string
  readonly send: Upstream['send']
  /** Ends the response at the vendor, which then reports what it has used. */
  cancel(): void
}

/**
 * The transcription of sound that is sent to the vendor of a session: the reply comes when it is to be charged, and is
 * a number of seconds.
 */
export interface TranscriptLink {
  readonly seconds: number
  readonly send: Upstream['send']
}

/** What vendors let a response have. */
const OUTPUT_TOKENS_MAX = 4_096
const CONTEXT_TOKENS = 128_000
/** The vendor counts otherwise than we do. */
const OVER_TOKENS = 256

export const isTranscribed = (model: Model | undefined) =>
  model?.type === 'realtime' && countedUnits(model.pricing).has('second')
export const contextOf = (model: ModelOf<'realtime'> | undefined) => model?.limits.contextTokens ?? CONTEXT_TOKENS

/** Without a link: the session itself, which costs nothing. */
export function readRealtimeRequest(
  json: JsonText,
  uid: string,
  named: Model | undefined,
  link: RealtimeLink | TranscriptLink | undefined,
): PaidRequest {
  const model = named?.enabled && named.type === 'realtime' ? named : undefined
  const plain = {
    product: uid,
    clientFormat: 'openai-realtime',
    sent: json.text,
    stream: true,
    price: {},
    once: true,
  } as const
  if (!link)
    return {
      ...plain,
      worst: {},
      open: () => {
        throw new Fault('internal', { internal: { why: 'a session is opened by its own exchange' } })
      },
    }
  if ('seconds' in link) return { ...plain, stream: false, worst: { second: link.seconds }, open: () => heard(link) }
  const { reads, speaks, tokensMax } = link.turn
  const {
    outputTokensMax = OUTPUT_TOKENS_MAX,
    outputTokensReserve = outputTokensMax,
    outputTokensFloor = 64,
  } = model?.limits ?? {}
  const rate = (unit: 'output' | 'outputAudio') => (model && rateFor(unit, model.pricing, reads, {})) ?? 0n
  // Sound has a transcript, which is text: the hold assumes the more expensive rate for the whole response.
  const unit = speaks && rate('outputAudio') >= rate('output') ? 'outputAudio' : 'output'
  const output = Math.min(tokensMax ?? outputTokensReserve, outputTokensMax)
  const contextTokens = contextOf(model)
  return {
    ...plain,
    worst: { ...reads, [unit]: output },
    inputTokensMost: contextTokens,
    outputTokensMost: contextTokens,
    likely: (outputTokens) => ({ ...reads, [unit]: outputTokens }),
    outputOpen:
      tokensMax === undefined ? { floorTokens: outputTokensFloor, mostTokens: outputTokensMax, unit } : undefined,
    open: (_target, options) => openResponse(json, link, output, options),
  }
}

function heard({ send }: TranscriptLink) {
  return {
    call: { method: 'POST', url: '', headers: {} } as const,
    send,
    drains: 'answer',
    answer: (body: Buffer) => ({ body: '', contentType: 'text/plain', usage: { second: Number(body) } }),
  } as const
}

function openResponse(json: JsonText, link: RealtimeLink, output: number, { outputTokensCap }: OpenOptions) {
  const cap = outputTokensCap ?? output
  const response = { ...objectOf(json.value.response), max_output_tokens: cap }
  const body = JSON.stringify({ type: 'response.create', event_id: link.eventId, response })
  return {
    call: { method: 'POST', url: '', headers: {}, body } as const,
    send: link.send,
    // Told to stop, the vendor reports what it has used.
    drains: 'answer',
    answer: () => {
      throw garbled('a response of a session is a stream')
    },
    stream: () => new ResponseRelay(link, cap, outputTokensCap !== undefined),
    vendorError: readErrorBody,
  } as const
}

/** Ends each frame but the last of a piece; it never stands in JSON. */
export const FRAME_END = '\0'

class ResponseRelay implements StreamRelay {
  readonly encoding = 'utf8'
  readonly keepAlive = ''
  readonly contentType = 'application/x-ndjson'
  readonly #link: RealtimeLink
  readonly #cap: number
  readonly #isOurs: boolean
  #last = ''
  #isCancelled = false
  #wasCut = false
  #saidTokens = 0
  #spokenTokens = 0
  #terminal = false
  #usage: Usage | undefined

  constructor(link: RealtimeLink, cap: number, isOurs: boolean) {
    this.#link = link
    this.#cap = cap
    this.#isOurs = isOurs
  }

  get state(): StreamState {
    return {
      terminal: this.#terminal,
      fault: undefined,
      usage: this.#usage,
      outputTokensSeen: Math.ceil(this.#saidTokens + this.#spokenTokens),
    }
  }

  push(chunk: Buffer): string {
    const frame = chunk.toString()
    const event: unknown = JSON.parse(frame)
    if (!isObject(event)) throw garbled('an event is no object')
    if (event.type === 'response.done') {
      this.#end(objectOf(event.response))
      this.#last = frame
      return ''
    }
    this.#count(event)
    return frame + FRAME_END
  }

  /**
   * A vendor that exceeds its output cap is stopped, because the hold covers no more. Text tokens are estimated, since
   * vendors report them only at the end; only half of the estimate counts, so that no vendor within the cap is stopped.
   */
  #count({ type, delta }: Json): void {
    const said = text(delta)
    if (said === undefined || typeof type !== 'string') return
    if (/audio\.delta$/.test(type)) this.#spokenTokens += (said.length * 0.75) / this.#link.turn.bytesSpoken
    else this.#saidTokens += said.length / 4
    if (this.#spokenTokens + this.#saidTokens / 2 <= this.#cap + OVER_TOKENS || this.#isCancelled) return
    this.#isCancelled = true
    this.#wasCut = true
    this.#link.cancel()
  }

  #end({ usage, status, status_details: details }: Json): void {
    this.#terminal = true
    this.#usage = isObject(usage) ? usageOf(usage) : status === 'failed' ? {} : undefined
    if (status === 'incomplete' && objectOf(details).reason === 'max_output_tokens') this.#wasCut = this.#isOurs
  }

  end(): undefined {
    return undefined
  }

  finish(): string {
    return this.#wasCut ? this.#last + FRAME_END + CUT : this.#last
  }

  fail(fault: Fault): string {
    return JSON.stringify({ type: 'error', status: fault.status, error: { ...openaiError(fault), event_id: null } })
  }
}

const CUT = JSON.stringify({
  type: 'error',
  status: 402,
  error: {
    type: 'billing_error',
    code: 'insufficient_quota',
    param: null,
    event_id: null,
    message: 'The response ended where the credits or limits of this account did.',
  },
})
