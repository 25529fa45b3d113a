// A Messages request and answer between a caller and a vendor that both use this format. New fields appear every month,
// so requests and answers are edited rather than rebuilt from known fields.
import type { TextTraits } from '../../../catalog/traits.ts'
import type { Fault } from '../../../kernel/fault.ts'
import {
  isObject,
  type Json,
  type JsonText,
  memberSpan,
  objectOf,
  objects,
  splice,
  text,
} from '../../../kernel/json.ts'
import type { Usage } from '../../../meter/usage.ts'
import { bytesToText, encodeComment, encodeJson, type SseEvent } from '../../../upstream/sse.ts'
import { type Answer, garbled, type PriceAttributes } from '../../protocol.ts'
import { messagesError, vendorFault } from '../../vendor-fault.ts'
import { inputObject, PACKED } from '../canonical.ts'
import type { CheckedRequest, PassOptions } from '../format.ts'
import { dataOf, nameOf, Observer, readData, readWhole, renamed, stringEnd } from '../relay.ts'
import { mergedReports, readMessagesUsage, toUsage } from '../tokens.ts'
import { knownThinking } from './request.ts'

export function passMessages(
  json: JsonText,
  paidRequest: CheckedRequest,
  { model, traits, outputTokensCap }: PassOptions,
): string {
  const replace: Record<string, string> = { model: JSON.stringify(model) }
  if (outputTokensCap !== undefined) replace.max_tokens = String(outputTokensCap)
  const messages = json.text.includes(`"${PACKED}`) ? withoutForeign(json.value.messages) : undefined
  if (messages) replace.messages = JSON.stringify(messages)
  const remove = [...traits.dropParams]
  const { thinking, output_config: config } = json.value
  if (traits.effort === 'budget' && isObject(thinking) && thinking.type === 'adaptive') {
    const { effort, ...others } = objectOf(config)
    const known = knownThinking(thinking, text(effort), { traits, tokensMax: paidRequest.tokensMax ?? 0 })
    if (known && isThoughtThrough(messages ?? objects(json.value.messages))) replace.thinking = JSON.stringify(known)
    else remove.push('thinking')
    if (effort !== undefined && Object.keys(others).length > 0) replace.output_config = JSON.stringify(others)
    else if (effort !== undefined) remove.push('output_config')
  }
  return splice(json, { replace, remove })
}

/**
 * Whether every turn with tool calls has its thinking block: with a thinking budget, the vendor rejects a turn without
 * one.
 */
function isThoughtThrough(messages: readonly Json[]): boolean {
  return messages.every(({ role, content }) => {
    const types = role === 'assistant' ? objects(content).map(({ type }) => type) : []
    return !types.includes('tool_use') || types.includes('thinking') || types.includes('redacted_thinking')
  })
}

/** Removes thinking blocks that another vendor signed, because this vendor would reject them. */
function withoutForeign(messages: unknown): Json[] {
  const isForeign = (block: Json) => [block.signature, block.data].some((mark) => text(mark)?.startsWith(PACKED))
  return objects(messages).map((message) =>
    Array.isArray(message.content)
      ? { ...message, content: objects(message.content).filter((block) => !isForeign(block)) }
      : message,
  )
}

export function passMessagesAnswer(body: Buffer, uid: string, _traits: TextTraits, { keeps }: CheckedRequest): Answer {
  const whole = readWhole(body)
  const outputChars = objects(whole.value.content).reduce(
    (sum, block) =>
      sum +
      (text(block.text) ?? text(block.thinking) ?? '').length +
      (block.input === undefined ? 0 : JSON.stringify(block.input).length),
    0,
  )
  const tokens = readMessagesUsage(whole.value.usage)
  return {
    body: renamed(body, whole, uid),
    contentType: 'application/json',
    storedAs: idsOf(whole.value, keeps),
    usage: toUsage(tokens),
    price: tokens?.served,
    outputChars,
  }
}

/** The ids to record: the last message of a thread, and the container in which code ran. */
function idsOf({ id, container }: Json, keeps = false): string[] {
  return [keeps ? text(id) : undefined, isObject(container) ? text(container.id) : undefined].filter(
    (one) => one !== undefined,
  )
}

export const MESSAGES_KEEP_ALIVE = 'event: ping\ndata: {"type": "ping"}\n\n'

/** The frame that ends a broken stream. SDKs recognise it only by its event name, and nothing may follow it. */
export function messagesFailure(fault: Fault, requestId: string): string {
  return encodeJson({ type: 'error', error: messagesError(fault), request_id: requestId }, 'error')
}

const TEXT_DELTA = /"delta":\{"type":"[a-z_]{1,40}","(?:text|thinking|partial_json)":"/

export class MessagesObserver extends Observer {
  readonly keepAlive = MESSAGES_KEEP_ALIVE
  storedAs: readonly string[] = []
  private readonly uid: string
  private readonly keeps: boolean
  private counted: Json = {}
  private final = false
  private held = ''
  private searches = 0

  constructor(uid: string, { keeps = false }: CheckedRequest) {
    super()
    this.uid = uid
    this.keeps = keeps
  }

  /** The counts at the start are preliminary: usage is reported once the vendor has counted the output. */
  get usage(): Usage | undefined {
    return this.final ? toUsage(readMessagesUsage(this.counted)) : undefined
  }

  get price(): PriceAttributes | undefined {
    return readMessagesUsage(this.counted)?.served
  }

  get promptUsage(): Usage | undefined {
    return toUsage(readMessagesUsage(this.counted))
  }

  get uses(): Usage | undefined {
    return this.searches > 0 ? { webSearch: this.searches } : undefined
  }

  see(block: string): string {
    if (this.terminal || this.fault) return ''
    switch (nameOf(block)) {
      case undefined:
        return this.seeUnnamed(block)
      case 'content_block_delta': {
        this.count(block)
        return block
      }
      case 'content_block_start':
        if (/"server_tool_use"/.test(block) && /"web_search"/.test(block)) this.searches += 1
        return block
      case 'message_start':
        return this.seeStart(block)
      case 'message_delta': {
        const data = readData(dataOf(block))
        this.counted = mergedReports(this.counted, isObject(data) ? data.usage : undefined)
        if (isObject(data) && isObject(data.delta)) this.storedAs = [...this.storedAs, ...idsOf(data.delta)]
        this.final = isObject(data) && isObject(data.usage)
        return block
      }
      case 'message_stop':
        this.held = block
        this.terminal = true
        return ''
      case 'error': {
        const data = readData(bytesToText(dataOf(block)))
        this.fault = vendorFault(isObject(data) ? (data.error ?? data) : data)
        return ''
      }
    }
    return block
  }

  /** The text is the string after the delta's type. */
  private count(block: string): void {
    const found = TEXT_DELTA.exec(block)
    const start = found ? found.index + found[0].length : -1
    const end = start < 0 ? -1 : stringEnd(block, start)
    if (end >= 0) this.output.addBytes(end - start)
    else {
      const data = readData(dataOf(block))
      this.output.addDelta(isObject(data) ? data.delta : undefined)
    }
  }

  finish(comment: string): string {
    return encodeComment(comment) + bytesToText(this.held)
  }

  fail(fault: Fault, requestId: string): string {
    return messagesFailure(fault, requestId)
  }

  private seeStart(block: string): string {
    const data = readData(dataOf(block))
    const message = objectOf(objectOf(data).message)
    this.counted = mergedReports({}, message.usage)
    this.storedAs = idsOf(message, this.keeps)
    const span = memberSpan(block, 'message', block.length - 2 - dataOf(block).length)
    const model = span && memberSpan(block, 'model', span[0])
    if (!model || message.model === this.uid) return block
    return `${block.slice(0, model[0])}"${this.uid}"${block.slice(model[1])}`
  }
}

// Converts between a whole message and its stream: for a vendor that answers whole to a streaming caller, and for a
// vendor that can only stream.

export function unrollMessage(value: Json): string {
  if (!Array.isArray(value.content)) throw garbled('no content')
  const { content, stop_reason: reason = 'end_turn', stop_sequence: sequence = null, usage, ...rest } = value
  const message = { ...rest, content: [], stop_reason: null, stop_sequence: null, ...(usage ? { usage } : {}) }
  return (
    event('message_start', { message }) +
    objects(content).map(unrollBlock).join('') +
    event('message_delta', { delta: { stop_reason: reason, stop_sequence: sequence }, ...(usage ? { usage } : {}) }) +
    event('message_stop', {})
  )
}

/** A block of an unknown kind is sent whole with its start event, as the format does with tool results. */
function unrollBlock(block: Json, index: number): string {
  const [empty, deltas] = piecesOf(block)
  return (
    event('content_block_start', { index, content_block: empty }) +
    deltas.map((delta) => event('content_block_delta', { index, delta })).join('') +
    event('content_block_stop', { index })
  )
}

function piecesOf(block: Json): [empty: Json, deltas: Json[]] {
  switch (block.type) {
    case 'text':
      return [{ ...block, text: '' }, [{ type: 'text_delta', text: block.text ?? '' }]]
    case 'thinking':
      return [
        { ...block, thinking: '', signature: '' },
        [
          { type: 'thinking_delta', thinking: block.thinking ?? '' },
          { type: 'signature_delta', signature: block.signature ?? '' },
        ],
      ]
    case 'tool_use':
    case 'server_tool_use':
      return [{ ...block, input: {} }, [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input ?? {}) }]]
  }
  return [block, []]
}

export function rollUpMessage(events: readonly SseEvent[]): Json {
  let whole: Json = {}
  let done = false
  const blocks = new Map<number, Json>()
  const inputs = new Map<number, string>()
  for (const event of events) {
    const data = readData(event.data)
    if (!isObject(data) || done) continue
    const type = text(data.type) ?? event.event
    const index = Number(data.index)
    if (type === 'error') throw vendorFault(data.error ?? data)
    if (type === 'message_start' && isObject(data.message)) whole = { ...data.message }
    if (type === 'content_block_start' && isObject(data.content_block)) blocks.set(index, { ...data.content_block })
    const block = blocks.get(index)
    if (type === 'content_block_delta' && block && isObject(data.delta)) {
      if (data.delta.type === 'input_json_delta')
        inputs.set(index, (inputs.get(index) ?? '') + (text(data.delta.partial_json) ?? ''))
      else addDelta(block, data.delta)
    }
    if (type === 'message_delta') {
      if (isObject(data.delta)) whole = { ...whole, ...data.delta }
      whole.usage = mergedReports(objectOf(whole.usage), data.usage)
    }
    done = type === 'message_stop'
  }
  if (!done) throw garbled('the stream has no end')
  for (const [index, block] of blocks) if (inputs.get(index)) block.input = inputObject(inputs.get(index) ?? '')
  return { ...whole, content: [...blocks].sort(([a], [b]) => a - b).map(([, block]) => block) }
}

function addDelta(block: Json, delta: Json): void {
  for (const name of ['text', 'thinking', 'signature'])
    if (typeof delta[name] === 'string') block[name] = (text(block[name]) ?? '') + delta[name]
  if (delta.citation !== undefined) block.citations = [...objects(block.citations), delta.citation]
}

export function event(type: string, members: Json): string {
  return encodeJson({ type, ...members }, type)
}
