// Gemini answers, whole and streamed: read into the canonical form, written from it, and passed through.

import type { Fault } from '../../kernel/fault.ts'
import { given, isObject, type Json, type JsonText, memberSpan, objects, splice, text } from '../../kernel/json.ts'
import type { Usage } from '../../meter/usage.ts'
import { type Answer, garbled, OuterRelay, type PriceAttributes } from '../../protocols/protocol.ts'
import {
  type AnswerFacts,
  answerId,
  type Finish,
  inputObject,
  type OutputPart,
  type Proof,
  packExtra,
  packProof,
  type Reply,
  type ReplyEvent,
} from '../../protocols/text/canonical.ts'
import type { CheckedRequest, PassOptions } from '../../protocols/text/format.ts'
import { StreamReader, type StreamWriter } from '../../protocols/text/reader.ts'
import { dataOf, Observer, readData, readWhole, renamed } from '../../protocols/text/relay.ts'
import { laterReport, type TokenCounts, toUsage } from '../../protocols/text/tokens.ts'
import { vendorFault } from '../../protocols/vendor-fault.ts'
import { bytesOf, bytesToText, EVENT_BYTES_MAX, encodeJson, SseDecoder, type SseEvent } from '../../upstream/sse.ts'
import { inSnakeCase, member } from './endpoints.ts'
import { FOREIGN, objectAt, readExtra, readSaid, signatureOf, textAt, toSignature } from './member.ts'
import { errorBody } from './surface.ts'
import { readGeminiUsage, searchesOf, writeGeminiUsage } from './usage.ts'

// Whole answers: read into the canonical form and written from it.

const FILTERED = /SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII|LANGUAGE|MODEL_ARMOR|JAILBREAK|IMAGE_/

/** The finish reason of a candidate or of a blocked request. In this format, tool calls have no reason of their own. */
function readGeminiFinish(reason: string, called: boolean): Finish {
  if (called) return 'calls'
  if (reason === 'MAX_TOKENS') return 'length'
  return FILTERED.test(reason) ? 'filter' : 'stop'
}

function finishReason(finish: Finish, refused: boolean): string {
  if (refused || finish === 'filter') return 'SAFETY'
  return finish === 'length' ? 'MAX_TOKENS' : 'STOP'
}

/** Why the prompt was blocked; undefined if it was not. */
function blockReason(value: Json): string | undefined {
  const reason = textAt(objectAt(value, 'promptFeedback'), 'blockReason')
  return reason === undefined ? undefined : `SAFETY ${reason}`
}

export function readGeminiReply(value: Json): Reply {
  const blocked = blockReason(value)
  const candidate = objects(value.candidates)[0]
  if (!candidate && blocked === undefined) throw garbled('no candidate')
  const parts = readGeminiParts(objectAt(candidate ?? {}, 'content'), text(value.responseId) ?? '')
  const called = parts.some((part) => part.kind === 'call')
  return {
    parts,
    finish: readGeminiFinish(text(candidate?.finishReason) ?? blocked ?? 'STOP', called),
    tokens: readGeminiUsage(value.usageMetadata),
  }
}

/** `from`: the number of earlier calls, so that calls without an id get a unique one. */
function readGeminiParts(content: Json, responseId: string, from = 0): OutputPart[] {
  let calls = from
  return objects(content.parts).flatMap((part): OutputPart[] => {
    const signature = textAt(part, 'thoughtSignature')
    const called = part.functionCall
    if (isObject(called))
      return [
        given({
          kind: 'call',
          id: text(called.id) ?? `call_${responseId.slice(0, 40)}_${calls++}`,
          name: text(called.name) ?? '',
          input: JSON.stringify(called.args ?? {}),
          extra: readExtra(signature),
        }),
      ]
    const said = text(part.text)
    if (said === undefined) return [] // The effect of the vendor's own tools is in the text.
    return readSaid(said, part.thought === true, signature)
  })
}

export function writeGeminiReply(reply: Reply, facts: AnswerFacts): Json {
  const refused = reply.parts.some((part) => part.kind === 'refusal')
  return answer(facts, reply.parts.flatMap(writePart), finishReason(reply.finish, refused), reply.tokens)
}

function writePart(part: OutputPart): Json[] {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ text: part.text }]
    case 'thought':
      return writeThought(part.text, part.proof)
    case 'call':
      return [writeCall(part.id, part.name, part.input, part.extra)]
  }
}

/** A Gemini vendor signs its texts; proofs of other vendors are packed into the signature of their thoughts. */
function writeThought(said: string, proof: Proof): Json[] {
  const signature = proof.google ?? (Object.keys(proof).length > 0 ? toSignature(packProof(proof)) : undefined)
  if (said === '' && signature === undefined) return []
  const shown = said === '' && proof.google !== undefined ? { text: '' } : { text: said, thought: true }
  return [{ ...shown, ...(signature === undefined ? {} : { thoughtSignature: signature }) }]
}

function writeCall(id: string, name: string, input: string, extra: unknown): Json {
  const signature = signatureOf(extra) ?? (extra === undefined ? undefined : toSignature(packExtra(id, extra)))
  return {
    functionCall: { id, name, args: inputObject(input) },
    ...(signature === undefined ? {} : { thoughtSignature: signature }),
  }
}

/** One object of the format: a whole answer, or a stream chunk, which has no finish reason. */
function answer(facts: AnswerFacts, parts: readonly Json[], reason?: string, tokens?: TokenCounts): Json {
  return {
    candidates: [
      { content: { parts, role: 'model' }, ...(reason === undefined ? {} : { finishReason: reason }), index: 0 },
    ],
    ...(tokens ? { usageMetadata: writeGeminiUsage(tokens) } : {}),
    modelVersion: facts.uid,
    responseId: answerId('', facts),
  }
}

// Reads a Gemini stream into the canonical form.

export class GeminiReader extends StreamReader {
  private reported: unknown
  private started = false
  private calls = 0
  private texts = 0
  private reason: string | undefined

  read(event: SseEvent): ReplyEvent[] {
    const data = event.data.trim() === '[DONE]' ? undefined : readData(event.data)
    if (!isObject(data)) return []
    if (isObject(data.error)) {
      this.fault = vendorFault(data.error)
      return []
    }
    const events: ReplyEvent[] = this.started ? [] : [{ type: 'start' }]
    this.started = true
    // Converted requests have one candidate.
    const candidate = objects(data.candidates)[0] ?? {}
    for (const part of readGeminiParts(objectAt(candidate, 'content'), text(data.responseId) ?? '', this.calls))
      this.add(part, events)
    this.reason = text(candidate.finishReason) ?? this.reason ?? blockReason(data)
    this.count(data)
    return events
  }

  /** The format has no final event: a finish reason followed by a clean end of stream ends the answer. */
  override end(): ReplyEvent[] {
    if (this.reason === undefined || this.fault) return []
    this.terminal = true
    return [{ type: 'end', finish: readGeminiFinish(this.reason, this.calls > 0) }]
  }

  /** Each chunk carries the counts so far; only the last ones are the vendor's report. */
  private count({ usageMetadata }: Json): void {
    this.reported = laterReport(this.reported, usageMetadata)
    const tokens = readGeminiUsage(this.reported)
    if (!tokens) return
    this.promptTokens = tokens
    if (this.reason !== undefined) this.tokens = tokens
  }

  private add(part: OutputPart, events: ReplyEvent[]): void {
    if (part.kind === 'call') {
      const { id, name, input, extra } = part
      const key = this.calls++
      events.push({ type: 'call', key, id, name, ...(extra === undefined ? {} : { extra }) })
      events.push({ type: 'input', key, text: input })
      return
    }
    // The signature of a text comes at its end.
    if (part.kind === 'text' && part.text !== '' && this.texts++ === 0) events.push({ type: 'proof-pending' })
    if (part.text !== '') events.push({ type: part.kind, text: part.text })
    if (part.kind === 'thought' && Object.keys(part.proof).length > 0) events.push({ type: 'proof', proof: part.proof })
  }
}

// Writes the canonical form as a Gemini stream. Calls are never split in this format, so their inputs are collected
// first.

export class GeminiWriter implements StreamWriter {
  readonly keepAlive = GEMINI_KEEP_ALIVE
  private readonly facts: AnswerFacts
  /** The text around the parts of every chunk. */
  private readonly lead: string
  private readonly tail: string
  private readonly calls = new Map<number, { id: string; name: string; extra?: unknown; input: string }>()
  private refused = false
  private ended: Finish = 'stop'

  constructor(facts: AnswerFacts) {
    this.facts = facts
    const empty = encodeJson(answer(facts, []))
    const at = empty.indexOf('[]') + 1
    this.lead = empty.slice(0, at)
    this.tail = empty.slice(at)
  }

  write(event: ReplyEvent): string {
    switch (event.type) {
      case 'start':
      case 'proof-pending':
        return ''
      case 'refusal':
        this.refused = true
        return this.piece({ text: event.text })
      case 'text':
        return this.piece({ text: event.text })
      case 'thought':
        return this.piece({ text: event.text, thought: true })
      case 'proof':
        return writeThought('', event.proof)
          .map((part) => this.piece(part))
          .join('')
      case 'call':
        this.calls.set(event.key, { id: event.id, name: event.name, extra: event.extra, input: '' })
        return ''
      case 'input': {
        const call = this.calls.get(event.key)
        if (call) call.input += event.text
        return ''
      }
      case 'end':
        this.ended = event.finish
        return ''
      case 'ping':
        return this.keepAlive
    }
  }

  finish(tokens: TokenCounts | undefined): string {
    const calls = [...this.calls.values()].map((call) => writeCall(call.id, call.name, call.input, call.extra))
    // Clients treat an answer without parts as missing.
    const parts = calls.length > 0 ? calls : [{ text: '' }]
    return encodeJson(answer(this.facts, parts, finishReason(this.ended, this.refused), tokens))
  }

  fail(fault: Fault, requestId: string): string {
    return geminiFailure(fault, requestId)
  }

  private piece(part: Json): string {
    return this.lead + JSON.stringify(part) + this.tail
  }
}

// The stream for callers that did not ask for server-sent events: one JSON array, whose elements are sent as they are
// made.

export class ArrayRelay extends OuterRelay {
  readonly contentType = 'application/json; charset=utf-8'
  private readonly decoder = new SseDecoder()
  private begun = false

  override get encoding(): 'utf8' {
    return 'utf8'
  }

  /** Whitespace between elements has no meaning. */
  override get keepAlive(): string {
    return '\n'
  }

  push(chunk: Buffer): string {
    return this.elements(this.inner.push(chunk))
  }

  end(): string {
    return this.elements(this.inner.end())
  }

  /** May be called more than once, so the result must not depend on that. */
  override finish(): string {
    return this.last(super.finish(''))
  }

  override fail(fault: Fault, requestId: string): string {
    return this.last(super.fail(fault, requestId))
  }

  private elements(sent: Buffer | string | undefined): string {
    let out = ''
    for (const { data } of sent === undefined ? [] : this.decoder.push(bytesOf(sent, this.inner.encoding))) {
      out += `${this.begun ? ',\n' : '['}${data}`
      this.begun = true
    }
    return out
  }

  private last(sent: string): string {
    const elements = new SseDecoder().push(Buffer.from(sent)).map(({ data }) => data)
    return `${this.begun ? ',\n' : '['}${elements.join(',\n')}]`
  }
}

// A request and an answer between a caller and a vendor that both use this format.

/** Members that are part of the address on both sides, and of the body only inside the gateway. */
const ADDRESSED = ['model', 'stream', 'alt']

export function passGemini(
  json: JsonText,
  _paidRequest: CheckedRequest,
  { traits, outputTokensCap }: PassOptions,
): string {
  const replace: Record<string, string> = {}
  const add: Record<string, string> = {}
  if (outputTokensCap !== undefined) {
    const name = json.member('generationConfig') ? 'generationConfig' : inSnakeCase('generationConfig')
    const { max_output_tokens: _, ...config } = objectAt(json.value, 'generationConfig')
    const limited = JSON.stringify({ ...config, maxOutputTokens: outputTokensCap })
    if (json.member(name)) replace[name] = limited
    else add.generationConfig = limited
  }
  // Removes signatures of other vendors, because this vendor would reject them.
  if (json.text.includes(`"${FOREIGN}`)) replace.contents = JSON.stringify(withoutForeign(json.value.contents))
  return splice(json, { replace, add, remove: [...ADDRESSED, ...traits.dropParams] })
}

function withoutForeign(contents: unknown): Json[] {
  return objects(contents).map((content) => ({
    ...content,
    parts: objects(content.parts).flatMap((part) => {
      const signature = member(part, 'thoughtSignature')
      if (typeof signature !== 'string' || !signature.startsWith(FOREIGN)) return [part]
      const { thoughtSignature: _, thought_signature: __, ...rest } = part
      return rest.thought === true ? [] : [rest]
    }),
  }))
}

export function passGeminiAnswer(body: Buffer, uid: string): Answer {
  const whole = readWhole(body)
  const tokens = readGeminiUsage(whole.value.usageMetadata, searchesOf(whole.value.candidates))
  return {
    body: renamed(body, whole, uid, 'modelVersion'),
    contentType: 'application/json',
    usage: toUsage(tokens),
    price: tokens?.served,
    outputChars: objects(whole.value.candidates).reduce((sum, candidate) => sum + charsOf(candidate), 0),
  }
}

function charsOf(candidate: Json): number {
  return objects(objectAt(candidate, 'content').parts).reduce(
    (sum, part) =>
      sum + (text(part.text) ?? '').length + (part.functionCall ? JSON.stringify(part.functionCall).length : 0),
    0,
  )
}

/** Empty: Google's SDKs parse every block as JSON, so a comment or an extra blank line would break the stream. */
const GEMINI_KEEP_ALIVE = ''

/** The event that ends a broken stream; otherwise the stream ends only with the connection. */
function geminiFailure(fault: Fault, requestId: string): string {
  return encodeJson(errorBody(fault, requestId))
}

export class GeminiObserver extends Observer {
  readonly keepAlive = GEMINI_KEEP_ALIVE
  private readonly uid: string
  private readonly n: number
  private readonly finished = new Set<unknown>()
  private counted: unknown
  private searches = 0
  /** The events from the one that ended the last candidate on. */
  private held = ''

  constructor(uid: string, { n }: CheckedRequest) {
    super()
    this.uid = uid
    this.n = n
  }

  get usage(): Usage | undefined {
    return this.isComplete || this.terminal ? this.promptUsage : undefined
  }

  get promptUsage(): Usage | undefined {
    return toUsage(readGeminiUsage(this.counted, this.searches))
  }

  get price(): PriceAttributes | undefined {
    return readGeminiUsage(this.counted)?.served
  }

  private get isComplete(): boolean {
    return this.finished.size >= this.n
  }

  see(block: string): string {
    const data = this.fault || dataOf(block).trim() === '[DONE]' ? undefined : readData(dataOf(block))
    if (!isObject(data)) return ''
    if (isObject(data.error)) {
      const told = readData(bytesToText(dataOf(block)))
      this.fault = vendorFault(isObject(told) ? told.error : told)
      return ''
    }
    this.look(data)
    const out = this.renamed(block, data)
    if (!this.isComplete) return out
    // If a vendor keeps sending after the end, the held events are sent on, so that memory stays bounded.
    const passed = this.held.length + out.length > EVENT_BYTES_MAX ? this.held : ''
    this.held = passed === '' ? this.held + out : out
    return passed
  }

  override end(): void {
    // Some vendors return fewer candidates than requested.
    if (this.finished.size > 0 && !this.fault) this.terminal = true
  }

  finish(): string {
    return bytesToText(this.held)
  }

  fail(fault: Fault, requestId: string): string {
    return geminiFailure(fault, requestId)
  }

  private look(data: Json): void {
    this.counted = laterReport(this.counted, data.usageMetadata)
    // A later event repeats or extends the metadata of an earlier one.
    this.searches = Math.max(this.searches, searchesOf(data.candidates))
    for (const candidate of objects(data.candidates)) {
      const chars = charsOf(candidate)
      if (chars > 0) this.output.addBytes(chars)
      if (typeof candidate.finishReason === 'string') this.finished.add(candidate.index ?? 0)
    }
    if (blockReason(data) !== undefined) for (let i = 0; i < this.n; i++) this.finished.add(i)
  }

  private renamed(block: string, { modelVersion }: Json): string {
    const at = block.startsWith('event:') ? block.indexOf('\n') + 1 : 0
    const canonical = at === 0 ? block : block.slice(at)
    if (modelVersion === undefined || modelVersion === this.uid) return canonical
    const span = memberSpan(canonical, 'modelVersion', canonical.indexOf('{'))
    return span ? `${canonical.slice(0, span[0])}"${this.uid}"${canonical.slice(span[1])}` : canonical
  }
}

// Converts between a whole answer and its stream: each chunk has the form of a whole answer.

export function unrollGemini(value: Json): string {
  if (objects(value.candidates).length === 0 && blockReason(value) === undefined) throw garbled('no candidate')
  const candidates = objects(value.candidates).map((candidate) => ({ finishReason: 'STOP', ...candidate }))
  return encodeJson(candidates.length > 0 ? { ...value, candidates } : value)
}

export function rollUpGemini(events: readonly SseEvent[]): Json {
  const whole: Json = {}
  const candidates = new Map<unknown, Json>()
  const partsOf = new Map<unknown, Json[]>()
  for (const event of events) {
    const data = event.data.trim() === '[DONE]' ? undefined : readData(event.data)
    if (!isObject(data)) continue
    if (isObject(data.error)) throw vendorFault(data.error)
    Object.assign(whole, data, { usageMetadata: laterReport(whole.usageMetadata, data.usageMetadata) })
    for (const piece of objects(data.candidates)) {
      const index = piece.index ?? 0
      const before = candidates.get(index) ?? {}
      const content = { role: 'model', ...objectAt(before, 'content'), ...objectAt(piece, 'content') }
      const parts = partsOf.get(index) ?? []
      partsOf.set(index, parts)
      for (const part of objects(objectAt(piece, 'content').parts)) join(parts, part)
      candidates.set(index, { ...before, ...piece, content: { ...content, parts } })
    }
  }
  const finished = [...candidates.values()].every(({ finishReason }) => finishReason !== undefined)
  if ((candidates.size === 0 || !finished) && blockReason(whole) === undefined) throw garbled('the stream has no end')
  return candidates.size === 0 ? whole : { ...whole, candidates: [...candidates.values()] }
}

/**
 * Joins the pieces of one text into one part; a signature may come with the last piece. It works in place, because a
 * stream has thousands of pieces.
 */
function join(parts: Json[], piece: Json): void {
  if (piece.text === '' && piece.thoughtSignature === undefined) return
  const last = parts.at(-1)
  const isText = (part: Json | undefined) => part !== undefined && typeof part.text === 'string'
  const goesOn =
    isText(last) && isText(piece) && last?.thought === piece.thought && last?.thoughtSignature === undefined
  if (goesOn && last) parts[parts.length - 1] = { ...last, ...piece, text: `${last.text}${piece.text}` }
  else parts.push(piece)
}
