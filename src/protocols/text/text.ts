// Connects the request path and the text formats: turns a caller's body into a PaidRequest.

import { CONTEXT_TOKENS_DEFAULT } from '../../catalog/document.ts'
import { countTokensBody } from '../../catalog/text-bodies.ts'
import { readTextTraits, type TextTraits } from '../../catalog/traits.ts'
import { Fault } from '../../kernel/fault.ts'
import {
  edited,
  isGiven,
  isObject,
  type Json,
  type JsonText,
  objects,
  readJson,
  withMembers,
} from '../../kernel/json.ts'
import type { ClientFormatName, ProtocolName, Unit } from '../../meter/kind.ts'
import type { Pricing } from '../../meter/price.ts'
import type { HttpCall } from '../../upstream/call.ts'
import { checkBody, mustBe, wrong } from '../check.ts'
import type { Answer, Exchange, OpenOptions, PaidRequest, StreamRelay, Target } from '../protocol.ts'
import { readErrorBody } from '../vendor-words.ts'
import { isAwsStream, UnframingRelay, unframed } from './anthropic-messages/cloud.ts'
import { anthropicMessages } from './anthropic-messages/format.ts'
import { type AnswerFacts, type Conversation, cannotConvert } from './canonical.ts'
import { boundMedia, checkVendorSide, leaveOutSearch, readExtras, readMedia, USES_MAX, withPriced } from './extras.ts'
import type { CheckedRequest, ClientFormat, TextFormat, VendorFormat } from './format.ts'
import { FORMATS, VENDOR_FORMATS } from './formats.ts'
import { openaiResponses } from './openai-responses/format.ts'
import { addedTokens, measurePrompt, type PromptSize, runsElsewhere } from './prompt.ts'
import { ConvertRelay } from './reader.ts'
import { referencesIn } from './references.ts'
import { PassRelay, readEvents, readWhole, WholeRelay } from './relay.ts'
import { admitMembers, isDeciding, passes, withoutUnknown } from './request-members.ts'
import { countedTokens } from './tokenizer.ts'
import { toUsage } from './tokens.ts'

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

/** What follows from a model and a client format alone. */
interface Prepared {
  /** With the tools that have a price allowed. */
  readonly traits: TextTraits
  /** Members that are admitted although the table of the format refuses them. */
  readonly allowed: readonly string[]
  readonly contextTokens: number
  /** Of a request with members of `PLAIN` alone. */
  readonly extras: ReturnType<typeof readExtras>
}

const EMPTY = readJson(Buffer.from('{}'))
/** Worked out once for each model of a catalog. */
const prepared = new WeakMap<ModelFacts, Map<ClientFormatName, Prepared>>()

function preparedFor(format: TextFormat, model: ModelFacts): Prepared {
  const { name } = format
  let byFormat = prepared.get(model)
  if (!byFormat) {
    byFormat = new Map()
    prepared.set(model, byFormat)
  }
  const known = byFormat.get(name)
  if (known) return known
  const { pricing, limits } = model
  const traits = withPriced(format, model.traits, pricing)
  const contextTokens = limits.contextTokens ?? CONTEXT_TOKENS_DEFAULT
  const allowed = [...traits.hostedTools, ...(traits.vendorRouting ? ['provider'] : [])]
  const extras = readExtras(format, EMPTY, pricing, { n: 1, contextTokens })
  const made = { traits, allowed, contextTokens, extras }
  byFormat.set(name, made)
  return made
}

/**
 * Members that bring in no tool, medium, reference or price of their own, in any format: what is asked beside them
 * alone needs no look for these.
 */
const PLAIN: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'contents',
  'system',
  'max_tokens',
  'max_completion_tokens',
  'stream',
  'n',
  'max_output_tokens',
  'temperature',
  'top_p',
  'top_k',
  'stop',
  'stop_sequences',
  'stream_options',
  'seed',
  'user',
  'presence_penalty',
  'frequency_penalty',
  'logprobs',
  'top_logprobs',
  'reasoning_effort',
  'verbosity',
  'metadata',
])

function isPlain(value: Json): boolean {
  for (const name in value) if (!PLAIN.has(name)) return false
  return true
}

/** Of each format the members of `PLAIN` that go to its vendors as they are. */
const passing = new Map<ClientFormatName, ReadonlySet<string>>()

/**
 * The usual request: plain settings, at most one limit, and turns that are nothing but texts of users, assistants and
 * the system. In such a request nothing has to be mended, left out or refused, and nothing refers to anything.
 */
function isTalk({ name: format, members }: ClientFormat, value: Json): boolean {
  let names = passing.get(format)
  if (!names) {
    names = new Set([...PLAIN].filter((name) => passes(members, name)))
    passing.set(format, names)
  }
  if (value.max_tokens !== undefined && value.max_completion_tokens !== undefined) return false
  for (const name in value) {
    const member = value[name]
    if (!names.has(name) || (typeof member === 'object' && !(name === 'messages' && areTexts(member)))) return false
  }
  return true
}

const SPEAKERS: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system'])

function areTexts(turns: unknown): boolean {
  if (!Array.isArray(turns)) return false
  for (const turn of turns) {
    if (!isObject(turn) || !SPEAKERS.has(turn.role) || typeof turn.content !== 'string') return false
    for (const name in turn) if (name !== 'role' && name !== 'content') return false
  }
  return true
}

const NONE: readonly never[] = []

type TextRequest = PaidRequest & { readonly clientFormat: ClientFormatName }

/** The share of the remaining context that output may use, because the prompt may be larger than estimated. */
const ROOM_PART = 0.75
/** More turns than any vendor runs for one answer. */
const TURNS_MAX = USES_MAX + 1
/** Tools that the caller runs. */
const OWN_TOOLS: ReadonlySet<unknown> = new Set([undefined, 'function', 'custom'])

/** Reads the model's name, for its lookup before anything else is read. */
export function readModelName(json: JsonText): string {
  if (!isPlain(json.value)) checkSpelling(json)
  const { model } = json.value
  if (!isGiven(model)) throw wrong('model', 'is required: the id of a model, as GET /v1/models lists it.')
  if (typeof model !== 'string') throw mustBe('model', 'a string', model)
  if (model.trim() === '') throw wrong('model', 'must not be empty; GET /v1/models lists the ids of models.')
  return model
}

/** Some vendors ignore case and would use a "Model" or an "N" that was not validated here. */
function checkSpelling({ value }: JsonText): void {
  for (const name of Object.keys(value)) {
    if (isDeciding(name)) continue
    // Both conversions are needed, because letters such as ſ change in only one of them.
    const plain = name.toUpperCase().toLowerCase()
    if (plain !== name && isDeciding(plain)) throw wrong(name, `must be written "${plain}".`)
  }
}

/** Validates a request in one of the client formats. For a rejected request nothing is sent and nothing is held. */
export function readTextRequest(clientFormat: ClientFormatName, sent: JsonText, model: ModelFacts): TextRequest {
  const { pricing, limits } = model
  const format = FORMATS[clientFormat]
  const { traits, allowed, contextTokens, extras: none } = preparedFor(format, model)
  const talk = isTalk(format, sent.value)
  const members = talk ? { json: sent, unknown: NONE } : admitMembers(format.members, documented(format, sent), allowed)
  const plain = talk || isPlain(members.json.value)
  const { json, leftOut }: ReturnType<typeof leaveOutSearch> = plain
    ? { json: members.json }
    : leaveOutSearch(boundMedia(format, members.json, limits.outputTokensReserve), traits)
  const checked = readChecked(format, json, traits, limits.outputTokensMax ?? contextTokens)
  if (!plain) checkVendorSide(json.value, traits, pricing)
  const extras = plain ? none : readExtras(format, json, pricing, { n: checked.n, contextTokens })
  const own = checked.continues ?? []
  const continues = talk ? own : [...own, ...referencesIn(clientFormat, json, traits.sharedIds)]
  const needs =
    clientFormat !== 'openai-responses' && checked.hasTools && traits.toolsNeed !== undefined
      ? [traits.toolsNeed]
      : undefined
  const [{ unknown }, { capped }, { tokenizer }] = [members, extras, traits]
  const opening = new UpstreamCall({ format, json, checked, uid: model.uid, traits: model.traits, unknown, capped })
  const perChoice = Math.min(
    checked.tokensMax ?? limits.outputTokensReserve,
    limits.outputTokensMax ?? Number.MAX_SAFE_INTEGER,
  )
  const { size } = opening
  const output = (perChoice + (plain ? 0 : predictedTokens(clientFormat, json.value))) * checked.n
  const inputOf = (size: PromptSize) => inputMost(size, addedTokens(json.value), contextTokens, extras.turns)
  const input = inputOf(size)
  const likely =
    size.refers || size.runs
      ? Math.max(size.likely, Math.ceil(contextTokens / 2))
      : Math.min(size.likely, contextTokens)
  const hasMedia = !plain || size.sound > 0 || size.pictures > 0
  const media = hasMedia ? readMedia(format, json.value, pricing, { ...size, output }) : undefined
  const worst = media ? { input, output, ...extras.worst, ...media } : { input, output, ...extras.worst }
  // Written out in full: conditional members and copies would cost every call.
  return {
    clientFormat,
    sent: json.text,
    product: model.uid,
    stream: checked.stream,
    price: extras.price,
    prices: extras.prices,
    inputUnits: size.cached === 'long' || (!plain && keepsLong(json.value)) ? LONG_WRITES : WRITES,
    worst,
    exact:
      tokenizer &&
      (async () => {
        const sizeOf = await countedTokens(tokenizer, opening.texts())
        return sizeOf && { input: inputOf(opening.measure(sizeOf)) }
      }),
    inputTokensLikely: likely,
    inputTokensMost: contextTokens * (!plain && readsAgain(format, json.value) ? TURNS_MAX : 1),
    outputTokensMost: Math.max(contextTokens, limits.outputTokensMax ?? 0) * checked.n,
    choices: checked.n,
    outputOpen:
      checked.tokensMax === undefined
        ? {
            floorTokens: limits.outputTokensFloor * checked.n,
            reserveTokens: perChoice * checked.n,
            mostTokens: writableTokens(limits, contextTokens - likely, perChoice) * checked.n,
          }
        : undefined,
    usesOpen: extras.usesOpen,
    needs,
    leftOut,
    unknown,
    uses: extras.uses,
    continues: continues.length > 0 ? continues : undefined,
    refusal: (protocol) => extras.refusal?.(protocol) ?? opening.refusal(protocol),
    open: (target, options) => opening.open(target, options),
  }
}

/** The vendor is told no more than the model can write, because that is what is held. */
function readChecked({ body, check }: ClientFormat, json: JsonText, traits: TextTraits, most: number): CheckedRequest {
  checkBody(body, json.value, json)
  const checked = check(json.value, traits)
  return (checked.tokensMax ?? 0) > most ? { ...checked, tokensMax: most, isLowered: true } : checked
}

/** The request in its documented form; the same object if it has that already. */
function documented(format: ClientFormat, json: JsonText): JsonText {
  const edits = format.lenient?.(json)
  if (!edits || edits.length === 0) return json
  return edited(json, { replace: Object.fromEntries(edits.map(([name, value]) => [name, JSON.stringify(value)])) })
}

/** The wrong part of a prediction is billed as output, beyond the output limit. */
function predictedTokens(clientFormat: ClientFormatName, { prediction }: Json): number {
  return clientFormat === 'openai-chat' && isObject(prediction) ? measurePrompt([prediction.content], {}).most : 0
}

/**
 * The output limit of one choice. Vendors reject a limit that their model cannot reach, so a model without a known
 * maximum gets the reserve, and a long prompt reduces the limit.
 */
function writableTokens(limits: ModelFacts['limits'], roomTokens: number, reserve: number): number {
  return Math.max(reserve, Math.min(limits.outputTokensMax ?? reserve, Math.floor(roomTokens * ROOM_PART)))
}

/**
 * Whether the prompt may be read several times: vendor tools and compaction read it once per turn, and the report is
 * the sum.
 */
function readsAgain(format: ClientFormat, value: Json): boolean {
  if (['context_management', 'mcp_servers', 'web_search_options'].some((name) => isGiven(value[name]))) return true
  if ((format.runsElsewhere ?? runsElsewhere)(value)) return true
  return objects(value.tools).some(({ type }) => !OWN_TOOLS.has(type))
}

/** Writing to a cache costs more than plain input, and vendors may write unasked. */
const WRITES: readonly Unit[] = ['cacheWrite']
const LONG_WRITES: readonly Unit[] = ['cacheWrite', 'cacheWriteHour']

/** A time in the vendor's cache that is longer than its default, or not known. */
function keepsLong({ prompt_cache_retention: kept, prompt_cache_options: options }: Json): boolean {
  return (isGiven(kept) && kept !== 'in_memory' && kept !== 'in-memory') || isGiven(options)
}

/**
 * The input that the hold covers: the first turn, and a full context after each use of a tool at the vendor. Tools
 * without a price are held as one context.
 */
function inputMost(size: PromptSize, added: number, contextTokens: number, turns: number | undefined): number {
  const first = size.refers ? contextTokens : Math.min(size.most + added, contextTokens)
  if (!size.runs) return first
  return turns === undefined ? contextTokens : first + contextTokens * turns
}

/** For /v1/messages/count_tokens. Holds use the maximum, but a caller of this endpoint wants the likely count. */
export function countTokens(json: JsonText): number {
  readModelName(json)
  checkBody(countTokensBody, json.value, json)
  return measurePrompt(anthropicMessages.prompt(json.value), json.value).likely
}

/** For /v1/responses/input_tokens. Content stored at the vendor (`previous_response_id`) is not included. */
export function countResponseTokens(json: JsonText): number {
  readModelName(json)
  readChecked(openaiResponses, json, readTextTraits(), Number.POSITIVE_INFINITY)
  return measurePrompt(openaiResponses.prompt(json.value), json.value).likely
}

interface UpstreamCallFacts extends Pick<ModelFacts, 'uid' | 'traits'> {
  readonly format: TextFormat
  readonly json: JsonText
  readonly checked: CheckedRequest
  /** Members only for the format's own maker. */
  readonly unknown: readonly string[]
  readonly capped: ReturnType<typeof readExtras>['capped']
}

/** A validated request that can be sent to any vendor. */
class UpstreamCall {
  readonly size: PromptSize
  private readonly facts: UpstreamCallFacts
  /** Whether the vendor is asked for a stream; an answer of the other kind is converted to what the caller wants. */
  private readonly streams: boolean
  private readonly refusals = new Map<ProtocolName, Fault | undefined>()
  private words: Conversation | undefined

  constructor(facts: UpstreamCallFacts) {
    const { traits, checked } = facts
    this.facts = facts
    this.streams = traits.streams === 'asked' ? checked.stream : traits.streams === 'always'
    this.size = this.measure()
  }

  /** `sizeOf`: how many tokens a text has; absent: at most its bytes. */
  measure(sizeOf?: (text: string) => number): PromptSize {
    const { format, json, traits } = this.facts
    const scale = { imageTokens: traits.imageTokens, ...(sizeOf && { sizeOf }) }
    return measurePrompt(format.prompt(json.value), json.value, scale)
  }

  texts(): string[] {
    const texts: string[] = []
    this.measure((text) => texts.push(text))
    return texts
  }

  /** Determined by a trial conversion, once for each format. */
  refusal(protocol: ProtocolName): Fault | undefined {
    const back = VENDOR_FORMATS[protocol]
    if (!back || back === this.facts.format) return undefined
    if (!this.refusals.has(protocol)) this.refusals.set(protocol, this.tryToSay(back))
    return this.refusals.get(protocol)
  }

  private tryToSay(back: VendorFormat): Fault | undefined {
    try {
      back.writeRequest(this.conversation(), this.facts.uid, this.facts.traits)
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
    return back === this.facts.format ? this.pass(target, options) : this.convert(back, target, options)
  }

  /** For a vendor that uses the caller's format. */
  private pass(target: Target, options: OpenOptions): Exchange {
    const { streams } = this
    const { format, checked, uid, traits, unknown, capped } = this.facts
    const isWhole = unknown.length === 0 || target.passesUnknown
    const sent = isWhole ? this.facts.json : withoutUnknown(this.facts.json, unknown)
    const known = capped ? capped(sent, options.usesCap ?? 1) : sent
    const streamed = streams === checked.stream ? known : withStream(known, streams)
    const json = traits.zeroTemperature === undefined ? streamed : withTemperature(streamed, traits)
    const asked = streams === checked.stream ? checked : { ...checked, stream: streams }
    const outputTokensCap = checked.isLowered ? checked.tokensMax : options.outputTokensCap
    const body = format.pass(json, asked, { model: target.model, traits, outputTokensCap })
    return this.exchange(format, target, options, {
      body,
      request: json.value,
      answer: (bytes) => format.passAnswer(bytes, uid, traits, checked),
      relay: () => new PassRelay(format.observe(uid, checked, traits)),
    })
  }

  private convert(back: VendorFormat, target: Target, options: OpenOptions): Exchange {
    const { format, checked, uid, traits } = this.facts
    const conversation = this.conversation()
    const tokensMax = checked.tokensMax ?? options.outputTokensCap
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
      request: this.facts.json.value,
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
          price: reply.tokens?.served,
          outputChars,
        }
      },
      relay: () => new ConvertRelay(back.reader(traits), format.writer(facts)),
    })
  }

  private conversation(): Conversation {
    const { checked, format, json } = this.facts
    if (checked.n > 1) throw cannotConvert(checked.nField ?? 'n', 'more than one choice')
    this.words ??= format.readConversation(json.value)
    return this.words
  }

  private exchange(
    back: VendorFormat,
    target: Target,
    options: OpenOptions,
    way: { body: string; request: Json; answer(bytes: Buffer): Answer; relay(): PassRelay | ConvertRelay },
  ): Exchange {
    const { streams } = this
    const { checked, traits, format, json } = this.facts
    const framed = (relay: StreamRelay) => {
      const checked = options.guard ? options.guard.relay(relay) : relay
      return format.framed?.(checked, json.value) ?? checked
    }
    const accept = streams ? 'stream' : 'whole'
    const call: HttpCall = {
      method: 'POST',
      url: back.address(target, streams),
      headers: back.headers ? { ...back.headers(options), ...ACCEPTING[accept] } : ACCEPTING[accept],
      body: way.body,
    }
    return {
      // All formats report the output, and the thoughts that nobody sees, at the end.
      drains: 'answer',
      call: back.inCloud?.(call, target, streams) ?? call,
      answer(bytes, headers) {
        const type = headers['content-type'] ?? ''
        const isJson = JSON_TYPE.test(type) // The usual case.
        const events = isJson
          ? undefined
          : isAwsStream(headers)
            ? unframed(bytes)
            : STREAM.test(type)
              ? bytes
              : undefined
        const whole = events ? Buffer.from(JSON.stringify(back.rollUp(readEvents(events), traits))) : bytes
        try {
          return way.answer(whole)
        } catch (error) {
          const used = error instanceof Fault ? back.usageOfFailed?.(whole) : undefined
          if (!used) throw error
          return { body: '', contentType: 'application/json', ...used, fault: error as Fault } // As was just checked.
        }
      },
      stream: checked.stream
        ? (headers) => {
            if (isAwsStream(headers)) return framed(new UnframingRelay(way.relay()))
            return framed(
              JSON_TYPE.test(headers['content-type'] ?? '') ? new WholeRelay(way.relay(), back.unroll) : way.relay(),
            )
          }
        : undefined,
      vendorError: readErrorBody,
    }
  }
}

/** The same objects for all calls, so that what follows from them is worked out once. */
const ACCEPTING = {
  whole: { 'content-type': 'application/json', accept: 'application/json' },
  stream: { 'content-type': 'application/json', accept: 'text/event-stream' },
} as const
const STREAM = /^text\/event-stream/i
const JSON_TYPE = /^application\/(?:[\w.-]{1,40}\+)?json/i

/** The request with `stream` changed, for a vendor that must stream although the caller does not, or the reverse. */
const withStream = (json: JsonText, stream: boolean) =>
  withMembers(json, { stream: String(stream) }, stream ? undefined : ['stream_options'])

function withTemperature(json: JsonText, { zeroTemperature }: TextTraits): JsonText {
  if (zeroTemperature === undefined || json.value.temperature !== 0) return json
  return edited(json, { replace: { temperature: String(zeroTemperature) } })
}
