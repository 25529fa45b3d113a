// Neutral words as a stream of this format. Calls are whole here, so that their inputs are gathered first.
import type { Fault } from '../../../kernel/fault.ts'
import { encodeJson } from '../../../upstream/sse.ts'
import type { Json } from '../../check.ts'
import type { AnswerFacts, Finish, ReplyEvent } from '../dialogue.ts'
import type { StreamWriter } from '../reader.ts'
import type { TokenCounts } from '../tokens.ts'
import { GEMINI_KEEP_ALIVE, geminiFailure } from './pass.ts'
import { answer, finishReason, writeCall, writeThought } from './reply.ts'

export class GeminiWriter implements StreamWriter {
  readonly keepAlive = GEMINI_KEEP_ALIVE
  private readonly facts: AnswerFacts
  /** What stands around the parts of every piece. */
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
    // Clients take an answer without parts for none at all.
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
