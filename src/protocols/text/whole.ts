// A vendor's whole JSON answer, read one character per byte: numbers and structure are right, positions are bytes, and
// nothing is decoded that only passes through. Also for callers who asked for a stream, and from vendors that only stream.
import { isAscii } from 'node:buffer'
import { Fault } from '../../kernel/fault.ts'
import { memberSpan } from '../../kernel/json.ts'
import { ownMemory } from '../../upstream/internals.ts'
import { bytesOf, SseDecoder, type SseEvent } from '../../upstream/sse.ts'
import { isObject, type Json } from '../check.ts'
import type { StreamRelay, StreamState } from '../protocol.ts'
import { vendorFault } from '../vendor-fault.ts'

interface Whole {
  /** One character per byte. */
  readonly bytes: string
  readonly value: Json
}

/**
 * Reads an answer that passes (one character per byte) or one that is put into other words (utf8). Throws what it says went
 * wrong, if it says so: some vendors report errors with status 200.
 */
export function readWhole(body: Buffer, encoding: 'latin1' | 'utf8' = 'latin1'): Whole {
  const bytes = body.toString(encoding)
  const value = parse(bytes)
  if (!isObject(value)) throw new Fault('upstream_garbled', { internal: { why: 'the answer is not an object' } })
  const error = value.error
  if (error !== undefined && error !== null && error !== '')
    throw vendorFault((JSON.parse(body.toString('utf8')) as Json).error)
  return { bytes, value }
}

function parse(bytes: string): unknown {
  try {
    return JSON.parse(bytes)
  } catch (cause) {
    throw new Fault('upstream_garbled', {
      internal: { why: 'the answer is not JSON' },
      cause,
    })
  }
}

const STRING_BYTES_MAX = 16_384

/** The body with the public name of the model in place of the vendor's. */
export function renamed(body: Buffer, { bytes, value }: Whole, uid: string, name = 'model'): string | Buffer {
  if (value[name] === uid) return body
  const span = memberSpan(bytes, name)
  if (!span) return body
  // A short one that is the same in any encoding leaves as the string that it is here.
  if (body.length <= STRING_BYTES_MAX && isAscii(body))
    return `${bytes.slice(0, span[0])}"${uid}"${bytes.slice(span[1])}`
  return Buffer.concat([body.subarray(0, span[0]), Buffer.from(`"${uid}"`), body.subarray(span[1])])
}

/** No answer is larger; whoever sends more is cut off. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024

/** The vendor has worked on the prompt, though nothing of it was delivered. */
const BEGUN: StreamState = { terminal: false, fault: undefined, usage: undefined, outputTokensSeen: 1 }

/** A whole answer to a request for a stream: taken up to its end, and relayed as the stream that it could have been. */
export class WholeRelay implements StreamRelay {
  readonly encoding = 'utf8'
  private readonly relay: StreamRelay
  private readonly unroll: (value: Json) => string
  private readonly chunks: Buffer[] = []
  private bytes = 0
  private ended = false

  constructor(relay: StreamRelay, unroll: (value: Json) => string) {
    this.relay = relay
    this.unroll = unroll
  }

  get state(): StreamState {
    return this.ended || this.bytes === 0 ? this.relay.state : BEGUN
  }

  get keepAlive(): string {
    return this.relay.keepAlive
  }

  push(chunk: Buffer): undefined {
    this.bytes += chunk.length
    if (this.bytes > ANSWER_BYTES_MAX)
      throw new Fault('upstream_garbled', { internal: { why: 'the answer is too long', bytes: this.bytes } })
    this.chunks.push(ownMemory(chunk))
  }

  end(): Buffer {
    const { value } = readWhole(Buffer.concat(this.chunks), 'utf8')
    this.ended = true
    const sent = [this.relay.push(Buffer.from(this.unroll(value))), this.relay.end()]
    return Buffer.concat(sent.map((piece) => bytesOf(piece ?? '', this.relay.encoding)))
  }

  finish(comment: string): string {
    return this.relay.finish(comment)
  }

  fail(fault: Fault, requestId: string): string {
    return this.relay.fail(fault, requestId)
  }
}

/** The events of a stream that came whole. */
export function readEvents(body: Buffer): SseEvent[] {
  const decoder = new SseDecoder()
  const events = decoder.push(body)
  const last = decoder.end()
  return last ? [...events, last] : events
}
