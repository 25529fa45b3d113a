// The events of a streamed transcription or of streamed speech. They are relayed as they come; the last one waits for the settlement.
import type { Fault } from '../../../kernel/fault.ts'
import type { Usage } from '../../../meter/usage.ts'
import { bytesToText, encodeComment, encodeJson } from '../../../upstream/sse.ts'
import { isObject, type Json, text } from '../../check.ts'
import { dataOf, Observer, readData } from '../../text/relay.ts'
import { openaiError, vendorFault } from '../../vendor-fault.ts'

const DONE = new Set(['transcript.text.done', 'speech.audio.done'])
const PIECE = new Set(['transcript.text.delta', 'transcript.text.segment', 'speech.audio.delta'])

export class AudioObserver extends Observer {
  readonly keepAlive = ': ping\n'
  usage: Usage | undefined
  private readonly usageOf: (done: Json) => Usage | undefined
  private held = ''

  constructor(usageOf: (done: Json) => Usage | undefined) {
    super()
    this.usageOf = usageOf
  }

  see(block: string): string {
    if (this.terminal || this.fault) return ''
    const data = dataOf(block)
    if (data.trim() === '[DONE]') return ''
    // Only the beginning of an audio event is read: the type is there, and the rest is long.
    const type = /"type"\s*:\s*"([\w.]{1,60})"/.exec(data.slice(0, TYPE_CHARS))?.[1]
    if (type !== undefined && PIECE.has(type)) {
      this.output.addBytes(type === 'transcript.text.delta' ? charsOf(data) : data.length)
      return block
    }
    const value = readData(bytesToText(data))
    if (!isObject(value)) return ''
    if (value.type === 'error' || isObject(value.error)) {
      this.fault = vendorFault(isObject(value.error) ? value.error : value)
      return ''
    }
    if (!DONE.has(text(value.type) ?? '')) return block
    this.usage = this.usageOf(value)
    this.held = block
    this.terminal = true
    return ''
  }

  finish(comment: string): string {
    return encodeComment(comment) + bytesToText(this.held)
  }

  fail(fault: Fault, requestId: string): string {
    const { code, message } = fault
    return encodeJson({ type: 'error', error: openaiError(fault), code, message, requestId }, 'error')
  }
}

const TYPE_CHARS = 200

/** Counts the text only: its length shows how long the audio was. */
function charsOf(data: string): number {
  const value = readData(bytesToText(data))
  return isObject(value) ? (text(value.delta)?.length ?? 0) : 0
}

/** Turns a whole transcript into stream events, for vendors that do not stream. */
export function unrollTranscript(value: Json): string {
  const said = text(value.text) ?? ''
  const { usage, duration } = value
  const done = {
    type: 'transcript.text.done',
    text: said,
    ...(usage ? { usage } : {}),
    ...(duration ? { duration } : {}),
  }
  return encodeJson({ type: 'transcript.text.delta', delta: said }) + encodeJson(done)
}
