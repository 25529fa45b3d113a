// The two ways of relaying a streamed answer. Same format on both sides: the bytes pass, and an observer sees each
// event. Different formats: events are read into the canonical form and rewritten.
import { isAscii } from 'node:buffer'
import { Fault } from '../../kernel/fault.ts'
import { isObject, type Json, memberSpan, objectOf, text } from '../../kernel/json.ts'
import { isJson } from '../../kernel/parsers/json-repair.ts'
import type { Usage } from '../../meter/usage.ts'
import { ownMemory } from '../../upstream/pieces.ts'
import { bytesOf, encodeEvent, readBlock, SseBlocks, SseDecoder, type SseEvent } from '../../upstream/sse.ts'
import { garbled, OuterRelay, type StreamRelay, type StreamState } from '../protocol.ts'
import { vendorFault } from '../vendor-fault.ts'

/** Counts delivered output roughly: at least one token per event, and one for every four bytes of its text. */
export class OutputCount {
  tokens = 0

  addBytes(bytes: number): void {
    this.tokens += bytes > 7 ? bytes >> 2 : 1
  }

  /** For a delta in an unusual form: counts all its texts, however deep. */
  addDelta(delta: unknown): void {
    const chars = charsIn(delta)
    if (chars > 0) this.addBytes(chars)
  }
}

/** Members of a delta that are not output. */
const LABELS: ReadonlySet<string> = new Set(['role', 'type', 'id', 'index', 'name', 'object', 'format'])
const DELTA_DEPTH_MAX = 8

export function charsIn(value: unknown, depth = 0): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null || depth > DELTA_DEPTH_MAX) return 0
  let chars = 0
  const isTold = isObject(value) && (text(value.reasoning_content) ?? text(value.reasoning)) !== undefined
  for (const [name, member] of Object.entries(value)) {
    // Some vendors write a thought twice.
    if (!LABELS.has(name) && !(isTold && name === 'reasoning_details')) chars += charsIn(member, depth + 1)
  }
  return chars
}

/** The end of the JSON string that begins before `start`: its first unescaped quote. -1: it does not end. */
export function stringEnd(block: string, start: number): number {
  for (let at = block.indexOf('"', start); at >= 0; at = block.indexOf('"', at + 1)) {
    let slashes = 0
    while (block.charCodeAt(at - 1 - slashes) === 0x5c) slashes += 1
    if (slashes % 2 === 0) return at
  }
  return -1
}

/** Observes the events of one format as they pass. Blocks are bytes in a string, normalized by `canonical`. */
export abstract class Observer implements StreamState {
  terminal = false
  fault: Fault | undefined
  protected readonly output = new OutputCount()
  abstract readonly keepAlive: string
  abstract get usage(): Usage | undefined

  get outputTokensSeen(): number {
    return this.output.tokens
  }

  /** Returns the block to send instead: the same string to let it pass, an empty string to hold it back. */
  abstract see(block: string): string

  /** The same for as many blocks from `at` on as can be told at once; undefined: the next one is to be seen alone. */
  seeRun(_blocks: string, _at: number): { readonly end: number; readonly out: string } | undefined {
    return undefined
  }

  abstract finish(comment: string): string
  abstract fail(fault: Fault, requestId: string): string

  /** Called when the vendor closes the stream cleanly; most formats end only by an event. */
  end(): void {}

  /** Adds the event line if a vendor omits it: SDKs need it, and the data names the type. */
  protected seeUnnamed(block: string): string {
    const data = dataOf(block)
    if (data.trim() === '[DONE]') return ''
    const value = readData(data)
    const type = isObject(value) ? (text(value.type) ?? (value.error ? 'error' : undefined)) : undefined
    return type === undefined ? '' : this.see(encodeEvent(data, type))
  }
}

export class PassRelay implements StreamRelay {
  readonly encoding = 'latin1'
  private readonly blocks = new SseBlocks()
  private readonly observer: Observer

  constructor(observer: Observer) {
    this.observer = observer
  }

  get state(): StreamState {
    return this.observer
  }

  get keepAlive(): string {
    return this.observer.keepAlive
  }

  push(chunk: Buffer): string | undefined {
    const ready = this.blocks.push(chunk)
    return ready === '' ? undefined : this.pass(ready) || undefined
  }

  end(): string | undefined {
    const rest = this.blocks.rest()
    // Some vendors omit the last blank line. A truncated event does not count, because its JSON is incomplete.
    const out = rest !== '' && isWhole(rest) ? this.pass(`${rest.replace(/\n$/, '')}\n\n`) : ''
    this.observer.end()
    return out || undefined
  }

  finish(comment: string): string {
    return this.observer.finish(comment)
  }

  fail(fault: Fault, requestId: string): string {
    return this.observer.fail(fault, requestId)
  }

  private pass(ready: string): string {
    let out = ''
    let kept = 0 // The output is written up to here; the bytes from here to `at` pass unchanged.
    let at = 0
    while (at < ready.length) {
      if (ready.charCodeAt(at) === 0x0a) {
        out += ready.slice(kept, at)
        kept = ++at
        continue
      }
      const run = this.observer.seeRun(ready, at)
      if (run) {
        out += ready.slice(kept, at) + run.out
        at = run.end
        kept = at
        continue
      }
      const lineEnd = ready.indexOf('\n', at)
      let end = lineEnd + 2
      const oneLine = ready.charCodeAt(lineEnd + 1) === 0x0a && ready.startsWith('data:', at)
      if (!oneLine) end = ready.indexOf('\n\n', at) + 2
      const came = ready.slice(at, end)
      const block = oneLine || isNamed(came, lineEnd - at) ? came : canonical(came)
      const seen = block === '' ? '' : this.observer.see(block)
      if (seen !== came) {
        out += ready.slice(kept, at) + seen
        kept = end
      }
      at = end
    }
    return kept === 0 ? ready : out + ready.slice(kept)
  }
}

/** Whether a block is one `event:` line and one `data:` line. */
function isNamed(block: string, firstLineEnd: number): boolean {
  return (
    block.startsWith('event:') &&
    block.startsWith('data:', firstLineEnd + 1) &&
    block.indexOf('\n', firstLineEnd + 1) === block.length - 2
  )
}

/**
 * The block without comments, ids and retry lines, which are not for the caller, and with its data on one line: line
 * breaks in JSON are only whitespace.
 */
function canonical(block: string): string {
  const event = readBlock(block)
  if (!event) return ''
  const data = event.data.replaceAll('\n', ' ')
  return event.event === undefined ? `data: ${data}\n\n` : `event: ${event.event}\ndata: ${data}\n\n`
}

function isWhole(block: string): boolean {
  const data = readBlock(block)?.data
  if (data === undefined) return false
  return data === '[DONE]' || isJson(data)
}

/** The data of a canonical block. */
export function dataOf(block: string): string {
  const start = block.startsWith('event:') ? block.indexOf('\n') + 1 : 0
  const from = start + 5
  return block.slice(block.charCodeAt(from) === 0x20 ? from + 1 : from, -2)
}

/** The JSON of an event; undefined if it is empty. */
export function readData(data: string): unknown {
  if (data.trim() === '') return undefined
  try {
    return JSON.parse(data)
  } catch (cause) {
    throw garbled('an event is not JSON', cause)
  }
}

/** The event name of a canonical block; undefined if it has none. */
export function nameOf(block: string): string | undefined {
  if (!block.startsWith('event:')) return undefined
  const from = block.charCodeAt(6) === 0x20 ? 7 : 6
  return block.slice(from, block.indexOf('\n'))
}

// A vendor's whole JSON answer, read with one character per byte: numbers and structure are right, positions are bytes,
// and bytes that only pass through are not decoded. Also used for callers that asked for a stream, and for vendors that
// only stream.

interface Whole {
  /** One character per byte. */
  readonly bytes: string
  readonly value: Json
}

/**
 * Reads an answer that passes through (one character per byte) or is converted (utf8). Throws the error that it
 * contains, if any: some vendors report errors with status 200.
 */
export function readWhole(body: Buffer, encoding: 'latin1' | 'utf8' = 'latin1'): Whole {
  const bytes = body.toString(encoding)
  const value = parse(bytes)
  if (!isObject(value)) throw garbled('the answer is not an object')
  const error = value.error
  if (error !== undefined && error !== null && error !== '')
    throw vendorFault(objectOf(JSON.parse(body.toString('utf8'))).error)
  return { bytes, value }
}

function parse(bytes: string): unknown {
  try {
    return JSON.parse(bytes)
  } catch (cause) {
    throw garbled('the answer is not JSON', cause)
  }
}

const STRING_BYTES_MAX = 16_384

/** The body with the model's public name instead of the vendor's. */
export function renamed(body: Buffer, { bytes, value }: Whole, uid: string, name = 'model'): string | Buffer {
  if (value[name] === uid) return body
  const span = memberSpan(bytes, name)
  if (!span) return body
  // A short ASCII body is the same in any encoding, so it is sent as a string.
  if (body.length <= STRING_BYTES_MAX && isAscii(body))
    return `${bytes.slice(0, span[0])}"${uid}"${bytes.slice(span[1])}`
  return Buffer.concat([body.subarray(0, span[0]), Buffer.from(`"${uid}"`), body.subarray(span[1])])
}

/** A larger answer is cut off. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024

/** The vendor has processed the prompt, though nothing was delivered. */
const BEGUN: StreamState = { terminal: false, fault: undefined, usage: undefined, outputTokensSeen: 1 }

/** A whole answer to a streaming request: collected to its end and relayed as a stream. */
export class WholeRelay extends OuterRelay {
  private readonly unroll: (value: Json) => string
  private readonly chunks: Buffer[] = []
  private bytes = 0
  private ended = false

  constructor(inner: StreamRelay, unroll: (value: Json) => string) {
    super(inner)
    this.unroll = unroll
  }

  override get encoding(): 'utf8' {
    return 'utf8'
  }

  override get state(): StreamState {
    return this.ended || this.bytes === 0 ? super.state : BEGUN
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
    const sent = [this.inner.push(Buffer.from(this.unroll(value))), this.inner.end()]
    return Buffer.concat(sent.map((piece) => bytesOf(piece ?? '', this.inner.encoding)))
  }
}

/** The events of a stream that has arrived completely. */
export function readEvents(body: Buffer): SseEvent[] {
  const decoder = new SseDecoder()
  const events = decoder.push(body)
  const last = decoder.end()
  return last ? [...events, last] : events
}
