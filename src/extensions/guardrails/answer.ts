// Answers in the caller's format, whole or as a stream of events: each text goes through a Rewriter of its own.

import type { Fault } from '../../kernel/fault.ts'
import { editLeaves, isObject, type Json, objectOf, objects } from '../../kernel/json.ts'
import type { StreamRelay, StreamState } from '../../protocols/protocol.ts'
import { bytesToText, eachBlock } from '../../upstream/sse.ts'
import type { Pattern } from './patterns.ts'
import { isStructure, type Redacted, Rewriter } from './redaction.ts'

interface AnswerRewriting {
  readonly redacted: Redacted
  /** What must not be in an answer. */
  readonly patterns: readonly Pattern[]
  /** Of a data endpoint or a tool: no name in it means anything to the gateway. */
  readonly isTool: boolean
  /** The caller asked for an answer in JSON. */
  readonly wantsJson: boolean
  readonly found: (pattern: Pattern) => void
  /** Hears what is streamed, as the vendor said it. */
  readonly said: (text: string) => void
}

/** Whether a request of any format asks for an answer in JSON. */
export function wantsJson(request: Json): boolean {
  const formats = [
    request.response_format,
    objectOf(request.text).format,
    request.output_format,
    objectOf(request.output_config).format,
  ]
  const { responseMimeType } = objectOf(request.generationConfig)
  return responseMimeType === 'application/json' || formats.some((one) => /^json/.test(String(objectOf(one).type)))
}

/** The arguments of a tool are JSON in a text. */
const JSON_TEXTS = new Set(['arguments', 'partial_json'])
const SAID = new Set(['text', 'content', 'delta'])

const isJsonAt = (name: string, by: AnswerRewriting) => JSON_TEXTS.has(name) || (by.wantsJson && SAID.has(name))

function rewritten(text: string, name: string, by: AnswerRewriting): string {
  const rewriter = new Rewriter({ ...by, isJson: isJsonAt(name, by) })
  return rewriter.push(text) + rewriter.end()
}

/** An answer that is JSON; any other is given as it is. */
export function wholeAnswer(body: string, by: AnswerRewriting): string {
  const text = by.patterns.length > 0 && body.includes('ogprobs') ? withoutLogprobs(body) : body
  return editLeaves(text, (leaf, path, kind) => {
    if ((kind === 'number' && leaf.length < NUMBER_CHARS_MIN) || isStructure(leaf, path, by.isTool)) return leaf
    return rewritten(leaf, path.at(-1) ?? '', by)
  })
}

/** Numbers of fewer digits say nothing about anybody. */
const NUMBER_CHARS_MIN = 13
const NUMBER_MIN = 10 ** (NUMBER_CHARS_MIN - 1)

/** Probabilities of tokens repeat the answer in pieces. */
const LOGPROBS = new Set(['logprobs', 'logprobsResult'])

function withoutLogprobs(body: string): string {
  return JSON.stringify(
    JSON.parse(body, (name, value: unknown) =>
      LOGPROBS.has(name) && typeof value === 'object' ? (Array.isArray(value) ? [] : null) : value,
    ),
  )
}

// Streams.

/** A piece of a text that goes on in other events, by the channel that it belongs to. */
interface Slot {
  readonly channel: string
  readonly holder: Json
  readonly name: string
}

/** Members of a delta that are no texts. */
const LABELS = new Set(['role', 'type', 'id', 'name', 'signature', 'object', 'index'])

function slotsOf(event: Json): Slot[] {
  if (Array.isArray(event.choices)) return objects(event.choices).flatMap(chatSlots)
  if (Array.isArray(event.candidates)) return objects(event.candidates).flatMap(geminiSlots)
  const { type, delta } = event
  if (type === 'content_block_delta') return textSlots(objectOf(delta), `${event.index}`)
  if (typeof delta !== 'string' || typeof type !== 'string' || /audio\.delta$/.test(type)) return []
  const place = [event.output_index ?? '', event.item_id, event.content_index ?? event.summary_index, type]
  return [{ channel: place.join('/'), holder: event, name: 'delta' }]
}

function textSlots(holder: Json, place: string): Slot[] {
  const names = Object.keys(holder).filter((name) => typeof holder[name] === 'string' && !LABELS.has(name))
  return names.map((name) => ({ channel: `${place}/${name}`, holder, name }))
}

function chatSlots({ index, delta }: Json): Slot[] {
  const { tool_calls: calls, function_call: call, ...said } = objectOf(delta)
  const texts = textSlots(objectOf(delta), `${index}`).filter(({ name }) => name in said)
  const inputs = objects(calls).flatMap((one) => [
    ...textSlots(objectOf(one.function), `${index}/${one.index}`),
    ...textSlots(objectOf(one.custom), `${index}/${one.index}`),
  ])
  return [...texts, ...inputs, ...textSlots(objectOf(call), `${index}/`)]
}

function geminiSlots({ index = 0, content }: Json): Slot[] {
  return objects(objectOf(content).parts).flatMap((part) =>
    typeof part.text === 'string' ? [{ channel: `${index}/${part.thought === true}`, holder: part, name: 'text' }] : [],
  )
}

/** The channels that end with this event, by the beginning of their names. */
function endedBy(event: Json): string[] {
  const ended = [...objects(event.choices), ...objects(event.candidates)]
    .filter((one) => (one.finish_reason ?? one.finishReason ?? null) !== null)
    .map(({ index = 0 }) => `${index}/`)
  if (event.type === 'content_block_stop') ended.push(`${event.index}/`)
  if (/\.done$/.test(String(event.type))) ended.push(`${event.output_index ?? ''}/`)
  return ended
}

interface Channel {
  readonly rewriter: Rewriter
  /** Its last event, in whose form the rest is sent. */
  last: Json
}

/**
 * The events of an inner relay, each with its texts rewritten. What a text may still become is held back, bounded by
 * the patterns.
 */
export class GuardedRelay implements StreamRelay {
  readonly encoding = 'utf8'
  readonly #inner: StreamRelay
  readonly #by: AnswerRewriting
  readonly #channels = new Map<string, Channel>()
  #sequence: number | undefined
  #rest: string | undefined

  constructor(inner: StreamRelay, by: AnswerRewriting) {
    this.#inner = inner
    this.#by = by
  }

  get state(): StreamState {
    return this.#inner.state
  }

  get keepAlive(): string {
    return this.#inner.keepAlive
  }

  push(chunk: Buffer): string | undefined {
    return this.#take(this.#inner.push(chunk), this.#inner.encoding)
  }

  end(): string | undefined {
    return this.#take(this.#inner.end(), this.#inner.encoding)
  }

  async ready(): Promise<void> {
    await this.#inner.ready?.()
  }

  finish(comment: string): string {
    this.#rest ??= this.#flush('')
    const sequence = this.#sequence
    const end = this.#take(this.#inner.finish(comment)) ?? ''
    this.#sequence = sequence
    return this.#rest + end
  }

  /** What was held back stays so. */
  fail(fault: Fault, requestId: string): string {
    return this.#take(this.#inner.fail(fault, requestId)) ?? ''
  }

  #take(piece: string | Buffer | undefined, encoding: 'latin1' | 'utf8' = 'utf8'): string | undefined {
    if (piece === undefined || piece.length === 0) return undefined
    const text = typeof piece === 'string' && encoding === 'latin1' ? bytesToText(piece) : piece.toString()
    let out = ''
    eachBlock(text.endsWith('\n\n') ? text : `${text}\n\n`, (block) => {
      out += this.#block(block)
    })
    return out
  }

  #block(block: string): string {
    const start = block.startsWith('data:') ? 0 : block.indexOf('\ndata:') + 1
    const data = block.slice(start + 5)
    const event = block.startsWith('data:', start) ? parsed(data) : undefined
    if (!event) return `${block}\n\n`
    return this.#event(event, block.slice(0, start))
  }

  #event(event: Json, head: string): string {
    const slots = slotsOf(event)
    const ended = endedBy(event)
    for (const { channel, holder, name } of slots) {
      const { rewriter } = this.#channel(channel, event, name)
      const isLast = ended.some((start) => channel.startsWith(start))
      this.#by.said(String(holder[name]))
      holder[name] = rewriter.push(String(holder[name])) + (isLast ? rewriter.end() : '')
    }
    // A speaker's words, which come whole.
    if (event.type === 'transcript.text.segment') this.#by.said(`${event.text}\n`)
    const before = ended.map((start) => this.#flush(start)).join('')
    return before + this.#sent(this.#edited(event, slots), head)
  }

  #channel(name: string, last: Json, member: string): Channel {
    const known = this.#channels.get(name)
    if (known) {
      known.last = last
      return known
    }
    const isJson = isJsonAt(member, this.#by) || /arguments\.delta$/.test(name)
    const channel = { rewriter: new Rewriter({ ...this.#by, isJson }), last }
    this.#channels.set(name, channel)
    return channel
  }

  /** What is held back of the channels that begin so, each in an event of its own. */
  #flush(start: string): string {
    let out = ''
    for (const [name, { rewriter, last }] of this.#channels) {
      if (!name.startsWith(start)) continue
      this.#channels.delete(name)
      const rest = rewriter.end()
      if (rest === '') continue
      const slots = slotsOf(last)
      for (const { channel, holder, name: member } of slots) holder[member] = channel === name ? rest : ''
      out += this.#sent(this.#edited(last, slots), typeof last.type === 'string' ? `event: ${last.type}\n` : '')
    }
    return out
  }

  /** The texts beside the slots are whole. */
  #edited(event: Json, slots: readonly Slot[]): Json {
    const isSlot = (holder: unknown, name: string) => slots.some((one) => one.holder === holder && one.name === name)
    const { patterns } = this.#by
    const visit = (value: unknown, path: string[], holder: unknown): unknown => {
      const name = path.at(-1) ?? ''
      if (typeof value === 'string')
        return isSlot(holder, name) || isStructure(value, path) ? value : rewritten(value, name, this.#by)
      if (typeof value === 'number' && patterns.length > 0 && value > NUMBER_MIN) return this.#number(value)
      if (typeof value !== 'object' || value === null) return value
      if (patterns.length > 0 && LOGPROBS.has(name)) return Array.isArray(value) ? [] : null
      if (Array.isArray(value)) return value.map((one) => visit(one, [...path, ''], undefined))
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, visit(one, [...path, key], value)]))
    }
    return objectOf(visit(event, [], undefined))
  }

  /** A number that must not be seen becomes a text. */
  #number(value: number): unknown {
    const text = rewritten(String(value), '', this.#by)
    return text === String(value) ? value : text
  }

  /** Numbered as they leave: an event of ours may stand between the vendor's. */
  #sent(event: Json, head: string): string {
    if (typeof event.sequence_number !== 'number') return `${head}data: ${JSON.stringify(event)}\n\n`
    this.#sequence = this.#sequence === undefined ? event.sequence_number : this.#sequence + 1
    return `${head}data: ${JSON.stringify({ ...event, sequence_number: this.#sequence })}\n\n`
  }
}

function parsed(data: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(data)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
