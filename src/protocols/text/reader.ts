// The reading and the writing end of a converted stream, and the relay that joins them.
import type { Fault } from '../../kernel/fault.ts'
import type { Usage } from '../../meter/usage.ts'
import { bytesToText, eachBlock, readEvent, SseBlocks, type SseEvent, textToBytes } from '../../upstream/sse.ts'
import type { StreamRelay, StreamState } from '../protocol.ts'
import type { ReplyEvent } from './canonical.ts'
import { isWholeJson, OutputCount } from './relay.ts'
import { type TokenCounts, toUsage } from './tokens.ts'

/** Reads one vendor's stream. */
export abstract class StreamReader {
  terminal = false
  fault: Fault | undefined
  tokens: TokenCounts | undefined
  /** As counted when the answer began, where a vendor says it then. */
  promptTokens: TokenCounts | undefined
  /**
   * An event that differs from the one before only in its text says the same in other words, and leaves nothing else behind.
   * Texts are taken as they are, not put together.
   */
  readonly repeats: boolean = false

  /** What an event says, in neutral words; an `end` only when nothing more can follow. */
  abstract read(event: SseEvent): ReplyEvent[]

  /** The vendor closed the stream. */
  end(): ReplyEvent[] {
    return []
  }
}

/** Writes one caller's stream. */
export interface StreamWriter {
  /** The frames for an event; empty when it needs none. */
  write(event: ReplyEvent): string
  /** The last frames: whatever is still open, the usage, the terminal event. Asked for more than once. */
  finish(tokens: TokenCounts | undefined, comment: string): string
  fail(fault: Fault, requestId: string): string
  readonly keepAlive: string
}

export class ConvertRelay implements StreamRelay, StreamState {
  readonly encoding = 'utf8'
  private readonly blocks = new SseBlocks()
  private readonly last = new Repeated()
  private readonly output = new OutputCount()
  private readonly reader: StreamReader
  private readonly writer: StreamWriter

  constructor(reader: StreamReader, writer: StreamWriter) {
    this.reader = reader
    this.writer = writer
  }

  get state(): StreamState {
    return this
  }

  get terminal(): boolean {
    return this.reader.terminal
  }

  get fault(): Fault | undefined {
    return this.reader.fault
  }

  get usage(): Usage | undefined {
    return toUsage(this.reader.tokens)
  }

  get promptUsage(): Usage | undefined {
    return toUsage(this.reader.promptTokens)
  }

  get outputTokensSeen(): number {
    return this.output.tokens
  }

  get keepAlive(): string {
    return this.writer.keepAlive
  }

  push(chunk: Buffer): string | undefined {
    let out = ''
    eachBlock(this.blocks.push(chunk), (block) => {
      out += this.take(block)
    })
    return out === '' ? undefined : out
  }

  end(): string | undefined {
    const rest = this.blocks.rest()
    const last = readEvent(rest)
    let out = last && (last.data === '[DONE]' || isWholeJson(last.data)) ? this.take(rest) : ''
    out += this.writeAll(this.reader.end())
    return out === '' ? undefined : out
  }

  finish(comment: string): string {
    return this.writer.finish(this.reader.tokens, comment)
  }

  fail(fault: Fault, requestId: string): string {
    return this.writer.fail(fault, requestId)
  }

  private take(block: string): string {
    // Nothing that follows a terminal event or an error belongs to the answer.
    if (this.reader.terminal || this.reader.fault) return ''
    const again = this.last.read(block)
    if (again) return this.write(again)
    const event = readEvent(block)
    if (!event) return ''
    const events = this.reader.read(event)
    if (this.reader.repeats) this.last.learn(block, events)
    return this.writeAll(events)
  }

  private writeAll(events: readonly ReplyEvent[]): string {
    let out = ''
    for (const event of events) out += this.write(event)
    return out
  }

  private write(event: ReplyEvent): string {
    if ('text' in event) this.output.addBytes(event.text.length)
    return this.writer.write(event)
  }
}

// Vendors repeat themselves: most events of a stream differ from the one before only in their text, between the same bytes.
// Such an event is known by comparing, which is ten times as fast as parsing it. Blocks are bytes in a string.

/** What stands around the text of an event, its quotes included. */
export class Surroundings {
  private lead = ''
  private tail = ''

  /** Blocks are compared with this one from now on, whose text stands there. */
  learn(block: string, start: number, end: number): void {
    this.lead = block.slice(0, start)
    this.tail = block.slice(end)
  }

  /** Where the text of a block begins that `endOf` knows. */
  get start(): number {
    return this.lead.length
  }

  /** Where the text ends of a block that is like the one that was learnt; -1 when it is another. */
  endOf(block: string): number {
    const start = this.lead.length
    if (start === 0) return -1
    const end = block.indexOf('"', start)
    if (block.length - end !== this.tail.length || block.charCodeAt(end - 1) === 0x5c) return -1
    // Comparing slices is three times as fast as startsWith.
    return block.slice(0, start) === this.lead && block.slice(end) === this.tail ? end : -1
  }
}

type Piece = ReplyEvent & { readonly text: string }

/** What the last event of a stream said, to know by it what its like says. */
class Repeated {
  private readonly around = new Surroundings()
  private said: Piece | undefined

  learn(block: string, events: readonly ReplyEvent[]): void {
    const said = events.length === 1 ? events[0] : undefined
    this.said = undefined
    if (!said || !('text' in said) || block.includes('\\')) return
    // In a block without escapes all strings stand as they are read. One that is found once is the one that was read.
    const quoted = `"${textToBytes(said.text)}"`
    const start = block.indexOf(quoted)
    if (start < 0 || block.includes(quoted, start + 1)) return
    this.around.learn(block, start + 1, start + quoted.length - 1)
    this.said = said
  }

  /** What a block says that is like the last one; undefined when it has to be read. */
  read(block: string): Piece | undefined {
    const end = this.said ? this.around.endOf(block) : -1
    const text = end < 0 ? undefined : readQuoted(block.slice(this.around.start - 1, end + 1))
    return this.said && text ? { ...this.said, text } : undefined
  }
}

function readQuoted(quoted: string): string | undefined {
  try {
    return JSON.parse(bytesToText(quoted)) as string // Quotes are all that JSON needs to be a string, or an error.
  } catch {
    return undefined
  }
}
