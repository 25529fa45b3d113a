// A request and an answer between a caller and a vendor who both speak this format.
import type { Fault } from '../../../kernel/fault.ts'
import { type JsonText, memberSpan, splice } from '../../../kernel/json.ts'
import type { Usage } from '../../../meter/usage.ts'
import { bytesToText, EVENT_BYTES_MAX, encodeJson } from '../../../upstream/sse.ts'
import { isObject, type Json, objects, text } from '../../check.ts'
import type { Answer } from '../../protocol.ts'
import { geminiError, vendorFault } from '../../vendor-fault.ts'
import type { CheckedAsk, PassOptions } from '../format.ts'
import { dataOf, Observer, readData } from '../relay.ts'
import { laterReport, readGeminiUsage, searchesOf, toUsage } from '../tokens.ts'
import { readWhole, renamed } from '../whole.ts'
import { FOREIGN, inSnakeCase, member, objectAt } from './member.ts'
import { blockReason } from './reply.ts'

/** What the address says at both doors, and the body only on its way through here. */
const ADDRESSED = ['model', 'stream', 'alt']

export function passGemini(json: JsonText, ask: CheckedAsk, { traits, outputTokensCap }: PassOptions): string {
  const replace: Record<string, string> = {}
  const add: Record<string, string> = {}
  if (ask.tokensMax === undefined && outputTokensCap !== undefined) {
    const name = json.member('generationConfig') ? 'generationConfig' : inSnakeCase('generationConfig')
    const { max_output_tokens: _, ...config } = objectAt(json.value, 'generationConfig')
    const limited = JSON.stringify({ ...config, maxOutputTokens: outputTokensCap })
    if (json.member(name)) replace[name] = limited
    else add.generationConfig = limited
  }
  // A conversation may come from another family: signatures that this vendor did not make would be refused.
  if (json.text.includes(`"${FOREIGN}`)) replace.contents = JSON.stringify(withoutForeign(json.value.contents))
  return splice(json, { replace, add, remove: [...ADDRESSED, ...traits.dropParams] })
}

function withoutForeign(contents: unknown): Json[] {
  return objects(contents).map((content) => ({
    ...content,
    parts: objects(content.parts).flatMap((part) => {
      const signature = member(part, 'thoughtSignature')
      if (typeof signature !== 'string' || !signature.startsWith(FOREIGN)) return [part]
      const { thoughtSignature: _, thought_signature: __, ...rest } = part
      return rest.thought === true ? [] : [rest]
    }),
  }))
}

export function passGeminiAnswer(body: Buffer, uid: string): Answer {
  const whole = readWhole(body)
  return {
    body: renamed(body, whole, uid, 'modelVersion'),
    contentType: 'application/json',
    usage: toUsage(readGeminiUsage(whole.value.usageMetadata, searchesOf(whole.value.candidates))),
    outputChars: objects(whole.value.candidates).reduce((sum, candidate) => sum + charsOf(candidate), 0),
  }
}

function charsOf(candidate: Json): number {
  return objects(objectAt(candidate, 'content').parts).reduce(
    (sum, part) =>
      sum + (text(part.text) ?? '').length + (part.functionCall ? JSON.stringify(part.functionCall).length : 0),
    0,
  )
}

/** Google's SDKs take every block for an event with JSON: a comment, or a blank line too many, ends the stream with an error. */
export const GEMINI_KEEP_ALIVE = ''

/** The event that ends a broken stream; there is no other end than that of the connection. */
export function geminiFailure(fault: Fault, requestId: string): string {
  return encodeJson({ error: geminiError(fault, requestId) })
}

export class GeminiObserver extends Observer {
  readonly keepAlive = GEMINI_KEEP_ALIVE
  private readonly uid: string
  private readonly n: number
  private readonly finished = new Set<unknown>()
  private counted: unknown
  private searches = 0
  /** From the event on with which the last candidate ended. */
  private held = ''

  constructor(uid: string, { n }: CheckedAsk) {
    super()
    this.uid = uid
    this.n = n
  }

  get usage(): Usage | undefined {
    return this.isComplete || this.terminal ? this.promptUsage : undefined
  }

  get promptUsage(): Usage | undefined {
    return toUsage(readGeminiUsage(this.counted, this.searches))
  }

  private get isComplete(): boolean {
    return this.finished.size >= this.n
  }

  see(block: string): string {
    const data = this.fault || dataOf(block).trim() === '[DONE]' ? undefined : readData(dataOf(block))
    if (!isObject(data)) return ''
    if (isObject(data.error)) {
      const told = readData(bytesToText(dataOf(block)))
      this.fault = vendorFault(isObject(told) ? told.error : told)
      return ''
    }
    this.look(data)
    const out = this.renamed(block, data)
    if (!this.isComplete) return out
    // A vendor that does not stop after the end is not kept in memory.
    const passed = this.held.length + out.length > EVENT_BYTES_MAX ? this.held : ''
    this.held = passed === '' ? this.held + out : out
    return passed
  }

  override end(): void {
    // Some vendors give fewer candidates than were asked for.
    if (this.finished.size > 0 && !this.fault) this.terminal = true
  }

  finish(): string {
    return bytesToText(this.held)
  }

  fail(fault: Fault, requestId: string): string {
    return geminiFailure(fault, requestId)
  }

  private look(data: Json): void {
    this.counted = laterReport(this.counted, data.usageMetadata)
    // A later event repeats what an earlier one said, or adds to it.
    this.searches = Math.max(this.searches, searchesOf(data.candidates))
    for (const candidate of objects(data.candidates)) {
      const chars = charsOf(candidate)
      if (chars > 0) this.output.addBytes(chars)
      if (typeof candidate.finishReason === 'string') this.finished.add(candidate.index ?? 0)
    }
    if (blockReason(data) !== undefined) for (let i = 0; i < this.n; i++) this.finished.add(i)
  }

  private renamed(block: string, { modelVersion }: Json): string {
    const at = block.startsWith('event:') ? block.indexOf('\n') + 1 : 0
    const canonical = at === 0 ? block : block.slice(at)
    if (modelVersion === undefined || modelVersion === this.uid) return canonical
    const span = memberSpan(canonical, 'modelVersion', canonical.indexOf('{'))
    return span ? `${canonical.slice(0, span[0])}"${this.uid}"${canonical.slice(span[1])}` : canonical
  }
}
