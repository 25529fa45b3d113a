// A stream of this format in neutral words.
import type { SseEvent } from '../../../upstream/sse.ts'
import { isObject, type Json, objects, text } from '../../check.ts'
import { vendorFault } from '../../vendor-fault.ts'
import type { OutputPart, ReplyEvent } from '../dialogue.ts'
import { StreamReader } from '../reader.ts'
import { readData } from '../relay.ts'
import { laterReport, readGeminiUsage } from '../tokens.ts'
import { objectAt } from './member.ts'
import { blockReason, readGeminiFinish, readGeminiParts } from './reply.ts'

export class GeminiReader extends StreamReader {
  private reported: unknown
  private started = false
  private calls = 0
  private texts = 0
  private reason: string | undefined

  read(event: SseEvent): ReplyEvent[] {
    const data = event.data.trim() === '[DONE]' ? undefined : readData(event.data)
    if (!isObject(data)) return []
    if (isObject(data.error)) {
      this.fault = vendorFault(data.error)
      return []
    }
    const events: ReplyEvent[] = this.started ? [] : [{ type: 'start' }]
    this.started = true
    // Converted asks have one candidate.
    const candidate = objects(data.candidates)[0] ?? {}
    for (const part of readGeminiParts(objectAt(candidate, 'content'), text(data.responseId) ?? '', this.calls))
      this.add(part, events)
    this.reason = text(candidate.finishReason) ?? this.reason ?? blockReason(data)
    this.count(data)
    return events
  }

  /** The format has no last event: a reason to end and a clean end are one. */
  override end(): ReplyEvent[] {
    if (this.reason === undefined || this.fault) return []
    this.terminal = true
    return [{ type: 'end', finish: readGeminiFinish(this.reason, this.calls > 0) }]
  }

  /** Counts come with every piece, as they stand; only those at the end are the vendor's report. */
  private count({ usageMetadata }: Json): void {
    this.reported = laterReport(this.reported, usageMetadata)
    const tokens = readGeminiUsage(this.reported)
    if (!tokens) return
    this.promptTokens = tokens
    if (this.reason !== undefined) this.tokens = tokens
  }

  private add(part: OutputPart, events: ReplyEvent[]): void {
    if (part.kind === 'call') {
      const { id, name, input, extra } = part
      const key = this.calls++
      events.push({ type: 'call', key, id, name, ...(extra === undefined ? {} : { extra }) })
      events.push({ type: 'input', key, text: input })
      return
    }
    // A text is signed at its end.
    if (part.kind === 'text' && part.text !== '' && this.texts++ === 0) events.push({ type: 'proof-pending' })
    if (part.text !== '') events.push({ type: part.kind, text: part.text })
    if (part.kind === 'thought' && Object.keys(part.proof).length > 0) events.push({ type: 'proof', proof: part.proof })
  }
}
