// A response of a Realtime session, read like the answer to a call of its own: it begins with `response.created` and
// ends with `response.done`.

import { Fault } from '../../../kernel/fault.ts'
import { isObject } from '../../../kernel/json.ts'
import type { World } from '../../../kernel/world.ts'
import type { Deadlines, UpstreamReply } from '../../../upstream/call.ts'
import type { VendorSocket } from './vendor-socket.ts'

type Json = Record<string, unknown>

interface Options {
  readonly vendor: VendorSocket
  readonly world: World
  readonly deadlines: Deadlines
  /** Aborts when the caller has gone. */
  readonly signal: AbortSignal
  readonly eventId: string
  cancel(): void
}

export class VendorResponse implements UpstreamReply {
  status = 200
  readonly headers = {}
  readonly #options: Options
  readonly #begun = Promise.withResolvers<UpstreamReply>()
  readonly #ended = Promise.withResolvers<void>()
  #error = Buffer.alloc(0)
  #frames: string[] = []
  #onData: ((chunk: Buffer) => Promise<void> | undefined) | undefined
  #isOver = false
  #stopWatch: () => void = () => undefined
  #heardMs: number
  readonly #sentMs: number

  constructor(options: Options) {
    this.#options = options
    this.#sentMs = options.world.elapsedMs()
    this.#heardMs = this.#sentMs
    this.#ended.promise.catch(() => undefined)
    this.#begun.promise.catch(() => undefined)
    options.signal.addEventListener('abort', this.#left)
    this.#watch(options.deadlines.firstByteMs, 'first-byte')
  }

  /** Resolves when the vendor has begun, or refused. */
  get begun(): Promise<UpstreamReply> {
    return this.#begun.promise
  }

  /** The vendor stops, and says what it has used. */
  readonly #left = (): void => this.#options.cancel()

  #watch(forMs: number, phase: string): void {
    const { world } = this.#options
    this.#stopWatch()
    this.#stopWatch = world.after(forMs, () => {
      const { idleMs, totalMs } = this.#options.deadlines
      const nowMs = world.elapsedMs()
      const leftMs = Math.min(this.#heardMs + idleMs, this.#sentMs + totalMs) - nowMs
      if (phase !== 'first-byte' && leftMs > 0) return this.#watch(leftMs, 'idle')
      this.#options.cancel()
      this.fail(new Fault('upstream_timeout', { internal: { phase } }))
    })
  }

  /** Whether a vendor's error answers this response's creation. */
  isAbout(event: Json): boolean {
    const { error } = event
    return isObject(error) && error.event_id === this.#options.eventId
  }

  /** False: the frame is none of this response's, which is over or has not begun. */
  push(frame: string, event: Json): boolean {
    if (this.#isOver) return false
    this.#heardMs = this.#options.world.elapsedMs()
    if (event.type === 'error' && this.isAbout(event)) {
      this.status = 400
      this.#error = Buffer.from(frame)
      this.#over()
      this.#begun.resolve(this)
      return true
    }
    const isFirst = event.type === 'response.created'
    if (isFirst) {
      this.#begun.resolve(this)
      this.#watch(this.#options.deadlines.idleMs, 'idle')
    }
    if (!isFirst && this.#frames.length === 0 && !this.#onData) return false
    this.#deliver(frame)
    if (event.type === 'response.done') {
      this.#over()
      if (this.#onData) this.#ended.resolve()
    }
    return true
  }

  #deliver(frame: string): void {
    if (!this.#onData) {
      this.#frames.push(frame)
      return
    }
    const full = this.#onData(Buffer.from(frame))
    if (!full) return
    const { vendor } = this.#options
    vendor.pause()
    full.finally(() => vendor.resume())
  }

  #over(): void {
    this.#isOver = true
    this.#stopWatch()
    this.#options.signal.removeEventListener('abort', this.#left)
  }

  fail(fault: Fault): void {
    if (this.#isOver) return
    this.#over()
    this.#begun.reject(fault)
    this.#ended.reject(fault)
  }

  async read(): Promise<Buffer> {
    return this.#error
  }

  async pipe(onData: (chunk: Buffer) => Promise<void> | undefined): Promise<void> {
    this.#onData = onData
    const frames = this.#frames
    this.#frames = []
    for (const frame of frames) this.#deliver(frame)
    if (this.#isOver) this.#ended.resolve()
    return this.#ended.promise
  }

  letGo(): void {}

  abort(): void {
    if (this.#isOver) return
    this.#options.cancel()
    this.fail(new Fault('upstream_failed', { internal: { why: 'aborted' } }))
  }
}
