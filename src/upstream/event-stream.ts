// The event streams of AWS (application/vnd.amazon.eventstream): messages in binary frames, each with two checksums.
import { crc32 } from 'node:zlib'
import { Fault } from '../kernel/fault.ts'

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
/** By type: true, false, byte, short, int, long, bytes, text, timestamp, uuid. Those without a size have it in front of them. */
const SIZES: readonly (number | undefined)[] = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16]

export class EventStreamDecoder {
  private parts: Buffer[] = []
  private bytes = 0
  private needed = PRELUDE_BYTES

  /** The messages that are complete now. Throws upstream_garbled for a frame that is not right. */
  push(chunk: Buffer): EventMessage[] {
    // The chunk's memory is used again by whoever reads the socket.
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
  return {
    headers: readHeaders(bytes.subarray(PRELUDE_BYTES, payloadAt)),
    payload: bytes.subarray(payloadAt, end),
  }
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
