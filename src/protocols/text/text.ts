// Connects the request path and the text formats: turns a caller's body into a PaidRequest.
import { CONTEXT_TOKENS_DEFAULT } from '../../catalog/document.ts'
import { readTextTraits, type TextTraits } from '../../catalog/traits.ts'
import { Fault } from '../../kernel/fault.ts'
import { type JsonText, readJson, splice } from '../../kernel/json.ts'
import type { ProtocolName, TextProtocolName } from '../../meter/kind.ts'
import type { Pricing } from '../../meter/price.ts'
import type { HttpCall } from '../../upstream/call.ts'
import { Fields, isObject, type Json, mustBe, objects, wrong } from '../check.ts'
import type { Answer, Exchange, OpenOptions, PaidRequest, StreamRelay, Target } from '../protocol.ts'
import { readErrorBody } from '../vendor-words.ts'
import { inCloud, isAwsStream, UnframingRelay, unframed } from './anthropic-messages/cloud.ts'
import { checkPrompt } from './anthropic-messages/request.ts'
import { type AnswerFacts, type Conversation, cannotConvert } from './canonical.ts'
import { boundMedia, checkVendorSide, leaveOutSearch, readExtras, readMedia, withPriced } from './extras.ts'
import type { CheckedRequest, TextFormat } from './format.ts'
import { anthropicMessages, FORMATS, gemini, openaiResponses } from './formats.ts'
import { checkGeminiPrompt } from './gemini/request.ts'
import { measurePrompt, type PromptSize } from './prompt.ts'
import { ConvertRelay } from './reader.ts'
import { referencesIn } from './references.ts'
import { PassRelay, readEvents, readWhole, WholeRelay } from './relay.ts'
import { admitMembers, DECIDING, withoutUnknown } from './request-members.ts'
import { toUsage } from './tokens.ts'

const VENDOR_FORMATS: Readonly<Partial<Record<ProtocolName, TextFormat>>> = FORMATS

/** An address that every vendor serves, whatever its format, or answers with its own 404. */
export const modelsAddress = ({ protocol, baseUrl }: Target): string =>
  baseUrl + (VENDOR_FORMATS[protocol]?.models ?? '/models')

/** The facts from the catalog that a request depends on. */
export interface ModelFacts {
  readonly uid: string
  readonly traits: TextTraits
  readonly pricing?: Pricing | undefined
  readonly limits: {
    readonly contextTokens?: number | undefined
    readonly outputTokensMax?: number | undefined
    readonly outputTokensReserve: number
    readonly outputTokensFloor: number
  }
}

interface TextRequest extends PaidRequest {
  readonly clientFormat: TextProtocolName
}

/** The share of the remaining context that output may use, because the prompt may be larger than estimated. */
const ROOM_PART = 0.75
/** More turns than any vendor runs for one answer. */
const TURNS_MAX = 64
/** Tools that the caller runs. */
const OWN_TOOLS: ReadonlySet<unknown> = new Set([undefined, 'function', 'custom'])

/** Reads the model's name, for its lookup before anything else is read. */
export function readModelName(json: JsonText): string {
  checkSpelling(json)
  const model = new Fields(json).get('model')
  if (model === undefined) throw wrong('model', 'is required: the id of a model, as GET /v1/models lists it.')
  if (typeof model !== 'string') throw mustBe('model', 'a string', model)
  if (model.trim() === '') throw wrong('model', 'must not be empty; GET /v1/models lists the ids of models.')
  return model
}

/** Some vendors ignore case and would use a "Model" or an "N" that was not validated here. */
function checkSpelling({ value }: JsonText): void {
  for (const name of Object.keys(value)) {
    if (DECIDING.has(name)) continue
    // Both conversions are needed, because letters such as ſ change in only one of them.
    const plain = name.toUpperCase().toLowerCase()
    if (plain !== name && DECIDING.has(plain)) throw wrong(name, `must be written "${plain}".`)
  }
}

/** Validates a request in one of the client formats. For a rejected request nothing is sent and nothing is held. */
export function readTextRequest(clientFormat: TextProtocolName, sent: JsonText, model: ModelFacts): TextRequest {
  const { pricing } = model
  const traits = withPriced(clientFormat, model.traits, pricing)
  const format = FORMATS[clientFormat]
  const members = admitMembers(clientFormat, sent, traits.hostedTools)
  const { json: wanted, leftOut } = leaveOutSearch(
    boundMedia(clientFormat, members.json, model.limits.outputTokensReserve),
    traits,
  )
  const checked = format.check(new Fields(wanted), traits)
  checkVendorSide(wanted.value, traits, pricing)
  const extras = readExtras(clientFormat, wanted, pricing, checked.n)
  const { json, price } = extras
  const continues = [...(checked.continues ?? []), ...referencesIn(clientFormat, json, traits.sharedIds)]
  const needs =
    clientFormat !== 'openai-responses' && checked.hasTools && traits.toolsNeed !== undefined
      ? [traits.toolsNeed]
      : undefined
  const opening = new UpstreamCall(format, json, checked, { ...model, unknown: members.unknown })
  const { limits } = model
  const perChoice = Math.min(
    checked.tokensMax ?? limits.outputTokensReserve,
    limits.outputTokensMax ?? Number.MAX_SAFE_INTEGER,
  )
  const contextTokens = limits.contextTokens ?? CONTEXT_TOKENS_DEFAULT
  const output = (perChoice + predictedTokens(clientFormat, json.value)) * checked.n
  const input = inputOf(opening.size, contextTokens, output, extras)
  const media = readMedia(clientFormat, json.value, pricing, { ...opening.size, output })
  // Written out in full: conditional members and copies would cost every call.
  return {
    clientFormat,
    sent: json.text,
    product: model.uid,
    stream: checked.stream,
    price,
    worst: media ? { ...input.worst, ...media } : input.worst,
    inputTokensLikely: input.likely,
    inputTokensMost: contextTokens * (readsAgain(json) ? TURNS_MAX : 1),
    outputTokensMost: Math.max(contextTokens, limits.outputTokensMax ?? 0) * checked.n,
    choices: checked.n,
    outputOpen:
      checked.tokensMax === undefined
        ? {
            floorTokens: limits.outputTokensFloor * checked.n,
            mostTokens: writableTokens(limits, contextTokens - input.likely, perChoice) * checked.n,
          }
        : undefined,
    needs,
    leftOut,
    unknown: members.unknown,
    uses: extras.uses,
    continues: continues.length > 0 ? continues : undefined,
    refusal: (protocol) => extras.refusal(protocol) ?? opening.refusal(protocol),
    open: (target, options) => opening.open(target, options),
  }
}

/** The wrong part of a prediction is billed as output, beyond the output limit. */
function predictedTokens(clientFormat: TextProtocolName, { prediction }: Json): number {
  return clientFormat === 'openai-chat' && isObject(prediction) ? measurePrompt([prediction.content], {}).most : 0
}

/**
 * The output limit of one choice. Vendors reject a limit that their model cannot reach, so a model without a known maximum gets the reserve,
 * and a long prompt reduces the limit.
 */
function writableTokens(limits: ModelFacts['limits'], roomTokens: number, reserve: number): number {
  return Math.max(reserve, Math.min(limits.outputTokensMax ?? reserve, Math.floor(roomTokens * ROOM_PART)))
}

/** Whether the prompt may be read several times: vendor tools and compaction read it once per turn, and the report is the sum. */
function readsAgain({ value, text }: JsonText): boolean {
  if (text.includes('"context_management"') || text.includes('"mcp_servers"')) return true
  return isObject(value.web_search_options) || objects(value.tools).some(({ type }) => !OWN_TOOLS.has(type))
}

/** The input for the hold, and the likely input. */
function inputOf(
  size: PromptSize,
  contextTokens: number,
  output: number,
  { worst: uses, keepsForAnHour }: Pick<ReturnType<typeof readExtras>, 'worst' | 'keepsForAnHour'>,
) {
  const input = size.elsewhere ? contextTokens : Math.min(size.most, contextTokens)
  return {
    // Writing to a one-hour cache costs more than plain input.
    worst: keepsForAnHour ? { cacheWriteHour: input, output, ...uses } : { input, output, ...uses },
    likely: size.elsewhere ? Math.max(size.likely, Math.ceil(input / 2)) : Math.min(size.likely, input),
  }
}

/** For /v1/messages/count_tokens. Holds use the maximum, but a caller of this endpoint wants the likely count. */
export function countTokens(json: JsonText): number {
  readModelName(json)
  checkPrompt(new Fields(json))
  return measurePrompt(anthropicMessages.prompt(json.value), json.value).likely
}

/** For /v1/responses/input_tokens. Content stored at the vendor (`previous_response_id`) is not included. */
export function countResponseTokens(json: JsonText): number {
  readModelName(json)
  openaiResponses.check(new Fields(json), readTextTraits())
  return measurePrompt(openaiResponses.prompt(json.value), json.value).likely
}

/** For :countTokens, which takes only the contents or a whole request. */
export function countGeminiTokens({ value }: JsonText): number {
  const whole = value.generateContentRequest ?? undefined
  if (whole !== undefined && !isObject(whole)) throw mustBe('generateContentRequest', 'an object', whole)
  const request = whole ?? value
  checkGeminiPrompt(request)
  return measurePrompt(gemini.prompt(request), request).likely
}

interface UpstreamCallFacts extends Pick<ModelFacts, 'uid' | 'traits'> {
  /** Members only for the format's own maker. */
  readonly unknown: readonly string[]
}

/** A validated request that can be sent to any vendor. */
class UpstreamCall {
  readonly size: PromptSize
  private readonly format: TextFormat
  private readonly json: JsonText
  private readonly checked: CheckedRequest
  private readonly uid: string
  private readonly traits: TextTraits
  private readonly unknown: readonly string[]
  /** Whether the vendor is asked for a stream; an answer of the other kind is converted to what the caller wants. */
  private readonly streams: boolean
  private readonly refusals = new Map<ProtocolName, Fault | undefined>()
  private words: Conversation | undefined

  constructor(
    format: TextFormat,
    json: JsonText,
    checked: CheckedRequest,
    { uid, traits, unknown }: UpstreamCallFacts,
  ) {
    this.format = format
    this.json = json
    this.checked = checked
    this.uid = uid
    this.traits = traits
    this.unknown = unknown
    this.streams = traits.streams === 'asked' ? checked.stream : traits.streams === 'always'
    this.size = measurePrompt(format.prompt(json.value), json.value)
  }

  /** Determined by a trial conversion, once for each format. */
  refusal(protocol: ProtocolName): Fault | undefined {
    const back = VENDOR_FORMATS[protocol]
    if (!back || back === this.format) return undefined
    if (!this.refusals.has(protocol)) this.refusals.set(protocol, this.tryToSay(back))
    return this.refusals.get(protocol)
  }

  private tryToSay(back: TextFormat): Fault | undefined {
    try {
      back.writeRequest(this.conversation(), this.uid, this.traits)
      return undefined
    } catch (error) {
      if (error instanceof Fault) return error
      throw error
    }
  }

  open(target: Target, options: OpenOptions): Exchange {
    const back = VENDOR_FORMATS[target.protocol]
    if (!back)
      throw new Fault('internal', {
        internal: { why: 'a text model has a route that does not speak text', protocol: target.protocol },
      })
    return back === this.format ? this.pass(target, options) : this.convert(back, target, options)
  }

  /** For a vendor that uses the caller's format. */
  private pass(target: Target, options: OpenOptions): Exchange {
    const { format, checked, uid, traits, streams } = this
    const known = target.passesUnknown ? this.json : withoutUnknown(this.json, this.unknown)
    const json = withTemperature(streams === checked.stream ? known : withStream(known, streams), traits)
    const asked = streams === checked.stream ? checked : { ...checked, stream: streams }
    const body = format.pass(json, asked, { model: target.model, traits, outputTokensCap: options.outputTokensCap })
    return this.exchange(format, target, options, {
      body,
      request: json.value,
      answer: (bytes) => format.passAnswer(bytes, uid, traits, checked),
      relay: () => new PassRelay(format.observe(uid, checked, traits)),
    })
  }

  private convert(back: TextFormat, target: Target, options: OpenOptions): Exchange {
    const { format, checked, uid, traits } = this
    const conversation = this.conversation()
    const tokensMax = conversation.tokensMax ?? options.outputTokensCap
    const limited = tokensMax === undefined ? conversation : { ...conversation, tokensMax }
    const streamed = this.streams === checked.stream ? limited : { ...limited, stream: this.streams }
    const { zeroTemperature: zero } = traits
    const asked = zero !== undefined && streamed.temperature === 0 ? { ...streamed, temperature: zero } : streamed
    const facts: AnswerFacts = {
      uid,
      requestId: options.requestId,
      createdSeconds: options.createdSeconds,
      nowSeconds: options.nowSeconds ?? (() => options.createdSeconds),
      inputTokens: this.size.likely,
      includeUsage: checked.includeUsage,
      request: this.json.value,
    }
    const request = back.writeRequest(asked, target.model, traits)
    return this.exchange(back, target, options, {
      body: JSON.stringify(request),
      request,
      answer(bytes): Answer {
        const { value } = readWhole(bytes, 'utf8')
        const reply = back.readReply(value, traits)
        const outputChars = reply.parts.reduce(
          (sum, part) => sum + (part.kind === 'call' ? part.input : part.text).length,
          0,
        )
        return {
          body: JSON.stringify(format.writeReply(reply, facts)),
          contentType: 'application/json',
          usage: toUsage(reply.tokens),
          outputChars,
        }
      },
      relay: () => new ConvertRelay(back.reader(traits), format.writer(facts)),
    })
  }

  private conversation(): Conversation {
    if (this.checked.n > 1) throw cannotConvert(this.checked.nField ?? 'n', 'more than one choice')
    this.words ??= this.format.readConversation(this.json.value)
    return this.words
  }

  private exchange(
    back: TextFormat,
    target: Target,
    options: OpenOptions,
    way: { body: string; request: Json; answer(bytes: Buffer): Answer; relay(): PassRelay | ConvertRelay },
  ): Exchange {
    const { checked, streams, traits, format, json } = this
    const framed = (relay: StreamRelay) => {
      const checked = options.guard ? options.guard.relay(relay) : relay
      return format.framed?.(checked, json.value) ?? checked
    }
    const isOf = (type: RegExp, headers: Readonly<Record<string, string>>) => type.test(headers['content-type'] ?? '')
    const call: HttpCall = {
      method: 'POST',
      url: back.address(target, streams),
      headers: {
        ...back.headers?.(options),
        'content-type': 'application/json',
        accept: streams ? 'text/event-stream' : 'application/json',
      },
      body: way.body,
    }
    return {
      drains: back.reportsAtEnd(way.request, traits) ? 'answer' : undefined,
      call: back === anthropicMessages ? inCloud(call, target, streams) : call,
      answer(bytes, headers) {
        const events = isAwsStream(headers) ? unframed(bytes) : isOf(STREAM, headers) ? bytes : undefined
        return way.answer(events ? Buffer.from(JSON.stringify(back.rollUp(readEvents(events), traits))) : bytes)
      },
      stream: checked.stream
        ? (headers) => {
            if (isAwsStream(headers)) return framed(new UnframingRelay(way.relay()))
            return framed(isOf(JSON_TYPE, headers) ? new WholeRelay(way.relay(), back.unroll) : way.relay())
          }
        : undefined,
      vendorError: readErrorBody,
    }
  }
}

const STREAM = /^text\/event-stream/i
const JSON_TYPE = /^application\/(?:[\w.-]{1,40}\+)?json/i

/** The request with `stream` changed, for a vendor that must stream although the caller does not, or the reverse. */
function withStream(json: JsonText, stream: boolean): JsonText {
  const edit = { stream: String(stream) }
  const edits = json.member('stream') ? { replace: edit } : { add: edit }
  return readJson(Buffer.from(splice(json, stream ? edits : { ...edits, remove: ['stream_options'] })))
}

function withTemperature(json: JsonText, { zeroTemperature }: TextTraits): JsonText {
  if (zeroTemperature === undefined || json.value.temperature !== 0) return json
  return readJson(Buffer.from(splice(json, { replace: { temperature: String(zeroTemperature) } })))
}
