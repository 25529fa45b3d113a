// Server-sent events: bytes to events and back. Internally, text has one character per byte (latin1), so splitting a
// stream into events needs no decoding, and a character that was split between two chunks is whole again before it is
// decoded.

import { crc32 } from 'node:zlib'
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
 * Splits a stream into blocks that end with a blank line. Line ends become LF (CR LF and CR mean the same to every
 * reader), so that the output does not depend on how the stream was split into chunks.
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

// The event streams of AWS (application/vnd.amazon.eventstream): messages in binary frames, each with two checksums.

export interface EventMessage {
  /** Those that are texts, such as `:event-type`. */
  readonly headers: Readonly<Record<string, string>>
  readonly payload: Buffer
}

/** What AWS allows, and as much as its headers may have. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024 + 131_072
const PRELUDE_BYTES = 12
const CRC_BYTES = 4
const TEXT_TYPE = 7
/**
 * By type: true, false, byte, short, int, long, bytes, text, timestamp, uuid. Those without a size have it in front of
 * them.
 */
const SIZES: readonly (number | undefined)[] = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16]

export class EventStreamDecoder {
  private parts: Buffer[] = []
  private bytes = 0
  private needed = PRELUDE_BYTES

  /** The messages that are complete now. Throws upstream_garbled for a frame that is not right. */
  push(chunk: Buffer): EventMessage[] {
    // The reader of the socket reuses the chunk's memory.
    this.parts.push(Buffer.from(chunk))
    this.bytes += chunk.length
    if (this.bytes < this.needed) return []
    let rest = Buffer.concat(this.parts)
    const messages: EventMessage[] = []
    this.needed = PRELUDE_BYTES
    while (rest.length >= PRELUDE_BYTES) {
      const size = sizeOf(rest)
      if (rest.length < size) {
        this.needed = size
        break
      }
      messages.push(readMessage(rest.subarray(0, size)))
      rest = rest.subarray(size)
    }
    this.parts = rest.length === 0 ? [] : [rest]
    this.bytes = rest.length
    return messages
  }

  /** Throws if the stream ended within a message. */
  end(): void {
    if (this.bytes > 0) throw broken('the stream ends within a message')
  }
}

function sizeOf(bytes: Buffer): number {
  if (crc32(bytes.subarray(0, 8)) !== bytes.readUInt32BE(8)) throw broken('the checksum of a prelude is wrong')
  const size = bytes.readUInt32BE(0)
  const headers = bytes.readUInt32BE(4)
  if (size > MESSAGE_BYTES_MAX || size < PRELUDE_BYTES + headers + CRC_BYTES)
    throw broken('a message has no right size')
  return size
}

function readMessage(bytes: Buffer): EventMessage {
  const end = bytes.length - CRC_BYTES
  if (crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw broken('the checksum of a message is wrong')
  const payloadAt = PRELUDE_BYTES + bytes.readUInt32BE(4)
  return { headers: readHeaders(bytes.subarray(PRELUDE_BYTES, payloadAt)), payload: bytes.subarray(payloadAt, end) }
}

function readHeaders(bytes: Buffer): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  try {
    for (let at = 0; at < bytes.length; ) {
      const nameEnd = at + 1 + bytes.readUInt8(at)
      const name = bytes.toString('utf8', at + 1, nameEnd)
      const type = bytes.readUInt8(nameEnd)
      if (type >= SIZES.length) throw broken('a header has an unknown type')
      const fixed = SIZES[type]
      const from = nameEnd + (fixed === undefined ? 3 : 1)
      at = from + (fixed ?? bytes.readUInt16BE(nameEnd + 1))
      if (at > bytes.length) throw broken('a header is cut off')
      if (type === TEXT_TYPE) headers[name] = bytes.toString('utf8', from, at)
    }
  } catch (cause) {
    throw cause instanceof Fault ? cause : broken('the headers cannot be read')
  }
  return headers
}

function broken(why: string): Fault {
  return new Fault('upstream_garbled', { internal: { why } })
}
