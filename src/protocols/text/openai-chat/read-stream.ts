// A chat vendor's stream in neutral words.

import type { TextTraits } from '../../../catalog/traits.ts'
import type { SseEvent } from '../../../upstream/sse.ts'
import { isObject, type Json, objects, text } from '../../check.ts'
import { vendorFault } from '../../vendor-fault.ts'
import type { Finish, ReplyEvent } from '../dialogue.ts'
import { StreamReader } from '../reader.ts'
import { readData } from '../relay.ts'
import { laterReport, readChatUsage } from '../tokens.ts'
import { ChunkMender } from './mend.ts'
import { readThoughts } from './read-request.ts'
import { readFinish } from './reply.ts'

export class ChatReader extends StreamReader {
  override readonly repeats: boolean
  private readonly mender: ChunkMender | undefined
  private readonly traits: TextTraits
  private reported: unknown
  private started = false
  private finish: unknown
  /** Calls by the vendor's index or, where it gives none, by their order. */
  private readonly calls = new Map<number, { readonly id: string; readonly key: number }>()
  private legacyKey: number | undefined

  constructor(traits: TextTraits) {
    super()
    const { quirks } = traits
    this.traits = traits
    this.mender = quirks.length > 0 ? new ChunkMender(quirks) : undefined
    // What is mended may depend on what came before.
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
    this.reported = laterReport(this.reported, data.usage)
    this.tokens = readChatUsage(this.reported, this.traits) ?? this.tokens
    const events: ReplyEvent[] = []
    if (!this.started) {
      this.started = true
      events.push({ type: 'start' })
    }
    // Converted asks have one choice.
    for (const choice of objects(data.choices)) {
      if ((choice.index ?? 0) !== 0) continue
      if (isObject(choice.delta)) this.readDelta(choice.delta, events)
      if (choice.finish_reason !== undefined && choice.finish_reason !== null) this.finish = choice.finish_reason
    }
    return events
  }

  /** A finish and a clean end are a terminal event, even without [DONE]. */
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
    const content = text(delta.content)
    if (content) events.push({ type: 'text', text: content })
    const refusal = text(delta.refusal)
    if (refusal) events.push({ type: 'refusal', text: refusal })
    for (const call of objects(delta.tool_calls)) this.readCall(call, events)
    if (isObject(delta.function_call)) this.readFunction(delta.function_call, events)
  }

  private readCall(call: Json, events: ReplyEvent[]): void {
    const custom = isObject(call.custom) ? call.custom : undefined
    const called = custom ?? (isObject(call.function) ? call.function : {})
    const id = text(call.id) ?? ''
    // Without an index, an id that we have not seen starts a call, and everything else continues the last one.
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
    const input = text(custom ? custom.input : called.arguments)
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
      this.legacyKey = 0
      events.push({ type: 'call', key: 0, id: 'call_function_1', name: text(called.name) ?? '' })
    }
    const input = text(called.arguments)
    if (input) events.push({ type: 'input', key: 0, text: input })
  }
}
