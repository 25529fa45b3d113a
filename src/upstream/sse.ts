// Server-sent events: bytes to events and back. Internally, text has one character per byte (latin1), so splitting a stream into events needs no
// decoding, and a character that was split between two chunks is whole again before it is decoded.
import { Fault } from '../kernel/fault.ts'

/** The longest event that is buffered. The largest legitimate one is a final Responses object with its whole output. */
export const EVENT_BYTES_MAX = 8 * 1024 * 1024

export interface SseEvent {
  /** The `event:` field; undefined when the stream named none. */
  readonly event: string | undefined
  readonly data: string
  readonly id: string | undefined
}

/**
 * Splits a stream into blocks that end with a blank line. Line ends become LF (CR LF and CR mean the same to every reader),
 * so that the output does not depend on how the stream was split into chunks.
 */
export class SseBlocks {
  private parts: string[] = []
  private partsBytes = 0
  private endsWithNewline = false
  private skipNewline = false

  /** The blocks that are complete now, as a latin1 string, blank lines included; empty when there is none. */
  push(chunk: Buffer): string {
    if (chunk.length === 0) return ''
    let text = chunk.toString('latin1')
    if (this.skipNewline || text.includes('\r')) text = this.toNewlines(text)
    if (text === '') return ''
    const joins = this.endsWithNewline && text.charCodeAt(0) === 0x0a
    const last = text.lastIndexOf('\n\n')
    this.endsWithNewline = text.charCodeAt(text.length - 1) === 0x0a
    if (last < 0 && !joins) {
      this.keep(text)
      return ''
    }
    const cut = last < 0 ? 1 : last + 2
    if (this.parts.length === 0 && cut === text.length) {
      this.endsWithNewline = false
      return text
    }
    const whole = this.parts.join('') + text.slice(0, cut)
    this.parts.length = 0
    this.partsBytes = 0
    if (cut < text.length) this.keep(text.slice(cut))
    else this.endsWithNewline = false
    return whole
  }

  /** The unfinished block at the end of the stream. */
  rest(): string {
    const rest = this.parts.join('')
    this.parts.length = 0
    this.partsBytes = 0
    return rest
  }

  private keep(text: string): void {
    this.partsBytes += text.length
    if (this.partsBytes > EVENT_BYTES_MAX)
      throw new Fault('upstream_garbled', { internal: { why: 'an event is too long', bytes: this.partsBytes } })
    this.parts.push(text)
  }

  private toNewlines(text: string): string {
    const from = this.skipNewline && text.charCodeAt(0) === 0x0a ? 1 : 0
    this.skipNewline = text.charCodeAt(text.length - 1) === 0x0d
    return text.slice(from).replace(/\r\n?/g, '\n')
  }
}

/** Reads one block (a latin1 string); undefined when it has neither data nor a name, such as a comment. */
export function readBlock(block: string): SseEvent | undefined {
  let event: string | undefined
  let data: string | undefined
  let id: string | undefined
  for (let at = 0; at <= block.length; ) {
    const lineEnd = block.indexOf('\n', at)
    const line = block.slice(at, lineEnd < 0 ? block.length : lineEnd)
    at += line.length + 1
    // A byte order mark may precede the first line of a stream.
    const start = line.startsWith('\u00ef\u00bb\u00bf') ? 3 : 0
    const colon = line.indexOf(':', start)
    if (colon === start) continue // A comment.
    const name = colon < 0 ? line.slice(start) : line.slice(start, colon)
    let value = colon < 0 ? '' : line.slice(colon + 1)
    if (value.charCodeAt(0) === 0x20) value = value.slice(1)
    if (name === 'data') data = data === undefined ? value : `${data}\n${value}`
    else if (name === 'event') event = value
    else if (name === 'id') id = value
  }
  if (data === undefined && event === undefined) return undefined
  return { event, data: data ?? '', id }
}

/** Reads one block as text. */
export function readEvent(block: string): SseEvent | undefined {
  const event = readBlock(block)
  return event && { event: event.event, data: bytesToText(event.data), id: event.id }
}

/** Hands over one block after the other, without the blank lines that end them. */
export function eachBlock(blocks: string, take: (block: string) => void): void {
  for (let at = 0; at < blocks.length; ) {
    const end = blocks.indexOf('\n\n', at)
    take(blocks.slice(at, end))
    at = end + 2
    while (blocks.charCodeAt(at) === 0x0a) at++
  }
}

/** Decodes a latin1 string of bytes as UTF-8; invalid bytes become U+FFFD. */
export function bytesToText(bytes: string): string {
  return /[\u0080-\u00ff]/.test(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes
}

/** Encodes text as UTF-8 bytes in a latin1 string. */
export function textToBytes(text: string): string {
  return /[^\u0000-\u007f]/.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text
}

/** Copies a relayed piece. */
export function bytesOf(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Buffer {
  return typeof piece === 'string' ? Buffer.from(piece, encoding) : Buffer.from(piece)
}

/** A push decoder: chunks in, events out. The events do not depend on how the bytes were split into chunks. */
export class SseDecoder {
  private readonly blocks = new SseBlocks()

  push(chunk: Buffer): SseEvent[] {
    const events: SseEvent[] = []
    eachBlock(this.blocks.push(chunk), (block) => {
      const event = readEvent(block)
      if (event) events.push(event)
    })
    return events
  }

  /** The last event if the stream ended without a blank line; it may be truncated. */
  end(): SseEvent | undefined {
    return readEvent(this.blocks.rest())
  }
}

/** One event as text. A line break in the data makes a second data line; names never break the frame. */
export function encodeEvent(data: string, event?: string): string {
  const lines = /[\r\n]/.test(data) ? data.split(/\r\n?|\n/).join('\ndata: ') : data
  return event === undefined ? `data: ${lines}\n\n` : `event: ${event.replace(/[\r\n]/g, ' ')}\ndata: ${lines}\n\n`
}

/** One event with a JSON value, which has no line breaks. `event` must be a safe name. */
export function encodeJson(value: unknown, event?: string): string {
  const data = JSON.stringify(value)
  return event === undefined ? `data: ${data}\n\n` : `event: ${event}\ndata: ${data}\n\n`
}

/** A comment line with a single line end: a blank line after it makes some readers dispatch an empty event. */
export function encodeComment(text: string): string {
  return text === ''
    ? ''
    : `: ${text
        .replace(/^:\s*/, '')
        .replace(/[\r\n]+/g, ' ')
        .trimEnd()}\n`
}
