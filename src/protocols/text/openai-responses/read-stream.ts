// A Responses vendor's stream in neutral words.
import type { SseEvent } from '../../../upstream/sse.ts'
import { isObject, type Json, text } from '../../check.ts'
import { vendorFault } from '../../vendor-fault.ts'
import type { ReplyEvent } from '../dialogue.ts'
import { StreamReader } from '../reader.ts'
import { readData } from '../relay.ts'
import { readResponsesUsage } from '../tokens.ts'
import { callId, readFinish, readItem } from './reply.ts'

export class ResponsesReader extends StreamReader {
  private started = false
  private calls = 0
  /** The calls by the vendor's output index, and whether any of their input came. */
  private readonly byIndex = new Map<unknown, { readonly key: number; heard: boolean }>()
  /** Output indexes whose text or thought came in pieces. */
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
        return this.wholeInput(index, data.arguments)
      case 'response.custom_tool_call_input.done':
        return this.wholeInput(index, data.input)
      case 'response.output_item.done':
        return isObject(data.item) ? this.done(data.item, index) : []
      case 'response.completed':
      case 'response.incomplete':
        return this.close(isObject(data.response) ? data.response : {})
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
    // The number of the call, not of the output item: text and thoughts have output indexes too.
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

  /** Some vendors send the input only once it is whole. */
  private wholeInput(index: unknown, input: unknown): ReplyEvent[] {
    return this.byIndex.get(index)?.heard === false ? this.input(index, input) : []
  }

  private done(item: Json, index: unknown): ReplyEvent[] {
    if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      const events = this.byIndex.has(index) ? [] : this.added(item, index)
      return [...events, ...this.wholeInput(index, item.arguments ?? item.input)]
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
    this.tokens = readResponsesUsage(response.usage)
    this.terminal = true
    // A vendor that streamed nothing but its last event has said everything in it.
    const events = this.heard.size === 0 && this.calls === 0 ? this.lastWords(response) : []
    return [...this.start(), ...events, { type: 'end', finish: readFinish(response, this.calls > 0) }]
  }

  private lastWords(response: Json): ReplyEvent[] {
    const output = Array.isArray(response.output) ? response.output : []
    return output.flatMap((item, index) => (isObject(item) ? this.done(item, index) : []))
  }

  private fail(data: Json): ReplyEvent[] {
    const response = isObject(data.response) ? data.response : {}
    this.tokens = readResponsesUsage(response.usage)
    this.fault = vendorFault(data.error ?? response.error ?? data)
    return []
  }
}
