// Chat on both sides: the answer passes through, observed and, where a model family needs it, repaired.

import type { Quirk, TextTraits } from '../../../catalog/traits.ts'
import type { Fault } from '../../../kernel/fault.ts'
import { isObject, type Json, jsonIn, memberSpan, objectOf, objects, text } from '../../../kernel/json.ts'
import type { Usage } from '../../../meter/usage.ts'
import { bytesToText, encodeComment, encodeJson, type SseEvent, textToBytes } from '../../../upstream/sse.ts'
import { garbled, type PriceAttributes } from '../../protocol.ts'
import { openaiError, vendorFault } from '../../vendor-fault.ts'
import { inputText } from '../canonical.ts'
import { Surroundings } from '../reader.ts'
import { dataOf, nameOf, Observer, readData } from '../relay.ts'
import { chatReport, isCounted, laterReport, readChatUsage, type TokenCounts, toUsage } from '../tokens.ts'

// Observes a chat stream: renames the model, removes the usage, holds the end back. Events are searched for a few byte
// patterns and parsed only if one is found.

interface ChatStreamFacts {
  /** The public id that replaces the vendor's model name. */
  readonly uid: string
  readonly includeUsage: boolean
  readonly n: number
  readonly traits?: TextTraits
  /** Set for families whose answers need repairs. */
  readonly mender?: ChunkRepairer | undefined
}

export const CHAT_KEEP_ALIVE = ': ping\n'
const DONE = 'data: [DONE]\n\n'

/**
 * The frames that end a broken chat stream. SDKs raise an error for an object with `error`, without choices beside it.
 */
export function chatFailure(fault: Fault, requestId: string): string {
  const { code, message } = fault
  return encodeJson({ error: openaiError(fault), code, message, type: 'api_error', requestId }) + DONE
}

export function chatFinish(usageFrame: string, comment: string): string {
  return usageFrame + encodeComment(comment) + DONE
}

export class ChatObserver extends Observer {
  readonly keepAlive = CHAT_KEEP_ALIVE
  private readonly facts: ChatStreamFacts
  private reported: unknown
  /** The last chunk with usage, which also says how it was served. */
  private chunk: Json = {}
  private usageFrame = ''
  private finishes = 0
  /**
   * The last ordinary event without its text, and what is written on both sides of the text; undefined if the event
   * passes unchanged.
   */
  private readonly last = new Surroundings()
  private written: readonly [lead: string, tail: string] | undefined

  constructor(facts: ChatStreamFacts) {
    super()
    this.facts = facts
  }

  get usage(): Usage | undefined {
    // Zeros before the end are not a report: the vendor has not counted yet.
    const isReport = isCounted(this.reported) || this.terminal || this.finishes >= this.facts.n
    return isReport ? toUsage(this.counts) : undefined
  }

  get price(): PriceAttributes | undefined {
    return this.counts?.served
  }

  private get counts(): TokenCounts | undefined {
    return readChatUsage(this.reported, this.facts.traits, this.chunk)
  }

  see(block: string): string {
    if (this.terminal || this.fault) return ''
    if (this.facts.mender) return this.examine(mended(block, this.facts.mender))
    return this.again(block) ?? this.examine(block)
  }

  override seeRun(blocks: string, at: number): { readonly end: number; readonly out: string } | undefined {
    if (this.terminal || this.fault || this.facts.mender) return undefined
    const texts = this.last.textsFrom(blocks, at)
    if (texts.length === 0) return undefined
    for (const text of texts) this.output.addBytes(text.length)
    const end = at + this.last.lengthOf(texts)
    if (!this.written) return { end, out: blocks.slice(at, end) }
    const [lead, tail] = this.written
    return { end, out: lead + texts.join(tail + lead) + tail }
  }

  /** The fast path: an event that differs from the last ordinary one only in its text needs no further examination. */
  private again(block: string): string | undefined {
    const end = this.last.endOf(block)
    if (end < 0) return undefined
    const { start } = this.last
    this.output.addBytes(end - start)
    return this.written ? this.written[0] + block.slice(start, end) + this.written[1] : block
  }

  private examine(block: string): string {
    if (block.length < 24 && dataOf(block).trim() === '[DONE]') {
      this.terminal = true
      return ''
    }
    if (nameOf(block) !== undefined) return this.examine(`data: ${dataOf(block)}\n\n`)
    const out = this.renamed(block)
    if (!block.includes('"choices"') || hasValue(block, '"usage"', 0x7b) || block.includes('"error"')) {
      // Rewritten data must be decoded first, because a character may take several bytes.
      const data = readData(bytesToText(dataOf(out)))
      return isObject(data) ? this.read(data, out) : ''
    }
    const finished = this.finishes
    const text = textOf(block)
    const data = text && !hasValue(block, '"finish_reason"', 0x22) ? undefined : readData(dataOf(block))
    if (text) this.output.addBytes(text[1] - text[0])
    else this.countDeltas(data)
    this.countFinishes(data)
    const written = text && finished === this.finishes ? textOf(out) : undefined
    if (text && written) {
      this.last.learn(block, text[0], text[1])
      this.written = out === block ? undefined : [out.slice(0, written[0]), out.slice(written[1])]
    }
    return out
  }

  override end(): void {
    if (this.finishes >= this.facts.n && !this.fault) this.terminal = true
  }

  finish(comment: string): string {
    return chatFinish(this.facts.includeUsage ? bytesToText(this.usageFrame) : '', comment)
  }

  fail(fault: Fault, requestId: string): string {
    return chatFailure(fault, requestId)
  }

  /** Handles an event that is more than a piece of text: an error, or one with the usage. */
  private read(data: Json, out: string): string {
    if (data.error !== undefined && data.error !== null) {
      this.fault = vendorFault(data.error)
      return ''
    }
    const { usage: _, ...chunk } = data
    const usage = chatReport(data)
    if (isObject(usage)) {
      const reported = laterReport(this.reported, usage)
      // Vendors send the usage in different chunks; callers always get it in a separate last chunk.
      if (reported === usage) {
        this.usageFrame = Array.isArray(data.choices) && data.choices.length === 0 ? out : ''
        this.usageFrame ||= textToBytes(encodeJson({ ...chunk, choices: [], usage }))
      }
      this.reported = reported
      this.chunk = chunk
    }
    if (!Array.isArray(data.choices) || (data.choices.length === 0 && isObject(usage))) return ''
    const kept = isObject(usage) ? textToBytes(encodeJson(chunk)) : out
    this.countFinishes(data)
    this.countDeltas(data)
    return kept
  }

  private countDeltas(data: unknown): void {
    for (const choice of objects(isObject(data) ? data.choices : undefined)) this.output.addDelta(choice.delta)
  }

  /** Some vendors send an empty reason with every piece. */
  private countFinishes(data: unknown): void {
    for (const choice of objects(isObject(data) ? data.choices : undefined))
      if (text(choice.finish_reason)) this.finishes++
  }

  private renamed(block: string): string {
    const span = memberSpan(block, 'model', block.length - 2 - dataOf(block).length)
    const name = `"${this.facts.uid}"`
    if (!span || block.charCodeAt(span[0]) !== 0x22 || block.slice(...span) === name) return block
    return block.slice(0, span[0]) + name + block.slice(span[1])
  }
}

/** The position of the value whose key ends at `at`. */
function valueAt(block: string, at: number): number {
  let code = block.charCodeAt(at)
  while (code === 0x3a || code === 0x20 || code === 0x09) code = block.charCodeAt(++at)
  return at
}

/** The span of the text in an event with a single delta, without its quotes. */
function textOf(block: string): readonly [start: number, end: number] | undefined {
  const delta = block.indexOf('"delta":{"')
  const start = delta < 0 ? -1 : block.indexOf('":"', delta + 10) + 3
  const end = block.indexOf('"', start)
  // Only a key may stand between the brace and the text.
  if (delta < 0 || start < 3 || end < 0 || block.indexOf('"', delta + 10) !== start - 3) return undefined
  if (block.charCodeAt(end - 1) === 0x5c) return undefined
  // With another string beside it, that one may be the text, e.g. if a role comes first.
  return block.slice(end + 1, block.indexOf('}', end)).includes('":"') ? undefined : [start, end]
}

/** Whether the block has this key with a value that begins so. */
function hasValue(block: string, key: string, first: number): boolean {
  for (let at = block.indexOf(key); at >= 0; at = block.indexOf(key, at + 1)) {
    if (block.charCodeAt(valueAt(block, at + key.length)) === first) return true
  }
  return false
}

// Repairs chat answers, for families whose traits name a quirk. Works on parsed objects and keeps unknown members.

const SPACE_BEFORE = /^[ \t\r\n]+/
const SPACE_AFTER = /(?<![ \t\r\n])[ \t\r\n]+$/
const MAYBE_CLOSING = /(?<![ \t\r\n])[ \t\r\n]*(?:<(?:\/(?:t(?:h(?:i(?:nk?)?)?)?)?)?)?$/

const OPEN = '<think>'
const CLOSE = '</think>'

/** Moves <think>…</think> at the beginning of an answer out of its text, however the text is split. */
class ThinkSplitter {
  private place: 'before' | 'inside' | 'after' | 'answer' = 'before'
  private held = ''
  private begun = false

  push(piece: string, last: boolean): { thought: string; text: string } {
    let rest = this.held + piece
    this.held = ''
    let thought = ''
    if (this.place === 'before') {
      const start = rest.replace(SPACE_BEFORE, '')
      if (start.startsWith(OPEN)) {
        this.place = 'inside'
        rest = start.slice(OPEN.length)
      } else if (!last && OPEN.startsWith(start)) {
        this.held = rest
        return { thought: '', text: '' }
      } else this.place = 'answer'
    }
    if (this.place === 'inside') {
      const close = rest.indexOf(CLOSE)
      if (close >= 0) {
        thought = rest.slice(0, close).replace(SPACE_AFTER, '')
        rest = rest.slice(close + CLOSE.length)
        this.place = 'after'
      } else {
        // The end of the piece may be the start of the closing tag, or the space before it.
        const keep = last ? 0 : (MAYBE_CLOSING.exec(rest)?.[0].length ?? 0)
        this.held = rest.slice(rest.length - keep)
        return { thought: this.trimmed(rest.slice(0, rest.length - keep)), text: '' }
      }
      thought = this.trimmed(thought)
    }
    if (this.place === 'after') {
      rest = rest.replace(SPACE_BEFORE, '')
      if (rest !== '') this.place = 'answer'
    }
    return { thought, text: rest }
  }

  /** The line break after the opening tag is not part of the thought. */
  private trimmed(thought: string): string {
    const clean = this.begun ? thought : thought.replace(SPACE_BEFORE, '')
    if (clean !== '') this.begun = true
    return clean
  }
}

/** The new part of a text that a vendor sends either in pieces or as growing snapshots. */
class Growing {
  private soFar = ''
  private pieces = false

  next(text: string): string {
    if (!this.pieces && this.soFar !== '' && text.startsWith(this.soFar)) {
      const added = text.slice(this.soFar.length)
      this.soFar = text
      return added
    }
    if (this.soFar !== '') this.pieces = true
    this.soFar += text
    return text
  }
}

class ChoiceMender {
  private readonly quirks: readonly Quirk[]
  private readonly splitter = new ThinkSplitter()
  private readonly growing = new Growing()
  private readonly callIds: string[] = []
  private begun = false

  constructor(quirks: readonly Quirk[]) {
    this.quirks = quirks
  }

  mend(delta: Json, last: boolean): void {
    if (this.quirks.includes('role') && !this.begun) delta.role ??= 'assistant'
    this.begun = true
    if (this.quirks.includes('reasoning-details')) this.mendDetails(delta)
    if (this.quirks.includes('think-tags')) this.mendTags(delta, last)
    if (this.quirks.includes('tool-index')) for (const call of objects(delta.tool_calls)) this.mendIndex(call)
  }

  private mendDetails(delta: Json): void {
    if (!Array.isArray(delta.reasoning_details)) return
    const said = objects(delta.reasoning_details).map((detail) => text(detail.text) ?? '')
    delete delta.reasoning_details
    delta.reasoning_content = this.growing.next(said.join(''))
  }

  private mendTags(delta: Json, last: boolean): void {
    const content = text(delta.content)
    if (content === undefined && !last) return
    const { thought, text: answer } = this.splitter.push(content ?? '', last)
    if (thought !== '') delta.reasoning_content = `${text(delta.reasoning_content) ?? ''}${thought}`
    if (content !== undefined || answer !== '') delta.content = answer
    // A piece that belongs only to the thought has no content.
    if (answer === '' && thought !== '') delete delta.content
  }

  private mendIndex(call: Json): void {
    const id = text(call.id) ?? ''
    if (typeof call.index === 'number') {
      this.callIds[call.index] ??= id
      return
    }
    const known = id === '' ? this.callIds.length - 1 : this.callIds.indexOf(id)
    if (known < 0) this.callIds.push(id)
    call.index = known < 0 ? this.callIds.length - 1 : known
  }
}

/** Repairs the chunks of one stream. */
export class ChunkRepairer {
  private readonly quirks: readonly Quirk[]
  private readonly choices = new Map<unknown, ChoiceMender>()

  constructor(quirks: readonly Quirk[]) {
    this.quirks = quirks
  }

  mend(chunk: Json): void {
    for (const choice of objects(chunk.choices)) {
      const index = choice.index ?? 0
      let mender = this.choices.get(index)
      if (!mender) {
        mender = new ChoiceMender(this.quirks)
        this.choices.set(index, mender)
      }
      choice.delta ??= {}
      if (isObject(choice.delta)) mender.mend(choice.delta, Boolean(choice.finish_reason))
    }
  }
}

/** Repairs a whole answer. */
export function repairAnswer(value: Json, quirks: readonly Quirk[]): void {
  for (const choice of objects(value.choices)) {
    const { message } = choice
    if (!isObject(message)) continue
    if (
      quirks.includes('reasoning-details') &&
      message.reasoning_content === undefined &&
      Array.isArray(message.reasoning_details)
    )
      message.reasoning_content = objects(message.reasoning_details)
        .map((detail) => text(detail.text) ?? '')
        .join('')
    if (quirks.includes('think-tags') && typeof message.content === 'string') {
      const { thought, text: answer } = new ThinkSplitter().push(message.content, true)
      message.content = answer === '' && objects(message.tool_calls).length > 0 ? null : answer
      if (thought !== '') message.reasoning_content = `${text(message.reasoning_content) ?? ''}${thought}`
    }
  }
}

/** The repaired event. */
function mended(block: string, mender: ChunkRepairer): string {
  const data = bytesToText(dataOf(block))
  if (!data.includes('"choices"')) return block
  const chunk = jsonIn(data)
  if (!isObject(chunk)) return block // Unreadable events are handled by the caller.
  mender.mend(chunk)
  return textToBytes(encodeJson(chunk))
}

// Converts between a whole chat completion and its stream: for a vendor that answers whole to a streaming caller, and
// for a vendor that can only stream.

/** Members of a delta that are pieces of one text; all others are sent once. */
const PIECES = ['content', 'reasoning_content', 'reasoning', 'refusal']

interface Choice extends Json {
  readonly message: Json
}

export function unrollChat(value: Json): string {
  const { choices, usage, object: _, ...head } = value
  if (!Array.isArray(choices)) throw garbled('no choices')
  const chunk = (members: Json) => encodeJson({ ...head, object: 'chat.completion.chunk', ...members })
  let out = ''
  for (const { message, finish_reason: finish = 'stop', ...choice } of objects(choices)) {
    const delta: Json = isObject(message) ? { ...message } : {}
    if (Array.isArray(delta.tool_calls))
      delta.tool_calls = objects(delta.tool_calls).map((call, index) => ({ index, ...call }))
    out += chunk({ choices: [{ index: 0, ...choice, delta, finish_reason: null }] })
    out += chunk({ choices: [{ index: choice.index ?? 0, delta: {}, finish_reason: finish }] })
  }
  if (isObject(usage)) out += chunk({ choices: [], usage })
  return `${out}data: [DONE]\n\n`
}

export function rollUpChat(events: readonly SseEvent[], { quirks }: TextTraits): Json {
  const mender = quirks.length > 0 ? new ChunkRepairer(quirks) : undefined
  const choices = new Map<unknown, Choice>()
  const whole: Json = {}
  let done = false
  for (const event of events) {
    done ||= event.data.trim() === '[DONE]'
    const data = done ? undefined : readData(event.data)
    if (!isObject(data)) continue
    if (data.error !== undefined && data.error !== null) throw vendorFault(data.error)
    mender?.mend(data)
    for (const [name, member] of Object.entries(data))
      if (name === 'usage') whole.usage = laterReport(whole.usage, member)
      else if (name !== 'choices' && member !== null) whole[name] = member
    for (const piece of objects(data.choices)) addChoice(choices, piece)
  }
  const finished = choices.size > 0 && [...choices.values()].every(({ finish_reason: finish }) => Boolean(finish))
  if (!done && !finished) throw garbled('the stream has no end')
  const byIndex = [...choices.values()].sort((a, b) => Number(a.index) - Number(b.index))
  // A call without any input gets an empty object, because readers parse the input in any case.
  for (const { message } of byIndex)
    for (const { function: called } of objects(message.tool_calls))
      if (isObject(called)) called.arguments = text(called.arguments) || '{}'
  return { ...whole, object: 'chat.completion', choices: byIndex }
}

function addChoice(choices: Map<unknown, Choice>, { delta, logprobs, ...piece }: Json): void {
  const index = piece.index ?? 0
  const choice: Choice = choices.get(index) ?? {
    index,
    message: { role: 'assistant', content: null },
    finish_reason: null,
  }
  choices.set(index, choice)
  for (const [name, member] of Object.entries(piece)) if (member !== null) choice[name] = member
  if (isObject(delta)) addDelta(choice.message, delta)
  if (isObject(logprobs)) addLogprobs(choice, logprobs)
}

function addDelta(message: Json, delta: Json): void {
  for (const [name, member] of Object.entries(delta)) {
    if (member === null || member === undefined) continue
    if (name === 'tool_calls') message.tool_calls = withCalls(objects(message.tool_calls), objects(member))
    else if (name === 'function_call' && isObject(member))
      message.function_call = withPieces(message.function_call, member)
    else if (PIECES.includes(name)) message[name] = (text(message[name]) ?? '') + (text(member) ?? '')
    else if (Array.isArray(member)) addEntries(message, name, member)
    else message[name] = member
  }
}

/** Without an index, a new id starts a call, and anything else continues the last one. */
function withCalls(calls: readonly Json[], pieces: readonly Json[]): Json[] {
  const all = [...calls]
  for (const { index, ...piece } of pieces) {
    const known = all.findIndex((call) => piece.id !== undefined && call.id === piece.id)
    const last = piece.id === undefined || piece.id === '' ? Math.max(0, all.length - 1) : all.length
    const at = typeof index === 'number' ? index : known < 0 ? last : known
    const { function: called, custom, ...rest } = piece
    const before = all[Math.min(at, all.length)] ?? {}
    all[Math.min(at, all.length)] = {
      ...before,
      ...rest,
      ...(isObject(called) ? { function: withPieces(before.function, called) } : {}),
      ...(isObject(custom) ? { custom: withPieces(before.custom, custom) } : {}),
    }
  }
  return all
}

/** Names come once, arguments in pieces. */
function withPieces(before: unknown, piece: Json): Json {
  const whole: Json = isObject(before) ? { ...before } : {}
  for (const [name, member] of Object.entries(piece))
    if (name === 'name') whole.name ??= member
    else whole[name] = (text(whole[name]) ?? '') + (inputText(member) ?? '')
  return whole
}

function addLogprobs(choice: Choice, more: Json): void {
  const whole: Json = objectOf(choice.logprobs)
  choice.logprobs = whole
  for (const [name, member] of Object.entries(more)) if (Array.isArray(member)) addEntries(whole, name, member)
}

/** Works in place: a copy for every piece would take quadratic time. */
function addEntries(holder: Json, name: string, more: readonly unknown[]): void {
  const entries: unknown[] = Array.isArray(holder[name]) ? holder[name] : []
  holder[name] = entries
  for (const entry of more) entries.push(entry)
}
