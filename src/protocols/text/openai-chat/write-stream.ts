// Neutral words as a chat stream.
import type { Fault } from '../../../kernel/fault.ts'
import { encodeEvent } from '../../../upstream/sse.ts'
import type { Json } from '../../check.ts'
import { type AnswerFacts, answerId, type Finish, type ReplyEvent } from '../dialogue.ts'
import type { StreamWriter } from '../reader.ts'
import type { TokenCounts } from '../tokens.ts'
import { CHAT_KEEP_ALIVE, chatFailure, chatFinish } from './observe.ts'
import { finishName, isLegacy, writeDetails, writeUsage } from './reply.ts'

export class ChatWriter implements StreamWriter {
  readonly keepAlive = CHAT_KEEP_ALIVE
  private readonly facts: AnswerFacts
  /** What every chunk begins with: the same id, time and model throughout. */
  private readonly head: string
  private readonly legacy: boolean
  private started = false
  private thought = ''
  private readonly inputs: boolean[] = []
  private readonly custom: boolean[] = []

  constructor(facts: AnswerFacts) {
    this.facts = facts
    this.legacy = isLegacy(facts.request)
    const chunk = {
      id: answerId('chatcmpl-', facts),
      object: 'chat.completion.chunk',
      created: facts.createdSeconds,
      model: facts.uid,
    }
    this.head = JSON.stringify(chunk).slice(0, -1)
  }

  write(event: ReplyEvent): string {
    switch (event.type) {
      case 'start':
        return this.start()
      case 'text':
        return this.delta({ content: event.text })
      case 'refusal':
        return this.delta({ refusal: event.text })
      case 'thought':
        this.thought += event.text
        return this.delta({ reasoning_content: event.text })
      case 'proof': {
        const details = writeDetails(this.thought, event.proof)
        this.thought = ''
        return details.length > 0 ? this.delta({ reasoning_details: details }) : ''
      }
      case 'call':
        return this.call(event)
      case 'input':
        return this.input(event.key, event.text)
      case 'end':
        return this.end(event.finish)
      case 'proof-pending':
        return ''
      case 'ping':
        return this.keepAlive
    }
  }

  finish(tokens: TokenCounts | undefined, comment: string): string {
    const usage =
      this.facts.includeUsage && tokens
        ? encodeEvent(`${this.head},"choices":[],"usage":${JSON.stringify(writeUsage(tokens))}}`)
        : ''
    return chatFinish(usage, comment)
  }

  fail(fault: Fault, requestId: string): string {
    return chatFailure(fault, requestId)
  }

  private start(): string {
    if (this.started) return ''
    this.started = true
    return this.chunk({ role: 'assistant', content: '' }, 'null')
  }

  private delta(delta: Json): string {
    return this.start() + this.chunk(delta, 'null')
  }

  private call({ key, id, name, custom, extra }: ReplyEvent & { type: 'call' }): string {
    this.inputs[key] = false
    this.custom[key] = custom === true
    if (this.legacy) return key === 0 ? this.delta({ function_call: { name, arguments: '' } }) : ''
    const call = custom
      ? { index: key, id, type: 'custom', custom: { name, input: '' } }
      : {
          index: key,
          id,
          type: 'function',
          function: { name, arguments: '' },
          ...(extra === undefined ? {} : { extra_content: extra }),
        }
    return this.delta({ tool_calls: [call] })
  }

  private input(key: number, text: string): string {
    this.inputs[key] = true
    if (this.legacy) return key === 0 ? this.delta({ function_call: { arguments: text } }) : ''
    return this.delta({
      tool_calls: [
        this.custom[key] ? { index: key, custom: { input: text } } : { index: key, function: { arguments: text } },
      ],
    })
  }

  private end(finish: Finish): string {
    let out = this.start()
    // A call without a single piece of input has no input; readers want to parse it all the same.
    this.inputs.forEach((given, key) => {
      if (!given && !this.custom[key]) out += this.input(key, '{}')
    })
    return out + this.chunk({}, JSON.stringify(finishName(finish, this.facts.request)))
  }

  private chunk(delta: Json, finish: string): string {
    return `data: ${this.head},"choices":[{"index":0,"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":${finish}}]}\n\n`
  }
}
