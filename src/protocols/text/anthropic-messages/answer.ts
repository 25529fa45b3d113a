// Messages answers, whole and streamed: read into the canonical form and written from it.

import type { Fault } from '../../../kernel/fault.ts'
import { given, isObject, type Json, objectOf, objects, text } from '../../../kernel/json.ts'
import { isJson } from '../../../kernel/parsers/json-repair.ts'
import { encodeComment, type SseEvent } from '../../../upstream/sse.ts'
import { garbled } from '../../protocol.ts'
import { vendorFault } from '../../vendor-fault.ts'
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
} from '../canonical.ts'
import { StreamReader, type StreamWriter } from '../reader.ts'
import { readData } from '../relay.ts'
import { mergedReports, readMessagesUsage, type TokenCounts, writeMessagesUsage } from '../tokens.ts'
import { event, MESSAGES_KEEP_ALIVE, messagesFailure } from './pass.ts'

// Whole messages: read into the canonical form and written from it.

const FINISHES: Readonly<Record<string, Finish>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  tool_use: 'calls',
  refusal: 'filter',
}

function readStopReason(reason: unknown, called: boolean): Finish {
  return FINISHES[String(reason)] ?? (called ? 'calls' : 'stop')
}

function stopReason(finish: Finish, stopSequence: string | undefined, refused: boolean): string {
  if (refused || finish === 'filter') return 'refusal'
  if (finish === 'calls') return 'tool_use'
  if (finish === 'length') return 'max_tokens'
  return stopSequence === undefined ? 'end_turn' : 'stop_sequence'
}

export function readMessagesReply(value: Json): Reply {
  if (!Array.isArray(value.content)) throw garbled('no content')
  const parts = objects(value.content).flatMap(readBlock)
  const stop = text(value.stop_sequence)
  const called = parts.some((part) => part.kind === 'call')
  return {
    parts,
    finish: readStopReason(value.stop_reason, called),
    ...(stop === undefined ? {} : { stopSequence: stop }),
    tokens: readMessagesUsage(value.usage),
  }
}

function readBlock(block: Json): OutputPart[] {
  switch (block.type) {
    case 'text':
      return [{ kind: 'text', text: text(block.text) ?? '' }]
    case 'thinking':
      return [{ kind: 'thought', text: text(block.thinking) ?? '', proof: given({ signature: text(block.signature) }) }]
    case 'redacted_thinking':
      return [{ kind: 'thought', text: '', proof: { redacted: text(block.data) ?? '' } }]
    case 'tool_use': {
      const input = JSON.stringify(block.input ?? {})
      return [{ kind: 'call', id: text(block.id) ?? '', name: text(block.name) ?? '', input }]
    }
  }
  return [] // The effect of the vendor's own tools is in the text.
}

export function writeMessagesReply(reply: Reply, facts: AnswerFacts): Json {
  const refused = reply.parts.some((part) => part.kind === 'refusal')
  return {
    ...messageHead(facts, reply.tokens),
    content: proofsFirst(reply.parts).flatMap(writePart),
    stop_reason: stopReason(reply.finish, reply.stopSequence, refused),
    stop_sequence: reply.stopSequence ?? null,
  }
}

/** Puts the proof of a text before it, because clients look for the text in the last block. */
function proofsFirst(parts: readonly OutputPart[]): OutputPart[] {
  const out: OutputPart[] = []
  for (const part of parts) {
    const isText = ({ kind }: OutputPart) => kind === 'text' || kind === 'refusal'
    const at = part.kind === 'thought' && part.text === '' ? out.findLastIndex((one) => !isText(one)) + 1 : out.length
    const before = out[at - 1]
    const isUnproved = before?.kind === 'thought' && Object.keys(before.proof).length === 0
    if (at < out.length && part.kind === 'thought' && isUnproved) out[at - 1] = { ...before, proof: part.proof }
    else out.splice(at, 0, part)
  }
  return out
}

function writePart(part: OutputPart): Json[] {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text }]
    case 'thought':
      return [thoughtBlock(part.text, packProof(part.proof))]
    case 'call':
      return [
        ...(part.extra === undefined ? [] : [{ type: 'redacted_thinking', data: packExtra(part.id, part.extra) }]),
        { type: 'tool_use', id: part.id, name: part.name, input: inputObject(part.input) },
      ]
  }
}

function thoughtBlock(thought: string, packed: string): Json {
  return thought === ''
    ? { type: 'redacted_thinking', data: packed }
    : { type: 'thinking', thinking: thought, signature: packed }
}

/** The message without its content. Until the vendor has counted, the prompt size is an estimate. */
function messageHead(facts: AnswerFacts, tokens: TokenCounts | undefined): Json {
  const usage = writeMessagesUsage(
    tokens ?? { prompt: facts.inputTokens, cached: 0, cacheWrite: 0, output: 1, reasoning: undefined },
  )
  return {
    id: answerId('msg_', facts),
    type: 'message',
    role: 'assistant',
    model: facts.uid,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  }
}

// Reads a Messages vendor's stream into the canonical form.

interface Block {
  readonly type: string
  /** The running number of the call; block indexes also count text and thoughts. */
  readonly key: number
  readonly input: Json
  heard: boolean
  signature: string
}

export class MessagesReader extends StreamReader {
  override readonly repeats: boolean = true
  private usage: Json = {}
  private readonly blocks = new Map<unknown, Block>()
  private calls = 0
  private stop: Json = {}

  read(event: SseEvent): ReplyEvent[] {
    const data = readData(event.data)
    if (!isObject(data)) return []
    switch (text(data.type) ?? event.event) {
      case 'message_start': {
        this.usage = mergedReports({}, isObject(data.message) ? data.message.usage : undefined)
        this.promptTokens = readMessagesUsage(this.usage)
        return [{ type: 'start', ...(this.promptTokens ? { tokens: this.promptTokens } : {}) }]
      }
      case 'content_block_start':
        return isObject(data.content_block) ? this.startBlock(data.index, data.content_block) : []
      case 'content_block_delta':
        return isObject(data.delta) ? this.readDelta(data.index, data.delta) : []
      case 'content_block_stop':
        return this.stopBlock(data.index)
      case 'message_delta':
        this.usage = mergedReports(this.usage, data.usage)
        this.tokens = readMessagesUsage(this.usage)
        if (isObject(data.delta)) this.stop = data.delta
        return []
      case 'message_stop': {
        this.terminal = true
        const sequence = text(this.stop.stop_sequence)
        const finish = readStopReason(this.stop.stop_reason, this.calls > 0)
        return [{ type: 'end', finish, ...(sequence === undefined ? {} : { stopSequence: sequence }) }]
      }
      case 'ping':
        return [{ type: 'ping' }]
      case 'error':
        this.fault = vendorFault(data.error ?? data)
    }
    return []
  }

  private startBlock(index: unknown, block: Json): ReplyEvent[] {
    const type = text(block.type) ?? ''
    const input = objectOf(block.input)
    this.blocks.set(index, {
      type,
      key: type === 'tool_use' ? this.calls++ : -1,
      input,
      heard: false,
      signature: text(block.signature) ?? '',
    })
    switch (type) {
      case 'text':
        return piece('text', block.text)
      case 'thinking':
        return piece('thought', block.thinking)
      case 'redacted_thinking':
        return [{ type: 'proof', proof: { redacted: text(block.data) ?? '' } }]
      case 'tool_use':
        return [{ type: 'call', key: this.calls - 1, id: text(block.id) ?? '', name: text(block.name) ?? '' }]
    }
    return []
  }

  private readDelta(index: unknown, delta: Json): ReplyEvent[] {
    const block = this.blocks.get(index)
    switch (delta.type) {
      case 'text_delta':
        return piece('text', delta.text)
      case 'thinking_delta':
        return piece('thought', delta.thinking)
      case 'signature_delta':
        if (block) block.signature += text(delta.signature) ?? ''
        return []
      case 'input_json_delta': {
        const input = text(delta.partial_json) ?? ''
        if (input === '' || !block || block.key < 0) return []
        block.heard = true
        return [{ type: 'input', key: block.key, text: input }]
      }
    }
    return []
  }

  private stopBlock(index: unknown): ReplyEvent[] {
    const block = this.blocks.get(index)
    if (block?.type === 'thinking') {
      const proof: Proof = block.signature === '' ? {} : { signature: block.signature }
      return [{ type: 'proof', proof }]
    }
    // Some vendors send the whole input with the start event.
    if (block?.type === 'tool_use' && !block.heard && Object.keys(block.input).length > 0)
      return [{ type: 'input', key: block.key, text: JSON.stringify(block.input) }]
    return []
  }
}

function piece(type: 'text' | 'thought', said: unknown): ReplyEvent[] {
  return typeof said === 'string' && said !== '' ? [{ type, text: said }] : []
}

// Writes the canonical form as a Messages stream: blocks are opened, filled and closed in order.

type CallBlock = { readonly index: number; input: string }

export class MessagesWriter implements StreamWriter {
  readonly keepAlive = MESSAGES_KEEP_ALIVE
  private readonly facts: AnswerFacts
  private started = false
  private blocks = 0
  private open: { readonly kind: 'text' | 'thought'; readonly index: number } | undefined
  /**
   * A thinking block that stays open beside the text until its proof arrives. It is opened before the text even if it
   * may stay empty: Google sends the signature with the last part, a block cannot be inserted before one already sent,
   * and clients look for the text in the last block.
   */
  private unproven: number | undefined
  /** Several calls may be open at once, since some vendors interleave their inputs; readers use the index. */
  private readonly calls = new Map<number, CallBlock>()
  private refused = false
  private end: { readonly finish: Finish; readonly stopSequence?: string } = { finish: 'stop' }

  constructor(facts: AnswerFacts) {
    this.facts = facts
  }

  write(event: ReplyEvent): string {
    switch (event.type) {
      case 'start':
        return this.start(event.tokens)
      case 'text':
        return this.start() + this.say(event.text)
      case 'refusal':
        this.refused = true
        return this.start() + this.say(event.text)
      case 'thought':
        return this.start() + this.think(event.text)
      case 'proof':
        return this.start() + this.prove(event.proof)
      case 'proof-pending':
        return this.start() + this.awaitProof()
      case 'call':
        return this.start() + this.call(event)
      case 'input':
        return this.input(event.key, event.text)
      case 'end':
        this.end = event
        return this.start() + this.closeAll()
      case 'ping':
        return this.started ? this.keepAlive : ''
    }
  }

  finish(tokens: TokenCounts | undefined, comment: string): string {
    const { finish, stopSequence } = this.end
    const delta = { stop_reason: stopReason(finish, stopSequence, this.refused), stop_sequence: stopSequence ?? null }
    const usage = tokens ? writeMessagesUsage(tokens) : { output_tokens: 0 }
    return event('message_delta', { delta, usage }) + encodeComment(comment) + event('message_stop', {})
  }

  fail(fault: Fault, requestId: string): string {
    return messagesFailure(fault, requestId)
  }

  private start(tokens?: TokenCounts): string {
    if (this.started) return ''
    this.started = true
    return event('message_start', { message: messageHead(this.facts, tokens) })
  }

  private say(text: string): string {
    const out = this.open?.kind === 'text' ? '' : this.openBlock('text', { type: 'text', text: '' })
    return out + this.delta('text_delta', 'text', text)
  }

  private think(text: string): string {
    return this.openThought() + this.delta('thinking_delta', 'thinking', text)
  }

  private openThought(): string {
    if (this.open?.kind === 'thought') return ''
    return this.openBlock('thought', { type: 'thinking', thinking: '', signature: '' })
  }

  private awaitProof(): string {
    const out = this.openThought()
    this.unproven = this.open?.index
    this.open = undefined
    return out
  }

  private prove(proof: Proof): string {
    if (this.unproven !== undefined) return this.closeUnproven(packProof(proof))
    if (this.open?.kind === 'thought') return this.closeOpen(packProof(proof))
    return Object.keys(proof).length === 0 ? '' : this.hidden(packProof(proof))
  }

  /** A block that the caller returns in the next request without being able to read it. */
  private hidden(data: string): string {
    const out = this.closeAll()
    const index = this.blocks++
    return out + startBlock(index, { type: 'redacted_thinking', data }) + event('content_block_stop', { index })
  }

  private call({ key, id, name, extra }: ReplyEvent & { type: 'call' }): string {
    let out = this.closeUnproven() + this.closeOpen()
    for (const [other, call] of this.calls) if (isJson(call.input)) out += this.closeCall(other, call)
    if (extra !== undefined) out += this.hidden(packExtra(id, extra))
    const index = this.blocks++
    this.calls.set(key, { index, input: '' })
    return out + startBlock(index, { type: 'tool_use', id, name, input: {} })
  }

  private input(key: number, text: string): string {
    const call = this.calls.get(key)
    if (!call) return ''
    call.input += text
    return deltaEvent(call.index, 'input_json_delta', 'partial_json', text)
  }

  private openBlock(kind: 'text' | 'thought', block: Json): string {
    const out = this.closeBlocks()
    this.open = { kind, index: this.blocks++ }
    return out + startBlock(this.open.index, block)
  }

  private delta(type: string, member: string, text: string): string {
    return deltaEvent(this.open?.index ?? 0, type, member, text)
  }

  /** Closes a thinking block with its signature, because clients do not send back blocks without one. */
  private closeOpen(signature = packProof({})): string {
    const { open } = this
    if (!open) return ''
    const signed = open.kind === 'thought' ? this.delta('signature_delta', 'signature', signature) : ''
    this.open = undefined
    return signed + event('content_block_stop', { index: open.index })
  }

  private closeCall(key: number, call: CallBlock): string {
    this.calls.delete(key)
    return event('content_block_stop', { index: call.index })
  }

  private closeUnproven(signature = packProof({})): string {
    const index = this.unproven
    if (index === undefined) return ''
    this.unproven = undefined
    return deltaEvent(index, 'signature_delta', 'signature', signature) + event('content_block_stop', { index })
  }

  private closeAll(): string {
    return this.closeUnproven() + this.closeBlocks()
  }

  private closeBlocks(): string {
    let out = this.closeOpen()
    for (const [key, call] of this.calls) out += this.closeCall(key, call)
    return out
  }
}

function startBlock(index: number, block: Json): string {
  return event('content_block_start', { index, content_block: block })
}

/** Written by hand for speed, because a stream consists almost entirely of these events. */
function deltaEvent(index: number, type: string, member: string, text: string): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${member}":${JSON.stringify(text)}}}\n\n`
}
