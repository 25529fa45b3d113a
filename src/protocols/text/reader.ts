// The reading and the writing end of a converted stream, and the relay that joins them.
import type { Fault } from '../../kernel/fault.ts'
import type { Usage } from '../../meter/usage.ts'
import { SseDecoder, type SseEvent } from '../../upstream/sse.ts'
import type { StreamRelay, StreamState } from '../protocol.ts'
import type { ReplyEvent } from './dialogue.ts'
import { isWholeJson, OutputCount } from './relay.ts'
import { type TokenCounts, toUsage } from './tokens.ts'

/** Reads one vendor's stream. */
export abstract class StreamReader {
  terminal = false
  fault: Fault | undefined
  tokens: TokenCounts | undefined
  /** As counted when the answer began, where a vendor says it then. */
  promptTokens: TokenCounts | undefined

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
  private readonly decoder = new SseDecoder()
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
    for (const event of this.decoder.push(chunk)) out += this.take(event)
    return out === '' ? undefined : out
  }

  end(): string | undefined {
    const last = this.decoder.end()
    let out = last && (last.data === '[DONE]' || isWholeJson(last.data)) ? this.take(last) : ''
    out += this.writeAll(this.reader.end())
    return out === '' ? undefined : out
  }

  finish(comment: string): string {
    return this.writer.finish(this.reader.tokens, comment)
  }

  fail(fault: Fault, requestId: string): string {
    return this.writer.fail(fault, requestId)
  }

  private take(event: SseEvent): string {
    // Nothing that follows a terminal event or an error belongs to the answer.
    return this.reader.terminal || this.reader.fault ? '' : this.writeAll(this.reader.read(event))
  }

  private writeAll(events: readonly ReplyEvent[]): string {
    let out = ''
    for (const event of events) {
      if ('text' in event) this.output.addBytes(event.text.length)
      out += this.writer.write(event)
    }
    return out
  }
}
