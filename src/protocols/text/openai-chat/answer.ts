// Chat answers, whole and streamed: passed through, read into the canonical form, and written from it.

import type { TextTraits } from '../../../catalog/traits.ts'
import type { Fault } from '../../../kernel/fault.ts'
import { given, isObject, type Json, objectOf, objects, text } from '../../../kernel/json.ts'
import { encodeEvent, type SseEvent } from '../../../upstream/sse.ts'
import { type Answer, garbled } from '../../protocol.ts'
import { vendorFault } from '../../vendor-fault.ts'
import {
  type AnswerFacts,
  answerId,
  type CallPart,
  type Finish,
  inputText,
  type OutputPart,
  type Proof,
  type Reply,
  type ReplyEvent,
  textOf,
} from '../canonical.ts'
import { StreamReader, type StreamWriter } from '../reader.ts'
import { charsIn, readData, readWhole, renamed } from '../relay.ts'
import { chatReport, laterReport, readChatUsage, type TokenCounts, toUsage, writeChatUsage } from '../tokens.ts'
import { CHAT_KEEP_ALIVE, ChunkRepairer, chatFailure, chatFinish, repairAnswer } from './pass.ts'
import { joined, readThoughts } from './request.ts'

// Passes a chat vendor's whole answer to a chat caller: counts its usage and sets the model's public name; the rest is
// unchanged.

export function passChatAnswer(body: Buffer, uid: string, traits: TextTraits): Answer {
  const mends = traits.quirks.length > 0
  const whole = readWhole(body, mends ? 'utf8' : 'latin1')
  if (mends) repairAnswer(whole.value, traits.quirks)
  if (!Array.isArray(whole.value.choices)) throw garbled('no choices')
  const tokens = readChatUsage(chatReport(whole.value), traits, whole.value)
  return {
    body: mends ? JSON.stringify({ ...whole.value, model: uid }) : renamed(body, whole, uid),
    contentType: 'application/json',
    usage: toUsage(tokens),
    price: tokens?.served,
    outputChars: tokens ? undefined : outputChars(whole.value.choices),
  }
}

function outputChars(choices: readonly unknown[]): number {
  let chars = 0
  for (const choice of objects(choices)) {
    const { audio: _, ...message } = objectOf(choice.message)
    chars += charsIn(message)
  }
  return chars
}

// Whole chat completions: read into the canonical form and written from it.

const FINISHES: Readonly<Record<string, Finish>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'calls',
  function_call: 'calls',
  content_filter: 'filter',
}

/** An unknown reason counts as a tool call if there are calls, else as an ordinary end. */
function readFinish(reason: unknown, called: boolean): Finish {
  const known = FINISHES[String(reason)] ?? 'stop'
  // Some vendors say "stop" although they called tools.
  return known === 'stop' && called ? 'calls' : known
}

const NAMES = { stop: 'stop', length: 'length', calls: 'tool_calls', filter: 'content_filter' } as const

function finishName(finish: Finish, request: Json): string {
  return finish === 'calls' && isLegacy(request) ? 'function_call' : NAMES[finish]
}

export function readChatReply(value: Json, traits?: TextTraits): Reply {
  const choice = objects(value.choices)[0]
  // A filtered choice may come without a message.
  if (!choice || (!isObject(choice.message) && !choice.finish_reason)) throw garbled('no choice with a message')
  const message = objectOf(choice.message)
  const parts: OutputPart[] = readThoughts(message)
  const content = text(message.content) ?? joined(message.content)
  if (content !== '') parts.push({ kind: 'text', text: content })
  if (typeof message.refusal === 'string' && message.refusal !== '')
    parts.push({ kind: 'refusal', text: message.refusal })
  const calls = objects(message.tool_calls).map(readReplyCall)
  // Some vendors write a call without a name for none.
  if (calls.length === 0 && isObject(message.function_call) && message.function_call.name)
    calls.push(readReplyCall({ id: 'call_function_1', function: message.function_call }))
  parts.push(...calls)
  const finish = readFinish(choice.finish_reason, calls.length > 0)
  return { parts, finish, tokens: readChatUsage(chatReport(value), traits, value) }
}

function readReplyCall(call: Json, i = 0): CallPart {
  const custom = isObject(call.custom) ? call.custom : undefined
  const called = custom ?? objectOf(call.function)
  return given({
    kind: 'call',
    id: text(call.id) ?? `call_${i}`,
    name: text(called.name) ?? '',
    input: inputText(custom ? custom.input : called.arguments) ?? '',
    custom: custom ? true : undefined,
    extra: call.extra_content,
  })
}

export function writeChatReply(reply: Reply, facts: AnswerFacts): Json {
  const { parts } = reply
  const content = textOf(parts, 'text')
  const refusal = textOf(parts, 'refusal')
  const calls = parts.filter((part) => part.kind === 'call')
  const message: Json = {
    role: 'assistant',
    content: content === '' && (calls.length > 0 || refusal !== '') ? null : content,
    refusal: refusal === '' ? null : refusal,
  }
  const thought = textOf(parts, 'thought')
  if (thought !== '') message.reasoning_content = thought
  const details = parts.flatMap((part) => (part.kind === 'thought' ? writeDetails(part.text, part.proof) : []))
  if (details.length > 0) message.reasoning_details = details
  const [first] = calls
  if (first && isLegacy(facts.request)) message.function_call = { name: first.name, arguments: first.input }
  else if (first) message.tool_calls = calls.map(writeCall)
  return {
    id: answerId('chatcmpl-', facts),
    object: 'chat.completion',
    created: facts.createdSeconds,
    model: facts.uid,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishName(reply.finish, facts.request) }],
    ...(reply.tokens ? { usage: writeUsage(reply.tokens) } : {}),
  }
}

function writeCall(call: CallPart): Json {
  if (call.custom) return { id: call.id, type: 'custom', custom: { name: call.name, input: call.input } }
  return given({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.input || '{}' },
    extra_content: call.extra,
  })
}

/** Details that a caller returns unread in the next turn, so that the vendor recognises its own thought. */
function writeDetails(thought: string, proof: Proof): Json[] {
  if (proof.redacted !== undefined) return [{ type: 'redacted_thinking', data: proof.redacted }]
  if (proof.encrypted !== undefined)
    return [{ type: 'reasoning.encrypted', id: proof.encrypted.id, data: proof.encrypted.data }]
  if (proof.google !== undefined) return [{ type: 'thought_signature', data: proof.google }]
  return proof.signature === undefined ? [] : [{ type: 'thinking', text: thought, signature: proof.signature }]
}

/** Many tools also look for the cache counts at the top level. */
function writeUsage(tokens: TokenCounts): Json {
  return {
    ...writeChatUsage(tokens),
    cache_read_input_tokens: tokens.cached,
    cache_creation_input_tokens: tokens.cacheWrite,
  }
}

/** Whether the caller uses the deprecated pair `functions` and `function_call`. */
function isLegacy(request: Json): boolean {
  return Array.isArray(request.functions) && !Array.isArray(request.tools)
}

// Reads a chat vendor's stream into the canonical form.

export class ChatReader extends StreamReader {
  override readonly repeats: boolean
  private readonly mender: ChunkRepairer | undefined
  private readonly traits: TextTraits
  private reported: unknown
  private started = false
  private finish: unknown
  /** Calls by the vendor's index or, if there is none, by their order. */
  private readonly calls = new Map<number, { readonly id: string; readonly key: number }>()
  private legacyKey: number | undefined

  constructor(traits: TextTraits) {
    super()
    const { quirks } = traits
    this.traits = traits
    this.mender = quirks.length > 0 ? new ChunkRepairer(quirks) : undefined
    // The repair of an event may depend on earlier events.
    this.repeats = this.mender === undefined
  }

  read(event: SseEvent): ReplyEvent[] {
    if (event.data.trim() === '[DONE]') {
      this.close()
      return this.lastEvents()
    }
    const data = readData(event.data)
    if (!isObject(data)) return []
    if (data.error !== undefined && data.error !== null) {
      this.fault = vendorFault(data.error)
      return []
    }
    this.mender?.mend(data)
    this.reported = laterReport(this.reported, chatReport(data))
    this.tokens = readChatUsage(this.reported, this.traits, data) ?? this.tokens
    const events: ReplyEvent[] = []
    if (!this.started) {
      this.started = true
      events.push({ type: 'start' })
    }
    // Converted requests have one choice.
    for (const choice of objects(data.choices)) {
      if ((choice.index ?? 0) !== 0) continue
      if (isObject(choice.delta)) this.readDelta(choice.delta, events)
      // Some vendors send an empty reason with every piece.
      if (choice.finish_reason) this.finish = choice.finish_reason
    }
    return events
  }

  /** A finish reason and a clean end of stream end the answer, even without [DONE]. */
  override end(): ReplyEvent[] {
    if (this.terminal || this.finish === undefined) return []
    this.close()
    return this.lastEvents()
  }

  private close(): void {
    if (!this.fault) this.terminal = true
  }

  private lastEvents(): ReplyEvent[] {
    if (!this.terminal) return []
    const finish: Finish = readFinish(this.finish, this.calls.size > 0 || this.legacyKey !== undefined)
    return [{ type: 'end', finish }]
  }

  private readDelta(delta: Json, events: ReplyEvent[]): void {
    for (const thought of readThoughts(delta)) {
      if (thought.text !== '') events.push({ type: 'thought', text: thought.text })
      if (Object.keys(thought.proof).length > 0) events.push({ type: 'proof', proof: thought.proof })
    }
    const content = text(delta.content) ?? joined(delta.content)
    if (content) events.push({ type: 'text', text: content })
    const refusal = text(delta.refusal)
    if (refusal) events.push({ type: 'refusal', text: refusal })
    for (const call of objects(delta.tool_calls)) this.readCall(call, events)
    if (isObject(delta.function_call)) this.readFunction(delta.function_call, events)
  }

  private readCall(call: Json, events: ReplyEvent[]): void {
    const custom = isObject(call.custom) ? call.custom : undefined
    const called = custom ?? objectOf(call.function)
    const id = text(call.id) ?? ''
    // Without an index, a new id starts a call, and anything else continues the last one.
    const index = typeof call.index === 'number' ? call.index : this.indexOf(id)
    let known = this.calls.get(index)
    if (!known) {
      const key = this.calls.size
      known = { id: id || `call_${key}`, key }
      this.calls.set(index, known)
      const extra = call.extra_content
      events.push({
        type: 'call',
        key,
        id: known.id,
        name: text(called.name) ?? '',
        ...(custom ? { custom: true } : {}),
        ...(extra === undefined ? {} : { extra }),
      })
    }
    const input = inputText(custom ? custom.input : called.arguments)
    if (input) events.push({ type: 'input', key: known.key, text: input })
  }

  private indexOf(id: string): number {
    const last = this.calls.size - 1
    if (id === '') return Math.max(0, last)
    for (const [index, call] of this.calls) if (call.id === id) return index
    return last + 1
  }

  private readFunction(called: Json, events: ReplyEvent[]): void {
    if (this.legacyKey === undefined) {
      if (!called.name) return
      this.legacyKey = 0
      events.push({ type: 'call', key: 0, id: 'call_function_1', name: text(called.name) ?? '' })
    }
    const input = inputText(called.arguments)
    if (input) events.push({ type: 'input', key: 0, text: input })
  }
}

// Writes the canonical form as a chat stream.

export class ChatWriter implements StreamWriter {
  readonly keepAlive = CHAT_KEEP_ALIVE
  private readonly facts: AnswerFacts
  /** The start of every chunk: id, time and model stay the same. */
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
    // A call without any input gets an empty object, because readers parse the input in any case.
    this.inputs.forEach((given, key) => {
      if (!given && !this.custom[key]) out += this.input(key, '{}')
    })
    return out + this.chunk({}, JSON.stringify(finishName(finish, this.facts.request)))
  }

  private chunk(delta: Json, finish: string): string {
    return `data: ${this.head},"choices":[{"index":0,"delta":${JSON.stringify(delta)},"logprobs":null,"finish_reason":${finish}}]}\n\n`
  }
}
