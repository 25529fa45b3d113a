// Neutral words as a Responses stream: items are opened, filled and closed, and the last event repeats them all.
import type { Fault } from '../../../kernel/fault.ts'
import { encodeJson } from '../../../upstream/sse.ts'
import type { Json } from '../../check.ts'
import { packExtra, packProof } from '../carry.ts'
import type { AnswerFacts, Finish, ReplyEvent } from '../dialogue.ts'
import type { StreamWriter } from '../reader.ts'
import { isWholeJson } from '../relay.ts'
import type { TokenCounts } from '../tokens.ts'
import { Namespaces } from './namespaces.ts'
import { RESPONSES_KEEP_ALIVE, responsesFailure, responsesFinish } from './pass.ts'
import { callItem, itemId, messageItem, responseObject, textPart, thoughtItem } from './reply.ts'

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
  /** Calls may be open side by side, since some vendors interleave their inputs. */
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
    return responsesFailure(
      fault,
      this.started
        ? { ...responseObject(this.facts), output: this.output.filter((item) => item !== undefined) }
        : undefined,
      this.sequence,
    )
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
    for (const [other, state] of this.calls) if (isWholeJson(state.input)) out += this.closeCall(other, state)
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

  /** Written out, because nearly all of a stream is made of these. */
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
