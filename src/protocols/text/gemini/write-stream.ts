// Neutral words as a stream of this format. Calls are whole here, so that their inputs are gathered first.
import type { Fault } from '../../../kernel/fault.ts'
import { encodeEvent } from '../../../upstream/sse.ts'
import type { Json } from '../../check.ts'
import type { AnswerFacts, Finish, ReplyEvent } from '../dialogue.ts'
import type { StreamWriter } from '../reader.ts'
import type { TokenCounts } from '../tokens.ts'
import { GEMINI_KEEP_ALIVE, geminiFailure, geminiFinish } from './pass.ts'
import { answer, finishReason, writeCall, writeThought } from './reply.ts'

export class GeminiWriter implements StreamWriter {
  readonly keepAlive = GEMINI_KEEP_ALIVE
  private readonly facts: AnswerFacts
  private readonly calls = new Map<number, { id: string; name: string; extra?: unknown; input: string }>()
  private refused = false
  private ended: Finish = 'stop'

  constructor(facts: AnswerFacts) {
    this.facts = facts
  }

  write(event: ReplyEvent): string {
    switch (event.type) {
      case 'start':
        return ''
      case 'refusal':
        this.refused = true
        return this.piece([{ text: event.text }])
      case 'text':
        return this.piece([{ text: event.text }])
      case 'thought':
        return this.piece([{ text: event.text, thought: true }])
      case 'proof':
        return this.piece(writeThought('', event.proof))
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

  finish(tokens: TokenCounts | undefined, comment: string): string {
    const calls = [...this.calls.values()].map((call) => writeCall(call.id, call.name, call.input, call.extra))
    // Clients take an answer without parts for none at all.
    const parts = calls.length > 0 ? calls : [{ text: '' }]
    const last = answer(this.facts, parts, finishReason(this.ended, this.refused), tokens)
    return geminiFinish(encodeEvent(JSON.stringify(last)), comment)
  }

  fail(fault: Fault, requestId: string): string {
    return geminiFailure(fault, requestId)
  }

  private piece(parts: readonly Json[]): string {
    return parts.length === 0 ? '' : encodeEvent(JSON.stringify(answer(this.facts, parts)))
  }
}
