// Server-sent events: bytes to events and back. Inside, text is kept one character per byte, so that cutting a stream
// into events costs no decoding and a character that was split between two chunks is whole again before it is read.
import { Fault } from '../kernel/fault.ts'

/** The longest event that is buffered. The largest honest one is a final Responses object with its whole output. */
export const EVENT_BYTES_MAX = 8 * 1024 * 1024

export interface SseEvent {
  /** The `event:` field; undefined when the stream named none. */
  readonly event: string | undefined
  readonly data: string
  readonly id: string | undefined
}

/**
 * Cuts a stream into blocks that end with a blank line. Line ends are turned into LF on the way (CR LF and CR mean the
 * same to every reader), so that what comes out does not depend on how the stream was sliced.
 */
export class SseBlocks {
  private parts: string[] = []
  private partsBytes = 0
  private endsWithNewline = false
  private skipNewline = false

  /** The blocks that are complete now, as bytes in a string, blank lines included; empty when there is none. */
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

  /** What the stream left unfinished. */
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

/** Reads one block (bytes in a string); undefined when it carries neither data nor a name, such as a comment. */
export function readBlock(block: string): SseEvent | undefined {
  let event: string | undefined
  let data: string | undefined
  let id: string | undefined
  for (let at = 0; at <= block.length; ) {
    const lineEnd = block.indexOf('\n', at)
    const line = block.slice(at, lineEnd < 0 ? block.length : lineEnd)
    at += line.length + 1
    // The mark of byte order may precede the first line of a stream.
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

/** Bytes in a string, read as UTF-8; what is not UTF-8 becomes U+FFFD. */
export function bytesToText(bytes: string): string {
  return /[\u0080-\u00ff]/.test(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes
}

/** Text as its UTF-8 bytes in a string. */
export function textToBytes(text: string): string {
  return /[^\u0000-\u007f]/.test(text) ? Buffer.from(text, 'utf8').toString('latin1') : text
}

/** A copy of what a relay hands on. */
export function bytesOf(piece: string | Buffer, encoding?: 'latin1' | 'utf8'): Buffer {
  return typeof piece === 'string' ? Buffer.from(piece, encoding) : Buffer.from(piece)
}

/** A push decoder: chunks in, events out, the same events for any slicing of the same bytes. */
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

  /** The event that the end of the stream left without its blank line, if any; it may be cut short. */
  end(): SseEvent | undefined {
    return readEvent(this.blocks.rest())
  }
}

/** One event as text. A line break in the data makes a second data line; names never break the frame. */
export function encodeEvent(data: string, event?: string): string {
  const lines = /[\r\n]/.test(data) ? data.split(/\r\n?|\n/).join('\ndata: ') : data
  return event === undefined ? `data: ${lines}\n\n` : `event: ${event.replace(/[\r\n]/g, ' ')}\ndata: ${lines}\n\n`
}

/** One event with a value as JSON, which has no line breaks, under a name of our own. */
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
