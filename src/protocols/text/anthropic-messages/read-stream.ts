// A Messages vendor's stream in neutral words.
import type { SseEvent } from '../../../upstream/sse.ts'
import { isObject, type Json, text } from '../../check.ts'
import { vendorFault } from '../../vendor-fault.ts'
import type { Proof, ReplyEvent } from '../dialogue.ts'
import { StreamReader } from '../reader.ts'
import { readData } from '../relay.ts'
import { mergedReports, readMessagesUsage } from '../tokens.ts'
import { readStopReason } from './reply.ts'

interface Block {
  readonly type: string
  /** The running number of a call; block indexes count text and thoughts too. */
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
    const input = isObject(block.input) ? block.input : {}
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
    // A vendor may give the whole input with the start.
    if (block?.type === 'tool_use' && !block.heard && Object.keys(block.input).length > 0)
      return [{ type: 'input', key: block.key, text: JSON.stringify(block.input) }]
    return []
  }
}

function piece(type: 'text' | 'thought', said: unknown): ReplyEvent[] {
  return typeof said === 'string' && said !== '' ? [{ type, text: said }] : []
}
