// Responses answers, whole and streamed: read into the canonical form and written from it.

import type { Fault } from '../../../kernel/fault.ts'
import { given, isObject, type Json, objectOf, objects, text } from '../../../kernel/json.ts'
import { isJson } from '../../../kernel/parsers/json-repair.ts'
import { encodeJson, type SseEvent } from '../../../upstream/sse.ts'
import { garbled } from '../../protocol.ts'
import { vendorFault } from '../../vendor-fault.ts'
import {
  type AnswerFacts,
  answerId,
  type CallPart,
  type Finish,
  inputText,
  type OutputPart,
  packExtra,
  packProof,
  type Reply,
  type ReplyEvent,
  type ThoughtPart,
} from '../canonical.ts'
import { StreamReader, type StreamWriter } from '../reader.ts'
import { readData } from '../relay.ts'
import { readResponsesUsage, type TokenCounts, writeResponsesUsage } from '../tokens.ts'
import { echoed, RESPONSES_KEEP_ALIVE, responsesFailure, responsesFinish } from './pass.ts'
import { Namespaces, thoughtIn } from './request.ts'

// Whole Responses objects: read into the canonical form and written from it.

export function readResponsesReply(value: Json): Reply {
  if (value.status === 'failed') throw vendorFault(value.error ?? { message: 'failed' })
  if (!Array.isArray(value.output)) throw garbled('no output')
  const parts = objects(value.output).flatMap(readItem)
  const called = parts.some((part) => part.kind === 'call')
  return { parts, finish: readFinish(value, called), tokens: readResponsesUsage(value.usage, undefined, value) }
}

/** An incomplete answer states its reason, also if the limit cut a tool call; otherwise tool calls decide. */
function readFinish(response: Json, called: boolean): Finish {
  const details = objectOf(response.incomplete_details)
  if (response.status === 'incomplete') return details.reason === 'content_filter' ? 'filter' : 'length'
  return called ? 'calls' : 'stop'
}

function readItem(item: Json): OutputPart[] {
  switch (item.type) {
    case 'message':
      return objects(item.content).map(
        (part): OutputPart =>
          part.type === 'refusal'
            ? { kind: 'refusal', text: text(part.refusal) ?? '' }
            : { kind: 'text', text: text(part.text) ?? '' },
      )
    case 'reasoning':
      return readThought(item)
    case 'function_call':
      return [{ kind: 'call', id: callId(item), name: text(item.name) ?? '', input: inputText(item.arguments) ?? '' }]
    case 'custom_tool_call':
      return [
        { kind: 'call', id: callId(item), name: text(item.name) ?? '', input: text(item.input) ?? '', custom: true },
      ]
  }
  return [] // The effect of a hosted tool is in the text.
}

/** Results refer to a call by its call id, which is not the item's id. */
function callId(item: Json): string {
  return text(item.call_id) ?? text(item.id) ?? ''
}

function readThought(item: Json): ThoughtPart[] {
  const said = thoughtIn(item)
  const data = text(item.encrypted_content) || undefined
  const proof = data === undefined ? {} : { encrypted: { id: text(item.id) ?? '', data } }
  return said === '' && data === undefined ? [] : [{ kind: 'thought', text: said, proof }]
}

export function writeResponsesReply(reply: Reply, facts: AnswerFacts): Json {
  const output: Json[] = []
  const nextId = (prefix: string) => itemId(prefix, output.length, facts)
  const namespaces = new Namespaces(facts.request.tools)
  let content: Json[] | undefined
  for (const part of reply.parts) {
    if (part.kind === 'text' || part.kind === 'refusal') {
      if (!content) {
        content = []
        output.push(messageItem(nextId('msg_'), content, 'completed'))
      }
      content.push(part.kind === 'text' ? textPart(part.text) : { type: 'refusal', refusal: part.text })
      continue
    }
    content = undefined
    if (part.kind === 'thought') output.push(thoughtItem(nextId('rs_'), part.text, packProof(part.proof)))
    else {
      if (part.extra !== undefined) output.push(thoughtItem(nextId('rs_'), '', packExtra(part.id, part.extra)))
      const call = { ...part, ...namespaces.grouped(part.name) }
      output.push(callItem(nextId(part.custom ? 'ctc_' : 'fc_'), call, part.input, 'completed'))
    }
  }
  return responseObject(facts, { output, finish: reply.finish, tokens: reply.tokens })
}

function itemId(prefix: string, index: number, facts: AnswerFacts): string {
  return `${answerId(prefix, facts)}_${index}`
}

function messageItem(id: string, content: readonly Json[], status: string): Json {
  return { type: 'message', id, role: 'assistant', status, content }
}

function textPart(said: string): Json {
  return { type: 'output_text', text: said, annotations: [], logprobs: [] }
}

function thoughtItem(id: string, thought: string, encrypted: string | undefined): Json {
  const summary = thought === '' ? [] : [{ type: 'summary_text', text: thought }]
  return given({ type: 'reasoning', id, summary, encrypted_content: encrypted })
}

/** Uses the caller's names of the tool. */
function callItem(
  id: string,
  call: Pick<CallPart, 'id' | 'custom'> & { readonly name: string; readonly namespace?: string },
  input: string,
  status: string,
): Json {
  const { name, namespace } = call
  const head = given({ id, call_id: call.id, name, namespace })
  if (call.custom) return { type: 'custom_tool_call', ...head, input, status }
  return { type: 'function_call', ...head, arguments: input, status }
}

/** The object of lifecycle events and of whole answers; without `end` it is in progress. */
function responseObject(
  facts: AnswerFacts,
  end?: { readonly output: readonly Json[]; readonly finish: Finish; readonly tokens: TokenCounts | undefined },
): Json {
  const { request } = facts
  const reasoning = objectOf(request.reasoning)
  const cut = end?.finish === 'length' ? 'max_output_tokens' : end?.finish === 'filter' ? 'content_filter' : undefined
  const done = end !== undefined && cut === undefined
  return {
    id: answerId('resp_', facts),
    object: 'response',
    created_at: facts.createdSeconds,
    ...echoed(request),
    completed_at: done ? facts.nowSeconds() : null,
    status: end ? (cut ? 'incomplete' : 'completed') : 'in_progress',
    background: false,
    error: null,
    incomplete_details: cut ? { reason: cut } : null,
    model: facts.uid,
    output: end?.output ?? [],
    previous_response_id: null,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    // A vendor of another format stores nothing.
    store: false,
    text: { format: { type: 'text' }, ...(isObject(request.text) ? given(request.text) : {}) },
    truncation: 'disabled',
    usage: end?.tokens ? writeResponsesUsage(end.tokens) : null,
    user: request.user ?? null,
  }
}

// Reads a Responses vendor's stream into the canonical form.

export class ResponsesReader extends StreamReader {
  private started = false
  private calls = 0
  /** Calls by the vendor's output index, and whether any of their input has arrived. */
  private readonly byIndex = new Map<unknown, { readonly key: number; heard: boolean }>()
  /** Output indexes whose text or thought arrived in pieces. */
  private readonly heard = new Set<unknown>()

  read(event: SseEvent): ReplyEvent[] {
    const data = readData(event.data)
    if (!isObject(data)) return []
    const type = text(data.type) ?? event.event
    const index = data.output_index
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
        return this.start()
      case 'response.output_text.delta':
        return this.piece('text', index, data.delta)
      case 'response.refusal.delta':
        return this.piece('refusal', index, data.delta)
      case 'response.reasoning_summary_part.added':
        return Number(data.summary_index) > 0 ? this.piece('thought', index, '\n\n') : []
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.piece('thought', index, data.delta)
      case 'response.output_item.added':
        return isObject(data.item) ? this.added(data.item, index) : []
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.input(index, data.delta)
      case 'response.function_call_arguments.done':
        return this.wholeInput(index, inputText(data.arguments))
      case 'response.custom_tool_call_input.done':
        return this.wholeInput(index, data.input)
      case 'response.output_item.done':
        return isObject(data.item) ? this.done(data.item, index) : []
      case 'response.completed':
      case 'response.incomplete':
        return this.close(objectOf(data.response))
      case 'response.failed':
      case 'error':
        return this.fail(data)
    }
    return []
  }

  private start(): ReplyEvent[] {
    if (this.started) return []
    this.started = true
    return [{ type: 'start' }]
  }

  private piece(type: 'text' | 'refusal' | 'thought', index: unknown, delta: unknown): ReplyEvent[] {
    this.heard.add(index)
    return typeof delta === 'string' && delta !== '' ? [...this.start(), { type, text: delta }] : []
  }

  private added(item: Json, index: unknown): ReplyEvent[] {
    if (item.type !== 'function_call' && item.type !== 'custom_tool_call') return []
    // The number of the call and not of the output item: text and thoughts have output indexes too.
    const key = this.calls++
    this.byIndex.set(index, { key, heard: false })
    const custom = item.type === 'custom_tool_call' ? { custom: true } : {}
    return [...this.start(), { type: 'call', key, id: callId(item), name: text(item.name) ?? '', ...custom }]
  }

  private input(index: unknown, delta: unknown): ReplyEvent[] {
    const call = this.byIndex.get(index)
    if (!call || typeof delta !== 'string' || delta === '') return []
    call.heard = true
    return [{ type: 'input', key: call.key, text: delta }]
  }

  /** Some vendors send the input only when it is complete. */
  private wholeInput(index: unknown, input: unknown): ReplyEvent[] {
    return this.byIndex.get(index)?.heard === false ? this.input(index, input) : []
  }

  private done(item: Json, index: unknown): ReplyEvent[] {
    if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      const events = this.byIndex.has(index) ? [] : this.added(item, index)
      return [...events, ...this.wholeInput(index, inputText(item.arguments ?? item.input))]
    }
    const events: ReplyEvent[] = []
    for (const part of readItem(item)) {
      if (part.kind === 'call') continue
      if (!this.heard.has(index) && part.text !== '') events.push({ type: part.kind, text: part.text })
      if (part.kind === 'thought' && part.proof.encrypted) events.push({ type: 'proof', proof: part.proof })
    }
    this.heard.add(index)
    return events.length > 0 ? [...this.start(), ...events] : []
  }

  private close(response: Json): ReplyEvent[] {
    this.tokens = readResponsesUsage(response.usage, undefined, response)
    this.terminal = true
    // If a vendor streamed only its last event, that event contains the whole answer.
    const events = this.heard.size === 0 && this.calls === 0 ? this.lastWords(response) : []
    return [...this.start(), ...events, { type: 'end', finish: readFinish(response, this.calls > 0) }]
  }

  private lastWords(response: Json): ReplyEvent[] {
    const output = Array.isArray(response.output) ? response.output : []
    return output.flatMap((item, index) => (isObject(item) ? this.done(item, index) : []))
  }

  private fail(data: Json): ReplyEvent[] {
    const response = objectOf(data.response)
    this.tokens = readResponsesUsage(response.usage, undefined, response)
    this.fault = vendorFault(data.error ?? response.error ?? data)
    return []
  }
}

// Writes the canonical form as a Responses stream: items are opened, filled and closed, and the last event repeats them
// all.

interface MessageState {
  readonly kind: 'message'
  readonly id: string
  readonly index: number
  readonly content: Json[]
  /** The part that is being written. */
  part: { readonly type: 'text' | 'refusal'; text: string } | undefined
}
interface ThoughtState {
  readonly kind: 'thought'
  readonly id: string
  readonly index: number
  text: string
  proof: string | undefined
}
interface CallState {
  readonly kind: 'call'
  readonly id: string
  readonly index: number
  readonly call: { readonly id: string; readonly name: string; readonly namespace?: string; readonly custom: boolean }
  input: string
}

export class ResponsesWriter implements StreamWriter {
  readonly keepAlive = RESPONSES_KEEP_ALIVE
  private readonly facts: AnswerFacts
  private sequence = 0
  private started = false
  private readonly output: Json[] = []
  private items = 0
  private open: MessageState | ThoughtState | undefined
  /** Several calls may be open at once, since some vendors interleave their inputs. */
  private readonly calls = new Map<number, CallState>()
  private end: Finish = 'stop'
  private readonly namespaces: Namespaces

  constructor(facts: AnswerFacts) {
    this.facts = facts
    this.namespaces = new Namespaces(facts.request.tools)
  }

  write(event: ReplyEvent): string {
    switch (event.type) {
      case 'start':
        return this.start()
      case 'text':
      case 'refusal':
        return this.start() + this.say(event.type, event.text)
      case 'thought':
        return this.start() + this.think(event.text)
      case 'proof': {
        if (this.open?.kind !== 'thought' && Object.keys(event.proof).length === 0) return ''
        const out = this.start() + (this.open?.kind === 'thought' ? '' : this.openThought())
        if (this.open?.kind === 'thought') this.open.proof = packProof(event.proof)
        return out + this.closeOpen()
      }
      case 'call':
        return this.start() + this.call(event)
      case 'input':
        return this.input(event.key, event.text)
      case 'end':
        this.end = event.finish
        return this.start() + this.closeAll()
      case 'proof-pending':
        return ''
      case 'ping':
        return this.keepAlive
    }
  }

  finish(tokens: TokenCounts | undefined, comment: string): string {
    const response = responseObject(this.facts, {
      output: this.output.filter((item) => item !== undefined),
      finish: this.end,
      tokens,
    })
    const type = response.status === 'incomplete' ? 'response.incomplete' : 'response.completed'
    const data = { type, sequence_number: this.sequence, response }
    return responsesFinish(encodeJson(data, type), comment)
  }

  fail(fault: Fault): string {
    const output = this.output.filter((item) => item !== undefined)
    const response = this.started ? { ...responseObject(this.facts), output } : undefined
    return responsesFailure(fault, response, this.sequence)
  }

  private start(): string {
    if (this.started) return ''
    this.started = true
    const response = responseObject(this.facts)
    return this.event('response.created', { response }) + this.event('response.in_progress', { response })
  }

  private say(type: 'text' | 'refusal', text: string): string {
    let out = ''
    if (this.open?.kind !== 'message') {
      out += this.closeAll()
      const index = this.items++
      this.open = { kind: 'message', id: itemId('msg_', index, this.facts), index, content: [], part: undefined }
      out += this.added(this.open.index, messageItem(this.open.id, [], 'in_progress'))
    }
    const message = this.open
    if (message.part?.type !== type) {
      out += this.closePart(message)
      message.part = { type, text: '' }
      out += this.event('response.content_part.added', { ...this.at(message), part: writePart(type, '') })
    }
    message.part.text += text
    const at = `${place(message)},"content_index":${message.content.length}`
    if (type === 'refusal') return out + this.delta('response.refusal.delta', at, text)
    return out + this.delta('response.output_text.delta', at, text, ',"logprobs":[]')
  }

  private at(message: MessageState): Json {
    return { item_id: message.id, output_index: message.index, content_index: message.content.length }
  }

  private closePart(message: MessageState): string {
    const { part } = message
    if (!part) return ''
    const at = this.at(message)
    const written = writePart(part.type, part.text)
    const said = part.type === 'text' ? { text: part.text, logprobs: [] } : { refusal: part.text }
    const out =
      this.event(part.type === 'text' ? 'response.output_text.done' : 'response.refusal.done', { ...at, ...said }) +
      this.event('response.content_part.done', { ...at, part: written })
    message.content.push(written)
    message.part = undefined
    return out
  }

  private openThought(): string {
    const out = this.closeAll()
    const index = this.items++
    this.open = { kind: 'thought', id: itemId('rs_', index, this.facts), index, text: '', proof: undefined }
    return out + this.added(index, thoughtItem(this.open.id, '', undefined))
  }

  private think(text: string): string {
    let out = this.open?.kind === 'thought' ? '' : this.openThought()
    if (this.open?.kind !== 'thought') return out
    const at = { item_id: this.open.id, output_index: this.open.index, summary_index: 0 }
    if (this.open.text === '')
      out += this.event('response.reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } })
    this.open.text += text
    return out + this.delta('response.reasoning_summary_text.delta', `${place(this.open)},"summary_index":0`, text)
  }

  private call({ key, id, name, custom, extra }: ReplyEvent & { type: 'call' }): string {
    let out = this.closeOpen()
    for (const [other, state] of this.calls) if (isJson(state.input)) out += this.closeCall(other, state)
    if (extra !== undefined) {
      out += this.openThought()
      if (this.open?.kind === 'thought') this.open.proof = packExtra(id, extra)
      out += this.closeOpen()
    }
    const index = this.items++
    const state: CallState = {
      kind: 'call',
      id: itemId(custom ? 'ctc_' : 'fc_', index, this.facts),
      index,
      call: { id, ...this.namespaces.grouped(name), custom: custom === true },
      input: '',
    }
    this.calls.set(key, state)
    return out + this.added(index, callItem(state.id, state.call, '', 'in_progress'))
  }

  private input(key: number, text: string): string {
    const state = this.calls.get(key)
    if (!state) return ''
    state.input += text
    const name = state.call.custom ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta'
    return this.delta(name, place(state), text)
  }

  private closeCall(key: number, state: CallState): string {
    this.calls.delete(key)
    const { custom } = state.call
    const at = { item_id: state.id, output_index: state.index }
    let out = ''
    if (state.input === '' && !custom) {
      state.input = '{}'
      out += this.event('response.function_call_arguments.delta', { ...at, delta: '{}' })
    }
    out += custom
      ? this.event('response.custom_tool_call_input.done', { ...at, input: state.input })
      : this.event('response.function_call_arguments.done', { ...at, arguments: state.input, name: state.call.name })
    return out + this.doneItem(state.index, callItem(state.id, state.call, state.input, 'completed'))
  }

  private closeOpen(): string {
    const state = this.open
    this.open = undefined
    if (!state) return ''
    if (state.kind === 'message')
      return this.closePart(state) + this.doneItem(state.index, messageItem(state.id, state.content, 'completed'))
    const at = { item_id: state.id, output_index: state.index, summary_index: 0 }
    const part = { type: 'summary_text', text: state.text }
    const summary =
      state.text === ''
        ? ''
        : this.event('response.reasoning_summary_text.done', { ...at, text: state.text }) +
          this.event('response.reasoning_summary_part.done', { ...at, part })
    return summary + this.doneItem(state.index, thoughtItem(state.id, state.text, state.proof ?? packProof({})))
  }

  private closeAll(): string {
    let out = this.closeOpen()
    for (const [key, state] of this.calls) out += this.closeCall(key, state)
    return out
  }

  private added(index: number, item: Json): string {
    return this.event('response.output_item.added', { output_index: index, item })
  }

  private doneItem(index: number, item: Json): string {
    this.output[index] = item
    return this.event('response.output_item.done', { output_index: index, item })
  }

  /** Written by hand for speed, because a stream consists almost entirely of these events. */
  private delta(type: string, at: string, text: string, rest = ''): string {
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.sequence++},${at},"delta":${JSON.stringify(text)}${rest}}\n\n`
  }

  private event(type: string, members: Json): string {
    return encodeJson({ type, sequence_number: this.sequence++, ...members }, type)
  }
}

function place({ id, index }: { readonly id: string; readonly index: number }): string {
  return `"item_id":"${id}","output_index":${index}`
}

function writePart(type: 'text' | 'refusal', said: string): Json {
  return type === 'text' ? textPart(said) : { type: 'refusal', refusal: said }
}
