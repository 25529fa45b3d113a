// Neutral words as a Messages stream: blocks are opened, filled and closed in order.
import type { Fault } from '../../../kernel/fault.ts'
import { encodeComment, encodeJson } from '../../../upstream/sse.ts'
import type { Json } from '../../check.ts'
import { packExtra, packProof } from '../carry.ts'
import type { AnswerFacts, Finish, Proof, ReplyEvent } from '../dialogue.ts'
import type { StreamWriter } from '../reader.ts'
import { isWholeJson } from '../relay.ts'
import { type TokenCounts, writeMessagesUsage } from '../tokens.ts'
import { MESSAGES_KEEP_ALIVE, messagesFailure } from './pass.ts'
import { messageHead, stopReason } from './reply.ts'

interface CallBlock {
  readonly index: number
  input: string
}

export class MessagesWriter implements StreamWriter {
  readonly keepAlive = MESSAGES_KEEP_ALIVE
  private readonly facts: AnswerFacts
  private started = false
  private blocks = 0
  private open: { readonly kind: 'text' | 'thought'; readonly index: number } | undefined
  /**
   * A thought that stays open beside the text until its proof is there. It is begun before the text though it may stay empty: Google sends the
   * signature with the last part, blocks cannot be put before one that was sent, and clients look for the text in the last block.
   */
  private unproven: number | undefined
  /** Calls may be open side by side, since some vendors interleave their inputs; readers go by the index. */
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

  /** A block that the caller keeps and returns without being able to read it. */
  private hidden(data: string): string {
    const out = this.closeAll()
    const index = this.blocks++
    return out + startBlock(index, { type: 'redacted_thinking', data }) + event('content_block_stop', { index })
  }

  private call({ key, id, name, extra }: ReplyEvent & { type: 'call' }): string {
    let out = this.closeUnproven() + this.closeOpen()
    for (const [other, call] of this.calls) if (isWholeJson(call.input)) out += this.closeCall(other, call)
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

  /** A thought is closed with its signature; clients send back none that has no signature. */
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

/** Written out, because nearly all of a stream is made of these. */
function deltaEvent(index: number, type: string, member: string, text: string): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${member}":${JSON.stringify(text)}}}\n\n`
}

function event(type: string, members: Json): string {
  return encodeJson({ type, ...members }, type)
}
