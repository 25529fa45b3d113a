// Writing a streamed answer, well or badly: at the vendor's pace, with backpressure, and broken where a trigger says
// so.
import type { ServerResponse } from 'node:http'
import { type RoomContext, SIMULATED_HEADER } from './room.ts'
import type { Triggers } from './trigger.ts'
import type { Variation } from './variation.ts'

const FILLER = 'Simulated by the Tollgate sandbox. '

export class EventStream {
  readonly #res: ServerResponse
  readonly #ctx: RoomContext
  readonly #slowMs: number
  readonly #stallAfter: number
  readonly #cutAfter: number
  #bytesLeft: number
  readonly #variation: Variation | undefined
  #over = false

  constructor(res: ServerResponse, ctx: RoomContext, triggers: Triggers, headers: Record<string, string> = {}) {
    this.#res = res
    this.#ctx = ctx
    this.#slowMs = triggers.number('slow') ?? 0
    this.#stallAfter = triggers.number('stall-after') ?? Number.POSITIVE_INFINITY
    this.#cutAfter = triggers.number('cut') ?? Number.POSITIVE_INFINITY
    this.#bytesLeft = triggers.number('truncate') ?? Number.POSITIVE_INFINITY
    // A trigger that counts bytes counts those of the plain answer.
    this.#variation = triggers.has('truncate') ? undefined : ctx.variation
    ctx.call.stream = true
    res.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      ...SIMULATED_HEADER,
      ...headers,
    })
    res.flushHeaders()
  }

  /** True when nothing more need be written: the client left, or a trigger ended the stream. */
  get over(): boolean {
    return this.#over || this.#ctx.isGone
  }

  /** One event with a name. */
  event(name: string, data: unknown): Promise<void> | undefined {
    return this.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
  }

  /** One event without a name. */
  data(data: unknown): Promise<void> | undefined {
    return this.write(`data: ${JSON.stringify(data)}\n\n`)
  }

  /** Resolves when the next piece may be written; undefined means at once, so that a fast stream costs no ticks. */
  write(frame: string | Buffer): Promise<void> | undefined {
    if (this.over) return undefined
    const { call } = this.#ctx
    if (call.chunks >= this.#cutAfter) {
      this.#over = true
      return this.#cutWhenSent()
    }
    if (call.chunks >= this.#stallAfter) {
      this.#over = true
      return this.#ctx.gone()
    }
    let piece = frame
    if (this.#bytesLeft !== Number.POSITIVE_INFINITY) {
      const bytes = typeof frame === 'string' ? Buffer.from(frame) : frame
      if (bytes.length >= this.#bytesLeft) {
        this.#over = true
        this.#res.end(bytes.subarray(0, this.#bytesLeft))
        return undefined
      }
      this.#bytesLeft -= bytes.length
      piece = bytes
    }
    call.chunks++
    const room = this.#send(piece)
    if (!room) return this.#drained()
    return this.#slowMs > 0 ? this.#paused() : undefined
  }

  #send(piece: string | Buffer): boolean {
    if (!this.#variation || typeof piece !== 'string') return this.#res.write(piece)
    const parts = this.#variation.pieces(Buffer.from(this.#variation.frame(piece)))
    return parts.map((part) => part.length === 0 || this.#res.write(part)).every(Boolean)
  }

  end(): void {
    if (!this.over) this.#res.end()
    this.#over = true
  }

  /** Filler of so many bytes, cut into frames that `frame` makes. */
  async fill(bytes: number, frame: (text: string) => string): Promise<void> {
    const text = FILLER.repeat(Math.ceil(16_384 / FILLER.length)).slice(0, 16_384)
    for (let left = bytes; left > 0 && !this.over; left -= text.length) {
      await this.write(frame(left < text.length ? text.slice(0, left) : text))
    }
  }

  async #drained(): Promise<void> {
    await Promise.race([new Promise<void>((resolve) => this.#res.once('drain', resolve)), this.#ctx.gone()])
    if (this.#slowMs > 0) await this.#paused()
  }

  async #paused(): Promise<void> {
    await this.#ctx.pause(this.#slowMs)
  }

  /** What was written must reach the client first, or the cut would come earlier than asked. */
  async #cutWhenSent(): Promise<void> {
    const { socket } = this.#res
    while (socket && socket.writableLength > 0 && !this.#ctx.isGone) {
      await Promise.race([new Promise<void>((resolve) => socket.once('drain', resolve)), this.#ctx.gone()])
    }
    await this.#ctx.pause(5)
    this.#ctx.cut()
  }
}
